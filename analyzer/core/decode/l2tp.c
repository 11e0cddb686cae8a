/* SPDX-License-Identifier: Apache-2.0 */
/* L2TP: version 3 (RFC 3931) over IP and UDP with Ethernet inside, version 2 (RFC 2661) with PPP.
 *
 *   Version 3, over IP             Version 3, over UDP       Version 2
 *   OFFSET SIZE                    OFFSET SIZE               OFFSET SIZE
 *   0      4    session, 0 for     0      2    T, version 3  0      2    T L S O, version 2
 *               control            2      2    reserved      2      2    length, if L
 *   4      ..   cookie of 0, 4 or  4      4    session       ..     4    tunnel, session
 *               8 bytes            8      ..   cookie, as    ..     4    sequence, if S
 *   ..     0-4  sublayer                       over IP       ..     2    size of padding, if O
 *
 * Both ends agree on cookie and sublayer in control messages, which may be encrypted or not
 * captured. So an Ethernet frame counts where its EtherType and the length of its IP packet prove
 * it. Each end numbers its sessions, so that they do not distinguish flows. */
#include "decode/step.h"

#define COOKIE_MOST 12 /* bytes, with the sublayer */

enum l2tp_flag { /* RFC 2661 section 3.1 */
                 L2TP_CONTROL = 0x8000,
                 L2TP_LENGTH = 0x4000,
                 L2TP_SEQUENCE = 0x0800,
                 L2TP_OFFSET = 0x0200,
                 L2TP_VERSION = 0x000f,
};

static enum next_header session_ethernet(struct decoding *d) {
    for (uint32_t cookie = 0; cookie <= COOKIE_MOST; cookie += 4) {
        if (!frame_fills(d, d->offset + cookie))
            continue;
        d->offset += cookie;
        return path_push(d->headers, PATH_L2TP, 0) ? NEXT_ETHERNET : NEXT_END;
    }
    return stop(d, REASON_NOT_IP);
}

enum next_header decode_l2tp(struct decoding *d, const uint8_t *session) {
    if (!load_be32(session))
        return stop(d, REASON_NOT_IP);
    d->offset += 4;
    return session_ethernet(d);
}

/* Address and control bytes may be absent, as in any PPP. */
static enum next_header session_ppp(struct decoding *d) {
    if (!tunnel_has(d, 4))
        return NEXT_END;
    const uint8_t *ppp = d->data + d->offset;
    uint32_t skipped = ppp[0] == 0xff && ppp[1] == 0x03 ? 2 : 0;
    uint16_t protocol = load_be16(ppp + skipped);
    if ((protocol != 0x0021 && protocol != 0x0057) || !ip_fills(d, d->offset + skipped + 2, 0))
        return stop(d, REASON_NOT_IP);
    return path_push(d->headers, PATH_L2TP, 0) ? NEXT_PPP : NEXT_END;
}

static enum next_header decode_version_2(struct decoding *d, const uint8_t *l2tp, uint16_t flags) {
    uint32_t length = flags & L2TP_LENGTH ? load_be16(l2tp + 2) : d->end - d->offset;
    uint32_t header = (flags & L2TP_LENGTH ? 8u : 6u) + (flags & L2TP_SEQUENCE ? 4 : 0);
    if (flags & L2TP_OFFSET) {
        if (!tunnel_has(d, header + 2))
            return NEXT_END;
        header += 2u + load_be16(l2tp + header);
    }
    if (length < header || length > d->end - d->offset)
        return stop(d, REASON_TUNNEL_BAD);
    if (!tunnel_has(d, header))
        return NEXT_END;
    decoding_narrow(d, d->offset + length);
    d->offset += header;
    return session_ppp(d);
}

enum next_header decode_udp_l2tp(struct decoding *d, const uint8_t *l2tp) {
    uint16_t flags = load_be16(l2tp), version = flags & L2TP_VERSION;
    if (flags & L2TP_CONTROL || (version != 2 && version != 3))
        return stop(d, REASON_NOT_IP);
    if (version == 2)
        return decode_version_2(d, l2tp, flags);
    d->offset += 8;
    return session_ethernet(d);
}
