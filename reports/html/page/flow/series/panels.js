// @ts-check
// The points of each panel of a flow: sequence, flight, round trips, numbers, delays, datagrams. rates.js has the throughput, verdicts.js
// the verdicts.
import { isCutOf, packetsOfFlow, tables } from "../../capture/tables.js";
import { KNOWN } from "../../numbers.js";
import { data } from "../../plotly.js";
import { whole } from "../../units.js";
import { bandData } from "../bands.js";
import { shownDirection } from "../drawn_flows.js";
import { columnSeries, columnsOf } from "./columns.js";
import { numberText } from "./payload_numbers.js";
import { atPackets, merged, packetText, picked, put, rowsOf, sacksOf, sorted } from "./points.js";
import { seriesData } from "./rates.js";
import { lossData, markData } from "./verdicts.js";

// The time-sequence graph of a direction.
/** @param {Packets} p @param {Uint32Array[]} sides */
function sequenceData(p, [sent, returned]) {
  /** @param {number} i */
  const end = (i) => p.sequence[i] + p.size[i];
  /** @param {number} i */
  const repeats = (i) => p.known[i] & KNOWN.repeated;
  const carries = sent.filter((i) => p.size[i] > 0 && p.known[i] & KNOWN.sequence);
  /** @type {PointsByKey} */
  const found = {};
  found.data = picked(p, carries.filter((i) => !repeats(i)), (i) => p.sequence[i], end);
  found.again = picked(p, carries.filter(repeats), (i) => p.sequence[i], end);
  const acks = returned.filter((i) => p.known[i] & KNOWN.ack);
  found.ack = picked(p, acks, (i) => p.ack[i]);
  found.window = picked(p, acks.filter((i) => p.known[i] & KNOWN.window), (i) => p.ack[i] + p.window[i]);
  /** @type {Record<"x" | "y" | "y2" | "frame" | "capture" | "row", number[]>} */
  const sack = { x: [], y: [], y2: [], frame: [], capture: [], row: [] };
  for (const i of acks) {
    if (!(p.known[i] & KNOWN.sack)) continue;
    for (const [start, stop] of sacksOf(p, i)) {
      sack.x.push(p.time[i]);
      sack.y.push(start);
      sack.y2.push(stop);
      sack.frame.push(p.frame[i]);
      sack.capture.push(p.capture[i]);
      sack.row.push(i);
    }
  }
  return { ...found, sack };
}

// --- in flight ------------------------------------------------------------------------------------------------

// Ascending ranges above the acknowledged position that SACK blocks reported.
class Scoreboard {
  bytes = 0;
  /** @type {Span[]} */
  ranges = [];

  /** @param {Span} range */
  add([start, end]) {
    const { ranges } = this;
    let first = 0;
    while (first < ranges.length && ranges[first][1] < start) first++;
    let last = first, low = start, high = end;
    for (; last < ranges.length && ranges[last][0] <= end; last++) {
      low = Math.min(low, ranges[last][0]);
      high = Math.max(high, ranges[last][1]);
      this.bytes -= ranges[last][1] - ranges[last][0];
    }
    ranges.splice(first, last - first, [low, high]);
    this.bytes += high - low;
  }

  /** @param {number} position */
  acknowledge(position) {
    while (this.ranges.length && this.ranges[0][1] <= position) {
      this.bytes -= this.ranges[0][1] - this.ranges[0][0];
      this.ranges.shift();
    }
    const [first] = this.ranges;
    if (first && first[0] < position) {
      this.bytes -= position - first[0];
      first[0] = position;
    }
  }
}

const FORGOTTEN_MOST = 4096;

// The greatest value of a span of time until now: values that a later one reaches are forgotten.
class Greatest {
  /** @type {number[]} */
  times = [];
  /** @type {number[]} */
  values = [];
  first = 0; // of those that count: the ones before are forgotten together

