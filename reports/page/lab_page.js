// SPDX-License-Identifier: Apache-2.0
"use strict";

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await inflate($("plotly").textContent));
  document.head.append(script);
}

function inked(layout) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
  const axes = Object.keys(layout).filter((key) => /^[xy]axis/.test(key));
  const colored = axes.map((key) => [key, { ...layout[key], gridcolor: line, linecolor: line, tickcolor: line }]);
  return { ...layout, ...Object.fromEntries(colored), font: { ...layout.font, color: ink } };
}

async function draw() {
  const config = { responsive: true, displaylogo: false, showSendToCloud: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
  for (const [number, figure] of data.figures.entries()) {
    await Plotly.react($(`plot-${number}`), figure.data, inked(figure.layout), config);
  }
}

async function start() {
  await loadPlotly();
  await draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.body.dataset.ready = "yes";
}

start();
