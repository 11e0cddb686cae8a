/* SPDX-License-Identifier: Apache-2.0 */
/* The capture of an earlier packet of a connection: known if its time tells its run. */
#include "tcp/connection.h"

#include "common/test/check.h"

static struct tcp_connection connection;
static struct pool pool;
static int64_t last_ns;
static struct packet_info present;

static void begin(size_t bytes) {
    pool_release(&pool, connection.captures, 1, sizeof *connection.captures);
    pool_close(&pool);
    pool = (struct pool){.own.most = bytes, .chunks.small_pages = true};
    connection = (struct tcp_connection){0};
    last_ns = INT64_MIN;
}

/* A packet of a connection that began in capture 4. */
static void take(unsigned direction, uint32_t capture, uint32_t frame, int64_t time_ns) {
    present = (struct packet_info){.capture = capture, .frame = frame, .time_ns = time_ns};
    if (capture != 4 || connection.captures_vary)
        note_capture(&connection, direction, &present, 4, last_ns, &pool);
    last_ns = max64(last_ns, time_ns);
}

static uint32_t of(unsigned direction, uint32_t frame, int64_t time_ns) {
    return capture_of(&connection, direction, time_ns, frame, &present);
}

static void test_one_capture_is_known(void) {
    begin(1 << 20);
    take(0, 4, 7, 100);
    CHECK(of(0, 5, 50) == 4 && of(1, 6, 60) == 4 && !connection.captures);
}

/* Frames of a rotated set begin anew with each file. */
static void test_rotated_files(void) {
    begin(1 << 20);
    take(0, 4, 90, 100);
    take(1, 4, 91, 110);
    take(0, 5, 1, 200);
    CHECK(of(0, 90, 100) == 4 && of(1, 91, 110) == 4 && of(0, 1, 200) == 5);
    take(0, 5, 3, 220);
    take(0, 6, 1, 300);
    CHECK(of(0, 3, 220) == 5 && of(1, 91, 110) == 4 && of(0, 1, 300) == 6);
    CHECK(of(0, 90, 100) == CAPTURE_UNKNOWN); /* two runs ago */
}

/* The other direction has no packet as late, so it is not its capture. */
static void test_either_direction(void) {
    begin(1 << 20);
    take(0, 4, 90, 100);
    take(1, 4, 91, 110);
    take(0, 5, 1, 200);
    take(0, 5, 2, 300);
    CHECK(capture_of_any(&connection, 200, 1, &present) == 5);
    CHECK(capture_of_any(&connection, 110, 91, &present) == 4);
    take(1, 6, 9, 400); /* an interface of its own from here on */
    CHECK(capture_of_any(&connection, 300, 2, &present) == 5);
    CHECK(capture_of_any(&connection, 400, 9, &present) == 6);
    take(0, 5, 3, 500);
    CHECK(capture_of_any(&connection, 400, 9, &present) == CAPTURE_UNKNOWN);
}

/* Each direction has an interface of its own. */
static void test_a_capture_for_each_direction(void) {
    begin(1 << 20);
    take(0, 4, 1, 100);
    for (uint32_t i = 0; i < 9; i++) {
        take(1, 5, 10 + i, 110 + 20 * i);
        take(0, 4, 2 + i, 120 + 20 * i);
    }
    CHECK(of(0, 2, 120) == 4 && of(1, 10, 110) == 5 && of(1, 12, 150) == 5);
}

/* A packet at the time at which the file changes may be of both, unless it is the first of one. */
static void test_equal_times_are_not_known(void) {
    begin(1 << 20);
    take(0, 4, 90, 200);
    take(0, 5, 1, 200);
    take(0, 5, 2, 200);
    CHECK(of(0, 1, 200) == 5 && of(0, 90, 200) == CAPTURE_UNKNOWN);
}

/* The clock of the second file is behind. */
static void test_clocks_that_differ(void) {
    begin(1 << 20);
    take(0, 4, 90, 300);
    take(0, 5, 1, 200);
    take(0, 5, 2, 250);
    CHECK(of(0, 2, 250) == CAPTURE_UNKNOWN && of(0, 90, 300) == CAPTURE_UNKNOWN);
    take(0, 5, 3, 400);
    CHECK(of(0, 3, 400) == 5 && of(0, 1, 200) == 5);
}

static void test_without_memory_nothing_is_known(void) {
    begin(0);
    take(0, 4, 1, 100);
    take(0, 5, 1, 200);
    CHECK(connection.captures_vary && of(0, 1, 100) == CAPTURE_UNKNOWN);
    pool.own.most = 1 << 20;
    take(0, 6, 1, 300);
    CHECK(of(0, 1, 100) == CAPTURE_UNKNOWN && of(0, 1, 300) == 6);
    CHECK(of(1, 1, 400) == CAPTURE_UNKNOWN);
}

int main(void) {
    test_one_capture_is_known();
    test_rotated_files();
    test_either_direction();
    test_a_capture_for_each_direction();
    test_equal_times_are_not_known();
    test_clocks_that_differ();
    test_without_memory_nothing_is_known();
    begin(0);
    return 0;
}
