/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a transfer, as a table for people or as JSON for programs (docs/traffic.md defines
 * each figure), and the sums that they contain. */
#ifndef WIRETALE_REPORT_H
#define WIRETALE_REPORT_H

#include <stdbool.h>

#include "common/json.h"
#include "transfer/transfer.h"

struct report_style {
    const char *role; /* "send" or "receive" */
    const char *host; /* as the command line has it; NULL: none */
    bool json, quiet; /* quiet: no table */
    char format;      /* letter of -f; 0: Mbit/s and KB/s */
    FILE *out;        /* transfers may share it: a report locks it (flockfile(3)) */
};

/* Prints the report. If it cannot be written, returns false after a message; a reader that closed
 * the pipe is not an error. */
bool report_transfer(const struct transfer *transfer, const struct report_style *style);
/* Prints the change since the previous interval, a line for each direction. */
void report_interval(struct transfer *transfer, uint64_t from_ns, uint64_t to_ns,
                     const struct report_style *style);
void report_json(const struct transfer *transfer, const struct report_style *style);
/* Writes the times, rates and CPU times of one end. A negative rate (bytes/s) is unknown: null. */
void report_put_rates(struct json *json, const struct stream_report *report, double rate);

/* Where the blocks of a direction were lost (losses.c); the parts add up to `lost`, -1: unknown. */
struct losses {
    int64_t lost;
    int64_t sender_host;      /* in the queues and at the interface of the sender's host */
    int64_t path;             /* between the hosts */
    int64_t receiver_host;    /* at the interface and in the buffers of the receiver's sockets */
    int64_t receiver_program; /* arrived too late to be counted */
    int64_t undetermined;     /* the rest if a part is unknown */
};

/* Reports of all streams of a direction, added. */
struct direction_totals {
    bool sender_known, receiver_known; /* false if a stream's report is missing */
    struct stream_report sender, receiver;
    int64_t lost; /* blocks that were sent and never received; -1 if unknown */
};
struct direction_totals direction_totals_of(const struct direction *direction);
/* Adds the counts of all directions; `sum` must be known and 0. */
void transfer_add_totals(const struct transfer *transfer, struct direction_totals *sum);

struct losses losses_of(const struct direction *direction, const struct direction_totals *totals);
/* Each prints nothing, or null, if the number of lost blocks is unknown. */
void report_losses_table(FILE *out, const struct losses *losses);
void report_losses_json(struct json *json, const char *name, const struct losses *losses,
                        const struct direction *direction);

/* Returns the report of a stream's sender, else of its receiver; NULL if it has not arrived. */
const struct stream_report *stream_report_of(const struct stream *stream, bool sender);
/* Adds counts and CPU times, but neither times nor errors. */
void stream_report_add(struct stream_report *sum, const struct stream_report *one);

/* Returns the blocks that were sent and never received; -1 if not `known`. */
int64_t blocks_lost(bool known, const struct stream_report *sent, const struct stream_report *got);

/* Returns whether all blocks and reports were exchanged, and the file if there is one. */
bool transfer_is_complete(const struct transfer *transfer);

/* Returns the rate of block bytes, or -1 if it is unknown. N received datagrams have N - 1 gaps, so
 * the bytes of one are not counted. */
double report_bytes_per_s(const struct transfer *transfer, const struct stream_report *report,
                          bool sender);
/* Returns whether a sender of constant gaps kept to them: 99% of blocks were late by at most one
 * gap or LATE_NS, and none was moved; -1 if the plan has no constant gaps, or no block was sent. */
int sender_kept_pace(const struct transfer *transfer, const struct stream_report *sent);
/* Returns whether a rate of the senders (else of the receivers) exceeds that of the link, and so
 * cannot be the rate on the wire; -1 if unknown. */
int transfer_exceeds_link(const struct transfer *transfer, bool sender);

/* Unit of a printed rate, by the letter of -f as in ttcp and PCATTCP: lower case for bits, upper
 * case for bytes; k, m and g are 1024, 1024^2 and 1024^3. Returns NULL for another letter. */
struct rate_unit {
    char letter;
    const char *name; /* of the amount: "Kbit", "KB" */
    double bytes;     /* in one unit */
};
const struct rate_unit *rate_unit_of(char letter);
/* Stores the letter of an option -f in a char (common/options.h). */
bool rate_letter_take(void *letter, const char *value, const char **expected);

#endif
