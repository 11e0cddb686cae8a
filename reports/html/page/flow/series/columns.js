// @ts-check
// Flows whose packets are not in the page, as columns of time: the least and greatest values of each panel (analyzer/core/export/export.h).
// What they show is as fine as a column.
import { packetsOfFlow, tables } from "../../capture/tables.js";
import { choice } from "../../link.js";
import { firstAtOrAfter, reader, unplaned } from "../../numbers.js";
import { data, inflate } from "../../plotly.js";
import { duration, prefixed } from "../../units.js";
import { shownDirection } from "../drawn_flows.js";
import { put, rowsOf } from "./points.js";
import { isRetransmission, verdictText } from "./verdicts.js";

const RANGES = ["data", "again", "ack", "window", "sack", "flight", "room", "rtt0", "rtt1", "other", "spacing0", "spacing1"];
const POSITIONS = ["data", "again", "ack", "window", "sack", "other"]; // whose first scale is theirs
const FOLLOWING = new Set(POSITIONS); // each begins where the one before ended
/** @type {Record<string, number>} */
const SCALE_OF = { ...Object.fromEntries(POSITIONS.map((name) => [name, 0])), flight: 1, room: 2 }; // others are times
const SCALE_COUNT = 5, IP0 = 3;
const KEPT_TIME = 256; // least number of a time that is rounded

/** @type {{ next: Record<string, () => number>, flows: Numbers, begins: Numbers, widths: Numbers, mains: Numbers } | null} */
let packedFlows = null; // until a flow is asked for
/** @type {Map<number, ColumnsOfFlow>} */
const columnFlows = new Map();

// Decompresses the columns, which are decoded when a flow is first asked for.
/** @param {PackedColumns | null} packed */
export async function loadColumns(packed) {
  if (!packed) return;
  const { streams } = packed, next = /** @type {Record<string, () => number>} */ ({});
  await Promise.all(Object.entries(streams).map(async ([name, text]) => { next[name] = reader(new Uint8Array(await inflate(text))); }));
  const [begins, widths, mains, numbers] = await Promise.all([packed.begins, packed.widths, packed.mains, packed.flows].map(unplaned));
  packedFlows = { next, flows: numbers, begins, widths, mains };
}

/** @param {number} code */
function timeOf(code) {
  if (code < KEPT_TIME) return code;
  const shift = Math.floor(code / (KEPT_TIME / 2)) - 1;
  return (code - (shift * KEPT_TIME) / 2) * 2 ** shift;
}

// Decodes the range of a flow's columns that have it.
/** @param {string} name @param {Uint32Array} places @param {number[]} scales @param {Record<string, () => number>} next */
function decodedRange(name, places, scales, next) {
  const least = new Float64Array(places.length), most = new Float64Array(places.length), last = name === "flight" ? new Float64Array(places.length) : null;
  const valueOf = name in SCALE_OF ? (/** @type {number} */ code) => code * 2 ** scales[SCALE_OF[name]] : (/** @type {number} */ code) => timeOf(code) / 1e6; // ms
  const nextLeast = next[`${name}_least`], nextSize = next[`${name}_size`];
  for (let k = 0, before = 0; k < places.length; k++) {
    const low = before + nextLeast(), high = low + nextSize();
    least[k] = valueOf(low);
    most[k] = valueOf(high);
    if (last) last[k] = valueOf(low + next.flight_last());
    before = FOLLOWING.has(name) ? high : low;
  }
  return { places, least, most, last };
}

// Decodes the next flow of the streams.
/** @param {number} begin @param {number} width @param {number} main @param {Record<string, () => number>} next @returns {ColumnsOfFlow} */
function decodedFlow(begin, width, main, next) {
  const scales = Array.from({ length: SCALE_COUNT }, () => next.scale()), filled = next.filled();
  const at = new Uint32Array(filled), known = new Uint16Array(filled), ip = [0, 1].map(() => new Float64Array(filled + 1));
  for (let k = 0, place = -1; k < filled; k++) {
    at[k] = place += 1 + next.column();
    known[k] = next.known();
    for (const d of [0, 1]) ip[d][k + 1] = ip[d][k] + next[`ip${d}`]() * 2 ** scales[IP0 + d];
  }
  /** @type {ColumnsOfFlow["ranges"]} */
  const ranges = {};
  RANGES.forEach((name, bit) => {
    const places = at.filter((_, k) => (known[k] >> bit) & 1);
    if (places.length) ranges[name] = decodedRange(name, places, scales, next);
  });
  return { begin, width, main, at, ip, ranges };
}

function decodeAll() {
  if (!packedFlows) return;
  const { flows: numbers, begins, widths, mains, next } = packedFlows;
  for (let i = 0; i < numbers.length; i++) columnFlows.set(numbers[i], decodedFlow(begins[i] / 1e9, widths[i] / 1e9, mains[i], next));
  packedFlows = null;
}

// Returns whether the page has the packets of the chosen range, of a flow of which it has the first ones.
/** @param {Flow} f */
function hasPacketsInView(f) {
  const own = packetsOfFlow(f.flow);
  if (!own) return false;
  const count = own.rows[0].length + own.rows[1].length;
  if (count === f.packets || !choice.range) return count === f.packets;
  const last = Math.max(...own.rows.map((rows) => (rows.length ? own.p.time[rows[rows.length - 1]] : -Infinity)));
  return choice.range[1] <= last;
}

