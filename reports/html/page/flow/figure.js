// @ts-check
// The drawn figure: which series were taken of the flow, what of them is in view, and where. view.js draws it.
import { choice, choose } from "../link.js";
import { firstAtOrAfter } from "../numbers.js";
import { data } from "../plotly.js";

/** @type {Taken} */
export const taken = { full: {}, order: new Uint32Array(), overlaid: null, extent: [0, 1], drawable: false }; // of the chosen flow, or of the overlaid ones
/** @type {View} */
export const view = { range: [0, 1], all: {}, used: [], vertical: {}, stack: { places: [], height: 1 }, area: { l: 0, w: 1 }, dense: false }; // by each drawing
/** @param {Partial<Taken>} change */
export const setTaken = (change) => Object.assign(taken, change);
/** @param {Partial<View>} change */
export const setView = (change) => Object.assign(view, change);
export const LEAST_HEIGHT = 40, MOST_HEIGHT = 2000, STEP_PX = 10; // px

// The series that matter most come first; those that are drawn last are on top.
const FIRST = ["data", "other", "ack", "window", "sack"];
/** @param {Series} series */
export const rankInLegend = ({ key }) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);

// In a flow that is not TCP, the bars are the packets of both directions.
/** @param {Series} series */
export const nameOfSeries = (series) => (series.key === "data" && !view.all.ack ? "packets →" : series.name);

export const area = () => view.area;
/** @param {number} time */
export const xOf = (time) => area().l + (area().w * (time - view.range[0])) / (view.range[1] - view.range[0]);
/** @param {number} x */
export const timeAt = (x) => view.range[0] + ((x - area().l) / area().w) * (view.range[1] - view.range[0]);

// Returns the panel at a height in the stack, or -1 between panels.
/** @param {number} y */
export const panelAt = (y) => view.stack.places.findIndex(({ plot, bottom }) => y >= plot && y <= bottom);

const figureSeries = () => taken.overlaid || data.figure.series;
/** @param {Series} series */
export const isLine = ({ mode }) => mode === "steps" || mode === "lines";

// A series is hidden if the reader toggled a usual one, or did not toggle an unusual one.
/** @param {Series} series */
export const isShown = (series) => series.shown !== choice.toggled.includes(series.switch ?? series.key);

// Lines of overlaid flows have some marks.
/** @param {Series} series */
export const hasMarks = (series) => series.flow !== undefined && isLine(series);

// Returns the value of a series at a time: that of the last point, or between two points of a straight line.
/** @param {Series} series @param {Points} source @param {number} time */
export function valueAt(series, source, time) {
  const next = firstAtOrAfter(source.x, time + 1e-10);
  if (next === 0) return NaN;
  if (series.key === "least") return source.y[0];
  return (source.y2 || source.y)[next - 1];
}

/** @param {Panel} panel */
export const isLog = (panel) => panel.unit === "ms" && panel.log !== choice.toggled.includes(`log:${panel.name}`);

/** @param {Panel} panel */
export const seriesOf = (panel) => figureSeries().filter((series) => series.panel === panel.name && view.all[series.key]?.x.length);
export const panelsWithData = () => data.figure.panels.filter((panel) => seriesOf(panel).length);
/** @param {Panel} panel */
export const isOpen = (panel) => panel.shown !== choice.toggled.includes(`panel:${panel.name}`);
/** @param {Panel} panel */
export const heightOfPanel = (panel) => Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, choice.size[panel.name] || panel.height));
/** @param {number} place */
export const axisName = (place) => (place ? `yaxis${place + 1}` : "yaxis");
/** @param {number} place */
export const axisKey = (place) => (place ? `y${place + 1}` : "y");

export const wholeView = () => choose({ range: null, vertical: {} });
