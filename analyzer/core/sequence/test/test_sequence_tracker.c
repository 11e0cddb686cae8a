/* SPDX-License-Identifier: Apache-2.0 */
/* Streams made packet by packet: their counts and events. */
#include <math.h>

#include "sequence/test/sequence_flow.h"

/* --- every form ------------------------------------------------------------------------------- */

static void check_in_order(enum form form) {
    struct probe probe;
    begin_with(&probe, form, "1-2");
    CHECK_INT(summary_of(&probe).application, WORD_NONE);
    send_list(&probe, "3-1000");
    check_counts(&probe, 1000, 1000, 0, 0, 0, 0);
    struct sequence_summary summary = summary_of(&probe);
    CHECK_INT(summary.sources, 1);
    CHECK_INT(summary.other_packets, 0);
    CHECK_INT(summary.loss_runs, 0);
    CHECK_INT(summary.jitter_known, true);
    CHECK_INT(summary.jitter_ns, 0);
    CHECK_INT(summary.delay_variation_ns, 0);
    end(&probe);
}

/* A list of numbers, its counts and its last event of one kind. */
struct stream {
    const char *list;
    struct {
        uint64_t received, unique, lost, out_of_order, duplicates, loss_runs, longest_loss_run;
    } counts;
    struct sequence_event newest;
};

/* Everything of the first packets is counted, though they come before belief. A late packet takes
 * back its loss, unless it is unknown whether it came before. */
static const struct stream streams[] = {
    {"1-49 51-59", {58, 58, 1, 0, 0, 1, 1}, {WORD_BLOCK_LOST, 50, 1, 50, 49, 0, true, 0}},
    {"1-49 51-59 63-100", {96, 96, 4, 0, 0, 2, 3}, {WORD_BLOCK_LOST, 60, 3, 59, 58, 0, true, 0}},
    {"1-9 11-12", {11, 11, 1, 0, 0, 1, 1}, {WORD_BLOCK_LOST, 10, 1, 10, 9, 0, true, 0}},
    {"1-9 11 12 10 13-30",
     {30, 30, 0, 1, 0, 0, 0},
     {WORD_BLOCK_OUT_OF_ORDER, 10, 1, 12, 10, 0, true, 0}},
    {"1-20 20 15 21-30",
     {32, 30, 0, 0, 2, 0, 0},
     {WORD_BLOCK_DUPLICATE, 15, 1, 22, 15, 0, true, 0}},
    {"1 1 0 2 4-8", {9, 8, 1, 1, 1, 1, 1}, {WORD_BLOCK_DUPLICATE, 1, 1, 2, 1, 0, true, 0}},
    {"1 1 0 2 4-8", {9, 8, 1, 1, 1, 1, 1}, {WORD_BLOCK_OUT_OF_ORDER, 0, 1, 3, 1, 0, true, 0}},
    {"1 1 0 2 4-8", {9, 8, 1, 1, 1, 1, 1}, {WORD_BLOCK_LOST, 3, 1, 5, 4, 0, true, 0}},
    {"1-9 11-12000 10 12001-12010",
     {12010, 12009, 1, 0, 0, 1, 1},
     {WORD_BLOCK_LATE, 10, 1, 12000, 0, 0, true, 0}},
    /* The frame of the original is known as long as no other number has its place. */
    {"1-129 2 130", {131, 130, 0, 0, 1, 0, 0}, {WORD_BLOCK_DUPLICATE, 2, 1, 130, 2, 0, true, 0}},
    {"1-129 1 130", {131, 130, 0, 0, 1, 0, 0}, {WORD_BLOCK_DUPLICATE, 1, 1, 130, 0, 0, true, 0}},
    /* Far behind, but not one after the other: late. */
    {"0-2 1 3-49 51-99 101-600 100 50 601",
     {603, 602, 0, 2, 1, 0, 0},
     {WORD_BLOCK_OUT_OF_ORDER, 50, 1, 602, 0, 0, true, 0}},
};

