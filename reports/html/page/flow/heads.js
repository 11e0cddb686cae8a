// @ts-check
// Above each panel: its title, unit, controls, values at the crosshair, and its legend, whose items are buttons. Over it: words for what is
// outside of the view, and the edge by which it is resized.
import { fetched, tables } from "../capture/tables.js";
import { SVG, atTop, element, elementAt } from "../elements.js";
import { roving } from "../keys.js";
import { choice, choose, chosenFlow, continueStep, setting, turned, withSetting } from "../link.js";
import { protocolOf } from "../list/flows.js";
import { firstAtOrAfter } from "../numbers.js";
import { $, data } from "../plotly.js";
import { duration, whole } from "../units.js";
import { panelTicks, wordsOutside } from "./axes.js";
import { bandLegend } from "./bands.js";
import { isOverlaid, isRelative, shownDirection } from "./drawn_flows.js";
import { LEAST_HEIGHT, MOST_HEIGHT, STEP_PX, heightOfPanel, isLine, isLog, isOpen, isShown, nameOfSeries, panelsWithData, rankInLegend, seriesOf, taken, view, wholeView, xOf } from "./figure.js";
import { savePicture } from "./picture.js";
import { extremesOf } from "./series/extremes.js";
import { columnWords, columnsOf } from "./series/columns.js";
import { ARROWS } from "./series/points.js";
import { AVERAGES, BINS, shownBin } from "./series/rates.js";

const SILENCE = 0.15; // share of the view
const silences = { rows: new Uint32Array(), gaps: /** @type {Points} */ ({ x: [], y: [], frame: [], capture: [] }) };
/** @type {string | null} */
let resized = null; // label of the edge that has the focus
/** @type {ReturnType<typeof roving>} */
let stopAtHead = () => {};

// --- legend ----------------------------------------------------------------------------------------------------

/** @type {Record<string, string>} */
const LEGEND_SHAPES = {
  diamond: "M8 1l4.5 5L8 11 3.5 6z", "x-thin": "M4 2l8 8M12 2l-8 8", "triangle-up-open": "M8 1.5l5 9H3z", "triangle-left": "M3 6l9-5v10z", "triangle-left-open": "M3 6l9-5v10z",
  circle: "M8 3.5a2.5 2.5 0 1 0 .01 0z", "circle-open": "M8 2a4 4 0 1 0 .01 0z", "square-open": "M4 2h8v8H4z", "line-ew": "M3 6h10", "line-ns": "M8 1v10", "cross-thin": "M8 1v10M3 6h10",
  star: "M8 1l1.5 3.4 3.5.4-2.6 2.4.7 3.6L8 9l-3.1 1.8.7-3.6L3 4.8l3.5-.4z",
};
/** @type {Record<string, string>} */
const DASHES = { dash: "5 3", dot: "2 3" };

/** @param {Series} series @param {Colors} own */
function legendIcon(series, own) {
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path"), color = own[series.color];
  const filled = series.mode === "marks" && !/open|thin|-e|-n/.test(series.symbol);
  const shape = series.mode === "bars" ? "M8 1v10" : isLine(series) ? "M0 6h16" : LEGEND_SHAPES[series.symbol];
  for (const [name, value] of Object.entries({ d: shape, fill: filled ? color : "none", stroke: color, "stroke-width": series.mode === "bars" ? 3 : 1.75, "stroke-dasharray": DASHES[series.dash] || "none", opacity: series.key === "sack" ? 0.5 : 1 })) path.setAttribute(name, String(value));
  svg.setAttribute("viewBox", "0 0 16 12");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  return svg;
}

// Returns the series that a legend has. Those of overlaid flows are in the legend of all panels, except for retransmissions.
/** @param {Panel} panel */
function inLegend(panel) {
  if (!isOverlaid()) return seriesOf(panel).sort((a, b) => rankInLegend(a) - rankInLegend(b));
  const one = seriesOf(panel).find((series) => series.switch);
  return one?.switch ? [{ ...one, name: one.switch, color: "muted" }] : [];
}