  /** @param {number} time @param {number} value @param {number} span */
  add(time, value, span) {
    const { times, values } = this;
    while (values.length > this.first && values[values.length - 1] <= value) {
      times.pop();
      values.pop();
    }
    times.push(time);
    values.push(value);
    while (times[this.first] < time - span) this.first++;
    if (this.first > FORGOTTEN_MOST) {
      times.splice(0, this.first);
      values.splice(0, this.first);
      this.first = 0;
    }
    return values[this.first];
  }
}

// The bytes in flight and the receiver's window at packets that stand for others, as the core counted them.
/** @param {Packets} p @param {Uint32Array[]} rows @param {number} direction @returns {PointsByKey} */
function countedFlight(p, rows, direction) {
  /** @param {number} i */
  const isOwn = (i) => p.who[i] % 2 === direction;
  const counted = merged(rows, p.time).filter((i) => p.known[i] & (isOwn(i) ? KNOWN.flight : KNOWN.opposite));
  /** @param {number} i */
  const inFlight = (i) => (isOwn(i) ? p.flight[i] : p.opposite[i]);
  const begin = counted.findIndex((i) => inFlight(i) > 0); // none is drawn before the first data
  if (begin < 0) return {};
  return { flight: picked(p, counted.subarray(begin), inFlight), room: picked(p, rows[1 - direction].filter((i) => p.known[i] & KNOWN.window), (i) => p.window[i]) };
}

// The bytes between the last one sent and the last one acknowledged, as the capture point saw them; the window that the receiver
// gave; and an estimate of the congestion window: the most in flight in the last round trip, without the bytes that SACK reports. Beside
// the receiver there is no estimate, because nearly all that is in flight is before the capture point.
/** @param {Packets} p @param {Uint32Array[]} rows @param {number} direction */
function flightOfAll(p, rows, direction) {
  const board = new Scoreboard(), greatest = new Greatest(), order = merged(rows, p.time), flight = new Uint32Array(order.length), room = new Uint32Array(order.length);
  const flights = new Float64Array(order.length), rooms = new Float64Array(order.length), cwnd = new Float64Array(order.length);
  let sent = 0, acked = 0, begun = false, rtt = 0, points = 0, windows = 0;
  for (const i of order) {
    const known = p.known[i];
    if (p.who[i] % 2 === direction) {
      if (!(known & KNOWN.sequence) || !p.size[i]) continue;
      if (!begun) acked = Math.max(acked, p.sequence[i]);
      begun = true;
      sent = Math.max(sent, p.sequence[i] + p.size[i]);
    } else {
      if (known & KNOWN.rtt) rtt = p.rtt[i] / 1e3;
      if (known & KNOWN.ack && p.ack[i] > acked) board.acknowledge((acked = p.ack[i]));
      if (known & KNOWN.sack) for (const block of sacksOf(p, i)) if (block[0] > acked) board.add(block);
      if (known & KNOWN.window) {
        room[windows] = i;
        rooms[windows++] = p.window[i];
      }
    }
    if (!begun) continue;
    flight[points] = i;
    flights[points] = Math.max(0, sent - acked);
    const ofRound = greatest.add(p.time[i], Math.max(0, sent - acked - board.bytes), rtt);
    cwnd[points++] = rtt ? ofRound : NaN;
  }
  if (!flights.some((value) => value > 0)) return {};
  const at = flight.subarray(0, points);
  /** @type {PointsByKey} */
  const found = { flight: atPackets(p, at, flights.subarray(0, points)), room: atPackets(p, room.subarray(0, windows), rooms.subarray(0, windows)) };
  if (cwnd.some((value) => value > 0) && isBesideSender(p, rows, direction)) found.cwnd = atPackets(p, at, cwnd.subarray(0, points));
  return found;
}

/** @param {Packets} p @param {Uint32Array[]} rows @param {number} direction */
export const flightData = (p, rows, direction) => (p.flight?.length ? countedFlight : flightOfAll)(p, rows, direction);

