/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the payload of a connection into turns: a request, and the response to it.
 *
 * A response begins if the responder sends new data that acknowledges the whole request; the next
 * request begins if the requester sends new data that acknowledges the whole response. So a turn
 * has the same bytes at every capture point. Data that crosses data of the other direction is
 * counted as an overlap:
 *
 * - Data of the responder that does not acknowledge the whole request is no response to it: the TLS
 *   1.3 tickets of a server (RFC 8446 section 4.6.1) cross the first request.
 * - A requester that has seen nothing of the response continues its request.
 * - A requester that has seen a part of it sends the next request before this one is answered: such
 *   turns cannot be divided, and are dropped.
 *
 * If overlaps are more than turns, the flow is pipelined or streams in both directions, and has no
 * turns. Requests that are sent together, before any response, are one request.
 *
 * RTOs and recovery idle the sender until the retransmission: that time, since its data before, is
 * taken out of the spread that it delayed, and charged to the place of the loss (rules V7). A
 * spurious retransmission at the end of a request or response delayed nothing. The log belongs to
 * the connection; its turns become rows when the flow is over, with the least RTT of all. */
#include "tracker/turns.h"

#include <string.h>

#include "verdict/recent_verdicts.h"

/* --- stalls ---------------------------------------------------------------------------------- */

/* A span of one direction's data, and the places on both sides of the capture point. */
struct turn_span {
    const struct tcp_stream *stream;
    int64_t from_ns, until_ns;
    enum turn_place upstream, downstream;
};

static enum turn_place place_of(const struct retransmission_record *record,
                                const struct turn_span *span) {
    if (!record->lost)
        return STALL_NETWORK;
    return record->upstream ? span->upstream : span->downstream;
}

static void add_stall(struct turn *turn, enum turn_place place, int64_t us) {
    turn->stall_us[place] = (uint32_t)min64(turn->stall_us[place] + us, UINT32_MAX);
}

/* Charges the stalls of a span to the turn. Returns their sum in ns, and moves the end of the span
 * before a spurious retransmission that ends it. One packet may have two records. */
static int64_t charge_stalls(struct turn *turn, struct turn_span *span) {
    const struct tcp_recovery_state *recovery = recovery_of(span->stream);
    int64_t sum_us = 0, last_ns = INT64_MIN;
    for (uint32_t age = 0; age < recovery->record_count; age++) {
        const struct retransmission_record *record = record_at(recovery, age);
        if (record->time_ns <= span->from_ns)
            break;
        if (record->duplicate || record->time_ns > span->until_ns || record->time_ns == last_ns)
            continue;
        last_ns = record->time_ns;
        int64_t us = min64(record->waited_us, (last_ns - span->from_ns) / 1000);
        if (record->spurious && last_ns == span->until_ns) {
            span->until_ns -= us * 1000;
            continue;
        }
        add_stall(turn, place_of(record, span), us);
        sum_us += us;
    }
    if (recovery->suspected_ns > span->from_ns && recovery->suspected_ns <= span->until_ns) {
        int64_t us =
            min64(recovery->suspected_idle_ns, recovery->suspected_ns - span->from_ns) / 1000;
        add_stall(turn, span->upstream, us);
        sum_us += us;
    }
    return 1000 * sum_us;
}

/* Takes the stalls out of the request, which is over. */
static void settle_request(const struct tcp_connection *connection, const struct turn_log *log,
                           struct turn *turn) {
    struct turn_span span = {&connection->streams[log->requester], turn->start_ns,
                             turn->start_ns + turn->request_ns, STALL_CLIENT, STALL_SERVER};
    int64_t end_ns = span.until_ns, stalls = charge_stalls(turn, &span);
    turn->request_ns = max64(span.until_ns - span.from_ns - stalls, 0);
    if (turn->answer_ns >= 0)
        turn->answer_ns += end_ns - span.until_ns;
}

