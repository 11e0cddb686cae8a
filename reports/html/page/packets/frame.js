// @ts-check
// The chosen frame: the verdict on it with its evidence, its decoded tree and its bytes, if the page has them, else wiretale's own
// fields and the command that cuts it from the capture. All texts of the capture are set as text, never as HTML.
import { frameCut } from "../capture/commands.js";
import { tables } from "../capture/tables.js";
import { copy, targetOf } from "../elements.js";
import { numberText, packetKey } from "../flow/series/payload_numbers.js";
import { flagText, sacksOf } from "../flow/series/points.js";
import { roving } from "../keys.js";
import { choice, chosenFlow } from "../link.js";
import { endOf } from "../list/flows.js";
import { KNOWN, firstAtOrAfter } from "../numbers.js";
import { $, data, inflate } from "../plotly.js";
import { duration, whole } from "../units.js";
import { PHRASES, blockOf, eventsAt, evidenceOf, kindOf, listed, placeOf, relatedText, repeatedText, repeatsOf, rowOfPacket, secondsText } from "./listed.js";

const HEX_ROW = 16;
const OPEN_LAYER = /^(Transmission Control|User Datagram|Stream Control|Datagram Congestion|Internet Control)/;
const SCANNED = 200_000; // packets that are searched for an acknowledgment
/** @type {{ asked: number, found: HeldFrame | null, places: Map<number, Frame & { number: number, from: number }> | null, trees: TreeNode[][], bytes: Uint8Array }} */
const shownFrame = { asked: 0, found: null, places: null, trees: [], bytes: new Uint8Array() };
/** @type {ReturnType<typeof roving>} */
let stopAtNode = () => {};

// --- data of the page ------------------------------------------------------------------------------------------------

export async function loadFrames() {
  if (shownFrame.places) return;
  const { list, bytes, trees } = data.frames;
  shownFrame.bytes = bytes ? new Uint8Array(await inflate(bytes)) : new Uint8Array();
  shownFrame.trees = trees ? JSON.parse(new TextDecoder().decode(await inflate(trees))) : [];
  const places = new Map();
  let at = 0;
  list.forEach((one, number) => {
    places.set(packetKey(one.capture, one.frame), { ...one, number, from: at });
    at += one.kept;
  });
  shownFrame.places = places;
}

export const forgetFrames = () => { shownFrame.places = null; };

// Returns a function to the bytes of a frame that the page holds; null of others.
export async function heldFrames() {
  await loadFrames();
  return (/** @type {number} */ capture, /** @type {number} */ frame) => {
    const held = shownFrame.places?.get(packetKey(capture, frame));
    return held ? shownFrame.bytes.subarray(held.from, held.from + held.kept) : null;
  };
}

// Returns the words of a decoded frame: a line for each layer, and for each field above the transport, because every packet has the names of
// the fields below; "" if the page does not have it decoded.
/** @param {number} capture @param {number} frame */
export function decodedWords(capture, frame) {
  /** @type {(nodes: TreeNode[]) => string} */
  const words = (nodes) => nodes.map(([label, , , below]) => `${label}\n${below ? words(below) : ""}`).join("");
  const held = shownFrame.places?.get(packetKey(capture, frame));
  const tree = held && shownFrame.trees[held.number];
  if (!tree) return "";
  const transport = tree.findLastIndex(([label]) => OPEN_LAYER.test(label));
  return tree.map((node, layer) => (transport >= 0 && layer > transport ? words([node]) : `${node[0]}\n`)).join("");
}

// Returns a frame of the page: that of the capture of the chosen packet, or the first one with this number. Its bytes are
// [from, from + kept) of `bytes`.
/** @param {number} frame @returns {HeldFrame | null} */
function heldFrame(frame) {
  const own = listed.place < 0 ? data.frames.list.map((one) => one.capture) : [tables.packets.capture[listed.place]];
  const found = own.map((capture) => shownFrame.places?.get(packetKey(capture, frame))).find(Boolean);
  return found ? { ...found, bytes: shownFrame.bytes, tree: shownFrame.trees[found.number], madeBy: data.frames.made_by, reason: data.frames.reason } : null;
}

// --- verdict ---------------------------------------------------------------------------------------------------------

