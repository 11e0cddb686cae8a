/* SPDX-License-Identifier: Apache-2.0 */
/* A running transfer; both ends use the same structures.
 *
 * Each active direction has `plan.streams` streams; each stream has a socket and a thread, which
 * alone writes its `live` counters and its `own` report. Members that the thread of the exchange
 * also uses are atomic; `own` may be read after the thread was joined. `lock` protects why the
 * transfer stopped, and sockets that arrive from the listener. */
#ifndef WIRETALE_TRANSFER_H
#define WIRETALE_TRANSFER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/handshake.h"
#include "transfer/content.h"
#include "transfer/endpoint.h"
#include "transfer/stream_report.h"
#include "transfer/transfer_plan.h"

/* Progress of a stream. */
enum live_counter {
    LIVE_BLOCKS,
    LIVE_BYTES,
    LIVE_MISSING, /* below the highest sequence number received */
    LIVE_OUT_OF_ORDER,
    LIVE_DUPLICATE,
    LIVE_CORRUPT,
    LIVE_COUNTERS
};

struct stream {
    struct direction *direction;
    uint16_t number;
    _Atomic int fd; /* -1: not open yet */
    uint16_t port;  /* of the peer's receiving UDP socket */
    pthread_t thread;
    bool is_running;  /* the thread was created and not joined */
    bool has_raised;  /* its own priority, to a real-time one */
    uint8_t head[32]; /* first bytes of an accepted connection, read by the listener */
    size_t head_have;
    _Atomic uint64_t live[LIVE_COUNTERS]; /* written by its thread, read by others while it runs */
    struct stream_times times;
    uint64_t progress_ns;           /* monotonic: the last successful send */
    struct stream_report own, peer; /* `peer` is valid once it was received */
};

/* Packets that one end's host dropped in the part of the direction that it sees: those to be sent,
 * or those received. Stored plus 1; 0: unknown. */
struct host_losses {
    uint64_t queue_plus_1;     /* 0 at the receiving end */
    uint64_t interface_plus_1; /* network interface */
};

struct direction {
    struct transfer *transfer;
    enum direction_name name;
    bool is_active, is_sending; /* is_sending: by this end */
    bool joins_datagrams;       /* the kernel segments those that are due together */
    uint32_t count;
    struct stream *streams;
    _Atomic uint32_t running;  /* threads */
    atomic_bool stop;          /* threads must end soon */
    atomic_bool ended;         /* the peer sent "end": stream reports of it are in `peer` */
    _Atomic uint64_t ended_ns; /* monotonic */
    bool has_joined;           /* threads */
    bool report_sent;          /* to the peer */
    bool peer_done;            /* the peer sent "done": it has received all that it will */
    struct host_losses own_losses, peer_losses;
};

/* The realtime clock of the end that was asked, less that of the initiator (clock_offset.c). */
struct clock_offset {
    bool is_known, is_same; /* is_same: both ends read one clock */
    int64_t ns;
    uint64_t error_ns; /* the offset is wrong by at most this */
};

/* Bounds of a peer's figures, so that sums fit: times until 2116, offsets of clocks that begin at
 * the epoch. */
#define MAX_TIME_NS   (UINT64_C(1) << 62)
#define MAX_OFFSET_NS (UINT64_C(1) << 61)

/* The other end's answer to a probe. */
struct clock_answer {
    uint64_t sent_ns, received_ns, replied_ns; /* since the epoch */
    char host[HOST_NAME_SIZE];                 /* hash of the kernel's boot_id; "": unknown */
};

/* What had moved at the last look. */
struct rate_floor {
    uint64_t ns, bytes;
};

/* State of the loop that exchanges lines with the peer (session/exchange.c). */
struct exchange {
    const struct exchange_options *options;
    uint64_t last_heard_ns, last_sent_ns; /* monotonic: signs of life */
    uint64_t stopped_ns;                  /* monotonic; 0: not stopped */
    uint64_t last_bytes;                  /* of blocks, at the previous look */
    uint64_t sampled_ns;                  /* monotonic: the previous TCP_INFO samples */
    uint64_t shown_ns;                    /* since the start: the previous interval line */
    struct rate_floor floor;
    bool peer_gone, stop_sent;
};

struct transfer {
    struct transfer_plan plan;
    struct control control;
    struct data_keys keys; /* of authenticated blocks */
    struct local_plan local;
    union endpoint own, peer; /* of the control connection */
    bool is_initiator;        /* this end asked for the transfer */
    struct direction directions[DIRECTIONS];
    int wake;                             /* eventfd: a thread has ended */
    uint64_t start_ns, start_realtime_ns; /* 0: not started */
    /* Monotonic: senders of datagrams then pause until the peer gives a sign of life. */
    _Atomic uint64_t send_until_ns;
    uint64_t max_bytes;           /* of all streams; 0: no limit */
    double max_bps;               /* of all streams of a direction; 0: no limit */
    _Atomic uint64_t bytes_moved; /* of all streams, if there is a limit */
    pthread_mutex_t lock;         /* of the members that follow */
    pthread_cond_t arrived;       /* a data connection, "end", or the loss of the peer */
    const char *stopped_by;       /* static text; NULL: not stopped */
    const char *stopped_at;       /* "sender" (the initiator) or "receiver" */
    char error_text[ERROR_SIZE];
    struct exchange exchange;
    bool is_over;             /* accepts no further data connections */
    atomic_bool has_reported; /* the peer may ask for its next transfer */
    struct content content;
    struct tcp_samples samples;
    uint64_t shown[DIRECTIONS][LIVE_COUNTERS]; /* sums at the previous interval line */
    int64_t udp_drops;       /* of this host: at the start, after the end since then; -1: unknown */
    struct host_drops drops; /* at the start */
    struct clock_offset clock_begin; /* before the start; delays are collected with it */
    struct clock_offset clock;       /* over the whole transfer */
    struct clock_answer clock_answer;
    bool has_offset;   /* the initiator sent "offset": it reads the fields of that version */
    uint64_t link_bps; /* of this host's link; 0: unknown */
    uint64_t rtt_us;   /* shortest round trip of the control connection; 0: unknown */
};

/* `plan` must be complete, and `is_initiator` set. Returns false if memory or descriptors ran out;
 * transfer_end() must be called in any case. */
bool transfer_begin(struct transfer *transfer);
void transfer_end(struct transfer *transfer);

/* Stops all senders in order; receivers then wait for the peer's "end". Only the first reason is
 * kept; it must be static text. `here`: this end stops, not the peer. */
void transfer_stop(struct transfer *transfer, const char *reason, bool here);
/* Stops with the reason "error" and keeps the first message, which both ends print. */
void transfer_fail(struct transfer *transfer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool transfer_is_udp(const struct transfer *transfer) {
    return transfer->plan.protocol == PROTOCOL_UDP;
}

#endif
