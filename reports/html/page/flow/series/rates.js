// @ts-check
// Throughput: bins that follow the view, of the packets of a flow; and the bins of the series table for a flow without packets.
import { isCutOf, packetsOfFlow, tables } from "../../capture/tables.js";
import { setting } from "../../link.js";
import { KNOWN, firstAtOrAfter } from "../../numbers.js";
import { roundStep } from "../../ticks.js";
import { duration, prefixed } from "../../units.js";
import { axisOrigin, shownDirection } from "../drawn_flows.js";
import { taken } from "../figure.js";
import { bytesUntil, columnsOf, columnRateKeys } from "./columns.js";
import { ARROWS, put, rowsOf } from "./points.js";

export const BINS = [0, 1e-4, 1e-3, 1e-2, 0.1, 1, 10]; // seconds; 0: by the view
export const AVERAGES = [1, 4, 16]; // bins
const BINS_MOST = 4000; // in the view
const BINS_USUAL = [12, 160]; // in the view, if it chooses the bin
const PACKETS_PER_BIN = 4;
export const EDGE = 1e-6; // share of a bin: a packet at an edge counts in the later bin, whatever the rounding
/** @type {WeakMap<Packets, Map<string, Float64Array>>} */
const sums = new WeakMap();
const shown = { bin: 0, advances: { flow: -1, p: /** @type {Packets | null} */ (null), rows: 0, by: /** @type {Map<number, number>} */ (new Map()), advancing: new Uint32Array() } }; // seconds; how far each ACK of a flow advances

export const shownBin = () => shown.bin; // 0: no throughput of packets is in view
export const forgetBin = () => { shown.bin = 0; };

// Returns the bin of a view, which has some packets.
/** @param {Span} range @param {number} packets */
function binOf([from, to], packets) {
  const chosen = setting("bin", 0), bins = Math.min(BINS_USUAL[1], Math.max(BINS_USUAL[0], packets / PACKETS_PER_BIN));
  return Math.max(chosen || roundStep((to - from) / bins), roundStep((to - from) / BINS_MOST));
}

// Returns the bytes of some packets until each of them, with the one before the first as 0; they are kept, because each view asks for them.
/** @param {Packets} p @param {Uint32Array} rows @param {(row: number) => number} amount @param {string} name */
function runningSum(p, rows, amount, name) {
  const key = `${name} ${rows.length} ${rows[0]}`, kept = sums.get(p) ?? new Map();
  sums.set(p, kept);
  let sum = kept.get(key);
  if (sum) return sum;
  kept.set(key, (sum = new Float64Array(rows.length + 1)));
  for (let k = 0; k < rows.length; k++) sum[k + 1] = sum[k] + amount(rows[k]);
  return sum;
}

// Returns the bits of some packets in bins. `amount` returns the bytes of a packet, and `name` says which they are.
/** @param {Packets} p @param {Uint32Array} rows @param {number} first @param {number} bin @param {number} count @param {(row: number) => number} amount @param {string} name */
function binned(p, rows, first, bin, count, amount, name) {
  const sum = runningSum(p, rows, amount, name), bits = new Float64Array(count), timeOf = (/** @type {number} */ row) => p.time[row];
  const placeAt = (/** @type {number} */ k) => firstAtOrAfter(rows, first + (k - EDGE) * bin, timeOf);
  for (let k = 0, start = placeAt(0); k < count; k++) {
    const end = placeAt(k + 1);
    bits[k] = 8 * (sum[end] - sum[start]);
    start = end;
  }
  return bits;
}

// Returns the rows of ACKs that advance, and how far each does.
/** @param {number} flow @param {Packets} p @param {Uint32Array} rows */
function advancesOf(flow, p, rows) {
  /** @type {Map<number, number>} */
  const by = new Map();
  let top = -1;
  for (const i of rows) {
    if (!(p.known[i] & KNOWN.ack)) continue;
    if (top >= 0 && p.ack[i] > top) by.set(i, p.ack[i] - top);
    top = Math.max(top, p.ack[i]);
  }
  return { flow, p, rows: rows.length, by, advancing: Uint32Array.from(by.keys()) };
}

