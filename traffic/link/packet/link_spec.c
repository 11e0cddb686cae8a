/* SPDX-License-Identifier: Apache-2.0 */
/* Parses settings. A table has the kind, the destination and the bounds of each, and the text that
 * was expected; kinds that a number with a unit cannot express have a function. Numbers are spelled
 * as everywhere (common/units.h).
 *
 * Each value has bounds that keep sums of times and sizes within 64 bits. If a setting is given
 * twice, the last one counts. An error names the setting, the value and the expected form. */
#include "packet/link_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"

#define MAX_QUEUE_PACKETS UINT64_C(100000000)
#define MAX_QUEUE_BYTES   UINT64_C(1000000000000)

enum setting_kind { KIND_DECIMAL, KIND_WHOLE, KIND_WORD, KIND_SPANS, KIND_CUSTOM };

struct setting {
    const char *name;
    enum setting_kind kind;
    enum unit_kind unit;      /* of a number */
    size_t offset;            /* of the member in struct link_spec */
    double min, max;          /* of a number; a `max` of 0 is no bound */
    const char *const *words; /* of a word, whose number is stored; ends with NULL */
    bool (*take)(struct link_spec *spec, char *text);
    const char *expected;
};

void link_spec_init(struct link_spec *spec) {
    *spec = (struct link_spec){
        .queue_packets = 1000,
        .red_probability = 0.1, /* Floyd, "RED: Discussions of setting parameters", 1997 */
        .red_weight = 0.002,
        .codel_interval_ns = 100000000, /* RFC 8289, 4.2 */
        .fq_flows = 1024,               /* RFC 8290, 5.2 */
        .fq_quantum = 1514,
        .gilbert_loss_bad = 1,
        .reorder_distance = 1,
        .reorder_wait_ns = 50000000,
        .corrupt_bits = 1,
    };
}

static bool parse_time(const char *text, int64_t *ns) {
    uint64_t whole;
    if (!units_parse_whole(text, UNIT_TIME, "", &whole) || whole > MAX_DURATION_NS)
        return false;
    *ns = (int64_t)whole;
    return true;
}

static bool parse_share(const char *text, double *share) {
    return units_parse_decimal(text, UNIT_SHARE, share) && *share <= 1;
}

/* link_direction_init() reads the file, because each direction has a copy of it. */
static bool take_trace(struct link_spec *spec, char *text) {
    spec->trace_path = text;
    return *text;
}

/* Negative if the link compresses headers. */
static bool take_overhead(struct link_spec *spec, char *text) {
    bool is_negative = *text == '-';
    uint64_t bytes;
    if (!units_parse_whole(text + is_negative, UNIT_SIZE, "", &bytes) ||
        bytes > (is_negative ? 20 : 1000))
        return false;
    spec->overhead = is_negative ? -(int64_t)bytes : (int64_t)bytes;
    return true;
}

/* "20" and "20p" are packets, "64KiB" and "30000B" bytes. The other limit is then off. */
static bool take_queue(struct link_spec *spec, char *text) {
    char plain[32];
    size_t length = strlen(text);
    spec->queue_packets = spec->queue_bytes = 0;
    if (length >= sizeof plain)
        return false;
    memcpy(plain, text, length + 1);
    if (length && plain[length - 1] == 'p')
        plain[length - 1] = 0;
    if (units_parse_whole(plain, UNIT_COUNT, "", &spec->queue_packets))
        return spec->queue_packets >= 1 && spec->queue_packets <= MAX_QUEUE_PACKETS;
    spec->queue_packets = 0;
    return units_parse_whole(text, UNIT_SIZE, "", &spec->queue_bytes) && spec->queue_bytes >= 1 &&
           spec->queue_bytes <= MAX_QUEUE_BYTES;
}

/* Two to four shares; the last two default to 1 and 0. */
static bool take_gilbert(struct link_spec *spec, char *text) {
    double *const members[] = {&spec->gilbert_to_bad, &spec->gilbert_to_good,
                               &spec->gilbert_loss_bad, &spec->gilbert_loss_good};
    size_t count = 0;
    for (char *part; (part = strsep(&text, ",")); count++)
        if (count == sizeof members / sizeof *members || !parse_share(part, members[count]))
            return false;
    return count >= 2;
}

