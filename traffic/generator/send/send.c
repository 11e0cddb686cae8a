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

#define NOT_A_RECEIVER "the program at that port is not a wiretale receiver"

enum outcome { OUTCOME_READY, OUTCOME_AGAIN, OUTCOME_NEVER };

struct sender {
    struct send_options options;
    struct key key;
    struct transfer transfer;
    char error[ERROR_SIZE]; /* of the last attempt that failed */
};

static int fail(const char *error, int code) {
    program_say("%s", error);
    return code;
}

static void set_default_size(struct transfer_plan *plan, bool ipv6) {
    if (!plan->sizes_text[0])
        strcpy(plan->sizes_text, plan->protocol == PROTOCOL_TCP ? "131072"
                                 : ipv6                         ? "1452"
                                                                : "1472");
}

/* Everything that can be known to be wrong before anybody is asked. */
static int prepare(struct sender *sender) {
    struct send_options *options = &sender->options;
    struct transfer *transfer = &sender->transfer;
    char error[ERROR_SIZE];
    if (options->key && !key_read(&sender->key, options->key))
        return EXIT_CODE_INPUT;
    if (endpoint_find(&transfer->peer, options->host, (uint16_t)options->port,
                      options->local.family, false, error))
        return fail(error, EXIT_CODE_INPUT);
    bool ipv6 = transfer->peer.address.sa_family == AF_INET6;
    transfer->plan = options->plan;
    transfer->local = options->local;
    transfer->is_initiator = true;
    set_default_size(&transfer->plan, ipv6);
    const char *wrong = transfer_plan_complete(&transfer->plan, ipv6);
    if (wrong) {
        program_say("--size %s: %s", transfer->plan.sizes_text, wrong);
        return EXIT_CODE_USAGE;
    }
    while (!transfer->plan.run)
        transfer->plan.run = randombytes_random();
    if (options->file && !content_open(&transfer->content, options->file, error, sizeof error))
        return fail(error, EXIT_CODE_INPUT);
    if (options->file)
        strcpy(transfer->plan.file_name, transfer->content.name);
    return transfer_begin(transfer) ? 0 : fail("out of memory", EXIT_CODE_TOOL);
}

static enum outcome fail_for_good(struct sender *sender, const char *error) {
    snprintf(sender->error, sizeof sender->error, "%s", error);
    return OUTCOME_NEVER;
}

/* Reads the next line. A refusal or its absence decides whether to try again (--wait). */
static enum outcome read_answer(struct sender *sender, char line[LINE_SIZE]) {
    struct handshake refusal;
    enum control_result result =
        control_wait(&sender->transfer.control, line, monotonic_ns() + ANSWER_NS);
    if (result == CONTROL_INVALID)
        return fail_for_good(sender, NOT_A_RECEIVER);
    if (result != CONTROL_LINE) {
        snprintf(sender->error, sizeof sender->error,
                 result == CONTROL_CLOSED ? "the receiver closed the connection"
                                          : "the receiver does not answer");
        return OUTCOME_AGAIN;
    }
    if (!handshake_read(&refusal, HANDSHAKE_REFUSAL, line)) {
        snprintf(sender->error, sizeof sender->error, "refused: %s", refusal.text);
        return refusal.is_busy ? OUTCOME_AGAIN : OUTCOME_NEVER;
    }
    return OUTCOME_READY;
}

static enum outcome prove_key(struct sender *sender, const char *own_nonce,
                              const char *peer_nonce) {
    char line[LINE_SIZE], expected[NONCE_HEX_SIZE];
    struct handshake proof;
    key_prove(&sender->key, KEY_OF_SENDER, own_nonce, peer_nonce, proof.proof);
    key_prove(&sender->key, KEY_OF_RECEIVER, own_nonce, peer_nonce, expected);
    handshake_send(&sender->transfer.control, HANDSHAKE_PROOF, &proof);
    enum outcome outcome = read_answer(sender, line);
    if (outcome == OUTCOME_READY && (handshake_read(&proof, HANDSHAKE_PROOF, line) ||
                                     !key_proof_matches(proof.proof, expected)))
        return fail_for_good(sender, "the receiver has another key");
    return outcome;
}

