// @ts-check
// What is inside the range of the brush: packets, bytes, rate, losses and round trips of the selected flows. The account of their time is
// the bar below (time_bar.js). Flows whose packets the page lacks are counted by the bins of the timeline.
import { traffic } from "../capture/chart.js";
import { tables } from "../capture/tables.js";
import { element } from "../elements.js";
import { isLoss } from "../flow/distributions.js";
import { choice, hasAny, onChoice } from "../link.js";
import { KNOWN, firstAtOrAfter } from "../numbers.js";
import { $, data } from "../plotly.js";
import { duration, momentText, prefixed, whole } from "../units.js";
import { countedMask, flowCounts, sumsWithin } from "./flow_sums.js";
import { selectedRows } from "./selection.js";

const RTT_PERCENTS = [50, 95, 99];

// Returns how many losses the events of the page have of some flows within a part of a bin.
/** @param {Set<number>} rows @param {Span} part */
function lossesWithin(rows, [from, to]) {
  const { flow, time_ns: times } = tables.events;
  let count = 0;
  for (let i = 0; i < flow.length; i++) if (times[i] / 1e3 >= from && times[i] / 1e3 <= to && isLoss(i) && rows.has(tables.flows.rowOf(flow[i]))) count++;
  return count;
}

// Returns the losses of the flows of a mask within a range: those of whole bins, and within the bins at its ends those of the events table;
// null if they are not known.
/** @param {Uint8Array} mask @param {Span} range */
function lossesOf(mask, [from, to]) {
  const lost = flowCounts()?.lost;
  if (!lost) return null;
  const low = (from - traffic.from) / traffic.width, high = (to - traffic.from) / traffic.width;
  const [first, last] = [Math.floor(low), Math.floor(high)], edgeRows = /** @type {Set<number>} */ (new Set());
  let count = 0;
  lost.rows.forEach((row, i) => {
    const bin = lost.bins[i];
    if (row < 0 || !mask[row] || bin < first || bin > last) return;
    if (bin > first && bin < last) count += lost.counts[i];
    else edgeRows.add(row);
  });
  if (!edgeRows.size) return count;
  const edge = (/** @type {number} */ bin) => traffic.from + bin * traffic.width;
  if (first === last) return lossesWithin(edgeRows, [from, to]);
  return count + lossesWithin(edgeRows, [from, edge(first + 1)]) + lossesWithin(edgeRows, [edge(last), to]);
}

// Returns packets, bytes and round trips of a flow within a range, by its packets in the page.
/** @param {number} place @param {Span} range @param {number[]} rtts */
function packetsWithin(place, [from, to], rtts) {
  const p = tables.packets, found = { packets: 0, bytes: 0 };
  for (const rows of [p.rows(2 * place), p.rows(2 * place + 1)]) {
    for (let at = firstAtOrAfter(rows, from, (i) => p.time[i]); at < rows.length && p.time[rows[at]] <= to; at++) {
      const i = rows[at];
      found.packets++;
      found.bytes += p.ip[i];
      if (p.known[i] & KNOWN.rtt) rtts.push(p.rtt[i]);
    }
  }
  return found;
}

// Returns the percentile of ascending values: the least one that so many percent do not exceed.
/** @param {Float64Array} values @param {number} percent */
const rankedAt = (values, percent) => values[Math.max(0, Math.ceil((percent / 100) * values.length) - 1)];

// Returns what is inside a range of the selected flows.
/** @param {Span} range */
export function rangeFacts(range) {
  const rows = selectedRows(), mask = countedMask(rows), coarse = mask.slice(), held = data.packets.cut || data.served ? new Map() : tables.packets.places;
  const facts = { packets: 0, bytes: 0, binned: 0, rates: 0, lost: /** @type {number | null} */ (null), rtts: new Float64Array() };
  /** @type {number[]} */
  const rtts = [];
  for (const row of rows) {
    if (!mask[row]) continue;
    const place = held.get(tables.flows.number[row]);
    if (place === undefined) facts.binned++;
    else {
      const own = packetsWithin(place, range, rtts);
      facts.packets += own.packets;
      facts.bytes += own.bytes;
      coarse[row] = 0;
    }
  }
  const sums = facts.binned ? sumsWithin(coarse, [(range[0] - traffic.from) / traffic.width, (range[1] - traffic.from) / traffic.width]) : { packets: 0, bytes: 0 };
  if (!sums) return null;
  facts.packets += Math.round(sums.packets);
  facts.bytes += sums.bytes;
  const rates = (8 * facts.bytes) / (range[1] - range[0]);
  return { ...facts, rates, lost: lossesOf(mask, range), rtts: Float64Array.from(rtts).sort() };
}

/** @param {string} name @param {string} text */
const fact = (name, text) => element("span", {}, element("b", { textContent: text }), ` ${name}`);

function drawRangeFacts() {
  const place = $("range-facts"), range = choice.during, facts = range && rangeFacts(range);
  place.hidden = !range;
  if (!range) return;
  const parts = [element("span", { textContent: momentText(...range) })];
  if (facts) {
    parts.push(fact(facts.packets === 1 ? "packet" : "packets", whole(facts.packets)), fact("IP", prefixed(facts.bytes, "B")), fact("", prefixed(facts.rates, "bit/s")));
    if (facts.lost !== null) parts.push(fact("lost", whole(facts.lost)));
    const { rtts } = facts;
    if (rtts.length) parts.push(element("span", {}, "RTT ", ...RTT_PERCENTS.flatMap((percent) => [element("b", { textContent: duration(rankedAt(rtts, percent) * 1e6) }), percent === 50 ? " median, " : ` ${percent}%${percent === 99 ? "" : ", "}`]), ` of ${whole(rtts.length)}`));
    if (facts.binned) parts.push(element("span", { textContent: `${whole(facts.binned)} ${facts.binned === 1 ? "flow" : "flows"} to the nearest bin, without RTT` }));
  } else parts.push(element("span", { textContent: "too many flows to count what is inside" }));
  place.replaceChildren(...parts);
}

export function startRangeFacts() {
  onChoice((changed) => data.timeline && hasAny(changed, ["during", "only", "find"]) && drawRangeFacts());
}
