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

static void put_send_buffer(struct row *row, const struct steady_flight *steady) {
    int64_t held_ns = steady ? steady->held_ns : 0;
    row_set(row, directions_send_buffer_ns, held_ns);
    if (held_ns)
        row_set(row, directions_send_buffer_bytes, steady->level);
}

/* Whether the sender's view is known, and shows its limits. */
static bool are_limits_known(const struct flow *flow, const struct tcp_stream *stream) {
    return stream->accounting && !stream->accounting->view.unknown &&
           !hides_limit(&flow->tcp, stream, flow->last_ns - flow->first_ns);
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
