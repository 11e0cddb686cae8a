/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of the link: gives each packet its number, decides losses by rule, corrupts and
 * copies, and moves packets through queue, server and delay line as time advances. Losses are
 * decided when a packet arrives, in the order of settings below; the first that applies is its
 * fate. A packet's truth record is complete when the packet and its copy have left or were dropped.
 */
#include "path/link_direction.h"

#include <stdlib.h>

#include "common/log.h"
#include "packet/packet_headers.h"

/* The seed is mixed with the number, so that both directions draw independently. */
const char *link_direction_init(struct link_direction *direction, const struct link_spec *spec,
                                uint64_t seed, uint8_t number,
                                const struct direction_events *events, _Atomic int64_t *origin_ns,
                                char *error, size_t error_size) {
    seed = block_mix(block_mix(seed) + number + 1);
    *direction = (struct link_direction){
        .spec = spec, .events = events, .origin_ns = origin_ns, .seed = seed, .number = number};
    if (!packet_queue_init(&direction->queue, spec, seed))
        fail(EXIT_MISSING, "out of memory for %u queues", (unsigned)spec->fq_flows);
    delay_line_init(&direction->line, spec, seed);
    direction->server.spec = spec;
    if (!spec->trace_path)
        return NULL;
    const char *error_text =
        rate_trace_read(&direction->server.trace, spec->trace_path, error, error_size);
    if (!error_text)
        direction->queue.rate_bps = rate_trace_mean_bps(&direction->server.trace);
    return error_text;
}

/* Ends a packet with a fate. The record is reported when the last packet of it has ended; if a copy
 * was delivered, it counts as delivered. */
static void finish(struct link_direction *direction, struct link_packet *packet, enum fate fate) {
    struct truth_record *truth = &packet->original->truth;
    direction->held_bytes -= packet->size;
    if (fate != FATE_DELIVERED && packet == packet->original)
        truth->fate = (uint8_t)fate;
    struct link_packet *last = link_packet_release(packet);
    if (!last)
        return;
    if (truth->copies)
        truth->fate = FATE_DELIVERED;
    if (truth->fate != FATE_DELIVERED)
        truth->marked = 0;
    direction->fates[truth->fate]++;
    direction->marked += truth->marked != 0;
    direction->events->fate_known(direction->events->context, truth);
    free(last);
}

/* CoDel drops when it dequeues, and FQ-CoDel from its longest queue, so several packets may end at
 * once. */
static void finish_drops(struct link_direction *direction) {
    struct link_packet *packet;
    while ((packet = direction->queue.dropped)) {
        direction->queue.dropped = packet->next;
        finish(direction, packet, packet->drop_fate);
    }
}

/* A packet leaves the queue when the server can begin with it, because until then RED and CoDel may
 * still drop it. */
void link_direction_advance(struct link_direction *direction, int64_t now_ns) {
    struct link_server *server = &direction->server;
    while (direction->queue.packets) {
        int64_t start = link_server_start(server, packet_queue_since_ns(&direction->queue));
        if (start > now_ns)
            return;
        struct link_packet *packet = packet_queue_take(&direction->queue, start);
        finish_drops(direction);
        if (packet && !delay_line_put(&direction->line, packet,
                                      link_server_send(server, start, packet->link_bytes)))
            fail(EXIT_MISSING, "out of memory with %u packets under way", direction->line.count);
        packet_queue_rest(&direction->queue, server->free_ns);
    }
}

/* Flips `bits` different bits of the IP packet. Draws are bounded, so a very short packet may get
 * fewer. Checksums are left as they are, because receivers should notice. */
