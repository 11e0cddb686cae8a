/* SPDX-License-Identifier: Apache-2.0 */
/* The merge writes the oldest packet at the head of all lanes, and with it as many following
 * packets as are older than the bound: the oldest time that any other device can still deliver. A
 * device that is silent states how far it has been read, so that others do not wait for its
 * packets. If chunks become scarce or old, packets are written in spite of the bound: a wrong order
 * between interfaces is better than a loss.
 *
 * Packets come as spans of whole records. A span is cut if the open file reaches a limit of bytes,
 * packets or time: the first part goes into that file, the rest into the next. Boundaries of time
 * are compared with the time stamps of packets, not with the clock, so that each packet goes into
 * the file of its time even if writing is delayed. */
#include "output/file.h"

#include <errno.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "buffer/record.h"
#include "common/clock.h"
#include "common/log.h"

#define CHECK_NS        (500 * NS_PER_MS)
#define STATISTICS_MOST 512      /* bytes for each interface */
#define END_PATIENCE_NS NS_PER_S /* at the end, for a disk that takes no packets */
/* Packets from before the boundary may still come. If none follows it, the file ends after this
 * time. */
#define GRACE_NS (500 * NS_PER_MS)

/* Limits of a part of a span. */
struct room {
    uint64_t bytes, packets;
    int64_t until_ns; /* time of the last packet at most */
};

static struct record_view first_record(const struct output *output, const struct span *span) {
    return record_view(output->capture->settings->format, span->data);
}

/* Returns the room of the open file. A file has at least one packet, even if that exceeds its size.
 */
static struct room room_left(const struct output *output, const struct span *span) {
    const struct settings *settings = output->capture->settings;
    struct room room = {UINT64_MAX, UINT64_MAX, INT64_MAX};
    if (settings->file_bytes)
        room.bytes =
            settings->file_bytes > output->bytes ? settings->file_bytes - output->bytes : 0;
    if (!output->packets && room.bytes < span->size)
        room.bytes = MAX(room.bytes, first_record(output, span).size);
    if (settings->file_packets)
        room.packets = settings->file_packets - output->packets;
    if (output->boundary_ns)
        room.until_ns = output->boundary_ns - 1;
    return room;
}

/* Returns the rest of `span` after its first `part`. */
static struct span rest_of(const struct output *output, const struct span *span,
                           const struct span *part) {
    struct span rest = *span;
    rest.data += part->size;
    rest.size -= part->size;
    rest.packets -= part->packets;
    if (rest.size)
        rest.first_ns = first_record(output, &rest).time_ns;
    return rest;
}

/* Returns the whole records at the beginning of the span that fit into the room, maybe none. Single
 * records are looked at only if not all of them fit. */
static struct span part_of(const struct output *output, const struct span *span, struct room room) {
    struct span part = *span;
    if (span->size <= room.bytes && span->packets <= room.packets && span->last_ns <= room.until_ns)
        return part;
    part.size = part.packets = 0;
    while (part.size < span->size && part.packets < room.packets) {
        struct record_view record =
            record_view(output->capture->settings->format, span->data + part.size);
        if (part.size + record.size > room.bytes || record.time_ns > room.until_ns)
            break;
        part.size += record.size;
        part.packets++;
        part.last_ns = record.time_ns;
    }
    return part;
}

/* Counts packets that could not be written; they are not tried again. */
static void drop(struct output *output, const struct span *span) {
    struct description *of = &output->capture->descriptions.items[span->description];
    counter_add(&of->counts.dropped_disk, span->packets);
}

/* Returns whether packets that cannot be written are tried again: at the end of the capture only
 * for a while, and never for a stream, whose reader left. */
static bool is_patient(struct output *output) {
    if (output->directory->is_stream || output->gave_up || output->directory_gone)
        return false;
    if (!atomic_load(&output->capture->stopping))
        return true;
    if (!output->patience_ns)
        output->patience_ns = monotonic_ns() + END_PATIENCE_NS;
    return monotonic_ns() < output->patience_ns;
}

/* Writes the span. Returns the packets that were written, up to the last whole record; on a full
 * disk the last ones leave their room to the statistics and wait. Unless only room is missing, the
 * next attempt is made with another file. */
static struct span store_packets(struct output *output, const struct span *span) {
    size_t done = output_store(output, span->data, span->size);
    int reason = errno;
    struct span whole = *span;
    if (done < span->size) {
        uint64_t reserved = (uint64_t)STATISTICS_MOST * output->described;
        output_note_failure(output);
        whole =
            part_of(output, span,
                    (struct room){done > reserved ? done - reserved : 0, UINT64_MAX, INT64_MAX});
    } else {
        output_note_success(output);
    }
    output->bytes += whole.size;
    output->packets += whole.packets;
    atomic_fetch_add(&output->total_bytes, whole.size);
    struct description *of = &output->capture->descriptions.items[span->description];
    counter_add(&of->counts.written, whole.packets);
    if (done < span->size && output->packets && !output->directory->is_stream &&
        !is_no_room(reason))
        output_close(output);
    return whole;
}

