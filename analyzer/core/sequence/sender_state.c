/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the packets of one source in the order of their arrival.
 *
 * A number becomes a position without wraps, relative to the highest one; the window then decides
 * between next, ahead, behind, duplicate and late. Before that, a step that is far off waits: the
 * next packet of the source confirms it if it continues from there. A confirmed step forward is a
 * loss, or a restart if the format says so or the step is implausible; a confirmed step back is a
 * restart. Without confirmation, a step forward was damage and is not counted as received; a step
 * back was reordering. A sender whose number is its first one restarts at once. At most one packet
 * waits.
 *
 * A loss is reported when the gap opens. If a missing number arrives later, it is reported as out
 * of order, and the sum of lost numbers, which is computed at the end, does not contain it. */
#include "sequence/sender_state.h"

#include <stdlib.h>

#define BILLION 1000000000

#define JUMP_MOST ((int64_t)1 << 40) /* largest plausible loss */

#define FOREIGN_LEAST 3  /* packets of another protocol, more than damage explains */
#define SILENT_STEPS  50 /* numbers, 1 s of audio in packets of 20 ms */

/* Reports `count` numbers from `sequence` on. */
static void report(const struct sequence_judge *judge, enum word kind, uint64_t sequence,
                   uint64_t count, const struct sequence_item *item, uint64_t related_frame) {
    if (judge->listener)
        judge->listener->report(judge->listener->context,
                                &(struct sequence_event){.kind = kind,
                                                         .sequence = sequence,
                                                         .count = count,
                                                         .frame = item->frame,
                                                         .capture = item->capture,
                                                         .related_frame = related_frame,
                                                         .time_ns = item->time_ns,
                                                         .time_known = item->time_known});
}

void sequence_report(const struct sequence_judge *judge, enum word kind,
                     const struct sequence_item *item, uint64_t related_frame) {
    report(judge, kind, item->sequence, 1, item, related_frame);
}

/* Memory of a source may be reused. `frames` need not be cleared, because they are read only for
 * positions that the window has. */
void sequence_source_begin(struct sequence_source *source, uint64_t key) {
    source->key = key;
    source->heard = source->last_frame = source->highest_frame = 0;
    source->highest_sent = source->pace = 0;
    source->foreign = 0;
    source->arrivals = 0;
    source->clock = (struct transit_clock){0};
    source->is_waiting = false;
    sequence_window_clear(&source->window, source->map, SEQUENCE_WINDOW);
}

/* --- transit times --------------------------------------------------------------------------- */

/* Computes the sender's time between two packets in ns. An RTP clock rate is known only if the
 * payload type fixes it, and each payload type has its own. */
static bool sent_difference(const struct transit_clock *clock, const struct sequence_layout *layout,
                            const struct sequence_item *item, int64_t *difference) {
    if (!layout->ticks)
        return !__builtin_sub_overflow(item->sent, clock->sent, difference);
    if (!item->tick_rate || item->payload_kind != clock->payload_kind)
        return false;
    int64_t ticks = (int32_t)((uint32_t)item->sent - (uint32_t)clock->sent);
    *difference = ticks * BILLION / item->tick_rate;
    return true;
}

static struct slowest slowest_of(const struct sequence_item *item) {
    return (struct slowest){item->frame, item->time_ns, item->capture};
}

/* Rule V12.5, RFC 3550 section 6.4.1: in order of arrival, J += (|D| - J) / 16. */
static void add_difference(struct transit_clock *clock, const struct sequence_item *item,
                           int64_t difference) {
    int64_t transit_ns;
    if (__builtin_add_overflow(clock->transit_ns, difference, &transit_ns))
        return;
    double size = difference < 0 ? -(double)difference : (double)difference;
    clock->jitter += (size - clock->jitter) / 16;
    clock->sizes += size;
    clock->differences++;
    clock->transit_ns = transit_ns;
    clock->least = transit_ns < clock->least ? transit_ns : clock->least;
    if (transit_ns > clock->greatest) {
        clock->greatest = transit_ns;
        clock->slowest = slowest_of(item);
    }
}

