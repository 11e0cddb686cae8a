// SPDX-License-Identifier: Apache-2.0
// Least and greatest of runs, and the pixels of series, beside values that were counted one by one.
import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { transformOf } from "../../../reports/html/page/flow/canvas/moving.js";
import { Raster, inked } from "../../../reports/html/page/flow/canvas/raster.js";
import { Extremes, extremesOf } from "../../../reports/html/page/flow/series/extremes.js";

const INK = inked("#102030");
const pointsOf = (pairs, more = {}) => ({ x: pairs.map(([x]) => x), y: pairs.map(([, y]) => y), frame: [], capture: [], ...more });

// Numbers from 0 to 999 in an order that depends on nothing else.
const numbers = (count, seed = 7) => Array.from({ length: count }, () => (seed = (seed * 48271) % 2147483647) % 1000);

// Returns a raster of one panel, whose pixel is a unit of time and value.
function panel(width, height, more = {}) {
  const raster = new Raster(width, height);
  raster.choosePanel({ top: 0, bottom: height, range: [0, width], vertical: [0, height], log: false, ...more });
  return raster;
}

// Returns the values that each column shows, from below.
const columns = (raster) => Array.from({ length: raster.width }, (_, column) => Array.from({ length: raster.height }, (_, up) => up).filter((up) => raster.pixels[(raster.height - 1 - up) * raster.width + column]));

for (const count of [1, 16, 17, 256, 4097]) {
  test(`the least and greatest of any run of ${count} values are those of its values`, () => {
    const low = numbers(count), high = low.map((value, i) => value + (i % 3)), pyramid = new Extremes(low, high);
    for (let start = 0; start < count; start += Math.ceil(count / 40)) {
      for (let end = start + 1; end <= count; end += Math.ceil(count / 37)) {
        const { least, greatest } = pyramid.of(start, end);
        assert.deepEqual([least, greatest], [Math.min(...low.slice(start, end)), Math.max(...high.slice(start, end))], `${start} to ${end}`);
      }
    }
  });
}

test("a run without known values has no extremes", () => {
  const values = [NaN, 4, NaN, NaN, 2], pyramid = new Extremes(values, values);
  assert.deepEqual([pyramid.of(2, 4).least, pyramid.greatest], [Infinity, -Infinity]);
  assert.deepEqual([pyramid.of(0, 5).least, pyramid.greatest], [2, 4]);
  assert.equal(pyramid.of(3, 3).least, Infinity);
});

test("the pyramid of a series is made once, with both ends of its bars", () => {
  const source = pointsOf([[0, 1], [1, 5]], { y2: [9, 6] });
  assert.equal(extremesOf(source), extremesOf(source));
  assert.deepEqual([extremesOf(source).of(0, 2).least, extremesOf(source).greatest], [1, 9]);
});

const line = (raster, pairs, more = {}) => raster.line(pointsOf(pairs), { straight: false, fill: false, dash: "solid", thick: 1, color: INK, ...more });

test("steps hold a value until the next, and cover all values of a column", () => {
  const raster = panel(6, 10);
  line(raster, [[0.5, 2], [2.1, 7], [2.2, 1], [2.9, 4], [4.5, 4]]);
  assert.deepEqual(columns(raster), [[2], [2], [1, 2, 3, 4, 5, 6, 7], [4], [4], []]);
});

test("steps begin with the value before the view, and end with the last point", () => {
  const raster = panel(4, 10, { range: [10, 14] });
  line(raster, [[3, 5], [12.5, 6], [20, 6]]);
  assert.deepEqual(columns(raster), [[5], [5], [5, 6], [6]]);
});

test("a value that is not known interrupts a line", () => {
  const raster = panel(4, 10);
  line(raster, [[0.5, 3], [1.5, NaN], [3.5, 3]]);
  assert.deepEqual(columns(raster), [[3], [3], [], [3]]);
});

test("straight lines pass through the columns between points", () => {
  const raster = panel(5, 10);
  line(raster, [[0, 0.5], [4, 8.5]], { straight: true });
  assert.deepEqual(columns(raster), [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8], [8]]);
});

test("the area below a line is paler, and a line is as thick as it should be", () => {
  const raster = panel(2, 6);
  line(raster, [[0, 4], [1.5, 4]], { fill: true, thick: 2 });
  const opacities = Array.from({ length: 6 }, (_, row) => raster.pixels[2 * row] >>> 24);
  assert.deepEqual(opacities, [0, 255, 255, 34, 34, 34]);
});

test("bars cover what their ends cover, once", () => {
  const raster = panel(3, 10);
  raster.bars(pointsOf([[0.2, 1], [0.4, 2], [0.6, 6], [1.5, -9], [2.5, 12]], { y2: [2.5, 3.5, 6.5, 20, 14] }), 0, 5, INK);
  assert.deepEqual(columns(raster), [[1, 2, 3, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], []]);
});

test("marks are squares, cut at the edges of their panel", () => {
  const raster = panel(5, 8, { top: 0, bottom: 4, vertical: [0, 4] });
  raster.marks(pointsOf([[0, 0.5], [3.5, 3.5], [3.6, 9]]), 0, 3, 2, INK);
  assert.deepEqual(columns(raster), [[4, 5], [], [7], [7], []]);
});

test("a logarithmic axis has its values by their exponents", () => {
  const raster = panel(2, 4, { vertical: [0, 4], log: true });
  raster.marks(pointsOf([[0.5, 1], [0.5, 150], [1.5, 0]]), 0, 3, 1, INK);
  assert.deepEqual(columns(raster), [[0, 2], []]);
});

test("a color over another is mixed by its opacity", () => {
  const raster = panel(1, 1);
  raster.paint(0, 0, 0, inked("#ff0000"));
  raster.paint(0, 0, 0, inked("#0000ff", 128));
  assert.equal(raster.pixels[0].toString(16), "ff80007f");
});

test("a picture is moved to where the next one has it", () => {
  const { scale, offset } = transformOf([10, 20], [12, 17], 100);
  const xIn = (time, [from, to]) => (100 * (time - from)) / (to - from);
  for (const time of [12, 15, 17]) assert.equal(scale * xIn(time, [10, 20]) + offset, xIn(time, [12, 17]));
});
