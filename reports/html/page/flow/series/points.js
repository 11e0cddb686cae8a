// @ts-check
// Points of series, and tables by flow. A series has x (seconds), y, frame, and for bars y2; `row` is the packet of a point.
import { KNOWN } from "../../numbers.js";
import { whole } from "../../units.js";
import { blockOfPacket, numberText } from "./payload_numbers.js";

/** @type {[number, string][]} */
const FLAG_LETTERS = [[2, "SYN"], [1, "FIN"], [4, "RST"], [8, "PSH"], [16, "ACK"], [32, "URG"], [64, "ECE"], [128, "CWR"]];
export const ARROWS = ["→", "←"];

// Adds a point to a series. `frame` is a frame number in the file of a capture, or the time range of a bin.
/** @param {Record<string, GrowingPoints>} found @param {string} key @param {number} x @param {number} y @param {{ frame?: FrameOrBin, capture?: number, text?: string, y2?: number }} [about] */
export function put(found, key, x, y, { frame, capture, text, y2 } = {}) {
  /** @type {GrowingPoints} */
  const out = (found[key] ||= { x: [], y: [], frame: [], capture: [], texts: [] });
  out.x.push(x);
  out.y.push(y);
  out.frame.push(frame ?? null);
  out.capture.push(capture ?? 0);
  out.texts.push(text ?? "");
  if (y2 !== undefined) (out.y2 ||= []).push(y2);
  out.text ||= (k) => out.texts[k];
}

// Yields the rows of a flow in a table.
/** @param {{ flow: ArrayLike<number> }} table @param {number} flow */
export function* rowsOf(table, flow) {
  for (let i = 0; i < table.flow.length; i++) if (table.flow[i] === flow) yield i;
}

/** @param {number} flags */
export const flagText = (flags) => FLAG_LETTERS.filter(([bit]) => flags & bit).map(([, name]) => name).join(" ");

/** @param {Packets} p @param {number} i */
export const sacksOf = (p, i) => p.sacks.get(i) ?? [];

// Returns the words for a packet in the tip of the crosshair.
/** @param {Packets} p @param {number} i @param {boolean} tcp */
export function packetText(p, i, tcp) {
  const known = p.known[i], block = blockOfPacket(p.capture[i], p.frame[i]), size = `${block < 0 ? "" : `${numberText(block)}, `}${whole(p.size[i])} bytes of payload`;
  if (!tcp) return known & KNOWN.fragment ? `${size}, fragment at ${whole(p.offset[i])}` : size;
  const parts = [];
  if (p.size[i] && known & KNOWN.sequence) parts.push(`segment ${whole(p.sequence[i])} + ${whole(p.size[i])}`);
  if (known & KNOWN.repeated) parts.push(`${whole(p.size[i] - p.unique[i])} of them repeated`);
  if (known & KNOWN.ack) parts.push(`acknowledges ${whole(p.ack[i])}`);
  if (known & KNOWN.window) parts.push(`window ${whole(p.window[i])}`);
  if (known & KNOWN.sack) parts.push(`SACK ${sacksOf(p, i).map((block) => block.map(whole).join("–")).join(", ")}`);
  return `${parts.join(", ") || size}${known & KNOWN.flags ? ` [${flagText(p.flags[i])}]` : ""}`;
}

// Returns a series with a point for each of some packets, whose frames are looked up when somebody asks for them.
/** @template {Uint32Array | number[]} R @param {Packets} p @param {R} rows @param {Float64Array} y @param {Float64Array} [y2] */
export function atPackets(p, rows, y, y2) {
  const x = new Float64Array(rows.length);
  for (let k = 0; k < rows.length; k++) x[k] = p.time[rows[k]];
  /** @type {Float64Array | null} */
  let frames = null;
  /** @type {Uint16Array | null} */
  let captures = null;
  return {
    x, y, y2, row: rows,
    get frame() { return (frames ??= Float64Array.from(rows, (i) => p.frame[i])); },
    get capture() { return (captures ??= Uint16Array.from(rows, (i) => p.capture[i])); },
  };
}

/** @param {Uint32Array | number[]} rows @param {(row: number) => number} value */
function amountsOf(rows, value) {
  const values = new Float64Array(rows.length);
  for (let k = 0; k < rows.length; k++) values[k] = value(rows[k]);
  return values;
}

// The same, with the values that functions have of a packet.
/** @template {Uint32Array | number[]} R @param {Packets} p @param {R} rows @param {(row: number) => number} y @param {(row: number) => number} [y2] */
export const picked = (p, rows, y, y2) => atPackets(p, rows, amountsOf(rows, y), y2 && amountsOf(rows, y2));

// Returns the rows of both directions in order of time.
/** @param {Uint32Array[]} sides @param {Float64Array} time */
export function merged([a, b], time) {
  const rows = new Uint32Array(a.length + b.length);
  for (let i = 0, j = 0, k = 0; k < rows.length; k++) rows[k] = j === b.length || (i < a.length && time[a[i]] <= time[b[j]]) ? a[i++] : b[j++];
  return rows;
}

// Returns a series in order of time: captures of several files can overlap.
/** @param {Points} source @returns {Points} */
export function sorted(source) {
  for (let i = 1; i < source.x.length; i++) {
    if (source.x[i] >= source.x[i - 1]) continue;
    const order = Array.from(source.x.keys()).sort((a, b) => source.x[a] - source.x[b]), { text } = source;
    /** @template T @param {ArrayLike<T>} list */
    const inOrder = (list) => order.map((k) => list[k]);
    return {
      x: inOrder(source.x), y: inOrder(source.y), y2: source.y2 && inOrder(source.y2), frame: inOrder(source.frame), capture: inOrder(source.capture),
      row: source.row && inOrder(source.row), spans: source.spans && inOrder(source.spans), text: text && ((k) => text(order[k])),
    };
  }
  return source;
}
