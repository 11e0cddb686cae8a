/* SPDX-License-Identifier: Apache-2.0 */
/* `wiretale-traffic receive`: runs until it is stopped, or has run its tests. */
#include "receive/receive.h"

#include <signal.h>
#include <stdio.h>

#include "exit_codes.h"
#include "receive/listener.h"
#include "receive/receive_options.h"
#include "session/exchange.h"
#include "session/interruption.h"
#include "transfer/content.h"
#include "transfer/program_name.h"

#define TICK_MS 200

static void greet(const struct receive_options *options) {
    if (!options->key)
        program_say("no --key: anyone who reaches port %llu may run tests",
                    (unsigned long long)options->port);
    fprintf(stderr, "listening on port %llu\n", (unsigned long long)options->port);
}

static bool has_run_all(const struct session_set *sessions) {
    uint64_t tests = sessions->options->tests;
    return tests && sessions->begun >= tests && !sessions->running;
}

static int run(struct listener *listener) {
    struct session_set *sessions = listener->sessions;
    while (!exchange_interrupted && !has_run_all(sessions))
        listener_poll(listener, TICK_MS);
    bool was_running = sessions->running > 0;
    while (sessions->running)
        listener_poll(listener, TICK_MS);
    if (sessions->unwritten)
        return EXIT_CODE_INPUT;
    if (exchange_interrupted == SIGINT)
        return EXIT_CODE_INTERRUPTED;
    if (exchange_interrupted)
        return was_running ? EXIT_CODE_CUT_SHORT : 0;
    return sessions->cut_short ? EXIT_CODE_CUT_SHORT : 0;
}

int receive_main(int argc, char **argv) {
    struct receive_options options;
    struct session_set sessions = {0};
    struct listener listener = {.sessions = &sessions};
    struct key key;
    char error[ERROR_SIZE] = "out of memory";
    int code = receive_options_read(&options, argc, argv);
    if (code)
        return code - 1;
    if (options.key && !key_read(&key, options.key))
        return EXIT_CODE_INPUT;
    listener.key = options.key ? &key : NULL;
    interruption_watch();
    if (!session_set_begin(&sessions, &options) || !listener_open(&listener, &options, error)) {
        program_say("port %llu: %s", (unsigned long long)options.port, error);
        return EXIT_CODE_TOOL;
    }
    if (options.output_dir)
        content_sweep(options.output_dir);
    greet(&options);
    code = run(&listener);
    listener_close(&listener);
    session_set_end(&sessions);
    return code;
}
