/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary folder of a C test, in TMPDIR. The process that made it removes it with its content
 * when it exits, also after a check that failed. */
#ifndef WIRETALE_SCRATCH_H
#define WIRETALE_SCRATCH_H

#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/test/check.h"

/* Bytes of TMPDIR, and of a path in it, which must fit the address of a socket. */
#define SCRATCH_PARENT_MOST 64
#define SCRATCH_SIZE        108

static char scratch_made[SCRATCH_SIZE];
static pid_t scratch_owner;

static void scratch_remove(void) {
    char *const paths[] = {scratch_made, NULL};
    if (getpid() != scratch_owner)
        return;
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; tree && (entry = fts_read(tree));)
        if (entry->fts_info != FTS_D)
            remove(entry->fts_accpath);
    if (tree)
        fts_close(tree);
}

/* Returns the path of the folder; the first call makes it. */
static inline const char *scratch_folder(void) {
    const char *parent = getenv("TMPDIR");
    if (*scratch_made)
        return scratch_made;
    if (!parent || *parent != '/' || strlen(parent) > SCRATCH_PARENT_MOST)
        parent = "/tmp";
    snprintf(scratch_made, sizeof scratch_made, "%s/wiretale-test-XXXXXX", parent);
    CHECK(mkdtemp(scratch_made));
    scratch_owner = getpid();
    CHECK(!atexit(scratch_remove));
    return scratch_made;
}

/* Writes the path of a name in the folder. */
static inline void scratch_path(char path[SCRATCH_SIZE], const char *name) {
    int length = snprintf(path, SCRATCH_SIZE, "%s/%s", scratch_folder(), name);
    CHECK(length < SCRATCH_SIZE);
}

#endif
