// @ts-check
// The least and the greatest value of any run of points: a pyramid, of which each level has those of 16 entries of the level below.

const WIDTH = 16; // entries of a level for one of the next
/** @type {WeakMap<Points, Extremes>} */
const made = new WeakMap();

// Values that are not known (NaN) count for nothing: a run without a known value has the least Infinity.
export class Extremes {
  least = Infinity; // of the run that of() was asked for
  greatest = -Infinity;

  /** @param {ArrayLike<number>} low @param {ArrayLike<number>} high */
  constructor(low, high) {
    this.low = [low];
    this.high = [high];
    while (this.low[this.low.length - 1].length > WIDTH) {
      const below = this.low[this.low.length - 1], above = this.high[this.high.length - 1], size = Math.ceil(below.length / WIDTH);
      const least = new Float64Array(size).fill(Infinity), greatest = new Float64Array(size).fill(-Infinity);
      for (let i = 0; i < below.length; i++) {
        const place = Math.floor(i / WIDTH);
        if (below[i] < least[place]) least[place] = below[i];
        if (above[i] > greatest[place]) greatest[place] = above[i];
      }
      this.low.push(least);
      this.high.push(greatest);
    }
  }

  /** @param {number} level @param {number} i */
  #add(level, i) {
    if (this.low[level][i] < this.least) this.least = this.low[level][i];
    if (this.high[level][i] > this.greatest) this.greatest = this.high[level][i];
  }

  // Finds those of the points [start, end); they are then in `least` and `greatest`.
  /** @param {number} start @param {number} end */
  of(start, end) {
    this.least = Infinity;
    this.greatest = -Infinity;
    for (let level = 0; start < end; level++) {
      const top = level === this.low.length - 1;
      while (start < end && (top || start % WIDTH)) this.#add(level, start++);
      while (start < end && end % WIDTH) this.#add(level, --end);
      start /= WIDTH;
      end /= WIDTH;
    }
    return this;
  }
}

// Returns the pyramid of a series, which is made when it is first asked for; bars count with both ends.
/** @param {Points} source */
export function extremesOf(source) {
  const held = made.get(source) ?? new Extremes(source.y, source.y2 ?? source.y);
  made.set(source, held);
  return held;
}
