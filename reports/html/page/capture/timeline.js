// @ts-check
// The timeline of the traffic that is selected: throughput as steps or as a stack, lanes of losses and of segments that the capture missed,
// pins of findings, and a brush that chooses the range of everything below.
import { element, svgShape } from "../elements.js";
import { LEAST, PLOT_KEYS, roving } from "../keys.js";
import { choice, choose, continueStep, hasAny, onChoice, trimmed } from "../link.js";
import { $, data } from "../plotly.js";
import { PAPER, onPaper } from "../print.js";
import { binsPerSum, hasFlowSums, loadFlowSums } from "../selection/flow_sums.js";
import { isCauseSelected, select } from "../selection/selection.js";
import { drawnTraffic, stackOf } from "../selection/stacked.js";
import { duration, whole } from "../units.js";
import { CHART, canvas, legendItem, loadTraffic, partsOfAxis, sinceStart, sizeCanvas, stepsOfTraffic, ticksWithin, timeStep, traffic, trafficTime, trafficX, unitOf } from "./chart.js";
import { findingOf } from "./evidence.js";
import { causesListed, markCause } from "./findings.js";
import { showCause } from "./show.js";
import { listenToTip } from "./traffic_tip.js";
import { drawWaits, waitLegend, waitsOf } from "./waits.js";

const GRIP_PX = 8; // from an edge of the brush, within which a drag moves this edge
const BRUSH_LEAST_PX = 3; // less is a click
const PIN_PX = 28;
const SPAN_LEAST_PX = 2; // of the line over a single frame
/** @type {Lane[]} */
const LANES = ["lost", "missed"]; // their names

// --- drawing ---------------------------------------------------------------------------------------------------

// Returns the steps as the path of a line, and the area below it.
/** @param {Float32Array} rates @param {number} most */
function stepPaths(rates, most) {
  const y = (/** @type {number} */ rate) => (CHART.height * (1 - rate / most)).toFixed(1), steps = stepsOfTraffic(), begin = steps[0].left.toFixed(1);
  let line = `M${begin} ${y(rates[0])}`;
  for (const { bin, right } of steps) line += `V${y(rates[bin])}H${right.toFixed(1)}`;
  return { line, area: `${line}V${CHART.height}H${begin}Z` };
}

// Draws the layers of a stack, each from the top of the one below.
/** @param {Element} svg @param {Layer[]} layers @param {number} most */
function drawLayers(svg, layers, most) {
  const y = (/** @type {number} */ rate) => (CHART.height * (1 - rate / most)).toFixed(1), steps = stepsOfTraffic();
  let below = new Float32Array(traffic.rates.length);
  layers.forEach(({ rates }, at) => {
    const top = below.map((rate, i) => rate + rates[i]);
    let there = `M${steps[0].left.toFixed(1)} ${y(top[0])}`, back = "";
    for (const { bin, right } of steps) there += `V${y(top[bin])}H${right.toFixed(1)}`;
    for (const { bin, left } of steps.slice().reverse()) back += `V${y(below[bin])}H${left.toFixed(1)}`;
    svg.append(svgShape("path", { class: `stack-${at + 1}`, d: `${there}${back}Z` }));
    below = top;
  });
}

/** @param {Element} svg @param {DrawnTraffic} drawn */
function drawThroughput(svg, { rates, layers }) {
  const highest = rates.reduce((a, b) => Math.max(a, b), 0), unit = unitOf(highest);
  const { ticks } = ticksWithin(0, highest / unit.scale || 1, 4), most = Math.max(highest, (ticks.at(-1) ?? 0) * unit.scale) * 1.04 || 1;
  for (const tick of ticks) {
    const y = CHART.height * (1 - (tick * unit.scale) / most);
    svg.append(svgShape("path", { class: "grid", d: `M${canvas.gutter} ${y}H${canvas.width}` }));
    svg.append(svgShape("text", { x: canvas.gutter - 8, y: y + 4 * CHART.scale, "text-anchor": "end" }, trimmed(tick, 3) || "0"));
  }
  const { line, area } = stepPaths(rates, most);
  if (layers.length) drawLayers(svg, layers, most);
  else svg.append(svgShape("path", { class: "area", d: area }));
  svg.append(svgShape("path", { class: "steps", d: line }));
  return unit.name;
}

