/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by the bits Q and L of short headers. */
#ifndef WIRETALE_QUIC_LOSS_H
#define WIRETALE_QUIC_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct quic_marks {
    uint64_t packets, reports; /* with L */
};

/* A packet that was captured. */
struct quic_moment {
    uint64_t frame;  /* 0 if there is none */
    int64_t time_ns; /* -1 if it is not known */
};

/* The Q bit of one direction. */
struct quic_square {
    struct quic_marks current, next; /* blocks; `next` may be reordering */
    struct quic_marks sum;           /* of the blocks that are over, without the first */
    uint64_t blocks;                 /* that were sent, those included that were lost wholly */
    uint64_t runs, whole_runs;       /* blocks as captured; those of about 64 packets */
    uint64_t edges;                  /* changes of the bit */
    bool value;                      /* of `current` */
    bool latest;                     /* of the latest packet */
    bool seen, begun;                /* a packet was seen; the first block is over */
    int64_t lacking;                 /* packets of the blocks that are over, in sum */
    /* The first packet of `next`; the one behind the block since which packets are lacking; the
     * first with L that counts. */
    struct quic_moment edge, after_loss, report;
};

/* Packets; -1 if they are not known. */
struct quic_loss {
    int64_t sent;       /* in the blocks that count */
    int64_t missing;    /* of them, those that the capture lacks */
    int64_t whole;      /* that the sender declared lost, up- and downstream */
    int64_t upstream;   /* those missing, unless far fewer were declared lost: then the capture may
                           have dropped them */
    int64_t downstream; /* the difference; not known if `upstream` is not */
    struct quic_moment first; /* packet that showed the first loss */
};

/* Takes the first byte of a short header. */
void quic_square_take(struct quic_square *square, uint8_t first, struct quic_moment seen);
/* Returns false if Q is no square wave; then nothing of `loss` is known. */
bool quic_square_loss(const struct quic_square *square, struct quic_loss *loss);

#endif
