/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered packets in one direction of a UDP flow: wiretale's blocks, iperf2, iperf3 and RTP, known
 * by what they say, never by their port.
 *
 * A format is believed when several packets agree on it; those before are kept until then and
 * judged with the others. iperf has only its times to be known by: a flow believed to be iperf is
 * given up after 10 s if they did not go with the capture's: what was told of it until then is
 * void.
 *
 * A track that is all zeros is new. Nothing is allocated before two packets look alike; a format
 * that is believed costs 1 kB and 2.4 kB a source, 16 sources at most.
 */
#ifndef WIRETALE_SEQUENCE_TRACK_H
#define WIRETALE_SEQUENCE_TRACK_H

#include "base/pool.h"
#include "sequence/detect.h"
#include "sequence/sender_state.h"

struct sequence_track {
    void *more; /* struct sequence_trial; once a format is believed, struct sequence_belief */
    struct sequence_kept first;
    uint8_t format; /* enum sequence_format */
    uint8_t layout; /* of sequence_layouts, once believed */
    uint8_t tried;  /* packets before belief */
    uint8_t beside; /* and those that would stand beside RTP */
};

void sequence_take_more(struct sequence_track *track, const struct sequence_packet *packet,
                        struct pool *pool, const struct sequence_listener *listener);

/* Takes the next packet. `listener` may be NULL. */
static inline void sequence_take(struct sequence_track *track, const struct sequence_packet *packet,
                                 struct pool *pool, const struct sequence_listener *listener) {
    if (track->format != SEQUENCE_NONE)
        sequence_take_more(track, packet, pool, listener);
}

/* What there is to say; a packet that still waits for its judgement gets it as if nothing followed.
 * All zeros but for the format when none is believed. */
void sequence_summary(struct sequence_track *track, const struct sequence_listener *listener,
                      struct sequence_summary *summary);

/* After this the track is new. */
void sequence_free(struct sequence_track *track, struct pool *pool);

#endif
