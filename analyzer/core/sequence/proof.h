/* SPDX-License-Identifier: Apache-2.0 */
/* Rule V12.7: what a format without a magic number (iperf, RTP) must still show once it is
 * believed.
 *
 * Events wait until TRIAL_PACKETS packets were received. Then, or at the end of a shorter flow,
 * belief is withdrawn if the clock of RTP never moved, or if the shares of packets that came again
 * with other payload, came late, restarted or were lost are those of no network. No event was
 * written then. The clock of iperf must also keep pace with the capture's after 10 s. */
#ifndef WIRETALE_SEQUENCE_PROOF_H
#define WIRETALE_SEQUENCE_PROOF_H

#include "sequence/sender_state.h"

#define PROOF_EVENTS_MOST 64u

/* Zeros are a belief without evidence. */
struct sequence_proof {
    struct sequence_event *waiting; /* PROOF_EVENTS_MOST of them; NULL if it began settled */
    uint32_t waiting_count;
    bool is_settled;  /* events are written at once */
    bool is_overfull; /* so many events that they cannot wait */
    bool has_clock;   /* iperf: its clock advanced for 10 s; it need not */
    bool has_moved;   /* two packets have different times */
    bool begun; /* the next three are those of the first packet, if possible one with a time */
    bool is_timed;
    int64_t first_ns;   /* of the capture */
    int64_t first_sent; /* of the sender, as in struct sequence_item */
    struct sequence_listener collector;
};

/* Allocates the list, so that the end of a flow needs no memory. Returns false without memory. */
bool sequence_proof_begin(struct sequence_proof *proof, struct pool *pool);

/* Returns where events of `proof` go: `listener` once it is settled, else its own list. */
const struct sequence_listener *sequence_proof_listener(struct sequence_proof *proof,
                                                        const struct sequence_listener *listener);

/* Compares the times of the next packet. Returns false if the sender's clock is none. */
bool sequence_proof_take(struct sequence_proof *proof, const struct sequence_layout *layout,
                         const struct sequence_item *item);

/* Returns whether enough was received to decide. */
bool sequence_proof_is_due(const struct sequence_proof *proof,
                           const struct sequence_summary *counts);

/* Decides by the sums so far. Returns false if belief must be withdrawn; else reports what waited.
 */
bool sequence_proof_settle(struct sequence_proof *proof, const struct sequence_layout *layout,
                           const struct sequence_summary *sums,
                           const struct sequence_listener *listener);

void sequence_proof_free(struct sequence_proof *proof, struct pool *pool);

#endif
