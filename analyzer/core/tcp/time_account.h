/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a TCP flow went: the sums that tracker/time_account.c keeps. */
#ifndef WIRETALE_TIME_ACCOUNT_H
#define WIRETALE_TIME_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* The parts of a flow's life (docs/tables.md has what each holds). */
enum time_part {
    PART_CONNECTING,
    PART_CLIENT,
    PART_SERVER,
    PART_LOSS,
    PART_QUEUE,
    PART_PATH,
    PART_WINDOW,
    PART_SEND_BUFFER,
    PART_TRANSFER,
    PART_IDLE,
    PART_UNKNOWN,
    PARTS
};

#define NO_DIRECTION 2u

/* The same of a direction, by what its sender waited for: columns time_*_ns of `directions`. */
enum sender_time {
    SENDER_PAUSE,       /* its application */
    SENDER_DELAYED_ACK, /* of the receiver */
    SENDER_WINDOW,
    SENDER_BUFFER,
    SENDER_LOSS,
    SENDER_NETWORK, /* path, queue and transfer */
    SENDER_UNKNOWN,
    SENDER_TIMES
};

/* What the sender of a direction waited for, and what its last data left behind, and the ACKs
 * since.
 */
struct sending_state {
    int64_t ns[SENDER_TIMES];
    int64_t timeout_ns;    /* of SENDER_LOSS: until an RTO */
    int64_t suspected_ns;  /* of SENDER_UNKNOWN: until a suspected RTO */
    int64_t recovery_ns;   /* of SENDER_NETWORK: recovering from losses, with a busy bottleneck */
    int64_t acked_ns;      /* when an ACK last moved snd_una or the window */
    uint32_t rtt_us;       /* latest sample of its data, 0 before the first */
    uint32_t peak_bytes;   /* flight when data was lost last, 0 before the first loss */
    uint32_t held_us;      /* how long the last ACK was delayed, 0 if it was not */
    uint32_t burst_ns;     /* of the path since the view of the sender moved */
    uint32_t resent;       /* retransmissions so far, modulo 2^32 */
    uint16_t rtos, paused; /* RTOs so far, and suspected ones, modulo 65,536 */
    uint16_t payload;      /* of its last data, bytes; UINT16_MAX for more */
    bool pushed : 1;       /* it had PSH */
    bool ended : 1;        /* it ended a write: there may be no more data */
    bool small : 1;        /* it had room for more data */
    bool recovering : 1;   /* its sender had not received the ACK that ends its recovery */
    bool blocked : 1;      /* since then one more segment did not fit the receive window */
};

struct time_account {
    int64_t ns[PARTS];
    int64_t cursor_ns;              /* all before it is in `ns` */
    int64_t reduced_path_ns;        /* part of PART_PATH */
    int64_t pause_ns, pause_2nd_ns; /* the client's two longest pauses in PART_CLIENT */
    int64_t stream_pause_ns;        /* pauses while one direction alone had data */
    int64_t first_pause_ns;         /* before the first data */
    int64_t fin_ns;                 /* of the first FIN, 0 before */
    struct sending_state sending[2];
    uint8_t last;        /* direction of the last data, NO_DIRECTION before */
    bool begun : 1;      /* cursor_ns is set */
    bool connecting : 1; /* a SYN was seen, and nothing after the handshake */
    bool opened : 1;     /* the handshake was seen */
};

#endif
