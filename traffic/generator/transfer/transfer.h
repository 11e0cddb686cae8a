/* SPDX-License-Identifier: Apache-2.0 */
/* A test while it runs: the same structures at both ends.
 *
 * Each direction that has data is a way of streams; each stream has a socket and a thread of its
 * own, which is the only writer of its counters. What the threads share with the thread of the
 * control connection is atomic; `mine` of a stream is read by others only after its thread has been
 * joined. */
#ifndef WIRETALE_TRANSFER_H
#define WIRETALE_TRANSFER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "transfer/content.h"
#include "transfer/endpoint.h"
#include "transfer/stream_report.h"
#include "transfer/transfer_plan.h"

/* Written by the stream's thread, for those who look on. */
struct stream_live {
    _Atomic uint64_t blocks, bytes, next, out_of_order, duplicate, corrupt;
};

/* Of all streams of a way, when it was shown the last time. */
struct live_sums {
    uint64_t blocks, bytes, missing, out_of_order, duplicate, corrupt;
};

struct stream {
    struct direction *direction;
    uint16_t number;
    _Atomic int fd; /* -1: none yet */
    uint16_t port;  /* where the peer's UDP socket receives */
    pthread_t thread;
    bool is_running;
    uint8_t head[32]; /* of an accepted data connection: read already */
    size_t head_have;
    struct stream_live live;
    struct stream_report own, peer;
};

struct direction {
    struct transfer *transfer;
    enum direction_name name;
    bool is_active, is_sending;
    uint32_t count;
    struct stream *streams;
    _Atomic uint32_t running; /* threads */
    atomic_bool stop;         /* end soon, in order */
    atomic_bool ended;        /* the peer has announced what it sent */
    _Atomic uint64_t ended_ns;
    bool has_joined, report_sent, peer_done;
};

struct transfer {
    struct transfer_plan plan;
    struct control control;
    struct local_plan local;
    union endpoint own, peer; /* of the control connection */
    bool is_initiator;        /* this end asked for the test */
    struct direction directions[DIRECTIONS];
    int wake; /* eventfd: a thread has ended */
    uint64_t start_ns, start_realtime_ns;
    uint64_t max_bytes; /* of all streams; 0: no bound */
    _Atomic uint64_t bytes_moved;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t arrived;
    const char *stopped_by; /* static text; NULL: not stopped */
    const char *stopped_at; /* "sender" or "receiver" of the control connection's view */
    char error_text[ERROR_SIZE];
    bool is_over;             /* no connections are taken any more */
    atomic_bool has_reported; /* to the peer, which may ask for another test at once */
    struct content content;
    struct tcp_samples samples;
    struct live_sums shown[DIRECTIONS];
    int64_t udp_drops_begin, udp_drops_end; /* /proc; -1: unknown */
    uint64_t link_bps;                      /* of this end's link; 0: unknown */
};

/* The plan must be complete. */
bool transfer_begin(struct transfer *transfer);
void transfer_end(struct transfer *transfer);

/* The first reason is kept. */
void transfer_stop(struct transfer *transfer, const char *reason, bool here);
/* A stream cannot go on: one line, and the test is stopped. */
void transfer_fail(struct transfer *transfer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool transfer_is_udp(const struct transfer *transfer) {
    return transfer->plan.protocol == PROTOCOL_UDP;
}

#endif
