// The report of captures: the list of flows, and the figure of the chosen one, thinned to what is in view.
const DRAWN_MOST = 5000; // points of all traces of a figure: so many are drawn within a blink
const DRAWN_LEAST = 400; // of each trace, however many there are
const PANEL_WEIGHTS = { rate: 3, sequence: 5, rtt: 2.2, losses: 2, blocks: 2.2, fragments: 2 };
const ROW_HEIGHT_PX = 78;
const KNOWN = { sequence: 1, ack: 2, window: 4, flags: 8, repeated: 16, rtt: 32, fragment: 64, sack: 128 };
const FLAG_LETTERS = [[2, "SYN"], [1, "FIN"], [4, "RST"], [8, "PSH"], [16, "ACK"], [32, "URG"], [64, "ECE"], [128, "CWR"]];
const ARRAYS = { B: Uint8Array, H: Uint16Array, i: Int32Array, I: Uint32Array, f: Float32Array, d: Float64Array };

const state = { sort: "bytes", down: true, chosen: null, traces: {}, full: {}, drawing: false };

// --- numbers ---------------------------------------------------------------------------------------------------

async function loadTable(columns) {
  const names = Object.keys(columns);
  const buffers = await Promise.all(names.map((name) => inflate(columns[name][1])));
  return Object.fromEntries(names.map((name, i) => [name, new ARRAYS[columns[name][0]](buffers[i])]));
}

// A reader of zigzag varints; beyond 2^32 in doubles, exact to 2^53.
function reader(bytes) {
  let at = 0;
  return () => {
    let low = 0, shift = 0, byte;
    do {
      byte = bytes[at++];
      low |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte & 0x80 && shift < 28);
    if (!(byte & 0x80)) return (low >>> 1) ^ -(low & 1);
    let high = 0, scale = 1;
    do {
      byte = bytes[at++];
      high += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    const value = high * 2 ** 28 + low;
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
}

async function loadPackets({ count, flows, streams }) {
  const names = Object.keys(streams);
  const buffers = await Promise.all(names.map((name) => inflate(streams[name][1])));
  const next = Object.fromEntries(names.map((name, i) => [name, reader(new Uint8Array(buffers[i]))]));
  const p = {
    who: new Uint32Array(count), time: new Float64Array(count), frame: new Float64Array(count), capture: new Uint16Array(count),
    known: new Uint8Array(count), size: new Float64Array(count), sequence: new Float64Array(count), ack: new Float64Array(count),
    window: new Float64Array(count), flags: new Uint16Array(count), unique: new Float64Array(count), rtt: new Float64Array(count),
    offset: new Float64Array(count), sackStart: new Float64Array(count), sackEnd: new Float64Array(count),
  };
  const sides = 2 * flows.length;
  const last = { size: new Float64Array(sides), end: new Float64Array(sides), ack: new Float64Array(sides), window: new Float64Array(sides), flags: new Int32Array(sides) };
  let time = 0, frame = 0;
  for (let i = 0; i < count; i++) {
    const who = (p.who[i] = next.who());
    p.time[i] = (time += next.time()) / 1e9;
    p.frame[i] = frame += next.frame();
    p.capture[i] = next.capture();
    const known = (p.known[i] = next.known());
    const size = (p.size[i] = last.size[who] += next.size());
    if (known & KNOWN.sequence) {
      p.sequence[i] = last.end[who] + next.sequence();
      last.end[who] = p.sequence[i] + size;
    }
    if (known & KNOWN.ack) p.ack[i] = last.ack[who] += next.ack();
    if (known & KNOWN.window) p.window[i] = last.window[who] += next.window();
    if (known & KNOWN.flags) p.flags[i] = last.flags[who] += next.flags();
    p.unique[i] = known & KNOWN.repeated ? 0 : size;
    if (known & KNOWN.rtt) p.rtt[i] = next.rtt() / 1e6;
    if (known & KNOWN.repeated) p.unique[i] = next.unique();
    if (known & KNOWN.fragment) p.offset[i] = next.offset();
    if (known & KNOWN.sack) p.sackEnd[i] = (p.sackStart[i] = p.ack[i] + next.sack()) + next.sacked();
  }
  return { ...p, places: new Map(flows.map((flow, i) => [flow, i])), rows: rowsByWho(p.who, sides) };
}

// Row numbers of each who, in order of time.
function rowsByWho(who, sides) {
  const starts = new Uint32Array(sides + 1);
  for (const w of who) starts[w + 1]++;
  for (let w = 0; w < sides; w++) starts[w + 1] += starts[w];
  const fill = starts.slice(), order = new Uint32Array(who.length);
  for (let i = 0; i < who.length; i++) order[fill[who[i]]++] = i;
  return (w) => order.subarray(starts[w], starts[w + 1]);
}

// --- units -----------------------------------------------------------------------------------------------------

const digits = (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)).replace(/\.0+$/, "");
function prefixed(value, unit) {
  if (value === null || value === undefined) return "–";
  let power = 0;
  while (value >= 999.5 && power < 5) { value /= 1000; power++; }
  return `${digits(value)} ${["", "k", "M", "G", "T", "P"][power]}${unit}`;
}
function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) if (ns >= size) return `${digits(ns / size)} ${unit}`;
  return `${ns} ns`;
}
const whole = (v) => (v === null || v === undefined ? "–" : v.toLocaleString("en"));

