/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what decode_packet() makes of each packet of a capture that libpcap reads, one line a
 * packet: a header line with the column names, then tab-separated values, "-" where a field says
 * nothing. */
#include <arpa/inet.h>
#include <err.h>
#include <inttypes.h>
#include <pcap.h>
#include <stdio.h>

#include "../headers.h"

static const char *const path_names[] = {"vlan", "mpls", "pppoe", "gre", "ipip", "vxlan", "geneve"};

static const char *const columns[] = {
    "frame",
    "reason",
    "layer",
    "path",
    "outer_length",
    "link_hash",
    "version",
    "protocol",
    "source",
    "destination",
    "ttl",
    "class",
    "fragment",
    "atomic",
    "more",
    "dont",
    "offset",
    "piece",
    "id",
    "ip_length",
    "ip_header",
    "from_frame",
    "ports_known",
    "source_port",
    "destination_port",
    "transport",
    "payload",
    "captured",
    "checksum",
    "udp_length",
    "sequence",
    "ack",
    "flags",
    "window",
    "options",
    "mss",
    "scale",
    "timestamps",
    "sack",
    "icmp",
    "icmp_id",
    "mtu",
    "quoted",
    "payload_bytes",
};
#define COLUMNS (sizeof columns / sizeof *columns)

static void print_blank(int count) {
    while (count--)
        fputs("\t-", stdout);
}

static void print_path(const struct headers *h) {
    putchar('\t');
    for (int i = 0; i < h->path_depth; i++)
        printf("%s%s:%" PRIu32, i ? "," : "", path_names[h->path[i].kind], h->path[i].id);
    if (!h->path_depth)
        putchar('-');
}

static void print_address(const uint8_t *address, int version) {
    char text[INET6_ADDRSTRLEN];
    inet_ntop(version == 4 ? AF_INET : AF_INET6, address, text, sizeof text);
    printf("\t%s", text);
}

static void print_network(const struct headers *h) {
    printf("\t%u\t%u", h->ip_version, h->protocol);
    print_address(h->source, h->ip_version);
    print_address(h->destination, h->ip_version);
    printf("\t%u\t%u\t%d\t%d\t%d\t%d", h->ttl, h->traffic_class, h->fragment, h->atomic_fragment,
           h->more_fragments, h->dont_fragment);
    printf("\t%u\t%u\t%u\t%u\t%u\t%d\t%d", h->fragment_offset, h->fragment_length,
           h->identification, h->ip_length, h->ip_header_length, h->length_from_frame,
           h->ports_known);
    printf("\t%u\t%u\t%u\t%u\t%u\t%u\t%u", h->source_port, h->destination_port,
           h->transport_header_length, h->payload_length, h->payload_captured,
           h->transport_checksum, h->udp_length);
}

static void print_tcp(const struct tcp_header *tcp) {
    printf("\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%u:%u\t", tcp->sequence, tcp->acknowledgment, tcp->flags,
           tcp->window, tcp->options, tcp->mss, tcp->window_scale, tcp->timestamp_value,
           tcp->timestamp_echo);
    for (int i = 0; i < tcp->sack_count; i++)
        printf("%s%u-%u", i ? "," : "", tcp->sack[i].start, tcp->sack[i].end);
    if (!tcp->sack_count)
        putchar('-');
}

static void print_icmp(const struct headers *h) {
    const struct icmp_header *icmp = &h->icmp;
    printf("\t%u/%u\t%u\t%u", icmp->type, icmp->code, icmp->identifier, icmp->mtu);
    if (!icmp->quotes) {
        print_blank(1);
        return;
    }
    char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
    int family = h->ip_version == 4 ? AF_INET : AF_INET6;
    inet_ntop(family, icmp->quoted_source, source, sizeof source);
    inet_ntop(family, icmp->quoted_destination, destination, sizeof destination);
    printf("\t%u %s %u %s %u %u", icmp->quoted_protocol, source, icmp->quoted_source_port,
           destination, icmp->quoted_destination_port, icmp->quoted_sequence);
}

static void print_payload(const struct headers *h) {
    putchar('\t');
    for (uint32_t i = 0; i < h->payload_captured && i < 8; i++)
        printf("%02x", h->payload[i]);
    if (!h->payload_captured)
        putchar('-');
}

static void print_upper(const struct headers *h) {
    bool transport = h->layer == LAYER_TRANSPORT;
    print_network(h);
    if (transport && h->protocol == 6)
        print_tcp(&h->tcp);
    else
        print_blank(9);
    if (transport && (h->protocol == 1 || h->protocol == 58))
        print_icmp(h);
    else
        print_blank(4);
    print_payload(h);
}

static void print_headers(uint64_t frame, const struct headers *h) {
    printf("%" PRIu64 "\t%s\t%u", frame, decode_reason_name(h->reason), h->layer);
    print_path(h);
    printf("\t%u\t%u", h->outer_length, h->link_hash);
    if (h->layer >= LAYER_NETWORK)
        print_upper(h);
    else
        print_blank(COLUMNS - 6);
    putchar('\n');
}

static void print_columns(void) {
    for (size_t i = 0; i < COLUMNS; i++)
        printf("%s%s", i ? "\t" : "", columns[i]);
    putchar('\n');
}

int main(int argc, char **argv) {
    char problem[PCAP_ERRBUF_SIZE];
    if (argc != 2)
        errx(2, "usage: list_headers CAPTURE");
    pcap_t *capture = pcap_open_offline(argv[1], problem);
    if (!capture)
        errx(1, "%s", problem);
    struct pcap_pkthdr *record;
    struct packet packet = {.link_type = (uint16_t)pcap_datalink(capture)};
    print_columns();
    while (pcap_next_ex(capture, &record, &packet.data) == 1) {
        struct headers headers;
        packet.frame++;
        packet.captured = record->caplen;
        packet.length = record->len;
        decode_packet(&packet, &headers);
        print_headers(packet.frame, &headers);
    }
    pcap_close(capture);
    return 0;
}
