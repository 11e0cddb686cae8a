// @ts-check
// The list of flows. Searching and sorting cover all flows; the first rows are shown.
import { tables } from "../capture/tables.js";
import { element, headOfTable } from "../elements.js";
import { adds, chooseFlow, flowBox, turnFlow } from "../flow/overlaid.js";
import { roving } from "../keys.js";
import { choice, choose, hasAny, onChoice } from "../link.js";
import { $, data } from "../plotly.js";
import { duration, prefixed, whole } from "../units.js";
import { isSelected, isSelection, rowOfNumber } from "../selection/selection.js";
import { GROUPINGS, GROUPS_SHOWN, listGroups, opens, timesText } from "./flow_groups.js";
import { timeCell, timesOf } from "./flow_times.js";
import { knownWord, nameOf, pathOf, problemSum, problemsOf, processOf, protocolOf, relationOf, serverOf } from "./flows.js";

const ROWS_SHOWN = 200;
const sorting = { key: "bytes", down: true };
/** @type {Column[]} */
let columns = []; // those that this page has
/** @type {{ name: string, rows: Uint32Array } | null} */
let inOrder = null; // all rows in the selected order
let rowsListed = 0;
/** @type {ReturnType<typeof roving>} */
let stopAtRow = () => {};

// --- the table -------------------------------------------------------------------------------------------------

/** @param {"bytes" | "packets" | "lasted" | "throughput" | "rtt"} name */
const measured = (name) => (/** @type {number} */ row) => (Number.isNaN(tables.flows[name][row]) ? -1 : tables.flows[name][row]);
/** @param {number} row */
const timeSum = (row) => (timesOf(row) || [-1]).reduce((a, b) => a + b, 0);
/** @param {number} row */
const lasted = (row) => tables.flows.lasted[row] * 1e6;
// Returns the name of a flow, in which a line may break before a port, or within an address of IPv6.
/** @param {number} row */
const nameCell = (row) => element("span", {}, ...nameOf(row).split(/(?=:)/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));

// Those marked wide are shown only if the reader wants all; those marked desk have no room on a phone.
/** @type {Column[]} */
const COLUMNS = [
  { key: "flow", head: "flow", value: (row) => tables.flows.number[row], text: (row) => String(tables.flows.number[row]), number: true },
  { key: "name", head: "initiator → responder", value: nameOf, text: (row) => nameCell(row) },
  { key: "process", head: "process", value: processOf, desk: true },
  { key: "time", head: "limited by", value: timeSum, text: (row) => timeCell(row), descending: true, bars: true },
  { key: "lasted", head: "time", value: measured("lasted"), text: (row) => duration(lasted(row)), number: true },
  { key: "throughput", head: "rate", value: measured("throughput"), text: (row) => prefixed(tables.flows.throughput[row], "bit/s"), number: true },
  { key: "rtt", head: "RTT", value: measured("rtt"), text: (row) => duration(tables.flows.rtt[row]), number: true, desk: true },
  { key: "protocol", head: "protocol", value: (row) => `${protocolOf(row)} ${knownWord("application", row)}`.trim(), wide: true },
  { key: "server", head: "name", value: serverOf, wide: true },
  { key: "path", head: "inside", value: pathOf, wide: true },
  { key: "state", head: "state", value: (row) => knownWord("state", row), wide: true },
  { key: "bytes", head: "wire bytes", value: measured("bytes"), text: (row) => prefixed(tables.flows.bytes[row], "B"), number: true, wide: true },
  { key: "packets", head: "packets", value: measured("packets"), text: (row) => whole(tables.flows.packets[row]), number: true, wide: true },
  { key: "problems", head: "problems", value: problemSum, text: problemsOf, descending: true },
  { key: "relation", head: "relation", value: relationOf, desk: true },
];

/** @param {Column} column */
const classOf = ({ number, wide, bars, desk }) => [number ? "n" : "", wide ? "wide" : "", bars ? "bars" : "", desk ? "desk" : ""].filter(Boolean).join(" ");

// Returns whether a flow of the page has something in a column.
/** @param {string} key */
function hasColumn(key) {
  const { paths, processes, relations, servers, words } = data.flows, { rtt, problems } = tables.flows;
  if (key === "time") return data.times.count > 0;
  if (key === "state") return Object.keys(words.state).length > 0;
  if (key === "rtt") return rtt.some((one) => !Number.isNaN(one));
  if (key === "problems") return problems.some(({ sums }) => sums.some((sum) => sum > 0));
  const named = { path: paths, process: processes, relation: relations, server: servers };
  return !(key in named) || named[/** @type {keyof typeof named} */ (key)].length > 1;
}

export function makeHead() {
  const row = headOfTable($("flows")).insertRow();
  columns = COLUMNS.filter(({ key }) => hasColumn(key));
  for (const column of columns) {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    cell.dataset.key = column.key;
    cell.className = classOf(column);
    button.type = "button";
    button.textContent = column.head;
    button.addEventListener("click", () => sortBy(column));
    cell.append(button);
    row.append(cell);
  }
  roving(row, "button", "horizontal");
}