// Returns the first packet of the other direction that acknowledges all of a packet, or -1.
/** @param {number} i */
function acknowledgedBy(i) {
  const p = tables.packets, end = p.sequence[i] + p.size[i], others = p.rows(p.who[i] ^ 1);
  for (let at = firstAtOrAfter(others, i), left = SCANNED; at < others.length && left; at++, left--) {
    if (p.known[others[at]] & KNOWN.ack && p.ack[others[at]] >= end) return others[at];
  }
  return -1;
}

/** @param {number} i @param {number} event */
function eventSentence(i, event) {
  const p = tables.packets, e = tables.events, kind = kindOf(event), related = e.related_frame[event], where = placeOf(event);
  const first = Number.isNaN(related) ? -1 : rowOfPacket(e.capture[event], related), parts = [];
  const name = PHRASES[kind] || kind.replaceAll("_", " ");
  parts.push(`${name[0].toUpperCase()}${name.slice(1)}.`);
  if (!Number.isNaN(related)) {
    const earlier = first < 0 ? "" : `, ${duration(Math.abs(p.time[i] - p.time[first]) * 1e9)} ${p.time[first] <= p.time[i] ? "earlier" : "later"}`;
    const text = relatedText(event);
    parts.push(`${text[0].toUpperCase()}${text.slice(1)}${earlier}.`);
  }
  if (e.spurious[event] === 1) parts.push("Spurious: the first transmission had arrived.");
  else if (kind.endsWith("retransmission") && where) parts.push(`Lost ${where} of the capture point.`);
  else if (where) parts.push(where === "capture" ? "In the capture alone." : `${where[0].toUpperCase()}${where.slice(1)} of the capture point.`);
  if (evidenceOf(event)) parts.push(`Evidence: ${evidenceOf(event)}.`);
  if (!Number.isNaN(e.bytes[event])) parts.push(`${whole(e.bytes[event])} bytes.`);
  return parts;
}

// Returns the sentences about a packet; the first one is its verdict.
/** @param {number} i */
function frameVerdict(i) {
  const p = tables.packets, found = eventsAt(i).map((event) => eventSentence(i, event));
  const repeats = repeatsOf(i).map((event) => {
    const text = repeatedText(event);
    return [`${text[0].toUpperCase()}${text.slice(1)}, ${duration((tables.events.time_ns[event] / 1e3 - p.time[i]) * 1e9)} later.`];
  });
  const parts = [...found, ...repeats].flat();
  if (parts.length && p.size[i] && p.known[i] & KNOWN.sequence) {
    const by = acknowledgedBy(i);
    if (by >= 0) parts.push(`Frame ${p.frame[by]} acknowledges its bytes ${duration((p.time[by] - p.time[i]) * 1e9)} later.`);
  }
  return parts;
}

// --- tree and bytes --------------------------------------------------------------------------------------------------

// Makes the items of a tree: a node is [label, first byte, bytes, nodes below it].
/** @param {TreeNode[]} nodes @param {HTMLElement} list @param {(label: string) => boolean} open */
function treeItems(nodes, list, open) {
  for (const [label, from, size, below] of nodes) {
    const item = document.createElement("li"), text = document.createElement("span");
    item.setAttribute("role", "treeitem");
    item.tabIndex = -1;
    item.dataset.bytes = `${from} ${size}`;
    text.textContent = label;
    item.append(text);
    if (below) {
      const group = document.createElement("ul");
      group.setAttribute("role", "group");
      treeItems(below, group, () => false);
      item.append(group);
      unfold(item, open(label));
    }
    list.append(item);
  }
}

// Draws a tree, with its transport layer or else its last layer unfolded.
/** @param {TreeNode[] | undefined} tree */
function drawTree(tree) {
  $("frame-tree").hidden = !tree;
  $("frame-tree").replaceChildren();
  if (!tree) return;
  const layers = tree.map(([label]) => OPEN_LAYER.test(label)), last = layers.lastIndexOf(true);
  treeItems(tree, $("frame-tree"), (label) => label === tree.at(last)?.[0]);
  stopAtNode(null);
}

/** @param {HTMLElement} item @param {boolean} open */
function unfold(item, open) {
  const group = item.querySelector(":scope > ul");
  if (!group) return;
  group.hidden = !open;
  item.setAttribute("aria-expanded", String(open));
}

/** @param {HTMLElement} item */
function pointAt(item) {
  for (const other of $("frame-tree").querySelectorAll("[aria-selected=true]")) other.removeAttribute("aria-selected");
  item.setAttribute("aria-selected", "true");
  const [from, size] = (item.dataset.bytes ?? "").split(" ").map(Number);
  drawBytes(from, size);
}

