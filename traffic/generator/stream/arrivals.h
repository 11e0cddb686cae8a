/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks of a stream came, in bounded memory: the newest ARRIVALS_WINDOW sequence numbers
 * are known one by one. */
#ifndef WIRETALE_ARRIVALS_H
#define WIRETALE_ARRIVALS_H

#include <stdint.h>
#include <string.h>

#define ARRIVALS_WINDOW (UINT64_C(1) << 20) /* blocks: 128 KiB of bits */

enum arrival { ARRIVAL_NEW, ARRIVAL_OUT_OF_ORDER, ARRIVAL_DUPLICATE, ARRIVAL_LATE };

struct arrivals {
    uint64_t next;         /* above the highest seen */
    uint64_t distinct;     /* blocks that came, each counted once */
    uint64_t out_of_order; /* RFC 4737: below the highest seen */
    uint64_t duplicate;
    uint64_t late; /* older than the window: first or second copy, nobody knows */
    uint64_t bits[ARRIVALS_WINDOW / 64];
};

/* [from, to) is not seen yet; what was there is of a window ago. */
static inline void arrivals_forget(struct arrivals *arrivals, uint64_t from, uint64_t to) {
    if (to - from >= ARRIVALS_WINDOW) {
        memset(arrivals->bits, 0, sizeof arrivals->bits);
        return;
    }
    for (; from < to; from++)
        arrivals->bits[from % ARRIVALS_WINDOW / 64] &= ~(UINT64_C(1) << from % 64);
}

static inline enum arrival arrivals_take(struct arrivals *arrivals, uint64_t sequence) {
    uint64_t *word = &arrivals->bits[sequence % ARRIVALS_WINDOW / 64];
    uint64_t bit = UINT64_C(1) << sequence % 64;
    if (sequence >= arrivals->next) {
        arrivals_forget(arrivals, arrivals->next, sequence);
        *word |= bit;
        arrivals->next = sequence + 1;
        arrivals->distinct++;
        return ARRIVAL_NEW;
    }
    if (arrivals->next - sequence > ARRIVALS_WINDOW) {
        arrivals->late++;
        return ARRIVAL_LATE;
    }
    if (*word & bit) {
        arrivals->duplicate++;
        return ARRIVAL_DUPLICATE;
    }
    *word |= bit;
    arrivals->distinct++;
    arrivals->out_of_order++;
    return ARRIVAL_OUT_OF_ORDER;
}

#endif
