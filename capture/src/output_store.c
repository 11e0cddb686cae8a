/* SPDX-License-Identifier: Apache-2.0 */
#include "output_store.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "record.h"

#define PIPE_WAIT_MS    100
#define END_PATIENCE_NS (10 * NS_PER_S) /* for a pipe's reader that does not read, at the end */

static struct interface_counts *counts_under(const struct output *output, uint32_t description) {
    return &output->capture->descriptions.items[description]->counts;
}

void output_count_written(struct output *output, uint32_t description, uint64_t packets) {
    counter_add(&counts_under(output, description)->written, packets);
}

void output_count_dropped(struct output *output, uint32_t description, uint64_t packets) {
    counter_add(&counts_under(output, description)->dropped_disk, packets);
}

struct file_counts output_counts_since(const struct output *output, uint32_t description) {
    struct file_counts now = file_counts_of(counts_under(output, description));
    return file_counts_less(&now, &output->before[description]);
}

void output_count_lost(struct output *output, uint32_t description, uint64_t packets) {
    struct interface_counts *counts = counts_under(output, description);
    counter_set(&counts->written, counter_get(&counts->written) - packets);
    counter_add(&counts->dropped_disk, packets);
}

static bool is_no_room(int error) {
    return error == ENOSPC || error == EDQUOT;
}

static size_t store_in_file(struct output *output, const uint8_t *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t more = pwrite(output->fd, data + done, size - done, (off_t)(output->bytes + done));
        if (more > 0)
            done += (size_t)more;
        else if (more < 0 && errno == EINTR)
            continue;
        else if (!(is_no_room(errno) && finisher_make_room(output->finisher, output->folder->fd)))
            break;
    }
    return done;
}

/* Waits for the reader of a pipe; at the end not for ever. */
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

static size_t store_in_stream(struct output *output, const uint8_t *data, size_t size) {
    enum { PIPE_PART = 65536 }; /* so that a write that begins also ends */
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
    return output->folder->is_stream ? store_in_stream(output, data, size)
                                     : store_in_file(output, data, size);
}

/* Takes the last block off the file if it is a packet; false when it is none. */
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
    struct interface_counts *counts = counts_under(output, number);
    output->bytes -= length;
    output->packets--;
    atomic_fetch_sub(&output->total_bytes, length);
    counter_set(&counts->written, counter_get(&counts->written) - 1);
    counter_add(&counts->dropped_disk, 1);
    return true;
}

/* Behind a filter the kernel counts only what passed it. */
static bool sees_all(const struct settings *settings) {
    return !settings->filter && settings->direction == WISH_BOTH;
}

static void add_statistics(struct output *output, struct block_buffer *buffer, uint32_t number) {
    struct file_counts of = output->told[number] = output_counts_since(output, number);
    char comment[256];
    snprintf(comment, sizeof comment,
             "not recorded in the time of this file: %llu dropped by the kernel, %llu by the "
             "interface, %llu by the queue, %llu by the disk",
             (unsigned long long)of.dropped_kernel, (unsigned long long)of.dropped_interface,
             (unsigned long long)of.dropped_queue, (unsigned long long)of.dropped_disk);
    block_statistics(buffer,
                     &(struct block_statistics){.interface = number,
                                                .start_ns = output->begun_ns,
                                                .end_ns = realtime_ns(),
                                                .drops_known = true,
                                                .unfiltered = sees_all(output->capture->settings),
                                                .accepted = of.written + of.dropped_kernel +
                                                            of.dropped_queue + of.dropped_disk,
                                                .dropped_interface = of.dropped_interface,
                                                .dropped_kernel = of.dropped_kernel,
                                                .delivered = of.written},
                     comment);
}

static void make_statistics(struct output *output, struct block_buffer *buffer) {
    buffer->fill = 0;
    for (uint32_t i = 0; i < output->described; i++)
        add_statistics(output, buffer, i);
}

/* On a full disk the last packets give their place to the counts, in pages that the file has
 * already. */
void output_store_statistics(struct output *output) {
    struct block_buffer buffer = {0};
    uint64_t end = output->bytes;
    make_statistics(output, &buffer);
    size_t done = buffer.failed ? 0 : output_store(output, buffer.data, buffer.fill);
    while (!buffer.failed && done < buffer.fill && !output->folder->is_stream) {
        while (output->bytes + buffer.fill > end && drop_last_packet(output))
            continue;
        if (output->bytes + buffer.fill > end)
            break;
        make_statistics(output,
                        &buffer); /* they count what was just dropped; the size is the same */
        done = output_store(output, buffer.data, buffer.fill);
        end = done < buffer.fill ? output->bytes : end;
    }
    if (!buffer.failed && done == buffer.fill) {
        output->bytes += done;
        atomic_fetch_add(&output->total_bytes, done);
    }
    block_free(&buffer);
}
