/* SPDX-License-Identifier: Apache-2.0 */
/* Watches CLOCK_REALTIME while packets are captured: steps, and whether it is synchronized. */
#ifndef WIRETALE_CAPTURE_CLOCK_WATCH_H
#define WIRETALE_CAPTURE_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/timex.h>

#include "status/status.h"

struct clock_watch {
    int64_t distance_ns; /* of CLOCK_REALTIME from CLOCK_MONOTONIC */
    int64_t asked_ns;    /* CLOCK_MONOTONIC of the last question about its state */
    struct clock_state state;
    uint64_t steps;
    int64_t last_step_ns; /* its size */
};

/* Notes the distance, and asks for the state. To be called before the first file is begun. */
void clock_watch_begin(struct clock_watch *watch, struct notes *notes);

/* Reports a step, and a clock that is no longer synchronized or is so again. */
void clock_watch_round(struct clock_watch *watch, struct output *output, int64_t now_ns);

void clock_watch_tell(const struct clock_watch *watch, struct status *status);

/* Detects that CLOCK_REALTIME is set: its distance from CLOCK_MONOTONIC jumps. Slewing by NTP
 * changes both clocks alike and is no step. */
int64_t clock_watch_distance(void);
/* Returns the step since the last call, 0 if there is none. */
int64_t clock_watch_step(struct clock_watch *watch, int64_t distance_ns);

/* Returns the state that adjtimex() answered; `answer` is what it returned. */
struct clock_state clock_state_of(const struct timex *times, int answer);

#endif
