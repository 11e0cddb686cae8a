/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery of temporary files that a killed run left. Their bytes are not trusted: a file may have
 * been changed by others, cut anywhere by the kill, or be damaged by the disk. */
#ifndef WIRETALE_CAPTURE_RECOVER_H
#define WIRETALE_CAPTURE_RECOVER_H

#include <dirent.h>

#include "finish/finished_file.h"
#include "finish/walk.h"

/* Names of temporary files, oldest first. Files are opened one by one, because a run that is killed
 * again and again may leave more of them than a process may open. */
struct leftovers {
    int directory_fd;
    struct dirent **names;
    int count, next;
    /* Files with a read error, which were renamed; any thread may read it. */
    _Atomic uint64_t unreadable;
};

/* Lists the temporary files of the directory. */
void recover_find(struct leftovers *left, const struct directory *directory);

/* Returns whether recover_next() has returned all of them. */
bool recover_is_done(const struct leftovers *left);

/* Opens the next file, cuts it after its last whole block and adds statistics that say so. Returns
 * NULL if the file is in use, obsolete, unreadable or not of this program. An empty file is
 * removed; one with a read error is renamed to NAME.unreadable and not changed. */
struct finished_file *recover_next(struct leftovers *left);

/* Returns whether NAME.zst holds the same bytes: the run was killed after it published that file.
 */
bool recover_is_compressed(const struct finished_file *file);

/* Opens a regular file. Returns -1 with errno. */
int recover_open(int directory_fd, const char *name, int mode);

/* Cuts the open file at `found->whole` and adds statistics. Returns false with errno. */
bool recover_cut(struct finished_file *file, const struct recovered *found);

#endif
