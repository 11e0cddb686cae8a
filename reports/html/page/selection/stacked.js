// @ts-check
// What the timeline draws: the traffic of all flows or of the selected ones, as one sum or stacked by server, client, port or cause.
import { traffic } from "../capture/chart.js";
import { tables } from "../capture/tables.js";
import { choice } from "../link.js";
import { data } from "../plotly.js";
import { whole } from "../units.js";
import { bytesOverTime, countedMask, countsOverTime, hasFlowCounts, hasFlowSums } from "./flow_sums.js";
import { FACETS, isTrafficSelected, selectedRows } from "./selection.js";

const LAYERS = 5; // groups with a color of their own; the others are one layer
const NO_GROUP = 255;
export const STACKS = ["server", "client", "port", "cause"];

/** @type {{ key: string, drawn: DrawnTraffic } | null} */
let lastDrawn = null; // as it was drawn last

export const stackOf = () => (choice.stack !== null && STACKS.includes(choice.stack) && hasFlowSums() ? choice.stack : null);

// Returns the largest groups of some rows by a facet, and the group of each row: its place in them, or the last one for the others.
/** @param {Uint32Array} rows @param {Uint8Array} mask @param {string} facet */
function groupsByFacet(rows, mask, facet) {
  /** @type {Map<string, number>} */
  const bytes = new Map();
  const names = Array.from(rows, (row) => FACETS[facet].values(row)[0] ?? "");
  rows.forEach((row, i) => mask[row] && bytes.set(names[i], (bytes.get(names[i]) ?? 0) + tables.flows.bytes[row]));
  const ranked = [...bytes.keys()].sort((a, b) => (bytes.get(b) ?? 0) - (bytes.get(a) ?? 0)), left = ranked.length > LAYERS + 1 ? ranked.slice(LAYERS) : [];
  const large = left.length ? ranked.slice(0, LAYERS) : ranked, places = new Map(large.map((name, i) => [name, i]));
  const groupOf = new Uint8Array(mask.length).fill(NO_GROUP);
  rows.forEach((row, i) => { if (mask[row]) groupOf[row] = places.get(names[i]) ?? LAYERS; });
  return { large, left: left.length, groupOf };
}

// Returns the words of a layer. Of a cause of many flows the page knows the first ones alone.
/** @param {string} facet @param {string} of */
function layerWords(facet, of) {
  if (of) return FACETS[facet].text?.(of) ?? of;
  const cut = facet === "cause" ? Math.max(...data.causes.map(({ flows, members }) => (members > flows.length ? flows.length : 0))) : 0;
  return cut > 0 ? `no cause, or not among its first ${whole(cut)} flows` : `no ${facet}`;
}

/** @param {Float64Array} bytes */
const ratesOf = (bytes) => Float32Array.from(bytes, (size) => (8 * size) / traffic.width);

// Returns the layers of a stack, the first at the bottom.
/** @param {Uint32Array} rows @param {Uint8Array} mask @param {string} facet @returns {Layer[]} */
function layersOf(rows, mask, facet) {
  const { large, left, groupOf } = groupsByFacet(rows, mask, facet), count = large.length + Number(left > 0);
  const sums = bytesOverTime(groupOf, count, traffic.rates.length);
  const layers = large.map((of, i) => ({ words: layerWords(facet, of), facet: of ? `${facet}:${of}` : "", rates: ratesOf(sums[i]) }));
  return left ? [...layers, { words: `${whole(left)} others`, facet: "", rates: ratesOf(sums[count - 1]) }] : layers;
}

// Returns the rates and counts to draw. Without sums by flow they are those of all traffic, whatever is selected.
/** @returns {DrawnTraffic} */
function takeTraffic() {
  const { rates, lost, missed } = traffic, facet = stackOf(), selects = isTrafficSelected() && hasFlowSums();
  if (!selects && !facet) return { rates, lost, missed, layers: [], flows: null, isCounted: true };
  const rows = selectedRows({ during: null, ...(selects ? {} : { only: [], find: "" }) }), mask = countedMask(rows);
  const layers = facet ? layersOf(rows, mask, facet) : [];
  if (!selects) return { rates, lost, missed, layers, flows: null, isCounted: true };
  const [bytes] = bytesOverTime(mask.map((one) => (one ? 0 : NO_GROUP)), 1, rates.length), isCounted = hasFlowCounts();
  const counted = isCounted ? { lost: countsOverTime("lost", mask, rates.length), missed: countsOverTime("missed", mask, rates.length) } : { lost, missed };
  return { rates: ratesOf(bytes), ...counted, layers, flows: rows.length, isCounted };
}

export function drawnTraffic() {
  const key = JSON.stringify([choice.only, choice.find, stackOf()]);
  if (lastDrawn?.key !== key) lastDrawn = { key, drawn: takeTraffic() };
  return lastDrawn.drawn;
}