// --- the list of flows -----------------------------------------------------------------------------------------

const sum = (...values) => values.reduce((total, v) => total + (v || 0), 0);
const most = (f, name) => Math.max(f[name + "0"] ?? -1, f[name + "1"] ?? -1);
const known = (v) => (v < 0 ? null : v);
function trouble(f) {
  const parts = [[sum(f.up0, f.up1, f.down0, f.down1), "lost"], [sum(f.needless0, f.needless1), "needless"], [sum(f.late0, f.late1), "reordered"], [sum(f.closed0, f.closed1), "window closed"], [sum(f.incomplete0, f.incomplete1), "incomplete"], [f.icmp, "ICMP"]];
  return parts.filter(([n]) => n).map(([n, what]) => `${whole(n)} ${what}`).join(", ");
}
const troubles = (f) => sum(f.up0, f.up1, f.down0, f.down1, f.needless0, f.needless1, f.late0, f.late1, f.closed0, f.closed1, f.incomplete0, f.incomplete1, f.icmp);
const lasted = (f) => (f.first === null ? null : f.last - f.first);
const COLUMNS = [
  { key: "flow", head: "flow", value: (f) => f.flow, text: (f) => String(f.flow), number: true },
  { key: "protocol", head: "protocol", value: (f) => f.protocol, text: (f) => (f.application ? `${f.protocol} ${f.application}` : f.protocol) },
  { key: "name", head: "initiator → responder", value: (f) => f.name, text: (f) => f.name },
  { key: "path", head: "inside", value: (f) => f.path || "", text: (f) => f.path || "" },
  { key: "state", head: "state", value: (f) => f.state || "", text: (f) => f.state || "" },
  { key: "packets", head: "packets", value: (f) => f.packets, text: (f) => whole(f.packets), number: true },
  { key: "bytes", head: "wire bytes", value: (f) => f.bytes, text: (f) => prefixed(f.bytes, "B"), number: true },
  { key: "lasted", head: "lasted", value: lasted, text: (f) => duration(lasted(f)), number: true },
  { key: "throughput", head: "throughput", value: (f) => most(f, "throughput"), text: (f) => prefixed(known(most(f, "throughput")), "bit/s"), number: true },
  { key: "rtt", head: "RTT", value: (f) => f.handshake ?? known(most(f, "rtt")), text: (f) => duration(f.handshake ?? known(most(f, "rtt"))), number: true },
  { key: "trouble", head: "trouble", value: troubles, text: trouble },
].filter((column) => !["path", "state"].includes(column.key) || data.listed.some((f) => column.text(f)));

