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

/* Most flows have time in these parts alone; the others are in `unusual`. */
#define USUAL_PARTS   7
#define UNUSUAL_PARTS (PARTS - USUAL_PARTS)

/* Returns the place of a part in `usual`, or after those in `unusual.parts`. */
static inline unsigned part_place(enum time_part part) {
    static const uint8_t places[PARTS] = {
        [PART_CONNECTING] = 0, [PART_CLIENT] = 1,      [PART_SERVER] = 2,  [PART_QUEUE] = 3,
        [PART_PATH] = 4,       [PART_TRANSFER] = 5,    [PART_IDLE] = 6,    [PART_LOSS] = 7,
        [PART_WINDOW] = 8,     [PART_SEND_BUFFER] = 9, [PART_UNKNOWN] = 10};
    return places[part];
}

#define NO_DIRECTION 2u

/* The same of a direction, by what its sender waited for: columns time_*_ns of `directions`. */
enum sender_time {
    SENDER_PAUSE,                      /* its application */
    SENDER_NETWORK,                    /* path, queue and transfer */
    SENDER_USUAL,                      /* those before have each direction; the others: */
    SENDER_DELAYED_ACK = SENDER_USUAL, /* of the receiver */
    SENDER_WINDOW,
    SENDER_BUFFER,
    SENDER_LOSS,
    SENDER_UNKNOWN,
    SENDER_TIMES
};

/* What a direction has with losses, and otherwise seldom. */
struct sending_unusual {
    int64_t ns[SENDER_TIMES - SENDER_USUAL];
    int64_t timeout_ns;      /* of SENDER_LOSS: until an RTO */
    int64_t suspected_ns;    /* of SENDER_UNKNOWN: until a suspected RTO */
    int64_t recovery_ns;     /* of SENDER_NETWORK: recovering from losses, with a busy bottleneck */
    int64_t reduced_path_ns; /* of PART_PATH: the congestion window was below `peak_bytes` */
    uint32_t peak_bytes;     /* flight when data was lost last, 0 before the first loss */
    uint32_t resent;         /* retransmissions so far, modulo 2^32 */
    uint16_t rtos, paused;   /* RTOs so far, and suspected ones, modulo 65,536 */
};

/* Allocated when a number in it is no longer 0, because most short flows have none. */
struct unusual_time {
    int64_t parts[UNUSUAL_PARTS];
    struct sending_unusual sending[2];
};

/* What the sender of a direction waited for, and what its last data left behind, and the ACKs
 * since.
 */
struct sending_state {
    int64_t ns[SENDER_USUAL];
    int64_t acked_ns;    /* when an ACK last moved snd_una or the window */
    uint32_t rtt_us;     /* latest sample of its data, 0 before the first */
    uint32_t held_us;    /* how long the last ACK was delayed, 0 if it was not */
    uint32_t burst_ns;   /* of the path since the view of the sender moved */
    uint16_t payload;    /* of its last data, bytes; UINT16_MAX for more */
    bool pushed : 1;     /* it had PSH */
    bool ended : 1;      /* it ended a write: there may be no more data */
    bool small : 1;      /* it had room for more data */
    bool recovering : 1; /* its sender had not received the ACK that ends its recovery */
    bool blocked : 1;    /* since then one more segment did not fit the receive window */
};

struct time_account {
    int64_t usual[USUAL_PARTS];
    struct unusual_time *unusual;   /* NULL at first */
    int64_t cursor_ns;              /* all before it is in the parts */
    int64_t pause_ns, pause_2nd_ns; /* the client's two longest pauses in PART_CLIENT */
    int64_t stream_pause_ns;        /* pauses while one direction alone had data */
    int64_t first_pause_ns;         /* before the first data */
    int64_t fin_ns;                 /* of the first FIN, 0 before */
    struct sending_state sending[2];
    uint8_t last;        /* direction of the last data, NO_DIRECTION before */
    bool begun : 1;      /* cursor_ns is set */
    bool connecting : 1; /* a SYN was seen, and nothing after the handshake */
    bool opened : 1;     /* the handshake was seen */
    bool incomplete : 1; /* there was no memory for `unusual` */
};

static inline int64_t part_ns(const struct time_account *account, enum time_part part) {
    unsigned place = part_place(part);
    if (place < USUAL_PARTS)
        return account->usual[place];
    return account->unusual ? account->unusual->parts[place - USUAL_PARTS] : 0;
}

/* Returns the unusual state of a direction for reading; never NULL. */
static inline const struct sending_unusual *unusual_of(const struct time_account *account,
                                                       unsigned direction) {
    static const struct sending_unusual none;
    return account->unusual ? &account->unusual->sending[direction] : &none;
}

#endif
