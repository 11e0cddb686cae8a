/* SPDX-License-Identifier: Apache-2.0 */
/* An array: streams have few holes at a time, and the newest are the ones that change. */
#include "base/range_set.h"

#include <string.h>

static void remove_hole(struct hole_list *list, uint32_t at) {
    list->acked -= list->holes[at].acked;
    list->count--;
    memmove(&list->holes[at], &list->holes[at + 1], (list->count - at) * sizeof *list->holes);
}

static int64_t size_of(const struct hole *hole) {
    return hole->end - hole->start;
}

/* The oldest acknowledged hole costs nothing; else the oldest of all. Returns unknown bytes. */
static int64_t give_up_one(struct hole_list *list) {
    for (uint32_t i = 0; list->acked && i < list->count; i++)
        if (list->holes[i].acked) {
            remove_hole(list, i);
            return 0;
        }
    int64_t bytes = size_of(&list->holes[0]);
    remove_hole(list, 0);
    return bytes;
}

static bool has_room(struct hole_list *list, struct allowance *allowance) {
    return list->count < list->room || allowance_grow(allowance, (void **)&list->holes, &list->room,
                                                      sizeof *list->holes, 2, HOLES_MOST);
}

int64_t hole_list_open(struct hole_list *list, struct hole hole, struct allowance *allowance) {
    int64_t given_up = 0;
    if (!has_room(list, allowance)) {
        if (!list->count)
            return hole.acked ? 0 : size_of(&hole);
        given_up = give_up_one(list);
    }
    if (hole.acked && list->acked == HOLES_ACKED_MOST)
        given_up += give_up_one(list);
    list->holes[list->count++] = hole;
    list->acked += hole.acked;
    return given_up;
}

/* The first hole that ends above `position`. */
static uint32_t first_above(const struct hole_list *list, int64_t position) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (list->holes[middle].end > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Parts hole `at` around [start, end), which lies within it. Returns bytes given up without room.
 */
static int64_t split(struct hole_list *list, uint32_t at, int64_t start, int64_t end,
                     struct allowance *allowance) {
    struct hole upper = list->holes[at];
    list->holes[at].end = start;
    upper.start = end;
    if (!has_room(list, allowance))
        return upper.acked ? 0 : size_of(&upper);
    memmove(&list->holes[at + 2], &list->holes[at + 1],
            (list->count - at - 1) * sizeof *list->holes);
    list->holes[at + 1] = upper;
    list->count++;
    list->acked += upper.acked;
    return 0;
}

struct hole_fill hole_list_fill(struct hole_list *list, int64_t start, int64_t end,
                                struct allowance *allowance, int64_t *given_up) {
    struct hole_fill fill = {0};
    uint32_t at = first_above(list, start);
    while (at < list->count && list->holes[at].start < end) {
        struct hole *hole = &list->holes[at];
        int64_t from = start > hole->start ? start : hole->start;
        int64_t to = end < hole->end ? end : hole->end;
        fill.bytes += to - from;
        fill.acked_bytes += hole->acked ? to - from : 0;
        if (fill.bytes == to - from)
            fill.hole = *hole;
        if (from == hole->start && to == hole->end) {
            fill.closed++;
            remove_hole(list, at);
        } else if (from == hole->start) {
            hole->start = to;
            break;
        } else if (to == hole->end) {
            hole->end = from;
            at++;
        } else {
            *given_up += split(list, at, from, to, allowance);
            break;
        }
    }
    return fill;
}

static void mark_acknowledged(struct hole_list *list, uint32_t at, int64_t now_ns) {
    list->holes[at].acked = true;
    list->holes[at].acked_ns = now_ns;
    list->acked++;
}

/* The lower part of hole `at`, up to `position` within it: a hole of its own, or of the one below.
 */
static void part_acknowledged(struct hole_list *list, uint32_t at, int64_t position, int64_t now_ns,
                              struct allowance *allowance) {
    struct hole *below = at ? &list->holes[at - 1] : NULL;
    if (below && below->acked && below->end == list->holes[at].start) {
        below->end = list->holes[at].start = position;
    } else if (has_room(list, allowance)) {
        split(list, at, position, position, allowance);
        mark_acknowledged(list, at, now_ns);
    } else {
        list->holes[at].start = position;
    }
}

int64_t hole_list_acknowledge(struct hole_list *list, int64_t position, int64_t now_ns,
                              struct allowance *allowance) {
    int64_t bytes = 0;
    uint32_t at = 0;
    for (; at < list->count && list->holes[at].end <= position; at++) {
        if (list->holes[at].acked)
            continue;
        bytes += size_of(&list->holes[at]);
        mark_acknowledged(list, at, now_ns);
    }
    if (at < list->count && list->holes[at].start < position && !list->holes[at].acked) {
        bytes += position - list->holes[at].start;
        part_acknowledged(list, at, position, now_ns, allowance);
    }
    while (list->acked > HOLES_ACKED_MOST)
        give_up_one(list);
    return bytes;
}

void hole_list_tell(struct hole_list *list, int64_t now_ns, uint64_t event) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->holes[i].acked && list->holes[i].acked_ns == now_ns)
            list->holes[i].event = event;
}

int64_t hole_list_bytes(const struct hole_list *list) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < list->count; i++)
        bytes += list->holes[i].acked ? 0 : size_of(&list->holes[i]);
    return bytes;
}

void hole_list_free(struct hole_list *list, struct allowance *allowance) {
    allowance_release(allowance, list->holes, list->room, sizeof *list->holes);
    *list = (struct hole_list){0};
}
