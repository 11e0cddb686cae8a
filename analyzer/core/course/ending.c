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

/* Nothing is left to be told of a FIN of this direction, unless data come that nothing announced.
 */
static bool is_usual(const struct flow *flow, unsigned direction) {
    const struct ending *fin = flow->endings->fins[direction];
    const struct tcp_stream *peer = &flow->tcp.streams[1 - direction];
    return fin && fin->unacked <= 0 && fin->late_ns < 0 && peer->unique_bytes == fin->peer_unique &&
           !peer->gaps.count;
}

/* Most connections end by two FINs that have no row, so that flows that wait for their end need no
 * memory for them. Data that the latter overtook may still come. */
static void drop_usual(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
                       struct pool *pool) {
    const struct endings *endings = flow->endings;
    const struct tcp_stream *stream = &flow->tcp.streams[direction];
    if (endings->resets[0] || endings->resets[1] || !is_usual(flow, 0) || !is_usual(flow, 1) ||
        stream_position(stream, tcp->sequence) > stream->snd_nxt)
        return;
    endings_free(flow, pool);
    flow->closed = true;
}

void endings_free(struct flow *flow, struct pool *pool) {
    struct endings *endings = flow->endings;
    for (unsigned i = 0; endings && i < 2; i++) {
        pool_release(pool, endings->fins[i], 1, sizeof *endings->fins[i]);
        pool_release(pool, endings->resets[i], 1, sizeof *endings->resets[i]);
    }
    pool_release(pool, endings, 1, sizeof *endings);
    flow->endings = NULL;
}

/* Returns where the packet's ending belongs; NULL if there is one already, or without memory. */
static struct ending **place_of(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
                                struct pool *pool) {
    bool reset = tcp->flags & TCP_RST;
    if (flow->closed && !reset)
        return NULL;
    if (!flow->endings)
        flow->endings = pool_zeroed(pool, sizeof *flow->endings);
    if (!flow->endings)
        return NULL;
    struct ending **place =
        reset ? &flow->endings->resets[direction] : &flow->endings->fins[direction];
    return *place ? NULL : place;
}

NOINLINE void note_ending(struct flow *flow, unsigned direction, const struct tcp_header *tcp,
                          const struct packet_info *packet, struct pool *pool) {
    const struct direction *own = &flow->directions[direction],
                           *across = &flow->directions[1 - direction];
    const struct tcp_stream *stream = &flow->tcp.streams[direction],
                            *peer = &flow->tcp.streams[1 - direction];
    struct ending **place =
        packet->checksum == CHECKSUM_WRONG ? NULL : place_of(flow, direction, tcp, pool);
    struct ending *ending = place ? pool_alloc(pool, sizeof *ending) : NULL;
    if (!ending)
        return;
    bool ordered = ip_ids_ordered(stream) && packet->ip_id && stream->last_ip_id;
    *ending = (struct ending){
        .time_ns = packet->time_known ? packet->time_ns : TIME_UNKNOWN,
        .idle_ns = since(flow->timed, flow->last_ns, packet),
        .reply_ns = since(across->timed, across->last_ns, packet),
        .unacked = (int32_t)min64(unacked_payload(peer, tcp), INT32_MAX),
        .peer_unique = peer->unique_bytes,
        .packets = (uint32_t)own->packets + 1,
        .late_ns = -1,
        .frame = (uint32_t)min64((int64_t)packet->frame, UINT32_MAX),
        .capture = packet->capture,
        .ip_id_step = (int16_t)(packet->ip_id - stream->last_ip_id),
        .stepped = ordered,
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
    if (!packet->payload_bytes)
        drop_usual(flow, direction, tcp, pool);
}

NOINLINE void note_late_data(struct flow *flow, unsigned direction,
                             const struct packet_info *packet) {
    if (!flow->endings)
        return;
    struct ending *endings[] = {flow->endings->fins[1 - direction],
                                flow->endings->resets[1 - direction]};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (endings[i] && endings[i]->late_ns < 0 && endings[i]->time_ns != TIME_UNKNOWN)
            endings[i]->late_ns = max64(since(true, endings[i]->time_ns, packet), -1);
}
