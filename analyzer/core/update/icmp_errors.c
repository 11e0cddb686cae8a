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
    const char *text;
};

#define ANY 255

/* The first match counts, so ANY must be the last of its type. */
static const struct icmp_meaning meanings[] = {
    {4, 3, 0, "network unreachable"},
    {4, 3, 1, "host unreachable"},
    {4, 3, 2, "protocol unreachable"},
    {4, 3, 3, "port unreachable"},
    {4, 3, 4, "fragmentation needed"},
    {4, 3, 9, "network administratively prohibited"},
    {4, 3, 10, "host administratively prohibited"},
    {4, 3, 13, "administratively prohibited"},
    {4, 3, ANY, "destination unreachable"},
    {4, 4, ANY, "source quench"},
    {4, 5, ANY, "redirect"},
    {4, 11, 0, "TTL exceeded"},
    {4, 11, 1, "reassembly time exceeded"},
    {4, 12, ANY, "parameter problem"},
    {6, 1, 0, "no route"},
    {6, 1, 1, "administratively prohibited"},
    {6, 1, 3, "address unreachable"},
    {6, 1, 4, "port unreachable"},
    {6, 1, ANY, "destination unreachable"},
    {6, 2, ANY, "packet too big"},
    {6, 3, 0, "hop limit exceeded"},
    {6, 3, 1, "reassembly time exceeded"},
    {6, 4, ANY, "parameter problem"},
};

static const char *meaning_of(const struct headers *headers) {
    const struct icmp_header *icmp = &headers->icmp;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].version == headers->ip_version && meanings[i].type == icmp->type &&
            (meanings[i].code == icmp->code || meanings[i].code == ANY))
            return meanings[i].text;
    return "error";
}

/* Writes the meaning, and the MTU of the next hop if the error has one (RFC 1191, RFC 4443 3.2). */
static void describe(const struct headers *headers, char *text, size_t room) {
    const struct icmp_header *icmp = &headers->icmp;
    int used =
        snprintf(text, room, "%s (type %u, code %u)", meaning_of(headers), icmp->type, icmp->code);
    if (icmp->mtu && used > 0 && (size_t)used < room)
        snprintf(text + used, room - (size_t)used, ", MTU %u", icmp->mtu);
}

/* RFC 5927 section 4.1: an error about a packet in the network quotes a sequence number of data
 * that was sent and not acknowledged. One that quotes another is stale, or forged. The capture may
 * have stored an ACK of later data first, so positions above an earlier ACK (ack_history) count. */
static bool quotes_sent_data(const struct icmp_header *icmp, const struct tcp_stream *stream) {
    if (!icmp->quotes_sequence)
        return false;
    if (!stream->base_known) /* none of its packets was captured */
        return true;
    int64_t at = stream_position(stream, icmp->quoted_sequence), least = stream->snd_una;
    for (unsigned i = 0; i < 2; i++)
        if (stream->ack_history[i].time_ns)
            least = min64(least, stream->ack_history[i].snd_una);
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
    describe(headers, detail, sizeof detail);
    event_write(&worker->rows, flow, swapped ^ flow->swapped, &decoded->info,
                &(struct event){.kind = WORD_ICMP_ERROR, .detail = detail});
}
