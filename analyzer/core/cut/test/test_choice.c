/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, ranges and spans of time at their ends, and times whose span exceeds 64 bits. */
#include "common/test/check.h"
#include "cut/choice.h"

static bool takes(const struct choice *choice, size_t file, uint64_t frame, int64_t time_ns) {
    struct packet packet = {.frame = frame, .time_ns = time_ns};
    return choice_has(choice, file, &packet);
}

static void check_frames(void) {
    static const struct frame_range ranges[] = {{0, 3, 5}, {0, 9, UINT64_MAX}, {1, 1, 1}};
    struct choice choice;
    CHECK(choice_open(&choice, 2));
    choice.ranges = ranges;
    choice.range_count = sizeof ranges / sizeof *ranges;
    CHECK(choice_add_frame(&choice, 0, 7) && choice_add_frame(&choice, 1, 1000));
    CHECK(choice_add_frame(&choice, 2, 1) && choice_add_frame(&choice, 0, UINT64_MAX));
    for (uint64_t frame = 1; frame < 12; frame++)
        CHECK_INT(takes(&choice, 0, frame, 0),
                  (frame >= 3 && frame <= 5) || frame == 7 || frame >= 9);
    CHECK(takes(&choice, 1, 1, 0) && takes(&choice, 1, 1000, 0) && !takes(&choice, 1, 1001, 0));
    CHECK(!takes(&choice, 1, 2, 0) && !takes(&choice, 2, 1, 0));
    choice.start_ns = 10, choice.end_ns = 20;
    CHECK(takes(&choice, 0, 3, 10) && takes(&choice, 0, 3, 19) && !takes(&choice, 0, 3, 20));
    CHECK(!takes(&choice, 0, 3, 9) && !takes(&choice, 0, 3, TIME_UNKNOWN));
    choice_close(&choice);
}

static void check_spans(void) {
    static const int64_t times[] = {100, 105, 300, 90, 200, 301};
    struct choice choice;
    CHECK(choice_open(&choice, 1));
    choice.around_ns = 10;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        CHECK(choice_note_time(&choice, times[i]));
    choice_sort_spans(&choice);
    CHECK_INT(choice.span_count, 3);
    CHECK(choice_near(&choice, 80) && choice_near(&choice, 115) && !choice_near(&choice, 116));
    CHECK(!choice_near(&choice, 79) && choice_near(&choice, 190) && choice_near(&choice, 210));
    CHECK(!choice_near(&choice, 211) && choice_near(&choice, 311) && !choice_near(&choice, 312));
    choice_close(&choice);
}

/* The last time of 64 bits has packets before it, and none after. */
static void check_last_time(void) {
    struct choice choice;
    CHECK(choice_open(&choice, 1));
    choice.around_ns = 10;
    CHECK(choice_note_time(&choice, INT64_MAX - 1) && choice_note_time(&choice, 3));
    choice_sort_spans(&choice);
    CHECK_INT(choice.span_count, 2);
    CHECK(choice_near(&choice, INT64_MAX) && choice_near(&choice, INT64_MAX - 11));
    CHECK(!choice_near(&choice, INT64_MAX - 12) && choice_near(&choice, 0));
    CHECK(choice_near(&choice, 13) && !choice_near(&choice, 14));
    choice_close(&choice);
}

int main(void) {
    check_frames();
    check_spans();
    check_last_time();
    return 0;
}
