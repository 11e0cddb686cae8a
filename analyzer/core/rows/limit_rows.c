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

static const unsigned limit_columns[LIMIT_CAUSES] = {
    [LIMIT_IDLE] = directions_limit_idle_ns,
    [LIMIT_DELAYED_ACK] = directions_limit_delayed_ack_ns,
    [LIMIT_WINDOW] = directions_limit_window_ns,
    [LIMIT_RECOVERY] = directions_limit_recovery_ns,
    [LIMIT_TIMEOUT] = directions_limit_timeout_ns,
    [LIMIT_SLOW_START] = directions_limit_slow_start_ns,
    [LIMIT_NETWORK] = directions_limit_network_ns,
};

#define SHAPED_WINDOW   32768             /* bytes: a queue of a few ms can hold them */
#define SHAPED_QUEUE_NS INT64_C(50000000) /* a shaper's */
#define NEAR_PART       4                 /* of the RTT, or SLACK_NS: it is near the sender */
#define UNSURE_PART     10                /* of the time: more is too much */

/* Returns true if a queue between the sender and the capture point may hide a full receive window,
 * or an idle application, for more than a part of the time: without timestamps, it is not seen. */
static bool may_hide_limit(const struct flow *flow, const struct tcp_stream *stream) {
    const struct time_accounting *accounting = stream->accounting;
    int64_t window = peer_of(&flow->tcp, stream)->window, total = 0;
    int64_t network = accounting->ns[LIMIT_NETWORK], rtt = max64(path_rtt(&flow->tcp), 0);
    for (unsigned i = 0; i < LIMIT_CAUSES; i++)
        total = add_ns(total, accounting->ns[i]);
    int64_t sender_rtt_ns = view_rtt(&flow->tcp, stream, &accounting->view);
    bool far = sender_rtt_ns > SLACK_NS && NEAR_PART * sender_rtt_ns > rtt;
    if (stream->timestamps)
        return false;
    int64_t unsure = accounting->steady ? accounting->steady->unsure_ns : 0;
    if (far && min64(unsure, network) > total / UNSURE_PART)
        return true;
    if (window <= 0 || (!far && window > SHAPED_WINDOW) ||
        network < (far ? total / UNSURE_PART : total / 2))
        return false;
    int64_t delay_ns = rtt + (far ? HIDDEN_QUEUE_NS : SHAPED_QUEUE_NS);
    return (double)window * (double)total <= (double)stream->unique_bytes * (double)delay_ns;
}

static void put_send_buffer(struct row *row, const struct steady_flight *steady) {
    int64_t held_ns = steady ? steady->held_ns : 0;
    row_set(row, directions_send_buffer_ns, held_ns);
    if (held_ns)
        row_set(row, directions_send_buffer_bytes, steady->level);
}

/* Whether the sender's view is known. */
static bool are_limits_known(const struct flow *flow, const struct tcp_stream *stream) {
    return stream->accounting && !stream->accounting->view.unknown && !may_hide_limit(flow, stream);
}

/* Idle time before RTOs comes from the recovery state, which has it even if no accounting was kept,
 * and replaces the accounted one. */
void put_limits(struct row *row, const struct flow *flow, const struct tcp_stream *stream) {
    bool known = are_limits_known(flow, stream);
    for (unsigned i = 0; known && i < LIMIT_CAUSES; i++)
        row_set(row, limit_columns[i], stream->accounting->ns[i]);
    if (known && exchange_of(&flow->tcp) == WORD_TURNS)
        row_set(row, directions_limit_waiting_ns, stream->accounting->waiting_ns);
    if (known)
        put_send_buffer(row, stream->accounting->steady);
    row_set(row, directions_limit_timeout_ns, recovery_of(stream)->rto_idle_ns);
}

static const uint8_t span_words[SPAN_KINDS] = {
    [LIMIT_IDLE] = WORD_IDLE,
    [LIMIT_DELAYED_ACK] = WORD_LIMITED_DELAYED_ACK,
    [LIMIT_WINDOW] = WORD_LIMITED_WINDOW,
    [LIMIT_RECOVERY] = WORD_LIMITED_RECOVERY,
    [LIMIT_TIMEOUT] = WORD_LIMITED_TIMEOUT,
    [LIMIT_SLOW_START] = WORD_LIMITED_SLOW_START,
    [LIMIT_NETWORK] = WORD_LIMITED_NETWORK,
    [SPAN_WAITING] = WORD_LIMITED_WAITING,
    [SPAN_SEND_BUFFER] = WORD_LIMITED_SEND_BUFFER,
};

/* Only in a flow with turns is it known that the endpoint waited for the other. */
static void add_span(struct row_sink *sink, const struct flow *flow, unsigned direction,
                     const struct limit_span *span, bool has_turns) {
    struct row row;
    row_clear(&row);
    row_set(&row, limit_spans_flow, flow->number);
    row_set(&row, limit_spans_direction, direction);
    row_set(&row, limit_spans_kind,
            span->kind == SPAN_WAITING && !has_turns ? WORD_IDLE : span_words[span->kind]);
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
