// @ts-check
// What takes the chosen flow, range and frame into other programs: display filters of tshark and Wireshark, and `wiretale cut`.
import { choice, chosenFlow } from "../link.js";
import { displayFilter } from "../list/flows.js";
import { itemsOf, mergedRows } from "../packets/listed.js";
import { $, data } from "../plotly.js";
import { NS, fetched, tables } from "./tables.js";

const RANGES_MOST = 100; // ranges of frames in a command

// Returns the first and the last ns since the epoch within a range, whose ends are as near to ns as a double can be.
/** @param {Span} range */
function nsWithin([from, to]) {
  const base = BigInt(data.base), near = (/** @type {number} */ seconds) => 0.01 + Math.abs(seconds) * NS * 2 ** -51;
  return [base + BigInt(Math.ceil(from * NS - near(from))), base + BigInt(Math.floor(to * NS + near(to)))];
}

/** @param {bigint} ns */
const epochText = (ns) => `${ns / 1000000000n}.${String(ns % 1000000000n).padStart(9, "0")}`;
/** @param {bigint} ns */
const isoText = (ns) => `${new Date(Number(ns / 1000000000n) * 1000).toISOString().slice(0, 19)}${epochText(ns).slice(-10)}`.replace(/\.?0+$/, "") + "Z";

// Returns the filter of the chosen flow and range.
function chosenFilter() {
  const flow = displayFilter(tables.flows.rowOf(chosenFlow()));
  if (!choice.range) return flow;
  const [first, last] = nsWithin(choice.range);
  return `${flow} && frame.time_epoch >= ${epochText(first)} && frame.time_epoch <= ${epochText(last)}`;
}

// Returns the ranges of frames of the chosen flow and range as in `1-10,15`, and their file; null if the page lacks some of these
// packets, if they are of several files, or if there are too many ranges.
function chosenFrames() {
  const p = tables.packets, place = p.places.get(chosenFlow()), files = new Set(), ranges = [];
  if (place === undefined || (data.served && fetched.bucket > 1)) return null;
  const all = mergedRows(p.rows(2 * place), p.rows(2 * place + 1));
  if (!data.served && all.length < tables.flows.packets[tables.flows.rowOf(chosenFlow())]) return null;
  for (const i of itemsOf(all, choice.range).items) {
    if (i < 0) continue;
    const last = ranges.at(-1), frame = p.frame[i];
    files.add(data.frames.files[p.capture[i]]);
    if (last?.[1] === frame - 1) last[1] = frame;
    else ranges.push([frame, frame]);
  }
  if (!ranges.length || ranges.length > RANGES_MOST || files.size > 1) return null;
  return { file: [...files][0], text: ranges.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(",") };
}

// Returns the command that copies the chosen flow and range. If options of the analysis gave flows other numbers than
// `wiretale cut` does, it names the frames; "" if it cannot.
function chosenCut() {
  const { command, flows } = data.cut, output = `-o flow-${choice.flow}.pcapng`;
  if (!command) return "";
  if (!flows) {
    const frames = chosenFrames();
    return frames?.file ? `wiretale cut ${frames.file} ${output} --frames ${frames.text}` : "";
  }
  const parts = [command, output, "--flow", choice.flow];
  if (choice.range) {
    const [first, last] = nsWithin(choice.range);
    if (first > 0n) parts.push("--start", isoText(first));
    parts.push("--end", isoText(last + 1n));
  }
  return parts.join(" ");
}

// Returns the command that copies the chosen frame; "" if the capture cannot be read again.
/** @param {number} capture */
export function frameCut(capture) {
  const file = data.cut.command && data.frames.files[capture];
  return file ? `wiretale cut ${file} -o frame-${choice.frame}.pcapng --frames ${choice.frame}` : "";
}

/** @param {Set<keyof Choice>} changed */
export function drawCommands(changed) {
  if (!changed.has("flow") && !changed.has("range")) return;
  const command = chosenCut();
  $("flow-filter").textContent = chosenFilter();
  $("flow-cut").hidden = !command;
  $("flow-command").textContent = command;
}
