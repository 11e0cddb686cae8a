/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, times and counts as people write them: 64M, 256 MiB, 200ms, 1h, 10k, 1e6. */
#ifndef WIRETALE_QUANTITY_H
#define WIRETALE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes. `bare` is the unit of a number that names none ("MiB", "kB", "B"). False when it is no
 * size. */
bool quantity_bytes(const char *text, const char *bare, uint64_t *bytes);
/* Nanoseconds; `bare` as above ("s"). */
bool quantity_ns(const char *text, const char *bare, int64_t *ns);
/* A whole number, with k, M, G, T for thousands, Ki, Mi, Gi, Ti for powers of 1024. */
bool quantity_count(const char *text, uint64_t *count);

#endif
