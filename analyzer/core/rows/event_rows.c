/* SPDX-License-Identifier: Apache-2.0 */
/* Events as rows, bounded per flow and in total; events above a bound are counted.
 *
 * Later evidence, such as a DSACK (RFC 2883), may change a verdict that was already written, so
 * every row has a number by which it can be amended; EVENT_NONE stands for a row that was dropped.
 * The bound of a flow counts its own events, so the order of flows does not matter to it; a batch
 * that may reach the total bound must run in file order (analysis.c). Analyses for packets alone
 * write no events. */
#include "rows/rows.h"

/* Returns the detail of an event that has no other, NULL without one. */
static const char *detail_of(enum word cause) {
    switch (cause) {
    case WORD_GO_BACK_N: return "go-back-N after an RTO";
    case WORD_RECOVERY: return "in the recovery that an earlier segment began";
    case WORD_CARRIED_DUPLICATE_ACKS:
        return "two duplicate ACKs, counted on from an earlier recovery";
    case WORD_LATE_REPORT: return "reported lost one sender RTT ago";
    case WORD_RACK: return "RACK: sent one RTT ago, and later data has arrived";
    case WORD_AFTER_HANDSHAKE: return "after the handshake";
    case WORD_AFTER_RETRANSMISSION: return "after its retransmission";
    case WORD_CHECKSUM_ERROR: return "arrived damaged before: its checksum was wrong";
    case WORD_BEFORE_CAPTURE: return "first transmission before the capture began";
    default: return NULL;
    }
}

static void put_icmp(struct row_sink *sink, struct row *row, const struct icmp_report *icmp) {
    row_set_if(row, events_mtu, icmp->mtu, icmp->mtu);
    row_set(row, events_router, add_address(sink, icmp->version, icmp->router));
}

/* Returns the number of the row, EVENT_NONE at a bound. */
static uint64_t add(struct row_sink *sink, struct flow *flow, unsigned direction,
                    const struct packet_info *packet, const struct event *event) {
    if ((flow && flow->event_count >= MAX_EVENTS_PER_FLOW) ||
        row_sink_rows(sink, TABLE_events) >= MAX_EVENTS) {
        sink->events_dropped++;
        return EVENT_NONE;
    }
    struct row row;
    row_clear(&row);
    if (flow) {
        flow->event_count++;
        row_set(&row, events_flow, flow->number);
        row_set(&row, events_direction, direction);
    }
    row_set(&row, events_capture, packet->capture);
    row_set(&row, events_frame, packet->frame);
    row_set_if(&row, events_time_ns, packet->time_known, packet->time_ns);
    row_set(&row, events_kind, event->kind);
    row_set_if(&row, events_place, event->place != WORD_NONE, event->place);
    row_set_if(&row, events_evidence, event->evidence != WORD_NONE, event->evidence);
    row_set_if(&row, events_spurious, event->spurious >= SPURIOUS_NO,
               event->spurious == SPURIOUS_YES);
    row_set_if(&row, events_bytes, event->bytes > 0, event->bytes);
    row_set_if(&row, events_related_frame, event->related_frame > 0, event->related_frame);
    row_set_text(sink, &row, events_detail,
                 event->detail ? event->detail : detail_of(event->cause));
    row_set_if(&row, events_cause, event->cause != WORD_NONE, event->cause);
    row_set_if(&row, events_blocks, event->blocks > 0, (int64_t)event->blocks);
    row_set_if(&row, events_due_ns, event->due_ns && packet->time_known, event->due_ns);
    row_set_if(&row, events_due_bytes, event->due_ns && event->due_bytes >= 0, event->due_bytes);
    if (event->icmp)
        put_icmp(sink, &row, event->icmp);
    return row_sink_add(sink, TABLE_events, &row);
}

uint64_t event_write(struct row_writer *writer, struct flow *flow, unsigned direction,
                     const struct packet_info *packet, const struct event *event) {
    if (writer->sink->packets_only)
        return EVENT_NONE;
    return add(writer->sink, flow, direction, packet, event);
}

/* Stores a value in place of the present one, or null unless it is known. Unknown columns must be
 * cleared, because the verdict before may have set them. */
static void amend(struct row_sink *sink, uint64_t row, unsigned column, bool known, int64_t value) {
    if (!table_amend(&sink->tables[TABLE_events], row, sink->at, column, known, value))
        sink->out_of_memory = true;
}

void event_amend(struct row_sink *sink, uint64_t row, const struct event *event) {
    if (row == EVENT_NONE)
        return;
    amend(sink, row, events_kind, true, event->kind);
    amend(sink, row, events_place, event->place != WORD_NONE, event->place);
    amend(sink, row, events_evidence, event->evidence != WORD_NONE, event->evidence);
    if (event->spurious != SPURIOUS_NOT_ASKED)
        amend(sink, row, events_spurious, event->spurious >= SPURIOUS_NO,
              event->spurious == SPURIOUS_YES);
    if (event->cause != WORD_NONE)
        amend(sink, row, events_cause, true, event->cause);
    if (event->cause_withdrawn) {
        amend(sink, row, events_cause, false, 0);
        amend(sink, row, events_detail, false, 0);
    }
}