// Draws the bytes, with some of them marked.
/** @param {number} from @param {number} size */
function drawBytes(from, size) {
  const { found } = shownFrame;
  if (!found) return;
  const own = found.bytes.subarray(found.from, found.from + found.kept), place = $("frame-bytes");
  /** @param {string[]} texts @param {number} start */
  const marked = (texts, start) => {
    /** @param {number} k */
    const inside = (k) => start + k >= from && start + k < from + size, parts = [];
    for (let k = 0; k < texts.length; ) {
      let end = k + 1;
      while (end < texts.length && inside(end) === inside(k)) end++;
      const text = texts.slice(k, end).join(""), mark = document.createElement("mark");
      mark.textContent = text;
      parts.push(inside(k) ? mark : text);
      k = end;
    }
    return parts;
  };
  place.replaceChildren();
  for (let at = 0; at < own.length; at += HEX_ROW) {
    const row = [...own.subarray(at, at + HEX_ROW)], hex = row.map((byte) => `${byte.toString(16).padStart(2, "0")} `);
    const letters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·"));
    place.append(`${at.toString(16).padStart(4, "0")}  `, ...marked(hex, at), "   ".repeat(HEX_ROW - row.length), " ", ...marked(letters, at), "\n");
  }
  const first = place.querySelector("mark")?.getBoundingClientRect(), inside = place.getBoundingClientRect();
  // Only the bytes are scrolled: a tree that moves under the pointer would lose its click.
  if (first && (first.top < inside.top || first.bottom > inside.bottom)) place.scrollTop += first.top - inside.top - inside.height / 2;
}

// Left and right fold a node, or go to the one above or below it; up and down are those of every list (keys.js).
/** @param {KeyboardEvent} event */
function treeKeys(event) {
  const item = targetOf(event).closest("[role=treeitem]"), open = item?.getAttribute("aria-expanded");
  if (!item || !["ArrowLeft", "ArrowRight", "Enter", " "].includes(event.key)) return;
  event.preventDefault();
  if (event.key === "ArrowRight" && open === "true") item.querySelector("[role=treeitem]")?.focus();
  else if (event.key === "ArrowLeft" && open !== "true") item.parentElement?.closest("[role=treeitem]")?.focus();
  else unfold(item, event.key === "ArrowRight" || (event.key !== "ArrowLeft" && open !== "true"));
}

// --- fields of wiretale ----------------------------------------------------------------------------------------------

function baseText() {
  const base = BigInt(data.base), ns = ((base % 1000000000n) + 1000000000n) % 1000000000n;
  const second = new Date(Number((base - ns) / 1000000000n) * 1000).toISOString().slice(0, 19).replace("T", " ");
  return `${second}${ns ? "." : ""}${ns ? String(ns).padStart(9, "0").replace(/0+$/, "") : ""}Z`;
}


/** @param {number} i */
function frameFacts(i) {
  const p = tables.packets, known = p.known[i], row = tables.flows.rowOf(chosenFlow()), back = p.who[i] % 2;
  const ends = [endOf(row, "source"), endOf(row, "destination")], facts = [["Time", `${secondsText(p.time[i])} s since ${baseText()}`]];
  const at = firstAtOrAfter(listed.all, i);
  if (at > 0) facts.push(["Since the packet before", duration(Math.max(0, p.time[i] - p.time[listed.all[at - 1]]) * 1e9)]);
  facts.push(["From", ends[back]], ["To", ends[1 - back]], ["IP packet", `${whole(p.ip[i])} bytes`], ["Payload", `${whole(p.size[i])} bytes`]);
  if (blockOf(i) >= 0) facts.push(["Numbered", numberText(blockOf(i))]);
  if (known & KNOWN.fragment) facts.push(["Fragment at", `${whole(p.offset[i])} bytes`]);
  if (known & KNOWN.flags) facts.push(["Flags", flagText(p.flags[i]) || "none"]);
  if (known & KNOWN.sequence) facts.push(["Stream position", `${whole(p.sequence[i])} to ${whole(p.sequence[i] + p.size[i])}`]);
  if (known & KNOWN.repeated) facts.push(["Seen before", `${whole(p.size[i] - p.unique[i])} bytes`]);
  if (known & KNOWN.ack) facts.push(["Acknowledges", whole(p.ack[i])]);
  if (known & KNOWN.window) facts.push(["Receive window", `${whole(p.window[i])} bytes`]);
  if (known & KNOWN.sack) facts.push(["SACK", sacksOf(p, i).map(([from, to]) => `${whole(from)}–${whole(to)}`).join(", ")]);
  if (known & KNOWN.rtt) facts.push(["RTT sample", duration(p.rtt[i] * 1e6)]);
  return facts;
}

