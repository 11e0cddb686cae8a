/* SPDX-License-Identifier: Apache-2.0 */
/* Events as rows, bounded for a flow and in all; what is over the bound is counted. */
#include "pipeline/analysis_state.h"

static uint64_t add(struct worker *worker, struct flow *flow, unsigned direction,
                    const struct packet_info *seen, const struct event *event) {
    struct analysis *analysis = worker->analysis;
    if ((flow && flow->event_count >= EVENTS_A_FLOW_MOST) ||
        batch_order_rows(analysis, TABLE_events) >= EVENTS_MOST) {
        analysis->totals.events_dropped++;
        return EVENT_NONE;
    }
    struct row row;
    row_clear(&row);
    if (flow) {
        flow->event_count++;
        row_set(&row, events_flow, flow->number);
        row_set(&row, events_direction, direction);
    }
    row_set(&row, events_capture, seen->capture);
    row_set(&row, events_frame, (int64_t)seen->frame);
    row_set_if(&row, events_time_ns, seen->time_known, seen->time_ns);
    row_set(&row, events_kind, event->kind);
    row_set_if(&row, events_place, event->place != WORD_NONE, event->place);
    row_set_if(&row, events_evidence, event->evidence != WORD_NONE, event->evidence);
    row_set_if(&row, events_spurious, event->spurious != SPURIOUS_NOT_ASKED,
               event->spurious == SPURIOUS_YES);
    row_set_if(&row, events_bytes, event->bytes > 0, event->bytes);
    row_set_if(&row, events_related_frame, event->related_frame > 0, (int64_t)event->related_frame);
    row_set_text(analysis, &row, events_detail, event->detail);
    return batch_order_add(worker, TABLE_events, &row);
}

uint64_t event_log(struct worker *worker, struct flow *flow, unsigned direction,
                   const struct packet_info *seen, const struct event *event) {
    if (worker->analysis->packets_only)
        return EVENT_NONE;
    analysis_lock(worker->analysis);
    uint64_t row = add(worker, flow, direction, seen, event);
    analysis_unlock(worker->analysis);
    return row;
}

static void amend(struct analysis *analysis, uint64_t row, unsigned column, bool known,
                  int64_t value) {
    struct table *events = &analysis->tables[TABLE_events];
    if (!(known ? table_amend(events, row, column, value) : table_amend_null(events, row, column)))
        analysis->out_of_memory = true;
}

void event_amend(struct analysis *analysis, uint64_t row, const struct event *event) {
    if (row == EVENT_NONE)
        return;
    analysis_lock(analysis);
    amend(analysis, row, events_kind, true, event->kind);
    amend(analysis, row, events_place, event->place != WORD_NONE, event->place);
    amend(analysis, row, events_evidence, event->evidence != WORD_NONE, event->evidence);
    if (event->spurious != SPURIOUS_NOT_ASKED)
        amend(analysis, row, events_spurious, true, event->spurious == SPURIOUS_YES);
    analysis_unlock(analysis);
}
