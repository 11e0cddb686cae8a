/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as bytes: the rows of a shard between `wiretale analyze` and `wiretale gather`.
 *
 *   "WTROWS01", then u64 hash of the schema, then the fields of shard_rows_read(), then for each
 * table u64 rows, u64 positions, u64 bytes of the rows; the positions, and the rows
 *
 * A row is a bit for each column that is known, then these values: a text or address as u16 size
 * and bytes, others as zigzag varints (LEB128). Numbers are little-endian. */
#ifndef WIRETALE_ROW_FILE_H
#define WIRETALE_ROW_FILE_H

#include "pipeline/analysis.h"
#include "shard/split.h"

/* Bytes that grow. */
struct bytes {
    uint8_t *data;
    size_t size, room;
    bool out_of_memory;
};

void bytes_free(struct bytes *bytes);

/* Writes the rows of an analysis of a shard. Sets out_of_memory if there is none. */
void shard_rows_write(struct bytes *bytes, struct analysis *analysis);
/* Writes the rows of a capture that its shards do not have: those of its interfaces, and of the
 * local network. */
void interface_rows_write(struct bytes *bytes, const struct split_facts *facts);

/* A table in such bytes. */
struct table_bytes {
    uint64_t rows, position_count;
    const uint8_t *positions; /* struct position each, unaligned */
    const uint8_t *start, *end;
};

/* The same tables; the numbers of a file's interfaces begin with 0. */
struct interface_tables {
    struct table_bytes interfaces, decode_stops, neighbors, announcers, groups, exchanges;
    uint64_t local_pairs;
};

/* Numbers of a shard, of which gather() needs the sums. */
enum shard_count {
    COUNT_PACKETS,
    COUNT_FLOWS,
    COUNT_EVICTED_FLOWS,
    COUNT_EVICTED_DATAGRAMS,
    COUNT_EVENTS_DROPPED, /* rows above limits of one flow or all, like the next two */
    COUNT_BLOCKS_DROPPED,
    COUNT_EXCHANGES_DROPPED,
    COUNT_PEAKS, /* the first of them */
    COUNT_SELECTIONS = COUNT_PEAKS + PEAKS,
    COUNT_MISSING,
    COUNT_UNCERTAIN,
    SHARD_COUNTS
};

/* The rows of a shard; pointers are into the bytes that were given. */
struct shard_rows {
    uint64_t counts[SHARD_COUNTS];
    struct judged_sums judged;
    const uint8_t *mirrored; /* u64 each */
    uint64_t mirrored_count;
    const uint8_t *ports; /* capture_ports_bytes() */
    struct table_bytes tables[TABLE_COUNT];
};

/* Reads the heads. Returns false if the bytes are not those of this version, or are cut. */
bool shard_rows_read(struct shard_rows *rows, const uint8_t *bytes, size_t size);
bool interface_rows_read(struct interface_tables *tables, const uint8_t *bytes, size_t size);

/* Reads the row at `*p`, moves it behind the row, and adds its texts to the sink. Returns false if
 * it is malformed, or without memory, which sets sink->out_of_memory. */
bool row_read(struct row_sink *sink, enum table_number number, const uint8_t **p,
              const uint8_t *end, struct row *row);

/* What a row of one table must have if an analysis could have written it: columns that are never
 * null, and the range of each number. Readers of tables rely on these rules, so that a row which
 * breaks them must not enter a table. */
struct row_rules {
    enum table_number number;
    uint64_t known[(COLUMNS_MAX + 63) / 64];
    int64_t least[COLUMNS_MAX], most[COLUMNS_MAX];
};

/* `interface_count` is the number of input interfaces. */
void row_rules_make(struct row_rules *rules, enum table_number number, uint32_t interface_count);
bool row_is_valid(const struct row_rules *rules, const struct row *row);

#endif
