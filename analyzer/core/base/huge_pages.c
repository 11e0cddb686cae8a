/* SPDX-License-Identifier: Apache-2.0 */
#include "base/huge_pages.h"

#include <stdint.h>
#include <sys/mman.h>

/* More is asked for than needed, so that a part of it is aligned; what is around that is given
 * back. */
void *huge_pages_map(size_t size, bool huge) {
    size_t asked = huge ? size + HUGE_PAGE : size;
    uint8_t *mapped = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    if (!huge)
        return mapped;
    size_t before = (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(mapped, before);
    if (HUGE_PAGE - before)
        munmap(mapped + before + size, HUGE_PAGE - before);
    huge_pages_ask(mapped + before, size);
    return mapped + before;
}

void huge_pages_ask(void *memory, size_t size) {
    madvise(memory, size, MADV_HUGEPAGE);
}