static void check_stream(enum form form, const struct stream *stream) {
    struct probe probe;
    begin_with(&probe, form, stream->list);
    check_counts(&probe, stream->counts.received, stream->counts.unique, stream->counts.lost,
                 stream->counts.out_of_order, stream->counts.duplicates, 0);
    check_newest(&probe, &stream->newest);
    CHECK_INT(summary_of(&probe).loss_runs, stream->counts.loss_runs);
    CHECK_INT(summary_of(&probe).longest_loss_run, stream->counts.longest_loss_run);
    CHECK_INT(summary_of(&probe).late, stream->newest.kind == WORD_BLOCK_LATE);
    end(&probe);
}

/* The sender restarts after a pause. */
static void check_restart(enum form form, const char *before, int64_t pause_ns, const char *after,
                          uint64_t received, uint64_t lost) {
    struct probe probe;
    begin_with(&probe, form, before);
    struct sequence_event restart = {
        WORD_BLOCK_RESTART, strtoull(after, NULL, 10), 1, probe.frame + 1, probe.frame, 0, true, 0};
    probe.pause_ns = pause_ns;
    send_list(&probe, after);
    check_counts(&probe, received, received, lost, 0, 0, 1);
    check_newest(&probe, &restart);
    CHECK_INT(summary_of(&probe).jitter_ns, 0);
    end(&probe);
}

/* A capture cut after the headers is enough for all but blocks. */
static void check_snap_cut(enum form form, uint32_t captured) {
    struct probe probe;
    begin(&probe, form);
    probe.captured = captured;
    probe.length = 1470;
    send_list(&probe, "1-49 51-100");
    check_counts(&probe, 99, 99, 1, 0, 0, 0);
    CHECK_INT(probe.counts[WORD_BLOCK_CORRUPT], 0);
    end(&probe);
}

/* --- against plain counting ------------------------------------------------------------------- */

#define MADE 20000

struct plain {
    uint8_t seen[MADE];
    uint64_t received, unique, out_of_order, duplicates;
    uint64_t first, highest;
    double jitter, transit_before;
};

static void plain_take(struct plain *plain, uint64_t sequence, int64_t transit) {
    plain->received++;
    if (plain->received == 1) {
        plain->first = plain->highest = sequence;
    } else {
        double difference = fabs((double)transit - plain->transit_before);
        plain->jitter += (difference - plain->jitter) / 16;
        plain->out_of_order += sequence < plain->highest && !plain->seen[sequence];
    }
    plain->transit_before = (double)transit;
    plain->duplicates += plain->seen[sequence];
    plain->unique += !plain->seen[sequence];
    plain->seen[sequence] = 1;
    plain->first = sequence < plain->first ? sequence : plain->first;
    plain->highest = sequence > plain->highest ? sequence : plain->highest;
}

static void send_both(struct probe *probe, struct plain *plain, uint64_t sequence) {
    uint8_t payload[2000];
    int64_t sent = START + (int64_t)sequence * MILLISECOND;
    int64_t transit = 3 * MILLISECOND + random_below(2 * MILLISECOND);
    put(probe, payload, sequence, sent);
    plain_take(plain, sequence, transit);
    take(probe, payload, probe->length, sent + transit);
}

static void check_random_stream(enum form form) {
    static struct plain plain;
    struct probe probe;
    uint64_t late[8], late_count = 0;
    memset(&plain, 0, sizeof plain);
    begin(&probe, form);
    for (uint64_t sequence = 1; sequence < MADE; sequence++) {
        uint32_t fate = sequence < 4 ? 99 : random_below(100);
        if (fate < 5)
            continue;
        if (fate < 10 && late_count < 8) {
            late[late_count++] = sequence;
            continue;
        }
        send_both(&probe, &plain, sequence);
        if (fate < 15)
            send_both(&probe, &plain, sequence);
        if (late_count && fate > 80)
            send_both(&probe, &plain, late[--late_count]);
    }
    check_counts(&probe, plain.received, plain.unique,
                 plain.highest - plain.first + 1 - plain.unique, plain.out_of_order,
                 plain.duplicates, 0);
    struct sequence_summary summary = summary_of(&probe);
    CHECK(llabs(summary.jitter_ns - (int64_t)plain.jitter) <= (form == RTP ? 200000 : 1000));
    end(&probe);
}

