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
#define DEFAULT_SHARE      0.05 /* of the disk that files leave free */
#define POLL_MS            200  /* between two looks at exchange_interrupted */

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

static bool take_min_free(void *into, const char *value, const char **expected) {
    struct folder_room *room = into;
    *expected = "a size or a part of the disk, as in 20GB or 5%";
    room->min_free = 0;
    room->min_free_share = 0;
    if (!strchr(value, '%'))
        return units_parse_whole(value, UNIT_SIZE, "", &room->min_free);
    return units_parse_decimal(value, UNIT_SHARE, &room->min_free_share) &&
           room->min_free_share >= 0 && room->min_free_share <= 1;
}

#define LONG (1000000 * NS_PER_S)

/* Its rows name the functions, words and members above. */
#include "receive/option_table.h"

/* The defaults bound the damage that a stranger can do: one transfer at once, of 128 streams, 1 TB
 * and 10 minutes, and files of 10 GB together. */
static void read_options(struct receive_options *options, int argc, char **argv) {
    *options = (struct receive_options){.port = DEFAULT_PORT,
                                        .family = AF_UNSPEC,
                                        .parallel = 1,
                                        .per_address = 1,
                                        .room = {.most_bytes = DEFAULT_TOTAL_SIZE,
                                                 .min_free_share = DEFAULT_SHARE,
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
    if ((options->room.min_free || options->room.min_free_share != DEFAULT_SHARE) &&
        !options->target.folder)
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
