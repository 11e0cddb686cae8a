// @ts-check
// The axes of the panels: their ranges, which fit the points in view, their ticks, and the layout.
import { evidenceShapes } from "../capture/evidence.js";
import { choice } from "../link.js";
import { $ } from "../plotly.js";
import { PAPER, onPaper } from "../print.js";
import { roundValues, valueTicks } from "../ticks.js";
import { duration, prefixed, whole } from "../units.js";
import { bandShapes } from "./bands.js";
import { placesIn } from "./canvas/canvas.js";
import { axisOrigin } from "./drawn_flows.js";
import { axisName, heightOfPanel, isLine, isLog, isShown, nameOfSeries, seriesOf, setView, view } from "./figure.js";
import { extremesOf } from "./series/extremes.js";

const MARGIN = 0.06; // share of an axis beyond the points in view
const LEFT = 52, RIGHT = 8, AXIS = 24, GAP = 10; // px
const NARROW = 640; // px
const WORDS_PX = 18; // height of the words at the upper edge of a panel
const MARK_PX = 10; // room between the last points and an edge, so that no mark is cut
const WINDOWS = { window: 0.35, room: 1.5 }; // share of the range by which an axis grows to show a window's line
const SAMPLED_MOST = 4000; // values of a series by which a panel is fitted to the usual ones
const FAR = 6, USUAL = 0.95; // an axis from zero leaves out points that are so many times above most

// Values of series in view: their extremes, and some of them, in order of size, which show how they are distributed.
class Values {
  least = Infinity;
  greatest = -Infinity;
  positive = Infinity; // least of those above 0, for a logarithmic axis
  count = 0;
  /** @type {number[]} */
  some = [];

  /** @param {Points} source @param {number} start @param {number} end @param {boolean} log */
  add(source, start, end, log) {
    const { least, greatest } = extremesOf(source).of(start, end), step = Math.ceil((end - start) / SAMPLED_MOST);
    this.least = Math.min(this.least, least);
    this.greatest = Math.max(this.greatest, greatest);
    this.count += end - start;
    if (least > 0) this.positive = Math.min(this.positive, least);
    else for (let i = start; log && i < end; i++) if (source.y[i] > 0 && source.y[i] < this.positive) this.positive = source.y[i];
    for (const column of [source.y, source.y2]) for (let i = start; column && i < end; i += step) if (!Number.isNaN(column[i])) this.some.push(column[i]);
  }

  usual() {
    const values = Float64Array.from(this.some).sort();
    return values[Math.floor((values.length - 1) * USUAL)];
  }
}

// Returns the values of a panel's series in view; lines count where they cross its edges.
/** @param {Panel} panel @param {Span} range */
function valuesIn(panel, range) {
  const shown = seriesOf(panel).filter(isShown), values = new Values(), windows = new Values();
  /** @param {Series} series */
  const places = ({ key }) => placesIn(view.all[key], range);
  const within = shown.filter((series) => places(series)[0] < places(series)[1]);
  for (const series of within.length ? within : shown) {
    const source = view.all[series.key], [start, end] = places(series);
    const own = series.key in WINDOWS ? windows : values, after = series.mode === "lines" ? 1 : 0;
    own.add(source, isLine(series) ? Math.max(0, start - 1) : start, Math.min(source.x.length, end + after), isLog(panel));
  }
  return values.greatest === -Infinity ? [windows, new Values()] : [values, windows];
}

// Returns the room beyond a range of values that leaves a share of it, and place for a mark, in units of the axis.
/** @param {Panel} panel @param {number} span @param {number} edges */
const roomBeyond = (panel, span, edges) => Math.max(MARGIN, MARK_PX / (heightOfPanel(panel) - edges * MARK_PX)) * span;

// Returns the range of an axis from zero: all values, unless a few are far above the others.
/** @param {Panel} panel @param {Values} values @param {number} window @returns {Span} */
function fromZero(panel, values, window) {
  const most = Math.max(values.greatest, window), usual = values.usual(), high = usual > 0 && most > FAR * usual && values.count >= 40 ? 2 * usual : most;
  return high > 0 ? [0, high + roomBeyond(panel, high, 1)] : [0, 1];
}

