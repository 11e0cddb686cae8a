/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis to which all samples are added one after another, with so few flows open that others
 * end: what is taken between two files names only flows and interfaces that are in it, no packet
 * is lost, and what is left of the state is valid (`make sanitize` shows it). */
#include <stdlib.h>

#include "common/test/check.h"
#include "common/test/folder.h"
#include "format/merged_input.h"
#include "pipeline/analysis.h"

struct sums {
    uint64_t packets, flows;
    unsigned files;
};

static struct analysis *running;
static struct sums sums;

/* Checks that the numbers in a table are of flows and interfaces of the analysis. */
static void check_numbers(const struct analysis *analysis, enum table_number number) {
    const struct table *table = analysis_table(analysis, number);
    int64_t flows = (int64_t)analysis_totals(analysis)->flows;
    int64_t interfaces = (int64_t)analysis_table(analysis, TABLE_interfaces)->row_count;
    int flow = schema_column(table->schema, "flow");
    int capture = schema_column(table->schema, "capture");
    struct table_cursor cursor = {0};
    struct row row;
    while (table_next(table, &cursor, &row)) {
        if (flow >= 0 && row_known(&row, (unsigned)flow))
            CHECK(row.value[flow] >= 0 && row.value[flow] < flows);
        if (capture >= 0 && row_known(&row, (unsigned)capture))
            CHECK(row.value[capture] >= 0 && row.value[capture] < interfaces);
    }
    CHECK_INT(cursor.row, table->row_count);
}

static void check_rows(const struct analysis *analysis) {
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        check_numbers(analysis, (enum table_number)i);
    sums.packets += analysis_totals(analysis)->packets;
    sums.flows += analysis_totals(analysis)->flows;
    CHECK_INT(analysis_table(analysis, TABLE_flows)->row_count, analysis_totals(analysis)->flows);
}

/* Ends every second open flow without rows, which are not in the next part. */
static void leave_half(void) {
    struct error error;
    size_t count, half = 0;
    uint64_t *open = analysis_open_flows(running, &count);
    CHECK(open);
    for (size_t i = 0; i < count; i += 2)
        open[half++] = open[i];
    analysis_keep_flows(running, open, half);
    struct analysis *taken = analysis_take(running, &error);
    CHECK(taken);
    CHECK_INT(analysis_totals(taken)->packets, 0);
    CHECK_INT(analysis_table(taken, TABLE_flows)->row_count, 0);
    analysis_close(taken);
    free(open);
    open = analysis_open_flows(running, &count);
    CHECK_INT(count, half);
    free(open);
}

static unsigned jobs;

static void add_file(const char *path) {
    const struct analysis_options options = {
        .start_ns = INT64_MIN, .end_ns = INT64_MAX, .max_flows = 20, .jobs = jobs};
    const struct reading_mode mode = {.running = true};
    const struct analysis_files files = {.paths = &path, .count = 1};
    struct error error = {0};
    if (running)
        CHECK(analysis_follow(running, &files, &error));
    else
        running = analysis_open(&files, &options, &mode, &error);
    CHECK(running);
    while (analysis_step(running, 1000, &error))
        continue;
    sums.files++;
    CHECK(!analysis_follow(running, &files, &error));
    struct analysis *taken = analysis_take(running, &error);
    CHECK(taken);
    check_rows(taken);
    analysis_close(taken);
    if (sums.files % 5 == 0)
        leave_half();
}

static uint64_t packets_alone;

static void count_alone(const char *path) {
    const struct analysis_options options = {
        .start_ns = INT64_MIN, .end_ns = INT64_MAX, .max_flows = 20, .jobs = 1};
    const struct reading_mode mode = {.interfaces_only = true};
    const struct analysis_files files = {.paths = &path, .count = 1};
    struct error error;
    struct analysis *analysis = analysis_open(&files, &options, &mode, &error);
    CHECK(analysis);
    while (analysis_step(analysis, 1000, &error))
        continue;
    packets_alone += analysis_totals(analysis)->packets;
    analysis_close(analysis);
}

int main(void) {
    struct error error;
    CHECK(each_capture("sample_pcaps", count_alone));
    CHECK(each_capture("sample_pcaps/findings", count_alone));
    for (jobs = 1; jobs <= 2; jobs++) {
        sums = (struct sums){0};
        CHECK(each_capture("sample_pcaps", add_file));
        CHECK(each_capture("sample_pcaps/findings", add_file));
        CHECK(analysis_finish(running, &error));
        check_rows(running);
        analysis_close(running);
        running = NULL;
        CHECK_INT(sums.packets, packets_alone);
        printf("%u files, %llu flows\n", sums.files, (unsigned long long)sums.flows);
    }
    return 0;
}