/* --- one form each ---------------------------------------------------------------------------- */

/* Numbers from `first` on, modulo `modulus`: they wrap after 100, or exceed 32 bits. */
static void check_large_numbers(enum form form, uint64_t first, uint64_t modulus) {
    struct probe probe;
    begin(&probe, form);
    for (uint64_t i = 0; i < 300; i++)
        if (i != 110)
            send_at(&probe, (first + i) % modulus, START + (int64_t)i * 20 * MILLISECOND);
    check_counts(&probe, 299, 299, 1, 0, 0, 0);
    CHECK_INT(probe.newest[WORD_BLOCK_LOST].sequence, (first + 110) % modulus);
    end(&probe);
}

/* By version: the id negated, in one half or in both, or with its highest bit set. */
static void check_end_marker(enum form form, uint32_t low, uint32_t high) {
    struct probe probe;
    uint8_t payload[64] = {0};
    begin_with(&probe, form, "1-98");
    block_store(payload, low, 4);
    block_store(payload + 12, high, 4);
    put_time(payload + 4, START + 2 * SECOND);
    for (unsigned i = 0; i < 10; i++)
        take(&probe, payload, sizeof payload, START + 2 * SECOND + i * 250 * MILLISECOND);
    check_counts(&probe, 98, 98, 0, 0, 0, 0);
    struct sequence_summary summary = summary_of(&probe);
    CHECK_INT(summary.end_markers, 10);
    CHECK_INT(summary.other_packets, 0);
    end(&probe);
}

/* The sender's clock may have another start: no packet was under way for longer. */
static void check_restart_with_another_clock(void) {
    struct probe probe;
    uint8_t payload[64];
    begin_with(&probe, IPERF3_32, "1-3000");
    for (int64_t i = 0; i < 20; i++) {
        int64_t sent = START + 1000 * SECOND + i * MILLISECOND;
        put(&probe, payload, i ? 100 * (uint64_t)i : 1, sent); /* most are lost from the start */
        take(&probe, payload, 64, sent + 7 * SECOND);
    }
    check_counts(&probe, 3020, 3020, 1900 - 20, 0, 0, 1);
    struct sequence_summary summary = summary_of(&probe);
    CHECK_INT(summary.jitter_ns, 0);
    CHECK_INT(summary.delay_variation_ns, 0);
    end(&probe);
}

/* A number far ahead is damage, unless the next packet goes on from there. */
static void check_far_ahead(void) {
    struct probe probe;
    begin_with(&probe, IPERF3_64, "1-100");
    send_at(&probe, (uint64_t)1 << 40, START + 101 * 20 * MILLISECOND);
    send_at(&probe, (uint64_t)1 << 40, START + 101 * 20 * MILLISECOND); /* the same again */
    send_list(&probe, "102-200");
    check_counts(&probe, 199, 199, 1, 0, 0, 0);
    CHECK_INT(summary_of(&probe).other_packets, 2);
    uint64_t far = (uint64_t)1 << 26;
    send_at(&probe, far, START + 100 * SECOND);
    send_at(&probe, far + 1, START + 100 * SECOND + MILLISECOND);
    check_counts(&probe, 201, 201, far + 1 - 201, 0, 0, 0);
    CHECK_INT(summary_of(&probe).longest_loss_run, far - 201);
    end(&probe);
}

