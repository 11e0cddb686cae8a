/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a transfer, after the handshake. A receiver is the end that receives a direction.
 *
 *     line      from               fields
 *     port      receiver           way, stream, port: of a UDP socket; before "start"
 *     progress  both, every 1 s
 *     stop      both               reason, text: senders must stop and report
 *     sent      sender of a way    way, stream and counts: one line for each stream
 *     end       sender of a way    way, checksum: all blocks are sent and reported
 *     received  receiver of a way  way, stream and counts: one line for each stream
 *     done      receiver of a way  way, checksum: all blocks that will arrive have arrived
 *
 * The field "way" is the direction. Nothing in the data path marks its end; "end" does. */
#ifndef WIRETALE_EXCHANGE_LINES_H
#define WIRETALE_EXCHANGE_LINES_H

#include "transfer/transfer.h"

/* Applies a line of the peer. Returns NULL, or the reason why it is wrong at this time. */
const char *exchange_take_line(struct transfer *transfer, const char *line);

/* Each returns false if the peer did not take the lines within a second. */

/* Sends the own report of each stream of a direction, then "end" or "done". */
bool exchange_send_reports(struct transfer *transfer, struct direction *direction);
bool exchange_send_stop(struct transfer *transfer, const char *reason);
/* UDP: binds a socket for each stream of a direction that this end receives, and announces the
 * ports. Sets `error` if that fails. Does nothing over TCP or if the direction is not active. */
bool exchange_bind_udp(struct transfer *transfer, enum direction_name name, char error[ERROR_SIZE]);
/* UDP: connects a socket for each stream of a direction that this end sends to the port that the
 * peer announced. */
bool exchange_connect_udp(struct transfer *transfer, enum direction_name name,
                          char error[ERROR_SIZE]);

#endif
