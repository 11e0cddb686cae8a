// @ts-check
// The numbers that payloads carry (blocks, RTP and other numbered packets), by the packet that carries them, or with which they end.
import { tables } from "../../capture/tables.js";
import { data } from "../../plotly.js";
import { whole } from "../../units.js";

const NO_STREAM = 65535;
/** @type {{ of: BlockTable | null, blocks: Map<number, number> }} */
const numbered = { of: null, blocks: new Map() }; // rows of the table, by packet

/** @param {number} capture @param {number} frame */
export const packetKey = (capture, frame) => capture * 2 ** 40 + frame;

// Returns the words of a numbered payload: its number, and its verdict unless it came as it should.
/** @param {number} block */
export function numberText(block) {
  const b = tables.blocks, verdict = data.words.verdict[b.verdict[block]] || "";
  return `number ${whole(b.sequence[block])}${b.stream[block] < NO_STREAM ? ` of stream ${b.stream[block]}` : ""}${verdict && verdict !== "delivered" ? `, ${verdict.replaceAll("_", " ")}` : ""}`;
}

// Returns the row in the table of the payload that a packet carries; -1 if it is not numbered.
/** @param {number} capture @param {number} frame */
export function blockOfPacket(capture, frame) {
  const b = tables.blocks;
  if (numbered.of !== b) {
    Object.assign(numbered, { of: b, blocks: new Map() });
    for (let i = 0; i < b.last_frame.length; i++) if (!Number.isNaN(b.last_frame[i])) numbered.blocks.set(packetKey(b.capture[i], b.last_frame[i]), i);
  }
  return numbered.blocks.get(packetKey(capture, frame)) ?? -1;
}
