// @ts-check
// The flows of the page: their columns, names and problems, and the filters and the command for one flow.
import { tables } from "../capture/tables.js";
import { eachValue, firstAtOrAfter, unplaned } from "../numbers.js";
import { data, inflate } from "../plotly.js";
import { prefixed, whole } from "../units.js";

/** @param {PackedFlows} packed */
export async function loadFlows({ columns, addresses, paths, servers, processes, relations, words, problems }) {
  const flows = { ...(await eachValue(columns, unplaned)), paths, servers, processes, relations, words };
  flows.addresses = new TextDecoder().decode(await inflate(addresses)).split("\n");
  /** @param {number} number */
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

/** @type {("source" | "destination")[]} */
const SIDES = ["source", "destination"];
/** @param {"source" | "destination"} side */
const portColumn = (side) => (side === "source" ? "source_port" : "destination_port");
export const NO_PORT = 2 ** 32 - 1; // null in a column of ports
/** @param {"protocol" | "application" | "state"} name @param {number} row */
export const knownWord = (name, row) => tables.flows.words[name][tables.flows[name][row]] || "";
/** @param {number} row */
export const protocolOf = (row) => knownWord("protocol", row) || `protocol ${tables.flows.protocol_number[row]}`;

/** @param {number} row @param {"source" | "destination"} side */
export const endAddress = (row, side) => tables.flows.addresses[tables.flows[side][row]];

/** @param {number} row @param {"source" | "destination"} side */
export function endOf(row, side) {
  const address = endAddress(row, side), port = tables.flows[portColumn(side)][row];
  if (port === NO_PORT) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** @param {number} row */
export const nameOf = (row) => `${endOf(row, "source")} → ${endOf(row, "destination")}`;
/** @param {number} row */
export const serverOf = (row) => tables.flows.servers[tables.flows.server[row]];
/** @param {number} row */
export const processOf = (row) => tables.flows.processes[tables.flows.process[row]];
/** @param {number} row */
export const relationOf = (row) => tables.flows.relations[tables.flows.relation[row]];
/** @param {number} row */
export const pathOf = (row) => tables.flows.paths[tables.flows.path[row]];

// Returns the counts of problems in words; `countOf` returns the count of the problem at a place.
/** @param {(place: number) => number} countOf */
export function problemWords(countOf) {
  /** @type {string[]} */
  const parts = [];
  tables.flows.problems.forEach(({ label, unit }, i) => {
    const count = countOf(i);
    if (count) parts.push(`${unit ? prefixed(count, unit) : whole(count)} ${count === 1 ? label.replace("blocks", "block") : label}`);
  });
  return parts.join(", ");
}

/** @param {number} row */
export const problemsOf = (row) => problemWords((i) => tables.flows.problems[i].sums[row]);
/** @param {number} row */
export const problemSum = (row) => tables.flows.problems.reduce((sum, { unit, sums }) => sum + (unit ? Number(sums[row] > 0) : sums[row]), 0);

/** @param {number} row */
export function flowAt(row) {
  const f = tables.flows;
  return { row, flow: f.number[row], name: nameOf(row), protocol: protocolOf(row), path: pathOf(row), relation: relationOf(row), packets: f.packets[row], main: f.main[row] };
}

/** @type {Record<string, string>} */
const PORT_FIELDS = { tcp: "tcp.port", udp: "udp.port", udplite: "udplite.port", sctp: "sctp.port", dccp: "dccp.port" };

// Returns the same filter as analyzer/display_filter.py.
/** @param {number} row */
export function displayFilter(row) {
  const f = tables.flows, four = f.ip_version[row] === 4, field = PORT_FIELDS[knownWord("protocol", row)];
  const parts = SIDES.map((side) => `${four ? "ip" : "ipv6"}.addr == ${f.addresses[f[side][row]]}`);
  if (field && f.source_port[row] !== NO_PORT) parts.push(...SIDES.map((side) => `${field} == ${f[portColumn(side)][row]}`));
  else if (f.protocol_number[row] !== 255) parts.push(`${four ? "ip.proto" : "ipv6.nxt"} == ${f.protocol_number[row]}`);
  return [...new Set(parts)].join(" && ");
}

// Returns a pcap filter, or "" if the flow is in a tunnel, which pcap filters do not decode. It must not have ports if there are
// fragments, because only the first fragment has them.
/** @param {number} row */
function captureFilter(row) {
  const f = tables.flows, path = pathOf(row), protocol = knownWord("protocol", row), parts = [];
  if (path && !/^(vlan \d+)( \/ vlan \d+)*$/.test(path)) return "";
  if (path) parts.push(...path.split(" / "));
  for (const side of SIDES) parts.push(`host ${f.addresses[f[side][row]]}`);
  if (["tcp", "udp", "sctp"].includes(protocol) && f.source_port[row] !== NO_PORT && !f.fragmented[row]) {
    for (const side of SIDES) parts.push(`${protocol} port ${f[portColumn(side)][row]}`);
  }
  return [...new Set(parts)].join(" and ");
}

/** @param {string} text */
const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
/** @param {number} ms */
const isoTime = (ms) => new Date(Number(BigInt(data.base) / 1000000n) + ms).toISOString();

/** @param {number} row */
export function againCommand(row) {
  const { command, filter, start, end } = data.again, f = tables.flows, own = captureFilter(row);
  const both = [filter, own].filter(Boolean);
  let [from, to] = [start, end];
  if (!own && !Number.isNaN(f.start[row])) [from, to] = [isoTime(f.start[row]), isoTime(Math.ceil(f.start[row] + f.lasted[row] * 1.0001) + 1)];
  const parts = [command];
  if (both.length) parts.push("--filter", inShell(both.length > 1 ? both.map((one) => `(${one})`).join(" and ") : both[0]));
  if (from) parts.push("--start", from);
  if (to) parts.push("--end", to);
  return [...parts, "--report", `flow-${f.number[row]}.html`].join(" ");
}
