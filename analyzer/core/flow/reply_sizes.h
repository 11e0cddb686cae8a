/* SPDX-License-Identifier: Apache-2.0 */
/* Which datagrams of one end of a UDP flow the other one answers, by their size: a datagram is
 * answered if the next one of the flow comes from the other end. If this end sends again sooner
 * than the slowest answer came, it did not wait for one: the pieces of a message, or a stream. */
#ifndef WIRETALE_REPLY_SIZES_H
#define WIRETALE_REPLY_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct reply_sizes {
    int64_t sent_ns;    /* of the datagram that waits */
    int64_t slowest_ns; /* from a datagram to its answer */
    uint32_t answered;
    uint32_t unanswered;   /* others, except for the large ones */
    uint32_t large;        /* runs of unanswered ones that are larger than all answered ones */
    uint16_t waiting;      /* bytes of payload of the latest one, 0 if it is answered */
    uint16_t answered_max; /* bytes of payload */
    uint16_t large_min;    /* of the runs, 0 without one */
    bool in_run;           /* none was answered since the latest large one */
};

static inline void reply_sizes_answer(struct reply_sizes *sizes, int64_t now_ns) {
    if (!sizes->waiting)
        return;
    sizes->answered++;
    if (now_ns - sizes->sent_ns > sizes->slowest_ns)
        sizes->slowest_ns = now_ns - sizes->sent_ns;
    if (sizes->waiting > sizes->answered_max)
        sizes->answered_max = sizes->waiting;
    if (sizes->large_min && sizes->large_min <= sizes->answered_max) {
        sizes->unanswered += sizes->large; /* their size was not the reason */
        sizes->large = sizes->large_min = 0;
    }
    sizes->waiting = 0;
    sizes->in_run = false;
}

static inline void reply_sizes_send(struct reply_sizes *sizes, uint16_t payload, int64_t now_ns) {
    uint16_t before = sizes->waiting;
    int64_t waited_ns = now_ns - sizes->sent_ns;
    sizes->waiting = payload;
    sizes->sent_ns = now_ns;
    if (!before)
        return;
    if (before <= sizes->answered_max || waited_ns <= sizes->slowest_ns) {
        sizes->unanswered++;
        return;
    }
    sizes->large += !sizes->in_run;
    sizes->in_run = true;
    if (!sizes->large_min || before < sizes->large_min)
        sizes->large_min = before;
}

#endif