function makeHead() {
  const row = $("flows").tHead.insertRow();
  for (const column of COLUMNS) {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    cell.dataset.key = column.key;
    if (column.number) cell.className = "n";
    button.type = "button";
    button.textContent = column.head;
    button.addEventListener("click", () => sortBy(column));
    cell.append(button);
    row.append(cell);
  }
}

function sortBy(column) {
  const numeric = column.number || column.key === "trouble";
  state.down = state.sort === column.key ? !state.down : numeric;
  state.sort = column.key;
  list();
}

function matches(f, words) {
  const text = `${f.name} ${f.protocol} ${f.application || ""} ${f.state || ""} ${f.path || ""} ${trouble(f)}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

function list() {
  const column = COLUMNS.find((c) => c.key === state.sort);
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = data.listed.filter((f) => matches(f, words));
  shown.sort((a, b) => (state.down ? -1 : 1) * compare(column.value(a), column.value(b)) || a.flow - b.flow);
  for (const cell of $("flows").tHead.rows[0].cells) {
    if (cell.dataset.key === state.sort) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  const body = document.createElement("tbody");
  for (const f of shown) body.append(flowRow(f));
  $("flows").tBodies[0].replaceWith(body);
  const left = data.flow_count - data.listed.length;
  $("count").textContent = `${whole(shown.length)} of ${whole(data.flow_count)} flows` +
    (left ? ` (the largest and the most troubled are listed; all ${whole(data.flow_count)} are in the flows table of -o)` : "");
}

function flowRow(f) {
  const row = document.createElement("tr");
  row.tabIndex = 0;
  row.dataset.flow = f.flow;
  row.setAttribute("aria-selected", state.chosen === f.flow);
  for (const column of COLUMNS) {
    const cell = row.insertCell();
    cell.textContent = column.text(f);
    if (column.number) cell.className = "n";
  }
  row.addEventListener("click", () => choose(f.flow));
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(f.flow); }
  });
  return row;
}

// --- what the figure of a flow shows ---------------------------------------------------------------------------

const empty = () => ({ x: [], y: [], frame: null, text: null });

function seriesData(flow) {
  const s = state.series, found = {};
  const lines = ["instant", "system", "goodput"];
  for (const line of lines) for (const d of [0, 1]) found[line + d] = { x: [], y: [] };
  for (let i = 0; i < s.flow.length; i++) {
    if (s.flow[i] !== flow) continue;
    const d = s.direction[i], start = s.start_ns[i] / 1e3, end = start + s.width_ns[i] / 1e3;
    const follows = i + 1 < s.flow.length && s.flow[i + 1] === flow && s.direction[i + 1] === d && s.start_ns[i + 1] / 1e3 <= end + 1e-9;
    for (const line of ["instant", "goodput"]) {
      const out = found[line + d], value = s[line + "_bps"][i];
      if (Number.isNaN(value)) continue;
      out.x.push(start);
      out.y.push(value);
      if (!follows) { out.x.push(end); out.y.push(0); }
    }
    if (!Number.isNaN(s.system_bps[i])) { found["system" + d].x.push(end); found["system" + d].y.push(s.system_bps[i]); }
  }
  return found;
}

const flagText = (flags) => FLAG_LETTERS.filter(([bit]) => flags & bit).map(([, name]) => name).join(" ");
function packetText(p, i, tcp) {
  const size = `${whole(p.size[i])} bytes`;
  if (!tcp) return p.known[i] & KNOWN.fragment ? `${size}, fragment at ${whole(p.offset[i])}` : size;
  const repeated = p.known[i] & KNOWN.repeated ? `, ${whole(p.size[i] - p.unique[i])} of them not new` : "";
  return `${size} from ${whole(p.sequence[i])}${repeated}<br>${flagText(p.flags[i])}`;
}

function picked(p, rows, y, tcp) {
  const out = { x: new Float64Array(rows.length), y: new Float64Array(rows.length), frame: new Float64Array(rows.length), capture: p.capture[rows[0]], text: (k) => packetText(p, rows[k], tcp) };
  for (let k = 0; k < rows.length; k++) {
    out.x[k] = p.time[rows[k]];
    out.y[k] = y(rows[k]);
    out.frame[k] = p.frame[rows[k]];
  }
  return out;
}

// The time-sequence graph of the direction that carries more; of other protocols, packets by size.
function packetData(f) {
  const p = state.packets, place = p.places.get(f.flow);
  if (place === undefined) return {};
  const tcp = f.protocol === "tcp";
  const main = (f.payload1 || 0) > (f.payload0 || 0) ? 1 : 0;
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

// --- blocks and verdicts --------------------------------------------------------------------------------------------------

const MARK_OF = {
  mirror_duplicate: "copy", network_duplicate: "copy", unknown_duplicate: "copy", zero_window: "window_closed", window_full: "window_closed",
  keep_alive: "probe", keep_alive_ack: "probe", window_probe: "probe", ack_before_data: "unseen", sack_hole: "unseen",
  block_out_of_order: "out_of_order", block_duplicate: "copy", block_late: "undecided", block_corrupt: "block_lost",
};
const NONE = 255; // how a byte says null
const word = (name, number) => (data.words[name][number] || "").replaceAll("_", " ");

function verdictText(i) {
  const e = state.events, parts = [word("kind", e.kind[i])];
  if (e.spurious[i] === 1) parts.push("needless");
  if (e.place[i] && e.place[i] !== NONE) parts.push(e.place[i] && `${word("place", e.place[i])}`);
  if (!Number.isNaN(e.bytes[i])) parts.push(`${whole(e.bytes[i])} bytes`);
  if (e.evidence[i] && e.evidence[i] !== NONE) parts.push(`by ${word("evidence", e.evidence[i])}`);
  if (!Number.isNaN(e.related_frame[i])) parts.push(`see frame ${e.related_frame[i]}`);
  return parts.filter(Boolean).join(", ");
}

const eventRows = (flow) => {
  const rows = [];
  state.events.flow.forEach((f, i) => { if (f === flow) rows.push(i); });
  return rows;
};

// The packet of an event among the rows of its direction, -1 when the page does not hold it.
function packetOf(p, rows, event) {
  const time = state.events.time_ns[event] / 1e3, frame = state.events.frame[event];
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (p.time[rows[middle]] < time - 1e-6) low = middle + 1;
    else high = middle;
  }
  for (; low < rows.length && p.time[rows[low]] < time + 1e-6; low++) if (p.frame[rows[low]] === frame) return rows[low];
  return -1;
}

function place(p, i, sends) {
  if (sends) return p.known[i] & KNOWN.sequence ? p.sequence[i] : null;
  return p.known[i] & KNOWN.ack ? p.ack[i] : null;
}

// Marks stand at the segment, or at what an acknowledgment acknowledges.
function markData(flow, p, rows, main, tcp) {
  const found = {};
  for (const event of eventRows(flow)) {
    const kind = data.words.kind[state.events.kind[event]], key = MARK_OF[kind] || kind, d = state.events.direction[event];
    const i = d < 2 ? packetOf(p, rows[d], event) : -1;
    if (i < 0) continue;
    const y = tcp ? place(p, i, d === main) : p.size[i];
    if (y === null) continue;
    const out = (found[key] ||= { x: [], y: [], frame: [], texts: [] });
    out.x.push(p.time[i]);
    out.y.push(y);
    out.frame.push(p.frame[i]);
    out.texts.push(verdictText(event));
  }
  for (const out of Object.values(found)) out.text = (k) => out.texts[k];
  return found;
}

// Segments lost so far, by place.
function lossData(flow) {
  const e = state.events, found = {};
  for (const i of eventRows(flow)) {
    const place = data.words.place[e.place[i]], kind = data.words.kind[e.kind[i]];
    if (!kind.endsWith("retransmission") || e.spurious[i] === 1 || !["upstream", "downstream"].includes(place)) continue;
    const out = (found[place] ||= { x: [], y: [], frame: [], text: null });
    out.x.push(e.time_ns[i] / 1e3);
    out.y.push(out.y.length + 1);
    out.frame.push(e.frame[i]);
  }
  return found;
}

function blockData(flow) {
  const b = state.blocks, found = { latency: { x: [], y: [], frame: [], texts: [] }, waited: { x: [], y: [], frame: [], texts: [] } };
  for (let i = 0; i < b.flow.length; i++) {
    if (b.flow[i] !== flow || Number.isNaN(b.complete_ns[i])) continue;
    const text = `block ${whole(b.sequence[i])}${b.stream[i] < 65535 ? ` of stream ${b.stream[i]}` : ""}`;
    for (const [out, value, drawn] of [[found.latency, b.latency_ns[i], true], [found.waited, b.head_of_line_ns[i], b.head_of_line_ns[i] > 0]]) {
      if (!drawn || Number.isNaN(value)) continue;
      out.x.push(b.complete_ns[i] / 1e3);
      out.y.push(value / 1e6);
      out.frame.push(b.last_frame[i]);
      out.texts.push(text);
    }
  }
  for (const out of Object.values(found)) out.text = (k) => out.texts[k];
  return found;
}

function seriesRtt(flow) {
  const s = state.series, found = { rtt0: empty(), rtt1: empty() };
  for (let i = 0; i < s.flow.length; i++) {
    if (s.flow[i] !== flow || Number.isNaN(s.rtt_ns[i])) continue;
    found["rtt" + s.direction[i]].x.push((s.start_ns[i] + s.width_ns[i] / 2) / 1e3);
    found["rtt" + s.direction[i]].y.push(s.rtt_ns[i]);
  }
  return found;
}

function datagramData(flow) {
  const g = state.datagrams, found = { whole: { x: [], y: [], frame: [] }, broken: { x: [], y: [], frame: [] } };
  for (let i = 0; i < g.flow.length; i++) {
    if (g.flow[i] !== flow || Number.isNaN(g.first_ns[i])) continue;
    const out = g.missing_bytes[i] === 0 ? found.whole : found.broken;
    out.x.push(g.first_ns[i] / 1e3);
    out.y.push(g.fragments[i]);
    out.frame.push(g.first_frame[i]);
  }
  return found;
}

// --- thinning --------------------------------------------------------------------------------------------------

function firstAtOrAfter(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Rows to draw of [from, to]: all, or of each part of them the first, last, least and greatest, `most` in all.
function thinned(trace, from, to, most) {
  const start = Math.max(0, firstAtOrAfter(trace.x, from) - 1);
  const end = Math.min(trace.x.length, firstAtOrAfter(trace.x, to) + 1);
  const chosen = [];
  if (end - start <= most) {
    for (let i = start; i < end; i++) chosen.push(i);
    return chosen;
  }
  const parts = most >> 2;
  for (let part = 0; part < parts; part++) {
    const a = start + Math.floor(((end - start) * part) / parts), b = start + Math.floor(((end - start) * (part + 1)) / parts);
    let least = a, greatest = a;
    for (let i = a; i < b; i++) {
      if (trace.y[i] < trace.y[least]) least = i;
      if (trace.y[i] > trace.y[greatest]) greatest = i;
    }
    chosen.push(...[...new Set([a, least, greatest, b - 1])].sort((i, j) => i - j));
  }
  return chosen;
}

function fill(trace, source, from, to, most) {
  const rows = source && source.x.length ? thinned(source, from, to, most) : [];
  trace.x = rows.map((i) => source.x[i]);
  trace.y = rows.map((i) => source.y[i]);
  trace.customdata = source && source.frame ? rows.map((i) => source.frame[i]) : undefined;
  trace.text = source && source.text ? rows.map((i) => source.text(i)) : undefined;
  trace.showlegend = Boolean(source && source.x.length);
}

// --- drawing ---------------------------------------------------------------------------------------------------

// Rates and counts stand on zero; elsewhere a zoom is into what is in view, up to telling two packets apart.
function axisMode(panel) {
  return panel === "sequence" || (panel === "rtt" && state.zoomed) ? "normal" : "tozero";
}

function layoutFor(f, panels) {
  const layout = structuredClone(data.figure.plot.layout), own = colors(), { ink, line } = own;
  const used = data.figure.panels.filter((panel) => panels.has(panel.name));
  const weights = used.map((panel) => PANEL_WEIGHTS[panel.name]), total = weights.reduce((a, b) => a + b, 0);
  layout.height = 90 + ROW_HEIGHT_PX * total;
  layout.font.color = ink;
  layout.modebar = modebar(own);
  Object.assign(layout.xaxis, { gridcolor: line, linecolor: line, range: state.range.slice(), title: { text: `seconds since ${state.baseText}` } });
  let top = 1;
  for (const panel of data.figure.panels) layout[panel.axis === 1 ? "yaxis" : `yaxis${panel.axis}`].visible = false;
  used.forEach((panel, i) => {
    const share = weights[i] / total, gap = i ? 0.05 : 0;
    const axis = layout[panel.axis === 1 ? "yaxis" : `yaxis${panel.axis}`];
    Object.assign(axis, { visible: true, gridcolor: line, domain: [Math.max(0, top - share), top - gap], rangemode: axisMode(panel.name) });
    top -= share;
  });
  if (f.protocol !== "tcp") layout.yaxis2.title.text = "payload, bytes";
  return layout;
}

function panelsWith(full) {
  const panels = new Set();
  for (const trace of data.figure.plot.data) {
    const axis = trace.yaxis === "y" || !trace.yaxis ? 1 : Number(trace.yaxis.slice(1));
    if (full[trace.meta] && full[trace.meta].x.length) panels.add(data.figure.panels.find((p) => p.axis === axis).name);
  }
  return panels;
}

function extent(full) {
  let from = Infinity, to = -Infinity;
  for (const { x } of Object.values(full)) {
    if (!x.length) continue;
    from = Math.min(from, x[0]);
    to = Math.max(to, x[x.length - 1]);
  }
  if (!(to >= from)) return [0, 1];
  const margin = (to - from) * 0.02 || 0.001;
  return [from - margin, to + margin];
}

function sorted(source) {
  for (let i = 1; i < source.x.length; i++) {
    if (source.x[i] >= source.x[i - 1]) continue;
    const order = Array.from(source.x.keys()).sort((a, b) => source.x[a] - source.x[b]);
    const text = source.text;
    return { ...source, x: order.map((k) => source.x[k]), y: order.map((k) => source.y[k]), frame: source.frame && order.map((k) => source.frame[k]), text: text && ((k) => text(order[k])) };
  }
  return source;
}

async function draw() {
  const f = data.listed.find((flow) => flow.flow === state.chosen);
  const [from, to] = state.range;
  const traces = data.figure.plot.data.map((trace) => structuredClone(trace));
  const filled = Object.values(state.full).filter(({ x }) => x.length).length;
  const most = Math.max(DRAWN_LEAST, Math.floor(DRAWN_MOST / filled));
  for (const trace of traces) {
    fill(trace, state.full[trace.meta], from, to, most);
    if (f.protocol !== "tcp" && trace.meta === "data") trace.name = "packets →";
    if (f.protocol !== "tcp" && trace.meta === "other") trace.name = "packets ←";
  }
  state.drawing = true;
  await Plotly.react($("plot"), traces, layoutFor(f, state.panels), {
    displaylogo: false, showSendToCloud: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  });
  state.drawing = false;
  document.body.dataset.points = traces.reduce((n, trace) => n + trace.x.length, 0);
}

function zoomed(change) {
  if (state.drawing) return;
  const from = change["xaxis.range[0]"] ?? change["xaxis.range"]?.[0], to = change["xaxis.range[1]"] ?? change["xaxis.range"]?.[1];
  if (change["xaxis.autorange"]) state.range = extent(state.full);
  else if (from !== undefined) state.range = [Number(from), Number(to)];
  else return;
  state.zoomed = !change["xaxis.autorange"];
  draw();
}

function clicked({ points: [point] }) {
  if (point.customdata === undefined) return;
  $("packet").hidden = false;
  $("packet-filter").textContent = `frame.number == ${point.customdata}`;
}

function noteFor(f) {
  const p = state.packets, place = p.places.get(f.flow);
  if (place !== undefined) {
    const held = p.rows(2 * place).length + p.rows(2 * place + 1).length;
    if (!data.packets.cut || held >= f.packets) return "";
    return `The page holds the first ${whole(held)} of this flow's ${whole(f.packets)} packets; the throughput is that of all. ` +
      "Make a report of a part with --start and --end to see the others.";
  }
  return `The packets of this flow are not in the page (it holds ${whole(data.packets.count)} packets of the most troubled and largest flows): ` +
    "what is drawn comes from the series. Make a report of this flow alone with --filter to see them.";
}

