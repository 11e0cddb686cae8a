// @ts-check
// The plots of the selected flow: panels over one time axis, which fit the points in view. Plotly draws the axes and series of few points,
// canvas.js the others.
import { evidenceBands } from "../capture/evidence.js";
import { tables } from "../capture/tables.js";
import { choice, chosenFlow } from "../link.js";
import { flowAt } from "../list/flows.js";
import { $, colors } from "../plotly.js";
import { layoutFor, makeRoomForWords, stacked, verticalRange } from "./axes.js";
import { drawCanvas, isDense, placesIn } from "./canvas/canvas.js";
import { manyBands } from "./bands.js";
import { forgetPoint, placeCrosshair } from "./crosshair.js";
import { flowColors, isOverlaid, isRelative, shownDirection } from "./drawn_flows.js";
import { axisKey, hasMarks, isLine, isOpen, isShown, panelsWithData, seriesOf, setTaken, setView, taken, view } from "./figure.js";
import { drawHeads, placeHeads } from "./heads.js";
import { placeMark } from "./mark.js";
import { settle } from "./canvas/moving.js";
import { MARKS_OF_LINE, overlaidRates, takeOverlaid } from "./series/overlaid_series.js";
import { flowData } from "./series/panels.js";
import { columnsOf } from "./series/columns.js";
import { merged } from "./series/points.js";
import { rateData } from "./series/rates.js";

const DRAWN_MOST = 6000; // points of all series, which Plotly draws without a noticeable delay

// --- points in view -------------------------------------------------------------------------------------------

/** @param {Series} series */
const plotlyMode = (series) => (series.mode === "marks" ? "markers" : hasMarks(series) ? "lines+markers" : "lines");

/** @param {Series} series @param {string} color */
function markerOf(series, color) {
  const width = /-(thin|ew|ns)/.test(series.symbol) ? 2 : /-open/.test(series.symbol) ? 1.5 : 0;
  return { color, symbol: series.symbol, size: series.size, maxdisplayed: hasMarks(series) ? MARKS_OF_LINE : 0, line: { color, width } };
}

// Returns the points in view that Plotly draws; a line must include the next one on either side. Of a line of the canvas it draws the marks.
/** @param {Series} series @param {Points} source @param {boolean} dense */
function drawnRows(series, source, dense) {
  const [start, end] = placesIn(source, view.range), line = isLine(series);
  const first = line ? Math.max(0, start - 1) : start, last = line ? Math.min(source.x.length, end + 1) : end;
  const step = dense ? Math.ceil((last - first) / MARKS_OF_LINE) : 1;
  if (series.mode === "bands" || (dense && !hasMarks(series))) return [];
  return Array.from({ length: Math.ceil((last - first) / step) }, (_, k) => first + k * step);
}

// Returns Plotly's trace of a series with the points in view.
/** @param {Series} series @param {Points} source @param {boolean} dense @param {string} axis @param {Colors} own */
function traceOf(series, source, dense, axis, own) {
  const rows = drawnRows(series, source, dense), bars = series.mode === "bars";
  /** @template T @param {(i: number) => T} value @returns {(T | null)[]} */
  const each = (value) => (bars ? rows.flatMap((i) => [value(i), value(i), null]) : rows.map(value));
  const trace = {
    type: "scatter", meta: series.key, name: series.name, mode: dense ? "markers" : plotlyMode(series), yaxis: axis, connectgaps: false, showlegend: false,
    x: each((i) => source.x[i]), y: bars ? rows.flatMap((i) => [source.y[i], source.y2?.[i] ?? null, null]) : rows.map((i) => source.y[i]),
    customdata: each((i) => source.frame?.[i] ?? null), cliponaxis: series.mode !== "marks" && !hasMarks(series), visible: isShown(series) ? true : "legendonly", opacity: series.key === "sack" ? 0.5 : 1,
    line: { color: own[series.color], width: bars ? series.size : 1.5, dash: series.dash, shape: series.mode === "steps" ? "hv" : "linear", simplify: !bars }, // a simplified line leaves out bars of less than a pixel
    marker: markerOf(series, own[series.color]),
  };
  if (!rows.length) Object.assign(trace, { x: [view.range[0]], y: [null], customdata: [null] });
  if (series.fill && !dense) Object.assign(trace, { fill: "tozeroy", fillcolor: `${own[series.color]}22` });
  return trace;
}

// --- ranges -----------------------------------------------------------------------------------------------------

/** @param {Record<string, { x: ArrayLike<number>, width?: number }>} full @returns {Span} */
function extent(full) {
  let from = Infinity, to = -Infinity;
  for (const { x, width = 0 } of Object.values(full)) {
    if (!x.length) continue;
    from = Math.min(from, x[0]);
    to = Math.max(to, x[x.length - 1] + width);
  }
  if (!(to >= from)) return [0, 1];
  const margin = (to - from) * 0.01 || 0.001;
  return [from - margin, to + margin];
}

// --- drawing ---------------------------------------------------------------------------------------------------

/** @param {Points} source */
function countIn(source) {
  const [start, end] = placesIn(source, view.range);
  return end - start;
}

export async function draw() {
  const f = flowAt(tables.flows.rowOf(chosenFlow())), own = { ...colors(), ...flowColors() }, rates = isOverlaid() ? overlaidRates(view.range) : rateData(f, view.range);
  setView({ all: { ...taken.full, ...rates } }); // of rates only the view
  const used = panelsWithData().filter(isOpen);
  setView({ used, vertical: Object.fromEntries(used.map((panel) => [panel.name, verticalRange(panel)])) });
  for (const panel of used) makeRoomForWords(panel, view.vertical[panel.name]);
  setView({ stack: stacked(used, drawHeads(f, used, own)) });
  const made = used.flatMap((panel, i) => seriesOf(panel).map((series) => ({ series, source: view.all[series.key], place: i })));
  const points = made.reduce((sum, { source }) => sum + (source.width ? 0 : countIn(source)), 0);
  const dense = made.filter(({ series, source }) => source.width || (points > DRAWN_MOST && isDense(series, source)));
  const traces = made.map((one) => traceOf(one.series, one.source, dense.includes(one), axisKey(one.place), own));
  setView({ dense: dense.length > 0 });
  const layout = layoutFor(used, own);
  $("plot").hidden = !used.length;
  document.body.dataset.points = String(traces.reduce((n, trace) => n + trace.x.length, 0));
  drawCanvas(dense, manyBands(), evidenceBands(), layout, own);
  settle();
  // All must be done before the first await, because a browser that prints does not wait.
  placeHeads(f, used);
  placeCrosshair();
  placeMark();
  if (used.length) await Plotly.react($("plot"), traces, layout, { staticPlot: true, displayModeBar: false });
}

// Computes the series of a flow.
/** @param {Flow} f */
function takeFlow(f) {
  const p = tables.packets, place = columnsOf(f) ? undefined : p.places.get(f.flow), rows = place === undefined ? [new Uint32Array(), new Uint32Array()] : [p.rows(2 * place), p.rows(2 * place + 1)];
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
  const wanted = [choice.flow, shownDirection(f), isRelative(), Boolean(columnsOf(f)), ...choice.with].join();
  if (takenFor !== wanted) takeFlow(f);
  takenFor = wanted;
}
