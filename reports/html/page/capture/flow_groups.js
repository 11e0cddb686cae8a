// Flows grouped by client, server or port. Groups are of all flows that the search finds; each opens in place.
const GROUPS_SHOWN = 100;
const MEMBERS_SHOWN = 10; // and as many more at each click
const PARTS = ["server", "network", "client", "transfer"];
const PROTOCOL_PLACES = 2 ** 16; // ports

// Returns the bars of a flow: its time by part, and below it the parts over time.
const timeCell = (row) => element("span", { className: "bars" }, timeBar(timesOf(row)), rowBands(row));

const groupAddress = (side) => (row) => state.flows.addresses[state.flows[side][row]];
const portOf = (row) => (state.flows.destination_port[row] === NO_PORT ? "" : state.flows.destination_port[row]);
const GROUPINGS = {
  client: { head: "client", key: (row) => state.flows.source[row], name: groupAddress("source"), other: "server", otherKey: (row) => state.flows.destination[row] },
  server: { head: "server", key: (row) => state.flows.destination[row], name: groupAddress("destination"), other: "client", otherKey: (row) => state.flows.source[row] },
  port: { head: "service", key: (row) => state.flows.protocol_number[row] * PROTOCOL_PLACES * 2 + (portOf(row) === "" ? PROTOCOL_PLACES : portOf(row)), name: (row) => `${protocolOf(row)} ${portOf(row)}`.trim(), other: "server", otherKey: (row) => state.flows.destination[row] },
};

async function loadTimes({ count, flows, ...parts }) {
  if (!count) return { places: new Map(), columns: {} };
  const numbers = await unplaned(flows), columns = await changed(parts, unplaned);
  const places = new Map();
  numbers.forEach((number, i) => places.set(state.flows.rowOf(number), i));
  return { places, columns };
}

// Returns the time of a flow by part, ns; null if it is not known.
function timesOf(row) {
  const place = state.times.places.get(row);
  return place === undefined ? null : PARTS.map((part) => state.times.columns[part][place]);
}

// Returns a bar of the time by part, with its words; "" if no time is known.
function timeBar(times) {
  const sum = times ? times.reduce((a, b) => a + b, 0) : 0;
  if (!sum) return "";
  const bar = document.createElement("span");
  bar.className = "mini";
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", times.map((ns, i) => [ns, PARTS[i]]).filter(([ns]) => ns >= sum / 200).map(([ns, part]) => `${part} ${duration(ns)}`).join(", "));
  bar.title = bar.getAttribute("aria-label");
  times.forEach((ns, i) => {
    const part = document.createElement("i");
    part.className = `part-${PARTS[i]}`;
    part.style.flex = String(ns / sum);
    if (ns) bar.append(part);
  });
  return bar;
}

// Returns the groups of some rows, most bytes first.
function groupsOf(rows, grouping) {
  const groups = new Map(), sums = state.flows.problems.map((problem) => problem.sums);
  for (const row of rows) {
    const key = grouping.key(row);
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { key, first: row, rows: [], bytes: 0, problems: sums.map(() => 0), others: new Set(), times: null }));
    group.rows.push(row);
    group.bytes += state.flows.bytes[row];
    group.others.add(grouping.otherKey(row));
    sums.forEach((sum, i) => (group.problems[i] += sum[row]));
    const times = timesOf(row);
    if (times) group.times = group.times ? group.times.map((ns, i) => ns + times[i]) : times;
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

function groupCells(line, cells) {
  cells.forEach((content, i) => {
    const cell = line.insertCell();
    cell.append(content);
    if (i > 0 && i < 4) cell.className = "n";
  });
}

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
  $("groups").tHead.replaceWith(head);
}

// Adds or removes the rows of a group's flows below its own row.
function openGroup(line, group, most) {
  line.dataset.open = most;
  line.setAttribute("aria-expanded", most > 0);
  while (line.nextElementSibling?.dataset.member) line.nextElementSibling.remove();
  let after = line;
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

function memberRow(row) {
  const line = document.createElement("tr"), number = state.flows.number[row];
  line.dataset.flow = number;
  line.setAttribute("aria-selected", choice.flow === number);
  groupCells(line, [nameOf(row), "", "", prefixed(state.flows.bytes[row], "B"), timeCell(row), problemsOf(row)]);
  line.cells[0].prepend(flowBox(number));
  opens(line, (event) => (adds(event) ? turnFlow(number) : chooseFlow(number)));
  return line;
}

// Calls a function with the event at a click or at Enter and Space.
function opens(line, act) {
  line.tabIndex = -1;
  line.addEventListener("mousedown", (event) => event.shiftKey && event.preventDefault()); // selects no text
  line.addEventListener("click", act);
  line.addEventListener("keydown", (event) => {
    if (event.target !== line || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    act(event);
  });
}

function groupRow(group, grouping) {
  const line = document.createElement("tr");
  line.className = "group";
  line.dataset.group = grouping.name(group.first);
  line.setAttribute("aria-expanded", "false");
  groupCells(line, [grouping.name(group.first), whole(group.rows.length), whole(group.others.size), prefixed(group.bytes, "B"), timeBar(group.times), problemWords((i) => group.problems[i])]);
  opens(line, () => openGroup(line, group, Number(line.dataset.open || 0) ? 0 : MEMBERS_SHOWN));
  return line;
}

// Lists the groups of the flows that the search found. Returns the number of groups, and of those listed.
function listGroups(rows, name, most) {
  const grouping = GROUPINGS[name], groups = groupsOf(rows, grouping), body = document.createElement("tbody");
  groupHead(grouping);
  for (const group of groups.slice(0, most)) body.append(groupRow(group, grouping));
  $("groups").tBodies[0].replaceWith(body);
  roving(body, "tr.group, tr[data-flow]", "vertical");
  return { all: groups.length, shown: Math.min(most, groups.length) };
}

// The bars of a list with more flows than have a known time must not pass for those of all.
function timesText() {
  const known = data.times.count, all = data.flows.count;
  if (!known || known >= all) return "";
  return `Time: of ${whole(known)} of ${whole(all)} flows, those with requests and the largest other transfers; the bar of a group adds only theirs.`;
}

function startGroups() {
  $("times-note").textContent = timesText();
  $("times-note").hidden = !timesText();
  for (const button of document.querySelectorAll("#grouping button")) {
    button.addEventListener("click", () => choose({ group: button.dataset.group === "flow" ? null : button.dataset.group }));
  }
  roving($("grouping"), "button", "horizontal");
  $("columns").addEventListener("click", (event) => event.target.setAttribute("aria-pressed", $("flow-list").classList.toggle("wide")));
  onChoice((changed) => {
    if (!changed.has("group") && !changed.has("find")) return;
    if ($("find").value.trim() !== choice.find) $("find").value = choice.find;
    list();
  });
}
