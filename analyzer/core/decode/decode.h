/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers of the decoder share: the packet while it is being decoded, and each layer's
 * entry.
 *
 * A layer decoder gets the offset of its header (<= captured). It either goes on to the layer above
 * or sets headers->reason; one that ends below LAYER_NETWORK always sets a reason.
 */
#ifndef WIRETALE_DECODING_H
#define WIRETALE_DECODING_H

#include <stddef.h>

#include "base/bytes.h"
#include "decode/headers.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

struct decoding {
    const uint8_t *data;
    uint32_t captured; /* bytes at hand up to `end` */
    struct headers *headers;
    uint32_t end; /* where the enclosing layer ends on the wire, counted from data */
};

typedef void layer_decoder(struct decoding *d, uint32_t offset);

#define IPV4_HEADER     20
#define IPV6_HEADER     40
#define EXTENSIONS_MAX  16 /* IPv6 extension headers followed in one packet */
#define ETHERNET_HEADER 14

/* Whether the bytes are at hand; if not, the reason is `cut` when the wire had them, else `absent`.
 */
static inline bool decoding_has(struct decoding *d, uint32_t offset, uint32_t bytes,
                                enum decode_reason cut, enum decode_reason absent) {
    uint64_t last = (uint64_t)offset + bytes;
    if (LIKELY(last <= d->captured))
        return true;
    d->headers->reason = last <= d->end ? cut : absent;
    return false;
}

/* The layer above ends at `end` (not after the layer below): what follows is padding or a trailer.
 */
static inline void decoding_narrow(struct decoding *d, uint32_t end) {
    d->end = end;
    if (d->captured > end)
        d->captured = end;
}

/* Sets the fields from one member up to another, which is kept, to 0. */
#define HEADERS_CLEAR(headers, from, until)                                                        \
    memset((uint8_t *)(headers) + offsetof(struct headers, from), 0,                               \
           offsetof(struct headers, until) - offsetof(struct headers, from))

/* The payload is what follows from offset, which may lie past the bytes at hand. */
static inline void decoding_payload(struct decoding *d, uint32_t offset) {
    uint32_t start = offset < d->captured ? offset : d->captured;
    d->headers->payload = d->data + start;
    d->headers->payload_captured = d->captured - start;
    d->headers->payload_length = d->end - offset;
}

static inline bool path_push(struct headers *headers, enum path_kind kind, uint32_t id) {
    if (headers->path_depth == PATH_DEPTH_MAX) {
        headers->reason = REASON_DEPTH;
        return false;
    }
    headers->path[headers->path_depth++] = (struct path_step){.kind = kind, .id = id};
    return true;
}

/* IPv6 extension headers; the length is that which their first two bytes say. */
bool extension_is_known(uint8_t protocol);
uint32_t extension_length(uint8_t protocol, const uint8_t *extension);

void decode_link(struct decoding *d, uint16_t link_type);
layer_decoder decode_ethernet; /* without the link hash: also inside tunnels */
layer_decoder decode_ppp;
void decode_ether_type(struct decoding *d, uint32_t offset, uint16_t type);
bool ether_type_is_known(uint16_t type);

layer_decoder decode_vlan;
layer_decoder decode_mpls;
layer_decoder decode_pppoe;
layer_decoder decode_ip_tunnel;  /* headers->protocol names the tunnel */
layer_decoder decode_udp_tunnel; /* headers->destination_port does */

layer_decoder decode_ip; /* by the version nibble */
layer_decoder decode_ipv4;
layer_decoder decode_ipv6;

layer_decoder decode_transport; /* sets the payload in any case */
layer_decoder decode_icmp;

#endif
