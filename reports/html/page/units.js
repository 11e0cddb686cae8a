// @ts-check
// Quantities as text, as analyzer/units.py shows them: a value is rounded to three digits before its unit is chosen. All
// programs are held to tests/analyzer/units.tsv.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
/** @type {[number, string][]} */
const DURATIONS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

/** @param {number | null | undefined} value @returns {value is number} */
const isNumber = (value) => value !== null && value !== undefined && Number.isFinite(value);
/** @param {number} number */
const withCommas = (number) => number.toLocaleString("en", { maximumFractionDigits: 0 });
// Returns size / unit, rounded to decimal places, without the point; halves are rounded up.
/** @param {number} size @param {number} unit @param {number} places */
const rounded = (size, unit, places) => Math.floor((size * 10 ** places) / unit + 0.5);

/** @param {number} value @param {number} unit */
function threeDigits(value, unit) {
  const size = Math.abs(value), places = [2, 1].find((count) => rounded(size, unit, count) < 1000) ?? 0;
  const number = rounded(size, unit, places), fraction = number % 10 ** places;
  const decimals = fraction ? `.${String(fraction).padStart(places, "0")}` : "";
  return `${value < 0 && number ? "−" : ""}${withCommas(Math.floor(number / 10 ** places))}${decimals}`;
}

// Returns a value in the first unit in which its rounded number is below 1000, else in the last one.
/** @param {number} value @param {[number, string][]} units */
function quantity(value, units) {
  const [unit, name] = units.find(([size]) => rounded(Math.abs(value), size, 0) < 1000) ?? units[units.length - 1];
  return `${threeDigits(value, unit)} ${name}`;
}

/** @param {number | null | undefined} value @param {string} unit */
export const prefixed = (value, unit) => (isNumber(value) ? quantity(value, PREFIXES.map((prefix, power) => /** @type {[number, string]} */ ([1000 ** power, prefix + unit]))) : "–");

// Returns a duration in ns as text; minutes and hours from 1000 s.
/** @param {number | null | undefined} ns */
export function duration(ns) {
  if (!isNumber(ns)) return "–";
  const seconds = rounded(Math.abs(ns), 1e9, 0), minutes = rounded(Math.abs(ns), 60e9, 0), sign = ns < 0 ? "−" : "";
  /** @param {number} number */
  const twoDigits = (number) => String(number % 60).padStart(2, "0");
  if (seconds < 1000) return quantity(ns, DURATIONS);
  return seconds < 3600 ? `${sign}${Math.floor(seconds / 60)} min ${twoDigits(seconds)} s` : `${sign}${withCommas(Math.floor(minutes / 60))} h ${twoDigits(minutes)} min`;
}

/** @param {number | null | undefined} value */
export const whole = (value) => (isNumber(value) ? withCommas(value).replace("-", value ? "−" : "") : "–");

/** @param {number} from @param {number} to */
export const momentText = (from, to) => {
  const places = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(Math.max(to - from, 1e-9)))));
  const texts = [from, to].map((value) => value.toFixed(to > from ? places : 3));
  return texts[0] === texts[1] ? `${texts[0]} s` : `${texts[0]}–${texts[1]} s`;
};
