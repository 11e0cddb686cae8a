// @ts-check
// Where the time of flows went as bands, a lane of the flow's panels. A part is a color of page.css, of
// which some fill half of the height.
import { element } from "../elements.js";
import { eachValue, unplaned } from "../numbers.js";
import { data } from "../plotly.js";
import { duration } from "../units.js";
import { axisKey, view } from "./figure.js";

const SHAPES_MOST = 200; // bands that Plotly draws without a noticeable delay
const BAND_SHARE = 0.005; // of the view, from which on the legend names a part
/** @type {Map<number, SpanPlace>} */
const spansByFlow = new Map(); // places of packed spans
/** @type {Record<string, string> | null} */
let colorsOfParts = null;

// Adds the places of spans of further flows.
/** @param {Map<number, SpanPlace>} places */
export function holdSpans(places) {
  for (const [flow, place] of places) spansByFlow.set(flow, place);
}

// Returns the places of packed spans by their flow: the columns, and where those of the flow begin (reports/html/time_bands.py).
/** @param {PackedSpans | null} packed */
export async function loadSpans(packed) {
  /** @type {Map<number, SpanPlace>} */
  const places = new Map();
  if (!packed) return places;
  const { flows, counts, parts, gaps, lengths } = await eachValue(packed, unplaned), columns = { parts, gaps, lengths };
  let at = 0;
  for (let k = 0; k < flows.length; k++) {
    places.set(flows[k], { columns, at, count: counts[k] });
    at += counts[k];
  }
  return places;
}

// Returns the spans of a flow in order of time; they are made when they are first shown.
/** @param {number} flow */
export function spansOf(flow) {
  const place = spansByFlow.get(flow);
  if (!place) return [];
  const { parts, gaps, lengths } = place.columns;
  let time = 0;
  place.spans ||= Array.from({ length: place.count }, (_, k) => {
    const at = place.at + k, from = time + gaps[at];
    time = from + lengths[at];
    return { band: data.bands[parts[at] & 127], merged: parts[at] > 127, from: from / 1e6, to: time / 1e6 };
  });
  return place.spans;
}

/** @param {BandSpan[]} spans @param {number} time */
const spanAt = (spans, time) => spans.find(({ from, to }) => from <= time && time < to);

/** @param {BandSpan} span */
const spanWords = ({ band, merged, from, to }) => `${band.words} for ${duration((to - from) * 1e9)}${merged ? ", put together from times nearby" : ""}`;

// Returns seconds by part within a range, the longest first.
/** @param {BandSpan[]} spans @param {Span} range */
function bandSums(spans, [low, high]) {
  const sums = new Map();
  for (const { band, from, to } of spans) sums.set(band, (sums.get(band) || 0) + Math.max(0, Math.min(to, high) - Math.max(from, low)));
  return [...sums].filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]);
}

// --- colors ---------------------------------------------------------------------------------------------------

// Returns the color of each part, read together, because each reading after a change computes the style of the page again.
function bandColors() {
  const probes = data.bands.map(({ style }) => element("i", { className: `band ${style}` })), place = element("span", {}, ...probes);
  document.body.append(place);
  const colors = Object.fromEntries(data.bands.map(({ part }, i) => [part, getComputedStyle(probes[i]).backgroundColor]));
  place.remove();
  return colors;
}

// Returns the color of a part, and the share of the height that it fills: from the bottom [0, 1].
/** @param {Band} band */
function bandLook({ part, style }) {
  colorsOfParts ||= bandColors();
  return { color: colorsOfParts[part], height: style.endsWith(" low") ? [0, 0.5] : style.endsWith(" high") ? [0.5, 1] : [0, 1] };
}

// --- the lane of the flow's panels -----------------------------------------------------------------------------

/** @param {number} flow @returns {PointsByKey} */
export function bandData(flow) {
  const spans = spansOf(flow);
  if (!spans.length) return {};
  return { parts: { x: spans.map(({ from }) => from), y: spans.map(() => 0), frame: spans.map(() => /** @type {null} */ (null)), capture: spans.map(() => 0), spans } };
}

// Returns the bands in view with their colors and heights.
/** @returns {DrawnBand[]} */
function bandsInView() {
  const [low, high] = view.range, place = view.used.findIndex(({ name }) => name === "parts");
  if (place < 0) return [];
  return (view.all.parts.spans ?? []).filter(({ from, to }) => to > low && from < high).map(({ band, from, to }) => {
    const { color, height: [y0, y1] } = bandLook(band);
    return { part: band.part, place, x0: Math.max(from, low), x1: Math.min(to, high), y0, y1, color };
  });
}

// Returns the bands for the canvas, if they are too many for Plotly.
export function manyBands() {
  const bands = bandsInView();
  return bands.length > SHAPES_MOST ? bands : [];
}

// Returns the bands as shapes of a Plotly layout, so that a saved picture has them.
export function bandShapes() {
  const bands = bandsInView();
  if (bands.length > SHAPES_MOST) return [];
  return bands.map(({ part, place, x0, x1, y0, y1, color }) => ({ name: `part-${part}`, type: "rect", xref: "x", yref: axisKey(place), x0, x1, y0, y1, fillcolor: color, line: { width: 0 }, layer: "above" }));
}

/** @param {BandSpan[]} spans @param {Span} range */
export function bandLegend(spans, range) {
  const legend = element("span", { className: "panel-legend band-legend" }), sums = bandSums(spans, range), all = sums.reduce((sum, [, one]) => sum + one, 0);
  for (const [band, sum] of sums) {
    if (sum < BAND_SHARE * all) continue;
    legend.append(element("span", {}, element("i", { className: `band ${band.style}` }), `${band.words} ${Math.round((100 * sum) / all)}%`));
  }
  return legend;
}

// Returns what the crosshair shows of the lane at a time.
/** @param {number} time @returns {Point | null} */
export function bandAt(time) {
  const span = view.all.parts?.spans && spanAt(view.all.parts.spans, time);
  return span ? { time, frame: [span.from, span.to], capture: 0, words: spanWords(span), kind: span.band.words } : null;
}
