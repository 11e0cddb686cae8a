/* SPDX-License-Identifier: Apache-2.0 */
/* Long headers (RFC 9000 section 17.2; RFC 8999 for versions that are not known). All lengths are
 * checked against both the captured bytes and the datagram; a header that the snap length cut
 * behind the connection IDs is read without its length. */
#include <stdio.h>

#include "base/bytes.h"
#include "quic/quic_header.h"
#include "quic/quic_reader.h"

#define LONG_HEADER 0x80
#define FIXED_BIT   0x40

static bool read_id(struct cursor *cursor, size_t size, struct quic_id *id) {
    const uint8_t *bytes = cursor->at;
    if (size > QUIC_ID_MAX || !read_bytes(cursor, size))
        return false;
    *id = (struct quic_id){.size = (uint8_t)size};
    memcpy(id->bytes, bytes, size);
    return true;
}

static bool read_sized_id(struct cursor *cursor, struct quic_id *id) {
    const uint8_t *size = cursor->at;
    return read_bytes(cursor, 1) && read_id(cursor, *size, id);
}

unsigned quic_draft_of(uint32_t version) {
    uint32_t family = version >> 8, number = version & 0xff;
    bool draft = (family == 0xff0000 || family == 0x454747) && number >= 17 && number <= 34;
    return draft ? number : 0;
}

bool quic_version_known(uint32_t version) {
    return version == QUIC_1 || version == QUIC_2 || quic_draft_of(version) ||
           version >> 8 == 0xfaceb0 || version == 0x51303530 || version >> 8 == 0x543035 ||
           (version & 0x0f0f0f0f) == 0x0a0a0a0a;
}

/* RFC 9369 section 3.2 numbers the kinds of version 2 one further. */
static enum quic_kind kind_of(uint8_t first, uint32_t version) {
    static const uint8_t kinds[] = {QUIC_INITIAL, QUIC_ZERO_RTT, QUIC_HANDSHAKE, QUIC_RETRY};
    unsigned bits = first >> 4 & 3;
    if (!version)
        return QUIC_NEGOTIATION;
    if (!quic_version_known(version))
        return QUIC_OTHER;
    return (enum quic_kind)kinds[version == QUIC_2 ? (bits + 3) % 4 : bits];
}

/* Until draft 21 both sizes shared one byte; 0 was 0, and n was n + 3 bytes. */
static bool read_ids(struct cursor *cursor, struct quic_header *header) {
    unsigned draft = quic_draft_of(header->version);
    if (!draft || draft > 21)
        return read_sized_id(cursor, &header->destination) &&
               read_sized_id(cursor, &header->source);
    const uint8_t *sizes = cursor->at;
    if (!read_bytes(cursor, 1))
        return false;
    unsigned destination = *sizes >> 4, source = *sizes & 15;
    return read_id(cursor, destination ? destination + 3 : 0, &header->destination) &&
           read_id(cursor, source ? source + 3 : 0, &header->source);
}

/* Reads the length of a packet that has one. Returns false if it exceeds the datagram. */
static bool read_length(struct cursor *cursor, struct quic_header *header, size_t captured,
                        size_t length) {
    uint64_t token = 0, rest;
    if (header->kind == QUIC_INITIAL && !read_varint(cursor, &token))
        return true; /* cut */
    if (token > length)
        return false;
    if (!read_bytes(cursor, (size_t)token) || !read_varint(cursor, &rest))
        return true;
    size_t before = captured - cursor->left;
    if (rest > length - before)
        return false;
    header->protected = (size_t)rest;
    header->size = before + (size_t)rest;
    return true;
}

bool quic_read_header(struct quic_header *header, const uint8_t *bytes, size_t captured,
                      size_t length) {
    struct cursor cursor = {bytes, captured < length ? captured : length};
    size_t at_hand = cursor.left;
    if (!read_bytes(&cursor, 5) || !(*bytes & LONG_HEADER))
        return false;
    header->version = load_be32(bytes + 1);
    header->kind = (uint8_t)kind_of(*bytes, header->version);
    header->size = length;
    header->protected = 0;
    if (header->kind == QUIC_OTHER && !(*bytes & FIXED_BIT))
        return false;
    if (!read_ids(&cursor, header))
        return false;
    size_t list = length - (at_hand - cursor.left); /* of versions, in Version Negotiation */
    if (header->kind == QUIC_NEGOTIATION)
        return list >= 4 && list % 4 == 0;
    if (header->kind == QUIC_RETRY || header->kind == QUIC_OTHER)
        return true;
    return read_length(&cursor, header, at_hand, length);
}

void quic_version_text(uint32_t version, char text[static QUIC_VERSION_TEXT]) {
    if (version == QUIC_1 || version == QUIC_2)
        snprintf(text, QUIC_VERSION_TEXT, "%d", version == QUIC_1 ? 1 : 2);
    else if (quic_draft_of(version) && version >> 24 == 0xff)
        snprintf(text, QUIC_VERSION_TEXT, "draft-%u", quic_draft_of(version));
    else
        snprintf(text, QUIC_VERSION_TEXT, "0x%08x", version);
}

/* Version 0 negotiates. Unknown versions must at least have the fixed bit. */
bool quic_begins(const uint8_t *bytes, size_t captured) {
    if (captured < 7 || !(*bytes & LONG_HEADER))
        return false;
    uint32_t version = load_be32(bytes + 1);
    return *bytes & FIXED_BIT || !version || quic_version_known(version);
}
