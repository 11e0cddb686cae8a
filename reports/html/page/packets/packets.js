// @ts-check
// The packets of the chosen flow and range, with verdict and evidence of each, as a list and as a ladder.
import { fetched, tables } from "../capture/tables.js";
import { isDocked, listenDock, placeDock, revealMark, rowsInDock } from "../dock/dock.js";
import { elementAt, targetOf } from "../elements.js";
import { markPacket, placeMark } from "../flow/mark.js";
import { roving } from "../keys.js";
import { choice, choose, chosenFlow, continueStep, hasAny, onChoice } from "../link.js";
import { flagText } from "../flow/series/points.js";
import { KNOWN } from "../numbers.js";
import { $, data } from "../plotly.js";
import { paper } from "../print.js";
import { listenStream, showStream } from "../stream/stream.js";
import { whole } from "../units.js";
import { WATERFALL, drawWaterfall, listenWaterfall, placeOfRequest, requestsText, takeRequests } from "../waterfall/waterfall.js";
import { parsedFilter, passes } from "./filter.js";
import { decodedWords, listenFrame, loadFrames, showFrame } from "./frame.js";
import { HOSTS, drawHosts, listenHosts, sessionText, showHosts, takeHosts } from "./hosts.js";
import { LADDER, drawLadder, showEnds } from "./ladder.js";
import { blockOf, indexEvents, itemsOf, listed, mergedRows, packetVerdict, pauseText, rowsWithin, secondsText, setListed } from "./listed.js";
import { virtualRows } from "./rows.js";

const narrow = matchMedia("(max-width: 760px)"); // packets.css
const LISTED = { row: () => (narrow.matches ? 32 : 24), head: 28, most: () => (isDocked() ? rowsInDock(LISTED.row(), LISTED.head, narrow.matches) : 22) }; // px, px, rows
const PAGE_STEP = 25; // packets
const TABS = ["packets", "ladder", "hosts", "waterfall", "stream"];
/** @type {Record<string, ReturnType<typeof virtualRows>>} */
let rowsOfTab = {}; // what virtualRows() returned

// --- the table -----------------------------------------------------------------------------------------------------

/** @param {number} i */
const directionArrow = (i) => (tables.packets.who[i] % 2 ? "←" : "→");

