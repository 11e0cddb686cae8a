/* SPDX-License-Identifier: Apache-2.0 */
#include "send_options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "option_table.h"
#include "port_range.h"
#include "units.h"

static const char *const direction_words[] = {"forward", "reverse", "both", NULL};
static const char *const path_mtu_words[] = {"system", "do", "dont", "want", "probe", NULL};

static bool take_rate(void *into, const char *value, const char **wanted) {
    struct test_plan *plan = &((struct send_options *)into)->plan;
    *wanted = "a rate as in 10k, 1.9M, 1G or 100pps";
    return units_rate(value, &plan->rate_bps, &plan->rate_pps) &&
           (plan->rate_bps >= 1 || plan->rate_pps >= 1e-3) && plan->rate_bps < 1e13 &&
           plan->rate_pps < 1e10;
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

static bool take_dscp(void *into, const char *value, const char **wanted) {
    uint64_t *to = &((struct send_options *)into)->plan.socket.dscp_plus_1, number;
    *wanted = "0 to 63, or a name as in ef, af41, cs1";
    for (size_t i = 0; i < sizeof code_points / sizeof *code_points; i++)
        if (!strcasecmp(value, code_points[i].name)) {
            *to = code_points[i].value + 1;
            return true;
        }
    if (!units_whole(value, &number) || number > 63)
        return false;
    *to = number + 1;
    return true;
}

static bool take_congestion(void *into, const char *value, const char **wanted) {
    struct socket_plan *plan = &((struct send_options *)into)->plan.socket;
    *wanted = "a name of at most 15 characters";
    return *value && snprintf(plan->congestion, sizeof plan->congestion, "%s", value) <
                         (int)sizeof plan->congestion;
}

static bool take_format(void *into, const char *value, const char **wanted) {
    *wanted = UNITS_RATE_LETTERS;
    ((struct send_options *)into)->format = value[0];
    return units_rate_letter(value);
}

static bool take_ports(void *into, const char *value, const char **wanted) {
    return take_port_range(&((struct send_options *)into)->local, value, wanted);
}

#define LONG   (1000000 * NS_PER_S)
#define STRUCT struct send_options

static const struct option_row rows[] = {
    HEADING("What is sent (of each stream; without an amount: 10 s)"),
    SET("udp", 'u', plan.protocol, PROTOCOL_UDP, "UDP; else TCP"),
    SET("tcp", 0, plan.protocol, PROTOCOL_TCP, "TCP (the default)"),
    TEXT_OF(
        "size", 'l', size, "SIZES",
        "bytes of a block, 32 up: 64  64,512,1472  64-1472:8; lists go round [131072, UDP: 1472]"),
    NUMBER_OF("count", 'n', plan.count, "N", 1, INT64_MAX, "so many blocks"),
    NUMBER_OF("bytes", 0, plan.bytes, "BYTES", 1, INT64_MAX,
              "at least so many bytes, in whole blocks"),
    TIME_OF("time", 't', plan.time_ns, "TIME", 1, LONG, "for so long: 10, 1.5s, 200ms, 2m"),
    TEXT_OF("file", 'F', file, "PATH", "a real file in place of the pattern; -: standard input"),
    TAKEN("rate", 'b', "RATE", take_rate,
          "bit/s of block bytes, or blocks/s: 10k 1.9M 1G 100pps [no limit]"),
    FLAG("poisson", 0, is_poisson, "gaps of a Poisson process; else all alike"),
    NUMBER_OF("burst", 0, plan.burst, "N", 1, 1000000, "N blocks at once, then a gap for N"),
    NUMBER_OF("streams", 'P', plan.streams, "N", 1, STREAMS_MOST,
              "so many at the same time, a thread each [1]"),
    SET("reverse", 'R', plan.direction, DIRECTION_REVERSE, "the receiver sends"),
    SET("both", 0, plan.direction, DIRECTION_BOTH, "both send at the same time"),
    WORD_OF("direction", 0, plan.direction, "forward|reverse|both", direction_words,
            "the same as a word"),
    TIME_OF("start-offset", 0, plan.start_offset_ns, "TIME", 0, LONG, "before the first block"),
    TIME_OF("stagger", 0, plan.stagger_ns, "TIME", 0, LONG,
            "each stream starts so much after the one before"),
    NUMBER_OF("run", 0, plan.run, "N", 1, UINT32_MAX, "number of the test on the wire [random]"),
    SET("no-check", 0, plan.unchecked, 1, "patterns are not checked"),
    SET("offload", 0, plan.offload, 1,
        "UDP segmentation offload: faster, but a tracer on this host sees joined datagrams"),
    SET("no-offload", 0, plan.offload, 0, "real datagrams (the default)"),
    HEADING("How it is sent"),
    NUMBER_OF("port", 'p', port, "PORT", 1, 65535, "of the receiver [5010]"),
    SET("ipv4", '4', family, AF_INET, "only IPv4"),
    SET("ipv6", '6', family, AF_INET6, "only IPv6"),
    TEXT_OF("bind", 'B', local.bind, "ADDRESS", "own address"),
    TEXT_OF("device", 0, local.device, "IF", "only through this interface (SO_BINDTODEVICE)"),
    TAKEN("data-ports", 0, "A-B", take_ports,
          "own UDP ports that receive with --reverse or --both"),
    TAKEN("dscp", 0, "N", take_dscp, "differentiated services: 0-63 or ef, af41, cs1 …"),
    NUMBER_OF("ttl", 0, plan.socket.ttl, "N", 1, 255, "time to live, hop limit"),
    WORD_OF("df", 0, plan.socket.path_mtu, "do|dont|want|probe", path_mtu_words,
            "don't fragment and path MTU, as IP_MTU_DISCOVER"),
    NUMBER_OF("buffer", 'w', plan.socket.buffer, "BYTES", 1, 1 << 30,
              "of the sockets at both ends"),
    SET("no-delay", 'N', plan.socket.no_delay, 1, "TCP_NODELAY"),
    TAKEN("congestion", 'C', "NAME", take_congestion, "congestion control: cubic, reno, bbr …"),
    NUMBER_OF("mss", 'M', plan.socket.mss, "BYTES", 88, 32767, "TCP_MAXSEG"),
    HEADING("With the receiver"),
    TIME_OF("wait", 0, wait_ns, "TIME", 0, LONG,
            "try so long until the receiver is there and free [0]"),
    TIME_OF("queue", 0, wait_ns, "TIME", 0, LONG, "the same"),
    TIME_OF("connect-timeout", 0, connect_ns, "TIME", 1, 3600 * NS_PER_S, "of one attempt [5]"),
    TIME_OF("idle", 0, plan.idle_ns, "TIME", NS_PER_MS, LONG, "silence that ends a test [1]"),
    TEXT_OF("key", 0, key, "FILE", "the receiver's key"),
    HEADING("What is shown"),
    FLAG("json", 'J', json, "one JSON object, on one line"),
    TIME_OF("interval", 'i', interval_ns, "TIME", 10 * NS_PER_MS, LONG,
            "a line so often while it runs"),
    TAKEN("format", 'f', "k|K|m|M|g|G", take_format,
          "unit of rates as in ttcp: lower case bits, upper case bytes"),
    FLAG("quiet", 'q', quiet, "no table"),
};
#define ROWS (sizeof rows / sizeof *rows)

static void show_help(void) {
    puts("examples:\n"
         "  wiretale-traffic send 192.0.2.7                              TCP for 10 s\n"
         "  wiretale-traffic send 192.0.2.7 --udp --size 1472 --count 10000 --rate 10M \\\n"
         "      --json\n"
         "  wiretale-traffic send server --wait 30 --file data.bin --key ~/wiretale.key\n"
         "\n"
         "usage: wiretale-traffic send HOST [OPTION …]\n"
         "Sends sequenced blocks to `wiretale-traffic receive` and reports what both ends\n"
         "saw.");
    option_table_help(rows, ROWS);
    puts("\n"
         "Exit codes: 0 done; 2 usage; 3 cut short; 4 no receiver, or it refused; 5 a\n"
         "permission is missing;\n"
         "130 interrupted.");
}

static int wrong(const char *why) {
    fprintf(stderr, "wiretale-traffic: %s\n", why);
    return 2 + 1;
}

static void set_defaults(struct send_options *options) {
    *options = (struct send_options){.port = DEFAULT_PORT,
                                     .connect_ns = 5 * NS_PER_S,
                                     .plan = {.streams = 1, .idle_ns = NS_PER_S},
                                     .family = AF_UNSPEC};
}

/* NULL, or what contradicts itself. */
static const char *contradiction(const struct send_options *options) {
    const struct test_plan *plan = &options->plan;
    bool has_rate = plan->rate_bps > 0 || plan->rate_pps > 0;
    if (!options->host)
        return "send wants a HOST; see --help";
    if ((options->is_poisson || plan->burst) && !has_rate)
        return "--poisson and --burst want a --rate";
    if (options->is_poisson && plan->burst)
        return "--poisson or --burst, not both";
    if (plan->content && (plan->count || plan->bytes || plan->time_ns))
        return "--file sends the whole file: no --count, --bytes or --time";
    if (options->size && strlen(options->size) >= sizeof plan->sizes_text)
        return "--size: more than 1000 characters";
    return NULL;
}

static enum pacing choose_pacing(const struct send_options *options) {
    const struct test_plan *plan = &options->plan;
    if (plan->rate_bps <= 0 && plan->rate_pps <= 0)
        return PACING_NONE;
    if (options->is_poisson)
        return PACING_POISSON;
    return plan->burst ? PACING_BURST : PACING_CONSTANT;
}

static int complete(struct send_options *options) {
    struct test_plan *plan = &options->plan;
    const char *why = contradiction(options);
    if (why)
        return wrong(why);
    plan->pacing = choose_pacing(options);
    if (!plan->count && !plan->bytes && !plan->time_ns && !plan->content)
        plan->time_ns = 10 * NS_PER_S;
    if (options->size)
        strcpy(plan->sizes_text, options->size);
    plan->interval_ns = options->interval_ns;
    return 0;
}

int send_options_read(struct send_options *options, int argc, char **argv) {
    bool help = false;
    set_defaults(options);
    if (!option_table_read(rows, ROWS, options, argc, argv, &options->host, 1, &help))
        return 2 + 1;
    if (help) {
        show_help();
        return 0 + 1;
    }
    options->plan.content = options->file != NULL;
    options->local.family = (int)options->family;
    return complete(options);
}
