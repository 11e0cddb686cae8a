// @ts-check
// The session: the messages that the ladder of hosts draws. It is that of the chosen flow's client with those that its server asked in turn,
// or, if facets or words select flows, of these.
import { fetched, tables } from "../capture/tables.js";
import { packetKey } from "../flow/series/payload_numbers.js";
import { choice, chosenFlow, setting } from "../link.js";
import { endAddress, endOf } from "../list/flows.js";
import { isTrafficSelected, selectedRows } from "../selection/selection.js";
import { exchangesOfPage } from "../waterfall/waterfall.js";
import { eventsAt, indexEvents, packetVerdict, repeatsOf } from "./listed.js";
import { columnsOfHosts, messagesOf, messagesOfExchanges } from "./messages.js";

export const ANCHOR = "session"; // in the link: the flow whose session it is, if another one is chosen
const MESSAGES_MOST = 20_000, SILENCE_LEAST = 0.2, SILENCE_SHARE = 0.05; // seconds, of the range

/**
 * Items are places of messages, or ~place for the pause before one. `lacking` flows have neither packets nor exchanges in the page.
 * @type {{ key: unknown[], anchor: number, items: Int32Array, messages: Message[], hosts: string[], others: number, lacking: number, isCut: boolean, asked: Map<number, ExchangeRow[]>, answered: Map<number, ExchangeRow[]> }}
 */
export const session = { key: [], anchor: -1, items: new Int32Array(), messages: [], hosts: [], others: 0, lacking: 0, isCut: false, asked: new Map(), answered: new Map() };

// Returns the rows of the flows of one flow's client, and of those that its server began meanwhile.
/** @param {number} flow */
function rowsAround(flow) {
  const f = tables.flows, row = f.rowOf(flow), client = f.source[row], server = f.destination[row], end = f.start[row] + f.lasted[row];
  const isMeanwhile = (/** @type {number} */ other) => f.start[other] <= end && f.start[other] + f.lasted[other] >= f.start[row];
  return Uint32Array.from(f.number.keys()).filter((other) => f.source[other] === client || f.destination[other] === client || (f.source[other] === server && isMeanwhile(other)));
}

// Returns the rows of the session's flows. A flow that was chosen in the ladder leaves the session as it was.
function sessionRows() {
  session.anchor = chosenFlow();
  if (isTrafficSelected()) return selectedRows({ during: null });
  const anchor = setting(ANCHOR, session.anchor), rows = tables.flows.rowOf(anchor) < 0 ? new Uint32Array() : rowsAround(anchor);
  if (!rows.includes(tables.flows.rowOf(session.anchor))) return rowsAround(session.anchor);
  session.anchor = anchor;
  return rows;
}

// Returns client and server of a flow; if both have one address, the server is told by its port.
/** @param {number} flow @returns {[string, string]} */
export function hostsOfFlow(flow) {
  const row = tables.flows.rowOf(flow), client = endAddress(row, "source"), server = endAddress(row, "destination");
  return [client, client === server ? endOf(row, "destination") : server];
}

// Returns sender and receiver of a message.
/** @param {Message} message @returns {[string, string]} */
export function endsOfMessage({ flow, side }) {
  const [client, server] = hostsOfFlow(flow);
  return side ? [server, client] : [client, server];
}

// Returns the exchanges by the packet of their request, or of their answer.
/** @param {"frame" | "answered"} name */
function exchangesBy(name) {
  /** @type {Map<number, ExchangeRow[]>} */
  const found = new Map();
  for (const row of exchangesOfPage()) {
    const frame = row[name], key = packetKey(row.capture ?? 0, frame ?? -1);
    if (frame !== undefined) found.set(key, [...(found.get(key) ?? []), row]);
  }
  return found;
}

// Returns the messages of packets of some flows within a range. Packets that stand for many give none.
/** @param {Set<number>} numbers @param {Span} range */
function packetMessages(numbers, [low, high]) {
  const p = tables.packets, places = fetched.bucket > 1 ? [] : [...p.places.keys()], sides = new Uint8Array(2 * p.places.size);
  places.forEach((flow, place) => numbers.has(flow) && sides.fill(1, 2 * place, 2 * place + 2));
  const all = p.who.map((_, i) => i).filter((i) => sides[p.who[i]] === 1), keyOf = (/** @type {number} */ i) => packetKey(p.capture[i], p.frame[i]);
  indexEvents(numbers, all);
  return messagesOf(p, all.filter((i) => p.time[i] >= low && p.time[i] <= high), places, {
    isAlone: (i) => eventsAt(i).length + repeatsOf(i).length > 0 && packetVerdict(i).weight !== "quiet",
    begins: (i) => session.asked.has(keyOf(i)) || session.answered.has(keyOf(i)),
    most: MESSAGES_MOST,
  });
}

// Returns the items of messages: a pause is an item if no message lasts over it.
/** @param {Message[]} messages */
function itemsWithPauses(messages) {
  const spanned = messages.length ? messages[messages.length - 1].from - messages[0].from : 0, least = Math.max(SILENCE_LEAST, SILENCE_SHARE * spanned), items = [];
  let until = Infinity;
  for (const [place, { from, to }] of messages.entries()) {
    if (from - until >= least) items.push(~place);
    items.push(place);
    until = Math.max(until === Infinity ? to : until, to);
  }
  return Int32Array.from(items);
}

// Takes the messages of the session in the chosen range, for so many columns. Returns how many items there are.
/** @param {number} hostsMost */
export function takeSession(hostsMost) {
  const key = [chosenFlow(), choice.range, choice.only, choice.find, setting(ANCHOR, -1), tables.packets, fetched.bucket, hostsMost];
  if (key.every((one, i) => one === session.key[i])) return session.items.length;
  const numbers = new Set(Array.from(sessionRows(), (row) => tables.flows.number[row])), range = choice.range ?? [-Infinity, Infinity];
  Object.assign(session, { key, asked: exchangesBy("frame"), answered: exchangesBy("answered") });
  const { messages, isCut } = packetMessages(numbers, range), { places } = tables.packets;
  const lacking = new Set([...numbers].filter((flow) => fetched.bucket > 1 || !places.has(flow)));
  const asked = messagesOfExchanges(exchangesOfPage(), lacking), others = asked.filter(({ from }) => from >= range[0] && from <= range[1]);
  const shown = others.length ? [...messages, ...others].sort((a, b) => a.from - b.from).slice(0, MESSAGES_MOST) : messages;
  for (const { flow } of asked) lacking.delete(flow);
  Object.assign(session, { messages: shown, items: itemsWithPauses(shown), lacking: lacking.size, isCut: isCut || shown.length < messages.length + others.length });
  Object.assign(session, columnsOfHosts(shown, endsOfMessage, hostsOfFlow(session.anchor), hostsMost));
  return session.items.length;
}

// Returns the place of the chosen packet's message; -1 if it has none.
export function placeOfMessage() {
  const { frame, flow } = choice, p = tables.packets, row = frame === null ? -1 : p.frame.indexOf(frame);
  if (frame === null) return -1;
  return session.messages.findLastIndex((message) => message.flow === flow && (message.first < 0 ? message.frame === frame : row >= message.first && row <= message.row));
}
