// @ts-check
// The verdicts of a flow: shapes on the sequence panel, their words, and losses so far.
import { tables } from "../../capture/tables.js";
import { KNOWN, firstAtOrAfter } from "../../numbers.js";
import { data } from "../../plotly.js";
import { whole } from "../../units.js";
import { packetText, put, rowsOf } from "./points.js";

/** @type {Record<string, string>} */
const MARK_OF = {
  mirror_duplicate: "copy", network_duplicate: "copy", unknown_duplicate: "copy", wlan_retry: "copy", zero_window: "window_closed", window_full: "window_closed",
  keep_alive_ack: "keep_alive", window_probe: "keep_alive", captured_out_of_order: "acked_unseen_segment", sack_gap: "acked_unseen_segment",
};
const NONE = 255; // null in a column of bytes
/** @param {string} name @param {number} number */
const word = (name, number) => (data.words[name][number] || "").replaceAll("_", " ");

/** @param {number} i */
export function verdictText(i) {
  const e = tables.events, parts = [word("kind", e.kind[i])];
  if (e.spurious[i] === 1) parts.push("spurious");
  if (e.place[i] && e.place[i] !== NONE) parts.push(`${word("place", e.place[i])}`);
  if (!Number.isNaN(e.bytes[i])) parts.push(`${whole(e.bytes[i])} bytes`);
  if (e.evidence[i] && e.evidence[i] !== NONE) parts.push(`by ${word("evidence", e.evidence[i])}`);
  if (!Number.isNaN(e.related_frame[i])) parts.push(`see frame ${e.related_frame[i]}`);
  return parts.filter(Boolean).join(", ");
}

/** @param {string} kind */
export const isRetransmission = (kind) => kind.endsWith("retransmission");

// Returns whether a retransmission proves the loss of an earlier segment.
/** @param {number} i */
const provesLoss = (i) => isRetransmission(data.words.kind[tables.events.kind[i]] || "") && tables.events.spurious[i] !== 1 && ["upstream", "downstream"].includes(data.words.place[tables.events.place[i]]);

// Returns the packet of an event among the rows of its direction, or -1 if the page does not contain it.
/** @param {Packets} p @param {Uint32Array} rows @param {number} event */
export function packetOf(p, rows, event) {
  const time = tables.events.time_ns[event] / 1e3, frame = tables.events.frame[event];
  let at = firstAtOrAfter(rows, time - 1e-6, (row) => p.time[row]);
  for (; at < rows.length && p.time[rows[at]] < time + 1e-6; at++) if (p.frame[rows[at]] === frame) return rows[at];
  return -1;
}

/** @param {Packets} p @param {number} i @param {boolean} sends */
function place(p, i, sends) {
  if (sends) return p.known[i] & KNOWN.sequence ? p.sequence[i] : null;
  return p.known[i] & KNOWN.ack ? p.ack[i] : null;
}

// Returns the packets of a direction that events call the originals of lost segments, by capture and frame.
/** @param {Flow} f @param {Packets} p @param {Uint32Array} rows */
function originals(f, p, rows) {
  const found = new Map();
  for (const event of rowsOf(tables.events, f.flow)) {
    if (provesLoss(event) && !Number.isNaN(tables.events.related_frame[event])) found.set(`${tables.events.capture[event]}.${tables.events.related_frame[event]}`, event);
  }
  const packets = [];
  if (found.size) for (const i of rows) if (found.has(`${p.capture[i]}.${p.frame[i]}`)) packets.push([i, found.get(`${p.capture[i]}.${p.frame[i]}`)]);
  return packets;
}

// A shape is at the sequence number of its segment, or at the acknowledgment number if it is an ACK.
/** @param {Flow} f @param {Packets} p @param {Uint32Array[]} rows @param {number} main @param {PointsByKey} full */
export function markData(f, p, rows, main, full) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const tcp = f.protocol === "tcp";
  for (const event of rowsOf(tables.events, f.flow)) {
    const kind = data.words.kind[tables.events.kind[event]], d = tables.events.direction[event], i = d < 2 ? packetOf(p, rows[d], event) : -1;
    if (i < 0) continue;
    const y = tcp ? place(p, i, d === main) : heightOf(full[d ? "other" : "data"], i);
    if (y !== null) put(found, MARK_OF[kind] || kind, p.time[i], y, { frame: p.frame[i], capture: p.capture[i], text: `${verdictText(event)}<br>${packetText(p, i, tcp)}` });
  }
  if (!tcp) return found;
  for (const [i, event] of originals(f, p, rows[main])) {
    if (p.size[i] && p.known[i] & KNOWN.sequence) put(found, "lost", p.time[i], p.sequence[i], { frame: p.frame[i], capture: p.capture[i], text: `lost ${word("place", tables.events.place[event])}, retransmitted in frame ${tables.events.frame[event]}<br>${packetText(p, i, tcp)}` });
  }
  return found;
}

/** @param {Points} source @param {number} row */
function heightOf(source, row) {
  const k = source.row ? source.row.indexOf(row) : -1;
  return k < 0 ? null : source.y[k];
}

// Cumulative lost segments by place, as on the wire: an event of a super-segment is several.
/** @param {number} flow */
export function lossData(flow) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const e = tables.events;
  for (const i of rowsOf(e, flow)) {
    if (!provesLoss(i)) continue;
    const place = data.words.place[e.place[i]], mss = data.wire_mss[2 * flow + e.direction[i]], lost = e.bytes[i] > mss ? Math.ceil(e.bytes[i] / mss) : 1;
    put(found, place, e.time_ns[i] / 1e3, (found[place]?.y.at(-1) || 0) + lost, { frame: e.frame[i], capture: e.capture[i], text: `retransmission of a segment lost ${place}` });
  }
  return found;
}
