/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the bytes of each header that must stay from the packet to an output that is 0, so that a
 * byte without a rule cannot leave. The headers are those of decode_steps(); a rule checks each
 * length itself, because a header can be cut or malformed. Checksums are computed last, from the
 * innermost header outwards, because an outer one covers the inner ones. */
#include "cut/anonymize.h"

#include <string.h>

#include "cut/ip_rules.h"

#define ETHER_ARP 0x0806
#define MAC_SIZE  6

/* IEEE 802.3, Linux cooked: the addresses are replaced, the rest stays. */
static void put_ethernet(struct draft *draft, uint32_t at) {
    put(draft, at, ETHERNET_HEADER);
    put_address(draft, at, MAC_SIZE);
    put_address(draft, at + MAC_SIZE, MAC_SIZE);
}

/* The address has its length in byte `length_at`, and 8 bytes of room. */
static void put_cooked(struct draft *draft, uint32_t at, uint32_t size, uint32_t length_at,
                       uint32_t address_at) {
    put(draft, at, size);
    clear(draft, at + address_at, 8);
    if (!has(draft, at, size))
        return;
    if (draft->in[at + length_at] == MAC_SIZE)
        put_address(draft, at + address_at, MAC_SIZE);
}

/* Frame control, duration, three addresses, sequence control, a fourth address if the frame goes
 * from and to the distribution system, then fields without addresses. In an A-MSDU the addresses
 * and the length of the first packet follow. */
static void put_wlan(struct draft *draft, const struct decode_step *step) {
    uint32_t at = step->offset, header = step->behind - at;
    put(draft, at, 4);
    if (header < 24)
        return;
    unsigned flags = draft->in[at + (step->kind == NEXT_WLAN_SWAPPED ? 0 : 1)];
    put(draft, at, header);
    for (uint32_t address = 4; address < 22; address += MAC_SIZE)
        put_address(draft, at + address, MAC_SIZE);
    if ((flags & 3) == 3)
        put_address(draft, at + 24, MAC_SIZE);
    if (header >=
        24 + ETHERNET_HEADER) /* an A-MSDU: 12 bytes of addresses and a length at the end */
        put_ethernet(draft, step->behind - ETHERNET_HEADER);
}

/* Hardware and protocol types, sizes, operation; then the addresses of sender and target. */
static void put_arp(struct draft *draft, uint32_t at) {
    static const uint8_t plain[] = {8, 0, 6, 4}; /* IPv4 over 48 bits */
    put(draft, at, 8);
    if (!has(draft, at, 28) || memcmp(draft->in + at + 2, plain, sizeof plain) != 0)
        return;
    put_address(draft, at + 8, MAC_SIZE);
    put_address(draft, at + 14, 4);
    put_address(draft, at + 18, MAC_SIZE);
    put_address(draft, at + 24, 4);
}

/* RFC 4380, 5.1.1: only the type and the sizes of an authentication stay, the rest is 0. */
static void put_teredo(struct draft *draft, const struct decode_step *step) {
    if (step->behind - step->offset >= 13 && load_be16(draft->in + step->offset) == 1)
        put(draft, step->offset, 4);
}

#define WHOLE UINT8_MAX

/* Bytes of other headers that stay: all if they have no addresses; of those with identities,
 * signatures, metadata or places the first. */
static const uint8_t kept_bytes[NEXT_COUNT] = {
    [NEXT_LOOPBACK] = WHOLE,
    [NEXT_SERIAL] = WHOLE,
    [NEXT_CISCO_HDLC] = WHOLE,
    [NEXT_PPP] = WHOLE,
    [NEXT_RADIOTAP] = WHOLE,
    [NEXT_LLC] = WHOLE,
    [NEXT_VLAN] = WHOLE,
    [NEXT_MPLS] = WHOLE,
    [NEXT_MPLS_PAYLOAD] = WHOLE,
    [NEXT_PPPOE] = WHOLE,
    [NEXT_METADATA] = WHOLE,
    [NEXT_VN_TAG] = WHOLE,
    [NEXT_E_TAG] = WHOLE,
    [NEXT_FABRIC_PATH] = WHOLE,
    [NEXT_PBB] = WHOLE,
    [NEXT_ARISTA] = WHOLE,
    [NEXT_GRE] = WHOLE,
    [NEXT_ETHER_IP] = WHOLE,
    [NEXT_PIM] = WHOLE,
    [NEXT_VXLAN] = WHOLE,
    [NEXT_VXLAN_GPE] = WHOLE,
    [NEXT_GTP_U] = WHOLE,
    [NEXT_PPI] = 8,
    [NEXT_PRISM] = 8,
    [NEXT_NSH] = 8,
    [NEXT_GENEVE] = 8,
    [NEXT_AYIYA] = 8,
    [NEXT_CAPWAP] = 8,
    [NEXT_LISP] = WHOLE,
    [NEXT_AMT] = 2,
    [NEXT_L2TP] = 4,
    [NEXT_UDP_L2TP] = 16,
};

