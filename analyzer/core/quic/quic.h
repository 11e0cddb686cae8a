/* SPDX-License-Identifier: Apache-2.0 */
/* QUIC (RFC 9000, 9001, 9369) of one UDP flow, from the bytes that are not encrypted: version,
 * connection IDs, round trips of the handshake, the spin bit.
 *
 * A flow is recognized by the client's first Initial on any port: a long header of a known version,
 * in a datagram of at least 1200 bytes (RFC 9000 section 14.1), or by two long headers whose
 * connection IDs answer each other. Only then, and for long headers that may become one, it has
 * memory: some hundred bytes and its ClientHello, until that was read. */
#ifndef WIRETALE_QUIC_H
#define WIRETALE_QUIC_H

#include "base/histogram.h"
#include "quic/quic_header.h"
#include "quic/quic_hello.h"

/* Packets of the handshake: the client's first Initial, the server's first with a ServerHello, and
 * the client's first 1-RTT packet. */
enum quic_frame { QUIC_BEGIN, QUIC_ANSWER, QUIC_END, QUIC_FRAMES };

struct quic_datagram {
    const uint8_t *bytes;
    size_t captured, length; /* bytes of UDP payload */
    uint64_t frame;
    int64_t time_ns;
    bool time_known;
    bool keep_hello;    /* there is room for one more flow's ClientHello */
    bool to_lower_port; /* as most datagrams to a server are */
    unsigned direction; /* of the flow */
};

struct quic;

/* Takes a datagram of a flow. `*quic` is NULL until a packet may be QUIC; without memory the
 * datagram is dropped. */
void quic_take(struct quic **quic, const struct quic_datagram *datagram, struct pool *pool);

/* The handshake as the capture shows it. Times are ns, -1 if they are not known. */
struct quic_summary {
    uint32_t version;      /* of the server's Initial; before it, of the client's latest */
    unsigned client;       /* direction of the flow that the client sends */
    int64_t server_ns;     /* least time from a client's packet to the server's answer to it */
    int64_t client_ns;     /* least time from a server's packet to the client's answer to it */
    int64_t duration_ns;   /* from the client's first Initial to its first 1-RTT packet */
    int64_t spin_ns;       /* RTT by the spin bit; see quic_spin_rtt() */
    uint64_t spin_samples; /* times between two edges of the spin bit, both directions */
    uint32_t round_trips;  /* answers of the server that the client had to wait for */
    bool version_negotiation, retry, zero_rtt;
    uint64_t frames[QUIC_FRAMES]; /* 0 if it was not captured */
    uint64_t close_frame;         /* Initial in which the server closes; 0 without one */
    int64_t close_ns;
    uint64_t error; /* that it gives; valid with close_frame */
};

/* Returns false if the flow was not recognized. */
bool quic_summary(struct quic *quic, struct quic_summary *summary, struct pool *pool);

/* These accept NULL. */
bool quic_recognized(const struct quic *quic);
/* Returns the ClientHello as far as it came; NULL without one, and once it was dropped. */
const struct quic_hello *quic_client_hello(const struct quic *quic);
/* Returns whether no more of the ClientHello will come. */
bool quic_hello_is_due(const struct quic *quic);
/* Returns the RTT of the whole path by the handshake, ns; -1 if it is not known. */
int64_t quic_handshake_rtt(const struct quic *quic);
/* Returns whether a round trip to the server or to the client is known. */
bool quic_has_round_trip(const struct quic *quic);

/* Frees the ClientHello, of which no more is wanted. */
void quic_drop_hello(struct quic *quic, struct pool *pool);

/* Frees the state; it may be NULL. */
void quic_free(struct quic *quic, struct pool *pool);

#endif
