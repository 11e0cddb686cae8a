// The list of flows. Searching and sorting cover all flows; the first rows are shown.
const ROWS_SHOWN = 200;

async function loadFlows({ columns, addresses, paths, servers, words, problems }) {
  const flows = { ...(await changed(columns, unplaned)), paths, servers, words };
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
const pathOf = (row) => state.flows.paths[state.flows.path[row]];

function problemsOf(row) {
  const parts = [];
  for (const { label, unit, sums } of state.flows.problems) {
    if (sums[row]) parts.push(`${unit ? prefixed(sums[row], unit) : whole(sums[row])} ${sums[row] === 1 ? label.replace("blocks", "block") : label}`);
  }
  return parts.join(", ");
}
const problemSum = (row) => state.flows.problems.reduce((sum, { unit, sums }) => sum + (unit ? Number(sums[row] > 0) : sums[row]), 0);

function flowAt(row) {
  const f = state.flows;
  return { row, flow: f.number[row], name: nameOf(row), protocol: protocolOf(row), path: pathOf(row), packets: f.packets[row], main: f.main[row] };
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
const lasted = (row) => state.flows.lasted[row] * 1e6;
const COLUMNS = [
  { key: "flow", head: "flow", value: (row) => state.flows.number[row], text: (row) => String(state.flows.number[row]), number: true },
  { key: "protocol", head: "protocol", value: (row) => `${protocolOf(row)} ${knownWord("application", row)}`.trim() },
  { key: "name", head: "initiator → responder", value: nameOf },
  { key: "server", head: "server", value: serverOf },
  { key: "path", head: "inside", value: pathOf },
  { key: "state", head: "state", value: (row) => knownWord("state", row) },
  { key: "packets", head: "packets", value: measured("packets"), text: (row) => whole(state.flows.packets[row]), number: true },
  { key: "bytes", head: "wire bytes", value: measured("bytes"), text: (row) => prefixed(state.flows.bytes[row], "B"), number: true },
  { key: "lasted", head: "duration", value: measured("lasted"), text: (row) => duration(lasted(row)), number: true },
  { key: "throughput", head: "throughput", value: measured("throughput"), text: (row) => prefixed(state.flows.throughput[row], "bit/s"), number: true },
  { key: "rtt", head: "RTT", value: measured("rtt"), text: (row) => duration(state.flows.rtt[row]), number: true },
  { key: "problems", head: "problems", value: problemSum, text: problemsOf },
];

function makeHead() {
  const row = $("flows").tHead.insertRow();
  state.columns = COLUMNS.filter(({ key }) => (key !== "path" || data.flows.paths.length > 1) && (key !== "server" || data.flows.servers.length > 1) && (key !== "state" || Object.keys(data.flows.words.state).length));
  for (const column of state.columns) {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    cell.dataset.key = column.key;
    if (column.number) cell.className = "n";
    button.type = "button";
    button.textContent = column.head;
    button.addEventListener("click", () => sortBy(column));
    cell.append(button);
    row.append(cell);
  }
  roving(row, "button", "horizontal");
}

function sortBy(column) {
  const numeric = column.number || column.key === "problems";
  state.down = state.sort === column.key ? !state.down : numeric;
  state.sort = column.key;
  list();
}

const compare = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

// Returns all flows in the selected order, which is cached because a search needs it at each keystroke.
function ordered() {
  const name = `${state.sort} ${state.down}`;
  if (state.order?.name === name) return state.order.rows;
  const column = COLUMNS.find((c) => c.key === state.sort), sign = state.down ? -1 : 1;
  const rows = Uint32Array.from(state.flows.number.keys()), values = Array.from(rows, column.value);
  rows.sort((a, b) => sign * compare(values[a], values[b]) || a - b);
  state.order = { name, rows };
  return rows;
}

function searchText(row) {
  return `${nameOf(row)} ${protocolOf(row)} ${knownWord("application", row)} ${knownWord("state", row)} ${serverOf(row)} ${pathOf(row)} ${problemsOf(row)}`.toLowerCase();
}

function matching(words) {
  if (!words.length) return ordered();
  state.texts ||= Array.from(state.flows.number.keys(), searchText);
  return ordered().filter((row) => words.every((word) => state.texts[row].includes(word)));
}

function countText(found, shown, searched) {
  const all = data.flows.count, held = data.flows.held;
  const parts = [`${whole(searched || shown === found ? found : shown)} of ${whole(all)} ${all === 1 ? "flow" : "flows"}`];
  if (searched && shown < found) parts.push(`the first ${whole(shown)} are listed`);
  if (held < all) parts.push(`the largest ${whole(held)} are in the page, all in the flows table of -o`);
  return parts.join("; ");
}

function list(rows = ROWS_SHOWN) {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = matching(words), shown = found.subarray(0, rows);
  state.rows = rows;
  for (const cell of $("flows").tHead.rows[0].cells) {
    if (cell.dataset.key === state.sort) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  const body = document.createElement("tbody");
  for (const row of shown) body.append(flowRow(row));
  $("flows").tBodies[0].replaceWith(body);
  state.stopAtRow = roving(body, "tr", "vertical");
  state.stopAtRow(body.querySelector('[aria-selected="true"]'));
  $("more").hidden = shown.length === found.length;
  $("count").textContent = countText(found.length, shown.length, words.length > 0);
}

function flowRow(row) {
  const line = document.createElement("tr"), number = state.flows.number[row];
  line.dataset.flow = number;
  line.setAttribute("aria-selected", state.chosen === number);
  for (const column of state.columns) {
    const cell = line.insertCell();
    cell.textContent = (column.text || column.value)(row);
    if (column.number) cell.className = "n";
  }
  line.addEventListener("click", () => chooseFlow(number));
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chooseFlow(number); }
  });
  return line;
}
