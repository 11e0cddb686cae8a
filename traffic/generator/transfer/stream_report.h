/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that one endpoint measures about a stream: its report, which crosses the control
 * connection, errors of its sends by name, and samples of TCP_INFO. */
#ifndef WIRETALE_STREAM_REPORT_H
#define WIRETALE_STREAM_REPORT_H

#include <linux/tcp.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_ERROR_KINDS   12
#define ERROR_COUNTS_SIZE 256
#define MAX_TCP_SAMPLES   1024u

/* Per-stream report of one endpoint. exchange_lines.c lists the members as fields of a line; each
 * may be any number up to INT64_MAX if a peer reports it. */
struct stream_report {
    uint64_t blocks_sent, bytes_sent;
    uint64_t blocks_received, bytes_received; /* distinct ones */
    uint64_t out_of_order, duplicate, corrupt, late;
    uint64_t missing;             /* below the highest sequence number received */
    uint64_t missing_in_catch_up; /* of these, beside a block that was sent in catching up */
    uint64_t blocks_offloaded;    /* sent with others in a joined datagram */
    uint64_t foreign;             /* datagrams that are not of this transfer */
    uint64_t first_ns, last_ns;   /* since the epoch; 0: no block was sent or received */
    uint64_t elapsed_ns;          /* between both, by the monotonic clock */
    uint64_t jitter_ns_plus_1;    /* RFC 3550; 0: unknown */
    uint64_t dropped_plus_1;      /* by this socket for want of buffer; 0: unknown */
    uint64_t cpu_user_ns, cpu_system_ns;
    /* One-way delays of distinct blocks; 0: unknown. */
    uint64_t delay_p50_ns_plus_1, delay_p99_ns_plus_1, delay_max_ns_plus_1;
    /* Of a paced sender: how late blocks were, blocks sent without a pause, by how much the
     * schedule was moved because of burst_cap, and whether the thread kept real-time priority. */
    uint64_t late_p50_ns, late_p99_ns, late_max_ns, largest_burst, moved_ns, real_time;
    /* Of the sender of turns: responses, and times from the begin of a request to the end of its
     * response. */
    uint64_t responses, response_bytes, turn_p50_ns, turn_p99_ns, turn_max_ns;
    uint64_t paused_ns; /* in which a sender of datagrams waited for a sign of the peer */
    char errors[ERROR_COUNTS_SIZE]; /* as error_counts_write() formats them */
};

/* First and last block of a stream: monotonic, and the first also since the epoch. */
struct stream_times {
    uint64_t first_ns, last_ns, first_realtime_ns;
};

/* Adds without wrapping: a sum above INT64_MAX is INT64_MAX. */
static inline uint64_t bounded_add(uint64_t one, uint64_t other) {
    uint64_t sum;
    return __builtin_add_overflow(one, other, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

/* Returns 0 if `less` is the larger number. */
static inline uint64_t bounded_subtract(uint64_t more, uint64_t less) {
    return more > less ? more - less : 0;
}

/* Failed sends, by the name of errno. */
struct error_counts {
    size_t kinds;
    char names[MAX_ERROR_KINDS][20];
    uint64_t counts[MAX_ERROR_KINDS];
};

/* Adds "ENOBUFS:3,EPERM:1". Text in another format, and names after MAX_ERROR_KINDS, are ignored.
 */
void error_counts_add(struct error_counts *counts, const char *text);
void error_counts_add_one(struct error_counts *counts, const char *name, uint64_t count);
void error_counts_write(const struct error_counts *counts, char text[ERROR_COUNTS_SIZE]);

struct tcp_sample {
    uint64_t time_ns; /* since the start of the transfer */
    uint32_t stream;
    struct tcp_info info; /* members that an older kernel does not fill are 0 */
};

/* At most MAX_TCP_SAMPLES: if the list is full, every second sample is dropped, and from then on
 * only every second round is kept. */
struct tcp_samples {
    struct tcp_sample *list;
    uint32_t count, every, rounds;
};

/* Samples a connected socket; the caller counts the rounds. If `keep`, the sample is kept in any
 * round. */
void tcp_samples_take(struct tcp_samples *samples, int fd, uint32_t stream, uint64_t time_ns,
                      int keep);
void tcp_samples_free(struct tcp_samples *samples);

#endif
