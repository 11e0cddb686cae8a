/* SPDX-License-Identifier: Apache-2.0 */
/* The longest waits of a flow as rows, which findings cite. Few flows have one, so their group is
 * begun with the first. */
#include "rows/rows.h"
#include "tracker/steps.h"

struct wait_writer {
    struct row_sink *sink;
    const struct flow *flow;
    unsigned direction;
    bool begun; /* the group */
};

/* Begins the row of a wait. Returns false without memory. */
static bool begin_wait(struct wait_writer *writer, struct row *row, enum word kind, uint32_t rank) {
    row_clear(row);
    if (!writer->begun && !begin_flow_group(writer->sink, TABLE_waits, writer->flow))
        return false;
    writer->begun = true;
    row_set(row, waits_flow, writer->flow->number);
    row_set(row, waits_direction, writer->direction);
    row_set(row, waits_kind, kind);
    row_set(row, waits_rank, rank);
    return true;
}

/* Sets the packet that ended the wait and adds the row. */
static void end_wait(struct wait_writer *writer, struct row *row, uint32_t capture, uint64_t frame,
                     int64_t time_ns) {
    row_set(row, waits_after_capture, capture);
    row_set(row, waits_after_frame, (int64_t)frame);
    row_set_if(row, waits_after_ns, time_ns != TIME_UNKNOWN, time_ns);
    add_row(writer->sink, TABLE_waits, row);
}

static void add_wait(struct wait_writer *writer, enum word kind, uint32_t rank,
                     const struct packet_wait *wait) {
    struct row row;
    if (!begin_wait(writer, &row, kind, rank))
        return;
    row_set(&row, waits_waited_ns, wait->ns);
    row_set_if(&row, waits_before_capture, wait->first_capture != CAPTURE_UNKNOWN,
               wait->first_capture);
    row_set(&row, waits_before_frame, wait->first_frame);
    row_set_if(&row, waits_before_ns, wait->first_ns != TIME_UNKNOWN, wait->first_ns);
    end_wait(writer, &row, wait->last_capture, wait->last_frame, wait->last_ns);
}

static void add_stalls(struct wait_writer *writer, const struct tcp_recovery_state *recovery) {
    for (uint32_t i = 0; i < recovery->stall_count; i++) {
        const struct stall *stall = &recovery->stalls[i];
        bool timed = stall->until_ns != TIME_UNKNOWN;
        add_wait(
            writer, WORD_TIMEOUT, i + 1,
            &(struct packet_wait){.ns = stall->ns,
                                  .first_ns = timed ? stall->until_ns - stall->ns : TIME_UNKNOWN,
                                  .last_ns = stall->until_ns,
                                  .first_frame = stall->from,
                                  .last_frame = stall->until,
                                  .first_capture = stall->from_capture,
                                  .last_capture = stall->until_capture});
    }
}

static void add_longest(struct wait_writer *writer, const struct tcp_stream *stream) {
    static const enum word kinds[WAIT_KINDS] = {[WAIT_IDLE] = WORD_IDLE,
                                                [WAIT_DELAYED_ACK] = WORD_DELAYED_ACK,
                                                [WAIT_WINDOW] = WORD_WINDOW,
                                                [WAIT_NETWORK] = WORD_NETWORK,
                                                [WAIT_SLOW_START] = WORD_SLOW_START,
                                                [WAIT_SEND_BUFFER] = WORD_SEND_BUFFER,
                                                [WAIT_RTT] = WORD_RTT};
    const struct packet_wait *waits[WAIT_KINDS];
    find_waits(&writer->flow->tcp, stream, waits);
    for (unsigned kind = 0; kind < WAIT_KINDS; kind++)
        if (waits[kind])
            add_wait(writer, kinds[kind], 1, waits[kind]);
}

static void add_slowest(struct wait_writer *writer, const struct slowest *slowest) {
    struct row row;
    if (slowest->frame && begin_wait(writer, &row, WORD_SLOWEST, 1))
        end_wait(writer, &row, slowest->capture, slowest->frame, slowest->time_ns);
}

void wait_rows_add(struct row_sink *sink, const struct flow *flow,
                   const struct row directions[static 2], const struct slowest slowest[static 2]) {
    struct wait_writer writer = {.sink = sink, .flow = flow};
    for (unsigned i = 0; i < 2; i++) {
        writer.direction = i;
        if (row_known(&directions[i], directions_rto_idle_ns))
            add_stalls(&writer, recovery_of(&flow->tcp.streams[i]));
        if (row_known(&directions[i], directions_time_network_ns) && flow->directions[i].timed)
            add_longest(&writer, &flow->tcp.streams[i]);
        add_slowest(&writer, &slowest[i]);
    }
}
