// SPDX-License-Identifier: Apache-2.0
// The choice and its link: what is chosen is in the link, and the link gives it back.
import assert from "node:assert/strict";
import { test } from "node:test";

import { DATA, listeners, visited } from "./page.js";
import { begin, choice, choose, chosenFlow, completeLinks, continueStep, endStep, onChoice, setting, turned, withSetting } from "../../../reports/html/page/link.js";

const NOTHING = { flow: 3, with: [], range: null, vertical: {}, finding: null, frame: null, toggled: [], size: {}, tab: null, match: "", find: "", stack: null, group: null, only: [], during: null };
const heard = [];
onChoice((changed) => heard.push([...changed].sort()));
await begin({ flow: 3 }, (flow) => flow >= 0 && flow < 10);

async function open(link) {
  location.hash = link;
  await listeners.hashchange();
}

test("the page begins with another choice if the link has none, without a step", () => {
  assert.deepEqual(choice, NOTHING);
  assert.equal(location.hash, "#flow=3");
  assert.deepEqual(heard, [["flow"]]);
});

test("a link names each part of a choice", async () => {
  await choose({ with: [3, 5, 9], range: [1.5, 2.25], vertical: { sequence: [0, 90000] }, finding: 2, frame: 7, toggled: ["window"], size: { rate: 120 }, tab: "ladder", find: "10.0.0.1" });
  assert.equal(location.hash, "#flow=3&finding=2&frame=7&with=5,9&t=1.5-2.25&y=sequence:0-90000&toggled=window&size=rate:120&tab=ladder&find=10.0.0.1");
});

const CHOICES = [
  { flow: 0 },
  { with: [3, 5, 9] },
  { with: [5, 3] }, // the chosen flow has another place
  { with: [3, null, 5] }, // a place that was left
  { with: [3, 0, 1, 2, 4, 5, 6, 7] }, // as many as there are colors
  { range: [0.000000001, 0.000000003] },
  { range: [-2.5, 86400.25] },
  { vertical: { sequence: [0, 4294967296], rtt: [-1.5, 2.000001] } },
  { finding: 12, frame: 4503599627370496 },
  { toggled: ["direction:3", "bin:0.001", "log:rtt", "panel:rate"] },
  { toggled: ["a&b=c#d", "ä → %41"] },
  { size: { rate: 40, rtt: 2000 } },
  { size: { dock: 300 } },
  { tab: "ladder" },
  { match: "len>1000 -\"lost upstream\" → a&b=c#d" },
  { find: "10.0.0.1 tcp & [::1]:80=#%" },
  { group: "client" },
  { only: ["client:10.0.0.1", "server:2001:db8::1", "verdict:blocks lost", "cause:2"] },
  { during: [0.25, 1.5] },
];
for (const change of CHOICES) {
  test(`a link gives back ${JSON.stringify(change)}`, async () => {
    const chosen = { ...NOTHING, ...change };
    await choose({ flow: 3 });
    await choose(chosen);
    const link = location.hash;
    await open("#flow=8");
    assert.equal(choice.flow, 8);
    await open(link);
    assert.deepEqual(choice, chosen);
  });
}

const EDITED = [
  ["t=2-1", { range: null }],
  ["t=x-1", { range: null }],
  ["y=unknown:0-1&y=rtt:5-4", { vertical: {} }],
  ["size=rate:9", { size: {} }],
  ["y=dock:1-2", { vertical: {} }],
  ["frame=-1&finding=x", { frame: null, finding: null }],
  ["with=3", { with: [] }],
  ["during=2-1&only=&only=port:1&only=port:1", { during: null, only: ["port:1"] }],
  ["with=5,5,x", { with: [3, 5, null, null] }],
  ["with=0,1,2,4,5,6,7,8,9", { with: [3, 0, 1, 2, 4, 5, 6, 7] }],
  ["toggled=%E0%A4%A", { toggled: ["%E0%A4%A"] }],
];
for (const [link, expected] of EDITED) {
  test(`an edited link is read as far as it can be: ${link}`, async () => {
    await open(`#flow=3&${link}`);
    assert.deepEqual(choice, { ...NOTHING, ...expected });
  });
}

test("a flow that the page lacks changes nothing, and is named", async () => {
  await open("#flow=3&frame=5");
  for (const flow of ["77", "abc"]) {
    await open(`#flow=${flow}&frame=6`);
    assert.deepEqual(choice, { ...NOTHING, frame: 5 });
    assert.equal(document.getElementById("missing").textContent, `Flow ${flow} of the link is not in the page, which has ${DATA.flows.held} of ${DATA.flows.count} flows, numbered from 0.`);
  }
});

test("another flow is shown whole, and is one step", async () => {
  await open("#flow=3&t=1-2&with=5&y=rtt:0-1&finding=1&frame=2&tab=ladder&find=a");
  const before = visited.length;
  await choose({ flow: 4 });
  assert.deepEqual(choice, { ...NOTHING, flow: 4, tab: "ladder", find: "a" });
  assert.equal(visited.length, before + 1);
  await choose({ flow: 4 });
  assert.equal(visited.length, before + 1, "a choice that changes nothing");
});

test("changes by keys are one step, until the pointer is pressed", async () => {
  await choose(NOTHING);
  const before = visited.length;
  continueStep();
  for (const frame of [1, 2, 3]) await choose({ frame });
  assert.equal(visited.length, before + 1);
  listeners.pointerdown();
  await choose({ frame: 4 });
  assert.equal(visited.length, before + 2);
  endStep();
});

test("parts hear what changed, in their order, after the change", async () => {
  await choose(NOTHING);
  heard.length = 0;
  await choose({ range: [1, 2], frame: null, toggled: [] });
  assert.deepEqual(heard, [["range"]]);
});

test("settings are names in the choice", async () => {
  await choose({ ...NOTHING, toggled: ["bin:0.01", "window"] });
  assert.deepEqual([setting("bin", 0), setting("average", 1)], [0.01, 1]);
  assert.deepEqual(withSetting("bin", 0.1, 0), ["window", "bin:0.1"]);
  assert.deepEqual(withSetting("bin", 0, 0), ["window"]);
  assert.deepEqual([turned("window"), turned("sack")], [["bin:0.01"], ["bin:0.01", "window", "sack"]]);
  assert.equal(chosenFlow(), 3);
});

test("a link may be completed", async () => {
  completeLinks((found) => (found.flow === null ? { ...found, flow: 6 } : found));
  await open("#finding=1");
  assert.deepEqual(choice, { ...NOTHING, flow: 6, finding: 1 });
});