// Returns a step line of rates, averaged over the last bins; its points have the time range of their bin. The first bin begins at a time.
/** @param {Float64Array} bits @param {number} first @param {{ bin: number, average: number }} bins @param {(rate: number) => string} text */
function rateLine(bits, first, { bin, average }, text) {
  /** @type {RateLine} */
  const out = { x: [], y: [], frame: [], capture: [], text: (k) => text(out.y[k]), bin: true, shift: 0 };
  let sum = 0;
  for (let k = 0; k < bits.length; k++) {
    sum += bits[k] - (k >= average ? bits[k - average] : 0);
    const start = first + k * bin;
    out.x.push(start);
    out.y.push(Math.max(0, sum) / (Math.min(average, k + 1) * bin));
    out.frame.push([start, first + (k + 1) * bin]);
    out.capture.push(0);
  }
  out.x.push(first + bits.length * bin);
  out.y.push(out.y[out.y.length - 1]);
  out.frame.push(out.frame[out.frame.length - 1]);
  return out;
}

// Returns the bins of a view: how many, the number of the first one from the origin of the time axis, their width, and the average.
/** @param {Span} range @param {number} packets */
export function binsOf(range, packets) {
  const bin = (shown.bin = binOf(range, packets)), origin = axisOrigin();
  const [from, to] = [Math.max(range[0], taken.extent[0]), Math.min(range[1], taken.extent[1])].map((time) => time - origin);
  const place = Math.floor(from / bin + EDGE);
  return { bin, place, origin, count: Math.max(1, Math.ceil(to / bin - EDGE) - place), average: setting("average", 1) };
}

// Returns the rates of some packets, whose times are shifted on the axis: of the bytes of IP, or of another amount.
/** @param {Packets} p @param {Uint32Array} rows @param {Bins} bins @param {(rate: number) => string} text @param {number} [shift] @param {Amount} [amount] */
export function rateIn(p, rows, bins, text, shift = 0, { name, of } = { name: "ip", of: (row) => p.ip[row] }) {
  const { bin, place, origin, count, average } = bins, lead = average - 1, first = (place - lead) * bin + origin;
  const bits = binned(p, rows, first - shift, bin, count + lead, of, name);
  const made = rateLine(bits, first, bins, text);
  for (const list of [made.x, made.y, made.frame, made.capture]) list.splice(0, lead);
  if (shift) made.frame = made.frame.map(([start, end]) => [start - shift, end - shift]);
  return Object.assign(made, { shift });
}

// Returns the throughput in a view of a flow by its columns of time, of which a bin has some.
/** @param {ColumnsOfFlow} own @param {Span} range */
export function columnRates(own, range) {
  const { begin, width, at } = own, columns = at[at.length - 1] + 1, wanted = setting("bin", 0) || (range[1] - range[0]) / BINS_USUAL[1];
  const step = Math.max(1, Math.ceil(wanted / width - EDGE), Math.ceil((range[1] - range[0]) / width / BINS_MOST)), bin = (shown.bin = step * width), average = setting("average", 1), lead = average - 1;
  const place = Math.floor(Math.max(0, range[0] - begin) / bin), count = Math.max(0, Math.ceil(Math.min(columns * width, range[1] - begin) / bin - EDGE) - place);
  /** @type {PointsByKey} */
  const found = {};
  for (const key of count ? columnRateKeys(own) : []) {
    const bits = Float64Array.from({ length: count + lead }, (_, k) => 8 * (bytesUntil(own, key, (place - lead + k + 1) * step) - bytesUntil(own, key, (place - lead + k) * step)));
    const words = key === "acked" ? "acknowledged" : `of IP ${ARROWS[Number(key)]}`, made = rateLine(bits, begin + (place - lead) * bin, { bin, average }, (rate) => `${prefixed(rate, "bit/s")} ${words}`);
    for (const list of [made.x, made.y, made.frame, made.capture]) list.splice(0, lead);
    found[key === "acked" ? key : `throughput${key}`] = made;
  }
  return found;
}

