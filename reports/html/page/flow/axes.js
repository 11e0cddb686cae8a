// @ts-check
// The axes of the panels: their ranges, which fit the points in view, their ticks, and the layout.
import { evidenceShapes } from "../capture/evidence.js";
import { choice } from "../link.js";
import { firstAtOrAfter } from "../numbers.js";
import { $ } from "../plotly.js";
import { PAPER, onPaper } from "../print.js";
import { duration, prefixed, whole } from "../units.js";
import { bandShapes } from "./bands.js";
import { axisOrigin } from "./drawn_flows.js";
import { axisName, heightOfPanel, isLine, isLog, isShown, seriesOf, setView, view } from "./figure.js";
import { roundStep } from "./series/rates.js";

const MARGIN = 0.06; // share of an axis beyond the points in view
const LEFT = 52, RIGHT = 8, AXIS = 24, GAP = 10; // px
const NARROW = 640; // px
const WORDS_PX = 18; // height of the words at the upper edge of a panel
const MARK_PX = 10; // room between the last points and an edge, so that no mark is cut
const WINDOWS = { window: 0.35, room: 1.5 }; // share of the range by which an axis grows to show a window's line
const FAR = 6, USUAL = 0.95; // an axis from zero leaves out points that are so many times above most

// Returns the values of a panel's series in view; lines count where they cross its edges.
/** @param {Panel} panel @param {Span} range */
function valuesIn(panel, [from, to]) {
  const shown = seriesOf(panel).filter(isShown);
  /** @type {Record<"values" | "windows", number[]>} */
  const { values, windows } = { values: [], windows: [] };
  /** @param {Series} series */
  const ends = ({ key }) => [from, to].map((time) => firstAtOrAfter(view.all[key].x, time));
  const within = shown.filter((series) => ends(series)[0] < ends(series)[1]);
  for (const series of within.length ? within : shown) {
    const source = view.all[series.key], own = series.key in WINDOWS ? windows : values, [start, end] = ends(series);
    /** @param {number | null} value */
    const add = (value) => { if (value !== null && !Number.isNaN(value)) own.push(value); };
    for (const column of [source.y, source.y2]) for (let i = start; column && i < end; i++) add(column[i]);
    if (isLine(series) && start > 0) add(source.y[start - 1]);
    if (series.mode === "lines" && end < source.x.length) add(source.y[end]);
  }
  return [Float64Array.from(values).sort(), Float64Array.from(windows).sort()];
}

// Returns the room beyond a range of values that leaves a share of it, and place for a mark, in units of the axis.
/** @param {Panel} panel @param {number} span @param {number} edges */
const roomBeyond = (panel, span, edges) => Math.max(MARGIN, MARK_PX / (heightOfPanel(panel) - edges * MARK_PX)) * span;

// Returns the range of an axis from zero: all values, unless a few are far above the others.
/** @param {Panel} panel @param {ArrayLike<number>} values @returns {Span} */
function fromZero(panel, values) {
  const most = values[values.length - 1], usual = values[Math.floor((values.length - 1) * USUAL)];
  const high = usual > 0 && most > FAR * usual && values.length >= 40 ? 2 * usual : most;
  return high > 0 ? [0, high + roomBeyond(panel, high, 1)] : [0, 1];
}

// Returns the range of a panel in units of its axis: exponents of ten if it is logarithmic.
/** @param {Panel} panel @returns {Span} */
export function verticalRange(panel) {
  if (panel.name === "parts") return [0, 1];
  if (choice.vertical[panel.name]) return [...choice.vertical[panel.name]];
  let [values, windows] = valuesIn(panel, view.range);
  if (!values.length) [values, windows] = [windows, values];
  if (!values.length) return isLog(panel) ? [-1, 1] : [0, 1];
  const [low, high] = [values[0], values[values.length - 1]], window = windows[windows.length - 1];
  if (isLog(panel)) {
    const least = values.find((value) => value > 0) ?? 1, from = Math.log10(least), to = Math.log10(Math.max(high, least)), beyond = Math.max(0.1, roomBeyond(panel, to - from, 2));
    return [from - beyond, to + beyond];
  }
  if (!["sequence", "numbers"].includes(panel.name)) return fromZero(panel, window <= high * (1 + WINDOWS.room) ? [...values, Math.max(high, window)] : values);
  const grown = window <= high + WINDOWS.window * (high - low) ? Math.max(high, window) : high;
  const margin = roomBeyond(panel, grown - low, 2) || Math.abs(grown) * MARGIN || 1;
  return [low - margin, grown + margin];
}

