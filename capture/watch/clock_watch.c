/* SPDX-License-Identifier: Apache-2.0 */
/* The state is that of the kernel's clock discipline, which chrony, ntpd, systemd-timesyncd and
 * phc2sys all set. Only the first two state how large an error can be: systemd-timesyncd sets both
 * errors to 0, and phc2sys leaves the estimate at its start value of 16 s, above the greatest
 * error. So a bound is believed only if the estimate is above 0 and not above it. */
#include "watch/clock_watch.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"

#define MAX_CLOCK_READS   50
#define MIN_CLOCK_STEP_NS NS_PER_MS
#define STATE_NS          NS_PER_S

/* A thread may be preempted between two reads of the clocks, so the shortest of several attempts
 * counts. */
int64_t clock_watch_distance(void) {
    int64_t best_span = INT64_MAX, distance = 0;
    for (int i = 0; i < MAX_CLOCK_READS && best_span > MIN_CLOCK_STEP_NS / 10; i++) {
        int64_t before = monotonic_ns(), wall = realtime_ns(), span = monotonic_ns() - before;
        if (span < best_span) {
            best_span = span;
            distance = wall - before - span / 2;
        }
    }
    return distance;
}

int64_t clock_watch_step(struct clock_watch *watch, int64_t distance_ns) {
    int64_t step = distance_ns - watch->distance_ns;
    if (step < MIN_CLOCK_STEP_NS && step > -MIN_CLOCK_STEP_NS)
        return 0;
    watch->distance_ns = distance_ns;
    return step;
}

struct clock_state clock_state_of(const struct timex *times, int answer) {
    struct clock_state state = {.is_known = answer >= 0, .error_ns = -1};
    if (!state.is_known)
        return state;
    state.is_synchronized = !(times->status & (STA_UNSYNC | STA_CLOCKERR));
    state.offset_ns = (int64_t)times->offset * (times->status & STA_NANO ? 1 : 1000);
    if (state.is_synchronized && times->esterror > 0 && times->maxerror >= times->esterror)
        state.error_ns = (int64_t)times->maxerror * 1000;
    return state;
}

static void ask_state(struct clock_watch *watch, struct notes *notes) {
    struct timex times = {.modes = 0};
    int answer = adjtimex(&times);
    watch->state = clock_state_of(&times, answer);
    notes_set_clock(notes, &watch->state);
}

void clock_watch_begin(struct clock_watch *watch, struct notes *notes) {
    watch->distance_ns = clock_watch_distance();
    watch->asked_ns = monotonic_ns();
    ask_state(watch, notes);
    if (watch->state.is_known && !watch->state.is_synchronized)
        log_info("the clock is not synchronized (no NTP or PTP): times do not compare with those "
                 "of other hosts");
}

/* The step is recorded in the file, because time stamps before and after it cannot be compared. */
static void note_step(struct clock_watch *watch, struct output *output, int64_t step_ns) {
    struct note note = {.time_ns = realtime_ns()};
    watch->steps++;
    watch->last_step_ns = step_ns;
    snprintf(note.sentence, sizeof note.sentence, "the clock was set by %+.9f s",
             (double)step_ns / NS_PER_S);
    snprintf(note.facts, sizeof note.facts, "wiretale.clock/1 event=step step_ns=%lld",
             (long long)step_ns);
    log_warning("%s", note.sentence);
    atomic_store(&output->clock_stepped, true);
    notes_add(&output->notes, &note);
}

static void note_change(const struct clock_watch *watch, struct output *output) {
    bool is_good = watch->state.is_synchronized;
    struct note note = {.time_ns = realtime_ns()};
    snprintf(note.sentence, sizeof note.sentence, "the clock is %s",
             is_good ? "synchronized" : "no longer synchronized");
    snprintf(note.facts, sizeof note.facts, "wiretale.clock/1 synchronized=%s",
             is_good ? "yes" : "no");
    log_warning("%s", note.sentence);
    notes_add(&output->notes, &note);
}

void clock_watch_round(struct clock_watch *watch, struct output *output, int64_t now_ns) {
    int64_t step = clock_watch_step(watch, clock_watch_distance());
    if (step)
        note_step(watch, output, step);
    if (!step && now_ns - watch->asked_ns < STATE_NS)
        return;
    struct clock_state before = watch->state;
    watch->asked_ns = now_ns;
    ask_state(watch, &output->notes);
    if (before.is_known && watch->state.is_known &&
        before.is_synchronized != watch->state.is_synchronized)
        note_change(watch, output);
    if (step)
        chunk_queue_wake(&output->capture->queue);
}

void clock_watch_tell(const struct clock_watch *watch, struct status *status) {
    const struct clock_state *state = &watch->state;
    status->clock_is_synchronized = state->is_known ? state->is_synchronized : -1;
    status->clock_error_ns = state->error_ns;
    status->clock_offset_ns = state->is_known ? state->offset_ns : INT64_MIN;
    status->clock_steps = (int64_t)watch->steps;
    status->clock_step_ns = watch->steps ? watch->last_step_ns : INT64_MIN;
}
