// @ts-check
// The lane of the timeline in which the chosen flow waited: for the server, for the client, and in the network while it stalled in an RTO
// or recovered from loss; as in the panel of its time, so that idle time is none.
import { svgShape } from "../elements.js";
import { spansOf } from "../flow/bands.js";
import { rowsOf } from "../flow/series/points.js";
import { choice } from "../link.js";
import { loadTable } from "../numbers.js";
import { data } from "../plotly.js";
import { duration, momentText } from "../units.js";
import { CHART, canvas, legendItem, trafficTime, trafficX } from "./chart.js";

/** @type {Record<string, string>} */
const WAITS = { server: "waits for the server", client: "waits for the client", network: "stalled or recovering from loss" };
/** @type {Record<string, Wait["kind"]>} */
const KINDS = { server: "server", client: "client", loss: "network" }; // by part of the time
const lane = { waits: /** @type {Wait[]} */ ([]), top: 0 }; // as it is drawn
/** @type {TurnTable} */
let turns; // the table of the page

export async function loadTurns() {
  turns = await loadTable(data.turns);
}

// Returns the waits of a flow in order of time: {kind, from, to}. Without spans of its time they come from its turns, at the capture
// point, so that half of the round trip to the server is before its time, and half after.
/** @param {number | null} flow */
export function waitsOf(flow) {
  if (typeof flow !== "number") return [];
  const spans = spansOf(flow);
  return spans.length ? spans.flatMap(({ band, from, to }) => (KINDS[band.part] ? [{ kind: KINDS[band.part], from, to }] : [])) : waitsOfTurns(flow);
}

/** @param {number} flow */
function waitsOfTurns(flow) {
  const { asked_ns: starts, request_ns: requests, network_ns: networks, server_ns: servers, pause_ns: pauses } = turns;
  /** @type {Wait[]} */
  const found = [];
  /** @param {Wait["kind"]} kind @param {number} from @param {number} length */
  const add = (kind, from, length) => length > 0 && found.push({ kind, from, to: from + length });
  for (const i of rowsOf(turns, flow)) {
    const start = starts[i] / 1e3, asked = start + (requests[i] || 0) / 1e3;
    add("client", start - pauses[i] / 1e3, pauses[i] / 1e3);
    add("server", asked + networks[i] / 2e3, servers[i] / 1e3);
  }
  return found.sort((a, b) => a.from - b.from);
}

// Draws one path for each kind; the words of a wait are shown at the pointer.
/** @param {Element} svg @param {Wait[]} waits @param {number} top */
export function drawWaits(svg, waits, top) {
  Object.assign(lane, { waits, top });
  if (!waits.length) return;
  svg.append(svgShape("text", { x: canvas.gutter - 8, y: top + CHART.lane - 2, "text-anchor": "end" }, "waits"));
  for (const kind of Object.keys(WAITS)) {
    const bars = waits.filter((one) => one.kind === kind).map(({ from, to }) => {
      const left = trafficX(from), wide = Math.max(1, trafficX(to) - left);
      return `M${left.toFixed(1)} ${top + 2}h${wide.toFixed(1)}v${CHART.lane - 2}h${(-wide).toFixed(1)}z`;
    });
    if (bars.length) svg.append(svgShape("path", { class: `wait part-${kind}`, d: bars.join("") }));
  }
}

/** @param {Wait[]} waits */
export function waitLegend(waits) {
  const kinds = Object.keys(WAITS).filter((kind) => waits.some((one) => one.kind === kind));
  return kinds.map((kind, i) => {
    const item = legendItem(`part-${kind}`, kind === "network" ? "loss" : kind);
    if (!i) item.prepend(`flow ${choice.flow}: `);
    item.title = WAITS[kind];
    return item;
  });
}

// Returns the words of the wait at a place of the drawing; empty beside the lane.
/** @param {number} x @param {number} y */
export function waitWords(x, y) {
  const { waits, top } = lane, time = trafficTime(x);
  if (!waits.length || y < top || y > top + CHART.lane) return "";
  const near = trafficTime(x + 1) - time, found = waits.findLast(({ from, to }) => from - near <= time && time < to + near);
  return found ? `${momentText(found.from, found.to)}: ${WAITS[found.kind]} (${duration((found.to - found.from) * 1e9)})` : "";
}
