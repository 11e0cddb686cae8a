/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of exchanges: echo requests with their replies. */
#include "base/int64.h"
#include "rows/rows.h"

#define ANSWER_NS INT64_C(1000000000) /* an answer takes no longer, as a rule */

/* An answer may have followed the end within this time: path queues delay all answers of a flow. */
static int64_t patience_ns(const struct flow *flow) {
    return max64(ANSWER_NS, 2 * min64(flow->echo.longest_ns, INT64_MAX / 2));
}

/* Returns the time from the request to `until_ns`; negative if it is not known. */
static int64_t waited_ns(const struct echo_request *request, int64_t until_ns) {
    int64_t asked_ns = request->asked.time_ns;
    if (asked_ns == TIME_UNKNOWN || until_ns == TIME_UNKNOWN)
        return -1;
    return max64(until_ns - asked_ns, 0);
}

static enum word outcome_of(const struct flow *flow, const struct echo_request *request,
                            int64_t end_ns) {
    int64_t silent_ns = waited_ns(request, end_ns);
    if (request->answered_frame)
        return request->error ? WORD_ERROR : WORD_ANSWERED;
    return silent_ns >= 0 && silent_ns < patience_ns(flow) ? WORD_CUT_OFF : WORD_UNANSWERED;
}

void echo_row_add(const struct row_writer *writer, const struct flow *flow,
                  const struct echo_request *request, int64_t end_ns) {
    struct row_sink *sink = writer->sink;
    const struct echo_packet *asked = &request->asked;
    unsigned client = flow_end(flow, asked->direction), version = flow->key.ip_version;
    bool answered = request->answered_frame, timed = asked->time_ns != TIME_UNKNOWN;
    int64_t wait_ns = answered ? waited_ns(request, request->answered_ns) : -1;
    struct row row;
    if (row_sink_rows(sink, TABLE_exchanges) >= MAX_EXCHANGE_ROWS) {
        sink->exchanges_dropped++;
        return;
    }
    row_clear(&row);
    row_set(&row, exchanges_flow, flow->number);
    row_set(&row, exchanges_direction, asked->direction);
    row_set(&row, exchanges_kind, WORD_ICMP_ECHO);
    row_set(&row, exchanges_capture, asked->capture);
    row_set(&row, exchanges_client, add_address(sink, version, flow->key.address[client]));
    row_set(&row, exchanges_server, add_address(sink, version, flow->key.address[!client]));
    row_set(&row, exchanges_id, asked->sequence);
    row_set_if(&row, exchanges_asked_ns, timed, asked->time_ns);
    row_set(&row, exchanges_asked_frame, (int64_t)asked->frame);
    row_set(&row, exchanges_attempts, 1);
    row_set_if(&row, exchanges_waited_ns, wait_ns >= 0, wait_ns);
    row_set(&row, exchanges_outcome, outcome_of(flow, request, end_ns));
    if (answered) {
        row_set_if(&row, exchanges_answered_ns, request->answered_ns != TIME_UNKNOWN,
                   request->answered_ns);
        row_set(&row, exchanges_answered_frame, (int64_t)request->answered_frame);
        row_set_text(sink, &row, exchanges_code, request->error);
    }
    row_sink_add(sink, TABLE_exchanges, &row);
}