/** @param {HTMLTableRowElement} row @param {string} text @param {string} [name] */
function packetCell(row, text, name) {
  const made = row.insertCell();
  made.setAttribute("role", "gridcell");
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

/** @param {number} item */
function pauseRow(item) {
  const row = document.createElement("tr"), made = packetCell(row, pauseText(item));
  row.className = "pause";
  row.setAttribute("role", "row");
  made.colSpan = narrow.matches ? 5 : 7;
  return row;
}

/** @param {number} i */
function packetRow(i) {
  const p = tables.packets, row = document.createElement("tr"), { shape, text, weight } = packetVerdict(i), tcp = p.known[i] & KNOWN.sequence;
  row.setAttribute("role", "row");
  row.dataset.frame = String(p.frame[i]);
  row.dataset.row = String(i);
  row.id = `packet-${i}`;
  row.setAttribute("aria-selected", String(i === listed.place));
  packetCell(row, String(p.frame[i]), "n frame-number");
  packetCell(row, secondsText(p.time[i]), "n");
  packetCell(row, directionArrow(i));
  packetCell(row, tcp ? (p.size[i] || p.flags[i] & 7 ? whole(p.sequence[i]) : "") : blockOf(i) < 0 ? "" : whole(tables.blocks.sequence[blockOf(i)]), "n");
  packetCell(row, p.size[i] ? whole(p.size[i]) : "", "n wide");
  packetCell(row, p.known[i] & KNOWN.ack ? whole(p.ack[i]) : "", "n wide");
  const verdict = packetCell(row, "", `v ${weight}`), mark = document.createElement("i");
  mark.textContent = shape;
  verdict.append(...(shape ? [mark, text] : [text]));
  verdict.title = text;
  return row;
}

/** @param {number} first @param {number} count */
function drawTable(first, count) {
  const body = document.createElement("tbody");
  body.setAttribute("role", "rowgroup");
  for (let at = first; at < first + count; at++) {
    const item = listed.items[at], row = item < 0 ? pauseRow(item) : packetRow(item);
    row.setAttribute("aria-rowindex", String(at + 2));
    body.append(row);
  }
  elementAt("tbody", $("packet-rows")).replaceWith(body);
  if (body.querySelector(`#packet-${listed.place}`)) $("packet-rows").setAttribute("aria-activedescendant", `packet-${listed.place}`);
  else $("packet-rows").removeAttribute("aria-activedescendant");
}

// --- the choice ----------------------------------------------------------------------------------------------------

const tabOf = () => (choice.tab !== null && TABS.includes(choice.tab) ? choice.tab : TABS[0]);

/** @param {number} count @param {number} all */
function packetCountText(count, all) {
  if (tables.packets.places.get(chosenFlow()) === undefined) return "The packets of this flow are not in the page.";
  const { wrong, tests } = parsedFilter(choice.match), ranged = choice.range ? ` of ${whole(all)} in range` : "";
  if (wrong) return wrong;
  const some = tests.length ? `${whole(count)} of ${whole(listed.ranged.length)} match` : `${whole(count)} ${count === 1 ? "packet" : "packets"}${ranged}`;
  if (data.served && fetched.bucket > 1) return `${some} stand for ${whole(fetched.of)}: a shorter range lists each`;
  if (choice.frame === null) return some;
  return `${some} · frame ${choice.frame} ${placeInList(choice.frame) < 0 ? "is not among them" : "chosen"}`;
}

// Returns what a filter is to know of a packet.
/** @param {number} i */
function typedPacket(i) {
  const p = tables.packets, known = p.known[i];
  const isKnown = { sequence: known & KNOWN.sequence, ack: known & KNOWN.ack, window: known & KNOWN.window, rtt: known & KNOWN.rtt };
  return {
    side: p.who[i] % 2,
    /** @param {string} column */
    numberOf: (column) => {
      if (column === "number") return blockOf(i) < 0 ? null : tables.blocks.sequence[blockOf(i)];
      const name = /** @type {"time" | "frame" | "size" | "ip" | keyof typeof isKnown} */ (column);
      return name in isKnown && !isKnown[/** @type {keyof typeof isKnown} */ (name)] ? null : p[name][i];
    },
    text: () => `${packetVerdict(i).text}\n${known & KNOWN.flags ? flagText(p.flags[i]) : ""}\n${decodedWords(p.capture[i], p.frame[i])}`,
  };
}

// Lists the packets of the range that the filter passes, in which pauses would be misleading.
async function fillLists() {
  const { tests, wrong } = parsedFilter(choice.match), ranged = rowsWithin(listed.all, choice.range);
  if (tests.length) await loadFrames();
  const passed = tests.length && !wrong ? ranged.filter((i) => passes(tests, typedPacket(i))) : null;
  const { items, count } = passed ? { items: Int32Array.from(passed), count: passed.length } : itemsOf(listed.all, choice.range);
  setListed({ ranged, items, count });
  if ($("match").value.trim() !== choice.match) $("match").value = choice.match;
  $("match").setAttribute("aria-invalid", String(wrong !== ""));
  $("packet-rows").setAttribute("aria-rowcount", String(items.length + 1));
}

// Returns the row of a frame among the packets listed; of several files, that of the first.
/** @param {number | null} frame */
function placeInList(frame) {
  const { items } = listed, { frame: frames } = tables.packets;
  return frame === null ? -1 : items.findIndex((item) => item >= 0 && frames[item] === frame);
}

// Returns the row of the chosen frame among the packets of the range, whether the filter passes it or not; -1 if it is none of them.
function chosenRow() {
  const { ranged } = listed, { frame: frames } = tables.packets, at = placeInList(choice.frame);
  return at >= 0 ? listed.items[at] : ranged.find((i) => frames[i] === choice.frame) ?? -1;
}

function showTabs() {
  for (const name of TABS) {
    const own = name === tabOf();
    $(`tab-${name}`).setAttribute("aria-selected", String(own));
    $(`tab-${name}`).tabIndex = own ? 0 : -1;
    $(`panel-${name}`).hidden = !own;
  }
}

// Returns how many rows the shown tab has, and the place of the chosen frame among them.
function rowsShown() {
  if (tabOf() === "hosts") return takeHosts();
  return tabOf() === "waterfall" ? { total: takeRequests(), at: placeOfRequest() } : { total: listed.items.length, at: placeInList(choice.frame) };
}

// Draws the rows of the shown tab anew, with the chosen frame in view.
function fillRows() {
  const { total, at } = rowsShown();
  if (tabOf() === "stream") return;
  if (tabOf() === "ladder") showEnds();
  if (tabOf() === "hosts") showHosts();
  rowsOfTab[tabOf()].fill(total, at);
}

// The stream is that of the packets which the filter passes.
const streamRows = () => Uint32Array.from(listed.items.filter((item) => item >= 0));

// Takes the packets of the chosen flow.
function takePackets() {
  const { packets } = tables, place = packets.places.get(chosenFlow());
  const all = place === undefined ? new Uint32Array() : mergedRows(packets.rows(2 * place), packets.rows(2 * place + 1));
  setListed({ source: packets, all });
  indexEvents(new Set([chosenFlow()]), all);
}

// Returns what is said of the shown tab; the stream is drawn before.
function tabText() {
  if (tabOf() === "waterfall") return requestsText();
  if (tabOf() === "hosts") return sessionText();
  return tabOf() === "stream" ? showStream(streamRows()) : packetCountText(listed.count, listed.all.length);
}

/** @param {Set<keyof Choice>} changed */
const concernsPackets = (changed) => hasAny(changed, ["flow", "range", "frame", "tab", "size", "match"]) || (tabOf() === "stream" && changed.has("toggled")) || (tabOf() === "hosts" && hasAny(changed, ["only", "find"]));

// Draws the list and the ladder of the chosen flow and range, with the chosen frame in view.
/** @param {Set<keyof Choice>} changed */
async function showPackets(changed) {
  if (!concernsPackets(changed)) return;
  const wasDocked = $("packets").classList.contains("docked");
  placeDock();
  $("packets").hidden = false;
  if (changed.has("flow") || listed.source !== tables.packets) takePackets();
  const other = hasAny(changed, ["flow", "range", "match", "only", "find"]);
  if (other) await fillLists();
  showTabs();
  const { total, at } = rowsShown(), rows = rowsOfTab[tabOf()];
  setListed({ place: chosenRow() });
  $(`panel-${tabOf()}`).hidden = !total;
  $("match").hidden = ["hosts", "waterfall"].includes(tabOf()) || (tabOf() === "stream" && data.served);
  if (other || hasAny(changed, ["tab", "size"]) || wasDocked !== isDocked()) fillRows();
  else rows?.show(at < 0 ? rows.first() : at);
  $("packet-count").textContent = await tabText();
  markChosen();
  await showFrame();
  if (changed.has("frame")) revealMark();
}

// Fits list or ladder to the dock, or to paper.
function refit() {
  if ($("packets").hidden) return;
  placeDock();
  fillRows();
}

// Marks the chosen packet in the plots.
function markChosen() {
  const { time, frame, capture } = tables.packets, i = listed.place;
  markPacket(i < 0 ? null : { time: time[i], frame: frame[i], capture: capture[i] });
  placeMark();
}

// Chooses the packet that is some packets further, from the chosen one or the first in view.
/** @param {number} step */
function stepPacket(step) {
  const { items } = listed, rows = rowsOfTab[tabOf()], chosen = placeInList(choice.frame);
  let at = chosen < 0 ? rows.first() : chosen, left = chosen < 0 && Number.isFinite(step) ? 0 : Math.abs(step);
  for (let next = at; left && (next += Math.sign(step)) >= 0 && next < items.length; ) {
    if (items[next] < 0) continue;
    at = next;
    left--;
  }
  while (items[at] < 0) at++; // a pause is followed by its packet
  if (items.length) choose({ frame: tables.packets.frame[items[at]] });
}

/** @type {Record<string, number>} */
const PACKET_STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: PAGE_STEP, PageUp: -PAGE_STEP, Home: -Infinity, End: Infinity };

