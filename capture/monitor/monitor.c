/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/options.h"
#include "common/units_text.h"
#include "monitor/ask.h"
#include "monitor/health.h"
#include "monitor/samples.h"
#include "status/status_socket.h"

#define DEFAULT_SOCKET "/run/wiretale-capture/status"
#define UP                                                                                         \
    "# HELP " METRICS_PREFIX "up Whether the capture answers at its status socket.\n"              \
    "# TYPE " METRICS_PREFIX "up gauge\n" METRICS_PREFIX "up %d\n"

struct request {
    const char *path;
    bool json, prometheus, check;
    const char *textfile, *keep;
    struct health_limits limits;
};

/* Its rows name the members above. */
#include "monitor/option_table.h"

/* Writes a file beside it and renames that, so that no reader sees a part. A device would be
 * replaced, too. */
static void write_textfile(const char *path, const char *metrics, bool is_up) {
    char temporary[PATH_MAX];
    struct stat existing;
    int fd = -1;
    if (!stat(path, &existing) && !S_ISREG(existing.st_mode))
        fail(EXIT_USAGE, "--textfile %s: expected a file", path);
    if (snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid()) < PATH_MAX)
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        fail(EXIT_IO, "%s: %s", path, strerror(errno));
    bool done = !fchmod(fd, 0644) && dprintf(fd, UP "%s", is_up, metrics) > 0;
    done = !close(fd) && done && !rename(temporary, path);
    int reason = errno;
    if (!done)
        unlink(temporary);
    if (!done)
        fail(EXIT_IO, "%s: %s", path, strerror(reason));
}

/* Prints a time, as in ", full in 3 h", or what stands for none; nothing while it is not known. */
static void put_forecast(const char *before, double seconds, const char *never) {
    if (isfinite(seconds))
        printf("%s in %s", before, UNITS_SHOW(SHOWN_DURATION, seconds * NS_PER_S));
    else if (!isnan(seconds))
        fputs(never, stdout);
}

static void print_text(const char *metrics) {
    char state[64], counts[512];
    double size = samples_sum(metrics, "disk_bytes"), files = samples_sum(metrics, "ring_files");
    double done = samples_sum(metrics, "commands_done_total");
    health_state(metrics, state, sizeof state);
    health_counts(metrics, counts, sizeof counts);
    printf("%s: %s\n", state, counts);
    if (!isnan(size)) {
        printf("disk: %s of %s free",
               UNITS_SHOW(SHOWN_BYTES, samples_sum(metrics, "disk_free_bytes")),
               UNITS_SHOW(SHOWN_BYTES, size));
        put_forecast(", full", samples_sum(metrics, "disk_full_seconds"), ", will not be full");
        putchar('\n');
    }
    if (!isnan(files)) {
        printf("ring: %s files, %s", UNITS_SHOW(SHOWN_COUNT, files),
               UNITS_SHOW(SHOWN_BYTES, samples_sum(metrics, "ring_bytes")));
        double left = samples_sum(metrics, "ring_full_seconds");
        if (left == 0)
            fputs(", full: the oldest file goes when a new one comes", stdout);
        else
            put_forecast(", full", left, "");
        putchar('\n');
    }
    if (!isnan(done))
        printf("on-close: %s files done, %s wait, %s given up\n", UNITS_SHOW(SHOWN_COUNT, done),
               UNITS_SHOW(SHOWN_COUNT, samples_sum(metrics, "commands_waiting")),
               UNITS_SHOW(SHOWN_COUNT, samples_sum(metrics, "commands_given_up_total")));
}

static int check(const struct request *request, const char *metrics) {
    struct verdict verdict;
    health_judge(metrics, &request->limits, &verdict);
    health_put(metrics, &request->limits, &verdict);
    return finish_output(stdout) ? (int)verdict.health : HEALTH_UNKNOWN;
}

/* The one line that tells why there are no metrics. */
static int report_failure(const struct request *request, enum ask_result how, const char *reason) {
    bool denied = how == ASK_DENIED;
    if (request->check) {
        printf("CAPTURE %s - %s: %s\n", denied ? "UNKNOWN" : "CRITICAL", request->path, reason);
        return denied ? HEALTH_UNKNOWN : HEALTH_CRITICAL;
    }
    if (request->textfile)
        write_textfile(request->textfile, "", false);
    fail(denied ? EXIT_MISSING : EXIT_IO, "%s: %s", request->path, reason);
}

/* Takes the answer to --keep: kept NAME, or refused and why. */
static void report_span(const char *answer) {
    char word[16], text[256] = "the answer is unknown";
    if (sscanf(answer, "%15s %255[^\n]", word, text) != 2 || strcmp(word, "kept") != 0)
        fail(EXIT_MISSING, "nothing is kept: %s", text);
    puts(text);
}

static void read_request(struct request *request, int count, char **arguments) {
    const char *operand[1] = {DEFAULT_SOCKET};
    *request = (struct request){.limits = {.loss_ns = 300 * NS_PER_S,
                                           .lag_ns = 5 * NS_PER_S,
                                           .disk_ns = 24 * 3600 * NS_PER_S}};
    options_read(&command, request, count, arguments, operand, 1);
    request->path = *operand;
    if (request->json + request->prometheus + request->check + !!request->textfile +
            !!request->keep >
        1)
        fail(EXIT_USAGE, "--json, --prometheus, --textfile, --check and --keep: expected one");
}

/* A wrong command line is unknown to monitoring, not critical. */
static void end_as_unknown(int code, void *is_read) {
    if (code == EXIT_USAGE && !*(bool *)is_read)
        _exit(HEALTH_UNKNOWN);
}

int monitor_main(int count, char **arguments) {
    static char answer[METRICS_SIZE];
    static bool is_read;
    struct request request;
    char reason[256], wanted[COMMAND_SIZE - 1] = "metrics";
    for (int i = 0; i < count; i++)
        if (!strcmp(arguments[i], "--check"))
            on_exit(end_as_unknown, &is_read);
    read_request(&request, count, arguments);
    is_read = true;
    if (request.keep)
        snprintf(wanted, sizeof wanted, "keep %s", request.keep);
    enum ask_result how = ask(request.path, request.json ? NULL : wanted, answer, reason);
    if (how != ASK_DONE)
        return report_failure(&request, how, reason);
    if (request.check)
        return check(&request, answer);
    if (request.keep)
        report_span(answer);
    else if (request.textfile)
        write_textfile(request.textfile, answer, true);
    else if (request.prometheus)
        printf(UP "%s", true, answer);
    else if (request.json)
        fputs(answer, stdout);
    else
        print_text(answer);
    return finish_output(stdout) ? EXIT_DONE : EXIT_IO;
}
