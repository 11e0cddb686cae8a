// @ts-check
// The payload in the bytes of a frame, and bytes as text and hex. Whatever a capture holds, its text cannot act or disturb: letters that
// control, hide or turn others are dots.

const TCP_HEADER = 20, TCP_HEADER_MOST = 60, UDP_HEADER = 8, IPV4_HEADER = 20, IPV6_HEADER = 40;
const HIDING = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\ufffd]/gu; // controls, formats, surrogates, private and unassigned letters
const MARKS = /(\p{M}{3})\p{M}+/gu; // accents upon accents

/** @param {Uint8Array} bytes @param {number} at */
const twoBytes = (bytes, at) => bytes[at] * 256 + bytes[at + 1];

// Returns whether a transport header with these ports ends where the payload begins.
/** @param {Uint8Array} bytes @param {number} at @param {SoughtPayload} packet */
function hasHeaderBefore(bytes, at, { size, ports, protocol }) {
  /** @param {number} from */
  const hasPorts = (from) => from >= 0 && ((twoBytes(bytes, from) === ports[0] && twoBytes(bytes, from + 2) === ports[1]) || (twoBytes(bytes, from) === ports[1] && twoBytes(bytes, from + 2) === ports[0]));
  if (protocol === "udp") return hasPorts(at - UDP_HEADER) && twoBytes(bytes, at - UDP_HEADER + 4) === size + UDP_HEADER;
  if (protocol !== "tcp") return false;
  for (let header = TCP_HEADER; header <= TCP_HEADER_MOST; header += 4) if (hasPorts(at - header) && bytes[at - header + 12] >> 4 === header / 4) return true;
  return false;
}

// Returns where the payload of a packet begins in the bytes of its frame: the innermost IP packet of its length, whose transport header has
// its ports, ends with it. -1 if there is none, as in a fragment.
/** @param {Uint8Array} bytes @param {SoughtPayload} packet */
export function payloadStart(bytes, packet) {
  const { ip, size } = packet;
  for (let at = bytes.length - IPV4_HEADER; at >= 0; at--) {
    const version = bytes[at] >> 4, begin = at + ip - size;
    if (begin > bytes.length || (version !== 4 && version !== 6)) continue;
    const length = version === 4 ? twoBytes(bytes, at + 2) : at + IPV6_HEADER <= bytes.length ? twoBytes(bytes, at + 4) + IPV6_HEADER : NaN;
    const isOffloaded = length === (version === 4 ? 0 : IPV6_HEADER); // the card was to fill it in
    if ((length === ip || isOffloaded) && hasHeaderBefore(bytes, begin, packet)) return begin;
  }
  return -1;
}

// Returns bytes as text. A letter that goes on in the next bytes is kept by the decoder until then.
/** @param {Uint8Array} bytes @param {TextDecoder} [decoder] */
export function shownText(bytes, decoder) {
  const text = decoder ? decoder.decode(bytes, { stream: true }) : new TextDecoder().decode(bytes);
  return text.replace(/\r\n/g, "\n").replace(HIDING, "·").replace(MARKS, "$1·");
}

const HEX_BYTES = 16; // in a row

// Returns bytes as rows of hex and ASCII, each with its position in the stream.
/** @param {Uint8Array} bytes @param {number} from */
export function shownHex(bytes, from) {
  const rows = [];
  for (let at = 0; at < bytes.length; at += HEX_BYTES) {
    const row = [...bytes.subarray(at, at + HEX_BYTES)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" "), letters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    rows.push(`${String(from + at).padStart(8)}  ${hex.padEnd(3 * HEX_BYTES)} ${letters}\n`);
  }
  return rows.join("");
}
