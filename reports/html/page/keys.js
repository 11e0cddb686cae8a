// @ts-check
// The keyboard: one tab stop for a list, a row of buttons or all plots; arrow keys move inside.
import { targetOf } from "./elements.js";
import { $ } from "./plotly.js";

const VERTICAL = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
const HORIZONTAL = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
/** @type {Record<"vertical" | "horizontal" | "updown" | "both", Record<string, number>>} */
const STEPS = { vertical: VERTICAL, horizontal: HORIZONTAL, updown: { ArrowDown: 1, ArrowUp: -1 }, both: { ...VERTICAL, ...HORIZONTAL } };

// Makes the items that a selector finds in a container one tab stop. Returns a function that moves it to an item, or to
// the first one; it must be called if the items are replaced.
/** @param {HTMLElement} container @param {string} selector @param {keyof typeof STEPS} way */
export function roving(container, selector, way) {
  const items = () => [...container.querySelectorAll(selector)].filter((item) => !item.closest("[hidden]"));
  /** @param {Element | null} chosen */
  const stopAt = (chosen) => {
    const all = items(), stop = all.find((item) => item === chosen) ?? all[0];
    for (const item of all) item.tabIndex = item === stop ? 0 : -1;
  };
  container.addEventListener("focusin", (event) => targetOf(event).matches(selector) && stopAt(targetOf(event)));
  container.addEventListener("keydown", (event) => {
    const step = STEPS[way][event.key], all = items(), at = all.indexOf(targetOf(event));
    if (step === undefined || at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    all[Math.min(all.length - 1, Math.max(0, at + step))].focus();
  });
  stopAt(null);
  return stopAt;
}

// A table wider than its container can be scrolled by keys, unless it contains a focusable element.
function scrollable() {
  for (const region of document.querySelectorAll(".scroll")) {
    const hidden = region.scrollWidth > region.clientWidth + 1 || region.scrollHeight > region.clientHeight + 1;
    if (hidden && !region.querySelector("button, [tabindex]")) {
      region.tabIndex = 0;
      region.setAttribute("role", "group");
      region.setAttribute("aria-label", region.closest("section")?.querySelector("h2")?.textContent ?? "");
    } else region.removeAttribute("tabindex");
  }
}

/** The factor and the shift of the range. @type {Record<string, Span>} */
export const PLOT_KEYS = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowRight: [1, 0.25], ArrowLeft: [1, -0.25] };

export const LEAST = 2e-9; // least range in seconds, because links have nanoseconds

// Shrinks or moves the ranges of the time axes by a share of the view.
/** @param {Plot} place @param {Span} by */
function moveView(place, [shrink, shift]) {
  /** @type {Record<string, number>} */
  const change = {};
  for (const [name, axis] of Object.entries(place._fullLayout)) {
    if (!/^xaxis\d*$/.test(name) || axis.fixedrange) continue;
    const [from, to] = [axis.r2l(axis.range[0]), axis.r2l(axis.range[1])], middle = (from + to) / 2 + shift * (to - from), half = Math.max(((to - from) / 2) * shrink, LEAST / 2);
    change[`${name}.range[0]`] = axis.l2r(middle - half);
    change[`${name}.range[1]`] = axis.l2r(middle + half);
  }
  return Plotly.relayout(place, change);
}

// A plot takes the focus itself. Its buttons are for the pointer, because keys do the same.
/** @param {Plot[]} places @param {(place: Plot) => unknown} wholeView */
export function plotKeys(places, wholeView) {
  for (const place of places) {
    place.classList.add("keyed");
    place.tabIndex = 0;
    place.addEventListener("keydown", (event) => {
      if (event.target !== place || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key !== "0" && !PLOT_KEYS[event.key]) return;
      event.preventDefault();
      if (event.key === "0") wholeView(place);
      else moveView(place, PLOT_KEYS[event.key]);
    });
  }
  if (places.length > 1) roving(document.body, ".keyed", "updown");
}

/** @param {HTMLElement} place */
export function quietButtons(place) {
  for (const button of place.querySelectorAll(".modebar button, .modebar [tabindex]")) button.tabIndex = -1;
}

// Opens the list of all keys, or closes it. The browser keeps the focus inside, closes it on Escape, and gives the focus back.
function toggleKeyList() {
  if ($("keys").open) $("keys").close();
  else $("keys").showModal();
  return true;
}

function searchKey() {
  /** @type {HTMLInputElement | null} */
  const search = document.querySelector("input[type=search]");
  if (!search || $("keys").open) return false;
  search.focus();
  search.select();
  return true;
}

/** Functions that return whether they did something. @type {Record<string, () => boolean>} */
const PAGE_KEYS = { "?": toggleKeyList, "/": searchKey };

// Whether a key is text for the element with the focus, or one of a shortcut of the browser.
/** @param {KeyboardEvent} event */
export const isTyped = (event) => event.ctrlKey || event.altKey || event.metaKey || Boolean(targetOf(event).closest("input, textarea, select"));

function listenForPageKeys() {
  for (const [number, button] of document.querySelectorAll(".show-keys").entries()) {
    button.addEventListener("click", toggleKeyList);
    if (number) button.tabIndex = -1; // the first one is enough for the keyboard
  }
  $("close-keys").addEventListener("click", toggleKeyList);
  $("keys").addEventListener("click", (event) => event.target === $("keys") && toggleKeyList()); // beside its content
  document.addEventListener("keydown", (event) => {
    if (!isTyped(event) && PAGE_KEYS[event.key]?.()) event.preventDefault();
  });
}

export function pageKeys() {
  listenForPageKeys();
  for (const list of document.querySelectorAll(".findings")) roving(list, "button", "both");
  scrollable();
  addEventListener("resize", scrollable);
}
