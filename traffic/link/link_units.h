/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: 2Mbit, 10ms, 64KiB, 1%, 17,90-95. Each returns false for anything
 * else. */
#ifndef WIRETALE_LINK_UNITS_H
#define WIRETALE_LINK_UNITS_H

#include "link_spec.h"

#define RATE_MOST_BPS    1e12
#define DURATION_MOST_NS (INT64_C(3600) * 24 * 1000000000)

bool parse_rate(const char *text, double *bps);
bool parse_duration(const char *text, int64_t *ns);
bool parse_share(const char *text, double *share);
bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *count);
bool parse_number(const char *text, double least, double most, double *number);

/* `20` or `20p` are packets, `64KiB` or `30000B` bytes. */
bool parse_queue(const char *text, uint64_t *packets, uint64_t *bytes);

/* `2s-3s,5s-6s:50%`. Changes the text. */
bool parse_spans(char *text, struct span_list *list);

/* `17,90-95`, ascending, into new memory. Changes the text. */
bool parse_ranges(char *text, struct index_range **ranges, uint32_t *count);

#endif
