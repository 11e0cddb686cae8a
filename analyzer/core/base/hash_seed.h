/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds and the mixing step of every hash table whose keys come from a capture. The seed is
 * unpredictable, so that a sender cannot craft keys that all fall into one bucket. Rows must not
 * depend on it. */
#ifndef WIRETALE_HASH_SEED_H
#define WIRETALE_HASH_SEED_H

#include <stddef.h>
#include <stdint.h>

/* Fills `seed` with `count` unpredictable numbers. */
void hash_seed_fill(uint64_t *seed, size_t count);

/* The folded multiplication of wyhash (public domain, Wang Yi): passes SMHasher on short keys. Both
 * factors must depend on the seed. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
