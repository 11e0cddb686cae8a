/* SPDX-License-Identifier: Apache-2.0 */
/* What single counts do not tell: when packets came and were lost last, and when the disk will be
 * full. The main thread looks at the counts once a second. */
#ifndef WIRETALE_CAPTURE_TREND_H
#define WIRETALE_CAPTURE_TREND_H

#include <stdint.h>

#include "status/status.h"

struct trend {
    int64_t started_ns;           /* CLOCK_REALTIME */
    int64_t begun_ns, checked_ns; /* CLOCK_MONOTONIC */
    uint64_t lost, bytes, arrived[DEVICES_MAX];
    double bytes_per_ns;                               /* to the disk, compressed */
    int64_t last_loss_ns, last_packet_ns[DEVICES_MAX]; /* CLOCK_REALTIME; -1: none */
};

void trend_begin(struct trend *trend);

/* Takes up the counts. `bytes` were written to the disk. */
void trend_update(struct trend *trend, const struct status *status, uint64_t bytes, int64_t now);

/* Returns the time until so many bytes more are written: 0 if it is over, NEVER_NS, or -1 while
 * nobody can tell. */
int64_t trend_time_for(const struct trend *trend, double bytes);

/* Adds what the trend knows, and the forecasts. */
void trend_tell(const struct trend *trend, const struct settings *settings, struct status *status);

#endif
