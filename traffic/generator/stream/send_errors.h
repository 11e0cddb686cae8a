/* SPDX-License-Identifier: Apache-2.0 */
/* Sends that failed, by kind, and what follows from each. */
#ifndef WIRETALE_SEND_ERRORS_H
#define WIRETALE_SEND_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "stream/stream.h"
#include "transfer/stream_report.h"

struct send_errors {
    struct error_counts counts;
    uint64_t progress_ns; /* monotonic: when something went the last time */
};

/* Counts errno of a send; pauses where that helps. False: the stream cannot go on. */
bool send_errors_take(struct send_errors *errors, struct stream *stream, int number);
void send_errors_report(const struct send_errors *errors, struct stream_report *report);

#endif
