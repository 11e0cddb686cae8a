// @ts-check
// Packets and tables of the drawn flows in the chosen range, which come from the program that serves the page (`wiretale view`); a report has its
// packets inside. This is the first part that hears of a change, so that the others draw what it has fetched.
import { holdSpans, loadSpans } from "../flow/bands.js";
import { drawnFlows, shiftOf } from "../flow/drawn_flows.js";
import { forgetSeries } from "../flow/view.js";
import { choice, chosenFlow, hasAny, onChoice } from "../link.js";
import { eachValue, loadPackets, loadTable } from "../numbers.js";
import { forgetFrames } from "../packets/frame.js";
import { $, data } from "../plotly.js";
import { whole } from "../units.js";
import { NS, fetched, holdFetched, holdTables, tables } from "./tables.js";

const BESIDE = 0.1; // share of the range that is fetched on either side, for lines that leave it
const ROUNDED = 0.001; // seconds: flows of the list begin at whole milliseconds
/** @type {("series" | "datagrams" | "events" | "blocks")[]} */
const FETCHED = ["series", "datagrams", "events", "blocks"]; // tables
let asked = 0; // questions about packets

// Returns an answer of the program. Errors are shown, because a capture that changed needs another analysis.
/** @param {string} name @param {Record<string, number | string | null>} query */
export async function answerTo(name, query) {
  const words = Object.entries({ ...query, live: data.live }).filter(([, value]) => value !== null).map(([key, value]) => `${key}=${value}`);
  const response = await fetch(`${name}?${words.join("&")}`).catch(() => /** @type {null} */ (null));
  const answer = response ? await response.json() : { error: "wiretale view has ended: start it again" };
  $("missing").hidden = !answer.error;
  if (answer.error) $("missing").textContent = answer.error;
  return answer.error ? null : answer;
}

// Returns the range of a flow's own times, in ns. A shift can be of whole milliseconds until the first packet is known.
/** @param {number} flow */
export function fetchedRange(flow) {
  if (!choice.range) return { from: null, to: null };
  const shift = shiftOf(flow), [from, to] = choice.range.map((time) => time - shift), beside = (to - from) * BESIDE + (shift ? ROUNDED : 0);
  return { from: Math.floor((from - beside) * NS), to: Math.ceil((to + beside) * NS) };
}

// Returns the packets of a flow in the chosen range, with those that are held already; null after an error.
/** @param {number} flow */
async function fetchedFlow(flow) {
  const query = { flow, ...fetchedRange(flow) }, question = JSON.stringify(query), held = fetched.held.get(flow);
  if (held?.question === question) return held;
  const answer = await answerTo("packets", query);
  return answer && { question, packets: await loadPackets(answer), of: answer.of, bucket: answer.bucket, begin: answer.begin === null ? null : answer.begin / NS };
}

// Adds `flow` to the changes if the chosen flow has new packets, so that the other parts compute all that they draw from them.
/** @param {Set<keyof Choice>} changed */
async function packetsInView(changed) {
  if (typeof choice.flow !== "number" || !hasAny(changed, ["flow", "with", "range", "toggled"])) return;
  const ticket = ++asked, held = new Map();
  for (const flow of [choice.flow, ...drawnFlows().filter((one) => one !== choice.flow)]) {
    const own = await fetchedFlow(flow);
    if (!own || ticket !== asked) return; // a later change has asked again
    held.set(flow, own);
  }
  const { packets, of, bucket } = held.get(choice.flow);
  if ([...held].some(([flow, own]) => fetched.held.get(flow) !== own)) forgetSeries();
  if (tables.packets !== packets) changed.add("flow");
  holdTables({ packets });
  holdFetched({ of, bucket, held });
  Object.assign(document.body.dataset, { of, bucket });
}

// Returns a table with the rows of another behind its own.
/** @param {Record<string, Numbers>} table @param {Record<string, Numbers>} other */
function joined(table, other) {
  const columns = Object.entries(table).map(([name, column]) => {
    const Column = /** @type {new (length: number) => Numbers} */ (column.constructor), both = new Column(column.length + other[name].length);
    both.set(column);
    both.set(other[name], column.length);
    return [name, both];
  });
  return Object.fromEntries(columns);
}

// Adds series, events and other tables of a flow that the page does not have in full. A table has all rows of a flow, or none.
/** @param {number} flow */
async function fetchTables(flow) {
  const answer = await answerTo("tables", { flow });
  if (!answer) return;
  const added = await eachValue(answer.tables, loadTable), spans = await loadSpans(answer.spans);
  if (fetched.flows.has(flow)) return; // another change was faster
  for (const name of FETCHED) if (!tables[name].flow.includes(flow)) holdTables({ [name]: joined(/** @type {Record<string, Numbers>} */ ({ ...tables[name] }), added[name]) });
  if (!data.series_flows.includes(flow)) data.series_flows.push(flow);
  holdSpans(spans);
  Object.assign(data.wire_mss, answer.wire_mss);
  fetched.flows.add(flow);
  forgetSeries();
}

/** @param {Set<keyof Choice>} changed */
async function tablesInView(changed) {
  if (typeof choice.flow !== "number" || !hasAny(changed, ["flow", "with"])) return;
  for (const flow of new Set([chosenFlow(), ...drawnFlows()])) if (!fetched.flows.has(flow)) await fetchTables(flow);
}

// Fetches the chosen frame, which takes the place of those in the page.
/** @param {Set<keyof Choice>} changed */
async function frameInView(changed) {
  if (choice.frame === null || !changed.has("frame")) return;
  const { frame, capture } = tables.packets, row = frame.indexOf(choice.frame);
  const held = data.frames.list.find((one) => one.frame === choice.frame);
  const number = row >= 0 ? capture[row] : held ? held.capture : tables.flows.capture?.[tables.flows.rowOf(chosenFlow())] ?? 0;
  const answer = await answerTo("frame", { interface: number, frame: choice.frame, flow: typeof choice.flow === "number" ? choice.flow : null });
  if (!answer) return;
  Object.assign(data.frames, answer);
  forgetFrames(); // decoded again
}

export function fetchedNote() {
  if (fetched.bucket === 1) return "";
  return `This range has ${whole(fetched.of)} packets: figure and list have the first, last, least and greatest of each ${whole(fetched.bucket)}, and those with verdicts. Zoom in for all.`;
}

// Fetches what the page lacks of a choice, if it is served.
export function startSource() {
  if (!data.served) return;
  onChoice(packetsInView);
  onChoice(tablesInView);
  onChoice(frameInView);
}
