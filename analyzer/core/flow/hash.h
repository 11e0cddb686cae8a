/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds and mixing for hash tables whose keys come from a capture. The seed is unpredictable, so
 * that a sender cannot craft keys that all fall into one bucket; rows must not depend on it. */
#ifndef WIRETALE_HASH_H
#define WIRETALE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <time.h>

/* The folded multiplication of wyhash (public domain, Wang Yi), which passes SMHasher on short
 * keys. Both factors must depend on the seed. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Replaces the kernel's random numbers if it has none yet (early at boot) by the clock and the
 * layout of the address space. */
static inline void hash_seed_without_kernel(uint64_t *seed, size_t count) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t state = (uint64_t)now.tv_nsec ^ (uintptr_t)seed;
    for (size_t i = 0; i < count; i++) {
        state += UINT64_C(0xA0761D6478BD642F);
        seed[i] = hash_fold(state, UINT64_C(0xE7037ED1A0B428DB));
    }
}

/* Fills `seed` with `count` unpredictable numbers. */
static inline void hash_seed_fill(uint64_t *seed, size_t count) {
    ssize_t size = (ssize_t)(count * sizeof *seed);
    if (getrandom(seed, (size_t)size, GRND_NONBLOCK) != size)
        hash_seed_without_kernel(seed, count);
}

#endif