/** @param {number} i */
function drawFacts(i) {
  const list = $("frame-facts");
  list.replaceChildren();
  for (const [name, value] of i < 0 ? [] : frameFacts(i)) {
    const term = document.createElement("dt"), detail = document.createElement("dd");
    term.textContent = name;
    detail.textContent = value;
    list.append(term, detail);
  }
}

// --- drawing ---------------------------------------------------------------------------------------------------------

const frameFilter = () => `frame.number == ${choice.frame}`;

/** @param {HeldFrame | null} found */
function frameNote(found) {
  if (choice.frame === null) return listed.ranged.length ? "Choose a packet in the list, in the ladder or in the plot." : "";
  if (!found && listed.place < 0) return "This frame is not among the packets of the page.";
  const { list, decoded: trees, made_by: maker, reason } = data.frames, cutShort = found && found.kept < found.captured ? `; the page has the first ${whole(found.kept)}` : "";
  if (!found) return reason && !list.length ? reason : `The page has the bytes of ${whole(list.length)} frames${trees ? `, decoded by ${maker}` : ""}, but not of this one.`;
  const size = `${found.link}, ${whole(found.length)} bytes${found.captured < found.length ? `, ${whole(found.captured)} captured` : ""}${cutShort}.`;
  return found.tree ? `${size} Decoded by ${found.madeBy}.` : `${size} ${found.reason || ""}`.trim();
}

/** @param {string[]} sentences */
function drawVerdict(sentences) {
  const strong = document.createElement("b");
  strong.textContent = sentences[0] || "";
  $("frame-verdict").replaceChildren(strong, ` ${sentences.slice(1).join(" ")}`);
  $("frame-verdict").hidden = !sentences.length;
}

// Draws the head of the frame, its filter, and the command that cuts it.
/** @param {HeldFrame | null} found */
function drawHead(found) {
  const chosen = choice.frame !== null, i = listed.place, capture = found ? found.capture : i >= 0 ? tables.packets.capture[i] : 0;
  const command = chosen ? frameCut(capture) : "";
  $("h-frame").textContent = chosen ? `Frame ${choice.frame}` : "Frame";
  $("frame-file").textContent = chosen && data.files.length ? `in ${data.files[capture]}` : "";
  $("frame-filter").textContent = frameFilter();
  $("frame-select").hidden = !chosen;
  $("frame-note").textContent = frameNote(found);
  $("frame-cut").hidden = !command;
  $("frame-command").textContent = command;
}

export async function showFrame() {
  const ticket = ++shownFrame.asked, wanted = choice.frame !== null;
  if (wanted) await loadFrames();
  if (ticket !== shownFrame.asked) return; // another frame was chosen meanwhile
  const i = listed.place, found = (shownFrame.found = choice.frame !== null ? heldFrame(choice.frame) : null);
  drawHead(found);
  drawVerdict(i >= 0 ? frameVerdict(i) : []);
  $("frame-facts").hidden = i < 0 || Boolean(found?.tree);
  drawFacts(found?.tree ? -1 : i);
  drawTree(found?.tree);
  $("frame-bytes").hidden = !found;
  if (found) drawBytes(0, 0);
}

export function listenFrame() {
  const tree = $("frame-tree");
  stopAtNode = roving(tree, "[role=treeitem]", "vertical");
  tree.addEventListener("keydown", treeKeys);
  tree.addEventListener("focusin", (event) => {
    const item = targetOf(event).closest("[role=treeitem]");
    if (item) pointAt(item);
  });
  tree.addEventListener("click", (event) => {
    const item = targetOf(event).closest("[role=treeitem]");
    if (!item) return;
    unfold(item, item.getAttribute("aria-expanded") !== "true");
    item.focus({ preventScroll: true });
  });
  $("copy-frame").addEventListener("click", (event) => copy(targetOf(event), frameFilter()));
  $("copy-cut").addEventListener("click", (event) => copy(targetOf(event), $("frame-command").textContent));
}
