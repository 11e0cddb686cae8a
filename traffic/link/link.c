/* SPDX-License-Identifier: Apache-2.0 */
/* wiretale-link joins two interfaces by an emulated link and records the fate of each packet. The
 * main thread opens the ports, starts a worker for each direction and the thread of the truth log,
 * waits for a signal, and prints a summary. Signals are blocked in all threads, so that only
 * sigwait() gets them.
 *
 * A worker owns its direction until it was joined, and the summary is printed after that, so the
 * counters need no lock. If the link cannot be set up, the program exits at once with one line and
 * the exit code of its cause. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/options.h"
#include "io/link_worker.h"
#include "truth/truth_log.h"

struct link_options {
    const char *interfaces[2];
    struct link_spec specs[2]; /* of each direction */
    uint64_t seed;
    const char *truth_path; /* file to write; NULL: none */
    const char *print_path; /* file to print; NULL: none */
    int64_t spin_ns;
    uint64_t priority; /* of SCHED_RR; 0: the default policy */
    struct link_addresses addresses;
    bool overwrite; /* the truth file may replace a capture */
    bool json;
};

/* Each direction needs a copy of the text, because parsing cuts it up and the spec refers to it. */
static void parse_spec(struct link_spec *spec, const char *value, const char *option) {
    char error[256], *text = strdup(value);
    if (!text)
        fail(EXIT_MISSING, "out of memory for the options");
    const char *reason = link_spec_parse(spec, text, error, sizeof error);
    if (reason)
        fail(EXIT_USAGE, "%s: %s; see --help", option, reason);
}

static bool take_forward(void *into, const char *value, const char **expected) {
    (void)expected;
    parse_spec(&((struct link_options *)into)->specs[0], value, "--forward");
    return true;
}

static bool take_reverse(void *into, const char *value, const char **expected) {
    (void)expected;
    parse_spec(&((struct link_options *)into)->specs[1], value, "--reverse");
    return true;
}

static bool take_both(void *into, const char *value, const char **expected) {
    (void)expected;
    parse_spec(&((struct link_options *)into)->specs[0], value, "--both");
    parse_spec(&((struct link_options *)into)->specs[1], value, "--both");
    return true;
}

/* The family follows from the text. If it is given twice for a family, the last one counts. */
static bool take_address(void *into, const char *value, const char **expected) {
    struct link_addresses *addresses = &((struct link_options *)into)->addresses;
    *expected = "an IPv4 or IPv6 address";
    return inet_pton(AF_INET, value, addresses->ip4) == 1 ||
           inet_pton(AF_INET6, value, addresses->ip6) == 1;
}

/* Its rows name the functions, words and members above. */
#include "option_table.h"

/* Exits if the file is standard output, an input, or a capture without --overwrite. */
static void check_truth(const struct link_options *options) {
    const char *path = options->truth_path;
    const char *const inputs[] = {options->specs[0].trace_path, options->specs[1].trace_path};
    if (!strcmp(path, "-"))
        fail(EXIT_USAGE, "--truth -: expected a file, since the summary goes to standard output");
    const char *error = truth_path_error(path, inputs, 2, options->overwrite);
    if (error)
        fail(EXIT_USAGE, "--truth %s: %s", path, error);
}

/* --print-truth excludes interfaces; otherwise there must be two different ones. */
static void parse_options(struct link_options *options, int argc, char **argv) {
    const char *ignored;
    *options = (struct link_options){.seed = 1, .priority = 10};
    link_spec_init(&options->specs[0]);
    link_spec_init(&options->specs[1]);
    take_address(options, "192.0.0.8", &ignored);    /* RFC 7600: a host without an address */
    take_address(options, "100:0:0:1::1", &ignored); /* RFC 9780 */
    size_t count = options_read(&command, options, argc - 1, argv + 1, options->interfaces, 2);
    if (options->truth_path)
        check_truth(options);
    if (options->print_path && !count)
        return;
    if (options->print_path || count != 2)
        fail(EXIT_USAGE, "expected two interfaces, or --print-truth FILE alone; see --help");
    if (!strcmp(options->interfaces[0], options->interfaces[1]))
        fail(EXIT_USAGE, "%s: expected two different interfaces", options->interfaces[0]);
}

/* Direction 0 goes from the first port to the second, direction 1 back. Exits with EXIT_IO if a
 * trace cannot be read. */
static void build_worker(struct link_worker *worker, const struct link_options *options,
                         uint8_t number, struct link_port ports[2], _Atomic int64_t *origin) {
    char error[512];
    worker->spec = &options->specs[number];
    worker->addresses = &options->addresses;
    worker->from = &ports[number];
    worker->to = &ports[!number];
    worker->spin_ns = options->spin_ns;
    const char *reason = link_direction_init(&worker->direction, worker->spec, options->seed,
                                             number, &worker->events, origin, error, sizeof error);
    if (reason)
        fail(EXIT_IO, "%s", reason);
}

/* The worker gets a real-time priority if that is allowed; `*real_time` is cleared if not. */
static void start_worker(struct link_worker *worker, uint64_t priority, bool *real_time) {
    int wrong = pthread_create(&worker->thread, NULL, link_worker_run, worker);
    if (wrong)
        fail(EXIT_MISSING, "cannot start a thread: %s", strerror(wrong));
    struct sched_param parameters = {.sched_priority = (int)priority};
    if (!priority || pthread_setschedparam(worker->thread, SCHED_RR, &parameters))
        *real_time = false;
}

/* Returns the exit code. Exits at once if the link cannot be set up. Signals are blocked before the
 * first thread starts, because threads inherit the mask. The log is closed last, because workers
 * flush into it when they end. */
static int run(const struct link_options *options) {
    static struct link_port ports[2];
    static struct link_worker workers[2];
    static struct truth_log log;
    static atomic_bool ending;
    static _Atomic int64_t origin;
    bool real_time = true;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    for (uint8_t i = 0; i < 2; i++)
        link_port_open(&ports[i], options->interfaces[i]);
    for (uint8_t i = 0; i < 2; i++)
        build_worker(&workers[i], options, i, ports, &origin);
    if (options->truth_path &&
        !truth_log_open(&log, options->truth_path, options->seed, realtime_ns()))
        fail(EXIT_IO, "%s: cannot write: %s", options->truth_path, strerror(errno));
    /* Not MCL_FUTURE: if RLIMIT_MEMLOCK is low, later allocations would fail. */
    mlockall(MCL_CURRENT);
    for (unsigned i = 0; i < 2; i++) {
        workers[i].pen.log = options->truth_path ? &log : NULL;
        workers[i].ending = &ending;
        start_worker(&workers[i], options->priority, &real_time);
    }
    log_plain("linking %s and %s", ports[0].name, ports[1].name);
    for (int number; sigwait(&signals, &number);)
        ;
    atomic_store(&ending, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    link_summary_print(workers, real_time, options->json);
    bool written = finish_output(stdout);
    if (options->truth_path && !truth_log_close(&log))
        fail(EXIT_IO, "%s: not all of it could be written: %s", options->truth_path,
             strerror(errno));
    return written ? EXIT_DONE : EXIT_IO;
}

int main(int argc, char **argv) {
    static struct link_options options;
    prepare_stdio();
    log_set_program(argv[0], "");
    parse_options(&options, argc, argv);
    int code = options.print_path ? truth_print(options.print_path) : run(&options);
    link_spec_free(&options.specs[0]);
    link_spec_free(&options.specs[1]);
    return code;
}
