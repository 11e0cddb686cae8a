// Throughput limits over time as bands: a lane of the flow's panels, and small ones in the lists. A kind is a colour of page.css; the
// parts of idle time fill half of the height.
const BAND_SHARE = 0.005; // of the view, from which on the legend names a kind
const LIST_CELLS = 88, BAR_CELLS = 600;

// Returns the places of packed spans by their direction, 2 * flow + direction: the columns, and where those of the direction begin
// (reports/html/limit_bands.py).
async function loadLimits(packed) {
  const places = new Map();
  if (!packed) return places;
  const { sides, counts, ...columns } = await changed(packed, unplaned);
  let at = 0;
  sides.forEach((side, k) => {
    places.set(side, { columns, at, count: counts[k] });
    at += counts[k];
  });
  return places;
}

// Returns the spans of a direction in order of time; they are made when they are first shown.
function limitsOf(flow, direction) {
  const place = state.limits.get(2 * flow + direction);
  if (!place) return [];
  const { kinds, gaps, lengths } = place.columns;
  let time = 0;
  place.spans ||= Array.from({ length: place.count }, (_, k) => {
    const at = place.at + k, from = time + gaps[at];
    time = from + lengths[at];
    return { band: data.bands[kinds[at] & 127], merged: kinds[at] > 127, from: from / 1e6, to: time / 1e6 };
  });
  return place.spans;
}

// Of spans that overlap, the one that began last is meant: a timeout within other time.
const spanAt = (spans, time) => spans.findLast(({ from, to }) => from <= time && time < to);

const spanWords = ({ band, merged, from, to }) => `${band.words} for ${duration((to - from) * 1e9)}${merged ? ", put together from times nearby" : ""}`;

// Returns seconds by kind within a range, the longest first.
function bandSums(spans, [low, high]) {
  const sums = new Map();
  for (const { band, from, to } of spans) sums.set(band, (sums.get(band) || 0) + Math.max(0, Math.min(to, high) - Math.max(from, low)));
  return [...sums].filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]);
}

function shareWords(spans, range) {
  const sums = bandSums(spans, range), all = sums.reduce((sum, [, one]) => sum + one, 0);
  return sums.filter(([, sum]) => sum >= BAND_SHARE * all).map(([{ words }, sum]) => `${words} ${Math.round((100 * sum) / all)}%`).join(", ");
}

// --- colours ---------------------------------------------------------------------------------------------------

// Returns the colour of each kind, read together, because each reading after a change computes the style of the page again.
function bandColors() {
  const probes = data.bands.map(({ style }) => element("i", { className: `band ${style}` })), place = element("span", {}, ...probes);
  document.body.append(place);
  const colors = Object.fromEntries(data.bands.map(({ kind }, i) => [kind, getComputedStyle(probes[i]).backgroundColor]));
  place.remove();
  return colors;
}

// Returns the colour of a kind, and the part of the height that it fills: from the bottom [0, 1].
function bandLook({ kind }) {
  state.bandColors ||= bandColors();
  return { color: state.bandColors[kind], part: kind === "waiting" ? [0, 0.5] : kind === "send_buffer" ? [0.5, 1] : [0, 1] };
}

// Returns the kind that takes most of each of so many equal parts of a range, null without any.
function bandCells(spans, [low, high], cells) {
  const width = (high - low) / cells, best = new Array(cells).fill(null), most = new Float64Array(cells);
  for (const { band, from, to } of spans) {
    const first = Math.max(0, Math.floor((from - low) / width)), last = Math.min(cells - 1, Math.floor((to - low) / width));
    for (let i = first; i <= last; i++) {
      const part = Math.min(to, low + (i + 1) * width) - Math.max(from, low + i * width);
      if (part > most[i]) [most[i], best[i]] = [part, band];
    }
  }
  return best;
}

// Returns the colour of a kind in the lower or upper half.
function halfColor(band, upper) {
  if (!band) return "transparent";
  const look = bandLook(band), fills = upper ? look.part[1] > 0.5 : look.part[0] < 0.5;
  return fills ? look.color : "transparent";
}

