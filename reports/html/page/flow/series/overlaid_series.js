// @ts-check
// The series of overlaid flows: for each flow one of bytes sent, in flight, throughput and round trip, of the direction that carries more,
// and its retransmissions, which one button of the legend hides.
import { isCutOf, packetsOfFlow, tables } from "../../capture/tables.js";
import { flowAt } from "../../list/flows.js";
import { KNOWN, firstAtOrAfter } from "../../numbers.js";
import { data } from "../../plotly.js";
import { prefixed } from "../../units.js";
import { FLOW_SYMBOLS, colorOfFlow, drawnFlows, placeOfFlow, shiftOf, shownDirection } from "../drawn_flows.js";
import { setTaken } from "../figure.js";
import { columnSeries, columnsOf, highestByte } from "./columns.js";
import { flightData } from "./panels.js";
import { ARROWS, packetText, picked, put, rowsOf, sorted } from "./points.js";
import { EDGE, binsOf, columnRates, forgetBin, rateIn, seriesData } from "./rates.js";
import { isRetransmission, packetOf, verdictText } from "./verdicts.js";

const RETRANSMITTED = "retransmitted";
const OVERLAID_KINDS = { sequence: "steps", flight: "steps", rate: "steps", rtt: "marks", [RETRANSMITTED]: "marks" }; // a kind of lines is a panel
export const MARKS_OF_LINE = 12; // symbols on a line, which distinguish it without its color

const RETRANSMITTED_LOOK = { panel: "sequence", symbol: "x-thin", size: 9, switch: RETRANSMITTED };
/** @param {string} panel @param {number} flow */
const keyOf = (panel, flow) => `${panel}@${flow}`;

// --- a flow ----------------------------------------------------------------------------------------------------

// Returns the highest byte sent so far of a TCP direction, or the payload so far of another one.
/** @param {Packets} p @param {Uint32Array} rows @param {boolean} tcp */
function sentSoFar(p, rows, tcp) {
  const carries = rows.filter((i) => p.size[i] > 0 && (!tcp || p.known[i] & KNOWN.sequence));
  let sum = 0;
  return picked(p, carries, (i) => (sum = tcp ? Math.max(sum, p.sequence[i] + p.size[i]) : sum + p.size[i]));
}

// Returns the retransmissions of a direction, each at the sequence number of its segment.
/** @param {Flow} f @param {Packets} p @param {Uint32Array[]} rows @param {number} main */
function retransmittedIn(f, p, rows, main) {
  /** @type {Record<string, GrowingPoints>} */
  const found = {};
  const e = tables.events;
  for (const event of rowsOf(e, f.flow)) {
    const i = e.direction[event] === main && isRetransmission(data.words.kind[e.kind[event]] || "") ? packetOf(p, rows[main], event) : -1;
    if (i >= 0 && p.known[i] & KNOWN.sequence) put(found, RETRANSMITTED, p.time[i], p.sequence[i], { frame: p.frame[i], capture: p.capture[i], text: `${verdictText(event)}<br>${packetText(p, i, true)}` });
  }
  return found;
}

// Returns the series of a flow by panel, without throughput if its packets give it.
/** @param {Flow} f @param {HeldPackets} held */
function ofPackets(f, held) {
  const { p, rows } = held, tcp = f.protocol === "tcp", main = shownDirection(f);
  /** @type {PointsByKey} */
  const found = { sequence: sentSoFar(p, rows[main], tcp) };
  if (tcp) {
    const { flight } = flightData(p, rows, main), back = rows[1 - main];
    if (flight) found.flight = flight;
    found.rtt = picked(p, back.filter((i) => p.known[i] & KNOWN.rtt), (i) => p.rtt[i]);
  }
  for (const source of Object.values(found)) source.text = (k) => packetText(p, source.row?.[k] ?? 0, tcp);
  if (isCutOf(f, held)) found.rate = seriesData(f.flow, main)[`throughput${main}`];
  return tcp ? { ...found, ...retransmittedIn(f, p, rows, main) } : found;
}

/** @param {Flow} f @param {ColumnsOfFlow} own @returns {Record<string, Points | undefined>} */
function columnsOfOverlaid(f, own) {
  const found = columnSeries(f, own), { throughput0, throughput1 } = columnRates(own, [own.begin, own.begin + own.width * (own.at[own.at.length - 1] + 1)]);
  return { sequence: highestByte(own), flight: found.flight, rate: shownDirection(f) ? throughput1 : throughput0, rtt: found[`rtt${own.main}`] };
}

