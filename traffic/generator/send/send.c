/* SPDX-License-Identifier: Apache-2.0 */
/* The command `send`: connects to the receiver, proves the key, asks for a transfer, runs it and
 * reports. With --wait, an attempt that may succeed later (nothing listens, the receiver is busy)
 * is repeated; a refusal for another reason ends the program.
 *
 * Everything that can be wrong on this host (options, plan, key, address, file) ends the program
 * before it connects. An attempt then runs connect, hello, proof, test, ready; each answer must
 * arrive within ANSWER_NS, so that a program which accepts and stays silent cannot hold the sender.
 * The addresses of a name are tried in order until a receiver answers; data goes to that address.
 * One thread does all of this; exchange_run() starts those of the streams. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "common/clock.h"
#include "common/log.h"
#include "control/handshake.h"
#include "report/report.h"
#include "send/send_options.h"
#include "session/clock_offset.h"
#include "session/exchange_lines.h"

#define ANSWER_NS      (10 * NS_PER_S) /* for each answer of the receiver */
#define RETRY_NS       (200 * NS_PER_MS)
#define NOT_A_RECEIVER "the program at that port is not a wiretale receiver"

enum outcome { OUTCOME_READY, OUTCOME_AGAIN, OUTCOME_NEVER };

struct sender {
    struct send_options options;
    struct key key;
    struct transfer transfer;
    bool has_size; /* the plan's sizes were given */
    union endpoint addresses[MOST_ADDRESSES];
    int address_count;
    bool has_answered;          /* a receiver, at the address of the last attempt */
    char error[ERROR_SIZE];     /* of the last attempt */
    char reasons[REASONS_SIZE]; /* why each address failed, if there are several */
};

/* Completes the plan for an address. Default sizes over UDP fit an MTU of 1500: 1500 - 20 - 8
 * bytes, over IPv6 1500 - 40 - 8. Returns NULL, or the reason why the plan cannot be run. */
static const char *complete_plan(struct sender *sender, const union endpoint *address) {
    struct transfer_plan *plan = &sender->transfer.plan;
    bool ipv6 = address->address.sa_family == AF_INET6;
    if (!sender->has_size)
        strcpy(plan->sizes_text, plan->protocol == PROTOCOL_TCP ? "131072"
                                 : ipv6                         ? "1452"
                                                                : "1472");
    return transfer_plan_complete(plan, ipv6);
}

/* Exits if the plan cannot be run at any address. */
static void check_plan(struct sender *sender) {
    const char *pattern = sender->options.pattern, *wrong = NULL;
    for (int i = sender->address_count; i-- > 0;)
        if (!(wrong = complete_plan(sender, &sender->addresses[i])))
            return;
    fail(EXIT_USAGE, "%s %s: %s", pattern ? pattern : "--size", sender->transfer.plan.sizes_text,
         wrong);
}

/* Checks all that can be checked without the receiver, and exits if something is wrong. A run
 * number of 0 would be absent from the line, so it is drawn again. */
static void prepare(struct sender *sender) {
    const struct send_options *options = &sender->options;
    struct transfer *transfer = &sender->transfer;
    struct transfer_plan *plan = &transfer->plan;
    char error[ERROR_SIZE];
    if (options->key)
        key_read(&sender->key, options->key);
    sender->address_count = endpoint_find(sender->addresses, options->host, (uint16_t)options->port,
                                          (int)options->family, 0, error);
    if (sender->address_count < 0)
        fail(EXIT_IO, "%s", error);
    *plan = options->plan;
    transfer->local = options->local;
    transfer->is_initiator = true;
    if (options->pattern &&
        !transfer_plan_read_pattern(plan, options->pattern, error, sizeof error))
        fail(EXIT_IO, "%s", error);
    sender->has_size = plan->sizes_text[0];
    check_plan(sender);
    while (!plan->run)
        plan->run = randombytes_random();
    if (options->file && !content_open(&transfer->content, options->file, error, sizeof error))
        fail(EXIT_IO, "%s", error);
    if (options->file)
        strcpy(plan->file_name, transfer->content.name);
    if (!transfer_begin(transfer))
        fail(EXIT_MISSING, "out of memory");
}

