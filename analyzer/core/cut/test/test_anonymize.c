/* SPDX-License-Identifier: Apache-2.0 */
/* Every prefix of every packet of the samples, anonymized in memory of exactly its size: decoding
 * gives the same headers, and no address of the packet is left in its place. */
#include <string.h>

#include "common/test/check.h"
#include "common/test/folder.h"
#include "cut/anonymize.h"
#include "decode/headers.h"
#include "format/merged_input.h"

#define PREFIX_MOST 200u /* bytes */

static const uint8_t key[ADDRESS_KEY_SIZE] = "no key at all";
static struct address_map map;
static unsigned long packets, prefixes, addresses;

static bool is_kept(const uint8_t *address, size_t size) {
    uint8_t mapped[16];
    memcpy(mapped, address, size);
    address_map_replace(&map, mapped, size);
    return !memcmp(mapped, address, size);
}

static void check_address(const uint8_t *before, const uint8_t *after, size_t size) {
    uint8_t mapped[16];
    memcpy(mapped, before, size);
    address_map_replace(&map, mapped, size);
    CHECK(!memcmp(mapped, after, size));
    addresses += !is_kept(before, size);
}

static void check_same(const struct headers *before, const struct headers *after) {
    CHECK_INT(after->reason, before->reason);
    CHECK_INT(after->layer, before->layer);
    CHECK_INT(after->path_depth, before->path_depth);
    CHECK(!memcmp(after->path, before->path, before->path_depth * sizeof *before->path));
    CHECK_INT(after->undecoded, before->undecoded);
    if (before->layer < LAYER_NETWORK)
        return;
    CHECK_INT(after->protocol, before->protocol);
    CHECK_INT(after->ip_length, before->ip_length);
    CHECK_INT(after->ip_header_length, before->ip_header_length);
    CHECK_INT(after->fragment_offset, before->fragment_offset);
    CHECK_INT(after->identification, before->identification);
    CHECK_INT(after->payload_length, before->payload_length);
    CHECK_INT(after->payload_captured, before->payload_captured);
    size_t size = before->ip_version == 4 ? 4 : 16;
    check_address(before->source, after->source, size);
    check_address(before->destination, after->destination, size);
    if (before->layer < LAYER_TRANSPORT)
        return;
    CHECK_INT(after->ports, before->ports);
    if (before->protocol == IP_TCP) {
        CHECK_INT(after->tcp.options, before->tcp.options);
        CHECK_INT(after->tcp.sequence, before->tcp.sequence);
        CHECK_INT(after->tcp.sack_count, before->tcp.sack_count);
    }
    if (before->protocol == IP_ICMP || before->protocol == IP_ICMPV6) {
        CHECK_INT(after->icmp.quotes, before->icmp.quotes);
        CHECK_INT(after->icmp.mtu, before->icmp.mtu);
        CHECK_INT(after->icmp.quotes_sequence, before->icmp.quotes_sequence);
        CHECK_INT(after->icmp.quoted_source_port, before->icmp.quoted_source_port);
        if (before->icmp.quotes)
            check_address(before->icmp.quoted_source, after->icmp.quoted_source, size);
    }
}

