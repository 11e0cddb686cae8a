// @ts-check
// The pointer and the keys in the plots: one crosshair through all panels, snapped to the nearest packet, whose values are in the heads;
// zoom by a box or the wheel, move, and back. Nothing lies over a plot.
import { tables } from "../capture/tables.js";
import { atTop, element, elementAt } from "../elements.js";
import { WITH_MOST, chosenFlow } from "../link.js";
import { flowAt, nameOf } from "../list/flows.js";
import { firstAtOrAfter } from "../numbers.js";
import { $, data } from "../plotly.js";
import { duration, prefixed, whole } from "../units.js";
import { bandAt } from "./bands.js";
import { axisOrigin, isOverlaid } from "./drawn_flows.js";
import { isLine, isLog, isShown, nameOfSeries, panelAt, rankInLegend, seriesOf, taken, timeAt, valueAt, view, xOf } from "./figure.js";
import { flowIcon } from "./overlaid.js";
import { packetText } from "./series/points.js";

const NEAR_PX = 24; // a point so near is meant; else the packet that is nearest in time
const OVERLAID_PX = 200; // among overlaid flows, whose curves are as near as marks
const LOSS_NEAR = 16, MARK_NEAR = 1; // square px by which shapes come first
/** @type {{ at: Point | null, y: number | null }} */
export const cross = { at: null, y: null }; // the point, and the height of the pointer; null for keys

// --- places ----------------------------------------------------------------------------------------------------

// Returns the height in the stack of a value of a panel.
/** @param {number} place @param {number} value */
export function yOf(place, value) {
  const panel = view.used[place], [low, high] = view.vertical[panel.name], { plot, bottom } = view.stack.places[place];
  return bottom - ((bottom - plot) * ((isLog(panel) ? Math.log10(value) : value) - low)) / (high - low);
}

// --- the nearest packet ----------------------------------------------------------------------------------------

// Yields the points of a panel, or of all, near a pixel, as [series, source, place in it, x, y] with the nearest y of a bar.
/** @param {number} only @param {Span} pointer @param {number} reach @returns {Generator<[...Drawn, x: number, y: number]>} */
function* drawnPoints(only, pointer, reach) {
  /** @type {Span} */
  const near = [Math.max(view.range[0], timeAt(pointer[0] - reach)), Math.min(view.range[1], timeAt(pointer[0] + reach))];
  for (let place = 0; place < view.used.length; place++) {
    if (only >= 0 && place !== only) continue;
    for (const series of seriesOf(view.used[place]).filter(isShown)) {
      const source = view.all[series.key];
      if (source.bin || series.key === "least" || series.mode === "bands") continue;
      for (let i = firstAtOrAfter(source.x, near[0]); i < source.x.length && source.x[i] <= near[1]; i++) {
        const high = yOf(place, source.y[i]), low = source.y2 ? yOf(place, source.y2[i]) : high;
        yield [series, source, i, xOf(source.x[i]), Math.min(Math.max(pointer[1], low), high)];
      }
    }
  }
}

// Returns the packet at a pixel of the stack as {time, frame, capture, series, source, i}.
/** @param {number} x @param {number} y @returns {Point | null} */
export function nearest(x, y) {
  if (isOverlaid()) return nearestOverlaid(x, y) || nearestInTime(timeAt(x));
  const panel = panelAt(y), best = { value: NEAR_PX ** 2, point: /** @type {Drawn | null} */ (null) };
  if (view.used[panel]?.name === "parts") return bandAt(timeAt(x)) || nearestInTime(timeAt(x));
  const bin = view.used[panel]?.name === "rate";
  if (!bin) {
    for (const point of drawnPoints(panel, [x, y], NEAR_PX)) {
      const [series, source, i, px, py] = point, distance = (px - x) ** 2 + (py - y) ** 2;
      // Shapes are above bars and lines, and those of losses above others.
      const rank = distance - (series.mode !== "marks" ? 0 : series.color === "network" ? LOSS_NEAR : MARK_NEAR);
      if (rank < best.value) Object.assign(best, { value: rank, point: [series, source, i] });
    }
  }
  if (best.point) return atPoint(...best.point);
  return nearestInTime(timeAt(x)) || nearestBin(timeAt(x));
}

