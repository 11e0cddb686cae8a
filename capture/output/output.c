/* SPDX-License-Identifier: Apache-2.0 */
/* Packets come as spans of whole records. A span is cut if the open file reaches a limit of bytes,
 * packets or time: the first part goes into that file, the rest into the next. Boundaries of time
 * are compared with the time stamps of packets, not with the clock, so that each packet lies in the
 * file of its time even if writing is delayed. */
#include "output/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer/record.h"
#include "common/clock.h"
#include "common/log.h"
#include "output/file.h"

#define CHECK_NS (500 * NS_PER_MS)
#define GRACE_NS                                                                                   \
    (500 * NS_PER_MS) /* Packets from before the boundary may still come. If none follows it, the  \
                         file ends after this time. */

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
        output->before[i] = file_counts_less(&output->before[i], &lost.counts[i]);
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

static bool is_over(const struct output *output, bool idle) {
    return output->boundary_ns && idle && realtime_ns() >= output->boundary_ns + GRACE_NS;
}

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
        log_warning("%s cannot be opened again: %s; the directory that is open stays in use",
                    output->directory->path, strerror(errno));
    output_begin(output, begin_ns);
}
