// @ts-check
// Decodes packed tables, packets and columns of flows.
import { inflate } from "./plotly.js";

export const KNOWN = { sequence: 1, ack: 2, window: 4, flags: 8, repeated: 16, rtt: 32, fragment: 64, sack: 128, flight: 256, opposite: 512 };
/** @type {Record<string, { BYTES_PER_ELEMENT: number, new (bytes: ArrayBufferLike): Numbers }>} */
const ARRAYS = { B: Uint8Array, H: Uint16Array, i: Int32Array, I: Uint32Array, f: Float32Array, d: Float64Array };

// Returns an object with the same keys, whose values are those that `change` resolves to.
/** @template T, U @param {Record<string, T>} object @param {(value: T) => Promise<U>} change */
export async function eachValue(object, change) {
  const entries = Object.entries(object).map(async ([key, value]) => [key, await change(value)]);
  return Object.fromEntries(await Promise.all(entries));
}

/** @param {PackedTable} columns */
export const loadTable = (columns) => eachValue(columns, async (column) => (column.length === 3 ? unplaned(column) : new ARRAYS[column[0]](await inflate(column[1]))));

// Returns a reader of zigzag varints; doubles hold them exactly up to 2^53.
/** @param {Uint8Array} bytes */
export function reader(bytes) {
  let at = 0;
  return () => {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    const half = Math.floor(value / 2);
    return value === 2 * half ? half : -half - 1;
  };
}

const SENT_PLACES = 2 ** 17;

// Returns the segments by which round trips are predicted: each at a place of its own or of a later one (analyzer/core/export/packet_pack.c).
function sentSegments() {
  const ends = new Float64Array(SENT_PLACES), times = new Float64Array(SENT_PLACES), sides = new Uint32Array(SENT_PLACES).fill(2 ** 32 - 1);
  /** @param {number} who @param {number} end */
  const placeOf = (who, end) => (Math.imul(end % 2 ** 32, 0x9e3779b1) + Math.imul(who, 0x85ebca6b)) >>> 15;
  return {
    /** @param {number} known @param {number} who @param {number} end @param {number} size @param {number} time */
    put(known, who, end, size, time) {
      if (!size || known & KNOWN.repeated) return;
      const at = placeOf(who, end);
      ends[at] = end;
      times[at] = time;
      sides[at] = who;
    },
    /** The time since the segment that an ACK completes; 0 if it is not known. @param {number} known @param {number} who @param {number} end @param {number} time */
    since(known, who, end, time) {
      const at = known & KNOWN.ack ? placeOf(who, end) : -1;
      return at >= 0 && ends[at] === end && sides[at] === who ? time - times[at] : 0;
    },
  };
}

/** @param {PackedPackets} packed */
export async function loadPackets({ count, flows, streams }) {
  const next = await eachValue(streams, async ([, text]) => reader(new Uint8Array(await inflate(text))));
  const p = {
    who: new Uint32Array(count), time: new Float64Array(count), frame: new Float64Array(count), capture: new Uint16Array(count),
    known: new Uint16Array(count), size: new Float64Array(count), sequence: new Float64Array(count), ack: new Float64Array(count),
    window: new Float64Array(count), flags: new Uint16Array(count), unique: new Float64Array(count), rtt: new Float64Array(count),
    offset: new Float64Array(count), ip: new Float64Array(count), flight: new Float64Array(streams.flight?.[0] ? count : 0), opposite: new Float64Array(streams.flight?.[0] ? count : 0), sacks: new Map(), // of packets with SACK: [start, end] of each block
  };
  const sides = 2 * flows.length;
  const last = { size: new Float64Array(sides), header: new Float64Array(sides), end: new Float64Array(sides), ack: new Float64Array(sides), window: new Float64Array(sides), flags: new Int32Array(sides), flight: new Float64Array(sides), opposite: new Float64Array(sides) };
  const sent = sentSegments();
  let time = 0, frame = 0;
  for (let i = 0; i < count; i++) {
    const who = (p.who[i] = next.who());
    p.time[i] = (time += next.time()) / 1e9;
    p.frame[i] = frame += next.frame();
    p.capture[i] = next.capture();
    const known = (p.known[i] = next.known());
    const size = (p.size[i] = last.size[who] += next.size());
    p.ip[i] = size + (last.header[who] += next.header());
    if (known & KNOWN.sequence) {
      p.sequence[i] = last.end[who] + next.sequence();
      last.end[who] = p.sequence[i] + size;
      sent.put(known, who, last.end[who], size, time);
    }
    if (known & KNOWN.ack) p.ack[i] = last.ack[who] += next.ack();
    if (known & KNOWN.window) p.window[i] = last.window[who] += next.window();
    if (known & KNOWN.flags) p.flags[i] = last.flags[who] += next.flags();
    p.unique[i] = known & KNOWN.repeated ? 0 : size;
    if (known & KNOWN.rtt) p.rtt[i] = (next.rtt() + sent.since(known, who ^ 1, p.ack[i], time)) / 1e6;
    if (known & KNOWN.repeated) p.unique[i] = next.unique();
    if (known & KNOWN.fragment) p.offset[i] = next.offset();
    if (known & KNOWN.flight) p.flight[i] = last.flight[who] += next.flight();
    if (known & KNOWN.opposite) p.opposite[i] = last.opposite[who] += next.opposite();
    if (known & KNOWN.sack) p.sacks.set(i, sackBlocks(p.ack[i], next));
  }
  return { ...p, places: new Map(flows.map((flow, i) => [flow, i])), rows: rowsByWho(p.who, sides) };
}

/** @param {number} before @param {Record<string, () => number>} next */
function sackBlocks(before, next) {
  return Array.from({ length: next.sacks() }, () => [(before += next.sack()), before + next.sacked()]);
}

// Returns a function from a flow side to its row numbers, in order of time.
/** @param {Uint32Array} who @param {number} sides */
function rowsByWho(who, sides) {
  const starts = new Uint32Array(sides + 1);
  for (const w of who) starts[w + 1]++;
  for (let w = 0; w < sides; w++) starts[w + 1] += starts[w];
  const fill = starts.slice(), order = new Uint32Array(who.length);
  for (let i = 0; i < who.length; i++) order[fill[who[i]]++] = i;
  /** @param {number} side */
  const rowsOfSide = (side) => order.subarray(starts[side], starts[side + 1]);
  return rowsOfSide;
}

// Decodes a column stored as byte planes, most significant first (reports/html/flow_columns.py).
/** @param {PackedPlanes} column */
export async function unplaned([code, kept, text]) {
  const bytes = new Uint8Array(await inflate(text)), size = ARRAYS[code].BYTES_PER_ELEMENT, count = bytes.length / kept;
  const joined = new Uint8Array(count * size);
  for (let plane = 0; plane < kept; plane++) {
    for (let i = 0, from = plane * count, to = size - 1 - plane; i < count; i++, to += size) joined[to] = bytes[from + i];
  }
  return new ARRAYS[code](joined.buffer);
}

// Returns numbers of which the column has the differences (reports/html/timeline.py).
/** @param {PackedPlanes} column */
export async function unstepped(column) {
  const numbers = /** @type {Uint32Array} */ (await unplaned(column));
  for (let i = 1; i < numbers.length; i++) numbers[i] += numbers[i - 1];
  return numbers;
}

// Returns the first place of an ascending list whose item, or the value that `of` returns for it, is not below a value.
/** @param {ArrayLike<number>} x @param {number} value @param {(item: number) => number} [of] */
export function firstAtOrAfter(x, value, of = (item) => item) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(x[middle]) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
