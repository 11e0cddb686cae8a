// @ts-check
// The traffic over time that the timeline draws, its scales, and items of its legend.
import { trimmed } from "../link.js";
import { data, inflate } from "../plotly.js";

export const CHART = { height: 64, lane: 14, gap: 6, axis: 18, gutter: 52, gutterPhone: 40, phone: 760 };
const TICK_STEPS = [1, 2, 5];
const TIME_STEPS = [15, 30, ...[1, 2, 5, 10, 20, 30].map((minutes) => 60 * minutes), ...[1, 2, 3, 6, 12].map((hours) => 3600 * hours)]; // seconds

// Returns the least of 1, 2 and 5 times a power of ten that is not below a value.
/** @param {number} value */
function roundTick(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [...TICK_STEPS, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9)) ?? NaN;
}

// Returns the least round step of minutes or hours that is not below a time; of a shorter or longer one, as of other values.
/** @param {number} seconds */
export const timeStep = (seconds) => (seconds > 10 && TIME_STEPS.find((step) => step >= seconds)) || roundTick(seconds);

// Returns ticks from the first multiple of a round step on; at most about `most`.
/** @param {number} from @param {number} to @param {number} most @param {(step: number) => number} [stepOf] */
export function ticksWithin(from, to, most, stepOf = roundTick) {
  const step = stepOf((to - from) / most), ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) ticks.push(i * step);
  return { step, ticks };
}

/** @param {number} rate */
export function unitOf(rate) {
  const power = Math.max(0, Math.min(4, Math.floor(Math.log10(rate || 1) / 3)));
  return { scale: 1000 ** power, name: `${["", "k", "M", "G", "T"][power]}bit/s` };
}

// Seconds since the first packet as text; minutes and hours if the axis reaches a minute in steps of 10 s or more.
/** @param {number} seconds @param {number} step @param {number} last */
export function sinceStart(seconds, step, last) {
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (step < 10 || last < 60 || !seconds) return `${trimmed(seconds, Math.min(places, 9)) || 0}`;
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.round(seconds % 60)];
  if (!parts[0]) parts.shift();
  return parts.map((part, i) => (i ? String(part).padStart(2, "0") : part)).join(":");
}

export const canvas = { width: 0, gutter: 0 }; // of the drawing, px
export const traffic = /** @type {Traffic} */ ({}); // seconds since the base of the page, and counts by bin

// Sets the width of the drawing, px.
/** @param {number} width */
export function sizeCanvas(width) {
  Object.assign(canvas, { width, gutter: width < CHART.phone - 60 ? CHART.gutterPhone : CHART.gutter });
}

export async function loadTraffic() {
  if (!data.timeline) return;
  const { start, first, width, rates, lost, missed } = data.timeline, bins = new Float32Array(await inflate(rates));
  Object.assign(traffic, { first, width, from: start, to: start + bins.length * width, rates: bins });
  Object.assign(traffic, { lost: new Uint32Array(await inflate(lost)), missed: new Uint32Array(await inflate(missed)) });
}

/** @param {number} time */
export const trafficX = (time) => canvas.gutter + ((time - traffic.from) / (traffic.to - traffic.from)) * (canvas.width - canvas.gutter);
/** @param {number} x */
export const trafficTime = (x) => traffic.from + (Math.min(Math.max(x - canvas.gutter, 0), canvas.width - canvas.gutter) / (canvas.width - canvas.gutter)) * (traffic.to - traffic.from);

/** @param {string} kind @param {string} text */
export function legendItem(kind, text) {
  const item = document.createElement("span"), mark = document.createElement("i");
  mark.className = `swatch ${kind}`;
  item.append(mark, text);
  return item;
}
