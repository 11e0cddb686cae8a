/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of a UDP flow made for a test, packet by packet, and its events. */
#ifndef WIRETALE_TEST_SEQUENCE_FLOW_H
#define WIRETALE_TEST_SEQUENCE_FLOW_H

#include <stdlib.h>
#include <string.h>

#include "common/block.h"
#include "common/test/check.h"
#include "sequence/tracker.h"

#define MILLISECOND 1000000
#define SECOND      1000000000LL
#define START       (1700000000 * SECOND)
#define RATE        8000 /* Hz, of RTP payload type 0 */

enum form { BLOCKS, IPERF3_64, IPERF3_32, IPERF2_64, IPERF2_32, RTP, FORMS };

static const enum word application_of[FORMS] = {WORD_BLOCKS, WORD_IPERF3, WORD_IPERF3,
                                                WORD_IPERF2, WORD_IPERF2, WORD_RTP};

static uint64_t random_state = 1;

/* xorshift64* (Vigna 2016) */
static inline uint64_t random_bits(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1d;
}

static inline uint32_t random_below(uint32_t bound) {
    return (uint32_t)((random_bits() >> 32) * bound >> 32);
}

/* --- one flow and its events ------------------------------------------------------------------ */

struct probe {
    struct sequence_track track;
    struct pool pool;
    struct sequence_listener listener;
    enum form form;
    uint32_t captured; /* most bytes of a payload that the capture has */
    uint32_t length;   /* of a payload */
    uint32_t key;      /* run or SSRC */
    int64_t pause_ns;  /* before the numbers that are sent next */
    uint64_t frame;
    uint64_t counts[WORD_COUNT]; /* packets by kind of event */
    struct sequence_event newest[WORD_COUNT];
};

static inline void note(void *context, const struct sequence_event *event) {
    struct probe *probe = context;
    probe->counts[event->kind] += event->count;
    probe->newest[event->kind] = *event;
}

static inline void begin(struct probe *probe, enum form form) {
    *probe = (struct probe){.form = form, .captured = 2000, .length = 64, .key = 0x01020304};
    probe->pool.own.most = 1 << 20;
    probe->listener = (struct sequence_listener){note, probe};
}

static inline struct sequence_summary summary_of(struct probe *probe) {
    struct sequence_summary summary;
    sequence_summary(&probe->track, &probe->listener, &summary);
    return summary;
}

static inline void end(struct probe *probe) {
    sequence_free(&probe->track, &probe->pool);
    CHECK_INT(probe->pool.own.used, 0);
    pool_close(&probe->pool);
}

static inline struct sequence_packet packet_of(const uint8_t *payload, uint32_t captured,
                                               uint32_t length, uint64_t frame, int64_t time_ns) {
    struct sequence_packet packet = {
        .time_ns = time_ns, .frame = frame, .payload.length = (uint16_t)length, .time_known = true};
    struct block_header block;
    packet.payload.captured =
        (uint8_t)(captured < SEQUENCE_BYTES_MOST ? captured : SEQUENCE_BYTES_MOST);
    memcpy(packet.payload.bytes, payload, packet.payload.captured);
    packet.payload.corrupt = block_read_header(&block, payload, captured) &&
                             block_check_pattern(payload, &block, 0, captured) != BLOCK_ALL_RIGHT;
    return packet;
}

static inline void take(struct probe *probe, const uint8_t *payload, uint32_t length,
                        int64_t time_ns) {
    uint32_t captured = length < probe->captured ? length : probe->captured;
    struct sequence_packet packet = packet_of(payload, captured, length, ++probe->frame, time_ns);
    sequence_take(&probe->track, &packet, &probe->pool, &probe->listener);
}

/* --- payloads --------------------------------------------------------------------------------- */

static inline void put_time(uint8_t *at, int64_t sent_ns) {
    block_store(at, (uint64_t)(sent_ns / SECOND), 4);
    block_store(at + 4, (uint64_t)(sent_ns % SECOND / 1000), 4);
}

static inline void put_block(uint8_t *payload, uint32_t run, uint16_t flags, uint32_t length,
                             uint64_t sequence, int64_t sent_ns) {
    struct block_header header = {run, 1, flags, length, sequence, (uint64_t)sent_ns};
    block_put_header(payload, BLOCK_MAGIC, &header);
    block_fill_pattern(payload, &header, 0, length);
}