/* Keeps the reason. A later attempt would fail for the same one, so --wait does not apply. */
static enum outcome fail_for_good(struct sender *sender, const char *error) {
    snprintf(sender->error, sizeof sender->error, "%s", error);
    return OUTCOME_NEVER;
}

/* Reads the next line. A refusal or its absence decides whether to try again (--wait). Silence or a
 * closed connection may pass, because the receiver may be starting or full; a line that is not text
 * cannot come from a receiver. */
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
        sender->has_answered = true;
        snprintf(sender->error, sizeof sender->error, "refused: %s", refusal.text);
        return refusal.is_busy ? OUTCOME_AGAIN : OUTCOME_NEVER;
    }
    return OUTCOME_READY;
}

/* The sender proves first, because the receiver must not give a proof to a stranger. Both proofs
 * cover both nonces, so neither can be replayed on another connection. */
static enum outcome prove_key(struct sender *sender, const char *own_nonce,
                              const char *peer_nonce) {
    char line[LINE_SIZE], expected[NONCE_HEX_SIZE];
    struct handshake proof;
    key_prove(&sender->key, KEY_OF_SENDER, own_nonce, peer_nonce, proof.proof);
    key_prove(&sender->key, KEY_OF_RECEIVER, own_nonce, peer_nonce, expected);
    key_derive(&sender->key, own_nonce, peer_nonce, &sender->transfer.keys);
    handshake_send(&sender->transfer.control, HANDSHAKE_PROOF, &proof);
    enum outcome outcome = read_answer(sender, line);
    if (outcome == OUTCOME_READY && (handshake_read(&proof, HANDSHAKE_PROOF, line) ||
                                     !key_proof_matches(proof.proof, expected)))
        return fail_for_good(sender, "the receiver has another key");
    return outcome;
}

/* Exchanges nonces. Both ends must have a key, or none, because a sender with a key expects the
 * receiver to prove it. */
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
    sender->has_answered = true;
    if (peer.has_key && !has_key)
        return fail_for_good(sender, "the receiver has a key: expected --key FILE");
    if (!peer.has_key && has_key)
        return fail_for_good(sender,
                             "the receiver has no key: expected no --key, or a --key at both ends");
    return has_key ? prove_key(sender, own.nonce, peer.nonce) : OUTCOME_READY;
}

/* Sends the plan. The receiver announces its UDP ports before "ready". Any other line is a protocol
 * error, after which --wait does not try again. */
static enum outcome ask(struct sender *sender) {
    char line[LINE_SIZE];
    transfer_plan_to_line(&sender->transfer.plan, line);
    control_send(&sender->transfer.control, "%s", line);
    for (uint64_t ports = 0;; ports++) {
        enum outcome outcome = read_answer(sender, line);
        if (outcome != OUTCOME_READY || line_is(line, "ready"))
            return outcome;
        const char *error = line_is(line, "port") && ports < sender->transfer.plan.streams
                                ? exchange_take_line(&sender->transfer, line)
                                : "the receiver sent no answer to a test";
        if (error)
            return fail_for_good(sender, error);
    }
}

/* Connects to transfer->peer, greets and asks. Unless the receiver is ready, the connection is
 * closed again. Lines are short and wait for answers, so Nagle's algorithm (RFC 9293 3.7.4) would
 * only delay them. */
static enum outcome attempt(struct sender *sender) {
    struct transfer *transfer = &sender->transfer;
    int one = 1;
    socklen_t size = sizeof transfer->own;
    const char *wrong = complete_plan(sender, &transfer->peer);
    sender->has_answered = false;
    if (wrong)
        return fail_for_good(sender, wrong);
    int fd = endpoint_connect(&transfer->peer, &sender->options.local, NULL,
                              sender->options.connect_ns, sender->error);
    if (fd < 0)
        return OUTCOME_AGAIN;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    control_begin(&transfer->control, fd);
    getsockname(fd, &transfer->own.address, &size);
    enum outcome outcome = greet(sender);
    if (outcome == OUTCOME_READY)
        outcome = ask(sender);
    if (outcome != OUTCOME_READY) {
        close(fd);
        transfer->control.fd = -1;
    }
    return outcome;
}

