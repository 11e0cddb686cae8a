/* SPDX-License-Identifier: Apache-2.0 */
/* Each packet gives pairs of key and block, of which those that were just seen are left out. A full
 * list of pairs is sorted and becomes a segment: no table of hashes is needed, whose places an
 * attacker could choose. */
#include "index/build.h"

#include <stdlib.h>
#include <string.h>

#include "index/addresses.h"

#define PAIRS_MOST  (1u << 19)
#define RECENT      (1u << 12)   /* places for pairs that were just seen */
#define INDEX_MOST  (128u << 20) /* bytes of keys; later segments have none */
#define BLOCK_BITS  32u
#define PAIR_KEY(p) ((uint32_t)((p) >> BLOCK_BITS))

struct bytes {
    uint8_t *at;
    size_t size, room;
};

struct builder {
    struct bytes places, blocks, segments, keys;
    uint32_t first_block; /* of the segment */
    uint32_t block_count;
    uint64_t *pairs;
    size_t pair_count;
    uint64_t recent[RECENT];
    struct file_index *index;
};

static bool append(struct bytes *bytes, const void *more, size_t size) {
    if (size > bytes->room - bytes->size) {
        size_t room = 2 * (bytes->size + size) + 256;
        uint8_t *at = realloc(bytes->at, room);
        if (!at)
            return false;
        bytes->at = at;
        bytes->room = room;
    }
    if (size)
        memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
    return true;
}

/* Keeps offsets in the body multiples of 8. */
static bool align(struct bytes *bytes) {
    static const uint8_t zeros[8];
    return append(bytes, zeros, -bytes->size & 7);
}

