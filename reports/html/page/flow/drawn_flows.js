// @ts-check
// Which flows are drawn: the chosen one, or those overlaid on it; their colors and symbols, and how their times are shifted on the axis.
import { packetsOfFlow, tables } from "../capture/tables.js";
import { choice, chosenFlow } from "../link.js";

export const RELATIVE = "relative";
/** @type {Record<string, string>} */
export const FLOW_SHAPES = {
  circle: "M8 3a3 3 0 1 0 .01 0z", square: "M5 3h6v6H5z", diamond: "M8 2l4 4-4 4-4-4z", "triangle-up": "M8 2l4 7H4z", "triangle-down": "M8 10l4-7H4z",
  cross: "M7 2h2v3h3v2H9v3H7V7H4V5h3z", star: "M8 1l1.5 3.4 3.5.4-2.6 2.4.7 3.6L8 9l-3.1 1.8.7-3.6L3 4.8l3.5-.4z", hexagon: "M8 2l4 2v4l-4 2-4-2V4z",
};
export const FLOW_SYMBOLS = Object.keys(FLOW_SHAPES); // of the place of a flow

export const isOverlaid = () => choice.with.length > 0;
/** @param {number | null} flow @returns {flow is number} */
export const isListed = (flow) => flow !== null && tables.flows.rowOf(flow) >= 0;

// Returns the flows that are drawn, in the order of their places: the chosen one, or all that are overlaid.
export const drawnFlows = () => (isOverlaid() ? choice.with.filter(isListed) : [chosenFlow()]);
/** @param {number} flow */
export const placeOfFlow = (flow) => Math.max(0, choice.with.indexOf(flow));
/** @param {number} flow */
export const colorOfFlow = (flow) => `flow-${placeOfFlow(flow) + 1}`;

// Returns the colors of the places.
export function flowColors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(FLOW_SYMBOLS.map((_, place) => [`flow-${place + 1}`, style.getPropertyValue(`--flow-${place + 1}`).trim()]));
}

export const isRelative = () => isOverlaid() && choice.toggled.includes(RELATIVE);

// Returns the time of a flow's first packet: exact if the page has the packet, else in whole milliseconds.
/** @param {number} flow */
export function beginOf(flow) {
  const known = packetsOfFlow(flow);
  return known?.begin ?? tables.flows.start[tables.flows.rowOf(flow)] / 1e3;
}

// Returns the seconds that are added to a flow's times, and the time at which the time axis has 0.
/** @param {number} flow */
export const shiftOf = (flow) => (isRelative() && flow !== choice.flow ? beginOf(chosenFlow()) - beginOf(flow) : 0);
export const axisOrigin = () => (isRelative() ? beginOf(chosenFlow()) : 0);

// The direction whose data the panels show: the one that carries more, or the other if the reader chose it.
/** @param {Flow} f */
export const shownDirection = (f) => (choice.toggled.includes(`direction:${f.flow}`) ? 1 - f.main : f.main);
