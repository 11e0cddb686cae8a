/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgments: rules V9 and V11 of docs/verdicts.md. */
#ifndef WIRETALE_ACKNOWLEDGMENT_H
#define WIRETALE_ACKNOWLEDGMENT_H

#include "tcp/segment.h"

/* Processes the acknowledgment number and SACK blocks of a segment with the ACK flag. Returns false
 * if a later ACK overtook it: then its window is outdated, too. `sender` and `receiver` must be
 * those of the context. */
bool process_ack(struct segment_context *seg, struct tcp_stream *sender,
                 struct tcp_stream *receiver, const struct tcp_header *tcp);

#endif
