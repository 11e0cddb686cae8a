/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "moment.h"
#include "output_store.h"
#include "record.h"
#include "say.h"

#define RETRY_NS (250 * MILLISECOND_NS) /* between two attempts to make a file */
#define LOOK_NS  (500 * MILLISECOND_NS)
#define GRACE_NS (500 * MILLISECOND_NS) /* for packets of before the boundary, when none comes after it */

int output_description_of(const struct capture *capture, uint32_t device) {
    for (int i = (int)capture->descriptions.count - 1; i >= 0; i--)
        if (capture->descriptions.items[i]->device == device)
            return i;
    return -1;
}

static void show_name(struct output *output) {
    pthread_mutex_lock(&output->name_lock);
    snprintf(output->shown, sizeof output->shown, "%s", output->fd < 0 ? "" : output->name);
    pthread_mutex_unlock(&output->name_lock);
}

void output_name(struct output *output, char name[NAME_ROOM]) {
    pthread_mutex_lock(&output->name_lock);
    strcpy(name, output->shown);
    pthread_mutex_unlock(&output->name_lock);
}

static void note_failure(struct output *output, const char *what) {
    if (!output->failing)
        warn_of("%s: %s; packets are dropped and counted until it works again", what,
                strerror(errno));
    output->failing = true;
    atomic_store(&output->refusing, true);
}

static void note_success(struct output *output) {
    if (!output->failing)
        return;
    warn_of("the disk takes packets again; it refused %llu", (unsigned long long)output->failed_packets);
    output->failing = false;
    atomic_store(&output->refusing, false);
    output->failed_packets = 0;
}

/* Appends blocks that are no packets: all or nothing. */
static bool store_blocks(struct output *output, struct block_buffer *buffer) {
    bool done = !buffer->failed && output_store(output, buffer->data, buffer->fill) == buffer->fill;
    if (done) {
        output->bytes += buffer->fill;
        atomic_fetch_add(&output->total_bytes, buffer->fill);
    }
    block_free(buffer);
    return done;
}

static bool store_pcap_header(struct output *output) {
    const struct capture *capture = output->capture;
    if (output->described || !capture->descriptions.count)
        return true;
    struct block_buffer buffer = {0};
    block_pcap_header(&buffer, capture->settings->snaplen, capture->descriptions.items[0]->link_type);
    if (!store_blocks(output, &buffer))
        return false;
    output->described = 1;
    return true;
}

/* Interfaces that the file does not tell of yet. */
static bool store_descriptions(struct output *output) {
    const struct capture *capture = output->capture;
    uint32_t count = atomic_load(&capture->descriptions.count);
    if (capture->settings->format == RECORD_PCAP)
        return store_pcap_header(output);
    if (output->described == count)
        return true;
    struct block_buffer buffer = {0};
    if (!output->bytes)
        block_section(&buffer);
    for (uint32_t i = output->described; i < count; i++)
        block_interface(&buffer, capture->descriptions.items[i]);
    if (!store_blocks(output, &buffer))
        return false;
    output->described = count;
    return true;
}

static void remember_counts(struct output *output) {
    for (uint32_t i = 0; i < output->capture->device_count; i++) {
        struct counts now = counts_of(&output->capture->devices[i].counts);
        output->before[i] = (struct file_counts){.written = now.written,
                                                 .dropped_disk = now.dropped_disk,
                                                 .dropped_queue = now.dropped_queue,
                                                 .dropped_kernel = now.dropped_kernel,
                                                 .dropped_interface = now.dropped_interface};
    }
}

static int64_t next_boundary(const struct settings *settings, int64_t from_ns) {
    if (!settings->file_ns)
        return 0;
    int64_t next = from_ns + settings->file_ns;
    return settings->align ? next - next % settings->file_ns : next;
}

static bool open_stream(struct output *output) {
    if (output->bytes)
        return false; /* a stream is opened once */
    output->fd = output->folder->fd;
    snprintf(output->name, sizeof output->name, "-");
    return true;
}

