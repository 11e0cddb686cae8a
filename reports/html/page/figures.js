// @ts-check
// A page with complete figures, which are drawn in the colors of the page.
import { pageKeys, plotKeys, quietButtons, roving } from "./keys.js";
import { $, CONFIG, data, inColors, inOwnColors, loadPlotly } from "./plotly.js";
import { drawn, fitted, paper } from "./print.js";

/** @param {string} id */
const plotOf = (id) => /** @type {Plot} */ ($(id));
const drawnFigures = () => Object.keys(data.figures).map(plotOf);

/** @param {Plot} place */
async function drawFigure(place) {
  const figure = data.figures[place.id];
  const layout = fitted(inColors({ ...structuredClone(figure.layout), uirevision: "kept" }), place); // keeps zooms and legends
  await drawn(place, inOwnColors(figure.data), layout, { ...CONFIG, ...figure.config });
  quietButtons(place);
}

// All figures must begin at once, because a browser that prints does not wait.
const draw = () => Promise.all(drawnFigures().map(drawFigure));

/** @param {Plot} place */
function wholeView(place) {
  /** @type {Record<string, unknown>} */
  const change = {};
  for (const [name, axis] of Object.entries(data.figures[place.id].layout)) {
    if (!/^[xy]axis\d*$/.test(name) || axis.fixedrange) continue;
    if (axis.range) change[`${name}.range`] = axis.range.slice();
    else change[`${name}.autorange`] = true;
  }
  return Plotly.relayout(place, change);
}

// Adds buttons for the views of a figure; the current one is pressed.
/** @param {Plot} place @param {PlotlyFigure} figure */
function choices(place, { choices: ways }) {
  if (!ways?.length) return;
  const group = document.createElement("p");
  group.className = "choices";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "trials");
  /** @param {Way} chosen */
  const show = (chosen) => {
    ways.forEach((way, i) => group.children[i].setAttribute("aria-pressed", String(way === chosen)));
    data.figures[place.id].data.forEach((trace, i) => { for (const [key, values] of Object.entries(chosen.traces)) trace[key] = values[i]; });
  };
  for (const way of ways) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = way.label;
    button.addEventListener("click", () => { show(way); drawFigure(place); });
    group.append(button);
  }
  place.before(group);
  show(ways[0]);
  roving(group, "button", "both");
}

async function start() {
  for (const [id, figure] of Object.entries(data.figures)) choices(plotOf(id), figure);
  pageKeys();
  for (const rows of document.querySelectorAll(".stacked tbody")) roving(rows, "a", "updown");
  await loadPlotly();
  await draw();
  plotKeys(drawnFigures().filter((place) => place.getAttribute("role") === "group"), wholeView);
  paper(draw);
  document.body.dataset.ready = "yes";
}

start();
