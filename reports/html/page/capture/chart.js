// @ts-check
// The traffic over time that the timeline draws, its scales, and items of its legend.
import { svgShape } from "../elements.js";
import { trimmed } from "../link.js";
import { $, data, inflate } from "../plotly.js";
import { roundStep } from "../ticks.js";

const TEXT_PX = 13; // height of the text for which these sizes are made
const SIZES = { height: 96, lane: 14, gap: 6, axis: 18, gutter: 52, gutterPhone: 40, cut: 64 };
export const CHART = { ...SIZES, phone: 760, letter: 7, scale: 1 };
const FEW_FLOWS = 5;
const HIGH = 128; // height of the traffic where few flows are listed below
const TIME_STEPS = [15, 30, ...[1, 2, 5, 10, 20, 30].map((minutes) => 60 * minutes), ...[1, 2, 3, 6, 12].map((hours) => 3600 * hours)]; // seconds

// Returns the least round step of minutes or hours that is not below a time; of a shorter or longer one, as of other values.
/** @param {number} seconds */
export const timeStep = (seconds) => (seconds > 10 && TIME_STEPS.find((step) => step >= seconds)) || roundStep(seconds);

// Returns ticks from the first multiple of a round step on; at most about `most`.
/** @param {number} from @param {number} to @param {number} most @param {(step: number) => number} [stepOf] */
export function ticksWithin(from, to, most, stepOf = roundStep) {
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

// Sets the width of the drawing, px, and its other sizes by the size of its text, which a reader may enlarge. Where few flows are listed
// below, it is higher.
/** @param {number} width */
export function sizeCanvas(width) {
  const probe = svgShape("svg", { width: 0, height: 0 }), text = /** @type {SVGTextElement} */ (svgShape("text", {}, "0"));
  probe.append(text);
  $("timeline").append(probe);
  const grown = text.getBBox().height / TEXT_PX, scale = grown > 1.1 ? grown : 1, sizes = data.flows.held <= FEW_FLOWS ? { ...SIZES, height: HIGH } : SIZES;
  probe.remove();
  Object.assign(CHART, Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, size * scale])), { letter: 7 * scale, scale });
  Object.assign(canvas, { width, gutter: width < CHART.phone - 60 ? CHART.gutterPhone : CHART.gutter });
}

export async function loadTraffic() {
  if (!data.timeline) return;
  const { start, first, width, pauses, rates, lost, missed } = data.timeline, bins = new Float32Array(await inflate(rates));
  Object.assign(traffic, { first, width, from: start, to: start + bins.length * width, rates: bins });
  Object.assign(traffic, { lost: new Uint32Array(await inflate(lost)), missed: new Uint32Array(await inflate(missed)) });
  traffic.pauses = pauses.map((bounds) => bounds.map((bin) => start + bin * width)).map(([from, to]) => ({ from, to }));
}

// --- the axis: time at one scale, except for long pauses, each of which is a cut ---------------------------------

// Returns the parts of the axis in order, each with its times and its pixels.
/** @returns {AxisPart[]} */
function axisParts() {
  const cut = CHART.cut * Math.min(1, (canvas.width - canvas.gutter) / 2 / CHART.cut / (traffic.pauses.length || 1));
  const paused = traffic.pauses.reduce((sum, { from, to }) => sum + to - from, 0);
  const scale = (canvas.width - canvas.gutter - cut * traffic.pauses.length) / (traffic.to - traffic.first - paused);
  /** @type {AxisPart[]} */
  const parts = [];
  let time = traffic.first, x = canvas.gutter; // the first bin may begin long before the first packet
  /** @param {number} to @param {boolean} isCut */
  const add = (to, isCut) => {
    const wide = isCut ? cut : scale * (to - time);
    if (to > time) parts.push({ from: time, to, x, wide, isCut });
    [time, x] = [to, x + wide];
  };
  for (const { from, to } of traffic.pauses) {
    add(from, false);
    add(to, true);
  }
  add(traffic.to, false);
  return parts;
}

/** @type {{ width: number, gutter: number, parts: AxisPart[] }} */
const axis = { width: -1, gutter: -1, parts: [] };
// The parts for the width of the drawing.
export function partsOfAxis() {
  if (axis.width !== canvas.width || axis.gutter !== canvas.gutter) Object.assign(axis, { width: canvas.width, gutter: canvas.gutter, parts: axisParts() });
  return axis.parts;
}

/** @param {number} time */
export function trafficX(time) {
  const parts = partsOfAxis(), part = parts.find(({ to }) => time < to) ?? parts[parts.length - 1];
  return Math.max(canvas.gutter, part.x + ((time - part.from) / (part.to - part.from)) * part.wide);
}

/** @param {number} x */
export function trafficTime(x) {
  const parts = partsOfAxis(), within = Math.min(Math.max(x, canvas.gutter), canvas.width);
  const part = parts.find((one) => within < one.x + one.wide) ?? parts[parts.length - 1];
  return part.from + ((within - part.x) / part.wide) * (part.to - part.from);
}

// Returns the steps to draw: each bin, and each pause as one.
export function stepsOfTraffic() {
  /** @type {{ bin: number, left: number, right: number }[]} */
  const steps = [];
  for (const { from, to, x, wide, isCut } of partsOfAxis()) {
    const placeOf = (/** @type {number} */ time) => (time - traffic.from) / traffic.width, first = isCut ? Math.round(placeOf(from)) : Math.floor(placeOf(from) + 1e-6);
    const bins = isCut ? 1 : Math.round(placeOf(to)) - first, xOf = (/** @type {number} */ bin) => x + (wide * Math.max(0, (first + bin) * traffic.width + traffic.from - from)) / (to - from);
    for (let i = 0; i < bins; i++) steps.push({ bin: first + i, left: isCut ? x : xOf(i), right: isCut ? x + wide : xOf(i + 1) });
  }
  return steps;
}

/** @param {string} kind @param {string} text */
export function legendItem(kind, text) {
  const item = document.createElement("span"), mark = document.createElement("i");
  mark.className = `swatch ${kind}`;
  item.append(mark, text);
  return item;
}
