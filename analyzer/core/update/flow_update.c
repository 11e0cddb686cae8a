/* SPDX-License-Identifier: Apache-2.0 */
/* Adds one packet to its flow: the counters of its direction, the TCP state, the series, and a
 * row of packets if it is wanted. Adds the rows of a flow when it ends.
 *
 * The steps have this order because each needs the result of those before: TCP needs the counts
 * of the direction, the series and blocks need the effect of the segment. If a list cannot grow,
 * the packet is still counted. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "course/course.h"
#include "course/ending.h"
#include "course/pass.h"
#include "decode/step.h"
#include "flow/checksum.h"
#include "tracker/time_account.h"
#include "tracker/tracker.h"
#include "tracker/turns.h"
#include "update/update.h"
#include "verdict/recent_verdicts.h"

#define ECN_CE 3 /* RFC 3168 section 5 */

/* Adds `copies` mirror duplicates to an interface's count; -1 takes one back. Interfaces of pcapng
 * files may appear at any time, so the list grows; counts of workers are added modulo their range.
 */
void count_mirrored(struct worker *worker, uint32_t interface, uint64_t copies) {
    size_t before = worker->mirrored_room;
    if (!list_grow(&worker->mirrored, &worker->mirrored_room, (size_t)interface + 1,
                   sizeof *worker->mirrored)) {
        worker->sink.out_of_memory = true;
        return;
    }
    if (worker->mirrored_room > before)
        memset(worker->mirrored + before, 0,
               (worker->mirrored_room - before) * sizeof *worker->mirrored);
    worker->mirrored[interface] += copies;
}

static NOINLINE void take_mirrored(struct worker *worker, const struct packet_info *packet,
                                   const struct segment_effect *effect) {
    count_mirrored(worker, packet->capture, 1);
    if (effect->second_port && !port_pairs_add(&worker->pairs, packet, effect))
        worker->sink.out_of_memory = true;
}

static struct flow_event *log_event(const struct segment_context *seg, const struct event *event) {
    return event_write(&((struct worker *)seg->sink->context)->rows, seg->flow,
                       segment_direction(seg), seg->packet, event);
}

static void amend_mirrored(const struct event_sink *sink, uint32_t interface, int copies) {
    count_mirrored(sink->context, interface, (uint64_t)copies);
}

/* The TCP trackers have no access to rows or workers: they report through these. */
struct event_sink worker_events(struct worker *worker) {
    return (struct event_sink){log_event, amend_mirrored, worker};
}

/* A flow that gets no rows has the empty pool: its lists stay empty and cost no memory. */
static inline struct pool *pool_of(struct worker *worker, const struct flow *flow) {
    return LIKELY(flow->drawn || flow->listed_packets) ? worker->rows.pool : &worker->nothing;
}

/* Takes the first packet of a direction, and one that has no time or an earlier one. */
static NOINLINE void note_other(struct flow *flow, struct direction *direction,
                                const struct packet_info *packet) {
    int64_t now = packet->time_ns;
    if (!direction->packets) {
        direction->ttl_min = direction->ttl_max = packet->ttl;
        direction->dscp = packet->traffic_class >> 2 & 63;
    }
    if (!packet->time_known)
        return;
    if (!direction->timed)
        direction->first_ns = direction->last_ns = now;
    if (now < direction->first_ns)
        direction->first_ns = now;
    if (now > direction->last_ns)
        direction->last_ns = now;
    if (!flow->timed || now < flow->first_ns)
        flow->first_ns = now;
    if (!flow->timed || now > flow->last_ns)
        flow->last_ns = now;
    flow->timed = direction->timed = true;
}

static inline void note_time(struct flow *flow, struct direction *direction,
                             const struct packet_info *packet) {
    int64_t idle_ns = packet->time_ns - direction->last_ns;
    if (!LIKELY(packet->time_known) || !LIKELY(direction->timed) || idle_ns < 0) {
        note_other(flow, direction, packet);
        return;
    }
    if (idle_ns > direction->idle_ns_max)
        direction->idle_ns_max = idle_ns;
    direction->last_ns = packet->time_ns;
    if (packet->time_ns > flow->last_ns)
        flow->last_ns = packet->time_ns;
}

static void note_hops(struct direction *direction, const struct packet_info *packet) {
    if (packet->ttl < direction->ttl_min)
        direction->ttl_min = packet->ttl;
    if (packet->ttl > direction->ttl_max)
        direction->ttl_max = packet->ttl;
    direction->last_dscp = packet->traffic_class >> 2 & 63;
}

