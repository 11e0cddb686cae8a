// @ts-check
// SPDX-License-Identifier: Apache-2.0
// The first script of every page: its data, its colors, and Plotly, which is compressed.

/** The element of an id, which the template has. @type {<K extends string>(id: K) => K extends keyof Elements ? Elements[K] : HTMLElement} */
export const $ = (id) => /** @type {any} */ (document.getElementById(id));
/** @type {PageData} */
export const data = JSON.parse($("data").textContent);
export const CONFIG = {
  displaylogo: false, showSendToCloud: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

// Returns the colors of the page.
export function colors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["ink", "muted", "bg", "line", "grid", "accent", "axis", "sender", "receiver", "network", "evidence"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// The colors of figures that Python has made, which are those of page.css on white.
/** @type {Record<string, string>} */
const TOKENS = {
  "#2a3540": "sender", "#008a7a": "receiver", "#b93a06": "network", "#6b4aa8": "server", "#55626f": "muted",
  "#478fff": "flow-1", "#8f2400": "flow-2", "#47006b": "flow-3", "#d66b24": "flow-4", "#000000": "flow-5", "#8f8f8f": "flow-6", "#4700ff": "flow-7", "#474747": "flow-8",
};

// Returns a copy of traces in the colors of the page as it is shown.
/** @template {object} T @param {T} traces @returns {T} */
export function inOwnColors(traces) {
  const style = getComputedStyle(document.documentElement);
  return JSON.parse(JSON.stringify(traces).replace(/#[0-9a-f]{6}/g, (hex) => (TOKENS[hex] ? style.getPropertyValue(`--${TOKENS[hex]}`).trim() : hex)));
}

// Applies the colors of the page to a layout: its text, grid and tooltips, and the crosshair.
/** @param {Layout} layout */
export function inColors(layout) {
  const own = colors();
  layout.font = { ...layout.font, color: own.ink };
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: own.muted, activecolor: own.accent };
  layout.hoverlabel = { bgcolor: own.bg, bordercolor: own.muted, font: { color: own.ink } };
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) Object.assign(layout[name], { gridcolor: own.grid, linecolor: own.line, tickcolor: own.line, tickfont: { size: 11, color: own.muted } });
  if (layout.xaxis) Object.assign(layout.xaxis, { title: { ...layout.xaxis.title, font: { size: 12, color: own.muted } }, showspikes: layout.dragmode !== false, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikedash: "solid", spikecolor: own.accent });
  return layout;
}

/** @param {Packed} text */
export async function inflate(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

export async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await inflate($("plotly").textContent));
  document.head.append(script);
}
