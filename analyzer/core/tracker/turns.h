/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and responses of a TCP connection (table `turns`). A turn begins if new data of the
 * requester follows data of the responder that it has acknowledged. */
#ifndef WIRETALE_TURNS_H
#define WIRETALE_TURNS_H

#include "tcp/segment.h"

#define MAX_TURNS_PER_FLOW 10000u
#define FAREWELL_NS        INT64_C(50000000)  /* from the last message to the end of its sender */
#define STATUS_ERROR       500u               /* of HTTP: from here on the server failed */
#define SLOW_ANSWER_NS     INT64_C(200000000) /* a person notices it */

/* Places to which the stalls of a turn are charged. */
enum turn_place { STALL_CLIENT, STALL_NETWORK, STALL_SERVER, TURN_PLACES };

/* Times are those of packets at the capture point. */
struct turn {
    int64_t start_ns;    /* first byte of the request */
    int64_t request_ns;  /* to its last byte, without stalls once it is over */
    int64_t answer_ns;   /* from there to the first byte of the response; -1 without one */
    int64_t response_ns; /* to its last byte, without stalls */
    int64_t pause_ns;    /* before the request, from the last byte of a response; -1 if unknown */
    uint64_t request_bytes, response_bytes;         /* unique */
    int64_t answered_ns;                            /* time of the first byte of the response */
    uint32_t first_frame, answer_frame, last_frame; /* 0 if they exceed 32 bits */
    uint32_t stall_us[TURN_PLACES];
    uint32_t paused_us[2];                  /* pauses of the sender within request and response */
    bool request_repeats, response_repeats; /* the first transmission may be lost before */
    bool unsure[2];           /* request, response: a stall may be a pause for a part */
    bool after_fin;           /* the requester had received the FIN of the responder */
    bool asks_header;         /* HEAD or CONNECT */
    uint16_t status;          /* of HTTP, with which the response begins; 0 if it is not known */
    uint32_t request_length;  /* of HTTP, as the request announces it; 0 if it is not known */
    uint32_t response_length; /* the same, or HTTP_UNTIL_CLOSE */
    uint32_t acked_us; /* from the last byte of the request to its ACK, 0 if the response was it */
};

/* Allocated when the direction of payload changes for the first time. */
struct turn_log {
    struct turn *turns; /* complete ones in order, and after them the present one if `open` */
    uint32_t count, room;
    uint32_t dropped;  /* turns above MAX_TURNS_PER_FLOW, or without memory */
    uint32_t overlaps; /* times that an endpoint sent while data to it was under way */
    uint32_t last_pause_us, last_pause_frame; /* the last pause, and the packet that ended it */
    uint64_t base;        /* unique bytes of the sending endpoint before this request or response */
    int64_t response_at;  /* position of the first byte of the response */
    int64_t responded_ns; /* last byte of the response before; 0 if unknown */
    uint8_t requester;    /* 0 or 1, a direction */
    bool open, responding;
    bool overlapped;     /* the present turn cannot be divided */
    bool waits;          /* more data of the responder may begin the response */
    bool untimed;        /* a packet had no time */
    bool interim;        /* the response began with 1xx of HTTP: its final status is to come */
    uint8_t server_talk; /* enum word, of server_talk_of() */
    bool pure_sample[2]; /* a pure ACK gave an RTT sample of this direction's data */
};
_Static_assert(sizeof(struct turn_log) <= 128, "small, because most flows have one");

/* Must be called before the segment changes its sender's stream, if it brings new data in order,
 * `idle_ns` after data of the same direction. Returns whether it continues a request or response.
 */
bool note_pause(const struct segment_context *seg, int64_t idle_ns);

/* Must be called after the segment was processed, if it brought new data after data of the other
 * direction, or if watches_turns(). */
void note_turn(struct segment_context *seg);

/* Whether note_turn() must see the segment although the direction of payload has not changed. */
static inline bool watches_turns(const struct segment_context *seg) {
    const struct turn_log *log = seg->connection->turns;
    if (LIKELY(!log))
        return false;
    return log->waits || log->interim ||
           (seg->effect.rtt_ns >= 0 && !(log->pure_sample[0] && log->pure_sample[1]));
}

/* Takes the last turn. Must be called once, after verdicts are settled. */
void finish_turns(struct tcp_connection *connection, struct pool *pool);

/* Returns why the long waits of the server are no answer times: WORD_PUSHED, WORD_HELD, WORD_TYPED;
 * WORD_NONE if they may be. `port` is the server's; `requests`: the protocol was recognized as one
 * of requests and answers. server_talk.c */
enum word server_talk_of(const struct tcp_connection *connection, uint16_t port, bool requests);
/* Returns the sum of the server's short answer times. The connection has turns. */
int64_t answers_ns(const struct tcp_connection *connection);

/* Returns how payload alternates: WORD_TURNS, WORD_PIPELINED, WORD_STREAMING, or WORD_NONE if that
 * is unknown. */
enum word exchange_of(const struct tcp_connection *connection);

/* Returns the RTT in ns between the capture point and the receiver of the data that `direction`
 * sends, RTT_UNKNOWN unless an ACK shows it that did not wait for a response. */
int64_t turn_rtt(const struct tcp_connection *connection, unsigned direction);

void turns_free(struct tcp_connection *connection, struct pool *pool);

#endif
