// @ts-check
// The tables of the page, and its packets: decoded once, and extended by source.js if the page is served.
import { data } from "../plotly.js";

export const NS = 1e9; // in a second
export const tables = /** @type {Tables} */ ({}); // filled before any part draws
/** @param {Partial<Tables>} change */
export const holdTables = (change) => Object.assign(tables, change);

// What came from `wiretale view`: by flow its packets and for which question, the flows with all tables, and the packets of the chosen range
// with the number of packets for which some stand.
export const fetched = { of: 0, bucket: 1, held: /** @type {Map<number, FetchedPackets>} */ (new Map()), flows: new Set(data.whole_flows) };
/** @param {Partial<typeof fetched>} change */
export const holdFetched = (change) => Object.assign(fetched, change);

// Returns the packets of a flow that the page holds, with their rows by direction; null if it has none. `begin` is the time of its
// first packet if it is known, and `bucket` the number of packets for which some stand.
/** @param {number} flow @returns {HeldPackets | null} */
export function packetsOfFlow(flow) {
  const own = fetched.held.get(flow), p = data.served ? own?.packets : tables.packets;
  const place = p?.places.get(flow);
  if (!p || place === undefined) return null;
  const rows = [p.rows(2 * place), p.rows(2 * place + 1)];
  const firsts = rows.filter((side) => side.length).map((side) => p.time[side[0]]);
  return { p, rows, bucket: own?.bucket ?? 1, begin: own ? own.begin : firsts.length ? Math.min(...firsts) : null };
}

// Returns whether the page lacks packets of a flow in view: it has the first ones, or some of each bucket.
/** @param {Flow} f @param {HeldPackets} held */
export function isCutOf(f, { rows, bucket }) {
  return rows[0].length + rows[1].length < f.packets && (data.packets.cut || (data.served && bucket > 1));
}
