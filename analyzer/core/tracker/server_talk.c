/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes servers whose waits are no answer times, because nobody waited for an answer: they
 * push what happens, poll their client, hold a request until something happens, or a person types.
 *
 * Payload that alternates looks like requests and responses whoever asks. What decides:
 *
 * - The service: a person types into a terminal or a screen; a protocol of events has no answers.
 * - A WebSocket, whose messages are no requests.
 * - The clock: messages of the server at even times, though the time since the message of the
 *   client before varies, follow the server's timer and not the request.
 * - Waits of seconds that are equal to 0.5% and asked for again at once: requests that are held.
 * - Who begins: a client that says something by itself asks. One that speaks only right behind the
 *   server's messages, and says more than it gets, replies to them. Known services of requests and
 *   answers are not judged by this. */
#include <math.h>

#include "base/service_ports.h"
#include "tracker/steps.h"
#include "tracker/turns.h"

#define HELD_NS          INT64_C(5000000000) /* a server that works for so long is never that even */
#define IDLE_PAIR_NS     INT64_C(60000000000) /* nobody waits so long for an unknown service */
#define AT_ONCE_NS       INT64_C(20000000)    /* a program replies in this time, */
#define AT_ONCE_PART     100                  /* or in this part of the wait before */
#define EVEN             0.005
#define EVEN_PERMIL      5
#define STATUS_SWITCHING 101
#define PERIODS_LEAST    4   /* between messages of the server */
#define ALIKE_LEAST      3   /* waits, or replies */
#define STEADIER         4.0 /* variance of the waits over that of the periods */

/* Ascending. */
static const uint16_t typed_ports[] = {22, 23, 513, 514, 3389, 5900, 5901, 5902, 5903, 6000, 6010};
/* Events, heartbeats and watchdogs: BGP, MQTT, SCCP, IEC 104, Diameter, PCEP, NATS, OPC UA, XMPP,
 * AMQP, OpenFlow, IRC, Kafka, STOMP. */
static const uint16_t event_ports[] = {179,  1883, 2000, 2404, 3868,  4189,  4222,
                                       4840, 5222, 5269, 5671, 5672,  6633,  6653,
                                       6667, 6697, 8883, 9092, 61613, 61614, 61616};

#define HAS_PORT(list, port) has_port(list, sizeof(list) / sizeof *(list), port)
static bool has_port(const uint16_t *list, size_t count, uint16_t port) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == port)
            return true;
    return false;
}

/* Mean and variance of numbers that come one by one (Welford 1962). */
struct spread {
    uint32_t count;
    double mean, squares;
};

static void spread_add(struct spread *spread, double number) {
    double off = number - spread->mean;
    spread->mean += off / ++spread->count;
    spread->squares += off * (number - spread->mean);
}

static double variance(const struct spread *spread) {
    return spread->count > 1 ? spread->squares / (spread->count - 1) : 0;
}

/* What the slow turns of a connection have in common. */
struct slow_turns {
    uint32_t count, at_once, begun;  /* begun: the client spoke by itself */
    bool first;                      /* the first turn is one, so the client may have */
    uint32_t held;                   /* waits of HELD_NS or more */
    uint32_t failed;                 /* the answer is an error of HTTP */
    int64_t shortest_ns, longest_ns; /* of those */
    int64_t longest_wait_ns;
    uint64_t request_bytes, response_bytes;
    struct spread waits, periods;
};

static void note_slow(struct slow_turns *slow, const struct turn_log *log, uint32_t number,
                      int64_t wait_ns) {
    const struct turn *turn = &log->turns[number], *before = number ? turn - 1 : NULL;
    bool timed = before && turn->pause_ns >= 0;
    bool at_once = timed && turn->pause_ns <= max64(AT_ONCE_NS, wait_ns / AT_ONCE_PART);
    slow->count++;
    slow->at_once += at_once;
    slow->first |= !before;
    slow->failed += turn->status >= STATUS_ERROR;
    slow->begun += timed && !at_once;
    slow->request_bytes += turn->request_bytes;
    slow->response_bytes += turn->response_bytes;
    slow->longest_wait_ns = max64(slow->longest_wait_ns, wait_ns);
    if (wait_ns >= HELD_NS) {
        slow->shortest_ns = slow->held++ ? min64(slow->shortest_ns, wait_ns) : wait_ns;
        slow->longest_ns = max64(slow->longest_ns, wait_ns);
    }
    if (!before || before->answer_ns < 0)
        return;
    spread_add(&slow->waits, (double)wait_ns);
    spread_add(&slow->periods, (double)(turn->answered_ns - before->answered_ns));
}

