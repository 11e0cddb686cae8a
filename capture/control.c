/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop polls for signals and status clients every 100 ms. It holds no lock and never waits
 * for the disk, so a stalled disk cannot delay a stop or the watchdog. Requests are passed to the
 * writing thread by atomics; it takes them up between two batches of packets. */
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "status/metrics.h"

#define ROUND_MS  100
#define CLIENT_NS NS_PER_S /* between lines to status clients, unless --interval is given */
/* If a reading thread completes no round in this time, the watchdog is not fed. */
#define READER_HUNG_NS (5 * NS_PER_S)

/* timeout(1), sudo and terminals often send a stop as two signals, to the process and to its group.
 * A second signal counts as impatience only after this time. */
#define STOP_AGAIN_NS (2 * NS_PER_S)

struct rounds {
    int64_t begun_ns, interval_at_ns, clients_at_ns, watchdog_at_ns;
    bool woken;        /* reading threads have been woken to end */
    bool is_announced; /* "capturing" has been printed */
    bool over;         /* -a duration: has elapsed */
};

/* Signals are read from a descriptor, so no code runs in a signal handler, and poll() wakes up for
 * them. */
void control_take_signals(struct control *control) {
    sigset_t wanted;
    sigemptyset(&wanted);
    const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&wanted, signals[i]);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    control->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (control->signal_fd < 0)
        fail(EXIT_IO, "cannot open a signalfd: %s", strerror(errno));
}

/* The first signal ends the capture in order. A later one exits at once, for a disk that does not
 * respond. */
static void stop(struct control *control) {
    int64_t now = monotonic_ns();
    atomic_store(&control->capture->stopping, true);
    if (!control->stop_asked_ns) {
        control->stop_asked_ns = now;
    } else if (now - control->stop_asked_ns > STOP_AGAIN_NS) {
        log_warning(
            "interrupted again: unwritten packets are lost; the next start does what is left");
        _exit(EXIT_INTERRUPTED);
    }
}

/* Sets a request for the writing thread and wakes it. */
static void request(struct control *control, int requested) {
    atomic_fetch_or(&control->output->requests, requested);
    chunk_queue_wake(&control->capture->queue);
}

/* For a signal nobody reads an answer, so that the reason of a refusal goes to the log. */
static void keep(struct control *control, const char *reason) {
    char name[SPAN_NAME_SIZE];
    const char *refusal = span_keeper_trigger(&control->spans, reason, name);
    if (refusal)
        log_warning("nothing is kept: %s", refusal);
}

static void take_signals(struct control *control) {
    struct signalfd_siginfo info;
    while (read(control->signal_fd, &info, sizeof info) == sizeof info)
        switch (info.ssi_signo) {
        case SIGHUP: request(control, REQUEST_REOPEN | REQUEST_ROTATE); break;
        case SIGUSR1: request(control, REQUEST_ROTATE); break;
        case SIGUSR2: keep(control, "signal"); break;
        default: stop(control);
        }
}

/* Returns whether each reading thread completed a round within READER_HUNG_NS. */
static bool readers_live(const struct capture *capture, int64_t now) {
    for (uint32_t i = 0; i < capture->device_count; i++) {
        const struct device *device = &capture->devices[i];
        if (atomic_load(&device->state) != DEVICE_ENDED &&
            now - atomic_load(&device->alive_ns) > READER_HUNG_NS)
            return false;
    }
    return true;
}

/* If a reading thread hangs, the watchdog is not fed, and systemd restarts the service. */
static void feed_watchdog(struct control *control, struct rounds *rounds, int64_t now) {
    int64_t each = control->service.watchdog_ns / 3;
    if (!each || now < rounds->watchdog_at_ns || !readers_live(control->capture, now))
        return;
    rounds->watchdog_at_ns = now + each;
    service_notify(&control->service, "WATCHDOG=1");
}

static void take_status(struct control *control, struct status *status) {
    status_take(status, control->capture, control->output);
    trend_tell(&control->trend, control->capture->settings, status);
    clock_watch_tell(&control->clock, status);
    link_watch_tell(&control->links, status);
    mirror_watch_tell(&control->mirror, status);
}

/* Sends a line of JSON to all clients, or only to those without a line. */
static void send_status(struct control *control, const struct status *status, bool fresh_only) {
    static char line[METRICS_SIZE];
    size_t length = metrics_json(status, line);
    status_socket_send(&control->status, line, length, fresh_only);
}

static bool is_reason(const char *text) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    return length && length < REASON_SIZE && !text[length];
}

static size_t answer_keep(struct control *control, const char *reason, char *answer) {
    char name[SPAN_NAME_SIZE];
    const char *refusal = is_reason(reason) ? span_keeper_trigger(&control->spans, reason, name)
                                            : "expected a reason of at most 31 letters, a to z";
    return (size_t)sprintf(answer, "%s %s\n", refusal ? "refused" : "kept",
                           refusal ? refusal : name);
}

/* Commands of clients: metrics, and keep with a reason. */
static size_t take_command(void *context, const char *command, char *answer) {
    struct control *control = context;
    struct status status;
    if (!strncmp(command, "keep ", 5))
        return answer_keep(control, command + 5, answer);
    if (strcmp(command, "metrics") != 0)
        return (size_t)sprintf(answer, "refused expected metrics, or keep and a reason\n");
    take_status(control, &status);
    return metrics_prometheus(&status, answer);
}

