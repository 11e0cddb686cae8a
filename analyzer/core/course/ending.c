/* SPDX-License-Identifier: Apache-2.0 */
/* Which end closed or reset a connection, and what its packet shows: a host that lost the socket, a
 * socket that was aborted, or a device in between that forged it (docs/causes.md). */
#include "course/ending.h"

/* Returns the payload of a stream above an acknowledgment, which `tcp` may advance; -1 if it is
 * unknown. */
static int64_t unacked_payload(const struct tcp_stream *data, const struct tcp_header *tcp) {
    if (!data->flight_known)
        return -1;
    int64_t acked = data->snd_una, end = data->snd_nxt;
    if (tcp->flags & TCP_ACK)
        acked = max64(acked, stream_position(data, tcp->acknowledgment));
    if (data->fin_seen && end == data->fin_end)
        end--;
    return end > acked ? end - acked : 0;
}

static int64_t since(bool timed, int64_t then_ns, const struct packet_info *packet) {
    return timed && packet->time_known ? packet->time_ns - then_ns : -1;
}

NOINLINE void note_ending(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
                          const struct packet_info *packet, struct pool *pool) {
    const struct direction *own = &flow->directions[direction],
                           *across = &flow->directions[1 - direction];
    const struct tcp_stream *stream = &flow->tcp.streams[direction],
                            *peer = &flow->tcp.streams[1 - direction];
    struct ending **place =
        tcp->flags & TCP_RST ? &flow->resets[direction] : &flow->fins[direction];
    struct ending *ending =
        *place || packet->checksum == CHECKSUM_WRONG ? NULL : pool_alloc(pool, sizeof *ending);
    if (!ending)
        return;
    bool ordered = ip_ids_ordered(stream) && packet->ip_id && stream->last_ip_id;
    *ending = (struct ending){
        .time_ns = packet->time_known ? packet->time_ns : TIME_UNKNOWN,
        .idle_ns = since(flow->timed, flow->last_ns, packet),
        .reply_ns = since(across->timed, across->last_ns, packet),
        .unacked = unacked_payload(peer, tcp),
        .peer_unique = peer->unique_bytes,
        .packets = own->packets + 1,
        .late_ns = -1,
        .frame = (uint32_t)min64((int64_t)packet->frame, UINT32_MAX),
        .capture = packet->capture,
        .ip_id_step = ordered ? (int16_t)(packet->ip_id - stream->last_ip_id) : IP_ID_STEP_UNKNOWN,
        .ip_id = packet->ip_id,
        .window = tcp->window,
        .ttl = packet->ttl,
        .ttl_min = own->ttl_min,
        .ttl_max = own->ttl_max,
        .first = !own->packets,
        .with_ack = tcp->flags & TCP_ACK,
        .timestamps = tcp->options & TCP_OPTION_TIMESTAMPS,
    };
    *place = ending;
    flow->ended = true;
}

NOINLINE void note_late_data(struct flow *flow, unsigned direction,
                             const struct packet_info *packet) {
    struct ending *endings[] = {flow->fins[1 - direction], flow->resets[1 - direction]};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (endings[i] && endings[i]->late_ns < 0 && endings[i]->time_ns != TIME_UNKNOWN)
            endings[i]->late_ns = max64(since(true, endings[i]->time_ns, packet), -1);
}
