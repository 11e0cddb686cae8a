// The plots of the selected flow: panels over one time axis. Points in view are thinned, and axes fit them.
const DRAWN_MOST = 6000; // points of all series, which Plotly draws without a noticeable delay
const DRAWN_LEAST = 400; // points of each series, even if there are many
const FINER = 3; // lines of overlaid flows, which have few marks, take so many times the points
const MARGIN = 0.06; // share of an axis beyond the points in view
const LEFT = 52, RIGHT = 8, AXIS = 24, GAP = 10; // px
const NARROW = 640; // px
const WORDS_PX = 18; // height of the words at the upper edge of a panel
const MARK_PX = 10; // room between the last points and an edge, so that no mark is cut
const WINDOWS = { window: 0.35, room: 1.5 }; // share of the range by which an axis grows to show a window's line
const FAR = 6, USUAL = 0.95; // an axis from zero leaves out points that are so many times above most

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

const isLine = ({ mode }) => mode === "steps" || mode === "lines";

// A series is hidden if the reader toggled a usual one, or did not toggle an unusual one.
const isShown = (series) => series.shown !== choice.toggled.includes(series.switch ?? series.key);

// Lines of overlaid flows have some marks.
const hasMarks = (series) => series.flow !== undefined && isLine(series);
const plotlyMode = (series) => (series.mode === "marks" ? "markers" : hasMarks(series) ? "lines+markers" : "lines");

function markerOf(series, color) {
  const width = /-(thin|ew|ns)/.test(series.symbol) ? 2 : /-open/.test(series.symbol) ? 1.5 : 0;
  return { color, symbol: series.symbol, size: series.size, maxdisplayed: hasMarks(series) ? MARKS_OF_LINE : 0, line: { color, width } };
}

// Returns Plotly's trace of a series with the points in view. A line must include the next point on either side.
function traceOf(series, source, [from, to], most, axis, own) {
  const start = firstAtOrAfter(source.x, from), end = Math.max(start, firstAtOrAfter(source.x, to)), line = isLine(series);
  const rows = thinned(source, line ? Math.max(0, start - 1) : start, line ? Math.min(source.x.length, end + 1) : end, source.bin ? Infinity : hasMarks(series) ? FINER * most : most);
  const bars = series.mode === "bars", each = (value, gap) => (bars ? rows.flatMap((i) => [value(i), value(i), gap]) : rows.map(value));
  const trace = {
    type: "scatter", meta: series.key, name: series.name, mode: plotlyMode(series), yaxis: axis, connectgaps: false, showlegend: false,
    x: each((i) => source.x[i], null), y: bars ? rows.flatMap((i) => [source.y[i], source.y2[i], null]) : rows.map((i) => source.y[i]),
    customdata: each((i) => source.frame?.[i] ?? null, null), place: rows, cliponaxis: series.mode !== "marks" && !hasMarks(series), visible: isShown(series) ? true : "legendonly", opacity: series.key === "sack" ? 0.5 : 1,
    line: { color: own[series.color], width: bars ? series.size : 1.5, dash: series.dash, shape: series.mode === "steps" ? "hv" : "linear", simplify: !bars }, // a simplified line leaves out bars of less than a pixel
    marker: markerOf(series, own[series.color]),
  };
  if (!rows.length || series.mode === "bands") Object.assign(trace, { x: [from], y: [null], customdata: [null], place: [] });
  if (series.fill) Object.assign(trace, { fill: "tozeroy", fillcolor: `${own[series.color]}22` });
  state.thinned ||= rows.length < end - start;
  return trace;
}

// Returns the value of a series at a time: that of the last point, or between two points of a straight line.
function valueAt(series, source, time) {
  const next = firstAtOrAfter(source.x, time + 1e-10);
  if (next === 0) return NaN;
  if (series.key === "least") return source.y[0];
  return (source.y2 || source.y)[next - 1];
}

// --- ranges -----------------------------------------------------------------------------------------------------

