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

static void report(const struct sequence_judge *judge, const struct sequence_event *event) {
    if (judge->listener && judge->listener->report)
        judge->listener->report(judge->listener->context, event);
}

static struct sequence_event event_of(enum sequence_event_kind kind,
                                      const struct sequence_item *item, uint64_t related_frame) {
    return (struct sequence_event){
        .kind = kind,
        .sequence = item->reading.sequence,
        .count = 1,
        .frame = item->frame,
        .related_frame = related_frame,
        .time_ns = item->time_ns,
        .time_known = item->time_known,
    };
}

void sequence_report(const struct sequence_judge *judge, enum sequence_event_kind kind,
                     const struct sequence_item *item, uint64_t related_frame) {
    struct sequence_event event = event_of(kind, item, related_frame);
    report(judge, &event);
}

static void report_loss(const struct sequence_judge *judge, const struct sequence_item *item,
                        int64_t first_lost, uint64_t count, uint64_t frame_before) {
    struct sequence_event event = event_of(SEQUENCE_LOST, item, frame_before);
    event.sequence = sequence_on_wire(judge->layout, first_lost);
    event.count = count;
    report(judge, &event);
}

/* Memory of a source may be reused. `frames` need not be cleared, because they are read only for
 * positions that the window has. */
void sequence_source_begin(struct sequence_source *source, uint64_t key) {
    source->key = key;
    source->heard = source->last_frame = source->highest_frame = 0;
    source->highest_sent = 0;
    source->clock = (struct transit_clock){0};
    source->is_waiting = false;
    sequence_window_clear(&source->window, source->map, SEQUENCE_WINDOW);
}

/* --- transit times --------------------------------------------------------------------------- */

/* Computes the sender's time between two packets in ns. An RTP clock rate is known only if the
 * payload type fixes it, and each payload type has its own. */
static bool sent_difference(const struct transit_clock *clock, const struct sequence_layout *layout,
                            const struct sequence_reading *reading, int64_t *difference) {
    if (layout->clock == SEQUENCE_CLOCK_NS)
        return !__builtin_sub_overflow(reading->sent, clock->sent, difference);
    if (!reading->tick_rate || reading->payload_kind != clock->payload_kind)
        return false;
    int64_t ticks = (int32_t)((uint32_t)reading->sent - (uint32_t)clock->sent);
    *difference = ticks * BILLION / reading->tick_rate;
    return true;
}

/* Rule V12.5, RFC 3550 section 6.4.1: in order of arrival, J += (|D| - J) / 16. */
static void add_difference(struct transit_clock *clock, int64_t difference) {
    int64_t transit_ns;
    if (__builtin_add_overflow(clock->transit_ns, difference, &transit_ns))
        return;
    double size = difference < 0 ? -(double)difference : (double)difference;
    clock->jitter += (size - clock->jitter) / 16;
    clock->differences++;
    clock->transit_ns = transit_ns;
    clock->least = transit_ns < clock->least ? transit_ns : clock->least;
    clock->greatest = transit_ns > clock->greatest ? transit_ns : clock->greatest;
}

/* Adds the difference of this packet's transit time and that of the one before, D(i,j) of RFC 3550.
 * The clocks' offset cancels out. A packet without a time is skipped. */
static void clock_take(struct transit_clock *clock, const struct sequence_layout *layout,
                       const struct sequence_item *item) {
    int64_t sent, arrived, difference;
    if (!item->time_known)
        return;
    if (!clock->begun) {
        clock->begun = !__builtin_sub_overflow(item->time_ns, item->reading.sent, &clock->first_ns);
        clock->transit_ns = clock->least = clock->greatest = 0;
    } else if (sent_difference(clock, layout, &item->reading, &sent) &&
               !__builtin_sub_overflow(item->time_ns, clock->time_ns, &arrived) &&
               !__builtin_sub_overflow(arrived, sent, &difference)) {
        add_difference(clock, difference);
    }
    clock->time_ns = item->time_ns;
    clock->sent = item->reading.sent;
    clock->payload_kind = item->reading.payload_kind;
}

/* Adds the extremes of one clock, with the clocks' offset. Sums that overflow are left out. */
static void sum_transit(const struct transit_clock *clock, struct sequence_summary *summary) {
    int64_t least, greatest;
    if (__builtin_add_overflow(clock->first_ns, clock->least, &least) ||
        __builtin_add_overflow(clock->first_ns, clock->greatest, &greatest))
        return;
    if (!summary->transit_known || least < summary->transit_ns_least)
        summary->transit_ns_least = least;
    if (!summary->transit_known || greatest > summary->transit_ns_greatest)
        summary->transit_ns_greatest = greatest;
    summary->transit_known = true;
}

