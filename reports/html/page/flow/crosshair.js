// The pointer and the keys in the plots: one crosshair through all panels, snapped to the nearest packet, whose values are in the heads;
// zoom by a box or the wheel, move, and back. Nothing lies over a plot.
const NEAR_PX = 24; // a point so near is meant; else the packet that is nearest in time
const LOSS_NEAR = 16, MARK_NEAR = 1; // square px by which shapes come first
const DRAG_PX = 4; // least width of a box
const BOX_PX = 12; // least height of a box that also zooms the vertical axis
const DOUBLE_MS = 280; // a click waits so long for a second one
const WHEEL = 0.0015;
const PAGE = 25; // packets
const cross = { at: null, press: null, click: 0, zooms: 0, own: false };

// --- places ----------------------------------------------------------------------------------------------------

const area = () => state.area;
const xOf = (time) => area().l + (area().w * (time - state.range[0])) / (state.range[1] - state.range[0]);
const timeAt = (x) => state.range[0] + ((x - area().l) / area().w) * (state.range[1] - state.range[0]);

// Returns the panel at a height in the stack, or -1 between panels.
const panelAt = (y) => state.stack.places.findIndex(({ plot, bottom }) => y >= plot && y <= bottom);

// Returns the height in the stack of a value of a panel.
function yOf(place, value) {
  const panel = state.used[place], [low, high] = state.vertical[panel.name], { plot, bottom } = state.stack.places[place];
  return bottom - ((bottom - plot) * ((isLog(panel) ? Math.log10(value) : value) - low)) / (high - low);
}

function valueAtHeight(place, y) {
  const [low, high] = state.vertical[state.used[place].name], { plot, bottom } = state.stack.places[place];
  return low + ((high - low) * (bottom - y)) / (bottom - plot);
}

// --- the nearest packet ----------------------------------------------------------------------------------------

// Yields the drawn points of a panel, or of all, as [series, source, place in it, x, y] with the nearest y of a bar.
function* drawnPoints(only, pointer) {
  const { data: traces } = $("plot");
  for (const trace of traces) {
    const axis = trace.yaxis === "y" ? 0 : Number(trace.yaxis.slice(1)) - 1;
    if (trace.visible !== true || (only >= 0 && axis !== only)) continue;
    const series = seriesByKey(trace.meta), source = state.all[trace.meta];
    if (!source || source.bin || series.key === "least") continue;
    for (const i of trace.place) {
      if (source.x[i] < state.range[0] || source.x[i] > state.range[1]) continue;
      const ends = [source.y[i], source.y2?.[i] ?? source.y[i]].map((value) => yOf(axis, value));
      yield [series, source, i, xOf(source.x[i]), Math.min(Math.max(pointer[1], ends[1]), ends[0])];
    }
  }
}

// Returns the packet at a pixel of the stack as {time, frame, capture, series, source, i}.
function nearest(x, y) {
  if (isOverlaid()) return nearestOverlaid(x, y) || nearestInTime(timeAt(x));
  const panel = panelAt(y), best = { value: NEAR_PX ** 2 };
  if (state.used[panel]?.name === "parts") return bandAt(timeAt(x)) || nearestInTime(timeAt(x));
  const bin = state.used[panel]?.name === "rate";
  if (!bin) {
    for (const point of drawnPoints(panel, [x, y])) {
      const [series, source, i, px, py] = point, distance = (px - x) ** 2 + (py - y) ** 2;
      // Shapes are above bars and lines, and those of losses above others.
      const rank = distance - (series.mode !== "marks" ? 0 : series.color === "network" ? LOSS_NEAR : MARK_NEAR);
      if (rank < best.value) Object.assign(best, { value: rank, point: [series, source, i] });
    }
  }
  if (best.point) return atPoint(...best.point);
  return nearestInTime(timeAt(x)) || nearestBin(timeAt(x));
}

// Returns the point of the overlaid flow whose curve is nearest at the pointer's time, or of the nearest mark.
function nearestOverlaid(x, y) {
  const place = panelAt(y), time = timeAt(x), best = { distance: Infinity };
  if (place < 0) return null;
  for (const series of seriesOf(state.used[place]).filter(isLine)) {
    const source = state.all[series.key], next = firstAtOrAfter(source.x, time + 1e-10), last = source.x.length - 1;
    const distance = Math.abs(yOf(place, source.y[Math.max(0, next - 1)]) - y) + Math.max(0, xOf(source.x[0]) - x, x - xOf(source.x[last]));
    const i = next === 0 || (next <= last && !source.bin && source.x[next] - time < time - source.x[next - 1]) ? next : next - 1;
    if (distance < best.distance) Object.assign(best, { distance, point: [series, source, i] });
  }
  for (const [series, source, i, px, py] of drawnPoints(place, [x, y])) {
    const distance = Math.hypot(px - x, py - y);
    if (series.mode === "marks" && distance < best.distance) Object.assign(best, { distance, point: [series, source, i] });
  }
  return best.point ? atPoint(...best.point) : null;
}

