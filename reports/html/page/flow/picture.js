// @ts-check
// "Save SVG": the plot as Plotly draws it, and what is HTML on the page at the same places: heads of the panels with their legends, and
// words over the plots. The legend of overlaid flows comes first.
import { SVG, element } from "../elements.js";
import { choice } from "../link.js";
import { $ } from "../plotly.js";
import { shownCanvas } from "./canvas/canvas.js";
import { isOverlaid } from "./drawn_flows.js";
import { area, view } from "./figure.js";

const LEFT_OUT = "select, .switch, .value, .remove, .copy, .panel-size, .cross, .cross-time, .cross-tip, .zoom-box, [aria-pressed='false']";
const LEGEND_GAP = 8; // px

/** @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
function shapeOf(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

// Returns the text, icons and bands of an element as SVG, with the origin at this point of the window.
/** @param {Element} root @param {number} left @param {number} top */
function* shapesIn(root, left, top) {
  const seen = (/** @type {Element} */ part) => part.checkVisibility() && !part.closest(LEFT_OUT), range = document.createRange();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const { textContent: text, parentElement: holder } = node;
    if (!text?.trim() || !holder || !seen(holder)) continue;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect(), { color, fontSize, fontWeight } = getComputedStyle(holder);
    const y = box.top + box.height / 2 - top;
    yield shapeOf("text", { x: box.left - left, y, "dominant-baseline": "central", fill: color, "font-size": fontSize, "font-weight": fontWeight, style: "white-space: pre" }, text);
  }
  for (const icon of root.querySelectorAll("svg, .band")) {
    if (!seen(icon)) continue;
    const box = icon.getBoundingClientRect(), { backgroundColor, clipPath } = getComputedStyle(icon);
    const at = { x: box.left - left, y: box.top - top, width: box.width, height: box.height };
    if (icon.classList.contains("band")) yield shapeOf("rect", { ...at, fill: backgroundColor, ...(clipPath === "none" ? {} : { style: `clip-path: ${clipPath}` }) });
    else yield iconAt(icon, at);
  }
}

/** @param {Element} icon @param {{ x: number, y: number, width: number, height: number }} at */
function iconAt(icon, at) {
  const made = /** @type {Element} */ (icon.cloneNode(true)), painted = icon.querySelectorAll("path");
  for (const [key, value] of Object.entries(at)) made.setAttribute(key, String(value));
  made.querySelectorAll("path").forEach((path, i) => {
    for (const name of /** @type {const} */ (["fill", "stroke"])) path.setAttribute(name, getComputedStyle(painted[i])[name]); // a file has no variables of the page
  });
  return made;
}

export async function savePicture() {
  const plot = $("plot"), list = $("with-list"), { width = 0, height = 0 } = plot._fullLayout;
  const picture = new DOMParser().parseFromString(await Plotly.toImage(plot, { format: "svg", width, height, imageDataOnly: true }), "image/svg+xml").documentElement;
  const at = plot.getBoundingClientRect(), legend = list.getBoundingClientRect(), top = isOverlaid() ? legend.height + LEGEND_GAP : 0;
  const words = shapeOf("g", { "font-family": "system-ui, sans-serif" });
  if (isOverlaid()) words.append(...shapesIn(list, legend.left, legend.top + top));
  words.append(...shapesIn($("overlay"), at.left, at.top));
  for (const [key, value] of Object.entries({ viewBox: `0 ${-top} ${width} ${height + top}`, height: height + top, style: "" })) picture.setAttribute(key, String(value));
  picture.append(words);
  const canvas = shownCanvas();
  if (canvas) picture.prepend(shapeOf("image", { href: canvas.toDataURL(), x: area().l, y: 0, width: area().w, height: view.stack.height }));
  picture.prepend(shapeOf("rect", { x: 0, y: -top, width, height: height + top, fill: getComputedStyle(document.body).backgroundColor }));
  for (const line of picture.querySelectorAll("path.js-line:not([style*='dasharray'])")) line.setAttribute("stroke-linecap", "square"); // as the style of the page
  const file = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" }));
  element("a", { href: file, download: `flow-${choice.flow}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(file), 10_000);
}
