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

// Applies the colors of the page to a layout.
/** @param {Layout} layout */
export function inColors(layout) {
  const own = colors();
  layout.font = { ...layout.font, color: own.ink };
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: own.muted, activecolor: own.accent };
  layout.hoverlabel = { bgcolor: own.bg, bordercolor: own.muted, font: { color: own.ink } };
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) Object.assign(layout[name], { gridcolor: own.grid, linecolor: own.line, tickcolor: own.line });
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