static bool parse_range(char *text, struct index_range *range) {
    char *end = strchr(text, '-');
    if (end)
        *end++ = 0;
    if (!units_parse_whole(text, UNIT_COUNT, "", &range->first) || !range->first)
        return false;
    range->last = range->first;
    return !end ||
           (units_parse_whole(end, UNIT_COUNT, "", &range->last) && range->last >= range->first);
}

/* "17,90-95": ascending, because the loss model walks the list once. MAX_RANGES bounds the list. */
static bool take_drop(struct link_spec *spec, char *text) {
    size_t parts = 1;
    for (const char *at = text; *at; at++)
        parts += *at == ',';
    struct index_range *list = parts > MAX_RANGES ? NULL : calloc(parts, sizeof *list);
    if (!list)
        return false;
    uint32_t count = 0;
    for (char *part; (part = strsep(&text, ",")); count++)
        if (!parse_range(part, &list[count]) ||
            (count && list[count].first <= list[count - 1].last)) {
            free(list);
            return false;
        }
    free(spec->listed);
    spec->listed = list;
    spec->listed_count = count;
    return true;
}

/* "2s-3s" or "2s-3s:50%". */
static bool parse_span(char *text, struct time_span *span) {
    span->share = 1;
    char *share = strchr(text, ':'), *end = strchr(text, '-');
    if (share)
        *share++ = 0;
    if (!end)
        return false;
    *end++ = 0;
    if (share && !parse_share(share, &span->share))
        return false;
    return parse_time(text, &span->start_ns) && parse_time(end, &span->end_ns) &&
           span->start_ns < span->end_ns;
}

static bool parse_spans(char *text, struct span_list *list) {
    list->count = 0;
    for (char *part; (part = strsep(&text, ",")); list->count++)
        if (list->count == MAX_SPANS || !parse_span(part, &list->spans[list->count]))
            return false;
    return true;
}

/* One of rate, delay and loss. */
static bool parse_step_setting(char *text, struct schedule_step *step) {
    char *value = strchr(text, '=');
    if (!value)
        return false;
    *value++ = 0;
    if (!strcmp(text, "rate"))
        return units_parse_decimal(value, UNIT_RATE, &step->rate_bps) && step->rate_bps >= 1 &&
               step->rate_bps <= 1e12;
    if (!strcmp(text, "delay"))
        return parse_time(value, &step->delay_ns);
    return !strcmp(text, "loss") && parse_share(value, &step->loss);
}

/* "5s:rate=2Mbit:delay=50ms". Begins with the settings of the step before it. */
static bool parse_step(char *text, struct schedule_step *step) {
    char *at = strsep(&text, ":");
    if (!text || !parse_time(at, &step->at_ns))
        return false;
    for (char *part; (part = strsep(&text, ":"));)
        if (!parse_step_setting(part, step))
            return false;
    return true;
}

static bool take_schedule(struct link_spec *spec, char *text) {
    struct schedule_step *steps = calloc(MAX_STEPS, sizeof *steps);
    struct schedule_step step = {.at_ns = -1, .rate_bps = -1, .delay_ns = -1, .loss = -1};
    uint32_t count = 0;
    bool is_right = steps != NULL;
    for (char *part; is_right && (part = strsep(&text, ","));) {
        int64_t before_ns = step.at_ns;
        is_right = count < MAX_STEPS && parse_step(part, &step) && step.at_ns > before_ns;
        if (is_right)
            steps[count++] = step;
    }
    free(is_right ? spec->steps : steps);
    if (!is_right)
        return false;
    spec->steps = steps;
    spec->steps_count = count;
    return true;
}

static bool parse_word(const char *text, const char *const *words, uint64_t *number) {
    for (*number = 0; words[*number]; ++*number)
        if (!strcmp(words[*number], text))
            return true;
    return false;
}

static const char *const distributions[] = {"uniform", "normal", "exponential", NULL};
static const char *const disciplines[] = {"tail", "red", "codel", "fq_codel", "pie", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};

