/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: a packet from any bytes. The link type and the number of bytes that the snap
 * length cut off, two bytes each (big-endian), precede the packet. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "decode/headers.h"

static void check_path(const struct headers *h) {
    assert(h->path_depth <= PATH_DEPTH_MAX);
    for (int i = 0; i < h->path_depth; i++)
        assert(h->path[i].kind < PATH_KINDS);
}

static void check_answer(const struct headers *h) {
    assert(h->reason < REASON_COUNT);
    assert(h->answer == decode_reason_answer(h->reason));
    assert(h->layer <= LAYER_TRANSPORT);
    assert(h->layer >= LAYER_NETWORK || h->reason != REASON_NONE);
    assert(h->layer >= LAYER_NETWORK || h->ip_version == 0);
}

/* ARCNET and multilink frame relay carry a packet in several frames. */
static bool has_parts(uint16_t link_type) {
    return link_type == 7 || link_type == 129 || link_type == 182;
}

static void check_lengths(const struct packet *packet, const struct headers *h) {
    assert(h->payload >= packet->data);
    assert(h->payload + h->payload_captured <= packet->data + packet->captured);
    assert(h->payload_captured <= h->payload_length);
    assert((uint64_t)h->outer_length + h->ip_length <= packet->length || h->length_over_record ||
           has_parts(packet->link_type));
    assert(h->ip_header_length <= h->ip_length);
    assert(h->ip_header_length + h->transport_header_length + h->payload_length <= h->ip_length);
    assert(h->fragment_length <= h->ip_length);
    assert(h->ip_version == 4 || h->ip_version == 6);
}

static void check_transport(const struct headers *h) {
    assert(h->layer < LAYER_TRANSPORT || h->fragment_offset == 0);
    assert(h->layer < LAYER_TRANSPORT || h->transport_header_length >= 8);
    if (h->layer == LAYER_TRANSPORT && h->protocol == 6)
        assert(h->tcp.sack_count <= SACK_BLOCKS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4 || size > 1 << 20)
        return 0;
    uint32_t captured = (uint32_t)size - 4;
    uint8_t *bytes = malloc(captured ? captured : 1); /* so that any byte past it is found */
    if (!bytes)
        return 0;
    memcpy(bytes, data + 4, captured);
    struct packet packet = {.data = bytes,
                            .captured = captured,
                            .length = captured + load_be16(data + 2),
                            .link_type = load_be16(data)};
    struct headers headers;
    decode_packet(&packet, &headers);
    check_path(&headers);
    check_answer(&headers);
    undecoded_protocol(&headers);
    if (headers.layer >= LAYER_NETWORK) {
        check_lengths(&packet, &headers);
        check_transport(&headers);
    }
    free(bytes);
    return 0;
}