// Returns the columns by which a flow is drawn; undefined if its packets are, or its series.
/** @param {Flow} f */
export function columnsOf(f) {
  if (data.served || hasPacketsInView(f)) return undefined;
  decodeAll();
  const own = columnFlows.get(f.flow);
  return f.protocol === "tcp" && own?.main !== shownDirection(f) ? undefined : own;
}

// --- series ----------------------------------------------------------------------------------------------------

/** @type {Record<string, (least: number, most: number) => string>} */
const WORDS = {
  data: (least, most) => `segments from ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
  again: (least, most) => `retransmitted from ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
  ack: (least, most) => `acknowledged ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
  window: (least, most) => `window edge ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
  sack: (least, most) => `SACK blocks from ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
  flight: (least, most) => `${prefixed(least, "B")} to ${prefixed(most, "B")} in flight`,
  room: (least, most) => `receive window ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
  other: (least, most) => `packets from ${prefixed(least, "B")} to ${prefixed(most, "B")}`,
};
/** @param {number} least @param {number} most */
const timeWords = (least, most) => `${duration(least * 1e6)} to ${duration(most * 1e6)}`;

// Returns the series of a range: of each column the least and the greatest, and the last if the greatest is not.
/** @param {ColumnsOfFlow} own @param {string} name @returns {Points} */
function pointsOf({ begin, width, ranges }, name) {
  const { places, least, most, last } = ranges[name], words = WORDS[name] ?? timeWords;
  const x = Float64Array.from(places, (place) => begin + place * width);
  return {
    x, y: least, y2: most, last: last ?? most, width, frame: Array.from(x, (from) => /** @type {Span} */ ([from, from + width])), capture: new Uint16Array(x.length),
    text: (k) => words(least[k], most[k]),
  };
}

// Returns the series of a flow by columns.
/** @param {Flow} f @param {ColumnsOfFlow} own */
export function columnSeries(f, own) {
  /** @type {PointsByKey} */
  const found = {};
  for (const name of Object.keys(own.ranges)) found[name] = pointsOf(own, name);
  if (!found.flight || !Array.from(found.flight.y2 ?? []).some((value) => value > 0)) for (const name of ["flight", "room"]) delete found[name];
  const trips = own.ranges[`rtt${own.main}`];
  if (f.protocol === "tcp" && trips?.places.length > 1) {
    const { x } = found[`rtt${own.main}`], least = trips.least.reduce((a, b) => Math.min(a, b));
    found.least = { x: [x[0], x[x.length - 1]], y: [least, least], frame: [null, null], capture: [0, 0] };
  }
  return f.protocol === "tcp" ? { ...found, ...marksOf(f, own) } : found;
}

// Returns the retransmissions, of which each is in its column at the first byte that was retransmitted then.
/** @param {Flow} f @param {ColumnsOfFlow} own */
function marksOf(f, own) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const { events } = tables, { again } = own.ranges;
  if (!again) return found;
  for (const i of rowsOf(events, f.flow)) {
    const time = events.time_ns[i] / 1e3, place = Math.floor((time - own.begin) / own.width), k = firstAtOrAfter(again.places, place), kind = data.words.kind[events.kind[i]] || "";
    if (events.direction[i] !== own.main || !isRetransmission(kind) || again.places[k] !== place) continue;
    put(found, kind, time, again.least[k], { frame: events.frame[i], capture: events.capture[i], text: verdictText(i) });
  }
  return found;
}

// Returns the highest byte, or the payload so far, of a flow that is overlaid.
/** @param {ColumnsOfFlow} own */
export function highestByte(own) {
  const source = own.ranges.data && pointsOf(own, "data");
  if (!source) return undefined;
  let top = 0;
  const y2 = Float64Array.from(source.y2 ?? [], (value) => (top = Math.max(top, value)));
  return { ...source, y: y2.map((value, k) => Math.min(value, k ? y2[k - 1] : source.y[0])), y2, last: y2, text: (/** @type {number} */ k) => `${prefixed(y2[k], "B")} so far` };
}

// Returns the words for what columns show.
/** @param {ColumnsOfFlow} own */
export const columnWords = (own) => `least and greatest of each ${duration(own.width * 1e9)}`;

// --- throughput ------------------------------------------------------------------------------------------------

// Returns the bytes until the begin of a column: of IP of a direction, or acknowledged ones.
/** @param {ColumnsOfFlow} own @param {string} key @param {number} column */
export function bytesUntil(own, key, column) {
  if (key !== "acked") return own.ip[Number(key)][firstAtOrAfter(own.at, column)];
  const { ack } = own.ranges, next = firstAtOrAfter(ack.places, column);
  return next ? ack.most[next - 1] - ack.least[0] : 0;
}

// Returns which throughputs columns have.
/** @param {ColumnsOfFlow} own */
export const columnRateKeys = (own) => [...[0, 1].filter((d) => own.ip[d][own.at.length] > 0).map(String), ...(own.ranges.ack ? ["acked"] : [])];
