/* SPDX-License-Identifier: Apache-2.0 */
/* A reply has the identifier and the sequence number of its request. A host does not repeat a
 * request: the same one again is another, because some programs use one number for all, or a copy
 * that another port or a router stores, soon or with the same IPv4 ID. A request is given up after
 * LATE_NS, or if ECHO_MOST wait; ping itself waits for 10 s at most. */
#include "sequence/echo.h"

#include <string.h>

#define ECHO_FIRST 4
#define ECHO_MOST  1024u
#define LATE_NS    INT64_C(30000000000)
#define COPY_NS    INT64_C(1000000)
#define ID_NS      INT64_C(1000000000) /* within it, a host does not use an ID twice */

/* Returns the time between two packets; 0 if it is not known or negative. */
static int64_t between(const struct echo_packet *asked, const struct echo_packet *packet) {
    bool timed = asked->time_ns != TIME_UNKNOWN && packet->time_ns != TIME_UNKNOWN;
    return timed && packet->time_ns > asked->time_ns ? packet->time_ns - asked->time_ns : 0;
}

static bool is_same(const struct echo_packet *asked, const struct echo_packet *packet) {
    return asked->sequence == packet->sequence && asked->identifier == packet->identifier &&
           asked->direction == packet->direction;
}

static void finish(struct echo_requests *echo, uint32_t number,
                   const struct echo_listener *listener) {
    struct echo_request *request = &echo->list[number];
    listener->finish(listener->context, request);
    echo->count--;
    memmove(request, request + 1, (echo->count - number) * sizeof *request);
}

/* Returns the number of the latest such request; echo->count without one. */
static uint32_t find(const struct echo_requests *echo, const struct echo_packet *packet) {
    for (uint32_t i = echo->count; i--;)
        if (is_same(&echo->list[i].asked, packet))
            return i;
    return echo->count;
}

static bool is_copy(const struct echo_requests *echo, const struct echo_packet *packet) {
    const struct echo_packet *latest = &echo->latest;
    int64_t most_ns = packet->ip_id ? ID_NS : COPY_NS;
    return latest->frame && packet->time_ns != TIME_UNKNOWN && latest->ip_id == packet->ip_id &&
           is_same(latest, packet) && between(latest, packet) < most_ns;
}

void echo_ask(struct echo_requests *echo, const struct echo_packet *packet, struct pool *pool,
              const struct echo_listener *listener) {
    echo->asked = true;
    if (is_copy(echo, packet))
        return;
    echo->latest = *packet;
    while (echo->count && between(&echo->list[0].asked, packet) > LATE_NS)
        finish(echo, 0, listener);
    uint32_t number = find(echo, packet);
    if (number < echo->count || echo->count == ECHO_MOST)
        finish(echo, number < echo->count ? number : 0, listener);
    if (echo->count == echo->room && !pool_grow(pool, (void **)&echo->list, &echo->room,
                                                sizeof *echo->list, ECHO_FIRST, ECHO_MOST))
        return;
    echo->list[echo->count++] = (struct echo_request){.asked = *packet};
}

/* Hands an answered request on. */
static void settle(struct echo_requests *echo, uint32_t number, const struct echo_packet *packet,
                   const char *error, const struct echo_listener *listener) {
    struct echo_request *request = &echo->list[number];
    request->answered_ns = packet->time_ns;
    request->answered_frame = packet->frame;
    request->error = error;
    finish(echo, number, listener);
}

void echo_answer(struct echo_requests *echo, const struct echo_packet *packet,
                 const struct echo_listener *listener) {
    uint32_t number = find(echo, packet);
    if (number == echo->count)
        return;
    const struct echo_request *request = &echo->list[number];
    int64_t waited_ns = between(&request->asked, packet);
    echo->answered |= packet->time_ns != TIME_UNKNOWN && request->asked.time_ns != TIME_UNKNOWN;
    echo->longest_ns = waited_ns > echo->longest_ns ? waited_ns : echo->longest_ns;
    settle(echo, number, packet, NULL, listener);
}

void echo_fail(struct echo_requests *echo, const struct echo_packet *packet, const char *error,
               const struct echo_listener *listener) {
    uint32_t number = find(echo, packet);
    if (number < echo->count)
        settle(echo, number, packet, error, listener);
}

void echo_finish(struct echo_requests *echo, const struct echo_listener *listener) {
    while (echo->count)
        finish(echo, 0, listener);
}

void echo_free(struct echo_requests *echo, struct pool *pool) {
    pool_release(pool, echo->list, echo->room, sizeof *echo->list);
    *echo = (struct echo_requests){0};
}
