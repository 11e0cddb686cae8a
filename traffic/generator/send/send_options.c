/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `send`, as a plan. One table lists them with their bounds (common/options.h). The
 * functions behind it refuse options that contradict each other, so that the message names options
 * and not members of the plan; the plan as a whole is checked by transfer_plan_complete(). */
#include "send/send_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/options.h"
#include "common/units.h"
#include "report/report.h"

/* A rate is in bits or in blocks per second; the last one that is given counts. Bounds keep the
 * gaps representable: from 1 bit/s or a block in 1,000 s to below 10 Tbit/s or 10^10 blocks/s. */
static bool take_rate(void *into, const char *value, const char **expected) {
    struct transfer_plan *plan = &((struct send_options *)into)->plan;
    *expected = "a rate as in 10k, 1.9M, 1G or 100pps";
    plan->rate_pps = 0;
    if (!units_parse_decimal(value, UNIT_RATE, &plan->rate_bps)) {
        plan->rate_bps = 0;
        if (!units_parse_decimal(value, UNIT_PACKET_RATE, &plan->rate_pps))
            return false;
    }
    return (plan->rate_bps >= 1 || plan->rate_pps >= 1e-3) && plan->rate_bps < 1e13 &&
           plan->rate_pps < 1e10;
}

static bool take_fq_rate(void *into, const char *value, const char **expected) {
    double *to = &((struct send_options *)into)->plan.socket.fq_rate_bps;
    *expected = "bits per second from 100k on, as in 50M or 1.5G";
    return units_parse_decimal(value, UNIT_RATE, to) && *to >= FQ_RATE_LEAST && *to < FQ_RATE_LIMIT;
}

struct code_point {
    const char *name;
    unsigned value;
};