// Returns a line of the tip that names a flow.
function flowLine(flow) {
  return element("p", { className: "cross-flow" }, flowIcon(flow), element("b", { textContent: `flow ${flow}` }), ` ${nameOf(state.flows.rowOf(flow))}`);
}

const atPoint = (series, source, i) => ({ time: source.x[i], frame: source.frame[i], capture: source.capture[i], series, source, i });

function nearestInTime(time) {
  const p = state.packets, rows = state.order;
  if (!rows.length) return null;
  const next = firstAtOrAfter(rows, time, (row) => p.time[row]);
  return atPacket(next > 0 && (next === rows.length || time - p.time[rows[next - 1]] < p.time[rows[next]] - time) ? next - 1 : next);
}

// Returns what atPoint() does, for a packet by its place in the order of the flow.
function atPacket(k) {
  const p = state.packets, i = state.order[k], tcp = flowAt(state.flows.rowOf(choice.flow)).protocol === "tcp";
  return { time: p.time[i], frame: p.frame[i], capture: p.capture[i], words: packetText(p, i, tcp), k };
}

function nearestBin(time) {
  const key = ["throughput0", "throughput1"].find((name) => state.all[name]), source = state.all[key];
  if (!source) return null;
  const i = Math.max(0, firstAtOrAfter(source.x, time + 1e-12) - 1);
  return { time: source.x[i], frame: source.frame[i], capture: 0, words: source.text(i) };
}

// --- drawing ---------------------------------------------------------------------------------------------------

const clockText = (time) => `${(time - axisOrigin()).toFixed(6)} s`;
const UNITS = { bytes: (value) => prefixed(value, "B"), "bit/s": (value) => prefixed(value, "bit/s"), ms: (value) => duration(value * 1e6), "": (value) => whole(value) };

// Returns whether a head has no value of a series that is not pointed at, or that has ended.
function isLeftOut(series, panel, source, time) {
  if (series.flow !== undefined && panel.name !== "sequence" && time > source.x[source.x.length - 1]) return true;
  if (series.mode === "marks") return panel.unit !== "ms" || source.row === undefined;
  return series.mode === "bars" ? series.key !== "data" : series.key === "window";
}

// Fills the heads with the values of all series at a time.
function showValues(time, point) {
  state.used.forEach((panel) => {
    const parts = [];
    for (const series of seriesOf(panel).filter(isShown).sort((a, b) => rankInLegend(a) - rankInLegend(b))) {
      const own = point?.series === series, source = state.all[series.key];
      if (series.mode === "bands") {
        parts.push(bandAt(time)?.kind ?? "");
        continue;
      }
      if (series.key === "least" || (!own && isLeftOut(series, panel, source, time))) continue;
      const value = own ? (source.y2 || source.y)[point.i] : valueAt(series, source, time);
      if (Number.isFinite(value)) parts.push(`${UNITS[panel.unit](value)} ${series.key === "data" ? "sent" : nameOfSeries(series)}`);
    }
    $("overlay").querySelector(`.panel-head[data-panel="${panel.name}"] .value`).textContent = parts.slice(0, isOverlaid() ? WITH_MOST : 3).join(", ");
  });
}

function fileText(capture) {
  return data.files.length ? ` of ${data.files[capture]}` : "";
}

// Shows the crosshair again after the panels were drawn.
function placeCrosshair() {
  for (const old of document.querySelectorAll(".cross, .cross-time, .cross-tip")) old.remove();
  const { at } = cross;
  if (!at || !state.used.length || at.time < state.range[0] || at.time > state.range[1]) return;
  const x = xOf(at.time), overlay = $("overlay"), bottom = state.stack.height;
  state.stack.places.forEach(({ plot, bottom: end }) => {
    const line = atTop(element("div", { className: "cross" }), plot);
    Object.assign(line.style, { left: `${x}px`, height: `${end - plot}px` });
    overlay.append(line);
  });
  const time = atTop(element("div", { className: "cross-time", textContent: clockText(at.time) }), bottom + 2);
  overlay.append(time);
  const half = time.offsetWidth / 2;
  time.style.left = `${Math.min(Math.max(x, half), overlay.clientWidth - half)}px`;
  showValues(at.time, at.series && at);
  overlay.append(tipOf(at));
  placeTip(overlay.lastElementChild, x);
}

