/* SPDX-License-Identifier: Apache-2.0 */
/* Time by limiting factor: columns limit_*_ns of `directions`, and the same time as rows of
 * `limit_spans` if they are wanted.
 *
 * The spans of a kind sum to its column. Idle time before an RTO is both a column of its own, from
 * the recovery state, and part of the time that the tracker accounts, so its spans may overlap
 * others, as the columns do. */
#include "rows/rows.h"
#include "tracker/steps.h"
#include "tracker/turns.h"

/* The column of a cause, and the word of a span. */
static const struct {
    unsigned column;
    enum word word;
} limits[SPAN_KINDS] = {
    [LIMIT_IDLE] = {directions_limit_idle_ns, WORD_IDLE},
    [LIMIT_DELAYED_ACK] = {directions_limit_delayed_ack_ns, WORD_LIMITED_DELAYED_ACK},
    [LIMIT_WINDOW] = {directions_limit_window_ns, WORD_LIMITED_WINDOW},
    [LIMIT_RECOVERY] = {directions_limit_recovery_ns, WORD_LIMITED_RECOVERY},
    [LIMIT_TIMEOUT] = {directions_limit_timeout_ns, WORD_LIMITED_TIMEOUT},
    [LIMIT_SLOW_START] = {directions_limit_slow_start_ns, WORD_LIMITED_SLOW_START},
    [LIMIT_NETWORK] = {directions_limit_network_ns, WORD_LIMITED_NETWORK},
    [SPAN_WAITING] = {directions_limit_waiting_ns, WORD_LIMITED_WAITING},
    [SPAN_SEND_BUFFER] = {directions_send_buffer_ns, WORD_LIMITED_SEND_BUFFER},
};

#define SHAPED_WINDOW   32768             /* bytes: a queue of a few ms can hold them */
#define SHAPED_QUEUE_NS INT64_C(50000000) /* a shaper's */
#define NEAR_PART       4                 /* of the RTT, or SLACK_NS: it is near the sender */
#define UNSURE_PART     10                /* of the time: more is too much */
#define INITIAL_WINDOW  10                /* segments (RFC 6928) */
#define RARE_LOSS       200 /* one of so many lets a congestion window of 17 grow (RFC 3649) */

static int64_t accounted_ns(const struct time_accounting *accounting) {
    int64_t total = 0;
    for (unsigned i = 0; i < LIMIT_CAUSES; i++)
        total = add_ns(total, accounting->ns[i]);
    return total;
}

/* Returns true if the data of `delay_ns`, at the mean rate, fill the receive window. */
static bool fills_window(const struct flow *flow, const struct tcp_stream *stream,
                         int64_t delay_ns) {
    int64_t window = peer_of(&flow->tcp, stream)->window;
    double total = (double)accounted_ns(stream->accounting);
    return window > 0 && (double)window * total <= (double)stream->unique_bytes * (double)delay_ns;
}

/* Returns true if, without timestamps, too much is uncertain far from the sender: the path may have
 * spread one write or the segments that filled the window, or the sender may have paced them. */
static bool may_be_spread(const struct time_accounting *accounting, int64_t total) {
    const struct steady_flight *steady = accounting->steady;
    if (!steady)
        return false;
    int64_t unsure = min64(steady->unsure_ns, accounting->ns[LIMIT_NETWORK]);
    int64_t spread = min64(steady->spread_ns, accounting->ns[LIMIT_WINDOW]);
    return add_ns(unsure, spread) > total / UNSURE_PART;
}

/* Returns true if a queue between the sender and the capture point may hide a full receive window,
 * or an idle application, for more than a part of the time: without timestamps, it is not seen. */
static bool may_hide_limit(const struct flow *flow, const struct tcp_stream *stream) {
    const struct time_accounting *accounting = stream->accounting;
    int64_t total = accounted_ns(accounting), rtt = max64(path_rtt(&flow->tcp), 0);
    int64_t sender_rtt_ns = view_rtt(&flow->tcp, stream, &accounting->view);
    bool far = sender_rtt_ns > SLACK_NS && NEAR_PART * sender_rtt_ns > rtt;
    if (stream->timestamps)
        return false;
    if (far && may_be_spread(accounting, total))
        return true;
    if (accounting->ns[LIMIT_NETWORK] < total / UNSURE_PART)
        return false;
    if (far)
        return fills_window(flow, stream, rtt + HIDDEN_QUEUE_NS);
    /* The queue holds little of a window of which half is in flight behind the capture point. */
    return peer_of(&flow->tcp, stream)->window <= SHAPED_WINDOW &&
           fills_window(flow, stream, rtt + SHAPED_QUEUE_NS) &&
           (accounting->ns[LIMIT_NETWORK] >= total / 2 || !fills_window(flow, stream, 2 * rtt));
}