// Returns the range of a panel in units of its axis: exponents of ten if it is logarithmic.
/** @param {Panel} panel @returns {Span} */
export function verticalRange(panel) {
  if (panel.name === "parts") return [0, 1];
  if (choice.vertical[panel.name]) return [...choice.vertical[panel.name]];
  const [values, windows] = valuesIn(panel, view.range), { least: low, greatest: high } = values, window = windows.greatest;
  if (high === -Infinity) return isLog(panel) ? [-1, 1] : [0, 1];
  if (isLog(panel)) {
    const least = values.positive < Infinity ? values.positive : 1, from = Math.log10(least), to = Math.log10(Math.max(high, least)), beyond = Math.max(0.1, roomBeyond(panel, to - from, 2));
    return [from - beyond, to + beyond];
  }
  if (!["sequence", "numbers"].includes(panel.name)) return fromZero(panel, values, window <= high * (1 + WINDOWS.room) ? window : -Infinity);
  const grown = window <= high + WINDOWS.window * (high - low) ? Math.max(high, window) : high;
  const margin = roomBeyond(panel, grown - low, 2) || Math.abs(grown) * MARGIN || 1;
  return [low - margin, grown + margin];
}

// Returns the words for values outside of the view, as "receive window 596 kB ↑".
/** @param {Panel} panel @param {Span} range */
export function wordsOutside(panel, range) {
  const high = isLog(panel) ? 10 ** range[1] : range[1], parts = [];
  for (const series of seriesOf(panel).filter(isShown)) {
    const source = view.all[series.key], [start, end] = placesIn(source, view.range);
    const { least, greatest: most } = extremesOf(source).of(isLine(series) ? Math.max(0, start - 1) : start, end);
    if (least > most) continue; // nothing is in view
    if (series.key === "ack" && most < range[0]) parts.push(`acknowledged ${prefixed(most, "B")}, below this view ↓`);
    if (most <= high) continue;
    if (series.key === "window") parts.push(`window edge ${prefixed(least > high ? least - high : most - high, "B")} above this view ↑`);
    else if (series.key === "room") parts.push(`receive window ${least > high && least < most ? "from " : ""}${prefixed(least > high ? least : most, "B")} ↑`);
    else if (source.width && panel.unit === "ms") parts.push(`to ${duration(most * 1e6)} ↑`);
    else if (!isLine(series) && panel.unit === "ms") parts.push(`${nameOfSeries(series)}: ${whole(countAbove(source, start, end, high))} above, to ${duration(most * 1e6)} ↑`);
  }
  return parts.join(" · ");
}

/** @param {Points} source @param {number} start @param {number} end @param {number} high */
function countAbove({ y }, start, end, high) {
  let count = 0;
  for (let i = start; i < end; i++) if (y[i] > high) count++;
  return count;
}

// Raises the upper end of a panel by the height of the words at this edge, so that they cover no data.
/** @param {Panel} panel @param {Span} range */
export function makeRoomForWords(panel, range) {
  if (choice.vertical[panel.name] || isLog(panel) || !wordsOutside(panel, range)) return;
  range[1] += (range[1] - range[0]) * (WORDS_PX / (heightOfPanel(panel) - WORDS_PX));
}

// Returns the ticks of a panel, and the unit that its head names.
/** @param {Panel} panel @param {Span} range */
export const panelTicks = (panel, range) => valueTicks(panel, range, { isLog: isLog(panel), height: heightOfPanel(panel) });

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
  const grid = { showgrid: !view.dense, gridcolor: own.grid, linecolor: own.axis, tickcolor: own.axis, zeroline: false, fixedrange: true, tickfont: { size: width < NARROW ? 10 : 11, color: own.muted } };
  /** @type {Record<string, unknown>} */
  const layout = {
    showlegend: false, hovermode: false, dragmode: false, autosize: false, width, height: height + AXIS,
    margin: { l: left, r: RIGHT, t: 0, b: AXIS, pad: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", size: 11, color: own.ink },
    xaxis: { ...grid, anchor: "free", position: 0, range: view.range.slice(), ...timeTicks(view.range, width - left) },
    shapes: [...evidenceShapes(view.dense), ...bandShapes()],
  };
  used.forEach((panel, i) => {
    const range = view.vertical[panel.name], { plot, bottom } = places[i], { tickvals, ticktext } = panelTicks(panel, range);
    layout[axisName(i)] = { ...grid, domain: [1 - bottom / height, 1 - plot / height], range, tickvals, ticktext, type: isLog(panel) ? "log" : "linear" };
  });
  return layout;
}