/* Adds the difference of this packet's transit time and that of the one before, D(i,j) of RFC 3550.
 * The clocks' offset cancels out. A packet without a time is skipped. */
static void clock_take(struct transit_clock *clock, const struct sequence_layout *layout,
                       const struct sequence_item *item) {
    int64_t sent, arrived, difference;
    if (!item->time_known)
        return;
    if (!clock->begun) {
        clock->begun = !__builtin_sub_overflow(item->time_ns, item->sent, &difference);
        clock->transit_ns = clock->least = clock->greatest = 0;
        clock->slowest = slowest_of(item);
    } else if (sent_difference(clock, layout, item, &sent) &&
               !__builtin_sub_overflow(item->time_ns, clock->time_ns, &arrived) &&
               !__builtin_sub_overflow(arrived, sent, &difference)) {
        add_difference(clock, item, difference);
    }
    clock->time_ns = item->time_ns;
    clock->sent = item->sent;
    clock->payload_kind = item->payload_kind;
}

/* The jitter of several sources cannot be added: that of the one with the most packets counts. */
static void sum_clock(const struct transit_clock *clock, struct sequence_summary *summary) {
    int64_t variation;
    if (!clock->differences)
        return;
    if (!__builtin_sub_overflow(clock->greatest, clock->least, &variation) &&
        variation > summary->delay_variation_ns) {
        summary->delay_variation_ns = variation;
        summary->slowest = clock->slowest;
    }
    if (clock->differences >= summary->jitter_packets) {
        summary->jitter_packets = clock->differences;
        summary->jitter_ns = (int64_t)(clock->jitter + 0.5);
        summary->jitter_mean_ns = (int64_t)(clock->sizes / (double)clock->differences + 0.5);
    }
    summary->jitter_known = true;
}

/* --- order ----------------------------------------------------------------------------------- */

static int64_t step_to(const struct sequence_source *source, const struct sequence_layout *layout,
                       const struct sequence_item *item) {
    return sequence_step(layout, sequence_on_wire(layout, source->window.highest), item->sequence);
}

/* Returns the arrival that brought `position`, 0 if it is unknown. */
static uint64_t arrival_of(const struct sequence_source *source, int64_t position) {
    bool is_kept = sequence_window_has(&source->window, source->map, position) &&
                   source->window.highest - position < SEQUENCE_FRAMES;
    return is_kept ? source->frames[(uint64_t)position % SEQUENCE_FRAMES] : 0;
}

/* Returns the first known frame that overtook `position`, or 0. */
static uint64_t overtaker_of(const struct sequence_source *source, int64_t position) {
    uint64_t least = 0;
    if (source->window.highest - position >= SEQUENCE_FRAMES)
        return 0;
    for (int64_t above = position + 1; above <= source->window.highest; above++) {
        uint64_t arrival = arrival_of(source, above);
        if (arrival && (!least || arrival < least))
            least = arrival;
    }
    return (uint32_t)least;
}

/* Counts and reports an arrival at a position. Frames are stored for the newest SEQUENCE_FRAMES
 * positions, so that events can refer to them. */
