// @ts-check
// The report of two runs: the flows that are selected, or all, are drawn over one time axis and as distributions.
import { element } from "./elements.js";
import { pageKeys, plotKeys, quietButtons } from "./keys.js";
import { begin, choice, choose, continueStep, hasAny, onChoice, trimmed } from "./link.js";
import { $, CONFIG, data, inColors, inOwnColors, loadPlotly } from "./plotly.js";
import { drawn, fitted, paper } from "./print.js";
import { valueTicks } from "./ticks.js";
import { prefixed, whole } from "./units.js";

/** @type {Record<string, number>} */
const WEIGHTS = { rate: 3, sequence: 3.4, rtt: 2, losses: 1.8 };
/** @type {Record<string, "throughput" | "position" | "rtt" | "lost">} */
const VALUES = { rate: "throughput", sequence: "position", rtt: "rtt", losses: "lost" };
const PANEL_PX = 76; // height of a weight of 1
const GAP = 0.05; // between panels, share of the figure
/** @type {("A" | "B")[]} */
const RUNS = ["A", "B"];

const pair = () => data.pairs[choice.flow ?? 0];
/** @param {Trace} made */
const runOf = (made) => /** @type {"A" | "B"} */ (made.meta);
const panelNames = () => data.figure.panels.map(({ name }) => name).filter((name) => RUNS.some((run) => pair()[run][VALUES[name]].some((value) => value !== null)));
/** @param {{ axis: number }} panel */
const axisName = ({ axis }) => (axis === 1 ? "yaxis" : `yaxis${axis}`);
/** @param {string} run */
const isShown = (run) => !choice.toggled.includes(run);

// A rate holds for its bin, counts are those at the end of a bin, and an RTT is within it.
/** @param {Course} course @param {string} panel */
function pointsOf(course, panel) {
  const values = course[VALUES[panel]], { x } = course, width = data.width;
  if (!values.length) return { x: [], y: [] };
  if (panel === "rate") return { x: [...x, x[x.length - 1] + width], y: [...values, 0] };
  if (panel === "rtt") return { x: x.map((time) => time + width / 2), y: values };
  return { x: [x[0], ...x.map((time) => time + width)], y: [0, ...values] };
}

/** @returns {Span} */
function wholeRange() {
  const ends = RUNS.flatMap((run) => pair()[run].x).concat(0);
  const end = Math.max(...ends) + data.width;
  return [0, end * 1.02];
}

