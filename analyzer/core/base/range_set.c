/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array: a stream has few gaps at a time, and most changes are at its ends, because gaps
 * open above all others and a sender fills the lowest first. Entries below the lowest gap stay
 * unused until half of the array is, or an eighth if it cannot grow; then all gaps move down, so
 * that many changes share the cost. If there is no room, the lowest gaps are dropped. Acknowledged
 * gaps are the lowest, and the receiver has their bytes; those of others count as unknown from then
 * on. */
#include "base/range_set.h"

#include <string.h>

static struct gap *entries_of(const struct range_set *list) {
    return list->gaps ? list->gaps - list->head : NULL;
}

static void remove_gap(struct range_set *list, uint32_t at) {
    list->acked = (uint16_t)(list->acked - list->gaps[at].acked);
    list->count--;
    if (at < list->count / 2u || !at) {
        memmove(&list->gaps[1], &list->gaps[0], at * sizeof *list->gaps);
        list->gaps++;
        list->head++;
    } else {
        memmove(&list->gaps[at], &list->gaps[at + 1], (list->count - at) * sizeof *list->gaps);
    }
}

static int64_t size_of(const struct gap *gap) {
    return gap->end - gap->start;
}

/* Returns the bytes that become unknown. */
static int64_t give_up_lowest(struct range_set *list) {
    int64_t bytes = list->gaps[0].acked ? 0 : size_of(&list->gaps[0]);
    remove_gap(list, 0);
    return bytes;
}

static bool grow(struct range_set *list, struct pool *pool) {
    struct gap *entries = entries_of(list);
    uint32_t room = list->room;
    if (!pool_grow(pool, (void **)&entries, &room, sizeof *entries, 2, GAPS_MOST + GAPS_MOST / 4))
        return false;
    list->gaps = entries + list->head;
    list->room = (uint16_t)room;
    return true;
}

static bool move_down(struct range_set *list) {
    if (!list->gaps || !list->head)
        return false;
    list->gaps = memmove(entries_of(list), list->gaps, list->count * sizeof *list->gaps);
    list->head = 0;
    return true;
}

/* Returns whether there is an entry above the highest gap. */
static bool has_room(struct range_set *list, struct pool *pool) {
    if (list->count == GAPS_MOST)
        return false;
    if (list->head + list->count < list->room)
        return true;
    return (2u * list->head <= list->room && grow(list, pool)) ||
           (8u * list->head >= list->room && move_down(list));
}

/* Returns whether there is an entry above the highest gap or below the lowest. */
static bool has_room_inside(struct range_set *list, struct pool *pool) {
    return has_room(list, pool) || (list->head && list->count < GAPS_MOST);
}

int64_t range_set_open(struct range_set *list, struct gap gap, struct pool *pool) {
    int64_t given_up = 0;
    bool full = gap.acked && list->acked == GAPS_ACKED_MOST;
    for (; list->count && (full || !has_room(list, pool)); full = false)
        given_up += give_up_lowest(list);
    if (!has_room(list, pool)) /* not even for one */
        return gap.acked ? 0 : size_of(&gap);
    list->gaps[list->count++] = gap;
    list->acked = (uint16_t)(list->acked + gap.acked);
    return given_up;
}

uint32_t range_set_first_above(const struct range_set *list, int64_t position) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (list->gaps[middle].end > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Splits gap `at` around [start, end), which must be inside it. Returns the bytes that become
 * unknown if there is no room. */
static int64_t split(struct range_set *list, uint32_t at, int64_t start, int64_t end,
                     struct pool *pool) {
    struct gap upper = list->gaps[at];
    list->gaps[at].end = start;
    upper.start = end;
    if (!has_room_inside(list, pool))
        return upper.acked ? 0 : size_of(&upper);
    bool above = list->head + list->count < list->room;
    if (list->head && (!above || at < list->count / 2u)) {
        list->gaps = memmove(list->gaps - 1, list->gaps, (at + 1) * sizeof *list->gaps);
        list->head--;
    } else {
        memmove(&list->gaps[at + 2], &list->gaps[at + 1],
                (list->count - at - 1) * sizeof *list->gaps);
    }
    list->gaps[at + 1] = upper;
    list->count++;
    list->acked = (uint16_t)(list->acked + upper.acked);
    return 0;
}

struct gap_fill range_set_fill(struct range_set *list, int64_t start, int64_t end,
                               struct pool *pool, int64_t *given_up) {
    struct gap_fill fill = {0};
    uint32_t at = range_set_first_above(list, start);
    while (at < list->count && list->gaps[at].start < end) {
        struct gap *gap = &list->gaps[at];
        int64_t from = start > gap->start ? start : gap->start;
        int64_t to = end < gap->end ? end : gap->end;
        fill.bytes += to - from;
        fill.acked_bytes += gap->acked ? to - from : 0;
        /* True for the first gap only: later ones add to a sum that is > 0. */
        if (fill.bytes == to - from)
            fill.gap = *gap;
        if (from == gap->start && to == gap->end) {
            fill.closed++;
            remove_gap(list, at);
        } else if (from == gap->start) {
            gap->start = to;
            break;
        } else if (to == gap->end) {
            gap->end = from;
            at++;
        } else {
            *given_up += split(list, at, from, to, pool);
            break;
        }
    }
    return fill;
}

static void mark_acknowledged(struct range_set *list, uint32_t at, int64_t now_ns) {
    list->gaps[at].acked = true;
    list->gaps[at].acked_ns = now_ns;
    list->acked++;
}

/* Marks the lower part of gap `at` as acknowledged: as a gap of its own, or by growing the one
 * below. */
static void part_acknowledged(struct range_set *list, uint32_t at, int64_t position, int64_t now_ns,
                              struct pool *pool) {
    struct gap *below = at ? &list->gaps[at - 1] : NULL;
    if (below && below->acked && below->end == list->gaps[at].start) {
        below->end = list->gaps[at].start = position;
    } else if (has_room_inside(list, pool)) {
        split(list, at, position, position, pool);
        mark_acknowledged(list, at, now_ns);
    } else {
        /* Without room the part is forgotten: the receiver has its bytes, so they are not lost. */
        list->gaps[at].start = position;
    }
}

int64_t range_set_acknowledge(struct range_set *list, int64_t position, int64_t now_ns,
                              struct pool *pool) {
    int64_t bytes = 0;
    uint32_t at = 0;
    for (; at < list->count && list->gaps[at].end <= position; at++) {
        if (list->gaps[at].acked)
            continue;
        bytes += size_of(&list->gaps[at]);
        mark_acknowledged(list, at, now_ns);
    }
    if (at < list->count && list->gaps[at].start < position && !list->gaps[at].acked) {
        bytes += position - list->gaps[at].start;
        part_acknowledged(list, at, position, now_ns, pool);
    }
    /* Data stored after their ACK follow soon, so the lowest can go. */
    while (list->acked > GAPS_ACKED_MOST)
        give_up_lowest(list);
    return bytes;
}

void range_set_set_event(struct range_set *list, int64_t now_ns, struct flow_event *event) {
    for (uint32_t i = 0; i < list->count && list->gaps[i].acked; i++)
        if (list->gaps[i].acked_ns == now_ns)
            list->gaps[i].event = event;
}

int64_t range_set_bytes(const struct range_set *list) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < list->count; i++)
        bytes += list->gaps[i].acked ? 0 : size_of(&list->gaps[i]);
    return bytes;
}

void range_set_free(struct range_set *list, struct pool *pool) {
    pool_release(pool, entries_of(list), list->room, sizeof *list->gaps);
    *list = (struct range_set){0};
}
