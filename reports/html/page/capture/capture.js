// The report of captures: the flow that is selected in the list or by the link is drawn.
const state = { sort: "bytes", down: true, full: {}, all: {}, order: [], overlaid: null, range: [0, 1], extent: [0, 1] };

function noteFor(f) {
  const p = state.packets, place = p.places.get(f.flow);
  if (f.packets === 1 && (data.served || place !== undefined)) return "One packet: nothing to draw over time.";
  if (data.served) return fetchedNote();
  if (place === undefined) {
    const drawn = state.drawable ? "the figure uses the series table" : "it cannot be drawn";
    return `The page has ${whole(data.packets.count)} packets, of the flows with the most problems and the largest ones, but not of this flow: ${drawn}. A report with its packets:`;
  }
  const held = p.rows(2 * place).length + p.rows(2 * place + 1).length;
  if (data.packets.cut && held < f.packets) {
    return `The page has the first ${whole(held)} of the ${whole(f.packets)} packets of this flow; the throughput covers all. ` +
      "Use --start and --end for a report with the others.";
  }
  return state.drawable ? "" : "This flow cannot be drawn over time.";
}

function describe(f) {
  const lacking = !state.packets.places.has(f.flow);
  $("flow-view").hidden = false;
  $("h-flow").textContent = `Flow ${f.flow}: ${f.protocol} ${f.name}${f.path ? ` inside ${f.path}` : ""}${f.relation ? ` (${f.relation})` : ""}`;
  $("packet").hidden = true;
  $("note").textContent = noteFor(f);
  $("again").hidden = !lacking;
  $("again-command").textContent = lacking ? againCommand(f.row) : "";
  for (const row of document.querySelectorAll("#flows tbody tr, #groups tr[data-flow]")) row.setAttribute("aria-selected", Number(row.dataset.flow) === f.flow);
  state.stopAtRow($("flows").tBodies[0].querySelector('[aria-selected="true"]'));
}

// Draws the chosen flow: all of it, or the ranges of the choice.
async function show(changed) {
  if (!["flow", "with", "range", "vertical", "toggled", "size", "finding"].some((name) => changed.has(name))) return;
  const f = flowAt(state.flows.rowOf(choice.flow)), drawn = [choice.flow, shownDirection(f), isRelative(), ...choice.with].join();
  if (state.drawn !== drawn) takeFlow(f);
  state.drawn = drawn;
  if (changed.has("flow")) describe(f);
  state.range = choice.range || state.extent;
  $("stack").hidden = $("hints").hidden = $("view-tools").hidden = !state.drawable;
  if (state.drawable) await draw();
  document.body.dataset.flow = choice.flow;
}

// Computes the series of a flow.
function takeFlow(f) {
  const p = state.packets, place = p.places.get(f.flow), rows = place === undefined ? [[], []] : [p.rows(2 * place), p.rows(2 * place + 1)];
  const ends = {};
  state.order = merged(rows, p.time);
  state.overlaid = null;
  if (isOverlaid()) Object.assign(ends, takeOverlaid());
  else {
    state.full = flowData(f);
    if (state.order.length) ends.packets = { x: Array.from([0, state.order.length - 1], (k) => p.time[state.order[k]]) };
  }
  state.drawable = (isOverlaid() || f.packets > 1) && (Object.keys(ends).length > 0 || Object.keys(state.full).length > 0);
  state.extent = extent({ ...state.full, ...ends });
  cross.at = null;
}

async function chooseFlow(number) {
  steps.byKey = false; // the selection of a flow is a step in the history
  await choose({ flow: number, range: null, vertical: {} });
  $("chosen").scrollIntoView();
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

// A search is one step of the history, however many letters it has.
function search() {
  steps.byKey = true;
  return choose({ find: $("find").value.trim() });
}

function listen() {
  $("find").addEventListener("input", search);
  $("copy-link").addEventListener("click", (event) => copy(event.target, location.href));
  $("more").addEventListener("click", () => list(state.rows + ROWS_SHOWN));
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copy(button, button.dataset.copy));
  const copied = { "copy-flow": "flow-filter", "copy-flow-cut": "flow-command", "copy-packet": "packet-filter", "copy-again": "again-command" };
  for (const [id, text] of Object.entries(copied)) $(id).addEventListener("click", (event) => copy(event.target, $(text).textContent));
  paper(() => {
    if (data.timeline) drawTimeline();
    return state.drawable && draw();
  });
  listenToPlot();
}

async function start() {
  pageKeys();
  state.flows = await loadFlows(data.flows);
  state.times = await loadTimes(data.times);
  state.spans = await loadSpans(data.spans);
  state.turns = await loadTable(data.turns);
  makeHead();
  list();
  await startTimeline();
  startFindings();
  startGroups();
  state.baseText = new Date(Number(BigInt(data.base) / 1000000n)).toISOString().replace("T", " ").replace(".000Z", "Z");
  const [series, datagrams, events, blocks, packets] = await Promise.all([loadTable(data.series), loadTable(data.datagrams), loadTable(data.events), loadTable(data.blocks), loadPackets(data.packets), loadPlotly()]);
  Object.assign(state, { series, datagrams, events, blocks, packets });
  listen();
  onChoice(drawCommands);
  startOverlaid();
  onChoice(show);
  listenForFindings();
  listenPackets();
  drawTransferBands();
  await begin(firstAboutFlow() ? evidenceChoice(firstAboutFlow()) : { flow: state.flows.number[ordered()[0]] });
  document.body.dataset.ready = "yes";
}

start();
