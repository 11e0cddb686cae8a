// @ts-check
// Elements that the parts of a page make, and the button that copies a text.

export const SVG = "http://www.w3.org/2000/svg";

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {Partial<HTMLElementTagNameMap[K]>} [properties] @param {...Node | string} children */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

/** @param {HTMLElement} made @param {number} top */
export function atTop(made, top) {
  made.style.top = `${top}px`;
  return made;
}

/** @param {string} name @param {Record<string, string | number>} attributes @param {string | number} [text] */
export function svgShape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = String(text);
  return made;
}

/** @param {HTMLElement} button @param {string} text */
export async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.body.dataset.copied = text;
  button.dataset.label ||= button.textContent ?? "";
  button.textContent = "copied";
  setTimeout(() => (button.textContent = button.dataset.label ?? ""), 1200);
}

/** The element at which an event happened. @param {Event} event */
export const targetOf = (event) => /** @type {HTMLElement} */ (event.target);

/** The element that a template or another part has made. @param {string} selector @param {ParentNode} [place] */
export const elementAt = (selector, place = document) => /** @type {HTMLElement} */ (place.querySelector(selector));

/** @param {HTMLTableElement} table */
export const headOfTable = (table) => /** @type {HTMLTableSectionElement} */ (table.tHead);

// Returns a small button that turns a facet of the selection; page/selection/chips.js listens to all of them.
/** @param {string} facet @param {string} label */
export function onlyButton(facet, label) {
  const button = element("button", { type: "button", className: "plain only", textContent: "only", title: label });
  button.setAttribute("aria-label", label);
  button.dataset.only = facet;
  return button;
}
