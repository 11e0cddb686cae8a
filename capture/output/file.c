/* SPDX-License-Identifier: Apache-2.0 */
/* The file being written. Its bytes go through output_store(), which writes at output->bytes: after
 * a short write the offset stays, so that the next write overwrites the incomplete record. A file
 * therefore ends with a whole block at any time.
 *
 * The statistics at the end of a file must be there even if the disk is full. Then the last packets
 * are dropped, one by one, until the statistics fit into the pages that the file already has. */
#include "output/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer/record.h"
#include "common/clock.h"
#include "common/log.h"

#define PIPE_WAIT_MS 100
/* At the end, the longest wait for a pipe whose reader does not read. */
#define END_PATIENCE_NS (10 * NS_PER_S)

struct counts output_counts_since(const struct output *output, uint32_t description) {
    struct counts now = counts_of(&output->capture->descriptions.items[description].counts);
    counts_subtract(&now, &output->before[description]);
    return now;
}

/* Moves packets from written to dropped, if their file was removed. */
void output_count_lost(struct output *output, uint32_t description, uint64_t packets) {
    struct interface_counts *counts = &output->capture->descriptions.items[description].counts;
    counter_add(&counts->written, -packets);
    counter_add(&counts->dropped_disk, packets);
}

bool is_no_room(int error) {
    return error == ENOSPC || error == EDQUOT;
}

/* Removes old files if that may help against the error of the last call. */
static bool make_room(struct output *output) {
    return is_no_room(errno) && finisher_make_room(output->finisher);
}

/* pwrite() at the end of the last whole block: an incomplete record is overwritten by the next
 * attempt. */
static size_t store_in_file(struct output *output, const uint8_t *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t more = pwrite(output->fd, data + done, size - done, (off_t)(output->bytes + done));
        if (more > 0)
            done += (size_t)more;
        else if (more < 0 && errno == EINTR)
            continue;
        else if (!make_room(output))
            break;
    }
    return done;
}

/* Waits for the reader of a pipe. Returns false if it left, or if it did not read for
 * END_PATIENCE_NS while the capture is stopping. */
static bool wait_reader(struct output *output, int64_t *since_ns) {
    struct pollfd ready = {.fd = output->fd, .events = POLLOUT};
    if (poll(&ready, 1, PIPE_WAIT_MS) > 0 && !(ready.revents & POLLOUT))
        return false;
    if (ready.revents & POLLOUT) {
        *since_ns = monotonic_ns();
        return true;
    }
    output->gave_up =
        atomic_load(&output->capture->stopping) && monotonic_ns() - *since_ns > END_PATIENCE_NS;
    return !output->gave_up;
}

/* The stream is non-blocking, so that the thread can give up at the end of the capture if the
 * reader hangs. */
static size_t store_in_stream(struct output *output, const uint8_t *data, size_t size) {
    enum { PIPE_PART = 65536 }; /* small enough that a write that begins also ends */
    int64_t since = monotonic_ns();
    size_t done = 0;
    while (done < size && !output->gave_up) {
        size_t part = size - done < PIPE_PART ? size - done : PIPE_PART;
        ssize_t more = write(output->fd, data + done, part);
        if (more > 0) {
            done += (size_t)more;
            since = monotonic_ns();
        } else if (more < 0 && errno == EAGAIN) {
            if (!wait_reader(output, &since))
                break;
        } else if (more < 0 && errno != EINTR) {
            break;
        }
    }
    return done;
}

size_t output_store(struct output *output, const uint8_t *data, size_t size) {
    return output->directory->is_stream ? store_in_stream(output, data, size)
                                        : store_in_file(output, data, size);
}

/* Removes the last block of the file if it is a packet, and counts it as dropped. */
static bool drop_last_packet(struct output *output) {
    uint8_t last[4], head[12];
    if (output->bytes < sizeof head + 4 ||
        pread(output->fd, last, sizeof last, (off_t)output->bytes - 4) != sizeof last)
        return false;
    uint32_t length = get_u32(last);
    if (length > output->bytes || length < RECORD_EPB_FIXED ||
        pread(output->fd, head, sizeof head, (off_t)(output->bytes - length)) != sizeof head ||
        get_u32(head) != RECORD_PACKET_TYPE)
        return false;
    uint32_t number = get_u32(head + 8);
    if (number >= output->capture->descriptions.count)
        return false;
    output->bytes -= length;
    output->packets--;
    atomic_fetch_sub(&output->total_bytes, length);
    output_count_lost(output, number, 1);
    return true;
}

