/* SPDX-License-Identifier: Apache-2.0 */
/* Delay, jitter and reordering. The heap is binary; packets that leave at the same time keep their
 * order. A packet that is held back leaves right after the packet that is the last to overtake it.
 */
#include "path/delay_line.h"

#include <math.h>
#include <stdlib.h>

void delay_line_init(struct delay_line *line, const struct link_spec *spec, uint64_t seed) {
    *line = (struct delay_line){.spec = spec, .seed = seed, .last_out_ns = INT64_MIN};
}

void delay_line_free(struct delay_line *line) {
    free(line->heap);
    line->heap = NULL;
}

static bool is_before(const struct link_packet *a, const struct link_packet *b) {
    return a->out_ns != b->out_ns ? a->out_ns < b->out_ns : a->order < b->order;
}

/* Makes room for one more packet. Returns false if memory ran out. */
static bool reserve(struct delay_line *line) {
    if (line->count < line->capacity)
        return true;
    uint32_t capacity = line->capacity ? line->capacity * 2 : 256;
    struct link_packet **heap = capacity > line->capacity
                                    ? realloc(line->heap, capacity * sizeof(struct link_packet *))
                                    : NULL;
    if (!heap)
        return false;
    line->heap = heap;
    line->capacity = capacity;
    return true;
}

static bool push(struct delay_line *line, struct link_packet *packet) {
    if (!reserve(line))
        return false;
    packet->order = line->order++;
    uint32_t at = line->count++;
    for (; at && is_before(packet, line->heap[(at - 1) / 2]); at = (at - 1) / 2)
        line->heap[at] = line->heap[(at - 1) / 2];
    line->heap[at] = packet;
    return true;
}

/* Removes the root: the last leaf moves down to its place. */
static struct link_packet *pop(struct delay_line *line) {
    struct link_packet *first = line->heap[0], *moved = line->heap[--line->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= line->count)
            break;
        if (child + 1 < line->count && is_before(line->heap[child + 1], line->heap[child]))
            child++;
        if (!is_before(line->heap[child], moved))
            break;
        line->heap[at] = line->heap[child];
        at = child;
    }
    line->heap[at] = moved;
    return first;
}

/* Draws from the distribution: uniform in [-jitter, jitter), normal with this deviation (Box and
 * Muller), or exponential with this mean. */
static double jitter_ns(const struct delay_line *line, uint64_t index) {
    const struct link_spec *spec = line->spec;
    double size = (double)spec->jitter_ns, draw = random_share(line->seed, DRAW_JITTER, index);
    if (spec->distribution == JITTER_UNIFORM)
        return size * (2 * draw - 1);
    double length = -log(1 - draw);
    if (spec->distribution == JITTER_EXPONENTIAL)
        return size * length;
    return size * sqrt(2 * length) *
           cos(2 * M_PI * random_share(line->seed, DRAW_JITTER_SECOND, index));
}

/* A negative sum of delay and jitter counts as 0. */
static int64_t out_time(struct delay_line *line, const struct link_packet *packet,
                        int64_t sent_ns) {
    const struct link_spec *spec = line->spec;
    int64_t delay = link_spec_delay_ns(spec, sent_ns - line->origin_ns);
    if (spec->jitter_ns)
        delay += (int64_t)fmin(jitter_ns(line, packet->original->truth.index), 1e15);
    return sent_ns + (delay > 0 ? delay : 0);
}

/* A packet leaves at `out_ns`: those that are held back and waited for it alone leave right after
 * it. */
static bool overtake_held(struct delay_line *line, int64_t out_ns) {
    for (struct link_packet **at = &line->held; *at;) {
        struct link_packet *packet = *at;
        if (--packet->overtakers) {
            at = &packet->next;
            continue;
        }
        *at = packet->next;
        if (packet->out_ns < out_ns)
            packet->out_ns = out_ns;
        if (!push(line, packet))
            return false;
    }
    return true;
}

/* Copies are never held back. */
static bool is_held(const struct delay_line *line, const struct link_packet *packet) {
    return packet->original == packet &&
           is_drawn(line->seed, DRAW_REORDER, packet->truth.index, line->spec->reorder);
}

/* A held packet does not set last_out_ns, because the others must overtake it. */
bool delay_line_put(struct delay_line *line, struct link_packet *packet, int64_t sent_ns) {
    packet->out_ns = out_time(line, packet, sent_ns);
    if (is_held(line, packet)) {
        packet->truth.bits |= TRUTH_REORDERED;
        packet->overtakers = (uint32_t)line->spec->reorder_distance;
        packet->next = line->held;
        line->held = packet;
        return true;
    }
    if (!line->spec->jitter_reorders && packet->out_ns < line->last_out_ns)
        packet->out_ns = line->last_out_ns;
    line->last_out_ns = packet->out_ns;
    return push(line, packet) && overtake_held(line, packet->out_ns);
}

static int64_t held_until(const struct delay_line *line, const struct link_packet *packet) {
    return packet->out_ns + line->spec->reorder_wait_ns;
}

/* Walks the list of held packets, which is short because each leaves after `distance` others. */
int64_t delay_line_next_ns(const struct delay_line *line) {
    int64_t next = line->count ? line->heap[0]->out_ns : INT64_MAX;
    for (const struct link_packet *packet = line->held; packet; packet = packet->next)
        if (held_until(line, packet) < next)
            next = held_until(line, packet);
    return next;
}

/* Returns the packet held back whose wait ends first, if that is by `now_ns` and before any other
 * packet leaves. */
static struct link_packet *take_held(struct delay_line *line, int64_t now_ns) {
    int64_t next = delay_line_next_ns(line);
    for (struct link_packet **at = &line->held; *at; at = &(*at)->next) {
        struct link_packet *packet = *at;
        if (held_until(line, packet) <= now_ns && held_until(line, packet) == next) {
            *at = packet->next;
            packet->out_ns = next;
            return packet;
        }
    }
    return NULL;
}

struct link_packet *delay_line_take(struct delay_line *line, int64_t now_ns) {
    struct link_packet *held = line->held ? take_held(line, now_ns) : NULL;
    if (held)
        return held;
    return line->count && line->heap[0]->out_ns <= now_ns ? pop(line) : NULL;
}

struct link_packet *delay_line_empty(struct delay_line *line) {
    struct link_packet *held = line->held;
    if (held)
        line->held = held->next;
    return held ? held : line->count ? pop(line) : NULL;
}
