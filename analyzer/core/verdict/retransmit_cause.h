/* SPDX-License-Identifier: Apache-2.0 */
/* The cause of a retransmission: rules V5 of docs/verdicts.md. */
#ifndef WIRETALE_RETRANSMIT_CAUSE_H
#define WIRETALE_RETRANSMIT_CAUSE_H

#include "verdict/recent_verdicts.h"

/* A range of bytes that the current segment retransmits. */
struct retransmission {
    int64_t start, end;   /* stream positions; start is -1 for a SYN */
    int64_t sent_ns;      /* last transmission, or the opening of its gap */
    int64_t seen_bytes;   /* of the stream before sent_ns, -1 if unknown */
    bool repeated;        /* that was a retransmission already */
    bool forgotten;       /* its bytes may not have been seen before */
    uint32_t sent_frame;  /* of the transmission, 0 if unknown */
    uint32_t since_frame; /* at sent_ns, 0 if unknown */
};

struct retransmit_cause {
    enum word kind, evidence; /* kind: WORD_NONE if there is no cause */
    uint32_t frame;           /* the event's related frame */
    int64_t frame_ns;         /* its time, of a fast retransmission */
    enum word name;           /* events.cause, WORD_NONE if the kind is sufficient */
    int64_t idle_ns;          /* of an RTO: since its timer was last restarted */
    uint32_t idle_frame;      /* that restarted it, 0 if unknown */
};

/* Returns the cause in ACKs, of kind WORD_NONE if there is none: rules V5.2 to V5.8. */
struct retransmit_cause find_ack_cause(const struct segment_context *seg,
                                       const struct retransmission *rtx);

/* Returns the cause in ACKs or timers: rules V5.1 to V5.11. */
struct retransmit_cause find_cause(const struct segment_context *seg,
                                   const struct retransmission *rtx);

/* count_retransmission.c: counts the retransmission; the caller must do so once for each. Begins
 * the sender's RTO or fast recovery if it is the first. Returns its long_bytes(). */
uint64_t count_retransmission(const struct segment_context *seg,
                              const struct retransmit_cause *cause, int64_t start, int64_t end);

#endif
