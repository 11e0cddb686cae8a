/* SPDX-License-Identifier: Apache-2.0 */
#include "link_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "link_units.h"

void link_spec_init(struct link_spec *spec) {
    *spec = (struct link_spec){
        .queue_packets = 1000,
        .red_probability = 0.1, /* Floyd, "RED: Discussions of setting parameters", 1997 */
        .red_weight = 0.002,
        .codel_target_ns = 5000000, /* RFC 8289, 4.2 and 4.3 */
        .codel_interval_ns = 100000000,
        .gilbert_loss_bad = 1,
        .reorder_distance = 1,
        .reorder_wait_ns = 50000000,
        .corrupt_bits = 1,
    };
}

static bool take_rate(struct link_spec *spec, char *text) {
    return parse_rate(text, &spec->rate_bps);
}

static bool take_trace(struct link_spec *spec, char *text) {
    spec->trace_path = text;
    return *text;
}

static bool take_overhead(struct link_spec *spec, char *text) {
    bool is_negative = *text == '-';
    uint64_t bytes;
    if (!units_parse_whole(text + is_negative, UNIT_SIZE, "", &bytes) ||
        bytes > (is_negative ? 20 : 1000))
        return false;
    spec->overhead = is_negative ? -(int64_t)bytes : (int64_t)bytes;
    return true;
}

static bool take_delay(struct link_spec *spec, char *text) {
    return parse_duration(text, &spec->delay_ns);
}

static bool take_jitter(struct link_spec *spec, char *text) {
    return parse_duration(text, &spec->jitter_ns);
}

/* The place of a word in a list that ends with NULL, or -1. */
static int word_number(const char *const *words, const char *text) {
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], text))
            return i;
    return -1;
}

static bool take_distribution(struct link_spec *spec, char *text) {
    static const char *const words[] = {"uniform", "normal", "exponential", NULL};
    int number = word_number(words, text);
    spec->distribution = (enum jitter_distribution)number;
    return number >= 0;
}

static bool take_yes(char *text, bool *yes) {
    static const char *const words[] = {"no", "yes", NULL};
    int number = word_number(words, text);
    *yes = number == 1;
    return number >= 0;
}

static bool take_jitter_reorders(struct link_spec *spec, char *text) {
    return take_yes(text, &spec->jitter_reorders);
}

static bool take_queue(struct link_spec *spec, char *text) {
    return parse_queue(text, &spec->queue_packets, &spec->queue_bytes);
}

static bool take_discipline(struct link_spec *spec, char *text) {
    static const char *const words[] = {"tail", "red", "codel", NULL};
    int number = word_number(words, text);
    spec->discipline = (enum queue_discipline)number;
    return number >= 0;
}

static bool take_red_min(struct link_spec *spec, char *text) {
    return parse_number(text, 0.001, 1e12, &spec->red_min);
}

static bool take_red_max(struct link_spec *spec, char *text) {
    return parse_number(text, 0.001, 1e12, &spec->red_max);
}

static bool take_red_probability(struct link_spec *spec, char *text) {
    return parse_share(text, &spec->red_probability) && spec->red_probability > 0;
}

static bool take_red_weight(struct link_spec *spec, char *text) {
    return parse_number(text, 1e-9, 1, &spec->red_weight);
}

static bool take_codel_target(struct link_spec *spec, char *text) {
    return parse_duration(text, &spec->codel_target_ns) && spec->codel_target_ns > 0;
}

static bool take_codel_interval(struct link_spec *spec, char *text) {
    return parse_duration(text, &spec->codel_interval_ns) && spec->codel_interval_ns > 0;
}

static bool take_loss(struct link_spec *spec, char *text) {
    return parse_share(text, &spec->loss);
}

/* Chance to turn bad, chance to turn good again, loss while bad (1), loss while good (0). */
static bool take_gilbert(struct link_spec *spec, char *text) {
    double *const places[] = {&spec->gilbert_to_bad, &spec->gilbert_to_good,
                              &spec->gilbert_loss_bad, &spec->gilbert_loss_good};
    size_t count = 0;
    for (char *part; (part = strsep(&text, ",")); count++)
        if (count == sizeof places / sizeof *places || !parse_share(part, places[count]))
            return false;
    return count >= 2;
}

static bool take_periodic(struct link_spec *spec, char *text) {
    return parse_count(text, 2, UINT64_MAX, &spec->periodic);
}

static bool take_listed(struct link_spec *spec, char *text) {
    return parse_ranges(text, &spec->listed, &spec->listed_count);
}

static bool take_lost_spans(struct link_spec *spec, char *text) {
    return parse_spans(text, &spec->lost_spans);
}

static bool take_outages(struct link_spec *spec, char *text) {
    return parse_spans(text, &spec->outages);
}

static bool take_stalls(struct link_spec *spec, char *text) {
    return parse_spans(text, &spec->stalls);
}

static bool take_reorder(struct link_spec *spec, char *text) {
    return parse_share(text, &spec->reorder);
}

