/* SPDX-License-Identifier: Apache-2.0 */
/* A file that no other process can find, and that ends when nothing uses it: what a program keeps
 * on disk for itself. The includer defines _GNU_SOURCE. */
#ifndef WIRETALE_COMMON_UNNAMED_FILE_H
#define WIRETALE_COMMON_UNNAMED_FILE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns a new file in $TMPDIR, or in `folder` if that is not set; -1 with errno. */
static inline int unnamed_file(const char *folder) {
    const char *wanted = getenv("TMPDIR");
    char name[4096];
    int fd = -1;
    if (wanted && *wanted)
        folder = wanted;
#ifdef O_TMPFILE
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#endif
    if (fd >= 0 || snprintf(name, sizeof name, "%s/wiretale.XXXXXX", folder) >= (int)sizeof name)
        return fd;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

#endif
