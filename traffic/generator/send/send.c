/* SPDX-License-Identifier: Apache-2.0 */
/* `wiretale-traffic send`: finds the receiver, asks it for a test, runs it, reports. */
#include "send/send.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/handshake.h"
#include "control/key.h"
#include "exit_codes.h"
#include "report/report.h"
#include "report/totals.h"
#include "send/send_options.h"
#include "session/exchange.h"
#include "session/exchange_lines.h"
#include "session/interruption.h"
#include "stream/stream.h"
#include "transfer/program_name.h"

#define ANSWER_NS (10 * NS_PER_S)
#define RETRY_NS  (200 * NS_PER_MS)

enum outcome { OUTCOME_READY, OUTCOME_AGAIN, OUTCOME_NEVER };

struct sender {
    struct send_options options;
    struct key key;
    struct test test;
    char why[WHY_ROOM]; /* of the last attempt that failed */
};

static int fail(const char *why, int code) {
    program_say("%s", why);
    return code;
}

static void set_default_size(struct test_plan *plan, bool ipv6) {
    if (!plan->sizes_text[0])
        strcpy(plan->sizes_text, plan->protocol == PROTOCOL_TCP ? "131072"
                                 : ipv6                         ? "1452"
                                                                : "1472");
}

/* Everything that can be known to be wrong before anybody is asked. */
static int prepare(struct sender *sender) {
    struct send_options *options = &sender->options;
    struct test *test = &sender->test;
    char why[WHY_ROOM];
    if (options->key && !key_read(&sender->key, options->key))
        return EXIT_CODE_INPUT;
    if (endpoint_find(&test->peer, options->host, (uint16_t)options->port, options->local.family,
                      false, why))
        return fail(why, EXIT_CODE_INPUT);
    bool ipv6 = test->peer.address.sa_family == AF_INET6;
    test->plan = options->plan;
    test->local = options->local;
    test->asks = true;
    set_default_size(&test->plan, ipv6);
    const char *wrong = test_plan_complete(&test->plan, ipv6);
    if (wrong) {
        program_say("--size %s: %s", test->plan.sizes_text, wrong);
        return EXIT_CODE_USAGE;
    }
    while (!test->plan.run)
        test->plan.run = randombytes_random();
    if (options->file && !content_open(&test->content, options->file, why, sizeof why))
        return fail(why, EXIT_CODE_INPUT);
    if (options->file)
        strcpy(test->plan.file_name, test->content.name);
    return test_begin(test) ? 0 : fail("out of memory", EXIT_CODE_TOOL);
}

static enum outcome never(struct sender *sender, const char *why) {
    snprintf(sender->why, sizeof sender->why, "%s", why);
    return OUTCOME_NEVER;
}

/* The next line, or what its absence means. */
static enum outcome hear(struct sender *sender, char line[LINE_MOST]) {
    struct refusal refusal;
    enum control_answer answer =
        control_wait(&sender->test.control, line, monotonic_ns() + ANSWER_NS);
    if (answer == CONTROL_GARBAGE)
        return never(sender, "what answers there is no wiretale receiver");
    if (answer != CONTROL_LINE) {
        snprintf(sender->why, sizeof sender->why,
                 answer == CONTROL_GONE ? "the receiver closed the connection"
                                        : "the receiver does not answer");
        return OUTCOME_AGAIN;
    }
    if (!refusal_read(&refusal, line)) {
        snprintf(sender->why, sizeof sender->why, "refused: %s", refusal.text);
        return refusal.is_busy ? OUTCOME_AGAIN : OUTCOME_NEVER;
    }
    return OUTCOME_READY;
}

static enum outcome prove_key(struct sender *sender, const struct hello *mine,
                              const struct hello *theirs) {
    char line[LINE_MOST];
    struct proof proof, expected;
    key_prove(&sender->key, KEY_OF_SENDER, mine->nonce, theirs->nonce, proof.proof);
    key_prove(&sender->key, KEY_OF_RECEIVER, mine->nonce, theirs->nonce, expected.proof);
    proof_write(&proof, line);
    control_say(&sender->test.control, "%s", line);
    enum outcome outcome = hear(sender, line);
    if (outcome != OUTCOME_READY)
        return outcome;
    if (proof_read(&proof, line) || !key_is_proof(proof.proof, expected.proof))
        return never(sender, "the receiver has another key");
    return OUTCOME_READY;
}

static enum outcome greet(struct sender *sender) {
    char line[LINE_MOST];
    struct hello mine = {.wants_key = sender->options.key != NULL}, theirs;
    key_make_nonce(mine.nonce);
    hello_write(&mine, line);
    control_say(&sender->test.control, "%s", line);
    enum outcome outcome = hear(sender, line);
    if (outcome != OUTCOME_READY)
        return outcome;
    if (hello_read(&theirs, line))
        return never(sender, "what answers there is no wiretale receiver");
    if (theirs.wants_key && !sender->options.key)
        return never(sender, "the receiver has a key: expected --key FILE");
    if (!theirs.wants_key && sender->options.key)
        return never(sender, "the receiver has no key: expected no --key here, or a --key there");
    return theirs.wants_key ? prove_key(sender, &mine, &theirs) : OUTCOME_READY;
}

