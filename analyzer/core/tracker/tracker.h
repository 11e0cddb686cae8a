/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP segment taken into its conversation's state. */
#ifndef WIRETALE_TCP_TRACK_H
#define WIRETALE_TCP_TRACK_H

#include "base/vocabulary.h"
#include "decode/headers.h"
#include "flow/flow.h"

/* What a segment did, for the series and the packets table. */
struct tcp_effect {
    bool positions_known; /* `sequence` is */
    bool acknowledges;    /* `acknowledged` is known */
    bool reports;         /* `sack_start` and `sack_end` are known */
    bool copy;            /* of a packet that was taken already */
    bool probe;           /* a keep-alive or a window probe: no data */
    bool mirrored;        /* a copy that a mirror port made, as far as is known */
    uint32_t lost;        /* segments lost, as what was sent in their place tells */
    int64_t unique_bytes, retransmitted_bytes;
    int32_t window; /* bytes, scaled; -1 when not known */
    int64_t rtt_ns; /* of the other direction's data, -1 without a sample */
    /* Not set unless they are known. */
    int64_t sack_start, sack_end; /* its first SACK block */
    int64_t sequence;             /* stream position of its first byte */
    int64_t acknowledged;         /* position in the other direction's stream */
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

struct step;

/* Whoever wants to know what happened as it happens; step->context is theirs. */
struct tcp_listener {
    /* Returns the row of the event for amend(), EVENT_NONE when it was not kept. */
    uint64_t (*event)(const struct step *step, const struct tcp_event *event);
    /* The event at a row was of another kind, place or evidence, or spurious; WORD_NONE in a place
     * takes it back. */
    void (*amend)(const struct step *step, uint64_t row, const struct tcp_event *event);
    /* A copy that this interface stored was not the mirror's, or is not known to be. */
    void (*unmirror)(const struct step *step, uint32_t capture);
    /* What takes the counts when there is no memory. */
    struct tcp_trouble *(*spare)(const struct step *step);
};

/* Whether the segment begins a new conversation on the same addresses and ports. */
bool tcp_begins_anew(const struct flow *flow, unsigned direction, const struct tcp_header *tcp);

/* The header's part: options, handshake and close, acknowledgment, window; and its data. Returns
 * the bytes of its direction in flight then, -1 when not known. */
int64_t tcp_track(struct step *step);

/* A later fragment of a segment's datagram: `sequence` is of its first byte. */
int64_t tcp_track_data(struct step *step, uint32_t sequence);

/* How far the conversation came (enum word). */
int tcp_state(const struct flow *flow);

/* The window that the direction announces, -1 when the scale is not known. */
int64_t tcp_window(const struct flow *flow, unsigned direction);

#endif
