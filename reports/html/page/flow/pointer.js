// @ts-check
// The pointer and the keys in the plots: zoom by a box or the wheel, move, choose a packet, and back. Nothing lies over a plot.
import { tables } from "../capture/tables.js";
import { element } from "../elements.js";
import { LEAST } from "../keys.js";
import { choice, choose, chosenFlow, continueStep, hasContinued } from "../link.js";
import { displayFilter } from "../list/flows.js";
import { firstAtOrAfter } from "../numbers.js";
import { $, data } from "../plotly.js";
import { atPacket, cross, holdHeight, nearest, nearestBin, nearestInTime, showAt } from "./crosshair.js";
import { isOverlaid } from "./drawn_flows.js";
import { area, panelAt, taken, timeAt, view, wholeView } from "./figure.js";
import { listenToTools } from "./heads.js";
import { movePicture } from "./canvas/moving.js";
import { chosenAmong } from "./overlaid.js";
import { draw } from "./view.js";

const DRAG_PX = 4; // least width of a box
const BOX_PX = 12; // least height of a box that also zooms the vertical axis
const DOUBLE_MS = 280; // a click waits so long for a second one
const WHEEL = 0.0015;
const RESTED_MS = 120; // after which a turn of the wheel has ended
const PAGE = 25; // packets
/** @type {{ press: Press | null, click: number, zooms: number, own: boolean, zoomed: boolean, wheel: number, wheeling: number, turned: number }} */
const gesture = { press: null, click: 0, zooms: 0, own: false, zoomed: false, wheel: 0, wheeling: 0, turned: 0 };

/** @param {MouseEvent} event */
function pixelOf(event) {
  const box = $("plot").getBoundingClientRect();
  return [event.clientX - box.x, event.clientY - box.y];
}

/** @param {PointerEvent} event */
function pointed(event) {
  if (!view.used?.length) return;
  const [x, y] = pixelOf(event);
  if (gesture.press) return dragged(x, y);
  holdHeight(y);
  showAt(x < area().l - 4 || x > area().l + area().w + 4 ? null : nearest(x, y));
}

/** @param {PointerEvent} event */
function pressed(event) {
  clearTimeout(gesture.click);
  wheelRested();
  gesture.zoomed = false;
  const [x, y] = pixelOf(event);
  if (event.button !== 0 || !view.used?.length || panelAt(y) < 0) return;
  gesture.press = { x, y, place: panelAt(y), pan: event.shiftKey, range: [...view.range], vertical: { ...choice.vertical } };
  $("plot").setPointerCapture(event.pointerId);
}

// Draws the box, or moves the view: once in a frame of the screen.
/** @param {number} x @param {number} y */
function dragged(x, y) {
  const { press } = gesture;
  if (!press) return;
  if (!press.pan) return drawBox(press, x, y);
  press.to = [x, y];
  if (press.waiting) return;
  press.waiting = requestAnimationFrame(() => {
    press.waiting = 0;
    if (gesture.press === press) movePicture(movedRange(press).range, draw);
  });
}

/** @param {{ range: Span, x: number, to?: number[] }} press @returns {{ range: Span }} */
function movedRange({ range, x, to = [x] }) {
  const shift = ((x - to[0]) / area().w) * (range[1] - range[0]);
  return { range: [range[0] + shift, range[1] + shift] };
}

/** @param {Press} press @param {number} x @param {number} y */
function drawBox(press, x, y) {
  const { plot, bottom } = view.stack.places[press.place], tall = Math.abs(y - press.y) >= BOX_PX;
  press.box ||= $("overlay").appendChild(element("div", { className: "zoom-box" }));
  const [left, right] = [press.x, x].sort((a, b) => a - b), [top, end] = tall ? [press.y, Math.min(Math.max(y, plot), bottom)].sort((a, b) => a - b) : [plot, bottom];
  Object.assign(press.box.style, { left: `${left}px`, width: `${right - left}px`, top: `${top}px`, height: `${end - top}px` });
}

