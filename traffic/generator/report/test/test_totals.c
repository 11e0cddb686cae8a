/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over streams: if one stream does not know a figure, the sum is unknown; no report of a peer
 * makes a sum wrap. */
#include "report/report.h"

#include <string.h>

#include "common/test/check.h"

static void begin(struct transfer *transfer) {
    *transfer = (struct transfer){.is_initiator = true};
    transfer->plan.streams = 2;
    CHECK(transfer_begin(transfer));
}

static void test_sums(void) {
    struct transfer transfer;
    begin(&transfer);
    struct direction *direction = &transfer.directions[DIRECTION_FORWARD];
    direction->peer_done = true;
    direction->streams[0].own = (struct stream_report){.blocks_sent = 10,
                                                       .first_ns = 100,
                                                       .last_ns = 300,
                                                       .elapsed_ns = 201,
                                                       .errors = "EPERM:1,ENOBUFS:2"};
    direction->streams[1].own = (struct stream_report){.blocks_sent = 5,
                                                       .first_ns = 50,
                                                       .last_ns = 200,
                                                       .elapsed_ns = 150,
                                                       .errors = "ENOBUFS:40"};
    direction->streams[0].peer =
        (struct stream_report){.blocks_received = 9, .jitter_ns_plus_1 = 11, .dropped_plus_1 = 1};
    direction->streams[1].peer =
        (struct stream_report){.blocks_received = 2, .jitter_ns_plus_1 = 31, .dropped_plus_1 = 4};
    struct direction_totals totals = direction_totals_of(direction);
    CHECK(totals.sender_known && totals.receiver_known);
    CHECK_INT(totals.sender.blocks_sent, 15);
    CHECK_INT(totals.sender.first_ns, 50);
    CHECK_INT(totals.sender.elapsed_ns, 250);
    CHECK(!strcmp(totals.sender.errors, "EPERM:1,ENOBUFS:42"));
    CHECK_INT(totals.receiver.jitter_ns_plus_1 - 1, 20);
    CHECK_INT(totals.receiver.dropped_plus_1 - 1, 3);
    CHECK_INT(blocks_lost(true, &totals.sender, &totals.receiver), 4);
    direction->streams[1].peer.dropped_plus_1 = 0;
    CHECK_INT(direction_totals_of(direction).receiver.dropped_plus_1, 0);
    transfer_end(&transfer);
}

/* A peer may report any number up to INT64_MAX for each of its streams; run under UBSan. */
static void test_a_lying_peer(void) {
    struct transfer transfer;
    begin(&transfer);
    struct direction *direction = &transfer.directions[DIRECTION_FORWARD];
    direction->peer_done = true;
    for (unsigned i = 0; i < 2; i++) {
        struct stream_report max;
        memset(&max, 0, sizeof max);
        for (uint64_t *at = &max.blocks_sent; at <= &max.cpu_system_ns; at++)
            *at = INT64_MAX;
        max.first_ns = i ? 5 : INT64_MAX; /* ends before it begins */
        max.last_ns = i ? 1 : 7;
        strcpy(max.errors, "EPERM:9223372036854775807");
        direction->streams[i].own = direction->streams[i].peer = max;
    }
    struct direction_totals totals = direction_totals_of(direction);
    CHECK_INT(totals.sender.blocks_sent, INT64_MAX);
    CHECK_INT(totals.sender.elapsed_ns, 2);
    CHECK_INT(totals.receiver.bytes_received, INT64_MAX);
    CHECK_INT(totals.receiver.dropped_plus_1, INT64_MAX);
    CHECK_INT(totals.receiver.cpu_system_ns, INT64_MAX);
    CHECK(!strcmp(totals.sender.errors, "EPERM:9223372036854775807"));
    CHECK_INT(blocks_lost(true, &totals.sender, &totals.receiver), 0);
    totals.receiver.blocks_received = 0;
    CHECK_INT(blocks_lost(true, &totals.sender, &totals.receiver), INT64_MAX);
    stream_report_add(&totals.sender, &totals.sender);
    CHECK_INT(totals.sender.bytes_sent, INT64_MAX);
    transfer_end(&transfer);
}

static void test_missing_counts(void) {
    struct transfer transfer;
    begin(&transfer);
    struct direction_totals totals = direction_totals_of(&transfer.directions[DIRECTION_FORWARD]);
    CHECK(totals.sender_known && !totals.receiver_known && !transfer_is_complete(&transfer));
    CHECK_INT(blocks_lost(false, &totals.sender, &totals.receiver), -1);
    transfer.directions[DIRECTION_FORWARD].peer_done = true;
    CHECK(transfer_is_complete(&transfer));
    transfer_stop(&transfer, "signal", true);
    transfer_stop(&transfer, "idle", false);
    CHECK(!transfer_is_complete(&transfer) && !strcmp(transfer.stopped_by, "signal"));
    CHECK(!strcmp(transfer.stopped_at, "sender"));
    transfer_end(&transfer);
}

static void test_texts_of_errors(void) {
    static const char *const wrong[] = {
        "", ":", "EPERM", "EPERM:", "a:1", "EPERM;1", ",,,", "ANAMETHATISLONGERTHANANY:1"};
    char text[ERROR_COUNTS_SIZE];
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
    CHECK_INT(many.kinds, MAX_ERROR_KINDS);
    error_counts_write(&many, text);
    CHECK(strlen(text) < ERROR_COUNTS_SIZE && text[strlen(text) - 1] == '7');
}

int main(void) {
    test_sums();
    test_a_lying_peer();
    test_missing_counts();
    test_texts_of_errors();
    return 0;
}
