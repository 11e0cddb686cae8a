/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files: accepted and refused lines, and the times at which packets leave. */
#include "common/test/scratch.h"
#include "test/link_trial.h"

static char path[SCRATCH_SIZE];

static void write_trace(const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

static bool is_read(const char *text) {
    struct rate_trace trace;
    char problem[256];
    write_trace(text);
    const char *wrong = rate_trace_read(&trace, path, problem, sizeof problem);
    rate_trace_free(&trace);
    return !wrong;
}

static void check_refused(void) {
    static const char *const wrong[] = {
        "",         "0\n",
        "0\n0\n",   "5\n4\n",
        "-1\n",     "x\n",
        "1.5\n",    "99999999999\n",
        "1\n\n2\n", "11111111111111111111111111111111111111111111111111111111111111111111111111\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!is_read(wrong[i]));
    CHECK(is_read("0\n1\n1\n5\n"));
    CHECK(is_read("7"));
    CHECK(is_read("7\r\n"));
}

static void check_repeats(void) {
    struct rate_trace trace;
    char problem[256];
    write_trace("2\n5\n5\n10\n");
    CHECK(!rate_trace_read(&trace, path, problem, sizeof problem));
    CHECK_INT(rate_trace_time_ns(&trace, 4), 12 * MS);
    CHECK_INT(rate_trace_time_ns(&trace, 7), 20 * MS);
    for (int64_t ms = 0; ms < 100; ms++) {
        uint64_t found = rate_trace_find(&trace, ms * MS);
        CHECK(rate_trace_time_ns(&trace, found) >= ms * MS);
        CHECK(!found || rate_trace_time_ns(&trace, found - 1) < ms * MS);
    }
    rate_trace_free(&trace);
}

static struct trial *trial_by_trace(const char *text) {
    char settings[128];
    write_trace(text);
    snprintf(settings, sizeof settings, "trace=%s queue=1000", path);
    return trial_new(settings, 1);
}

static void check_opportunities(void) {
    struct trial *trial = trial_by_trace("10\n20\n20\n30\n");
    for (unsigned i = 0; i < 6; i++)
        trial_send(trial, 1000 * MS, 1500); /* the trace begins with the first packet */
    trial_run(trial, 5000 * MS);
    static const int64_t expected[] = {1010, 1020, 1020, 1030, 1040, 1050};
    for (unsigned i = 0; i < 6; i++)
        CHECK_INT(trial->left_ns[i], expected[i] * MS);
    trial_free(trial);
}

static void check_small_packets_share(void) {
    struct trial *trial = trial_by_trace("10\n");
    for (unsigned i = 0; i < 6; i++)
        trial_send(trial, 1000 * MS, 500);
    trial_run(trial, 5000 * MS);
    for (unsigned i = 0; i < 6; i++)
        CHECK_INT(trial->left_ns[i], (i < 3 ? 1010 : 1020) * MS);
    trial_free(trial);
}

static void check_unused_opportunities_are_gone(void) {
    struct trial *trial = trial_by_trace("1\n");
    trial_send(trial, 1000 * MS, 1500);
    trial_send(trial, 1500 * MS, 1500);
    trial_send(trial, 1500 * MS, 1500);
    trial_run(trial, 5000 * MS);
    CHECK_INT(trial->left_ns[0], 1001 * MS);
    CHECK_INT(trial->left_ns[1], 1500 * MS);
    CHECK_INT(trial->left_ns[2], 1501 * MS);
    trial_free(trial);
}

static void check_mean_rate(void) {
    struct trial *trial = trial_by_trace("3\n7\n12\n"); /* three packets in 12 ms: 3 Mb/s */
    for (int64_t i = 0; i < 900; i++)
        trial_send(trial, 1000 * MS, 1500);
    trial_run(trial, 50000 * MS);
    CHECK_INT(trial->left_ns[899], 1000 * MS + 3600 * MS);
    trial_free(trial);
}

int main(void) {
    scratch_path(path, "trace");
    check_refused();
    check_repeats();
    check_opportunities();
    check_small_packets_share();
    check_unused_opportunities_are_gone();
    check_mean_rate();
    return 0;
}
