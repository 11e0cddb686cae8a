/* SPDX-License-Identifier: Apache-2.0 */
/* Selected first bytes into the state of their flow. The state is allocated with the first of them
 * and lives as long as the flow; it is of the pool of the worker. Flows that hold bytes are counted
 * in all shards together: one that would exceed FIRST_BYTES_FLOWS gets no bytes (limits.c). */
#include "update/update.h"

static struct application *application_of(struct worker *worker, struct flow *flow) {
    if (!flow->application)
        flow->application = pool_zeroed(worker->rows.pool, sizeof *flow->application);
    return flow->application;
}

static void count_holding(struct worker *worker, struct application *application, bool holds) {
    if (holds && !application->counted)
        worker->holding_first_bytes++;
    else if (!holds && application->counted)
        worker->holding_first_bytes--;
    application->counted = holds;
}

/* Returns whether one more flow may hold first bytes. */
static bool has_room(const struct worker *worker) {
    return worker->holding_first_bytes + worker->holding_elsewhere < FIRST_BYTES_FLOWS;
}

/* An arrival function; the context is a struct query_place. */
struct query_place {
    struct worker *worker;
    const struct flow *flow;
    const struct flow_end *end; /* NULL before the end of the flow */
};

static void add_query(void *context, const struct dns_query *query) {
    const struct query_place *place = context;
    query_row_add(&place->worker->rows, place->flow, query, place->end);
}

static uint16_t dns_port_of(const struct flow_key *key) {
    static const uint16_t ports[] = {PORT_DNS, PORT_MDNS, PORT_LLMNR};
    for (unsigned i = 0; i < sizeof ports / sizeof *ports; i++)
        if (key->port[0] == ports[i] || key->port[1] == ports[i])
            return ports[i];
    return 0;
}

static bool is_multicast(const struct flow_key *key, unsigned end) {
    uint8_t first = key->address[end][0];
    return key->ip_version == 4 ? first >> 4 == 0xE : first == 0xFF;
}

static struct arrival arrival_of(struct query_place *place, unsigned direction) {
    const struct flow *flow = place->flow;
    return (struct arrival){.pool = place->worker->rows.pool,
                            .finish_query = add_query,
                            .context = place,
                            .time_ns = TIME_UNKNOWN,
                            .direction = (uint8_t)direction,
                            .multicast = is_multicast(&flow->key, 0) || is_multicast(&flow->key, 1),
                            .dns_port = dns_port_of(&flow->key)};
}

/* Reads the names in the ClientHello of a QUIC client, as far as it came, and frees it. */
static void read_quic_names(struct worker *worker, struct flow *flow) {
    struct application *application = flow->application;
    const uint8_t *hello;
    size_t size = quic_hello_body(quic_client_hello(application->quic), &hello);
    struct query_place place = {worker, flow, NULL};
    struct arrival arrival = arrival_of(&place, 0);
    if (size && application->protocol == WORD_QUIC)
        tls_read_client_hello(application, &arrival, hello, size);
    quic_drop_hello(application->quic, worker->rows.pool);
}

static void take_quic(struct worker *worker, struct flow *flow, unsigned direction,
                      const struct packet_info *packet, const uint8_t *bytes, size_t captured) {
    struct application *application = flow->application;
    unsigned sender = flow_end(flow, direction);
    struct quic_datagram datagram = {.bytes = bytes,
                                     .captured = captured,
                                     .length = packet->payload_bytes,
                                     .frame = packet->frame,
                                     .time_ns = packet->time_ns,
                                     .time_known = packet->time_known,
                                     .keep_hello = has_room(worker),
                                     .to_lower_port =
                                         flow->key.port[!sender] < flow->key.port[sender],
                                     .direction = direction};
    quic_take(&application->quic, &datagram, worker->rows.pool);
    if (quic_recognized(application->quic))
        application->protocol = WORD_QUIC;
    if (quic_hello_is_due(application->quic))
        read_quic_names(worker, flow);
    count_holding(worker, application, quic_client_hello(application->quic));
}

/* Long headers are selected; of a short header only the first byte can be read. */
NOINLINE void application_short_header(struct worker *worker, struct flow *flow, unsigned direction,
                                       const struct packet_info *packet,
                                       const struct sequence_payload *payload) {
    if (payload->captured && !(payload->bytes[0] & 0x80))
        take_quic(worker, flow, direction, packet, payload->bytes, 1);
}

