// @ts-check
// The messages between hosts: a request or a response is one message, however many packets it has. Packets that say something of their
// own (SYN, FIN, RST, a verdict) stay apart. Of flows whose packets the page lacks, exchanges give the messages.
import { NS } from "../capture/tables.js";
import { KNOWN } from "../numbers.js";

const MESSAGE_ENDS = 0.2; // seconds without a packet of the flow, after which a message has ended
export const ENDING_FLAGS = 7; // FIN, SYN, RST

/** @param {Packets} p @param {number} i */
const isPureAck = (p, i) => (p.known[i] & KNOWN.ack) !== 0 && !p.size[i];

// Returns whether a packet belongs to the last message of its flow: further data, or ACKs of either direction between them.
/** @param {Packets} p @param {number} i @param {Message} last */
function continues(p, i, last) {
  if (last.isAlone || p.time[i] - last.to > MESSAGE_ENDS) return false;
  const own = p.who[i] % 2 === last.side;
  return last.isAck ? own && isPureAck(p, i) : own || isPureAck(p, i);
}

// Returns the messages of packets, whose rows are in order of time, with whether all are among them. A packet that `isAlone` is a message of
// its own, and one that `begins` a message is its first. `flows` has the number of the flow of each place.
/** @param {Packets} p @param {ArrayLike<number>} rows @param {number[]} flows @param {{ isAlone: (i: number) => boolean, begins: (i: number) => boolean, most: number }} rules */
export function messagesOf(p, rows, flows, { isAlone, begins, most }) {
  /** @type {Message[]} */
  const messages = [];
  /** @type {Map<number, Message>} */
  const lasts = new Map(); // by the place of the flow
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k], place = p.who[i] >> 1, last = lasts.get(place), alone = (p.known[i] & KNOWN.flags && p.flags[i] & ENDING_FLAGS) !== 0 || isAlone(i);
    if (last && !alone && !begins(i) && continues(p, i, last)) {
      last.to = p.time[i];
      last.row = i;
      last.bytes += p.size[i];
      if (p.who[i] % 2 !== last.side) continue;
      last.packets++;
      last.sent = p.time[i];
      continue;
    }
    if (messages.length === most) return { messages, isCut: true };
    const message = { flow: flows[place], side: p.who[i] % 2, from: p.time[i], to: p.time[i], sent: p.time[i], capture: p.capture[i], frame: p.frame[i], first: i, row: i, packets: 1, bytes: p.size[i], isAck: isPureAck(p, i), isAlone: alone };
    lasts.set(place, message);
    messages.push(message);
  }
  return { messages, isCut: false };
}

// Returns the messages of the exchanges of flows without packets in the page: each request, and its answer if it has a frame.
/** @param {ExchangeRow[]} rows @param {Set<number>} flows @returns {Message[]} */
export function messagesOfExchanges(rows, flows) {
  return rows.filter(({ flow, frame }) => flow !== undefined && frame !== undefined && flows.has(flow)).flatMap((row) => {
    const asked = (row.asked ?? 0) / NS, answered = asked + (row.waited ?? 0) / NS;
    const message = { flow: row.flow ?? -1, capture: row.capture ?? 0, first: -1, row: -1, packets: 0, isAck: false, isAlone: true };
    const request = { ...message, side: 0, from: asked, to: asked, sent: asked, frame: row.frame ?? 0, bytes: 0 };
    return row.answered === undefined ? [request] : [request, { ...message, side: 1, from: answered, to: answered, sent: answered, frame: row.answered, bytes: row.response_bytes ?? 0 }];
  });
}

// Returns the columns of the ladder: the client, then the other ends of messages in order of their first one. If they are more than `most`,
// those with the most messages have a column, and the last one is for all others. `always` are client and server of the chosen flow.
/** @param {Message[]} messages @param {(message: Message) => [string, string]} endsOf @param {string[]} always @param {number} most */
export function columnsOfHosts(messages, endsOf, always, most) {
  /** @type {Map<string, number>} */
  const counts = new Map([[always[0], 0]]);
  for (const message of messages) for (const host of endsOf(message)) counts.set(host, (counts.get(host) ?? 0) + 1);
  for (const host of always) counts.set(host, Infinity);
  const hosts = [...counts.keys()];
  if (hosts.length <= most) return { hosts, others: 0 };
  const large = new Set([...hosts].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || 0).slice(0, most - 1));
  return { hosts: hosts.filter((host) => large.has(host)), others: hosts.length - large.size };
}