/** @param {KeyboardEvent} event */
function packetKeys(event) {
  const step = PACKET_STEPS[event.key];
  if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  continueStep();
  stepPacket(step);
}

export function listenPackets() {
  rowsOfTab = {
    packets: virtualRows($("packet-rows"), LISTED, drawTable),
    ladder: virtualRows($("ladder-rows"), LADDER, drawLadder),
    hosts: virtualRows($("hosts-rows"), HOSTS, drawHosts),
    waterfall: virtualRows($("waterfall-rows"), WATERFALL, drawWaterfall),
  };
  for (const id of ["packet-rows", "ladder-rows"]) {
    $(id).addEventListener("keydown", packetKeys);
    $(id).addEventListener("click", (event) => {
      const row = targetOf(event).closest("[data-frame]");
      if (row) choose({ frame: Number(row.dataset.frame) });
    });
  }
  for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => choose({ tab: name === TABS[0] ? null : name }));
  roving(elementAt("#packets [role=tablist]"), "[role=tab]", "horizontal");
  narrow.addEventListener("change", fillRows);
  addEventListener("resize", refit);
  paper(refit);
  $("match").addEventListener("input", () => {
    continueStep(); // however many letters, it is one step of the history
    return choose({ match: $("match").value.trim() });
  });
  listenHosts();
  listenWaterfall();
  listenStream();
  listenFrame();
  listenDock();
  onChoice(showPackets);
}
