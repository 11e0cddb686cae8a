// @ts-check
// Pixels of series that have too many points for Plotly: each column of pixels shows every value of its time. A line covers the least to the
// greatest value of a column and what leads to it; bars and marks are all drawn. Nothing here knows of the page, so that tests need no browser.
import { firstAtOrAfter } from "../../numbers.js";
import { extremesOf } from "../series/extremes.js";

/** @type {Record<string, [period: number, on: number]>} */
const GAPS = { solid: [1, 1], dash: [8, 5], dot: [4, 2] }; // px
const FILL = 0x22; // opacity of the area below a line

// Returns a color "#rrggbb" as the pixel of a canvas, whose bytes are red, green, blue and opacity.
/** @param {string} color @param {number} [opacity] */
export function inked(color, opacity = 255) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) || 0);
  return ((opacity << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// Returns a pixel over another.
/** @param {number} above @param {number} below */
function blended(above, below) {
  const a = (above >>> 24) / 255, b = ((below >>> 24) / 255) * (1 - a), opacity = a + b;
  let mixed = Math.round(opacity * 255) << 24;
  for (const shift of [0, 8, 16]) mixed |= Math.round((((above >>> shift) & 255) * a + ((below >>> shift) & 255) * b) / opacity) << shift;
  return mixed >>> 0;
}

// The pixels of a panel within those of all panels.
export class Raster {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint32Array(width * height);
    this.top = 0; // rows of the panel
    this.bottom = height;
    this.from = 0; // its ranges
    this.to = 1;
    this.low = 0;
    this.perSecond = width; // pixels
    this.perUnit = height;
    this.log = false;
  }

  // Chooses the panel that is drawn next.
  /** @param {{ top: number, bottom: number, range: Span, vertical: Span, log: boolean }} panel */
  choosePanel({ top, bottom, range, vertical, log }) {
    [this.from, this.to] = range;
    this.low = vertical[0];
    this.perSecond = this.width / (this.to - this.from);
    this.perUnit = (bottom - top) / (vertical[1] - this.low);
    Object.assign(this, { top, bottom, log });
  }

  /** @param {number} time */
  columnOf(time) {
    return Math.floor((time - this.from) * this.perSecond);
  }

  // Returns the row of a value, which may be outside of the panel.
  /** @param {number} value */
  rowOf(value) {
    const at = this.log ? Math.log10(value) : value;
    return Math.ceil(this.bottom - (at - this.low) * this.perUnit) - 1; // the row above an edge, so that the least value of an axis is in sight
  }

  // Paints rows of a column, as far as they are in the panel.
  /** @param {number} column @param {number} first @param {number} last @param {number} color @param {string} [dash] */
  paint(column, first, last, color, dash = "solid") {
    const [period, on] = GAPS[dash] ?? GAPS.solid, end = Math.min(last, this.bottom - 1), opaque = color >>> 24 === 255;
    if (column < 0 || column >= this.width) return;
    for (let row = Math.max(first, this.top); row <= end; row++) {
      if (period > 1 && (column + row) % period >= on) continue;
      const at = row * this.width + column, below = this.pixels[at];
      this.pixels[at] = opaque || !below ? color : blended(color, below);
    }
  }

  // Draws bars: of each column the rows that a bar covers.
  /** @param {Points} source @param {number} start @param {number} end @param {number} color */
  bars({ x, y, y2 = y }, start, end, color) {
    const height = this.bottom - this.top, depth = new Int32Array(this.width * (height + 1)); // bars that begin in a row, less those that ended before
    for (let k = start; k < end; k++) {
      const column = this.columnOf(x[k]), first = Math.max(0, this.rowOf(y2[k]) - this.top), last = Math.min(height - 1, this.rowOf(y[k]) - this.top);
      if (column < 0 || column >= this.width || !(first <= last)) continue;
      depth[column * (height + 1) + first]++;
      depth[column * (height + 1) + last + 1]--;
    }
    for (let column = 0; column < this.width; column++) {
      for (let row = 0, bars = 0, first = 0, at = column * (height + 1); row <= height; row++, at++) {
        if (!depth[at]) continue;
        if (!bars) first = row;
        bars += depth[at];
        if (!bars) this.paint(column, this.top + first, this.top + row - 1, color);
      }
    }
  }

  // Draws points as squares; one that covers the one before it is not drawn again.
  /** @param {Points} source @param {number} start @param {number} end @param {number} size @param {number} color */
  marks({ x, y }, start, end, size, color) {
    const before = size >> 1;
    for (let k = start, lastColumn = NaN, lastRow = NaN; k < end; k++) {
      const column = this.columnOf(x[k]) - before, row = this.rowOf(y[k]) - before;
      if ((column === lastColumn && row === lastRow) || row <= this.top - size || !(row < this.bottom)) continue;
      for (let i = 0; i < size; i++) this.paint(column + i, row, row + size - 1, color);
      lastColumn = column;
      lastRow = row;
    }
  }

  // Draws columns of time: what their least and greatest value enclose, so many pixels high at least.
  /** @param {Points} source @param {number} start @param {number} end @param {number} tall @param {number} color */
  blocks({ x, y, y2 = y, width = 0 }, start, end, tall, color) {
    for (let k = start; k < end; k++) {
      const first = this.rowOf(y2[k]), last = Math.max(this.rowOf(y[k]), first + tall - 1), from = Math.max(0, this.columnOf(x[k])), to = Math.max(from + 1, this.columnOf(x[k] + width));
      for (let column = from; column < Math.min(to, this.width); column++) this.paint(column, first, last, color);
    }
  }

  // Draws a line, in steps or straight from point to point, and the area below it if it is filled.
  /** @param {Points} source @param {{ straight: boolean, fill: boolean, dash: string, thick: number, color: number }} look */
  line(source, { straight, fill, dash, thick, color }) {
    const { x, y, width = 0, last: lasting = y } = source, extremes = extremesOf(source), area = (color & 0xffffff) + FILL * 2 ** 24, span = this.to - this.from, zero = this.rowOf(0);
    const last = Math.min(this.width - 1, this.columnOf(x[x.length - 1] + width));
    // The value at a time, before the point i and after the one before it; NaN if there is none.
    const valueAt = (/** @type {number} */ time, /** @type {number} */ i) => {
      if (i === 0) return NaN;
      if (!straight || i === x.length) return straight ? NaN : lasting[i - 1];
      return y[i - 1] + ((y[i] - y[i - 1]) * (time - x[i - 1])) / (x[i] - x[i - 1] || 1);
    };
    let at = firstAtOrAfter(x, this.from);
    for (let column = 0; column <= last; column++) {
      const begin = this.from + (span * column) / this.width, end = this.from + (span * (column + 1)) / this.width, next = nextFrom(x, end, at);
      const ends = [valueAt(begin, at), valueAt(end, next)];
      let { least, greatest } = extremes.of(at && x[at - 1] + width > begin ? at - 1 : at, next);
      for (const value of straight || next === at ? ends : ends.slice(0, 1)) {
        if (value < least) least = value;
        if (value > greatest) greatest = value;
      }
      at = next;
      if (!(least <= greatest)) continue;
      const first = this.rowOf(greatest), below = this.rowOf(least) + thick - 1;
      if (fill) this.paint(column, Math.min(first, zero), zero, area);
      this.paint(column, first, below, color, dash);
    }
  }
}

// Returns the first place from `start` on whose time is not before `time`, which is probably near.
/** @param {ArrayLike<number>} x @param {number} time @param {number} start */
function nextFrom(x, time, start) {
  let step = 1, low = start, high = start;
  while (high < x.length && x[high] < time) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, x.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
