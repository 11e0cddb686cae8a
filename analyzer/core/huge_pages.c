/* SPDX-License-Identifier: Apache-2.0 */
#include "huge_pages.h"

#include <stdint.h>
#include <sys/mman.h>

/* More is asked for than needed, so that a part of it is aligned; what is around that is given
 * back. */
void *huge_pages_map(size_t size) {
    size_t asked = size + HUGE_PAGE;
    uint8_t *mapped = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(mapped, before);
    if (HUGE_PAGE - before)
        munmap(mapped + before + size, HUGE_PAGE - before);
    madvise(mapped + before, size, MADV_HUGEPAGE);
    return mapped + before;
}