/** @param {Flow} f @returns {Record<string, Points | undefined>} */
function ofBins(f) {
  const main = shownDirection(f), own = columnsOf(f);
  if (own) return columnsOfOverlaid(f, own);
  const found = seriesData(f.flow, main);
  return { sequence: found.progress, flight: found.flight, rate: found[`throughput${main}`], rtt: found[`rtt${main}`] };
}

// Returns a series of points at the times of the axis.
/** @param {Points} source @param {number} shift */
function shiftedBy(source, shift) {
  const { text } = sorted(source), made = /** @type {Points} */ ({ ...sorted(source), shift });
  if (shift) made.x = Float64Array.from(made.x, (time) => time + shift);
  return { ...made, text };
}

// Takes the series of all drawn flows. Returns the times of their first and last packets.
export function takeOverlaid() {
  /** @type {PointsByKey} */
  const found = {};
  /** @type {Record<string, { x: number[] }>} */
  const ends = {};
  /** @type {Series[]} */
  const overlaid = [];
  for (const flow of drawnFlows()) {
    const f = flowAt(tables.flows.rowOf(flow)), held = packetsOfFlow(flow), shift = shiftOf(flow);
    for (const [panel, source] of Object.entries(held ? ofPackets(f, held) : ofBins(f))) {
      if (source?.x.length) found[keyOf(panel, flow)] = shiftedBy(source, shift);
    }
    if (held) for (const rows of held.rows) if (rows.length) ends[`${flow}.${rows[0]}`] = { x: [0, rows.length - 1].map((k) => held.p.time[rows[k]] + shift) };
    for (const [kind, mode] of Object.entries(OVERLAID_KINDS)) {
      const own = { key: keyOf(kind, flow), name: `flow ${flow}`, panel: kind, flow, mode, color: colorOfFlow(flow), dash: "solid", symbol: FLOW_SYMBOLS[placeOfFlow(flow)], size: mode === "marks" ? 5 : 7, shown: true, fill: false, about: "" };
      overlaid.push(kind === RETRANSMITTED ? { ...own, ...RETRANSMITTED_LOOK } : own);
    }
  }
  setTaken({ full: found, overlaid });
  return ends;
}

// --- throughput ------------------------------------------------------------------------------------------------

// Returns the throughput of each drawn flow in a view, in the same bins.
/** @param {Span} range */
export function overlaidRates(range) {
  forgetBin();
  const held = drawnFlows().map((flow) => ({ f: flowAt(tables.flows.rowOf(flow)), held: packetsOfFlow(flow), shift: shiftOf(flow) }));
  const flows = held.flatMap(({ f, held: own, shift }) => (own && !isCutOf(f, own) ? [{ f, shift, p: own.p, rows: own.rows[shownDirection(f)] }] : []));
  if (!flows.length) return {};
  /** @param {{ p: Packets, rows: Uint32Array, shift: number }} drawn */
  const countIn = ({ p, rows, shift }) => firstAtOrAfter(rows, range[1] - shift, (row) => p.time[row]) - firstAtOrAfter(rows, range[0] - shift, (row) => p.time[row]);
  /** @type {PointsByKey} */
  const found = {};
  const bins = binsOf(range, Math.max(...flows.map(countIn)));
  for (const { f, p, rows, shift } of flows) {
    if (rows.length) found[keyOf("rate", f.flow)] = clipped(rateIn(p, rows, bins, (rate) => `${prefixed(rate, "bit/s")} of IP ${ARROWS[shownDirection(f)]}`, shift), p.time[rows[0]] + shift, p.time[rows[rows.length - 1]] + shift);
  }
  return found;
}

// Returns a line of rates without the bins before the first and after the last packet of its flow; it ends at 0.
/** @param {RateLine} line @param {number} from @param {number} to */
function clipped(line, from, to) {
  const bin = line.frame[0][1] - line.frame[0][0], first = Math.max(0, firstAtOrAfter(line.x, from + EDGE * bin) - 1), last = Math.min(line.x.length - 1, firstAtOrAfter(line.x, to + EDGE * bin));
  const ends = to < line.x[last], made = { ...line };
  made.x = line.x.slice(first, last + 1);
  made.y = line.y.slice(first, last + 1);
  made.frame = line.frame.slice(first, last + 1);
  made.capture = line.capture.slice(first, last + 1);
  if (ends && last > first) made.y[made.y.length - 1] = 0;
  made.text = (k) => line.text(first + k);
  return made;
}