/** @param {Column} column */
function sortBy(column) {
  const numeric = column.number || column.descending;
  sorting.down = sorting.key === column.key ? !sorting.down : Boolean(numeric);
  sorting.key = column.key;
  list();
}

/** @param {string | number} a @param {string | number} b */
const compare = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

// Returns all flows in the selected order, which is cached because a search needs it at each keystroke.
export function ordered() {
  const name = `${sorting.key} ${sorting.down}`;
  if (inOrder?.name === name) return inOrder.rows;
  const column = COLUMNS.find((c) => c.key === sorting.key) ?? COLUMNS[0], sign = sorting.down ? -1 : 1;
  const rows = Uint32Array.from(tables.flows.number.keys()), values = Array.from(rows, column.value);
  rows.sort((a, b) => sign * compare(values[a], values[b]) || a - b);
  inOrder = { name, rows };
  return rows;
}

// Returns the rows of the selected flows in the selected order; the flow whose number is all that was searched for is the first.
export function listedRows() {
  if (!isSelection()) return ordered();
  const first = rowOfNumber(choice.find), rows = ordered().filter(isSelected);
  if (first < 0 || !isSelected(first)) return rows;
  return Uint32Array.from([first, ...rows.filter((row) => row !== first)]);
}

/** @param {number} found @param {number} shown @param {boolean} searched */
function countText(found, shown, searched) {
  const all = data.flows.count, held = data.flows.held;
  const parts = [!searched && shown === all ? whole(all) : `${whole(searched || shown === found ? found : shown)} of ${whole(all)}`];
  if (searched && shown < found) parts.push(`the first ${whole(shown)} are listed`);
  if (held < all) parts.push(`the largest ${whole(held)} are in the page, all in the flows table of -o`);
  return parts.join("; ");
}

// Lists the flows that the search finds, or their groups.
/** @param {number} [rows] */
export function list(rows = ROWS_SHOWN) {
  const grouped = choice.group !== null && GROUPINGS[choice.group] ? choice.group : null;
  const found = listedRows();
  rowsListed = rows;
  $("flows").hidden = grouped !== null;
  $("groups").hidden = !grouped;
  $("columns").hidden = grouped !== null;
  for (const button of document.querySelectorAll("#grouping button")) button.setAttribute("aria-pressed", String(button.dataset.group === (grouped || "flow")));
  if (grouped) {
    const { all, shown } = listGroups(found, grouped, Math.max(rows, GROUPS_SHOWN));
    $("count").textContent = `${countText(found.length, found.length, isSelection())} in ${whole(all)} ${GROUPINGS[grouped].head}${all === 1 ? "" : "s"}`;
    $("more").hidden = shown === all;
    return;
  }
  listFlows(found.subarray(0, rows));
  $("more").hidden = rows >= found.length;
  $("count").textContent = countText(found.length, Math.min(rows, found.length), isSelection());
}

/** @param {Uint32Array} shown */
function listFlows(shown) {
  for (const cell of headOfTable($("flows")).rows[0].cells) {
    if (cell.dataset.key === sorting.key) cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  const body = document.createElement("tbody");
  for (const row of shown) body.append(flowRow(row));
  if (!shown.length) body.append(element("tr", {}, element("td", { colSpan: columns.length, textContent: "No flow is in this selection." })));
  $("flows").tBodies[0].replaceWith(body);
  stopAtRow = roving(body, "tr", "vertical");
  stopAtRow(body.querySelector('[aria-selected="true"]'));
}

/** @param {number} row */
function flowRow(row) {
  const line = document.createElement("tr"), number = tables.flows.number[row];
  line.dataset.flow = String(number);
  line.setAttribute("aria-selected", String(choice.flow === number));
  for (const column of columns) {
    const cell = line.insertCell();
    cell.append(column.text ? column.text(row) : String(column.value(row)));
    cell.className = classOf(column);
  }
  line.cells[0].prepend(flowBox(number));
  opens(line, (event) => (adds(event) ? turnFlow(number) : chooseFlow(number)));
  return line;
}

export function startGroups() {
  $("times-note").textContent = timesText();
  $("times-note").hidden = !timesText();
  for (const button of document.querySelectorAll("#grouping button")) {
    button.addEventListener("click", () => choose({ group: button.dataset.group === "flow" ? null : button.dataset.group }));
  }
  roving($("grouping"), "button", "horizontal");
  $("columns").addEventListener("click", ({ currentTarget }) => /** @type {Element} */ (currentTarget).setAttribute("aria-pressed", String($("flow-list").classList.toggle("wide"))));
  onChoice((changed) => {
    if (!hasAny(changed, ["group", "find", "only", "during"])) return;
    if ($("find").value.trim() !== choice.find) $("find").value = choice.find;
    list();
  });
}

export const listMore = () => list(rowsListed + ROWS_SHOWN);

// Marks the rows of the chosen flow, and makes its row the tab stop of the list.
export function markRows() {
  for (const row of document.querySelectorAll("#flows tbody tr, #groups tr[data-flow]")) row.setAttribute("aria-selected", String(Number(row.dataset.flow) === choice.flow));
  stopAtRow($("flows").tBodies[0].querySelector('[aria-selected="true"]'));
}