static enum outcome greet(struct sender *sender) {
    char line[LINE_SIZE];
    bool has_key = sender->options.key != NULL;
    struct handshake own = {.has_key = has_key}, peer;
    key_make_nonce(own.nonce);
    handshake_send(&sender->transfer.control, HANDSHAKE_HELLO, &own);
    enum outcome outcome = read_answer(sender, line);
    if (outcome != OUTCOME_READY)
        return outcome;
    if (handshake_read(&peer, HANDSHAKE_HELLO, line))
        return fail_for_good(sender, NOT_A_RECEIVER);
    if (peer.has_key && !has_key)
        return fail_for_good(sender, "the receiver has a key: expected --key FILE");
    if (!peer.has_key && has_key)
        return fail_for_good(sender,
                             "the receiver has no key: expected no --key, or a --key at both ends");
    return has_key ? prove_key(sender, own.nonce, peer.nonce) : OUTCOME_READY;
}

static enum outcome ask(struct sender *sender) {
    char line[LINE_SIZE];
    transfer_plan_to_line(&sender->transfer.plan, line, sizeof line);
    control_send(&sender->transfer.control, "%s", line);
    for (;;) {
        enum outcome outcome = read_answer(sender, line);
        if (outcome != OUTCOME_READY || line_is(line, "ready"))
            return outcome;
        const char *error = line_is(line, "port") ? exchange_take_line(&sender->transfer, line)
                                                  : "no answer to a test";
        if (error)
            return fail_for_good(sender, error);
    }
}

static bool connect_control(struct sender *sender) {
    struct transfer *transfer = &sender->transfer;
    int one = 1;
    socklen_t size = sizeof transfer->own;
    int fd = endpoint_connect(&transfer->peer, &sender->options.local, NULL,
                              sender->options.connect_ns, sender->error);
    if (fd < 0)
        return false;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    control_begin(&transfer->control, fd);
    getsockname(fd, &transfer->own.address, &size);
    return true;
}

static enum outcome attempt(struct sender *sender) {
    if (!connect_control(sender))
        return OUTCOME_AGAIN;
    enum outcome outcome = greet(sender);
    if (outcome == OUTCOME_READY)
        outcome = ask(sender);
    if (outcome != OUTCOME_READY) {
        close(sender->transfer.control.fd);
        sender->transfer.control.fd = -1;
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
    struct transfer *transfer = &sender->transfer;
    struct direction *forward = &transfer->directions[DIRECTION_FORWARD],
                     *reverse = &transfer->directions[DIRECTION_REVERSE];
    int ports[MAX_STREAMS];
    for (uint32_t i = 0; transfer_is_udp(transfer) && i < reverse->count; i++)
        if ((ports[i] = stream_bind_udp(&reverse->streams[i], sender->error)) < 0)
            return false;
    for (uint32_t i = 0; transfer_is_udp(transfer) && i < forward->count; i++)
        if (stream_connect_udp(&forward->streams[i], sender->error))
            return false;
    return (!transfer_is_udp(transfer) || exchange_send_ports(transfer, reverse, ports)) &&
           control_send(&transfer->control, "start");
}

static void show_interval(struct transfer *transfer, uint64_t from_ns, uint64_t to_ns,
                          void *context) {
    report_interval(transfer, from_ns, to_ns, context);
}

static int interrupted_code(void) {
    return exchange_interrupted == SIGTERM ? EXIT_CODE_TERMINATED : EXIT_CODE_INTERRUPTED;
}

static int run(struct sender *sender) {
    struct transfer *transfer = &sender->transfer;
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
        return fail(sender->error, EXIT_CODE_TOOL);
    exchange_run(transfer, &limits, &view);
    bool written = report_transfer(transfer, &style);
    if (transfer->error_text[0])
        program_say("%s", transfer->error_text);
    if (!written)
        return EXIT_CODE_INPUT;
    if (exchange_interrupted)
        return interrupted_code();
    return transfer_is_complete(transfer) ? 0 : EXIT_CODE_CUT_SHORT;
}

int send_main(int argc, char **argv) {
    static struct sender sender;
    sender.transfer.wake = sender.transfer.control.fd = -1;
    int code = send_options_read(&sender.options, argc, argv);
    if (code)
        return code - 1;
    interruption_watch();
    code = prepare(&sender);
    if (code)
        return code;
    if (attempt_until(&sender) == OUTCOME_READY) {
        code = run(&sender);
        close(sender.transfer.control.fd);
    } else if (exchange_interrupted) {
        code = interrupted_code();
    } else {
        program_say("%s port %llu: %s", sender.options.host,
                    (unsigned long long)sender.options.port, sender.error);
        code = EXIT_CODE_INPUT;
    }
    transfer_end(&sender.transfer);
    return code;
}
