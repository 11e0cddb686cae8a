/* SPDX-License-Identifier: Apache-2.0 */
#include "link_options.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../option_names.h"
#include "link_units.h"
#include "truth_file.h"

/* "@" stands for the program's name. */
static const char help[] =
    "Joins two interfaces by an emulated link that loses, delays, reorders or\n"
    "corrupts packets, and records the fate of each. Prints `linking` on stderr once\n"
    "it does; SIGINT and SIGTERM end it, and a summary goes to stdout.\n"
    "\n"
    "usage: @ INTERFACE INTERFACE [options]\n"
    "       @ --print-truth FILE\n"
    "\n"
    "arguments:\n"
    "  INTERFACE             one of two in this network namespace\n"
    "\n"
    "options:\n"
    "  --forward SPEC        packets from the first interface to the second\n"
    "  --reverse SPEC        packets from the second to the first\n"
    "  --both SPEC           packets in both directions\n"
    "  --seed N              random seed; the same seed gives packet n the same fate\n"
    "                        [1]\n"
    "  --truth FILE          write the fate of each packet\n"
    "  --overwrite           replace an existing capture file by it [refuse to]\n"
    "  --print-truth FILE    print such a file as CSV; - is standard input\n"
    "  --address A           the link's own address in ICMP messages, once for each\n"
    "                        family [192.0.0.8 and 100:0:0:1::1]\n"
    "  --spin TIME           busy-wait if the next packet is due within TIME [0]\n"
    "  --priority N          real-time priority, if allowed; 0 is none [10]\n"
    "  --json                print the summary as one JSON object\n"
    "  -V, --version         print the version\n"
    "  -h, --help            show this help\n"
    "\n"
    "settings of a direction (SPEC is one or more, separated by blanks):\n"
    "  rate=2Mbit            bits a second\n"
    "  overhead=BYTES        bytes that the link adds to an IP packet [0]; Ethernet\n"
    "                        adds 38\n"
    "  trace=FILE            a rate that changes: each line is a millisecond in which\n"
    "                        1500 bytes may leave (the format of mahimahi)\n"
    "  delay=10ms            jitter=2ms, distribution=uniform|normal|exponential,\n"
    "                        jitter-reorders=yes\n"
    "  queue=20, queue=64KiB\n"
    "                        room, with the packet being sent [1000 packets]\n"
    "  discipline=tail|red|codel\n"
    "                        red-min, red-max, red-probability, red-weight; target,\n"
    "                        interval\n"
    "  loss=1%               random loss\n"
    "  gilbert=1%,25%        loss in bursts: to bad, to good[, loss while bad[, loss\n"
    "                        while good]]\n"
    "  periodic=N            lose every Nth packet\n"
    "  drop=17,90-95         lose these packets\n"
    "  loss-span=2s-3s:50%   lose a share of the packets in this time\n"
    "  outage=2s-3s          lose all packets in this time\n"
    "  stall=2s-3s           send nothing in this time; the queue fills\n"
    "  reorder=1%            hold packets back until distance=3 others have left, or\n"
    "                        for reorder-wait=50ms\n"
    "  duplicate=1%          send packets twice\n"
    "  corrupt=0.1%          flip bits=1 in packets\n"
    "  mtu=1400              answer larger IP packets by ICMP; with black-hole=yes,\n"
    "                        drop them\n"
    "\n"
    "examples:\n"
    "  # a slow link in both directions, with its log\n"
    "  @ left right --both 'rate=2Mbit delay=10ms queue=20' \\\n"
    "      --truth run.truth\n"
    "  # exactly these packets are lost, and answers are late\n"
    "  @ left right --forward 'drop=17,90-95' \\\n"
    "      --reverse 'delay=50ms jitter=5ms'\n"
    "  # the log as CSV\n"
    "  @ --print-truth run.truth > truth.csv\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  2  wrong usage\n"
    "  4  no such interface, or a file or the output failed\n"
    "  5  a permission or resource is missing\n";

enum option_letter {
    FORWARD = 256,
    REVERSE,
    BOTH,
    SEED,
    TRUTH,
    OVERWRITE,
    PRINT,
    ADDRESS,
    SPIN,
    PRIORITY,
    JSON
};

