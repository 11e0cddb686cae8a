/* SPDX-License-Identifier: Apache-2.0 */
/* The index of NAME, a hidden file .NAME.index beside it: which blocks of the file have packets of
 * an address or port.
 *
 *   header      struct index_header
 *   segments    struct index_segment: consecutive blocks with keys of their own; a segment ends
 *               when the memory for its keys is used up
 *   places      struct index_place: section header, interface descriptions and statistics
 *   blocks      struct index_block: 64 KiB of records each, in file order
 *   keys        of each segment: `keys`, `starts` and `postings`
 *
 * A key is a hash of an address or port, shifted to the right if the segment has too many of them:
 * a key may stand for several addresses, so that too many blocks may be named, but none is missed.
 * The keys of a segment ascend; `starts` has one number more than `keys`: those of key i are
 * postings[starts[i]] to postings[starts[i + 1] - 1], numbers of blocks in the segment.
 *
 * Offsets are of the file before it was compressed. Numbers are in the byte order of the host. */
#ifndef WIRETALE_CAPTURE_INDEX_FORMAT_H
#define WIRETALE_CAPTURE_INDEX_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define INDEX_MAGIC        "wtindex"
#define INDEX_VERSION      1u
#define INDEX_SUFFIX       ".index"
#define INDEX_BLOCK_BYTES  (64u << 10)
#define INDEX_PLACES_MAX   65536u
#define INDEX_BLOCKS_MAX   (1u << 22)
#define INDEX_SEGMENTS_MAX (1u << 16)
#define INDEX_KEYS_MAX     (1u << 16) /* of a segment */
#define INDEX_SPAN_MAX     (1u << 16) /* blocks of a segment */
#define INDEX_KEY_BITS     32u

struct index_header {
    char magic[8];
    uint32_t version, changed; /* low bits of st_mtim of the published file, in ns */
    uint64_t size;             /* bytes of the index */
    uint64_t file_size;        /* of the published file, compressed or not */
    uint64_t end;              /* offset behind the last whole record */
    uint64_t packets;
    int64_t first_ns, last_ns; /* least and greatest time; first > last without packets */
    uint64_t places_at, blocks_at, segments_at;
    uint32_t places, blocks, segments, end_spare;
    uint64_t sum; /* index_header_sum() */
};

struct index_place {
    uint64_t offset;
    uint32_t size, kind; /* enum record_kind */
};

struct index_block {
    uint64_t offset;
    int64_t first_ns, last_ns;
};

struct index_segment {
    uint32_t first_block, blocks;
    uint32_t shift, keys; /* no keys: they were too many, so that each block may have any */
    uint64_t keys_at, starts_at, postings_at; /* uint32_t, uint32_t, uint16_t */
    uint64_t postings;
};

#endif
