/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP segment taken into its conversation's state. */
#ifndef WIRETALE_TCP_TRACK_H
#define WIRETALE_TCP_TRACK_H

#include "flow.h"
#include "headers.h"
#include "vocabulary.h"

/* What a segment did, for the series and the packets table. */
struct tcp_effect {
    bool positions_known;
    bool acknowledges; /* `acknowledged` is known */
    bool window_known;
    bool copy;                    /* of a packet that was taken already */
    bool probe;                   /* a keep-alive or a window probe: no data */
    int64_t sack_start, sack_end; /* its first SACK block, equal without one */
    bool stale;                   /* its acknowledgment was overtaken by a later one */
    int64_t sequence;             /* stream position of its first byte */
    int64_t acknowledged;         /* position in the other direction's stream */
    int64_t window;               /* bytes, scaled */
    int64_t unique_bytes, retransmitted_bytes;
    bool mirrored;  /* a copy that a mirror port made, as far as is known */
    uint32_t lost;  /* segments lost, as what was sent in their place tells */
    int64_t rtt_ns; /* of the other direction's data, -1 without a sample */
};

/* One thing that happened to a segment. Words that are WORD_NONE are not known. */
struct tcp_event {
    enum word kind, place, evidence;
    int8_t spurious; /* enum tcp_spurious */
    int64_t bytes;
    uint64_t related_frame;
    const char *detail;
};
enum tcp_spurious { SPURIOUS_NOT_ASKED, SPURIOUS_NO, SPURIOUS_YES };

/* Whoever wants to know what happened as it happens. */
struct tcp_listener {
    /* Returns the row of the event for amend(), EVENT_NONE when it was not kept. */
    uint64_t (*event)(void *context, const struct tcp_event *event);
    /* The event at a row was of another kind, place or evidence, or spurious; WORD_NONE in a place
     * takes it back. */
    void (*amend)(void *context, uint64_t row, const struct tcp_event *event);
    /* A copy that this interface stored was not the mirror's, or is not known to be. */
    void (*unmirror)(void *context, uint32_t capture);
    void *context;
    struct tcp_trouble *spare; /* takes what is counted when there is no memory */
};

/* Whether the segment begins a new conversation on the same addresses and ports. */
bool tcp_begins_anew(const struct flow *flow, unsigned direction, const struct tcp_header *tcp);

/* The header's part: options, handshake and close, acknowledgment, window; then its data. */
void tcp_track(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
               const struct sighting *seen, struct allowance *allowance,
               const struct tcp_listener *listener, struct tcp_effect *effect);

/* A later fragment of a segment's datagram: `sequence` is of its first byte. */
void tcp_track_data(struct flow *flow, unsigned direction, uint32_t sequence,
                    const struct sighting *seen, struct allowance *allowance,
                    const struct tcp_listener *listener, struct tcp_effect *effect);

/* How far the conversation came (enum word). */
int tcp_state(const struct flow *flow);

/* Bytes of this direction in flight after the segment, -1 when not known. */
int64_t tcp_flight(const struct flow *flow, unsigned direction);
/* The window that the direction announces, -1 when the scale is not known. */
int64_t tcp_window(const struct flow *flow, unsigned direction);

#endif
