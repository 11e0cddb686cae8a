// @ts-check
// The stream of the chosen flow and range: the payloads that the page or, if it is served, the capture holds, as text or hex. All of it is
// set as text, never as HTML.
import { answerTo, fetchedRange } from "../capture/source.js";
import { tables } from "../capture/tables.js";
import { element, targetOf } from "../elements.js";
import { choice, choose, chosenFlow, turned } from "../link.js";
import { NO_PORT, endOf, knownWord } from "../list/flows.js";
import { KNOWN, loadPackets } from "../numbers.js";
import { heldFrames } from "../packets/frame.js";
import { $, data, inflate } from "../plotly.js";
import { whole } from "../units.js";
import { assembled } from "./assemble.js";
import { payloadStart, shownHex, shownText } from "./payload.js";

const PACKETS_READ = 20_000, BYTES_SHOWN = 65_536, PIECES_SHOWN = 2_000, LINE = 18; // px
const STREAM_HEX = "stream:hex"; // in the link
const streamAsked = { ticket: 0, text: "" };
const isHex = () => choice.toggled.includes(STREAM_HEX);

// Returns the segments of packets with payload, of whose frames `bytesOf` returns the bytes.
/** @param {Packets} p @param {ArrayLike<number>} rows @param {(i: number) => Uint8Array | null} bytesOf @returns {Segment[]} */
function payloadSegments(p, rows, bytesOf) {
  const row = tables.flows.rowOf(chosenFlow()), protocol = knownWord("protocol", row), f = tables.flows;
  const ports = /** @type {Span} */ ([f.source_port[row], f.destination_port[row]].map((port) => (port === NO_PORT ? -1 : port)));
  return Array.from(rows).flatMap((i) => {
    const held = bytesOf(i), start = held ? payloadStart(held, { ip: p.ip[i], size: p.size[i], ports, protocol }) : -1;
    const bytes = held && start >= 0 ? held.subarray(start, start + p.size[i]) : null, from = p.known[i] & KNOWN.sequence ? p.sequence[i] : 0;
    const known = bytes ? bytes.length : 0, segment = { side: p.who[i] % 2, time: p.time[i], frame: p.frame[i] };
    return [...(known ? [{ ...segment, from, size: known, bytes }] : []), ...(known < p.size[i] ? [{ ...segment, from: from + known, size: p.size[i] - known, bytes: null }] : [])];
  });
}

// Returns the segments of the chosen flow and range: of a served page with the bytes that the capture has, else of the frames in the page.
/** @param {Uint32Array} rows @returns {Promise<{ segments: Segment[], of: number } | null>} */
async function takeSegments(rows) {
  if (!data.served) {
    const carrying = rows.filter((i) => tables.packets.size[i] > 0), frames = await heldFrames();
    return { segments: payloadSegments(tables.packets, carrying.subarray(0, PACKETS_READ), (i) => frames(tables.packets.capture[i], tables.packets.frame[i])), of: Math.max(0, carrying.length - PACKETS_READ) };
  }
  const answer = await answerTo("stream", { flow: chosenFlow(), ...fetchedRange(chosenFlow()) });
  if (!answer) return null;
  const p = await loadPackets(answer), bytes = answer.bytes ? new Uint8Array(await inflate(answer.bytes)) : new Uint8Array();
  let at = 0;
  const places = /** @type {number[]} */ (answer.kept).map((kept) => [at, (at += kept)]);
  return { segments: payloadSegments(p, Uint32Array.from(p.time.keys()), (i) => (places[i][1] > places[i][0] ? bytes.subarray(...places[i]) : null)), of: answer.of - answer.count };
}

/** @param {Piece} piece */
function gapText({ kind, size }) {
  const bytes = `${whole(size)} ${size === 1 ? "byte" : "bytes"}`;
  if (kind === "gap") return `[${bytes} not captured]`;
  return `[${bytes} ${data.served ? "cut off in the capture" : "not in the page"}]`;
}

/** @param {Piece} piece @param {TextDecoder} decoder */
function pieceElement(piece, decoder) {
  const { kind, bytes, frame, from } = piece, text = bytes ? (isHex() ? shownHex(bytes, from) : shownText(bytes, decoder)) : gapText(piece);
  const made = element("span", { className: kind === "bytes" ? "" : "stream-gap", textContent: text, title: frame === null ? "" : `frame ${frame}` });
  if (frame !== null) made.dataset.frame = String(frame);
  if (frame !== null && frame === choice.frame) made.className += " chosen";
  return made;
}

// Draws pieces, those of a direction that follow each other in one block; returns how many bytes were left out.
/** @param {Piece[]} pieces @param {boolean} isStream */
function drawPieces(pieces, isStream) {
  const place = $("stream"), row = tables.flows.rowOf(chosenFlow());
  let left = BYTES_SHOWN, block = /** @type {HTMLElement | null} */ (null), decoder = new TextDecoder(), side = -1, dropped = 0;
  place.replaceChildren();
  for (const [k, piece] of pieces.entries()) {
    if (k >= PIECES_SHOWN || left <= 0) {
      dropped += piece.size;
      continue;
    }
    if (!block || piece.side !== side || !isStream) {
      ({ side } = piece);
      decoder = new TextDecoder();
      block = element("pre", { className: side ? "returned" : "sent" });
      block.setAttribute("aria-label", side ? `from ${endOf(row, "destination")}` : `from ${endOf(row, "source")}`);
      place.append(block);
    }
    const bytes = piece.bytes && piece.bytes.subarray(0, left), shown = bytes ? { ...piece, bytes, size: bytes.length } : piece;
    if (bytes) [left, dropped] = [left - bytes.length, dropped + piece.size - bytes.length];
    block.append(pieceElement(shown, decoder));
  }
  if (dropped) place.append(element("p", { className: "note", textContent: `${whole(dropped)} further bytes are not shown: choose a range.` }));
}

// Draws the stream of some packets. Returns what is said of it.
/** @param {Uint32Array} rows */
export async function showStream(rows) {
  const ticket = ++streamAsked.ticket;
  $("stream-hex").setAttribute("aria-pressed", String(isHex()));
  const taken = await takeSegments(rows);
  if (ticket !== streamAsked.ticket) return streamAsked.text; // another choice was made meanwhile
  if (!taken) return (streamAsked.text = "");
  const row = tables.flows.rowOf(chosenFlow()), isStream = knownWord("protocol", row) === "tcp", pieces = assembled(taken.segments, isStream, choice.range ? null : 0);
  drawPieces(pieces, isStream);
  const chosen = $("stream").querySelector(".chosen"), { scrollTop, clientHeight } = $("stream");
  if (chosen && (chosen.offsetTop < scrollTop || chosen.offsetTop > scrollTop + clientHeight - LINE)) $("stream").scrollTop = chosen.offsetTop - LINE;
  const held = pieces.reduce((sum, { kind, size }) => sum + (kind === "bytes" ? size : 0), 0), all = pieces.reduce((sum, { size }) => sum + size, 0);
  const more = taken.of > 0 ? `; ${whole(taken.of)} further packets are not read` : "";
  streamAsked.text = all ? `${whole(held)} of ${whole(all)} bytes ${data.served ? "in the capture" : "in the page"}${more}` : "No payload";
  return streamAsked.text;
}

export function listenStream() {
  $("stream").addEventListener("click", (event) => {
    const piece = targetOf(event).closest("[data-frame]");
    if (piece && !getSelection()?.toString()) choose({ frame: Number(piece.dataset.frame) });
  });
  $("stream-hex").addEventListener("click", () => choose({ toggled: turned(STREAM_HEX) }));
}
