// The figure of the selected flow. Points in view are thinned, and axes fit them.
const DRAWN_MOST = 5000; // points of all traces, which Plotly draws without a noticeable delay
const DRAWN_LEAST = 400; // points of each trace, even if there are many traces
const PANEL_WEIGHTS = { rate: 3, sequence: 5, rtt: 2.2, losses: 2, blocks: 2.2, fragments: 2 };
const ROW_HEIGHT_PX = 78;
const MARGIN = 0.06; // share of an axis beyond the points in view
const COUNTED = ["sequence", "losses", "fragments"]; // panels of bytes and packets, which are whole

// --- points in view -------------------------------------------------------------------------------------------

// Returns the first place of an ascending list whose item, or the value that `of` returns for it, is not below a value.
function firstAtOrAfter(x, value, of = (item) => item) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(x[middle]) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Returns the rows of [start, end) to draw: all if there are at most `most`, else the first, last, least and greatest of each part.
function thinned({ y }, start, end, most) {
  const chosen = [];
  if (end - start <= most) {
    for (let i = start; i < end; i++) chosen.push(i);
    return chosen;
  }
  const parts = most >> 2;
  for (let part = 0; part < parts; part++) {
    const a = start + Math.floor(((end - start) * part) / parts), b = start + Math.floor(((end - start) * (part + 1)) / parts);
    let least = a, greatest = a;
    for (let i = a; i < b; i++) {
      if (y[i] < y[least]) least = i;
      if (y[i] > y[greatest]) greatest = i;
    }
    chosen.push(...[...new Set([a, least, greatest, b - 1])].sort((i, j) => i - j));
  }
  return chosen;
}

// Returns a trace with its points in view. A line must include the next point on either side.
function filled(made, source, [from, to], most) {
  const line = made.mode.includes("lines"), trace = structuredClone(made);
  const start = firstAtOrAfter(source.x, from), end = Math.max(start, firstAtOrAfter(source.x, to));
  const rows = thinned(source, line ? Math.max(0, start - 1) : start, line ? Math.min(source.x.length, end + 1) : end, most);
  if (!rows.length) return Object.assign(trace, { x: [from], y: [null], visible: visibleAs(made) }); // keeps it in the legend
  trace.x = rows.map((i) => source.x[i]);
  trace.y = rows.map((i) => source.y[i]);
  if (source.frame) trace.customdata = rows.map((i) => source.frame[i]);
  if (source.text) trace.text = rows.map((i) => source.text(i));
  if (source.capture && data.files.length) {
    trace.hovertext = rows.map((i) => data.files[source.capture[i]].replaceAll("<", "&lt;"));
    trace.hovertemplate = trace.hovertemplate.replace("frame %{customdata}", "frame %{customdata} of %{hovertext}");
  }
  return Object.assign(trace, { visible: visibleAs(made) });
}

const visibleAs = (trace) => state.visible[trace.meta] ?? trace.visible ?? true;

// Returns the value of a line between its points.
function heightAt({ x, y, line }, time) {
  const next = firstAtOrAfter(x, time);
  if (x[next] === time) return y[next];
  if (next === 0 || next === x.length) return null;
  if (line.shape === "hv") return y[next - 1];
  return y[next - 1] + ((y[next] - y[next - 1]) * (time - x[next - 1])) / (x[next] - x[next - 1]);
}

// Returns the range of the points in view, and of lines where they cross the edges.
function heights(traces, [from, to]) {
  let low = Infinity, high = -Infinity;
  const take = (y) => {
    if (y === null || Number.isNaN(y)) return;
    low = Math.min(low, y);
    high = Math.max(high, y);
  };
  const within = (trace) => trace.x.some((x, i) => x >= from && x <= to && trace.y[i] !== null);
  const some = traces.filter(within);
  for (const trace of some.length ? some : traces) {
    trace.x.forEach((x, i) => { if (x >= from && x <= to) take(trace.y[i]); });
    if (trace.mode.includes("lines")) [from, to].forEach((edge) => take(heightAt(trace, edge)));
  }
  return low <= high ? [low, high] : [0, 1];
}

// Rates and counts begin at zero; other axes fit the points in view, but keep two packets distinguishable.
const standsOnZero = (panel) => panel !== "sequence" && (panel !== "rtt" || !state.zoomed);

function verticalRange(panel, traces) {
  if (state.vertical[panel.name]) return state.vertical[panel.name].slice();
  const own = traces.filter((trace) => axisOf(trace) === panel.axis && visibleAs(trace) === true);
  const [low, high] = heights(own, state.range);
  if (standsOnZero(panel.name)) return [low > 0 ? 0 : -MARGIN * (high || 1), high + MARGIN * (high || 1)];
  const margin = MARGIN * (high - low) || Math.abs(high) * MARGIN || 1;
  return [low - margin, high + margin];
}

function extent(full) {
  let from = Infinity, to = -Infinity;
  for (const { x } of Object.values(full)) {
    if (!x.length) continue;
    from = Math.min(from, x[0]);
    to = Math.max(to, x[x.length - 1]);
  }
  if (!(to >= from)) return [0, 1];
  const margin = (to - from) * 0.02 || 0.001;
  return [from - margin, to + margin];
}

function sorted(source) {
  for (let i = 1; i < source.x.length; i++) {
    if (source.x[i] >= source.x[i - 1]) continue;
    const order = Array.from(source.x.keys()).sort((a, b) => source.x[a] - source.x[b]);
    const text = source.text;
    return { ...source, x: order.map((k) => source.x[k]), y: order.map((k) => source.y[k]), frame: source.frame && order.map((k) => source.frame[k]), capture: source.capture && order.map((k) => source.capture[k]), text: text && ((k) => text(order[k])) };
  }
  return source;
}

