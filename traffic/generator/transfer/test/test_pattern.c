/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: their lines and bounds, each kind of wrong line, and blocks in turn or drawn. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/test/check.h"
#include "transfer/transfer_plan.h"

static char error[256];

static uint64_t turns; /* flag: of the plans that are read */

/* Reads a text as the file of --pattern, or of --turns. */
static bool read_bytes(struct transfer_plan *plan, const char *text, size_t count) {
    char path[] = "/tmp/wiretale-pattern-XXXXXX";
    int fd = mkstemp(path);
    *plan = (struct transfer_plan){.streams = 1, .run = 7, .turns = turns};
    plan->protocol = turns ? PROTOCOL_TCP : PROTOCOL_UDP;
    CHECK(fd >= 0 && write(fd, text, count) == (ssize_t)count);
    close(fd);
    bool is_pattern = transfer_plan_read_pattern(plan, path, error, sizeof error);
    unlink(path);
    return is_pattern;
}

static bool read_text(struct transfer_plan *plan, const char *text) {
    return read_bytes(plan, text, strlen(text));
}

static void test_lines(void) {
    struct transfer_plan plan;
    CHECK(read_text(&plan, "# two sizes\n\n100 1000\n\t65507 \t 3000 \r\n32 0"));
    CHECK_INT(plan.line_count, 3);
    CHECK_INT(plan.count, 3);
    CHECK_INT(plan.longest_gap_ns, 3000);
    CHECK(!strcmp(plan.sizes_text, "32,65507"));
    CHECK(plan.pacing == PACING_PATTERN && plan.rate_pps == 3e9 / 4000);
    CHECK(!transfer_plan_complete(&plan, false));
    CHECK_INT(plan.max_size, 65507);
    for (unsigned i = 0; i < 9; i++)
        CHECK_INT(transfer_plan_size(&plan, i), i % 3 == 0 ? 100 : i % 3 == 1 ? 65507 : 32);
    transfer_plan_free(&plan);
    CHECK(read_text(&plan, "64 0\n64 0"));
    CHECK(plan.pacing == PACING_NONE && plan.rate_pps <= 0 && !strcmp(plan.sizes_text, "64"));
    transfer_plan_free(&plan);
    CHECK(read_text(&plan, "65508 5"));
    CHECK(strstr(transfer_plan_complete(&plan, false), "65507 bytes")); /* IPv6 carries more */
    transfer_plan_free(&plan);
}

static void check_wrong(const char *text, const char *says) {
    struct transfer_plan plan;
    CHECK(!read_text(&plan, text));
    CHECK(strstr(error, says));
    CHECK(!plan.lines);
}

static void test_wrong_lines(void) {
    char many[200];
    check_wrong("", "at least one line");
    check_wrong("# 64 5\n", "at least one line");
    check_wrong("64 5\n31 5\n", "line 2, \"31 5\": expected a size of 32");
    check_wrong("65528 5", "expected a size");
    check_wrong("18446744073709551648 5", "expected a size"); /* 2^64 + 32 */
    check_wrong("64", "expected a gap");
    check_wrong("64 ", "expected a gap");
    check_wrong("64 -5", "expected a gap");
    check_wrong("64 86400000000001", "expected a gap");
    check_wrong("64 5 6", "expected SIZE and GAP");
    check_wrong("64 5x", "expected SIZE and GAP");
    check_wrong("64,5", "expected a gap");
    check_wrong("+64 5", "expected a size");
    check_wrong("\x1b[31m 5", "line 1, \"\"");
    memset(many, '1', sizeof many);
    many[sizeof many - 1] = 0;
    check_wrong(many, "98 characters");
    memset(many, ' ', sizeof many - 1);
    check_wrong(many, "98 characters");
}