static bool take_distance(struct link_spec *spec, char *text) {
    return parse_count(text, 1, 10000, &spec->reorder_distance);
}

static bool take_reorder_wait(struct link_spec *spec, char *text) {
    return parse_duration(text, &spec->reorder_wait_ns);
}

static bool take_duplicate(struct link_spec *spec, char *text) {
    return parse_share(text, &spec->duplicate);
}

static bool take_corrupt(struct link_spec *spec, char *text) {
    return parse_share(text, &spec->corrupt);
}

static bool take_bits(struct link_spec *spec, char *text) {
    return parse_count(text, 1, BITS_MOST, &spec->corrupt_bits);
}

static bool take_mtu(struct link_spec *spec, char *text) {
    return units_parse_whole(text, UNIT_SIZE, "", &spec->mtu) && spec->mtu >= 68 &&
           spec->mtu <= 65535; /* RFC 791, 3.2 */
}

static bool take_black_hole(struct link_spec *spec, char *text) {
    return take_yes(text, &spec->black_hole);
}

static const struct setting {
    const char *name;
    bool (*take)(struct link_spec *spec, char *text);
    const char *expected;
} settings[] = {
    {"rate", take_rate, "bits a second, as 2Mbit, up to 1000Gbit"},
    {"trace", take_trace, "a file with a millisecond on each line"},
    {"overhead", take_overhead, "whole bytes, -20 to 1000"},
    {"delay", take_delay, "a time, as 10ms"},
    {"jitter", take_jitter, "a time, as 2ms"},
    {"distribution", take_distribution, "uniform, normal or exponential"},
    {"jitter-reorders", take_jitter_reorders, "yes or no"},
    {"queue", take_queue, "packets, as 20, or bytes, as 64KiB"},
    {"discipline", take_discipline, "tail, red or codel"},
    {"red-min", take_red_min, "a number above 0, in the unit of the queue"},
    {"red-max", take_red_max, "a number above 0, in the unit of the queue"},
    {"red-probability", take_red_probability, "a share, as 10%"},
    {"red-weight", take_red_weight, "a number above 0, up to 1"},
    {"target", take_codel_target, "a time, as 5ms"},
    {"interval", take_codel_interval, "a time, as 100ms"},
    {"loss", take_loss, "a share, as 1%"},
    {"gilbert", take_gilbert,
     "shares: to bad, to good[, loss while bad[, loss while good]], as 1%,25%"},
    {"periodic", take_periodic, "a whole number from 2: every so-manieth is lost"},
    {"drop", take_listed, "ascending packet numbers from 1, as 17,90-95"},
    {"loss-span", take_lost_spans, "times since the first packet, as 2s-2.5s or 2s-3s:50%"},
    {"outage", take_outages, "times since the first packet, as 2s-2.5s"},
    {"stall", take_stalls, "times since the first packet, as 2s-2.5s"},
    {"reorder", take_reorder, "a share, as 1%"},
    {"distance", take_distance, "packets that overtake, 1 to 10000"},
    {"reorder-wait", take_reorder_wait, "a time, as 50ms"},
    {"duplicate", take_duplicate, "a share, as 1%"},
    {"corrupt", take_corrupt, "a share, as 0.1%"},
    {"bits", take_bits, "bits flipped in a corrupted packet, 1 to 64"},
    {"mtu", take_mtu, "bytes of an IP packet, 68 to 65535"},
    {"black-hole", take_black_hole, "yes or no"},
};

static const struct setting *find_setting(const char *name) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].name, name))
            return &settings[i];
    return NULL;
}

static const char *check_together(const struct link_spec *spec) {
    if (spec->trace_path && spec->rate_bps > 0)
        return "rate and trace exclude each other";
    if (spec->red_min > 0 && spec->red_max > 0 && spec->red_min >= spec->red_max)
        return "red-min must be below red-max";
    if (spec->gilbert_to_bad > 0 && spec->gilbert_to_good <= 0)
        return "gilbert: the chance to turn good again must be above 0";
    return NULL;
}

const char *link_spec_parse(struct link_spec *spec, char *text, char *problem,
                            size_t problem_bytes) {
    for (char *part; (part = strsep(&text, " \t\n"));) {
        if (!*part)
            continue;
        char *value = strchr(part, '=');
        if (value)
            *value++ = 0;
        const struct setting *setting = find_setting(part);
        if (!setting) {
            snprintf(problem, problem_bytes, "%.40s: no such setting of a link", part);
            return problem;
        }
        char shown[41];
        snprintf(shown, sizeof shown, "%s", value ? value : ""); /* parsing cuts the value up */
        if (!value || !setting->take(spec, value)) {
            snprintf(problem, problem_bytes, "%s=%s: expected %s", setting->name, shown,
                     setting->expected);
            return problem;
        }
    }
    return check_together(spec);
}

void link_spec_free(struct link_spec *spec) {
    free(spec->listed);
    spec->listed = NULL;
}
