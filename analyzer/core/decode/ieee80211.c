/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE 802.11 data frames, alone or behind a radiotap, PPI, Prism or AVS header.
 *
 *   Data frame (IEEE 802.11 section 9.3.2)
 *   OFFSET SIZE
 *   0      2    frame control: version, type, subtype, flags
 *   2      2    duration
 *   4      18   three addresses
 *   22     2    sequence control
 *   24     6    fourth address, if to-DS and from-DS are set
 *   ..     2    QoS control, if the subtype has it; 4 more for HT control
 *   ..     ..   802.2 header (RFC 1042), or subframes of an A-MSDU
 *
 * The first packet of an A-MSDU is decoded; encrypted frames are not. A station that gets no ACK
 * sends the frame again with the retry bit (10.3.4.3), so that a monitor may store it twice. Fields
 * of 802.11, radiotap and PPI are little-endian. A frame whose FCS the receiver found wrong has
 * wrong bytes anywhere, and is not decoded; monitor mode stores such frames. The FCS must be
 * removed if the capture header declares it, because otherwise it would count as payload. */
#include "decode/step.h"

#define LINKTYPE_WLAN    105
#define FCS_BYTES        4
#define MANAGEMENT_BYTES 24 /* header */

enum frame_control { /* IEEE 802.11, 9.2.4.1, as a little-endian word */
                     CONTROL_VERSION = 0x0003,
                     CONTROL_TYPE = 0x000c,
                     CONTROL_DATA = 0x0008,
                     CONTROL_SUBTYPE = 0x00f0,
                     CONTROL_NO_DATA = 0x0040,
                     CONTROL_QOS = 0x0080,
                     CONTROL_BOTH_DS = 0x0300,
                     CONTROL_RETRY = 0x0800,
                     CONTROL_PROTECTED = 0x4000,
                     CONTROL_ORDER = 0x8000,
};

/* Four addresses between access points; the order bit adds an HT control field to QoS frames. */
static uint32_t wlan_header_length(uint16_t control) {
    uint32_t length = 24;
    if ((control & CONTROL_BOTH_DS) == CONTROL_BOTH_DS)
        length += 6;
    if (control & CONTROL_QOS)
        length += control & CONTROL_ORDER ? 6 : 2;
    return length;
}

static bool wlan_is_aggregate(const uint8_t *frame, uint16_t control) {
    uint32_t qos = (control & CONTROL_BOTH_DS) == CONTROL_BOTH_DS ? 30 : 24;
    return control & CONTROL_QOS && frame[qos] & 0x80;
}

/* An A-MSDU holds several packets, each with addresses and a length; the first one is decoded. */
static enum next_header decode_aggregate(struct decoding *d) {
    if (!link_has(d, ETHERNET_HEADER))
        return NEXT_END;
    d->offset += ETHERNET_HEADER;
    return decode_802_3(d, load_be16(d->data + d->offset - 2));
}

static enum decode_reason wlan_refusal(uint16_t control) {
    if (control & CONTROL_VERSION)
        return REASON_LINK_BAD;
    if ((control & CONTROL_TYPE) != CONTROL_DATA)
        return REASON_WLAN_NOT_DATA;
    if (control & CONTROL_NO_DATA)
        return REASON_WLAN_NO_DATA;
    return control & CONTROL_PROTECTED ? REASON_WLAN_PROTECTED : REASON_NONE;
}

static void note_wlan(struct decoding *d, uint16_t control) {
    d->headers->wlan = control & CONTROL_RETRY ? WLAN_RETRY : WLAN_DATA;
    d->headers->wlan_offset = d->offset;
}

/* Stations that join or leave: answers to (re)associations, disassociation, authentication,
 * deauthentication (9.3.3). */
static bool is_membership(uint16_t control) {
    if (control & (CONTROL_TYPE | CONTROL_VERSION | CONTROL_PROTECTED))
        return false;
    return 0x1c0a >> ((control & CONTROL_SUBTYPE) >> 4) & 1;
}

/* `padded`: the driver padded the header to a multiple of 4, as radiotap shows. */
static enum next_header decode_frame(struct decoding *d, const uint8_t *frame, uint16_t control,
                                     bool padded) {
    d->headers->reason = wlan_refusal(control);
    if (d->outer.kind == OUTER_NONE &&
        (d->headers->reason == REASON_NONE || d->headers->reason == REASON_WLAN_PROTECTED))
        note_wlan(d, control);
    if (is_membership(control) && d->outer.kind == OUTER_NONE) {
        d->headers->control_offset = d->offset + MANAGEMENT_BYTES;
        d->headers->control_is_wlan = true;
    }
    if (d->headers->reason != REASON_NONE)
        return NEXT_END;
    uint32_t length = wlan_header_length(control);
    length = padded ? (length + 3) & ~3u : length;
    if (!link_has(d, length))
        return NEXT_END;
    if (d->outer.kind == OUTER_NONE)
        d->headers->link_hash = link_hash(frame + 4);
    d->headers->layer = LAYER_LINK;
    d->offset += length;
    if (wlan_is_aggregate(frame, control))
        return decode_aggregate(d);
    return d->offset == d->end ? stop(d, REASON_WLAN_NO_DATA) : NEXT_LLC;
}

