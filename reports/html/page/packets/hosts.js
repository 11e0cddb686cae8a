// @ts-check
// The ladder of hosts: the messages of a session as arrows between its hosts, whichever flow they are of, with what came of each request.
import { tables } from "../capture/tables.js";
import { isDocked, rowsInDock } from "../dock/dock.js";
import { element, elementAt, targetOf } from "../elements.js";
import { packetKey } from "../flow/series/payload_numbers.js";
import { flagText } from "../flow/series/points.js";
import { choice, choose, continueStep, withSetting } from "../link.js";
import { knownWord, protocolOf } from "../list/flows.js";
import { KNOWN } from "../numbers.js";
import { $ } from "../plotly.js";
import { isTrafficSelected } from "../selection/selection.js";
import { duration, prefixed, whole } from "../units.js";
import { isFailed, resultOf } from "../waterfall/requests.js";
import { drawnIn } from "./ladder.js";
import { packetVerdict, secondsText } from "./listed.js";
import { ENDING_FLAGS } from "./messages.js";
import { ANCHOR, endsOfMessage, hostsOfFlow, placeOfMessage, session, takeSession } from "./session.js";

const HOSTS_MOST = 8, HOSTS_PHONE = 4;
const MESSAGE_HIGH = 22, MESSAGE_PHONE = 36, NAME_LINE = 16, NAME_LINES = 3, NAME_LETTER = 6.6; // px; lines of names above the columns
const HOSTS_WIDE = 620, TIME_WIDE = 78, FLOW_WIDE = 44, COLUMN_EDGE = 30, COLUMN_MOST = 130, ARROW_TIP = 4; // px
const TOLD_SHARE = 0.42; // of the width, for what is told of a message
const isWide = () => $("panel-hosts").clientWidth >= HOSTS_WIDE;
const messageHeight = () => (isWide() ? MESSAGE_HIGH : MESSAGE_PHONE);
export const HOSTS = { row: messageHeight, head: 0, most: () => (isDocked() ? rowsInDock(messageHeight(), $("hosts-names").offsetHeight, false) : 20) };

// --- what is told of a message -------------------------------------------------------------------------------------

// Returns what came of a request: its answer in words, and after how long.
/** @param {ExchangeRow} row */
function answerText(row) {
  const result = resultOf(row) || (row.kind === "connect" ? "connected" : "answer");
  return row.waited === undefined ? result : `${result} ${row.outcome === "unanswered" ? "for" : "after"} ${duration(row.waited)}`;
}

/** @param {ExchangeRow} row */
const requestText = ({ kind, type, name }) => [type ?? (kind === "tls" ? "TLS" : ""), name].filter(Boolean).join(" ");
/** @param {ExchangeRow} row */
const requestAlone = (row) => (row.kind === "connect" ? "SYN" : requestText(row)); // without its packet

// Returns the words about a message, and whether it failed.
/** @param {Message} message */
function toldOf({ flow, capture, frame, first, packets, bytes, from, sent, isAlone }) {
  const key = packetKey(capture, frame), asked = session.asked.get(key) ?? [], answered = session.answered.get(key) ?? [], p = tables.packets;
  const open = asked.filter(({ answered: by }) => by === undefined), parts = [...asked.map(first < 0 ? requestAlone : requestText), ...answered.map(answerText)];
  if (first >= 0 && p.known[first] & KNOWN.flags && p.flags[first] & ENDING_FLAGS) parts.push(flagText(p.flags[first]));
  const verdict = first >= 0 && isAlone ? packetVerdict(first) : { text: "", weight: "quiet" };
  if (verdict.weight !== "quiet") parts.push(verdict.text);
  const row = tables.flows.rowOf(flow);
  if (!parts.some(Boolean) && protocolOf(row) !== "tcp") parts.push(knownWord("application", row) || protocolOf(row));
  if (bytes) parts.push(prefixed(bytes, "B"));
  if (packets > 1) parts.push(`${whole(packets)} packets${sent - from >= 1e-3 ? ` in ${duration((sent - from) * 1e9)}` : ""}`);
  else if (!bytes && !parts.some(Boolean) && first >= 0) parts.push(p.known[first] & KNOWN.ack ? "ACK" : "no payload");
  parts.push(...open.map(answerText));
  return { text: parts.filter(Boolean).join(", "), failed: verdict.weight === "alarm" || [...open, ...answered].some(isFailed) };
}

