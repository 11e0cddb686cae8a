// @ts-check
// The time of flows by part (connecting, client, server, network …): of those in which somebody waited.
import { tables } from "../capture/tables.js";
import { element } from "../elements.js";
import { eachValue, unplaned } from "../numbers.js";
import { data } from "../plotly.js";
import { duration } from "../units.js";

const NOTABLE = 0.1; // share of a flow's time
const account = { places: /** @type {Map<number, number>} */ (new Map()), columns: /** @type {Record<string, Numbers>} */ ({}) }; // of flows with a known time, by row

/** @param {PackedTimes} packed */
export async function loadTimes({ count, flows, columns: packed }) {
  if (!count) return;
  const numbers = await unplaned(flows), columns = await eachValue(packed, unplaned);
  numbers.forEach((number, i) => account.places.set(tables.flows.rowOf(number), i));
  account.columns = columns;
}

// Returns the time of a flow by part, ns; null if it is not known.
/** @param {number} row */
export function timesOf(row) {
  const place = account.places.get(row);
  return place === undefined ? null : data.times.parts.map(([part]) => account.columns[part][place]);
}

// Returns the names of the parts in which a flow spent a tenth of its time or more.
/** @param {number} row */
export function partsOf(row) {
  const times = timesOf(row);
  const least = times ? NOTABLE * times.reduce((a, b) => a + b, 0) : 0;
  return times ? data.times.parts.filter((_, i) => times[i] > 0 && times[i] >= least).map(([part]) => part) : [];
}

// Returns the part in which most of the time of a flow went; "" if it is not known.
/** @param {number} row */
export function limitOf(row) {
  const times = timesOf(row);
  return times ? data.times.parts[times.indexOf(Math.max(...times))][1] : "";
}

// Returns a bar of the time by part, with its words; "" if no time is known.
/** @param {number[] | null} times */
export function timeBar(times) {
  const sum = times ? times.reduce((a, b) => a + b, 0) : 0;
  if (!times || !sum) return "";
  const bar = document.createElement("span");
  bar.className = "mini";
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", times.map((ns, i) => ({ ns, words: data.times.parts[i][1] })).filter(({ ns }) => ns >= sum / 200).map(({ ns, words }) => `${words} ${duration(ns)}`).join(", "));
  bar.title = bar.getAttribute("aria-label") ?? "";
  times.forEach((ns, i) => {
    const part = document.createElement("i");
    part.className = `time-${data.times.parts[i][0]}`;
    part.style.flex = String(ns / sum);
    if (ns) bar.append(part);
  });
  return bar;
}

// Returns the time of a flow by part as a bar, and the largest part in words.
/** @param {number} row */
export const timeCell = (row) => element("span", { className: "bars" }, timeBar(timesOf(row)), limitOf(row));