/* Counts a packet marked Congestion Experienced; the first of a direction is an event, too. All of
 * them could fill the table of events in a network that marks often (L4S, RFC 9330). */
static NOINLINE void count_mark(struct worker *worker, struct flow *flow, unsigned number,
                                const struct packet_info *packet) {
    if (!flow->directions[number].ecn_ce++)
        event_write(&worker->rows, flow, number, packet,
                    &(struct event){.kind = WORD_CONGESTION_MARK});
}

/* Additions alternate with conditions, because the compiler would vectorize adjacent ones, which
 * is slower here. */
static ALWAYS_INLINE void count_packet(struct worker *worker, struct flow *flow, unsigned number,
                                       const struct packet_info *packet) {
    struct direction *direction = &flow->directions[number];
    note_time(flow, direction, packet);
    note_hops(direction, packet);
    if (!LIKELY(packet->ttl == direction->ttl_max))
        note_pass(flow, number, packet, pool_of(worker, flow));
    direction->packets++;
    direction->wire_bytes += packet->wire_bytes;
    if (!packet->payload_known)
        direction->payload_unknown = true;
    direction->ip_bytes += packet->ip_bytes;
    if ((packet->traffic_class & ECN_CE) == ECN_CE)
        count_mark(worker, flow, number, packet);
    direction->payload_bytes += packet->payload_bytes;
    flow->last_frame = packet->frame;
}

_Static_assert(BIN_BYTES_NONE == UINT32_MAX, "none is the greatest number, and -1");

/* An unknown window (-1) is the greatest unsigned number, so that it is never the least. */
static void note_window(struct time_bin *bin, int32_t window) {
    if ((uint32_t)window < bin->window)
        bin->window = (uint32_t)window;
}

/* BIN_BYTES_NONE + 1 is 0, so that any flight exceeds an unset one; an unknown flight (-1) never
 * does. */
static void note_flight(struct time_bin *bin, int64_t flight) {
    if (flight >= (uint32_t)(bin->flight + 1))
        bin->flight = flight < BIN_BYTES_NONE ? (uint32_t)flight : BIN_BYTES_NONE - 1;
}

static inline struct time_bin *bin_of(struct worker *worker, struct direction *direction,
                                      const struct packet_info *packet) {
    return time_bins_at(&direction->series, packet->time_ns, direction->packets, worker->rows.pool);
}

static inline void draw_packet(struct time_bin *bin, const struct packet_info *packet,
                               const struct segment_effect *effect) {
    bin->packets++;
    bin->wire_bytes += packet->wire_bytes;
    if (effect->lost)
        bin->lost += effect->lost;
    bin->ip_bytes += packet->ip_bytes;
    if (effect->retransmitted_bytes)
        bin->retransmitted_bytes += (uint64_t)effect->retransmitted_bytes;
    bin->payload_bytes += packet->payload_bytes;
    bin->unique_bytes += (uint64_t)effect->unique_bytes;
}

/* An RTT sample and a closed window belong to the direction of the data, at the time of the ACK. */
static ALWAYS_INLINE void draw_acknowledgment(struct worker *worker, struct direction *acknowledged,
                                              const struct packet_info *packet,
                                              const struct segment_effect *effect) {
    if (effect->rtt_ns < 0 && effect->window)
        return;
    struct time_bin *bin = bin_of(worker, acknowledged, packet);
    if (!bin)
        return;
    if (effect->rtt_ns >= 0 && effect->rtt_ns < 1000 * (int64_t)bin->rtt_us)
        bin->rtt_us = (uint32_t)(effect->rtt_ns / 1000);
    note_window(bin, effect->window);
}

/* Sets what identifies the packet at hand. */
static void put_identity(const struct worker *worker, struct row *row, const struct flow *flow,
                         const struct packet_info *packet) {
    uint64_t at = (worker->sink.at >> ORDER_BITS) - worker->batch_at;
    row_set(row, packets_packet, (int64_t)(worker->batch_packets + at));
    identity_put(row, &worker->identities[at], packet, flow->key.ip_version);
}

/* Names the datagram of a fragment. Returns whether it is the first one that begins it. */
static bool put_datagram(const struct worker *worker, struct row *row,
                         const struct packet_info *packet, const struct datagram *datagram) {
    row_set(row, packets_fragment_offset, packet->fragment_offset);
    row_set(row, packets_datagram_capture, datagram->capture);
    row_set(row, packets_datagram_frame, (int64_t)datagram->first_frame);
    return !packet->fragment_offset && datagram->head_at == worker->sink.at;
}