/* Messages of the server come at even times, and their distance from the client's varies. */
static bool is_periodic(const struct slow_turns *slow) {
    double of_periods = variance(&slow->periods);
    return slow->periods.count >= PERIODS_LEAST && sqrt(of_periods) <= EVEN * slow->periods.mean &&
           variance(&slow->waits) > STEADIER * of_periods;
}

static bool is_held(const struct slow_turns *slow) {
    return slow->held >= ALIKE_LEAST && slow->held == slow->count &&
           slow->longest_ns - slow->shortest_ns <= slow->shortest_ns / 1000 * EVEN_PERMIL &&
           slow->at_once + 1 >= slow->count;
}

/* A client of an unknown service speaks right behind the server's messages and says more. */
static bool is_reply(const struct slow_turns *slow) {
    bool says_more = slow->count >= ALIKE_LEAST && slow->request_bytes > slow->response_bytes;
    bool few = slow->count < ALIKE_LEAST && !slow->first;
    bool replies = !slow->begun && slow->at_once + slow->first == slow->count;
    return (replies && (says_more || few)) || slow->longest_wait_ns > IDLE_PAIR_NS;
}

/* By the service, or because its client replies. */
static bool is_pushed(const struct slow_turns *slow, uint16_t port) {
    return HAS_PORT(event_ports, port) || (!is_service_port(port) && is_reply(slow));
}

static int64_t wait_of(const struct turn *turn, int64_t rtt_ns) {
    return turn->answer_ns - min64(max64(rtt_ns, 0), max64(turn->answer_ns, 0));
}

/* Messages of a WebSocket (RFC 6455) follow the status 101: both ends send when they have
 * something. The status itself answers a request, which may be slow. */
static bool is_websocket(const struct turn_log *log, int64_t rtt_ns) {
    for (uint32_t i = 0; i < log->count; i++)
        if (log->turns[i].status == STATUS_SWITCHING)
            return wait_of(&log->turns[i], rtt_ns) < SLOW_ANSWER_NS;
    return false;
}

enum word server_talk_of(const struct tcp_connection *connection, uint16_t port, bool requests) {
    const struct turn_log *log = connection->turns;
    struct slow_turns slow = {0};
    if (!log || log->untimed)
        return WORD_NONE;
    if (!requests && HAS_PORT(typed_ports, port))
        return WORD_TYPED;
    int64_t rtt_ns = turn_rtt(connection, log->requester);
    for (uint32_t i = 0; i < log->count; i++) {
        int64_t wait_ns = wait_of(&log->turns[i], rtt_ns);
        if (wait_ns >= SLOW_ANSWER_NS)
            note_slow(&slow, log, i, wait_ns);
    }
    if (2 * slow.failed >= slow.count) /* no answer was held back on purpose, or there is none */
        return WORD_NONE;
    if (is_held(&slow))
        return WORD_HELD;
    return is_websocket(log, rtt_ns) || is_periodic(&slow) || (!requests && is_pushed(&slow, port))
               ? WORD_PUSHED
               : WORD_NONE;
}

int64_t answers_ns(const struct tcp_connection *connection) {
    const struct turn_log *log = connection->turns;
    int64_t rtt_ns = turn_rtt(connection, log->requester), sum_ns = 0;
    for (uint32_t i = 0; i < log->count; i++) {
        int64_t wait_ns = wait_of(&log->turns[i], rtt_ns);
        sum_ns += wait_ns < SLOW_ANSWER_NS ? max64(wait_ns, 0) : 0;
    }
    return sum_ns;
}
