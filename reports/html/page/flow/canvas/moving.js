// @ts-check
// Moves the picture at once while the reader pans or turns the wheel, by a transform of its layers; the exact one follows when there is
// time, so that input never waits for it.
import { $ } from "../../plotly.js";
import { shownCanvas } from "./canvas.js";
import { area, setView, view } from "../figure.js";

const INSIDE = ".scatterlayer"; // of Plotly's layers those whose origin is that of the panel
const OUTSIDE = ".gridlayer > .x, .shapelayer, .xaxislayer-below, .xaxislayer-above";
const WAIT_LEAST = 60; // ms between a movement and the exact picture
const shift = { drawn: /** @type {Span | null} */ (null), timer: 0, cost: 0, busy: false };

// Returns what brings the picture of a range into another one: x becomes scale * x + offset.
/** @param {Span} drawn @param {Span} range @param {number} width */
export function transformOf([from, to], [left, right], width) {
  const scale = (to - from) / (right - left);
  return { scale, offset: ((from - left) / (right - left)) * width };
}

/** @returns {Iterable<[HTMLElement, number]>} */
function* layers() {
  const canvas = shownCanvas(), plot = $("plot");
  if (canvas) yield [canvas, 0];
  for (const layer of plot.querySelectorAll(INSIDE)) yield [layer, 0];
  for (const layer of plot.querySelectorAll(OUTSIDE)) yield [layer, area().l];
}

// Shows a range by moving what was drawn. The exact picture follows after a while that grows with its cost.
/** @param {Span} range @param {() => Promise<unknown>} draw */
export function movePicture(range, draw) {
  const drawn = (shift.drawn ??= view.range), { scale, offset } = transformOf(drawn, range, area().w);
  setView({ range });
  for (const [layer, left] of layers()) layer.style.transform = `matrix(${scale}, 0, 0, 1, ${left * (1 - scale) + offset}, 0)`;
  if (!shift.timer && !shift.busy) shift.timer = setTimeout(drawExact, Math.max(WAIT_LEAST, shift.cost), draw);
}

/** @param {() => Promise<unknown>} draw */
async function drawExact(draw) {
  const begin = performance.now();
  shift.timer = 0;
  shift.busy = true;
  await draw();
  shift.busy = false;
  shift.cost = performance.now() - begin;
}

// Puts the layers where they belong, before they are drawn again.
export function settle() {
  clearTimeout(shift.timer);
  shift.timer = 0;
  if (!shift.drawn) return;
  shift.drawn = null;
  for (const [layer] of layers()) layer.style.transform = "";
}
