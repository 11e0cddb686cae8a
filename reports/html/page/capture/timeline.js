// The timeline of all traffic: throughput as steps, lanes of losses and of segments that the capture missed, pins of findings, and
// a brush that chooses the range of everything below.
const CHART = { height: 64, lane: 14, gap: 6, axis: 18, gutter: 52, gutterPhone: 40, phone: 760 };
const GRIP_PX = 8; // from an edge of the brush, within which a drag moves this edge
const BRUSH_LEAST_PX = 3; // less is a click
const PIN_PX = 28;
const TICK_STEPS = [1, 2, 5];
const TIME_STEPS = [15, 30, ...[1, 2, 5, 10, 20, 30].map((minutes) => 60 * minutes), ...[1, 2, 3, 6, 12].map((hours) => 3600 * hours)]; // seconds
const SVG_NAMES = "http://www.w3.org/2000/svg";
const LANES = [["lost", "lost", "lost segments"], ["missed", "missed", "acknowledged, but not in the capture"]];

// --- scales ----------------------------------------------------------------------------------------------------

// Returns the least of 1, 2 and 5 times a power of ten that is not below a value.
function roundTick(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [...TICK_STEPS, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9));
}

// Returns the least round step of minutes or hours that is not below a time; of a shorter or longer one, as of other values.
const timeStep = (seconds) => (seconds > 10 && TIME_STEPS.find((step) => step >= seconds)) || roundTick(seconds);

// Returns ticks from the first multiple of a round step on; at most about `most`.
function ticksWithin(from, to, most, stepOf = roundTick) {
  const step = stepOf((to - from) / most), ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) ticks.push(i * step);
  return { step, ticks };
}

function unitOf(rate) {
  const power = Math.max(0, Math.min(4, Math.floor(Math.log10(rate || 1) / 3)));
  return { scale: 1000 ** power, name: `${["", "k", "M", "G", "T"][power]}bit/s` };
}

// Seconds since the first packet as text; minutes and hours if the axis reaches a minute in steps of 10 s or more.
function sinceStart(seconds, step, last) {
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (step < 10 || last < 60 || !seconds) return `${trimmed(seconds, Math.min(places, 9)) || 0}`;
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.round(seconds % 60)];
  if (!parts[0]) parts.shift();
  return parts.map((part, i) => (i ? String(part).padStart(2, "0") : part)).join(":");
}

const canvas = { width: 0, gutter: 0 }; // of the drawing, px
const traffic = { ...data.timeline }; // with decoded bins
const trafficX = (time) => canvas.gutter + ((time - traffic.from) / (traffic.to - traffic.from)) * (canvas.width - canvas.gutter);
const trafficTime = (x) => traffic.from + (Math.min(Math.max(x - canvas.gutter, 0), canvas.width - canvas.gutter) / (canvas.width - canvas.gutter)) * (traffic.to - traffic.from);

// --- drawing ---------------------------------------------------------------------------------------------------

