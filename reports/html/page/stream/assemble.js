// @ts-check
// The stream of a flow, put together from the payloads that a capture holds: bytes in their order, each once, and what is missing between.

// Returns the pieces of segments in a range of a stream, each byte once, from the earliest copy, and the ranges that no segment covers.
/** @param {Segment[]} segments @param {number} begin @param {number} end */
function covered(segments, begin, end) {
  /** @type {Segment[]} */
  const pieces = []; // ascending
  for (const one of [...segments].sort((a, b) => a.time - b.time)) {
    const to = Math.min(one.from + one.size, end);
    let at = Math.max(one.from, begin), place = pieces.length;
    while (place && pieces[place - 1].from + pieces[place - 1].size > at) place--;
    while (at < to) {
      const next = pieces[place], until = next ? Math.min(to, next.from) : to;
      if (until > at) pieces.splice(place++, 0, { ...one, from: at, size: until - at, bytes: one.bytes && one.bytes.subarray(at - one.from, until - one.from) });
      at = next ? next.from + next.size : to;
      place++;
    }
  }
  const holes = [];
  let at = begin;
  for (const { from, size } of pieces) {
    if (from > at) holes.push([at, from]);
    at = from + size;
  }
  if (at < end) holes.push([at, end]);
  return { pieces, holes };
}

// Returns one direction of a stream: bytes that the page has, else the segment that had them, else a gap in the capture. A piece is at the
// time at which all before it had come.
/** @param {Segment[]} segments @param {number | null} begin @returns {Piece[]} */
function deliveredPieces(segments, begin) {
  if (!segments.length) return [];
  const first = begin ?? segments.reduce((least, { from }) => Math.min(least, from), Infinity), last = segments.reduce((most, { from, size }) => Math.max(most, from + size), -Infinity);
  const held = covered(segments.filter(({ bytes }) => bytes), first, last), without = segments.filter(({ bytes }) => !bytes).sort((a, b) => a.from - b.from);
  /** @type {Piece[]} */
  const pieces = held.pieces.map((one) => ({ ...one, kind: "bytes" }));
  let next = 0;
  for (const [from, to] of held.holes) {
    while (next < without.length && without[next].from + without[next].size <= from) next++;
    const near = [];
    for (let k = next; k < without.length && without[k].from < to; k++) near.push(without[k]);
    const { pieces: known, holes } = covered(near, from, to);
    pieces.push(...known.map((one) => /** @type {Piece} */ ({ ...one, kind: "elsewhere" })), ...holes.map(([at, end]) => /** @type {Piece} */ ({ side: segments[0].side, from: at, size: end - at, time: -Infinity, frame: null, bytes: null, kind: "gap" })));
  }
  pieces.sort((a, b) => a.from - b.from);
  let time = -Infinity;
  for (const piece of pieces) piece.time = time = Math.max(time, piece.time);
  for (let k = pieces.length - 2; k >= 0; k--) if (pieces[k].kind === "gap") pieces[k].time = pieces[k + 1].time; // before what comes after it
  return pieces;
}

// Returns the pieces of both directions as they were delivered; those that the page lacks are joined. `isStream` is whether positions order
// them; else each payload stands for itself. `begin` is the first position of both directions, null if it is that of the first segment.
/** @param {Segment[]} segments @param {boolean} isStream @param {number | null} begin */
export function assembled(segments, isStream, begin) {
  /** @type {Piece[]} */
  const pieces = isStream ? [0, 1].flatMap((side) => deliveredPieces(segments.filter((one) => one.side === side), begin)) : segments.map((one) => ({ ...one, kind: one.bytes ? "bytes" : "elsewhere" }));
  const order = pieces.map((piece, k) => ({ piece, k })).sort((a, b) => a.piece.time - b.piece.time || a.k - b.k);
  /** @type {Piece[]} */
  const joined = [];
  for (const { piece } of order) {
    const last = joined.at(-1);
    if (last && piece.kind !== "bytes" && last.kind === piece.kind && last.side === piece.side) joined[joined.length - 1] = { ...last, size: last.size + piece.size };
    else joined.push(piece);
  }
  return joined;
}