enum next_header decode_wlan(struct decoding *d, const uint8_t *frame) {
    return decode_frame(d, frame, load_le16(frame), false);
}

/* Some access points exchange both bytes in the frames of a tunnel. */
enum next_header decode_wlan_swapped(struct decoding *d, const uint8_t *frame) {
    return decode_frame(d, frame, load_be16(frame), false);
}

enum next_header decode_wlan_padded(struct decoding *d, const uint8_t *frame) {
    return decode_frame(d, frame, load_le16(frame), true);
}

/* The frame at d->offset ends with its checksum. */
static void drop_fcs(struct decoding *d) {
    if (d->end - d->offset >= FCS_BYTES)
        decoding_narrow(d, d->end - FCS_BYTES);
    d->is_narrowed = false; /* by no length field */
}

enum radiotap_flag { RADIOTAP_FCS = 0x10, RADIOTAP_PADDED = 0x20, RADIOTAP_FCS_BAD = 0x40 };

struct radiotap {
    uint8_t flags;
    int8_t dbm; /* signal, 0 if unknown */
};

/* radiotap.org: fields are in the order of the bits of the first presence word (bit 31: one more
 * word), each on a boundary of its own size: an 8-byte time, flags, a 1-byte rate, a 4-byte channel
 * of 2-byte parts, 2 bytes of FHSS, the signal at the antenna. */
static struct radiotap read_radiotap(const uint8_t *radiotap, uint32_t length) {
    struct radiotap read = {0};
    uint32_t present = load_le32(radiotap + 4);
    uint32_t at = 8;
    for (uint32_t word = present; word & 0x80000000u; at += 4) {
        if (at + 4 > length)
            return read;
        word = load_le32(radiotap + at);
    }
    if (present & 1)
        at = ((at + 7) & ~7u) + 8;
    if (present & 2 && at < length)
        read.flags = radiotap[at];
    at += (present & 2) / 2 + (present & 4) / 4;
    if (present & 8)
        at = ((at + 1) & ~1u) + 4;
    if (present & 16)
        at += 2;
    if (present & 32 && at < length)
        read.dbm = (int8_t)radiotap[at];
    return read;
}

enum next_header decode_radiotap(struct decoding *d, const uint8_t *radiotap) {
    uint32_t length = load_le16(radiotap + 2);
    if (radiotap[0] != 0 || length < 8)
        return stop(d, REASON_LINK_BAD);
    if (!link_has(d, length))
        return NEXT_END;
    struct radiotap read = read_radiotap(radiotap, length);
    d->offset += length;
    d->headers->wlan_dbm = read.dbm;
    if (read.flags & RADIOTAP_FCS_BAD)
        return stop(d, REASON_FCS_BAD);
    if (read.flags & RADIOTAP_FCS)
        drop_fcs(d);
    return read.flags & RADIOTAP_PADDED ? NEXT_WLAN_PADDED : NEXT_WLAN;
}

enum ppi_flag { PPI_FCS = 1, PPI_FCS_BAD = 4 };

/* Returns the flags of PPI's 802.11-Common field (type 2), 0 without one. */
static uint16_t ppi_flags(const uint8_t *ppi, uint32_t length) {
    uint32_t at = 8;
    while (at + 4 <= length) {
        uint32_t size = load_le16(ppi + at + 2);
        if (load_le16(ppi + at) == 2 && size >= 10 && at + 4 + 10 <= length)
            return load_le16(ppi + at + 12);
        at += 4 + size;
        if (ppi[1] & 1) /* fields are aligned to 4 bytes */
            at = (at + 3) & ~3u;
    }
    return 0;
}

enum next_header decode_ppi(struct decoding *d, const uint8_t *ppi) {
    uint32_t length = load_le16(ppi + 2);
    if (ppi[0] != 0 || length < 8)
        return stop(d, REASON_LINK_BAD);
    if (load_le32(ppi + 4) != LINKTYPE_WLAN)
        return stop(d, REASON_LINK_TYPE);
    if (!link_has(d, length))
        return NEXT_END;
    uint16_t flags = ppi_flags(ppi, length);
    d->offset += length;
    if (flags & PPI_FCS_BAD)
        return stop(d, REASON_FCS_BAD);
    if (flags & PPI_FCS)
        drop_fcs(d);
    return NEXT_WLAN;
}

/* A Prism header begins with a message code and its own length in the sender's byte order. Some
 * drivers put an AVS header in its place: 0x80211001 or ...2, and a big-endian length. */
enum next_header decode_prism(struct decoding *d, const uint8_t *prism) {
    bool avs = load_be32(prism) >> 12 == 0x80211;
    uint32_t length = avs ? load_be32(prism + 4) : load_le32(prism + 4);
    if (length < 8)
        return stop(d, REASON_LINK_BAD);
    if (!link_has(d, length))
        return NEXT_END;
    d->offset += length;
    return NEXT_WLAN;
}