static void put_flights(struct row *row, const struct tcp_stream *streams, unsigned direction) {
    int64_t own = stream_flight(&streams[direction]),
            across = stream_flight(&streams[1 - direction]);
    row_set_if(row, packets_flight_bytes, own >= 0, own);
    row_set_if(row, packets_opposite_flight_bytes, across >= 0, across);
}

/* Adds the row of a packet: analyses with such rows have one shard (analysis.c). Data
 * of an RST are payload here, though they are no part of the stream. `tcp` is NULL if the packet
 * neither is a segment nor completes one, `datagram` if it is no fragment. */
static NOINLINE void list_packet(struct worker *worker, const struct flow *flow, unsigned direction,
                                 const struct tcp_header *tcp, const struct packet_info *packet,
                                 const struct datagram *datagram,
                                 const struct segment_effect *effect) {
    struct updater *updater = worker->updater;
    struct row row;
    if (worker->sink.tables[TABLE_packets].row_count >= updater->packet_rows_most) {
        updater->packet_rows_dropped++;
        return;
    }
    row_clear(&row);
    row_set(&row, packets_flow, flow->number);
    row_set(&row, packets_direction, direction);
    row_set(&row, packets_capture, packet->capture);
    row_set(&row, packets_frame, (int64_t)packet->frame);
    row_set_if(&row, packets_time_ns, packet->time_known, packet->time_ns);
    row_set(&row, packets_ip_bytes, packet->ip_bytes);
    row_set_if(&row, packets_payload_bytes, packet->payload_known,
               packet->payload_bytes ? packet->payload_bytes : packet->reset_bytes);
    bool begins = !datagram || put_datagram(worker, &row, packet, datagram);
    if (effect->positions_known)
        row_set(&row, packets_sequence, effect->sequence);
    row_set_if(&row, packets_unique_bytes, tcp && effect->positions_known, effect->unique_bytes);
    if (effect->acknowledges)
        row_set(&row, packets_acknowledged, effect->acknowledged);
    row_set_if(&row, packets_window, effect->window >= 0, effect->window);
    for (unsigned i = 0; i < effect->sack_count; i++) {
        row_set(&row, packets_sack_start + 2 * i, effect->sack[i][0]);
        row_set(&row, packets_sack_end + 2 * i, effect->sack[i][1]);
    }
    row_set_if(&row, packets_rtt_ns, effect->rtt_ns >= 0, effect->rtt_ns);
    if (flow->key.protocol == IP_TCP)
        put_flights(&row, flow->tcp.streams, direction);
    if (tcp)
        row_set(&row, packets_flags, tcp->flags);
    if (updater->identified && begins)
        put_identity(worker, &row, flow, packet);
    add_row(&worker->sink, TABLE_packets, &row);
}

/* Without --block-size a stream of blocks is recognized by the header at its beginning. From then
 * on segments without a header count too, as they hold the rest of a block. `segment` is NULL if
 * the packet is or completes none. */
static ALWAYS_INLINE void
account_blocks(struct worker *worker, const struct segment_effect *effect, struct flow *flow,
               unsigned number, const struct packet_info *segment, const struct packet_info *packet,
               const struct sequence_payload *payload, const struct datagram *datagram) {
    if (segment && (payload || flow->with_blocks))
        sequence_update_segment(worker, flow, number, segment, payload, effect);
    if (payload && flow->key.protocol == IP_UDP)
        sequence_update_datagram(worker, flow, number, packet, payload, datagram);
}

/* Clears the first members; the others are valid only if their flags are set. */
static inline void begin_effect(struct segment_effect *effect) {
    memset(effect, 0, offsetof(struct segment_effect, window));
    effect->window = -1;
    effect->rtt_ns = -1;
}

/* Takes the capture of a packet of a TCP connection, before count_packet(). */
static inline void note_file(struct worker *worker, struct flow *flow, unsigned number,
                             const struct packet_info *packet) {
    if (!LIKELY(packet->capture == flow->first_capture) || flow->tcp.captures_vary)
        note_capture(&flow->tcp, number, packet, flow->first_capture, flow->last_ns,
                     pool_of(worker, flow));
}

