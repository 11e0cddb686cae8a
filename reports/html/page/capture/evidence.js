// @ts-check
// The evidence of a finding: its range in a flow, and its marks, a pale band in all panels and a line at each cited frame.
import { beginOf } from "../flow/drawn_flows.js";
import { view } from "../flow/figure.js";
import { choice } from "../link.js";
import { firstAtOrAfter } from "../numbers.js";
import { data } from "../plotly.js";
import { tables } from "./tables.js";

/** @param {number} number */
export const findingOf = (number) => data.findings[number - 1];
// Returns the listed cause that a finding belongs to.
/** @param {number | null | undefined} number */
export const causeOf = (number) => data.causes.find(({ findings }) => findings.includes(number ?? 0));
const CONTEXT = 12; // packets beside the evidence that the range includes
const MARGIN_OF_EVIDENCE = 0.3; // of its length, at least
const POINT_LEAST = 0.004; // share of the range that the mark of a single packet takes

// Returns the finding of a number of the link, if it can be shown: its times are known, and its flow if it has one.
/** @param {number | null | undefined} number @returns {ShownFinding | null} */
export function shownFinding(number) {
  const finding = number && data.findings[number - 1], flows = tables.flows;
  if (!finding || finding.from === null) return null;
  const can = finding.cited_flow === null ? flows.number.length > 0 : flows.rowOf(finding.cited_flow) >= 0;
  return can ? { ...finding, from: finding.from } : null;
}

// Returns a range of a flow without the time before and after the flow, or null if it is all of it. Evidence may be outside of the
// flow in view, if it is about the capture.
/** @param {Span} range @param {number} flow @param {Span} evidence @returns {Span | null} */
function withinFlow(range, flow, [from, to]) {
  const row = tables.flows.rowOf(flow), begin = beginOf(flow), end = begin + tables.flows.lasted[row] / 1e3, margin = (end - begin) * 0.01;
  if (from < begin - margin || to > end + margin) return range;
  const [left, right] = [Math.max(range[0], begin - margin), Math.min(range[1], end + margin)];
  return left <= begin && right >= end ? null : [left, right];
}

// Returns the rows of both directions of a flow; none if the page lacks its packets.
/** @param {number | null} flow */
function sidesOf(flow) {
  const p = tables.packets, held = flow === null ? undefined : p.places.get(flow);
  return held === undefined ? [] : [p.rows(2 * held), p.rows(2 * held + 1)];
}

// Returns the range with the packets around the evidence, or null if that is the whole flow.
/** @param {ShownFinding} finding @param {number} flow @returns {Span | null} */
export function evidenceRange({ from, to, whole }, flow) {
  const end = to ?? from;
  if (whole || end < from) return null;
  const margin = MARGIN_OF_EVIDENCE * (end - from), p = tables.packets, held = p.places.get(flow), row = tables.flows.rowOf(flow);
  let [before, after] = [margin, margin];
  for (const rows of sidesOf(flow)) {
    const time = (/** @type {number} */ at) => p.time[rows[Math.min(Math.max(at, 0), rows.length - 1)]];
    if (!rows.length) continue;
    before = Math.max(before, from - time(firstAtOrAfter(rows, from, (i) => p.time[i]) - CONTEXT));
    after = Math.max(after, time(firstAtOrAfter(rows, end, (i) => p.time[i]) + CONTEXT) - end);
  }
  const least = Math.max((tables.flows.lasted[row] / 1e3) * (held === undefined ? 0.02 : 0), 1e-6);
  const range = withinFlow([from - Math.max(before, least), end + Math.max(after, least)], flow, [from, end]);
  return range && [Number(range[0].toFixed(9)), Number(range[1].toFixed(9))]; // as in the link
}

// Returns the finding that is chosen, if the flow in view is its own, or if it is about the capture.
export function markedFinding() {
  const finding = shownFinding(choice.finding);
  return finding && [null, choice.flow].includes(finding.cited_flow) ? finding : null;
}

// Returns the times of the frames that a finding cites: first and last, and those between that the page holds.
/** @param {ShownFinding} finding */
function citedTimes({ cited_flow: flow, capture, frames, from, to }) {
  const p = tables.packets, end = to ?? from, cited = new Set(frames), times = new Set([from, end]);
  for (const rows of sidesOf(flow)) {
    for (let at = firstAtOrAfter(rows, from, (i) => p.time[i]); at < rows.length && p.time[rows[at]] < end; at++) {
      if (cited.has(p.frame[rows[at]]) && p.capture[rows[at]] === capture) times.add(p.time[rows[at]]);
    }
  }
  return [...times];
}

// Returns the times of a span, so wide that it can be seen.
/** @param {number} from @param {number} to */
function visibleSpan(from, to) {
  const [left, right] = view.range, wider = Math.max(0, (right - left) * POINT_LEAST - (to - from)) / 2;
  return { from: Math.max(from - wider, Math.min(from, left)), to: Math.min(to + wider, Math.max(to, right)) };
}

// Returns the chosen finding, and if it stands for a cause what else the flow shows of this; none if no finding is marked.
function markedFindings() {
  const finding = markedFinding(), cause = causeOf(choice.finding), marked = finding ? [finding] : [];
  if (!finding || cause?.main !== choice.finding) return marked;
  for (const number of cause.findings) {
    const own = number === choice.finding ? null : shownFinding(number);
    if (own && own.cited_flow === choice.flow && !own.whole) marked.push(own);
  }
  return marked;
}

// Returns the times of the evidence.
export const evidenceBands = () => markedFindings().map(({ from, to }) => visibleSpan(from, to ?? from));

// Returns the bands of the evidence and of its cause in all panels, and a line at each cited frame, as shapes of a Plotly layout. Over the
// canvas bands are clear: the canvas has their color, below the data.
/** @param {boolean} clear */
export function evidenceShapes(clear) {
  const marked = markedFindings();
  if (!marked.length) return [];
  const style = getComputedStyle(document.documentElement), color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const common = { xref: "x", yref: "paper", y0: 0, y1: 1, layer: "below" };
  const mark = (/** @type {number} */ x) => ({ ...common, name: "cited", type: "line", x0: x, x1: x, line: { color: color("--muted"), width: 1, dash: "dot" } });
  const fillcolor = clear ? "rgba(0,0,0,0)" : color("--evidence");
  const shapes = evidenceBands().map(({ from, to }, i) => ({ ...common, name: i ? "of-cause" : "evidence", type: "rect", x0: from, x1: to, fillcolor, line: { width: 0 } }));
  const [left, right] = view.range, times = [...new Set(marked.flatMap(citedTimes))];
  return [...shapes.filter(({ x0, x1 }, i) => !i || (x1 >= left && x0 <= right)), ...times.filter((time) => time >= left && time <= right).map(mark)];
}
