/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash_seed.h"

#include <sys/random.h>
#include <time.h>

/* If the kernel has no random numbers yet (early at boot), the clock and the address space layout
 * must do. */
static void fill_without_kernel(uint64_t *seed, size_t count) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t state = (uint64_t)now.tv_nsec ^ (uintptr_t)seed ^ (uintptr_t)hash_seed_fill;
    for (size_t i = 0; i < count; i++) {
        state += UINT64_C(0xA0761D6478BD642F);
        seed[i] = hash_fold(state, UINT64_C(0xE7037ED1A0B428DB));
    }
}

void hash_seed_fill(uint64_t *seed, size_t count) {
    ssize_t size = (ssize_t)(count * sizeof *seed);
    if (getrandom(seed, (size_t)size, GRND_NONBLOCK) != size)
        fill_without_kernel(seed, count);
}
