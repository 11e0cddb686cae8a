// @ts-check
// Distributions of the drawn flows in the chosen range: delays and their changes, times between packets and losses, losses in a row. They
// are computed from the packets and events of the page, when their section is opened.
import { packetsOfFlow, tables } from "../capture/tables.js";
import { choice, choose, hasAny, onChoice } from "../link.js";
import { flowAt } from "../list/flows.js";
import { KNOWN } from "../numbers.js";
import { $, CONFIG, data, inColors } from "../plotly.js";
import { onPaper, paper } from "../print.js";
import { duration, whole } from "../units.js";
import { FLOW_SYMBOLS, colorOfFlow, drawnFlows, isOverlaid, placeOfFlow, shiftOf } from "./drawn_flows.js";
import { MARKS_OF_LINE } from "./series/overlaid_series.js";
import { rowsOf } from "./series/points.js";
import { packetOf } from "./series/verdicts.js";

const CDF_POINTS = 400;
const SMALL_HEIGHT = 190; // px
const SMALL_ON_PAPER = 330; // px, so that two are side by side
const RUNS_LONG = 10; // losses in a row that share the last bar
const OPENED = "distributions"; // in the link, if the section is open
const FLOW_PATTERNS = ["", "/", "x", "-", "|", "+", ".", "\\"]; // of bars, by the place of a flow
const LOGARITHMIC_FROM = 20; // bars are logarithmic if one is this many times another

// --- samples -----------------------------------------------------------------------------------------------------

// Returns a test of a flow's own times: whether they are in the range.
/** @param {number} flow @returns {(time: number) => boolean} */
function withinRange(flow) {
  if (!choice.range) return () => true;
  const shift = shiftOf(flow), [from, to] = choice.range.map((time) => time - shift);
  return (time) => time >= from && time <= to;
}

/** @param {number[]} values */
function differences(values) {
  const out = [];
  for (let i = 1; i < values.length; i++) out.push(values[i] - values[i - 1]);
  return out;
}

// Returns the RTT samples, in ms, of the direction that has more of them.
/** @param {Packets} p @param {Uint32Array[]} sides @param {(time: number) => boolean} within */
function rttSamples(p, sides, within) {
  const known = sides.map((rows) => Array.from(rows).filter((i) => p.known[i] & KNOWN.rtt && within(p.time[i])));
  return (known[0].length > known[1].length ? known[0] : known[1]).map((i) => p.rtt[i]);
}

// Returns the delays of blocks above the least, in ms, of the direction with more of them, in the order of completion.
/** @param {number} flow @param {(time: number) => boolean} within */
function delaySamples(flow, within) {
  /** @type {number[][]} */
  const by = [[], []];
  const b = tables.blocks;
  for (const i of rowsOf(b, flow)) {
    if (!Number.isNaN(b.latency_ns[i]) && !Number.isNaN(b.complete_ns[i]) && within(b.complete_ns[i] / 1e3)) by[b.direction[i]].push(i);
  }
  const rows = by[0].length >= by[1].length ? by[0] : by[1];
  rows.sort((i, j) => b.complete_ns[i] - b.complete_ns[j]);
  const least = rows.reduce((low, i) => Math.min(low, b.latency_ns[i]), Infinity);
  return rows.map((i) => (b.latency_ns[i] - least) / 1e6);
}

// Returns whether an event is a loss: a TCP segment that was lost, or numbers that a block or packet found missing.
/** @param {number} i */
export function isLoss(i) {
  const e = tables.events, kind = data.words.kind[e.kind[i]], place = data.words.place[e.place[i]];
  return kind === "block_lost" || (kind.endsWith("retransmission") && e.spurious[i] !== 1 && ["upstream", "downstream"].includes(place));
}

// Returns the losses of the direction that carries more, in the range in view.
/** @param {number} flow @param {number} main @param {(time: number) => boolean} within */
function lossEvents(flow, main, within) {
  const e = tables.events, found = [];
  for (const i of rowsOf(e, flow)) {
    if (isLoss(i) && e.direction[i] === main && within(e.time_ns[i] / 1e3)) found.push(i);
  }
  return found;
}

