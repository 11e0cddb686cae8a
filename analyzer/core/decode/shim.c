/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that switches put between an Ethernet header and its payload: Cisco MetaData (security
 * group tags), VN-tag, E-tag (IEEE 802.1BR), FabricPath, PBB (IEEE 802.1ah), NSH (RFC 8300),
 * Arista's timestamps and MACsec (IEEE 802.1AE).
 *
 *   MetaData                      NSH                           MACsec
 *   OFFSET SIZE                   OFFSET SIZE                   OFFSET SIZE
 *   0      1    version 1         0      2    version, length   0      1    version, flags
 *   1      1    options           2      1    metadata type     1      1    short length
 *   2      4    each option       3      1    next protocol     2      4    packet number
 *   ..     2    EtherType         4      3    service path      6      8    channel, if SC
 *                                 7      1    service index     ..     2    EtherType
 *                                 8      ..   metadata          ..     16   ICV, at the end
 *
 * All but PBB add no step to the path: they differ between the directions of a connection, or only
 * one direction has them, and both must be one flow. shim_pass() bounds their number. */
#include "decode/step.h"

#define MACSEC_ICV 16 /* of the default cipher suites */

/* The EtherType at d->offset + `length`, behind a shim of that length. */
static enum next_header shim_ends(struct decoding *d, uint32_t length) {
    if (!tunnel_has(d, length + 2) || !shim_pass(d))
        return NEXT_END;
    d->offset += length + 2;
    return decode_ether_type(d, load_be16(d->data + d->offset - 2));
}

/* Options of 4 bytes: the security group tag is one. */
enum next_header decode_metadata(struct decoding *d, const uint8_t *metadata) {
    if (metadata[0] != 1)
        return stop(d, REASON_NOT_IP);
    if (metadata[1] == 0)
        return stop(d, REASON_TUNNEL_BAD);
    return shim_ends(d, 2 + metadata[1] * 4u);
}

/* Direction, destination and source interface. */
enum next_header decode_vn_tag(struct decoding *d, const uint8_t *tag) {
    (void)tag;
    return shim_ends(d, 4);
}

/* Priority, ingress and destination port of an extended bridge. */
enum next_header decode_e_tag(struct decoding *d, const uint8_t *tag) {
    (void)tag;
    return shim_ends(d, 6);
}

/* Forwarding tag and hop limit; the whole frame of the sender follows. */
enum next_header decode_fabric_path(struct decoding *d, const uint8_t *tag) {
    (void)tag;
    d->offset += 2;
    return shim_pass(d) ? NEXT_ETHERNET : NEXT_END;
}

/* Flags, service id in 24 bits; the frame of the customer follows. Both directions have the id. */
enum next_header decode_pbb(struct decoding *d, const uint8_t *tag) {
    d->offset += 4;
    return path_push(d->headers, PATH_PBB, load_be32(tag) & 0xffffff) ? NEXT_ETHERNET : NEXT_END;
}

enum next_header service_next(uint8_t protocol) {
    static const uint8_t next[] = {NEXT_END,      NEXT_IPV4, NEXT_IPV6,
                                   NEXT_ETHERNET, NEXT_NSH,  NEXT_MPLS};
    return protocol < sizeof next ? next[protocol] : NEXT_END;
}

/* The length is in words of 4 bytes, with the 8 bytes that each header has. */
enum next_header decode_nsh(struct decoding *d, const uint8_t *nsh) {
    uint32_t length = (nsh[1] & 0x3f) * 4u;
    if (nsh[0] >> 6 != 0 || !service_next(nsh[3]))
        return stop(d, REASON_NOT_IP);
    if (length < 8)
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, length) || !shim_pass(d))
        return NEXT_END;
    d->offset += length;
    return service_next(nsh[3]);
}

/* Subtype 1: timescale, format of the time (1: 8 bytes, 2: 6 bytes) and hardware, then the time. */
enum next_header decode_arista(struct decoding *d, const uint8_t *arista) {
    uint32_t format = arista[3] >> 4;
    if (load_be16(arista) != 1 || format < 1 || format > 2)
        return stop(d, REASON_NOT_IP);
    return shim_ends(d, format == 1 ? 12 : 10);
}

enum macsec_flag { /* IEEE 802.1AE, 9.5 */
                   MACSEC_VERSION = 0x80,
                   MACSEC_CHANNEL = 0x20,
                   MACSEC_SECRET = 0x0c, /* encrypted, or changed by the cipher suite */
};

/* A payload under 48 bytes has its length in the tag, because padding may follow the ICV. */
enum next_header decode_macsec(struct decoding *d, const uint8_t *tag) {
    uint32_t length = tag[0] & MACSEC_CHANNEL ? 14 : 6, room = d->end - d->offset;
    uint32_t payload = tag[1] & 0x3f;
    if (tag[0] & MACSEC_VERSION)
        return stop(d, REASON_NOT_IP);
    if (tag[0] & MACSEC_SECRET)
        return stop(d, REASON_ENCRYPTED);
    if (room < length + (payload ? payload : MACSEC_ICV) || payload == 1)
        return stop(d, REASON_TUNNEL_BAD);
    decoding_narrow(d, payload ? d->offset + length + payload : d->end - MACSEC_ICV);
    return shim_ends(d, length);
}
