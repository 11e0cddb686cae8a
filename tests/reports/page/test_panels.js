// SPDX-License-Identifier: Apache-2.0
// The points of the panels, and throughput, of a few packets whose numbers can be checked by hand.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { packetsOf, tableOf } from "./page.js";
import { holdTables } from "../../../reports/html/page/capture/tables.js";
import { wordsOutside } from "../../../reports/html/page/flow/axes.js";
import { setTaken, view } from "../../../reports/html/page/flow/figure.js";
import { flowData } from "../../../reports/html/page/flow/series/panels.js";
import { rateData, seriesData, shownBin } from "../../../reports/html/page/flow/series/rates.js";
import { roundStep } from "../../../reports/html/page/ticks.js";
import { choice } from "../../../reports/html/page/link.js";
import { KNOWN } from "../../../reports/html/page/numbers.js";

const FLOW = { row: 0, flow: 1, name: "a → b", protocol: "tcp", path: "", relation: "", packets: 0, main: 0 };
const SENT = KNOWN.sequence | KNOWN.flags, ACKED = KNOWN.ack | KNOWN.window;
const EVENTS = "flow capture direction time_ns frame related_frame bytes kind place evidence spurious";
const SERIES = "flow direction start_ns width_ns throughput_bps goodput_bps rtt_ns flight_bytes window_bytes";
const BLOCKS = "flow direction capture stream sequence complete_ns last_frame latency_ns head_of_line_ns verdict";

const segment = (time, sequence, size = 1000, more = {}) => ({ who: 0, known: SENT, time, sequence, size, ip: size + 40, unique: size, ...more });
const acknowledgment = (time, ack, window = 8000, more = {}) => ({ who: 1, known: ACKED, time, ack, window, ip: 40, ...more });

// Gives the page packets, events, blocks and series of the flow, and returns the flow.
function page(packets, { events = [], blocks = [], series = [], protocol = "tcp" } = {}) {
  holdTables({
    packets: packetsOf(packets.length ? 1 : 2, packets), events: tableOf(EVENTS, events), blocks: tableOf(BLOCKS, blocks), series: tableOf(SERIES, series),
    datagrams: tableOf("flow capture first_ns first_frame fragments missing_bytes"),
  });
  return { ...FLOW, protocol, packets: packets.length };
}

const rounded = (time) => Math.round(time * 1e9) / 1e9; // to ns
const points = ({ x, y, y2 }) => Array.from(x, (time, k) => (y2 ? [rounded(time), y[k], y2[k]] : [rounded(time), y[k]]));

beforeEach(() => Object.assign(choice, { flow: 1, with: [], toggled: [] }));

test("segments are bars, ACKs and window edges are steps", () => {
  const found = flowData(page([segment(0, 0), segment(0.1, 1000), acknowledgment(0.2, 1000), segment(0.3, 0, 1000, { known: SENT | KNOWN.repeated, unique: 0 }), acknowledgment(0.4, 2000, 500)]));
  assert.deepEqual(points(found.data), [[0, 0, 1000], [0.1, 1000, 2000]]);
  assert.deepEqual(points(found.again), [[0.3, 0, 1000]]);
  assert.deepEqual(points(found.ack), [[0.2, 1000], [0.4, 2000]]);
  assert.deepEqual(points(found.window), [[0.2, 9000], [0.4, 2500]]);
  assert.deepEqual(Array.from(found.data.frame), [1, 2]);
  assert.equal(found.data.text(1), "segment 1,000 + 1,000 []");
});

test("the other direction is shown if the reader chose it", () => {
  choice.toggled = ["direction:1"];
  const found = flowData(page([segment(0, 0), acknowledgment(0.1, 1000), segment(0.2, 1000)]));
  assert.equal(found.data, undefined);
});

