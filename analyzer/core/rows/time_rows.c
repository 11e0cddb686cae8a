/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a direction went: its columns of `directions`; and the time of a flow as rows
 * of `time_spans` if they are wanted. The spans of a part sum to its column of `flows`. */
#include "rows/rows.h"
#include "tracker/steps.h"

static const unsigned columns[SENDER_TIMES] = {
    [SENDER_PAUSE] = directions_time_pause_ns,
    [SENDER_DELAYED_ACK] = directions_time_delayed_ack_ns,
    [SENDER_WINDOW] = directions_time_window_ns,
    [SENDER_BUFFER] = directions_time_send_buffer_ns,
    [SENDER_LOSS] = directions_time_loss_ns,
    [SENDER_NETWORK] = directions_time_network_ns,
    [SENDER_UNKNOWN] = directions_time_unknown_ns,
};

static const enum word words[PARTS] = {
    [PART_CONNECTING] = WORD_PART_CONNECTING,
    [PART_CLIENT] = WORD_PART_CLIENT,
    [PART_SERVER] = WORD_PART_SERVER,
    [PART_LOSS] = WORD_PART_LOSS,
    [PART_QUEUE] = WORD_PART_QUEUE,
    [PART_PATH] = WORD_PART_PATH,
    [PART_WINDOW] = WORD_WINDOW,
    [PART_SEND_BUFFER] = WORD_SEND_BUFFER,
    [PART_TRANSFER] = WORD_PART_TRANSFER,
    [PART_IDLE] = WORD_IDLE,
    [PART_UNKNOWN] = WORD_PART_UNKNOWN,
};

/* Idle time before RTOs comes from the recovery state, which has it even if no accounting was kept.
 */
void put_sender_times(struct row *row, const struct tcp_connection *connection,
                      const struct tcp_stream *stream) {
    const struct time_accounting *accounting = stream->accounting;
    const struct sending_unusual *unusual =
        unusual_of(&connection->time, stream != connection->streams);
    row_set(row, directions_rto_idle_ns, recovery_of(stream)->rto_idle_ns);
    if (!accounting || connection->time.incomplete)
        return;
    for (unsigned i = 0; i < SENDER_TIMES; i++)
        row_set(row, columns[i], sender_time(connection, stream, i));
    int64_t network_ns = sender_time(connection, stream, SENDER_NETWORK);
    row_set(row, directions_timeout_ns,
            min64(unusual->timeout_ns, sender_time(connection, stream, SENDER_LOSS)));
    row_set(row, directions_suspected_ns, unusual->suspected_ns);
    int64_t slow_start_ns = min64(accounting->slow_start_ns, network_ns);
    row_set(row, directions_slow_start_ns, slow_start_ns);
    row_set(row, directions_recovery_ns, min64(unusual->recovery_ns, network_ns - slow_start_ns));
    if (sender_time(connection, stream, SENDER_BUFFER))
        row_set(row, directions_send_buffer_bytes, accounting->steady->level);
}

static void add_span(struct row_sink *sink, const struct flow *flow, const struct time_span *span) {
    struct row row;
    row_clear(&row);
    row_set(&row, time_spans_flow, flow->number);
    row_set_if(&row, time_spans_direction, span->direction != NO_DIRECTION, span->direction);
    row_set(&row, time_spans_part, words[span->part]);
    row_set(&row, time_spans_start_ns, span->start_ns);
    row_set(&row, time_spans_end_ns, add_ns(span->start_ns, span->ns));
    row_set(&row, time_spans_merged, span->merged);
    add_row(sink, TABLE_time_spans, &row);
}

void time_rows_add(struct row_sink *sink, const struct flow *flow) {
    struct span_log *log = flow->key.protocol == IP_TCP ? flow->tcp.spans : NULL;
    if (!log || log->incomplete || !is_time_known(flow) ||
        !begin_flow_group(sink, TABLE_time_spans, flow))
        return;
    span_log_finish(log);
    for (uint32_t i = 0; i < log->count; i++)
        add_span(sink, flow, &log->spans[i]);
}