/* RFC 2474, 2597, 3246, 5865, 8622. */
static const struct code_point code_points[] = {
    {"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},  {"cs4", 32},  {"cs5", 40},
    {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18},
    {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30}, {"af41", 34},
    {"af42", 36}, {"af43", 38}, {"ef", 46},   {"va", 44},   {"le", 1},
};

/* A number, or the name of a code point. Stored plus 1, because 0 means that the option was not
 * given. */
static bool take_dscp(void *into, const char *value, const char **expected) {
    uint64_t *to = &((struct send_options *)into)->plan.socket.dscp_plus_1, number;
    *expected = "0 to 63, or a name as in ef, af41, cs1";
    for (size_t i = 0; i < sizeof code_points / sizeof *code_points; i++)
        if (!strcasecmp(value, code_points[i].name)) {
            *to = code_points[i].value + 1;
            return true;
        }
    if (!units_parse_whole(value, UNIT_COUNT, "", &number) || number > 63)
        return false;
    *to = number + 1;
    return true;
}

/* Checks the length only: the kernel knows the algorithms, and refuses an unknown one when a data
 * socket is made. */
static bool take_congestion(void *into, const char *value, const char **expected) {
    struct socket_plan *plan = &((struct send_options *)into)->plan.socket;
    *expected = "a name of at most 15 characters";
    return *value && snprintf(plan->congestion, sizeof plan->congestion, "%s", value) <
                         (int)sizeof plan->congestion;
}

#define LONG (1000000 * NS_PER_S)

/* Its rows name the functions, words and members above. */
#include "send/option_table.h"

static const char *find_pacing_contradiction(const struct send_options *options) {
    const struct transfer_plan *plan = &options->plan;
    bool has_rate = plan->rate_bps > 0 || plan->rate_pps > 0;
    if (!has_rate && (options->is_poisson || plan->burst))
        return "--poisson and --burst: expected a --rate as well";
    if (!has_rate && !options->pattern && plan->burst_cap)
        return "--burst-cap: expected a --rate or a --pattern as well";
    if (options->is_poisson && plan->burst)
        return "--poisson and --burst: expected only one of them";
    if (plan->burst_cap && plan->burst_cap < plan->burst)
        return "--burst-cap: expected at least the N of --burst";
    return NULL;
}

static const char *find_kernel_contradiction(const struct send_options *options) {
    const struct transfer_plan *plan = &options->plan;
    bool udp = plan->protocol == PROTOCOL_UDP;
    bool is_paced = plan->rate_bps > 0 || plan->rate_pps > 0 || options->pattern;
    if (plan->socket.fq_rate_bps > 0 && udp)
        return "--fq-rate: expected no --udp; --kernel-pacing lets the kernel pace datagrams";
    if (plan->kernel_pacing && (!udp || !is_paced || plan->offload == OFFLOAD_ALWAYS))
        return "--kernel-pacing: expected --udp and a --rate or a --pattern as well, and no "
               "--offload";
    return NULL;
}

static const char *find_pattern_contradiction(const struct send_options *options) {
    const struct transfer_plan *plan = &options->plan;
    if (!options->pattern && !options->turns)
        return plan->draws_lines ? "--draw: expected a --pattern or --turns as well" : NULL;
    if (options->pattern && (options->turns || plan->protocol != PROTOCOL_UDP))
        return "--pattern: expected --udp as well, and no --turns";
    if (options->turns && plan->protocol == PROTOCOL_UDP)
        return "--turns: expected no --udp";
    if (options->size || options->file || plan->rate_bps > 0 || plan->rate_pps > 0)
        return "--pattern and --turns: expected no --size, --rate or --file";
    return NULL;
}

static const char *find_protocol_contradiction(const struct send_options *options) {
    const struct transfer_plan *plan = &options->plan;
    if (plan->write_each && plan->protocol == PROTOCOL_UDP)
        return "--write-each: expected no --udp, because a datagram is a write anyway";
    if (plan->authentic && (plan->protocol != PROTOCOL_UDP || options->pattern || !options->key))
        return "--authenticate: expected --udp and --key as well, and no --pattern";
    return NULL;
}

/* Returns NULL, or the contradiction between options. Bounds of single options are in their rows;
 * both ends check the plan as a whole in transfer_plan_complete(). */
static const char *find_contradiction(const struct send_options *options) {
    const struct transfer_plan *plan = &options->plan;
    const char *error = find_pacing_contradiction(options);
    if (!error)
        error = find_kernel_contradiction(options);
    if (!error)
        error = find_pattern_contradiction(options);
    if (!error)
        error = find_protocol_contradiction(options);
    if (error)
        return error;
    if (options->size && strlen(options->size) >= sizeof plan->sizes_text)
        return "--size: expected at most 1000 characters";
    if (!plan->content)
        return NULL;
    if (plan->count || plan->bytes || plan->time_ns)
        return "--file: expected no --count, --bytes or --time, because the whole file is sent";
    if (plan->streams != 1)
        return "--file: expected one stream, so --streams 1";
    if (plan->direction != DIRECTION_FORWARD)
        return "--file: expected no --reverse or --both, because a file goes forward";
    return NULL;
}

static enum pacing choose_pacing(const struct send_options *options) {
    const struct transfer_plan *plan = &options->plan;
    if (plan->rate_bps <= 0 && plan->rate_pps <= 0)
        return PACING_NONE;
    if (options->is_poisson)
        return PACING_POISSON;
    return plan->burst ? PACING_BURST : PACING_CONSTANT;
}

/* Without an amount a stream sends for 10 s, because a plan must have an end. */
void send_options_read(struct send_options *options, int argc, char **argv) {
    struct transfer_plan *plan = &options->plan;
    *options = (struct send_options){.port = DEFAULT_PORT,
                                     .connect_ns = 5 * NS_PER_S,
                                     .plan = {.streams = 1, .idle_ns = NS_PER_S},
                                     .family = AF_UNSPEC,
                                     .exchange.style = {.role = "send", .out = stdout}};
    if (!options_read(&command, options, argc, argv, &options->host, 1))
        fail(EXIT_USAGE, "expected a HOST; see `%s --help`", program_name());
    plan->content = options->file != NULL;
    const char *error = find_contradiction(options);
    if (error)
        fail(EXIT_USAGE, "%s", error);
    if (options->turns) { /* a request's last segment must not wait for an ACK */
        options->pattern = options->turns;
        plan->turns = plan->socket.no_delay = 1;
    }
    plan->pacing = choose_pacing(options);
    if (!plan->count && !plan->bytes && !plan->time_ns && !plan->content && !options->pattern)
        plan->time_ns = 10 * NS_PER_S;
    if (options->size)
        strcpy(plan->sizes_text, options->size);
    plan->interval_ns = options->exchange.interval_ns;
    options->exchange.style.host = options->host;
}
