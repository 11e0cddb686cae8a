// The points of each panel of a flow: throughput, packets, verdicts, losses, blocks, datagrams.
const FLAG_LETTERS = [[2, "SYN"], [1, "FIN"], [4, "RST"], [8, "PSH"], [16, "ACK"], [32, "URG"], [64, "ECE"], [128, "CWR"]];

// Adds a point to a trace. `frame` is a frame number in the file of a capture, or the time range of a bin.
function put(found, key, x, y, frame, capture, text) {
  const out = (found[key] ||= { x: [], y: [], frame: [] });
  out.x.push(x);
  out.y.push(y);
  out.frame.push(frame);
  if (capture !== undefined) (out.capture ||= []).push(capture);
  if (text === undefined) return;
  const texts = (out.texts ||= []);
  texts.push(text);
  out.text ||= (k) => texts[k];
}

// Yields the rows of a flow in a table.
function* rowsOf(table, flow) {
  for (let i = 0; i < table.flow.length; i++) if (table.flow[i] === flow) yield i;
}

function seriesData(flow) {
  const s = state.series, found = {};
  for (const i of rowsOf(s, flow)) {
    const d = s.direction[i], start = s.start_ns[i] / 1e3, width = s.width_ns[i] / 1e3, end = start + width;
    const follows = s.flow[i + 1] === flow && s.direction[i + 1] === d && s.start_ns[i + 1] / 1e3 <= end + 1e-9;
    const add = (name, x, y) => { if (!Number.isNaN(y)) put(found, name + d, x, y, [start, end]); };
    for (const line of ["throughput", "goodput"]) {
      const value = s[line + "_bps"][i];
      add(line, start, value);
      if (!follows) add(line, end, Number.isNaN(value) ? NaN : 0);
    }
    add("cumulative", end, s.cumulative_throughput_bps[i]);
    add("rtt", start + width / 2, s.rtt_ns[i]);
  }
  return found;
}

const flagText = (flags) => FLAG_LETTERS.filter(([bit]) => flags & bit).map(([, name]) => name).join(" ");
function packetText(p, i, tcp) {
  const size = `${whole(p.size[i])} bytes`;
  if (!tcp) return p.known[i] & KNOWN.fragment ? `${size}, fragment at ${whole(p.offset[i])}` : size;
  const repeated = p.known[i] & KNOWN.repeated ? `, ${whole(p.size[i] - p.unique[i])} of them repeated` : "";
  return `${size} from ${whole(p.sequence[i])}${repeated}<br>${flagText(p.flags[i])}`;
}

function picked(p, rows, y, tcp) {
  const out = { x: new Float64Array(rows.length), y: new Float64Array(rows.length), frame: new Float64Array(rows.length), capture: new Uint16Array(rows.length), text: (k) => packetText(p, rows[k], tcp) };
  for (let k = 0; k < rows.length; k++) {
    out.x[k] = p.time[rows[k]];
    out.y[k] = y(rows[k]);
    out.frame[k] = p.frame[rows[k]];
    out.capture[k] = p.capture[rows[k]];
  }
  return out;
}

// The time-sequence graph of the direction that carries more. If the flow is not TCP, packets by size.
function packetData(f) {
  const p = state.packets, place = p.places.get(f.flow);
  if (place === undefined) return {};
  const tcp = f.protocol === "tcp", main = f.main;
  const rows = [p.rows(2 * place), p.rows(2 * place + 1)];
  const found = {};
  for (const d of [0, 1]) found["rtt" + (1 - d)] = picked(p, rows[d].filter((i) => p.known[i] & KNOWN.rtt), (i) => p.rtt[i], tcp);
  if (!tcp) {
    found.data = picked(p, rows[0], (i) => p.size[i], false);
    found.other = picked(p, rows[1], (i) => p.size[i], false);
    return Object.assign(found, markData(f.flow, p, rows, 0, false));
  }
  const carries = (i) => p.size[i] > 0 && p.known[i] & KNOWN.sequence;
  found.data = picked(p, rows[main].filter(carries), (i) => p.sequence[i], true);
  const acks = rows[1 - main].filter((i) => p.known[i] & KNOWN.ack);
  found.ack = picked(p, acks, (i) => p.ack[i], true);
  const sacks = acks.filter((i) => p.known[i] & KNOWN.sack);
  found.sack = picked(p, sacks, (i) => p.sackEnd[i], true);
  found.sack.text = (k) => `SACK ${whole(p.sackStart[sacks[k]])} to ${whole(p.sackEnd[sacks[k]])}`;
  Object.assign(found, markData(f.flow, p, rows, main, true));
  found.window = picked(p, acks.filter((i) => p.known[i] & KNOWN.window), (i) => p.ack[i] + p.window[i], true);
  return found;
}

