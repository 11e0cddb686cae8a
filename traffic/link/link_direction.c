/* SPDX-License-Identifier: Apache-2.0 */
#include "link_direction.h"

#include <stdlib.h>

#include "common/log.h"
#include "packet_id.h"
#include "random_draw.h"

const char *link_direction_init(struct link_direction *direction, const struct link_spec *spec,
                                uint64_t seed, uint8_t number,
                                const struct direction_events *events, _Atomic int64_t *origin_ns,
                                char *problem, size_t problem_bytes) {
    seed = block_mix(block_mix(seed) + number + 1);
    *direction = (struct link_direction){
        .spec = spec, .events = events, .origin_ns = origin_ns, .seed = seed, .number = number};
    loss_model_init(&direction->loss, spec, seed);
    packet_queue_init(&direction->queue, spec, seed);
    delay_line_init(&direction->line, spec, seed);
    direction->server.spec = spec;
    if (!spec->trace_path)
        return NULL;
    const char *wrong =
        rate_trace_read(&direction->server.trace, spec->trace_path, problem, problem_bytes);
    if (!wrong)
        direction->queue.rate_bps = rate_trace_mean_bps(&direction->server.trace);
    return wrong;
}

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
    direction->fates[truth->fate]++;
    direction->events->fate_known(direction->events->context, truth);
    free(last);
}

static void finish_codel_drops(struct link_direction *direction) {
    struct link_packet *packet;
    while ((packet = direction->queue.dropped)) {
        direction->queue.dropped = packet->next;
        finish(direction, packet, FATE_CODEL);
    }
}

void link_direction_advance(struct link_direction *direction, int64_t now_ns) {
    struct link_server *server = &direction->server;
    while (direction->queue.head) {
        int64_t start = link_server_start(server, direction->queue.head->arrival_ns);
        if (start > now_ns)
            return;
        struct link_packet *packet = packet_queue_take(&direction->queue, start);
        finish_codel_drops(direction);
        if (packet && !delay_line_put(&direction->line, packet,
                                      link_server_send(server, start, packet->link_bytes)))
            fail(EXIT_MISSING, "out of memory with %u packets under way", direction->line.count);
        packet_queue_rest(&direction->queue, server->free_ns);
    }
}

static bool drawn(const struct link_direction *direction, enum draw_purpose purpose, uint64_t index,
                  double share) {
    return share > 0 && random_share(direction->seed, purpose, index) < share;
}

/* Flips bits of the IP packet, each one once. */
static void corrupt(struct link_direction *direction, struct link_packet *packet) {
    uint64_t flipped[BITS_MOST], count = 0, bits = (uint64_t)packet->truth.ip_bytes * 8;
    if (!drawn(direction, DRAW_CORRUPT, packet->truth.index, direction->spec->corrupt) || !bits)
        return;
    for (uint32_t i = 0; i < 4 * BITS_MOST && count < direction->spec->corrupt_bits; i++) {
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

static void enqueue(struct link_direction *direction, struct link_packet *packet) {
    const struct link_server *server = &direction->server;
    bool busy = server->free_ns > packet->arrival_ns;
    enum fate fate = packet_queue_put(&direction->queue, packet, busy ? server->bytes : 0);
    if (fate != FATE_DELIVERED)
        finish(direction, packet, fate);
}

static void note_queue(const struct link_direction *direction, struct link_packet *packet) {
    const struct link_server *server = &direction->server;
    bool busy = server->free_ns > packet->arrival_ns;
    packet->truth.queue_packets = (uint32_t)(direction->queue.packets + busy);
    packet->truth.queue_bytes = (uint32_t)(direction->queue.bytes + (busy ? server->bytes : 0));
}

/* Past the losses: into the queue, perhaps twice. */
static void carry(struct link_direction *direction, struct link_packet *packet) {
    corrupt(direction, packet);
    struct link_packet *copy = NULL;
    if (drawn(direction, DRAW_DUPLICATE, packet->truth.index, direction->spec->duplicate))
        copy = link_packet_copy(packet);
    if (copy) {
        packet->truth.bits |= TRUTH_COPIED;
        direction->held_bytes += copy->size;
    }
    enqueue(direction, packet);
    if (copy)
        enqueue(direction, copy);
}

static enum fate judge(struct link_direction *direction, const struct link_packet *packet,
                       int64_t since_ns) {
    const struct link_spec *spec = direction->spec;
    enum fate fate = loss_model_judge(&direction->loss, packet->truth.index, since_ns);
    if (fate == FATE_DELIVERED && spec->mtu && packet->truth.ip_bytes > spec->mtu)
        fate = FATE_MTU;
    if (fate == FATE_DELIVERED && direction->held_bytes > HELD_BYTES_MOST)
        fate = FATE_MEMORY;
    return fate;
}

static uint32_t bytes_on_link(const struct link_spec *spec, uint32_t ip_bytes) {
    int64_t bytes = (int64_t)ip_bytes + spec->overhead;
    return bytes > 0 ? (uint32_t)bytes : 1;
}

/* Time of the link's first packet, in whichever direction. */
static int64_t origin_with(struct link_direction *direction, int64_t arrival_ns) {
    int64_t none = 0;
    if (atomic_compare_exchange_strong(direction->origin_ns, &none, arrival_ns))
        return arrival_ns;
    return none;
}

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

/* Who looks when the head of the queue is out, not when it begins, looks once for each packet
 * instead of twice. */
int64_t link_direction_next_ns(const struct link_direction *direction) {
    const struct link_packet *head = direction->queue.head;
    int64_t next = delay_line_next_ns(&direction->line);
    if (!head)
        return next;
    int64_t at = link_server_start(&direction->server, head->arrival_ns);
    if (direction->spec->rate_bps > 0 && direction->spec->discipline != QUEUE_CODEL)
        at += (int64_t)(head->link_bytes * 8e9 / direction->spec->rate_bps);
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
    while ((packet = direction->queue.head)) {
        direction->queue.head = packet->next;
        finish(direction, packet, FATE_UNFINISHED);
    }
    while ((packet = delay_line_empty(&direction->line)))
        finish(direction, packet, FATE_UNFINISHED);
    delay_line_free(&direction->line);
    rate_trace_free(&direction->server.trace);
}