async function choose(flow) {
  const f = data.listed.find((entry) => entry.flow === flow);
  if (!f) return;
  state.chosen = flow;
  for (const row of $("flows").tBodies[0].rows) row.setAttribute("aria-selected", Number(row.dataset.flow) === flow);
  $("chosen").hidden = false;
  $("h-flow").textContent = `Flow ${f.flow}: ${f.protocol} ${f.name}${f.path ? ` inside ${f.path}` : ""}`;
  $("flow-filter").textContent = f.filter;
  $("packet").hidden = true;
  $("note").textContent = noteFor(f);
  const full = { ...seriesData(flow), ...seriesRtt(flow), ...packetData(f), ...lossData(flow), ...blockData(flow), ...datagramData(flow) };
  state.full = Object.fromEntries(Object.entries(full).map(([key, source]) => [key, sorted(source)]));
  state.panels = panelsWith(state.full);
  state.range = extent(state.full);
  state.zoomed = false;
  $("plot").hidden = !state.panels.size;
  if (!state.panels.size) $("note").textContent ||= "Nothing of this flow can be drawn over time.";
  else await draw();
  if (!state.listening && state.panels.size) {
    state.listening = true;
    $("plot").on("plotly_relayout", zoomed);
    $("plot").on("plotly_click", clicked);
  }
  history.replaceState(null, "", `#flow=${flow}`);
  document.body.dataset.flow = flow;
}

// --- start -----------------------------------------------------------------------------------------------------

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.body.dataset.copied = text;
  const before = button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = before), 1200);
}

async function start() {
  makeHead();
  list();
  $("find").addEventListener("input", list);
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copy(button, button.dataset.copy));
  $("copy-flow").addEventListener("click", (event) => copy(event.target, $("flow-filter").textContent));
  $("copy-packet").addEventListener("click", (event) => copy(event.target, $("packet-filter").textContent));
  state.baseText = new Date(Number(BigInt(data.base) / 1000000n)).toISOString().replace("T", " ").replace(".000Z", "Z");
  const [series, datagrams, events, blocks, packets] = await Promise.all([loadTable(data.series), loadTable(data.datagrams), loadTable(data.events), loadTable(data.blocks), loadPackets(data.packets), loadPlotly()]);
  Object.assign(state, { series, datagrams, events, blocks, packets });
  const wanted = Number((location.hash.match(/flow=(\d+)/) || [])[1]);
  const first = data.listed.find((f) => f.flow === wanted) || data.listed[0];
  if (first) await choose(first.flow);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.chosen !== null && draw());
  document.body.dataset.ready = "yes";
}

start();
