// @ts-check
// The selection: the flows that the reader wants, by words of the search, by facets (a host, a port, a cause …) and by the brush of the
// timeline. Timeline, pins, bar, causes, list and plots ask selectedRows() or isSelected().
// Values of one facet are alternatives.
import { tables } from "../capture/tables.js";
import { choice, choose, chosenFlow } from "../link.js";
import { limitOf, partsOf } from "../list/flow_times.js";
import { NO_PORT, endAddress, knownWord, nameOf, pathOf, problemsOf, processOf, protocolOf, serverOf } from "../list/flows.js";
import { unstepped } from "../numbers.js";
import { data } from "../plotly.js";

/** @type {Map<number, string[]>} */
const causesByFlow = new Map(); // places of listed causes, from 1

export async function loadCauses() {
  for (const [i, cause] of data.causes.entries()) {
    cause.flows = Array.from(await unstepped(cause.packed_flows));
    for (const flow of cause.flows) causesByFlow.set(flow, [...(causesByFlow.get(flow) ?? []), String(i + 1)]);
  }
}

/** @param {number} row */
const causesOf = (row) => causesByFlow.get(tables.flows.number[row]) ?? [];

/** @param {number} row */
const portsOf = (row) => (tables.flows.destination_port[row] === NO_PORT ? [] : [String(tables.flows.destination_port[row])]);
/** @param {string} value */
const partWords = (value) => data.times.parts.find(([part]) => part === value)?.[1] ?? value;

/** @param {string} value */
const causeWords = (value) => `${value} ${data.causes[Number(value) - 1]?.title ?? ""}`.trim();

/** @type {Record<string, Facet>} */
export const FACETS = {
  host: { words: "host", values: (row) => [endAddress(row, "source"), endAddress(row, "destination")] },
  client: { words: "client", values: (row) => [endAddress(row, "source")] },
  server: { words: "server", values: (row) => [endAddress(row, "destination")] },
  port: { words: "port", values: portsOf },
  application: { words: "application", values: (row) => [knownWord("application", row) || protocolOf(row)] },
  cause: { words: "cause", values: causesOf, text: causeWords },
  part: { words: "≥ 10% of time in", values: partsOf, text: partWords },
  verdict: { words: "verdict", values: (row) => tables.flows.problems.filter(({ sums }) => sums[row]).map(({ label }) => label) },
};

/** @param {string} facet @returns {[name: string, of: string]} */
export function facetParts(facet) {
  const at = facet.indexOf(":");
  return [facet.slice(0, at), facet.slice(at + 1)];
}

// Returns a facet that was typed, as `port:443` or `verdict:blocks_lost`; "" for other words.
/** @param {string} word */
export function typedFacet(word) {
  const [name, of] = facetParts(word);
  return of && Object.hasOwn(FACETS, name) ? `${name}:${name === "verdict" ? of.replaceAll("_", " ") : of}` : "";
}

// --- which flows -----------------------------------------------------------------------------------------------

/** @type {string[] | null} */
let texts = null; // that a search looks through, by row

/** @param {number} row */
function searchText(row) {
  return `${nameOf(row)} ${protocolOf(row)} ${knownWord("application", row)} ${knownWord("state", row)} ${serverOf(row)} ${processOf(row)} ${pathOf(row)} ${problemsOf(row)} ${limitOf(row)}`.toLowerCase();
}

/** @param {string} find */
const wordsOf = (find) => find.split(/\s+/).filter(Boolean);

// Returns the row of the flow whose number is all that was searched for, or -1.
/** @param {string} find */
export function rowOfNumber(find) {
  const words = wordsOf(find);
  return words.length === 1 && /^#?\d+$/.test(words[0]) ? tables.flows.rowOf(Number(words[0].replace("#", ""))) : -1;
}

// Returns a test of rows: whether they have one of the values of each facet.
/** @param {string[]} facets */
function facetTest(facets) {
  /** @type {Map<string, Set<string>>} */
  const wanted = new Map();
  for (const facet of facets) {
    const [name, of] = facetParts(facet);
    wanted.set(name, (wanted.get(name) ?? new Set()).add(of));
  }
  const tests = [...wanted].map(([name, values]) => (/** @type {number} */ row) => Object.hasOwn(FACETS, name) && FACETS[name].values(row).some((one) => values.has(one)));
  return (/** @type {number} */ row) => tests.every((test) => test(row));
}