static int compare_pairs(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Sorts the pairs and removes copies. */
static void sort_pairs(struct builder *builder) {
    uint64_t *pairs = builder->pairs;
    size_t kept = 0;
    qsort(pairs, builder->pair_count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < builder->pair_count; i++)
        if (!kept || pairs[i] != pairs[kept - 1])
            pairs[kept++] = pairs[i];
    builder->pair_count = kept;
}

static size_t count_keys(const struct builder *builder, unsigned shift) {
    size_t count = 0;
    for (size_t i = 0; i < builder->pair_count; i++)
        count +=
            !i || PAIR_KEY(builder->pairs[i]) >> shift != PAIR_KEY(builder->pairs[i - 1]) >> shift;
    return count;
}

/* Shortens the keys until they are few enough. Sorted by the whole key, pairs of a shorter one are
 * not in order of their blocks any more. */
static unsigned shorten_keys(struct builder *builder) {
    unsigned shift = 0;
    while (count_keys(builder, shift) > INDEX_KEYS_MAX)
        shift++;
    if (shift) {
        for (size_t i = 0; i < builder->pair_count; i++) {
            uint64_t pair = builder->pairs[i];
            builder->pairs[i] = (uint64_t)(PAIR_KEY(pair) >> shift) << BLOCK_BITS | (uint32_t)pair;
        }
        sort_pairs(builder);
    }
    return shift;
}

static bool write_keys(struct builder *builder, struct index_segment *segment) {
    struct bytes *to = &builder->keys;
    const uint64_t *pairs = builder->pairs;
    size_t count = builder->pair_count;
    bool done = true;
    segment->postings = count;
    segment->keys_at = to->size;
    for (size_t i = 0; i < count && done; i++)
        if (!i || PAIR_KEY(pairs[i]) != PAIR_KEY(pairs[i - 1])) {
            uint32_t key = PAIR_KEY(pairs[i]);
            done = append(to, &key, sizeof key);
            segment->keys++;
        }
    segment->starts_at = to->size;
    for (size_t i = 0; i <= count && done; i++)
        if (!i || i == count || PAIR_KEY(pairs[i]) != PAIR_KEY(pairs[i - 1])) {
            uint32_t start = (uint32_t)i;
            done = append(to, &start, sizeof start);
        }
    segment->postings_at = to->size;
    for (size_t i = 0; i < count && done; i++) {
        uint16_t block = (uint16_t)pairs[i];
        done = append(to, &block, sizeof block);
    }
    return done && align(to);
}

/* Ends the segment at the current block, which the next one has again. */
static bool end_segment(struct builder *builder) {
    uint32_t last = builder->block_count;
    struct index_segment segment = {.first_block = builder->first_block,
                                    .blocks = last - builder->first_block};
    bool done = true;
    sort_pairs(builder);
    if (builder->keys.size < INDEX_MOST && builder->pair_count) {
        segment.shift = shorten_keys(builder);
        done = write_keys(builder, &segment);
    }
    builder->pair_count = 0;
    builder->first_block = last - 1;
    memset(builder->recent, 0xFF, sizeof builder->recent);
    return done && append(&builder->segments, &segment, sizeof segment);
}

static bool add_key(struct builder *builder, uint32_t key) {
    uint64_t pair = (uint64_t)key << BLOCK_BITS | (builder->block_count - 1 - builder->first_block);
    uint64_t *recent = &builder->recent[key % RECENT];
    if (*recent == pair)
        return true;
    *recent = pair;
    builder->pairs[builder->pair_count++] = pair;
    return builder->pair_count < PAIRS_MOST || end_segment(builder);
}

static struct index_block *last_block(struct builder *builder) {
    return (struct index_block *)(builder->blocks.at + builder->blocks.size) - 1;
}

/* Begins a block if the last one is full. */
static bool add_block(struct builder *builder, uint64_t offset) {
    if (builder->block_count && offset - last_block(builder)->offset < INDEX_BLOCK_BYTES)
        return true;
    struct index_block block = {offset, INT64_MAX, INT64_MIN};
    if (builder->block_count == INDEX_BLOCKS_MAX || !append(&builder->blocks, &block, sizeof block))
        return false;
    builder->block_count++;
    return builder->block_count - builder->first_block < INDEX_SPAN_MAX || end_segment(builder);
}

static bool add_packet(struct builder *builder, const struct record *record) {
    struct address list[ADDRESSES_MAX];
    struct index_header *header = &builder->index->header;
    if (!add_block(builder, record->offset))
        return false;
    struct index_block *block = last_block(builder);
    if (record->time_ns < block->first_ns)
        block->first_ns = record->time_ns;
    if (record->time_ns > block->last_ns)
        block->last_ns = record->time_ns;
    if (record->time_ns < header->first_ns)
        header->first_ns = record->time_ns;
    if (record->time_ns > header->last_ns)
        header->last_ns = record->time_ns;
    header->packets++;
    size_t count = packet_addresses(record->link_type, record->data, record->captured, list);
    bool done = true;
    for (size_t i = 0; i < count && done; i++)
        done = add_key(builder, address_hash(&list[i]));
    return done;
}

static bool add_place(struct builder *builder, const struct record *record) {
    struct index_place place = {record->offset, record->size, record->kind};
    return builder->places.size / sizeof place < INDEX_PLACES_MAX &&
           append(&builder->places, &place, sizeof place);
}

/* Sections number their interfaces anew; such a file is read from its beginning instead. */
static bool add_records(struct builder *builder, struct records *records) {
    struct record record;
    bool done = true;
    while (done && records_next(records, &record) != RECORD_END) {
        if (record.kind == RECORD_PACKET)
            done = add_packet(builder, &record);
        else if (record.kind != RECORD_OTHER)
            done = add_place(builder, &record) && records->sections == 1;
    }
    builder->index->header.end = records->at;
    return done && (!builder->block_count || end_segment(builder));
}

/* Joins the parts; places in `keys` are counted from the begin of the index then. */
static bool join(struct builder *builder) {
    struct index_header *header = &builder->index->header;
    struct bytes body = {0};
    header->places = (uint32_t)(builder->places.size / sizeof(struct index_place));
    header->blocks = (uint32_t)(builder->blocks.size / sizeof(struct index_block));
    header->segments = (uint32_t)(builder->segments.size / sizeof(struct index_segment));
    header->segments_at = sizeof *header;
    header->places_at = header->segments_at + builder->segments.size;
    header->blocks_at = header->places_at + builder->places.size;
    uint64_t keys_at = header->blocks_at + builder->blocks.size;
    struct index_segment *segments = (struct index_segment *)builder->segments.at;
    for (uint32_t i = 0; i < header->segments; i++) {
        segments[i].keys_at += keys_at;
        segments[i].starts_at += keys_at;
        segments[i].postings_at += keys_at;
    }
    bool done = append(&body, builder->segments.at, builder->segments.size) &&
                append(&body, builder->places.at, builder->places.size) &&
                append(&body, builder->blocks.at, builder->blocks.size) &&
                append(&body, builder->keys.at, builder->keys.size);
    builder->index->body = body.at;
    builder->index->body_size = body.size;
    header->size = sizeof *header + body.size;
    return done;
}

static void free_builder(struct builder *builder) {
    free(builder->places.at);
    free(builder->blocks.at);
    free(builder->segments.at);
    free(builder->keys.at);
    free(builder->pairs);
    free(builder);
}

bool file_index_build(struct file_index *index, int fd) {
    struct records records;
    *index = (struct file_index){.header = {.magic = INDEX_MAGIC,
                                            .version = INDEX_VERSION,
                                            .first_ns = INT64_MAX,
                                            .last_ns = INT64_MIN}};
    struct builder *builder = calloc(1, sizeof *builder);
    if (!builder || !records_open(&records, fd)) {
        free(builder);
        return false;
    }
    builder->index = index;
    builder->pairs = malloc(PAIRS_MOST * sizeof *builder->pairs);
    memset(builder->recent, 0xFF, sizeof builder->recent);
    bool done = builder->pairs && add_records(builder, &records) && join(builder);
    index->header.file_size = records.window.size;
    records_close(&records);
    free_builder(builder);
    if (!done)
        file_index_free(index);
    return done;
}

void file_index_free(struct file_index *index) {
    free(index->body);
    index->body = NULL;
    index->body_size = 0;
}