// Returns the lengths of runs of lost segments that follow each other in the stream. A segment lost twice counts once.
/** @param {Packets} p @param {Uint32Array} rows @param {number[]} events */
function segmentRuns(p, rows, events) {
  const e = tables.events, lost = new Map();
  for (const event of events) {
    const i = packetOf(p, rows, event);
    if (i >= 0 && p.known[i] & KNOWN.sequence && p.size[i]) lost.set(p.sequence[i], { end: p.sequence[i] + p.size[i], segments: segmentsOf(e, event) });
  }
  const runs = [];
  let end = null;
  for (const [start, one] of [...lost].sort(([a], [b]) => a - b)) {
    if (end !== null && start <= end) runs[runs.length - 1] += one.segments;
    else runs.push(one.segments);
    end = Math.max(end ?? 0, one.end);
  }
  return runs;
}

/** @param {EventTable} e @param {number} event */
export function segmentsOf(e, event) {
  const mss = data.wire_mss[2 * e.flow[event] + e.direction[event]];
  return e.bytes[event] > mss ? Math.ceil(e.bytes[event] / mss) : 1;
}

// Returns the lengths of runs of numbers that no block of a stream has, between the first and the last.
/** @param {number} flow @param {(time: number) => boolean} within */
function blockRuns(flow, within) {
  const b = tables.blocks, streams = new Map(), runs = [];
  for (const i of rowsOf(b, flow)) {
    if (!Number.isNaN(b.complete_ns[i]) && !within(b.complete_ns[i] / 1e3)) continue;
    if (!streams.has(b.stream[i])) streams.set(b.stream[i], new Set());
    streams.get(b.stream[i]).add(b.sequence[i]);
  }
  for (const numbers of streams.values()) {
    const held = Float64Array.from(numbers).sort();
    for (let k = 1; k < held.length; k++) if (held[k] - held[k - 1] > 1) runs.push(held[k] - held[k - 1] - 1);
  }
  return runs;
}

// --- figures -----------------------------------------------------------------------------------------------------

/** @param {object} x @param {object} y */
function smallLayout(x, y) {
  const font = { family: "system-ui, sans-serif", size: 11 }, clear = "rgba(0,0,0,0)", common = { zeroline: false, fixedrange: true };
  return inColors({
    height: SMALL_HEIGHT, font, showlegend: false, dragmode: false, hovermode: "closest", paper_bgcolor: clear, plot_bgcolor: clear,
    margin: { l: 52, r: 12, t: 8, b: 28 }, xaxis: { ...common, ...x }, yaxis: { ...common, ...y },
  });
}

/** @param {string} name */
const tokenColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Returns colors, symbol and name of a flow's trace: those of its place if several flows are drawn.
/** @param {number} flow @param {string} usual */
function flowStyle(flow, usual) {
  if (!isOverlaid()) return { color: tokenColor(usual), name: "" };
  const place = placeOfFlow(flow);
  return { color: tokenColor(colorOfFlow(flow)), symbol: FLOW_SYMBOLS[place], pattern: FLOW_PATTERNS[place], name: `flow ${flow}: ` };
}

// Returns the words for each flow, which are named if they are several.
/** @template {{ flow: number }} T @param {T[]} parts @param {(part: T) => string} words */
const eachFlow = (parts, words) => parts.map((part) => `${words(part)}${isOverlaid() ? ` (flow ${part.flow})` : ""}`).join(", ");

// Returns the trace of a cumulative distribution. On a logarithmic axis, samples of 0 are at its left edge.
/** @param {Sampled} part @param {boolean | undefined} log @param {number} least */
function cumulativeTrace({ flow, samples }, log, least) {
  const held = Float64Array.from(samples).sort(), count = held.length, most = Math.min(count, CDF_POINTS), { color, symbol, name } = flowStyle(flow, "sender");
  const x = [], y = [];
  for (let k = 0; k < most; k++) {
    const at = most === 1 ? 0 : Math.round((k * (count - 1)) / (most - 1));
    x.push(log ? Math.max(held[at], least / 2) : held[at]);
    y.push((100 * (at + 1)) / count);
  }
  const mode = count === 1 ? "markers" : symbol ? "lines+markers" : "lines";
  return { type: "scatter", meta: flow, mode, x, y, line: { shape: "hv", width: 1.5, color }, marker: { color, symbol, size: 7, maxdisplayed: symbol ? MARKS_OF_LINE : 0 }, hovertemplate: `${name}%{y:.1f}% at most %{x:.4g} ms<extra></extra>` };
}

