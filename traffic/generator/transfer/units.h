/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: 10M, 1.5Gbit, 64KiB, 200ms, 100pps, 64,512,1000-1400:100. */
#ifndef WIRETALE_UNITS_H
#define WIRETALE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_SIZES      65536u
#define MAX_SIZES_TEXT 1000u

/* All return whether the whole text could be read. */
bool units_size(const char *text, uint64_t *bytes);  /* 1000, 64k, 2M, 64KiB */
bool units_count(const char *text, uint64_t *count); /* 1000, 64k, 2M */
bool units_duration(const char *text, uint64_t *ns); /* 10, 1.5s, 200ms, 2m, 1h */
bool units_port(const char *text, uint64_t *port);   /* 1 to 65535 */
bool units_rate(const char *text, double *bits_per_s, double *packets_per_s);

/* A list of sizes and ranges with a step, each within [least, most]. The array is the caller's;
 * NULL: `*why` says what is wrong. */
uint32_t *units_sizes(const char *text, uint32_t min, uint32_t max, uint32_t *count,
                      const char **error);

/* How a rate is shown, by the letter of -f as in ttcp and PCATTCP: lower case in bits, upper case
 * in bytes; k and m of 1024, g of 1024^3. */
struct rate_unit {
    char letter;
    const char *name;
    double bytes; /* per second in one of these */
};
const struct rate_unit *units_rate_unit(char letter);

/* Whether the text is such a letter and nothing else. */
bool units_rate_letter(const char *text);
#define UNITS_RATE_LETTERS "one of k K m M g G"

#endif
