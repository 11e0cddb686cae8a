// SPDX-License-Identifier: Apache-2.0
// What modules of the page find in a browser: the element with the data, other elements, the link and its history. Import it before them.

const PANELS = ["sequence", "flight", "rate", "rtt"].map((name) => ({ name, title: name, unit: "", height: 80, shown: true, log: false }));

export const DATA = {
  base: "1700000000000000000", served: false, whole_flows: [], wire_mss: { 2: 1000 }, packets: { cut: false }, files: [],
  flows: { held: 4, count: 6 },
  figure: { panels: PANELS, series: [] },
  words: { kind: ["", "fast_retransmission"], place: ["", "upstream", "downstream"], evidence: ["", "acks"], verdict: ["", "delivered", "duplicate"] },
};

const made = new Map();
const elementOf = (id) => made.get(id) ?? made.set(id, { hidden: false, textContent: id === "data" ? JSON.stringify(DATA) : "", scrollIntoView() {} }).get(id);
export const listeners = {};
export const visited = []; // links of the steps of the history

Object.assign(globalThis, {
  document: { getElementById: elementOf },
  location: { hash: "" },
  history: {
    state: null,
    pushState(state, _, link) {
      visited.push(link);
      Object.assign(location, { hash: link });
      this.state = state;
    },
    replaceState(state, _, link = location.hash) {
      if (link !== location.hash) visited[visited.length - 1] = link;
      Object.assign(location, { hash: link });
      this.state = state;
    },
  },
  addEventListener: (event, listen) => { listeners[event] = listen; },
});

const COLUMNS = ["who", "time", "frame", "capture", "known", "size", "sequence", "ack", "window", "flags", "unique", "rtt", "offset", "ip"];

// Returns packets as numbers.js decodes them, of one flow; each is an object with some columns, and `sacks`.
export function packetsOf(flow, packets) {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, Float64Array.from(packets, (packet, i) => packet[name] ?? (name === "frame" ? i + 1 : 0))]));
  const sacks = new Map(packets.flatMap((packet, i) => (packet.sacks ? [[i, packet.sacks]] : [])));
  const rows = (side) => Uint32Array.from(packets.keys()).filter((i) => columns.who[i] === side);
  return { ...columns, sacks, places: new Map([[flow, 0]]), rows };
}

// Returns the columns of a table without rows, or with these.
export const tableOf = (names, rows = []) => Object.fromEntries(names.split(" ").map((name) => [name, Float64Array.from(rows, (row) => row[name] ?? 0)]));