static void judge_arrival(struct sequence_source *source, const struct sequence_judge *judge,
                          const struct sequence_item *item, int64_t position) {
    struct sequence_window *window = &source->window;
    struct sequence_summary *counts = judge->counts;
    int64_t before = window->highest;
    enum sequence_arrival decoded = sequence_window_take(window, source->map, position);
    if (decoded < ARRIVAL_DUPLICATE && window->highest - position < SEQUENCE_FRAMES) {
        source->prints[(uint64_t)position % SEQUENCE_FRAMES] = item->print;
        source->frames[(uint64_t)position % SEQUENCE_FRAMES] =
            (uint64_t)++source->arrivals << 32 | (uint32_t)item->frame;
    }
    switch (decoded) {
    case ARRIVAL_NEXT: counts->next++; break;
    case ARRIVAL_AHEAD:
        report(judge, WORD_BLOCK_LOST, sequence_on_wire(judge->layout, before + 1),
               (uint64_t)(position - before - 1), item, source->highest_frame);
        break;
    case ARRIVAL_BEHIND:
        counts->out_of_order++;
        sequence_report(judge, WORD_BLOCK_OUT_OF_ORDER, item, overtaker_of(source, position));
        break;
    case ARRIVAL_DUPLICATE:
        counts->duplicates++;
        sequence_report(judge, WORD_BLOCK_DUPLICATE, item, (uint32_t)arrival_of(source, position));
        break;
    case ARRIVAL_LATE:
        counts->late++;
        sequence_report(judge, WORD_BLOCK_LATE, item, 0);
        break;
    }
}

static int64_t ticks_to(const struct sequence_source *source, const struct sequence_item *item) {
    return (int32_t)((uint32_t)item->sent - (uint32_t)source->highest_sent);
}

/* Remembers the ticks of one number. */
static void learn_pace(struct sequence_source *source, const struct sequence_layout *layout,
                       const struct sequence_item *item, int64_t step) {
    if (layout->ticks && step == 1 && !item->resumes)
        source->pace = ticks_to(source, item);
}

/* Returns whether the number came before with other payload: then one of both is no number. */
static bool is_contrary(const struct sequence_source *source, const struct sequence_item *item,
                        int64_t position) {
    return arrival_of(source, position) &&
           source->prints[(uint64_t)position % SEQUENCE_FRAMES] != item->print;
}

/* Turns the number into a position and judges it. Corrupt blocks count as received, because the
 * network delivered them. */
static void place(struct sequence_source *source, const struct sequence_judge *judge,
                  const struct sequence_item *item) {
    int64_t position = (int64_t)item->sequence, step = 0;
    bool is_highest = true;
    if (source->window.begun) {
        step = step_to(source, judge->layout, item);
        position = source->window.highest + step;
        is_highest = step > 0;
        if (is_contrary(source, item, position)) {
            judge->counts->contrary++;
            judge->counts->other_packets++;
            return;
        }
    }
    judge->counts->received++;
    judge->counts->comfort_noise += item->is_noise;
    if (item->corrupt) {
        judge->counts->corrupt++;
        sequence_report(judge, WORD_BLOCK_CORRUPT, item, 0);
    }
    judge_arrival(source, judge, item, position);
    clock_take(&source->clock, judge->layout, item);
    source->last_frame = item->frame;
    source->foreign = judge->counts->foreign;
    if (is_highest) {
        learn_pace(source, judge->layout, item, step);
        source->highest_frame = item->frame;
        source->highest_sent = item->sent;
    }
}

static void begin_again(struct sequence_source *source, const struct sequence_judge *judge,
                        const struct sequence_item *item) {
    sequence_source_sum(source, judge->counts);
    sequence_window_clear(&source->window, source->map, SEQUENCE_WINDOW);
    source->clock.begun = false;
    source->clock.least = source->clock.greatest = 0;
    judge->counts->restarts++;
    sequence_report(judge, WORD_BLOCK_RESTART, item, source->last_frame);
}

/* Rule V12.8: returns whether a sender of RTP counted on without sending RTP. It sent another
 * protocol meanwhile, as T.38 (ITU-T T.38 annex D), or its marker declares silence (RFC 3551
 * section 4.1) and its numbers went on with its clock. */
static bool was_silent(const struct sequence_source *source, const struct sequence_judge *judge,
                       const struct sequence_item *item, int64_t step) {
    if (!judge->layout->ticks || step <= 1)
        return false;
    if (judge->counts->foreign - source->foreign >= FOREIGN_LEAST)
        return true;
    return item->resumes && step >= SILENT_STEPS && source->pace > 0 &&
           llabs(ticks_to(source, item) - step * source->pace) <= source->pace;
}

