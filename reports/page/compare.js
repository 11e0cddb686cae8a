// SPDX-License-Identifier: Apache-2.0
// Draws the figures that the page brings along, in the page's colours.
"use strict";
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

async function inflate(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await inflate($("plotly").textContent));
  document.head.append(script);
}

function inColors(layout) {
  const style = getComputedStyle(document.documentElement), made = structuredClone(layout);
  const ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
  made.font = { ...made.font, color: ink };
  for (const axis of ["xaxis", "yaxis"]) made[axis] = { ...made[axis], gridcolor: line, linecolor: line };
  made.hoverlabel = { bgcolor: style.getPropertyValue("--paper").trim(), bordercolor: line, font: { color: ink } };
  return made;
}

async function draw() {
  for (const [name, figure] of Object.entries(data.figures)) {
    if (!$(name)) continue;
    await Plotly.react($(name), figure.data, inColors(figure.layout), {
      displaylogo: false, showSendToCloud: false, responsive: true, displayModeBar: name.startsWith("sankey") ? false : undefined,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    });
  }
}

async function start() {
  await loadPlotly();
  await draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.body.dataset.ready = "yes";
}

start();
