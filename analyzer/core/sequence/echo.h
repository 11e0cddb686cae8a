/* SPDX-License-Identifier: Apache-2.0 */
/* Echo requests of a flow of ICMP (RFC 792, RFC 4443 section 4), each with its reply, or with the
 * ICMP error that quotes it. */
#ifndef WIRETALE_ECHO_H
#define WIRETALE_ECHO_H

#include "base/packet.h"
#include "base/pool.h"

/* An echo request or reply; an error has those of the request that it quotes. */
struct echo_packet {
    int64_t time_ns; /* TIME_UNKNOWN without a time */
    uint64_t frame;
    uint32_t capture;
    uint16_t identifier, sequence;
    uint16_t ip_id;    /* 0 proves nothing */
    uint8_t direction; /* of the request */
};

/* A request, until it is answered. */
struct echo_request {
    struct echo_packet asked;
    int64_t answered_ns;     /* TIME_UNKNOWN without a time */
    uint64_t answered_frame; /* 0 without an answer */
    const char *error;       /* meaning of the error that answered it; static, NULL without one */
};

/* Requests that wait, the oldest first. */
struct echo_requests {
    struct echo_request *list;
    uint32_t count, room;
    struct echo_packet latest; /* request, whether it waits or not */
    int64_t longest_ns;        /* that an answer took */
    bool asked;                /* the flow has a request */
    bool answered;             /* an answer gave a time */
};

/* Takes a request that was answered or given up. */
struct echo_listener {
    void (*finish)(void *context, const struct echo_request *request);
    void *context;
};

void echo_ask(struct echo_requests *echo, const struct echo_packet *packet, struct pool *pool,
              const struct echo_listener *listener);
void echo_answer(struct echo_requests *echo, const struct echo_packet *packet,
                 const struct echo_listener *listener);
/* `error` must be static. */
void echo_fail(struct echo_requests *echo, const struct echo_packet *packet, const char *error,
               const struct echo_listener *listener);
/* Gives up all requests that wait. */
void echo_finish(struct echo_requests *echo, const struct echo_listener *listener);
void echo_free(struct echo_requests *echo, struct pool *pool);

#endif