static void check_ssrc_change(void) {
    struct probe probe;
    begin_with(&probe, RTP, "1-100");
    probe.key = 0x99887766;
    for (int64_t i = 0; i < 100; i++)
        if (i != 40)
            send_at(&probe, (uint64_t)(65500 + i) % 65536,
                    START + 2 * SECOND + i * 20 * MILLISECOND);
    check_counts(&probe, 199, 199, 1, 0, 0, 1);
    CHECK_INT(summary_of(&probe).sources, 2);
    CHECK_INT(summary_of(&probe).other_packets, 0);
    check_newest(&probe,
                 &(struct sequence_event){WORD_BLOCK_RESTART, 65500, 1, 101, 100, 0, true, 0});
    probe.key = 0x5555; /* one packet alone is no source */
    send_next(&probe, 7);
    CHECK_INT(summary_of(&probe).sources, 2);
    CHECK_INT(summary_of(&probe).other_packets, 1);
    end(&probe);
}

/* Sound and picture in one flow: neither is lost because the other came between. Each two of them
 * join 10 rounds after the two before. */
static void check_sources_that_alternate(unsigned count) {
    struct probe probe;
    begin(&probe, RTP);
    for (uint64_t i = 1; i <= 500; i++)
        for (unsigned source = 0; source < count && source / 2 * 10 < i; source++) {
            probe.key = 1000 + source;
            for (uint64_t packet = 0; packet <= source % 2; packet++) {
                uint64_t sequence = i * (source % 2 + 1) + packet;
                send_at(&probe, sequence, START + (int64_t)i * 20 * MILLISECOND);
            }
        }
    struct sequence_summary summary = summary_of(&probe);
    CHECK_INT(summary.sources, count);
    CHECK_INT(summary.lost, 0);
    CHECK(summary.other_packets < 5); /* of the first few */
    CHECK_INT(summary.received + summary.other_packets, probe.frame);
    end(&probe);
}

static void check_blocks(void) {
    struct probe probe;
    uint8_t payload[64];
    begin(&probe, BLOCKS);
    for (uint64_t i = 0; i < 100; i++) {
        put_block(payload, 5, (uint16_t)(i == 99 ? BLOCK_LAST : 0), 64, i,
                  START + (int64_t)i * MILLISECOND);
        payload[40] ^= i == 1 || i == 50; /* one of them before belief */
        take(&probe, payload, 64, START + (int64_t)i * MILLISECOND);
    }
    take(&probe, payload, 60, START + 100 * MILLISECOND); /* 4 bytes fewer than it says */
    check_counts(&probe, 101, 100, 0, 0, 1, 0);
    CHECK_INT(summary_of(&probe).corrupt, 3);
    put_block(payload, 7, BLOCK_FIRST, 64, 0, START + SECOND);
    payload[63] ^= 1; /* other bytes may be wrong, too */
    take(&probe, payload, 64, START + SECOND);
    CHECK_INT(summary_of(&probe).sources, 1);
    put_block(payload, 6, BLOCK_FIRST, 64, 0, START + SECOND); /* alone, but it says so */
    take(&probe, payload, 64, START + SECOND);
    struct sequence_summary summary = summary_of(&probe);
    CHECK_INT(summary.sources, 2);
    CHECK_INT(summary.restarts, 1);
    CHECK_INT(summary.expected, 101);
    end(&probe);
}

/* Ten packets of a stream, then any numbers and times. */
static void check_hostile_times(enum form form) {
    struct probe probe;
    uint8_t payload[64];
    begin(&probe, form);
    for (uint64_t i = 0; i < 2000; i++) {
        bool wild = i >= 10;
        uint64_t sequence = wild ? random_bits() >> (2 + random_below(60)) : i;
        if (form == RTP)
            put_rtp(payload, 9, 0, sequence, wild ? random_bits() : 0);
        else
            put_block(payload, 5, 0, 64, sequence, wild ? (int64_t)(random_bits() >> 1) : START);
        take(&probe, payload, 64, wild ? (int64_t)random_bits() : START);
    }
    /* Random numbers are no stream; only blocks have more evidence than their numbers. */
    CHECK_INT(summary_of(&probe).application, form == RTP ? WORD_NONE : WORD_BLOCKS);
    end(&probe);
}

