// @ts-check
// The bar of where the time went, of the selected flows: from their time accounts, and within the brush from the spans of those whose
// spans the page has. Without a selection it is as Python made it (reports/html/first_screen.py).
import { tables } from "../capture/tables.js";
import { element, elementAt } from "../elements.js";
import { spansOf } from "../flow/bands.js";
import { choice, hasAny, onChoice } from "../link.js";
import { timesOf } from "../list/flow_times.js";
import { data } from "../plotly.js";
import { duration, whole } from "../units.js";
import { isSelection, selectedRows } from "./selection.js";

const NAMED = 5, NAMED_LEAST = 0.005; // parts in the legend, and the least share of each (reports/time_account.py)
const NOT_WAITING = ["idle", "unknown"];
/** @type {Node[] | null} */
let barOfAll = null; // the bar of all flows

/** @param {number} share */
const percent = (share) => (share >= 0.995 ? "100%" : share >= 0.0995 ? `${Math.round(100 * share)}%` : `${Number((100 * share).toPrecision(2))}%`);

// Returns ns by part of some rows, and of how many of them it is known.
/** @param {Uint32Array} rows */
function accountSums(rows) {
  const sums = new Map(data.times.parts.map(([part]) => [part, 0]));
  let known = 0;
  for (const row of rows) {
    const times = timesOf(row);
    if (!times) continue;
    known++;
    data.times.parts.forEach(([part], i) => sums.set(part, (sums.get(part) ?? 0) + times[i]));
  }
  return { sums, known };
}

// Returns ns by part of some rows within a range.
/** @param {Uint32Array} rows @param {Span} range */
export function spanSums(rows, [low, high]) {
  const sums = new Map(data.times.parts.map(([part]) => [part, 0]));
  let known = 0;
  for (const row of rows) {
    const spans = spansOf(tables.flows.number[row]);
    known += Number(spans.length > 0);
    for (const { band, from, to } of spans) {
      const ns = (Math.min(to, high) - Math.max(from, low)) * 1e9;
      if (ns > 0 && !NOT_WAITING.includes(band.part)) sums.set(band.part, (sums.get(band.part) ?? 0) + ns);
    }
  }
  return { sums, known };
}

// Returns the time of the selected flows by part, ns, and of how many of them it is known.
export function selectedTimes() {
  const rows = selectedRows();
  return { ...(choice.during ? spanSums(rows, choice.during) : accountSums(rows)), flows: rows.length };
}

/** @param {string} kind */
const swatch = (kind) => element("i", { className: `swatch time-${kind}` });

/** @param {Map<string, number>} sums @param {number} total */
function legend(sums, total) {
  const words = new Map(data.times.parts), ranked = [...sums].filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]);
  const named = ranked.slice(0, NAMED).filter(([, ns]) => ns >= NAMED_LEAST * total), left = total - named.reduce((sum, [, ns]) => sum + ns, 0);
  const items = named.map(([part, ns]) => {
    const name = words.get(part) ?? part, button = element("button", { type: "button", className: "plain" }, swatch(part), element("b", { textContent: `${name[0].toUpperCase()}${name.slice(1)} ${duration(ns)}` }));
    button.dataset.only = `part:${part}`;
    button.setAttribute("aria-pressed", String(choice.only.includes(`part:${part}`)));
    return element("li", {}, button, ` ${percent(ns / total)}`);
  });
  return element("ul", { className: "split-legend" }, ...items, ...(left >= NAMED_LEAST * total ? [element("li", { textContent: `other ${duration(left)}` })] : []));
}

function drawBar() {
  const place = elementAt("#time");
  if (!place) return;
  barOfAll ||= [...place.childNodes];
  if (!isSelection()) return place.replaceChildren(...barOfAll);
  const { sums, known, flows } = selectedTimes(), total = [...sums.values()].reduce((a, b) => a + b, 0);
  const bar = element("div", { className: "split" }, ...[...sums].filter(([, ns]) => ns > 0).map(([part, ns]) => {
    const piece = element("i", { className: `time-${part}` });
    piece.style.flex = String(ns / total);
    return piece;
  }));
  bar.setAttribute("aria-hidden", "true");
  const base = total ? `${duration(total)} in ${known < flows ? `${whole(known)} of ` : ""}${whole(flows)} selected ${flows === 1 ? "flow" : "flows"}` : known ? "nobody waited in this selection" : "not known of this selection";
  const head = element("div", { className: "head" }, element("h2", { id: "h-time", textContent: "Where the time went" }), " ", element("span", { className: "sub", id: "time-base", textContent: base }));
  place.replaceChildren(head, ...(total ? [bar, legend(sums, total)] : []));
}

export function startTimeBar() {
  onChoice((changed) => hasAny(changed, ["find", "only", "during"]) && drawBar());
}