test("bytes in flight are those sent and not acknowledged", () => {
  const found = flowData(page([segment(0, 0), segment(0.1, 1000), acknowledgment(0.2, 1000), segment(0.3, 2000), acknowledgment(0.4, 3000, 700)]));
  assert.deepEqual(points(found.flight), [[0, 1000], [0.1, 2000], [0.2, 1000], [0.3, 2000], [0.4, 0]]);
  assert.deepEqual(points(found.room), [[0.2, 8000], [0.4, 700]]);
  assert.equal(found.cwnd, undefined, "without a round trip");
});

test("the congestion window is estimated beside the sender, without the bytes that SACK reports", () => {
  const trip = { known: ACKED | KNOWN.rtt, rtt: 100 }, sack = { known: ACKED | KNOWN.sack, sacks: [[3000, 4000], [2000, 3500]] };
  const packets = [segment(0, 0), acknowledgment(0.1, 1000, 8000, trip), segment(0.11, 1000), segment(0.12, 2000), segment(0.13, 3000), acknowledgment(0.3, 1000, 8000, sack)];
  const found = flowData(page(packets));
  assert.deepEqual(points(found.cwnd).slice(1), [[0.1, 1000], [0.11, 1000], [0.12, 2000], [0.13, 3000], [0.3, 1000]]);
  assert.deepEqual(points(found.sack), [[0.3, 3000, 4000], [0.3, 2000, 3500]]);
  assert.deepEqual(points(found.rtt0), [[0.1, 100]]);
});

test("round trips have their least", () => {
  const trip = (time, rtt) => acknowledgment(time, 1000, 8000, { known: ACKED | KNOWN.rtt, rtt });
  const found = flowData(page([segment(0, 0), trip(0.1, 30), trip(0.2, 20), trip(0.3, 25)]));
  assert.deepEqual(points(found.least), [[0.1, 20], [0.3, 20]]);
});

test("a verdict is at its segment, and the original of a lost one too", () => {
  const event = { flow: 1, direction: 0, time_ns: 300, frame: 2, related_frame: 1, bytes: 1000, kind: 1, place: 2, evidence: 1 }; // times in ms
  const found = flowData(page([segment(0, 5000), segment(0.3, 5000, 1000, { known: SENT | KNOWN.repeated })], { events: [event, { ...event, time_ns: 400, frame: 9, bytes: 2500 }] }));
  assert.deepEqual(points(found.fast_retransmission), [[0.3, 5000]]);
  assert.deepEqual(points(found.lost), [[0, 5000]]);
  assert.deepEqual(points(found.downstream), [[0.3, 1], [0.4, 4]]); // 2,500 bytes are three segments on the wire
  assert.match(found.fast_retransmission.text(0), /^fast retransmission, downstream, 1,000 bytes, by acks, see frame 1<br>/);
});

test("numbers that never came are a bar where the first above them came", () => {
  const block = (sequence, complete) => ({ flow: 1, stream: 65535, sequence, complete_ns: complete, latency_ns: NaN, head_of_line_ns: NaN, last_frame: sequence + 1 });
  const found = flowData(page([], { protocol: "udp", blocks: [block(0, 10), block(3, 20), { ...block(3, 30), verdict: 2 }] }));
  assert.deepEqual(points(found.number0), [[0.01, 0], [0.02, 3]]);
  assert.deepEqual(points(found.number_copy), [[0.03, 3]]);
  assert.deepEqual(points(found.missing), [[0.02, 0.5, 2.5]]);
  assert.equal(found.missing.text(0), "numbers 1 to 2 never came");
});

test("points of captures that overlap are put in order of time", () => {
  const found = flowData(page([segment(0.2, 1000), segment(0.1, 0)]));
  assert.deepEqual(points(found.data), [[0.1, 0, 1000], [0.2, 1000, 2000]]);
  assert.deepEqual(Array.from(found.data.frame), [2, 1]);
});