/* A link header that is not listed step by step leaves nothing of its packet. */
static bool is_blank(const uint8_t *bytes, uint32_t size) {
    for (uint32_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static void check_prefix(const struct packet *whole, uint32_t size) {
    uint8_t *bytes = malloc(size + !size), *out = malloc(size + !size);
    struct packet prefix = *whole, anonymous = *whole;
    struct headers before, after;
    CHECK(bytes && out);
    memcpy(bytes, whole->data, size);
    prefix.data = bytes;
    prefix.captured = anonymous.captured = size;
    anonymous.data = out;
    anonymize_packet(&map, &prefix, out);
    decode_packet(&prefix, &before);
    decode_packet(&anonymous, &after);
    if (!is_blank(out, size))
        check_same(&before, &after);
    CHECK(headers_size(&prefix) <= size);
    prefixes++;
    free(bytes);
    free(out);
}

static void check_packet(const struct packet *packet) {
    uint32_t most = packet->captured < PREFIX_MOST ? packet->captured : PREFIX_MOST;
    packets++;
    check_prefix(packet, packet->captured);
    for (uint32_t size = 0; size < most && packets % 7 == 1; size++)
        check_prefix(packet, size);
}

static void check_file(const char *path) {
    struct packet read[16];
    struct error error;
    struct merged_input *input = merged_input_open(&path, NULL, 1, &error);
    for (size_t n; input && (n = merged_input_read(input, read, 16)) > 0;)
        for (size_t i = 0; i < n; i++)
            check_packet(&read[i]);
    merged_input_close(input);
}

/* Kept addresses, one-to-one in a whole /16, and prefixes. */
static void check_map(void) {
    static const uint8_t fixed[][4] = {{0, 0, 0, 0}, {255, 255, 255, 255}};
    static bool met[1 << 16];
    uint8_t mapped[4] = {224, 0, 0, 251}, mac[6] = {0x01, 0, 0x5e, 1, 2, 3};
    uint8_t multicast[16] = {0xff, 0x02, [15] = 1}, local[16] = {0xfe, 0x80, [15] = 1};
    CHECK(is_kept(fixed[0], 4) && is_kept(fixed[1], 4));
    address_map_replace(&map, mapped, 4);
    CHECK((mapped[0] & 0xf0) == 0xe0);
    address_map_replace(&map, mac, 6);
    CHECK((mac[0] & 3) == 1);
    address_map_replace(&map, multicast, 16);
    CHECK(multicast[0] == 0xff && multicast[1] == 2);
    address_map_replace(&map, local, 16);
    CHECK(local[0] == 0xfe && (local[1] & 0xc0) == 0x80);
    uint8_t first[4] = {192, 0, 0, 0};
    address_map_replace(&map, first, 4);
    for (unsigned i = 0; i < 1 << 16; i++) {
        uint8_t address[4] = {192, 0, (uint8_t)(i >> 8), (uint8_t)i};
        address_map_replace(&map, address, 4);
        CHECK(address[0] == first[0] && address[1] == first[1]);
        bool *place = &met[address[2] << 8 | address[3]];
        CHECK(!*place);
        *place = true;
    }
}

/* The digest of a payload that looks like a prefix of an address shows nothing of its pseudonym. */
static void check_digests(void) {
    static const uint8_t address[4] = {10, 1, 2, 3}, payload[] = {4, 31, 10, 1, 2, 2};
    unsigned equal = 0;
    for (uint8_t i = 0; i < 64; i++) {
        struct address_map other;
        uint8_t mapped[4], own[ADDRESS_KEY_SIZE] = {i};
        CHECK(address_map_open(&other, own));
        memcpy(mapped, address, sizeof mapped);
        address_map_replace(&other, mapped, sizeof mapped);
        bool flipped = (mapped[3] ^ address[3]) & 1;
        equal += (address_map_digest(&other, payload, sizeof payload) & 1) == flipped;
        address_map_close(&other);
    }
    CHECK(equal > 8 && equal < 56);
}

/* A TCP option at the end of the header that lacks its length: the payload behind it becomes 0,
 * though it would be a malformed length. */
static void check_last_option(void) {
    uint8_t bytes[14 + 20 + 24 + 8] = {[12] = 8, 0, 0x45, [17] = 52, [22] = 64, 6};
    uint8_t out[sizeof bytes];
    const uint32_t tcp = 34, payload = tcp + 24;
    memcpy(bytes + 26, "\x0a\1\2\3\x0a\1\2\4", 8);
    bytes[tcp + 12] = 6 << 4;
    memcpy(bytes + tcp + 20, "\1\1\1\3\1secret", 11);
    struct packet packet = {
        .data = bytes, .captured = sizeof bytes, .length = sizeof bytes, .link_type = 1};
    anonymize_packet(&map, &packet, out);
    CHECK(!memcmp(out + tcp + 20, "\1\1\1\3", 4));
    CHECK(is_blank(out + payload, 6));
    CHECK_INT(headers_size(&packet), payload);
}

int main(void) {
    CHECK(address_map_open(&map, key));
    check_map();
    check_digests();
    check_last_option();
    CHECK(each_capture("sample_pcaps", check_file));
    CHECK(each_capture("sample_pcaps/findings", check_file));
    CHECK(packets > 1000 && addresses > 1000);
    printf("%lu packets, %lu prefixes, %lu addresses\n", packets, prefixes, addresses);
    address_map_close(&map);
    return 0;
}
