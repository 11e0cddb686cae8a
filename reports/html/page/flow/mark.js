// @ts-check
// The chosen packet in the plots: a line through all panels at its time, and a ring around each of its points.
import { atTop, element } from "../elements.js";
import { firstAtOrAfter } from "../numbers.js";
import { $ } from "../plotly.js";
import { yOf } from "./crosshair.js";
import { isOverlaid } from "./drawn_flows.js";
import { isShown, seriesOf, view, xOf } from "./figure.js";

const SAME_TIME = 1e-9; // seconds
/** @type {{ packet: { time: number, frame: number, capture: number } | null }} */
const chosenMark = { packet: null };
/** @param {typeof chosenMark.packet} packet */
export const markPacket = (packet) => { chosenMark.packet = packet; };

// Yields the heights of a packet's points in a panel.
/** @param {number} place @param {{ time: number, frame: number, capture: number }} packet */
function* heightsOf(place, { time, frame, capture }) {
  const { plot, bottom } = view.stack.places[place];
  for (const series of seriesOf(view.used[place]).filter(isShown)) {
    const source = view.all[series.key];
    if (source.bin || series.mode === "bands") continue;
    for (let i = firstAtOrAfter(source.x, time - SAME_TIME); i < source.x.length && source.x[i] <= time + SAME_TIME; i++) {
      const y = source.frame[i] === frame && source.capture[i] === capture ? yOf(place, (source.y2 || source.y)[i]) : NaN;
      if (y >= plot && y <= bottom) yield y;
    }
  }
}

// Draws the mark again after the panels were drawn.
export function placeMark() {
  for (const old of document.querySelectorAll(".mark-line, .mark-ring")) old.remove();
  const { packet } = chosenMark;
  if (!packet || isOverlaid() || !view.used.length || packet.time < view.range[0] || packet.time > view.range[1]) return;
  const left = `${xOf(packet.time)}px`, overlay = $("overlay");
  view.stack.places.forEach(({ plot, bottom }, place) => {
    const line = atTop(element("div", { className: "mark-line" }), plot);
    Object.assign(line.style, { left, height: `${bottom - plot}px` });
    overlay.append(line);
    for (const y of new Set(heightsOf(place, packet))) {
      const ring = atTop(element("div", { className: "mark-ring" }), y);
      ring.style.left = left;
      overlay.append(ring);
    }
  });
}
