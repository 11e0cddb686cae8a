/* SPDX-License-Identifier: Apache-2.0 */
/* Data that the receiver reports missing by SACK when the connection ends: rule V7.12 of
 * docs/verdicts.md. */
#ifndef WIRETALE_MISSING_DATA_H
#define WIRETALE_MISSING_DATA_H

#include "tcp/stream.h"

struct missing_data {
    int64_t bytes;        /* that neither the capture point nor the receiver has seen */
    int64_t since_ns;     /* time of the first sign of them; valid if there are any */
    int64_t unseen_bytes; /* that the receiver reported, and the capture point has not seen */
};

/* Returns what SACKs show about data above snd_una, at the end of the connection. */
struct missing_data find_missing_data(const struct tcp_stream *stream);

#endif