function svgShape(name, attributes, text) {
  const made = document.createElementNS(SVG_NAMES, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Returns the steps as the path of a line, and the area below it.
function stepPaths(rates, most) {
  const y = (rate) => (CHART.height * (1 - rate / most)).toFixed(1), x = (i) => trafficX(traffic.from + i * traffic.width).toFixed(1);
  let line = `M${x(0)} ${y(rates[0])}`;
  rates.forEach((rate, i) => { line += `V${y(rate)}H${x(i + 1)}`; });
  return { line, area: `${line}V${CHART.height}H${x(0)}Z` };
}

function drawThroughput(svg) {
  const highest = traffic.rates.reduce((a, b) => Math.max(a, b), 0), unit = unitOf(highest);
  const { ticks } = ticksWithin(0, highest / unit.scale || 1, 4), most = Math.max(highest, ticks.at(-1) * unit.scale) * 1.04 || 1;
  for (const tick of ticks) {
    const y = CHART.height * (1 - (tick * unit.scale) / most);
    svg.append(svgShape("path", { class: "grid", d: `M${canvas.gutter} ${y}H${canvas.width}` }));
    svg.append(svgShape("text", { x: canvas.gutter - 8, y: y + 4, "text-anchor": "end" }, trimmed(tick, 3) || "0"));
  }
  const { line, area } = stepPaths(traffic.rates, most);
  svg.append(svgShape("path", { class: "area", d: area }), svgShape("path", { class: "steps", d: line }));
  return unit.name;
}

// Draws a lane of counts; its highest bar has the height of the lane.
function drawLane(svg, [name, label], top) {
  const counts = traffic[name], most = counts.reduce((a, b) => Math.max(a, b), 0);
  svg.append(svgShape("text", { x: canvas.gutter - 8, y: top + CHART.lane - 2, "text-anchor": "end" }, label));
  let bars = "";
  counts.forEach((count, i) => {
    if (!count) return;
    const left = trafficX(traffic.from + i * traffic.width), right = trafficX(traffic.from + (i + 1) * traffic.width);
    const height = Math.max(3, (CHART.lane * count) / most), wide = Math.max(1.5, right - left - 0.5);
    bars += `M${left.toFixed(1)} ${top + CHART.lane}v${-height}h${wide.toFixed(1)}v${height}z`;
  });
  svg.append(svgShape("path", { class: name, d: bars }));
}

function drawAxis(svg, top) {
  const offset = traffic.first, { step, ticks } = ticksWithin(0, traffic.to - offset, canvas.width < 500 ? 4 : 8, timeStep);
  for (const tick of ticks) {
    const x = trafficX(offset + tick), last = x > canvas.width - 16;
    svg.append(svgShape("path", { class: "grid", d: `M${x} 0V${CHART.height}` }));
    svg.append(svgShape("text", { x: last ? canvas.width : x, y: top + 13, "text-anchor": last ? "end" : tick ? "middle" : "start" }, `${sinceStart(tick, step, ticks.at(-1))}${tick ? "" : " s"}`));
  }
}

function binText(seconds) {
  return duration(Math.round(seconds * 1e9));
}

function legendItem(kind, text) {
  const item = document.createElement("span"), mark = document.createElement("i");
  mark.className = `swatch ${kind}`;
  item.append(mark, text);
  return item;
}

function drawTimeline() {
  const place = $("timeline");
  canvas.width = onPaper() ? PAPER.width : place.clientWidth;
  canvas.gutter = canvas.width < CHART.phone - 60 ? CHART.gutterPhone : CHART.gutter;
  const lanes = LANES.filter(([name]) => traffic[name].some(Boolean));
  const waits = (canvas.waits = waitsOf(choice.flow)), count = lanes.length + (waits.length > 0);
  const height = CHART.height + count * (CHART.lane + CHART.gap) + CHART.axis, laneTop = (i) => CHART.height + CHART.gap + i * (CHART.lane + CHART.gap);
  const svg = svgShape("svg", { width: canvas.width, height, "aria-hidden": "true" });
  drawAxis(svg, height - CHART.axis);
  const unit = drawThroughput(svg);
  lanes.forEach((lane, i) => drawLane(svg, lane, laneTop(i)));
  if (waits.length) drawWaits(svg, waits, laneTop(lanes.length));
  svg.append(svgShape("path", { id: "brush" }), svgShape("path", { id: "grips" }));
  place.replaceChildren(svg);
  $("traffic-unit").textContent = `IP ${unit}, ${binText(traffic.width)} bins${onPaper() ? "" : " · drag to choose a range"}`;
  $("traffic-legend").replaceChildren(...lanes.map(([name, , text]) => legendItem(name, `${text} (at most ${whole(traffic[name].reduce((a, b) => Math.max(a, b), 0))} in ${binText(traffic.width)})`)), ...waitLegend(waits));
  drawBrush(choice.range);
  drawPins();
}

// The brush is a bracket without a fill, because a fill would tint data.
function drawBrush(range) {
  const brush = $("brush");
  if (!brush) return;
  for (const part of [brush, $("grips")]) part.style.display = range ? "" : "none";
  $("timeline").dataset.range = range ? range.join(" ") : "";
  if (!range) return;
  const [left, right] = range.map((time) => trafficX(Math.min(Math.max(time, traffic.from), traffic.to)));
  const end = Math.max(right, left + 2), middle = CHART.height / 2;
  brush.setAttribute("d", `M${left} ${CHART.height}V1H${end}V${CHART.height}`);
  $("grips").setAttribute("d", [left, end].map((x) => `M${x - 3} ${middle - 8}h6v16h-6z`).join(""));
}

// --- pins ------------------------------------------------------------------------------------------------------

// A pin stands at the evidence that Show shows. Pins that would overlap move right.
function drawPins() {
  const pins = [];
  for (const cause of causesListed()) {
    const found = findingOf(cause.main);
    if (found.from === null) continue;
    const from = trafficX(found.from), to = trafficX(found.to ?? found.from);
    pins.push({ cause, x: Math.min(Math.max((from + Math.max(from, to)) / 2, canvas.gutter), canvas.width - PIN_PX / 2) });
  }
  pins.sort((a, b) => a.x - b.x);
  for (let i = 1; i < pins.length; i++) pins[i].x = Math.max(pins[i].x, pins[i - 1].x + PIN_PX);
  let limit = canvas.width - PIN_PX / 2;
  for (let i = pins.length - 1; i >= 0; i--, limit -= PIN_PX) pins[i].x = Math.min(pins[i].x, limit);
  $("pins").replaceChildren(...pins.map(({ cause, x }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "pin";
    button.textContent = cause.main;
    button.style.left = `${x}px`;
    button.title = cause.sentence;
    button.setAttribute("aria-label", `finding ${cause.main}: ${cause.sentence}`);
    button.addEventListener("click", () => showCause(cause));
    return button;
  }));
  state.stopAtPin = roving($("pins"), ".pin", "horizontal");
  markCause();
}

// --- the brush -------------------------------------------------------------------------------------------------

const chooseRange = (range) => choose({ range, vertical: {} });

// Returns the edge of the brush that a drag from x keeps, or x itself for a new range.
function anchorAt(x) {
  if (!choice.range) return x;
  const [left, right] = choice.range.map(trafficX);
  if (Math.abs(x - left) <= GRIP_PX) return right;
  if (Math.abs(x - right) <= GRIP_PX) return left;
  return x;
}

function brushWithPointer(place) {
  let anchor = null, start = 0, drawn = null;
  const at = (event) => event.clientX - place.getBoundingClientRect().left;
  place.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    start = at(event);
    anchor = anchorAt(start);
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    if (anchor === null || Math.abs(at(event) - start) < BRUSH_LEAST_PX) return;
    drawn = [anchor, at(event)].sort((a, b) => a - b).map(trafficTime);
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
    drawBrush(choice.range);
  });
}

