/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that is split, analyzed and gathered: the rows of its shards must be
 * taken. Then the last bytes of the input change some bytes of the rows, as those of another
 * machine may be: they must be refused, or every table must be readable. */
#define _GNU_SOURCE /* memfd_create */
#include "base/bytes.h"
#include "fuzz/memory_file.h"
#include "fuzz/packet_mutator.h"
#include "fuzz/read_table.h"
#include "shard/gather.h"

#define SHARDS      2
#define FLOWS_MOST  1000
#define CHANGE_SIZE 5 /* bytes: a place and a value */
#define CHANGES     4

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

/* Writes the rows of a shard. Returns false if its packets are refused. */
static bool analyze_shard(int shard, struct bytes *rows) {
    static const char *const name = "capture";
    static const struct analysis_options options = {
        .start_ns = INT64_MIN, .end_ns = INT64_MAX, .max_flows = FLOWS_MOST, .jobs = 1};
    static const struct reading_mode mode = {
        .shard = true, .clock_ns = INT64_MIN, .clock_most_ns = INT64_MIN};
    char place[CAPTURE_PATH_SIZE];
    const char *path = place;
    struct error error = {0};
    snprintf(place, sizeof place, "/proc/self/fd/%d", shard);
    const struct analysis_files files = {.paths = &path, .names = &name, .count = 1};
    struct analysis *analysis = analysis_open(&files, &options, &mode, &error);
    check(analysis);
    while (analysis_step(analysis, 1000, &error))
        continue;
    bool done = error.kind == ERROR_NONE && analysis_finish(analysis, &error);
    if (done)
        shard_rows_write(rows, analysis);
    analysis_close(analysis);
    return done && !rows->out_of_memory;
}

static void change(struct bytes *const parts[SHARDS + 1], const uint8_t *data, size_t size) {
    for (size_t i = 0; i < CHANGES && size >= CHANGE_SIZE; i++, size -= CHANGE_SIZE) {
        const uint8_t *at = data + size - CHANGE_SIZE;
        uint32_t place = load_le32(at);
        struct bytes *part = parts[place % (SHARDS + 1)];
        part->data[place / (SHARDS + 1) % part->size] ^= at[CHANGE_SIZE - 1];
    }
}

/* Returns whether the rows were taken. */
static bool gather_all(const struct split_facts *facts, struct bytes *const parts[SHARDS + 1]) {
    const struct gathered_file file = {.rows = parts[SHARDS]->data,
                                       .rows_size = parts[SHARDS]->size,
                                       .spans = (const uint8_t *)facts->spans,
                                       .span_count = facts->span_count,
                                       .packets = facts->packets,
                                       .excluded = facts->excluded,
                                       .refused = facts->refused};
    struct gathered_shard shards[SHARDS];
    for (unsigned i = 0; i < SHARDS; i++)
        shards[i] = (struct gathered_shard){parts[i]->data, parts[i]->size};
    const struct gather_input input = {.files = &file,
                                       .shards = shards,
                                       .file_count = 1,
                                       .shard_count = SHARDS,
                                       .max_flows = FLOWS_MOST,
                                       .inexact = true};
    struct error error;
    size_t bad;
    struct analysis *analysis = gather(&input, &bad, &error);
    if (!analysis)
        return false;
    write_tables(analysis);
    analysis_close(analysis);
    return true;
}

static void split_and_gather(const struct split_options *options, const uint8_t *data,
                             size_t size) {
    struct bytes rows[SHARDS + 1] = {0}, *const parts[] = {&rows[0], &rows[1], &rows[2]};
    struct split *split = split_capture(options);
    bool done = split;
    for (unsigned i = 0; done && i < SHARDS; i++)
        done = analyze_shard(options->fds[i], &rows[i]);
    if (done) {
        interface_rows_write(&rows[SHARDS], split_facts(split));
        check(gather_all(split_facts(split), parts));
        change(parts, data, size);
        gather_all(split_facts(split), parts);
    }
    for (unsigned i = 0; i <= SHARDS; i++)
        bytes_free(&rows[i]);
    split_close(split);
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
    split_and_gather(&options, data, size);
    close(file);
    for (unsigned i = 0; i < SHARDS; i++)
        close(fds[i]);
    return 0;
}
