// SPDX-License-Identifier: Apache-2.0
// A stream put together from payloads, where these begin in frames, and bytes as text that cannot disturb.
import assert from "node:assert/strict";
import { test } from "node:test";

import { assembled } from "../../../reports/html/page/stream/assemble.js";
import { payloadStart, shownHex, shownText } from "../../../reports/html/page/stream/payload.js";

const bytes = (text) => new TextEncoder().encode(text);
const segment = (time, from, text, more = {}) => ({ side: 0, time, from, size: text.length, frame: time, bytes: bytes(text), ...more });
const told = (pieces) => pieces.map(({ side, kind, from, size, bytes: held }) => [side, kind, from, kind === "bytes" ? shownText(held) : size]);

test("bytes come in their order, each once, whatever was retransmitted or late", () => {
  const sent = [segment(1, 0, "abc"), segment(2, 6, "ghi"), segment(3, 3, "def"), segment(4, 0, "ABCDEF"), segment(5, 8, "Ijk")];
  assert.deepEqual(told(assembled(sent, true, 0)), [[0, "bytes", 0, "abc"], [0, "bytes", 3, "def"], [0, "bytes", 6, "ghi"], [0, "bytes", 9, "jk"]]);
});

test("directions alternate as they were delivered", () => {
  const talk = [segment(1, 0, "ask"), segment(2, 0, "answer", { side: 1 }), segment(3, 3, "more"), segment(4, 6, "end", { side: 1 })];
  assert.deepEqual(told(assembled(talk, true, 0)), [[0, "bytes", 0, "ask"], [1, "bytes", 0, "answer"], [0, "bytes", 3, "more"], [1, "bytes", 6, "end"]]);
});

test("gaps are told from bytes that the page lacks", () => {
  const lacking = { bytes: null }, sent = [segment(1, 2, "cd"), segment(2, 6, "gh", lacking), segment(3, 8, "ij", lacking), segment(4, 10, "kl")];
  assert.deepEqual(told(assembled(sent, true, 0)), [[0, "gap", 0, 2], [0, "bytes", 2, "cd"], [0, "gap", 4, 2], [0, "elsewhere", 6, 4], [0, "bytes", 10, "kl"]]);
  assert.deepEqual(told(assembled(sent.slice(0, 1), true, null)), [[0, "bytes", 2, "cd"]]);
});

test("a copy of which the page has the bytes counts", () => {
  assert.deepEqual(told(assembled([segment(1, 0, "abcd", { bytes: null }), segment(2, 1, "bc")], true, 0)), [[0, "elsewhere", 0, 1], [0, "bytes", 1, "bc"], [0, "elsewhere", 3, 1]]);
});

test("datagrams stand for themselves", () => {
  assert.deepEqual(told(assembled([segment(1, 0, "a"), segment(2, 0, "a")], false, 0)), [[0, "bytes", 0, "a"], [0, "bytes", 0, "a"]]);
  assert.deepEqual(assembled([], true, 0), []);
});

// An Ethernet frame of an IPv4 or IPv6 packet with ports 5000 and 80, and what follows it.
function frame({ version = 4, payload = "hello", options = 0, behind = 0, before = [], length = null }) {
  const tcp = [0x13, 0x88, 0, 80, ...Array(8).fill(0), (5 + options) << 4, ...Array(7 + 4 * options).fill(0)], size = payload.length + tcp.length, ip = size + (version === 4 ? 20 : 40);
  const told = length ?? (version === 4 ? ip : size), head = version === 4 ? [0x45, 0, told >> 8, told & 255, ...Array(16).fill(0)] : [0x60, 0, 0, 0, told >> 8, told & 255, ...Array(34).fill(0)];
  const all = new Uint8Array([...Array(14).fill(0), ...before, ...head, ...tcp, ...bytes(payload), ...Array(behind).fill(0)]);
  return { all, packet: { ip, size: payload.length, ports: [5000, 80], protocol: "tcp" }, start: 14 + before.length + head.length + tcp.length };
}

for (const made of [{}, { version: 6 }, { options: 3 }, { behind: 6 }, { before: [0x45, 0, 0, 200, 1, 2, 3, 4] }, { length: 0 }]) {
  test(`the payload is found in ${JSON.stringify(made)}`, () => {
    const { all, packet, start } = frame(made);
    assert.equal(payloadStart(all, packet), start);
  });
}

test("a payload that is not there is not found", () => {
  const { all, packet } = frame({});
  assert.equal(payloadStart(all, { ...packet, ports: [1, 2] }), -1);
  assert.equal(payloadStart(all, { ...packet, ip: packet.ip + 1 }), -1);
  assert.equal(payloadStart(all.subarray(0, 40), packet), -1);
  for (let size = 0; size < 60; size++) payloadStart(all.subarray(0, size), packet);
});

test("letters that control, hide or turn others are dots", () => {
  assert.equal(shownText(bytes("a\u0000\u001b[31mb\r\nc\td\u202egnp.exe\u200b\u2028x\u0085")), "a··[31mb\nc\td·gnp.exe··x·");
  assert.equal(shownText(new Uint8Array([0xff, 0x41, 0xc3, 0xa4])), "·Aä");
  assert.equal(shownText(bytes(`z${"\u0301".repeat(50)}`)).length, 5);
  const decoder = new TextDecoder();
  assert.equal(shownText(new Uint8Array([0xc3]), decoder) + shownText(new Uint8Array([0xa4]), decoder), "ä");
});

test("hex has positions", () => {
  const rows = shownHex(bytes("0123456789abcdef<b>"), 100).split("\n");
  assert.equal(rows[0], "     100  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef");
  assert.match(rows[1], /^ {5}116 {2}3c 62 3e {41}<b>$/);
});
