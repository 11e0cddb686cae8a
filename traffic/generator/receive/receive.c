/* SPDX-License-Identifier: Apache-2.0 */
/* The command `receive`: serves transfers until a signal, or until --tests of them have run.
 * Running transfers are always finished and reported before the program ends.
 *
 * The main thread runs the listener; each transfer has a thread (session_set.c), and each of its
 * streams another. A signal stops the listener and asks transfers to end. Exit codes: 4 if a report
 * could not be written, 130 after SIGINT, 3 if another signal cut a transfer short or, without a
 * signal, if any was incomplete or none came in time, else 0. A receiver that was to serve until it
 * is stopped returns 0 if a sender stops it (--let-stop). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "common/log.h"
#include "common/options.h"
#include "common/units.h"
#include "common/units_text.h"
#include "receive/confine.h"
#include "receive/listener.h"

#define DEFAULT_TOTAL_SIZE UINT64_C(10000000000)
#define POLL_MS            200 /* between two looks at exchange_interrupted */

static bool take_rate(void *into, const char *value, const char **expected) {
    double *rate = into;
    *expected = "a rate as in 10k, 1.9M, 1G";
    return units_parse_decimal(value, UNIT_RATE, rate) && *rate >= 1;
}

static bool take_floor(void *into, const char *value, const char **expected) {
    double *rate = into;
    *expected = "a rate as in 10k, 1.9M, 1G, or 0";
    return units_parse_decimal(value, UNIT_RATE, rate) && (*rate >= 1 || *rate == 0);
}

#define LONG   (1000000 * NS_PER_S)
#define STRUCT struct receive_options

static const struct option_row rows[] = {
    HEADING("sockets"),
    PORT_OF("port", 'p', port, "TCP port of control and data connections [5010]"),
    SET("ipv4", '4', family, AF_INET, "use IPv4 only"),
    SET("ipv6", '6', family, AF_INET6, "use IPv6 only"),
    TEXT_OF("bind", 'B', local.bind, "ADDRESS", "listen at this address only"),
    TEXT_OF("device", 0, local.device, "IF", "use this interface only (SO_BINDTODEVICE)"),
    TAKEN_AT("data-ports", 0, local, "A-B", local_plan_take_ports,
             "UDP ports of data [chosen by the system]"),
    SIZE_OF("buffer", 'w', buffer, "BYTES", 1, 1 << 30,
            "socket buffers of data, unless the sender asks for a size"),
    HEADING("tests"),
    SET("once", '1', tests, 1, "run one test, then end"),
    COUNT_OF("tests", 0, tests, "N", 1, INT64_MAX, "run N tests, then end"),
    TIME_OF("accept-timeout", 0, accept_ns, "TIME", NS_PER_MS, LONG,
            "end if no test is started for TIME while none runs [wait]"),
    FLAG("let-stop", 0, lets_stop,
         "end after the test of a sender that asks for it (send --stop-receiver) [refuse it]"),
    COUNT_OF("parallel", 0, parallel, "N", 1, 1024,
             "tests run at once [1]; further senders are refused"),
    COUNT_OF("per-address", 0, per_address, "N", 1, 1024,
             "of them, from one address or IPv6 /64 [1]"),
    SIZE_OF("max-bytes", 0, exchange.max_bytes, "BYTES", 1, INT64_MAX, "byte limit per test [1T]"),
    TAKEN_AT("max-rate", 0, exchange.max_bps, "RATE", take_rate,
             "limit of block bytes per test and direction: 10M, 1G [no limit]"),
    TAKEN_AT("min-rate", 0, exchange.min_bps, "RATE", take_floor,
             "end a test whose blocks are slower for a minute [100 bit/s]; 0: never"),
    TIME_OF("max-time", 0, exchange.max_ns, "TIME", NS_PER_MS, LONG, "time limit per test [10m]"),
    COUNT_OF("max-streams", 0, max_streams, "N", 1, MAX_STREAMS, "stream limit per test [128]"),
    TIME_OF("idle", 0, idle_ns, "TIME", NS_PER_MS, LONG,
            "silence that ends a test [as the sender asks, 1 s]"),
    TEXT_OF("key", 0, key, "FILE", "accept only senders with the same key file"),
    TAKEN_AT("allow", 0, allowed, "NETWORK", allowed_networks_take,
             "accept only senders in this network, as in 192.0.2.0/24; repeat it for more [all]"),
    TAKEN_AT("quota", 0, quota, "BYTES/TIME", quota_take,
             "bytes of blocks that each address may move in a time, as in 10G/24h [no limit]"),
    HEADING("files"),
    TEXT_OF("output-dir", 'o', target.folder, "DIR",
            "write received files here [only compare their checksums]"),
    SIZE_OF("total-size", 0, room.most_bytes, "BYTES", 1, INT64_MAX,
            "limit of all files in DIR together [10G]"),
    SIZE_OF("min-free", 0, room.min_free, "BYTES", 0, INT64_MAX,
            "space to leave free on the disk of DIR [5 % of it]"),
    FLAG("overwrite", 0, target.overwrite, "replace files that exist in DIR [refuse them]"),
    FLAG("stdout", 0, target.to_stdout,
         "write files to standard output, and reports to standard error"),
    HEADING("rights"),
    TEXT_OF("user", 0, user, "USER",
            "as root, become this user [owner of DIR, wiretale or nobody]; root: stay root"),
    FLAG("no-sandbox", 0, no_sandbox, "run without seccomp and Landlock"),
    HEADING("output"),
    FLAG("json", 'J', exchange.style.json, "print one JSON object per test, on one line"),
    TIME_OF("interval", 'i', exchange.interval_ns, "TIME", 10 * NS_PER_MS, LONG,
            "print a line every TIME while a test runs"),
    TAKEN_AT("format", 'f', exchange.style.format, "k|K|m|M|g|G", rate_letter_take,
             "unit of rates as in ttcp: lower case bits, upper case bytes"),
    FLAG("quiet", 'q', exchange.style.quiet, "print nothing but the port and errors"),
    HELP_AND_VERSION,
};