static enum outcome ask(struct sender *sender) {
    char line[LINE_MOST];
    test_plan_to_line(&sender->test.plan, line, sizeof line);
    control_say(&sender->test.control, "%s", line);
    for (;;) {
        enum outcome outcome = hear(sender, line);
        if (outcome != OUTCOME_READY || line_is(line, "ready"))
            return outcome;
        const char *why =
            line_is(line, "port") ? exchange_take_line(&sender->test, line) : "no answer to a test";
        if (why)
            return never(sender, why);
    }
}

static bool connect_control(struct sender *sender) {
    struct test *test = &sender->test;
    int one = 1;
    socklen_t size = sizeof test->own;
    int fd = endpoint_connect(&test->peer, &sender->options.local, NULL, sender->options.connect_ns,
                              sender->why);
    if (fd < 0)
        return false;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    control_begin(&test->control, fd);
    getsockname(fd, &test->own.address, &size);
    return true;
}

static enum outcome attempt(struct sender *sender) {
    if (!connect_control(sender))
        return OUTCOME_AGAIN;
    enum outcome outcome = greet(sender);
    if (outcome == OUTCOME_READY)
        outcome = ask(sender);
    if (outcome != OUTCOME_READY) {
        close(sender->test.control.fd);
        sender->test.control.fd = -1;
    }
    return outcome;
}

static enum outcome attempt_until(struct sender *sender) {
    uint64_t deadline = monotonic_ns() + sender->options.wait_ns;
    enum outcome outcome = attempt(sender);
    while (outcome == OUTCOME_AGAIN && !exchange_interrupted && monotonic_ns() < deadline) {
        struct timespec pause = to_timespec(RETRY_NS);
        nanosleep(&pause, NULL);
        outcome = attempt(sender);
    }
    return outcome;
}

/* UDP sockets: those that receive are told, those that send know where to. */
static bool open_sockets(struct sender *sender) {
    struct test *test = &sender->test;
    struct way *forward = &test->ways[WAY_FORWARD], *reverse = &test->ways[WAY_REVERSE];
    int ports[STREAMS_MOST];
    for (uint32_t i = 0; test_is_udp(test) && i < reverse->count; i++)
        if ((ports[i] = stream_bind(&reverse->streams[i], sender->why)) < 0)
            return false;
    for (uint32_t i = 0; test_is_udp(test) && i < forward->count; i++)
        if (stream_aim(&forward->streams[i], sender->why))
            return false;
    return (!test_is_udp(test) || exchange_say_ports(test, reverse, ports)) &&
           control_say(&test->control, "start");
}

static void show_interval(struct test *test, uint64_t from_ns, uint64_t to_ns, void *context) {
    report_interval(test, from_ns, to_ns, context);
}

static int interrupted_code(void) {
    return exchange_interrupted == SIGTERM ? EXIT_CODE_TERMINATED : EXIT_CODE_INTERRUPTED;
}

static int run(struct sender *sender) {
    struct test *test = &sender->test;
    const struct send_options *options = &sender->options;
    struct report_style style = {.role = "send",
                                 .host = options->host,
                                 .json = options->json,
                                 .quiet = options->quiet,
                                 .format = options->format,
                                 .out = stdout};
    struct exchange_view view = {options->interval_ns, show_interval, &style};
    struct exchange_limits limits = {0};
    if (!open_sockets(sender))
        return fail(sender->why, EXIT_CODE_TOOL);
    exchange_run(test, &limits, &view);
    bool is_told = report_test(test, &style);
    if (test->trouble[0])
        program_say("%s", test->trouble);
    if (!is_told)
        return EXIT_CODE_INPUT;
    if (exchange_interrupted)
        return interrupted_code();
    return test_is_complete(test) ? 0 : EXIT_CODE_CUT_SHORT;
}

int send_main(int argc, char **argv) {
    static struct sender sender;
    sender.test.wake = sender.test.control.fd = -1;
    int code = send_options_read(&sender.options, argc, argv);
    if (code)
        return code - 1;
    interruption_watch();
    code = prepare(&sender);
    if (code)
        return code;
    if (attempt_until(&sender) == OUTCOME_READY) {
        code = run(&sender);
        close(sender.test.control.fd);
    } else if (exchange_interrupted) {
        code = interrupted_code();
    } else {
        program_say("%s port %llu: %s", sender.options.host,
                    (unsigned long long)sender.options.port, sender.why);
        code = EXIT_CODE_INPUT;
    }
    test_end(&sender.test);
    return code;
}
