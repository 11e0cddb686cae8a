// SPDX-License-Identifier: Apache-2.0
// Requests of the waterfall, put together from exchanges whose times can be added by hand.
import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { requestsOf } from "../../../reports/html/page/waterfall/requests.js";

const MS = 1e6, ms = (seconds) => Math.round(seconds * 1e6) / 1e3;
const parts = (request) => request.parts.map(({ part, from, to }) => [part, ms(from), ms(to)]);
const CONNECT = { kind: "connect", flow: 1, client: "10.0.0.1", server: "10.0.0.2", asked: 30 * MS, waited: 20 * MS, outcome: "answered", frame: 3 };
const TURN = { kind: "http", flow: 1, client: "10.0.0.1", name: "a.example", type: "GET", asked: 100 * MS, waited: 70 * MS, request: 0, network: 20 * MS, server_time: 50 * MS, response: 10 * MS, response_bytes: 5000, outcome: "answered", code: "200", frame: 9 };
const LOOKUP = { kind: "dns", flow: 0, within: 1, client: "10.0.0.1", name: "a.example", type: "A", asked: 0, waited: 25 * MS, outcome: "answered", code: "NOERROR", frame: 1 };

test("the first request of a connection has lookup, handshakes and its own parts", () => {
  const tls = { kind: "tls", flow: 1, asked: 55 * MS, waited: 20 * MS, name: "a.example", outcome: "answered", frame: 6 }, secured = { kind: "handshake_tls", flow: 1, duration: 30 * MS };
  const finished = { kind: "turn", flow: 1, asked: 80 * MS, waited: 4 * MS, network: MS, server_time: MS, outcome: "answered" }; // within TLS
  const [request, ...others] = requestsOf([TURN, secured, finished, tls, CONNECT, LOOKUP]);
  assert.deepEqual(others, []);
  assert.deepEqual(parts(request), [["lookup", 0, 25], ["connecting", 30, 50], ["tls", 55, 85], ["path", 100, 110], ["server", 110, 160], ["path", 160, 170], ["transfer", 170, 180]]);
  assert.deepEqual([request.label, request.result, request.failed, request.frame, request.flow, request.bytes, ms(request.from), ms(request.to)], ["GET a.example", "200", false, 9, 1, 5000, 0, 180]);
});

test("a further request begins with the client's pause, and pauses of the server are its time", () => {
  const second = { ...TURN, kind: "turn", type: undefined, asked: 300 * MS, pause: 100 * MS, client_network: 10 * MS, response: 40 * MS, response_pause: 30 * MS, code: "503" };
  const [, request] = requestsOf([CONNECT, TURN, second]);
  assert.deepEqual(parts(request), [["client", 190, 290], ["path", 290, 300], ["path", 300, 310], ["server", 310, 360], ["path", 360, 370], ["transfer", 370, 380], ["server", 380, 410]]);
  assert.deepEqual([request.result, request.failed], ["503", true]);
});

test("stalls of retransmissions are before the answer as far as it came later, else in the response", () => {
  const lossy = { ...TURN, waited: 270 * MS, retransmission_client: 200 * MS, retransmission_network: 50 * MS };
  assert.deepEqual(parts(requestsOf([lossy])[0]), [["loss", 100, 300], ["path", 300, 310], ["server", 310, 360], ["path", 360, 370], ["transfer", 370, 380], ["loss", 380, 430]]);
});

test("what cannot be divided is a wait, and what did not end is open", () => {
  assert.deepEqual(parts(requestsOf([{ ...TURN, network: undefined }])[0]), [["waiting", 100, 170]]);
  const [open] = requestsOf([{ ...TURN, network: undefined, waited: undefined, outcome: "cut_off", code: undefined }]);
  assert.deepEqual([open.parts[0].to, ms(open.to), open.result, open.failed], [Infinity, 100, "cut off", false]);
});

test("a connection without a request, a lookup long before, QUIC and a farewell", () => {
  const refused = { ...CONNECT, flow: 2, outcome: "refused", asked: 5000 * MS }, old = { ...LOOKUP, within: 2, frame: 2 }, quic = { kind: "handshake_quic", flow: 4, asked: 6000 * MS, duration: 40 * MS, name: "q.example", client: "10.0.0.1" };
  const found = requestsOf([refused, old, quic, { ...TURN, flow: 5, outcome: "farewell" }]);
  assert.deepEqual(found.map(({ label, result, failed }) => [label, result, failed]), [["A a.example", "NOERROR", false], ["10.0.0.2", "refused", true], ["QUIC q.example", "", false]]);
  assert.deepEqual(found.map(parts), [[["lookup", 0, 25]], [["connecting", 5000, 5020]], [["tls", 6000, 6040]]]);
});
