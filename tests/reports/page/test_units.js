// SPDX-License-Identifier: Apache-2.0
// Quantities as text: each line of tests/analyzer/units.tsv that a page shows, and times of ranges.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { duration, momentText, prefixed, whole } from "../../../reports/html/page/units.js";

const SHOW = { duration, count: whole, bytes: (value) => prefixed(value, "B"), rate: (value) => prefixed(value, "bit/s") };
const WORDS = { null: null, nan: NaN, inf: Infinity, "-inf": -Infinity };

test("quantities are those of units.tsv", () => {
  const [, ...lines] = readFileSync(new URL("../../analyzer/units.tsv", import.meta.url), "utf-8").trimEnd().split("\n");
  const cases = lines.map((line) => line.split("\t")).filter(([quantity]) => quantity in SHOW);
  assert.ok(cases.length > 400, "cases of the table");
  for (const [quantity, text, shown] of cases) assert.equal(SHOW[quantity](text in WORDS ? WORDS[text] : Number(text)), shown, `${quantity} ${text}`);
});

test("a range has the places that tell its ends apart", () => {
  assert.equal(momentText(2.391, 2.812), "2.39–2.81 s");
  assert.equal(momentText(12, 13), "12.00–13.00 s");
  assert.equal(momentText(1, 1.0000025), "1.0000000–1.0000025 s");
  assert.equal(momentText(1.25, 1.25), "1.250 s");
});
