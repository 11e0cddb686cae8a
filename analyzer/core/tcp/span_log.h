/* SPDX-License-Identifier: Apache-2.0 */
/* A flow's account of time as spans, for the table `time_spans`. Kept only if they are wanted,
 * because it grows with the packets. */
#ifndef WIRETALE_SPAN_LOG_H
#define WIRETALE_SPAN_LOG_H

#include <stdbool.h>

#include "base/int64.h"
#include "base/pool.h"
#include "tcp/time_account.h"

#define MAX_TIME_SPANS 1024u /* of a flow; more are put together (span_log.c) */

struct time_span {
    int64_t start_ns, ns;
    uint8_t part;      /* enum time_part */
    uint8_t direction; /* of the data that was waited for, NO_DIRECTION without any */
    bool merged;       /* put together with others nearby */
};

struct span_log {
    struct time_span *spans; /* in order of time */
    uint32_t count, room;
    bool incomplete; /* memory has run out */
};

/* Adds `ns` of a part from `start_ns` on; nothing if `ns` is not above 0. */
void span_log_add(struct span_log *log, struct pool *pool, enum time_part part, unsigned direction,
                  int64_t start_ns, int64_t ns);

/* Gives `ns` of one part to another: a span of this very length if the time turns out to be idle,
 * else the newest ones. Only of this direction, unless it is NO_DIRECTION. */
void span_log_move(struct span_log *log, struct pool *pool, enum time_part from, enum time_part to,
                   unsigned direction, int64_t ns);

/* Leaves at most MAX_TIME_SPANS. */
void span_log_finish(struct span_log *log);

/* NULL is allowed. */
void span_log_free(struct span_log *log, struct pool *pool);

#endif
