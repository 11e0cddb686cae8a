/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a transfer, after the handshake. A receiver is the end that receives a direction.
 *
 *     line      from               fields
 *     port      receiver           way, stream, port: of a UDP socket; before "start"
 *     lines     end that asks      list: of a pattern, SIZE:GAP,...; before "start"
 *     clock     initiator, other   sent_ns; the answer adds received_ns, replied_ns, host
 *     offset    initiator          offset of the clocks: before "start", and before "end" or "done"
 *     progress  both, every 1 s; every 100 ms from an initiator that receives datagrams
 *     refused   end that was asked text: it does not run the test; before the start
 *     stop      both               reason, text: senders must stop and report
 *     sent      sender of a way    way, stream and counts: one line for each stream
 *     end       sender of a way    way, checksum, drops of its host: all blocks are sent
 *     received  receiver of a way  way, stream and counts: one line for each stream
 *     done      receiver of a way  the same: all blocks that will arrive have arrived
 *
 * The field "way" is the direction. Nothing in the data path marks its end; "end" does. */
#ifndef WIRETALE_EXCHANGE_LINES_H
#define WIRETALE_EXCHANGE_LINES_H

#include "transfer/transfer.h"

/* All lines of a pattern must arrive within this time. */
#define LINES_NS (60 * NS_PER_S)

/* Applies a line of the peer. Returns NULL, or the reason why it is wrong at this time. */
const char *exchange_take_line(struct transfer *transfer, const char *line);
/* Stores why the peer took no more lines before the start: its refusal may not have been read. */
void exchange_explain_end(struct transfer *transfer, char error[ERROR_SIZE]);

/* Each returns false if the peer did not take the lines within a second. */

/* Sends the offset of the clocks to the end that was asked. */
bool exchange_send_clock(struct transfer *transfer);

/* Sends the own report of each stream of a direction, then "end" or "done". */
bool exchange_send_reports(struct transfer *transfer, struct direction *direction);
bool exchange_send_stop(struct transfer *transfer, const char *reason);
/* UDP: binds a socket for each stream of a direction that this end receives, and announces the
 * ports. Sets `error` if that fails. Does nothing over TCP or if the direction is not active. */
bool exchange_bind_udp(struct transfer *transfer, enum direction_name name, char error[ERROR_SIZE]);
/* Sends the lines of a pattern if the peer is to send by it. Returns false if they did not arrive
 * within LINES_NS. */
bool exchange_send_lines(struct transfer *transfer);
/* UDP: connects a socket for each stream of a direction that this end sends to the port that the
 * peer announced. */
bool exchange_connect_udp(struct transfer *transfer, enum direction_name name,
                          char error[ERROR_SIZE]);

#endif
