/* SPDX-License-Identifier: Apache-2.0 */
/* Long headers of QUIC (RFC 8999, 9000 section 17.2). */
#ifndef WIRETALE_QUIC_HEADER_H
#define WIRETALE_QUIC_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUIC_ID_MAX 20u /* bytes of a connection ID (RFC 9000 section 17.2) */
#define QUIC_1      1u
#define QUIC_2      0x6b3343cfu /* RFC 9369 */

/* Kinds of packets with a long header. QUIC_OTHER: the version is not known, so that only what
 * holds for all versions (RFC 8999) can be read. */
enum quic_kind {
    QUIC_INITIAL,
    QUIC_ZERO_RTT,
    QUIC_HANDSHAKE,
    QUIC_RETRY,
    QUIC_NEGOTIATION,
    QUIC_OTHER
};

struct quic_id {
    uint8_t size; /* bytes, at most QUIC_ID_MAX */
    uint8_t bytes[QUIC_ID_MAX];
};

/* A long header. */
struct quic_header {
    uint32_t version; /* 0 in a Version Negotiation packet */
    uint8_t kind;     /* enum quic_kind */
    struct quic_id destination, source;
    size_t size;      /* bytes of the packet; the rest of the datagram if they are not known */
    size_t protected; /* bytes from the packet number on; 0 if they are not known */
};

/* Reads the long header at `bytes`, of which `captured` are at hand and `length` were on the wire.
 * Returns false if it is none, or if the connection IDs were cut. */
bool quic_read_header(struct quic_header *header, const uint8_t *bytes, size_t captured,
                      size_t length);

/* Returns the number of a draft, 0 for another version: those of the IETF, and quant's, which is
 * numbered alike. */
unsigned quic_draft_of(uint32_t version);

/* Returns whether packets of the version have the kinds and lengths of RFC 9000: its drafts, those
 * of mvfst, Google's Q050 and T05x, and versions reserved to force Version Negotiation. */
bool quic_version_known(uint32_t version);

/* Returns whether a datagram begins with a long header of a version that may be QUIC. */
bool quic_begins(const uint8_t *bytes, size_t captured);

/* Writes the version as text: 1, 2, draft-29, or the number as 0x51303530. */
#define QUIC_VERSION_TEXT 24
void quic_version_text(uint32_t version, char text[static QUIC_VERSION_TEXT]);

#endif