/* The streams share memory with the state of UDP, so they may be used only for TCP. */
static inline void begin_segment(struct segment_context *seg, struct worker *worker,
                                 struct flow *flow, unsigned number,
                                 const struct tcp_header tcp[static 1],
                                 const struct packet_info *segment) {
    seg->connection = &flow->tcp;
    seg->sender = &flow->tcp.streams[number];
    seg->receiver = &flow->tcp.streams[1 - number];
    seg->tcp = tcp;
    seg->packet = segment;
    seg->sink = &worker->events;
    seg->flow = flow;
    seg->damage = DAMAGE_NONE;
    seg->spare = &worker->spare;
    seg->pool = pool_of(worker, flow);
    seg->frame = (uint32_t)segment->frame;
    if (!LIKELY(segment->frame <= UINT32_MAX))
        seg->frame = 0;
}

static inline void note_reply(struct flow *flow, unsigned number,
                              const struct packet_info *packet) {
    if (!packet->payload_bytes || packet->payload_bytes > UINT16_MAX || !packet->time_known)
        return;
    reply_sizes_answer(&flow->udp[1 - number].replies, packet->time_ns);
    reply_sizes_send(&flow->udp[number].replies, (uint16_t)packet->payload_bytes, packet->time_ns);
}

/* Takes a payload that exceeds all before, or a segment on the wire. */
static NOINLINE void note_large(struct segment_context *seg, struct direction *own) {
    uint32_t payload = seg->packet->payload_bytes;
    if (payload > seg->sender->single_max)
        note_long_payload(seg);
    if (payload > own->segment_max)
        own->segment_max = payload;
    if (payload > seg->sender->segment_max)
        seg->sender->segment_max = payload;
}

/* Adds a packet to the series and the lists; `segment` is the TCP segment that it is or completes,
 * NULL without one. `datagram` is NULL unless the packet is a fragment of it. A packet's time may
 * be unknown: then it is counted but is in no bin. A direction's window is that which its receiver
 * advertises, so the bin of the data's direction holds it. */
static ALWAYS_INLINE void show_packet(struct worker *worker, struct flow *flow, unsigned number,
                                      const struct packet_info *segment, bool is_tcp,
                                      int64_t flight, const struct packet_info *packet,
                                      const struct segment_effect *effect,
                                      const struct sequence_payload *payload,
                                      const struct datagram *datagram) {
    struct direction *own = &flow->directions[number], *across = &flow->directions[1 - number];
    if (effect->mirrored)
        take_mirrored(worker, packet, effect);
    if (!flow->drawn)
        return;
    account_blocks(worker, effect, flow, number, segment, packet, payload, datagram);
    if (!packet->time_known)
        return;
    struct time_bin *bin = bin_of(worker, own, packet);
    if (bin)
        draw_packet(bin, packet, effect);
    if (bin && is_tcp) {
        note_flight(bin, flight);
        note_window(bin, flow->tcp.streams[1 - number].window);
    }
    draw_acknowledgment(worker, across, packet, effect);
}

/* Writes the event of a damaged packet that is no TCP segment: note_damage() has those. */
static NOINLINE void log_damage(struct worker *worker, struct flow *flow, unsigned number,
                                const struct packet_info *packet) {
    event_write(&worker->rows, flow, number, packet,
                &(struct event){.kind = WORD_CHECKSUM_ERROR,
                                .place = WORD_UPSTREAM,
                                .evidence = WORD_CHECKSUM,
                                .bytes = packet->payload_bytes});
}

/* Takes a packet before it is counted; `tcp` is NULL if it is no segment. Returns the time since
 * the last packet of the flow, 0 if it is unknown. */
static ALWAYS_INLINE int64_t begin_course(struct worker *worker, struct flow *flow, unsigned number,
                                          const struct tcp_header *tcp,
                                          const struct packet_info *packet) {
    if (tcp && tcp->flags & (TCP_FIN | TCP_RST))
        note_ending(flow, number, tcp, packet, pool_of(worker, flow));
    return flow->timed && packet->time_known ? packet->time_ns - flow->last_ns : 0;
}

/* The same once its effect is known. */
static ALWAYS_INLINE void end_course(struct worker *worker, struct flow *flow, unsigned number,
                                     const struct packet_info *packet, int64_t silent_ns,
                                     const struct segment_effect *effect) {
    if (!LIKELY(silent_ns < PAUSE_LEAST_NS) && !effect->retransmitted_bytes && !effect->duplicate)
        note_silence(flow, number, packet, silent_ns, pool_of(worker, flow));
    if (!LIKELY(!flow->ended) && effect->unique_bytes > 0)
        note_late_data(flow, number, packet);
}

