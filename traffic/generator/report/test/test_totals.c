/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over streams: what one of them does not know, the sum does not know either. */
#include "report/totals.h"

#include <string.h>

#include "common/check.h"

static void begin(struct test *test) {
    *test = (struct test){.asks = true};
    test->plan.streams = 2;
    CHECK(test_begin(test));
}

static void test_sums(void) {
    struct test test;
    begin(&test);
    struct way *way = &test.ways[WAY_FORWARD];
    way->peer_is_done = true;
    way->streams[0].mine = (struct stream_report){.blocks_sent = 10,
                                                  .first_ns = 100,
                                                  .last_ns = 300,
                                                  .elapsed_ns = 201,
                                                  .errors = "EPERM:1,ENOBUFS:2"};
    way->streams[1].mine = (struct stream_report){.blocks_sent = 5,
                                                  .first_ns = 50,
                                                  .last_ns = 200,
                                                  .elapsed_ns = 150,
                                                  .errors = "ENOBUFS:40"};
    way->streams[0].theirs =
        (struct stream_report){.blocks_received = 9, .jitter_ns_plus_1 = 11, .dropped_plus_1 = 1};
    way->streams[1].theirs =
        (struct stream_report){.blocks_received = 2, .jitter_ns_plus_1 = 31, .dropped_plus_1 = 4};
    struct way_totals totals = way_totals_of(way);
    CHECK(totals.sender_known && totals.receiver_known);
    CHECK_INT(totals.sender.blocks_sent, 15);
    CHECK_INT(totals.sender.first_ns, 50);
    CHECK_INT(totals.sender.elapsed_ns, 250);
    CHECK(!strcmp(totals.sender.errors, "EPERM:1,ENOBUFS:42"));
    CHECK_INT(totals.receiver.jitter_ns_plus_1 - 1, 20);
    CHECK_INT(totals.receiver.dropped_plus_1 - 1, 3);
    CHECK_INT(blocks_lost(true, &totals.sender, &totals.receiver), 4);
    way->streams[1].theirs.dropped_plus_1 = 0;
    CHECK_INT(way_totals_of(way).receiver.dropped_plus_1, 0);
    test_end(&test);
}

/* A peer may say any number up to INT64_MAX of each of its streams; run under UBSan. */
static void test_a_lying_peer(void) {
    struct test test;
    begin(&test);
    struct way *way = &test.ways[WAY_FORWARD];
    way->peer_is_done = true;
    for (unsigned i = 0; i < 2; i++) {
        struct stream_report most;
        memset(&most, 0, sizeof most);
        for (uint64_t *at = &most.blocks_sent; at <= &most.cpu_system_ns; at++)
            *at = INT64_MAX;
        most.first_ns = i ? 5 : INT64_MAX; /* the end before the beginning */
        most.last_ns = i ? 1 : 7;
        strcpy(most.errors, "EPERM:9223372036854775807");
        way->streams[i].mine = way->streams[i].theirs = most;
    }
    struct way_totals totals = way_totals_of(way);
    CHECK_INT(totals.sender.blocks_sent, INT64_MAX);
    CHECK_INT(totals.sender.elapsed_ns, 2);
    CHECK_INT(totals.receiver.bytes_received, INT64_MAX);
    CHECK_INT(totals.receiver.dropped_plus_1, INT64_MAX);
    CHECK_INT(totals.receiver.cpu_system_ns, INT64_MAX);
    CHECK(!strcmp(totals.sender.errors, "EPERM:9223372036854775807"));
    CHECK_INT(blocks_lost(true, &totals.sender, &totals.receiver), 0);
    totals.receiver.blocks_received = 0;
    CHECK_INT(blocks_lost(true, &totals.sender, &totals.receiver), INT64_MAX);
    way_totals_add(&totals.sender, &totals.sender);
    CHECK_INT(totals.sender.bytes_sent, INT64_MAX);
    test_end(&test);
}

static void test_what_was_not_told(void) {
    struct test test;
    begin(&test);
    struct way_totals totals = way_totals_of(&test.ways[WAY_FORWARD]);
    CHECK(totals.sender_known && !totals.receiver_known && !test_is_complete(&test));
    CHECK_INT(blocks_lost(false, &totals.sender, &totals.receiver), -1);
    test.ways[WAY_FORWARD].peer_is_done = true;
    CHECK(test_is_complete(&test));
    test_stop(&test, "signal", true);
    test_stop(&test, "idle", false);
    CHECK(!test_is_complete(&test) && !strcmp(test.stopped_by, "signal"));
    CHECK(!strcmp(test.stopped_at, "sender"));
    test_end(&test);
}

static void test_texts_of_errors(void) {
    static const char *const wrong[] = {
        "", ":", "EPERM", "EPERM:", "a:1", "EPERM;1", ",,,", "ANAMETHATISLONGERTHANANY:1"};
    char text[ERROR_TEXT_ROOM];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error_counts counts = {0};
        error_counts_add(&counts, wrong[i]);
        CHECK(counts.kinds <= 1);
    }
    struct error_counts many = {0};
    for (char letter = 'A'; letter <= 'Z'; letter++) {
        snprintf(text, sizeof text, "EVERYKINDOFERROR%c:9223372036854775807", letter);
        error_counts_add(&many, text);
    }
    CHECK_INT(many.kinds, ERROR_KINDS);
    error_counts_write(&many, text);
    CHECK(strlen(text) < ERROR_TEXT_ROOM && text[strlen(text) - 1] == '7');
}

int main(void) {
    test_sums();
    test_a_lying_peer();
    test_what_was_not_told();
    test_texts_of_errors();
    return 0;
}
