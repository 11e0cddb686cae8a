/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/duplicate.h"

#include <string.h>

#include "verdict/mirror_duplicate.h"
#include "verdict/retransmission.h"

#define NETWORK_GAP_NS    INT64_C(100000000) /* of the network's, where no round trip is known */
#define COPY_GAP_SLACK_NS 10000
#define COPIES_MOST       3u

static uint32_t mark_time(const struct step *step) {
    return tcp_copy_time(step->seen->time_ns);
}

static bool is_pure_ack(const struct step *step) {
    return !step->seen->payload_bytes && !(step->tcp->flags & (TCP_SYN | TCP_FIN));
}

static bool is_routed(const struct step *step, const struct packet_mark *mark) {
    return ((step->seen->ttl + 1u) & 3) == mark->ttl;
}

static unsigned last_port(const struct packet_mark *mark) {
    return mark->port ^ mark->port_moved;
}

static bool is_of_two_ports(const struct step *step, const struct packet_mark *mark) {
    return is_routed(step, mark) || last_port(mark) != step->seen->port;
}

/* Without an IP id that says so, sameness and haste must do: a sender repeats nothing before it can
 * know of a loss. Pure ACKs that say the same are common, so among them only a mirror that has
 * shown copies of data is believed. */
static bool is_hasty(const struct step *step, const struct packet_mark *mark, int64_t gap_ns) {
    int64_t rtt = step_path_rtt(step);
    if (step->tcp->flags & TCP_RST) /* each answers a segment (RFC 9293 section 3.10.7.1) */
        return false;
    if (is_pure_ack(step))
        return step->flow->copied &&
               (is_of_two_ports(step, mark) || mirror_is_likely(step->flow)) &&
               gap_ns <= 2 * (int64_t)step->flow->copy_gap_ns + COPY_GAP_SLACK_NS;
    if (step->tcp->flags & TCP_SYN && rtt < 0)
        return gap_ns <= NETWORK_GAP_NS;
    if (rtt < 0)
        return gap_ns <= MIRROR_GAP_NS && step_timestamps(step);
    /* No timer is as fast as a mirror, and no acknowledgment asked for it. */
    return gap_ns < rtt / 2 || (gap_ns <= HASTE_GAP_NS && !step_asked(step));
}

static bool is_copy(const struct step *step, const struct packet_mark *mark, int64_t gap_ns) {
    uint16_t id = step->seen->ip_id;
    int64_t rtt = step_path_rtt(step);
    if (id != mark->ip_id)
        return false;
    if (!id || step_ids_tell_nothing(step->stream))
        return is_hasty(step, mark, gap_ns);
    return gap_ns <= MIRROR_GAP_NS || gap_ns < (rtt < 0 ? NETWORK_GAP_NS : rtt);
}

/* Two of each come from a mirror of both directions or of two ports. There may be more ports, as
 * when all interfaces of a host are captured: each adds one, until the first has the packet again.
 * A router between two takes one from the TTL. */
static bool is_mirror(const struct step *step, const struct packet_mark *mark, int64_t gap_ns) {
    unsigned port = step->seen->port;
    bool new_port = port != mark->port && port != last_port(mark);
    return gap_ns <= MIRROR_GAP_NS && (is_routed(step, mark) || !mark->copies || new_port);
}

static void note_copy(struct step *step, struct packet_mark *mark, int64_t gap_ns) {
    bool data = !is_pure_ack(step), syn = step->tcp->flags & TCP_SYN;
    int64_t start = syn ? -1 : stream_position(step->stream, step->tcp->sequence);
    bool fin = step->tcp->flags & TCP_FIN, mirror = is_mirror(step, mark, gap_ns);
    int64_t end = start + step->seen->payload_bytes + (syn || fin);
    enum copy_doubt doubt = mirror_doubt(step, start, end);
    if (is_of_two_ports(step, mark))
        doubt = COPY_OF_TWO_PORTS;
    mark->ttl = step->seen->ttl & 3; /* another hop's may follow */
    mark->port_moved = (mark->port ^ step->seen->port) & 63;
    if (mark->copies < COPIES_MOST)
        mark->copies++;
    step->flow->copied |= data;
    if (data)
        step->flow->copy_gap_ns = (uint32_t)gap_ns;
    step_trouble(step, step->stream)->duplicate_bytes += step->seen->payload_bytes;
    judge_copy(step, start, end, &(struct copy){mirror, doubt, mark->frame});
}

static APART bool find_copy(struct step *step, uint32_t signature) {
    struct tcp_stream *stream = step->stream;
    for (unsigned i = 1; i <= stream->mark_room; i++) {
        struct packet_mark *mark =
            &stream->marks[(stream->next_mark - i) & (stream->mark_room - 1)];
        int64_t gap_ns = (int64_t)(uint32_t)(mark_time(step) - mark->time) << MARK_UNIT_SHIFT;
        if (!mark->frame || mark->signature != signature || !is_copy(step, mark, gap_ns))
            continue;
        note_copy(step, mark, gap_ns);
        return true;
    }
    return false;
}

/* The list grows as long as it may; then it is a ring. */
static APART bool make_room(struct tcp_stream *stream, struct allowance *allowance) {
    uint32_t room = stream->mark_room;
    stream->next_mark = 0;
    if (!allowance_grow(allowance, (void **)&stream->marks, &stream->mark_room,
                        sizeof *stream->marks, 4, MARKS_MOST))
        return room;
    memset(stream->marks + room, 0, (stream->mark_room - room) * sizeof *stream->marks);
    stream->next_mark = (uint8_t)room;
    return true;
}

static inline void set_mark(struct packet_mark *mark, const struct step *step) {
    const struct sighting *seen = step->seen;
    *mark = (struct packet_mark){.time = mark_time(step),
                                 .frame = step_frame(step),
                                 .signature = step->tcp->signature,
                                 .ip_id = seen->ip_id,
                                 .ttl = seen->ttl & 3,
                                 .port = seen->port & 63};
}

bool tcp_copy_take(struct step *step, bool doubtful) {
    struct tcp_stream *stream = step->stream;
    if (doubtful && step->seen->time_known && find_copy(step, step->tcp->signature))
        return true;
    if (stream->next_mark < stream->mark_room || make_room(stream, step->allowance))
        set_mark(&stream->marks[stream->next_mark++], step);
    return false;
}
