/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a file when its last packet is written: to the disk, compressed, published by its
 * name, into the ring, its command run. In a thread of its own, in order; neither reading nor
 * writing waits for it, unless files come faster than a thread can rename. */
#ifndef WIRETALE_FILE_FINISH_H
#define WIRETALE_FILE_FINISH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "close_command.h"
#include "description.h"
#include "file_ring.h"
#include "folder.h"

struct finished {
    struct finished *next;
    int fd, folder_fd; /* closed when it is done */
    char temporary[NAME_ROOM], name[NAME_ROOM];
    char original[NAME_ROOM]; /* what was compressed; removed when the file is published */
    uint64_t bytes;
    bool asked_for;             /* by -w, under this name */
    bool recovered;             /* left by an earlier run */
    struct file_counts *counts; /* of so many interfaces, in its statistics; NULL when not known */
    uint32_t described;
};

/* Temporary files that an earlier run left behind. */
struct leftovers {
    int folder_fd;
    char **names;
    size_t count, room, next;
};

/* Files that somebody removed before they had their names, and what their statistics said. */
struct lost {
    uint64_t files, bytes;
    struct file_counts counts[DESCRIPTIONS_MAX];
};

struct file_keeper;

struct finisher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct finished *first, *last;
    unsigned waiting;
    unsigned unfinished; /* waiting, or at work on */
    bool ending;
    bool compress;
    bool overwrite;   /* what -w names and was there before */
    int64_t begun_ns; /* CLOCK_REALTIME */
    struct folder *folder;
    struct file_ring *ring;
    struct close_command *command;    /* NULL for none */
    const struct file_keeper *keeper; /* who names the file, or NULL */
    struct leftovers left;            /* handled one by one, between files of this run */
    struct lost lost;                 /* that the writing thread has not counted yet */
    struct finished *stuck;           /* could not be renamed; tried again each second */
    unsigned stuck_count;
    atomic_bool unnamed; /* a file of this run stays under its temporary name */
    uint64_t published;
    bool warned;
};

/* Gives the file its name, or another one when that is taken: it is then in `file`. False with
 * errno. */
bool file_publish(const struct finisher *finisher, struct finished *file);
bool finisher_start(struct finisher *finisher);
/* Takes a copy. False when there is no memory for it: the temporary file stays for the next start.
 */
bool finisher_push(struct finisher *finisher, const struct finished *finished);
/* Files that were found to be gone since the last call; false for none. */
bool finisher_take_lost(struct finisher *finisher, struct lost *lost);
/* On a full disk: the oldest file of the ring goes. Where there is none because all closed files
 * still wait for their names, the next of these is waited for. False when nothing makes room. */
bool finisher_make_room(struct finisher *finisher, int folder_fd);
/* Finishes the files of this run and returns; what is left of earlier runs gets a few seconds. */
void finisher_end(struct finisher *finisher);

#endif
