/* SPDX-License-Identifier: Apache-2.0 */
/* Of datagrams, a prefix shows everything unless they are selected (application/selection.c). Of
 * TCP streams, the first bytes are needed, and where these begin may be in an earlier file: so all
 * segments near the first one of a direction are kept, and those that begin like a known protocol.
 * selection_pass() counts segments for which that was too little.
 *
 * The table of directions has no bounds to keep: if it is full, all entries are dropped, and more
 * is kept than needed. At last the packet is decoded without the rest: if that gives other headers,
 * because a decoder looks behind them, the whole packet is kept. */
#include "shard/payload.h"

#include <stdlib.h>
#include <string.h>

#include "application/application.h"
#include "base/bytes.h"
#include "common/block.h"
#include "common/hash.h"
#include "sequence/formats.h"
#include "update/update.h"

#define ENTRIES      (1u << 18)
#define ENTRIES_MOST (ENTRIES / 2)
#define BEFORE       (STREAM_BYTES + 65536u) /* bytes; PAST_BYTES of the selection */
#define OTHER_BYTES  128u                    /* of a packet without an IP header */
#define BEGIN_BYTES  65536u                  /* bytes of payload, wherever they are in the stream */

struct direction_window {
    uint64_t hash;  /* 0: unused */
    uint32_t first; /* sequence number of the first segment, or behind the SYN */
    uint32_t bytes; /* of payload so far, up to BEGIN_BYTES */
};

struct payload_window {
    struct direction_window *entries;
    uint32_t used;
    uint64_t seed[4];
};

struct payload_window *payload_window_open(void) {
    struct payload_window *window = calloc(1, sizeof *window);
    if (window && !(window->entries = calloc(ENTRIES, sizeof *window->entries))) {
        free(window);
        return NULL;
    }
    if (window)
        hash_seed_fill(window->seed, sizeof window->seed / sizeof *window->seed);
    return window;
}

void payload_window_close(struct payload_window *window) {
    if (window)
        free(window->entries);
    free(window);
}

/* The hash of a direction; 64 bits stand for it, because a collision only moves its window. */
static uint64_t hash_of(const struct payload_window *window, const struct headers *headers) {
    uint64_t words[4], hash = window->seed[0] ^ headers->ports;
    memcpy(words, headers->source, 16);
    memcpy(words + 2, headers->destination, 16);
    for (unsigned i = 0; i < 4; i++)
        hash = hash_fold(hash ^ words[i], window->seed[1 + i % 3]);
    return hash + !hash;
}

static struct direction_window *direction_of(struct payload_window *window,
                                             const struct headers *headers) {
    uint64_t hash = hash_of(window, headers);
    if (window->used >= ENTRIES_MOST) {
        memset(window->entries, 0, ENTRIES * sizeof *window->entries);
        window->used = 0;
    }
    uint32_t place = hash % ENTRIES;
    while (window->entries[place].hash && window->entries[place].hash != hash)
        place = (place + 1) % ENTRIES;
    struct direction_window *direction = &window->entries[place];
    if (!direction->hash) {
        *direction = (struct direction_window){.hash = hash, .first = headers->tcp.sequence};
        window->used++;
    }
    return direction;
}

/* Returns whether a segment may be among the first bytes of its stream. */
static bool is_near_begin(struct payload_window *window, const struct headers *headers) {
    struct direction_window *direction = direction_of(window, headers);
    if (headers->tcp.flags & TCP_SYN) {
        direction->first = headers->tcp.sequence + 1;
        direction->bytes = 0;
        return true;
    }
    uint32_t position = headers->tcp.sequence - direction->first;
    bool near = direction->bytes < BEGIN_BYTES || position + BEFORE < BEFORE + STREAM_BYTES;
    if (direction->bytes < BEGIN_BYTES)
        direction->bytes +=
            headers->payload_length < BEGIN_BYTES ? headers->payload_length : BEGIN_BYTES;
    return near;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Returns how many bytes of the payload are needed. */
static uint32_t payload_needed(struct payload_window *window, const struct headers *headers) {
    uint32_t captured = headers->payload_captured;
    if (headers->layer < LAYER_TRANSPORT)
        return 0;
    if (headers->protocol == IP_TCP) {
        bool near = !headers->fragment && is_near_begin(window, headers);
        if (near || selection_begins(headers) || payload_is_corrupt(headers))
            return captured;
        bool block = captured >= BLOCK_HEADER_BYTES && load_be32(headers->payload) == BLOCK_MAGIC;
        return block ? SEQUENCE_BYTES_MOST : 0;
    }
    if (headers->protocol != IP_UDP)
        return captured;
    if (payload_is_corrupt(headers) || (!headers->fragment && selection_datagram(headers).length))
        return captured;
    return least(captured, SEQUENCE_BYTES_MOST);
}

/* Returns whether a packet that was cut has the same headers, and begins like the same protocols.
 */
static bool is_decoded_alike(const struct packet *packet, const struct headers *headers,
                             uint32_t kept) {
    struct packet short_packet = *packet;
    struct headers short_headers, whole = *headers;
    short_packet.captured = kept;
    memset(&short_headers, 0, sizeof short_headers);
    decode_packet(&short_packet, &short_headers);
    bool udp = headers->protocol == IP_UDP && headers->layer == LAYER_TRANSPORT;
    if (udp && !headers->fragment &&
        !selection_datagram(headers).length != !selection_datagram(&short_headers).length)
        return false;
    whole.payload_captured = short_headers.payload_captured;
    whole.payload = short_headers.payload;
    whole.undecoded = short_headers.undecoded;
    return !memcmp(&whole, &short_headers, sizeof whole);
}

/* A packet that is no IP packet is only counted, which split.c has done. */
static uint32_t other_kept(const struct packet *packet) {
    struct packet short_packet = *packet;
    struct headers headers = {0};
    if (packet->captured <= OTHER_BYTES)
        return packet->captured;
    short_packet.captured = OTHER_BYTES;
    decode_packet(&short_packet, &headers);
    return headers.layer < LAYER_NETWORK ? OTHER_BYTES : packet->captured;
}

uint32_t payload_kept(struct payload_window *window, const struct packet *packet,
                      const struct headers *headers, bool *cut) {
    *cut = false;
    if (headers->layer < LAYER_NETWORK)
        return other_kept(packet);
    if (!headers->payload)
        return packet->captured;
    uint32_t needed = least(payload_needed(window, headers), headers->payload_captured);
    uint32_t kept = (uint32_t)(headers->payload - packet->data) + needed;
    if (kept >= packet->captured || !is_decoded_alike(packet, headers, kept))
        return packet->captured;
    *cut = needed < headers->payload_captured && headers->protocol == IP_TCP &&
           headers->layer == LAYER_TRANSPORT;
    return kept;
}