// Draws a lane of counts; its highest bar has the height of the lane.
/** @param {Element} svg @param {Lane} name @param {Uint32Array} counts @param {number} top */
function drawLane(svg, name, counts, top) {
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  svg.append(svgShape("text", { x: canvas.gutter - 8, y: top + CHART.lane - 2, "text-anchor": "end" }, name));
  let bars = "";
  for (const { bin, left, right } of stepsOfTraffic()) {
    if (!counts[bin]) continue;
    const height = Math.max(3, (CHART.lane * counts[bin]) / most), wide = Math.max(1.5, right - left - 0.5);
    bars += `M${left.toFixed(1)} ${top + CHART.lane}v${-height}h${wide.toFixed(1)}v${height}z`;
  }
  svg.append(svgShape("path", { class: name, d: bars }));
}

// Draws a cut: two slanted lines, and how long nothing was sent.
/** @param {Element} svg @param {AxisPart} part @param {number} top */
function drawCut(svg, { from, to, x, wide }, top) {
  const middle = x + wide / 2;
  svg.append(svgShape("path", { class: "cut", d: [-3, 3].map((aside) => `M${middle + aside - 3} ${top}l6 -12`).join("") }));
  ["pause", binText(to - from)].forEach((words, i) => svg.append(svgShape("text", { x: middle, y: CHART.height / 2 + 13 * CHART.scale * i, class: "cut-words", "text-anchor": "middle" }, words)));
}

// Returns the times and words of the ticks of a part: a part behind a cut begins with its time, from which on the others count.
/** @param {AxisPart} part @param {number} step */
function ticksOf({ from, to, x }, step) {
  const isFirst = x <= canvas.gutter, base = isFirst ? traffic.first : from, last = to - base;
  const { ticks } = ticksWithin(0, last, last / step, () => step), longest = ticks[ticks.length - 1];
  return ticks.map((tick) => {
    const words = tick ? sinceStart(tick, step, longest) : isFirst ? "0 s" : sinceStart(Math.round(from - traffic.first), 10, from);
    return { time: base + tick, words: tick && !isFirst ? `+${words}` : words };
  });
}

/** @param {Element} svg @param {number} top */
function drawAxis(svg, top) {
  const shown = partsOfAxis().filter(({ isCut }) => !isCut), all = shown.reduce((sum, { from, to }) => sum + to - from, 0);
  const { step } = ticksWithin(0, all, canvas.width < 500 ? 4 : 8, timeStep);
  let room = -Infinity; // the end of the words before
  for (const { time, words } of shown.flatMap((part) => ticksOf(part, step))) {
    const x = trafficX(time), isLast = x > canvas.width - 16, wide = CHART.letter * words.length;
    svg.append(svgShape("path", { class: "grid", d: `M${x} 0V${CHART.height}` }));
    if (x - wide / 2 < room) continue;
    room = x + wide / 2;
    svg.append(svgShape("text", { x: isLast ? canvas.width : x, y: top + 13 * CHART.scale, "text-anchor": isLast ? "end" : x - wide / 2 > canvas.gutter ? "middle" : "start" }, words));
  }
}

/** @param {number} seconds */
function binText(seconds) {
  return duration(Math.round(seconds * 1e9));
}

// Returns the legend of the stack; a layer selects its flows.
/** @param {Layer[]} layers */
function stackLegend(layers) {
  return layers.map(({ words, facet }, i) => {
    const item = legendItem(`stack-${i + 1}`, facet ? "" : words);
    if (!facet) return item;
    const button = element("button", { type: "button", className: "plain", textContent: words });
    button.dataset.only = facet;
    button.setAttribute("aria-pressed", String(choice.only.includes(facet)));
    item.append(button);
    return item;
  });
}

