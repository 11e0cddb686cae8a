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
 * spurious retransmission at the end of a request or response delayed nothing. If the first
 * transmission of a request or response may be lost before the capture point, the time before it is
 * unknown. A pause is time within a request or response in which its sender had nothing more to
 * send, and no ACK, window or loss held it back.
 *
 * The log belongs to the connection; its turns become rows when the flow is over, with the least
 * RTT of all. */
#include "tracker/turns.h"

#include <string.h>

#include "tracker/steps.h"
#include "verdict/recent_verdicts.h"
#include "verdict/verdict.h"

#define INITIAL_WINDOW    10                  /* segments */
#define REQUEST_SPREAD_NS INT64_C(1000000000) /* of a request that was written at once */

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

/* --- pauses ---------------------------------------------------------------------------------- */

/* A write of the application ended with the last data, so there may have been no more. */
static bool ended_write(const struct segment_context *seg) {
    const struct tcp_stream *sender = seg->sender;
    uint32_t mss = seg->receiver->mss ? seg->receiver->mss : SEGMENT_USUAL;
    bool pushed = sender->last_pushed || !sender->pushes;
    bool is_short = sender->last_payload < full_segment_size(seg->connection, sender) ||
                    sender->last_payload < mss / 2;
    return pushed && (is_short || !sender->unpushed);
}

/* Whether the congestion window may hold data back: after a retransmission, and above the initial
 * window (RFC 6928). `bytes` were sent since the last data of the other direction. */
static bool may_fill_cwnd(const struct segment_context *seg, uint64_t bytes) {
    return recovery_of(seg->sender)->retransmissions ||
           bytes > INITIAL_WINDOW * (uint64_t)full_segment_size(seg->connection, seg->sender);
}

/* Whether an ACK released the data, which passed `since_ns` before: it takes the RTT to the sender,
 * and the data back. If the congestion window is full, an earlier ACK may have released it. */
static bool is_released(const struct segment_context *seg, int64_t since_ns, uint64_t bytes) {
    int64_t rtt = sender_rtt(seg->connection, seg->sender);
    if (rtt < 0)
        return since_ns <= MIN_RTO_NS;
    return since_ns <= rtt + SLACK_NS && (since_ns >= rtt - SLACK_NS || may_fill_cwnd(seg, bytes));
}

/* Returns for how long of `idle_ns` the sender had nothing to send. After a full segment without
 * PSH it had, so only a longer time than any spacing counts. If the TSecr did not change, the
 * sender received nothing (RFC 7323 section 4.3). */
static int64_t pause_in(const struct segment_context *seg, int64_t idle_ns, uint64_t bytes) {
    const struct tcp_stream *sender = seg->sender;
    bool acked = sender->snd_una_known && sender->snd_una >= sender->snd_nxt;
    bool ended = ended_write(seg);
    if ((!acked && !ended) || recovery_of(sender)->suspected_ns == seg->packet->time_ns ||
        (!ended && !sender->last_pushed && idle_ns <= MIN_RTO_NS))
        return 0;
    int64_t opened_ns = recovery_of(seg->receiver)->window_opened_ns;
    int64_t since_ns = seg->packet->time_ns - max64(sender->una_advanced_ns, opened_ns);
    bool heard = !has_timestamps(seg) || seg->tcp->timestamp_echo != sender->tsval_echo;
    if (since_ns >= idle_ns || (ended && !heard))
        return idle_ns;
    if (is_released(seg, since_ns, bytes))
        return 0;
    return ended ? idle_ns : max64(since_ns - max64(sender_rtt(seg->connection, sender), 0), 0);
}

/* Retransmissions since the last new data delayed nothing, because the sender had no more data:
 * their stalls become part of the pause. Returns their sum in us. */
static int64_t absorb_stalls(const struct tcp_stream *sender) {
    struct tcp_recovery_state *recovery = sender->recovery;
    int64_t sum_us = 0, at_ns = sender->last_data_ns;
    for (uint32_t age = 0; recovery && age < recovery->record_count; age++) {
        struct retransmission_record *record = record_at(recovery, age);
        if (record->time_ns < at_ns)
            break;
        sum_us += record->waited_us;
        at_ns = record->time_ns - (int64_t)record->waited_us * 1000;
        record->waited_us = 0;
    }
    return sum_us;
}

