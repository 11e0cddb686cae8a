// @ts-check
// The packets that are listed, and the verdict on each with its evidence.
//
// An item of the list is the row of a packet, or ~row for the pause before that packet.
import { tables } from "../capture/tables.js";
import { blockOfPacket, numberText, packetKey } from "../flow/series/payload_numbers.js";
import { flagText, sacksOf } from "../flow/series/points.js";
import { KNOWN, firstAtOrAfter } from "../numbers.js";
import { data } from "../plotly.js";
import { duration, whole } from "../units.js";

const PAUSE_LEAST = 0.2, PAUSE_SHARE = 0.05, PAUSE_FACTOR = 10; // seconds, of the range, of the median time between packets
const SAMPLED = 4096; // times between packets of which the median is taken
/** @type {Record<string, string>} */
const SHAPES = { fast_retransmission: "◆", timeout_retransmission: "✕", probe_retransmission: "△", retransmission: "◇" };
/** @type {Record<string, string>} */
export const PHRASES = {
  fast_retransmission: "fast retransmission", timeout_retransmission: "retransmitted by timeout", probe_retransmission: "tail loss probe",
  retransmission: "retransmitted, cause unknown", suspected_timeout: "suspected timeout", duplicate_ack: "duplicate ACK",
  out_of_order: "out of order", ambiguous: "retransmitted or out of order", gap: "follows a gap", sack_gap: "SACK of data not captured",
  acked_unseen_segment: "ACK of data not captured", keep_alive_ack: "ACK of a keep-alive", ack_out_of_range: "ACK out of range",
};
const QUIET = new Set(["duplicate_ack", "keep_alive", "keep_alive_ack", "window_probe"]);
/** @type {Record<string, string>} */
const EVIDENCE = { dsack: "DSACK", timestamps: "TCP timestamps", ip_id: "IPv4 IDs", acks: "ACKs", acknowledged: "an earlier ACK", signature: "equal headers", time: "time" };
/**
 * What is listed: the packets from which, their rows, those of the range, and items; events by the packet that they are at or whose bytes
 * they repeat, and rows by capture and frame, and the row of the chosen packet.
 * @type {{ source: Packets | null, all: Uint32Array, ranged: Uint32Array, items: Int32Array, count: number, events: Map<number, number[]>, repeats: Map<number, number[]>, packets: Map<number, number>, place: number }}
 */
export const listed = { source: null, all: new Uint32Array(), ranged: new Uint32Array(), items: new Int32Array(), count: 0, events: new Map(), repeats: new Map(), packets: new Map(), place: -1 };
/** @param {Partial<typeof listed>} change */
export const setListed = (change) => Object.assign(listed, change);

// Returns two ascending lists as one.
/** @param {Uint32Array} a @param {Uint32Array} b */
export function mergedRows(a, b) {
  const both = new Uint32Array(a.length + b.length);
  for (let i = 0, j = 0, k = 0; k < both.length; k++) both[k] = j === b.length || (i < a.length && a[i] < b[j]) ? a[i++] : b[j++];
  return both;
}

// Returns the shortest pause that is listed.
/** @param {Uint32Array} rows */
function pauseLeast(rows) {
  const { time } = tables.packets, step = Math.max(1, Math.floor(rows.length / SAMPLED)), between = [];
  for (let k = 1; k < rows.length; k += step) between.push(time[rows[k]] - time[rows[k - 1]]);
  between.sort((one, other) => one - other);
  const spanned = rows.length ? time[rows[rows.length - 1]] - time[rows[0]] : 0;
  return Math.max(PAUSE_FACTOR * (between[between.length >> 1] ?? 0), Math.min(PAUSE_LEAST, PAUSE_SHARE * spanned), 1e-6);
}

/** @param {Uint32Array} all @param {Span | null} range */
export const rowsWithin = (all, range) => (range ? all.filter((i) => tables.packets.time[i] >= range[0] && tables.packets.time[i] <= range[1]) : all);

// Returns the packets in a range and the pauses between them.
/** @param {Uint32Array} all @param {Span | null} range */
export function itemsOf(all, range) {
  const { time } = tables.packets, rows = rowsWithin(all, range);
  const least = pauseLeast(rows), pauses = [];
  for (let k = 1; k < rows.length; k++) if (time[rows[k]] - time[rows[k - 1]] >= least) pauses.push(k);
  const items = new Int32Array(rows.length + pauses.length);
  let next = 0, at = 0;
  for (let k = 0; k < rows.length; k++) {
    if (pauses[next] === k) {
      items[at++] = ~rows[k];
      next++;
    }
    items[at++] = rows[k];
  }
  return { items, count: rows.length };
}

/** @param {number} item */
export const pauseText = (item) => {
  const at = firstAtOrAfter(listed.all, ~item), { time } = tables.packets;
  return `${duration((time[~item] - time[listed.all[at - 1]]) * 1e9)} without a packet`;
};

/** @param {number} i */
export const eventsAt = (i) => listed.events.get(packetKey(tables.packets.capture[i], tables.packets.frame[i])) || [];
/** @param {number} i */
export const blockOf = (i) => blockOfPacket(tables.packets.capture[i], tables.packets.frame[i]);
/** @param {number} event */
export const kindOf = (event) => data.words.kind[tables.events.kind[event]];
/** @param {number} event */
export const evidenceOf = (event) => {
  const by = data.words.evidence[tables.events.evidence[event]];
  return by ? EVIDENCE[by] || by.replaceAll("_", " ") : "";
};
/** @param {number} event */
export const placeOf = (event) => data.words.place[tables.events.place[event]] || "";