// Says whose traffic is drawn, and in which unit and bins.
/** @param {DrawnTraffic} drawn @param {string} unit */
function describeTraffic({ flows, isCounted }, unit) {
  const coarse = flows !== null || stackOf() ? binsPerSum() : 1, lanes = isCounted ? "" : " · losses of all traffic";
  $("h-traffic").textContent = flows === null ? "All traffic" : `Traffic of ${whole(flows)} ${flows === 1 ? "flow" : "flows"}`;
  const cuts = traffic.pauses.length, cut = cuts ? ` · axis cut at ${cuts === 1 ? "a pause" : `${whole(cuts)} pauses`}` : "";
  $("traffic-unit").textContent = `IP ${unit}, ${binText(coarse * traffic.width)} bins${cut}${lanes}`;
}

export function drawTimeline() {
  const place = $("timeline"), drawn = drawnTraffic();
  sizeCanvas(onPaper() ? PAPER.width : place.clientWidth);
  const lanes = LANES.filter((name) => drawn[name].some(Boolean));
  const waits = waitsOf(choice.flow), count = lanes.length + Number(waits.length > 0);
  const height = CHART.height + count * (CHART.lane + CHART.gap) + CHART.axis, laneTop = (/** @type {number} */ i) => CHART.height + CHART.gap + i * (CHART.lane + CHART.gap);
  const svg = svgShape("svg", { width: canvas.width, height, "aria-hidden": "true" });
  drawAxis(svg, height - CHART.axis);
  for (const part of partsOfAxis()) if (part.isCut) drawCut(svg, part, CHART.height);
  const unit = drawThroughput(svg, drawn);
  lanes.forEach((lane, i) => drawLane(svg, lane, drawn[lane], laneTop(i)));
  drawWaits(svg, waits, laneTop(lanes.length));
  svg.append(svgShape("path", { id: "in-view" }), svgShape("path", { id: "brush" }), svgShape("path", { id: "grips" }));
  place.replaceChildren(svg);
  describeTraffic(drawn, unit);
  $("traffic-legend").replaceChildren(...stackLegend(drawn.layers), ...waitLegend(waits));
  $("stack-by").value = stackOf() ?? "";
  drawBrush(choice.during);
  drawPins();
}

/** @param {number} time */
const withinX = (time) => trafficX(Math.min(Math.max(time, traffic.from), traffic.to));

// The range of the plots, as a line below the throughput.
function drawInView() {
  $("in-view").style.display = choice.range && String(choice.range) !== String(choice.during) ? "" : "none";
  if (!choice.range) return;
  const [left, right] = choice.range.map(withinX);
  $("in-view").setAttribute("d", `M${left} ${CHART.height + 2}H${Math.max(right, left + 2)}`);
}

// The brush is a bracket without a fill, because a fill would tint data.
/** @param {Span | null} range */
function drawBrush(range) {
  const brush = $("brush");
  if (!brush) return;
  drawInView();
  for (const part of [brush, $("grips")]) part.style.display = range ? "" : "none";
  $("timeline").dataset.range = range ? range.join(" ") : "";
  if (!range) return;
  const [left, right] = range.map(withinX);
  const end = Math.max(right, left + 2), middle = CHART.height / 2;
  brush.setAttribute("d", `M${left} ${CHART.height}V1H${end}V${CHART.height}`);
  $("grips").setAttribute("d", [left, end].map((x) => `M${x - 3} ${middle - 8}h6v16h-6z`).join(""));
}

// --- pins ------------------------------------------------------------------------------------------------------