/** @param {Panel} panel @param {Colors} own */
function legendOf(panel, own) {
  if (panel.name === "parts") return bandLegend(view.all.parts.spans ?? [], view.range);
  const legend = element("span", { className: "panel-legend" });
  for (const series of inLegend(panel)) {
    const key = series.switch ?? series.key, button = element("button", { type: "button", title: series.about }, legendIcon(series, own), nameOfSeries(series));
    button.dataset.series = key;
    button.setAttribute("aria-pressed", String(isShown(series)));
    button.addEventListener("click", () => choose({ toggled: turned(key) }));
    legend.append(button);
  }
  return legend;
}

// --- controls --------------------------------------------------------------------------------------------------

/** @param {string} label @param {[number, string][]} values @param {number} chosen @param {(value: number) => unknown} change */
function selection(label, values, chosen, change) {
  const made = element("select", {}, ...values.map(([value, words]) => element("option", { value: String(value), textContent: words, selected: value === chosen })));
  made.setAttribute("aria-label", label);
  made.addEventListener("change", () => change(Number(made.value)));
  return made;
}

/** @param {number} seconds */
const timeSpan = (seconds) => duration(seconds * 1e9);

/** @param {Panel} panel */
function controlsOf(panel) {
  if (panel.name === "rate" && shownBin()) {
    const bin = setting("bin", 0), label = (/** @type {number} */ seconds) => (seconds ? `bin ${timeSpan(seconds)}` : `bin ${timeSpan(shownBin())}, by the view`);
    return [
      selection("Bin of the throughput", BINS.map((value) => [value, label(value) + (value && value === bin && shownBin() > value ? `, ${timeSpan(shownBin())} in this view` : "")]), bin, (value) => choose({ toggled: withSetting("bin", value, 0) })),
      selection("Moving average", AVERAGES.map((value) => [value, value > 1 ? `average of ${value} bins` : "no average"]), setting("average", 1), (value) => choose({ toggled: withSetting("average", value, 1) })),
    ];
  }
  if (panel.unit !== "ms") return [];
  const button = element("button", { type: "button", className: "switch", textContent: isLog(panel) ? "logarithmic" : "linear", title: "Scale of the axis" });
  button.dataset.series = `log:${panel.name}`;
  button.addEventListener("click", () => {
    const { [panel.name]: _, ...vertical } = choice.vertical;
    return choose({ toggled: turned(`log:${panel.name}`), vertical });
  });
  return [button];
}

// --- heads -----------------------------------------------------------------------------------------------------

/** @param {Panel} panel */
function titleOf(panel) {
  if (panel.name !== "sequence") return panel.title;
  if (isOverlaid()) return "Sent so far";
  return protocolOf(tables.flows.rowOf(chosenFlow())) === "tcp" ? panel.title : "Payload so far";
}

/** @param {Panel} panel @param {Colors} own */
function headOf(panel, own) {
  const title = element("h3", { textContent: titleOf(panel) }), unit = element("span", { className: "unit", textContent: panelTicks(panel, view.vertical[panel.name]).unit });
  const head = element("div", { className: "panel-head" }, title, unit, ...controlsOf(panel), element("span", { className: "value" }), legendOf(panel, own));
  head.dataset.panel = panel.name;
  return head;
}

// Makes the heads of panels, and returns their heights, because legends of several lines need room. The focus stays.
/** @param {Flow} f @param {Panel[]} used @param {Colors} own */
export function drawHeads(f, used, own) {
  const focused = /** @type {HTMLElement} */ (document.activeElement), key = focused.dataset?.series, label = focused.closest?.(".panel-head") && focused.getAttribute("aria-label");
  const overlay = $("overlay"), heads = used.map((panel) => headOf(panel, own));
  resized = focused.classList.contains("panel-size") ? focused.getAttribute("aria-label") : null;
  overlay.replaceChildren(...heads);
  if (key) overlay.querySelector(`[data-series="${CSS.escape(key)}"]`)?.focus();
  else if (label) overlay.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
  return heads.map((head) => head.offsetHeight);
}