/* With a filter or a direction, the kernel counts only packets that pass. Accepted packets are all
 * that passed the filter: recorded, or dropped at any stage after it. The comment lists the drops
 * by stage, since pcapng has no options for the queue and the disk. */
static void add_statistics(struct output *output, struct pcapng_buffer *buffer, uint32_t number) {
    const struct settings *settings = output->capture->settings;
    struct counts of = output->reported[number] = output_counts_since(output, number);
    char comment[256], clock[128];
    notes_worst_clock(&output->notes, clock, sizeof clock);
    snprintf(comment, sizeof comment,
             "not recorded in the time of this file: %llu dropped by the kernel, %llu by the "
             "interface, %llu by the queue, %llu by the disk",
             (unsigned long long)of.dropped_kernel, (unsigned long long)of.dropped_interface,
             (unsigned long long)of.dropped_queue, (unsigned long long)of.dropped_disk);
    pcapng_statistics(buffer,
                      &(struct pcapng_statistics){.interface = number,
                                                  .start_ns = output->begun_ns,
                                                  .end_ns = realtime_ns(),
                                                  .drops_known = true,
                                                  .unfiltered = !settings->filter &&
                                                                settings->direction == CHOOSE_BOTH,
                                                  .accepted = of.written + of.dropped_kernel +
                                                              of.dropped_queue + of.dropped_disk,
                                                  .dropped_interface = of.dropped_interface,
                                                  .dropped_kernel = of.dropped_kernel,
                                                  .delivered = of.written},
                      comment, clock);
}

/* Builds the statistics of all described interfaces; again after packets were dropped for them. */
static void make_statistics(struct output *output, struct pcapng_buffer *buffer) {
    buffer->fill = 0;
    for (uint32_t i = 0; i < output->described; i++)
        add_statistics(output, buffer, i);
}

/* Appends statistics of all interfaces; on a full disk in place of the last packets. */
static void store_statistics(struct output *output) {
    struct pcapng_buffer buffer = {0};
    uint64_t end = output->bytes;
    make_statistics(output, &buffer);
    size_t done = buffer.failed ? 0 : output_store(output, buffer.data, buffer.fill);
    /* Another error would come again, however many packets were dropped. */
    bool is_full = !output->directory->is_stream && (is_no_room(errno) || errno == EFBIG);
    while (!buffer.failed && done < buffer.fill && is_full) {
        while (output->bytes + buffer.fill > end && drop_last_packet(output))
            continue;
        if (output->bytes + buffer.fill > end)
            break;
        make_statistics(output, &buffer); /* count the packets that were just dropped */
        done = output_store(output, buffer.data, buffer.fill);
        end = done < buffer.fill ? output->bytes : end;
    }
    if (!buffer.failed && done == buffer.fill) {
        output->bytes += done;
        atomic_fetch_add(&output->total_bytes, done);
    }
    pcapng_free(&buffer);
}

#define RETRY_NS (250 * NS_PER_MS) /* between two attempts to begin a file */

/* Copies the name for the status, under its own lock so that the status never waits for a write. */
static void show_name(struct output *output) {
    pthread_mutex_lock(&output->name_lock);
    snprintf(output->shown, sizeof output->shown, "%s", output->fd < 0 ? "" : output->name);
    pthread_mutex_unlock(&output->name_lock);
}

void output_name(struct output *output, char name[NAME_SIZE]) {
    pthread_mutex_lock(&output->name_lock);
    strcpy(name, output->shown);
    pthread_mutex_unlock(&output->name_lock);
}

/* A reader that leaves is the normal end of a stream, as with head(1); after any other error it
 * takes no more bytes either. Of consecutive failures of files only the first is reported, because
 * each packet would fail. */
void output_note_failure(struct output *output) {
    if (output->directory->is_stream) {
        output->closed_pipe = errno == EPIPE;
        output->stream_failed = !output->closed_pipe;
        if (!output->closed_pipe && !output->gave_up)
            log_warning("cannot write to the stream: %s", strerror(errno));
        atomic_store(&output->capture->stopping, true);
        output->gave_up = true;
        return;
    }
    if (!output->failing)
        log_warning("%s: %s; packets wait in memory until writes succeed", output->directory->path,
                    strerror(errno));
    output->failing = output->capture->queue.is_held = true;
    output->retry_ns = monotonic_ns() + RETRY_NS;
}

