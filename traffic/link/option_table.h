/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/link.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_CUSTOM, .name = "forward", .argument = "SPEC", .take = take_forward},
    {.kind = OPTION_CUSTOM, .name = "reverse", .argument = "SPEC", .take = take_reverse},
    {.kind = OPTION_CUSTOM, .name = "both", .argument = "SPEC", .take = take_both},
    {.kind = OPTION_COUNT, .name = "seed", .offset = offsetof(struct link_options, seed)},
    {.kind = OPTION_TEXT, .name = "truth", .offset = offsetof(struct link_options, truth_path)},
    {.kind = OPTION_FLAG, .name = "overwrite", .offset = offsetof(struct link_options, overwrite)},
    {.kind = OPTION_TEXT, .name = "print-truth", .offset = offsetof(struct link_options, print_path)},
    {.kind = OPTION_CUSTOM, .name = "address", .argument = "A", .take = take_address},
    {.kind = OPTION_TIME, .name = "spin", .offset = offsetof(struct link_options, spin_ns), .max = MAX_DURATION_NS},
    {.kind = OPTION_COUNT, .name = "priority", .offset = offsetof(struct link_options, priority), .max = 99},
    {.kind = OPTION_FLAG, .name = "json", .offset = offsetof(struct link_options, json)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Join two interfaces by an emulated link that loses, delays, reorders or corrupts\n"
        "packets, and record the fate of each. It prints `linking` on stderr once it\n"
        "does; SIGINT and SIGTERM end it, and a summary goes to stdout.\n"
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
        "                        (default: 1)\n"
        "  --truth FILE          write the fate of each packet\n"
        "  --overwrite           replace an existing capture file\n"
        "  --print-truth FILE    print such a file as CSV; - is standard input\n"
        "  --address A           the link's own address in ICMP messages, once for each\n"
        "                        family (default: 192.0.0.8 and 100:0:0:1::1)\n"
        "  --spin TIME           busy-wait if the next packet is due within TIME\n"
        "                        (default: 0)\n"
        "  --priority N          real-time priority, if allowed; 0 disables it (default:\n"
        "                        10)\n"
        "  --json                print the summary as one JSON object\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "settings of a direction (SPEC is one or more, separated by blanks):\n"
        "  rate=2Mbit            bits a second\n"
        "  overhead=BYTES        bytes that the link adds to an IP packet (default: 0);\n"
        "                        Ethernet adds 38\n"
        "  trace=FILE            a rate that changes: each line is a millisecond in which\n"
        "                        1500 bytes may leave (the format of mahimahi)\n"
        "  delay=10ms            jitter=2ms, distribution=uniform|normal|exponential,\n"
        "                        jitter-reorders=yes\n"
        "  queue=20, queue=64KiB\n"
        "                        room, with the packet being sent (default: 1000 packets)\n"
        "  discipline=tail|red|codel|fq_codel|pie\n"
        "                        red-min, red-max, red-probability, red-weight; target\n"
        "                        (default: codel 5ms, pie 15ms), interval, flows, quantum\n"
        "  ecn=yes               mark packets in place of dropping them, if they permit\n"
        "                        it; not with tail\n"
        "  schedule=0s:rate=9Mbit:delay=20ms:loss=1%,5s:rate=1Mbit\n"
        "                        rate, delay and loss from these times on\n"
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
        "  5  a permission or resource is missing\n",
};