static bool open_file(struct output *output, int64_t time_ns) {
    folder_next_name(output->folder, time_ns, output->name);
    output->fd = folder_create(output->folder, output->name, output->temporary);
    while (output->fd < 0 && (errno == ENOSPC || errno == EDQUOT) &&
           file_ring_make_room(output->ring, output->folder->fd))
        output->fd = folder_create(output->folder, output->name, output->temporary);
    if (output->fd < 0)
        output->folder->number--;
    return output->fd >= 0;
}

static void discard(struct output *output) {
    if (output->folder->is_stream)
        return;
    unlinkat(output->folder->fd, output->temporary, 0);
    close(output->fd);
    output->fd = -1;
}

/* Begins a file whose first packet is of that time. */
static bool begin(struct output *output, int64_t time_ns) {
    int64_t now = steady_ns();
    if (now < output->retry_ns)
        return false;
    output->bytes = output->packets = output->described = 0;
    bool opened = output->folder->is_stream ? open_stream(output) : open_file(output, time_ns);
    if (opened && !store_descriptions(output)) {
        int reason = errno;
        discard(output);
        errno = reason;
        opened = false;
    }
    if (!opened) {
        note_failure(output, output->folder->is_stream ? "the stream" : output->folder->path);
        output->retry_ns = now + RETRY_NS;
        if (!output->folder->is_stream && !folder_reopen(output->folder))
            output->lost = true;
        return false;
    }
    output->begun_ns = time_ns;
    output->boundary_ns = next_boundary(output->capture->settings, time_ns);
    show_name(output);
    return true;
}

static void finish_stream(struct output *output) {
    if (output->capture->settings->format == RECORD_PCAPNG && !output->closed_pipe && !output->gave_up)
        output_store_statistics(output);
    close(output->fd);
    output->fd = -1;
}

static void finish_file(struct output *output) {
    struct finished file = {.fd = output->fd,
                            .folder_fd = fcntl(output->folder->fd, F_DUPFD_CLOEXEC, 0),
                            .replace = output->folder->plain && output->folder->number == 1};
    if (output->capture->settings->format == RECORD_PCAPNG)
        output_store_statistics(output);
    if (ftruncate(output->fd, (off_t)output->bytes))
        warn_of("%s cannot be cut to its last packet: %s", output->name, strerror(errno));
    file.bytes = output->bytes;
    strcpy(file.temporary, output->temporary);
    strcpy(file.name, output->name);
    atomic_fetch_add(&output->files, 1);
    if (!finisher_push(output->finisher, &file))
        warn_of("out of memory: %s stays as %s", output->name, output->temporary);
    output->fd = -1;
}

void output_close(struct output *output) {
    if (output->fd < 0)
        return;
    if (output->folder->is_stream)
        finish_stream(output);
    else
        finish_file(output);
    remember_counts(output);
    show_name(output);
}

void output_open(struct output *output) {
    pthread_mutex_init(&output->name_lock, NULL);
    output->fd = -1;
    remember_counts(output);
    if (output->capture->descriptions.count && !begin(output, wall_ns()))
        fail(errno == EACCES || errno == EPERM ? EXIT_MISSING : EXIT_UNREADABLE,
             "no file can be made in %s", output->folder->path);
}

/* How much of the span still goes into this file: a part of `span`, maybe nothing of it. */
static struct span fitting(const struct output *output, const struct span *span) {
    const struct settings *settings = output->capture->settings;
    uint64_t bytes_left = settings->file_bytes > output->bytes ? settings->file_bytes - output->bytes : 0;
    uint64_t packets_left = settings->file_packets - output->packets;
    bool size_fits = !settings->file_bytes || span->size <= bytes_left;
    bool count_fits = !settings->file_packets || span->packets <= packets_left;
    bool time_fits = !output->boundary_ns || span->last_ns < output->boundary_ns;
    if (size_fits && count_fits && time_fits)
        return *span;
    struct span part = *span;
    part.size = part.packets = 0;
    while (part.size < span->size) {
        struct record_view record = record_view(settings->format, span->data + part.size);
        bool first = !output->packets && !part.packets; /* a file has one packet at least */
        if ((settings->file_bytes && part.size + record.size > bytes_left && !first) ||
            (settings->file_packets && part.packets >= packets_left) ||
            (output->boundary_ns && record.time_ns >= output->boundary_ns))
            break;
        part.size += record.size;
        part.packets++;
        part.last_ns = record.time_ns;
    }
    return part;
}

