/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered packets in one direction of a UDP flow: wiretale's blocks, iperf2, iperf3 and RTP,
 * detected by content, never by port.
 *
 * The format is accepted once several packets agree (detect.h); earlier packets are then counted
 * too. Formats without a magic number must go on to prove themselves (proof.h): otherwise the flow
 * is given up and its counts are discarded.
 *
 * A track of zeros is new. Memory is allocated only if two packets look alike; an accepted format
 * takes 1 kB and 3 kB per source, at most 16 sources. One without a magic number takes 4 kB more
 * for the events that wait until its numbers are proven or withdrawn; the list stays until the
 * track is freed or given up. If memory is exhausted, the flow is given up. */
#ifndef WIRETALE_SEQUENCE_TRACK_H
#define WIRETALE_SEQUENCE_TRACK_H

#include "sequence/detect.h"
#include "sequence/sender_state.h"

struct sequence_track {
    void *more; /* struct sequence_trial; once a format is accepted, struct sequence_belief */
    const struct sequence_layout *layout; /* NULL until a format is accepted */
    struct sequence_packet first;         /* frame 0 if there is none */
    bool given_up;
    bool withdrawn; /* by sequence_summary(): the format is none */
    uint8_t tried;  /* packets before acceptance */
    uint8_t beside; /* and those of protocols that share a flow with RTP */
};

/* Processes the next packet, unless the track was given up. `listener` may be NULL. */
void sequence_take(struct sequence_track *track, const struct sequence_packet *packet,
                   struct pool *pool, const struct sequence_listener *listener);

/* Fills `summary`; a packet that waits for confirmation is judged as if none followed. If no format
 * was accepted, or the flow ends before it is proven and looks like none, all fields are 0. */
void sequence_summary(struct sequence_track *track, const struct sequence_listener *listener,
                      struct sequence_summary *summary);

/* Frees the track, which is new afterwards. */
void sequence_free(struct sequence_track *track, struct pool *pool);

#endif