/* Any bytes are a pattern or one error. */
static void test_hostile_bytes(void) {
    static const char alphabet[] = "0123456789 \t\r\n#-x\0\xff";
    uint64_t random = 1;
    for (unsigned round = 0; round < 5000; round++) {
        struct transfer_plan plan;
        char text[300];
        size_t count = round % sizeof text;
        for (size_t i = 0; i < count; i++)
            text[i] = alphabet[(random = block_mix(random + i)) % (sizeof alphabet - 1)];
        *error = 0;
        if (read_bytes(&plan, text, count)) {
            CHECK(plan.line_count && plan.count == plan.line_count);
            transfer_plan_free(&plan);
        } else {
            CHECK(*error && !strchr(error, '\n') && !plan.lines);
        }
    }
}

/* The most lines that a pattern may have are taken, one more is an error. */
static void test_bound(void) {
    static char text[5 * (MAX_PATTERN_LINES + 1)];
    struct transfer_plan plan;
    for (size_t i = 0; i < sizeof text; i += 5)
        memcpy(text + i, "64 9\n", 5);
    CHECK(read_bytes(&plan, text, sizeof text - 5));
    CHECK_INT(plan.line_count, MAX_PATTERN_LINES);
    transfer_plan_free(&plan);
    CHECK(!read_bytes(&plan, text, sizeof text));
    CHECK(strstr(error, "line 65537, \"64 9\": expected at most 65536 lines"));
}

/* Drawn lines come equally often, and in the same order if the run is the same. */
static void test_draws(void) {
    struct transfer_plan plan;
    unsigned counts[4] = {0};
    CHECK(read_text(&plan, "100 1\n101 1\n102 1\n103 1\n"));
    plan.draws_lines = 1;
    for (uint64_t i = 0; i < 40000; i++)
        counts[transfer_plan_size(&plan, i) - 100]++;
    for (unsigned i = 0; i < 4; i++)
        CHECK(counts[i] > 9700 && counts[i] < 10300);
    uint64_t same = 0, first = transfer_plan_size(&plan, 5);
    CHECK_INT(transfer_plan_size(&plan, 5), first);
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t size = transfer_plan_size(&plan, i);
        plan.run = 8;
        same += size == transfer_plan_size(&plan, i);
        plan.run = 7;
    }
    CHECK(same < 350);
    transfer_plan_free(&plan);
}

/* A plan as a receiver that is to send gets it: with the bounds, without the lines. */
static struct transfer_plan announced(const struct transfer_plan *plan) {
    struct transfer_plan copy = *plan;
    copy.lines = NULL;
    copy.lines_have = 0;
    return copy;
}

/* All lines cross the connection in pieces; the plan can be run once the last has come. */
static void test_lines_cross(void) {
    struct transfer_plan plan, peer;
    char list[40];
    CHECK(read_text(&plan, "100 1000\n65507 86400000000000\n32 0\n64 7\n"));
    plan.direction = DIRECTION_REVERSE;
    CHECK(!transfer_plan_complete(&plan, false));
    peer = announced(&plan);
    for (uint64_t next = 0; next < plan.line_count;) {
        CHECK(!transfer_plan_has_lines(&peer));
        next = transfer_plan_write_lines(&plan, next, list, sizeof list);
        CHECK(!transfer_plan_take_lines(&peer, list));
    }
    CHECK(transfer_plan_has_lines(&peer));
    for (uint64_t i = 0; i < plan.line_count; i++)
        CHECK(peer.lines[i].size == plan.lines[i].size &&
              peer.lines[i].gap_ns == plan.lines[i].gap_ns);
    CHECK(strstr(transfer_plan_take_lines(&peer, "64:7"), "more lines"));
    free(peer.lines);
    peer = announced(&plan); /* faster than the rate by which the plan was admitted */
    CHECK(!transfer_plan_take_lines(&peer, "100:0,100:0,100:0,100:0"));
    CHECK(!transfer_plan_has_lines(&peer));
    free(peer.lines);
    transfer_plan_free(&plan);
}

static void check_wrong_list(const struct transfer_plan *plan, const char *list, const char *says) {
    struct transfer_plan peer = announced(plan);
    const char *error = transfer_plan_take_lines(&peer, list);
    CHECK(error && strstr(error, says));
    free(peer.lines);
}

