/* SPDX-License-Identifier: Apache-2.0 */
/* One capture file into shards: each a pcapng file, compressed by zstd, with all
 * interfaces of the capture and the packets of its flows (flow/shard.h), without the payload that
 * the analysis does not read. Each packet has its origin (format/packet_origin.h). The capture is
 * read once; what concerns all of its packets becomes `facts`, which shards cannot show. */
#ifndef WIRETALE_SPLIT_H
#define WIRETALE_SPLIT_H

#include "base/error.h"
#include "flow/shard.h"
#include "format/merged_input.h"
#include "pipeline/analysis.h"

#define SHARDS_MOST 256u

struct split_options {
    const char *path, *name; /* of the capture; the name is that in rows */
    uint32_t file;           /* number of the capture among all */
    const int *fds;          /* of the shards */
    uint32_t shard_count;
    struct shard_key key;
    struct analysis_options analysis; /* filter, start_ns and end_ns choose the packets */
    const void *head;                 /* the section header */
    size_t head_size;                 /* bytes */
};

/* Successive frames that a merge of files takes at another time than their own. */
struct merge_span {
    uint64_t first, last; /* frames */
    int64_t merge_ns;
};

/* What neither the shards nor tables show. */
struct split_facts {
    uint32_t interfaces, interfaces_early; /* all, and those that a probe of the file finds */
    int64_t first_ns, last_ns; /* time of the first packet, and the latest one; valid if `timed` */
    int64_t end_ns;            /* of the last packet with a time; likewise */
    int64_t clock_ns;          /* the latest time that two successive packets reached */
    bool timed;
    struct merge_span *spans;
    size_t span_count, span_room;
};

enum split_state { SPLIT_MORE, SPLIT_DONE, SPLIT_FAILED, SPLIT_UNWRITTEN };

struct split;

/* Opens the capture. The options must stay valid until split_close(). Returns NULL with `error`
 * set. */
struct split *split_open(const struct split_options *options, struct error *error);
void split_close(struct split *split);

/* Writes some packets. If it returns SPLIT_MORE, the caller may look for signals and must call
 * again; if SPLIT_FAILED, `error` is set, and if SPLIT_UNWRITTEN, split_write_error() has the
 * errno. */
enum split_state split_step(struct split *split, struct error *error);

int split_write_error(const struct split *split);
/* After SPLIT_DONE. */
const struct split_facts *split_facts(const struct split *split);
/* Likewise. Returns an analysis with the rows that concern the whole file, of its interfaces and of
 * the local network; the caller must close it. */
struct analysis *split_analysis(struct split *split);

#endif
