// @ts-check
// Flows that are overlaid on the chosen one, at most WITH_MOST of them: which, their colors, and the legend of all panels. Each keeps
// the place of its color while others come and go.
//
// Times are those of the capture, or, with the setting `relative`, times since the first packet of each flow. The time axis is that of
// the chosen flow: other flows are then shifted, so that ranges, the timeline and the packets are about the chosen flow in both cases.
import { isCutOf, packetsOfFlow, tables } from "../capture/tables.js";
import { SVG, copy, element } from "../elements.js";
import { roving } from "../keys.js";
import { WITH_MOST, choice, choose, chosenFlow, endStep, hasAny, onChoice, turned } from "../link.js";
import { againCommand, flowAt, nameOf } from "../list/flows.js";
import { $, data } from "../plotly.js";
import { whole } from "../units.js";
import { FLOW_SHAPES, FLOW_SYMBOLS, RELATIVE, beginOf, colorOfFlow, drawnFlows, isListed, isOverlaid, isRelative, placeOfFlow } from "./drawn_flows.js";
import { columnWords, columnsOf } from "./series/columns.js";
import { seriesData } from "./series/rates.js";

/** @type {ReturnType<typeof roving>} */
let stopAtFlow = () => {};
const OF_FLOWS = { rowless: "not in the page", lacking: "packets not in the page" };

// --- choosing --------------------------------------------------------------------------------------------------

// Returns the change that overlays these flows, at their places.
/** @param {(number | null)[]} flows */
function withFlows(flows) {
  const last = flows.findLastIndex((flow) => flow !== null), others = flows.some((flow) => flow !== null && flow !== choice.flow);
  return { with: others ? flows.slice(0, last + 1) : [], vertical: {} };
}

// Returns the change that adds a flow at the first free place, or nothing if there is none.
/** @param {number} flow */
function added(flow) {
  const flows = isOverlaid() ? choice.with.slice() : [choice.flow], free = flows.indexOf(null);
  if (free >= 0) flows[free] = flow;
  else flows.push(flow);
  return flows.length <= WITH_MOST ? withFlows(flows) : null;
}

// Returns the change that removes a flow. If it is the chosen one, the first of the others is chosen.
/** @param {number} flow */
function removed(flow) {
  const flows = choice.with.map((one) => (one === flow ? null : one)), next = flows.find((one) => one !== null && isListed(one));
  if (flow !== choice.flow) return withFlows(flows);
  const { with: rest } = flows.filter((one) => one !== null).length > 1 ? { with: flows.slice(0, flows.findLastIndex((one) => one !== null) + 1) } : { with: [] };
  return next === undefined ? null : { ...chosenAmong(next), with: rest, vertical: {} };
}

// Returns the change that makes another overlaid flow the chosen one: the view stays as it is.
/** @param {number} flow @returns {Change} */
export function chosenAmong(flow) {
  const shift = isRelative() ? beginOf(flow) - beginOf(chosenFlow()) : 0;
  return { flow, with: choice.with, range: choice.range && [choice.range[0] + shift, choice.range[1] + shift], vertical: choice.vertical };
}

// Overlays a flow, or removes it; does nothing if there is no place.
/** @param {number} flow */
export function turnFlow(flow) {
  endStep();
  const change = drawnFlows().includes(flow) || choice.with.includes(flow) ? isOverlaid() && removed(flow) : added(flow);
  if (!change) return markBoxes();
  return choose(change);
}

// Returns whether an event asks for one more flow instead of another one.
/** @param {MouseEvent | KeyboardEvent} event */
export const adds = (event) => event.ctrlKey || event.shiftKey || event.metaKey;

// Returns a box that overlays a flow of a list.
/** @param {number} flow */
export function flowBox(flow) {
  const box = element("input", { type: "checkbox", className: "with-box", tabIndex: -1 });
  box.dataset.with = String(flow);
  box.setAttribute("aria-label", `overlay flow ${flow}`);
  box.addEventListener("click", (event) => event.stopPropagation());
  box.addEventListener("change", () => turnFlow(flow));
  return marked(box);
}

/** @param {HTMLInputElement} box */
function marked(box) {
  const flow = Number(box.dataset.with), own = flow === choice.flow || choice.with.includes(flow), full = choice.with.length === WITH_MOST && !choice.with.includes(null);
  box.checked = own;
  box.disabled = own ? flow === choice.flow && !isOverlaid() : full;
  box.title = own ? "In the plots" : full ? `At most ${WITH_MOST} flows are overlaid` : "Overlay on the chosen flow (Ctrl and click or Enter)";
  return box;
}

/** @returns {NodeListOf<HTMLInputElement>} */
const boxes = () => document.querySelectorAll(".with-box");

function markBoxes() {
  for (const box of boxes()) marked(box);
}

// --- legend ----------------------------------------------------------------------------------------------------

