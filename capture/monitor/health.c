/* SPDX-License-Identifier: Apache-2.0 */
/* Each condition adds its sentence. The worst one decides, and stands first. */
#include "monitor/health.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/units_text.h"
#include "monitor/samples.h"

#define LABEL_SIZE     256
#define CRITICAL_SHARE 10 /* of the time until the disk is full: below, it is critical */
#define SECONDS(ns)    ((double)(ns) / NS_PER_S)
#define TIME_TEXT(s)   UNITS_SHOW(SHOWN_DURATION, (s)*NS_PER_S)
#define COUNT_TEXT(n)  UNITS_SHOW(SHOWN_COUNT, n)

static __attribute__((format(printf, 3, 4))) void add(struct verdict *verdict, enum health health,
                                                      const char *format, ...) {
    char text[512], before[sizeof verdict->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool is_worst = health > verdict->health;
    strcpy(before, verdict->text);
    const char *separator = *before ? "; " : "";
    snprintf(verdict->text, sizeof verdict->text, "%.1000s%s%.1000s", is_worst ? text : before,
             separator, is_worst ? before : text);
    if (is_worst)
        verdict->health = health;
}

void health_state(const char *metrics, char *text, size_t size) {
    struct sample sample;
    *text = '\0';
    while (samples_next(&metrics, "state", &sample))
        if (sample.value == 1)
            samples_label(&sample, "state", text, size);
}

static void judge_state(const char *metrics, struct verdict *verdict) {
    char state[LABEL_SIZE];
    health_state(metrics, state, sizeof state);
    if (!strcmp(state, "dropping"))
        add(verdict, HEALTH_CRITICAL, "the disk takes no packets, and the memory is full");
    else if (!strcmp(state, "holding"))
        add(verdict, HEALTH_WARNING, "the disk takes no packets, which wait in memory");
    else if (!strcmp(state, "waiting"))
        add(verdict, HEALTH_CRITICAL, "no interface is there to read");
    else if (!strcmp(state, "stopping") || !strcmp(state, "ended"))
        add(verdict, HEALTH_WARNING, "the capture is ending");
    else if (!*state)
        add(verdict, HEALTH_UNKNOWN, "the capture does not tell its state");
}

static void judge_interfaces(const char *metrics, struct verdict *verdict) {
    struct sample sample;
    char name[LABEL_SIZE];
    for (const char *at = metrics; samples_next(&at, "interface_up", &sample);)
        if (sample.value == 0 && samples_label(&sample, "interface", name, sizeof name))
            add(verdict, HEALTH_WARNING, "%s is not there", name);
    for (const char *at = metrics; samples_next(&at, "interface_carrier", &sample);)
        if (sample.value == 0 && samples_label(&sample, "interface", name, sizeof name))
            add(verdict, HEALTH_WARNING, "%s has no carrier", name);
    if (samples_sum(metrics, "mirror_good") == 0)
        add(verdict, HEALTH_WARNING, "the mirror port does not deliver all, as the log says");
}

static void judge_loss(const char *metrics, const struct health_limits *limits, double now,
                       struct verdict *verdict) {
    double ago = now - samples_sum(metrics, "last_loss_timestamp_seconds");
    if (ago <= SECONDS(limits->loss_ns))
        add(verdict, HEALTH_CRITICAL, "packets were lost %s ago, %s in all",
            TIME_TEXT(fmax(ago, 0)), COUNT_TEXT(samples_sum(metrics, "dropped_packets_total")));
}

static void judge_disk(const char *metrics, const struct health_limits *limits,
                       struct verdict *verdict) {
    double left = samples_sum(metrics, "disk_full_seconds"), least = SECONDS(limits->disk_ns);
    double lag = samples_sum(metrics, "lag_seconds");
    if (lag > SECONDS(limits->lag_ns))
        add(verdict, HEALTH_WARNING, "packets wait %s to be written", TIME_TEXT(lag));
    if (left < least)
        add(verdict, left * CRITICAL_SHARE < least ? HEALTH_CRITICAL : HEALTH_WARNING,
            "the disk will be full in %s", TIME_TEXT(left));
}

static void judge_files(const char *metrics, struct verdict *verdict) {
    double unfinished = samples_sum(metrics, "finishing_given_up_total");
    double given_up = samples_sum(metrics, "commands_given_up_total");
    double early = samples_sum(metrics, "commands_removed_early_total");
    if (unfinished > 0)
        add(verdict, HEALTH_WARNING, "%s files could not be compressed, indexed or named",
            COUNT_TEXT(unfinished));
    if (samples_sum(metrics, "commands_failing") > 0)
        add(verdict, HEALTH_WARNING, "the on-close command fails, %s files wait",
            COUNT_TEXT(samples_sum(metrics, "commands_waiting")));
    if (given_up > 0)
        add(verdict, HEALTH_WARNING, "the on-close command was given up for %s files",
            COUNT_TEXT(given_up));
    if (early > 0)
        add(verdict, HEALTH_WARNING, "%s files were removed before their on-close command",
            COUNT_TEXT(early));
}

/* An interface without any packet is silent since the start. */
static void judge_silence(const char *metrics, const struct health_limits *limits, double now,
                          struct verdict *verdict) {
    struct sample interface, packet;
    char name[LABEL_SIZE];
    double started = samples_sum(metrics, "start_timestamp_seconds");
    for (const char *at = metrics; samples_next(&at, "interface_up", &interface);) {
        double last = started;
        for (const char *in = metrics; samples_next(&in, "last_packet_timestamp_seconds", &packet);)
            if (!strcmp(packet.labels, interface.labels))
                last = packet.value;
        if (now - last > SECONDS(limits->silence_ns) &&
            samples_label(&interface, "interface", name, sizeof name))
            add(verdict, HEALTH_CRITICAL, "no packet on %s for %s", name, TIME_TEXT(now - last));
    }
}

void health_judge(const char *metrics, const struct health_limits *limits,
                  struct verdict *verdict) {
    double now = SECONDS(realtime_ns());
    *verdict = (struct verdict){.health = HEALTH_OK};
    judge_state(metrics, verdict);
    judge_interfaces(metrics, verdict);
    judge_loss(metrics, limits, now, verdict);
    judge_disk(metrics, limits, verdict);
    judge_files(metrics, verdict);
    if (limits->silence_ns)
        judge_silence(metrics, limits, now, verdict);
}

void health_counts(const char *metrics, char *text, size_t size) {
    double received = samples_sum(metrics, "received_packets_total");
    double lost = samples_sum(metrics, "dropped_packets_total");
    snprintf(text, size, "%s packets received, %s written; %s lost", COUNT_TEXT(received),
             COUNT_TEXT(samples_sum(metrics, "written_packets_total")),
             lost > 0 ? COUNT_TEXT(lost) : "none");
}

void health_put(const char *metrics, const struct health_limits *limits,
                const struct verdict *verdict) {
    static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    char counts[512];
    double left = samples_sum(metrics, "disk_full_seconds");
    health_counts(metrics, counts, sizeof counts);
    printf("CAPTURE %s - %s | received=%.0fc lost=%.0fc lag=%.3fs;%g", words[verdict->health],
           *verdict->text ? verdict->text : counts, samples_sum(metrics, "received_packets_total"),
           samples_sum(metrics, "dropped_packets_total"), samples_sum(metrics, "lag_seconds"),
           SECONDS(limits->lag_ns));
    if (isfinite(left))
        printf(" disk_full=%.0fs;%g:;%g:", left, SECONDS(limits->disk_ns),
               SECONDS(limits->disk_ns) / CRITICAL_SHARE);
    putchar('\n');
}
