// @ts-check
// Ticks at round values, and the unit in which they are told: those of all axes of the pages.
import { duration, whole } from "./units.js";

// Returns the least of 1, 2 and 5 times a power of ten that is not below a value.
/** @param {number} value */
export function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => step * power >= value * (1 - 1e-9)) ?? 10);
}

// Returns about `count` round values in a range.
/** @param {Span} range @param {number} count */
export function roundValues([low, high], count) {
  const step = roundStep((high - low) / count), values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) values.push(k * step || 0); // no −0
  return { step, values };
}

const TICK_LETTERS = 5; // for which there is room
/** @type {[number, number, string][]} */
const MS_SCALES = [[1e4, 1e3, "s"], [0, 1, "ms"]]; // from so many ms on
/** @type {[number, string][]} */
const SCALES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

// Returns those values that a panel can have: whole numbers from 0 on, or any time.
/** @param {{ unit: string }} panel @param {number[]} values */
function possibleValues({ unit }, values) {
  return unit === "ms" ? values : values.filter((value) => value >= 0 && Number.isInteger(Math.round(value * 1e6) / 1e6));
}

// Returns the ticks of a panel whose axis is logarithmic, and the unit that its head names.
/** @param {Span} range */
function logTicks(range) {
  const all = [];
  for (let power = Math.floor(range[0]); power <= range[1]; power++) for (const digit of [1, 2, 5]) all.push(digit * 10 ** power);
  const inside = all.filter((value) => Math.log10(value) >= range[0] && Math.log10(value) <= range[1]), tens = inside.filter((value) => Number.isInteger(Math.round(Math.log10(value) * 1e9) / 1e9));
  const tickvals = inside.length <= 4 ? inside : tens.length >= 2 ? tens.filter((_, i) => i % Math.ceil(tens.length / 4) === 0) : inside.filter((_, i) => i % 2 === 0);
  const [, scale, unit] = MS_SCALES.find(([least]) => (tickvals.at(-1) ?? 0) >= least) ?? MS_SCALES[1];
  const ticktext = tickvals.map((value) => String(Number((value / scale).toPrecision(3))));
  if (ticktext.every((text) => text.length <= TICK_LETTERS)) return { tickvals, ticktext, unit };
  return { tickvals, ticktext: tickvals.map((value) => duration(value * 1e6)), unit: "" }; // ms
}

// Returns the ticks of a panel of a height in px, and the unit that its head names.
/** @param {{ name: string, unit: string }} panel @param {Span} range @param {{ isLog: boolean, height: number }} drawn @returns {Ticks} */
export function valueTicks(panel, range, { isLog, height }) {
  if (panel.name === "parts") return { tickvals: [], ticktext: [], unit: "" };
  if (isLog) return logTicks(range);
  const { step, values } = roundValues(range, height > 150 ? 5 : 2.5), whole_ = possibleValues(panel, values);
  const most = Math.max(...whole_.map(Math.abs), 0), [, msScale, msUnit] = MS_SCALES.find(([least]) => most >= least) ?? MS_SCALES[1];
  /** @type {[number, string]} */
  const [scale, letter] = panel.unit === "ms" ? [msScale, ""] : (panel.unit && SCALES.find(([size]) => most >= size)) || [1, ""];
  const places = whole_.every((value) => Number.isInteger(value / scale)) ? 0 : Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  const unit = panel.unit === "ms" ? msUnit : panel.unit === "bytes" ? (letter ? `${letter}B` : "bytes") : `${letter}${panel.unit}`;
  return { tickvals: whole_, ticktext: whole_.map((value) => (panel.unit ? (value / scale).toFixed(Math.min(places, 9)) : whole(Math.round(value)))), unit };
}
