// @ts-check
// The report of captures: the flow that is selected in the list or by the link is drawn.
import { copy, targetOf } from "../elements.js";
import { holdSpans, loadSpans } from "../flow/bands.js";
import { startDistributions } from "../flow/distributions.js";
import { setView, taken } from "../flow/figure.js";
import { startMembers } from "../flow/members.js";
import { startOverlaid } from "../flow/overlaid.js";
import { listenToPlot } from "../flow/pointer.js";
import { draw, takeChosen } from "../flow/view.js";
import { pageKeys } from "../keys.js";
import { begin, choice, choose, chosenFlow, continueStep, hasAny, onChoice } from "../link.js";
import { list, listMore, makeHead, markRows, ordered, startGroups } from "../list/flow_list.js";
import { loadTimes } from "../list/flow_times.js";
import { againCommand, flowAt, loadFlows } from "../list/flows.js";
import { columnWords, columnsOf, loadColumns } from "../flow/series/columns.js";
import { loadPackets, loadTable } from "../numbers.js";
import { listenPackets } from "../packets/packets.js";
import { $, data, loadPlotly } from "../plotly.js";
import { paper } from "../print.js";
import { startChips } from "../selection/chips.js";
import { isSelection, loadCauses, selectedRows } from "../selection/selection.js";
import { startRangeFacts } from "../selection/range_facts.js";
import { startTimeBar } from "../selection/time_bar.js";
import { momentText, whole } from "../units.js";
import { loadRequests } from "../waterfall/waterfall.js";
import { drawCommands } from "./commands.js";
import { firstAboutFlow, startFindings } from "./findings.js";
import { keptFlow, startLive } from "./live.js";
import { listenForFindings, openingChoice } from "./show.js";
import { fetchedNote, startSource } from "./source.js";
import { holdTables, tables } from "./tables.js";
import { drawTimeline, startTimeline } from "./timeline.js";
import { loadTurns } from "./waits.js";

/** @param {Flow} f */
function noteFor(f) {
  const p = tables.packets, place = p.places.get(f.flow);
  if (f.packets === 1 && (data.served || place !== undefined)) return "One packet: nothing to draw over time.";
  if (data.served) return fetchedNote();
  if (place === undefined) {
    const own = columnsOf(f), drawn = own ? `the figure has the ${columnWords(own)}` : taken.drawable ? "the figure uses the series table" : "it cannot be drawn";
    return `The page has ${whole(data.packets.count)} packets, of the flows with the most problems and the largest ones, but not of this flow: ${drawn}. A report with its packets:`;
  }
  const held = p.rows(2 * place).length + p.rows(2 * place + 1).length;
  if (data.packets.cut && held < f.packets) {
    return `The page has the first ${whole(held)} of the ${whole(f.packets)} packets of this flow, and of all the least and greatest in columns of time. ` +
      "Use --start and --end for a report with the others.";
  }
  return taken.drawable ? "" : "This flow cannot be drawn over time.";
}

/** @param {Flow} f */
function describe(f) {
  const lacking = !tables.packets.places.has(f.flow);
  $("flow-view").hidden = isSelection() && !selectedRows().length;
  $("h-flow").textContent = `Flow ${f.flow}: ${f.protocol} ${f.name}${f.path ? ` inside ${f.path}` : ""}${f.relation ? ` (${f.relation})` : ""}`;
  $("packet").hidden = true;
  $("note").textContent = noteFor(f);
  $("again").hidden = !lacking;
  $("again-command").textContent = lacking ? againCommand(f.row) : "";
  markRows();
}

// Returns what is to be said in place of plots of a range that the flow does not reach; else "". A pause within the flow has its plots,
// because they tell what it waited for.
/** @param {Flow} f */
function emptyNote(f) {
  if (!choice.range || !taken.drawable || choice.with.length) return "";
  const [from, to] = choice.range, begin = tables.flows.start[f.row] / 1e3, end = begin + tables.flows.lasted[f.row] / 1e3;
  if (to >= taken.extent[0] && from <= taken.extent[1]) return "";
  return `Flow ${f.flow} has no packet in ${momentText(from, to)}: it lasts from ${momentText(begin, end).replace("–", " to ")}.`;
}

// Draws the chosen flow: all of it, or the ranges of the choice.
/** @param {Set<keyof Choice>} changed */
async function show(changed) {
  if (!hasAny(changed, ["flow", "with", "range", "vertical", "toggled", "size", "finding"])) return;
  const f = flowAt(tables.flows.rowOf(chosenFlow()));
  takeChosen(f);
  if (changed.has("flow")) describe(f);
  setView({ range: choice.range || taken.extent });
  const empty = emptyNote(f);
  $("empty").hidden = !empty;
  $("empty-words").textContent = empty;
  $("stack").hidden = $("hints").hidden = $("view-tools").hidden = !taken.drawable || empty !== "";
  if (taken.drawable && !empty) await draw();
  document.body.dataset.flow = String(choice.flow);
}

// --- start -----------------------------------------------------------------------------------------------------

// A search is one step of the history, however many letters it has.
function search() {
  continueStep();
  return choose({ find: $("find").value.trim() });
}

function listen() {
  $("find").addEventListener("input", search);
  $("empty-whole").addEventListener("click", () => choose({ range: null, vertical: {} }));
  $("copy-link").addEventListener("click", (event) => copy(targetOf(event), location.href));
  $("more").addEventListener("click", listMore);
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copy(button, button.dataset.copy ?? ""));
  const copied = { "copy-flow": "flow-filter", "copy-flow-cut": "flow-command", "copy-packet": "packet-filter", "copy-again": "again-command" };
  for (const [id, text] of Object.entries(copied)) $(id).addEventListener("click", (event) => copy(targetOf(event), $(text).textContent ?? ""));
  paper(() => {
    if (data.timeline) drawTimeline();
    return taken.drawable && draw();
  });
  listenToPlot();
}

async function start() {
  pageKeys();
  startSource();
  startDistributions();
  startMembers();
  holdTables({ flows: await loadFlows(data.flows) });
  await loadTimes(data.times);
  await loadCauses();
  holdSpans(await loadSpans(data.spans));
  await loadTurns();
  await loadRequests();
  makeHead();
  list();
  await startTimeline();
  startFindings();
  startGroups();
  startChips();
  startTimeBar();
  const [series, datagrams, events, blocks, packets] = await Promise.all([loadTable(data.series), loadTable(data.datagrams), loadTable(data.events), loadTable(data.blocks), loadPackets(data.packets), loadPlotly(), loadColumns(data.packets.columns)]);
  holdTables({ series, datagrams, events, blocks, packets });
  listen();
  onChoice(drawCommands);
  startOverlaid();
  onChoice(show);
  startRangeFacts();
  listenForFindings();
  listenPackets();
  const first = firstAboutFlow(), kept = keptFlow();
  await begin(kept !== null ? { flow: kept } : first ? openingChoice(first) : { flow: tables.flows.number[ordered()[0]] }, (number) => tables.flows.rowOf(number) >= 0);
  startLive();
  document.body.dataset.ready = "yes";
}

start();