/* The last packet waits for one that follows, and its event is the first of a short flow: the end
 * of the flow has no pool. */
static void check_first_event_at_the_end(void) {
    struct probe probe;
    begin_with(&probe, RTP, "1000-1009 700");
    CHECK_INT(summary_of(&probe).received, 11);
    end(&probe);
}

/* --- without memory --------------------------------------------------------------------------- */

static void check_bounds(void) {
    for (size_t most = 0; most < 12000; most += 100) {
        struct probe probe;
        begin(&probe, BLOCKS);
        probe.pool.own.most = most;
        for (unsigned run = 0; run < 5; run++) {
            probe.key = run;
            send_list(&probe, "0-20");
        }
        CHECK(probe.track.given_up || summary_of(&probe).application == WORD_BLOCKS);
        CHECK(most < 6000 || summary_of(&probe).received == 105);
        CHECK(probe.pool.own.used <= most);
        end(&probe);
    }
}

static void check_memory_of_one_flow(void) {
    struct probe probe;
    begin(&probe, RTP);
    probe.pool.own.most = 1 << 20;
    for (uint64_t i = 0; i < 10000; i++) {
        probe.key = (uint32_t)i / 4;
        send_next(&probe, i % 4 < 3 ? i : i + 5000); /* which waits for one that follows */
    }
    CHECK(probe.pool.own.used < 56000);
    struct sequence_summary summary = summary_of(&probe);
    CHECK(summary.sources > 2000);
    CHECK_INT(summary.lost, 0);
    CHECK_INT(summary.received + summary.other_packets, probe.frame);
    end(&probe);
}

static void check_every_form(enum form form) {
    check_in_order(form);
    for (unsigned i = 0; i < sizeof streams / sizeof *streams; i++)
        check_stream(form, &streams[i]);
    check_restart(form, "7000-7099", 200 * SECOND, "0-49 51-199", 299, 1);
    check_random_stream(form);
    check_snap_cut(form, form == BLOCKS ? 32 : 16);
}

int main(void) {
    check_first_event_at_the_end();
    for (enum form form = 0; form < FORMS; form++)
        check_every_form(form);
    check_snap_cut(IPERF3_32, 12);
    check_snap_cut(RTP, 12);
    check_large_numbers(IPERF3_32, UINT32_MAX - 99, (uint64_t)1 << 32);
    check_large_numbers(IPERF2_32, INT32_MAX - 99, (uint64_t)1 << 31);
    check_large_numbers(RTP, 65436, 65536);
    check_large_numbers(BLOCKS, UINT32_MAX - 99, UINT64_MAX);
    check_large_numbers(IPERF3_64, UINT32_MAX - 99, UINT64_MAX);
    check_large_numbers(IPERF2_64, UINT32_MAX - 99, UINT64_MAX);
    check_end_marker(IPERF2_32, 0u - 100, 0x36363636);
    check_end_marker(IPERF2_32, 0x80000000u | 100, 0x36363636);
    check_end_marker(IPERF2_64, 0u - 100, 0);
    check_end_marker(IPERF2_64, 0u - 100, 0xffffffff);
    check_end_marker(IPERF2_64, 100, 0x80000000);
    check_restart(IPERF3_32, "1-100", 10 * SECOND, "4-60", 157, 0); /* 1 to 3 are lost */
    check_restart_with_another_clock();
    /* RFC 3550 A.1: MAX_DROPOUT numbers may be lost; a longer step is another beginning. */
    check_restart(RTP, "1-100 3100-3200", 0, "6201-6300", 301, 2999);
    check_far_ahead();
    check_ssrc_change();
    check_sources_that_alternate(2);
    check_sources_that_alternate(12);
    check_blocks();
    check_hostile_times(BLOCKS);
    check_hostile_times(RTP);
    check_bounds();
    check_memory_of_one_flow();
    return 0;
}