static inline void put_rtp(uint8_t *payload, uint32_t ssrc, uint8_t kind, uint64_t sequence,
                           uint64_t ticks) {
    payload[0] = 0x80;
    payload[1] = kind;
    block_store(payload + 2, sequence, 2);
    block_store(payload + 4, ticks, 4);
    block_store(payload + 8, ssrc, 4);
}

static inline void put(const struct probe *probe, uint8_t *payload, uint64_t sequence,
                       int64_t sent_ns) {
    memset(payload, 0x36, probe->length);
    switch (probe->form) {
    case BLOCKS: put_block(payload, probe->key, 0, probe->length, sequence, sent_ns); break;
    case IPERF3_64:
    case IPERF3_32:
        put_time(payload, sent_ns);
        block_store(payload + 8, sequence, probe->form == IPERF3_64 ? 8 : 4);
        break;
    case IPERF2_64: block_store(payload + 12, sequence >> 32, 4); /* fall through */
    case IPERF2_32:
        block_store(payload, sequence, 4);
        put_time(payload + 4, sent_ns);
        break;
    default: put_rtp(payload, probe->key, 0, sequence, (uint64_t)(sent_ns / (SECOND / RATE)));
    }
}

/* Sent at `sent_ns`, 5 ms on its way. */
static inline void send_at(struct probe *probe, uint64_t sequence, int64_t sent_ns) {
    uint8_t payload[2000];
    put(probe, payload, sequence, sent_ns);
    take(probe, payload, probe->length, sent_ns + 5 * MILLISECOND);
}

/* A packet each 20 ms, sent in the order of the numbers. */
static inline void send_next(struct probe *probe, uint64_t sequence) {
    send_at(probe, sequence,
            START + probe->pause_ns + (int64_t)(uint32_t)sequence * 20 * MILLISECOND);
}

/* Sends the numbers of a list such as "1-9 11 12 10". */
static inline void send_list(struct probe *probe, const char *list) {
    for (char *end; *list; list = *end ? end + 1 : end) {
        uint64_t first = strtoull(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoull(end + 1, &end, 10);
        for (uint64_t sequence = first; sequence <= last; sequence++)
            send_next(probe, sequence);
    }
}

static inline void begin_with(struct probe *probe, enum form form, const char *list) {
    begin(probe, form);
    send_list(probe, list);
}

/* Compares the last event of a kind with `expected`, except its time. */
static inline void check_newest(const struct probe *probe, const struct sequence_event *expected) {
    const struct sequence_event *event = &probe->newest[expected->kind];
    CHECK_INT(event->sequence, expected->sequence);
    CHECK_INT(event->count, expected->count);
    CHECK_INT(event->frame, expected->frame);
    CHECK_INT(event->related_frame, expected->related_frame);
    CHECK_INT(event->time_known, expected->time_known);
}

static inline void check_counts(struct probe *probe, uint64_t received, uint64_t unique,
                                uint64_t lost, uint64_t out_of_order, uint64_t duplicates,
                                uint64_t restarts) {
    struct sequence_summary summary = summary_of(probe);
    CHECK_INT(summary.application, application_of[probe->form]);
    CHECK_INT(summary.received, received);
    CHECK_INT(summary.unique, unique);
    CHECK_INT(summary.lost, lost);
    CHECK_INT(summary.expected, unique + lost);
    CHECK_INT(summary.out_of_order, out_of_order);
    CHECK_INT(summary.duplicates, duplicates);
    CHECK_INT(probe->counts[WORD_BLOCK_OUT_OF_ORDER], out_of_order);
    CHECK_INT(probe->counts[WORD_BLOCK_DUPLICATE], duplicates);
    CHECK_INT(summary.restarts, restarts);
    CHECK_INT(probe->counts[WORD_BLOCK_RESTART], restarts);
    CHECK_INT(summary.corrupt, probe->counts[WORD_BLOCK_CORRUPT]);
    CHECK_INT(summary.late, probe->counts[WORD_BLOCK_LATE]);
}

#endif
