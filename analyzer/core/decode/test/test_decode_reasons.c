/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes packets made by hand (the tables of *_rows.h): every reason not to be decoded, each
 * length check at its least length and one byte below, each bound on depth at its last level and
 * one above. If a reason has no row, the test fails. */
#include <stdarg.h>
#include <string.h>

#include "common/test/check.h"
#include "decode/headers.h"
#include "decode/test/encapsulation_rows.h"
#include "decode/test/ip_rows.h"
#include "decode/test/link_rows.h"
#include "decode/test/transport_rows.h"
#include "decode/test/tunnel_rows.h"
#include "decode/test/udp_tunnel_rows.h"

/* One option alone: its shortest and longest valid lengths. One byte beside, it is another one. */
static const struct option_lengths {
    uint8_t kind, least, most;
    uint16_t seen;
} option_lengths[] = {
    {2, 4, 4, TCP_OPTION_MSS},
    {3, 3, 3, TCP_OPTION_WINDOW_SCALE},
    {4, 2, 2, TCP_OPTION_SACK_PERMITTED},
    {5, 2, 2, TCP_OPTION_OTHER},
    {5, 10, 10, TCP_OPTION_SACK},
    {5, 18, 18, TCP_OPTION_SACK},
    {5, 34, 34, TCP_OPTION_SACK},
    {6, 6, 6, TCP_OPTION_OTHER},
    {8, 10, 10, TCP_OPTION_TIMESTAMPS},
    {19, 18, 18, TCP_OPTION_SIGNATURE},
    {29, 4, 40, TCP_OPTION_SIGNATURE},
    {30, 3, 40, TCP_OPTION_MPTCP},
    {34, 2, 18, TCP_OPTION_FAST_OPEN},
    {254, 4, 40, TCP_OPTION_FAST_OPEN}, /* f9 89: fast open before it had a kind */
    {253, 4, 4, TCP_OPTION_OTHER},
};

