/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP segment taken into its conversation's state. */
#ifndef WIRETALE_TCP_TRACK_H
#define WIRETALE_TCP_TRACK_H

#include "flow.h"
#include "headers.h"

/* What a segment did, for the series and the packets table. */
struct tcp_effect {
    bool positions_known;
    bool acknowledges; /* `acknowledged` is known */
    bool window_known;
    int64_t sequence;     /* stream position of its first byte */
    int64_t acknowledged; /* position in the other direction's stream */
    int64_t window;       /* bytes, scaled */
    int64_t unique_bytes, retransmitted_bytes;
    int64_t rtt_ns; /* of the other direction's data, -1 without a sample */
};

/* Whoever wants to know what happened as it happens: kind is an enum word. */
struct tcp_listener {
    void (*event)(void *context, int kind, int64_t bytes, uint32_t related_frame,
                  const char *detail);
    void *context;
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

void tcp_stream_free(struct tcp_stream *stream, struct allowance *allowance);

#endif