// Returns the range of an axis: from 0 to the points in view, but as close as they are for positions and RTTs of a part.
/** @param {string} panel @param {{ x: number[], y: (number | null)[] }[]} traces @param {Span} range @returns {Span} */
function verticalRange(panel, traces, [from, to]) {
  if (choice.vertical[panel]) return spanOf(choice.vertical[panel]);
  let low = Infinity, high = -Infinity;
  for (const { x, y } of traces) {
    for (let i = 0; i < x.length; i++) {
      const value = y[i];
      if (value === null || (x[i + 1] ?? x[i]) < from || (x[i - 1] ?? x[i]) > to) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) return [0, 1];
  const near = choice.range && ["sequence", "rtt"].includes(panel);
  const margin = 0.06 * ((near ? high - low : high) || high || 1);
  return [near ? low - margin : -margin / 2, high + margin];
}

async function drawRuns() {
  const range = choice.range || wholeRange(), names = panelNames();
  const panels = data.figure.panels.filter(({ name }) => names.includes(name));
  const layout = structuredClone(data.figure.plot.layout);
  /** @type {Record<string, { x: number[], y: (number | null)[] }[]>} */
  const byPanel = {};
  const traces = inOwnColors(data.figure.plot.data).flatMap((made, i) => {
    const { name } = data.figure.panels[i % data.figure.panels.length];
    if (!names.includes(name)) return [];
    const points = pointsOf(pair()[runOf(made)], name);
    if (isShown(made.meta)) (byPanel[name] ||= []).push(points);
    const lacks = points.x.length ? {} : { x: [range[0]], y: [null] }; // keeps it in the legend
    const text = name === "rate" ? points.y.map((rate) => prefixed(rate, "bit/s")) : undefined;
    return [{ ...made, ...points, ...lacks, text, showlegend: name === names[0], visible: isShown(made.meta) ? true : "legendonly" }];
  });
  for (const panel of data.figure.panels) if (!names.includes(panel.name)) delete layout[axisName(panel)];
  layout.annotations = layout.annotations.filter((/** @type {{ name: string }} */ head) => layout[head.name]);
  inColors(layout);
  layout.dragmode = $("plot").layout?.dragmode || layout.dragmode;
  const total = panels.reduce((sum, { name }) => sum + WEIGHTS[name], 0);
  layout.height = 90 + PANEL_PX * total;
  layout.xaxis.range = range.slice();
  let top = 1;
  panels.forEach((panel, i) => {
    const share = WEIGHTS[panel.name] / total;
    const axis = axisName(panel), vertical = verticalRange(panel.name, byPanel[panel.name] || [], range);
    const { unit, ...ticks } = valueTicks(panel, vertical, { isLog: false, height: PANEL_PX * WEIGHTS[panel.name] });
    Object.assign(layout[axis], { domain: [Math.max(0, top - share), top - (i ? GAP : 0)], range: vertical, ...ticks });
    const head = layout.annotations.find((/** @type {{ name: string }} */ { name }) => name === axis);
    head.text = head.text.replace(/<\/b>.*/, `</b> ${unit}`);
    top -= share;
  });
  await drawn($("plot"), traces, fitted(layout, $("plot")), { ...CONFIG, doubleClick: false, modeBarButtonsToRemove: [...CONFIG.modeBarButtonsToRemove, "resetScale2d"] });
  quietButtons($("plot"));
}

/** @param {"rtt" | "delay"} name */
async function drawDistribution(name) {
  if (!$(name)) return;
  const figure = data.cdfs[name], counts = RUNS.map((run) => pair()[run][`${name}_samples`]);
  const traces = inOwnColors(figure.data).map((made) => {
    const values = pair()[runOf(made)][`${name}_shares`];
    return { ...made, x: values, y: values.map((_, i) => (100 * i) / (values.length - 1)), visible: isShown(made.meta) ? true : "legendonly" };
  });
  $(name).hidden = !counts.some(Boolean);
  $(`${name}-note`).textContent = counts.some(Boolean) ? `Samples: A ${whole(counts[0])}, B ${whole(counts[1])}.` : `No ${name === "rtt" ? "RTTs" : "delays of blocks"} are known of these flows.`;
  if ($(name).hidden) return;
  const first = !$(name).on;
  await drawn($(name), traces, fitted(inColors(structuredClone(figure.layout)), $(name)), CONFIG);
  if (first) $(name).on("plotly_restyle", () => legendChanged($(name)));
  quietButtons($(name));
}

// Shows the links to the packets of the chosen flows and range in the reports of the runs.
function linkPackets() {
  const range = choice.range?.map((time) => trimmed(Math.max(0, time), 6)).join("-"), { flows } = pair();
  const links = Object.entries(data.reports).map(([run, href]) => {
    const flow = flows && `flow=${flows[/** @type {"A" | "B"} */ (run)]}`, time = range && `${flow ? "t" : "during"}=${range}`;
    return element("a", { href: href + [flow, time].filter(Boolean).join("&"), textContent: `packets of ${run}` });
  });
  $("packets").replaceChildren(...links.flatMap((link, i) => (i ? [" · ", link] : [link])));
}

async function draw() {
  linkPackets();
  $("pair").value = String(choice.flow ?? 0);
  $("pair-name").textContent = pair().label;
  await Promise.all([drawRuns(), drawDistribution("rtt"), drawDistribution("delay")]);
  document.body.dataset.flow = String(choice.flow ?? 0);
}

/** @param {unknown[]} range @returns {Span} */
const spanOf = (range) => [Number(range[0]), Number(range[1])];

// Plotly has changed axes: the time axis holds for all panels, a vertical range for one.
/** @param {object} change */
function zoomed(change) {
  const moved = new Set(Object.keys(change).map((key) => key.match(/^([xy]axis\d*)\./)?.[1]).filter(Boolean));
  if (!moved.size) return;
  const { layout } = $("plot"), vertical = { ...choice.vertical };
  for (const panel of data.figure.panels) if (moved.has(axisName(panel))) vertical[panel.name] = spanOf(layout[axisName(panel)].range);
  return choose({ range: moved.has("xaxis") ? spanOf(layout.xaxis.range) : choice.range, vertical });
}

/** @param {Plot} [place] */
const wholeView = (place = $("plot")) => (place === $("plot") ? choose({ range: null, vertical: {} }) : Plotly.relayout(place, { "xaxis.autorange": true, "yaxis.range": [0, 102] }));

/** @param {Plot} place */
function legendChanged(place) {
  return choose({ toggled: RUNS.filter((run) => place.data.some((trace) => trace.meta === run && trace.visible === "legendonly")) });
}

async function start() {
  pageKeys();
  if (data.pairs.length) {
    await loadPlotly();
    onChoice(async (changed) => { if (hasAny(changed, ["flow", "range", "vertical", "toggled"])) await draw(); });
    await begin({ flow: 0 }, (number) => Boolean(data.pairs[number]));
    const places = [$("plot"), $("rtt"), $("delay")].filter(Boolean);
    $("plot").on("plotly_relayout", zoomed);
    $("plot").on("plotly_doubleclick", () => wholeView());
    $("plot").on("plotly_restyle", () => legendChanged($("plot")));
    $("pair").addEventListener("change", () => choose({ flow: Number($("pair").value) }));
    $("plot").addEventListener("keydown", continueStep, true);
    plotKeys(places, wholeView);
    paper(draw);
  }
  document.body.dataset.ready = "yes";
}

start();
