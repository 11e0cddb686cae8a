// @ts-check
// The ladder: the packets between both hosts as arrows, those of the initiator from the left. Time goes down, a row for each
// packet; a packet that was lost ends halfway.
import { tables } from "../capture/tables.js";
import { isDocked, rowsInDock } from "../dock/dock.js";
import { SVG, elementAt } from "../elements.js";
import { numberText } from "../flow/series/payload_numbers.js";
import { flagText, sacksOf } from "../flow/series/points.js";
import { chosenFlow } from "../link.js";
import { endOf } from "../list/flows.js";
import { KNOWN } from "../numbers.js";
import { $ } from "../plotly.js";
import { whole } from "../units.js";
import { PHRASES, blockOf, eventsAt, isLost, kindOf, listed, packetVerdict, pauseText, secondsText } from "./listed.js";

const LADDER_ROW = 28, LADDER_ENDS = 24; // px
export const LADDER = { row: () => LADDER_ROW, head: 0, most: () => (isDocked() ? rowsInDock(LADDER_ROW, LADDER_ENDS, false) : 20) };
const LADDER_WIDE = 620; // px from which labels are beside the lines

/** @param {Element} parent @param {string} name @param {Record<string, string | number>} attributes @param {string | number} [text] */
export function drawnIn(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = String(text);
  parent.append(made);
  return made;
}

// Returns the places of both lines.
/** @param {number} width @returns {Span} */
function ladderLines(width) {
  return width >= LADDER_WIDE ? [width * 0.4, width * 0.62] : [76, width - 12];
}

export function showEnds() {
  const row = tables.flows.rowOf(chosenFlow()), width = $("ladder-ends").clientWidth;
  $("ladder-ends").querySelectorAll(":scope > *").forEach((span, side) => {
    span.textContent = endOf(row, side ? "destination" : "source");
    const edge = side && width < LADDER_WIDE; // its middle would be too near the edge
    Object.assign(span.style, edge ? { left: "auto", right: "0", transform: "none" } : { left: `${ladderLines(width)[side]}px`, right: "auto", transform: "" });
  });
}

/** @param {number} i */
function ladderLabel(i) {
  const p = tables.packets, known = p.known[i], tcp = known & KNOWN.sequence, parts = [];
  if (known & KNOWN.flags && p.flags[i] & 7) parts.push(flagText(p.flags[i]));
  if (tcp && p.size[i]) parts.push(`${whole(p.sequence[i])} + ${whole(p.size[i])}`);
  else if (!tcp) parts.push(`${whole(p.size[i])} bytes`);
  if (blockOf(i) >= 0) parts.push(numberText(blockOf(i)));
  if (known & KNOWN.ack && !p.size[i]) parts.push(`ack ${whole(p.ack[i])}`);
  if (known & KNOWN.sack) parts.push(`SACK ${sacksOf(p, i).map(([from, to]) => `${whole(from)}–${whole(to)}`).join(", ")}`);
  const events = eventsAt(i).map((event) => PHRASES[kindOf(event)] || kindOf(event).replaceAll("_", " "));
  return [...parts, ...events, ...(isLost(i) ? ["lost"] : [])].join(", ");
}

/** @param {Element} parent @param {number} item @param {number} top @param {Span} range */
function ladderPause(parent, item, top, [left, right]) {
  const middle = (left + right) / 2;
  drawnIn(parent, "line", { class: "pause", x1: left + 12, x2: right - 12, y1: top + LADDER_ROW - 5, y2: top + LADDER_ROW - 5 });
  drawnIn(parent, "text", { x: middle, y: top + LADDER_ROW - 10, "text-anchor": "middle" }, pauseText(item));
}

/** @param {Element} parent @param {number} i @param {number} top @param {Span} lines @param {number} width */
function ladderPacket(parent, i, top, lines, width) {
  const p = tables.packets, back = p.who[i] % 2, lost = isLost(i), { weight } = packetVerdict(i);
  const group = drawnIn(parent, "g", { "data-frame": p.frame[i], class: i === listed.place ? "row chosen" : "row" });
  drawnIn(group, "rect", { x: 0, y: top, width, height: LADDER_ROW });
  drawnIn(group, "text", { x: 4, y: top + 14 }, secondsText(p.time[i]));
  const name = weight === "alarm" ? "network" : p.size[i] || !(p.known[i] & KNOWN.ack) ? "sender" : "receiver";
  const from = lines[back], whole = lines[1 - back], to = lost ? from + (whole - from) * 0.55 : whole;
  const start = top + 10, end = top + (lost ? 17 : 22);
  drawnIn(group, "line", { class: name, x1: from, y1: start, x2: to, y2: end });
  if (lost) drawnIn(group, "path", { class: name, d: `M${to - 4} ${end - 4}l8 8m0 -8l-8 8` });
  else drawnIn(group, "circle", { class: name, cx: to, cy: end, r: 2.5 });
  const wide = width >= LADDER_WIDE, label = ladderLabel(i);
  /** @type {Record<string, string | number>} */
  const at = wide ? (back ? { x: lines[1] + 10 } : { x: lines[0] - 10, "text-anchor": "end" }) : { x: (lines[0] + lines[1]) / 2, "text-anchor": "middle" };
  const room = Math.floor((wide ? (back ? width - lines[1] - 14 : lines[0] - 90) : lines[1] - lines[0] - 8) / 6.2); // letters
  drawnIn(group, "text", { ...at, y: top + (wide ? 14 : 9) }, label.length > room ? `${label.slice(0, Math.max(0, room - 1))}…` : label);
  drawnIn(group, "title", {}, `frame ${p.frame[i]}: ${label}`);
}

/** @param {number} first @param {number} count */
export function drawLadder(first, count) {
  const picture = elementAt("svg", $("ladder-rows")), width = $("ladder-rows").clientWidth, lines = ladderLines(width), height = LADDER_ROW * count;
  picture.replaceChildren();
  picture.setAttribute("height", String(height));
  const frames = [...listed.items.subarray(first, first + count)].filter((item) => item >= 0).map((i) => tables.packets.frame[i]);
  picture.setAttribute("aria-label", frames.length ? `Ladder of frames ${frames[0]} to ${frames.at(-1)}` : "Ladder");
  const parts = drawnIn(picture, "g", {});
  for (const x of lines) drawnIn(picture, "line", { class: "life", x1: x, x2: x, y1: 0, y2: height });
  for (let at = 0; at < count; at++) {
    const item = listed.items[first + at];
    if (item < 0) ladderPause(parts, item, at * LADDER_ROW, lines);
    else ladderPacket(parts, item, at * LADDER_ROW, lines, width);
  }
}
