/* SPDX-License-Identifier: Apache-2.0 */
/* Places of the longest waits: which wait of a kind stays, which are cited, and their text. */
#include <string.h>

#include "tracker/steps.h"

#include "common/test/check.h"

#define MS INT64_C(1000000)

static struct tcp_stream stream;
static struct time_accounting accounting;
static struct pool pool;

/* Returns a segment `number`, which ends a wait since the data in the frame before. */
static struct segment_context segment(const struct packet_info *packet, uint32_t number,
                                      int64_t ns) {
    return (struct segment_context){.sender = &stream,
                                    .packet = packet,
                                    .pool = &pool,
                                    .frame = number,
                                    .data_frame_before = number - 1,
                                    .data_ns_before = packet->time_ns - ns};
}

static void wait_for(uint32_t frame, int64_t at, int64_t idle, int64_t held, int64_t ns,
                     enum limit_cause rest) {
    struct packet_info packet = {.time_ns = at, .capture = 3};
    struct segment_context seg = segment(&packet, frame, ns);
    note_waits(&seg, &accounting, idle, held, rest, ns);
}

static void end(void) {
    if (accounting.steady)
        pool_release(&pool, accounting.steady, 1, sizeof *accounting.steady);
    pool_close(&pool);
}

static void begin(size_t bytes) {
    end();
    pool = (struct pool){.own.most = bytes, .chunks.small_pages = true};
    accounting = (struct time_accounting){0};
    stream = (struct tcp_stream){.accounting = &accounting, .unique_bytes = 1000000};
}

static const char *text_since(int64_t since_ns) {
    static char text[WAITS_TEXT_SIZE];
    waits_to_text(&stream, since_ns, text);
    return text;
}

static void test_the_longest_stays_and_runs_add_up(void) {
    begin(1 << 20);
    accounting.ns[LIMIT_IDLE] = 300 * MS;
    accounting.ns[LIMIT_WINDOW] = 300 * MS;
    wait_for(5, 100 * MS, 10 * MS, 0, 10 * MS, LIMIT_NETWORK);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, LIMIT_NETWORK);
    wait_for(12, 300 * MS, 20 * MS, 0, 20 * MS, LIMIT_NETWORK);
    CHECK_INT(accounting.steady->longest[WAIT_IDLE].last_frame, 9);
    wait_for(20, 400 * MS, 0, 0, 5 * MS, LIMIT_WINDOW);
    wait_for(21, 410 * MS, 0, 0, 10 * MS, LIMIT_WINDOW);
    wait_for(22, 450 * MS, 0, 0, 12 * MS, LIMIT_NETWORK); /* ends the run */
    wait_for(23, 460 * MS, 0, 0, 14 * MS, LIMIT_WINDOW);
    CHECK_INT(accounting.steady->longest[WAIT_WINDOW].ns, 15 * MS);
    CHECK(!strcmp(text_since(100 * MS),
                  "idle 8-9 70000000-100000000 3, window 19-21 295000000-310000000 3"));
}

static void test_small_shares_are_not_cited(void) {
    begin(1 << 20);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, LIMIT_NETWORK);
    accounting.ns[LIMIT_IDLE] = 150 * MS;
    CHECK(!*text_since(0)); /* of a short transfer */
    accounting.ns[LIMIT_RECOVERY] = 850 * MS;
    CHECK(*text_since(0));
    accounting.ns[LIMIT_RECOVERY] = 1400 * MS;
    CHECK(!*text_since(0)); /* less than a tenth */
    accounting.ns[LIMIT_RECOVERY] = 850 * MS;
    stream.unique_bytes--;
    CHECK(!*text_since(0)); /* of a small transfer */
}

static void test_without_memory_or_frames_nothing_is_kept(void) {
    begin(0);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, LIMIT_NETWORK);
    CHECK(!accounting.steady && !*text_since(0));
    stream.accounting = NULL;
    CHECK(!*text_since(0));
    begin(1 << 20);
    wait_for(1, 200 * MS, 30 * MS, 0, 30 * MS, LIMIT_NETWORK); /* no data before it */
    wait_for(0, 300 * MS, 40 * MS, 0, 40 * MS, LIMIT_NETWORK); /* a frame above 32 bits */
    CHECK_INT(accounting.steady->longest[WAIT_IDLE].last_frame, 0);
}

/* The text of every kind with the longest numbers has room. */
static void test_the_text_has_room(void) {
    begin(1 << 20);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, LIMIT_NETWORK);
    for (unsigned i = 0; i < LIMIT_CAUSES; i++)
        accounting.ns[i] = MS * 1000;
    for (unsigned kind = 0; kind < WAIT_KINDS; kind++)
        accounting.steady->longest[kind] =
            (struct wait){INT64_MAX, -INT64_MAX, -INT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    stream.rtt.count = 1000;
    const char *text = text_since(0);
    unsigned commas = 0;
    for (const char *at = text; *at; at++)
        commas += *at == ',';
    CHECK_INT(commas, WAIT_KINDS - 1);
    CHECK(strlen(text) < WAITS_TEXT_SIZE - 1);
}

int main(void) {
    test_the_longest_stays_and_runs_add_up();
    test_small_shares_are_not_cited();
    test_without_memory_or_frames_nothing_is_kept();
    test_the_text_has_room();
    end();
    return 0;
}
