/* SPDX-License-Identifier: Apache-2.0 */
/* Packets to rows of observation.h, and rows to Arrow: crafted files whose rows are known. */
#include "observation/observation.h"

#include <string.h>

#include "common/block.h"
#include "common/test/scratch.h"

#define RAW_IP 101
#define ROWS   4096

static char path[SCRATCH_SIZE];
static FILE *file;

static void begin_file(void) {
    scratch_path(path, "packets.pcap");
    file = fopen(path, "wb");
    CHECK(file);
    static const uint32_t header[] = {0xA1B23C4D, 2 | 4u << 16, 0, 0, 65535, RAW_IP};
    CHECK(fwrite(header, sizeof header, 1, file) == 1);
}

static void put_packet(uint32_t ns, const uint8_t *bytes, uint32_t captured, uint32_t length) {
    const uint32_t header[] = {1750000000, ns, captured, length};
    CHECK(fwrite(header, sizeof header, 1, file) == 1);
    CHECK(fwrite(bytes, 1, captured, file) == captured);
}

/* An IPv4 header; `fragment` in bytes, with more fragments to come unless `last`. */
static void put_ip(uint8_t *bytes, unsigned protocol, unsigned length, unsigned id,
                   unsigned fragment, bool last) {
    memset(bytes, 0, 20);
    bytes[0] = 0x45;
    block_store(bytes + 2, 20 + length, 2);
    block_store(bytes + 4, id, 2);
    block_store(bytes + 6, fragment / 8 | (last ? 0 : 0x2000), 2);
    bytes[8] = 64;
    bytes[9] = (uint8_t)protocol;
    memcpy(bytes + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
}

static void put_udp(uint8_t *bytes, unsigned length) {
    block_store(bytes, 5000, 2);
    block_store(bytes + 2, 6000, 2);
    block_store(bytes + 4, 8 + length, 2);
    block_store(bytes + 6, 0, 2);
}

static void put_block(uint8_t *bytes, uint64_t sequence, uint32_t length) {
    struct block_header header = {.run = 9, .stream = 2, .length = length, .sequence = sequence};
    block_put_header(bytes, BLOCK_MAGIC, &header);
    block_fill_pattern(bytes, &header, 0, length);
}

static struct observation rows[ROWS];
static struct observation_counts counts;

static size_t read_file(void) {
    const char *paths[] = {path};
    struct error error = {0};
    CHECK(!fclose(file));
    struct observation_reader *reader = observation_reader_open(paths, 1, &error);
    CHECK(reader);
    size_t count = observation_read(reader, rows, ROWS);
    CHECK_INT(observation_read(reader, rows + count, 1), 0);
    counts = observation_reader_counts(reader);
    observation_reader_close(reader);
    return count;
}

static void check_datagrams(void) {
    uint8_t packet[2000] = {0};
    begin_file();
    put_ip(packet, 17, 8 + 100, 77, 0, true);
    put_udp(packet + 20, 100);
    put_block(packet + 28, 5, 100);
    put_packet(1, packet, 128, 128);
    put_packet(2, packet, 60, 128); /* cut after the header of the block */
    memcpy(packet + 12, "\x0a\x00\x00\x02\x0a\x00\x00\x01", 8);
    block_store(packet + 20, 6000, 2);
    block_store(packet + 22, 5000, 2);
    put_packet(3, packet, 128, 128); /* the way back */
    put_packet(4, packet, 12, 128);  /* cut in the IP header */
    CHECK_INT(read_file(), 3);
    CHECK_INT(counts.packets, 4);
    CHECK(counts.unread + counts.not_ip == 1);
    CHECK_INT(rows[0].run, 9);
    CHECK_INT(rows[0].stream, 2);
    CHECK_INT(rows[0].number, 5);
    CHECK_INT(rows[0].payload, 100);
    CHECK_INT(rows[0].ip_id, 77);
    CHECK_INT(rows[0].datagram, OBSERVATION_UNKNOWN);
    CHECK(!strcmp(rows[0].ends, "17|10.0.0.1|5000|10.0.0.2|6000|"));
    CHECK(rows[0].has_ends && !rows[1].has_ends && rows[2].has_ends);
    CHECK_INT(rows[1].number, 5);
    CHECK_INT(rows[1].payload, 100);
    CHECK_INT(rows[1].digested, 32);
    CHECK(rows[0].digest != rows[1].digest && rows[0].digest_short == rows[1].digest_short);
    CHECK(rows[0].conversation == rows[2].conversation && rows[0].side != rows[2].side);
}

static void check_fragments(void) {
    uint8_t packet[2000] = {0};
    begin_file();
    for (unsigned id = 1; id <= 2; id++) {
        put_ip(packet, 17, 80, id, 0, false);
        put_udp(packet + 20, 152);
        put_packet(10 * id, packet, 100, 100);
        if (id == 2)
            break; /* its second half never came */
        put_ip(packet, 17, 80, id, 80, true);
        put_packet(10 * id + 1, packet, 100, 100);
        put_packet(10 * id + 2, packet, 100, 100); /* a copy */
    }
    CHECK_INT(read_file(), 4);
    CHECK(rows[0].datagram == rows[1].datagram && rows[0].datagram != rows[3].datagram);
    CHECK_INT(rows[0].payload, 152);
    CHECK_INT(rows[0].completes, 0);
    CHECK_INT(rows[1].completes, 1);
    CHECK_INT(rows[2].completes, 0);
    CHECK_INT(rows[3].completes, 0);
    CHECK_INT(rows[1].fragment_start, 80);
    CHECK_INT(rows[1].fragment_end, 160);
}

static void check_blocks_of_one_datagram(void) {
    static uint8_t packet[20 + 8 + 3 * 200 + 50];
    begin_file();
    put_ip(packet, 17, sizeof packet - 20, 1, 0, true);
    put_udp(packet + 20, sizeof packet - 28);
    for (unsigned n = 0; n < 3; n++)
        put_block(packet + 28 + 200 * n, 40 + n, 200);
    put_block(packet + 28 + 600, 43, 50);
    put_packet(1, packet, sizeof packet, sizeof packet);
    put_packet(2, packet, 300, sizeof packet);
    CHECK_INT(read_file(), 6);
    for (unsigned n = 0; n < 4; n++) {
        CHECK_INT(rows[n].number, 40 + n);
        CHECK_INT(rows[n].part, n);
        CHECK_INT(rows[n].payload, n < 3 ? 200 : 50);
        CHECK_INT(rows[n].frame, 1);
    }
    CHECK_INT(rows[4].number, 40);
    CHECK_INT(rows[5].number, 41); /* 72 bytes of it were captured */
}

static void check_segments(void) {
    uint8_t packet[200] = {0};
    begin_file();
    put_ip(packet, 6, 20 + 50, 1, 0, true);
    block_store(packet + 20, 80, 2);
    block_store(packet + 22, 4000, 2);
    memcpy(packet + 24, "\x00\x00\x10\x00\x00\x00\x20\x00\x50\x10\x01\x00", 12);
    put_packet(1, packet, 90, 90);
    put_ip(packet, 6, 20, 2, 0, true);
    put_packet(2, packet, 40, 40);
    packet[34] = 2; /* another window */
    put_packet(3, packet, 40, 40);
    CHECK_INT(read_file(), 3);
    CHECK_INT(rows[0].sequence, 0x1000);
    CHECK_INT(rows[0].acknowledgment, 0x2000);
    CHECK_INT(rows[0].payload, 50);
    CHECK_INT(rows[0].flags, 0x10);
    CHECK_INT(rows[1].payload, 0);
    CHECK(rows[1].digest != rows[2].digest && rows[1].digest_short != 0);
}

static unsigned ended;

static void note_end(void *owner, struct observation_reader *reader) {
    CHECK(owner == &ended);
    ended++;
    observation_reader_close(reader);
}

static void note_release(void *owner) {
    CHECK(owner == &ended);
}

static const struct observation_listener listener = {note_end, note_release, &ended};

static void check_stream(void) {
    static uint8_t packet[64];
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    struct ArrowSchema schema;
    const char *paths[] = {path};
    int64_t count = 0;
    begin_file();
    put_ip(packet, 17, 8 + 4, 1, 0, true);
    put_udp(packet + 20, 4);
    for (unsigned n = 0; n < 20000; n++)
        put_packet(n, packet, 32, 32);
    CHECK(!fclose(file));
    CHECK_INT(observation_stream_export(paths, 1, &listener, &stream), 0);
    CHECK_INT(stream.get_schema(&stream, &schema), 0);
    CHECK(!strcmp(schema.children[0]->name, "packet"));
    CHECK(!strcmp(schema.children[schema.n_children - 1]->name, "ends"));
    schema.release(&schema);
    for (;;) {
        CHECK_INT(stream.get_next(&stream, &batch), 0);
        if (!batch.release)
            break;
        const int64_t *number = batch.children[0]->buffers[1];
        CHECK_INT(number[0], count);
        CHECK_INT(batch.children[6]->null_count, batch.length); /* run: no block */
        count += batch.length;
        batch.release(&batch);
    }
    CHECK_INT(count, 20000);
    CHECK_INT(ended, 1);
    stream.release(&stream);
}

static void check_stream_of_nothing(void) {
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    const char *paths[] = {"/nonexistent/x.pcap"};
    CHECK_INT(observation_stream_export(paths, 1, &listener, &stream), 0);
    CHECK(stream.get_next(&stream, &batch) != 0);
    CHECK(strstr(stream.get_last_error(&stream), "No such file"));
    stream.release(&stream);
}

int main(void) {
    check_datagrams();
    check_fragments();
    check_blocks_of_one_datagram();
    check_segments();
    check_stream();
    check_stream_of_nothing();
    printf("    rows of datagrams, fragments, segments and blocks are as crafted\n");
    return 0;
}
