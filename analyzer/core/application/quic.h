/* SPDX-License-Identifier: Apache-2.0 */
/* QUIC (RFC 9000, 9001, 9369) of one UDP flow, from the bytes that are not encrypted: version,
 * connection IDs, round trips of the handshake, the spin bit.
 *
 * A flow is recognised by the client's first Initial on any port: a long header of a known version,
 * in a datagram of at least 1200 bytes (RFC 9000 section 14.1), or by two long headers whose
 * connection IDs answer each other. Only then, and for long headers that may become one, it has
 * memory: some hundred bytes and the Initials of its client, whose ClientHello is decrypted in
 * Python (analyzer/quic.py). */
#ifndef WIRETALE_QUIC_H
#define WIRETALE_QUIC_H

#include "base/histogram.h"

#define QUIC_ID_MAX       20u   /* bytes of a connection ID (RFC 9000 section 17.2) */
#define QUIC_INITIALS_MAX 4096u /* bytes kept of the client's Initials of a flow */

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

/* Packets of the handshake: the client's first Initial, the server's first with a ServerHello, and
 * the client's first 1-RTT packet. */
enum quic_frame { QUIC_BEGIN, QUIC_ANSWER, QUIC_END, QUIC_FRAMES };

/* Returns whether packets of the version have the kinds and lengths of RFC 9000: its drafts, those
 * of mvfst, Google's Q050 and T05x, and versions reserved to force Version Negotiation. */
bool quic_version_known(uint32_t version);

/* Returns whether a datagram begins with a long header of a version that may be QUIC. */
bool quic_begins(const uint8_t *bytes, size_t captured);

struct quic_datagram {
    const uint8_t *bytes;
    size_t captured, length; /* bytes of UDP payload */
    uint64_t frame;
    int64_t time_ns;
    bool time_known;
    bool keep_initials; /* there is room for one more flow's Initials */
    bool to_lower_port; /* as most datagrams to a server are */
    unsigned direction; /* of the flow */
};

/* --- quic_loss.c: the bits Q and L ---------------------------------------------------------------
 */

struct quic_marks {
    uint64_t packets, reports; /* with L */
};

/* A packet that was captured. */
struct quic_moment {
    uint64_t frame;  /* 0 if there is none */
    int64_t time_ns; /* -1 if it is not known */
};

/* The Q bit of one direction. */
struct quic_square {
    struct quic_marks current, next; /* blocks; `next` may be reordering */
    struct quic_marks sum;           /* of the blocks that are over, without the first */
    uint64_t blocks;                 /* that were sent, those included that were lost wholly */
    uint64_t runs, whole_runs;       /* blocks as captured; those of about 64 packets */
    uint64_t edges;                  /* changes of the bit */
    bool value;                      /* of `current` */
    bool latest;                     /* of the latest packet */
    bool seen, begun;                /* a packet was seen; the first block is over */
    int64_t lacking;                 /* packets of the blocks that are over, in sum */
    /* The first packet of `next`; the one behind the block since which packets are lacking; the
     * first with L that counts. */
    struct quic_moment edge, after_loss, report;
};

/* Packets; -1 if they are not known. */
struct quic_loss {
    int64_t sent;       /* in the blocks that count */
    int64_t missing;    /* of them, those that the capture lacks */
    int64_t whole;      /* that the sender declared lost, up- and downstream */
    int64_t upstream;   /* those missing, unless far fewer were declared lost: then the capture may
                           have dropped them */
    int64_t downstream; /* the difference; not known if `upstream` is not */
    struct quic_moment first; /* packet that showed the first loss */
};

/* Takes the first byte of a short header. */
void quic_square_take(struct quic_square *square, uint8_t first, struct quic_moment seen);
/* Returns false if Q is no square wave; then nothing of `loss` is known. */
bool quic_square_loss(const struct quic_square *square, struct quic_loss *loss);

/* --- quic.c --------------------------------------------------------------------------------------
 */

struct quic;

/* Takes a datagram of a flow. `*quic` is NULL until a packet may be QUIC; without memory the
 * datagram is dropped. */
void quic_take(struct quic **quic, const struct quic_datagram *datagram, struct pool *pool);

/* The handshake as the capture shows it. Times are ns, -1 if they are not known. */
struct quic_summary {
    uint32_t version;         /* of the server's Initial; before it, of the client's latest */
    unsigned client;          /* direction of the flow that the client sends */
    int64_t server_ns;        /* least time from a client's packet to the server's answer to it */
    int64_t client_ns;        /* least time from a server's packet to the client's answer to it */
    int64_t duration_ns;      /* from the client's first Initial to its first 1-RTT packet */
    int64_t spin_ns;          /* RTT by the spin bit; see quic_spin_rtt() */
    uint64_t spin_samples;    /* times between two edges of the spin bit, both directions */
    struct quic_loss loss[2]; /* of packets of the client, and of the server */
    uint32_t round_trips;     /* answers of the server that the client had to wait for */
    bool version_negotiation, retry, zero_rtt;
    uint64_t frames[QUIC_FRAMES]; /* 0 if it was not captured */
    const uint8_t *initials;      /* the client's, each after its size as 16 bits */
    size_t initial_bytes;
};

/* Returns false if the flow was not recognised. `summary->initials` are valid until quic_free(). */
bool quic_summary(struct quic *quic, struct quic_summary *summary, struct pool *pool);

/* These accept NULL. */
bool quic_recognised(const struct quic *quic);
bool quic_keeps_initials(const struct quic *quic);
/* Returns the RTT of the whole path by the handshake, ns; -1 if it is not known. */
int64_t quic_handshake_rtt(const struct quic *quic);
/* Returns whether a round trip to the server or to the client is known. */
bool quic_has_round_trip(const struct quic *quic);
/* Fills the losses of a direction of the flow; returns false if they are not known. */
bool quic_loss_of(const struct quic *quic, unsigned direction, struct quic_loss *loss);

/* Frees the state; it may be NULL. */
void quic_free(struct quic *quic, struct pool *pool);

/* Writes the version as text: 1, 2, draft-29, or the number as 0x51303530. */
#define QUIC_VERSION_TEXT 24
void quic_version_text(uint32_t version, char text[static QUIC_VERSION_TEXT]);

#endif