/* Returns true if a shaper or a queue of the sender's host may have been busy with too little data.
 * The sender never had as many segments in flight as even a new connection may send, though losses
 * were rare and the receive window had room, and PSH shows that no more data was behind them. Then
 * the send buffer, or the application, and the shaper alternate as limits. */
static bool may_lack_data(const struct flow *flow, const struct tcp_stream *stream) {
    const struct time_accounting *accounting = stream->accounting;
    const struct steady_flight *steady = accounting->steady;
    if (!steady || !steady->begun ||
        accounting->ns[LIMIT_NETWORK] <= accounted_ns(accounting) / UNSURE_PART)
        return false;
    int64_t segment = full_segment_size(&flow->tcp, stream), initial = INITIAL_WINDOW * segment;
    int64_t most = max64(steady->most, stream->flight_max), sent = accounting->end - steady->first;
    int64_t window = peer_of(&flow->tcp, stream)->window;
    if (most >= initial || (window >= 0 && window < most + 2 * segment) ||
        sent >= initial * steady->pushes)
        return false;
    if (stream->timestamps && UNSURE_PART * segment * steady->queued < sent)
        return false;
    return RARE_LOSS * segment * (int64_t)recovery_of(stream)->retransmissions <= sent;
}

static void put_send_buffer(struct row *row, const struct steady_flight *steady) {
    int64_t held_ns = steady ? steady->held_ns : 0;
    row_set(row, directions_send_buffer_ns, held_ns);
    if (held_ns)
        row_set(row, directions_send_buffer_bytes, steady->level);
}

/* Whether the sender's view is known, and shows its limits. */
static bool are_limits_known(const struct flow *flow, const struct tcp_stream *stream) {
    return stream->accounting && !stream->accounting->view.unknown &&
           !may_hide_limit(flow, stream) && !may_lack_data(flow, stream);
}

/* Idle time before RTOs comes from the recovery state, which has it even if no accounting was kept,
 * and replaces the accounted one. */
void put_limits(struct row *row, const struct flow *flow, const struct tcp_stream *stream) {
    bool known = are_limits_known(flow, stream);
    for (unsigned i = 0; known && i < LIMIT_CAUSES; i++)
        row_set(row, limits[i].column, stream->accounting->ns[i]);
    if (known && exchange_of(&flow->tcp) == WORD_TURNS)
        row_set(row, directions_limit_waiting_ns, stream->accounting->waiting_ns);
    if (known)
        put_send_buffer(row, stream->accounting->steady);
    row_set(row, directions_limit_timeout_ns, recovery_of(stream)->rto_idle_ns);
}

/* Only in a flow with turns is it known that the endpoint waited for the other. */
static void add_span(struct row_sink *sink, const struct flow *flow, unsigned direction,
                     const struct limit_span *span, bool has_turns) {
    struct row row;
    row_clear(&row);
    row_set(&row, limit_spans_flow, flow->number);
    row_set(&row, limit_spans_direction, direction);
    row_set(&row, limit_spans_kind,
            span->kind == SPAN_WAITING && !has_turns ? WORD_IDLE : limits[span->kind].word);
    row_set(&row, limit_spans_start_ns, span->start_ns);
    row_set(&row, limit_spans_end_ns, add_ns(span->start_ns, span->ns));
    row_set(&row, limit_spans_merged, span->merged);
    add_row(sink, TABLE_limit_spans, &row);
}

static void add_spans(struct row_sink *sink, const struct flow *flow, unsigned direction) {
    const struct tcp_stream *stream = &flow->tcp.streams[direction];
    struct limit_log *log = recovery_of(stream)->limits;
    bool known = are_limits_known(flow, stream), has_turns = exchange_of(&flow->tcp) == WORD_TURNS;
    if (!log || log->incomplete)
        return;
    limit_log_finish(log);
    for (uint32_t i = 0; i < log->count; i++)
        if (known || log->spans[i].kind == LIMIT_TIMEOUT)
            add_span(sink, flow, direction, &log->spans[i], has_turns);
}

void limit_rows_add(struct row_sink *sink, const struct flow *flow) {
    if (flow->key.protocol != IP_TCP || !flow->tcp.spans_wanted)
        return;
    if (!begin_flow_group(sink, TABLE_limit_spans, flow))
        return;
    for (unsigned direction = 0; direction < 2; direction++) {
        bool readable = !flow->tcp.streams[direction].counts_missing &&
                        !flow->directions[direction].payload_unknown;
        if (readable && flow->directions[!direction].packets)
            add_spans(sink, flow, direction);
    }
}
