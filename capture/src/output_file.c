/* SPDX-License-Identifier: Apache-2.0 */
/* The file being written: its beginning and its end. */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "output_store.h"
#include "record.h"

#define RETRY_NS (250 * NS_PER_MS) /* between two attempts to make a file */

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

void output_end_stream(struct output *output) {
    output->closed_pipe = errno == EPIPE;
    output->stream_failed = !output->closed_pipe;
    if (!output->closed_pipe && !output->gave_up)
        log_warning("the stream cannot be written: %s", strerror(errno));
    atomic_store(&output->capture->stopping, true);
    output->gave_up = true;
}

void output_note_failure(struct output *output, const char *what) {
    if (!output->failing)
        log_warning("%s: %s; packets are dropped and counted until it works again", what,
                    strerror(errno));
    output->failing = true;
    atomic_store(&output->refusing, true);
}

void output_note_success(struct output *output) {
    if (!output->failing)
        return;
    log_warning("the disk takes packets again; it refused %llu",
                (unsigned long long)output->failed_packets);
    output->failing = false;
    atomic_store(&output->refusing, false);
    output->failed_packets = 0;
}

/* Appends blocks that are no packets: all or nothing. */
bool output_store_blocks(struct output *output, struct block_buffer *buffer) {
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
    block_pcap_header(&buffer, capture->settings->snaplen,
                      capture->descriptions.items[0]->link_type);
    if (!output_store_blocks(output, &buffer))
        return false;
    output->described = 1;
    return true;
}

/* Interfaces that the file does not tell of yet. */
bool output_store_descriptions(struct output *output) {
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
    if (!output_store_blocks(output, &buffer))
        return false;
    output->described = count;
    return true;
}

/* What its statistics said is done with. */
static void remember_counts(struct output *output) {
    for (uint32_t i = 0; i < output->described; i++) /* of others no file tells yet */
        file_counts_add(&output->before[i], &output->told[i]);
}

int64_t output_next_boundary(const struct settings *settings, int64_t from_ns) {
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
    if (!folder_lock(output->folder))
        return false;
    folder_next_name(output->folder, time_ns, output->name);
    output->fd = folder_create(output->folder, output->name, output->temporary);
    while (output->fd < 0 && (errno == ENOSPC || errno == EDQUOT) &&
           finisher_make_room(output->finisher, output->folder->fd))
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

static bool try_begin(struct output *output, int64_t time_ns) {
    output->bytes = output->packets = output->described = 0;
    if (!(output->folder->is_stream ? open_stream(output) : open_file(output, time_ns)))
        return false;
    if (output_store_descriptions(output))
        return true;
    int reason = errno;
    discard(output);
    errno = reason;
    return false;
}

/* The folder may be another one by now. */
static bool try_again(struct output *output, int64_t time_ns) {
    int reason = errno;
    if (!output->folder->is_stream && !output->folder->confined && reason == ENOENT &&
        folder_reopen(output->folder))
        return try_begin(output, time_ns);
    errno = reason;
    return false;
}

/* A folder that is made anew is another one, which Landlock does not let this process use. Whoever
 * started it can start it again; to drop packets until then would be worse. */
static void end_without_folder(struct output *output) {
    if (output->folder->is_stream || output->folder_gone ||
        (!output->folder->confined && !output->folder->sealed) ||
        (output->reason != ENOENT && output->reason != ESTALE))
        return;
    log_warning("%s %s is gone, and a confined capture can make no other: it ends; start it again",
                output->folder->sealed ? "the file in" : "the folder", output->folder->path);
    output->folder_gone = true;
    atomic_store(&output->capture->stopping, true);
}

/* Begins a file whose first packet is of that time. */
bool output_begin(struct output *output, int64_t time_ns) {
    int64_t now = monotonic_ns();
    if (now < output->retry_ns)
        return false;
    if (!try_begin(output, time_ns) && !try_again(output, time_ns)) {
        output->reason = errno;
        if (output->folder->is_stream)
            output_end_stream(output);
        else
            output_note_failure(output, output->folder->path);
        output->retry_ns = now + RETRY_NS;
        end_without_folder(output);
        return false;
    }
    output_note_success(output);
    output->begun_ns = time_ns;
    output->boundary_ns = output_next_boundary(output->capture->settings, time_ns);
    show_name(output);
    return true;
}

static void finish_stream(struct output *output) {
    if (output->capture->settings->format == RECORD_PCAPNG && !output->closed_pipe &&
        !output->gave_up)
        output_store_statistics(output);
    close(output->fd);
    output->fd = -1;
}

/* What its statistics say: counted once more, should somebody remove it before it has its name. */
static void remember_in(struct finished *file, const struct output *output) {
    file->counts = calloc(output->described + 1, sizeof *file->counts);
    if (!file->counts)
        return;
    file->described = output->described;
    for (uint32_t i = 0; i < file->described; i++)
        file->counts[i] = output->told[i];
}

static void tell_counts(struct output *output) {
    for (uint32_t i = 0; i < output->described; i++)
        output->told[i] = output_counts_since(output, i);
    if (output->capture->settings->format == RECORD_PCAPNG)
        output_store_statistics(output);
}

static void finish_file(struct output *output) {
    struct finished file = {.fd = output->fd,
                            .folder_fd = fcntl(output->folder->fd, F_DUPFD_CLOEXEC, 0),
                            .asked_for = output->folder->plain && output->folder->number == 1};
    tell_counts(output);
    if (ftruncate(output->fd, (off_t)output->bytes))
        log_warning("%s cannot be cut to its last packet: %s", output->name, strerror(errno));
    file.bytes = output->bytes;
    strcpy(file.temporary, output->temporary);
    strcpy(file.name, output->name);
    remember_in(&file, output);
    atomic_fetch_add(&output->files, 1);
    if (!finisher_push(output->finisher, &file)) {
        log_warning("out of memory: %s stays as %s", output->name, output->temporary);
        output->finisher->unnamed = true;
        free(file.counts);
    }
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

static _Noreturn void fail_to_begin(const struct output *output) {
    const struct folder *folder = output->folder;
    int code = output->reason == EACCES || output->reason == EPERM ? EXIT_MISSING : EXIT_IO;
    char lock[NAME_ROOM];
    if (folder_lock_is_stuck(folder, lock))
        fail(code,
             "the lock file %s/%s cannot be opened: %s; if no capture writes there, remove it",
             folder->path, lock, strerror(output->reason));
    fail(code, "no file can be made in %s: %s", folder->path, strerror(output->reason));
}

void output_open(struct output *output) {
    pthread_mutex_init(&output->name_lock, NULL);
    output->fd = -1;
    if (!output->capture->descriptions.count || output_begin(output, realtime_ns()))
        return;
    if (output->folder->is_stream || output->reason == ENOSPC || output->reason == EDQUOT)
        return; /* it ends by itself; there may be room later */
    fail_to_begin(output);
}
