// The list of flows. Searching and sorting cover all flows; the first rows are shown.
const ROWS_SHOWN = 200;

async function loadFlows({ columns, addresses, paths, servers, relations, words, problems }) {
  const flows = { ...(await changed(columns, unplaned)), paths, servers, relations, words };
  flows.addresses = new TextDecoder().decode(await inflate(addresses)).split("\n");
  flows.rowOf = (number) => {
    const row = firstAtOrAfter(flows.number, number);
    return flows.number[row] === number ? row : -1;
  };
  flows.problems = await Promise.all(problems.map(async ({ label, unit, flows: which, counts }) => {
    const sums = new Float64Array(flows.number.length), amounts = await unplaned(counts);
    (await unplaned(which)).forEach((number, i) => (sums[flows.rowOf(number)] = amounts[i]));
    return { label, unit, sums };
  }));
  return flows;
}

// --- a flow ----------------------------------------------------------------------------------------------------

const NO_PORT = 2 ** 32 - 1; // null in a column of ports
const knownWord = (name, row) => state.flows.words[name][state.flows[name][row]] || "";
const protocolOf = (row) => knownWord("protocol", row) || `protocol ${state.flows.protocol_number[row]}`;

function endOf(row, side) {
  const address = state.flows.addresses[state.flows[side][row]], port = state.flows[`${side}_port`][row];
  if (port === NO_PORT) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
const nameOf = (row) => `${endOf(row, "source")} → ${endOf(row, "destination")}`;
const serverOf = (row) => state.flows.servers[state.flows.server[row]];
const relationOf = (row) => state.flows.relations[state.flows.relation[row]];
const pathOf = (row) => state.flows.paths[state.flows.path[row]];

// Returns the counts of problems in words; `countOf` returns the count of the problem at a place.
function problemWords(countOf) {
  const parts = [];
  state.flows.problems.forEach(({ label, unit }, i) => {
    const count = countOf(i);
    if (count) parts.push(`${unit ? prefixed(count, unit) : whole(count)} ${count === 1 ? label.replace("blocks", "block") : label}`);
  });
  return parts.join(", ");
}
const problemsOf = (row) => problemWords((i) => state.flows.problems[i].sums[row]);
const problemSum = (row) => state.flows.problems.reduce((sum, { unit, sums }) => sum + (unit ? Number(sums[row] > 0) : sums[row]), 0);

function flowAt(row) {
  const f = state.flows;
  return { row, flow: f.number[row], name: nameOf(row), protocol: protocolOf(row), path: pathOf(row), relation: relationOf(row), packets: f.packets[row], main: f.main[row] };
}

// --- filters and the command for one flow ------------------------------------------------------------------------

const PORT_FIELDS = { tcp: "tcp.port", udp: "udp.port", udplite: "udplite.port", sctp: "sctp.port", dccp: "dccp.port" };

// Returns the same filter as analyzer/display_filter.py.
function displayFilter(row) {
  const f = state.flows, four = f.ip_version[row] === 4, field = PORT_FIELDS[knownWord("protocol", row)];
  const ends = ["source", "destination"], parts = ends.map((side) => `${four ? "ip" : "ipv6"}.addr == ${f.addresses[f[side][row]]}`);
  if (field && f.source_port[row] !== NO_PORT) parts.push(...ends.map((side) => `${field} == ${f[`${side}_port`][row]}`));
  else if (f.protocol_number[row] !== 255) parts.push(`${four ? "ip.proto" : "ipv6.nxt"} == ${f.protocol_number[row]}`);
  return [...new Set(parts)].join(" && ");
}

// Returns a pcap filter, or "" if the flow is in a tunnel, which pcap filters do not decode. It must not have ports if there are
// fragments, because only the first fragment has them.
function captureFilter(row) {
  const f = state.flows, path = pathOf(row), protocol = knownWord("protocol", row), parts = [];
  if (path && !/^(vlan \d+)( \/ vlan \d+)*$/.test(path)) return "";
  if (path) parts.push(...path.split(" / "));
  for (const side of ["source", "destination"]) parts.push(`host ${f.addresses[f[side][row]]}`);
  if (["tcp", "udp", "sctp"].includes(protocol) && f.source_port[row] !== NO_PORT && !f.fragmented[row]) {
    for (const side of ["source", "destination"]) parts.push(`${protocol} port ${f[`${side}_port`][row]}`);
  }
  return [...new Set(parts)].join(" and ");
}

const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const isoTime = (ms) => new Date(Number(BigInt(data.base) / 1000000n) + ms).toISOString();

function againCommand(row) {
  const { command, filter, start, end } = data.again, f = state.flows, own = captureFilter(row);
  const both = [filter, own].filter(Boolean);
  let [from, to] = [start, end];
  if (!own && !Number.isNaN(f.start[row])) [from, to] = [isoTime(f.start[row]), isoTime(Math.ceil(f.start[row] + f.lasted[row] * 1.0001) + 1)];
  const parts = [command];
  if (both.length) parts.push("--filter", inShell(both.length > 1 ? both.map((one) => `(${one})`).join(" and ") : both[0]));
  if (from) parts.push("--start", from);
  if (to) parts.push("--end", to);
  return [...parts, "--report", `flow-${f.number[row]}.html`].join(" ");
}

// --- the table -------------------------------------------------------------------------------------------------

const measured = (name) => (row) => (Number.isNaN(state.flows[name][row]) ? -1 : state.flows[name][row]);
const timeSum = (row) => (timesOf(row) || [-1]).reduce((a, b) => a + b, 0);
const lasted = (row) => state.flows.lasted[row] * 1e6;
// Those marked wide are shown only if the reader wants all.
const COLUMNS = [
  { key: "flow", head: "flow", value: (row) => state.flows.number[row], text: (row) => String(state.flows.number[row]), number: true },
  { key: "name", head: "initiator → responder", value: nameOf },
  { key: "bytes", head: "wire bytes", value: measured("bytes"), text: (row) => prefixed(state.flows.bytes[row], "B"), number: true },
  { key: "time", head: "time", value: timeSum, text: (row) => timeCell(row), descending: true, bars: true },
  { key: "protocol", head: "protocol", value: (row) => `${protocolOf(row)} ${knownWord("application", row)}`.trim(), wide: true },
  { key: "server", head: "server", value: serverOf, wide: true },
  { key: "path", head: "inside", value: pathOf, wide: true },
  { key: "state", head: "state", value: (row) => knownWord("state", row), wide: true },
  { key: "packets", head: "packets", value: measured("packets"), text: (row) => whole(state.flows.packets[row]), number: true, wide: true },
  { key: "lasted", head: "duration", value: measured("lasted"), text: (row) => duration(lasted(row)), number: true, wide: true },
  { key: "throughput", head: "IP throughput", value: measured("throughput"), text: (row) => prefixed(state.flows.throughput[row], "bit/s"), number: true, wide: true },
  { key: "rtt", head: "RTT", value: measured("rtt"), text: (row) => duration(state.flows.rtt[row]), number: true, wide: true },
  { key: "problems", head: "problems", value: problemSum, text: problemsOf, descending: true },
  { key: "relation", head: "relation", value: relationOf },
];

const classOf = ({ number, wide, bars }) => [number ? "n" : "", wide ? "wide" : "", bars ? "bars" : ""].filter(Boolean).join(" ");

function makeHead() {
  const row = $("flows").tHead.insertRow();
  state.columns = COLUMNS.filter(({ key }) => (key !== "path" || data.flows.paths.length > 1) && (key !== "relation" || data.flows.relations.length > 1) && (key !== "server" || data.flows.servers.length > 1) && (key !== "time" || data.times.count || state.spans.size) && (key !== "state" || Object.keys(data.flows.words.state).length));
  for (const column of state.columns) {
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

function sortBy(column) {
  const numeric = column.number || column.descending;
  state.down = state.sort === column.key ? !state.down : numeric;
  state.sort = column.key;
  list();
}

const compare = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

// Returns all flows in the selected order, which is cached because a search needs it at each keystroke.
function ordered() {
  const name = `${state.sort} ${state.down}`;
  if (state.sorted?.name === name) return state.sorted.rows;
  const column = COLUMNS.find((c) => c.key === state.sort), sign = state.down ? -1 : 1;
  const rows = Uint32Array.from(state.flows.number.keys()), values = Array.from(rows, column.value);
  rows.sort((a, b) => sign * compare(values[a], values[b]) || a - b);
  state.sorted = { name, rows };
  return rows;
}

function searchText(row) {
  return `${nameOf(row)} ${protocolOf(row)} ${knownWord("application", row)} ${knownWord("state", row)} ${serverOf(row)} ${pathOf(row)} ${problemsOf(row)}`.toLowerCase();
}

// Returns the rows with all words; a flow whose number is the only word is the first.
function matching(words) {
  if (!words.length) return ordered();
  state.texts ||= Array.from(state.flows.number.keys(), searchText);
  const row = /^#?\d+$/.test(words[0]) && words.length === 1 ? state.flows.rowOf(Number(words[0].replace("#", ""))) : -1;
  const found = ordered().filter((one) => one !== row && words.every((word) => state.texts[one].includes(word)));
  if (row < 0) return found;
  const all = new Uint32Array(found.length + 1);
  all[0] = row;
  all.set(found, 1);
  return all;
}

function countText(found, shown, searched) {
  const all = data.flows.count, held = data.flows.held;
  const parts = [`${whole(searched || shown === found ? found : shown)} of ${whole(all)} ${all === 1 ? "flow" : "flows"}`];
  if (searched && shown < found) parts.push(`the first ${whole(shown)} are listed`);
  if (held < all) parts.push(`the largest ${whole(held)} are in the page, all in the flows table of -o`);
  return parts.join("; ");
}

// Lists the flows that the search finds, or their groups.
function list(rows = ROWS_SHOWN) {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean), grouped = GROUPINGS[choice.group] ? choice.group : null;
  const found = matching(words);
  state.rows = rows;
  $("flows").hidden = grouped;
  $("groups").hidden = !grouped;
  $("columns").hidden = grouped;
  for (const button of document.querySelectorAll("#grouping button")) button.setAttribute("aria-pressed", button.dataset.group === (grouped || "flow"));
  if (grouped) {
    const { all, shown } = listGroups(found, grouped, Math.max(rows, GROUPS_SHOWN));
    $("count").textContent = `${countText(found.length, found.length, words.length > 0)} in ${whole(all)} ${GROUPINGS[grouped].head}${all === 1 ? "" : "s"}`;
    $("more").hidden = shown === all;
    return;
  }
  listFlows(found.subarray(0, rows));
  $("more").hidden = rows >= found.length;
  $("count").textContent = countText(found.length, Math.min(rows, found.length), words.length > 0);
}

function listFlows(shown) {
  for (const cell of $("flows").tHead.rows[0].cells) {
    if (cell.dataset.key === state.sort) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  const body = document.createElement("tbody");
  for (const row of shown) body.append(flowRow(row));
  $("flows").tBodies[0].replaceWith(body);
  state.stopAtRow = roving(body, "tr", "vertical");
  state.stopAtRow(body.querySelector('[aria-selected="true"]'));
}

function flowRow(row) {
  const line = document.createElement("tr"), number = state.flows.number[row];
  line.dataset.flow = number;
  line.setAttribute("aria-selected", choice.flow === number);
  for (const column of state.columns) {
    const cell = line.insertCell();
    cell.append((column.text || column.value)(row));
    cell.className = classOf(column);
  }
  line.cells[0].prepend(flowBox(number));
  opens(line, (event) => (adds(event) ? turnFlow(number) : chooseFlow(number)));
  return line;
}