// A pin stands at the first frame of the evidence that Show shows, and a line is drawn over all of it. Pins that would overlap move right.
function drawPins() {
  const pins = [];
  for (const cause of causesListed()) {
    const found = findingOf(cause.main);
    if (found.from === null || !isCauseSelected(Number(cause.item.dataset.place))) continue;
    const [from, to] = [found.from, found.to ?? found.from].map((time) => Math.min(Math.max(trafficX(time), canvas.gutter), canvas.width));
    pins.push({ cause, from, to, x: Math.min(from, canvas.width - PIN_PX / 2) });
  }
  pins.sort((a, b) => a.x - b.x);
  for (let i = 1; i < pins.length; i++) pins[i].x = Math.max(pins[i].x, pins[i - 1].x + PIN_PX);
  let limit = canvas.width - PIN_PX / 2;
  for (let i = pins.length - 1; i >= 0; i--, limit -= PIN_PX) pins[i].x = Math.min(pins[i].x, limit);
  $("pins").replaceChildren(...pins.flatMap(({ cause, from, to, x }) => {
    const button = element("button", { type: "button", className: "pin", textContent: cause.place, title: cause.sentence }), line = element("i", { className: "pin-span" });
    button.style.left = `${x}px`;
    button.dataset.finding = String(cause.main);
    button.setAttribute("aria-label", `cause ${cause.place}: ${cause.sentence}`);
    button.addEventListener("click", () => showCause(cause));
    Object.assign(line.style, { left: `${from}px`, width: `${Math.max(SPAN_LEAST_PX, to - from)}px` });
    return [button, line];
  }));
  roving($("pins"), ".pin", "horizontal");
  markCause();
}

// --- the brush -------------------------------------------------------------------------------------------------

/** @param {Span | null} range */
const chooseRange = (range) => select({ during: range });

// Returns the edge of the brush that a drag from x keeps, or x itself for a new range.
/** @param {number} x */
function anchorAt(x) {
  if (!choice.during) return x;
  const [left, right] = choice.during.map(trafficX);
  if (Math.abs(x - left) <= GRIP_PX) return right;
  if (Math.abs(x - right) <= GRIP_PX) return left;
  return x;
}

/** @param {HTMLElement} place */
function brushWithPointer(place) {
  let start = 0;
  /** @type {number | null} */
  let anchor = null;
  /** @type {Span | null} */
  let drawn = null;
  /** @param {PointerEvent} event */
  const at = (event) => event.clientX - place.getBoundingClientRect().left;
  place.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    start = at(event);
    anchor = anchorAt(start);
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    if (anchor === null || Math.abs(at(event) - start) < BRUSH_LEAST_PX) return;
    drawn = [trafficTime(Math.min(anchor, at(event))), trafficTime(Math.max(anchor, at(event)))];
    drawBrush(drawn);
  });
  place.addEventListener("pointerup", () => {
    if (anchor === null) return;
    const range = drawn && drawn[1] > drawn[0] ? drawn : null;
    anchor = drawn = null;
    chooseRange(range); // a click chooses all
  });
  place.addEventListener("pointercancel", () => {
    anchor = drawn = null;
    drawBrush(choice.during);
  });
}

/** @param {HTMLElement} place */
function brushWithKeys(place) {
  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key !== "0" && !PLOT_KEYS[event.key]) return;
    event.preventDefault();
    continueStep();
    if (event.key === "0") return void chooseRange(null);
    const [shrink, shift] = PLOT_KEYS[event.key], [from, to] = choice.during || [traffic.from, traffic.to];
    const half = Math.max(((to - from) / 2) * shrink, LEAST / 2), middle = (from + to) / 2 + shift * (to - from);
    const low = Math.max(traffic.from, Math.min(middle - half, traffic.to - 2 * half)), high = Math.min(traffic.to, low + 2 * half);
    chooseRange(low <= traffic.from && high >= traffic.to ? null : [low, high]);
  });
}

export async function startTimeline() {
  if (!data.timeline) return;
  await loadTraffic();
  await loadFlowSums();
  $("stack-by").hidden = !hasFlowSums() || data.flows.held < 2;
  $("stack-by").addEventListener("change", () => choose({ stack: $("stack-by").value || null }));
  drawTimeline();
  brushWithPointer($("timeline"));
  brushWithKeys($("timeline"));
  listenToTip($("timeline"));
  onChoice((changed) => {
    if (hasAny(changed, ["flow", "only", "find", "stack"])) return drawTimeline();
    if (changed.has("during")) drawPins();
    if (hasAny(changed, ["during", "range"])) drawBrush(choice.during);
  });
}