#define ROWS(table)                                                                                \
    { #table, table, sizeof table / sizeof *table }

static const struct {
    const char *name;
    const struct row *rows;
    size_t count;
} tables[] = {
    ROWS(link_rows),   ROWS(wlan_rows), ROWS(other_link_rows), ROWS(encapsulation_rows),
    ROWS(tunnel_rows), ROWS(shim_rows), ROWS(ip_tunnel_rows),  ROWS(udp_tunnel_rows),
    ROWS(ipv4_rows),   ROWS(ipv6_rows), ROWS(transport_rows),  ROWS(option_rows),
    ROWS(icmp_rows),
};
#define TABLES (sizeof tables / sizeof *tables)

static unsigned failures;
static bool reasons_met[REASON_COUNT];

#define TEXT_MOST 512

/* The text goes on. */
__attribute__((format(printf, 2, 3))) static void say(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    CHECK(vsnprintf(text + used, TEXT_MOST - used, format, arguments) < (int)(TEXT_MOST - used));
    va_end(arguments);
}

static void describe_path(char *text, const struct headers *headers) {
    static const char *const kinds[] = {
        [PATH_VLAN] = "vlan",     [PATH_MPLS] = "mpls",     [PATH_PPPOE] = "pppoe",
        [PATH_GRE] = "gre",       [PATH_IPIP] = "ipip",     [PATH_VXLAN] = "vxlan",
        [PATH_GENEVE] = "geneve", [PATH_PBB] = "pbb",       [PATH_ETHER_IP] = "etherip",
        [PATH_PIM] = "pim",       [PATH_GTP_U] = "gtp-u",   [PATH_TEREDO] = "teredo",
        [PATH_AYIYA] = "ayiya",   [PATH_CAPWAP] = "capwap", [PATH_LISP] = "lisp",
        [PATH_AMT] = "amt",       [PATH_L2TP] = "l2tp",
    };
    for (unsigned i = 0; i < headers->path_depth; i++)
        say(text, "%s %u, ", kinds[headers->path[i].kind], headers->path[i].id);
}

static void describe_tcp(char *text, const struct tcp_header *tcp) {
    if (tcp->options)
        say(text, " options %x", tcp->options);
    if (tcp->mss)
        say(text, " mss %u", tcp->mss);
    if (tcp->window_scale)
        say(text, " scale %u", tcp->window_scale);
    if (tcp->options & TCP_OPTION_TIMESTAMPS)
        say(text, " times %u/%u", tcp->timestamp_value, tcp->timestamp_echo);
    if (tcp->sack_count)
        say(text, " sack");
    for (unsigned i = 0; i < tcp->sack_count; i++)
        say(text, " %u-%u", tcp->sack[i].start, tcp->sack[i].end);
}

static void describe_icmp(char *text, const struct icmp_header *icmp) {
    if (icmp->identifier)
        say(text, " echo %u", icmp->identifier);
    if (icmp->mtu)
        say(text, " mtu %u", icmp->mtu);
    if (icmp->quotes)
        say(text, " quotes p%u %u>%u #%u", icmp->quoted_protocol, icmp->quoted_source_port,
            icmp->quoted_destination_port, icmp->quoted_sequence);
}

static void describe_transport(char *text, const struct headers *headers) {
    say(text, " t%u", headers->transport_header_length);
    if (headers->protocol == 6)
        describe_tcp(text, &headers->tcp);
    if (headers->protocol == 1 || headers->protocol == 58)
        describe_icmp(text, &headers->icmp);
}

/* Version @ offset, lengths of header + payload, protocol, ports, transport header's length,
 * fragment's place, bytes of payload captured unless all were / sent unless they are the rest. */
static void describe_network(char *text, const struct headers *headers) {
    uint32_t rest =
        headers->ip_length - headers->ip_header_length - headers->transport_header_length;
    say(text, "ipv%u@%u %u+%u p%u", headers->ip_version, headers->outer_length,
        headers->ip_header_length, headers->ip_length - headers->ip_header_length,
        headers->protocol);
    if (headers->ports_known)
        say(text, " %u>%u", headers->source_port, headers->destination_port);
    if (headers->layer == LAYER_TRANSPORT)
        describe_transport(text, headers);
    if (headers->fragment)
        say(text, " fragment %u+%u%s", headers->fragment_offset, headers->fragment_length,
            headers->more_fragments ? " more" : "");
    if (headers->atomic_fragment)
        say(text, " atomic");
    if (headers->payload_length != rest || headers->payload_captured != rest)
        say(text, " payload %u", headers->payload_captured);
    if (headers->payload_length != rest)
        say(text, "/%u", headers->payload_length);
    if (headers->length_over_record)
        say(text, " record cut");
}

/* The reason unless all was decoded, and the headers that were read. */
static void describe(char *text, const struct headers *headers) {
    *text = '\0';
    if (headers->reason != REASON_NONE)
        say(text, "%s%s", decode_reason_name(headers->reason), headers->layer ? " " : "");
    describe_path(text, headers);
    if (headers->layer >= LAYER_NETWORK)
        describe_network(text, headers);
    else if (headers->layer == LAYER_LINK)
        say(text, "link");
}

static uint8_t digit_value(char digit) {
    const char *digits = "0123456789abcdef", *at = strchr(digits, digit);
    CHECK(digit && at);
    return (uint8_t)(at - digits);
}

/* Returns the bytes of the digits, and sets those on the wire. */
static uint32_t bytes_from_digits(const char *digits, uint8_t *bytes, uint32_t *wire) {
    uint32_t count = 0;
    for (; *digits && !strchr("+-", *digits); digits++) {
        if (*digits == ' ')
            continue;
        uint8_t value = digit_value(*digits);
        if (count % 2)
            bytes[count / 2] |= value;
        else
            bytes[count / 2] = (uint8_t)(value << 4);
        count++;
    }
    CHECK(count % 2 == 0);
    *wire = count / 2 + (uint32_t)atoi(digits);
    return count / 2;
}

static void check_addresses(bool six, const uint8_t *source, const uint8_t *destination) {
    static const uint8_t addresses[2][2][16] = {
        {{10, 0, 0, 1}, {10, 0, 0, 2}},
        {{0xfd, [15] = 1}, {0xfe, [15] = 2}},
    };
    CHECK(memcmp(source, addresses[six][0], 16) == 0);
    CHECK(memcmp(destination, addresses[six][1], 16) == 0);
}

/* What the macros above write into every IP header. */
static void check_network(const struct headers *headers) {
    bool six = headers->ip_version == 6;
    check_addresses(six, headers->source, headers->destination);
    CHECK_INT(headers->traffic_class, 0xb8);
    CHECK_INT(headers->ttl, 0x40);
    CHECK_INT(headers->identification, !six                                            ? 1
                                       : headers->fragment || headers->atomic_fragment ? 7
                                                                                       : 0);
}

static uint32_t number_at(const uint8_t *bytes, unsigned size) {
    uint32_t number = 0;
    while (size--)
        number = number << 8 | *bytes++;
    return number;
}

static void check_tcp(const struct tcp_header *tcp, const uint8_t *bytes) {
    CHECK_INT(tcp->sequence, number_at(bytes + 4, 4));
    CHECK_INT(tcp->acknowledgment, number_at(bytes + 8, 4));
    CHECK_INT(tcp->flags, number_at(bytes + 12, 2) % 0x1000);
    CHECK_INT(tcp->window, number_at(bytes + 14, 2));
}

/* Lengths and checksums as in the bytes of the transport header. */
static void check_transport(const struct headers *headers, const uint8_t *bytes) {
    bool tcp = headers->protocol == 6, udp = headers->protocol == 17;
    bool udp_lite = headers->protocol == 136;
    CHECK_INT(headers->udp_length, udp ? number_at(bytes + 4, 2) : 0);
    CHECK_INT(headers->transport_checksum, tcp               ? number_at(bytes + 16, 2)
                                           : udp || udp_lite ? number_at(bytes + 6, 2)
                                                             : 0);
    if (tcp)
        check_tcp(&headers->tcp, bytes);
    if ((headers->protocol == 1 || headers->protocol == 58) && headers->icmp.quotes)
        check_addresses(headers->ip_version == 6, headers->icmp.quoted_source,
                        headers->icmp.quoted_destination);
}

/* What does not hold is 0. */
static void check_absent(const struct headers *headers) {
    if (!headers->ports_known)
        CHECK(headers->source_port == 0 && headers->destination_port == 0);
    if (headers->layer < LAYER_TRANSPORT)
        CHECK(headers->transport_header_length == 0 && headers->transport_checksum == 0 &&
              headers->udp_length == 0);
    if (!headers->fragment)
        CHECK(!headers->more_fragments && headers->fragment_offset == 0 &&
              headers->fragment_length == 0);
}

/* The payload lies within the packet; of a layer that was not reached nothing is left. */
static void check_fields(const struct headers *headers, const uint8_t *bytes, uint32_t size) {
    if (headers->layer >= LAYER_NETWORK) {
        CHECK(headers->payload >= bytes);
        CHECK(headers->payload + headers->payload_captured <= bytes + size);
        check_network(headers);
        check_absent(headers);
        if (headers->layer == LAYER_TRANSPORT)
            check_transport(headers, bytes + headers->outer_length + headers->ip_header_length);
        return;
    }
    const uint8_t *byte = &headers->ip_version, *end = (const uint8_t *)&headers->link_hash;
    while (byte < end)
        CHECK_INT(*byte++, 0);
}

/* Into headers that hold another packet's; the bytes in memory of exactly their size. */
static void decode_digits(const struct row *row, struct headers *headers) {
    uint8_t *space = malloc(strlen(row->bytes) / 2 + 1);
    CHECK(space);
    uint32_t wire, size = bytes_from_digits(row->bytes, space, &wire);
    uint8_t *bytes = malloc(size + !size);
    CHECK(bytes);
    memcpy(bytes, space, size);
    memset(headers, 0xa5, sizeof *headers);
    decode_packet(
        &(struct packet){
            .data = bytes, .captured = size, .length = wire, .link_type = row->link_type},
        headers);
    check_fields(headers, bytes, size);
    free(bytes);
    free(space);
}

static void check_row(const char *table, const struct row *row) {
    struct headers headers;
    char text[TEXT_MOST];
    decode_digits(row, &headers);
    describe(text, &headers);
    reasons_met[headers.reason] = true;
    CHECK_INT(headers.answer, decode_reason_answer(headers.reason));
    if (strcmp(text, row->decoded) == 0)
        return;
    fprintf(stderr, "%s, %s: \"%s\", expected \"%s\"\n", table, row->name, text, row->decoded);
    failures++;
}

/* TCP with 40 bytes of options: the one, and the end. */
static void check_option_length(unsigned kind, unsigned length, unsigned seen) {
    char digits[TEXT_MOST] = V4_TCP TCP("f");
    struct headers headers;
    say(digits, "%02x %02x", kind, length);
    for (unsigned at = 2; at < 40; at++)
        say(digits, " %02x", at >= length ? 0 : at % 2 ? 0x89 : 0xf9);
    decode_digits(&(struct row){.link_type = RAW, .bytes = digits}, &headers);
    CHECK_INT(headers.reason, REASON_NONE);
    CHECK_INT(headers.tcp.options, seen);
    CHECK_INT(headers.tcp.sack_count, seen == TCP_OPTION_SACK ? (length - 2) / 8 : 0);
}

static void check_option_lengths(const struct option_lengths *option) {
    check_option_length(option->kind, option->least, option->seen);
    check_option_length(option->kind, option->most, option->seen);
    if (option->least > 2)
        check_option_length(option->kind, option->least - 1, TCP_OPTION_OTHER);
    if (option->most < 40)
        check_option_length(option->kind, option->most + 1, TCP_OPTION_OTHER);
}

/* Every type with a packet behind its header, which only errors quote. */
static void check_icmp_type(bool six, unsigned type) {
    static const uint8_t echoes[2][2] = {{0, 8}, {128, 129}};
    static const uint8_t errors[2][5] = {{3, 4, 5, 11, 12}, {1, 2, 3, 4, 4}};
    char digits[TEXT_MOST] = "";
    struct headers headers;
    say(digits, "%s %02x 05 0000 0007 0000 %s", six ? V6("0040", "3a") : V4("0038", "01"), type,
        six ? QUOTED_6("001c") : QUOTED);
    decode_digits(&(struct row){.link_type = RAW, .bytes = digits}, &headers);
    CHECK_INT(headers.reason, REASON_NONE);
    CHECK_INT(headers.icmp.type, type);
    CHECK_INT(headers.icmp.code, 5);
    CHECK_INT(headers.icmp.identifier, memchr(echoes[six], (int)type, 2) ? 7 : 0);
    CHECK_INT(headers.icmp.quotes, memchr(errors[six], (int)type, 5) != NULL);
}

int main(void) {
    unsigned count = 0;
    for (size_t i = 0; i < TABLES; i++)
        for (size_t row = 0; row < tables[i].count; row++, count++)
            check_row(tables[i].name, &tables[i].rows[row]);
    for (size_t i = 0; i < sizeof option_lengths / sizeof *option_lengths; i++)
        check_option_lengths(&option_lengths[i]);
    for (unsigned type = 0; type < 2 * 256; type++)
        check_icmp_type(type >= 256, type % 256);
    CHECK_INT(failures, 0);
    for (unsigned reason = 0; reason < REASON_COUNT; reason++)
        if (!reasons_met[reason])
            failures += fprintf(stderr, "no row for %s\n", decode_reason_name(reason)) > 0;
    CHECK_INT(failures, 0);
    printf("    %u packets, %u reasons\n", count, REASON_COUNT);
    return 0;
}
