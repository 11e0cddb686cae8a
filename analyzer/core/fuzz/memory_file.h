/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a fuzz target as a capture file in memory. */
#ifndef WIRETALE_FUZZ_MEMORY_FILE_H
#define WIRETALE_FUZZ_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPTURE_PATH_SIZE 32

static inline void check(bool holds) {
    if (!holds)
        abort();
}

/* Returns the descriptor of a file with these bytes, and writes its path. The caller must close it.
 */
static inline int make_capture_file(const uint8_t *data, size_t size,
                                    char path[CAPTURE_PATH_SIZE]) {
    int file = memfd_create("capture", 0);
    check(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, CAPTURE_PATH_SIZE, "/proc/self/fd/%d", file);
    return file;
}

#endif
