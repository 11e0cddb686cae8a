/* SPDX-License-Identifier: Apache-2.0 */
/* Events as rows, bounded for a flow and in all; what is over the bound is counted. */
#include "analysis_state.h"

void event_log(struct analysis *analysis, struct flow *flow, unsigned direction,
               const struct sighting *seen, enum word kind, int64_t bytes, uint64_t related_frame,
               const char *detail) {
    if (analysis->packets_only)
        return;
    if ((flow && flow->event_count >= EVENTS_A_FLOW_MOST) ||
        analysis->tables[TABLE_events].row_count >= EVENTS_MOST) {
        analysis->totals.events_dropped++;
        return;
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
    row_set(&row, events_kind, kind);
    row_set_if(&row, events_bytes, bytes > 0, bytes);
    row_set_if(&row, events_related_frame, related_frame > 0, (int64_t)related_frame);
    row_set_text(analysis, &row, events_detail, detail);
    add_row(analysis, TABLE_events, &row);
}