/** @param {PointerEvent} event */
function released(event) {
  const { press } = gesture;
  if (!press) return;
  const [x, y] = pixelOf(event);
  gesture.press = null;
  press.box?.remove();
  const wide = Math.abs(x - press.x) >= DRAG_PX, tall = Math.abs(y - press.y) >= BOX_PX;
  if (press.pan) return wide ? zoom({ ...movedRange({ ...press, to: [x, y] }) }) : undefined;
  if (!wide && !tall) return;
  const { plot, bottom } = view.stack.places[press.place], name = view.used[press.place].name;
  /** @type {Span} */
  const range = wide ? [timeAt(Math.min(press.x, x)), timeAt(Math.max(press.x, x))] : view.range;
  const end = Math.min(Math.max(y, plot), bottom), valueAtY = (/** @type {number} */ at) => valueAtHeight(press.place, at);
  /** @type {Span} */
  const vertical = [valueAtY(Math.max(press.y, end)), valueAtY(Math.min(press.y, end))];
  return zoom({ range: atLeast(range), ...(tall ? { vertical: { ...choice.vertical, [name]: vertical } } : {}) });
}

/** @param {Span} range @returns {Span} */
function atLeast([from, to]) {
  const middle = (from + to) / 2, half = Math.max((to - from) / 2, LEAST / 2);
  return [middle - half, middle + half];
}

/** @param {Change} change */
function zoom(change) {
  gesture.zooms++;
  gesture.zoomed = true; // the click that ends a drag chooses nothing, however long the drawing takes
  return choose(change);
}

// A click waits for a second one, which goes back a step.
/** @param {MouseEvent} event */
function clickedAt(event) {
  clearTimeout(gesture.click);
  if (event.detail !== 1 || !view.used?.length || gesture.zoomed) return;
  const [x, y] = pixelOf(event), place = panelAt(y);
  if (place < 0) return;
  const at = nearest(x, y), bin = view.used[place].name === "rate" && !isOverlaid() ? nearestBin(timeAt(x)) : null;
  gesture.click = setTimeout(() => chosenPoint(bin || at), DOUBLE_MS);
}

// Chooses a packet, and its flow if others are overlaid on it; of a bin, it gives the filter.
/** @param {Point | null} at */
async function chosenPoint(at) {
  if (!at || at.frame === null) return;
  const { frame } = at, other = at.series?.flow ?? chosenFlow(), single = typeof frame === "number";
  /** @type {Change} */
  const change = { ...(other === chosenFlow() ? {} : chosenAmong(other)), ...(single ? { frame } : {}) };
  const done = Object.keys(change).length ? choose(change) : null;
  if (change.flow !== undefined) await done; // another flow hides the filter
  $("packet").hidden = false;
  $("packet-file").textContent = single && data.files.length ? `in ${data.files[at.capture]}` : "";
  $("packet-filter").textContent = typeof frame === "number" ? `frame.number == ${frame}` : timeFilter(frame);
  return done;
}

// Goes back a step of this page, or to the whole flow if the view was opened by a link.
function goBack() {
  clearTimeout(gesture.click);
  if (!choice.range && !Object.keys(choice.vertical).length) return;
  if (gesture.zooms > 0) {
    gesture.zooms--;
    gesture.own = true;
    history.back();
  } else wholeView();
}

// Returns the filter of the packets in a bin.
/** @param {Span} range */
function timeFilter([start, end]) {
  const base = BigInt(data.base) / 1000000000n;
  const epoch = (/** @type {number} */ seconds) => {
    const below = Math.floor(seconds + 5e-10), rest = Math.max(0, seconds - below).toFixed(9).slice(1);
    return `${base + BigInt(below)}${rest}`;
  };
  return `${displayFilter(tables.flows.rowOf(chosenFlow()))} && frame.time_epoch >= ${epoch(start)} && frame.time_epoch < ${epoch(end)}`;
}