static const struct command_line command = {
    .description = "Run tests for `@ send`: count lost, late and corrupt blocks, and\n"
                   "report them to both ends.\n",
    .usage = "@ receive [options]\n",
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .examples = "  # tests of anyone who reaches the port, until stopped\n"
                "  @ receive\n"
                "  # one test, for a script\n"
                "  @ receive --once --json > test.json\n"
                "  # files from senders with a key\n"
                "  @ receive --key ~/wiretale.key --output-dir incoming \\\n"
                "      --max-bytes 10G\n",
    .exit_codes =
        "  0    done\n"
        "  2    wrong usage\n"
        "  3    a test was cut short (--once, --tests), or none began (--accept-timeout)\n"
        "  4    a file or folder cannot be used, or the output failed\n"
        "  5    a permission or the port is missing\n"
        "  130  interrupted\n",
};

/* The defaults bound the damage that a stranger can do: one transfer at once, of 128 streams, 1 TB
 * and 10 minutes, and files of 10 GB together. */
static void read_options(struct receive_options *options, int argc, char **argv) {
    *options = (struct receive_options){.port = DEFAULT_PORT,
                                        .family = AF_UNSPEC,
                                        .parallel = 1,
                                        .per_address = 1,
                                        .room = {.most_bytes = DEFAULT_TOTAL_SIZE,
                                                 .min_free = DEFAULT_MIN_FREE,
                                                 .lock = PTHREAD_MUTEX_INITIALIZER},
                                        .max_streams = 128,
                                        .exchange = {.max_bytes = UINT64_C(1000000000000),
                                                     .max_ns = 600 * NS_PER_S,
                                                     .min_bps = 100,
                                                     .style = {.role = "receive"}}};
    options_read(&command, options, argc, argv, NULL, 0);
    options->exchange.style.out = options->target.to_stdout ? stderr : stdout;
    options->target.room = &options->room;
    if (options->target.to_stdout && options->parallel > 1)
        fail(EXIT_USAGE, "--stdout: expected no --parallel, because bytes would mix");
    if (options->target.overwrite && !options->target.folder)
        fail(EXIT_USAGE, "--overwrite: expected --output-dir as well");
    if (options->room.most_bytes != DEFAULT_TOTAL_SIZE && !options->target.folder)
        fail(EXIT_USAGE, "--total-size: expected --output-dir as well");
    if (options->room.min_free != DEFAULT_MIN_FREE && !options->target.folder)
        fail(EXIT_USAGE, "--min-free: expected --output-dir as well");
}