static const struct option long_options[] = {
    {"forward", required_argument, NULL, FORWARD},
    {"reverse", required_argument, NULL, REVERSE},
    {"both", required_argument, NULL, BOTH},
    {"seed", required_argument, NULL, SEED},
    {"truth", required_argument, NULL, TRUTH},
    {"overwrite", no_argument, NULL, OVERWRITE},
    {"print-truth", required_argument, NULL, PRINT},
    {"address", required_argument, NULL, ADDRESS},
    {"spin", required_argument, NULL, SPIN},
    {"priority", required_argument, NULL, PRIORITY},
    {"json", no_argument, NULL, JSON},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void parse_spec(struct link_spec *spec, char *text, const char *option) {
    char problem[256];
    const char *wrong = link_spec_parse(spec, text, problem, sizeof problem);
    if (wrong)
        errx(2, "%s: %s; see --help", option, wrong);
}

/* Each direction needs a text of its own: parsing cuts it up. */
static void parse_both(struct link_options *options, char *text) {
    char *again = strdup(text); /* referred to until the end */
    if (!again)
        errx(5, "out of memory for the options");
    parse_spec(&options->specs[0], text, "--both");
    parse_spec(&options->specs[1], again, "--both");
}

static void parse_address(struct link_addresses *addresses, const char *text) {
    if (inet_pton(AF_INET, text, addresses->ip4) != 1 &&
        inet_pton(AF_INET6, text, addresses->ip6) != 1)
        errx(2, "--address %s: expected an IPv4 or IPv6 address", text);
}

static void parse_number_option(const char *text, uint64_t most, uint64_t *number,
                                const char *option) {
    if (!parse_count(text, 0, most, number))
        errx(2, "%s %s: expected a whole number up to %llu", option, text,
             (unsigned long long)most);
}

static void parse_spin(const char *text, int64_t *ns) {
    if (!parse_duration(text, ns))
        errx(2, "--spin %s: expected a time, as 50us", text);
}

/* argv[0] is "wiretale link" when wiretale started it. */
static void print_help(void) {
    for (const char *at = help; *at; at++)
        if (*at == '@')
            fputs(program_invocation_short_name, stdout);
        else
            putchar(*at);
}

static _Noreturn void exit_written(void) {
    if (fflush(stdout) && errno != EPIPE)
        err(4, "cannot write to standard output");
    exit(0);
}

static void take_option(struct link_options *options, int letter, char *value, const char *given) {
    switch (letter) {
    case FORWARD: parse_spec(&options->specs[0], value, "--forward"); break;
    case REVERSE: parse_spec(&options->specs[1], value, "--reverse"); break;
    case BOTH: parse_both(options, value); break;
    case SEED: parse_number_option(value, UINT64_MAX, &options->seed, "--seed"); break;
    case TRUTH: options->truth_path = value; break;
    case OVERWRITE: options->overwrite = true; break;
    case PRINT: options->print_path = value; break;
    case ADDRESS: parse_address(&options->addresses, value); break;
    case SPIN: parse_spin(value, &options->spin_ns); break;
    case PRIORITY: parse_number_option(value, 99, &options->priority, "--priority"); break;
    case JSON: options->json = true; break;
    case 'V': puts("wiretale-link " WIRETALE_VERSION); exit_written();
    case 'h': print_help(); exit_written();
    case ':': errx(2, "%s: expected a value; see --help", given);
    default: errx(2, "%s: no such option, or its value is not expected; see --help", given);
    }
}

/* getopt_long() would take the beginning of a name for the name. */
static void check_names(int count, char **arguments) {
    const char *near, *wrong = option_not_exact(count, arguments, long_options, &near);
    if (wrong && near)
        errx(2, "%s: no such option: did you mean --%s?", wrong, near);
    if (wrong)
        errx(2, "%s: no such option; see --help", wrong);
}

static void check_truth(const struct link_options *options) {
    const char *path = options->truth_path;
    const char *const inputs[] = {options->specs[0].trace_path, options->specs[1].trace_path};
    if (!strcmp(path, "-"))
        errx(2, "--truth -: expected a file, since the summary goes to standard output");
    const char *problem = truth_file_problem(path, inputs, 2, options->overwrite);
    if (problem)
        errx(2, "--truth %s: %s", path, problem);
}

void link_options_parse(struct link_options *options, int count, char **arguments) {
    *options = (struct link_options){.seed = 1, .priority = 10};
    link_spec_init(&options->specs[0]);
    link_spec_init(&options->specs[1]);
    parse_address(&options->addresses, "192.0.0.8"); /* RFC 7600: for ICMP of who has no address */
    parse_address(&options->addresses, "100:0:0:1::1"); /* RFC 9780 */
    check_names(count, arguments);
    opterr = 0;
    for (int letter; (letter = getopt_long(count, arguments, ":hV", long_options, NULL)) != -1;)
        take_option(options, letter, optarg, arguments[optind - 1]);
    if (options->truth_path)
        check_truth(options);
    if (options->print_path && optind == count)
        return;
    if (options->print_path || count - optind != 2)
        errx(2, "expected two interfaces, or --print-truth FILE alone; see --help");
    options->interfaces[0] = arguments[optind];
    options->interfaces[1] = arguments[optind + 1];
    if (!strcmp(options->interfaces[0], options->interfaces[1]))
        errx(2, "%s: expected two different interfaces", options->interfaces[0]);
}