/* Columns of a row after its name: kind, unit, member, bounds, words, parser. */
#define AT(member)               offsetof(struct link_spec, member)
#define RATE(member)             KIND_DECIMAL, UNIT_RATE, AT(member), 1, 1e12, NULL, NULL
#define SHARE(member, min)       KIND_DECIMAL, UNIT_SHARE, AT(member), min, 1, NULL, NULL
#define NUMBER(member, min, max) KIND_DECIMAL, UNIT_COUNT, AT(member), min, max, NULL, NULL
#define COUNT(member, min, max)  KIND_WHOLE, UNIT_COUNT, AT(member), min, max, NULL, NULL
#define SIZE(member, min, max)   KIND_WHOLE, UNIT_SIZE, AT(member), min, max, NULL, NULL
#define TIME(member, min)        KIND_WHOLE, UNIT_TIME, AT(member), min, MAX_DURATION_NS, NULL, NULL
#define WORD(member, words)      KIND_WORD, 0, AT(member), 0, 0, words, NULL
#define SPANS(member)            KIND_SPANS, 0, AT(member), 0, 0, NULL, NULL
#define CUSTOM(take)             KIND_CUSTOM, 0, 0, 0, 0, NULL, take

static const struct setting settings[] = {
    {"rate", RATE(rate_bps), "bits a second, as 2Mbit, up to 1000Gbit"},
    {"trace", CUSTOM(take_trace), "a file with a millisecond on each line"},
    {"overhead", CUSTOM(take_overhead), "whole bytes, -20 to 1000"},
    {"delay", TIME(delay_ns, 0), "a time, as 10ms"},
    {"jitter", TIME(jitter_ns, 0), "a time, as 2ms"},
    {"distribution", WORD(distribution, distributions), "uniform, normal or exponential"},
    {"jitter-reorders", WORD(jitter_reorders, no_yes), "yes or no"},
    {"queue", CUSTOM(take_queue), "packets, as 20, or bytes, as 64KiB"},
    {"discipline", WORD(discipline, disciplines), "tail, red, codel, fq_codel or pie"},
    {"red-min", NUMBER(red_min, 0.001, 1e12), "a number above 0, in the unit of the queue"},
    {"red-max", NUMBER(red_max, 0.001, 1e12), "a number above 0, in the unit of the queue"},
    {"red-probability", SHARE(red_probability, 1e-300), "a share above 0, as 10%"},
    {"red-weight", NUMBER(red_weight, 1e-9, 1), "a number above 0, up to 1"},
    {"target", TIME(target_ns, 1), "a time, as 5ms"},
    {"interval", TIME(codel_interval_ns, 1), "a time, as 100ms"},
    {"flows", COUNT(fq_flows, 1, 65536), "queues of fq_codel, 1 to 65536"},
    {"quantum", SIZE(fq_quantum, 68, 1000000),
     "bytes that a flow sends in its turn, 68 to 1000000"},
    {"ecn", WORD(ecn, no_yes), "yes or no"},
    {"schedule", CUSTOM(take_schedule),
     "at most 4096 ascending times with settings, as 0s:rate=10Mbit:loss=1%,5s:delay=50ms"},
    {"loss", SHARE(loss, 0), "a share, as 1%"},
    {"gilbert", CUSTOM(take_gilbert),
     "shares: to bad, to good[, loss while bad[, loss while good]], as 1%,25%"},
    {"periodic", COUNT(periodic, 2, 0), "a whole number N from 2: each Nth packet is lost"},
    {"drop", CUSTOM(take_drop), "ascending packet numbers from 1, as 17,90-95"},
    {"loss-span", SPANS(lost_spans), "times since the first packet, as 2s-2.5s or 2s-3s:50%"},
    {"outage", SPANS(outages), "times since the first packet, as 2s-2.5s"},
    {"stall", SPANS(stalls), "times since the first packet, as 2s-2.5s"},
    {"reorder", SHARE(reorder, 0), "a share, as 1%"},
    {"distance", COUNT(reorder_distance, 1, 10000), "packets that overtake, 1 to 10000"},
    {"reorder-wait", TIME(reorder_wait_ns, 0), "a time, as 50ms"},
    {"duplicate", SHARE(duplicate, 0), "a share, as 1%"},
    {"corrupt", SHARE(corrupt, 0), "a share, as 0.1%"},
    {"bits", COUNT(corrupt_bits, 1, MAX_BITS), "bits flipped in a corrupted packet, 1 to 64"},
    {"mtu", SIZE(mtu, 68, 65535), "bytes of an IP packet, 68 to 65535"}, /* RFC 791, 3.2 */
    {"black-hole", WORD(black_hole, no_yes), "yes or no"},
};

static bool take_decimal(const struct setting *setting, double *at, const char *text) {
    return units_parse_decimal(text, setting->unit, at) && *at >= setting->min &&
           *at <= setting->max;
}