/* The jitter of several sources cannot be added: that of the one with the most packets counts. */
static void sum_clock(const struct transit_clock *clock, bool has_ns,
                      struct sequence_summary *summary) {
    int64_t variation;
    if (clock->begun && has_ns)
        sum_transit(clock, summary);
    if (!clock->differences)
        return;
    if (!__builtin_sub_overflow(clock->greatest, clock->least, &variation) &&
        variation > summary->delay_variation_ns)
        summary->delay_variation_ns = variation;
    if (clock->differences >= summary->jitter_packets) {
        summary->jitter_packets = clock->differences;
        summary->jitter_ns = (int64_t)(clock->jitter + 0.5);
    }
    summary->jitter_known = true;
}

/* --- order ----------------------------------------------------------------------------------- */

static int64_t step_to(const struct sequence_source *source, const struct sequence_layout *layout,
                       const struct sequence_reading *reading) {
    return sequence_step(layout, sequence_on_wire(layout, source->window.highest),
                         reading->sequence);
}

/* iperf2 repeats its end marker until the server answers, so there can be several. */
static void note_end(const struct sequence_source *source, const struct sequence_judge *judge,
                     const struct sequence_reading *reading) {
    int64_t near = llabs((int64_t)reading->ends[0] - source->window.highest);
    int64_t far = llabs((int64_t)reading->ends[1] - source->window.highest);
    judge->counts->end_markers++;
    judge->counts->ended = true;
    judge->counts->end_sequence = reading->ends[far < near];
}

uint64_t sequence_source_frame(const struct sequence_source *source, int64_t position) {
    bool is_kept = sequence_window_has(&source->window, source->map, position) &&
                   source->window.highest - position < SEQUENCE_FRAMES;
    return is_kept ? source->frames[(uint64_t)position % SEQUENCE_FRAMES] : 0;
}

uint64_t sequence_source_overtaker(const struct sequence_source *source, int64_t position) {
    uint64_t least = 0;
    if (source->window.highest - position >= SEQUENCE_FRAMES)
        return 0;
    for (int64_t above = position + 1; above <= source->window.highest; above++) {
        uint64_t frame = sequence_source_frame(source, above);
        if (frame && (!least || frame < least))
            least = frame;
    }
    return least;
}

/* Counts and reports an arrival at a position. Frames are stored for the newest SEQUENCE_FRAMES
 * positions, so that events can refer to them. */
static void judge_arrival(struct sequence_source *source, const struct sequence_judge *judge,
                          const struct sequence_item *item, int64_t position) {
    struct sequence_window *window = &source->window;
    struct sequence_summary *counts = judge->counts;
    int64_t before = window->highest;
    enum sequence_arrival decoded = sequence_window_take(window, source->map, position);
    if (decoded < ARRIVAL_DUPLICATE && window->highest - position < SEQUENCE_FRAMES)
        source->frames[(uint64_t)position % SEQUENCE_FRAMES] = item->frame;
    switch (decoded) {
    case ARRIVAL_NEXT: break;
    case ARRIVAL_AHEAD:
        report_loss(judge, item, before + 1, (uint64_t)(position - before - 1),
                    source->highest_frame);
        break;
    case ARRIVAL_BEHIND:
        counts->out_of_order++;
        sequence_report(judge, SEQUENCE_OUT_OF_ORDER, item,
                        sequence_source_overtaker(source, position));
        break;
    case ARRIVAL_DUPLICATE:
        counts->duplicates++;
        sequence_report(judge, SEQUENCE_DUPLICATE, item, sequence_source_frame(source, position));
        break;
    case ARRIVAL_LATE:
        counts->late++;
        sequence_report(judge, SEQUENCE_LATE, item, 0);
        break;
    }
}

/* Turns the number into a position and judges it. Corrupt blocks count as received, because the
 * network delivered them. */
static void place(struct sequence_source *source, const struct sequence_judge *judge,
                  const struct sequence_item *item) {
    const struct sequence_reading *reading = &item->reading;
    int64_t position = (int64_t)reading->sequence;
    bool is_highest = true;
    if (source->window.begun) {
        int64_t step = step_to(source, judge->layout, reading);
        position = source->window.highest + step;
        is_highest = step > 0;
    }
    judge->counts->received++;
    if (reading->corrupt) {
        judge->counts->corrupt++;
        sequence_report(judge, SEQUENCE_CORRUPT, item, 0);
    }
    judge_arrival(source, judge, item, position);
    clock_take(&source->clock, judge->layout, item);
    source->last_frame = item->frame;
    if (is_highest) {
        source->highest_frame = item->frame;
        source->highest_sent = reading->sent;
    }
    if (reading->last) {
        judge->counts->ended = true;
        judge->counts->end_sequence = reading->sequence;
    }
}