/* What the sender counted before is summed up; the numbers between are neither lost nor received.
 */
static void resume(struct sequence_source *source, const struct sequence_judge *judge) {
    sequence_source_sum(source, judge->counts);
    sequence_window_clear(&source->window, source->map, SEQUENCE_WINDOW);
    source->clock = (struct transit_clock){0};
}

/* Returns whether the step must be confirmed. A lower number with a later sent time is a restart,
 * not reordering. Without a sent time, only the distance decides (RFC 3550 A.1). */
static bool is_far_off(const struct sequence_source *source, const struct sequence_layout *layout,
                       const struct sequence_item *item, int64_t step) {
    if (step > layout->ahead_most)
        return true;
    if (!layout->ticks)
        return step <= 0 && item->sent > source->highest_sent;
    return -step > layout->behind_most;
}

/* iperf3 and newer versions of iperf2 start at 1. */
static bool is_beginning(const struct sequence_layout *layout, const struct sequence_item *item,
                         int64_t step) {
    return !layout->ticks && step <= 0 && (item->first || item->sequence <= 1);
}

void sequence_source_settle(struct sequence_source *source, const struct sequence_judge *judge) {
    if (!source->is_waiting)
        return;
    source->is_waiting = false;
    if (step_to(source, judge->layout, &source->waiting) > 0)
        judge->counts->other_packets++; /* a single number far ahead is damage */
    else
        place(source, judge, &source->waiting);
}

/* Returns whether the packet continues from the waiting one, which confirms it. */
static bool confirms(const struct sequence_source *source, const struct sequence_layout *layout,
                     const struct sequence_item *item) {
    int64_t follow = sequence_step(layout, source->waiting.sequence, item->sequence);
    return follow >= 1 && follow <= layout->follow_most &&
           is_far_off(source, layout, item, step_to(source, layout, item));
}

static void accept_waiting(struct sequence_source *source, const struct sequence_judge *judge) {
    int64_t step = step_to(source, judge->layout, &source->waiting);
    source->is_waiting = false;
    if (step <= 0 || judge->layout->ticks || step > JUMP_MOST)
        begin_again(source, judge, &source->waiting);
    place(source, judge, &source->waiting);
}

void sequence_source_take(struct sequence_source *source, const struct sequence_judge *judge,
                          const struct sequence_item *item) {
    const struct sequence_layout *layout = judge->layout;
    int64_t step = source->window.begun ? step_to(source, layout, item) : 1;
    if (item->is_end || (item->may_be_end && llabs(step) > layout->ahead_most)) {
        judge->counts->end_markers++;
        return;
    }
    if (source->is_waiting && confirms(source, layout, item)) {
        accept_waiting(source, judge);
        place(source, judge, item);
        return;
    }
    sequence_source_settle(source, judge);
    step = source->window.begun ? step_to(source, layout, item) : 1;
    if (was_silent(source, judge, item, step) && step <= layout->ahead_most)
        resume(source, judge);
    if (!source->window.begun || !is_far_off(source, layout, item, step)) {
        place(source, judge, item);
    } else if (is_beginning(layout, item, step)) {
        begin_again(source, judge, item);
        place(source, judge, item);
    } else {
        source->is_waiting = true;
        source->waiting = *item;
    }
}

void sequence_source_sum(const struct sequence_source *source, struct sequence_summary *summary) {
    const struct sequence_window *window = &source->window;
    struct loss_runs runs = sequence_window_runs(window, source->map);
    summary->unique += window->unique;
    summary->expected += sequence_window_expected(window);
    summary->loss_runs += runs.count;
    if (runs.longest > summary->longest_loss_run)
        summary->longest_loss_run = runs.longest;
    sum_clock(&source->clock, summary);
}