// Returns the point of the overlaid flow whose curve is nearest at the pointer's time, or of the nearest mark.
/** @param {number} x @param {number} y */
function nearestOverlaid(x, y) {
  const place = panelAt(y), time = timeAt(x), best = { distance: Infinity, point: /** @type {Drawn | null} */ (null) };
  if (place < 0) return null;
  for (const series of seriesOf(view.used[place]).filter(isLine)) {
    const source = view.all[series.key], next = firstAtOrAfter(source.x, time + 1e-10), last = source.x.length - 1;
    const distance = Math.abs(yOf(place, source.y[Math.max(0, next - 1)]) - y) + Math.max(0, xOf(source.x[0]) - x, x - xOf(source.x[last]));
    const i = next === 0 || (next <= last && !source.bin && source.x[next] - time < time - source.x[next - 1]) ? next : next - 1;
    if (distance < best.distance) Object.assign(best, { distance, point: [series, source, i] });
  }
  for (const [series, source, i, px, py] of drawnPoints(place, [x, y], OVERLAID_PX)) {
    const distance = Math.hypot(px - x, py - y);
    if (series.mode === "marks" && distance < best.distance) Object.assign(best, { distance, point: [series, source, i] });
  }
  return best.point ? atPoint(...best.point) : null;
}

// Returns a line of the tip that names a flow.
/** @param {number} flow */
function flowLine(flow) {
  return element("p", { className: "cross-flow" }, flowIcon(flow), element("b", { textContent: `flow ${flow}` }), ` ${nameOf(tables.flows.rowOf(flow))}`);
}

/** @param {Series} series @param {Points} source @param {number} i */
const atPoint = (series, source, i) => ({ time: source.x[i], frame: source.frame[i], capture: source.capture[i], series, source, i });

/** @param {number} time */
export function nearestInTime(time) {
  const p = tables.packets, rows = taken.order;
  if (!rows.length) return null;
  const next = firstAtOrAfter(rows, time, (row) => p.time[row]);
  return atPacket(next > 0 && (next === rows.length || time - p.time[rows[next - 1]] < p.time[rows[next]] - time) ? next - 1 : next);
}

// Returns what atPoint() does, for a packet by its place in the order of the flow.
/** @param {number} k */
export function atPacket(k) {
  const p = tables.packets, i = taken.order[k], tcp = flowAt(tables.flows.rowOf(chosenFlow())).protocol === "tcp";
  return { time: p.time[i], frame: p.frame[i], capture: p.capture[i], words: packetText(p, i, tcp), k };
}

/** @param {number} time */
export function nearestBin(time) {
  const key = ["throughput0", "throughput1"].find((name) => view.all[name]), source = key && view.all[key];
  if (!source) return null;
  const i = Math.max(0, firstAtOrAfter(source.x, time + 1e-12) - 1);
  return { time: source.x[i], frame: source.frame[i], capture: 0, words: source.text?.(i) };
}

// --- drawing ---------------------------------------------------------------------------------------------------

/** @param {number} time */
const clockText = (time) => `${(time - axisOrigin()).toFixed(6)} s`;
/** @type {Record<string, (value: number) => string>} */
const UNITS = { bytes: (value) => prefixed(value, "B"), "bit/s": (value) => prefixed(value, "bit/s"), ms: (value) => duration(value * 1e6), "": (value) => whole(value) };

// Returns whether a head has no value of a series that is not pointed at, or that has ended.
/** @param {Series} series @param {Panel} panel @param {Points} source @param {number} time */
function isLeftOut(series, panel, source, time) {
  if (series.flow !== undefined && panel.name !== "sequence" && time > source.x[source.x.length - 1]) return true;
  if (series.mode === "marks") return panel.unit !== "ms" || (source.row === undefined && !source.width);
  return series.mode === "bars" ? series.key !== "data" : series.key === "window";
}

