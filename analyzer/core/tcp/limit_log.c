/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of time by limiting factor. The sum of the spans of a kind always is the time that
 * tracker/time_accounting.c has accounted to it, to the nanosecond: whatever is accounted is added,
 * and time that gets another factor later is moved, the newest first.
 *
 * A direction may have a span per packet, so a log of twice MAX_LIMIT_SPANS is thinned: spans that
 * lie within a short time together are put together by kind, in the order in which the kinds first
 * occur there. Their sums stay, and no span moves by more than that time, which begins with a
 * fraction of the whole and doubles until the rest is few enough. Longer spans keep their ends. */
#include "tcp/limit_log.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PART                                                                                 \
    16 /* shortest time to put together: such a part of the mean span of a full log */

static inline int64_t end_of(const struct limit_span *span) {
    return add_ns(span->start_ns, span->ns);
}

/* Returns the time from `from` to `to`, which saturates because a capture's clock may step. */
static inline int64_t between(int64_t from, int64_t to) {
    int64_t ns;
    return __builtin_sub_overflow(to, from, &ns) ? INT64_MAX : ns;
}

/* Replaces spans [from, to) by one for each kind, from index `out` on; returns the index after
 * them. `out` must not exceed `from`. */
static uint32_t put_together(struct limit_span *spans, uint32_t from, uint32_t to, uint32_t out) {
    int64_t ns[SPAN_KINDS] = {0}, start = spans[from].start_ns;
    uint8_t kinds[SPAN_KINDS];
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        if (!ns[spans[i].kind])
            kinds[count++] = spans[i].kind;
        ns[spans[i].kind] = add_ns(ns[spans[i].kind], spans[i].ns);
    }
    if (count == to - from) { /* nothing is gained */
        memmove(spans + out, spans + from, count * sizeof *spans);
        return out + count;
    }
    for (uint32_t i = 0; i < count; i++) {
        spans[out + i] = (struct limit_span){start, ns[kinds[i]], kinds[i], true};
        start = add_ns(start, ns[kinds[i]]);
    }
    return out + count;
}

/* Puts together the spans that lie within `width` ns. */
static void thin(struct limit_log *log, int64_t width) {
    struct limit_span *spans = log->spans;
    uint32_t out = 0;
    for (uint32_t i = 0, end; i < log->count; i = end) {
        end = i + 1;
        while (end < log->count && between(spans[i].start_ns, end_of(&spans[end])) <= width)
            end++;
        out = put_together(spans, i, end, out);
    }
    log->count = out;
}

static int compare_spans(const void *left, const void *right) {
    const struct limit_span *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->ns != b->ns ? (a->ns < b->ns ? -1 : 1) : a->kind - b->kind;
}

/* Joins neighbours of one kind without a gap. */
static void join(struct limit_log *log) {
    struct limit_span *last = log->spans;
    for (uint32_t i = 1; i < log->count; i++) {
        const struct limit_span *span = &log->spans[i];
        if (span->kind == last->kind && span->merged == last->merged &&
            span->start_ns == end_of(last))
            last->ns = add_ns(last->ns, span->ns);
        else
            *++last = *span;
    }
    log->count = (uint32_t)(last - log->spans) + 1;
}

void limit_log_finish(struct limit_log *log) {
    if (!log->count)
        return;
    qsort(log->spans, log->count, sizeof *log->spans, compare_spans);
    join(log);
    if (log->count <= MAX_LIMIT_SPANS)
        return;
    int64_t first = log->spans[0].start_ns, last = first;
    for (uint32_t i = 0; i < log->count; i++)
        last = max64(last, end_of(&log->spans[i]));
    int64_t width = max64(between(first, last) / (FIRST_PART * MAX_LIMIT_SPANS), 1);
    for (; log->count > MAX_LIMIT_SPANS; width = add_ns(width, width))
        thin(log, width);
}

/* Makes room for another span. Returns false without memory. */
static bool make_room(struct limit_log *log, struct pool *pool) {
    if (log->count == 2 * MAX_LIMIT_SPANS)
        limit_log_finish(log);
    if (log->count == log->room && !pool_grow(pool, (void **)&log->spans, &log->room,
                                              sizeof *log->spans, 4, 2 * MAX_LIMIT_SPANS))
        log->incomplete = true;
    return log->count < log->room;
}

void limit_log_add(struct limit_log *log, struct pool *pool, unsigned kind, int64_t start_ns,
                   int64_t ns) {
    if (ns <= 0)
        return;
    struct limit_span *last = log->count ? &log->spans[log->count - 1] : NULL;
    if (last && last->kind == kind && end_of(last) == start_ns)
        last->ns = add_ns(last->ns, ns);
    else if (make_room(log, pool))
        log->spans[log->count++] = (struct limit_span){start_ns, ns, (uint8_t)kind, false};
}

void limit_log_move(struct limit_log *log, struct pool *pool, int64_t ns, unsigned kind) {
    if (ns <= 0 || !make_room(log, pool))
        return;
    for (uint32_t i = log->count; ns > 0 && i; i--) {
        struct limit_span *span = &log->spans[i - 1];
        if (span->kind != LIMIT_NETWORK)
            continue;
        if (span->ns > ns) {
            memmove(span + 2, span + 1, (log->count++ - i) * sizeof *span);
            span->ns -= ns;
            span[1] = (struct limit_span){end_of(span), ns, (uint8_t)kind, span->merged};
            return;
        }
        span->kind = (uint8_t)kind;
        ns -= span->ns;
    }
}

void limit_log_free(struct limit_log *log, struct pool *pool) {
    pool_release(pool, log->spans, log->room, sizeof *log->spans);
}
