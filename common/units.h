/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_COMMON_UNITS_H
#define WIRETALE_COMMON_UNITS_H

#include <stdbool.h>
#include <stdint.h>

enum unit_kind {
    UNIT_RATE,        /* bit/s: 10M, 1.5Gbit/s */
    UNIT_PACKET_RATE, /* packets/s: 100pps */
    UNIT_SIZE,        /* bytes: 64k, 256 MiB */
    UNIT_TIME,        /* ns: 200ms, 1.5min; seconds if the text has no unit */
    UNIT_COUNT,       /* 1000, 10k, 64Ki */
    UNIT_SHARE,       /* 1 for 100%: 0.5, 50% */
    UNIT_BINARY_SIZE, /* bytes, with k of 1024 as in ttcp */
    UNIT_BINARY_COUNT,
};

/* Parses a number with a unit of `kind` and stores it in the unit that the enumeration lists.
 * Returns false if the text is anything else, or if the value is not finite. */
bool units_parse_decimal(const char *text, enum unit_kind kind, double *value);

/* Parses a number that must be whole in the unit of `kind`; a time is rounded to nanoseconds.
 * `default_unit` applies if the text has no unit ("MiB"; "" for the unit of `kind`, or seconds).
 * Returns false if the text is anything else, or if the value is 2^63 or more; plain digits may
 * reach 2^64 - 1. */
bool units_parse_whole(const char *text, enum unit_kind kind, const char *default_unit,
                       uint64_t *value);

/* Parses a port, 1 to 65535: digits only, because a port is not a count. */
bool units_parse_port(const char *text, uint16_t *port);

#endif