/* Serves until a signal, a sender's wish, the last test or a time without any (is_late). Refused
 * transfers count neither for --tests nor for that time, and nor do those that never begin. */
static void serve_tests(struct listener *listener) {
    struct session_set *sessions = listener->sessions;
    const struct receive_options *options = sessions->options;
    uint64_t now = monotonic_ns(), begun = sessions->begun, idle_since = now;
    while (!exchange_interrupted && !sessions->is_stopped && !sessions->is_late &&
           !(options->tests && sessions->begun >= options->tests && !sessions->running)) {
        listener_poll(listener, POLL_MS);
        now = monotonic_ns();
        if (session_set_is_busy(sessions) || sessions->begun != begun)
            idle_since = now;
        begun = sessions->begun;
        sessions->is_late = options->accept_ns && now - idle_since >= options->accept_ns;
    }
}

/* Returns the exit code. A signal ends running transfers through exchange_interrupted; they are
 * still reported. */
static int serve(struct listener *listener) {
    struct session_set *sessions = listener->sessions;
    serve_tests(listener);
    bool was_running = sessions->running > 0;
    while (sessions->running)
        listener_poll(listener, POLL_MS);
    if (sessions->is_late)
        log_warning("no test began for %s (--accept-timeout)",
                    UNITS_SHOW(SHOWN_DURATION, sessions->options->accept_ns));
    if (sessions->is_stopped)
        log_plain("ended by a sender (--let-stop)");
    if (sessions->unwritten)
        return EXIT_IO;
    if (exchange_interrupted == SIGINT)
        return EXIT_INTERRUPTED;
    if (exchange_interrupted)
        return was_running ? EXIT_TRUNCATED : EXIT_DONE;
    if (sessions->is_stopped && !sessions->options->tests)
        return EXIT_DONE;
    return sessions->cut_short || sessions->is_late ? EXIT_TRUNCATED : EXIT_DONE;
}

/* What strangers may do, or those with the key. */
static void show_rights(const struct receive_options *options) {
    const struct folder_room *room = &options->room;
    if (!options->key && !options->allowed.count)
        log_warning("no --key: anyone who reaches port %llu may run tests%s%s%s",
                    (unsigned long long)options->port,
                    options->target.folder ? ", write files to " : "",
                    options->target.folder ? options->target.folder : "",
                    options->lets_stop ? ", and end this receiver" : "");
    if (options->target.folder)
        log_info("files go to %s, at most %s in all (--total-size)", options->target.folder,
                 UNITS_SHOW(SHOWN_BYTES, room->most_bytes));
}

/* The socket is opened before partial files are swept, because a second receiver at this port must
 * fail before it touches the directory. Without a key, a warning names the port, because any host
 * that reaches it can use this one's bandwidth. */
int receive_main(int argc, char **argv) {
    struct receive_options options;
    struct session_set sessions = {0};
    struct listener listener = {.sessions = &sessions};
    struct key key;
    char error[ERROR_SIZE] = "out of memory";
    read_options(&options, argc, argv);
    unsigned long long port = options.port;
    if (options.key) {
        key_read(&key, options.key);
        listener.key = &key;
    }
    exchange_watch_signals();
    if (!session_set_begin(&sessions, &options) || !listener_open(&listener, &options, error))
        fail(EXIT_MISSING, "port %llu: %s", port, error);
    receive_confine(&options);
    if (options.target.folder)
        content_sweep(options.target.folder);
    show_rights(&options);
    log_plain("listening on port %llu", port);
    int code = serve(&listener);
    listener_close(&listener);
    session_set_end(&sessions);
    return code;
}
