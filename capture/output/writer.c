/* SPDX-License-Identifier: Apache-2.0 */
/* The merge writes the oldest packet at the head of all lanes, and with it as many following
 * packets as are older than the bound: the oldest time that any other device can still deliver. A
 * device that is silent states how far it has been read, so that others do not wait for its
 * packets. If chunks become scarce or old, packets are written in spite of the bound: a wrong order
 * between interfaces is better than a loss.
 *
 * Packets come as spans of whole records. A span is cut if the open file reaches a limit of bytes,
 * packets or time: the first part goes into that file, the rest into the next. Boundaries of time
 * are compared with the time stamps of packets, not with the clock, so that each packet lies in the
 * file of its time even if writing is delayed. */
#include "output/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer/record.h"
#include "common/clock.h"
#include "common/log.h"
#include "output/file.h"

#define CHECK_NS (500 * NS_PER_MS)
/* Packets from before the boundary may still come. If none follows it, the file ends after this
 * time. */
#define GRACE_NS (500 * NS_PER_MS)

/* Limits of the open file that remain. */
struct room {
    uint64_t bytes, packets;
    int64_t before_ns;
};

static struct room room_left(const struct output *output) {
    const struct settings *settings = output->capture->settings;
    struct room room = {UINT64_MAX, UINT64_MAX, INT64_MAX};
    if (settings->file_bytes)
        room.bytes =
            settings->file_bytes > output->bytes ? settings->file_bytes - output->bytes : 0;
    if (settings->file_packets)
        room.packets = settings->file_packets - output->packets;
    if (output->boundary_ns)
        room.before_ns = output->boundary_ns;
    return room;
}

/* Returns the part of the span that fits into the open file, which may be empty. A file has at
 * least one packet, even if that exceeds its size. */
static struct span fitting(const struct output *output, const struct span *span) {
    struct room room = room_left(output);
    struct span part = *span;
    if (span->size <= room.bytes && span->packets <= room.packets && span->last_ns < room.before_ns)
        return part;
    part.size = part.packets = 0;
    while (part.size < span->size && part.packets < room.packets) {
        struct record_view record =
            record_view(output->capture->settings->format, span->data + part.size);
        bool first = !output->packets && !part.packets;
        if ((part.size + record.size > room.bytes && !first) || record.time_ns >= room.before_ns)
            break;
        part.size += record.size;
        part.packets++;
        part.last_ns = record.time_ns;
    }
    return part;
}

/* Returns the rest of `span` after its first `part`. */
static struct span rest_of(const struct output *output, const struct span *span,
                           const struct span *part) {
    struct span rest = *span;
    rest.data += part->size;
    rest.size -= part->size;
    rest.packets -= part->packets;
    if (rest.size)
        rest.first_ns = record_view(output->capture->settings->format, rest.data).time_ns;
    return rest;
}

/* Counts packets that could not be written; they are not tried again. */
static void drop(struct output *output, const struct span *span) {
    output_count_dropped(output, span->description, span->packets);
    output->failed_packets += span->packets;
}

/* Returns the whole records in the first `size` bytes. */
static struct span whole_records(const struct output *output, const struct span *span,
                                 size_t size) {
    struct span whole = *span;
    whole.size = whole.packets = 0;
    while (whole.size < size) {
        size_t next = record_view(output->capture->settings->format, span->data + whole.size).size;
        if (whole.size + next > size)
            break;
        whole.size += next;
        whole.packets++;
    }
    return whole;
}

/* Writes the span. If only a part was written, packets of the last whole record on are dropped. */
static void store_packets(struct output *output, const struct span *span) {
    size_t done = output_store(output, span->data, span->size);
    struct span whole = *span;
    if (done < span->size) {
        if (output->directory->is_stream)
            output_end_stream(output);
        else
            output_note_failure(output, output->directory->path);
        whole = whole_records(output, span, done);
        struct span rest = rest_of(output, span, &whole);
        drop(output, &rest);
    } else {
        output_note_success(output);
    }
    output->bytes += whole.size;
    output->packets += whole.packets;
    atomic_fetch_add(&output->total_bytes, whole.size);
    output_count_written(output, span->description, whole.packets);
}

/* Each pass fills the open file up to its limits. A span that reaches them is continued in a new
 * file. */
void output_take(struct output *output, const struct span *span) {
    struct span rest = *span;
    while (rest.size) {
        if (output->gave_up || (output->fd < 0 && !output_begin(output, rest.first_ns)) ||
            !output_store_descriptions(output)) {
            drop(output, &rest);
            return;
        }
        struct span part = fitting(output, &rest);
        if (part.size)
            store_packets(output, &part);
        rest = rest_of(output, &rest, &part);
        if (rest.size)
            output_close(output);
    }
}

/* Writes a step of the clock into the file as a comment, because packets before and after it cannot
 * be compared by time. */
