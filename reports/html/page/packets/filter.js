// @ts-check
// The filter of the packet list, as a reader types it: words that must all be true of a packet.
//
// A word compares a column (len>1000, time<2.5, frame=7), is an arrow (→ or ->), or is searched in verdict, flags and decoded frame. A
// minus excludes, and quotes keep spaces together.

/** @type {Record<string, string>} */
const COLUMNS_TYPED = {
  frame: "frame", time: "time", seq: "sequence", len: "size", ack: "ack", win: "window", window: "window", rtt: "rtt", ip: "ip", number: "number",
  "frame.number": "frame", "frame.time_relative": "time", "tcp.len": "size", "tcp.window_size": "window", "ip.len": "ip", "rtp.seq": "number",
};
/** @type {Record<string, (a: number, b: number) => boolean>} */
const COMPARED = { "=": (a, b) => a === b, "==": (a, b) => a === b, "!=": (a, b) => a !== b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b };
/** @type {Record<string, number>} */
const ARROW_SIDES = { "→": 0, "->": 0, "←": 1, "<-": 1 };
const WORD = /(→|->|←|<-)|([-!])?(?:"([^"]*)"?|([a-z][a-z_.]*)\s*(==|!=|>=|<=|=|>|<)\s*([^\s"]+)|(\S+))/giu;
const FILTER_LETTERS = 500, TIME_GRAIN = 5e-7; // of a filter; s, half of the last digit of a time in the list

// Returns the tests of a filter, those of numbers first because they are the fastest, and what is wrong with it, or "".
/** @param {string} text @returns {{ tests: PacketTest[], wrong: string }} */
export function parsedFilter(text) {
  /** @type {PacketTest[]} */
  const tests = [];
  let wrong = "";
  for (const [word, arrow, minus, quoted, field, sign, amount, letters] of text.slice(0, FILTER_LETTERS).matchAll(WORD)) {
    const without = Boolean(minus), column = field && COLUMNS_TYPED[field.toLowerCase()];
    if (arrow) tests.push({ kind: "side", side: ARROW_SIDES[arrow], without: false });
    else if (column && Object.hasOwn(COLUMNS_TYPED, field.toLowerCase())) {
      const number = Number(amount.replaceAll(",", ""));
      if (Number.isNaN(number)) wrong ||= `${field}${sign} needs a number`;
      tests.push({ kind: "number", column, sign, number, without });
    } else {
      const sought = (quoted ?? letters ?? word.replace(/^[-!]/, "")).toLowerCase();
      if (sought) tests.push({ kind: "text", sought, without });
    }
  }
  return { tests: tests.sort((a, b) => Number(a.kind === "text") - Number(b.kind === "text")), wrong };
}

// Returns whether a packet passes all tests. Its numbers are null if they are not known: no comparison is true of them.
/** @param {PacketTest[]} tests @param {{ side: number, numberOf: (column: string) => number | null, text: () => string }} packet */
export function passes(tests, { side, numberOf, text }) {
  /** @type {string | null} */
  let searched = null;
  return tests.every((test) => {
    if (test.kind === "side") return test.side === side;
    if (test.kind === "text") return (searched ??= text().toLowerCase()).includes(test.sought) !== test.without;
    const number = numberOf(test.column);
    if (number === null) return false;
    const same = test.column === "time" && Math.abs(number - test.number) < TIME_GRAIN; // as the list shows it
    return COMPARED[test.sign](same ? test.number : number, test.number) !== test.without;
  });
}
