/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery of temporary files that a killed run left. Their bytes are not trusted: a file may have
 * been changed by others, or cut anywhere by the kill. */
#ifndef WIRETALE_CAPTURE_RECOVER_H
#define WIRETALE_CAPTURE_RECOVER_H

#include <dirent.h>

#include "finish/finished_file.h"

/* Names of temporary files, oldest first. Files are opened one by one, because a run that is killed
 * again and again may leave more of them than a process may open. */
struct leftovers {
    int directory_fd;
    struct dirent **names;
    int count, next;
};

struct recovered_interface {
    uint64_t packets;
    int64_t first_ns, last_ns;
};

/* Result of a walk over the bytes of a file. */
struct recovered {
    uint64_t whole; /* bytes up to the end of the last whole block or record */
    uint64_t packets;
    bool classic; /* pcap, not pcapng */
    bool closed;  /* statistics follow the last packet: nothing is missing */
    bool ours;    /* begins as the files of this program do */
    uint32_t interfaces;
    struct recovered_interface of[DESCRIPTIONS_MAX];
};

/* Lists the temporary files of the directory. */
void recover_find(struct leftovers *left, const struct directory *directory);

/* Returns whether recover_next() has returned all of them. */
bool recover_is_done(const struct leftovers *left);

/* Opens the next file, cuts it after its last whole block and adds statistics that say so. Returns
 * NULL if the file is in use, obsolete or not of this program; an empty one is removed. */
struct finished_file *recover_next(struct leftovers *left);

/* Walks the bytes of a file; also called by tests and the fuzzer. */
void recover_walk(struct recovered *found, const uint8_t *data, size_t size);

/* Cuts the open file at `found->whole` and adds statistics. Returns false with errno. */
bool recover_cut(struct finished_file *file, const struct recovered *found);

#endif