// Returns the words for values outside of the view, as "receive window 596 kB ↑".
/** @param {Panel} panel @param {Span} range */
export function wordsOutside(panel, range) {
  const high = isLog(panel) ? 10 ** range[1] : range[1], parts = [];
  for (const series of seriesOf(panel).filter(isShown)) {
    const source = view.all[series.key], start = firstAtOrAfter(source.x, view.range[0]), end = firstAtOrAfter(source.x, view.range[1]);
    let count = 0, most = -Infinity, least = Infinity;
    for (let i = Math.max(0, isLine(series) ? start - 1 : start); i < end; i++) {
      const value = (source.y2 || source.y)[i];
      if (value > high) count++;
      if (value > most) most = value;
      if (value < least) least = value;
    }
    if (series.key === "ack" && most < range[0]) parts.push(`acknowledged ${prefixed(most, "B")}, below this view ↓`);
    if (!count) continue;
    if (series.key === "window") parts.push(`window edge ${prefixed(least > high ? least - high : most - high, "B")} above this view ↑`);
    else if (series.key === "room") parts.push(`receive window ${least > high && least < most ? "from " : ""}${prefixed(least > high ? least : most, "B")} ↑`);
    else if (!isLine(series) && panel.unit === "ms") parts.push(`${whole(count)} above, to ${duration(most * 1e6)} ↑`);
  }
  return parts.join(" · ");
}

// Raises the upper end of a panel by the height of the words at this edge, so that they cover no data.
/** @param {Panel} panel @param {Span} range */
export function makeRoomForWords(panel, range) {
  if (choice.vertical[panel.name] || isLog(panel) || !wordsOutside(panel, range)) return;
  range[1] += (range[1] - range[0]) * (WORDS_PX / (heightOfPanel(panel) - WORDS_PX));
}

// Returns about `count` round values in a range.
/** @param {Span} range @param {number} count */
function roundValues([low, high], count) {
  const step = roundStep((high - low) / count), values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) values.push(k * step || 0); // no −0
  return { step, values };
}

const TICK_LETTERS = 5; // for which there is room
/** @type {[number, number, string][]} */
const MS_SCALES = [[1e4, 1e3, "s"], [0, 1, "ms"]]; // from so many ms on
/** @type {[number, string][]} */
const SCALES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

// Returns those values that a panel can have: whole numbers from 0 on, or any time.
/** @param {Panel} panel @param {number[]} values */
function possibleValues({ unit }, values) {
  return unit === "ms" ? values : values.filter((value) => value >= 0 && Number.isInteger(Math.round(value * 1e6) / 1e6));
}

// Returns the ticks of a panel whose axis is logarithmic, and the unit that its head names.
/** @param {Span} range */
function logTicks(range) {
  const all = [];
  for (let power = Math.floor(range[0]); power <= range[1]; power++) for (const digit of [1, 2, 5]) all.push(digit * 10 ** power);
  const inside = all.filter((value) => Math.log10(value) >= range[0] && Math.log10(value) <= range[1]), tens = inside.filter((value) => Number.isInteger(Math.round(Math.log10(value) * 1e9) / 1e9));
  const tickvals = inside.length <= 4 ? inside : tens.length >= 2 ? tens.filter((_, i) => i % Math.ceil(tens.length / 4) === 0) : inside.filter((_, i) => i % 2 === 0);
  const [, scale, unit] = MS_SCALES.find(([least]) => (tickvals.at(-1) ?? 0) >= least) ?? MS_SCALES[1];
  const ticktext = tickvals.map((value) => String(Number((value / scale).toPrecision(3))));
  if (ticktext.every((text) => text.length <= TICK_LETTERS)) return { tickvals, ticktext, unit };
  return { tickvals, ticktext: tickvals.map((value) => duration(value * 1e6)), unit: "" }; // ms
}