NOINLINE void application_update(struct worker *worker, struct flow *flow, unsigned direction,
                                 const struct packet_info *packet,
                                 const struct packet_extras *extras) {
    struct application *application = flow->drawn ? application_of(worker, flow) : NULL;
    if (!application)
        return;
    const uint8_t *bytes = worker->selected + extras->selected_at;
    struct query_place place = {worker, flow, NULL};
    struct arrival arrival = arrival_of(&place, direction);
    if (packet->time_known)
        arrival.time_ns = packet->time_ns;
    arrival.frame = packet->frame;
    arrival.ip_id = packet->ip_id;
    if (flow->key.protocol == IP_UDP) {
        application_datagram(application, &arrival, bytes, extras->selected.length,
                             packet->payload_bytes);
        if (application->protocol == WORD_NONE || application->protocol == WORD_QUIC)
            take_quic(worker, flow, direction, packet, bytes, extras->selected.length);
        return;
    }
    if (!application->counted && !has_room(worker))
        return;
    application_segment(application, &arrival, extras->selected.position, bytes,
                        extras->selected.length);
    count_holding(worker, application, application_holds_bytes(application));
}

/* --- echo requests -----------------------------------------------------------------------------
 */

/* The context of an echo_listener. */
struct echo_place {
    struct worker *worker;
    const struct flow *flow;
    int64_t end_ns; /* of the capture; TIME_UNKNOWN if the flow was silent for long */
};

static void add_echo(void *context, const struct echo_request *request) {
    const struct echo_place *place = context;
    echo_row_add(&place->worker->rows, place->flow, request, place->end_ns);
}

static struct echo_packet echo_packet_of(const struct packet_info *packet, unsigned direction,
                                         uint16_t identifier, uint16_t sequence) {
    return (struct echo_packet){.time_ns = packet->time_known ? packet->time_ns : TIME_UNKNOWN,
                                .frame = packet->frame,
                                .capture = packet->capture,
                                .identifier = identifier,
                                .sequence = sequence,
                                .ip_id = packet->ip_id,
                                .direction = (uint8_t)direction};
}

/* Requests to several hosts are answered in other flows. */
static bool is_unicast(const struct flow_key *key) {
    static const uint8_t broadcast[] = {255, 255, 255, 255};
    return !is_multicast(key, 0) && !is_multicast(key, 1) &&
           (key->ip_version == 6 || (memcmp(key->address[0], broadcast, 4) != 0 &&
                                     memcmp(key->address[1], broadcast, 4) != 0));
}

NOINLINE void echo_update(struct worker *worker, struct flow *flow, unsigned direction,
                          const struct packet_info *packet, const struct decoded_packet *decoded) {
    struct echo_message message;
    memcpy(&message, decoded->tcp, sizeof message);
    if (message.kind == ECHO_NONE || !flow->drawn || !is_unicast(&flow->key))
        return;
    struct echo_place place = {worker, flow, TIME_UNKNOWN};
    struct echo_listener listener = {add_echo, &place};
    bool reply = message.kind == ECHO_REPLY;
    struct echo_packet echo =
        echo_packet_of(packet, direction ^ reply, message.identifier, message.sequence);
    if (reply)
        echo_answer(&flow->echo, &echo, &listener);
    else
        echo_ask(&flow->echo, &echo, worker->rows.pool, &listener);
}

void echo_error(struct worker *worker, struct flow *flow, unsigned direction,
                const struct packet_info *packet, const struct icmp_header *icmp,
                const char *meaning) {
    struct echo_place place = {worker, flow, TIME_UNKNOWN};
    struct echo_packet echo =
        echo_packet_of(packet, direction, icmp->quoted_identifier, icmp->quoted_echo_sequence);
    if (is_icmp(flow->key.protocol))
        echo_fail(&flow->echo, &echo, meaning, &(struct echo_listener){add_echo, &place});
}

void echo_end(struct worker *worker, struct flow *flow, const struct flow_end *end) {
    struct echo_place place = {worker, flow, TIME_UNKNOWN};
    if (end->end != WORD_IDLE)
        place.end_ns = end->end == WORD_END_OF_CAPTURE ? end->now_ns : flow->last_ns;
    echo_finish(&flow->echo, &(struct echo_listener){add_echo, &place});
}

void application_settle(struct worker *worker, struct flow *flow) {
    if (quic_client_hello(flow->application->quic))
        read_quic_names(worker, flow);
}

void application_finish(struct worker *worker, struct flow *flow, const struct flow_end *end) {
    struct query_place place = {worker, flow, end};
    struct arrival arrival = arrival_of(&place, 0);
    bool unread[2], tcp = flow->key.protocol == IP_TCP;
    for (unsigned i = 0; i < 2; i++) /* snd_nxt may count a FIN */
        unread[i] = tcp && flow->application->streams[i].base + 1 < flow->tcp.streams[i].snd_nxt;
    application_finish_queries(flow->application, &arrival, unread);
    application_rows_add(worker->rows.sink, flow);
    struct quic_summary summary;
    if (quic_summary(flow->application->quic, &summary, worker->rows.pool))
        quic_row_add(worker->rows.sink, flow, &summary);
}

void application_release(struct worker *worker, struct flow *flow) {
    count_holding(worker, flow->application, false);
    application_free(flow->application, worker->rows.pool);
    pool_free(worker->rows.pool, flow->application, sizeof *flow->application);
    flow->application = NULL;
}
