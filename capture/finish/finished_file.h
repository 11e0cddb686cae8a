/* SPDX-License-Identifier: Apache-2.0 */
/* A file whose last packet is written, and the two things that are done to it: compression
 * (compress.c) and publishing, which is a rename from its temporary name to its final one, by this
 * process or by another (keeper.c). */
#ifndef WIRETALE_CAPTURE_FINISHED_FILE_H
#define WIRETALE_CAPTURE_FINISHED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer/interfaces.h"
#include "confine/confine.h"
#include "directory/directory.h"
#include "index/index_file.h"

/* Made by the writing thread or by recovery, then owned by the finisher. If it was removed before
 * it was published, the writing thread gets it back. */
struct finished_file {
    struct finished_file *next;
    int fd, directory_fd; /* owned by the file, closed by finished_file_free() */
    char temporary[NAME_SIZE], name[NAME_SIZE];
    char original[NAME_SIZE]; /* temporary name of the uncompressed file, or ""; removed when the
                                 compressed one is published */
    uint64_t bytes;
    struct file_index *index; /* made before it is compressed; NULL: none */
    bool asked_for;           /* -w has this name */
    bool is_unfinished;       /* it is still to be compressed or indexed (resume.h) */
    bool is_given_up;         /* it is not, and never will be */
    bool recovered;           /* left by an earlier run */
    uint32_t described;       /* interfaces in `counts` */
    struct counts counts[];   /* as in its statistics */
};

/* Existing files that publish_file() may replace. */
struct replacement {
    bool overwrite;   /* --overwrite: older ones; else only empty ones, as mktemp(1) makes them */
    int64_t begun_ns; /* start of this run, CLOCK_REALTIME */
};

/* Closes the descriptors and frees the file. The file on the disk stays as it is. */
void finished_file_free(struct finished_file *file);

/* Makes the index of the plain file, unless it is small, and writes it beside the file, which may
 * still have to be published. Return false with errno. */
bool finished_file_index(struct finished_file *file);
bool finished_file_write_index(struct finished_file *file);
void finished_file_drop_index(struct finished_file *file);

/* Renames the file to its name, or to NAME-1 and so on if that is taken; the name is then in
 * `file`. Returns false with errno. */
bool publish_file(struct finished_file *file, const struct replacement *replacement);

/* Writes a compressed copy beside the file and replaces name and descriptor in `file` by its own.
 * Returns false with errno and an unchanged `file`; ETIMEDOUT after `until_ns` (CLOCK_MONOTONIC),
 * which other threads may change. */
bool compress_file(struct finished_file *file, const _Atomic int64_t *until_ns);

/* Returns whether the compressed file holds the bytes of the plain one: all of them if `whole`,
 * else a beginning, which may be empty. */
bool is_compressed_copy(int compressed_fd, int plain_fd, bool whole);

/* -w FILE in a directory that the capture's user must not write to, such as root's. The file is
 * made before privileges are dropped, and the capture gets its descriptor but no access to the
 * directory. A second process, of the directory's owner, renames the file when the capture sends it
 * one byte. It can do nothing else, and it reads no byte of a packet. */
struct keeper {
    int fd; /* socket to the process */
};

/* Makes the file for `identity`, starts the process and seals the directory. Exits with one line if
 * it cannot. */
void keeper_start(struct keeper *keeper, struct directory *directory,
                  const struct identity *identity, bool overwrite);

/* Has the file published, whose name is then in `file`. Returns false with errno; EPIPE if the
 * process has ended. */
bool keeper_publish(const struct keeper *keeper, struct finished_file *file);

#endif
