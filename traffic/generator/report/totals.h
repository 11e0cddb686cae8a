/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends told of a way, added up. */
#ifndef WIRETALE_TOTALS_H
#define WIRETALE_TOTALS_H

#include "transfer/transfer.h"

struct direction_totals {
    bool sender_known, receiver_known;
    struct stream_report sender, receiver;
};

struct direction_totals direction_totals_of(const struct direction *direction);

/* Adds counts and CPU times, but no times and no errors. */
void stream_report_add(struct stream_report *sum, const struct stream_report *one);

/* What the sender (else the receiver) of a stream told; NULL: nothing. */
const struct stream_report *stream_report_of(const struct stream *stream, bool sender);

/* Blocks sent and never received; -1: unknown. */
int64_t blocks_lost(bool known, const struct stream_report *sent, const struct stream_report *got);

/* Whether all was sent, received and told. */
bool transfer_is_complete(const struct transfer *transfer);

/* Unit of a printed rate, by the letter of -f as in ttcp and PCATTCP: lower case for bits, upper
 * case for bytes; k, m and g are 1024, 1024^2 and 1024^3. Returns NULL for another letter. */
struct rate_unit {
    char letter;
    const char *name; /* of the amount: "Kbit", "KB" */
    double bytes;     /* in one unit */
};
const struct rate_unit *rate_unit_of(char letter);
#define RATE_LETTERS "one of k, K, m, M, g, G"

/* -1: unknown. A datagram that was received is a point in time, and between N of them are N - 1
 * gaps: the bytes of one are not counted. */
double report_bytes_per_s(const struct transfer *transfer, const struct stream_report *report,
                          bool sender);

/* Whether a rate of the senders (else of the receivers) is above that of the link, which it then
 * did not have on the wire; -1: unknown. */
int transfer_exceeds_link(const struct transfer *transfer, bool sender);

#endif
