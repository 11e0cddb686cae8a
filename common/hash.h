/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds and mixing for hash tables whose keys come from packets. The seed is unpredictable, so
 * that a sender cannot craft keys that all fall into one bucket; rows must not depend on it. */
#ifndef WIRETALE_COMMON_HASH_H
#define WIRETALE_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
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

/* Hashes `size` bytes; `hash` is that of the bytes before, or 0. */
static inline uint64_t hash_bytes(uint64_t hash, const uint64_t seed[2], const void *bytes,
                                  size_t size) {
    const uint8_t *at = bytes;
    uint64_t word;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = hash_fold(hash ^ word ^ seed[0], seed[1]);
    }
    for (word = 0; size; size--)
        word = word << 8 | *at++;
    return hash_fold(hash ^ word ^ seed[0], seed[1]);
}

#endif