const NEAR_SENDER = 0.8; // share of the round trip behind the capture point, from which its sender is near

/** @param {Packets} p @param {Uint32Array[]} rows @param {number} direction */
function isBesideSender(p, rows, direction) {
  const least = [0, 1].map((d) => rows[d].reduce((rtt, i) => (p.known[i] & KNOWN.rtt ? Math.min(rtt, p.rtt[i]) : rtt), Infinity));
  const ahead = least[1 - direction], behind = least[direction];
  return ahead < Infinity && (behind === Infinity || ahead >= NEAR_SENDER * (ahead + behind));
}

/** @param {Packets} p @param {Uint32Array[]} rows @param {number} main */
function roundTrips(p, rows, main) {
  /** @type {PointsByKey} */
  const found = {};
  for (const d of [0, 1]) found["rtt" + (1 - d)] = picked(p, rows[d].filter((i) => p.known[i] & KNOWN.rtt), (i) => p.rtt[i]);
  const { x, y } = found["rtt" + main];
  if (x.length > 1) {
    let least = Infinity;
    for (let k = 0; k < y.length; k++) if (y[k] < least) least = y[k];
    found.least = { x: [x[0], x[x.length - 1]], y: [least, least], frame: [null, null], capture: [0, 0] };
  }
  return found;
}

// --- other protocols --------------------------------------------------------------------------------------------

// Bars of the payload so far, or of packets so far if there is none, and the time since the previous packet.
/** @param {Packets} p @param {Uint32Array[]} rows */
function packetsSoFar(p, rows) {
  /** @type {PointsByKey} */
  const found = {};
  const none = ![...rows[0], ...rows[1]].some((i) => p.size[i] > 0);
  for (const d of [0, 1]) {
    let sum = 0;
    const ends = Float64Array.from(rows[d], (i) => (sum += none ? 1 : p.size[i])), at = { k: 0, j: 0, b: 0 };
    found[d ? "other" : "data"] = picked(p, rows[d], (i) => ends[at.k++] - (none ? 1 : p.size[i]), () => ends[at.j++]);
    if (rows[d].length > 2) found["spacing" + d] = picked(p, rows[d].subarray(1), (i) => 1e3 * (p.time[i] - p.time[rows[d][at.b++]]));
  }
  return found;
}

/** @type {Record<string, string>} */
const NUMBER_OF = { out_of_order: "number_late", duplicate: "number_copy", late: "number_bad", corrupt: "number_bad" };

// Numbered payloads: number against time, ranges of numbers that never came, delay, and jitter.
/** @param {number} flow */
function blockData(flow) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const b = tables.blocks, streams = /** @type {Map<string, { d: number, arrivals: Arrival[] }>} */ (new Map());
  for (const i of rowsOf(b, flow)) {
    if (Number.isNaN(b.complete_ns[i])) continue;
    const verdict = data.words.verdict[b.verdict[i]] || "", x = b.complete_ns[i] / 1e3, d = b.direction[i] ? 1 : 0;
    const at = { frame: b.last_frame[i], capture: b.capture[i], text: numberText(i) };
    put(found, NUMBER_OF[verdict] || `number${d}`, x, b.sequence[i], at);
    if (!Number.isNaN(b.latency_ns[i])) put(found, "latency", x, b.latency_ns[i] / 1e6, at);
    if (b.head_of_line_ns[i] > 0) put(found, "waited", x, b.head_of_line_ns[i] / 1e6, at);
    const key = `${d}.${b.stream[i]}`, stream = streams.get(key) ?? { d, arrivals: [] };
    streams.set(key, stream);
    stream.arrivals.push({ x, number: b.sequence[i], latency: b.latency_ns[i] / 1e6, at });
  }
  for (const { d, arrivals } of streams.values()) {
    missing(found, arrivals);
    jitter(found, d, arrivals);
  }
  return found;
}

