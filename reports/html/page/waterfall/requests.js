// @ts-check
// The requests of the waterfall, put together from exchanges and handshakes. A request has the parts of its time; the first one of a
// connection has those before it, too: the question of DNS, the handshakes of TCP and TLS.
import { NS } from "../capture/tables.js";

/** Words of the parts, in the order of the legend. @type {Record<string, string>} */
export const REQUEST_PARTS = {
  lookup: "name lookup", connecting: "connecting", tls: "TLS", client: "client", transfer: "transfer", path: "round trip", server: "server", loss: "repairing losses", waiting: "waiting, not divided",
};
const ASKED = new Set(["http", "turn", "service", "sip", "radius", "dhcp"]); // kinds that are requests of their own
const QUIET_OUTCOMES = new Set(["answered", "cut_off", "farewell"]);
const LOOKUP_NEAR = 1; // seconds between an answer of DNS and the connection that it was for

/** A time of an exchange in ns; 0 if it is not known. @param {ExchangeRow} row @param {ExchangeTime} name */
const nsOf = (row, name) => row[name] ?? 0;
/** @param {ExchangeRow} row */
const askedAt = (row) => nsOf(row, "asked") / NS;
/** @param {ExchangeRow} row */
const answeredAt = (row) => (nsOf(row, "asked") + nsOf(row, "waited")) / NS;
/** @param {ExchangeRow} row */
const stallsOf = (row) => nsOf(row, "retransmission_client") + nsOf(row, "retransmission_network") + nsOf(row, "retransmission_server");

// Returns the parts of a request's time. Half of the round trip to the server is before its time, and half after; of pauses within a
// request or response it is not known where they were.
/** @param {ExchangeRow} row @returns {RequestPart[]} */
function partsOfRow(row) {
  const begin = askedAt(row), network = nsOf(row, "network"), server = nsOf(row, "server_time");
  /** @type {RequestPart[]} */
  const parts = [];
  let time = begin - (nsOf(row, "client_network") + nsOf(row, "pause")) / NS;
  const add = (/** @type {string} */ part, /** @type {number} */ ns) => {
    if (ns > 0) parts.push({ part, from: time, to: (time += ns / NS) });
  };
  add("client", nsOf(row, "pause"));
  add("path", nsOf(row, "client_network"));
  time = begin;
  if (row.network === undefined || row.server_time === undefined) {
    add("waiting", row.waited ?? Infinity);
    return parts;
  }
  const early = Math.max(0, Math.min(stallsOf(row), nsOf(row, "waited") - nsOf(row, "request") - network - server)); // before the answer
  add("transfer", nsOf(row, "request") - nsOf(row, "request_pause"));
  add("client", nsOf(row, "request_pause"));
  add("loss", early);
  add("path", network / 2);
  add("server", server);
  add("path", network / 2);
  add("transfer", nsOf(row, "response") - nsOf(row, "response_pause"));
  add("server", nsOf(row, "response_pause"));
  add("loss", stallsOf(row) - early);
  return parts;
}

/** @param {string} part @param {ExchangeRow} row @param {number} [ns] @returns {RequestPart} */
const wholePart = (part, row, ns = row.waited) => ({ part, from: askedAt(row), to: askedAt(row) + (ns ?? Infinity) / NS });

/** @param {ExchangeRow} row */
export function isFailed({ kind, outcome = "answered", code = "" }) {
  return !QUIET_OUTCOMES.has(outcome) || ((kind === "http" || kind === "turn") && /^[45]\d\d$/.test(code));
}

// Returns what came of a request in words; "" if it was answered without a code.
/** @param {ExchangeRow} row */
export function resultOf({ outcome = "answered", code }) {
  if (outcome === "answered") return code ?? "";
  if (outcome === "error") return code ?? "error";
  return `${outcome.replaceAll("_", " ")}${code ? `: ${code}` : ""}`;
}

/** @param {ExchangeRow} row @param {RequestPart[]} parts @param {string} name @returns {PageRequest} */
function requestOf(row, parts, name) {
  const ends = parts.map(({ to }) => to).filter(Number.isFinite);
  const from = Math.min(...parts.map((one) => one.from), askedAt(row));
  return { flow: row.flow ?? null, frame: row.frame ?? null, client: row.client ?? "", label: [row.type, name].filter(Boolean).join(" "), result: resultOf(row), failed: isFailed(row), bytes: row.response_bytes ?? null, parts, from, to: Math.max(from, ...ends) };
}

