/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a flow's time as spans. The sum of the spans of a part always is the time that
 * tracker/time_account.c has accounted to it, to the nanosecond: whatever is accounted is added,
 * and time that gets another part later is moved.
 *
 * A flow may have a span per packet, so a log of twice MAX_TIME_SPANS is thinned: spans that lie
 * within a short time together are put together by part and direction, in the order in which these
 * first occur there. Their sums stay, and no span moves by more than that time, which begins with a
 * fraction of the whole and doubles until the rest is few enough. Longer spans keep their ends. */
#include "tcp/span_log.h"

#include <string.h>

#define SPAN_KINDS (PARTS * (NO_DIRECTION + 1))
#define FIRST_PART                                                                                 \
    16 /* shortest time to put together: such a part of the mean span of a full log */

static inline int64_t end_of(const struct time_span *span) {
    return add_ns(span->start_ns, span->ns);
}

/* Returns the time from `from` to `to`, which saturates because a capture's clock may step. */
static inline int64_t between(int64_t from, int64_t to) {
    int64_t ns;
    return __builtin_sub_overflow(to, from, &ns) ? INT64_MAX : ns;
}

/* Returns a number for part and direction of a span. */
static inline unsigned kind_of(const struct time_span *span) {
    return span->part * (NO_DIRECTION + 1) + span->direction;
}

/* Replaces spans [from, to) by one for each part and direction, from index `out` on; returns the
 * index after them. `out` must not exceed `from`. */
static uint32_t put_together(struct time_span *spans, uint32_t from, uint32_t to, uint32_t out) {
    struct time_span sums[SPAN_KINDS] = {{0}};
    int64_t start = spans[from].start_ns;
    uint8_t kinds[SPAN_KINDS];
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        struct time_span *sum = &sums[kind_of(&spans[i])];
        int64_t ns = add_ns(sum->ns, spans[i].ns);
        if (!sum->ns)
            kinds[count++] = (uint8_t)kind_of(&spans[i]);
        *sum = spans[i];
        sum->ns = ns;
    }
    if (count == to - from) { /* nothing is gained */
        memmove(spans + out, spans + from, count * sizeof *spans);
        return out + count;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct time_span *sum = &sums[kinds[i]];
        sum->start_ns = start;
        sum->merged = true;
        start = end_of(sum);
        spans[out + i] = *sum;
    }
    return out + count;
}

/* Puts together the spans that lie within `width` ns. */
static void thin(struct span_log *log, int64_t width) {
    struct time_span *spans = log->spans;
    uint32_t out = 0;
    for (uint32_t i = 0, end; i < log->count; i = end) {
        end = i + 1;
        while (end < log->count && between(spans[i].start_ns, end_of(&spans[end])) <= width)
            end++;
        out = put_together(spans, i, end, out);
    }
    log->count = out;
}

/* Joins neighbors of one kind without a gap, which moves may leave. */
static void join(struct span_log *log) {
    struct time_span *last = log->spans;
    for (uint32_t i = 1; i < log->count; i++) {
        const struct time_span *span = &log->spans[i];
        if (kind_of(span) == kind_of(last) && span->merged == last->merged &&
            span->start_ns == end_of(last))
            last->ns = add_ns(last->ns, span->ns);
        else
            *++last = *span;
    }
    log->count = (uint32_t)(last - log->spans) + 1;
}

void span_log_finish(struct span_log *log) {
    if (!log->count)
        return;
    join(log);
    if (log->count <= MAX_TIME_SPANS)
        return;
    int64_t first = log->spans[0].start_ns, last = end_of(&log->spans[log->count - 1]);
    int64_t width = max64(between(first, last) / (FIRST_PART * MAX_TIME_SPANS), 1);
    for (; log->count > MAX_TIME_SPANS; width = add_ns(width, width))
        thin(log, width);
}

/* Makes room for another span. Returns false without memory. */
static bool make_room(struct span_log *log, struct pool *pool) {
    if (log->count == 2 * MAX_TIME_SPANS)
        span_log_finish(log);
    if (log->count == log->room && !pool_grow(pool, (void **)&log->spans, &log->room,
                                              sizeof *log->spans, 4, 2 * MAX_TIME_SPANS))
        log->incomplete = true;
    return log->count < log->room;
}

void span_log_add(struct span_log *log, struct pool *pool, enum time_part part, unsigned direction,
                  int64_t start_ns, int64_t ns) {
    struct time_span span = {start_ns, ns, (uint8_t)part, (uint8_t)direction, false};
    if (ns <= 0)
        return;
    struct time_span *last = log->count ? &log->spans[log->count - 1] : NULL;
    if (last && kind_of(last) == kind_of(&span) && end_of(last) == start_ns)
        last->ns = add_ns(last->ns, ns);
    else if (make_room(log, pool))
        log->spans[log->count++] = span;
}

static inline bool is_of(const struct time_span *span, enum time_part part, unsigned direction) {
    return span->part == part && (direction == NO_DIRECTION || span->direction == direction);
}

/* Returns a span of this length, NULL without one. */
static struct time_span *span_of(struct span_log *log, enum time_part part, unsigned direction,
                                 int64_t ns) {
    for (uint32_t i = log->count; i; i--)
        if (log->spans[i - 1].ns == ns && is_of(&log->spans[i - 1], part, direction))
            return &log->spans[i - 1];
    return NULL;
}

void span_log_move(struct span_log *log, struct pool *pool, enum time_part from, enum time_part to,
                   unsigned direction, int64_t ns) {
    if (ns <= 0 || !make_room(log, pool))
        return;
    struct time_span *alike = to == PART_IDLE ? span_of(log, from, direction, ns) : NULL;
    if (alike) {
        alike->part = (uint8_t)to;
        return;
    }
    for (uint32_t i = log->count; ns > 0 && i; i--) {
        struct time_span *span = &log->spans[i - 1];
        if (!is_of(span, from, direction))
            continue;
        if (span->ns > ns) {
            memmove(span + 2, span + 1, (log->count++ - i) * sizeof *span);
            span->ns -= ns;
            span[1] = *span;
            span[1].start_ns = end_of(span);
            span[1].ns = ns;
            span[1].part = (uint8_t)to;
            return;
        }
        span->part = (uint8_t)to;
        ns -= span->ns;
    }
}

void span_log_free(struct span_log *log, struct pool *pool) {
    if (log)
        pool_release(pool, log->spans, log->room, sizeof *log->spans);
    pool_release(pool, log, 1, sizeof *log);
}