/* Completes the present turn, whose response is over. */
static void settle_response(const struct tcp_connection *connection, struct turn_log *log,
                            struct turn *turn) {
    const struct tcp_stream *responder = &connection->streams[!log->requester];
    int64_t from_ns = turn->start_ns + turn->request_ns + turn->answer_ns;
    struct turn_span span = {responder, from_ns, responder->last_data_ns, STALL_SERVER,
                             STALL_CLIENT};
    settle_request(connection, log, turn);
    int64_t stalls = charge_stalls(turn, &span);
    turn->response_ns = max64(span.until_ns - span.from_ns - stalls, 0);
    turn->response_bytes = responder->unique_bytes - log->base;
    turn->last_frame = responder->last_data_frame;
    log->responded_ns = span.until_ns;
}

/* --- turns ----------------------------------------------------------------------------------- */

/* Begins a turn at `start_ns`. Its request will be data of the requester above `base` unique bytes.
 */
static void begin_turn(struct turn_log *log, int64_t start_ns, uint32_t frame, uint64_t base,
                       struct pool *pool) {
    log->open = log->count < log->room || pool_grow(pool, (void **)&log->turns, &log->room,
                                                    sizeof *log->turns, 1, MAX_TURNS_PER_FLOW);
    log->dropped += !log->open;
    log->responding = log->waits = log->overlapped = false;
    if (!log->open)
        return;
    log->base = base;
    log->turns[log->count] =
        (struct turn){.start_ns = start_ns,
                      .answer_ns = -1,
                      .pause_ns = log->responded_ns ? start_ns - log->responded_ns : -1,
                      .first_frame = frame};
}

static void begin_request(const struct segment_context *seg, struct turn_log *log) {
    begin_turn(log, seg->packet->time_ns, seg->frame,
               seg->sender->unique_bytes - (uint64_t)seg->effect.unique_bytes, seg->pool);
}

/* The present turn is over; an undivided one is dropped. */
static void end_turn(const struct tcp_connection *connection, struct turn_log *log) {
    log->responded_ns = 0;
    if (!log->open || log->overlapped)
        return;
    settle_response(connection, log, &log->turns[log->count]);
    log->count++;
    log->open = false;
}

/* The requester sent new data; `covers`: after all data of the responder. */
static void take_request(const struct segment_context *seg, struct turn_log *log, bool covers) {
    log->waits = false;
    if (!log->responding) {
        if (!log->open)
            begin_request(seg, log);
        return;
    }
    if (covers) {
        end_turn(seg->connection, log);
        begin_request(seg, log);
        return;
    }
    log->overlaps++;
    struct turn *turn = &log->turns[log->count];
    if (seg->effect.acknowledges && seg->effect.acknowledged > log->response_at) {
        log->responded_ns = 0;
        begin_request(seg, log);
        log->overlapped = true;
        return;
    }
    log->responding = false;
    turn->acked_us = 0;
    log->base =
        seg->sender->unique_bytes - (uint64_t)seg->effect.unique_bytes - turn->request_bytes;
    turn->answer_ns = -1;
}

/* The responder sent new data. */
static void take_response(const struct segment_context *seg, struct turn_log *log, bool covers) {
    if (!log->open || log->responding)
        return;
    log->waits = !covers;
    if (!covers) {
        log->overlaps += seg->effect.turned;
        return;
    }
    struct turn *turn = &log->turns[log->count];
    const struct tcp_stream *requester = seg->receiver;
    log->responding = true;
    log->response_at = seg->effect.sequence;
    turn->request_ns = requester->last_data_ns - turn->start_ns;
    turn->answer_ns = seg->packet->time_ns - requester->last_data_ns;
    turn->request_bytes = requester->unique_bytes - log->base;
    int64_t acked_ns = requester->una_advanced_ns - requester->last_data_ns;
    if (acked_ns > 0 && acked_ns < turn->answer_ns)
        turn->acked_us = (uint32_t)min64(acked_ns / 1000, UINT32_MAX);
    log->base = seg->sender->unique_bytes - (uint64_t)seg->effect.unique_bytes;
}

