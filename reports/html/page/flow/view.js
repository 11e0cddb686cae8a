// @ts-check
// The plots of the selected flow: panels over one time axis. Points in view are thinned, and axes fit them.
import { tables } from "../capture/tables.js";
import { choice, chosenFlow } from "../link.js";
import { flowAt } from "../list/flows.js";
import { firstAtOrAfter } from "../numbers.js";
import { $, colors } from "../plotly.js";
import { layoutFor, makeRoomForWords, stacked, verticalRange } from "./axes.js";
import { forgetPoint, placeCrosshair } from "./crosshair.js";
import { flowColors, isOverlaid, isRelative, shownDirection } from "./drawn_flows.js";
import { axisKey, hasMarks, isLine, isOpen, isShown, panelsWithData, seriesOf, setTaken, setView, taken, view } from "./figure.js";
import { drawHeads, placeHeads } from "./heads.js";
import { MARKS_OF_LINE, overlaidRates, takeOverlaid } from "./series/overlaid_series.js";
import { flowData } from "./series/panels.js";
import { merged } from "./series/points.js";
import { rateData } from "./series/rates.js";

const DRAWN_MOST = 6000; // points of all series, which Plotly draws without a noticeable delay
const DRAWN_LEAST = 400; // points of each series, even if there are many
const FINER = 3; // lines of overlaid flows, which have few marks, take so many times the points

// --- points in view -------------------------------------------------------------------------------------------

// Returns the rows of [start, end) to draw: all if there are at most `most`, else the first, last, least and greatest of each part.
/** @param {Points} source @param {number} start @param {number} end @param {number} most */
function thinned({ y }, start, end, most) {
  const chosen = [];
  if (end - start <= most) {
    for (let i = start; i < end; i++) chosen.push(i);
    return chosen;
  }
  const parts = most >> 2;
  for (let part = 0; part < parts; part++) {
    const a = start + Math.floor(((end - start) * part) / parts), b = start + Math.floor(((end - start) * (part + 1)) / parts);
    let least = a, greatest = a;
    for (let i = a; i < b; i++) {
      if (y[i] < y[least]) least = i;
      if (y[i] > y[greatest]) greatest = i;
    }
    chosen.push(...[...new Set([a, least, greatest, b - 1])].sort((i, j) => i - j));
  }
  return chosen;
}

/** @param {Series} series */
const plotlyMode = (series) => (series.mode === "marks" ? "markers" : hasMarks(series) ? "lines+markers" : "lines");

/** @param {Series} series @param {string} color */
function markerOf(series, color) {
  const width = /-(thin|ew|ns)/.test(series.symbol) ? 2 : /-open/.test(series.symbol) ? 1.5 : 0;
  return { color, symbol: series.symbol, size: series.size, maxdisplayed: hasMarks(series) ? MARKS_OF_LINE : 0, line: { color, width } };
}

// Returns Plotly's trace of a series with the points in view. A line must include the next point on either side.
/** @param {Series} series @param {Points} source @param {Span} range @param {number} most @param {string} axis @param {Colors} own */
function traceOf(series, source, [from, to], most, axis, own) {
  const start = firstAtOrAfter(source.x, from), end = Math.max(start, firstAtOrAfter(source.x, to)), line = isLine(series);
  const rows = thinned(source, line ? Math.max(0, start - 1) : start, line ? Math.min(source.x.length, end + 1) : end, source.bin ? Infinity : hasMarks(series) ? FINER * most : most);
  const bars = series.mode === "bars";
  /** @template T @param {(i: number) => T} value @returns {(T | null)[]} */
  const each = (value) => (bars ? rows.flatMap((i) => [value(i), value(i), null]) : rows.map(value));
  const trace = {
    type: "scatter", meta: series.key, name: series.name, mode: plotlyMode(series), yaxis: axis, connectgaps: false, showlegend: false,
    x: each((i) => source.x[i]), y: bars ? rows.flatMap((i) => [source.y[i], source.y2?.[i] ?? null, null]) : rows.map((i) => source.y[i]),
    customdata: each((i) => source.frame?.[i] ?? null), place: rows, cliponaxis: series.mode !== "marks" && !hasMarks(series), visible: isShown(series) ? true : "legendonly", opacity: series.key === "sack" ? 0.5 : 1,
    line: { color: own[series.color], width: bars ? series.size : 1.5, dash: series.dash, shape: series.mode === "steps" ? "hv" : "linear", simplify: !bars }, // a simplified line leaves out bars of less than a pixel
    marker: markerOf(series, own[series.color]),
  };
  if (!rows.length || series.mode === "bands") Object.assign(trace, { x: [from], y: [null], customdata: [null], place: [] });
  if (series.fill) Object.assign(trace, { fill: "tozeroy", fillcolor: `${own[series.color]}22` });
  if (rows.length < end - start) setView({ thinned: true });
  return trace;
}