function brushWithKeys(place) {
  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key !== "0" && !PLOT_KEYS[event.key]) return;
    event.preventDefault();
    steps.byKey = true;
    if (event.key === "0") return void chooseRange(null);
    const [shrink, shift] = PLOT_KEYS[event.key], [from, to] = choice.range || [traffic.from, traffic.to];
    const half = Math.max(((to - from) / 2) * shrink, LEAST / 2), middle = (from + to) / 2 + shift * (to - from);
    const low = Math.max(traffic.from, Math.min(middle - half, traffic.to - 2 * half)), high = Math.min(traffic.to, low + 2 * half);
    chooseRange(low <= traffic.from && high >= traffic.to ? null : [low, high]);
  });
}

async function startTimeline() {
  if (!data.timeline) return;
  traffic.from = traffic.start;
  traffic.rates = new Float32Array(await inflate(traffic.rates));
  for (const [name] of LANES) traffic[name] = new Uint32Array(await inflate(traffic[name]));
  traffic.to = traffic.from + traffic.rates.length * traffic.width;
  drawTimeline();
  brushWithPointer($("timeline"));
  brushWithKeys($("timeline"));
  listenToWaits($("timeline"));
  onChoice((changed) => (changed.has("flow") ? drawTimeline() : changed.has("range") && drawBrush(choice.range)));
}
