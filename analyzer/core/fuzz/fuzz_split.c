/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that is cut into shards, which are analyzed: every table of the capture
 * and of its shards must be readable. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz/memory_file.h"
#include "fuzz/packet_mutator.h"
#include "fuzz/read_table.h"
#include "shard/split.h"

#define SHARDS     2
#define FLOWS_MOST 1000

static const uint8_t section[] = {0x0a, 0x0d, 0x0d, 0x0a, 40,   0,    0,    0,    0x4d, 0x3c,
                                  0x2b, 0x1a, 1,    0,    0,    0,    0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0x57, 0x81, 4,    0,    1,    0,
                                  0,    0,    0,    0,    0,    0,    40,   0,    0,    0};

/* Returns the split after its end; NULL if the capture cannot be read. */
static struct split *split_capture(const struct split_options *options) {
    struct error error;
    struct split *split = split_open(options, &error);
    enum split_state state = SPLIT_MORE;
    while (split && state == SPLIT_MORE)
        state = split_step(split, &error);
    if (state == SPLIT_DONE)
        return split;
    check(!split || state == SPLIT_FAILED);
    split_close(split);
    return NULL;
}

/* Analyzes a shard. */
static void analyze_shard(int shard) {
    static const char *const name = "capture";
    static const struct analysis_options options = {
        .start_ns = INT64_MIN, .end_ns = INT64_MAX, .max_flows = FLOWS_MOST, .jobs = 1};
    static const struct reading_mode mode = {.shard = true, .clock_ns = INT64_MIN};
    char place[CAPTURE_PATH_SIZE];
    const char *path = place;
    struct error error = {0};
    snprintf(place, sizeof place, "/proc/self/fd/%d", shard);
    const struct analysis_files files = {.paths = &path, .names = &name, .count = 1};
    struct analysis *analysis = analysis_open(&files, &options, &mode, &error);
    check(analysis);
    while (analysis_step(analysis, 1000, &error))
        continue;
    if (error.kind == ERROR_NONE && analysis_finish(analysis, &error))
        write_tables(analysis);
    analysis_close(analysis);
}

static void split_and_analyze(const struct split_options *options) {
    struct split *split = split_capture(options);
    if (!split)
        return;
    struct analysis *analysis = split_analysis(split);
    write_tables(analysis);
    analysis_close(analysis);
    split_close(split);
    for (unsigned i = 0; i < SHARDS; i++)
        analyze_shard(options->fds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[CAPTURE_PATH_SIZE];
    const int fds[SHARDS] = {memfd_create("shard", 0), memfd_create("shard", 0)};
    int file = make_capture_file(data, size, path);
    const struct split_options options = {.path = path,
                                          .name = "capture",
                                          .fds = fds,
                                          .shard_count = SHARDS,
                                          .key = {.seed = {1}},
                                          .analysis = {.start_ns = INT64_MIN, .end_ns = INT64_MAX},
                                          .head = section,
                                          .head_size = sizeof section};
    split_and_analyze(&options);
    close(file);
    for (unsigned i = 0; i < SHARDS; i++)
        close(fds[i]);
    return 0;
}