/* Reports how many packets were dropped since the failure. */
void output_note_success(struct output *output) {
    if (!output->failing)
        return;
    log_warning("writes succeed again");
    output->failing = output->capture->queue.is_held = false;
}

/* A failure leaves output->bytes unchanged, so that the next write overwrites incomplete blocks. */
bool output_store_blocks(struct output *output, struct pcapng_buffer *buffer) {
    bool done = !buffer->failed && output_store(output, buffer->data, buffer->fill) == buffer->fill;
    if (done) {
        output->bytes += buffer->fill;
        atomic_fetch_add(&output->total_bytes, buffer->fill);
    }
    pcapng_free(buffer);
    return done;
}

/* A description must precede the first packet of its interface. Interfaces that appear later are
 * described when they do. A classic file has only its header, which the first one determines. */
bool output_store_descriptions(struct output *output) {
    const struct capture *capture = output->capture;
    bool classic = capture->settings->format == RECORD_PCAP;
    uint32_t count = atomic_load(&capture->descriptions.count);
    struct pcapng_buffer buffer = {0};
    char clock[128];
    if (classic && count > 1)
        count = 1;
    if (output->described == count)
        return true;
    if (classic) {
        pcapng_classic_header(&buffer, capture->settings->snaplen,
                              capture->descriptions.items[0].link_type);
    } else if (!output->bytes) {
        notes_begin_clock(&output->notes, clock, sizeof clock);
        pcapng_section(&buffer, clock);
    }
    for (uint32_t i = output->described; !classic && i < count; i++)
        pcapng_interface(&buffer, &capture->descriptions.items[i]);
    if (!output_store_blocks(output, &buffer))
        return false;
    output->described = count;
    return true;
}

/* With --align, boundaries are multiples of the interval since the epoch, so that files of several
 * captures have the same boundaries. */
int64_t output_next_boundary(const struct settings *settings, int64_t from_ns) {
    if (!settings->file_ns)
        return 0;
    int64_t next = from_ns + settings->file_ns;
    return settings->align ? next - next % settings->file_ns : next;
}

/* A file that is open, but not yet the one that is written. */
struct next_file {
    int fd;
    char name[NAME_SIZE], temporary[NAME_SIZE];
};

/* If the disk is full, old files of the ring are removed until a new one can be made. */
static bool open_next(struct output *output, int64_t time_ns, struct next_file *next) {
    struct directory *directory = output->directory;
    next->fd = -1;
    if (directory->is_stream) {
        next->fd = directory->fd;
        strcpy(next->name, "-");
        return true;
    }
    if (!directory_lock(directory))
        return false;
    directory_next_name(directory, time_ns, next->name);
    do
        next->fd = directory_create(directory, next->name, next->temporary);
    while (next->fd < 0 && make_room(output));
    if (next->fd < 0)
        directory->number--;
    return next->fd >= 0;
}

/* Tries once more if the path leads to another directory by now. */
static bool open_again(struct output *output, int64_t time_ns, struct next_file *next) {
    int reason = errno;
    if (!output->directory->is_stream && !output->directory->confined && reason == ENOENT &&
        directory_reopen(output->directory))
        return open_next(output, time_ns, next);
    errno = reason;
    return false;
}

/* A file that cannot take its header is removed again, so that no empty file stays. */
static bool use_next(struct output *output, const struct next_file *next) {
    bool is_stream = output->directory->is_stream;
    output->fd = next->fd;
    strcpy(output->name, next->name);
    strcpy(output->temporary, next->temporary);
    output->asked_for = output->directory->plain && output->directory->number == 1;
    output->bytes = output->packets = output->described = output->noted = 0;
    if (output_store_descriptions(output))
        return true;
    int reason = errno;
    if (!is_stream) {
        unlinkat(output->directory->fd, output->temporary, 0);
        close(output->fd);
        output->fd = -1;
    }
    errno = reason;
    return false;
}

/* A new directory at the same path is another one, which Landlock forbids to this process. It ends,
 * because its service manager can start it again, while packets would be dropped until then. */