/* What is left of `span` after its first `part`. */
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
    output_count_dropped(output, span->device, span->packets);
    output->failed_packets += span->packets;
}

/* How many whole records are in the first `size` bytes. */
static struct span whole_records(const struct output *output, const struct span *span, size_t size) {
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

static void end_stream(struct output *output, size_t done, const struct span *span) {
    output->closed_pipe = errno == EPIPE;
    if (!output->closed_pipe && !output->gave_up)
        warn_of("the stream cannot be written: %s", strerror(errno));
    if (done < span->size || output->closed_pipe)
        atomic_store(&output->capture->stopping, true);
    output->gave_up = true;
}

static void store_packets(struct output *output, const struct span *span) {
    size_t done = output_store(output, span->data, span->size);
    struct span whole = *span;
    if (done < span->size) {
        if (output->folder->is_stream)
            end_stream(output, done, span);
        else
            note_failure(output, output->folder->path);
        whole = whole_records(output, span, done);
        struct span rest = rest_of(output, span, &whole);
        drop(output, &rest);
    } else {
        note_success(output);
    }
    output->bytes += whole.size;
    output->packets += whole.packets;
    atomic_fetch_add(&output->total_bytes, whole.size);
    output_count_written(output, span->device, whole.packets);
}

void output_take(struct output *output, const struct span *span) {
    struct span rest = *span;
    while (rest.size) {
        if (output->gave_up || (output->fd < 0 && !begin(output, rest.first_ns)) ||
            !store_descriptions(output)) {
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

static void tell_clock_step(struct output *output) {
    int64_t step = atomic_exchange(&output->clock_step_ns, 0);
    if (!step)
        return;
    if (output->capture->settings->file_ns)
        output->boundary_ns = next_boundary(output->capture->settings, wall_ns());
    if (output->fd < 0 || !output->described || output->capture->settings->format == RECORD_PCAP)
        return;
    char comment[128];
    snprintf(comment, sizeof comment, "the clock was set by %+.9f s", (double)step / SECOND_NS);
    struct block_buffer buffer = {0};
    block_statistics(&buffer, &(struct block_statistics){.end_ns = wall_ns()}, comment);
    if (!store_blocks(output, &buffer))
        note_failure(output, output->folder->path);
}

/* Somebody may have removed the file or its folder: what is written then is nowhere. */
static void look_after_file(struct output *output) {
    struct stat told;
    if (output->folder->is_stream || output->fd < 0 || fstat(output->fd, &told) || told.st_nlink)
        return;
    warn_of("%s was removed while it was written, with %llu packets", output->temporary,
            (unsigned long long)output->packets);
    close(output->fd);
    output->fd = -1;
    remember_counts(output);
    folder_reopen(output->folder);
    begin(output, wall_ns());
}

static bool is_over(const struct output *output, bool idle) {
    return output->boundary_ns && idle && wall_ns() >= output->boundary_ns + GRACE_NS;
}

void output_look(struct output *output, bool idle) {
    int64_t now = steady_ns();
    int wishes = atomic_exchange(&output->wishes, 0);
    tell_clock_step(output);
    if (now - output->looked_ns >= LOOK_NS) {
        output->looked_ns = now;
        look_after_file(output);
    }
    bool over = is_over(output, idle);
    if (output->folder->is_stream || (!wishes && !over))
        return;
    int64_t begin_ns = over && !wishes ? output->boundary_ns : wall_ns();
    output_close(output);
    if (wishes & WISH_REOPEN && !folder_reopen(output->folder))
        note_failure(output, output->folder->path);
    begin(output, begin_ns);
}
