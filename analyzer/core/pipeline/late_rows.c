/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that Python adds to a finished analysis: findings, and the names of QUIC's servers, for
 * which it decrypts the Initials that the flows kept. */
#include <math.h>
#include <string.h>

#include "pipeline/analysis.h"
#include "rows/rows.h"

bool analysis_add_finding(struct analysis *analysis, const struct finding *finding) {
    struct row_sink *sink = analysis_sink(analysis);
    struct row row;
    int64_t cost, impact;
    const long long places[] = {finding->cited_flow, finding->capture,  finding->first_frame,
                                finding->last_frame, finding->first_ns, finding->last_ns};
    /* A REAL is stored as its bits. */
    memcpy(&cost, &finding->cost, sizeof cost);
    memcpy(&impact, &finding->impact, sizeof impact);
    row_clear(&row);
    row_set_text(sink, &row, findings_code, finding->code);
    row_set_text(sink, &row, findings_severity, finding->severity);
    row_set_text(sink, &row, findings_scope, finding->scope);
    row_set_if(&row, findings_flow, finding->flow != FINDING_NULL, finding->flow);
    row_set_text(sink, &row, findings_sentence, finding->sentence);
    row_set_if(&row, findings_cost, !isnan(finding->cost), cost);
    row_set_text(sink, &row, findings_cost_unit, finding->cost_unit);
    row_set_if(&row, findings_impact, !isnan(finding->impact), impact);
    row_set_text(sink, &row, findings_evidence, finding->evidence);
    row_set_text(sink, &row, findings_advice, finding->advice);
    row_set_text(sink, &row, findings_filter, finding->filter);
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        row_set_if(&row, findings_cited_flow + i, places[i] != FINDING_NULL, places[i]);
    add_row(sink, TABLE_findings, &row);
    return !sink->out_of_memory;
}

size_t analysis_initials(struct analysis *analysis) {
    return analysis_sink(analysis)->quic_names.count;
}

const char *analysis_initial(struct analysis *analysis, size_t number, size_t *size) {
    const struct row_sink *sink = analysis_sink(analysis);
    return string_table_get(&sink->texts, sink->quic_names.list[number].initials, size);
}

bool analysis_set_hello(struct analysis *analysis, size_t number, const char *server_name,
                        const char *alpn) {
    return quic_names_set(analysis_sink(analysis), number, server_name, alpn);
}

void analysis_settle_hellos(struct analysis *analysis) {
    quic_names_settle(analysis_sink(analysis));
}