function tipOf(at) {
  const tip = element("div", { className: "cross-tip" });
  const head = typeof at.frame === "number" ? [element("b", { textContent: `frame ${at.frame}` }), fileText(at.capture)] : [element("b", { textContent: at.frame.map((time) => clockText(time + (at.source?.shift || 0))).join(" to ") })];
  if (isOverlaid()) tip.append(flowLine(at.series?.flow ?? choice.flow));
  tip.append(element("p", {}, ...head));
  const words = at.words ?? at.source.text?.(at.i) ?? "";
  for (const line of words.split("<br>").filter(Boolean)) tip.append(element("p", { textContent: line }));
  return tip;
}

// The tip is at the side with more room, below the pointer or the top of the stack.
function placeTip(tip, x) {
  const room = $("overlay").clientWidth, width = tip.offsetWidth, y = cross.y ?? state.stack.places[0].plot + 12;
  tip.style.left = `${x + 14 + width <= room ? x + 14 : Math.max(0, x - 14 - width)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 14, state.stack.height - tip.offsetHeight - 4))}px`;
}

function showAt(at) {
  cross.at = at;
  if (!at) for (const value of document.querySelectorAll(".panel-head .value")) value.textContent = "";
  placeCrosshair();
}

// --- pointer ---------------------------------------------------------------------------------------------------

function pixelOf(event) {
  const box = $("plot").getBoundingClientRect();
  return [event.clientX - box.x, event.clientY - box.y];
}

function pointed(event) {
  if (!state.used?.length) return;
  const [x, y] = pixelOf(event);
  if (cross.press) return dragged(x, y);
  cross.y = y;
  showAt(x < area().l - 4 || x > area().l + area().w + 4 ? null : nearest(x, y));
}

function pressed(event) {
  clearTimeout(cross.click);
  cross.zoomed = false;
  const [x, y] = pixelOf(event);
  if (event.button !== 0 || !state.used?.length || panelAt(y) < 0) return;
  cross.press = { x, y, place: panelAt(y), pan: event.shiftKey, range: state.range.slice(), vertical: { ...choice.vertical } };
  $("plot").setPointerCapture(event.pointerId);
}

// Draws the box, or moves the view: once in a frame of the screen.
function dragged(x, y) {
  const { press } = cross;
  if (!press.pan) return drawBox(press, x, y);
  press.to = [x, y];
  if (press.waiting) return;
  press.waiting = requestAnimationFrame(async () => {
    Object.assign(state, movedRange(press));
    await draw();
    press.waiting = null;
  });
}

function movedRange({ range, x, to = [x] }) {
  const shift = ((x - to[0]) / area().w) * (range[1] - range[0]);
  return { range: range.map((time) => time + shift) };
}

function drawBox(press, x, y) {
  const { plot, bottom } = state.stack.places[press.place], tall = Math.abs(y - press.y) >= BOX_PX;
  press.box ||= $("overlay").appendChild(element("div", { className: "zoom-box" }));
  const [left, right] = [press.x, x].sort((a, b) => a - b), [top, end] = tall ? [press.y, Math.min(Math.max(y, plot), bottom)].sort((a, b) => a - b) : [plot, bottom];
  Object.assign(press.box.style, { left: `${left}px`, width: `${right - left}px`, top: `${top}px`, height: `${end - top}px` });
}

function released(event) {
  const { press } = cross;
  if (!press) return;
  const [x, y] = pixelOf(event);
  cross.press = null;
  press.box?.remove();
  const wide = Math.abs(x - press.x) >= DRAG_PX, tall = Math.abs(y - press.y) >= BOX_PX;
  if (press.pan) return wide ? zoom({ ...movedRange({ ...press, to: [x, y] }) }) : undefined;
  if (!wide && !tall) return;
  const { plot, bottom } = state.stack.places[press.place], name = state.used[press.place].name;
  const range = wide ? [press.x, x].sort((a, b) => a - b).map(timeAt) : state.range;
  const ends = [press.y, Math.min(Math.max(y, plot), bottom)].sort((a, b) => b - a).map((at) => valueAtHeight(press.place, at));
  return zoom({ range: atLeast(range), ...(tall ? { vertical: { ...choice.vertical, [name]: ends } } : {}) });
}

function atLeast([from, to]) {
  const middle = (from + to) / 2, half = Math.max((to - from) / 2, LEAST / 2);
  return [middle - half, middle + half];
}

function zoom(change) {
  cross.zooms++;
  cross.zoomed = true; // the click that ends a drag chooses nothing, however long the drawing takes
  return choose(change);
}

// A click waits for a second one, which goes back a step.
function clickedAt(event) {
  clearTimeout(cross.click);
  if (event.detail !== 1 || !state.used?.length || cross.zoomed) return;
  const [x, y] = pixelOf(event), place = panelAt(y);
  if (place < 0) return;
  const at = nearest(x, y), bin = state.used[place].name === "rate" && !isOverlaid() ? nearestBin(timeAt(x)) : null;
  cross.click = setTimeout(() => chosenPoint(bin || at), DOUBLE_MS);
}

