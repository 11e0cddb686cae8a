/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all shards as those of one run over the captures (`wiretale gather`): flows are
 * numbered by their first packets in the order in which one run would have merged the files, and
 * rows are sorted by the packets at which it would have written them. */
#ifndef WIRETALE_GATHER_H
#define WIRETALE_GATHER_H

#include "shard/row_file.h"
#include "shard/split.h"

/* A capture file, as `wiretale split` left its facts. */
struct gathered_file {
    const uint8_t *rows; /* interface_rows_write() */
    size_t rows_size;
    const uint8_t *spans; /* struct merge_span each, unaligned, in the order of frames */
    size_t span_count;
    uint64_t packets;
    struct excluded_packets excluded;
    uint64_t refused;
};

struct gathered_shard {
    const uint8_t *rows; /* shard_rows_write() */
    size_t rows_size;
};

struct gather_input {
    const struct gathered_file *files;
    const struct gathered_shard *shards;
    size_t file_count, shard_count;
    uint32_t max_flows;
    bool inexact; /* also if a limit was reached */
};

/* Returns a finished analysis, which the caller must close. NULL with `error` set: ERROR_UNREADABLE
 * if bytes are malformed, ERROR_USAGE if a limit of one run was reached, so that its rows would
 * differ. `*bad` is the number of the shard that is malformed, `shard_count` plus that of the file
 * whose rows are, or SIZE_MAX. */
struct analysis *gather(const struct gather_input *input, size_t *bad, struct error *error);

#endif