/** @param {Flow} f @param {Panel[]} used */
export function placeHeads(f, used) {
  const overlay = $("overlay"), heads = [...overlay.querySelectorAll(".panel-head")];
  used.forEach((panel, i) => {
    const { head, plot, bottom } = view.stack.places[i], words = wordsOutside(panel, view.vertical[panel.name]);
    heads[i].style.top = `${head}px`;
    if (words) overlay.append(atTop(element("span", { className: "panel-edge", textContent: words }), plot + 2));
    overlay.append(atTop(edgeOf(panel), bottom + 3));
  });
  const again = resized === null ? null : overlay.querySelector(`.panel-size[aria-label="${CSS.escape(resized)}"]`);
  stopAtHead(again || document.activeElement);
  again?.focus();
  if (used.length && !isOverlaid()) silenceLabel(f, used);
  viewTools(f);
}

// Returns the lower edge of a panel, which the pointer drags and the keys ↑ and ↓ move.
/** @param {Panel} panel */
function edgeOf(panel) {
  const edge = element("div", { className: "panel-size", title: "Drag to resize the panel, or ↑ and ↓", tabIndex: -1 });
  for (const [name, value] of Object.entries({ role: "separator", "aria-orientation": "horizontal", "aria-label": `Height of ${titleOf(panel)}`, "aria-valuenow": heightOfPanel(panel), "aria-valuemin": LEAST_HEIGHT, "aria-valuemax": MOST_HEIGHT })) edge.setAttribute(name, String(value));
  edge.addEventListener("pointerdown", (event) => resizing(event, panel, edge));
  edge.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    continueStep(); // consecutive steps are one in the history
    resize(panel, heightOfPanel(panel) + (event.key === "ArrowDown" ? STEP_PX : -STEP_PX));
  });
  return edge;
}

// Chooses the height of a panel; the usual one is not in the link.
/** @param {Panel} panel @param {number} wanted */
function resize(panel, wanted) {
  const height = Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, Math.round(wanted))), { [panel.name]: _, ...others } = choice.size;
  return choose({ size: height === panel.height ? others : { ...others, [panel.name]: height } });
}

/** @param {PointerEvent} event @param {Panel} panel @param {HTMLElement} edge */
function resizing(event, panel, edge) {
  event.stopPropagation();
  const from = event.clientY, before = heightOfPanel(panel);
  edge.setPointerCapture(event.pointerId);
  const move = (/** @type {PointerEvent} */ now) => (edge.style.transform = `translateY(${Math.max(LEAST_HEIGHT - before, now.clientY - from)}px)`);
  edge.addEventListener("pointermove", move);
  edge.addEventListener("pointerup", (end) => {
    edge.style.transform = "";
    resize(panel, before + end.clientY - from);
  }, { once: true });
}

// Returns the times before the packets of the chosen flow, which are kept for the next view.
/** @param {Uint32Array} rows */
function gapsOf(rows) {
  if (silences.rows === rows) return silences.gaps;
  const { time } = tables.packets, y = Float64Array.from(rows, (row, k) => (k ? time[row] - time[rows[k - 1]] : 0));
  return Object.assign(silences, { rows, gaps: { x: [], y, frame: [], capture: [] } }).gaps;
}

