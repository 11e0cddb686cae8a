// SPDX-License-Identifier: Apache-2.0
// Messages of the ladder of hosts, from packets that can be counted by hand.
import assert from "node:assert/strict";
import { test } from "node:test";

import { packetsOf } from "./page.js";
import { columnsOfHosts, messagesOf, messagesOfExchanges } from "../../../reports/html/page/packets/messages.js";

const ACK = { known: 2 + 8, flags: 16 }, SYN = { known: 8, flags: 2 }, DATA = { known: 1 + 2 + 8, flags: 16, size: 100 };
const RULES = { isAlone: () => false, begins: () => false, most: 99 };
const of = (packets, rules = {}) => messagesOf(packetsOf(7, packets), [...packets.keys()], [7, 8], { ...RULES, ...rules });
const told = ({ messages }) => messages.map(({ flow, side, frame, packets, bytes, isAck }) => [flow, side, frame, packets, bytes, isAck]);

test("a response is one message with the ACKs between its segments", () => {
  const talk = [{ who: 0, ...SYN, time: 0 }, { who: 1, ...SYN, time: 0.1 }, { who: 0, ...ACK, time: 0.2 }, { who: 0, ...DATA, time: 0.2 }];
  const answer = [{ who: 1, ...ACK, time: 0.3 }, { who: 1, ...DATA, time: 0.3 }, { who: 0, ...ACK, time: 0.35 }, { who: 1, ...DATA, time: 0.4 }];
  const found = of([...talk, ...answer, { who: 0, ...DATA, time: 0.45 }]);
  assert.deepEqual(told(found), [[7, 0, 1, 1, 0, false], [7, 1, 2, 1, 0, false], [7, 0, 3, 1, 0, true], [7, 0, 4, 1, 100, false], [7, 1, 6, 2, 200, false], [7, 0, 9, 1, 100, false]]);
  assert.deepEqual([found.isCut, found.messages[4].from, found.messages[4].to, found.messages[3].row, found.messages[4].first], [false, 0.3, 0.4, 4, 5]);
});

test("a pause, a packet that begins a message and one with a verdict divide; flows do not", () => {
  const sent = [0, 0.1, 0.31, 0.4].map((time) => ({ who: 0, ...DATA, time })), other = { who: 2, ...DATA, time: 0.05 };
  assert.deepEqual(told(of([sent[0], other, ...sent.slice(1)])), [[7, 0, 1, 2, 200, false], [8, 0, 2, 1, 100, false], [7, 0, 4, 2, 200, false]]);
  assert.deepEqual(told(of(sent.slice(0, 2), { begins: (i) => i === 1 })).length, 2);
  assert.deepEqual(told(of(sent.slice(2), { isAlone: (i) => i === 0 })), [[7, 0, 1, 1, 100, false], [7, 0, 2, 1, 100, false]]);
  assert.deepEqual([of(sent, { most: 1 }).messages.length, of(sent, { most: 1 }).isCut], [1, true]);
});

test("flows without packets have the messages of their exchanges", () => {
  const rows = [{ kind: "dns", flow: 3, frame: 5, answered: 6, asked: 1e9, waited: 2e9, response_bytes: 90 }, { kind: "connect", flow: 3, frame: 9, asked: 4e9 }, { kind: "dns", flow: 4, frame: 1 }, { kind: "dhcp", frame: 2 }];
  assert.deepEqual(messagesOfExchanges(rows, new Set([3])).map(({ flow, side, from, frame, first, bytes }) => [flow, side, from, frame, first, bytes]), [[3, 0, 1, 5, -1, 0], [3, 1, 3, 6, -1, 90], [3, 0, 4, 9, -1, 0]]);
});

test("columns are bounded, and the chosen flow has its own", () => {
  const messages = ["b", "c", "c", "d", "d", "e"].map((host) => ({ host }));
  assert.deepEqual(columnsOfHosts(messages, ({ host }) => ["a", host], ["a", "e"], 8), { hosts: ["a", "b", "c", "d", "e"], others: 0 });
  assert.deepEqual(columnsOfHosts(messages, ({ host }) => ["a", host], ["a", "e"], 4), { hosts: ["a", "c", "e"], others: 2 });
});