static void corrupt(struct link_direction *direction, struct link_packet *packet) {
    uint64_t flipped[MAX_BITS], count = 0, bits = (uint64_t)packet->truth.ip_bytes * 8;
    if (!is_drawn(direction->seed, DRAW_CORRUPT, packet->truth.index, direction->spec->corrupt) ||
        !bits)
        return;
    for (uint32_t i = 0; i < 4 * MAX_BITS && count < direction->spec->corrupt_bits; i++) {
        uint64_t bit = random_draw(direction->seed, DRAW_BIT + i, packet->truth.index) % bits,
                 known = 0;
        while (known < count && flipped[known] != bit)
            known++;
        if (known < count)
            continue;
        flipped[count++] = bit;
        packet->frame[packet->ip_at + bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    packet->truth.corrupted_bits = (uint16_t)count;
}

/* The packet that is being sent still occupies the buffer. */
static uint32_t busy_bytes(const struct link_direction *direction,
                           const struct link_packet *packet) {
    const struct link_server *server = &direction->server;
    return server->free_ns > packet->arrival_ns ? server->bytes : 0;
}

static void enqueue(struct link_direction *direction, struct link_packet *packet) {
    if (direction->spec->steps_count && !direction->spec->trace_path)
        direction->queue.rate_bps =
            link_spec_rate_bps(direction->spec, packet->arrival_ns - direction->server.origin_ns);
    enum fate fate = packet_queue_put(&direction->queue, packet, busy_bytes(direction, packet));
    if (fate != FATE_DELIVERED)
        finish(direction, packet, fate);
    finish_drops(direction);
}

/* Records the queue as the packet finds it, without the packet itself. */
static void note_queue(const struct link_direction *direction, struct link_packet *packet) {
    uint32_t busy = busy_bytes(direction, packet);
    packet->truth.queue_packets = (uint32_t)(direction->queue.packets + (busy > 0));
    packet->truth.queue_bytes = (uint32_t)(direction->queue.bytes + busy);
}

/* The packet passed the losses: into the queue, together with its copy if there is one. */
static void carry(struct link_direction *direction, struct link_packet *packet) {
    corrupt(direction, packet);
    struct link_packet *copy = NULL;
    if (is_drawn(direction->seed, DRAW_DUPLICATE, packet->truth.index, direction->spec->duplicate))
        copy = link_packet_copy(packet);
    if (copy) {
        packet->truth.bits |= TRUTH_COPIED;
        direction->held_bytes += copy->size;
    }
    enqueue(direction, packet);
    if (copy)
        enqueue(direction, copy);
}

/* Packets come in order, so the list is walked once. */
static bool is_listed(struct link_direction *direction, uint64_t index) {
    const struct link_spec *spec = direction->spec;
    while (direction->range < spec->listed_count && spec->listed[direction->range].last < index)
        direction->range++;
    return direction->range < spec->listed_count && spec->listed[direction->range].first <= index;
}

/* Gilbert-Elliott model (Elliott 1963): the state changes with each packet, and then decides about
 * this packet. */
static bool gilbert_loses(struct link_direction *direction, uint64_t index) {
    const struct link_spec *spec = direction->spec;
    if (spec->gilbert_to_bad <= 0)
        return false;
    double change = direction->gilbert_bad ? spec->gilbert_to_good : spec->gilbert_to_bad;
    direction->gilbert_bad ^= is_drawn(direction->seed, DRAW_GILBERT_STATE, index, change);
    double loss = direction->gilbert_bad ? spec->gilbert_loss_bad : spec->gilbert_loss_good;
    return is_drawn(direction->seed, DRAW_GILBERT_LOSS, index, loss);
}

static bool span_loses(const struct link_direction *direction, const struct span_list *list,
                       uint64_t index, int64_t since_ns) {
    const struct time_span *span = span_list_find(list, since_ns);
    return span && is_drawn(direction->seed, DRAW_SPAN, index, span->share);
}

/* Returns FATE_DELIVERED if neither a setting nor the link's own memory loses the packet. */
static enum fate judge(struct link_direction *direction, const struct link_packet *packet,
                       int64_t since_ns) {
    const struct link_spec *spec = direction->spec;
    uint64_t index = packet->truth.index;
    bool gilbert = gilbert_loses(direction, index); /* its state changes in any case */
    if (is_listed(direction, index))
        return FATE_LISTED;
    if (span_list_find(&spec->outages, since_ns))
        return FATE_OUTAGE;
    if (span_loses(direction, &spec->lost_spans, index, since_ns))
        return FATE_SPAN;
    if (spec->periodic && index % spec->periodic == 0)
        return FATE_PERIODIC;
    if (gilbert)
        return FATE_GILBERT;
    if (is_drawn(direction->seed, DRAW_LOSS, index, link_spec_loss(spec, since_ns)))
        return FATE_RANDOM;
    if (spec->mtu && packet->truth.ip_bytes > spec->mtu)
        return FATE_MTU;
    return direction->held_bytes > MAX_HELD_BYTES ? FATE_MEMORY : FATE_DELIVERED;
}

/* A negative overhead may exceed a small packet, which then counts as 1 byte. */
static uint32_t bytes_on_link(const struct link_spec *spec, uint32_t ip_bytes) {
    int64_t bytes = (int64_t)ip_bytes + spec->overhead;
    return bytes > 0 ? (uint32_t)bytes : 1;
}

/* Returns the time of the link's first packet, which may be this one. Both directions share it. */
static int64_t origin_with(struct link_direction *direction, int64_t arrival_ns) {
    int64_t none = 0;
    if (atomic_compare_exchange_strong(direction->origin_ns, &none, arrival_ns))
        return arrival_ns;
    return none;
}

/* Stamps of a batch may be swapped, so arrivals never run backwards. Time advances before, because
 * the packet must find the queue of its arrival, and after, as an idle server begins at once. */
bool link_direction_arrive(struct link_direction *direction, const uint8_t *frame, uint32_t size,
                           int64_t arrival_ns, int64_t in_ns) {
    struct truth_record truth = {0};
    uint32_t ip_at;
    if (!packet_identify(frame, size, &truth, &ip_at))
        return false;
    struct link_packet *packet = link_packet_new(frame, size);
    if (!packet)
        fail(EXIT_MISSING, "out of memory for a packet of %u bytes", size);
    if (arrival_ns < direction->last_arrival_ns)
        arrival_ns = direction->last_arrival_ns;
    direction->last_arrival_ns = arrival_ns;
    direction->server.origin_ns = origin_with(direction, arrival_ns);
    direction->line.origin_ns = direction->server.origin_ns;
    link_direction_advance(direction, arrival_ns);
    truth.index = ++direction->index;
    truth.in_ns = in_ns;
    truth.direction = direction->number;
    packet->truth = truth;
    packet->ip_at = ip_at;
    packet->arrival_ns = arrival_ns;
    packet->link_bytes = bytes_on_link(direction->spec, truth.ip_bytes);
    direction->held_bytes += size;
    note_queue(direction, packet);
    enum fate fate = judge(direction, packet, arrival_ns - direction->server.origin_ns);
    if (fate == FATE_MTU && !direction->spec->black_hole)
        direction->events->too_big(direction->events->context, packet);
    if (fate != FATE_DELIVERED)
        finish(direction, packet, fate);
    else
        carry(direction, packet);
    link_direction_advance(direction, arrival_ns);
    return true;
}

/* With a constant rate, the time is that at which the next packet of the queue is out, so that the
 * worker wakes up once per packet and not twice. */
int64_t link_direction_next_ns(const struct link_direction *direction) {
    const struct packet_queue *queue = &direction->queue;
    int64_t next = delay_line_next_ns(&direction->line);
    if (!queue->packets)
        return next;
    const struct link_packet *packet = packet_queue_next(queue);
    int64_t at = link_server_start(&direction->server, packet_queue_since_ns(queue));
    if (packet && direction->spec->rate_bps > 0 && !direction->spec->steps_count)
        at += (int64_t)(packet->link_bytes * 8e9 / direction->spec->rate_bps);
    return at < next ? at : next;
}

struct link_packet *link_direction_take(struct link_direction *direction, int64_t now_ns) {
    return delay_line_take(&direction->line, now_ns);
}

void link_direction_sent(struct link_direction *direction, struct link_packet *packet,
                         int64_t out_ns, int64_t due_ns) {
    struct truth_record *truth = &packet->original->truth;
    if (!out_ns) {
        finish(direction, packet, FATE_SEND_ERROR);
        return;
    }
    if (!truth->copies++) {
        truth->out_ns = out_ns;
        truth->due_ns = due_ns;
    }
    finish(direction, packet, FATE_DELIVERED);
}

void link_direction_end(struct link_direction *direction) {
    struct link_packet *packet;
    while ((packet = packet_queue_empty(&direction->queue)))
        finish(direction, packet, FATE_UNFINISHED);
    packet_queue_free(&direction->queue);
    while ((packet = delay_line_empty(&direction->line)))
        finish(direction, packet, FATE_UNFINISHED);
    delay_line_free(&direction->line);
    rate_trace_free(&direction->server.trace);
}