// Fills the heads with the values of all series at a time.
/** @param {number} time @param {Point | undefined} point */
function showValues(time, point) {
  view.used.forEach((panel) => {
    const parts = [];
    for (const series of seriesOf(panel).filter(isShown).sort((a, b) => rankInLegend(a) - rankInLegend(b))) {
      const own = point?.series === series ? point : null, source = view.all[series.key];
      if (series.mode === "bands") {
        parts.push(bandAt(time)?.kind ?? "");
        continue;
      }
      if (series.key === "least" || (!own && isLeftOut(series, panel, source, time))) continue;
      const value = own ? (source.y2 || source.y)[own.i ?? 0] : valueAt(series, source, time);
      if (Number.isFinite(value)) parts.push(`${UNITS[panel.unit](value)} ${series.key === "data" ? "sent" : nameOfSeries(series)}`);
    }
    elementAt(`.panel-head[data-panel="${panel.name}"] .value`, $("overlay")).textContent = parts.slice(0, isOverlaid() ? WITH_MOST : 3).join(", ");
  });
}

/** @param {number} capture */
function fileText(capture) {
  return data.files.length ? ` of ${data.files[capture]}` : "";
}

// Shows the crosshair again after the panels were drawn.
export function placeCrosshair() {
  for (const old of document.querySelectorAll(".cross, .cross-time, .cross-tip")) old.remove();
  const { at } = cross;
  if (!at || !view.used.length || at.time < view.range[0] || at.time > view.range[1]) return;
  const x = xOf(at.time), overlay = $("overlay"), bottom = view.stack.height;
  view.stack.places.forEach(({ plot, bottom: end }) => {
    const line = atTop(element("div", { className: "cross" }), plot);
    Object.assign(line.style, { left: `${x}px`, height: `${end - plot}px` });
    overlay.append(line);
  });
  const time = atTop(element("div", { className: "cross-time", textContent: clockText(at.time) }), bottom + 2);
  overlay.append(time);
  const half = time.offsetWidth / 2;
  time.style.left = `${Math.min(Math.max(x, half), overlay.clientWidth - half)}px`;
  showValues(at.time, at.series && at);
  const tip = tipOf(at);
  overlay.append(tip);
  placeTip(tip, x);
}

/** @param {Point} at */
function tipOf(at) {
  const tip = element("div", { className: "cross-tip" });
  const head = typeof at.frame === "number" ? [element("b", { textContent: `frame ${at.frame}` }), fileText(at.capture)] : [element("b", { textContent: (at.frame ?? []).map((time) => clockText(time + (at.source?.shift || 0))).join(" to ") })];
  if (isOverlaid()) tip.append(flowLine(at.series?.flow ?? chosenFlow()));
  tip.append(element("p", {}, ...head));
  const words = at.words ?? at.source?.text?.(at.i ?? 0) ?? "";
  for (const line of words.split("<br>").filter(Boolean)) tip.append(element("p", { textContent: line }));
  return tip;
}

// The tip is at the side with more room, below the pointer or the top of the stack.
/** @param {HTMLElement} tip @param {number} x */
function placeTip(tip, x) {
  const room = $("overlay").clientWidth, width = tip.offsetWidth, y = cross.y ?? view.stack.places[0].plot + 12;
  tip.style.left = `${x + 14 + width <= room ? x + 14 : Math.max(0, x - 14 - width)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, view.stack.height - tip.offsetHeight - 4))}px`;
}

/** @param {Point | null} at */
export function showAt(at) {
  cross.at = at;
  if (!at) for (const value of document.querySelectorAll(".panel-head .value")) value.textContent = "";
  placeCrosshair();
}

// Sets the height of the pointer in the stack; null for keys.
/** @param {number | null} y */
export const holdHeight = (y) => { cross.y = y; };
export const forgetPoint = () => { cross.at = null; };