test("throughput is bits by bin, from the origin of the axis on", () => {
  const f = page([segment(0.05, 0, 960), segment(0.15, 960, 960), segment(0.16, 1920, 960), segment(0.38, 2880, 960), acknowledgment(0.39, 3840)]);
  choice.toggled = ["bin:0.1"];
  setTaken({ extent: [0, 0.4] });
  const { throughput0, throughput1, acked } = rateData(f, [0, 0.4]);
  assert.equal(shownBin(), 0.1);
  assert.deepEqual(throughput0.y.map(Math.round), [80_000, 160_000, 0, 80_000, 80_000]); // 1,000 bytes of IP in 0.1 s; the end of the last bin
  assert.deepEqual(throughput0.x.map(rounded), [0, 0.1, 0.2, 0.3, 0.4]);
  assert.deepEqual(throughput1.y.map(Math.round), [0, 0, 0, 3200, 3200]);
  assert.equal(acked, undefined, "the first ACK has none before it");
  assert.equal(throughput0.text(1), "160 kbit/s of IP →");
});

test("a moving average counts the bins before the view, too", () => {
  const f = page([segment(0.05, 0, 960), segment(0.15, 960, 960), segment(0.35, 1920, 960)]);
  choice.toggled = ["bin:0.1", "average:4"];
  setTaken({ extent: [0, 0.4] });
  assert.deepEqual(rateData(f, [0, 0.4]).throughput0.y.slice(0, 4).map(Math.round), [20_000, 40_000, 40_000, 60_000]);
  assert.deepEqual(rateData(f, [0.2, 0.4]).throughput0.y.slice(0, 2).map(Math.round), [40_000, 60_000]);
});

test("ACKs advance by what is new in them", () => {
  const f = page([segment(0, 0, 3000), acknowledgment(0.1, 1000), acknowledgment(0.12, 1000), acknowledgment(0.25, 3000)]);
  choice.toggled = ["bin:0.1"];
  setTaken({ extent: [0, 0.3] });
  assert.deepEqual(rateData(f, [0, 0.3]).acked.y.map(Math.round), [0, 0, 160_000, 160_000]);
});

test("a flow without packets has the bins of its series", () => {
  const row = (start, throughput) => ({ flow: 1, start_ns: start, width_ns: 100, throughput_bps: throughput, goodput_bps: throughput / 2, rtt_ns: 20, flight_bytes: 500, window_bytes: 900 });
  page([], { series: [row(0, 1e6), row(100, 2e6), row(300, 5e5)] });
  const found = seriesData(1, 0);
  assert.deepEqual(points(found.throughput0), [[0, 1e6], [0.1, 2e6], [0.2, 0], [0.3, 5e5], [0.4, 0]]);
  assert.deepEqual(points(found.rtt0), [[0.05, 20], [0.15, 20], [0.35, 20]]);
  assert.deepEqual(points(found.flight), [[0, 500], [0.1, 500], [0.3, 500]]);
  assert.deepEqual(points(found.progress), [[0, 0], [0.1, 6250], [0.2, 18750], [0.3, 18750], [0.4, 21875]]); // flat while nothing comes
});

test("steps are round", () => {
  assert.deepEqual([0.7, 1, 1.1, 2.1, 5.1, 0.03].map(roundStep), [1, 1, 2, 5, 10, 0.05]);
});

test("round trips beyond an axis are told by direction", () => {
  const direction = { panel: "rtt", mode: "marks", shown: true, color: "sender" }, panel = { name: "rtt", unit: "ms", log: false, height: 64 };
  setTaken({ extent: [0, 4], overlaid: [{ key: "rtt0", name: "→ and back", ...direction }, { key: "rtt1", name: "← and back", ...direction }] });
  Object.assign(view, { range: [0, 4], all: { rtt0: { x: [0, 1, 2], y: [5, 20, 30] }, rtt1: { x: [1, 2, 3], y: [2, 40, 3] } } });
  assert.equal(wordsOutside(panel, [0, 10]), "→ and back: 2 above, to 30 ms ↑ · ← and back: 1 above, to 40 ms ↑");
  assert.equal(wordsOutside(panel, [0, 35]), "← and back: 1 above, to 40 ms ↑");
});
