// @ts-check
// The canvas below Plotly's panels: series that have too many points in view for Plotly, drawn without leaving out any of their values.
import { element } from "../../elements.js";
import { firstAtOrAfter } from "../../numbers.js";
import { $ } from "../../plotly.js";
import { onPaper } from "../../print.js";
import { area, axisName, isLine, isLog, isShown, view, xOf } from "../figure.js";
import { Raster, inked } from "./raster.js";

const DENSE_FROM = 600; // points in view
const SHARPEST = 2; // pixels of the canvas for a pixel of the page
const PAPER_SHARPNESS = 2;
const DOT_PX = 2, LINE_PX = 1.5;
const SACK_OPACITY = 128;
const held = { canvas: /** @type {HTMLCanvasElement | null} */ (null) };

// Returns the places of the points in a range, with a column of time of which it has a part.
/** @param {Points} source @param {Span} range @returns {Span} */
export function placesIn({ x, width = 0 }, [from, to]) {
  const next = firstAtOrAfter(x, from), start = next && x[next - 1] + width > from ? next - 1 : next;
  return [start, Math.max(start, firstAtOrAfter(x, to))];
}

// Returns whether the canvas draws a series of a figure that has too many points.
/** @param {Series} series @param {Points} source */
export function isDense(series, source) {
  const [start, end] = placesIn(source, view.range);
  return series.mode !== "bands" && !source.bin && end - start > DENSE_FROM;
}

// Draws series, bands and the bands of the evidence in the view.
/** @param {Dense[]} dense @param {DrawnBand[]} bands @param {{ from: number, to: number }[]} evidence @param {Layout} layout @param {Colors} own */
export function drawCanvas(dense, bands, evidence, layout, own) {
  const seen = dense.filter(({ series }) => isShown(series)), used = seen.length + bands.length > 0;
  if (!used && !held.canvas) return;
  const canvas = (held.canvas ??= newCanvas()), sharp = onPaper() ? PAPER_SHARPNESS : Math.min(SHARPEST, window.devicePixelRatio || 1);
  $("dense").hidden = !used;
  if (!used) return;
  const width = Math.max(1, Math.round(area().w * sharp)), height = Math.max(1, Math.round(view.stack.height * sharp)), raster = new Raster(width, height);
  for (const { series, source, place } of seen) drawSeries(raster, series, source, place, sharp, own);
  layOverPanels(canvas, width, height);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.putImageData(new ImageData(new Uint8ClampedArray(raster.pixels.buffer), width, height), 0, 0);
  context.globalCompositeOperation = "destination-over"; // below what is there
  for (const { place, x0, x1, y0, y1, color } of bands) {
    const { plot, bottom } = view.stack.places[place], tall = bottom - plot;
    fill(context, color, x0, x1, bottom - y1 * tall, bottom - y0 * tall, sharp);
  }
  if (dense.length) drawGrid(context, layout, sharp, own.grid);
  if (dense.length) for (const { from, to } of evidence) fill(context, own.evidence, from, to, 0, view.stack.height, sharp);
}

// Gives the canvas its size, and the place of the panels.
/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function layOverPanels(canvas, width, height) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  for (const style of [canvas.style, $("dense").style]) Object.assign(style, { width: `${area().w}px`, height: `${view.stack.height}px` });
  $("dense").style.left = `${area().l}px`;
}

/** @param {CanvasRenderingContext2D} context @param {string} color @param {number} from @param {number} to @param {number} top @param {number} bottom @param {number} sharp */
function fill(context, color, from, to, top, bottom, sharp) {
  const left = xOf(from) - area().l, right = xOf(to) - area().l;
  context.fillStyle = color;
  context.fillRect(left * sharp, top * sharp, (right - left) * sharp, (bottom - top) * sharp);
}

// Draws the grid, because that of Plotly would be over the data.
/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {number} sharp @param {string} color */
function drawGrid(context, layout, sharp, color) {
  context.fillStyle = color;
  view.stack.places.forEach(({ plot, bottom }, place) => {
    for (const time of layout.xaxis.tickvals) context.fillRect(Math.round((xOf(time) - area().l - 0.5) * sharp), plot * sharp, sharp, (bottom - plot) * sharp);
    const { tickvals, range: [low, high], type } = layout[axisName(place)];
    for (const value of tickvals) {
      const at = bottom - (bottom - plot) * (((type === "log" ? Math.log10(value) : value) - low) / (high - low));
      context.fillRect(0, Math.round((at - 0.5) * sharp), area().w * sharp, sharp);
    }
  });
}

function newCanvas() {
  const canvas = element("canvas", {}), place = element("div", { id: "dense" }, canvas);
  place.setAttribute("aria-hidden", "true");
  $("stack").prepend(place);
  return canvas;
}

/** @param {Series} series */
const isBar = (series) => series.mode === "bars";

/** @param {Raster} raster @param {Series} series @param {Points} source @param {number} place @param {number} sharp @param {Colors} own */
function drawSeries(raster, series, source, place, sharp, own) {
  const panel = view.used[place], { plot, bottom } = view.stack.places[place], [start, end] = placesIn(source, view.range);
  raster.choosePanel({ top: Math.round(plot * sharp), bottom: Math.round(bottom * sharp), range: view.range, vertical: view.vertical[panel.name], log: isLog(panel) });
  const color = inked(own[series.color], series.key === "sack" ? SACK_OPACITY : 255);
  if (source.width && !isLine(series)) raster.blocks(source, start, end, Math.round((isBar(series) ? 1 : DOT_PX) * sharp), color);
  else if (isBar(series)) raster.bars(source, start, end, color);
  else if (isLine(series)) raster.line(source, { straight: series.mode === "lines", fill: series.fill, dash: series.dash, thick: Math.round(LINE_PX * sharp), color });
  else raster.marks(source, start, end, Math.round(DOT_PX * sharp), color);
}

// Returns the canvas if it has something in view.
export const shownCanvas = () => (held.canvas && !$("dense").hidden ? held.canvas : null);
