/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is read in pieces by pread(), never mapped: a bad sector or a file that shrinks would
 * be SIGBUS there. */
#ifndef WIRETALE_CAPTURE_WINDOW_H
#define WIRETALE_CAPTURE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_MOST (16u << 20) /* bytes of a record, as in libpcap */

struct window {
    int fd;
    uint64_t size;  /* of the file when it was opened; later bytes do not count */
    uint64_t until; /* nothing is read ahead behind it */
    uint8_t *bytes;
    size_t room, fill;
    uint64_t start; /* offset of `bytes` in the file */
    uint64_t read;  /* bytes read so far */
};

/* Takes a descriptor, which stays the caller's. Returns false with errno. */
bool window_open(struct window *window, int fd);
void window_close(struct window *window);

/* Returns `size` bytes of the file, valid until the next call; NULL if it ends before, after a read
 * error, or for more than WINDOW_MOST bytes. */
const uint8_t *window_at(struct window *window, uint64_t at, size_t size);

#endif