/* Returns whether there is an open file that describes all interfaces. */
static bool is_ready(struct output *output, int64_t time_ns) {
    if (output->gave_up || (output->failing && monotonic_ns() < output->retry_ns) ||
        (output->fd < 0 && !output_begin(output, time_ns)))
        return false;
    bool is_described = output_store_descriptions(output);
    if (!is_described)
        output_note_failure(output);
    return is_described;
}

/* Each pass fills the open file up to its limits. A span that reaches them is continued in a new
 * file, which is open before the old one ends. */
struct span output_take(struct output *output, const struct span *span) {
    struct span rest = *span;
    while (rest.size && is_ready(output, rest.first_ns)) {
        struct span part = part_of(output, &rest, room_left(output, &rest));
        struct span whole = part.size ? store_packets(output, &part) : part;
        rest = rest_of(output, &rest, &whole);
        if (whole.size < part.size || (rest.size && !output_begin(output, rest.first_ns)))
            break;
    }
    if (rest.size && !is_patient(output)) {
        drop(output, &rest);
        rest.size = 0;
    }
    return rest;
}

/* Returns the newest description of the device that the file has. */
static uint32_t description_of(const struct output *output, uint32_t device) {
    uint32_t number = output->described - 1;
    while (number && output->capture->descriptions.items[number].device != device)
        number--;
    return number;
}

/* Writes what happened to the clock and to links into the file, between the packets of that time:
 * packets before and after a step cannot be compared by time. Notes wait for a file. */
static void record_notes(struct output *output) {
    struct note notes[NOTES_WAITING];
    const struct settings *settings = output->capture->settings;
    if (atomic_exchange(&output->clock_stepped, false) && settings->file_ns)
        output->boundary_ns = output_next_boundary(settings, realtime_ns());
    if (output->fd < 0 || output->gave_up || output->failing || !output->described)
        return;
    unsigned count = notes_take(&output->notes, notes);
    for (unsigned i = 0; i < count && settings->format != RECORD_PCAP; i++) {
        struct pcapng_buffer buffer = {0};
        struct pcapng_statistics block = {.interface = description_of(output, notes[i].device),
                                          .end_ns = notes[i].time_ns};
        if (output->noted++ >= NOTES_OF_FILE)
            return;
        pcapng_statistics(&buffer, &block, notes[i].sentence, notes[i].facts);
        if (!output_store_blocks(output, &buffer))
            output_note_failure(output);
    }
}

/* The counts of lost files are moved into the statistics of the open file, so that the sums over
 * all files remain the totals. A leftover of an earlier run is in no total. */
