// SPDX-License-Identifier: Apache-2.0
// The page of an experiment: its figures are whole, and only drawn here.
"use strict";

const $ = (id) => document.getElementById(id);
const CONFIG = { displaylogo: false, showSendToCloud: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

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

function colored(layout) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
  const paper = style.getPropertyValue("--paper").trim();
  layout.font.color = ink;
  layout.hoverlabel = layout.hovermode === "x unified" ? { bgcolor: paper } : {};
  for (const axis of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) Object.assign(layout[axis], { gridcolor: line, linecolor: line });
  return layout;
}

async function draw() {
  const figures = JSON.parse($("data").textContent);
  for (const [i, { data, layout }] of figures.entries()) await Plotly.react($(`figure-${i + 1}`), structuredClone(data), colored(structuredClone(layout)), CONFIG);
}

async function start() {
  await loadPlotly();
  await draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.body.dataset.ready = "yes";
}

start();
