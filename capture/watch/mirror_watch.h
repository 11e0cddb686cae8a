/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what the mirror port delivers (--mirror): after 10 s, or as soon as it has shown enough
 * connections, and every 10 s. Says what is wrong. */
#ifndef WIRETALE_CAPTURE_MIRROR_WATCH_H
#define WIRETALE_CAPTURE_MIRROR_WATCH_H

#include <stdint.h>

#include "mirror/mirror.h"
#include "status/status.h"

struct mirror_watch {
    struct mirror *mirror; /* NULL: nothing is judged */
    bool is_filtered;      /* by -f: what is missing need not be the fault of the switch */
    struct mirror_counts before;
    int64_t judged_ns, looked_ns; /* CLOCK_MONOTONIC */
    enum mirror_fault fault;
};

void mirror_watch_tell(const struct mirror_watch *watch, struct status *status);

void mirror_watch_round(struct mirror_watch *watch, int64_t now_ns);

#endif
