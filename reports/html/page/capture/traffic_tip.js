// @ts-check
// The values of the timeline at the pointer: of the bin, of each layer of its stack, of its lanes, and of the wait below the pointer.
import { element, elementAt, svgShape } from "../elements.js";
import { $ } from "../plotly.js";
import { drawnTraffic } from "../selection/stacked.js";
import { momentText, prefixed, whole } from "../units.js";
import { CHART, canvas, traffic, trafficTime, trafficX } from "./chart.js";
import { waitWords } from "./waits.js";

const ASIDE_PX = 12; // between the pointer and its tip
/** @type {[name: "lost" | "missed", words: string][]} */
const COUNTED = [["lost", "lost"], ["missed", "not captured"]];

// Returns the lines of a bin: [color, value, words].
/** @param {number} bin @returns {[string, string, string][]} */
function linesOf(bin) {
  const { rates, layers, ...of } = drawnTraffic();
  /** @type {[string, string, string][]} */
  const lines = [["", prefixed(rates[bin], "bit/s"), layers.length ? "in all" : ""]];
  layers.forEach((layer, i) => layer.rates[bin] >= 0.5 && lines.push([`stack-${i + 1}`, prefixed(layer.rates[bin], "bit/s"), layer.words]));
  for (const [name, words] of COUNTED) if (of[name][bin]) lines.push([name, whole(of[name][bin]), words]);
  return lines;
}

/** @param {number} x @param {number} y */
function drawTip(x, y) {
  const tip = $("timeline-tip"), bin = Math.floor((trafficTime(x) - traffic.from) / traffic.width), count = traffic.rates.length;
  tip.hidden = x < canvas.gutter || x > canvas.width || bin < 0 || bin >= count;
  elementAt("#timeline .at")?.remove();
  if (tip.hidden) return;
  const from = traffic.from + bin * traffic.width, waits = waitWords(x, y);
  tip.replaceChildren(element("b", { textContent: momentText(Math.max(from, traffic.first), from + traffic.width) }), ...linesOf(bin).map(([color, value, words]) => {
    const swatch = color ? [element("i", { className: `swatch ${color}` })] : [];
    return element("span", {}, ...swatch, value, words ? ` ${words}` : "");
  }), ...(waits ? [element("span", { className: "waits", textContent: waits })] : []));
  const left = x + ASIDE_PX + tip.offsetWidth > canvas.width ? x - ASIDE_PX - tip.offsetWidth : x + ASIDE_PX;
  tip.style.left = `${Math.max(left, 0)}px`;
  elementAt("#timeline").querySelector("svg")?.append(svgShape("path", { class: "at", d: `M${trafficX(from + traffic.width / 2)} 0V${CHART.height}` }));
}

/** @param {HTMLElement} place */
export function listenToTip(place) {
  place.addEventListener("pointermove", (event) => {
    const box = place.getBoundingClientRect();
    drawTip(event.clientX - box.left, event.clientY - box.top);
  });
  place.addEventListener("pointerleave", () => {
    $("timeline-tip").hidden = true;
    elementAt("#timeline .at")?.remove();
  });
}