// A long time without any packet is labelled.
/** @param {Flow} f @param {Panel[]} used */
function silenceLabel(f, used) {
  const p = tables.packets, place = p.places.get(f.flow), [from, to] = view.range;
  if (place === undefined || !["sequence", "numbers"].includes(used[0].name)) return;
  const rows = taken.order, timeOf = (/** @type {number} */ row) => p.time[row];
  const first = Math.max(1, firstAtOrAfter(rows, from, timeOf)), end = Math.min(rows.length, firstAtOrAfter(rows, to, timeOf) + 1), gaps = gapsOf(rows);
  let at = 0, longest = 0;
  if (extremesOf(gaps).of(first, end).greatest < SILENCE * (to - from)) return; // also of the part in view
  for (let k = first; k < end; k++) {
    const silent = Math.min(to, p.time[rows[k]]) - Math.max(from, p.time[rows[k - 1]]);
    if (silent > longest) [longest, at] = [silent, k];
  }
  if (longest < SILENCE * (to - from)) return;
  const whole_ = p.time[rows[at]] - p.time[rows[at - 1]], middle = (Math.min(to, p.time[rows[at]]) + Math.max(from, p.time[rows[at - 1]])) / 2;
  const label = element("span", { className: "panel-label", textContent: `no packet for ${duration(whole_ * 1e9)}` });
  label.style.left = `${xOf(middle)}px`;
  $("overlay").append(atTop(label, view.stack.places[0].plot + heightOfPanel(used[0]) * 0.25));
}

// --- tools of the view -----------------------------------------------------------------------------------------

/** @param {number} seconds */
function overlayNote(seconds) {
  const parts = [timeSpan(seconds), isRelative() && "times since the first packet of each flow", view.dense && "every value in its column of pixels"];
  return parts.filter(Boolean).join(", ");
}

/** @param {HTMLElement} list @returns {NodeListOf<HTMLInputElement>} */
const boxesIn = (list) => list.querySelectorAll("input");

/** @param {Flow} f */
function viewTools(f) {
  const p = tables.packets, place = p.places.get(f.flow), [from, to] = view.range, timeOf = (/** @type {number} */ row) => p.time[row];
  const own = isOverlaid() ? undefined : columnsOf(f), first = firstAtOrAfter(taken.order, from, timeOf), count = place === undefined ? 0 : firstAtOrAfter(taken.order, to, timeOf) - first;
  const span = choice.range || !count ? to - from : p.time[taken.order[first + count - 1]] - p.time[taken.order[first]]; // a whole flow has no margins
  $("view-note").textContent = isOverlaid() ? overlayNote(to - from) : own ? `${timeSpan(to - from)}, ${columnWords(own)}` : place === undefined ? "" : `${timeSpan(span)}, ${whole(count)} ${count === 1 ? "packet" : "packets"}${fetched.bucket > 1 ? "" : ", every one drawn"}`;
  $("whole-flow").hidden = !choice.range && !Object.keys(choice.vertical).length;
  const both = !isOverlaid() && f.protocol === "tcp" && place !== undefined && p.rows(2 * place).length && p.rows(2 * place + 1).length;
  $("turn").hidden = !both;
  $("turn").textContent = `Data ${ARROWS[shownDirection(f)]}`;
  $("turn").title = "Show the data of the other direction";
  const list = $("panel-list"), names = panelsWithData().map((panel) => panel.name).join();
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    elementAt(":scope > :last-child", list).replaceChildren(...panelsWithData().map((panel) => {
      const box = element("input", { type: "checkbox" });
      box.dataset.panel = panel.name;
      box.addEventListener("change", () => choose({ toggled: turned(`panel:${panel.name}`) }));
      return element("label", {}, box, titleOf(panel));
    }));
    roving(list, "input", "both");
  }
  for (const box of boxesIn(list)) box.checked = data.figure.panels.some((panel) => panel.name === box.dataset.panel && isOpen(panel));
}

export function listenToTools() {
  stopAtHead = roving($("overlay"), ".panel-legend button, .switch, .panel-size", "horizontal");
  $("whole-flow").addEventListener("click", wholeView);
  $("turn").addEventListener("click", () => {
    const { sequence: _, flight: __, ...vertical } = choice.vertical;
    return choose({ toggled: turned(`direction:${choice.flow}`), vertical });
  });
  $("save-picture").addEventListener("click", savePicture);
}
