/* SPDX-License-Identifier: Apache-2.0 */
/* A step of the clock is seen once, with its size; a clock that runs is none. A greatest error is
 * believed only of programs that state one. */
#include <string.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "watch/clock_watch.h"

static void test_steps(void) {
    struct clock_watch watch = {.distance_ns = 1000 * NS_PER_S};
    CHECK_INT(clock_watch_step(&watch, 1000 * NS_PER_S + 300000), 0);
    CHECK_INT(clock_watch_step(&watch, 1000 * NS_PER_S - 300000), 0);
    CHECK_INT(clock_watch_step(&watch, 990 * NS_PER_S), -10 * NS_PER_S);
    CHECK_INT(clock_watch_step(&watch, 990 * NS_PER_S), 0);
    CHECK_INT(clock_watch_step(&watch, 990 * NS_PER_S + 2 * NS_PER_MS), 2 * NS_PER_MS);
    watch.distance_ns = clock_watch_distance();
    for (int i = 0; i < 100000; i++)
        CHECK_INT(clock_watch_step(&watch, clock_watch_distance()), 0);
}

static void test_states(void) {
    static const struct {
        struct timex times;
        int answer;
        bool is_known, is_synchronized;
        int64_t error_ns, offset_ns;
    } cases[] = {
        {{.status = STA_PLL, .maxerror = 1500, .esterror = 20, .offset = 7},
         0,
         true,
         true,
         1500000,
         7000}, /* chrony, ntpd */
        {{.status = STA_PLL | STA_NANO, .maxerror = 64, .esterror = 0, .offset = -9},
         0,
         true,
         true,
         -1,
         -9},                                                            /* systemd-timesyncd */
        {{.maxerror = 500, .esterror = 16000000}, 0, true, true, -1, 0}, /* phc2sys */
        {{.status = STA_UNSYNC, .maxerror = 16000000, .esterror = 20},
         TIME_ERROR,
         true,
         false,
         -1,
         0},
        {{.status = 0}, -1, false, false, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clock_state state = clock_state_of(&cases[i].times, cases[i].answer);
        CHECK_INT(state.is_known, cases[i].is_known);
        CHECK_INT(state.is_synchronized, cases[i].is_synchronized);
        CHECK_INT(state.error_ns, cases[i].error_ns);
        CHECK_INT(state.offset_ns, cases[i].offset_ns);
    }
}

/* The file has the worst of its time, not the state at its end. */
static void test_worst(void) {
    struct notes notes;
    char text[128];
    notes_open(&notes);
    notes_begin_clock(&notes, text, sizeof text);
    CHECK(!*text);
    notes_set_clock(&notes, &(struct clock_state){true, true, 2000, 5});
    notes_begin_clock(&notes, text, sizeof text);
    CHECK(!strcmp(text, "wiretale.clock/1 synchronized=yes error_ns=2000 offset_ns=5"));
    notes_set_clock(&notes, &(struct clock_state){true, false, -1, 6});
    notes_set_clock(&notes, &(struct clock_state){true, true, 1000, 7});
    notes_worst_clock(&notes, text, sizeof text);
    CHECK(!strcmp(text, "wiretale.clock/1 synchronized=no offset_ns=7"));
    notes_begin_clock(&notes, text, sizeof text);
    CHECK(!strcmp(text, "wiretale.clock/1 synchronized=yes error_ns=1000 offset_ns=7"));
}

int main(void) {
    test_steps();
    test_states();
    test_worst();
    return 0;
}