/** @param {WheelEvent} event */
function wheeled(event) {
  if (!event.ctrlKey || !view.used?.length) return;
  event.preventDefault();
  continueStep(); // consecutive steps are one in the history
  gesture.wheel += event.deltaY;
  const at = timeAt(pixelOf(event)[0]);
  gesture.wheeling ||= requestAnimationFrame(() => {
    const factor = Math.exp(gesture.wheel * WHEEL), [from, to] = view.range;
    gesture.wheel = gesture.wheeling = 0;
    movePicture(atLeast([at - (at - from) * factor, at + (to - at) * factor]), draw);
    clearTimeout(gesture.turned);
    gesture.turned = setTimeout(wheelRested, RESTED_MS);
  });
}

// The range to which the wheel brought the view becomes the choice.
function wheelRested() {
  if (!gesture.turned) return;
  clearTimeout(gesture.turned);
  gesture.turned = 0;
  if (!hasContinued()) gesture.zooms++;
  return choose({ range: view.range });
}

/** @type {Record<string, number>} */
const ZOOMS = { "+": 0.5, "=": 0.5, "-": 2 };
/** @type {Record<string, number>} */
const MOVES = { ArrowRight: 1, ArrowLeft: -1, PageDown: PAGE, PageUp: -PAGE };

/** @param {number} shrink @param {number} [shift] */
function scaled(shrink, shift = 0) {
  const [from, to] = view.range, middle = (from + to) / 2 + shift * (to - from), half = Math.max(((to - from) / 2) * shrink, LEAST / 2);
  return choose({ range: [middle - half, middle + half] });
}

// Moves the crosshair by packets; the view follows.
/** @param {number} count */
function stepPackets(count) {
  const rows = taken.order;
  if (!rows.length) return;
  const before = cross.at?.k ?? (cross.at ? nearestInTime(cross.at.time)?.k ?? 0 : count > 0 ? firstAtOrAfter(rows, view.range[0], (row) => tables.packets.time[row]) - 1 : rows.length);
  const at = atPacket(Math.min(rows.length - 1, Math.max(0, before + count)));
  holdHeight(null);
  showAt(at);
  const [from, to] = view.range;
  if (at.time < from || at.time > to) return choose({ range: [at.time - (to - from) / 2, at.time + (to - from) / 2] });
}

/** @param {KeyboardEvent} event */
function keyed(event) {
  if (event.target !== $("plot") || event.ctrlKey || event.altKey || event.metaKey) return;
  const { key } = event;
  if (event.shiftKey && MOVES[key]) scaled(1, 0.25 * Math.sign(MOVES[key]));
  else if (MOVES[key]) stepPackets(MOVES[key]);
  else if (ZOOMS[key]) scaled(ZOOMS[key]);
  else if (key === "0") wholeView();
  else if (key === "Enter" && cross.at) chosenPoint(cross.at);
  else if (key === "Escape") showAt(null);
  else return;
  event.preventDefault();
}

export function listenToPlot() {
  const plot = $("plot");
  plot.addEventListener("pointermove", pointed);
  plot.addEventListener("pointerleave", () => !gesture.press && showAt(null));
  plot.addEventListener("pointerdown", pressed);
  plot.addEventListener("pointerup", released);
  plot.addEventListener("click", clickedAt);
  plot.addEventListener("dblclick", goBack);
  plot.addEventListener("wheel", wheeled, { passive: false });
  plot.addEventListener("keydown", continueStep, true);
  plot.addEventListener("keydown", keyed);
  addEventListener("popstate", () => {
    clearTimeout(gesture.click); // a click that still waits belongs to the view that was left
    if (!gesture.own) gesture.zooms = 0;
    gesture.own = false;
  });
  listenToTools();
}

/** @param {number} place @param {number} y */
function valueAtHeight(place, y) {
  const [low, high] = view.vertical[view.used[place].name], { plot, bottom } = view.stack.places[place];
  return low + ((high - low) * (bottom - y)) / (bottom - plot);
}
