/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/path.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_PORT, .name = "port", .letter = 'p', .offset = offsetof(struct path_options, port), .min = 1, .max = 65535},
    {.kind = OPTION_COUNT, .name = "hops", .offset = offsetof(struct path_options, hops), .min = 1, .max = MOST_HOPS},
    {.kind = OPTION_COUNT, .name = "probes", .offset = offsetof(struct path_options, probes), .min = 1, .max = MOST_PROBES},
    {.kind = OPTION_TIME, .name = "wait", .offset = offsetof(struct path_options, wait_ns), .min = NS_PER_MS, .max = 60 * NS_PER_S},
    {.kind = OPTION_SET, .letter = '4', .offset = offsetof(struct path_options, family), .max = AF_INET},
    {.kind = OPTION_SET, .letter = '6', .offset = offsetof(struct path_options, family), .max = AF_INET6},
    {.kind = OPTION_FLAG, .name = "json", .offset = offsetof(struct path_options, json)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "List the routers on the way to a host, with their round trips.\n"
        "\n"
        "usage: @ path [options] HOST\n"
        "\n"
        "arguments:\n"
        "  HOST                  name or address\n"
        "\n"
        "options:\n"
        "  -p, --port PORT       UDP port of the probes, which no program should use\n"
        "                        (default: 33434)\n"
        "  --hops N              routers at most (default: 30)\n"
        "  --probes N            probes for each router (default: 3)\n"
        "  --wait TIME           wait for an answer: 1, 500ms (default: 1s)\n"
        "  -4                    IPv4 only\n"
        "  -6                    IPv6 only\n"
        "  --json                print one JSON object\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "examples:\n"
        "  # the way of IPv4 to a name\n"
        "  @ path -4 HOST\n"
        "  # for a program, with one probe each\n"
        "  @ path --json --probes 1 HOST\n"
        "\n"
        "exit codes:\n"
        "  0    done: the host answered\n"
        "  2    wrong usage\n"
        "  3    the host did not answer\n"
        "  4    no such host or no route, or the output failed\n"
        "  130  interrupted (143 by SIGTERM)\n",
};
