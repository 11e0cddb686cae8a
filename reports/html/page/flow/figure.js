// @ts-check
// The drawn figure: which series were taken of the flow, what of them is in view, and where. view.js draws it.
import { choice, choose } from "../link.js";
import { firstAtOrAfter } from "../numbers.js";
import { data } from "../plotly.js";

export const taken = { full: {}, order: [], overlaid: null, extent: [0, 1], drawable: false }; // of the chosen flow, or of the overlaid ones
export const view = { range: [0, 1], all: {}, used: [], vertical: {}, stack: { places: [], height: 1 }, area: { l: 0, w: 1 }, thinned: false }; // by each drawing
export const setTaken = (change) => Object.assign(taken, change);
export const setView = (change) => Object.assign(view, change);
export const LEAST_HEIGHT = 40, MOST_HEIGHT = 2000, STEP_PX = 10; // px

// The series that matter most come first; those that are drawn last are on top.
const FIRST = ["data", "other", "ack", "window", "sack"];
export const rankInLegend = ({ key }) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);

// In a flow that is not TCP, the bars are the packets of both directions.
export const nameOfSeries = (series) => (series.key === "data" && !view.all.ack ? "packets →" : series.name);

export const area = () => view.area;
export const xOf = (time) => area().l + (area().w * (time - view.range[0])) / (view.range[1] - view.range[0]);
export const timeAt = (x) => view.range[0] + ((x - area().l) / area().w) * (view.range[1] - view.range[0]);

// Returns the panel at a height in the stack, or -1 between panels.
export const panelAt = (y) => view.stack.places.findIndex(({ plot, bottom }) => y >= plot && y <= bottom);

const figureSeries = () => taken.overlaid || data.figure.series;
export const seriesByKey = (key) => figureSeries().find((series) => series.key === key);

export const isLine = ({ mode }) => mode === "steps" || mode === "lines";

// A series is hidden if the reader toggled a usual one, or did not toggle an unusual one.
export const isShown = (series) => series.shown !== choice.toggled.includes(series.switch ?? series.key);

// Lines of overlaid flows have some marks.
export const hasMarks = (series) => series.flow !== undefined && isLine(series);

// Returns the value of a series at a time: that of the last point, or between two points of a straight line.
export function valueAt(series, source, time) {
  const next = firstAtOrAfter(source.x, time + 1e-10);
  if (next === 0) return NaN;
  if (series.key === "least") return source.y[0];
  return (source.y2 || source.y)[next - 1];
}

export const isLog = (panel) => panel.unit === "ms" && panel.log !== choice.toggled.includes(`log:${panel.name}`);

export const seriesOf = (panel) => figureSeries().filter((series) => series.panel === panel.name && view.all[series.key]?.x.length);
export const panelsWithData = () => data.figure.panels.filter((panel) => seriesOf(panel).length);
export const isOpen = (panel) => panel.shown !== choice.toggled.includes(`panel:${panel.name}`);
export const heightOfPanel = (panel) => Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, choice.size[panel.name] || panel.height));
export const axisName = (place) => (place ? `yaxis${place + 1}` : "yaxis");
export const axisKey = (place) => (place ? `y${place + 1}` : "y");

export const wholeView = () => choose({ range: null, vertical: {} });
