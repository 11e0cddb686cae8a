// @ts-check
// The waterfall: the requests of the chosen flow's client over time, those of all its connections together, each as a bar of its parts.
import { legendItem, sinceStart, ticksWithin, timeStep } from "../capture/chart.js";
import { tables } from "../capture/tables.js";
import { isDocked, rowsInDock } from "../dock/dock.js";
import { element, elementAt, targetOf } from "../elements.js";
import { choice, choose, chosenFlow, continueStep } from "../link.js";
import { endAddress } from "../list/flows.js";
import { $, data, inflate } from "../plotly.js";
import { duration, prefixed, whole } from "../units.js";
import { REQUEST_PARTS, requestsOf } from "./requests.js";

const HANDSHAKES = new Set(["connecting", "tls"]); // parts of a connection without a request
const REQUEST_ROW = 24, REQUEST_ROW_PHONE = 32, REQUEST_HEAD = 28, REQUESTS_MOST = 20; // px, px, px, rows
const TICK_ROOM = 80, BAR_LEAST = 1, DRAG_LEAST = 5; // px
const phone = matchMedia("(max-width: 760px)");
/** @type {ExchangeRow[]} */
let exchanges = [];
export const exchangesOfPage = () => exchanges;
/** @type {{ all: PageRequest[], rows: PageRequest[], client: string, range: Span, dragged: boolean }} */
const waterfall = { all: [], rows: [], client: "", range: [0, 1], dragged: false };
const requestRow = () => (phone.matches ? REQUEST_ROW_PHONE : REQUEST_ROW);
export const WATERFALL = { row: requestRow, head: REQUEST_HEAD, most: () => (isDocked() ? rowsInDock(requestRow(), REQUEST_HEAD + $("waterfall-legend").offsetHeight, phone.matches) : REQUESTS_MOST) };

export async function loadRequests() {
  const { rows } = data.requests;
  if (!rows) return;
  exchanges = JSON.parse(new TextDecoder().decode(await inflate(rows)));
  waterfall.all = requestsOf(exchanges);
}

/** @param {PageRequest} request @param {Span} range */
const isWithin = ({ from, to, parts }, [low, high]) => from <= high && (to >= low || parts.some((one) => one.to >= low));

// Takes the requests of the chosen flow's client in the chosen range. Returns how many there are.
export function takeRequests() {
  const row = tables.flows.rowOf(chosenFlow());
  const client = waterfall.all.find(({ flow }) => flow === chosenFlow())?.client || (row < 0 ? "" : endAddress(row, "source"));
  const own = waterfall.all.filter((request) => request.client === client), rows = own.filter((request) => !choice.range || isWithin(request, choice.range));
  const from = Math.min(...rows.map((request) => request.from)), to = Math.max(...rows.map((request) => request.to));
  Object.assign(waterfall, { client, rows, range: choice.range ?? [from, to > from ? to : from + 1e-6] });
  const parts = new Set(rows.flatMap((request) => request.parts.map(({ part }) => part)));
  $("waterfall-legend").replaceChildren(...Object.keys(REQUEST_PARTS).filter((part) => parts.has(part)).map((part) => legendItem(`time-${part}`, REQUEST_PARTS[part])));
  return rows.length;
}

export function requestsText() {
  const { rows, client } = waterfall, flows = new Set(rows.flatMap(({ flow }) => flow ?? [])).size, { held, of } = data.requests;
  if (!rows.length) return of ? `No request of ${client} ${choice.range ? "in this range" : "in the page"}` : "The capture has no requests";
  const noun = rows.some(({ parts }) => parts.some(({ part }) => !HANDSHAKES.has(part))) ? "request" : "connection";
  return `${whole(rows.length)} ${noun}${rows.length === 1 ? "" : "s"} of ${client}${flows ? ` in ${whole(flows)} ${flows === 1 ? "flow" : "flows"}` : ""}${held < of ? `; the page has ${whole(held)} of ${whole(of)} exchanges` : ""}`;
}

// Returns the place of the chosen packet's request: the last one of its flow that was sent before, or the first one; -1 without one.
export function placeOfRequest() {
  const { rows } = waterfall, flow = chosenFlow(), frame = choice.frame;
  if (frame === null) return -1;
  const at = rows.findLastIndex((request) => request.flow === flow && (request.frame ?? Infinity) <= frame);
  return at < 0 ? rows.findIndex((request) => request.flow === flow) : at;
}

// Returns the parts of a request in words, as "server 50 ms, round trip 20 ms".
/** @param {PageRequest} request */
function partsText({ parts, from, to }) {
  const sums = new Map();
  for (const one of parts) sums.set(one.part, (sums.get(one.part) ?? 0) + one.to - one.from);
  const texts = Object.keys(REQUEST_PARTS).filter((part) => sums.has(part)).map((part) => (Number.isFinite(sums.get(part)) ? `${REQUEST_PARTS[part]} ${duration(sums.get(part) * 1e9)}` : `${REQUEST_PARTS[part]}, not ended`));
  return `${duration((to - from) * 1e9)}: ${texts.join(", ")}`;
}

// Returns the bar of a request, cut at the ends of the axis; places are shares of its width.
/** @param {PageRequest} request */
function requestBar(request) {
  const [low, high] = waterfall.range, bar = element("div", { className: "request-bar", title: partsText(request) });
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", partsText(request));
  for (const { part, from, to } of request.parts) {
    const begin = Math.max(from, low), end = Math.min(to, high);
    if (end < low || begin > high) continue;
    const piece = element("i", { className: `time-${part}` });
    Object.assign(piece.style, { left: `min(100% - ${BAR_LEAST}px, ${(100 * (begin - low)) / (high - low)}%)`, width: `max(${BAR_LEAST}px, ${(100 * (end - begin)) / (high - low)}%)` });
    bar.append(piece);
  }
  return bar;
}

