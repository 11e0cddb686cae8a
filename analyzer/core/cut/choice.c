/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and spans are searched by bisection. A span is extended while times rise, as they do in
 * most captures; spans of packets that are stored out of order are merged at the end. */
#include "cut/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define FRAME_MAX (UINT64_C(1) << 40) /* of a bit set: 128 GiB of bits would be above */

bool choice_open(struct choice *choice, size_t count) {
    *choice = (struct choice){.start_ns = INT64_MIN, .end_ns = INT64_MAX};
    choice->files = calloc(count ? count : 1, sizeof *choice->files);
    choice->file_count = count;
    return choice->files != NULL;
}

void choice_close(struct choice *choice) {
    for (size_t i = 0; choice->files && i < choice->file_count; i++)
        free(choice->files[i].bits);
    free(choice->files);
    free(choice->spans);
    *choice = (struct choice){0};
}

bool choice_add_frame(struct choice *choice, size_t file, uint64_t frame) {
    if (file >= choice->file_count || frame >= FRAME_MAX)
        return true; /* no packet has it */
    struct frame_bits *set = &choice->files[file];
    if (frame / 8 >= set->room) {
        uint64_t room = (frame / 8 + 1) * 2;
        uint8_t *bits = realloc(set->bits, room);
        if (!bits)
            return false;
        memset(bits + set->room, 0, room - set->room);
        set->bits = bits;
        set->room = room;
    }
    set->bits[frame / 8] |= (uint8_t)(1 << frame % 8);
    return true;
}

static int compare_range(const void *key, const void *member) {
    const struct frame_range *frame = key, *range = member;
    if (frame->file != range->file)
        return frame->file < range->file ? -1 : 1;
    return frame->first < range->first ? -1 : frame->first > range->last;
}

static bool in_ranges(const struct choice *choice, size_t file, uint64_t frame) {
    const struct frame_range key = {file, frame, frame};
    return choice->range_count && bsearch(&key, choice->ranges, choice->range_count,
                                          sizeof *choice->ranges, compare_range) != NULL;
}

static bool in_time(const struct choice *choice, const struct packet *packet) {
    if (choice->start_ns == INT64_MIN && choice->end_ns == INT64_MAX)
        return true;
    return packet_is_timed(packet) && packet->time_ns >= choice->start_ns &&
           packet->time_ns < choice->end_ns;
}

bool choice_has(const struct choice *choice, size_t file, const struct packet *packet) {
    if (!in_time(choice, packet))
        return false;
    if (choice->all || in_ranges(choice, file, packet->frame))
        return true;
    if (file >= choice->file_count)
        return false;
    const struct frame_bits *set = &choice->files[file];
    return packet->frame / 8 < set->room && set->bits[packet->frame / 8] >> packet->frame % 8 & 1;
}

/* Bounds that no 64-bit time can express are open. */
static struct time_span span_around(int64_t time_ns, int64_t around_ns) {
    struct time_span span;
    if (__builtin_sub_overflow(time_ns, around_ns, &span.first_ns))
        span.first_ns = INT64_MIN;
    if (__builtin_add_overflow(time_ns, around_ns, &span.last_ns))
        span.last_ns = INT64_MAX;
    return span;
}

bool choice_note_time(struct choice *choice, int64_t time_ns) {
    struct time_span around = span_around(time_ns, choice->around_ns);
    struct time_span *last = choice->spans;
    if (choice->span_count)
        last += choice->span_count - 1;
    if (last && around.first_ns >= last->first_ns && around.first_ns <= last->last_ns) {
        last->last_ns = around.last_ns > last->last_ns ? around.last_ns : last->last_ns;
        return true;
    }
    if (!list_grow(&choice->spans, &choice->span_room, choice->span_count + 1,
                   sizeof *choice->spans))
        return false;
    choice->spans[choice->span_count++] = around;
    return true;
}

static int compare_spans(const void *one, const void *other) {
    const struct time_span *a = one, *b = other;
    return (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns);
}

void choice_sort_spans(struct choice *choice) {
    size_t kept = 0;
    if (choice->span_count)
        qsort(choice->spans, choice->span_count, sizeof *choice->spans, compare_spans);
    for (size_t i = 0; i < choice->span_count; i++) {
        struct time_span span = choice->spans[i];
        struct time_span *last = &choice->spans[kept ? kept - 1 : 0];
        if (kept && span.first_ns <= last->last_ns)
            last->last_ns = span.last_ns > last->last_ns ? span.last_ns : last->last_ns;
        else
            choice->spans[kept++] = span;
    }
    choice->span_count = kept;
}

static int compare_time(const void *key, const void *member) {
    const int64_t *time_ns = key;
    const struct time_span *span = member;
    return *time_ns < span->first_ns ? -1 : *time_ns > span->last_ns;
}

bool choice_near(const struct choice *choice, int64_t time_ns) {
    return choice->span_count && bsearch(&time_ns, choice->spans, choice->span_count,
                                         sizeof *choice->spans, compare_time) != NULL;
}