// Returns the row of a packet that has an event or that an event names; -1 if the page lacks it.
/** @param {number} capture @param {number} frame */
export const rowOfPacket = (capture, frame) => listed.packets.get(packetKey(capture, frame)) ?? -1;

// Indexes the events of flows by their packets, and retransmissions by the packets whose bytes they repeat; `all` are the packets of the flows.
/** @param {Set<number>} flows @param {Uint32Array} all */
export function indexEvents(flows, all) {
  const e = tables.events, p = tables.packets, rows = [...e.flow.keys()].filter((event) => flows.has(e.flow[event]));
  /** @param {Map<number, number[]>} map @param {number} key @param {number} value */
  const put = (map, key, value) => {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  };
  const named = new Set(rows.flatMap((event) => [packetKey(e.capture[event], e.frame[event]), packetKey(e.capture[event], e.related_frame[event])]));
  setListed({ events: new Map(), repeats: new Map(), packets: new Map() });
  if (rows.length) {
    for (const i of all) {
      const key = packetKey(p.capture[i], p.frame[i]);
      if (named.has(key)) listed.packets.set(key, i);
    }
  }
  for (const event of rows) {
    put(listed.events, packetKey(e.capture[event], e.frame[event]), event);
    if (repeatsPacket(event)) put(listed.repeats, packetKey(e.capture[event], e.related_frame[event]), event);
  }
}

// Returns whether an event is a retransmission of bytes of its related packet; else that packet opened the gap which it fills.
/** @param {number} event */
function repeatsPacket(event) {
  const e = tables.events, p = tables.packets, again = rowOfPacket(e.capture[event], e.frame[event]), first = rowOfPacket(e.capture[event], e.related_frame[event]);
  if (!kindOf(event).endsWith("retransmission") || again < 0 || first < 0) return false;
  return p.sequence[first] < p.sequence[again] + p.size[again] && p.sequence[again] < p.sequence[first] + p.size[first];
}

/** @param {number} event */
export function relatedText(event) {
  const related = tables.events.related_frame[event];
  if (kindOf(event).endsWith("duplicate")) return `copy of frame ${related}`;
  if (!kindOf(event).endsWith("retransmission")) return `see frame ${related}`;
  return repeatsPacket(event) ? `first sent in frame ${related}` : `fills the gap before frame ${related}`;
}

/** @param {number} event */
function eventText(event) {
  const e = tables.events, kind = kindOf(event), parts = [PHRASES[kind] || kind.replaceAll("_", " ")], related = e.related_frame[event];
  if (e.spurious[event] === 1) parts.push("spurious");
  if (!Number.isNaN(related)) parts.push(relatedText(event));
  const where = placeOf(event), by = evidenceOf(event);
  if (where) parts.push(kind.endsWith("retransmission") && e.spurious[event] !== 1 ? `lost ${where}` : where === "capture" ? "in the capture" : where);
  if (by) parts.push(`by ${by}`);
  return parts.join(", ");
}

// Returns the events that repeat a packet. One that was lost is not known to be: it is retransmitted for some reason.
/** @param {number} i */
export const repeatsOf = (i) => listed.repeats.get(packetKey(tables.packets.capture[i], tables.packets.frame[i])) || [];

/** @param {number} event */
export function repeatedText(event) {
  const e = tables.events, again = `retransmitted in frame ${e.frame[event]}`;
  if (e.spurious[event] === 1) return `arrived; ${again}`;
  return placeOf(event) === "downstream" ? `lost downstream; ${again}` : again;
}

/** @param {number} i */
export const isLost = (i) => repeatsOf(i).some((event) => placeOf(event) === "downstream" && tables.events.spurious[event] !== 1);

// Returns the text of a packet without a verdict: flags, SACK blocks, or whether it acknowledges new data.
/** @param {number} i */
function plainText(i) {
  const p = tables.packets, known = p.known[i], parts = blockOf(i) < 0 ? [] : [numberText(blockOf(i))];
  if (known & KNOWN.fragment) parts.push(`fragment at ${whole(p.offset[i])}`);
  if (known & KNOWN.flags && p.flags[i] & 7) parts.push(flagText(p.flags[i]));
  if (known & KNOWN.sack) parts.push(`SACK ${sacksOf(p, i).map(([from, to]) => `${whole(from)}–${whole(to)}`).join(", ")}`);
  else if (known & KNOWN.ack && !p.size[i]) {
    const own = p.rows(p.who[i]), at = firstAtOrAfter(own, i);
    if (at > 0 && p.known[own[at - 1]] & KNOWN.ack && p.ack[i] > p.ack[own[at - 1]]) parts.push("new data acknowledged");
  }
  return parts.join(", ");
}

// Returns shape, text and weight of the verdict on a packet.
/** @param {number} i */
export function packetVerdict(i) {
  const events = eventsAt(i), repeats = repeatsOf(i), loud = events.find((event) => !QUIET.has(kindOf(event)));
  const texts = [...events.map(eventText), ...repeats.map(repeatedText)];
  if (!texts.length) return { shape: "", text: plainText(i), weight: "quiet" };
  const shape = (loud !== undefined && SHAPES[kindOf(loud)]) || (isLost(i) ? "–" : "");
  const plain = blockOf(i) >= 0 || (QUIET.has(kindOf(events[0] ?? repeats[0])) && tables.packets.known[i] & KNOWN.sack) ? plainText(i) : "";
  return { shape, text: [...texts, plain].filter(Boolean).join("; "), weight: shape ? "alarm" : loud === undefined && !repeats.length ? "quiet" : "plain" };
}

/** @param {number} seconds */
export const secondsText = (seconds) => seconds.toFixed(6);