/* A `max` of 0 is no bound, as for periodic. */
static bool take_whole(const struct setting *setting, uint64_t *at, const char *text) {
    return units_parse_whole(text, setting->unit, "", at) && *at >= (uint64_t)setting->min &&
           (setting->max == 0 || *at <= (uint64_t)setting->max);
}

/* Parses the value into its member. Returns false if it is not of the kind or outside the bounds.
 */
static bool take(const struct setting *setting, struct link_spec *spec, char *text) {
    void *at = (char *)spec + setting->offset;
    switch (setting->kind) {
    case KIND_DECIMAL: return take_decimal(setting, at, text);
    case KIND_WHOLE: return take_whole(setting, at, text);
    case KIND_WORD: return parse_word(text, setting->words, at);
    case KIND_SPANS: return parse_spans(text, at);
    case KIND_CUSTOM: return setting->take(spec, text);
    }
    return false;
}

static const struct setting *find_setting(const char *name) {
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!strcmp(settings[i].name, name))
            return &settings[i];
    return NULL;
}

/* Returns NULL, or the contradiction between settings. Checked after all settings of an option,
 * because they may come in any order. */
static const char *find_contradiction(const struct link_spec *spec) {
    if (spec->trace_path && spec->rate_bps > 0)
        return "rate and trace exclude each other";
    for (uint32_t i = 0; i < spec->steps_count; i++)
        if (spec->trace_path && spec->steps[i].rate_bps > 0)
            return "a schedule with a rate and trace exclude each other";
    if (spec->red_min > 0 && spec->red_max > 0 && spec->red_min >= spec->red_max)
        return "red-min must be below red-max";
    if (spec->ecn && spec->discipline == QUEUE_TAIL)
        return "ecn=yes: expected discipline=red, codel, fq_codel or pie, because tail drop marks "
               "nothing";
    if (spec->gilbert_to_bad > 0 && spec->gilbert_to_good <= 0)
        return "gilbert: the chance to turn good again must be above 0";
    return NULL;
}

/* Values are cut up in place; `error` gets a copy that was made before. */
const char *link_spec_parse(struct link_spec *spec, char *text, char *error, size_t error_size) {
    for (char *part; (part = strsep(&text, " \t\n"));) {
        if (!*part)
            continue;
        char *value = strchr(part, '=');
        if (value)
            *value++ = 0;
        const struct setting *setting = find_setting(part);
        if (!setting) {
            snprintf(error, error_size, "%.40s: no such setting of a link", part);
            return error;
        }
        char shown[41]; /* a copy, because parsing cuts the value up */
        snprintf(shown, sizeof shown, "%s", value ? value : "");
        if (!value || !take(setting, spec, value)) {
            snprintf(error, error_size, "%s=%s: expected %s", setting->name, shown,
                     setting->expected);
            return error;
        }
    }
    return find_contradiction(spec);
}

const struct schedule_step *link_spec_step(const struct link_spec *spec, int64_t since_ns) {
    uint32_t low = 0, high = spec->steps_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (spec->steps[middle].at_ns <= since_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &spec->steps[low - 1] : NULL;
}

double link_spec_loss(const struct link_spec *spec, int64_t since_ns) {
    const struct schedule_step *step = link_spec_step(spec, since_ns);
    return step && step->loss >= 0 ? step->loss : spec->loss;
}

int64_t link_spec_delay_ns(const struct link_spec *spec, int64_t since_ns) {
    const struct schedule_step *step = link_spec_step(spec, since_ns);
    return step && step->delay_ns >= 0 ? step->delay_ns : spec->delay_ns;
}

double link_spec_rate_bps(const struct link_spec *spec, int64_t since_ns) {
    const struct schedule_step *step = link_spec_step(spec, since_ns);
    return step && step->rate_bps >= 0 ? step->rate_bps : spec->rate_bps;
}

void link_spec_free(struct link_spec *spec) {
    free(spec->steps);
    spec->steps = NULL;
    spec->steps_count = 0;
    free(spec->listed);
    spec->listed = NULL;
}

const struct time_span *span_list_find(const struct span_list *list, int64_t since_ns) {
    for (uint32_t i = 0; i < list->count; i++)
        if (since_ns >= list->spans[i].start_ns && since_ns < list->spans[i].end_ns)
            return &list->spans[i];
    return NULL;
}