// Returns the ticks of a panel, and the unit that its head names.
/** @param {Panel} panel @param {Span} range @returns {Ticks} */
export function valueTicks(panel, range) {
  if (panel.name === "parts") return { tickvals: [], ticktext: [], unit: "" };
  if (isLog(panel)) return logTicks(range);
  const { step, values } = roundValues(range, heightOfPanel(panel) > 150 ? 5 : 2.5), whole_ = possibleValues(panel, values);
  const most = Math.max(...whole_.map(Math.abs), 0), [, msScale, msUnit] = MS_SCALES.find(([least]) => most >= least) ?? MS_SCALES[1];
  /** @type {[number, string]} */
  const [scale, letter] = panel.unit === "ms" ? [msScale, ""] : (panel.unit && SCALES.find(([size]) => most >= size)) || [1, ""];
  const places = whole_.every((value) => Number.isInteger(value / scale)) ? 0 : Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  const unit = panel.unit === "ms" ? msUnit : panel.unit === "bytes" ? (letter ? `${letter}B` : "bytes") : `${letter}${panel.unit}`;
  return { tickvals: whole_, ticktext: whole_.map((value) => (panel.unit ? (value / scale).toFixed(Math.min(places, 9)) : whole(Math.round(value)))), unit };
}

/** @param {Span} range @param {number} width */
function timeTicks(range, width) {
  const origin = axisOrigin(), { step, values } = roundValues([range[0] - origin, range[1] - origin], Math.max(2, Math.floor(width / 150))), places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return { tickvals: values.map((value) => value + origin), ticktext: values.map((value, i) => `${value.toFixed(Math.min(places, 9))}${i ? "" : " s"}`) };
}

// Stacks the panels below their heads: returns the top of each head and plot, in px, and the height of all.
/** @param {Panel[]} used @param {number[]} headHeights */
export function stacked(used, headHeights) {
  let top = 0;
  const places = used.map((panel, i) => {
    const head = top, plot = top + headHeights[i], bottom = plot + heightOfPanel(panel);
    top = bottom + GAP;
    return { head, plot, bottom };
  });
  return { places, height: Math.max(1, top - GAP) };
}

/** @param {Panel[]} used @param {Colors} own */
export function layoutFor(used, own) {
  const { places, height } = view.stack, width = onPaper() ? PAPER.width : $("stack").clientWidth, left = width < NARROW ? 40 : LEFT;
  setView({ area: { l: left, w: width - left - RIGHT } });
  const grid = { gridcolor: own.grid, linecolor: own.axis, tickcolor: own.axis, zeroline: false, fixedrange: true, tickfont: { size: width < NARROW ? 10 : 11, color: own.muted } };
  /** @type {Record<string, unknown>} */
  const layout = {
    showlegend: false, hovermode: false, dragmode: false, autosize: false, width, height: height + AXIS,
    margin: { l: left, r: RIGHT, t: 0, b: AXIS, pad: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", size: 11, color: own.ink },
    xaxis: { ...grid, anchor: "free", position: 0, range: view.range.slice(), ...timeTicks(view.range, width - left) },
    shapes: [...evidenceShapes(), ...bandShapes(used)],
  };
  used.forEach((panel, i) => {
    const range = view.vertical[panel.name], { plot, bottom } = places[i], { tickvals, ticktext } = valueTicks(panel, range);
    layout[axisName(i)] = { ...grid, domain: [1 - bottom / height, 1 - plot / height], range, tickvals, ticktext, type: isLog(panel) ? "log" : "linear" };
  });
  return layout;
}