void output_count_lost_files(struct output *output) {
    bool is_stream = output->directory->is_stream; /* then there is no finisher */
    struct finished_file *next = is_stream ? NULL : finisher_take_lost(output->finisher);
    for (struct finished_file *file; (file = next);) {
        for (uint32_t i = 0; i < file->described; i++) {
            output_count_lost(output, i, file->counts[i].written);
            counts_subtract(&output->before[i], &file->counts[i]);
        }
        if (!file->recovered) {
            atomic_fetch_sub(&output->files, 1);
            atomic_fetch_sub(&output->total_bytes, file->bytes);
        }
        next = file->next;
        finished_file_free(file);
    }
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

/* Begins the next file on request. After SIGHUP the directory is opened again first; a file that is
 * open then ends in its own. A request ends the file even if the next one cannot be begun. */
static void take_request(struct output *output, int requests) {
    if (requests & REQUEST_REOPEN) {
        output_close(output);
        if (!directory_reopen(output->directory))
            log_warning("cannot open %s again: %s; the open directory stays in use",
                        output->directory->path, strerror(errno));
    }
    output->retry_ns = 0;
    if (!output_begin(output, realtime_ns()))
        output_close(output);
}

static void look_at_disk(struct output *output) {
    struct statvfs disk;
    bool is_known = !output->directory->is_stream && !fstatvfs(output->directory->fd, &disk);
    atomic_store(&output->disk_bytes, is_known ? (int64_t)(disk.f_blocks * disk.f_frsize) : -1);
    atomic_store(&output->disk_free_bytes,
                 is_known ? (int64_t)(disk.f_bavail * disk.f_frsize) : -1);
}

/* A request by signal and a boundary of time, which passed without a packet after it, both end the
 * file. */
void output_poll(struct output *output, bool idle) {
    int64_t now = monotonic_ns();
    int requests = atomic_exchange(&output->requests, 0);
    record_notes(output);
    if (now - output->checked_ns >= CHECK_NS) {
        output->checked_ns = now;
        look_at_disk(output);
        check_file_exists(output);
        output_count_lost_files(output);
        if (output->failing && output->fd < 0 && idle)
            output_begin(output, realtime_ns());
    }
    if (output->directory->is_stream || !output->capture->descriptions.count)
        return; /* a file has at least one interface */
    bool over = output->boundary_ns && idle && realtime_ns() >= output->boundary_ns + GRACE_NS;
    if (requests && !output->directory->sealed) /* that has only one file */
        take_request(output, requests);
    else if (over)
        output_begin(output, output->boundary_ns);
}

#define MAX_AGE_NS (2 * NS_PER_S) /* of a chunk that waits for another device */
#define PRESSURE   4              /* a chunk does not wait if fewer than one in so many is empty */

/* Returns the time before which no other lane than `own` has queued packets; if `coming`, also none
 * that will still come. */
static int64_t bound_of_others(const struct writer *writer, const struct lane *own, bool coming) {
    int64_t bound = INT64_MAX;
    for (uint32_t i = 0; i < writer->output->capture->queue.devices; i++) {
        const struct lane *lane = &writer->lanes[i];
        if (lane != own && lane->first)
            bound = MIN(bound, lane->first->left.first_ns);
        else if (lane != own && coming && !lane->ended)
            bound = MIN(bound, lane->complete_ns);
    }
    return bound;
}

/* Returns the lane with the oldest packet, or NULL if no lane has one. */
static struct lane *find_oldest(struct writer *writer) {
    struct lane *oldest = NULL;
    for (uint32_t i = 0; i < writer->output->capture->queue.devices; i++) {
        struct lane *lane = &writer->lanes[i];
        if (lane->first && (!oldest || lane->first->left.first_ns < oldest->first->left.first_ns))
            oldest = lane;
    }
    return oldest;
}

/* Writes the oldest packets that are not younger than the bound. Returns false if all must wait, or
 * cannot be written now. If
 * the queue has little room or the chunk is old, it does not wait, although an older packet of
 * another device may still come. */
static bool write_oldest(struct writer *writer) {
    struct chunk_queue *queue = &writer->output->capture->queue;
    struct lane *lane = find_oldest(writer);
    atomic_store(&writer->output->waiting_ns, lane ? lane->first->handed_ns : 0);
    if (!lane)
        return false;
    struct chunk *chunk = lane->first;
    struct room room = {UINT64_MAX, UINT64_MAX, bound_of_others(writer, lane, true)};
    if (chunk->left.first_ns > room.until_ns) {
        if (queue->empty_count >= queue->chunks / PRESSURE &&
            monotonic_ns() - chunk->handed_ns <= MAX_AGE_NS)
            return false;
        room.until_ns = bound_of_others(writer, lane, false);
    }
    struct span part = part_of(writer->output, &chunk->left, room);
    struct span held = output_take(writer->output, &part);
    part.size -= held.size;
    part.packets -= held.size ? held.packets : 0;
    chunk->left = rest_of(writer->output, &chunk->left, &part);
    if (held.size)
        return false;
    if (chunk->left.size)
        return true;
    lane->first = chunk->next;
    if (!lane->first)
        lane->last = NULL;
    chunk_queue_release(queue, chunk);
    return true;
}

bool writer_merge(struct writer *writer, int64_t wait_ns) {
    bool any = false;
    chunk_queue_pop_all(&writer->output->capture->queue, writer->lanes, wait_ns);
    while (write_oldest(writer))
        any = true;
    return any;
}

bool writer_has_ended(const struct writer *writer) {
    bool ended = true;
    for (uint32_t i = 0; i < writer->output->capture->queue.devices; i++)
        ended &= writer->lanes[i].ended && !writer->lanes[i].first;
    return ended;
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
    struct output *output = writer->output;
    /* On Linux of this thread only; reading threads have priority. */
    setpriority(PRIO_PROCESS, 0, 0);
    while (!writer_has_ended(writer)) {
        bool any = writer_merge(writer, find_oldest(writer) ? HOLD_NS : WAIT_NS);
        output_poll(output, !any && !find_oldest(writer));
        stop_at_limits(output);
    }
    output_close(output);
    atomic_store(&writer->done, true);
    return NULL;
}

bool writer_start(struct writer *writer) {
    if (pthread_create(&writer->thread, NULL, run, writer))
        return false;
    pthread_setname_np(writer->thread, "write");
    return true;
}