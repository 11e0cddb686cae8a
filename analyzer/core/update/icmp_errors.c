/* SPDX-License-Identifier: Apache-2.0 */
/* Relates an ICMP error to the flow whose packet it quotes (RFC 792, RFC 4443 section 3). */
#include <stdio.h>
#include <string.h>

#include "update/update.h"

struct icmp_meaning {
    uint8_t version, type, code; /* code ANY: all other codes */
    const char *text;
};

#define ANY 255

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

static void describe(const struct headers *headers, char *text, size_t room) {
    const struct icmp_header *icmp = &headers->icmp;
    int used =
        snprintf(text, room, "%s (type %u, code %u)", meaning_of(headers), icmp->type, icmp->code);
    if (icmp->mtu && used > 0 && (size_t)used < room)
        snprintf(text + used, room - (size_t)used, ", MTU %u", icmp->mtu);
}

void icmp_error_update(struct worker *worker, const struct decoded_packet *decoded,
                       const struct packet_extras *extras) {
    const struct icmp_header *icmp = &extras->headers->icmp;
    struct headers quoted = {.protocol = icmp->quoted_protocol,
                             .ip_version = extras->headers->ip_version,
                             .source_port = icmp->quoted_source_port,
                             .destination_port = icmp->quoted_destination_port};
    bool swapped;
    char detail[96];
    memcpy(quoted.source, icmp->quoted_source, sizeof quoted.source);
    memcpy(quoted.destination, icmp->quoted_destination, sizeof quoted.destination);
    struct flow_key key = flow_key_of(&quoted, decoded->key.path, &swapped);
    struct flow *flow =
        flow_table_find(worker->updater->flows, flow_key_hash(worker->updater->flows, &key), &key);
    if (!flow)
        return;
    flow->icmp_errors++;
    describe(extras->headers, detail, sizeof detail);
    event_write(&worker->rows, flow, swapped ^ flow->swapped, &decoded->info,
                &(struct event){.kind = WORD_ICMP_ERROR, .detail = detail});
}