/* --- the log --------------------------------------------------------------------------------- */

/* The direction of payload changes for the first time: the requester is known by the handshake or
 * the ports, else it sent the first data. If the responder did, that was a greeting, or the rest of
 * a response that began before the capture. */
static struct turn_log *begin_log(const struct segment_context *seg) {
    struct turn_log *log = pool_alloc(seg->pool, sizeof *log);
    unsigned direction = segment_direction(seg), first = !direction;
    struct tcp_connection *connection = seg->connection;
    connection->turns = log;
    if (!log)
        return NULL;
    *log = (struct turn_log){.requester = connection->requester == REQUESTER_UNKNOWN
                                              ? (uint8_t)first
                                              : connection->requester};
    const struct tcp_stream *before = seg->receiver;
    if (log->requester == first)
        begin_turn(log, before->first_data_ns, before->first_data_frame, 0, seg->pool);
    return log;
}

NOINLINE void note_turn(struct segment_context *seg) {
    struct turn_log *log = seg->connection->turns;
    unsigned direction = segment_direction(seg);
    if (log && seg->effect.rtt_ns >= 0 && !seg->packet->payload_bytes)
        log->pure_sample[!direction] = true;
    if (seg->effect.unique_bytes <= 0)
        return;
    if (!log && !seg->receiver->unique_bytes) {
        seg->sender->first_data_ns = seg->packet->time_ns;
        seg->sender->first_data_frame = seg->frame;
        return;
    }
    if (!log && !(log = begin_log(seg)))
        return;
    log->untimed |= !seg->packet->time_known;
    bool covers = seg->effect.acknowledges &&
                  seg->effect.acknowledged >= seg->receiver->snd_nxt - seg->receiver->fin_seen;
    if (direction == log->requester)
        take_request(seg, log, covers);
    else
        take_response(seg, log, covers);
}

void finish_turns(struct tcp_connection *connection) {
    struct turn_log *log = connection->turns;
    if (!log || !log->open || log->overlapped)
        return;
    struct turn *turn = &log->turns[log->count];
    if (log->responding) {
        end_turn(connection, log);
        return;
    }
    const struct tcp_stream *requester = &connection->streams[log->requester];
    turn->request_ns = requester->last_data_ns - turn->start_ns;
    turn->request_bytes = requester->unique_bytes - log->base;
    turn->last_frame = requester->last_data_frame;
    settle_request(connection, log, turn);
    log->count++;
    log->open = false;
}

enum word exchange_of(const struct tcp_connection *connection) {
    const struct tcp_stream *a = &connection->streams[0], *b = &connection->streams[1];
    const struct turn_log *log = connection->turns;
    if (!a->base_known || !b->base_known)
        return WORD_NONE;
    if (!log)
        return !a->unique_bytes != !b->unique_bytes ? WORD_STREAMING : WORD_NONE;
    if (log->overlaps > log->count)
        return WORD_PIPELINED;
    return log->count ? WORD_TURNS : WORD_NONE;
}

int64_t turn_rtt(const struct tcp_connection *connection, unsigned direction) {
    const struct tcp_stream *stream = &connection->streams[direction];
    const struct turn_log *log = connection->turns;
    bool shown = connection->handshake_rtt_ns >= 0 || (log && log->pure_sample[direction]);
    return stream->rtt.count && shown ? least_sample(stream) : RTT_UNKNOWN;
}

void turns_free(struct tcp_connection *connection, struct pool *pool) {
    struct turn_log *log = connection->turns;
    if (!log)
        return;
    pool_free(pool, log->turns, log->room * sizeof *log->turns);
    pool_free(pool, log, sizeof *log);
    connection->turns = NULL;
}
