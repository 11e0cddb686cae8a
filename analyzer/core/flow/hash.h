/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds and mixing for hash tables whose keys come from a capture. The seed is unpredictable, so
 * that a sender cannot craft keys that all fall into one bucket; rows must not depend on it. */
#ifndef WIRETALE_HASH_H
#define WIRETALE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/portable.h"

/* The folded multiplication of wyhash (public domain, Wang Yi), which passes SMHasher on short
 * keys. Both factors must depend on the seed. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Fills `seed` with `count` unpredictable numbers. If the kernel has none yet, early at boot, they
 * come from the clock and the layout of the address space. */
static inline void hash_seed_fill(uint64_t *seed, size_t count) {
    struct timespec now = {0};
    ssize_t size = (ssize_t)(count * sizeof *seed);
    if (getrandom(seed, (size_t)size, GRND_NONBLOCK) == size)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (size_t i = 0; i < count; i++)
        seed[i] = hash_fold((uint64_t)now.tv_nsec + i, (uintptr_t)seed ^ 0xA0761D6478BD642F);
}

#endif