// Returns the cumulative distributions of samples in ms, one line for each flow.
/** @param {{ title: string, unit: string, parts: Sampled[], log: boolean | undefined }} wanted */
function cumulative({ title, unit, parts, log }) {
  const least = parts.reduce((low, { samples }) => samples.reduce((most, value) => (value > 0 && value < most ? value : most), low), Infinity);
  const traces = parts.map((part) => cumulativeTrace(part, log, least < Infinity ? least : 1));
  const decades = log ? Math.log10(Math.max(...traces.map(({ x }) => x[x.length - 1])) / Math.min(...traces.map(({ x }) => x[0]))) : 0;
  const layout = smallLayout({ type: log ? "log" : "linear", ...(decades >= 1.5 ? { dtick: 1 } : {}) }, { range: [0, 103], ticksuffix: "%", dtick: 25 });
  layout.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 50, y1: 50, line: { color: tokenColor("axis"), width: 1, dash: "dot" }, layer: "below" }];
  const median = (/** @type {Sampled} */ { samples }) => Float64Array.from(samples).sort()[(samples.length - 1) >> 1];
  return { title, unit, told: eachFlow(parts, (part) => `median ${duration(median(part) * 1e6)} of ${whole(part.samples.length)}`), traces, layout };
}

// Returns the bars of runs by length, side by side for each flow.
/** @param {{ title: string, unit: string, parts: Counted[] }} wanted */
function bars({ title, unit, parts }) {
  const counted = parts.map(({ runs }) => runs.reduce((counts, length) => (counts[Math.min(length, RUNS_LONG) - 1]++, counts), new Array(RUNS_LONG).fill(0)));
  const last = Math.max(...counted.map((counts) => counts.findLastIndex((count) => count > 0))), shown = counted.map((counts) => counts.slice(0, last + 1));
  const positive = shown.flat().filter(Boolean), most = Math.max(...positive), log = most >= LOGARITHMIC_FROM * Math.min(...positive);
  const names = shown[0].map((_, k) => (k + 1 === RUNS_LONG ? `${RUNS_LONG}+` : String(k + 1)));
  const traces = parts.map(({ flow }, k) => {
    const { color, pattern = "", name } = flowStyle(flow, "network");
    return { type: "bar", meta: flow, x: names, y: shown[k], marker: { color, pattern: { shape: pattern } }, hovertemplate: `${name}%{y} runs of %{x}<extra></extra>` };
  });
  const layout = smallLayout({ type: "category" }, { type: log ? "log" : "linear", ...(!log && most < 6 ? { dtick: 1 } : {}), ...(log ? { dtick: 1, range: [-0.3, Math.log10(most) + 0.15] } : {}) });
  Object.assign(layout, { bargap: 0.4, barmode: "group" });
  const longest = (/** @type {Counted} */ { runs }) => runs.reduce((length, one) => Math.max(length, one), 0);
  return { title, unit: `runs by length${log ? " (log)" : ""}, ${unit}`, told: eachFlow(parts, (part) => `${whole(part.runs.length)} ${part.runs.length === 1 ? "run" : "runs"}, longest ${whole(longest(part))}`), traces, layout };
}

// Returns what is measured of a flow: samples in ms, or runs.
/** @param {number} flow @returns {Record<string, Omit<Sampled, "flow"> | Omit<Counted, "flow">>} */
function samplesOf(flow) {
  const f = flowAt(tables.flows.rowOf(flow)), tcp = f.protocol === "tcp", within = withinRange(flow), { p, rows: sides } = packetsOfFlow(flow) || { p: tables.packets, rows: [new Uint32Array(), new Uint32Array()] };
  const main = tcp ? f.main : Number(sides[1].length > sides[0].length), rtts = rttSamples(p, sides, within), delays = delaySamples(flow, within), events = lossEvents(flow, main, within);
  const carried = Array.from(sides[main]).filter((i) => p.size[i] > 0 && within(p.time[i])).map((i) => p.time[i]);
  const losses = events.map((event) => tables.events.time_ns[event] / 1e3).sort((a, b) => a - b);
  const changes = (/** @type {number[]} */ samples) => differences(samples).map(Math.abs), toMs = (/** @type {number[]} */ times) => differences(times).map((seconds) => seconds * 1e3);
  return {
    "Round trip": { unit: "ms", samples: rtts },
    "Delay of blocks": { unit: "ms above the least", samples: delays },
    Jitter: { unit: "change of round trips, ms", samples: changes(rtts) },
    "Jitter of blocks": { unit: "change of delays, ms", samples: changes(delays) },
    "Time between packets": { unit: "with payload, ms (log)", samples: toMs(carried), log: true },
    "Losses in a row": { unit: tcp ? "segments of the stream" : "numbers", runs: tcp ? segmentRuns(p, sides[main], events) : blockRuns(flow, within) },
    "Time between losses": { unit: `when ${tcp ? "retransmitted" : "detected"}, ms (log)`, samples: toMs(losses), log: true },
  };
}

