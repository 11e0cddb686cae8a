/* SPDX-License-Identifier: Apache-2.0 */
/* The whole core on any bytes as a capture file: read, decode, track, finish, and every table
 * written out. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz/memory_file.h"
#include "fuzz/packet_mutator.h"
#include "fuzz/read_table.h"
#include "pipeline/analysis.h"

#define FLOWS_MOST 50 /* so that flows are evicted too */

static void analyze(const char *path, bool identified) {
    static const struct analysis_options options = {
        .start_ns = INT64_MIN, .end_ns = INT64_MAX, .max_flows = FLOWS_MOST};
    const struct reading_mode mode = {
        .packets = {.kind = identified ? PACKETS_IDENTIFIED : PACKETS_ALL},
        .packet_rows_most = 10000};
    struct error error;
    const struct analysis_files files = {.paths = &path, .count = 1};
    struct analysis *analysis = analysis_open(&files, &options, &mode, &error);
    if (!analysis)
        return;
    while (analysis_step(analysis, 1000, &error))
        continue;
    analysis_finish(analysis, &error);
    write_tables(analysis);
    analysis_close(analysis);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[CAPTURE_PATH_SIZE];
    int file = make_capture_file(data, size, path);
    analyze(path, size % 2);
    close(file);
    return 0;
}
