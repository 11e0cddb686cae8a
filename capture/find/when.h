/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRETALE_CAPTURE_WHEN_H
#define WIRETALE_CAPTURE_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a time: ISO 8601, UTC unless it has an offset, or seconds since the epoch. Returns false
 * if it is none. */
bool when_parse(const char *text, int64_t *time_ns);

#endif