export function sessionText() {
  const { messages, hosts, others, lacking, isCut } = session, flows = new Set(messages.map(({ flow }) => flow)).size, [client] = hostsOfFlow(session.anchor);
  const ofWhom = isTrafficSelected() ? "of the selected flows" : `of ${client}`;
  if (!messages.length) return `No message ${ofWhom} ${choice.range ? "in this range" : "in the page"}`;
  const count = hosts.length + others, parts = [`${isCut ? "The first " : ""}${whole(messages.length)} ${messages.length === 1 ? "message" : "messages"} ${ofWhom}`, `${whole(count)} hosts`, `${whole(flows)} ${flows === 1 ? "flow" : "flows"}`];
  return `${parts.join(", ")}${lacking ? `; the page lacks the packets of ${whole(lacking)} more` : ""}`;
}

// --- the picture ---------------------------------------------------------------------------------------------------

// Returns the places of the columns, px, and where the words begin.
function columnPlaces() {
  const width = $("hosts-rows").clientWidth, left = TIME_WIDE + (isWide() ? FLOW_WIDE : 0) + COLUMN_EDGE, count = session.hosts.length + Number(session.others > 0);
  const right = isWide() ? width * (1 - TOLD_SHARE) - COLUMN_EDGE : width - COLUMN_EDGE, step = Math.min(COLUMN_MOST, (right - left) / Math.max(1, count - 1));
  return { width, places: Array.from({ length: count }, (_, i) => left + i * step), step, words: isWide() ? left + (count - 1) * step + COLUMN_EDGE : 4 };
}

// Shows the names above the columns, on as many lines as they need to stand beside each other.
export function showHosts() {
  const { places, step, width } = columnPlaces(), names = [...session.hosts, ...(session.others ? [`${whole(session.others)} others`] : [])];
  const longest = Math.max(0, ...names.map((name) => name.length)) * NAME_LETTER + 8, lines = Math.max(1, Math.min(NAME_LINES, names.length, Math.ceil(longest / step)));
  $("hosts-names").style.height = `${lines * NAME_LINE + 8}px`;
  $("hosts-names").replaceChildren(...names.map((name, i) => {
    const made = element("span", { textContent: name, title: name }), room = lines * step, left = Math.max(0, Math.min(places[i] - room / 2, width - room));
    Object.assign(made.style, { left: `${left}px`, width: `${room}px`, top: `${4 + (i % lines) * NAME_LINE}px`, textAlign: left < places[i] - room / 2 ? "right" : left > places[i] - room / 2 ? "left" : "center" });
    return made;
  }));
}

/** @param {Element} parent @param {number} top @param {number} from @param {number} to @param {string} name */
function drawArrow(parent, top, from, to, name) {
  const y = top + (isWide() ? MESSAGE_HIGH / 2 : 10), toward = Math.sign(to - from) || -1, tip = from === to ? from + ARROW_TIP : to;
  if (from === to) drawnIn(parent, "path", { class: name, d: `M${from} ${y - 4}h18v8H${tip}` }); // both among the others
  else drawnIn(parent, "line", { class: name, x1: from, x2: to - toward, y1: y, y2: y });
  drawnIn(parent, "path", { class: `tip ${name}`, d: `M${tip - 2 * ARROW_TIP * toward} ${y + (from === to ? 4 : 0) - ARROW_TIP}l${2 * ARROW_TIP * toward} ${ARROW_TIP}l${-2 * ARROW_TIP * toward} ${ARROW_TIP}z` });
}

