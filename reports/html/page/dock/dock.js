// @ts-check
// The dock: while a packet is chosen, list and frame stay at the lower edge of the window, below the plots. Its upper edge is dragged, or
// moved by keys; its height is in the link.
import { elementAt } from "../elements.js";
import { isTyped } from "../keys.js";
import { choice, choose, continueStep } from "../link.js";
import { $ } from "../plotly.js";
import { onPaper } from "../print.js";

const USUAL_SHARE = 0.44, MOST_SHARE = 0.8; // of the window
const DOCK_LEAST = 140, DOCK_STEP = 20; // px
const ROWS_LEAST = 3, ROWS_PHONE = 6;
/** @type {Record<string, number>} */
const DOCK_STEPS = { ArrowUp: DOCK_STEP, ArrowDown: -DOCK_STEP, PageUp: 5 * DOCK_STEP, PageDown: -5 * DOCK_STEP };

export const isDocked = () => choice.frame !== null && !onPaper();
const usualHeight = () => Math.round(innerHeight * USUAL_SHARE);
/** @param {number} wanted */
const fittingHeight = (wanted) => Math.round(Math.max(DOCK_LEAST, Math.min(wanted, innerHeight * MOST_SHARE)));
const dockHeight = () => fittingHeight(choice.size.dock || usualHeight());

// Returns how many rows a list has in the dock, where it must not be higher than what is left of it.
/** @param {number} row @param {number} head @param {boolean} phone */
export function rowsInDock(row, head, phone) {
  const left = dockHeight() - $("dock-edge").offsetHeight - elementAt("#packets .tabs").offsetHeight - head - 4;
  return Math.max(ROWS_LEAST, phone ? Math.min(ROWS_PHONE, Math.floor(left / row)) : Math.floor(left / row));
}

export function placeDock() {
  const docked = isDocked(), edge = $("dock-edge");
  document.documentElement.style.setProperty("--dock", `${dockHeight()}px`);
  $("packets").classList.toggle("docked", docked);
  edge.hidden = $("undock").hidden = !docked;
  const values = { "aria-valuenow": dockHeight(), "aria-valuemin": DOCK_LEAST, "aria-valuemax": fittingHeight(Infinity) };
  for (const [name, number] of Object.entries(values)) edge.setAttribute(name, String(number));
}

// Chooses the height of the dock; the usual one is not in the link.
/** @param {number} wanted */
function resizeDock(wanted) {
  const height = fittingHeight(wanted), { dock: _, ...panels } = choice.size;
  return choose({ size: height === usualHeight() ? panels : { ...panels, dock: height } });
}

/** @param {PointerEvent} event */
function dragEdge(event) {
  if (event.button !== 0) return;
  const edge = $("dock-edge"), before = dockHeight(), wanted = (/** @type {PointerEvent} */ now) => before + event.clientY - now.clientY;
  const move = (/** @type {PointerEvent} */ now) => document.documentElement.style.setProperty("--dock", `${fittingHeight(wanted(now))}px`);
  const finish = (/** @type {PointerEvent} */ end) => {
    edge.removeEventListener("pointermove", move);
    edge.removeEventListener("pointerup", finish);
    edge.removeEventListener("pointercancel", finish);
    if (end.type === "pointercancel") placeDock();
    else resizeDock(wanted(end));
  };
  event.preventDefault();
  edge.focus({ preventScroll: true });
  edge.setPointerCapture(event.pointerId);
  edge.addEventListener("pointermove", move);
  edge.addEventListener("pointerup", finish);
  edge.addEventListener("pointercancel", finish);
}

/** @param {KeyboardEvent} event */
function edgeKeys(event) {
  const step = DOCK_STEPS[event.key];
  if ((step === undefined && event.key !== "Home") || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  continueStep(); // consecutive steps are one in the history
  resizeDock(step === undefined ? usualHeight() : dockHeight() + step);
}

// Scrolls the page so that a mark of the chosen packet is above the dock, if the plots or the packets are in view and none is.
export function revealMark() {
  const marks = [...document.querySelectorAll(".mark-ring")], bench = $("bench").getBoundingClientRect();
  if (!isDocked() || !document.body.dataset.ready || bench.bottom < 0 || bench.top > innerHeight) return;
  const hidden = $("packets").getBoundingClientRect().bottom - innerHeight;
  if (hidden > 1) scrollBy(0, hidden);
  const room = innerHeight - dockHeight(), places = marks.map((mark) => mark.getBoundingClientRect()).map(({ top, height }) => top + height / 2);
  if (places.length && !places.some((y) => y > 0 && y < room)) scrollBy(0, places[0] - room / 2);
}

export function listenDock() {
  $("dock-edge").addEventListener("pointerdown", dragEdge);
  $("dock-edge").addEventListener("keydown", edgeKeys);
  $("undock").addEventListener("click", () => choose({ frame: null }));
  $("packets").addEventListener("keydown", (event) => event.key === "Escape" && isDocked() && !isTyped(event) && choose({ frame: null }));
}