// A range of numbers that never came is drawn where the first number above it came.
/** @param {Record<string, GrowingPoints>} found @param {Arrival[]} arrivals */
function missing(found, arrivals) {
  const numbers = arrivals.map(({ number }) => number).sort((a, b) => a - b), opener = new Map();
  let top = -Infinity;
  for (const one of arrivals) {
    if (one.number <= top) continue;
    if (top !== -Infinity) opener.set(top, one);
    top = one.number;
  }
  const openers = [...opener].sort(([a], [b]) => a - b);
  for (let i = 1; i < numbers.length; i++) {
    const first = numbers[i - 1] + 1, last = numbers[i] - 1;
    if (last < first) continue;
    const at = openers.findLast(([below]) => below < first)?.[1] || arrivals.find(({ number }) => number > last);
    put(found, "missing", at.x, first - 0.5, { y2: last + 0.5, ...at.at, text: first === last ? `number ${whole(first)} never came` : `numbers ${whole(first)} to ${whole(last)} never came` });
  }
}

// RFC 3550 6.4.1: every arrival counts, also that of a duplicate; one without a time is skipped.
/** @param {Record<string, GrowingPoints>} found @param {number} d @param {Arrival[]} arrivals */
function jitter(found, d, arrivals) {
  let before = NaN, value = 0;
  for (const { x, latency, at } of arrivals) {
    if (Number.isNaN(latency)) continue;
    if (!Number.isNaN(before)) put(found, `jitter${d}`, x, (value += (Math.abs(latency - before) - value) / 16), at);
    before = latency;
  }
}

/** @param {number} flow */
function datagramData(flow) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const g = tables.datagrams;
  for (const i of rowsOf(g, flow)) {
    if (Number.isNaN(g.first_ns[i])) continue;
    const text = `${whole(g.fragments[i])} fragments${g.missing_bytes[i] ? `, ${whole(g.missing_bytes[i])} bytes missing` : ""}`;
    put(found, g.missing_bytes[i] === 0 ? "whole" : "broken", g.first_ns[i] / 1e3, g.fragments[i], { frame: g.first_frame[i], capture: g.capture[i], text });
  }
  return found;
}

// --- a flow -----------------------------------------------------------------------------------------------------

// Returns all series of a flow by key, each in order of time.
/** @param {Flow} f */
export function flowData(f) {
  const p = tables.packets, place = p.places.get(f.flow), tcp = f.protocol === "tcp", main = tcp ? shownDirection(f) : 0;
  /** @type {PointsByKey} */
  const found = { ...blockData(f.flow), ...datagramData(f.flow), ...lossData(f.flow), ...(tcp ? bandData(f.flow) : {}) };
  if (tcp) for (const key of Object.keys(found)) if (key.startsWith("number") || key === "missing" || key.startsWith("jitter")) delete found[key];
  const own = columnsOf(f);
  if (own) return { ...found, ...columnSeries(f, own) };
  if (place === undefined) return { ...found, ...seriesData(f.flow, main) };
  const held = packetsOfFlow(f.flow), numbered = found.number0 || found.number1;
  if (!held) return found;
  const { rows } = held;
  if (isCutOf(f, held)) {
    const { throughput0, throughput1 } = seriesData(f.flow, main);
    Object.assign(found, throughput0 && { throughput0 }, throughput1 && { throughput1 });
  }
  if (tcp) Object.assign(found, sequenceData(p, [rows[main], rows[1 - main]]), flightData(p, rows, main), roundTrips(p, rows, main));
  else if (!numbered) Object.assign(found, packetsSoFar(p, rows));
  if (!numbered) Object.assign(found, markData(f, p, rows, main, found));
  for (const [key, source] of Object.entries(found)) {
    const { row } = source;
    if (row && !source.text) source.text = (k) => packetText(p, row[k], tcp);
    if (!source.x.length) delete found[key];
  }
  return Object.fromEntries(Object.entries(found).map(([key, source]) => [key, sorted(source)]));
}