/* Attempts each address until a receiver answers. If none does, a later attempt may succeed if it
 * may at one of them. */
static enum outcome attempt_addresses(struct sender *sender) {
    enum outcome best = OUTCOME_NEVER;
    sender->reasons[0] = 0;
    for (int i = 0; i < sender->address_count && !exchange_interrupted; i++) {
        sender->transfer.peer = sender->addresses[i];
        enum outcome outcome = attempt(sender);
        if (outcome == OUTCOME_READY || sender->has_answered) {
            sender->reasons[0] = 0;
            return outcome;
        }
        best = outcome == OUTCOME_AGAIN ? outcome : best;
        if (sender->address_count > 1)
            endpoint_add_reason(sender->reasons, &sender->transfer.peer, sender->error);
    }
    return best;
}

/* Tries all addresses at least once, then again every RETRY_NS until --wait is over. A signal ends
 * the loop, not the attempt, whose waits have bounds of their own. */
static enum outcome attempt_until_deadline(struct sender *sender) {
    uint64_t deadline = (uint64_t)monotonic_ns() + sender->options.wait_ns;
    enum outcome outcome = attempt_addresses(sender);
    while (outcome == OUTCOME_AGAIN && !exchange_interrupted &&
           (uint64_t)monotonic_ns() < deadline) {
        struct timespec pause = to_timespec(RETRY_NS);
        nanosleep(&pause, NULL);
        outcome = attempt_addresses(sender);
    }
    return outcome;
}

/* SIGHUP counts as SIGINT. */
static int interrupted_code(void) {
    return exchange_interrupted == SIGTERM ? EXIT_TERMINATED : EXIT_INTERRUPTED;
}

/* UDP ports of the reverse direction must be announced before "start", because the receiver
 * connects its sockets at that line. Returns false if the receiver refused or is gone. */
static bool start(struct sender *sender) {
    struct transfer *transfer = &sender->transfer;
    sender->error[0] = 0; /* of an earlier attempt */
    if (exchange_bind_udp(transfer, DIRECTION_REVERSE, sender->error) &&
        exchange_connect_udp(transfer, DIRECTION_FORWARD, sender->error) &&
        exchange_send_lines(transfer) && clock_measure_begin(transfer) && !transfer->stopped_by &&
        control_send(&transfer->control, "start"))
        return true;
    if (sender->error[0])
        fail(EXIT_MISSING, "%s", sender->error);
    exchange_explain_end(transfer, sender->error);
    return false;
}

/* Runs the transfer. Returns the exit code. The first condition that holds gives it: output failed,
 * interrupted, cut short, done. */
static int run(struct sender *sender) {
    struct transfer *transfer = &sender->transfer;
    const struct exchange_options *options = &sender->options.exchange;
    exchange_run(transfer, options);
    bool written = report_transfer(transfer, &options->style);
    if (transfer->error_text[0])
        log_warning("%s", transfer->error_text);
    if (!written)
        return EXIT_IO;
    if (exchange_interrupted)
        return interrupted_code();
    return transfer_is_complete(transfer) ? EXIT_DONE : EXIT_TRUNCATED;
}

/* transfer_end() closes descriptors that are not negative, so both begin as -1. */
int send_main(int argc, char **argv) {
    static struct sender sender;
    struct send_options *options = &sender.options;
    int code;
    sender.transfer.wake = sender.transfer.control.fd = -1;
    send_options_read(options, argc, argv);
    exchange_watch_signals();
    prepare(&sender);
    if (attempt_until_deadline(&sender) == OUTCOME_READY && start(&sender)) {
        code = run(&sender);
        close(sender.transfer.control.fd);
    } else if (exchange_interrupted) {
        code = interrupted_code();
    } else {
        log_warning("%s port %llu: %s", options->host, (unsigned long long)options->port,
                    sender.reasons[0] ? sender.reasons : sender.error);
        code = EXIT_IO;
    }
    transfer_end(&sender.transfer);
    return code;
}