/** @param {number} flow */
export function flowIcon(flow) {
  const svg = document.createElementNS(SVG, "svg"), color = `var(--${colorOfFlow(flow)})`, line = document.createElementNS(SVG, "path"), mark = document.createElementNS(SVG, "path");
  for (const { path, d, fill } of [{ path: line, d: "M0 6h16", fill: "none" }, { path: mark, d: FLOW_SHAPES[FLOW_SYMBOLS[placeOfFlow(flow)]], fill: color }]) {
    for (const [name, value] of Object.entries({ d, fill, stroke: color, "stroke-width": 1.5 })) path.setAttribute(name, String(value));
    svg.append(path);
  }
  svg.setAttribute("viewBox", "0 0 16 12");
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

// Returns the words for a flow that is not drawn by all of its packets.
/** @param {number} flow */
function lackOf(flow) {
  if (!isListed(flow)) return OF_FLOWS.rowless;
  const f = flowAt(tables.flows.rowOf(flow)), held = packetsOfFlow(flow);
  if (held) return isCutOf(f, held) ? (data.served ? `thinned to some of each ${whole(held.bucket)} packets` : "only the first packets are in the page") : "";
  const own = columnsOf(f);
  if (own) return `${OF_FLOWS.lacking}: ${columnWords(own)}`;
  return `${OF_FLOWS.lacking}: ${Object.keys(seriesData(flow, f.main)).length ? "bins of the series table" : "not drawn"}`;
}

/** @param {number} flow */
function flowItem(flow) {
  const listed_ = isListed(flow), chosen = flow === choice.flow, lack = lackOf(flow);
  const name = element("button", { type: "button", className: "plain name", disabled: !listed_, title: chosen ? "The flow whose packets are listed" : "Choose this flow; the others stay" }, element("b", { textContent: `flow ${flow}` }), listed_ ? ` ${nameOf(tables.flows.rowOf(flow))}` : "");
  const remove = element("button", { type: "button", className: "remove", textContent: "×", title: "Remove" });
  remove.setAttribute("aria-label", `remove flow ${flow}`);
  if (chosen) name.setAttribute("aria-current", "true");
  name.addEventListener("click", () => !chosen && choose(chosenAmong(flow)));
  remove.addEventListener("click", () => removeFromLegend(flow));
  const item = element("li", {}, ...(listed_ ? [flowIcon(flow)] : []), name);
  item.dataset.flow = String(flow);
  if (lack) item.append(element("span", { className: "lack", textContent: lack }));
  if (lack && listed_ && !data.served) item.append(commandButton(flow));
  item.append(remove);
  return item;
}

/** @param {number} flow */
function commandButton(flow) {
  const button = element("button", { type: "button", className: "copy", textContent: "copy command", title: "The command that makes a report with its packets" });
  button.addEventListener("click", () => copy(button, againCommand(tables.flows.rowOf(flow))));
  return button;
}

const items = () => $("with-list").querySelectorAll(":scope > li");

// The focus goes to the item that takes the place of the removed one.
/** @param {number} flow */
async function removeFromLegend(flow) {
  const place = [...items()].findIndex((item) => Number(item.dataset.flow) === flow);
  await turnFlow(flow);
  const next = [...items()].at(Math.min(place, items().length - 1));
  (isOverlaid() ? next?.querySelector(".remove") : $("plot"))?.focus();
}

function drawFlowLegend() {
  $("with").hidden = !isOverlaid();
  if (!isOverlaid()) return $("with-list").replaceChildren();
  const flows = choice.with.filter((flow) => flow !== null), focused = document.activeElement?.closest?.("#with-list li")?.dataset.flow;
  $("with-count").textContent = `${flows.length} flows overlaid`;
  $("with-none").textContent = `Only flow ${choice.flow}`;
  $("with-list").replaceChildren(...flows.map(flowItem));
  stopAtFlow(focused === undefined ? null : $("with-list").querySelector(`[data-flow="${focused}"] .name`));
  if (focused) $("with-list").querySelector(`[data-flow="${focused}"] .name`)?.focus();
  for (const button of $("with-time").querySelectorAll("button")) button.setAttribute("aria-pressed", String((button.dataset.time === RELATIVE) === isRelative()));
}

// Runs after the flows were fetched and before they are drawn, because the legend takes room.
/** @param {Set<keyof Choice>} changed */
function overlaidChanged(changed) {
  if (hasAny(changed, ["flow", "with"])) markBoxes();
  if (hasAny(changed, ["flow", "with", "range", "toggled"])) drawFlowLegend();
}

export function startOverlaid() {
  stopAtFlow = roving($("with-list"), "button:not(:disabled)", "both");
  roving($("with-time"), "button", "horizontal");
  $("with-none").addEventListener("click", () => choose({ with: [], vertical: {} }));
  for (const button of $("with-time").querySelectorAll("button")) {
    button.addEventListener("click", () => (button.dataset.time === RELATIVE) !== isRelative() && choose({ toggled: turned(RELATIVE) }));
  }
  onChoice(overlaidChanged);
}

/** @param {number} number */
export async function chooseFlow(number) {
  endStep(); // the selection of a flow is a step in the history
  await choose({ flow: number, range: choice.during, vertical: {} });
  $("chosen").scrollIntoView();
}
