// @ts-check
// The traffic of each flow over time: bytes and packets, losses and segments that the capture missed, in the bins of the timeline. The
// timeline draws their sums over the selected flows, and a range counts with them the flows whose packets the page lacks.
import { tables } from "../capture/tables.js";
import { unplaned, unstepped } from "../numbers.js";
import { data } from "../plotly.js";

/** @type {FlowSums | null} */
let ofFlows = null; // null if the page has none, because there would be too many
/** @type {Record<"lost" | "missed", FlowCounts> | null} */
let countedBy = null;
/** @type {Set<number>} */
let otherLegs = new Set(); // rows of flows that are another leg of one that is judged

// Returns the rows of flows that stand in order.
/** @param {Uint32Array} flows */
function rowsOfFlows(flows) {
  const rows = new Int32Array(flows.length);
  flows.forEach((flow, i) => (rows[i] = i && flow === flows[i - 1] ? rows[i - 1] : tables.flows.rowOf(flow)));
  return rows;
}

export async function loadFlowSums() {
  if (!data.timeline) return;
  const { by_flow: packed, counts_by_flow: counted } = data.timeline;
  otherLegs = new Set(data.timeline.legs.map((flow) => tables.flows.rowOf(flow)));
  if (!packed) return;
  ofFlows = { wider: packed.wider, rows: rowsOfFlows(await unstepped(packed.flows)), bins: await unstepped(packed.bins), bytes: await unplaned(packed.bytes), packets: await unplaned(packed.packets) };
  if (!counted) return;
  /** @param {PackedCounts} of */
  const unpacked = async (of) => ({ rows: rowsOfFlows(await unstepped(of.flows)), bins: await unstepped(of.bins), counts: await unplaned(of.counts) });
  countedBy = { lost: await unpacked(counted.lost), missed: await unpacked(counted.missed) };
}

export const hasFlowSums = () => ofFlows !== null;
export const hasFlowCounts = () => countedBy !== null;
export const flowCounts = () => countedBy;
export const binsPerSum = () => ofFlows?.wider ?? 1;

// Returns a mask of rows that count: other legs of judged flows do not, unless nothing else is selected.
/** @param {Uint32Array} rows */
export function countedMask(rows) {
  const mask = new Uint8Array(tables.flows.number.length), every = !otherLegs.size || rows.every((row) => otherLegs.has(row));
  for (const row of rows) mask[row] = Number(every || !otherLegs.has(row));
  return mask;
}

// Returns bytes by bin of the timeline, of groups of flows; `groupOf` has the group of each row, 255 for none.
/** @param {Uint8Array} groupOf @param {number} groups @param {number} bins */
export function bytesOverTime(groupOf, groups, bins) {
  const found = Array.from({ length: groups }, () => new Float64Array(bins));
  if (!ofFlows) return found;
  const { wider, rows, bins: places, bytes } = ofFlows;
  for (let i = 0; i < rows.length; i++) {
    const group = rows[i] < 0 ? 255 : groupOf[rows[i]];
    if (group >= groups) continue;
    const from = places[i] * wider, to = Math.min(from + wider, bins), share = bytes[i] / Math.max(to - from, 1);
    for (let bin = from; bin < to; bin++) found[group][bin] += share;
  }
  return found;
}

// Returns counts by bin of the flows of a mask.
/** @param {"lost" | "missed"} name @param {Uint8Array} mask @param {number} bins */
export function countsOverTime(name, mask, bins) {
  const found = new Uint32Array(bins), of = countedBy?.[name];
  if (of) for (let i = 0; i < of.rows.length; i++) if (of.rows[i] >= 0 && mask[of.rows[i]] && of.bins[i] < bins) found[of.bins[i]] += of.counts[i];
  return found;
}

// Returns bytes and packets of the flows of a mask within a range of bins, whose ends may lie within one; they are whole only if bins are.
/** @param {Uint8Array} mask @param {Span} range */
export function sumsWithin(mask, [from, to]) {
  if (!ofFlows) return null;
  const found = { bytes: 0, packets: 0 };
  const { wider, rows, bins, bytes, packets } = ofFlows;
  for (let i = 0; i < rows.length; i++) {
    if (rows[i] < 0 || !mask[rows[i]]) continue;
    const share = (Math.min(to, (bins[i] + 1) * wider) - Math.max(from, bins[i] * wider)) / wider;
    if (share <= 0) continue;
    found.bytes += bytes[i] * share;
    found.packets += packets[i] * share;
  }
  return found;
}
