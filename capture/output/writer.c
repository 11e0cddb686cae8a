/* SPDX-License-Identifier: Apache-2.0 */
/* The merge writes the oldest packet at the head of all lanes, and with it as many following
 * packets as are older than the bound: the oldest time that any other device can still deliver. A
 * device that is silent states how far it has been read, so that others do not wait for its
 * packets. If chunks become scarce or old, packets are written in spite of the bound: a wrong order
 * between interfaces is better than a loss. */
#include "output/writer.h"

#include <sys/resource.h>

#include "buffer/record.h"
#include "common/clock.h"

#define MAX_AGE_NS (2 * NS_PER_S) /* of a chunk that waits for another device */
#define PRESSURE   4              /* a chunk does not wait if fewer than one in so many is empty */

static int64_t head_time(const struct merge *merge, uint32_t device) {
    const struct chunk *chunk = merge->lanes[device].first;
    return record_view(merge->output->capture->settings->format,
                       chunk->data + merge->position[device])
        .time_ns;
}

static void release_first(struct merge *merge, uint32_t device) {
    struct lane *lane = &merge->lanes[device];
    struct chunk *chunk = lane->first;
    lane->first = chunk->next;
    if (!lane->first)
        lane->last = NULL;
    merge->position[device] = 0;
    merge->packets_done[device] = 0;
    chunk_queue_release(merge->queue, chunk);
}

static void write_span(struct merge *merge, uint32_t device, const struct span *span) {
    struct chunk *chunk = merge->lanes[device].first;
    output_take(merge->output, span);
    merge->position[device] += span->size;
    merge->packets_done[device] += span->packets;
    if (merge->position[device] == chunk->fill)
        release_first(merge, device);
}

static void write_chunk(struct merge *merge, uint32_t device) {
    const struct chunk *chunk = merge->lanes[device].first;
    size_t done = merge->position[device];
    struct span span = {.data = chunk->data + done,
                        .size = chunk->fill - done,
                        .description = chunk->description,
                        .packets = chunk->packets - merge->packets_done[device],
                        .first_ns = head_time(merge, device),
                        .last_ns = chunk->last_ns};
    write_span(merge, device, &span);
}

/* Writes the packets at the head of the lane up to a time, at least one. */
static void write_until(struct merge *merge, uint32_t device, int64_t until_ns) {
    const struct chunk *chunk = merge->lanes[device].first;
    enum record_format format = merge->output->capture->settings->format;
    size_t begin = merge->position[device], at = begin;
    struct span span = {.data = chunk->data + begin,
                        .description = chunk->description,
                        .first_ns = head_time(merge, device)};
    while (at < chunk->fill) {
        struct record_view record = record_view(format, chunk->data + at);
        if (record.time_ns > until_ns && span.packets)
            break;
        span.last_ns = record.time_ns;
        span.packets++;
        at += record.size;
    }
    span.size = at - begin;
    write_span(merge, device, &span);
}

/* Returns the time before which no other device than `device` has packets, neither queued nor to
 * come. */
static int64_t bound_of_others(const struct merge *merge, uint32_t device) {
    int64_t bound = INT64_MAX;
    for (uint32_t i = 0; i < merge->queue->devices; i++) {
        const struct lane *lane = &merge->lanes[i];
        if (i == device || (!lane->first && lane->ended))
            continue;
        int64_t least = lane->first ? head_time(merge, i) : lane->complete_ns;
        if (least < bound)
            bound = least;
    }
    return bound;
}

static bool is_pressing(const struct merge *merge, const struct chunk *chunk) {
    return chunk_queue_empty_count(merge->queue) < merge->queue->chunks / PRESSURE ||
           monotonic_ns() - chunk->handed_ns > MAX_AGE_NS;
}

static int find_oldest(const struct merge *merge) {
    int oldest = -1;
    int64_t time = 0;
    for (uint32_t i = 0; i < merge->queue->devices; i++) {
        if (!merge->lanes[i].first)
            continue;
        int64_t own = head_time(merge, i);
        if (oldest < 0 || own < time) {
            oldest = (int)i;
            time = own;
        }
    }
    return oldest;
}

static int64_t least_held(const struct merge *merge, uint32_t device) {
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < merge->queue->devices; i++)
        if (i != device && merge->lanes[i].first && head_time(merge, i) < least)
            least = head_time(merge, i);
    return least;
}

static bool write_oldest(struct merge *merge) {
    int oldest = find_oldest(merge);
    if (oldest < 0)
        return false;
    uint32_t device = (uint32_t)oldest;
    int64_t bound = bound_of_others(merge, device);
    if (head_time(merge, device) > bound) {
        if (!is_pressing(merge, merge->lanes[device].first))
            return false;
        bound = least_held(merge, device);
    }
    if (bound >= merge->lanes[device].first->last_ns)
        write_chunk(merge, device);
    else
        write_until(merge, device, bound);
    return true;
}

bool merge_write(struct merge *merge) {
    bool any = false;
    if (merge->queue->devices == 1) {
        for (; merge->lanes[0].first; any = true)
            write_chunk(merge, 0);
        return any;
    }
    while (write_oldest(merge))
        any = true;
    return any;
}

bool merge_is_empty(const struct merge *merge) {
    for (uint32_t i = 0; i < merge->queue->devices; i++)
        if (merge->lanes[i].first)
            return false;
    return true;
}

bool merge_has_ended(const struct merge *merge) {
    for (uint32_t i = 0; i < merge->queue->devices; i++)
        if (!merge->lanes[i].ended)
            return false;
    return merge_is_empty(merge);
}

#define WAIT_NS (100 * NS_PER_MS)
#define HOLD_NS (10 * NS_PER_MS) /* if packets wait for another device */

static void stop_at_limits(const struct output *output) {
    const struct settings *settings = output->capture->settings;
    if ((settings->stop_bytes && atomic_load(&output->total_bytes) >= settings->stop_bytes) ||
        (settings->stop_files && atomic_load(&output->files) >= settings->stop_files))
        atomic_store(&output->capture->stopping, true);
}

static void *run(void *argument) {
    struct writer *writer = argument;
    struct merge *merge = &writer->merge;
    setpriority(PRIO_PROCESS, 0,
                0); /* on Linux of this thread only; reading threads have priority */
    while (!merge_has_ended(merge)) {
        chunk_queue_pop_all(merge->queue, merge->lanes, merge_is_empty(merge) ? WAIT_NS : HOLD_NS);
        bool any = merge_write(merge);
        output_poll(merge->output, !any && merge_is_empty(merge));
        stop_at_limits(merge->output);
    }
    output_close(merge->output);
    atomic_store(&writer->done, true);
    return NULL;
}

bool writer_start(struct writer *writer, struct output *output) {
    writer->merge = (struct merge){.queue = &output->capture->queue, .output = output};
    if (pthread_create(&writer->thread, NULL, run, writer))
        return false;
    pthread_setname_np(writer->thread, "write");
    return true;
}

void writer_join(struct writer *writer) {
    pthread_join(writer->thread, NULL);
}
