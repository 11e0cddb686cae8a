/* SPDX-License-Identifier: Apache-2.0 */
/* The file being written: its bytes, its blocks other than packets, its beginning and its end
 * (file.c), and the thread that fills it (writer.c).
 *
 * The writing thread takes chunks from the queue, merges those of several devices by packet time,
 * and distributes the packets over files. It may wait for the disk; no thread waits for it. Packets
 * that cannot be written are held and tried again. */
#ifndef WIRETALE_CAPTURE_FILE_H
#define WIRETALE_CAPTURE_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "buffer/pcapng.h"
#include "device/device.h"
#include "directory/directory.h"
#include "finish/finisher.h"
#include "output/notes.h"

/* Requests by signals. */
enum output_request { REQUEST_ROTATE = 1, REQUEST_REOPEN = 2 };

/* Owned by the writing thread, except for the atomics and `shown`. */
struct output {
    struct capture *capture;
    struct directory *directory;
    struct finisher *finisher;

    int fd; /* -1: no file is open */
    char name[NAME_SIZE], temporary[NAME_SIZE];
    uint64_t bytes;      /* of the file, up to its last whole block */
    uint64_t packets;    /* of the file */
    bool asked_for;      /* -w has its name */
    uint32_t described;  /* interfaces that the file describes */
    int64_t begun_ns;    /* CLOCK_REALTIME */
    int64_t boundary_ns; /* start of the next file in packet time; 0: none */
    /* Counts when the file was opened, and counts that its statistics report. Packets that are
     * counted while statistics are written belong to the next file. */
    struct counts before[DESCRIPTIONS_MAX], reported[DESCRIPTIONS_MAX];

    atomic_bool failing; /* the last write failed */
    int reason;          /* errno of the last attempt to begin a file */
    int64_t retry_ns;    /* CLOCK_MONOTONIC: earliest attempt to write or to begin a file */
    int64_t patience_ns; /* CLOCK_MONOTONIC: packets are held no longer; 0: no end */
    int64_t checked_ns;  /* CLOCK_MONOTONIC of the last check that the file exists */
    bool closed_pipe;    /* the stream's reader left */
    bool stream_failed;  /* for another reason */
    bool directory_gone; /* Landlock forbids another one: the capture ends */
    bool gave_up;        /* no more writes: a stream ended, or its reader does not read */

    atomic_int requests;
    atomic_bool clock_stepped; /* CLOCK_REALTIME was set: boundaries of time are others */
    struct notes notes;
    unsigned noted; /* of them in the file */
    _Atomic uint64_t total_bytes, files, kept_spans;
    _Atomic int64_t waiting_ns; /* CLOCK_MONOTONIC when the oldest packets were queued; 0: none */
    _Atomic int64_t disk_bytes, disk_free_bytes; /* -1: unknown */
    pthread_mutex_t name_lock;
    char shown[NAME_SIZE]; /* copy of `name` for other threads */
};

/* Begins the first file. Exits with one line if it cannot, unless the disk is full. */
void output_open(struct output *output);

/* Begins a file whose first packet is of `time_ns`, and then ends the open one. Returns false if it
 * cannot, after one warning. */
bool output_begin(struct output *output, int64_t time_ns);

/* Ends the file with statistics and hands it to the finisher. */
void output_close(struct output *output);

/* Returns when a file that begins at `from_ns` must end, or 0. */
int64_t output_next_boundary(const struct settings *settings, int64_t from_ns);

/* Copies the name of the open file; for other threads. */
void output_name(struct output *output, char name[NAME_SIZE]);

/* Writes at the end of the file; on a full disk it first removes the oldest files of a ring.
 * Returns the bytes written, fewer than `size` after an error (errno). Does not change
 * output->bytes. */
size_t output_store(struct output *output, const uint8_t *data, size_t size);

/* Returns whether the error is of a full disk or quota. */
bool is_no_room(int error);

/* Appends blocks other than packets, all or nothing, and frees the buffer. */
bool output_store_blocks(struct output *output, struct pcapng_buffer *buffer);

/* Appends descriptions of interfaces that the file does not have yet. */
bool output_store_descriptions(struct output *output);

/* Warn once that writes fail (errno), and once that they succeed again. A stream does not: its
 * failure ends the capture. */
void output_note_failure(struct output *output);
void output_note_success(struct output *output);

/* Counts packets of one interface, which were written before, as dropped by the disk. */
void output_count_lost(struct output *output, uint32_t description, uint64_t packets);

/* Returns the counts of one interface since the file was opened. */
struct counts output_counts_since(const struct output *output, uint32_t description);

/* Writes the packets into as many files as the limits of the settings demand. Returns those that
 * cannot be written now and must be given again; dropped ones are counted. */
struct span output_take(struct output *output, const struct span *span);

/* To be called between packets: rotates by time or on request, opens a file again after an error,
 * and notices files that were removed. `idle`: no packet is waiting. */
void output_poll(struct output *output, bool idle);

/* Counts packets of files that were removed before they were published as dropped by the disk, in
 * the statistics of the open file. */
void output_count_lost_files(struct output *output);

struct writer {
    struct output *output;
    struct lane lanes[DEVICES_MAX]; /* chunks taken from the queue */
    pthread_t thread;
    atomic_bool done; /* all is written, and the last file is closed */
};

/* Takes chunks from the queue, for which it waits up to `wait_ns`, and writes the packets whose
 * order is final. Returns whether there were any. */
bool writer_merge(struct writer *writer, int64_t wait_ns);
/* Returns whether all devices have ended and all their packets are written. */
bool writer_has_ended(const struct writer *writer);

/* Starts the thread, which sets `done` at its end. */
bool writer_start(struct writer *writer);

#endif