/** @param {PageRequest} request @param {number} at */
function requestCells(request, at) {
  const row = document.createElement("tr"), texts = [request.flow === null ? "" : String(request.flow), request.label, request.result, request.bytes === null ? "" : prefixed(request.bytes, "B"), duration((request.to - request.from) * 1e9)];
  row.setAttribute("role", "row");
  row.id = `request-${at}`;
  row.dataset.request = String(at);
  row.setAttribute("aria-rowindex", String(at + 2));
  row.setAttribute("aria-selected", String(at === placeOfRequest()));
  for (const [place, text] of texts.entries()) {
    const cell = element("td", { className: ["n", "", request.failed ? "failed wide" : "wide", "n wide", "n"][place], textContent: text, title: place === 1 ? `${text}${request.result ? ` · ${request.result}` : ""}` : "" });
    cell.setAttribute("role", "gridcell");
    row.append(cell);
  }
  const cell = element("td", { className: "request-time" }, requestBar(request));
  cell.setAttribute("role", "gridcell");
  row.append(cell);
  return row;
}

// Draws the ticks of the time axis in the head.
function drawRequestAxis() {
  const [low, high] = waterfall.range, head = elementAt("#waterfall-rows .request-axis"), room = head.clientWidth;
  const { step, ticks } = ticksWithin(low, high, Math.max(1, Math.floor(room / TICK_ROOM)), timeStep);
  head.replaceChildren(...ticks.map((tick, k) => {
    const share = (tick - low) / (high - low), mark = element("span", { textContent: `${sinceStart(tick, step, high)}${k ? "" : " s"}` });
    Object.assign(mark.style, share > 1 - 40 / room ? { right: "0" } : { left: `${100 * share}%` });
    return mark;
  }));
}

/** @param {number} first @param {number} count */
export function drawWaterfall(first, count) {
  const body = document.createElement("tbody");
  body.setAttribute("role", "rowgroup");
  $("waterfall-rows").setAttribute("aria-rowcount", String(waterfall.rows.length + 1));
  for (let at = first; at < first + count; at++) body.append(requestCells(waterfall.rows[at], at));
  elementAt("tbody", $("waterfall-rows")).replaceWith(body);
  drawRequestAxis();
  if (body.querySelector("[aria-selected=true]")) $("waterfall-rows").setAttribute("aria-activedescendant", `request-${placeOfRequest()}`);
  else $("waterfall-rows").removeAttribute("aria-activedescendant");
}

// Chooses flow and packet of a request; the range stays.
/** @param {number} at */
function chooseRequest(at) {
  const request = waterfall.rows[at];
  if (!request || request.flow === null) return;
  choose({ flow: request.flow, frame: request.frame, range: choice.range });
}

// Chooses a range of time by a drag over the bars, and a request by a click.
/** @param {PointerEvent} event */
function dragTime(event) {
  const cell = targetOf(event).closest(".request-time");
  if (!cell || event.button !== 0 || event.pointerType === "touch") return;
  const [low, high] = waterfall.range, box = cell.getBoundingClientRect(), place = $("waterfall-rows"), shade = element("div", { className: "request-drag" });
  /** @param {PointerEvent} now */
  const timesTo = (now) => [event.clientX, now.clientX].map((x) => low + (high - low) * Math.max(0, Math.min(1, (x - box.left) / box.width))).sort((a, b) => a - b);
  /** @param {PointerEvent} now */
  const move = (now) => {
    const [from, to] = timesTo(now), frame = place.getBoundingClientRect();
    Object.assign(shade.style, { left: `${box.left - frame.left + (box.width * (from - low)) / (high - low)}px`, width: `${(box.width * (to - from)) / (high - low)}px`, top: `${place.scrollTop}px`, height: `${place.clientHeight}px` });
    place.append(shade);
  };
  const finish = (/** @type {PointerEvent} */ end) => {
    for (const [name, listen] of /** @type {const} */ ([["pointermove", move], ["pointerup", finish], ["pointercancel", finish]])) removeEventListener(name, listen);
    shade.remove();
    const [from, to] = timesTo(end);
    if (end.type !== "pointerup" || Math.abs(end.clientX - event.clientX) < DRAG_LEAST) return;
    waterfall.dragged = true; // the click that ends a drag chooses no request
    setTimeout(() => {
      waterfall.dragged = false;
      choose({ range: [from, to], vertical: {} });
    });
  };
  event.preventDefault();
  place.focus({ preventScroll: true });
  addEventListener("pointermove", move);
  addEventListener("pointerup", finish);
  addEventListener("pointercancel", finish);
}

/** @type {Record<string, number>} */
const REQUEST_STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

export function listenWaterfall() {
  $("waterfall-rows").addEventListener("pointerdown", dragTime);
  $("waterfall-rows").addEventListener("dblclick", (event) => targetOf(event).closest(".request-time") && choose({ range: choice.during, vertical: {} }));
  $("waterfall-rows").addEventListener("click", (event) => {
    const row = targetOf(event).closest("[data-request]");
    if (row && !waterfall.dragged) chooseRequest(Number(row.dataset.request));
  });
  $("waterfall-rows").addEventListener("keydown", (event) => {
    const step = REQUEST_STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    continueStep();
    chooseRequest(Math.max(0, Math.min(waterfall.rows.length - 1, placeOfRequest() < 0 ? 0 : placeOfRequest() + step)));
  });
}
