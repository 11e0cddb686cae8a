/* SPDX-License-Identifier: Apache-2.0 */
/* wiretale-link: joins two interfaces by a link that is as bad as it is told to be, and tells what
 * it did. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/log.h"
#include "link_options.h"
#include "link_summary.h"

static void build_worker(struct link_worker *worker, const struct link_options *options,
                         uint8_t number, struct link_port ports[2], _Atomic int64_t *origin) {
    char problem[512];
    worker->spec = &options->specs[number];
    worker->addresses = &options->addresses;
    worker->from = &ports[number];
    worker->to = &ports[!number];
    worker->spin_ns = options->spin_ns;
    const char *wrong = link_direction_init(&worker->direction, worker->spec, options->seed, number,
                                            &worker->events, origin, problem, sizeof problem);
    if (wrong)
        fail(EXIT_IO, "%s", wrong);
}

/* As a thread of real time when that is allowed, else as everybody else. */
static void start_worker(struct link_worker *worker, uint64_t priority, bool *real_time) {
    int wrong = pthread_create(&worker->thread, NULL, link_worker_run, worker);
    if (wrong)
        fail(EXIT_MISSING, "cannot start a thread: %s", strerror(wrong));
    struct sched_param parameters = {.sched_priority = (int)priority};
    if (!priority || pthread_setschedparam(worker->thread, SCHED_RR, &parameters))
        *real_time = false;
}

static void wait_for_end(const sigset_t *signals) {
    int number;
    while (sigwait(signals, &number))
        ;
}

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
    mlockall(MCL_CURRENT); /* as far as it may; not what comes: a limit would then make allocations
                              fail */
    for (unsigned i = 0; i < 2; i++) {
        workers[i].pen.log = options->truth_path ? &log : NULL;
        workers[i].ending = &ending;
        start_worker(&workers[i], options->priority, &real_time);
    }
    fprintf(stderr, "linking %s and %s\n", ports[0].name, ports[1].name);
    wait_for_end(&signals);
    atomic_store(&ending, true);
    uint64_t overruns[2];
    for (unsigned i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < 2; i++)
        overruns[i] = link_port_overruns(&ports[i]);
    link_summary_print(workers, overruns, real_time, options->json);
    int failure = ferror(stdout) && errno != EPIPE ? errno : 0;
    if (options->truth_path && !truth_log_close(&log))
        fail(EXIT_IO, "%s: not all of it could be written: %s", options->truth_path,
             strerror(errno));
    if (failure)
        fail(EXIT_IO, "cannot write to standard output: %s", strerror(failure));
    return 0;
}

int main(int argc, char **argv) {
    static struct link_options options;
    log_set_program(argv[0], "");
    link_options_parse(&options, argc, argv);
    int code = options.print_path ? truth_print(options.print_path) : run(&options);
    link_spec_free(&options.specs[0]);
    link_spec_free(&options.specs[1]);
    return code;
}