// Chooses a packet, and its flow if others are overlaid on it; of a bin, it gives the filter.
async function chosenPoint(at) {
  if (!at || at.frame === null) return;
  const single = typeof at.frame === "number", other = at.series?.flow ?? choice.flow;
  const change = { ...(other === choice.flow ? {} : chosenAmong(other)), ...(single ? { frame: at.frame } : {}) };
  const done = Object.keys(change).length ? choose(change) : null;
  if (change.flow !== undefined) await done; // another flow hides the filter
  $("packet").hidden = false;
  $("packet-file").textContent = single && data.files.length ? `in ${data.files[at.capture]}` : "";
  $("packet-filter").textContent = single ? `frame.number == ${at.frame}` : timeFilter(at.frame);
  return done;
}

// Goes back a step of this page, or to the whole flow if the view was opened by a link.
function goBack() {
  clearTimeout(cross.click);
  if (!choice.range && !Object.keys(choice.vertical).length) return;
  if (cross.zooms > 0) {
    cross.zooms--;
    cross.own = true;
    history.back();
  } else wholeView();
}

// Returns the filter of the packets in a bin.
function timeFilter([start, end]) {
  const base = BigInt(data.base) / 1000000000n;
  const epoch = (seconds) => {
    const below = Math.floor(seconds + 5e-10), rest = Math.max(0, seconds - below).toFixed(9).slice(1);
    return `${base + BigInt(below)}${rest}`;
  };
  return `${displayFilter(state.flows.rowOf(choice.flow))} && frame.time_epoch >= ${epoch(start)} && frame.time_epoch < ${epoch(end)}`;
}

function wheeled(event) {
  if (!event.ctrlKey || !state.used?.length) return;
  event.preventDefault();
  steps.byKey = true; // consecutive steps are one in the history
  cross.wheel = (cross.wheel || 0) + event.deltaY;
  const at = timeAt(pixelOf(event)[0]);
  cross.wheeling ||= requestAnimationFrame(async () => {
    const factor = Math.exp(cross.wheel * WHEEL), [from, to] = state.range;
    cross.wheel = 0;
    if (!steps.lastByKey) cross.zooms++;
    await choose({ range: atLeast([at - (at - from) * factor, at + (to - at) * factor]) });
    cross.wheeling = null;
  });
}

// --- keys ------------------------------------------------------------------------------------------------------

const ZOOMS = { "+": 0.5, "=": 0.5, "-": 2 };
const MOVES = { ArrowRight: 1, ArrowLeft: -1, PageDown: PAGE, PageUp: -PAGE };

function scaled(shrink, shift = 0) {
  const [from, to] = state.range, middle = (from + to) / 2 + shift * (to - from), half = Math.max(((to - from) / 2) * shrink, LEAST / 2);
  return choose({ range: [middle - half, middle + half] });
}

// Moves the crosshair by packets; the view follows.
function stepPackets(count) {
  const rows = state.order;
  if (!rows.length) return;
  const before = cross.at?.k ?? (cross.at ? nearestInTime(cross.at.time).k : count > 0 ? firstAtOrAfter(rows, state.range[0], (row) => state.packets.time[row]) - 1 : rows.length);
  const at = atPacket(Math.min(rows.length - 1, Math.max(0, before + count)));
  cross.y = null;
  showAt(at);
  const [from, to] = state.range;
  if (at.time < from || at.time > to) return choose({ range: [at.time - (to - from) / 2, at.time + (to - from) / 2] });
}

function keyed(event) {
  if (event.target !== $("plot") || event.ctrlKey || event.altKey || event.metaKey) return;
  const { key } = event;
  if (event.shiftKey && MOVES[key]) scaled(1, 0.25 * Math.sign(MOVES[key]));
  else if (MOVES[key]) stepPackets(MOVES[key]);
  else if (ZOOMS[key]) scaled(ZOOMS[key]);
  else if (key === "0") wholeView();
  else if (key === "Enter" && cross.at) chosenPoint(cross.at);
  else if (key === "Escape") showAt(null);
  else return;
  event.preventDefault();
}

function listenToPlot() {
  const plot = $("plot");
  plot.addEventListener("pointermove", pointed);
  plot.addEventListener("pointerleave", () => !cross.press && showAt(null));
  plot.addEventListener("pointerdown", pressed);
  plot.addEventListener("pointerup", released);
  plot.addEventListener("click", clickedAt);
  plot.addEventListener("dblclick", goBack);
  plot.addEventListener("wheel", wheeled, { passive: false });
  plot.addEventListener("keydown", () => (steps.byKey = true), true);
  plot.addEventListener("keydown", keyed);
  addEventListener("popstate", () => {
    clearTimeout(cross.click); // a click that still waits belongs to the view that was left
    if (!cross.own) cross.zooms = 0;
    cross.own = false;
  });
  listenToTools();
}
