/* SPDX-License-Identifier: Apache-2.0 */
/* Relates an ICMP error to the flow whose packet it quotes (RFC 792, RFC 4443 section 3).
 *
 * The quoted addresses and ports select the flow; RFC 792 guarantees 8 bytes of the transport
 * header, which hold the ports. If that flow is not live, the error is counted only as a packet of
 * its own flow: it may quote a packet that the capture missed. The quoted flow is in another shard
 * as a rule, which therefore gets the error as a packet of its own. */
#include <stdio.h>
#include <string.h>

#include "tcp/wire_segments.h"
#include "update/update.h"

struct icmp_meaning {
    uint8_t version, type, code; /* code ANY: all other codes */
    enum word cause;             /* events.cause */
    const char *text;
};

#define ANY 255

/* The first match counts, so ANY must be the last of its type. */
static const struct icmp_meaning meanings[] = {
    {4, 3, 0, WORD_NETWORK_UNREACHABLE, "network unreachable"},
    {4, 3, 1, WORD_HOST_UNREACHABLE, "host unreachable"},
    {4, 3, 2, WORD_PROTOCOL_UNREACHABLE, "protocol unreachable"},
    {4, 3, 3, WORD_PORT_UNREACHABLE, "port unreachable"},
    {4, 3, 4, WORD_FRAGMENTATION_NEEDED, "fragmentation needed"},
    {4, 3, 9, WORD_NETWORK_PROHIBITED, "network administratively prohibited"},
    {4, 3, 10, WORD_HOST_PROHIBITED, "host administratively prohibited"},
    {4, 3, 13, WORD_PROHIBITED, "administratively prohibited"},
    {4, 3, ANY, WORD_DESTINATION_UNREACHABLE, "destination unreachable"},
    {4, 4, ANY, WORD_SOURCE_QUENCH, "source quench"},
    {4, 5, ANY, WORD_REDIRECT, "redirect"},
    {4, 11, 0, WORD_TTL_EXCEEDED, "TTL exceeded"},
    {4, 11, 1, WORD_REASSEMBLY_TIME_EXCEEDED, "reassembly time exceeded"},
    {4, 12, ANY, WORD_PARAMETER_PROBLEM, "parameter problem"},
    {6, 1, 0, WORD_NO_ROUTE, "no route"},
    {6, 1, 1, WORD_PROHIBITED, "administratively prohibited"},
    {6, 1, 3, WORD_ADDRESS_UNREACHABLE, "address unreachable"},
    {6, 1, 4, WORD_PORT_UNREACHABLE, "port unreachable"},
    {6, 1, ANY, WORD_DESTINATION_UNREACHABLE, "destination unreachable"},
    {6, 2, ANY, WORD_PACKET_TOO_BIG, "packet too big"},
    {6, 3, 0, WORD_HOP_LIMIT_EXCEEDED, "hop limit exceeded"},
    {6, 3, 1, WORD_REASSEMBLY_TIME_EXCEEDED, "reassembly time exceeded"},
    {6, 4, ANY, WORD_PARAMETER_PROBLEM, "parameter problem"},
};

static const struct icmp_meaning *meaning_of(const struct headers *headers) {
    static const struct icmp_meaning unknown = {.cause = WORD_NONE, .text = "error"};
    const struct icmp_header *icmp = &headers->icmp;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].version == headers->ip_version && meanings[i].type == icmp->type &&
            (meanings[i].code == icmp->code || meanings[i].code == ANY))
            return &meanings[i];
    return &unknown;
}

/* Writes the meaning, and the MTU of the next hop if the error has one (RFC 1191, RFC 4443 3.2). */
static void describe(const struct icmp_header *icmp, const char *meaning, char *text, size_t room) {
    int used = snprintf(text, room, "%s (type %u, code %u)", meaning, icmp->type, icmp->code);
    if (icmp->mtu && used > 0 && (size_t)used < room)
        snprintf(text + used, room - (size_t)used, ", MTU %u", icmp->mtu);
}

/* RFC 5927 section 4.1: an error about a packet in the network quotes a sequence number of data
 * that was sent and not acknowledged. One that quotes another is stale, or forged. The capture may
 * have stored an ACK of later data first, so positions above an earlier ACK (earlier_acks) count.
 */
static bool quotes_sent_data(const struct icmp_header *icmp, const struct tcp_stream *stream) {
    if (!icmp->quotes_sequence)
        return false;
    if (!stream->base_known) /* none of its packets was captured */
        return true;
    int64_t at = stream_position(stream, icmp->quoted_sequence), least = stream->snd_una;
    const struct ack_point *earlier = earlier_acks(stream);
    for (unsigned i = 0; i < ACKS_KEPT; i++)
        if (earlier[i].time_ns)
            least = min64(least, earlier[i].snd_una);
    return at <= stream->snd_nxt && (!stream->snd_una_known || at >= least);
}

/* The quoted flow must have the encapsulations of the error itself: the quotation does not show
 * those of the packet. */
struct flow_key quoted_flow_key(const struct headers *headers, uint32_t path, bool *swapped) {
    const struct icmp_header *icmp = &headers->icmp;
    struct headers quoted = {.protocol = icmp->quoted_protocol,
                             .ip_version = headers->ip_version,
                             .source_port = icmp->quoted_source_port,
                             .destination_port = icmp->quoted_destination_port};
    memcpy(quoted.source, icmp->quoted_source, sizeof quoted.source);
    memcpy(quoted.destination, icmp->quoted_destination, sizeof quoted.destination);
    return flow_key_of(&quoted, path, swapped);
}

void icmp_error_update(struct worker *worker, const struct decoded_packet *decoded,
                       const struct packet_extras *extras) {
    const struct headers *headers = extras->headers;
    const struct icmp_header *icmp = &headers->icmp;
    bool swapped;
    char detail[96];
    struct flow_key key = quoted_flow_key(headers, decoded->key.path, &swapped);
    struct flow *flow = flow_table_find(worker->shard->flows, extras->quoted_hash, &key);
    if (!flow || decoded->info.time_ns > flow_due_ns(flow)) /* over, whenever the table is swept */
        return;
    /* The event belongs to the direction of the quoted packet, because that one failed. */
    flow->icmp_errors++;
    if (icmp->mtu && quotes_sent_data(icmp, &flow->tcp.streams[swapped ^ flow->swapped]))
        note_path_mtu(&flow->tcp.streams[swapped ^ flow->swapped], icmp->mtu,
                      headers->ip_version == 6 ? 40 : 20);
    const struct icmp_meaning *meaning = meaning_of(headers);
    flow->icmp_error = (uint16_t)meaning->cause;
    const struct icmp_report report = {icmp->mtu, headers->ip_version, headers->source};
    describe(icmp, meaning->text, detail, sizeof detail);
    if (icmp->quotes_echo && meaning->cause != WORD_REDIRECT &&
        meaning->cause != WORD_SOURCE_QUENCH)
        echo_error(worker, flow, swapped ^ flow->swapped, &decoded->info, icmp, meaning->text);
    event_write(
        &worker->rows, flow, swapped ^ flow->swapped, &decoded->info,
        &(struct event){
            .kind = WORD_ICMP_ERROR, .cause = meaning->cause, .detail = detail, .icmp = &report});
}
