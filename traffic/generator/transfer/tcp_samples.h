/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a TCP connection, from time to time. */
#ifndef WIRETALE_TCP_SAMPLES_H
#define WIRETALE_TCP_SAMPLES_H

#include <stdint.h>

#define MAX_TCP_SAMPLES 1024u /* when they are used up, every other is kept */

struct tcp_sample {
    uint64_t time_ns; /* since the test's start */
    uint32_t stream, state;
    uint32_t rtt_us, rttvar_us, cwnd, ssthresh, mss, path_mtu, unacked, lost, retransmitted_now;
    uint32_t retransmissions, reordering;
    uint64_t delivery_rate_bps, pacing_rate_bps, bytes_acked, bytes_retransmitted, not_sent_bytes;
    uint64_t busy_us, receive_window_limited_us, send_buffer_limited_us;
    uint32_t min_rtt_us, rcv_rtt_us, rcv_space;
};

struct tcp_samples {
    struct tcp_sample *list;
    uint32_t count, every, rounds;
};

/* Of a socket that is open. `keep`: even between two rounds (the last one). */
void tcp_samples_begin_round(struct tcp_samples *samples);
void tcp_samples_take(struct tcp_samples *samples, int fd, uint32_t stream, uint64_t time_ns,
                      int keep);
void tcp_samples_free(struct tcp_samples *samples);

#endif
