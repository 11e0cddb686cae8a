/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection as one capture point sees it: both half-connections and the handshake. */
#ifndef WIRETALE_TCP_CONNECTION_H
#define WIRETALE_TCP_CONNECTION_H

#include "base/packet.h"
#include "tcp/span_log.h"
#include "tcp/stream.h"

#define REQUESTER_UNKNOWN 2u

#define CAPTURE_UNKNOWN UINT32_MAX

/* Packets of one direction in a row that came from the same capture. */
struct capture_run {
    uint32_t capture, before; /* `before`: that of the run before, CAPTURE_UNKNOWN without one */
    uint32_t first_frame;
    int64_t first_ns, last_ns; /* `last_ns`: of the direction so far */
    /* A packet after this time is of this run, whatever the clocks of both files. */
    int64_t sure_ns;
    int64_t before_sure_ns, before_last_ns; /* the same of the run before */
};

/* Which capture the earlier packets of a connection came from, because frames are numbered in each
 * file anew. Most connections are in one capture: state is allocated at the first packet of
 * another, and holds the present run of packets of each direction and the run before. */
struct capture_runs {
    struct capture_run of[2]; /* by direction */
};

struct turn_log; /* tracker/turns.h */

struct tcp_connection {
    bool syn_ack_seen : 1, handshake_ack_seen : 1;
    bool handshake_ambiguous : 1; /* a SYN-ACK was retransmitted, or a SYN has no time */
    bool refused : 1;             /* a RST answered the SYN */
    bool reset : 1;
    bool reset_first : 1;        /* an RST came before any FIN */
    bool client_known : 1;       /* `requester` is no guess */
    bool loopback : 1;           /* within a host: no network can duplicate a packet */
    bool captures_vary : 1;      /* its packets are of several captures */
    bool duplicated : 1;         /* a data packet was duplicated: pure ACKs may be, too */
    uint8_t fin_by;              /* direction of the first FIN, if there is one */
    uint8_t requester;           /* direction of requests, by the ports; REQUESTER_UNKNOWN */
    uint32_t duplicate_delay_ns; /* of the last such duplicate */
    uint32_t first_data_frame;   /* of the first data that an endpoint sent */
    int64_t first_data_ns;
    int64_t syn_ns;                /* the initiator's last SYN */
    struct turn_log *turns;        /* NULL until the direction of payload changes */
    struct time_account time;      /* where it went (tracker/time_account.c) */
    int64_t handshake_rtt_ns;      /* from that SYN to the ACK of the SYN-ACK, or RTT_UNKNOWN */
    struct tcp_stream streams[2];  /* 0: sent by the initiator */
    struct capture_runs *captures; /* NULL unless they vary */
    struct span_log *spans;        /* NULL unless they are wanted */
};

/* In the functions below, `stream` must be one of the connection's. */

/* Returns the RTT of the handshake in ns, at least a tick of the capture's clock; RTT_UNKNOWN if it
 * was not captured. */
int64_t handshake_rtt(const struct tcp_connection *connection);

/* Returns the RTT between both endpoints in ns, or RTT_UNKNOWN. */
int64_t path_rtt(const struct tcp_connection *connection);

/* Returns the RTT between the capture point and the endpoint that sends `stream` in ns, or
 * RTT_UNKNOWN. */
int64_t sender_rtt(const struct tcp_connection *connection, const struct tcp_stream *stream);

/* The shortest delayed-ACK timer in use, Linux's, is 40 ms; the longest, lwIP's, 250 ms. */
#define ACK_DELAY_NS    INT64_C(30000000)
#define ACK_DELAY_ABOVE INT64_C(300000000)

/* Returns whether the RTT samples of `stream` show the round trip: no delayed-ACK timer can have
 * made all of them. */
bool is_rtt_shown(const struct tcp_connection *connection, const struct tcp_stream *stream);

/* Returns the RTO of the endpoint that sends `stream` in ns (RFC 6298 section 2), MIN_RTO_NS at
 * least. */
int64_t rto_ns(const struct tcp_connection *connection, const struct tcp_stream *stream);

/* Returns whether the receiver of `data` cannot report data above a gap, as far as options show. */
bool is_without_sack(const struct tcp_connection *connection, const struct tcp_stream *data);

/* Returns the size of a full segment of `stream` in bytes: the largest seen, the MSS at most. */
int64_t full_segment_size(const struct tcp_connection *connection, const struct tcp_stream *stream);

/* Returns true if the segment, sent in `direction`, opens a new connection on the same addresses
 * and ports. */
bool starts_new_connection(const struct tcp_connection *connection, unsigned direction,
                           const struct tcp_header *tcp);

/* Returns the state that the connection reached (enum word). */
int connection_state(const struct tcp_connection *connection);

/* Returns the half-connection of the other endpoint. */
static inline const struct tcp_stream *peer_of(const struct tcp_connection *connection,
                                               const struct tcp_stream *stream) {
    return &connection->streams[stream == connection->streams];
}

/* Takes a packet of a connection whose first packet came from `first_capture`, and whose last one
 * had time `last_ns`; it must be called for each packet once there are several captures. */
void note_capture(struct tcp_connection *connection, unsigned direction,
                  const struct packet_info *packet, uint32_t first_capture, int64_t last_ns,
                  struct pool *pool);

/* Returns the capture of an earlier packet of a direction, or of the present one, which is
 * `packet`; CAPTURE_UNKNOWN if it may be of another. */
uint32_t capture_of(const struct tcp_connection *connection, unsigned direction, int64_t time_ns,
                    uint32_t frame, const struct packet_info *packet);

/* The same of a packet whose direction is not known. */
uint32_t capture_of_any(const struct tcp_connection *connection, int64_t time_ns, uint32_t frame,
                        const struct packet_info *packet);

#endif