/* Inlined into each caller. */
ALWAYS_INLINE void flow_update(struct worker *worker, struct flow *flow, unsigned number,
                               const struct tcp_header *tcp, const struct packet_info *packet,
                               const struct sequence_payload *payload) {
    struct segment_context seg;
    int64_t flight = -1;
    struct direction *own = &flow->directions[number];
    struct tcp_stream *sender = &flow->tcp.streams[number];
    bool is_tcp = tcp || flow->key.protocol == IP_TCP;
    begin_effect(&seg.effect);
    if (is_tcp)
        note_file(worker, flow, number, packet);
    int64_t silent_ns = begin_course(worker, flow, number, tcp, packet);
    count_packet(worker, flow, number, packet);
    enum packet_damage damage = take_checksum(flow, number, packet, pool_of(worker, flow));
    if (is_tcp)
        sender->packets++;
    if (tcp) {
        begin_segment(&seg, worker, flow, number, tcp, packet);
        seg.damage = (uint8_t)damage;
        if (packet->payload_bytes > own->segment_max || packet->payload_bytes > sender->single_max)
            note_large(&seg, own);
        flight = track_segment(&seg);
        if (!LIKELY(!seg.effect.damage_delivered))
            take_delivered(flow, 1 - number, seg.effect.damage_delivered);
    } else {
        if (packet->payload_bytes > own->segment_max)
            own->segment_max = packet->payload_bytes;
        if (flow->key.protocol == IP_UDP)
            note_reply(flow, number, packet);
        if (damage == DAMAGE_CERTAIN) {
            log_damage(worker, flow, number, packet);
            payload = NULL; /* its receiver discards it, and its number may be damaged */
        }
    }
    if (is_tcp && !tcp)
        flight = stream_flight(sender);
    end_course(worker, flow, number, packet, silent_ns, &seg.effect);
    show_packet(worker, flow, number, tcp ? packet : NULL, is_tcp, flight, packet, &seg.effect,
                payload, NULL);
    if (flow->listed_packets)
        list_packet(worker, flow, number, tcp, packet, NULL, &seg.effect);
}

/* Returns the segment that all fragments are together, at the time of the one that completes it:
 * its receiver has it then. */
static struct packet_info assembled_segment(const struct datagram *datagram,
                                            const struct packet_info *packet) {
    struct packet_info segment = *packet;
    uint32_t bytes = datagram->size - min64(datagram->transport_header, datagram->size);
    bool reset = datagram->tcp.flags & TCP_RST;
    segment.payload_bytes = reset ? 0 : bytes;
    segment.reset_bytes = reset ? bytes : 0;
    segment.ip_bytes = datagram->covered->ip_bytes;
    return segment;
}

/* Returns the stream position of the fragment's first byte. */
static int64_t fragment_position(const struct tcp_stream *sender, const struct datagram *datagram,
                                 const struct packet_info *packet) {
    uint32_t sequence = datagram->tcp.sequence + !!(datagram->tcp.flags & TCP_SYN);
    if (packet->fragment_offset)
        sequence += packet->fragment_offset - datagram->transport_header;
    return stream_position(sender, sequence);
}

NOINLINE void flow_update_fragment(struct worker *worker, struct flow *flow, unsigned number,
                                   const struct datagram *datagram,
                                   const struct packet_info *packet) {
    struct segment_context seg;
    struct packet_info segment;
    struct tcp_stream *sender = &flow->tcp.streams[number];
    bool is_tcp = flow->key.protocol == IP_TCP;
    bool complete = is_tcp && datagram->covered && datagram->has_tcp;
    bool readable =
        datagram->covered && datagram->has_payload; /* its receiver gets all or nothing */
    int64_t flight = is_tcp ? stream_flight(sender) : -1;
    begin_effect(&seg.effect);
    if (is_tcp)
        note_file(worker, flow, number, packet);
    count_packet(worker, flow, number, packet);
    if (complete) {
        segment = assembled_segment(datagram, packet);
        begin_segment(&seg, worker, flow, number, &datagram->tcp, &segment);
        note_fragmented_payload(&seg);
        sender->packets++;
        if (segment.payload_bytes > sender->segment_max)
            sender->segment_max = segment.payload_bytes;
        flight = track_segment(&seg);
    }
    show_packet(worker, flow, number, complete ? &segment : NULL, is_tcp, flight, packet,
                &seg.effect, readable ? &datagram->payload : NULL, datagram);
    if (is_tcp && datagram->has_tcp && sender->base_known) {
        seg.effect.positions_known = true;
        seg.effect.sequence = fragment_position(sender, datagram, packet);
    }
    if (flow->listed_packets)
        list_packet(worker, flow, number, complete ? &datagram->tcp : NULL, packet, datagram,
                    &seg.effect);
}

