/* SPDX-License-Identifier: Apache-2.0 */
/* The command `receive`: serves transfers until a signal, or until --tests of them have run.
 * Running transfers are always finished and reported before the program ends. */
#include <signal.h>
#include <stdio.h>

#include "commands.h"
#include "common/log.h"
#include "receive/listener.h"
#include "receive/receive_options.h"
#include "receive/session_set.h"
#include "session/exchange.h"
#include "transfer/content.h"

#define POLL_MS 200 /* between two looks at exchange_interrupted */

static bool has_run_all(const struct session_set *sessions) {
    uint64_t tests = sessions->options->tests;
    return tests && sessions->begun >= tests && !sessions->running;
}

static int serve(struct listener *listener) {
    struct session_set *sessions = listener->sessions;
    while (!exchange_interrupted && !has_run_all(sessions))
        listener_poll(listener, POLL_MS);
    bool was_running = sessions->running > 0;
    while (sessions->running)
        listener_poll(listener, POLL_MS);
    if (sessions->unwritten)
        return EXIT_IO;
    if (exchange_interrupted == SIGINT)
        return EXIT_INTERRUPTED;
    if (exchange_interrupted)
        return was_running ? EXIT_TRUNCATED : EXIT_DONE;
    return sessions->cut_short ? EXIT_TRUNCATED : EXIT_DONE;
}

int receive_main(int argc, char **argv) {
    struct receive_options options;
    struct session_set sessions = {0};
    struct listener listener = {.sessions = &sessions};
    struct key key;
    char error[ERROR_SIZE] = "out of memory";
    receive_options_read(&options, argc, argv);
    unsigned long long port = options.port;
    if (options.key) {
        key_read(&key, options.key);
        listener.key = &key;
    }
    exchange_watch_signals();
    if (!session_set_begin(&sessions, &options) || !listener_open(&listener, &options, error))
        fail(EXIT_MISSING, "port %llu: %s", port, error);
    if (options.output_dir)
        content_sweep(options.output_dir);
    if (!options.key)
        log_warning("no --key: anyone who reaches port %llu may run tests", port);
    log_plain("listening on port %llu", port);
    int code = serve(&listener);
    listener_close(&listener);
    session_set_end(&sessions);
    return code;
}
