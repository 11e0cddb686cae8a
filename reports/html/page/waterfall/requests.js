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

/** @param {ExchangeRow} row */
const askedAt = (row) => (row.asked ?? 0) / NS;

// Returns the parts of a request's time. Half of the round trip to the server is before its time, and half after; of pauses within a
// request or response it is not known where they were.
/** @param {ExchangeRow} row @returns {RequestPart[]} */
function partsOfRow(row) {
  const begin = askedAt(row), lost = (row.retransmission_client ?? 0) + (row.retransmission_network ?? 0) + (row.retransmission_server ?? 0);
  /** @type {RequestPart[]} */
  const parts = [];
  let time = begin - ((row.client_network ?? 0) + (row.pause ?? 0)) / NS;
  const add = (/** @type {string} */ part, /** @type {number} */ ns) => {
    if (ns > 0) parts.push({ part, from: time, to: (time += ns / NS) });
  };
  add("client", row.pause ?? 0);
  add("path", row.client_network ?? 0);
  time = begin;
  if (row.network === undefined || row.server_time === undefined) {
    add("waiting", row.waited ?? Infinity);
    return parts;
  }
  add("transfer", (row.request ?? 0) - (row.request_pause ?? 0));
  add("client", row.request_pause ?? 0);
  const early = Math.max(0, Math.min(lost, (row.waited ?? 0) - (row.request ?? 0) - row.network - row.server_time));
  add("loss", early);
  add("path", row.network / 2);
  add("server", row.server_time);
  add("path", row.network / 2);
  add("transfer", (row.response ?? 0) - (row.response_pause ?? 0));
  add("server", row.response_pause ?? 0);
  add("loss", lost - early);
  return parts;
}

/** @param {string} part @param {ExchangeRow} row @param {number} [ns] @returns {RequestPart} */
const wholePart = (part, row, ns = row.waited) => ({ part, from: askedAt(row), to: askedAt(row) + (ns ?? Infinity) / NS });

/** @param {ExchangeRow} row */
function isFailed({ kind, outcome = "answered", code = "" }) {
  return !QUIET_OUTCOMES.has(outcome) || ((kind === "http" || kind === "turn") && /^[45]\d\d$/.test(code));
}

/** @param {ExchangeRow} row @param {RequestPart[]} parts @param {string} name @returns {PageRequest} */
function requestOf(row, parts, name) {
  const { outcome = "answered", code } = row, ends = parts.map(({ to }) => to).filter(Number.isFinite);
  const result = outcome === "answered" || outcome === "error" ? code ?? (outcome === "error" ? "error" : "") : code ? `${outcome.replaceAll("_", " ")}: ${code}` : outcome.replaceAll("_", " ");
  const from = Math.min(...parts.map((one) => one.from), askedAt(row));
  return { flow: row.flow ?? null, frame: row.frame ?? null, client: row.client ?? "", label: [row.type, name].filter(Boolean).join(" "), result, failed: isFailed(row), bytes: row.response_bytes ?? null, parts, from, to: Math.max(from, ...ends) };
}

// Returns the parts before the first request of a connection: of its lookups, its handshake, and TLS.
/** @param {Connection} connection @returns {RequestPart[]} */
function partsBefore({ lookups, connect, tls, secured }) {
  return [...lookups.map((row) => wholePart("lookup", row)), ...(connect ? [wholePart("connecting", connect)] : []), ...(tls ? [wholePart("tls", tls, secured)] : [])];
}

// Returns the connections by their flows: rows of connect and TLS, the duration of TLS, and lookups shortly before.
/** @param {ExchangeRow[]} rows */
function connectionsIn(rows) {
  /** @type {Map<number, Connection>} */
  const connections = new Map();
  const of = (/** @type {number} */ flow) => connections.get(flow) ?? connections.set(flow, { lookups: [] }).get(flow) ?? { lookups: [] };
  for (const row of rows) {
    if (row.flow === undefined) continue;
    if (row.kind === "connect") of(row.flow).connect = row;
    if (row.kind === "tls") of(row.flow).tls = row;
    if (row.kind === "handshake_tls") of(row.flow).secured = row.duration;
  }
  for (const row of rows) {
    const connect = row.kind === "dns" && row.within !== undefined ? connections.get(row.within)?.connect : undefined, answered = askedAt(row) + (row.waited ?? 0) / NS;
    if (row.within !== undefined && connect && answered <= askedAt(connect) && askedAt(connect) - answered < LOOKUP_NEAR) of(row.within).lookups.push(row);
  }
  return connections;
}

// Returns the requests of exchanges, in order of their begin.
/** @param {ExchangeRow[]} rows */
export function requestsOf(rows) {
  const connections = connectionsIn(rows), merged = new Set([...connections.values()].flatMap(({ lookups }) => lookups)), found = [];
  const secureFrom = (/** @type {Connection | undefined} */ connection) => (connection?.tls ? askedAt(connection.tls) + (connection.secured ?? connection.tls.waited ?? 0) / NS : -Infinity);
  for (const row of [...rows].sort((a, b) => askedAt(a) - askedAt(b))) {
    const connection = row.flow === undefined ? undefined : connections.get(row.flow), name = row.name || connection?.tls?.name || row.server || "";
    if (row.kind === "dns" && !merged.has(row)) found.push(requestOf(row, [wholePart("lookup", row)], name));
    if (row.kind === "handshake_quic") found.push(requestOf({ ...row, type: "QUIC" }, [wholePart("tls", row, row.duration)], name));
    if (!ASKED.has(row.kind) || row.outcome === "farewell" || askedAt(row) < secureFrom(connection)) continue;
    const before = connection && !connection.used ? partsBefore(connection) : [];
    if (connection) connection.used = true;
    found.push(requestOf(row, [...before, ...partsOfRow(row).filter(({ to }) => !before.length || to > askedAt(row))], name));
  }
  for (const connection of connections.values()) {
    const row = connection.tls ?? connection.connect;
    if (row && !connection.used) found.push(requestOf(row, partsBefore(connection), row.name || row.server || ""));
  }
  return found.sort((a, b) => a.from - b.from);
}
