/* SPDX-License-Identifier: Apache-2.0 */
/* Times of pcapng: ticks of if_tsresol since the epoch, shifted by if_tsoffset seconds. */
#ifndef WIRETALE_PCAPNG_TIME_H
#define WIRETALE_PCAPNG_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct pcapng_time {
    uint64_t multiply; /* ns = ticks * multiply / divide >> shift, + offset_s seconds */
    uint64_t divide;
    unsigned shift;
    int64_t offset_s;
    uint64_t plain_end;    /* below it ns = ticks * multiply */
    int64_t resolution_ns; /* of a tick, 0 where it is finer */
};

/* Takes an if_tsresol: bit 7 says 2^-n, else 10^-n. False for a resolution that libpcap refuses
 * too, since its ticks do not fit in 64 bits. */
bool pcapng_time_set(struct pcapng_time *time, uint8_t resolution, int64_t offset_s);

/* Saturates; never TIME_UNKNOWN. */
int64_t pcapng_time_slow(const struct pcapng_time *time, uint64_t ticks);

static inline int64_t pcapng_time_ns(const struct pcapng_time *time, uint64_t ticks) {
    if (ticks < time->plain_end)
        return (int64_t)(ticks * time->multiply);
    return pcapng_time_slow(time, ticks);
}

#endif
