/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/receive.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_PORT, .name = "port", .letter = 'p', .offset = offsetof(struct receive_options, port), .min = 1, .max = 65535},
    {.kind = OPTION_SET, .name = "ipv4", .letter = '4', .offset = offsetof(struct receive_options, family), .max = AF_INET},
    {.kind = OPTION_SET, .name = "ipv6", .letter = '6', .offset = offsetof(struct receive_options, family), .max = AF_INET6},
    {.kind = OPTION_TEXT, .name = "bind", .letter = 'B', .offset = offsetof(struct receive_options, local.bind)},
    {.kind = OPTION_TEXT, .name = "device", .offset = offsetof(struct receive_options, local.device)},
    {.kind = OPTION_CUSTOM, .name = "data-ports", .offset = offsetof(struct receive_options, local), .argument = "A-B", .take = local_plan_take_ports},
    {.kind = OPTION_SIZE, .name = "buffer", .letter = 'w', .offset = offsetof(struct receive_options, buffer), .min = 1, .max = 1 << 30},
    {.kind = OPTION_SET, .name = "once", .letter = '1', .offset = offsetof(struct receive_options, tests), .max = 1},
    {.kind = OPTION_COUNT, .name = "tests", .offset = offsetof(struct receive_options, tests), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TIME, .name = "accept-timeout", .offset = offsetof(struct receive_options, accept_ns), .min = NS_PER_MS, .max = LONG},
    {.kind = OPTION_FLAG, .name = "let-stop", .offset = offsetof(struct receive_options, lets_stop)},
    {.kind = OPTION_COUNT, .name = "parallel", .offset = offsetof(struct receive_options, parallel), .min = 1, .max = 1024},
    {.kind = OPTION_COUNT, .name = "per-address", .offset = offsetof(struct receive_options, per_address), .min = 1, .max = 1024},
    {.kind = OPTION_SIZE, .name = "max-bytes", .offset = offsetof(struct receive_options, exchange.max_bytes), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_CUSTOM, .name = "max-rate", .offset = offsetof(struct receive_options, exchange.max_bps), .argument = "RATE", .take = take_rate},
    {.kind = OPTION_CUSTOM, .name = "min-rate", .offset = offsetof(struct receive_options, exchange.min_bps), .argument = "RATE", .take = take_floor},
    {.kind = OPTION_TIME, .name = "max-time", .offset = offsetof(struct receive_options, exchange.max_ns), .min = NS_PER_MS, .max = LONG},
    {.kind = OPTION_COUNT, .name = "max-streams", .offset = offsetof(struct receive_options, max_streams), .min = 1, .max = MAX_STREAMS},
    {.kind = OPTION_TIME, .name = "idle", .offset = offsetof(struct receive_options, idle_ns), .min = NS_PER_MS, .max = LONG},
    {.kind = OPTION_TEXT, .name = "key", .offset = offsetof(struct receive_options, key)},
    {.kind = OPTION_CUSTOM, .name = "allow", .offset = offsetof(struct receive_options, allowed), .argument = "NETWORK", .take = allowed_networks_take},
    {.kind = OPTION_CUSTOM, .name = "quota", .offset = offsetof(struct receive_options, quota), .argument = "BYTES/TIME", .take = quota_take},
    {.kind = OPTION_TEXT, .name = "output-dir", .letter = 'o', .offset = offsetof(struct receive_options, target.folder)},
    {.kind = OPTION_SIZE, .name = "total-size", .offset = offsetof(struct receive_options, room.most_bytes), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_CUSTOM, .name = "min-free", .offset = offsetof(struct receive_options, room), .argument = "BYTES|PERCENT%", .take = take_min_free},
    {.kind = OPTION_FLAG, .name = "overwrite", .offset = offsetof(struct receive_options, target.overwrite)},
    {.kind = OPTION_FLAG, .name = "stdout", .offset = offsetof(struct receive_options, target.to_stdout)},
    {.kind = OPTION_TEXT, .name = "user", .offset = offsetof(struct receive_options, user)},
    {.kind = OPTION_FLAG, .name = "no-sandbox", .offset = offsetof(struct receive_options, no_sandbox)},
    {.kind = OPTION_FLAG, .name = "json", .letter = 'J', .offset = offsetof(struct receive_options, exchange.style.json)},
    {.kind = OPTION_TIME, .name = "interval", .letter = 'i', .offset = offsetof(struct receive_options, exchange.interval_ns), .min = 10 * NS_PER_MS, .max = LONG},
    {.kind = OPTION_CUSTOM, .name = "format", .letter = 'f', .offset = offsetof(struct receive_options, exchange.style.format), .argument = "k|K|m|M|g|G", .take = rate_letter_take},
    {.kind = OPTION_FLAG, .name = "quiet", .letter = 'q', .offset = offsetof(struct receive_options, exchange.style.quiet)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Run tests for `@ send`: count lost, late and corrupt blocks, and\n"
        "report them to both ends.\n"
        "\n"
        "usage: @ receive [options]\n"
        "\n"
        "sockets:\n"
        "  -p, --port PORT       TCP port of control and data connections (default: 5010)\n"
        "  -4, --ipv4            use IPv4 only\n"
        "  -6, --ipv6            use IPv6 only\n"
        "  -B, --bind ADDRESS    listen at this address only\n"
        "  --device IF           use this interface only (SO_BINDTODEVICE)\n"
        "  --data-ports A-B      UDP ports of data (default: chosen by the system)\n"
        "  -w, --buffer BYTES    socket buffers of data, unless the sender asks for a\n"
        "                        size\n"
        "\n"
        "tests:\n"
        "  -1, --once            run one test, then end\n"
        "  --tests N             run N tests, then end\n"
        "  --accept-timeout TIME\n"
        "                        end if no test is started for TIME while none runs\n"
        "                        (default: keep waiting)\n"
        "  --let-stop            end after the test of a sender that asks for it (send\n"
        "                        --stop-receiver)\n"
        "  --parallel N          tests run at once (default: 1); further senders are\n"
        "                        refused\n"
        "  --per-address N       of them, from one address or IPv6 /64 (default: 1)\n"
        "  --max-bytes BYTES     byte limit per test (default: 1T)\n"
        "  --max-rate RATE       limit of block bytes per test and direction: 10M, 1G\n"
        "                        (default: no limit)\n"
        "  --min-rate RATE       end a test whose blocks are slower for a minute\n"
        "                        (default: 100 bit/s); 0: never\n"
        "  --max-time TIME       time limit per test (default: 10m)\n"
        "  --max-streams N       stream limit per test (default: 128)\n"
        "  --idle TIME           silence that ends a test (default: as the sender asks,\n"
        "                        1s)\n"
        "  --key FILE            accept only senders with the same key file\n"
        "  --allow NETWORK       accept only senders in this network, as in 192.0.2.0/24;\n"
        "                        repeat it for more (default: all)\n"
        "  --quota BYTES/TIME    bytes of blocks that each address may move in a time, as\n"
        "                        in 10G/24h (default: no limit)\n"
        "\n"
        "files:\n"
        "  -o, --output-dir DIR  write received files here (default: only compare\n"
        "                        checksums)\n"
        "  --total-size BYTES    limit of all files in DIR together (default: 10G)\n"
        "  --min-free BYTES|PERCENT%\n"
        "                        space to leave free on the disk of DIR (default: 5%)\n"
        "  --overwrite           replace files that exist in DIR\n"
        "  --stdout              write files to standard output, and reports to standard\n"
        "                        error\n"
        "\n"
        "rights:\n"
        "  --user USER           as root, become this user (default: owner of DIR,\n"
        "                        wiretale or nobody); root: stay root\n"
        "  --no-sandbox          run without seccomp and Landlock\n"
        "\n"
        "output:\n"
        "  -J, --json            print one JSON object per test, on one line\n"
        "  -i, --interval TIME   print a line every TIME while a test runs\n"
        "  -f, --format k|K|m|M|g|G\n"
        "                        unit of rates as in ttcp: lower case bits, upper case\n"
        "                        bytes\n"
        "  -q, --quiet           print nothing but the port and errors\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "examples:\n"
        "  # tests of anyone who reaches the port, until stopped\n"
        "  @ receive\n"
        "  # one test, for a script\n"
        "  @ receive --once --json > test.json\n"
        "  # files from senders with a key\n"
        "  @ receive --key ~/wiretale.key --output-dir incoming \\\n"
        "      --max-bytes 10G\n"
        "\n"
        "exit codes:\n"
        "  0    done\n"
        "  2    wrong usage\n"
        "  3    a test was cut short (--once, --tests), or none began (--accept-timeout)\n"
        "  4    a file or folder cannot be used, or the output failed\n"
        "  5    a permission or the port is missing\n"
        "  130  interrupted\n",
};
