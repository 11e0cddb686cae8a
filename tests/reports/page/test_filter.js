// SPDX-License-Identifier: Apache-2.0
// The filter of the packet list: what is typed, beside packets of known columns and text.
import assert from "node:assert/strict";
import { test } from "node:test";

import { parsedFilter, passes } from "../../../reports/html/page/packets/filter.js";

const PACKET = { frame: 7, time: 0.1234564, size: 1448, sequence: 2896, ack: null, window: null, rtt: null, ip: 1500, number: null };
const packet = { side: 0, numberOf: (column) => PACKET[column], text: () => "Fast retransmission, lost upstream; PSH ACK GET /a=b HTTP/1.1" };
const matches = (text) => passes(parsedFilter(text).tests, packet);

for (const [text, expected] of [
  ["", true], ["   ", true], ["retransmission", true], ["RETRANS", true], ["timeout", false], ["-timeout", true], ["!retransmission", false],
  ["lost upstream", true], ['"lost upstream"', true], ['"upstream lost"', false], ['-"lost upstream"', false], ['"lost', true],
  ["len>1000", true], ["len > 1,448", false], ["len>=1,448", true], ["len==1448", true], ["len!=1448", false], ["-len=1448", false],
  ["frame=7 seq<3000", true], ["frame=7 seq<2000", false], ["FRAME=7", true], ["tcp.len>1000", true], ["frame.number<=7", true],
  ["time=0.123456", true], ["time<0.123456", false], ["time>0.1 time<0.2", true],
  ["ack>=0", false], ["ack<0", false], ["-ack=5", false], // not known
  ["→", true], ["->", true], ["←", false], ["<- retransmission", false],
  ["a=b", true], ["a=c", false], ["__proto__=b", false], ["constructor", false], ["toString=1", false], ["<script>", false],
]) {
  test(`the filter ${JSON.stringify(text)} is ${expected}`, () => assert.equal(matches(text), expected));
}

test("a comparison without a number is told, not obeyed", () => {
  assert.equal(parsedFilter("len>x").wrong, "len> needs a number");
  assert.equal(parsedFilter("len>1 lost").wrong, "");
  assert.equal(parsedFilter("len>").wrong, ""); // not finished: letters
});

test("a filter has a limit", () => assert.ok(parsedFilter("a ".repeat(100_000)).tests.length <= 250));