// Returns whether a flow has a packet before and after the ends of a range, or within it. Starts are whole milliseconds.
/** @param {Span} range */
function lifeTest([from, to]) {
  const { start, lasted } = tables.flows;
  return (/** @type {number} */ row) => !(start[row] > to * 1e3) && !(start[row] + lasted[row] + 1 < from * 1e3) && !Number.isNaN(start[row]);
}

// Returns whether each row is selected, 1 or 0.
/** @param {Wanted} wanted */
function maskOf({ only, find, during }) {
  const mask = new Uint8Array(tables.flows.number.length), words = wordsOf(find), numbered = rowOfNumber(find);
  const facets = [...only, ...words.map(typedFacet).filter(Boolean)], letters = words.filter((word) => !typedFacet(word)).map((word) => word.toLowerCase());
  const has = facetTest(facets), lives = during ? lifeTest(during) : () => true, held = letters.length ? (texts ||= Array.from(mask.keys(), searchText)) : [];
  for (let row = 0; row < mask.length; row++) {
    mask[row] = Number(lives(row) && (!facets.length || has(row)) && (row === numbered || letters.every((word) => held[row].includes(word))));
  }
  return mask;
}

/** @type {Map<string, Uint8Array>} */
const masks = new Map(); // of the last selections

/** @param {Wanted} wanted */
function heldMask({ only, find, during }) {
  const key = JSON.stringify([only, find, during]), mask = masks.get(key) ?? maskOf({ only, find, during });
  masks.delete(key);
  masks.set(key, mask);
  if (masks.size > 3) masks.delete([...masks.keys()][0]);
  return mask;
}

/** @param {Wanted} wanted */
const isAll = ({ only, find, during }) => !only.length && !find && !during;
export const isSelection = () => !isAll(choice);
// The timeline has a selection if facets or words choose flows: its brush keeps what is beside it in sight.
export const isTrafficSelected = () => !isAll({ ...choice, during: null });

/** @param {number} row */
export const isSelected = (row) => heldMask(choice)[row] === 1;

// Returns the rows of the selected flows, in the order of their numbers; `wanted` is another selection than that of the page.
/** @param {Partial<Wanted>} [wanted] */
export function selectedRows(wanted = {}) {
  const mask = heldMask({ ...choice, ...wanted });
  return Uint32Array.from(mask.keys()).filter((row) => mask[row]);
}

// Returns whether a listed cause is of a selected flow, and of the range of the brush. One that is of no flow is in every range.
/** @param {number} place */
export function isCauseSelected(place) {
  const { flows, from, to } = data.causes[place - 1];
  if (choice.during && from !== null && (from > choice.during[1] || (to ?? from) < choice.during[0])) return false;
  if (!flows.length) return !isTrafficSelected();
  const mask = heldMask(choice);
  return !isSelection() || flows.some((flow) => mask[tables.flows.rowOf(flow)] === 1);
}

// --- changes ---------------------------------------------------------------------------------------------------

// Returns the number of the largest selected flow; null if none is.
/** @param {Wanted} wanted */
export function largestSelected(wanted) {
  const { bytes, number } = tables.flows;
  const largest = selectedRows(wanted).reduce((most, row) => (most < 0 || bytes[row] > bytes[most] ? row : most), -1);
  return largest < 0 ? null : number[largest];
}

// Changes the selection. If the plotted flow is not selected any more, the largest one that is takes its place.
/** @param {Partial<Wanted>} change */
export function select(change) {
  const wanted = { ...choice, ...change }, row = tables.flows.rowOf(chosenFlow()), during = change.during;
  const other = heldMask(wanted)[row] || isAll(wanted) ? null : largestSelected(wanted);
  const brushed = during === undefined ? {} : { range: during, vertical: {} };
  return choose({ ...change, ...brushed, ...(other === null ? {} : { flow: other, range: wanted.during }) });
}

// Adds a facet to the selection, or removes it.
/** @param {string} facet */
export const turnFacet = (facet) => select({ only: choice.only.includes(facet) ? choice.only.filter((one) => one !== facet) : [...choice.only, facet] });
