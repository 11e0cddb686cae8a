/* SPDX-License-Identifier: Apache-2.0 */
/* The file being written, and when the next begins. Only the writing thread comes here, but for the
 * atomics. What cannot be written is counted and forgotten; the next packets try again. */
#ifndef WIRETALE_OUTPUT_H
#define WIRETALE_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "block.h"
#include "device.h"
#include "file_finish.h"
#include "folder.h"

/* Whole records of one interface. */
struct span {
    const uint8_t *data;
    size_t size;
    uint32_t description;
    uint32_t packets;
    int64_t first_ns, last_ns;
};

enum output_wish { WISH_ROTATE = 1, WISH_REOPEN = 2 };

struct output {
    struct capture *capture;
    struct folder *folder;
    struct finisher *finisher;

    int fd; /* -1: no file is open */
    char name[NAME_ROOM], temporary[NAME_ROOM];
    uint64_t bytes;      /* of the file, up to its last whole block */
    uint64_t packets;    /* of the file */
    uint32_t described;  /* interfaces that the file tells of */
    int64_t begun_ns;    /* CLOCK_REALTIME */
    int64_t boundary_ns; /* when the next file begins, by the packets' clock; 0: never */
    /* What was counted when the file was opened: its statistics are of what came since. What they
     * say is remembered: what is counted while they are written belongs to the next file. */
    struct file_counts before[DESCRIPTIONS_MAX], told[DESCRIPTIONS_MAX];

    bool failing;         /* the last write did not succeed */
    int reason;           /* errno of the last attempt to begin a file */
    atomic_bool refusing; /* the same, for others */
    uint64_t failed_packets;
    int64_t retry_ns;  /* CLOCK_MONOTONIC: no new file before */
    int64_t looked_ns; /* CLOCK_MONOTONIC of the last look after the file */
    bool closed_pipe;
    bool stream_failed; /* for another reason than that its reader left */
    bool folder_gone;   /* and no other one may be used: the capture ends */
    bool gave_up;       /* the end has come and the reader of the pipe has not read for too long */

    atomic_int wishes;             /* set by signals */
    _Atomic int64_t clock_step_ns; /* a step of the clock that no file tells of yet */
    _Atomic uint64_t total_bytes, files;
    pthread_mutex_t name_lock;
    char shown[NAME_ROOM]; /* name, for others */
};

void output_open(struct output *output);
void output_take(struct output *output, const struct span *span);
/* Between packets: rotation by time or by a signal, a folder that went away. */
void output_look(struct output *output, bool idle);
void output_close(struct output *output);
/* Counts packets of files that somebody removed before they had their names: as dropped, in the
 * statistics of the file that is open now. */
void output_look_for_lost(struct output *output);
/* The name of the file being written; for other threads. */
void output_name(struct output *output, char name[NAME_ROOM]);

#endif