/* Scripts wait for the line `capturing`; a person wants to know what begins, and how it ends. */
static void announce(const struct settings *settings) {
    if (!settings->on_terminal || settings->quiet)
        log_plain("capturing");
    else
        log_plain("capturing on %s%s into %s; Ctrl-C ends", settings->interfaces[0],
                  settings->interface_count > 1 ? " and others" : "", settings->output);
}

/* Takes the status once per round, and only if a client, --interval or the first packet needs it.
 */
static void report_status(struct control *control, struct rounds *rounds, int64_t now) {
    struct status status;
    char text[512];
    static char answer[METRICS_SIZE];
    bool fresh = status_socket_accept(&control->status);
    status_socket_poll(&control->status, now);
    status_socket_answer(&control->status, take_command, control, answer);
    int64_t interval = control->capture->settings->interval_ns;
    bool clients_due = now >= rounds->clients_at_ns,
         interval_due = interval && now >= rounds->interval_at_ns;
    if (!fresh && !clients_due && !interval_due && rounds->is_announced)
        return;
    take_status(control, &status);
    if (!rounds->is_announced && status.state == STATUS_CAPTURING) {
        rounds->is_announced = true;
        announce(control->capture->settings);
    }
    if (clients_due || fresh)
        send_status(control, &status, !clients_due);
    status_text(&status, text, sizeof text);
    if (interval_due) {
        rounds->interval_at_ns += interval;
        log_info("%s", text);
    }
    if (clients_due) {
        rounds->clients_at_ns = now + (interval ? interval : CLIENT_NS);
        service_notify(&control->service, "STATUS=%s", text);
    }
}

/* Looks at the counts once a second. */
static void watch_counts(struct control *control, int64_t now) {
    struct status status;
    const struct finisher *finisher = control->output->finisher;
    if (now - control->trend.checked_ns < NS_PER_S)
        return;
    take_status(control, &status);
    uint64_t plain = finisher->publisher.plain_bytes;
    double share = plain ? (double)finisher->publisher.compressed_bytes / (double)plain : 1;
    trend_update(&control->trend, &status, (uint64_t)((double)status.bytes * share), now);
    span_keeper_watch(&control->spans, &status, now);
}

/* Ends the capture if -a duration: has elapsed, and wakes reading threads that wait for packets. */
static void end_when_due(struct control *control, struct rounds *rounds, int64_t now) {
    struct capture *capture = control->capture;
    int64_t most = capture->settings->stop_ns;
    if (most && now - rounds->begun_ns >= most && !atomic_load(&capture->stopping)) {
        rounds->over = true;
        atomic_store(&capture->stopping, true);
    }
    if (rounds->woken || !atomic_load(&capture->stopping))
        return;
    rounds->woken = true;
    service_notify(&control->service, "STOPPING=1");
    eventfd_write(capture->wake_fd, 1);
}

/* If -a duration: ends a capture whose interfaces never appeared, the exit code must say so. */
static int exit_code(const struct capture *capture, bool over) {
    unsigned absent = 0;
    for (uint32_t i = 0; over && i < capture->device_count; i++)
        if (!capture->devices[i].counts) {
            log_warning("%s did not appear within -a duration:", capture->devices[i].name);
            absent++;
        }
    return absent && absent == capture->device_count ? EXIT_MISSING : EXIT_DONE;
}

/* After the rounds, while files are finished and commands end. */
static void *stop_again(void *argument) {
    struct control *control = argument;
    struct pollfd ready = {.fd = control->signal_fd, .events = POLLIN};
    struct signalfd_siginfo info;
    for (;;) {
        poll(&ready, 1, -1);
        while (read(control->signal_fd, &info, sizeof info) == sizeof info)
            if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
                stop(control);
    }
    return NULL;
}

/* Each round takes signals first, so that a stop is not delayed by a slow status client. */
int control_run(struct control *control) {
    int64_t now = monotonic_ns();
    struct rounds rounds = {.begun_ns = now,
                            .interval_at_ns = now + control->capture->settings->interval_ns,
                            .clients_at_ns = now};
    trend_begin(&control->trend);
    service_notify(&control->service, "READY=1");
    while (!atomic_load(&control->writer->done)) {
        struct pollfd ready[] = {{.fd = control->signal_fd, .events = POLLIN},
                                 {.fd = control->status.fd, .events = POLLIN},
                                 {.fd = control->links.fd, .events = POLLIN}};
        take_signals(control);
        now = monotonic_ns();
        clock_watch_round(&control->clock, control->output, now);
        link_watch_round(&control->links);
        mirror_watch_round(&control->mirror, now);
        end_when_due(control, &rounds, now);
        report_status(control, &rounds, now);
        watch_counts(control, now);
        if (atomic_exchange(&control->capture->is_matched, false))
            keep(control, "match");
        feed_watchdog(control, &rounds, now);
        poll(ready, sizeof ready / sizeof *ready, ROUND_MS);
    }
    struct status last;
    pthread_t thread;
    if (pthread_create(&thread, NULL, stop_again, control))
        log_warning("out of memory: a second signal to stop is not heard");
    take_status(control, &last);
    send_status(control, &last, false);
    return exit_code(control->capture, rounds.over);
}
