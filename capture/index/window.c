/* SPDX-License-Identifier: Apache-2.0 */
#include "index/window.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM_FIRST (256u << 10)

bool window_open(struct window *window, int fd) {
    struct stat status;
    if (fstat(fd, &status))
        return false;
    *window = (struct window){.fd = fd, .size = (uint64_t)status.st_size, .until = UINT64_MAX};
    window->room = ROOM_FIRST;
    window->bytes = malloc(window->room);
    return window->bytes != NULL;
}

void window_close(struct window *window) {
    free(window->bytes);
    window->bytes = NULL;
}

static bool make_room(struct window *window, size_t size) {
    if (size <= window->room)
        return true;
    uint8_t *bytes = realloc(window->bytes, size);
    if (!bytes)
        return false;
    window->bytes = bytes;
    window->room = size;
    return true;
}

/* Fills the window from `at` with at least `size` bytes. Returns false after an error. */
static bool fill(struct window *window, uint64_t at, size_t size) {
    uint64_t end = MIN(window->size, MAX(window->until, at + size));
    size_t wanted = (size_t)MIN(end - at, (uint64_t)window->room);
    window->start = at;
    window->fill = 0;
    while (window->fill < size) {
        ssize_t more = pread(window->fd, window->bytes + window->fill, wanted - window->fill,
                             (off_t)(at + window->fill));
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return false;
        window->fill += (size_t)more;
        window->read += (uint64_t)more;
    }
    return true;
}

const uint8_t *window_at(struct window *window, uint64_t at, size_t size) {
    if (size > WINDOW_MOST || at > window->size || size > window->size - at)
        return NULL;
    bool is_inside = at >= window->start && at + size <= window->start + window->fill;
    if (!is_inside && (!make_room(window, size) || !fill(window, at, size)))
        return NULL;
    return window->bytes + (at - window->start);
}