// Returns the figures of the drawn flows that have samples.
function smallFigures() {
  const measured_ = drawnFlows().map((flow) => ({ flow, found: samplesOf(flow) }));
  /** @param {string} title @returns {SmallFigure[]} */
  const figuresOf = (title) => {
    const parts = measured_.map(({ flow, found }) => ({ flow, ...found[title] })), unitOf = (/** @type {{ unit: string }[]} */ shown) => [...new Set(shown.map(({ unit }) => unit))].join(" or ");
    const counted = parts.flatMap((part) => ("runs" in part && part.runs.length ? [part] : [])), sampled = parts.flatMap((part) => ("samples" in part && part.samples.length ? [part] : []));
    if (counted.length) return [bars({ title, unit: unitOf(counted), parts: counted })];
    return sampled.length ? [cumulative({ title, unit: unitOf(sampled), log: sampled[0].log, parts: sampled })] : [];
  };
  return Object.keys(measured_[0].found).flatMap(figuresOf);
}

// --- drawing -----------------------------------------------------------------------------------------------------

/** @param {{ title: string, unit: string, told: string }} figure */
function smallPlace({ title, unit, told }) {
  const place = document.createElement("figure"), head = document.createElement("figcaption"), plot = document.createElement("div");
  const name = document.createElement("b"), words = document.createElement("span");
  name.textContent = title;
  words.textContent = `${unit} · ${told}`;
  head.append(name, " ", words);
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${title}, ${unit}: ${told}`);
  place.append(head, plot);
  $("distribution-plots").append(place);
  return plot;
}

/** @param {boolean} some */
function distributionNote(some) {
  const lacking = drawnFlows().filter((flow) => !packetsOfFlow(flow)), whose = isOverlaid() ? `the packets of flow ${lacking.join(", ")} are not in the page` : some ? "its packets are not in the page" : "whose packets are not in the page";
  const lack = lacking.length ? `${some ? "; " : ", "}${whose}` : "";
  if (!some) return `Nothing to show ${choice.range ? "in this range" : isOverlaid() ? "of these flows" : "of this flow"}${lack}.`;
  return `${choice.range ? "Of the range in view" : isOverlaid() ? "Of the whole flows" : "Of the whole flow"}${lack}. Lines: share of samples at or below a time.`;
}

async function drawDistributions() {
  if (!$(OPENED).open || choice.flow === null) return;
  for (const plot of $("distribution-plots").querySelectorAll(".js-plotly-plot")) Plotly.purge(plot);
  $("distribution-plots").replaceChildren();
  const figures = smallFigures(), places = figures.map(smallPlace);
  $("distribution-note").textContent = distributionNote(figures.length > 0);
  await Promise.all(figures.map(({ traces, layout }, k) => Plotly.newPlot(places[k], traces, { ...layout, width: onPaper() ? SMALL_ON_PAPER : places[k].clientWidth }, { ...CONFIG, displayModeBar: false })));
}

/** @param {Set<keyof Choice>} changed */
async function distributionsChanged(changed) {
  $(OPENED).hidden = choice.flow === null;
  const open = choice.toggled.includes(OPENED), turned = open !== $(OPENED).open;
  $(OPENED).open = open;
  const relative = isOverlaid() && choice.range && changed.has("toggled");
  if (turned || relative || hasAny(changed, ["flow", "with", "range"])) await drawDistributions();
}

export function startDistributions() {
  $(OPENED).addEventListener("toggle", () => {
    const others = choice.toggled.filter((name) => name !== OPENED), { open } = $(OPENED);
    if (open !== choice.toggled.includes(OPENED)) choose({ toggled: open ? [...others, OPENED] : others }).then(drawDistributions);
  });
  onChoice(distributionsChanged);
  paper(drawDistributions);
}