/** @param {Element} parent @param {number} place @param {number} top @param {ReturnType<typeof columnPlaces>} columns */
function drawMessage(parent, place, top, { places, width, words }) {
  const message = session.messages[place], { text, failed } = toldOf(message), [sender, receiver] = endsOfMessage(message).map((host) => {
    const at = session.hosts.indexOf(host);
    return places[at < 0 ? places.length - 1 : at];
  });
  const group = drawnIn(parent, "g", { "data-message": place, class: place === placeOfMessage() ? "row chosen" : "row" });
  drawnIn(group, "rect", { x: 0, y: top, width, height: messageHeight() });
  drawnIn(group, "text", { x: 4, y: top + 15 }, secondsText(message.from));
  if (isWide()) drawnIn(group, "text", { x: TIME_WIDE + FLOW_WIDE, y: top + 15, "text-anchor": "end" }, `flow ${message.flow}`);
  drawArrow(group, top, sender, receiver, failed ? "network" : message.isAck ? "receiver" : "sender");
  const line = isWide() ? text : `flow ${message.flow}: ${text}`, room = Math.max(1, Math.floor((width - words - 4) / NAME_LETTER));
  drawnIn(group, "text", { x: words, y: top + (isWide() ? 15 : 29), class: failed ? "words failed" : "words" }, line.length > room ? `${line.slice(0, room - 1)}…` : line);
  drawnIn(group, "title", {}, `flow ${message.flow}, frame ${message.frame}: ${text}`);
}

/** @param {Element} parent @param {number} place @param {number} top @param {ReturnType<typeof columnPlaces>} columns */
function drawPause(parent, place, top, { places, words }) {
  const before = session.messages.slice(0, place).reduce((last, { to }) => Math.max(last, to), -Infinity), y = top + (isWide() ? MESSAGE_HIGH / 2 : 10);
  drawnIn(parent, "line", { class: "pause", x1: places[0], x2: places[places.length - 1], y1: y, y2: y });
  drawnIn(parent, "text", { x: words, y: top + (isWide() ? 15 : 29) }, `${duration((session.messages[place].from - before) * 1e9)} without a message`);
}

/** @param {number} first @param {number} count */
export function drawHosts(first, count) {
  const picture = elementAt("svg", $("hosts-rows")), columns = columnPlaces(), height = messageHeight() * count;
  picture.replaceChildren();
  picture.setAttribute("height", String(height));
  picture.setAttribute("aria-label", `Messages between ${session.hosts.join(", ")}`);
  const rows = drawnIn(picture, "g", {});
  for (const x of columns.places) drawnIn(picture, "line", { class: "life", x1: x, x2: x, y1: 0, y2: height });
  if (!isWide()) picture.append(rows); // whose words stand over the lines
  for (let at = 0; at < count; at++) {
    const item = session.items[first + at], top = at * messageHeight();
    if (item < 0) drawPause(rows, ~item, top, columns);
    else drawMessage(rows, item, top, columns);
  }
}

// Returns how many rows there are, and the place of the chosen packet among them.
export function takeHosts() {
  const total = takeSession(isWide() ? HOSTS_MOST : HOSTS_PHONE), place = placeOfMessage();
  return { total, at: place < 0 ? -1 : session.items.indexOf(place) };
}

// --- the mouse and keys --------------------------------------------------------------------------------------------

// Chooses the first packet of a message, and its flow; the range stays.
/** @param {number} place */
function chooseMessage(place) {
  const message = session.messages[place];
  if (message) choose({ flow: message.flow, frame: message.frame, range: choice.range, toggled: withSetting(ANCHOR, session.anchor, message.flow) });
}

/** @type {Record<string, number>} */
const MESSAGE_STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

export function listenHosts() {
  $("hosts-rows").addEventListener("click", (event) => {
    const row = targetOf(event).closest("[data-message]");
    if (row) chooseMessage(Number(row.dataset.message));
  });
  $("hosts-rows").addEventListener("keydown", (event) => {
    const step = MESSAGE_STEPS[event.key], place = placeOfMessage();
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    continueStep();
    chooseMessage(Math.max(0, Math.min(session.messages.length - 1, place < 0 ? 0 : place + step)));
  });
}
