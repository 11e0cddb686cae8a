/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptors.h"

#include <sys/syscall.h>
#include <unistd.h>

static void close_between(unsigned first, unsigned last) {
    if (first > last || !syscall(SYS_close_range, first, last, 0))
        return;
    for (int fd = (int)first; fd < getdtablesize() && (unsigned)fd <= last; fd++)
        close(fd); /* before Linux 5.9 */
}

/* The smallest of them that is above `fd`; ~0u when none is. */
static unsigned next_kept(const int *kept, size_t count, unsigned fd) {
    unsigned next = ~0u;
    for (size_t i = 0; i < count; i++)
        if ((unsigned)kept[i] > fd && (unsigned)kept[i] < next)
            next = (unsigned)kept[i];
    return next;
}

void descriptors_keep(const int *kept, size_t count) {
    unsigned from = STDERR_FILENO;
    while (from != ~0u) {
        unsigned next = next_kept(kept, count, from);
        close_between(from + 1, next == ~0u ? next : next - 1);
        from = next;
    }
}
