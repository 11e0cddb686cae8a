// @ts-check
// Flows grouped by client, server or port. Groups are of all flows that the search finds; each opens in place.
import { tables } from "../capture/tables.js";
import { headOfTable, onlyButton, targetOf } from "../elements.js";
import { adds, chooseFlow, flowBox, turnFlow } from "../flow/overlaid.js";
import { roving } from "../keys.js";
import { choice } from "../link.js";
import { $, data } from "../plotly.js";
import { prefixed, whole } from "../units.js";
import { timeBar, timeCell, timesOf } from "./flow_times.js";
import { NO_PORT, endAddress, nameOf, problemWords, problemsOf, protocolOf } from "./flows.js";

export const GROUPS_SHOWN = 100;
const MEMBERS_SHOWN = 10; // and as many more at each click
const PROTOCOL_PLACES = 2 ** 16; // ports

/** @param {"source" | "destination"} side */
const groupAddress = (side) => (/** @type {number} */ row) => endAddress(row, side);
/** @param {number} row */
const portOf = (row) => (tables.flows.destination_port[row] === NO_PORT ? "" : tables.flows.destination_port[row]);
/** @type {Record<string, Grouping>} */
export const GROUPINGS = {
  client: { head: "client", key: (row) => tables.flows.source[row], name: groupAddress("source"), other: "server", otherKey: (row) => tables.flows.destination[row] },
  server: { head: "server", key: (row) => tables.flows.destination[row], name: groupAddress("destination"), other: "client", otherKey: (row) => tables.flows.source[row] },
  port: { head: "service", key: (row) => tables.flows.protocol_number[row] * PROTOCOL_PLACES * 2 + Number(portOf(row) === "" ? PROTOCOL_PLACES : portOf(row)), name: (row) => `${protocolOf(row)} ${portOf(row)}`.trim(), other: "server", otherKey: (row) => tables.flows.destination[row] },
};

// Returns the groups of some rows, most bytes first.
/** @param {Uint32Array} rows @param {Grouping} grouping */
function groupsOf(rows, grouping) {
  const groups = /** @type {Map<number, Group>} */ (new Map()), sums = tables.flows.problems.map((problem) => problem.sums);
  for (const row of rows) {
    const key = grouping.key(row);
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { key, first: row, rows: [], bytes: 0, problems: sums.map(() => 0), others: new Set(), times: null }));
    group.rows.push(row);
    group.bytes += tables.flows.bytes[row];
    group.others.add(grouping.otherKey(row));
    sums.forEach((sum, i) => (group.problems[i] += sum[row]));
    const times = timesOf(row);
    if (times) group.times = group.times ? group.times.map((ns, i) => ns + times[i]) : times;
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

/** @param {HTMLTableRowElement} line @param {(Node | string)[]} cells */
function groupCells(line, cells) {
  cells.forEach((content, i) => {
    const cell = line.insertCell();
    cell.append(content);
    if (i > 0 && i < 4) cell.className = "n";
  });
}

/** @param {Grouping} grouping */
function groupHead(grouping) {
  const line = document.createElement("tr");
  [grouping.head, "flows", `${grouping.other}s`, "wire bytes", "time", "problems"].forEach((text, i) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    if (i > 0 && i < 4) cell.className = "n";
    line.append(cell);
  });
  const head = document.createElement("thead");
  head.append(line);
  headOfTable($("groups")).replaceWith(head);
}

// Adds or removes the rows of a group's flows below its own row.
/** @param {HTMLTableRowElement} line @param {Group} group @param {number} most */
function openGroup(line, group, most) {
  line.dataset.open = String(most);
  line.setAttribute("aria-expanded", String(most > 0));
  while (/** @type {HTMLElement | null} */ (line.nextElementSibling)?.dataset.member) line.nextElementSibling?.remove();
  let after = line;
  /** @param {HTMLTableRowElement} made */
  const insert = (made) => {
    made.dataset.member = "yes";
    after.after(made);
    after = made;
  };
  for (const row of group.rows.slice(0, most)) insert(memberRow(row));
  if (most && group.rows.length > most) {
    const further = document.createElement("tr"), cell = further.insertCell(), button = document.createElement("button");
    cell.colSpan = 6;
    button.type = "button";
    button.className = "plain";
    button.textContent = `${whole(Math.min(MEMBERS_SHOWN, group.rows.length - most))} of ${whole(group.rows.length - most)} more`;
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      openGroup(line, group, most + MEMBERS_SHOWN);
    });
    cell.append(button);
    insert(further);
  }
}

/** @param {number} row */
function memberRow(row) {
  const line = document.createElement("tr"), number = tables.flows.number[row];
  line.dataset.flow = String(number);
  line.setAttribute("aria-selected", String(choice.flow === number));
  groupCells(line, [nameOf(row), "", "", prefixed(tables.flows.bytes[row], "B"), timeCell(row), problemsOf(row)]);
  line.cells[0].prepend(flowBox(number));
  opens(line, (event) => (adds(event) ? turnFlow(number) : chooseFlow(number)));
  return line;
}

// Calls a function with the event at a click or at Enter and Space.
/** @param {HTMLElement} line @param {(event: MouseEvent | KeyboardEvent) => unknown} act */
export function opens(line, act) {
  line.tabIndex = -1;
  line.addEventListener("mousedown", (event) => event.shiftKey && event.preventDefault()); // selects no text
  line.addEventListener("click", act);
  line.addEventListener("keydown", (event) => {
    if (event.target !== line || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    act(event);
  });
}

/** @param {Group} group @param {Grouping} grouping */
function groupRow(group, grouping) {
  const line = document.createElement("tr"), of = String(choice.group === "port" ? portOf(group.first) : grouping.name(group.first));
  line.className = "group";
  line.dataset.group = String(grouping.name(group.first));
  line.setAttribute("aria-expanded", "false");
  groupCells(line, [String(grouping.name(group.first)), whole(group.rows.length), whole(group.others.size), prefixed(group.bytes, "B"), timeBar(group.times), problemWords((i) => group.problems[i])]);
  if (of) line.cells[0].append(" ", onlyButton(`${choice.group}:${of}`, `only ${choice.group} ${of}`));
  opens(line, (event) => !targetOf(event).closest("[data-only]") && openGroup(line, group, Number(line.dataset.open || 0) ? 0 : MEMBERS_SHOWN));
  return line;
}

// Lists the groups of the flows that the search found. Returns the number of groups, and of those listed.
/** @param {Uint32Array} rows @param {string} name @param {number} most */
export function listGroups(rows, name, most) {
  const grouping = GROUPINGS[name], groups = groupsOf(rows, grouping), body = document.createElement("tbody");
  groupHead(grouping);
  for (const group of groups.slice(0, most)) body.append(groupRow(group, grouping));
  $("groups").tBodies[0].replaceWith(body);
  roving(body, "tr.group, tr[data-flow]", "vertical");
  return { all: groups.length, shown: Math.min(most, groups.length) };
}

// The bars of a list with more flows than have a known time must not pass for those of all.
export function timesText() {
  const known = data.times.count, all = data.flows.count;
  if (!known || known >= all) return "";
  return `Time is known of ${whole(known)} of ${whole(all)} flows.`;
}
