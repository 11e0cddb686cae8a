/* SPDX-License-Identifier: Apache-2.0 */
/* Places of the longest waits: which wait of a kind stays, and which are cited. */
#include "tracker/steps.h"

#include "common/test/check.h"

#define MS INT64_C(1000000)

static struct tcp_connection connection;
static struct tcp_stream *const stream = &connection.streams[0];
static struct unusual_time unusual;
static struct sending_state *const sending = &connection.time.sending[0];
static struct time_accounting accounting;
static struct pool pool;
static const struct packet_wait *waits[WAIT_KINDS];

/* Returns a segment `number`, which ends a wait since the data in the frame before. */
static struct segment_context segment(const struct packet_info *packet, uint32_t number,
                                      int64_t ns) {
    return (struct segment_context){.connection = &connection,
                                    .sender = stream,
                                    .packet = packet,
                                    .pool = &pool,
                                    .frame = number,
                                    .data_frame_before = number - 1,
                                    .data_ns_before = packet->time_ns - ns};
}

static void wait_for(uint32_t frame, int64_t at, int64_t idle, int64_t held, int64_t ns,
                     enum sender_time rest) {
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
    unusual = (struct unusual_time){0};
    connection = (struct tcp_connection){.time.unusual = &unusual};
    *stream = (struct tcp_stream){.accounting = &accounting, .unique_bytes = 1000000};
}

/* Returns how many kinds have a wait. */
static unsigned find(void) {
    unsigned count = 0;
    find_waits(&connection, stream, waits);
    for (unsigned kind = 0; kind < WAIT_KINDS; kind++)
        count += waits[kind] != NULL;
    return count;
}

static void check_wait(enum wait_kind kind, uint32_t first, uint32_t last, int64_t first_ns,
                       int64_t last_ns) {
    const struct packet_wait *wait = waits[kind];
    CHECK(wait && wait->first_frame == first && wait->last_frame == last);
    CHECK(wait && wait->first_ns == first_ns && wait->last_ns == last_ns);
    CHECK(wait && wait->first_capture == 3 && wait->last_capture == 3);
}

static void test_the_longest_stays_and_runs_add_up(void) {
    begin(1 << 20);
    sending->ns[SENDER_PAUSE] = 300 * MS;
    unusual.sending[0].ns[SENDER_WINDOW - SENDER_USUAL] = 300 * MS;
    wait_for(5, 100 * MS, 10 * MS, 0, 10 * MS, SENDER_NETWORK);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, SENDER_NETWORK);
    wait_for(12, 300 * MS, 20 * MS, 0, 20 * MS, SENDER_NETWORK);
    CHECK_INT(accounting.steady->longest[WAIT_IDLE].last_frame, 9);
    wait_for(20, 400 * MS, 0, 0, 5 * MS, SENDER_WINDOW);
    wait_for(21, 410 * MS, 0, 0, 10 * MS, SENDER_WINDOW);
    wait_for(22, 450 * MS, 0, 0, 12 * MS, SENDER_NETWORK); /* ends the run */
    wait_for(23, 460 * MS, 0, 0, 14 * MS, SENDER_WINDOW);
    CHECK_INT(accounting.steady->longest[WAIT_WINDOW].ns, 15 * MS);
    CHECK_INT(find(), 2);
    check_wait(WAIT_IDLE, 8, 9, 170 * MS, 200 * MS);
    check_wait(WAIT_WINDOW, 19, 21, 395 * MS, 410 * MS);
}

static void test_small_shares_are_not_cited(void) {
    begin(1 << 20);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, SENDER_NETWORK);
    sending->ns[SENDER_PAUSE] = 15 * MS;
    CHECK(!find()); /* of a short transfer */
    sending->ns[SENDER_PAUSE] = 150 * MS;
    unusual.sending[0].ns[SENDER_LOSS - SENDER_USUAL] = 850 * MS;
    CHECK(find());
    unusual.sending[0].ns[SENDER_LOSS - SENDER_USUAL] = 1400 * MS;
    CHECK(!find()); /* less than a tenth */
    unusual.sending[0].ns[SENDER_LOSS - SENDER_USUAL] = 850 * MS;
    stream->unique_bytes--;
    CHECK(!find()); /* of a small transfer */
}

static void test_without_memory_or_frames_nothing_is_kept(void) {
    begin(0);
    wait_for(9, 200 * MS, 30 * MS, 0, 30 * MS, SENDER_NETWORK);
    CHECK(!accounting.steady && !find());
    stream->accounting = NULL;
    CHECK(!find());
    begin(1 << 20);
    wait_for(1, 200 * MS, 30 * MS, 0, 30 * MS, SENDER_NETWORK); /* no data before it */
    wait_for(0, 300 * MS, 40 * MS, 0, 40 * MS, SENDER_NETWORK); /* a frame above 32 bits */
    CHECK_INT(accounting.steady->longest[WAIT_IDLE].last_frame, 0);
}

int main(void) {
    test_the_longest_stays_and_runs_add_up();
    test_small_shares_are_not_cited();
    test_without_memory_or_frames_nothing_is_kept();
    end();
    return 0;
}