/* Nothing in a list may exceed the buffers and times that the plan has announced. */
static void test_wrong_lists(void) {
    static const char *const wrong[] = {"",
                                        "63:5",
                                        "101:5",
                                        "64:8",
                                        "64",
                                        "64:",
                                        ":5",
                                        "64:5,",
                                        "64:5,,",
                                        "64,5",
                                        "-64:5",
                                        "64:5 6",
                                        "64:5,4294967360:5"};
    struct transfer_plan plan, forward;
    CHECK(read_text(&plan, "64 5\n100 7\n"));
    plan.direction = DIRECTION_REVERSE;
    CHECK(!transfer_plan_complete(&plan, false));
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_wrong_list(&plan, wrong[i], strchr(wrong[i], ' ') ? "another" : "outside");
    check_wrong_list(&plan, "64:5,64:5,64:5", "more lines");
    forward = plan;
    forward.direction = DIRECTION_FORWARD;
    check_wrong_list(&forward, "64:5", "does not have");
    CHECK(transfer_plan_has_lines(&forward));
    transfer_plan_free(&plan);
}

/* Any text is taken within the bounds of the plan, or refused. */
static void test_hostile_lists(void) {
    static const char alphabet[] = "0123456789:,66:,7-x";
    struct transfer_plan plan;
    uint64_t random = 3;
    CHECK(read_text(&plan, turns ? "64 5 70 900\n100 7 66 0\n" : "64 5\n100 7\n"));
    plan.direction = turns ? DIRECTION_FORWARD : DIRECTION_REVERSE;
    CHECK(!transfer_plan_complete(&plan, false));
    for (unsigned round = 0; round < 100000; round++) {
        struct transfer_plan peer = announced(&plan);
        char list[40];
        size_t count = round % sizeof list;
        for (size_t i = 0; i < count; i++)
            list[i] = alphabet[(random = block_mix(random + i)) % (sizeof alphabet - 1)];
        list[count] = 0;
        transfer_plan_take_lines(&peer, list);
        CHECK(peer.lines_have <= peer.line_count);
        for (uint64_t i = 0; i < peer.lines_have; i++)
            CHECK(peer.lines[i].size >= 64 && peer.lines[i].size <= 100);
        free(peer.lines);
    }
    transfer_plan_free(&plan);
}

/* Turns have four numbers, of which the receiver gets all. */
static void test_turns(void) {
    struct transfer_plan plan, peer;
    char list[64];
    turns = 1;
    CHECK(read_text(&plan, "100 1000 70000 5000\n32 0 64 0\n"));
    CHECK(plan.pacing == PACING_NONE && !strcmp(plan.sizes_text, "32,70000"));
    CHECK(!transfer_plan_complete(&plan, false));
    CHECK_INT(transfer_plan_bytes(&plan), 2 * 2 * 70000);
    CHECK(plan.lines[0].response == 70000 && plan.lines[0].server_ns == 5000);
    peer = announced(&plan);
    CHECK(!transfer_plan_has_lines(&peer));
    CHECK_INT(transfer_plan_write_lines(&plan, 0, list, sizeof list), 2);
    CHECK(!strcmp(list, "100:1000:70000:5000,32:0:64:0"));
    CHECK(!transfer_plan_take_lines(&peer, list));
    CHECK(transfer_plan_has_lines(&peer) && peer.lines[1].response == 64);
    free(peer.lines);
    check_wrong_list(&plan, "100:1000", "outside");
    check_wrong_list(&plan, "100:1000:70001:5", "outside");
    check_wrong_list(&plan, "100:1000:64:5001", "outside");
    transfer_plan_free(&plan);
    check_wrong("100 5", "expected a response");
    check_wrong("100 5 31 5", "expected a response");
    check_wrong("100 5 64", "expected a server time");
    check_wrong("100 5 64 5 5", "expected REQUEST, GAP, RESPONSE and SERVER");
    check_wrong("1073741825 5 64 5", "expected a request");
    test_hostile_bytes();
    test_hostile_lists();
    turns = 0;
}

int main(void) {
    test_turns();
    test_hostile_lists();
    test_lines_cross();
    test_wrong_lists();
    test_lines();
    test_wrong_lines();
    test_hostile_bytes();
    test_bound();
    test_draws();
    return 0;
}
