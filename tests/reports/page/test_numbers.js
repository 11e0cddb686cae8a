// SPDX-License-Identifier: Apache-2.0
// Packed tables and packets: what is packed here by hand comes out as it went in.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import "./page.js";
import { KNOWN, firstAtOrAfter, loadPackets, loadTable, unplaned } from "../../../reports/html/page/numbers.js";

const packed = (bytes) => gzipSync(bytes).toString("base64");

// Returns whole numbers as zigzag varints: 0, -1, 1, -2 are 0, 1, 2, 3, in groups of 7 bits, the lowest first.
function varints(numbers) {
  const bytes = [];
  for (const number of numbers) {
    let left = number < 0 ? -2n * BigInt(number) - 1n : 2n * BigInt(number);
    for (; left >= 128n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
    bytes.push(Number(left));
  }
  return [numbers.length, packed(Uint8Array.from(bytes))];
}

test("columns are typed arrays, whole or in byte planes", async () => {
  const times = Float64Array.of(0.5, -1e9, NaN), few = Uint16Array.of(1, 258, 65535);
  const table = await loadTable({ times: ["d", packed(Buffer.from(times.buffer))], few: ["H", packed(Buffer.from(few.buffer))] });
  assert.deepEqual(table, { times, few });
  // The most significant byte of each at first; the upper two bytes are kept, the lower ones are zero.
  const planes = Uint8Array.of(0x01, 0xff, 0x02, 0xfe);
  assert.deepEqual(await unplaned(["I", 2, packed(planes)]), Uint32Array.of(0x01020000, 0xfffe0000));
});

test("packets are differences from a prediction", async () => {
  const all = KNOWN.sequence | KNOWN.ack | KNOWN.window | KNOWN.flags;
  const streams = {
    who: varints([0, 1, 0]), // initiator, responder, initiator of flow 7
    time: varints([1_500_000_000, 250_000, -1]), // ns since the packet before
    frame: varints([2 ** 40, 1, 3]),
    capture: varints([0, 0, 1]),
    known: varints([all, all | KNOWN.rtt | KNOWN.sack, all | KNOWN.repeated]),
    size: varints([1460, 0, 0]), // beyond the last one of the side
    header: varints([40, 52, 0]),
    sequence: varints([1000, 1, -1460]), // beyond the end of the last one
    ack: varints([1, 2460, 0]),
    window: varints([65535, 2 ** 30, -5]),
    flags: varints([24, 16, -8]),
    rtt: varints([0]), // beyond the time since the segment that the ACK completes
    unique: varints([460]),
    offset: varints([]),
    sacks: varints([2]),
    sack: varints([1000, 500]), // from the ACK, then from the start of the block before
    sacked: varints([100, 7]), // length
  };
  const p = await loadPackets({ count: 3, flows: [7], streams, cut: false });
  assert.deepEqual([...p.who], [0, 1, 0]);
  assert.deepEqual([...p.time], [1.5, 1.50025, 1.500249999]);
  assert.deepEqual([...p.frame], [2 ** 40, 2 ** 40 + 1, 2 ** 40 + 4]);
  assert.deepEqual([...p.capture], [0, 0, 1]);
  assert.deepEqual([...p.size], [1460, 0, 1460]);
  assert.deepEqual([...p.ip], [1500, 52, 1500]);
  assert.deepEqual([...p.sequence], [1000, 1, 1000]);
  assert.deepEqual([...p.ack], [1, 2460, 1]);
  assert.deepEqual([...p.window], [65535, 2 ** 30, 65530]);
  assert.deepEqual([...p.flags], [24, 16, 16]);
  assert.deepEqual([...p.unique], [1460, 0, 460]);
  assert.deepEqual([...p.rtt], [0, 0.25, 0]);
  assert.deepEqual([...p.sacks], [[1, [[3460, 3560], [3960, 3967]]]]);
  assert.deepEqual([...p.places], [[7, 0]]);
  assert.deepEqual([0, 1].map((side) => [...p.rows(side)]), [[0, 2], [1]]);
});

test("a number of 2^52 and its negative are exact", async () => {
  const most = 2 ** 52, nothing = varints([]);
  const streams = { who: varints([0, 0]), time: varints([0, 0]), frame: varints([most, -most + 1]), capture: varints([0, 0]), known: varints([0, 0]), size: varints([0, 0]), header: varints([0, 0]) };
  for (const name of ["sequence", "ack", "window", "flags", "rtt", "unique", "offset", "sacks", "sack", "sacked"]) streams[name] = nothing;
  assert.deepEqual([...(await loadPackets({ count: 2, flows: [0], streams, cut: false })).frame], [most, 1]);
});

test("the first place that is not below a value", () => {
  assert.deepEqual([0, 1, 2, 2.5, 9].map((value) => firstAtOrAfter([1, 2, 2, 3], value)), [0, 0, 1, 3, 4]);
  assert.equal(firstAtOrAfter([4, 7], 50, (item) => 10 * item), 1);
  assert.equal(firstAtOrAfter([], 1), 0);
});