NOINLINE bool note_pause(const struct segment_context *seg, int64_t idle_ns) {
    struct turn_log *log = seg->connection->turns;
    bool response = log && segment_direction(seg) != log->requester;
    if (log ? !log->open || response != log->responding : !seg->sender->sent_data_last)
        return false;
    bool suspected = recovery_of(seg->sender)->suspected_ns == seg->packet->time_ns;
    if (log && (suspected || may_hide_rto(seg, idle_ns)))
        log->turns[log->count].unsure[response] |= ended_write(seg);
    int64_t pause_ns = pause_in(seg, idle_ns, seg->sender->unique_bytes - (log ? log->base : 0));
    if (!pause_ns || !seg->packet->time_known)
        return true;
    uint32_t *paused_us =
        log ? &log->turns[log->count].paused_us[response] : &seg->sender->paused_us;
    int64_t us = pause_ns / 1000 + (pause_ns == idle_ns ? absorb_stalls(seg->sender) : 0);
    *paused_us = (uint32_t)min64(*paused_us + us, UINT32_MAX);
    if (log) {
        log->last_pause_us = (uint32_t)min64(us, UINT32_MAX);
        log->last_pause_frame = seg->frame;
    }
    return true;
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
    if (!log->open)
        return;
    struct turn *turn = &log->turns[log->count];
    turn->request_repeats = seg->effect.may_repeat;
    turn->request_length = seg->packet->fragment ? 0 : seg->packet->message_bytes;
    turn->asks_header = !seg->packet->fragment && seg->packet->http_status == HTTP_ASKS_HEADER;
    turn->after_fin = seg->receiver->fin_seen && seg->effect.acknowledges &&
                      seg->effect.acknowledged >= seg->receiver->fin_end;
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
    turn->acked_us = turn->paused_us[1] = 0;
    turn->response_repeats = false;
    log->base =
        seg->sender->unique_bytes - (uint64_t)seg->effect.unique_bytes - turn->request_bytes;
    turn->answer_ns = -1;
}

static bool is_interim(unsigned status) {
    return status >= 100 && status < 200 && status != 101;
}

/* A response of HTTP begins with this segment, behind those of the turn before it. */
static void set_status(const struct segment_context *seg, struct turn_log *log, unsigned status) {
    struct turn *turn = &log->turns[log->count];
    uint32_t length = seg->packet->message_bytes;
    uint64_t before = seg->sender->unique_bytes - (uint64_t)seg->effect.unique_bytes - log->base;
    turn->status = (uint16_t)status;
    turn->response_length = length && length != HTTP_UNTIL_CLOSE && before < UINT32_MAX - length
                                ? length + (uint32_t)before
                                : length;
}

/* An interim response of HTTP (RFC 9110 section 15.2) is followed by the final one. */
static void take_final_status(const struct segment_context *seg, struct turn_log *log) {
    unsigned status = seg->packet->fragment ? 0 : seg->packet->http_status;
    if (status)
        set_status(seg, log, status);
    log->interim = !status || is_interim(status);
}

/* The responder sent new data. */
static void take_response(const struct segment_context *seg, struct turn_log *log, bool covers) {
    if (log->open && log->responding && log->interim)
        take_final_status(seg, log);
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
    turn->answered_ns = seg->packet->time_ns;
    turn->answer_frame = seg->frame;
    turn->request_bytes = requester->unique_bytes - log->base;
    turn->response_repeats = seg->effect.may_repeat;
    bool of_fin = requester->fin_seen && requester->snd_una >= requester->fin_end;
    int64_t acked_ns = of_fin ? 0 : requester->una_advanced_ns - requester->last_data_ns;
    if (acked_ns > 0 && acked_ns < turn->answer_ns)
        turn->acked_us = (uint32_t)min64(acked_ns / 1000, UINT32_MAX);
    log->base = seg->sender->unique_bytes - (uint64_t)seg->effect.unique_bytes;
    set_status(seg, log, seg->packet->fragment ? 0 : seg->packet->http_status);
    log->interim = is_interim(turn->status);
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
    if (log->requester == first)
        begin_turn(log, connection->first_data_ns, connection->first_data_frame, 0, seg->pool);
    if (log->open)
        log->turns[0].paused_us[0] = seg->receiver->paused_us;
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
        seg->connection->first_data_ns = seg->packet->time_ns;
        seg->connection->first_data_frame = seg->frame;
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

/* The client alone sent data, and what it sent looks like a request and not like an upload: a write
 * that fits the initial window, behind which it stayed to wait. */
static struct turn_log *begin_lone_request(struct tcp_connection *connection, struct pool *pool) {
    const struct tcp_stream *client = connection->streams, *server = &connection->streams[1];
    const struct time_account *account = &connection->time;
    int64_t most = INITIAL_WINDOW * full_segment_size(connection, client);
    bool closes = client->fin_seen && !connection->fin_by &&
                  account->fin_ns - client->last_data_ns <= FAREWELL_NS;
    if (!connection->handshake_ack_seen || !client->unique_bytes || server->unique_bytes ||
        (server->snd_una_known && server->snd_una > server->snd_nxt) || closes ||
        (int64_t)client->unique_bytes > most ||
        client->last_data_ns - connection->first_data_ns > REQUEST_SPREAD_NS)
        return NULL;
    struct turn_log *log = connection->turns = pool_zeroed(pool, sizeof *log);
    if (log)
        begin_turn(log, connection->first_data_ns, connection->first_data_frame, 0, pool);
    return log;
}

void finish_turns(struct tcp_connection *connection, struct pool *pool) {
    struct turn_log *log = connection->turns;
    if (!log)
        log = begin_lone_request(connection, pool);
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