// --- verdicts

const MARK_OF = {
  mirror_duplicate: "copy", network_duplicate: "copy", unknown_duplicate: "copy", zero_window: "window_closed", window_full: "window_closed",
  keep_alive: "probe", keep_alive_ack: "probe", window_probe: "probe", captured_out_of_order: "acked_unseen_segment", sack_gap: "acked_unseen_segment",
  block_out_of_order: "out_of_order", block_duplicate: "copy", block_late: "ambiguous", block_corrupt: "block_lost",
};
const NONE = 255; // null in a column of bytes
const word = (name, number) => (data.words[name][number] || "").replaceAll("_", " ");

function verdictText(i) {
  const e = state.events, parts = [word("kind", e.kind[i])];
  if (e.spurious[i] === 1) parts.push("spurious");
  if (e.place[i] && e.place[i] !== NONE) parts.push(e.place[i] && `${word("place", e.place[i])}`);
  if (!Number.isNaN(e.bytes[i])) parts.push(`${whole(e.bytes[i])} bytes`);
  if (e.evidence[i] && e.evidence[i] !== NONE) parts.push(`by ${word("evidence", e.evidence[i])}`);
  if (!Number.isNaN(e.related_frame[i])) parts.push(`see frame ${e.related_frame[i]}`);
  return parts.filter(Boolean).join(", ");
}

// Returns the packet of an event among the rows of its direction, or -1 if the page does not contain it.
function packetOf(p, rows, event) {
  const time = state.events.time_ns[event] / 1e3, frame = state.events.frame[event];
  let at = firstAtOrAfter(rows, time - 1e-6, (row) => p.time[row]);
  for (; at < rows.length && p.time[rows[at]] < time + 1e-6; at++) if (p.frame[rows[at]] === frame) return rows[at];
  return -1;
}

function place(p, i, sends) {
  if (sends) return p.known[i] & KNOWN.sequence ? p.sequence[i] : null;
  return p.known[i] & KNOWN.ack ? p.ack[i] : null;
}

// A mark is at the sequence number of its segment, or at the acknowledgment number if it is an ACK.
function markData(flow, p, rows, main, tcp) {
  const found = {};
  for (const event of rowsOf(state.events, flow)) {
    const kind = data.words.kind[state.events.kind[event]], d = state.events.direction[event];
    const i = d < 2 ? packetOf(p, rows[d], event) : -1;
    if (i < 0) continue;
    const y = tcp ? place(p, i, d === main) : p.size[i];
    if (y !== null) put(found, MARK_OF[kind] || kind, p.time[i], y, p.frame[i], p.capture[i], verdictText(event));
  }
  return found;
}

// Cumulative lost segments by place, as on the wire: an event of a super-segment is several.
function lossData(flow) {
  const e = state.events, found = {};
  for (const i of rowsOf(e, flow)) {
    const place = data.words.place[e.place[i]], kind = data.words.kind[e.kind[i]];
    if (!kind.endsWith("retransmission") || e.spurious[i] === 1 || !["upstream", "downstream"].includes(place)) continue;
    const mss = data.wire_mss[2 * flow + e.direction[i]], lost = e.bytes[i] > mss ? Math.ceil(e.bytes[i] / mss) : 1;
    put(found, place, e.time_ns[i] / 1e3, (found[place]?.y.at(-1) || 0) + lost, e.frame[i], e.capture[i]);
  }
  return found;
}

function blockData(flow) {
  const b = state.blocks, found = {};
  for (const i of rowsOf(b, flow)) {
    const text = `block ${whole(b.sequence[i])}${b.stream[i] < 65535 ? ` of stream ${b.stream[i]}` : ""}`;
    const add = (key, value) => put(found, key, b.complete_ns[i] / 1e3, value / 1e6, b.last_frame[i], b.capture[i], text);
    if (Number.isNaN(b.complete_ns[i])) continue;
    if (!Number.isNaN(b.latency_ns[i])) add("latency", b.latency_ns[i]);
    if (b.head_of_line_ns[i] > 0) add("waited", b.head_of_line_ns[i]);
  }
  return found;
}

function datagramData(flow) {
  const g = state.datagrams, found = {};
  for (const i of rowsOf(g, flow)) {
    if (Number.isNaN(g.first_ns[i])) continue;
    put(found, g.missing_bytes[i] === 0 ? "whole" : "broken", g.first_ns[i] / 1e3, g.fragments[i], g.first_frame[i], g.capture[i]);
  }
  return found;
}