static void record_clock_step(struct output *output) {
    int64_t step = atomic_exchange(&output->clock_step_ns, 0);
    if (!step)
        return;
    if (output->capture->settings->file_ns)
        output->boundary_ns = output_next_boundary(output->capture->settings, realtime_ns());
    if (output->fd < 0 || !output->described || output->capture->settings->format == RECORD_PCAP)
        return;
    char comment[128];
    snprintf(comment, sizeof comment, "the clock was set by %+.9f s", (double)step / NS_PER_S);
    struct pcapng_buffer buffer = {0};
    pcapng_statistics(&buffer, &(struct pcapng_statistics){.end_ns = realtime_ns()}, comment);
    if (!output_store_blocks(output, &buffer))
        output_note_failure(output, output->directory->path);
}

/* The counts of lost files are moved into the statistics of the open file, so that the sums over
 * all files remain the totals. */
void output_count_lost_files(struct output *output) {
    struct lost lost;
    if (output->directory->is_stream || !finisher_take_lost(output->finisher, &lost))
        return;
    for (uint32_t i = 0; i < output->capture->descriptions.count; i++) {
        output_count_lost(output, i, lost.counts[i].written);
        counts_subtract(&output->before[i], &lost.counts[i]);
    }
    atomic_fetch_sub(&output->files, lost.files);
    atomic_fetch_sub(&output->total_bytes, lost.bytes);
}

/* Bytes of a file that was removed are not reachable, so its packets count as dropped and a new
 * file begins. */
static void check_file_exists(struct output *output) {
    struct stat info;
    if (output->directory->is_stream || output->fd < 0 || fstat(output->fd, &info) || info.st_nlink)
        return;
    log_warning("%s was removed while it was written: its %llu packets are lost, and counted as "
                "dropped by the disk",
                output->temporary, (unsigned long long)output->packets);
    for (uint32_t i = 0; i < output->described; i++)
        output_count_lost(output, i, output_counts_since(output, i).written);
    atomic_fetch_sub(&output->total_bytes, output->bytes);
    close(output->fd);
    output->fd = -1;
    output_begin(output, realtime_ns());
}

/* Returns whether the boundary of time has passed without a packet after it. */
static bool is_over(const struct output *output, bool idle) {
    return output->boundary_ns && idle && realtime_ns() >= output->boundary_ns + GRACE_NS;
}

/* A request by signal and a boundary of time both end the file. After SIGHUP the directory is
 * opened again first. */
void output_poll(struct output *output, bool idle) {
    int64_t now = monotonic_ns();
    int requests = atomic_exchange(&output->requests, 0);
    record_clock_step(output);
    if (now - output->checked_ns >= CHECK_NS) {
        output->checked_ns = now;
        check_file_exists(output);
        output_count_lost_files(output);
        if (output->failing && output->fd < 0)
            output_begin(output, realtime_ns());
    }
    if (output->directory->sealed)
        requests = 0; /* a sealed directory has only one file */
    bool over = is_over(output, idle);
    if (output->directory->is_stream || (!requests && !over) ||
        !output->capture->descriptions.count)
        return; /* a file has at least one interface */
    int64_t begin_ns = over && !requests ? output->boundary_ns : realtime_ns();
    output_close(output);
    if (requests & REQUEST_REOPEN && !directory_reopen(output->directory))
        log_warning("cannot open %s again: %s; the open directory stays in use",
                    output->directory->path, strerror(errno));
    output_begin(output, begin_ns);
}

#define MAX_AGE_NS (2 * NS_PER_S) /* of a chunk that waits for another device */
#define PRESSURE   4              /* a chunk does not wait if fewer than one in so many is empty */

/* Returns the time of the oldest packet in a lane that is not written yet. */
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

/* Writes a span of the first chunk of a lane, and releases the chunk if it is complete. */
static void write_span(struct merge *merge, uint32_t device, const struct span *span) {
    struct chunk *chunk = merge->lanes[device].first;
    output_take(merge->output, span);
    merge->position[device] += span->size;
    merge->packets_done[device] += span->packets;
    if (merge->position[device] == chunk->fill)
        release_first(merge, device);
}

/* Writes the rest of a chunk at once, without looking at single records. */
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

/* Returns whether packets must be written although an older one of another device may still come.
 */
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

/* Writes the oldest packets that are not younger than the bound. Returns false if all must wait. */
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

/* A single device needs no merge: whole chunks are written as they are. */
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

/* Limits of bytes and files are checked between batches, so that the last file may exceed them by
 * one batch. */
static void stop_at_limits(const struct output *output) {
    const struct settings *settings = output->capture->settings;
    if ((settings->stop_bytes && atomic_load(&output->total_bytes) >= settings->stop_bytes) ||
        (settings->stop_files && atomic_load(&output->files) >= settings->stop_files))
        atomic_store(&output->capture->stopping, true);
}

/* Takes, merges and writes until all devices have ended and all lanes are empty. */
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