// Returns the values of a panel's series in view; lines count where they cross its edges.
function valuesIn(panel, [from, to]) {
  const values = [], windows = [], shown = seriesOf(panel).filter(isShown);
  const ends = ({ key }) => [from, to].map((time) => firstAtOrAfter(state.all[key].x, time));
  const within = shown.filter((series) => ends(series)[0] < ends(series)[1]);
  for (const series of within.length ? within : shown) {
    const source = state.all[series.key], own = WINDOWS[series.key] ? windows : values, [start, end] = ends(series);
    const add = (value) => { if (value !== null && !Number.isNaN(value)) own.push(value); };
    for (const column of [source.y, source.y2]) for (let i = start; column && i < end; i++) add(column[i]);
    if (isLine(series) && start > 0) add(source.y[start - 1]);
    if (series.mode === "lines" && end < source.x.length) add(source.y[end]);
  }
  return [Float64Array.from(values).sort(), Float64Array.from(windows).sort()];
}

const isLog = (panel) => panel.unit === "ms" && panel.log !== choice.toggled.includes(`log:${panel.name}`);

// Returns the room beyond a range of values that leaves a share of it, and place for a mark, in units of the axis.
const roomBeyond = (panel, span, edges) => Math.max(MARGIN, MARK_PX / (heightOfPanel(panel) - edges * MARK_PX)) * span;

// Returns the range of an axis from zero: all values, unless a few are far above the others.
function fromZero(panel, values) {
  const most = values[values.length - 1], usual = values[Math.floor((values.length - 1) * USUAL)];
  const high = usual > 0 && most > FAR * usual && values.length >= 40 ? 2 * usual : most;
  return high > 0 ? [0, high + roomBeyond(panel, high, 1)] : [0, 1];
}

// Returns the range of a panel in units of its axis: exponents of ten if it is logarithmic.
function verticalRange(panel) {
  if (panel.name === "parts") return [0, 1];
  if (choice.vertical[panel.name]) return choice.vertical[panel.name].slice();
  let [values, windows] = valuesIn(panel, state.range);
  if (!values.length) [values, windows] = [windows, values];
  if (!values.length) return isLog(panel) ? [-1, 1] : [0, 1];
  const [low, high] = [values[0], values[values.length - 1]], window = windows[windows.length - 1];
  if (isLog(panel)) {
    const least = values.find((value) => value > 0) ?? 1, from = Math.log10(least), to = Math.log10(Math.max(high, least)), beyond = Math.max(0.1, roomBeyond(panel, to - from, 2));
    return [from - beyond, to + beyond];
  }
  if (!["sequence", "numbers"].includes(panel.name)) return fromZero(panel, window <= high * (1 + WINDOWS.room) ? [...values, Math.max(high, window)] : values);
  const grown = window <= high + WINDOWS.window * (high - low) ? Math.max(high, window) : high;
  const margin = roomBeyond(panel, grown - low, 2) || Math.abs(grown) * MARGIN || 1;
  return [low - margin, grown + margin];
}

// Returns the words for values outside of the view, as "receive window 596 kB ↑".
function wordsOutside(panel, range) {
  const high = isLog(panel) ? 10 ** range[1] : range[1], parts = [];
  for (const series of seriesOf(panel).filter(isShown)) {
    const source = state.all[series.key], start = firstAtOrAfter(source.x, state.range[0]), end = firstAtOrAfter(source.x, state.range[1]);
    let count = 0, most = -Infinity, least = Infinity;
    for (let i = Math.max(0, isLine(series) ? start - 1 : start); i < end; i++) {
      const value = (source.y2 || source.y)[i];
      if (value > high) count++;
      if (value > most) most = value;
      if (value < least) least = value;
    }
    if (series.key === "ack" && most < range[0]) parts.push(`acknowledged ${prefixed(most, "B")}, below this view ↓`);
    if (!count) continue;
    if (series.key === "window") parts.push(`window edge ${prefixed(least > high ? least - high : most - high, "B")} above this view ↑`);
    else if (series.key === "room") parts.push(`receive window ${least > high && least < most ? "from " : ""}${prefixed(least > high ? least : most, "B")} ↑`);
    else if (!isLine(series) && panel.unit === "ms") parts.push(`${whole(count)} above, to ${duration(most * 1e6)} ↑`);
  }
  return parts.join(" · ");
}