// Returns the parts before the first request of a connection: of its lookups, its handshake, and TLS.
/** @param {Connection} connection @returns {RequestPart[]} */
function partsBefore({ lookups, connect, tls, secured }) {
  return [...lookups.map((row) => wholePart("lookup", row)), ...(connect ? [wholePart("connecting", connect)] : []), ...(tls ? [wholePart("tls", tls, secured)] : [])];
}

/** @param {Map<number, Connection>} connections @param {number} flow */
function connectionOf(connections, flow) {
  const held = connections.get(flow) ?? { lookups: [] };
  connections.set(flow, held);
  return held;
}

// Returns whether the answer to a question of DNS came shortly before a connection.
/** @param {ExchangeRow} row @param {ExchangeRow | undefined} connect */
const isShortlyBefore = (row, connect) => connect !== undefined && answeredAt(row) <= askedAt(connect) && askedAt(connect) - answeredAt(row) < LOOKUP_NEAR;

// Returns the connections by their flows: rows of connect and TLS, the duration of TLS, and lookups shortly before.
/** @param {ExchangeRow[]} rows */
function connectionsIn(rows) {
  /** @type {Map<number, Connection>} */
  const connections = new Map();
  for (const row of rows) {
    if (row.flow === undefined) continue;
    if (row.kind === "connect") connectionOf(connections, row.flow).connect = row;
    if (row.kind === "tls") connectionOf(connections, row.flow).tls = row;
    if (row.kind === "handshake_tls") connectionOf(connections, row.flow).secured = row.duration;
  }
  for (const row of rows) {
    const connection = row.kind === "dns" && row.within !== undefined ? connections.get(row.within) : undefined;
    if (connection && isShortlyBefore(row, connection.connect)) connection.lookups.push(row);
  }
  return connections;
}

// Returns when the handshake of TLS had ended, in which further turns are no requests.
/** @param {Connection | undefined} connection */
const secureFrom = (connection) => (connection?.tls ? askedAt(connection.tls) + (connection.secured ?? nsOf(connection.tls, "waited")) / NS : -Infinity);

// Returns a request with its connection's handshakes if it is the first one.
/** @param {ExchangeRow} row @param {Connection | undefined} connection @param {string} name */
function requestWithin(row, connection, name) {
  const before = connection && !connection.used ? partsBefore(connection) : [];
  if (connection) connection.used = true;
  return requestOf(row, [...before, ...partsOfRow(row).filter(({ to }) => !before.length || to > askedAt(row))], name);
}

/** @param {ExchangeRow} row @param {Connection | undefined} connection */
const isRequest = (row, connection) => ASKED.has(row.kind) && row.outcome !== "farewell" && askedAt(row) >= secureFrom(connection);

/** @param {ExchangeRow} row @param {Connection | undefined} connection */
const nameOfRequest = (row, connection) => row.name || connection?.tls?.name || row.server || "";

// Returns the requests of exchanges, in order of their begin.
/** @param {ExchangeRow[]} rows */
export function requestsOf(rows) {
  const connections = connectionsIn(rows), merged = new Set([...connections.values()].flatMap(({ lookups }) => lookups)), found = [];
  for (const row of [...rows].sort((a, b) => askedAt(a) - askedAt(b))) {
    const connection = connections.get(row.flow ?? -1), name = nameOfRequest(row, connection);
    if (row.kind === "dns" && !merged.has(row)) found.push(requestOf(row, [wholePart("lookup", row)], name));
    else if (row.kind === "handshake_quic") found.push(requestOf({ ...row, type: "QUIC" }, [wholePart("tls", row, row.duration)], name));
    else if (isRequest(row, connection)) found.push(requestWithin(row, connection, name));
  }
  for (const connection of connections.values()) {
    const row = connection.tls ?? connection.connect;
    if (row && !connection.used) found.push(requestOf(row, partsBefore(connection), nameOfRequest(row, connection)));
  }
  return found.sort((a, b) => a.from - b.from);
}
