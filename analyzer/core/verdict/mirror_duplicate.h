/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a copy that came at once is the capture's own (two mirror ports, or both directions of
 * one), or may be the network's. */
#ifndef WIRETALE_TCP_MIRROR_H
#define WIRETALE_TCP_MIRROR_H

#include "tcp/segment.h"

/* Of a copy at the port where its packet had come, with the same TTL: whether the receiver would
 * report that it got [start, end) twice. */
enum copy_doubt mirror_doubt(const struct step *step, int64_t start, int64_t end);

/* Whether so many of the direction's packets were stored twice as only a mirror does. */
bool mirror_is_throughout(const struct tcp_trouble *trouble, uint64_t packets);

/* Whether a mirror is at work, as far as the conversation has come: single copies are the network's
 * as well. */
bool mirror_is_likely(const struct flow *flow);

/* Whether a copy taken for the mirror's may be the network's. */
bool mirror_may_be_none(const struct tcp_stream *stream, const struct judged *copy);
/* It is counted as unknown from now on. */
void mirror_give_up(struct tcp_trouble *trouble, struct judged *copy);

/* When the conversation is over: takes what may be the network's out of the mirror's copies, and
 * calls `unknown` for each. */
typedef void mirror_unknown(void *context, const struct judged *copy);
void mirror_settle(struct tcp_stream *stream, uint64_t packets, mirror_unknown *unknown,
                   void *context);

#endif