// Returns the throughput of a flow in a view, by its packets or columns of time.
/** @param {Flow} f @param {Span} range */
export function rateData(f, range) {
  const held = packetsOfFlow(f.flow), own = columnsOf(f);
  forgetBin();
  if (own) return columnRates(own, range);
  if (!held || isCutOf(f, held)) return {};
  const { p, rows } = held;
  /** @param {number} row */
  const timeOf = (row) => p.time[row];
  const packets = rows.reduce((sum, own) => sum + firstAtOrAfter(own, range[1], timeOf) - firstAtOrAfter(own, range[0], timeOf), 0);
  const bins = binsOf(range, packets);
  /** @type {PointsByKey} */
  const found = {};
  for (const d of [0, 1]) if (rows[d].length) found[`throughput${d}`] = rateIn(p, rows[d], bins, (rate) => `${prefixed(rate, "bit/s")} of IP ${ARROWS[d]}`);
  if (f.protocol !== "tcp") return found;
  const returned = rows[1 - shownDirection(f)], { advances } = shown;
  if (advances.flow !== f.flow || advances.rows !== returned.length || advances.p !== p) shown.advances = advancesOf(f.flow, p, returned);
  const { by, advancing } = shown.advances;
  if (advancing.length) found.acked = rateIn(p, advancing, bins, (rate) => `${prefixed(rate, "bit/s")} acknowledged`, 0, { name: "acknowledged", of: (i) => by.get(i) ?? 0 });
  return found;
}

// Returns the series of a flow without packets.
/** @param {number} flow @param {number} main */
export function seriesData(flow, main) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const s = tables.series;
  let sum = 0; // bytes of new data
  for (const i of rowsOf(s, flow)) {
    const d = s.direction[i], start = s.start_ns[i] / 1e3, end = start + s.width_ns[i] / 1e3, at = { frame: /** @type {Span} */ ([start, end]) };
    const follows = s.flow[i + 1] === flow && s.direction[i + 1] === d && s.start_ns[i + 1] / 1e3 <= end + 1e-9;
    /** @param {string} key @param {number} x @param {number} y @param {string} words */
    const add = (key, x, y, words) => { if (!Number.isNaN(y)) put(found, key, x, y, { ...at, text: words }); };
    const rate = s.throughput_bps[i], text = `${prefixed(rate, "bit/s")} of IP ${ARROWS[d]}`;
    add(`throughput${d}`, start, rate, text);
    if (!follows) add(`throughput${d}`, end, Number.isNaN(rate) ? NaN : 0, text);
    add(`rtt${d}`, (start + end) / 2, s.rtt_ns[i], duration(s.rtt_ns[i] * 1e6));
    if (d !== main) continue;
    add("flight", start, s.flight_bytes[i], `${prefixed(s.flight_bytes[i], "B")} in flight`);
    add("room", start, s.window_bytes[i], `receive window ${prefixed(s.window_bytes[i], "B")}`);
    add("progress", start, sum, `${prefixed(sum, "B")} of new data so far`);
    sum += Number.isNaN(s.goodput_bps[i]) ? 0 : (s.goodput_bps[i] * (end - start)) / 8;
    if (!follows) add("progress", end, sum, `${prefixed(sum, "B")} of new data so far`);
  }
  if (!sum) delete found.progress;
  if (!found.flight?.y.some((value) => value > 0)) delete found.flight, delete found.room;
  for (const key of ["throughput0", "throughput1"]) if (found[key]) found[key].bin = true;
  return found;
}
