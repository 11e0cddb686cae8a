/* SPDX-License-Identifier: Apache-2.0 */
/* Input from the control connection is not trusted: a plan survives the way to a line and back, and
 * a damaged line yields a plan within its bounds or one reason. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/test/check.h"
#include "control/control.h"
#include "control/handshake.h"
#include "session/exchange_lines.h"

static struct transfer_plan some_plan(void) {
    struct transfer_plan plan = {.run = 4000000000,
                                 .protocol = PROTOCOL_UDP,
                                 .direction = DIRECTION_BOTH,
                                 .streams = 3,
                                 .count = 77,
                                 .time_ns = 5,
                                 .pacing = PACING_BURST,
                                 .rate_bps = 1.9e6,
                                 .burst = 9,
                                 .idle_ns = 1000000000,
                                 .unchecked = 1,
                                 .stop_receiver = 1,
                                 .start_offset_ns = 7,
                                 .stagger_ns = 8};
    strcpy(plan.sizes_text, "64-100:4,1472");
    strcpy(plan.file_name, "a file of 100% \xc3\xa4\n.bin");
    plan.socket = (struct socket_plan){.dscp_plus_1 = 47,
                                       .ttl = 9,
                                       .path_mtu = PATH_MTU_DO,
                                       .buffer = 65536,
                                       .no_delay = 1,
                                       .mss = 1000,
                                       .fq_rate_bps = 2.5e6,
                                       .congestion = "cubic"};
    return plan;
}

static void test_there_and_back(void) {
    struct transfer_plan plan = some_plan(), back;
    char line[LINE_SIZE];
    transfer_plan_to_line(&plan, line);
    CHECK(!transfer_plan_from_line(&back, line));
    CHECK(!memcmp(&plan, &back, sizeof plan));
}

static void test_wrong_fields(void) {
    static const char *const wrong[] = {
        "test run",
        "test run=",
        "test run=x",
        "test run=4294967296",
        "test run=-1",
        "test walk=1",
        "test protocol=sctp",
        "test rate_bps=inf",
        "test rate_bps=-1",
        "test rate_bps=nan",
        "test rate_bps=1e300",
        "test rate_bps=0x10",
        "test file_name=%",
        "test file_name=%4",
        "test file_name=%00",
        "test file_name=a/b%zz",
        "test congestion=0123456789abcdef",
        "test run=99999999999999999999",
        "test  run=1",
    };
    struct transfer_plan plan;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!transfer_plan_from_line(&plan, wrong[i])) {
            fprintf(stderr, "taken: %s\n", wrong[i]);
            exit(1);
        }
}

/* Reads a damaged line in each place where a transfer reads lines. */
static void take_anywhere(struct transfer *transfer, const char *line) {
    struct transfer_plan plan;
    struct handshake handshake;
    if (!transfer_plan_from_line(&plan, line)) {
        CHECK(plan.streams <= MAX_STREAMS && plan.protocol <= PROTOCOL_UDP &&
              plan.pacing <= PACING_PATTERN);
        CHECK(plan.rate_bps >= 0 && plan.rate_bps < 1e15);
        if (!transfer_plan_complete(&plan, false))
            CHECK(plan.size_count && plan.min_size >= 32);
        transfer_plan_free(&plan);
    }
    for (int kind = HANDSHAKE_HELLO; kind <= HANDSHAKE_REFUSAL; kind++)
        handshake_read(&handshake, (enum handshake_kind)kind, line);
    exchange_take_line(transfer, line);
}

static void damage(char *line, size_t length) {
    for (int i = rand() % 5; i > 0; i--) {
        size_t at = (size_t)rand() % length;
        switch (rand() % 4) {
        case 0: line[at] = (char)(1 + rand() % 255); break;
        case 1: line[at] = "0123456789=% -."[rand() % 15]; break;
        case 2: line[at] = 0; return;
        default: memmove(line + at, line + at + 1, length - at); break;
        }
    }
}

static void test_damaged_lines(void) {
    struct transfer_plan plan = some_plan();
    char first[LINE_SIZE], line[LINE_SIZE];
    struct transfer transfer = {.plan = plan, .is_initiator = true};
    const char *lines[] = {
        first,
        "sent way=reverse stream=2 blocks_sent=10 bytes_sent=1000 errors=EPERM:1,ENOBUFS:3",
        "received way=forward stream=1 blocks_received=9 missing=1 jitter_ns_plus_1=5",
        "stop reason=idle text=x",
        "end way=reverse checksum=00ff",
        "done way=forward",
        "port way=forward stream=0 port=4000",
        "lines list=64:1000,1200:20000000",
        "progress",
        "clock sent_ns=5 received_ns=4611686018427387904 replied_ns=7 host=abab",
        "offset ahead_ns=2305843009213693952 error_ns=9 is_known=1 is_same=0",
        "wiretale/1 nonce=abab key=1",
        "proof proof=1234",
        "refused busy=1 text=no",
    };
    transfer_plan_to_line(&plan, first);
    CHECK(transfer_begin(&transfer));
    srand(11);
    for (int i = 0; i < 200000; i++) {
        snprintf(line, sizeof line, "%s", lines[(size_t)rand() % (sizeof lines / sizeof *lines)]);
        damage(line, strlen(line));
        take_anywhere(&transfer, line);
    }
    for (int i = 0; i < 50000; i++) { /* random bytes */
        size_t length = (size_t)rand() % 200;
        for (size_t at = 0; at < length; at++)
            line[at] = (char)(1 + rand() % 255);
        line[length] = 0;
        take_anywhere(&transfer, line);
    }
    transfer_end(&transfer);
}

/* Lines may arrive in pieces; a line that is too long or not printable ASCII is invalid. */
static void test_lines_come_in_pieces(void) {
    int pair[2];
    struct control control;
    char line[LINE_SIZE], much[LINE_SIZE];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    control_begin(&control, pair[0]);
    CHECK_INT(control_read(&control, line), CONTROL_INCOMPLETE);
    CHECK_INT(write(pair[1], "on", 2), 2);
    CHECK_INT(control_read(&control, line), CONTROL_INCOMPLETE);
    CHECK_INT(write(pair[1], "e\ntwo\nthr", 9), 9);
    CHECK_INT(control_read(&control, line), CONTROL_LINE);
    CHECK(!strcmp(line, "one"));
    CHECK_INT(control_read(&control, line), CONTROL_LINE);
    CHECK(!strcmp(line, "two"));
    CHECK_INT(control_read(&control, line), CONTROL_INCOMPLETE);
    CHECK_INT(write(pair[1], "ee\001\n", 4), 4);
    CHECK_INT(control_read(&control, line), CONTROL_INVALID);
    memset(much, 'x', sizeof much);
    CHECK_INT(write(pair[1], much, sizeof much), sizeof much);
    CHECK_INT(control_read(&control, line), CONTROL_INVALID);
    close(pair[1]);
    control_begin(&control, pair[0]);
    CHECK_INT(control_read(&control, line), CONTROL_CLOSED);
    close(pair[0]);
}

int main(void) {
    test_there_and_back();
    test_wrong_fields();
    test_damaged_lines();
    test_lines_come_in_pieces();
    return 0;
}