// Raises the upper end of a panel by the height of the words at this edge, so that they cover no data.
function makeRoomForWords(panel, range) {
  if (choice.vertical[panel.name] || isLog(panel) || !wordsOutside(panel, range)) return;
  range[1] += (range[1] - range[0]) * (WORDS_PX / (heightOfPanel(panel) - WORDS_PX));
}

function extent(full) {
  let from = Infinity, to = -Infinity;
  for (const { x } of Object.values(full)) {
    if (!x.length) continue;
    from = Math.min(from, x[0]);
    to = Math.max(to, x[x.length - 1]);
  }
  if (!(to >= from)) return [0, 1];
  const margin = (to - from) * 0.01 || 0.001;
  return [from - margin, to + margin];
}

// --- axes ------------------------------------------------------------------------------------------------------

const seriesOf = (panel) => figureSeries().filter((series) => series.panel === panel.name && state.all[series.key]?.x.length);
const panelsWithData = () => data.figure.panels.filter((panel) => seriesOf(panel).length);
const isOpen = (panel) => panel.shown !== choice.toggled.includes(`panel:${panel.name}`);
const heightOfPanel = (panel) => Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, choice.size[panel.name] || panel.height));
const axisName = (place) => (place ? `yaxis${place + 1}` : "yaxis");
const axisKey = (place) => (place ? `y${place + 1}` : "y");

// Returns about `count` round values in a range.
function roundValues([low, high], count) {
  const step = roundStep((high - low) / count), values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) values.push(k * step || 0); // no −0
  return { step, values };
}

const TICK_LETTERS = 5; // for which there is room
const MS_SCALES = [[1e4, 1e3, "s"], [0, 1, "ms"]]; // from so many ms on
const SCALES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

// Returns those values that a panel can have: whole numbers from 0 on, or any time.
function possibleValues({ unit }, values) {
  return unit === "ms" ? values : values.filter((value) => value >= 0 && Number.isInteger(Math.round(value * 1e6) / 1e6));
}

// Returns the ticks of a panel whose axis is logarithmic, and the unit that its head names.
function logTicks(range) {
  const all = [];
  for (let power = Math.floor(range[0]); power <= range[1]; power++) for (const digit of [1, 2, 5]) all.push(digit * 10 ** power);
  const inside = all.filter((value) => Math.log10(value) >= range[0] && Math.log10(value) <= range[1]), tens = inside.filter((value) => Number.isInteger(Math.round(Math.log10(value) * 1e9) / 1e9));
  const tickvals = inside.length <= 4 ? inside : tens.length >= 2 ? tens.filter((_, i) => i % Math.ceil(tens.length / 4) === 0) : inside.filter((_, i) => i % 2 === 0);
  const [, scale, unit] = MS_SCALES.find(([least]) => (tickvals.at(-1) ?? 0) >= least);
  const ticktext = tickvals.map((value) => String(Number((value / scale).toPrecision(3))));
  if (ticktext.every((text) => text.length <= TICK_LETTERS)) return { tickvals, ticktext, unit };
  return { tickvals, ticktext: tickvals.map((value) => duration(value * 1e6)), unit: "" }; // ms
}

// Returns the ticks of a panel, and the unit that its head names.
function valueTicks(panel, range) {
  if (panel.name === "parts") return { tickvals: [], ticktext: [], unit: "" };
  if (isLog(panel)) return logTicks(range);
  const { step, values } = roundValues(range, heightOfPanel(panel) > 150 ? 5 : 2.5), whole_ = possibleValues(panel, values);
  const most = Math.max(...whole_.map(Math.abs), 0), [, msScale, msUnit] = MS_SCALES.find(([least]) => most >= least);
  const [scale, letter] = panel.unit === "ms" ? [msScale, ""] : (panel.unit && SCALES.find(([size]) => most >= size)) || [1, ""];
  const places = whole_.every((value) => Number.isInteger(value / scale)) ? 0 : Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  const unit = panel.unit === "ms" ? msUnit : panel.unit === "bytes" ? (letter ? `${letter}B` : "bytes") : `${letter}${panel.unit}`;
  return { tickvals: whole_, ticktext: whole_.map((value) => (panel.unit ? (value / scale).toFixed(Math.min(places, 9)) : whole(Math.round(value)))), unit };
}

