// The report of captures: the flow that is selected in the list or by the link is drawn.
const state = { sort: "bytes", down: true, chosen: null, full: {}, range: [0, 1], vertical: {}, zoomed: false, visible: {} };

function noteFor(f) {
  const p = state.packets, place = p.places.get(f.flow);
  if (place === undefined) {
    const drawn = state.panels.size ? "the figure uses the series table" : "it cannot be drawn";
    return `The page has ${whole(data.packets.count)} packets, of the flows with the most problems and the largest ones, but not of this flow: ${drawn}. A report with its packets:`;
  }
  const held = p.rows(2 * place).length + p.rows(2 * place + 1).length;
  if (data.packets.cut && held < f.packets) {
    return `The page has the first ${whole(held)} of the ${whole(f.packets)} packets of this flow; the throughput covers all. ` +
      "Use --start and --end for a report with the others.";
  }
  return state.panels.size ? "" : "This flow cannot be drawn over time.";
}

function describe(f) {
  const lacking = !state.packets.places.has(f.flow);
  $("chosen").hidden = false;
  $("h-flow").textContent = `Flow ${f.flow}: ${f.protocol} ${f.name}${f.path ? ` inside ${f.path}` : ""}`;
  $("flow-filter").textContent = displayFilter(f.row);
  $("packet").hidden = true;
  $("note").textContent = noteFor(f);
  $("again").hidden = !lacking;
  $("again-command").textContent = lacking ? againCommand(f.row) : "";
  for (const row of $("flows").tBodies[0].rows) row.setAttribute("aria-selected", Number(row.dataset.flow) === f.flow);
  state.stopAtRow($("flows").tBodies[0].querySelector('[aria-selected="true"]'));
}

// Draws a flow: all of it, or the ranges of a link.
async function show(number, range = null, vertical = {}) {
  const f = flowAt(state.flows.rowOf(number));
  if (state.chosen !== number) {
    state.chosen = number;
    const full = { ...seriesData(number), ...packetData(f), ...lossData(number), ...blockData(number), ...datagramData(number) };
    state.full = Object.fromEntries(Object.entries(full).map(([key, source]) => [key, sorted(source)]));
    state.panels = panelsWith(state.full);
    describe(f);
  }
  Object.assign(state, { range: range || extent(state.full), vertical, zoomed: Boolean(range) });
  $("plot").hidden = $("hints").hidden = !state.panels.size;
  if (state.panels.size) await draw();
  if (!state.listening && state.panels.size) {
    state.listening = true;
    $("plot").on("plotly_relayout", zoomed);
    $("plot").on("plotly_restyle", legendChanged);
    $("plot").on("plotly_doubleclick", wholeView);
    $("plot").on("plotly_click", clicked);
  }
  document.body.dataset.flow = number;
}

async function chooseFlow(number) {
  await show(number);
  state.byKey = false; // the selection of a flow is a step in the history
  remember();
  $("chosen").scrollIntoView();
}

// --- the link --------------------------------------------------------------------------------------------------

// #flow=3&t=1.5-2.25&y=sequence:0-90000, in seconds since the base of the page; without t, the whole flow.
const trimmed = (value, places) => value.toFixed(places).replace(/\.?0+$/, "");
const SPAN = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/;

function link() {
  const parts = [`flow=${state.chosen}`];
  if (state.zoomed) parts.push(`t=${state.range.map((value) => trimmed(value, 9)).join("-")}`);
  for (const [panel, range] of Object.entries(state.vertical)) parts.push(`y=${panel}:${range.map((value) => trimmed(value, 6)).join("-")}`);
  return `#${parts.join("&")}`;
}

function spanIn(text) {
  const [from, to] = (text.match(SPAN) || []).slice(1).map(Number);
  return from < to ? [from, to] : null;
}

// Returns the text unchanged if it cannot be decoded: the page then names a flow that it lacks.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function linked() {
  const parts = location.hash.slice(1).split("&").map((part) => part.split("="));
  const named = (name) => parts.filter(([key, value]) => key === name && value).map(([, value]) => decoded(value));
  const vertical = named("y").map((value) => value.split(":")).filter(([panel, span]) => data.figure.panels.some(({ name }) => name === panel) && spanIn(span || ""));
  return { flow: named("flow")[0], range: spanIn(named("t")[0] || ""), vertical: Object.fromEntries(vertical.map(([panel, span]) => [panel, spanIn(span)])) };
}

const STEP = "step"; // marks history entries of this page

// Adds a step that Back undoes; consecutive steps by keys are one.
function remember() {
  if (location.hash === link()) return;
  const again = state.byKey && state.lastByKey;
  state.lastByKey = state.byKey;
  history[again ? "replaceState" : "pushState"](STEP, "", link());
}

async function follow(opening = false) {
  const { flow, range, vertical } = linked(), row = /^\d+$/.test(flow) ? state.flows.rowOf(Number(flow)) : -1;
  state.lastByKey = false;
  $("missing").hidden = row >= 0 || flow === undefined;
  if (row < 0) $("missing").textContent = `Flow ${flow} of the link is not in the page, which has ${whole(data.flows.held)} of ${whole(data.flows.count)} flows, numbered from 0.`;
  if (row >= 0) await show(Number(flow), range, vertical);
  // The browser restores the scroll position of a step; a typed link has none.
  if (flow !== undefined && (opening || history.state !== STEP)) $(row >= 0 ? "chosen" : "missing").scrollIntoView();
  if (row >= 0) history.replaceState(STEP, "");
  return row >= 0;
}

// --- start -----------------------------------------------------------------------------------------------------

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.body.dataset.copied = text;
  button.dataset.label ||= button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = button.dataset.label), 1200);
}

function listen() {
  $("find").addEventListener("input", () => list());
  $("more").addEventListener("click", () => list(state.rows + ROWS_SHOWN));
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copy(button, button.dataset.copy));
  for (const name of ["flow", "packet", "again"]) {
    const text = name === "again" ? "again-command" : `${name}-filter`;
    $(`copy-${name}`).addEventListener("click", (event) => copy(event.target, $(text).textContent));
  }
  $("plot").addEventListener("keydown", () => (state.byKey = true), true);
  addEventListener("pointerdown", () => (state.byKey = false), true);
  addEventListener("hashchange", () => follow());
  paper(() => state.panels?.size && draw());
  plotKeys([$("plot")], wholeView);
}

async function start() {
  pageKeys();
  state.flows = await loadFlows(data.flows);
  makeHead();
  list();
  state.baseText = new Date(Number(BigInt(data.base) / 1000000n)).toISOString().replace("T", " ").replace(".000Z", "Z");
  const [series, datagrams, events, blocks, packets] = await Promise.all([loadTable(data.series), loadTable(data.datagrams), loadTable(data.events), loadTable(data.blocks), loadPackets(data.packets), loadPlotly()]);
  Object.assign(state, { series, datagrams, events, blocks, packets });
  listen();
  if (!(await follow(true)) && state.flows.number.length) {
    await show(state.flows.number[ordered()[0]]);
    history.replaceState(STEP, "", link());
  }
  document.body.dataset.ready = "yes";
}

start();
