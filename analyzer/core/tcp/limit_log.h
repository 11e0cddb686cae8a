/* SPDX-License-Identifier: Apache-2.0 */
/* A direction's time by limiting factor as spans, for the table `limit_spans`. Kept only if
 * tcp_connection.spans_wanted is set, because it grows with the packets. */
#ifndef WIRETALE_LIMIT_LOG_H
#define WIRETALE_LIMIT_LOG_H

#include <stdbool.h>

#include "base/int64.h"
#include "base/pool.h"

#define MAX_LIMIT_SPANS 512u /* of a direction; more are put together (limit_log.c) */

/* Factors that limit a direction's throughput (tracker/time_accounting.c, docs/findings.md). */
enum limit_cause {
    LIMIT_IDLE,        /* all data was acknowledged, or the last segment was short */
    LIMIT_DELAYED_ACK, /* a short segment waited for the receiver's delayed-ACK timer */
    LIMIT_WINDOW,      /* the receive window was full or closed */
    LIMIT_RECOVERY,    /* recovering from loss */
    LIMIT_TIMEOUT,     /* idle until an RTO expired */
    LIMIT_SLOW_START,  /* until bytes in flight last doubled, before any loss */
    LIMIT_NETWORK,     /* data in flight: congestion window or path rate */
    LIMIT_CAUSES
};

/* After the kinds of enum limit_cause: the parts of LIMIT_IDLE that have columns of their own. */
enum span_kind { SPAN_WAITING = LIMIT_CAUSES, SPAN_SEND_BUFFER, SPAN_KINDS };

struct limit_span {
    int64_t start_ns, ns;
    uint8_t kind; /* enum limit_cause or span_kind */
    bool merged;  /* put together with others nearby */
};

struct limit_log {
    struct limit_span *spans; /* in order, but for the time before the accounting and RTOs */
    uint32_t count, room;
    bool incomplete; /* memory has run out */
};

/* Adds `ns` of a kind from `start_ns` on; nothing if `ns` is not above 0. */
void limit_log_add(struct limit_log *log, struct pool *pool, unsigned kind, int64_t start_ns,
                   int64_t ns);

/* Gives the newest `ns` of LIMIT_NETWORK another kind. */
void limit_log_move(struct limit_log *log, struct pool *pool, int64_t ns, unsigned kind);

/* Sorts the spans by time, and leaves at most MAX_LIMIT_SPANS. */
void limit_log_finish(struct limit_log *log);

void limit_log_free(struct limit_log *log, struct pool *pool);

#endif