/* GRE keeps its protocol also if that is not decoded. */
static void put_other(struct draft *draft, const struct decode_step *step) {
    uint32_t size = step->behind - step->offset, kept = kept_bytes[step->kind];
    if (step->kind == NEXT_GRE && size == 0)
        size = 4;
    put(draft, step->offset, kept == WHOLE || size < kept ? size : kept);
}

/* MACsec: the channel has a MAC address; the EtherType is at the end. */
static void put_macsec(struct draft *draft, const struct decode_step *step) {
    put(draft, step->offset, 6);
    if (step->behind >= step->offset + 8)
        put(draft, step->behind - 2, 2);
    if (step->behind >= step->offset + 16)
        put_address(draft, step->offset + 6, MAC_SIZE);
}

static void put_step(struct draft *draft, const struct decode_step *step) {
    uint32_t at = step->offset;
    switch (step->kind) {
    case NEXT_ETHERNET: put_ethernet(draft, at); break;
    case NEXT_COOKED: put_cooked(draft, at, 16, 5, 6); break;
    case NEXT_COOKED_2: put_cooked(draft, at, 20, 11, 12); break;
    case NEXT_WLAN:
    case NEXT_WLAN_PADDED:
    case NEXT_WLAN_SWAPPED: put_wlan(draft, step); break;
    case NEXT_MACSEC: put_macsec(draft, step); break;
    case NEXT_TEREDO: put_teredo(draft, step); break;
    case NEXT_IPV4:
    case NEXT_IPV6:
    case NEXT_TRANSPORT:
    case NEXT_ICMP: put_ip_step(draft, step); break;
    default: put_other(draft, step);
    }
}

/* The EtherType before the end of a link header, 0 if it has none. */
static uint16_t ether_type_before(const struct draft *draft, const struct decode_step *step) {
    uint32_t at = step->kind == NEXT_COOKED_2 ? step->offset : step->behind - 2;
    bool link = step->kind == NEXT_ETHERNET || step->kind == NEXT_COOKED ||
                step->kind == NEXT_COOKED_2 || step->kind == NEXT_VLAN || step->kind == NEXT_LLC;
    return link && step->behind >= step->offset + 2 && has(draft, at, 2) ? load_be16(draft->in + at)
                                                                         : 0;
}

/* The digest of the payload, which begins at `start`, in its last two bytes. */
static void put_digest(struct draft *draft, uint32_t start, uint32_t end) {
    end = end < draft->captured ? end : draft->captured;
    if (start + 2 > end)
        return;
    uint64_t digest = address_map_digest(draft->map, draft->in + start, end - start);
    memcpy(draft->out + end - 2, &digest, 2);
}

static uint32_t step_end(const struct draft *draft, const struct decode_step *step) {
    uint32_t end = step->behind > step->offset ? step->behind : transport_end(draft, step);
    return end < draft->captured ? end : draft->captured;
}

/* Writes the headers, and what belongs to them behind the last one: the addresses of ARP, those of
 * neighbor discovery, and the headers that an ICMP error quotes. Returns the last header with a
 * payload, NULL without one. */
static const struct decode_step *put_headers(struct draft *draft, const struct decode_step *steps,
                                             size_t count) {
    const struct decode_step *last = &steps[count - 1];
    for (size_t i = 0; i < count; i++)
        put_step(draft, &steps[i]);
    if (ether_type_before(draft, last) == ETHER_ARP)
        put_arp(draft, last->behind);
    else if (last->kind == NEXT_ICMP)
        put_icmp_body(draft, last);
    else if (last->behind > last->offset || last->kind == NEXT_TRANSPORT ||
             last->kind == NEXT_IP_TUNNEL || last->kind == NEXT_UDP_TUNNEL)
        return last;
    return NULL;
}

void anonymize_packet(struct address_map *map, const struct packet *packet, uint8_t *out) {
    struct decode_step steps[DECODE_STEPS_MAX];
    size_t count = decode_steps(packet, steps);
    struct draft draft = {map, packet->data, out, packet->captured, 0};
    memset(out, 0, packet->captured);
    /* A link header that is not listed can have an address anywhere. */
    if (!count || steps[0].offset != 0)
        return;
    const struct decode_step *last = put_headers(&draft, steps, count);
    if (last)
        put_digest(&draft, step_end(&draft, last), last->end);
    for (size_t i = count; i--;)
        put_checksum(&draft, steps, i);
}

uint32_t headers_size(const struct packet *packet) {
    struct decode_step steps[DECODE_STEPS_MAX];
    size_t count = decode_steps(packet, steps);
    struct draft draft = {NULL, packet->data, NULL, packet->captured, 0};
    if (!count)
        return 0;
    put_headers(&draft, steps, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t end = step_end(&draft, &steps[i]);
        draft.kept = end > draft.kept ? end : draft.kept;
    }
    return draft.kept;
}
