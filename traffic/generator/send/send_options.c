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

#define LONG   (1000000 * NS_PER_S)
#define STRUCT struct send_options

static const struct option_row rows[] = {
    HEADING("blocks (of each stream; without an amount: 10 s)"),
    SET("udp", 'u', plan.protocol, PROTOCOL_UDP, "send over UDP"),
    SET("tcp", 0, plan.protocol, PROTOCOL_TCP, "send over TCP (the default)"),
    TEXT_OF("size", 'l', size, "SIZES",
            "bytes of a block, at least 32: 64, a range 64-1472:8, or a list 64,512,1472 taken in "
            "turn [131072, over UDP 1472]"),
    COUNT_OF("count", 'n', plan.count, "N", 1, INT64_MAX, "number of blocks"),
    SIZE_OF("bytes", 0, plan.bytes, "BYTES", 1, INT64_MAX,
            "at least this many bytes, in whole blocks"),
    TIME_OF("time", 't', plan.time_ns, "TIME", 1, LONG, "duration: 10, 1.5s, 200ms, 2m"),
    TEXT_OF("file", 'F', file, "PATH",
            "send this file instead of the pattern; - is standard input"),
    TAKEN("rate", 'b', "RATE", take_rate,
          "bit/s of block bytes, or blocks/s: 10k, 1.9M, 1G, 100pps [no limit]"),
    FLAG("poisson", 0, is_poisson, "gaps of a Poisson process instead of equal ones"),
    COUNT_OF("burst", 0, plan.burst, "N", 1, 1000000, "send N blocks at once, then wait N gaps"),
    TEXT_OF("pattern", 0, pattern, "PATH", "over UDP, sizes and gaps: lines of SIZE and GAP"),
    TEXT_OF("turns", 0, turns, "PATH",
            "over TCP, requests and responses: lines of REQUEST, GAP, RESPONSE and SERVER"),
    SET("draw", 0, plan.draws_lines, 1, "draw these lines at random; --run is the seed"),
    COUNT_OF("burst-cap", 0, plan.burst_cap, "N", 1, 1000000,
             "after a delay send at most N blocks at once, and move the rest back [no limit]"),
    SET("no-real-time", 0, plan.no_real_time, 1,
        "keep the usual priority although a rate is given and real-time priority is permitted"),
    SET("kernel-pacing", 0, plan.kernel_pacing, 1,
        "over UDP, the kernel sends each block when it is due (SO_TXTIME; needs fq at the "
        "interface)"),
    SET("write-each", 0, plan.write_each, 1, "over TCP, one write for each block, as ttcp does"),
    COUNT_OF("streams", 'P', plan.streams, "N", 1, MAX_STREAMS,
             "number of parallel streams, one thread each [1]"),
    SET("reverse", 'R', plan.direction, DIRECTION_REVERSE, "the receiver sends"),
    SET("both", 0, plan.direction, DIRECTION_BOTH, "both ends send at the same time"),
    TIME_OF("start-offset", 0, plan.start_offset_ns, "TIME", 0, LONG,
            "wait this long before the first block"),
    TIME_OF("stagger", 0, plan.stagger_ns, "TIME", 0, LONG,
            "start each stream this long after the one before"),
    COUNT_OF("run", 0, plan.run, "N", 1, UINT32_MAX, "number of the test in its blocks [random]"),
    SET("no-check", 0, plan.unchecked, 1, "do not verify the pattern at the receiver"),
    SET("authenticate", 0, plan.authentic, 1,
        "over UDP, end each block in a code of the --key; the receiver ignores others"),
    SET("offload", 0, plan.offload, OFFLOAD_ALWAYS,
        "over UDP, give the kernel joined datagrams also if captures then show them joined [only "
        "if it segments them before the interface]"),
    SET("no-offload", 0, plan.offload, OFFLOAD_NEVER, "give the kernel each datagram by itself"),
    HEADING("sockets"),
    PORT_OF("port", 'p', port, "port of the receiver [5010]"),
    SET("ipv4", '4', family, AF_INET, "use IPv4 only"),
    SET("ipv6", '6', family, AF_INET6, "use IPv6 only"),
    TEXT_OF("bind", 'B', local.bind, "ADDRESS", "local address"),
    TEXT_OF("device", 0, local.device, "IF", "use this interface only (SO_BINDTODEVICE)"),
    TAKEN_AT("data-ports", 0, local, "A-B", local_plan_take_ports,
             "local UDP ports that receive with --reverse or --both"),
    TAKEN("dscp", 0, "N", take_dscp, "differentiated services: 0 to 63, or ef, af41, cs1"),
    COUNT_OF("ttl", 0, plan.socket.ttl, "N", 1, 255, "time to live, hop limit"),
    WORD_OF("df", 0, plan.socket.path_mtu, "do|dont|want|probe", path_mtu_names,
            "don't fragment and path MTU discovery (IP_MTU_DISCOVER)"),
    SIZE_OF("buffer", 'w', plan.socket.buffer, "BYTES", 1, 1 << 30, "socket buffers at both ends"),
    SET("no-delay", 'N', plan.socket.no_delay, 1, "TCP_NODELAY"),
    TAKEN("congestion", 'C', "NAME", take_congestion, "congestion control: cubic, reno, bbr"),
    SIZE_OF("mss", 'M', plan.socket.mss, "BYTES", 88, 32767, "TCP_MAXSEG"),
    TAKEN("fq-rate", 0, "RATE", take_fq_rate,
          "over TCP, let the kernel send at most at this rate, evenly (SO_MAX_PACING_RATE)"),
    HEADING("receiver"),
    TIME_OF("wait", 0, wait_ns, "TIME", 0, LONG,
            "keep retrying for this long until the receiver accepts [0]"),
    TIME_OF("connect-timeout", 0, connect_ns, "TIME", 1, 3600 * NS_PER_S,
            "give up one attempt to connect to an address after this time [5]"),
    TIME_OF("idle", 0, plan.idle_ns, "TIME", NS_PER_MS, LONG, "silence that ends a test [1]"),
    TEXT_OF("key", 0, key, "FILE", "file with the receiver's key"),
    SET("stop-receiver", 'x', plan.stop_receiver, 1,
        "end the receiver after the test, which must permit it (receive --let-stop)"),
    HEADING("output"),
    FLAG("json", 'J', exchange.style.json, "print one JSON object, on one line"),
    TIME_OF("interval", 'i', exchange.interval_ns, "TIME", 10 * NS_PER_MS, LONG,
            "print a line every TIME while the test runs"),
    TAKEN_AT("format", 'f', exchange.style.format, "k|K|m|M|g|G", rate_letter_take,
             "unit of rates as in ttcp: lower case bits, upper case bytes"),
    FLAG("quiet", 'q', exchange.style.quiet, "print nothing but errors"),
    HELP_AND_VERSION,
};

static const struct command_line command = {
    .description = "Send numbered blocks over TCP or UDP to `@ receive`, and\n"
                   "report the figures of both ends.\n",
    .usage = "@ send HOST [options]\n",
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .arguments = "  HOST                  name or address of the receiver's host\n",
    .examples = "  # TCP for 10 s\n"
                "  @ send 192.0.2.7\n"
                "  # 10,000 datagrams at 10 Mbit/s, for a script\n"
                "  @ send 192.0.2.7 --udp --size 1472 --count 10000 \\\n"
                "      --rate 10M --json\n"
                "  # a file, once the receiver is there\n"
                "  @ send server --wait 30 --file data.bin --key ~/wiretale.key\n"
                "  # where blocks were lost, also by a capture between both hosts\n"
                "  @ send 192.0.2.7 --udp --rate 10M --json > send.json\n"
                "  wiretale compare tracer.pcapng --sender-log send.json\n",
    .exit_codes = "  0    done\n"
                  "  2    wrong usage\n"
                  "  3    the test was cut short, or a file did not arrive\n"
                  "  4    no receiver, or it refused; a file or the output failed\n"
                  "  5    a permission or resource is missing\n"
                  "  130  interrupted (143 by SIGTERM)\n",
};

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