// Returns a CSS gradient of the lower or upper half.
function halfGradient(cells, upper) {
  const colors = cells.map((band) => halfColor(band, upper)), stops = [];
  let begin = 0;
  colors.forEach((color, i) => {
    if (colors[i + 1] === color) return;
    stops.push(`${color} ${((100 * begin) / cells.length).toFixed(2)}% ${((100 * (i + 1)) / cells.length).toFixed(2)}%`);
    begin = i + 1;
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

// Fills an element with bands over a range. Its words are the shares, and below the pointer those of the span.
function fillBands(place, spans, range, cells) {
  const kinds = bandCells(spans, range, cells);
  place.classList.add("bands");
  place.style.background = `${halfGradient(kinds, true)} top / 100% 50% no-repeat, ${halfGradient(kinds, false)} bottom / 100% 50% no-repeat`;
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", `limited over time by ${shareWords(spans, range)}`);
  place.title = place.getAttribute("aria-label");
  place.addEventListener("pointermove", (event) => {
    const box = place.getBoundingClientRect(), span = spanAt(spans, range[0] + ((event.clientX - box.left) / box.width) * (range[1] - range[0]));
    place.title = span ? `${momentText(span.from, span.to)}: ${spanWords(span)}` : "not accounted";
  });
  return place;
}

const rangeOf = (spans) => [spans[0].from, spans.reduce((most, { to }) => Math.max(most, to), -Infinity)];

// Returns the bands of a flow for its row: those of the direction that carries more, or of the other if only it has any.
function rowBands(row) {
  const number = state.flows.number[row], main = state.flows.main[row];
  const spans = [main, 1 - main].map((direction) => limitsOf(number, direction)).find((found) => found.length);
  return spans ? fillBands(element("span"), spans, rangeOf(spans), LIST_CELLS) : "";
}

// Draws the bands of the transfers that the section of limits lists.
function drawTransferBands() {
  for (const place of document.querySelectorAll(".transfer-bands")) {
    const spans = limitsOf(Number(place.dataset.flow), Number(place.dataset.direction));
    place.hidden = !spans.length;
    if (!spans.length) continue;
    const [from, to] = rangeOf(spans);
    fillBands(place.firstElementChild, spans, [from, to], BAR_CELLS);
    place.lastElementChild.textContent = `over time, ${momentText(from, to)}`;
  }
}

// --- the lane of the flow's panels -----------------------------------------------------------------------------

function bandData(flow, direction) {
  const spans = limitsOf(flow, direction);
  if (!spans.length) return {};
  return { limits: { x: spans.map(({ from }) => from), y: spans.map(() => 0), frame: spans.map(() => null), capture: spans.map(() => 0), spans } };
}

// Returns the bands as shapes of a Plotly layout, so that a saved picture has them.
function bandShapes(used) {
  const place = used.findIndex(({ name }) => name === "limits");
  if (place < 0) return [];
  const [low, high] = state.range;
  return state.all.limits.spans.filter(({ from, to }) => to > low && from < high).map(({ band, from, to }) => {
    const { color, part: [y0, y1] } = bandLook(band);
    return { name: `limit-${band.kind}`, type: "rect", xref: "x", yref: axisKey(place), x0: Math.max(from, low), x1: Math.min(to, high), y0, y1, fillcolor: color, line: { width: 0 }, layer: "above" };
  });
}

function bandLegend(spans, range) {
  const legend = element("span", { className: "panel-legend band-legend" }), sums = bandSums(spans, range), all = sums.reduce((sum, [, one]) => sum + one, 0);
  for (const [band, sum] of sums) {
    if (sum < BAND_SHARE * all) continue;
    legend.append(element("span", {}, element("i", { className: `band ${band.style}` }), `${band.words} ${Math.round((100 * sum) / all)}%`));
  }
  return legend;
}

// Returns what the crosshair shows of the lane at a time.
function bandAt(time) {
  const span = state.all.limits && spanAt(state.all.limits.spans, time);
  return span ? { time, frame: [span.from, span.to], capture: 0, words: `limited by ${spanWords(span)}`, kind: span.band.words } : null;
}
