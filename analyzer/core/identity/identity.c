/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of payloads, and the numbers of wiretale's blocks. Equal bytes have equal digests in
 * every capture, so there is no random seed, and a sender could construct collisions. Words are
 * read in native byte order: digests must not be compared between machines. */
#include "identity/identity.h"

#include <string.h>

#include "common/block.h"

static uint64_t mix(uint64_t hash, uint64_t word) {
    __extension__ unsigned __int128 product =
        (unsigned __int128)(hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t finish(uint64_t hash) {
    return block_mix(hash) >> 1;
}

/* `count` enters the digest, so that trailing zeros matter. */
static uint64_t digest_of(const uint8_t *bytes, uint32_t count, uint64_t hash) {
    uint64_t word;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash + 1, word);
    }
    word = 0;
    memcpy(&word, bytes, count);
    return finish(mix(hash + count, word));
}

/* Digest of a segment without payload: all fields that its sender chose. SACK blocks count with
 * their lengths only, because middleboxes that change sequence numbers may shift their
 * positions. */
static uint64_t digest_of_tcp(const struct tcp_header *tcp) {
    uint64_t hash = mix((uint64_t)tcp->flags << 16 | tcp->window, tcp->timestamp_value);
    hash = mix(hash, (uint64_t)tcp->timestamp_echo << 8 | tcp->sack_count);
    for (unsigned i = 0; i < tcp->sack_count && i < SACK_BLOCKS_MAX; i++)
        hash = mix(hash, tcp->sack[i].end - tcp->sack[i].start);
    return finish(hash);
}

/* Echoes of different processes often have equal payload, so the ICMP type, code and identifier
 * enter its digest. Other protocols have a seed of 0. */
static uint64_t digest_seed(const struct headers *headers) {
    if (!is_icmp(headers->protocol) || headers->layer != LAYER_TRANSPORT)
        return 0;
    return (uint64_t)headers->icmp.type << 24 | (uint64_t)headers->icmp.code << 16 |
           headers->icmp.identifier;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The short digest is for a comparison with a capture of a smaller snap length. */
static void take_payload(struct packet_identity *identity, const struct headers *headers) {
    uint64_t seed = digest_seed(headers);
    uint32_t captured = identity->captured = headers->payload_captured;
    identity->digest = identity->digest_short = 0;
    if (!captured)
        return;
    identity->digest = digest_of(headers->payload, least(captured, DIGEST_MOST), seed);
    identity->digest_short = digest_of(headers->payload, least(captured, DIGEST_LEAST), seed);
}

static void take_tcp(struct packet_identity *identity, const struct headers *headers) {
    const struct tcp_header *tcp = &headers->tcp;
    identity->flags = tcp->flags;
    identity->sequence = tcp->sequence;
    identity->acknowledgment = tcp->acknowledgment;
    identity->mss = tcp->options & TCP_OPTION_MSS ? tcp->mss : 0;
    identity->has_timestamp = tcp->options & TCP_OPTION_TIMESTAMPS;
    identity->timestamp = tcp->timestamp_value;
    if (!headers->payload_length)
        identity->digest = identity->digest_short = digest_of_tcp(tcp);
}

/* Returns whether block `number` of a datagram begins where it should, as far as it was captured.
 */
static bool has_block(const struct headers *headers, const struct block_header *first,
                      uint32_t number) {
    struct block_header block;
    uint64_t at = (uint64_t)number * first->length;
    return at < headers->payload_length && at < headers->payload_captured &&
           block_read_header(&block, headers->payload + at, headers->payload_captured - at) &&
           block.run == first->run && block.stream == first->stream &&
           block.sequence == first->sequence + number;
}

/* A datagram longer than its first block contains more of them, because the capture point is
 * before segmentation offload. */
static void take_blocks(struct packet_identity *identity, const struct headers *headers) {
    struct block_header block;
    bool whole = headers->protocol == IP_UDP && !headers->fragment;
    identity->blocks = 0;
    if (!block_read_header(&block, headers->payload, headers->payload_captured))
        return;
    identity->run = block.run;
    identity->stream = block.stream;
    identity->block_sequence = block.sequence;
    identity->block_bytes = block.length;
    identity->blocks = 1;
    while (whole && identity->blocks < UINT16_MAX && has_block(headers, &block, identity->blocks))
        identity->blocks++;
}

void packet_identify(struct packet_identity *identity, const struct headers *headers) {
    identity->tcp = headers->protocol == IP_TCP && headers->layer == LAYER_TRANSPORT;
    take_payload(identity, headers);
    take_blocks(identity, headers);
    if (identity->tcp)
        take_tcp(identity, headers);
}

static void put_tcp(struct row *row, const struct packet_identity *identity) {
    row_set(row, packets_flags, identity->flags);
    row_set(row, packets_tcp_sequence, identity->sequence);
    row_set(row, packets_tcp_acknowledgment, identity->acknowledgment);
    row_set_if(row, packets_timestamp, identity->has_timestamp, identity->timestamp);
    row_set_if(row, packets_mss, identity->mss, identity->mss);
}

void identity_put(struct row *row, const struct packet_identity *identity,
                  const struct packet_info *packet, uint8_t ip_version) {
    row_set(row, packets_ttl, packet->ttl);
    row_set_if(row, packets_ip_id, ip_version == 4, packet->ip_id);
    row_set(row, packets_captured_bytes, identity->captured);
    row_set(row, packets_digest, (int64_t)identity->digest);
    row_set(row, packets_digest_short, (int64_t)identity->digest_short);
    if (identity->tcp)
        put_tcp(row, identity);
    if (!identity->blocks)
        return;
    row_set(row, packets_run, identity->run);
    row_set(row, packets_stream, identity->stream);
    row_set(row, packets_block, (int64_t)identity->block_sequence);
    row_set(row, packets_blocks, identity->blocks);
    row_set(row, packets_block_bytes, identity->block_bytes);
}