// --- axes ------------------------------------------------------------------------------------------------------

const axisOf = (trace) => (!trace.yaxis || trace.yaxis === "y" ? 1 : Number(trace.yaxis.slice(1)));
const axisName = (panel) => (panel.axis === 1 ? "yaxis" : `yaxis${panel.axis}`);

function panelsWith(full) {
  const panels = new Set();
  for (const trace of data.figure.plot.data) if (full[trace.meta]?.x.length) panels.add(data.figure.panels.find((panel) => panel.axis === axisOf(trace)).name);
  return panels;
}

// Returns whole ticks.
function wholeTicks([low, high]) {
  const span = high - low;
  return span <= 6 ? { dtick: 1, tick0: 0 } : span <= 12 ? { dtick: 2, tick0: 0 } : {};
}

// Stacks the panels with data. An axis without a domain would cover all panels and take the pointer events.
function layoutFor(f, traces) {
  const layout = structuredClone(data.figure.plot.layout);
  for (const panel of data.figure.panels) if (!state.panels.has(panel.name)) delete layout[axisName(panel)];
  inColors(layout);
  layout.dragmode = $("plot").layout?.dragmode || layout.dragmode; // keeps zoom or pan
  const used = data.figure.panels.filter((panel) => state.panels.has(panel.name));
  const weights = used.map((panel) => PANEL_WEIGHTS[panel.name]), total = weights.reduce((a, b) => a + b, 0);
  layout.height = 90 + ROW_HEIGHT_PX * total;
  Object.assign(layout.xaxis, { range: state.range.slice(), title: { text: `seconds since ${state.baseText}` } });
  let top = 1;
  used.forEach((panel, i) => {
    const share = weights[i] / total, axis = layout[axisName(panel)], range = verticalRange(panel, traces);
    Object.assign(axis, { domain: [Math.max(0, top - share), top - (i ? 0.05 : 0)], range, ...(COUNTED.includes(panel.name) ? wholeTicks(range) : {}) });
    if (panel.name === "sequence" && f.protocol !== "tcp") axis.title.text = "payload, bytes";
    top -= share;
  });
  return fitted(layout, $("plot"));
}

// --- drawing ---------------------------------------------------------------------------------------------------

async function draw() {
  const f = flowAt(state.flows.rowOf(state.chosen));
  const made = data.figure.plot.data.filter((trace) => state.full[trace.meta]?.x.length);
  const most = Math.max(DRAWN_LEAST, Math.floor(DRAWN_MOST / made.length));
  const traces = made.map((trace) => filled(trace, state.full[trace.meta], state.range, most));
  for (const trace of traces) {
    trace.showlegend = true;
    if (f.protocol !== "tcp" && trace.meta === "data") trace.name = "packets →";
    if (f.protocol !== "tcp" && trace.meta === "other") trace.name = "packets ←";
  }
  await drawn($("plot"), traces, layoutFor(f, traces), { ...CONFIG, doubleClick: false, modeBarButtonsToRemove: [...CONFIG.modeBarButtonsToRemove, "resetScale2d"], modeBarButtonsToAdd: [WHOLE_FLOW] });
  quietButtons($("plot"));
  document.body.dataset.points = traces.reduce((n, trace) => n + trace.x.length, 0);
}

const WHOLE_FLOW = { name: "whole", title: "Whole flow", icon: { width: 24, height: 24, path: "M3 11 12 3l9 8v10h-6v-6h-6v6H3z" }, click: () => wholeView() };

// --- pointer events ---------------------------------------------------------------------------------------

// Plotly has changed axes: the time axis holds for all panels, a vertical range for one.
function zoomed(change) {
  const moved = new Set(Object.keys(change).map((key) => key.match(/^([xy]axis\d*)\./)?.[1]).filter(Boolean));
  if (!moved.size) return;
  const { layout } = $("plot");
  if (moved.has("xaxis")) state.range = layout.xaxis.autorange ? extent(state.full) : layout.xaxis.range.map(Number);
  for (const panel of data.figure.panels) {
    const axis = layout[axisName(panel)];
    if (!moved.has(axisName(panel))) continue;
    if (axis.autorange) delete state.vertical[panel.name];
    else state.vertical[panel.name] = axis.range.map(Number);
  }
  state.zoomed = true;
  remember();
  return draw();
}

function wholeView() {
  state.range = extent(state.full);
  state.vertical = {};
  state.zoomed = false;
  remember();
  return draw();
}

// A selection in the legend stays if the view changes.
function legendChanged() {
  for (const trace of $("plot").data) state.visible[trace.meta] = trace.visible ?? true;
  return draw();
}

function clicked({ points: [point] }) {
  const { customdata: held, hovertext } = point;
  if (held === undefined || held === null) return;
  $("packet").hidden = false;
  $("packet-file").textContent = hovertext ? `in ${hovertext.replaceAll("&lt;", "<")}` : "";
  $("packet-filter").textContent = typeof held === "number" ? `frame.number == ${held}` : timeFilter(held);
}

// Returns the filter of the packets in a bin.
function timeFilter([start, end]) {
  const base = BigInt(data.base) / 1000000000n;
  const epoch = (seconds) => {
    const below = Math.floor(seconds + 5e-10), rest = Math.max(0, seconds - below).toFixed(9).slice(1);
    return `${base + BigInt(below)}${rest}`;
  };
  return `${$("flow-filter").textContent} && frame.time_epoch >= ${epoch(start)} && frame.time_epoch < ${epoch(end)}`;
}
