/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, resetting and the state of a connection. */
#ifndef WIRETALE_CONNECTION_STATE_H
#define WIRETALE_CONNECTION_STATE_H

#include "tcp/segment.h"

/* Returns true if the segment, sent in `direction`, opens a new connection on the same addresses
 * and ports. */
bool starts_new_connection(const struct tcp_connection *connection, unsigned direction,
                           const struct tcp_header *tcp);

/* Returns the state that the connection reached (enum word). */
int connection_state(const struct tcp_connection *connection);

/* Processes a SYN or SYN-ACK. */
void take_syn(struct segment_context *seg, const struct tcp_header *tcp);

/* Processes an ACK before the handshake is complete: the initiator's first one completes it. */
void complete_handshake(struct segment_context *seg, const struct tcp_header *tcp);

/* Processes a RST. */
void take_reset(struct segment_context *seg);

#endif