/* --- the end of a flow ---------------------------------------------------------------------- */

/* Lists may have been allocated from another pool; any pool may free them. */
void flow_release(struct worker *worker, struct flow *flow) {
    if (flow->key.protocol == IP_TCP) {
        turns_free(&flow->tcp, worker->rows.pool);
        time_account_free(&flow->tcp.time, worker->rows.pool);
        pool_release(worker->rows.pool, flow->tcp.captures, 1, sizeof *flow->tcp.captures);
        span_log_free(flow->tcp.spans, worker->rows.pool);
    }
    for (unsigned number = 0; number < 2; number++) {
        time_bins_free(&flow->directions[number].series, worker->rows.pool);
        if (flow->key.protocol == IP_TCP)
            stream_free(&flow->tcp.streams[number], worker->rows.pool);
        else if (flow->key.protocol == IP_UDP)
            sequence_free(&flow->udp[number].sequence, worker->rows.pool);
    }
    if (is_icmp(flow->key.protocol))
        echo_free(&flow->echo, worker->rows.pool);
    if (flow->application)
        application_release(worker, flow);
    course_free(flow, worker->rows.pool);
    events_free(&worker->rows, flow);
    pool_release(worker->rows.pool, flow->fragments, 2, sizeof *flow->fragments);
    pool_release(worker->rows.pool, flow->checksums, 2, sizeof *flow->checksums);
}

/* Must be called when the turns are complete, and before the time account is. */
static void note_server_talk(struct flow *flow) {
    const struct application *application = flow->application;
    struct turn_log *log = flow->tcp.turns;
    if (!log)
        return;
    enum word protocol = application ? application->protocol : WORD_NONE;
    bool requests = protocol == WORD_TLS || protocol == WORD_HTTP || protocol == WORD_HTTP2;
    uint16_t port = flow->key.port[flow_end(flow, !log->requester)];
    log->server_talk = (uint8_t)server_talk_of(&flow->tcp, port, requests);
}

/* Verdicts are settled before rows are written, because they change the counts: those on segments
 * first, then numbered packets that still wait for a decision. */
void flow_finish(struct worker *worker, struct flow *flow, enum word end) {
    struct row directions[2];
    struct slowest slowest[2] = {{0}};
    bool tcp = flow->key.protocol == IP_TCP, with_rows = !worker->rows.sink->packets_only;
    const struct flow_end ending = {end, worker->now_ns};
    if (tcp && (with_rows || flow->tcp.spans)) {
        for (unsigned number = 0; number < 2; number++) {
            settle_unheard_acks(&flow->tcp, &flow->tcp.streams[number]);
            settle_verdicts(&worker->events, &flow->tcp, &flow->tcp.streams[number],
                            flow->directions[number].first_ns);
        }
        finish_turns(&flow->tcp, worker->rows.pool);
        note_server_talk(flow);
        if (flow->timed)
            finish_time(&flow->tcp, worker->rows.pool, flow->first_ns, flow->last_ns);
    }
    if (with_rows) {
        for (unsigned number = 0; number < 2; number++) {
            row_clear(&directions[number]);
            sequence_finish(worker, flow, number, &directions[number], &slowest[number]);
        }
        enum word application = sequence_application(flow);
        if (application == WORD_NONE && flow->application)
            application = flow->application->protocol;
        if (flow->application)
            application_settle(worker, flow);
        flow_rows_add(&worker->rows, flow, &ending, application, directions);
        wait_rows_add(worker->rows.sink, flow, directions, slowest);
        course_rows_add(worker->rows.sink, flow);
        if (flow->application)
            application_finish(worker, flow, &ending);
        if (is_icmp(flow->key.protocol))
            echo_end(worker, flow, &ending);
        event_rows_add(worker->rows.sink, flow);
    } else {
        time_rows_add(worker->rows.sink, flow);
        if (worker->updater->identified)
            flow_ends_add(worker->rows.sink, flow);
    }
    flow_release(worker, flow);
}