// --- ranges -----------------------------------------------------------------------------------------------------

/** @param {Record<string, { x: ArrayLike<number> }>} full @returns {Span} */
function extent(full) {
  let from = Infinity, to = -Infinity;
  for (const { x } of Object.values(full)) {
    if (!x.length) continue;
    from = Math.min(from, x[0]);
    to = Math.max(to, x[x.length - 1]);
  }
  if (!(to >= from)) return [0, 1];
  const margin = (to - from) * 0.01 || 0.001;
  return [from - margin, to + margin];
}

// --- drawing ---------------------------------------------------------------------------------------------------

export async function draw() {
  const f = flowAt(tables.flows.rowOf(chosenFlow())), own = { ...colors(), ...flowColors() }, rates = isOverlaid() ? overlaidRates(view.range) : rateData(f, view.range);
  setView({ all: { ...taken.full, ...rates }, thinned: false }); // of rates only the view
  const used = panelsWithData().filter(isOpen);
  setView({ used, vertical: Object.fromEntries(used.map((panel) => [panel.name, verticalRange(panel)])) });
  for (const panel of used) makeRoomForWords(panel, view.vertical[panel.name]);
  setView({ stack: stacked(used, drawHeads(f, used, own)) });
  const made = used.flatMap((panel, i) => seriesOf(panel).map((series) => ({ series, i })));
  const inView = (/** @type {Points} */ { x }) => firstAtOrAfter(x, view.range[1]) - firstAtOrAfter(x, view.range[0]), points = made.reduce((sum, { series }) => sum + inView(view.all[series.key]), 0);
  const most = points <= DRAWN_MOST ? Infinity : Math.max(DRAWN_LEAST, Math.floor(DRAWN_MOST / made.length));
  const traces = made.map(({ series, i }) => traceOf(series, view.all[series.key], view.range, most, axisKey(i), own));
  const layout = layoutFor(used, own);
  $("plot").hidden = !used.length;
  document.body.dataset.points = String(traces.reduce((n, trace) => n + trace.place.length, 0));
  // All must be done before the first await, because a browser that prints does not wait.
  placeHeads(f, used);
  placeCrosshair();
  if (used.length) await Plotly.react($("plot"), traces, layout, { staticPlot: true, displayModeBar: false });
}

// Computes the series of a flow.
/** @param {Flow} f */
function takeFlow(f) {
  const p = tables.packets, place = p.places.get(f.flow), rows = place === undefined ? [new Uint32Array(), new Uint32Array()] : [p.rows(2 * place), p.rows(2 * place + 1)];
  const order = merged(rows, p.time);
  /** @type {Record<string, { x: number[] }>} */
  const ends = {};
  setTaken({ order, overlaid: null });
  if (isOverlaid()) Object.assign(ends, takeOverlaid());
  else {
    setTaken({ full: flowData(f) });
    if (order.length) ends.packets = { x: Array.from([0, order.length - 1], (k) => p.time[order[k]]) };
  }
  const drawable = (isOverlaid() || f.packets > 1) && (Object.keys(ends).length > 0 || Object.keys(taken.full).length > 0);
  setTaken({ drawable, extent: extent({ ...taken.full, ...ends }) });
  forgetPoint();
}

/** @type {string | null} */
let takenFor = null; // the choice of which the series were taken
export const forgetSeries = () => { takenFor = null; };

// Takes the series of the chosen flow, unless they are those in view.
/** @param {Flow} f */
export function takeChosen(f) {
  const wanted = [choice.flow, shownDirection(f), isRelative(), ...choice.with].join();
  if (takenFor !== wanted) takeFlow(f);
  takenFor = wanted;
}