static void end_without_directory(struct output *output) {
    if (output->directory->is_stream || output->directory_gone ||
        (!output->directory->confined && !output->directory->sealed) ||
        (output->reason != ENOENT && output->reason != ESTALE))
        return;
    log_warning(
        "%s %s was removed, and the sandbox allows no other: the capture ends; start it again",
        output->directory->sealed ? "the file in" : "the directory", output->directory->path);
    output->directory_gone = true;
    atomic_store(&output->capture->stopping, true);
}

/* A stream ends with statistics if its reader still reads. */
static void finish_stream(struct output *output) {
    if (output->capture->settings->format == RECORD_PCAPNG && !output->closed_pipe &&
        !output->gave_up)
        store_statistics(output);
    close(output->fd);
    output->fd = -1;
}

/* The file is truncated to its last whole block, in case a write was incomplete. The finisher gets
 * its own descriptor of the directory, which SIGHUP may exchange, and the reported counts, which
 * must be counted again if the file is removed before it is published. */
static void finish_file(struct output *output) {
    struct finished_file *file = calloc(1, sizeof *file + output->described * sizeof *file->counts);
    for (uint32_t i = 0; i < output->described; i++)
        output->reported[i] = output_counts_since(output, i);
    if (output->capture->settings->format == RECORD_PCAPNG)
        store_statistics(output);
    if (ftruncate(output->fd, (off_t)output->bytes))
        log_warning("cannot truncate %s after its last packet: %s", output->name, strerror(errno));
    atomic_fetch_add(&output->files, 1);
    if (file) {
        file->fd = output->fd;
        file->directory_fd = fcntl(output->directory->fd, F_DUPFD_CLOEXEC, 0);
        file->asked_for = output->asked_for;
        file->bytes = output->bytes;
        file->described = output->described;
        strcpy(file->temporary, output->temporary);
        strcpy(file->name, output->name);
        memcpy(file->counts, output->reported, file->described * sizeof *file->counts);
        finisher_push(output->finisher, file);
    } else {
        log_warning("out of memory: %s stays as %s", output->name, output->temporary);
        output->finisher->unnamed = true;
        close(output->fd);
    }
    output->fd = -1;
}

void output_close(struct output *output) {
    if (output->fd < 0)
        return;
    if (output->directory->is_stream)
        finish_stream(output);
    else
        finish_file(output);
    /* Counts that the statistics report are not reported again in the next file. */
    for (uint32_t i = 0; i < output->described; i++) /* others are not in the file */
        counts_add(&output->before[i], &output->reported[i]);
    show_name(output);
}

/* Attempts are at least RETRY_NS apart, so that a full disk is not asked for each packet. */
bool output_begin(struct output *output, int64_t time_ns) {
    int64_t now = monotonic_ns();
    struct next_file next = {0};
    if (now < output->retry_ns)
        return false;
    bool is_open = open_next(output, time_ns, &next) || open_again(output, time_ns, &next);
    if (is_open)
        output_close(output);
    if (!is_open || !use_next(output, &next)) {
        output->reason = errno;
        output_note_failure(output);
        end_without_directory(output);
        return false;
    }
    output_note_success(output);
    output->begun_ns = time_ns;
    output->boundary_ns = output_next_boundary(output->capture->settings, time_ns);
    show_name(output);
    return true;
}

/* The first file must succeed, because a wrong directory would otherwise be noticed only by missing
 * captures. */
static _Noreturn void fail_to_begin(const struct output *output) {
    const struct directory *directory = output->directory;
    int code = output->reason == EACCES || output->reason == EPERM ? EXIT_MISSING : EXIT_IO;
    char lock[NAME_SIZE];
    if (directory_lock_is_stuck(directory, lock))
        fail(code, "cannot open lock file %s/%s: %s; if no capture writes there, remove it",
             directory->path, lock, strerror(output->reason));
    fail(code, "cannot create a file in %s: %s", directory->path, strerror(output->reason));
}

void output_open(struct output *output) {
    pthread_mutex_init(&output->name_lock, NULL);
    output->fd = -1;
    output->disk_bytes = output->disk_free_bytes = -1;
    if (!output->capture->descriptions.count || output_begin(output, realtime_ns()))
        return;
    if (output->directory->is_stream || is_no_room(output->reason))
        return; /* a stream ends by itself; a disk may have room later */
    fail_to_begin(output);
}
