/* SPDX-License-Identifier: Apache-2.0 */
/* Events: kept with their flow, and rows when it ends; bounded per flow and in total. Events above
 * a bound, and those for which the memory of flows has no room, are counted.
 *
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

/* --- as they happen --------------------------------------------------------------------------- */

/* Events of several flows at one packet are in the order of this call. */
static uint64_t position(struct row_sink *sink) {
    if (sink->minor) /* between packets, of one flow */
        return sink->at;
    sink->events_here = sink->events_at == sink->at ? sink->events_here + 1 : 0;
    sink->events_at = sink->at;
    return sink->at | (sink->events_here & (ORDER_QUOTED - 1));
}

static struct flow_event event_of(struct row_sink *sink, unsigned direction,
                                  const struct packet_info *packet, const struct event *event) {
    return (struct flow_event){
        .at = position(sink),
        .frame = packet->frame,
        .related_frame = event->related_frame,
        .time_ns = packet->time_ns,
        .bytes = event->bytes,
        .due_ns = packet->time_known ? event->due_ns : 0,
        .due_bytes = event->due_bytes,
        .capture = packet->capture,
        .kind = (uint16_t)event->kind,
        .place = (uint16_t)event->place,
        .evidence = (uint16_t)event->evidence,
        .cause = (uint16_t)event->cause,
        .detail = event->detail ? WORD_NONE : (uint16_t)event->cause,
        .time_known = packet->time_known,
        .direction = (uint8_t)direction,
        .spurious = event->spurious,
    };
}

/* Returns whether the event has an extra, which is set then. */
static bool extra_of(const struct row_sink *sink, const struct event *event,
                     struct event_extra *extra) {
    const struct icmp_report *icmp = event->icmp;
    size_t length = event->detail ? strnlen(event->detail, EVENT_DETAIL_MAX - 1) : 0;
    if (!sink->minor && !event->blocks && !length && !icmp)
        return false;
    *extra = (struct event_extra){.minor = sink->minor, .blocks = event->blocks};
    extra->size = (uint16_t)(offsetof(struct event_extra, detail) + length + 1);
    memcpy(extra->detail, event->detail ? event->detail : "", length);
    if (!icmp)
        return true;
    extra->mtu = icmp->mtu;
    extra->version = (uint8_t)icmp->version;
    memcpy(extra->router, icmp->router, icmp->version == 4 ? 4 : sizeof extra->router);
    return true;
}

/* Returns NULL without memory. */
static struct flow_event *keep(struct row_writer *writer, struct flow *flow,
                               const struct flow_event *event, const struct event_extra *extra) {
    struct flow_event *kept = pool_alloc(writer->pool, sizeof *kept);
    struct event_extra *more = kept && extra ? pool_alloc(writer->pool, extra->size) : NULL;
    if (!kept || (extra && !more)) {
        pool_release(writer->pool, kept, 1, sizeof *kept);
        return NULL;
    }
    *kept = *event;
    kept->extra = more;
    if (extra)
        memcpy(more, extra, extra->size);
    kept->before = flow->events;
    flow->events = kept;
    flow->event_count++;
    writer->sink->events_kept++;
    return kept;
}

/* --- as rows ---------------------------------------------------------------------------------- */

static void put_extra(struct row_sink *sink, struct row *row, const struct event_extra *extra) {
    row_set_text(sink, row, events_detail, extra->detail);
    row_set_if(row, events_blocks, extra->blocks, (int64_t)extra->blocks);
    row_set_if(row, events_mtu, extra->mtu, extra->mtu);
    if (extra->version)
        row_set(row, events_router, add_address(sink, extra->version, extra->router));
}

static void put_word(struct row *row, unsigned column, unsigned word) {
    row_set_if(row, column, word != WORD_NONE, word);
}

/* `flow` is NULL for an event of the capture itself. */
static void add(struct row_sink *sink, const struct flow *flow, const struct flow_event *event,
                const struct event_extra *extra) {
    struct row row;
    row_clear(&row);
    if (flow) {
        row_set(&row, events_flow, flow->number);
        row_set(&row, events_direction, event->direction);
    }
    row_set(&row, events_capture, event->capture);
    row_set(&row, events_frame, (int64_t)event->frame);
    row_set_if(&row, events_time_ns, event->time_known, event->time_ns);
    row_set(&row, events_kind, event->kind);
    put_word(&row, events_place, event->place);
    put_word(&row, events_evidence, event->evidence);
    row_set_if(&row, events_spurious, event->spurious >= SPURIOUS_NO,
               event->spurious == SPURIOUS_YES);
    row_set_if(&row, events_bytes, event->bytes > 0, event->bytes);
    row_set_if(&row, events_related_frame, event->related_frame, (int64_t)event->related_frame);
    row_set_text(sink, &row, events_detail, detail_of(event->detail));
    put_word(&row, events_cause, event->cause);
    row_set_if(&row, events_due_ns, event->due_ns, event->due_ns);
    row_set_if(&row, events_due_bytes, event->due_ns && event->due_bytes >= 0, event->due_bytes);
    if (extra)
        put_extra(sink, &row, extra);
    row_sink_add_at(sink, TABLE_events, &row,
                    &(struct row_order){.at = event->at, .minor = extra ? extra->minor : 0});
}

struct flow_event *event_write(struct row_writer *writer, struct flow *flow, unsigned direction,
                               const struct packet_info *packet, const struct event *event) {
    struct row_sink *sink = writer->sink;
    struct event_extra extra;
    if (sink->packets_only)
        return NULL;
    if ((flow && flow->event_count >= MAX_EVENTS_PER_FLOW) ||
        row_sink_rows(sink, TABLE_events) >= MAX_EVENTS) {
        sink->events_dropped++;
        return NULL;
    }
    struct flow_event written = event_of(sink, direction, packet, event);
    bool has_extra = extra_of(sink, event, &extra);
    if (!flow) {
        add(sink, NULL, &written, has_extra ? &extra : NULL);
        return NULL;
    }
    struct flow_event *kept = keep(writer, flow, &written, has_extra ? &extra : NULL);
    sink->events_dropped += !kept;
    return kept;
}

/* Equal positions are in the order of the calls. */
void event_rows_add(struct row_sink *sink, struct flow *flow) {
    struct flow_event *first = NULL;
    for (struct flow_event *event = flow->events, *before; event; event = before) {
        before = event->before;
        event->before = first;
        first = event;
    }
    flow->events = first;
    for (const struct flow_event *event = first; event; event = event->before)
        add(sink, flow, event, event->extra);
}

void events_free(struct row_writer *writer, struct flow *flow) {
    for (struct flow_event *event; (event = flow->events);) {
        flow->events = event->before;
        if (event->extra)
            pool_free(writer->pool, event->extra, event->extra->size);
        pool_free(writer->pool, event, sizeof *event);
    }
    writer->sink->events_kept -= flow->event_count;
    flow->event_count = 0;
}
