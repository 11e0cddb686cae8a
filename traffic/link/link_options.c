/* SPDX-License-Identifier: Apache-2.0 */
#include "link_options.h"

#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link_units.h"

static const char help[] =
    "examples:\n"
    "  wiretale-link left right --both 'rate=2Mbit delay=10ms queue=20' --truth run.truth\n"
    "  wiretale-link left right --forward 'drop=17,90-95' --reverse 'delay=50ms jitter=5ms'\n"
    "  wiretale-link --print-truth run.truth > truth.csv\n"
    "\n"
    "Joins two interfaces and does to their packets what it is told, each direction on its own. "
    "Says `linking` on\n"
    "stderr once it does; SIGINT and SIGTERM end it, and a summary goes to stdout.\n"
    "\n"
    "options:\n"
    "  --forward SPEC       packets from the first interface to the second\n"
    "  --reverse SPEC       packets back\n"
    "  --both SPEC          both\n"
    "  --seed N             of all chance (default 1): the same seed, the same fate of packet n\n"
    "  --truth FILE         write what was done to each packet\n"
    "  --print-truth FILE   print such a file as CSV; - for standard input\n"
    "  --address A          of the link itself, for ICMP (default 192.0.0.8 and 100:0:0:1::1); "
    "once for each family\n"
    "  --spin TIME          do not sleep when the next packet is due within (default 0)\n"
    "  --priority N         real-time priority, where allowed (default 10; 0: none)\n"
    "  --json               the summary as one JSON object\n"
    "  --version, --help\n"
    "\n"
    "settings of a direction:\n"
    "  rate=2Mbit overhead=BYTES        of the IP packet and what the link adds to it (default 0; "
    "Ethernet: 38)\n"
    "  trace=FILE                       a rate that changes: one line of milliseconds for each "
    "1500 bytes (mahimahi)\n"
    "  delay=10ms jitter=2ms distribution=uniform|normal|exponential jitter-reorders=yes\n"
    "  queue=20 | queue=64KiB           with the packet being sent (default 1000)\n"
    "  discipline=tail|red|codel        red-min= red-max= red-probability= red-weight=; target= "
    "interval=\n"
    "  loss=1% gilbert=1%,25%[,100%[,0%]] periodic=N drop=17,90-95 loss-span=2s-3s[:50%]\n"
    "  outage=2s-3s stall=2s-3s         what comes is lost; nothing leaves and the queue fills\n"
    "  reorder=1% distance=3 reorder-wait=50ms\n"
    "  duplicate=1% corrupt=0.1% bits=1\n"
    "  mtu=1400 black-hole=yes          larger IP packets are answered by ICMP, or not\n";

enum option_letter {
    FORWARD = 256,
    REVERSE,
    BOTH,
    SEED,
    TRUTH,
    PRINT,
    ADDRESS,
    SPIN,
    PRIORITY,
    JSON,
    VERSION,
    HELP
};

static const struct option long_options[] = {
    {"forward", required_argument, NULL, FORWARD},
    {"reverse", required_argument, NULL, REVERSE},
    {"both", required_argument, NULL, BOTH},
    {"seed", required_argument, NULL, SEED},
    {"truth", required_argument, NULL, TRUTH},
    {"print-truth", required_argument, NULL, PRINT},
    {"address", required_argument, NULL, ADDRESS},
    {"spin", required_argument, NULL, SPIN},
    {"priority", required_argument, NULL, PRIORITY},
    {"json", no_argument, NULL, JSON},
    {"version", no_argument, NULL, VERSION},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

static void parse_spec(struct link_spec *spec, char *text, const char *option) {
    char problem[256];
    const char *wrong = link_spec_parse(spec, text, problem, sizeof problem);
    if (wrong)
        errx(2, "%s: %s; see `wiretale link --help`", option, wrong);
}

/* Each direction needs a text of its own: parsing cuts it up. */
static void parse_both(struct link_options *options, char *text) {
    char *again = strdup(text); /* referred to until the end */
    if (!again)
        errx(1, "out of memory for the options");
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

static void take_option(struct link_options *options, int letter, char *value) {
    switch (letter) {
    case FORWARD: parse_spec(&options->specs[0], value, "--forward"); break;
    case REVERSE: parse_spec(&options->specs[1], value, "--reverse"); break;
    case BOTH: parse_both(options, value); break;
    case SEED: parse_number_option(value, UINT64_MAX, &options->seed, "--seed"); break;
    case TRUTH: options->truth_path = value; break;
    case PRINT: options->print_path = value; break;
    case ADDRESS: parse_address(&options->addresses, value); break;
    case SPIN:
        if (!parse_duration(value, &options->spin_ns))
            errx(2, "--spin %s: expected a time, as 50us", value);
        break;
    case PRIORITY: parse_number_option(value, 99, &options->priority, "--priority"); break;
    case JSON: options->json = true; break;
    case VERSION: puts("wiretale-link " WIRETALE_VERSION); exit(0);
    case HELP: fputs(help, stdout); exit(0);
    default: exit(2); /* getopt_long() has said what is wrong */
    }
}

void link_options_parse(struct link_options *options, int count, char **arguments) {
    *options = (struct link_options){.seed = 1, .priority = 10};
    link_spec_init(&options->specs[0]);
    link_spec_init(&options->specs[1]);
    parse_address(&options->addresses, "192.0.0.8"); /* RFC 7600: for ICMP of who has no address */
    parse_address(&options->addresses, "100:0:0:1::1"); /* RFC 9780 */
    for (int letter; (letter = getopt_long(count, arguments, "", long_options, NULL)) != -1;)
        take_option(options, letter, optarg);
    if (options->truth_path && !strcmp(options->truth_path, "-"))
        errx(2, "--truth -: expected a file, since the summary goes to standard output");
    if (options->print_path && optind == count)
        return;
    if (options->print_path || count - optind != 2)
        errx(2, "expected two interfaces, or --print-truth FILE alone; see --help");
    options->interfaces[0] = arguments[optind];
    options->interfaces[1] = arguments[optind + 1];
    if (!strcmp(options->interfaces[0], options->interfaces[1]))
        errx(2, "%s: expected two different interfaces", options->interfaces[0]);
}