function timeTicks(range, width) {
  const origin = axisOrigin(), { step, values } = roundValues(range.map((time) => time - origin), Math.max(2, Math.floor(width / 150))), places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return { tickvals: values.map((value) => value + origin), ticktext: values.map((value, i) => `${value.toFixed(Math.min(places, 9))}${i ? "" : " s"}`) };
}

// Stacks the panels below their heads: returns the top of each head and plot, in px, and the height of all.
function stacked(used, headHeights) {
  let top = 0;
  const places = used.map((panel, i) => {
    const head = top, plot = top + headHeights[i], bottom = plot + heightOfPanel(panel);
    top = bottom + GAP;
    return { head, plot, bottom };
  });
  return { places, height: Math.max(1, top - GAP) };
}

function layoutFor(used, own) {
  const { places, height } = state.stack, width = onPaper() ? PAPER.width : $("stack").clientWidth, left = width < NARROW ? 40 : LEFT;
  state.area = { l: left, w: width - left - RIGHT };
  const grid = { gridcolor: own.grid, linecolor: own.axis, tickcolor: own.axis, zeroline: false, fixedrange: true, tickfont: { size: width < NARROW ? 10 : 11, color: own.muted } };
  const layout = {
    showlegend: false, hovermode: false, dragmode: false, autosize: false, width, height: height + AXIS,
    margin: { l: left, r: RIGHT, t: 0, b: AXIS, pad: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", size: 11, color: own.ink },
    xaxis: { ...grid, anchor: "free", position: 0, range: state.range.slice(), ...timeTicks(state.range, width - left) },
    shapes: [...evidenceShapes(), ...bandShapes(used)],
  };
  used.forEach((panel, i) => {
    const range = state.vertical[panel.name], { plot, bottom } = places[i], { tickvals, ticktext } = valueTicks(panel, range);
    layout[axisName(i)] = { ...grid, domain: [1 - bottom / height, 1 - plot / height], range, tickvals, ticktext, type: isLog(panel) ? "log" : "linear" };
  });
  return layout;
}

// --- drawing ---------------------------------------------------------------------------------------------------

async function draw() {
  const f = flowAt(state.flows.rowOf(choice.flow)), own = { ...colors(), ...flowColors() }, rates = isOverlaid() ? overlaidRates(state.range) : rateData(f, state.range);
  state.all = { ...state.full, ...rates }; // of rates only the view
  state.thinned = false;
  const used = (state.used = panelsWithData().filter(isOpen));
  state.vertical = Object.fromEntries(used.map((panel) => [panel.name, verticalRange(panel)]));
  for (const panel of used) makeRoomForWords(panel, state.vertical[panel.name]);
  state.stack = stacked(used, drawHeads(f, used, own));
  const made = used.flatMap((panel, i) => seriesOf(panel).map((series) => [series, i]));
  const inView = ({ x }) => firstAtOrAfter(x, state.range[1]) - firstAtOrAfter(x, state.range[0]), points = made.reduce((sum, [{ key }]) => sum + inView(state.all[key]), 0);
  const most = points <= DRAWN_MOST ? Infinity : Math.max(DRAWN_LEAST, Math.floor(DRAWN_MOST / made.length));
  const traces = made.map(([series, i]) => traceOf(series, state.all[series.key], state.range, most, axisKey(i), own));
  const layout = layoutFor(used, own);
  $("plot").hidden = !used.length;
  document.body.dataset.points = traces.reduce((n, trace) => n + trace.place.length, 0);
  // All must be done before the first await, because a browser that prints does not wait.
  placeHeads(f, used);
  placeCrosshair();
  if (used.length) await Plotly.react($("plot"), traces, layout, { staticPlot: true, displayModeBar: false });
}

const wholeView = () => choose({ range: null, vertical: {} });
