/* SPDX-License-Identifier: Apache-2.0 */
/* The bins of one direction as rows of series. */
#include "pipeline/analysis_state.h"
#include "rows/series_rows.h"

void series_finish(struct analysis *analysis, const struct flow *flow, unsigned number) {
    const struct direction *direction = &flow->directions[number];
    const struct time_bins *series = &direction->series;
    struct series_head head = {
        .first = series->first,
        .first_ns = direction->first_ns,
        .last_ns = direction->last_ns,
        .count = (uint16_t)series->count,
        .doublings = series->doublings,
        .number = number,
        .tcp = flow->key.protocol == IP_TCP,
        .payload_known = !direction->payload_unknown,
    };
    if (!series_record_add(&analysis->tables[TABLE_series], &head, series->bins))
        analysis->out_of_memory = true;
}
