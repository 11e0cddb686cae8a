// @ts-check
// The selection in words: a chip for each part of it, which removes this part, and the menu of facets.
import { tables } from "../capture/tables.js";
import { element, elementAt, targetOf } from "../elements.js";
import { choice, hasAny, onChoice } from "../link.js";
import { $, data } from "../plotly.js";
import { momentText, whole } from "../units.js";
import { FACETS, facetParts, isSelection, select, selectedRows, turnFacet, typedFacet } from "./selection.js";

const OFFERED = 8; // values of a facet in the menu

/** @param {string} facet */
function facetWords(facet) {
  const [name, of] = facetParts(facet), { words, text } = FACETS[name] ?? { words: name };
  return `${words} ${text ? text(of) : of}`;
}

// --- chips -----------------------------------------------------------------------------------------------------

/** @param {string} words @param {() => unknown} remove */
function chip(words, remove) {
  const button = element("button", { type: "button", className: "chip", title: `remove ${words}` }, `${words} ×`);
  button.setAttribute("aria-label", `remove ${words}`);
  button.addEventListener("click", remove);
  return button;
}

// Returns how many flows are selected; a page has the first flows alone of a cause of very many.
function countWords() {
  const count = selectedRows().length, all = data.flows.held;
  const cut = choice.only.filter((facet) => facet.startsWith("cause:")).map((facet) => data.causes[Number(facetParts(facet)[1]) - 1]).find((cause) => cause && cause.members > cause.flows.length);
  return `${count ? whole(count) : "None"} of ${whole(all)} ${all === 1 ? "flow" : "flows"}${cut ? `, the first ${whole(cut.flows.length)} of ${whole(cut.members)} that the cause is about` : ""}`;
}

function drawChips() {
  $("flow-view").hidden = isSelection() && !selectedRows().length;
  $("chips").hidden = !isSelection();
  $("chips").replaceChildren();
  if (!isSelection()) return;
  const chips = choice.only.map((facet) => chip(facetWords(facet), () => turnFacet(facet)));
  if (choice.during) chips.push(chip(momentText(...choice.during), () => select({ during: null })));
  if (choice.find) chips.push(chip(`“${choice.find}”`, () => select({ find: "" })));
  $("chips").append(element("span", { id: "selected-count", textContent: countWords() }), ...chips);
  if (chips.length > 1) {
    const clear = element("button", { type: "button", className: "chip" }, "Clear");
    clear.addEventListener("click", () => select({ only: [], during: null, find: "" }));
    $("chips").append(clear);
  }
  for (const button of document.querySelectorAll("[data-only]")) button.setAttribute("aria-pressed", String(choice.only.includes(button.dataset.only ?? "")));
}

// --- the menu --------------------------------------------------------------------------------------------------

// Returns the values of a facet that most of the selected flows have, with their numbers of flows.
/** @param {string} name @param {Uint32Array} rows @returns {[string, number][]} */
function valuesOf(name, rows) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const row of rows) for (const of of new Set(FACETS[name].values(row))) counts.set(of, (counts.get(of) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, OFFERED);
}

function drawMenu() {
  const rows = selectedRows();
  elementAt("#facets > div").replaceChildren(...Object.entries(FACETS).flatMap(([name, { words, text }]) => {
    const values = valuesOf(name, rows);
    if (!values.length) return [];
    const buttons = values.map(([of, count]) => {
      const button = element("button", { type: "button", className: "plain" }, `${text ? text(of) : of} `, element("small", { textContent: whole(count) }));
      button.dataset.only = `${name}:${of}`;
      button.setAttribute("aria-pressed", String(choice.only.includes(`${name}:${of}`)));
      return element("li", {}, button);
    });
    return [element("div", {}, element("b", { textContent: words }), element("ul", {}, ...buttons))];
  }));
}

// Takes facets that were typed, as `port:443`, out of the words of the search.
function typed() {
  const words = choice.find.split(/\s+/).filter(Boolean), facets = words.map(typedFacet).filter(Boolean);
  return select({ find: words.filter((word) => !typedFacet(word)).join(" "), only: [...new Set([...choice.only, ...facets])] });
}

/** @param {Event} event */
function closeMenu(event) {
  const menu = /** @type {HTMLDetailsElement} */ ($("facets"));
  const left = event instanceof KeyboardEvent ? event.key === "Escape" : !targetOf(event).closest("#facets");
  if (menu.open && left) menu.open = false;
}

export function startChips() {
  document.addEventListener("click", (event) => {
    const asked = targetOf(event).closest("[data-only]");
    if (asked?.dataset.only) turnFacet(asked.dataset.only);
  });
  document.addEventListener("pointerdown", closeMenu);
  document.addEventListener("keydown", closeMenu);
  $("facets").hidden = !tables.flows.number.length;
  $("facets").addEventListener("toggle", () => /** @type {HTMLDetailsElement} */ ($("facets")).open && drawMenu());
  $("find").addEventListener("keydown", (event) => event.key === "Enter" && typed());
  onChoice((changed) => {
    if (!hasAny(changed, ["find", "only", "during"])) return;
    drawChips();
    if (/** @type {HTMLDetailsElement} */ ($("facets")).open) drawMenu();
  });
}