static void begin_again(struct sequence_source *source, const struct sequence_judge *judge,
                        const struct sequence_item *item) {
    sequence_source_sum(source, judge->layout, judge->counts);
    sequence_window_clear(&source->window, source->map, SEQUENCE_WINDOW);
    source->clock.begun = false;
    source->clock.least = source->clock.greatest = 0;
    judge->counts->restarts++;
    sequence_report(judge, SEQUENCE_RESTART, item, source->last_frame);
}

/* Returns whether the step must be confirmed. A lower number with a later sent time is a restart,
 * not reordering. Without a sent time, only the distance decides (RFC 3550 A.1). */
static bool is_far_off(const struct sequence_source *source, const struct sequence_layout *layout,
                       const struct sequence_reading *reading, int64_t step) {
    if (step > layout->ahead_most)
        return true;
    if (layout->clock == SEQUENCE_CLOCK_NS)
        return step <= 0 && reading->sent > source->highest_sent;
    return -step > layout->behind_most;
}

/* iperf3 and newer versions of iperf2 start at 1. */
static bool is_beginning(const struct sequence_layout *layout,
                         const struct sequence_reading *reading, int64_t step) {
    return layout->clock == SEQUENCE_CLOCK_NS && step <= 0 &&
           (reading->first || reading->sequence <= 1);
}

void sequence_source_settle(struct sequence_source *source, const struct sequence_judge *judge) {
    if (!source->is_waiting)
        return;
    source->is_waiting = false;
    if (step_to(source, judge->layout, &source->waiting.reading) > 0)
        judge->counts->other_packets++; /* a single number far ahead is damage */
    else
        place(source, judge, &source->waiting);
}

/* Returns whether the packet continues from the waiting one, which confirms it. */
static bool confirms(const struct sequence_source *source, const struct sequence_layout *layout,
                     const struct sequence_reading *reading) {
    int64_t follow = sequence_step(layout, source->waiting.reading.sequence, reading->sequence);
    return follow >= 1 && follow <= layout->follow_most &&
           is_far_off(source, layout, reading, step_to(source, layout, reading));
}

static void accept_waiting(struct sequence_source *source, const struct sequence_judge *judge) {
    int64_t step = step_to(source, judge->layout, &source->waiting.reading);
    source->is_waiting = false;
    if (step <= 0 || judge->layout->jump_is_restart || step > JUMP_MOST)
        begin_again(source, judge, &source->waiting);
    place(source, judge, &source->waiting);
}

void sequence_source_take(struct sequence_source *source, const struct sequence_judge *judge,
                          const struct sequence_item *item) {
    const struct sequence_layout *layout = judge->layout;
    const struct sequence_reading *reading = &item->reading;
    int64_t step = source->window.begun ? step_to(source, layout, reading) : 1;
    if (reading->is_end || (reading->may_be_end && llabs(step) > layout->ahead_most)) {
        note_end(source, judge, reading);
        return;
    }
    if (source->is_waiting && confirms(source, layout, reading)) {
        accept_waiting(source, judge);
        place(source, judge, item);
        return;
    }
    sequence_source_settle(source, judge);
    step = source->window.begun ? step_to(source, layout, reading) : 1;
    if (!is_far_off(source, layout, reading, step)) {
        place(source, judge, item);
    } else if (is_beginning(layout, reading, step)) {
        begin_again(source, judge, item);
        place(source, judge, item);
    } else {
        source->is_waiting = true;
        source->waiting = *item;
    }
}

void sequence_source_sum(const struct sequence_source *source, const struct sequence_layout *layout,
                         struct sequence_summary *summary) {
    const struct sequence_window *window = &source->window;
    struct loss_runs runs = sequence_window_runs(window, source->map);
    summary->unique += window->unique;
    summary->expected += sequence_window_expected(window);
    summary->loss_runs += runs.count;
    if (runs.longest > summary->longest_loss_run)
        summary->longest_loss_run = runs.longest;
    sum_clock(&source->clock, layout->clock == SEQUENCE_CLOCK_NS, summary);
}
