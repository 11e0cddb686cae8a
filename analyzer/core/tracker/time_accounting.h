/* SPDX-License-Identifier: Apache-2.0 */
/* What one direction of a connection waited for, over its life: its time from the first data to the
 * last, parted by cause as far as this capture point shows it (docs/findings.md, limits).
 *
 * Kept from LIMIT_PACKETS_LEAST packets on: small flows have no shares, and cost nothing.
 */
#ifndef WIRETALE_TCP_LIMIT_H
#define WIRETALE_TCP_LIMIT_H

#include "tcp/segment.h"

#define LIMIT_PACKETS_LEAST 8u

enum limit_cause {
    LIMIT_IDLE,        /* all was acknowledged, or the last segment was short: no data to send */
    LIMIT_DELAYED_ACK, /* a short segment waited for an acknowledgment that the receiver held */
    LIMIT_WINDOW,      /* the receiver's window was full or closed */
    LIMIT_RECOVERY,    /* a loss was being mended */
    LIMIT_TIMEOUT,     /* silence that ended with a retransmission by the timer */
    LIMIT_SLOW_START,  /* until what is in flight last doubled, before any loss */
    LIMIT_NETWORK,     /* data was on its way: the congestion window, or the path's rate */
    LIMIT_CAUSES
};

struct tcp_limit {
    int64_t ns[LIMIT_CAUSES];
    int64_t mark_ns;    /* parted up to here */
    int64_t doubled_ns; /* when the flight last doubled */
    int64_t doubled;    /* to what, bytes */
    int64_t held_ns;    /* how long the last acknowledgment was held, 0 when it was not */
    uint64_t timeouts;  /* of the stream's trouble, seen so far */
    uint8_t state;      /* enum limit_state */
    bool grown;         /* slow start is over */
    bool last_short;    /* the last segment ended what there was to send */
    bool turned;        /* the other end sent data since */
};

/* After the segment has been taken, with `flight` bytes of its direction in flight (-1: not known):
 * parts the time since the last one, in both directions. */
void limit_take(const struct step *step, int64_t flight);
/* Its memory, when the stream ends. */
void limit_free(struct tcp_stream *stream, struct allowance *allowance);

#endif
