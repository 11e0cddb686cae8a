/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/send.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_SET, .name = "udp", .letter = 'u', .offset = offsetof(struct send_options, plan.protocol), .max = PROTOCOL_UDP},
    {.kind = OPTION_SET, .name = "tcp", .offset = offsetof(struct send_options, plan.protocol), .max = PROTOCOL_TCP},
    {.kind = OPTION_TEXT, .name = "size", .letter = 'l', .offset = offsetof(struct send_options, size)},
    {.kind = OPTION_COUNT, .name = "count", .letter = 'n', .offset = offsetof(struct send_options, plan.count), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_SIZE, .name = "bytes", .offset = offsetof(struct send_options, plan.bytes), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TIME, .name = "time", .letter = 't', .offset = offsetof(struct send_options, plan.time_ns), .min = 1, .max = LONG},
    {.kind = OPTION_TEXT, .name = "file", .letter = 'F', .offset = offsetof(struct send_options, file)},
    {.kind = OPTION_CUSTOM, .name = "rate", .letter = 'b', .argument = "RATE", .take = take_rate},
    {.kind = OPTION_FLAG, .name = "poisson", .offset = offsetof(struct send_options, is_poisson)},
    {.kind = OPTION_COUNT, .name = "burst", .offset = offsetof(struct send_options, plan.burst), .min = 1, .max = 1000000},
    {.kind = OPTION_TEXT, .name = "pattern", .offset = offsetof(struct send_options, pattern)},
    {.kind = OPTION_TEXT, .name = "turns", .offset = offsetof(struct send_options, turns)},
    {.kind = OPTION_SET, .name = "draw", .offset = offsetof(struct send_options, plan.draws_lines), .max = 1},
    {.kind = OPTION_COUNT, .name = "burst-cap", .offset = offsetof(struct send_options, plan.burst_cap), .min = 1, .max = 1000000},
    {.kind = OPTION_SET, .name = "no-real-time", .offset = offsetof(struct send_options, plan.no_real_time), .max = 1},
    {.kind = OPTION_SET, .name = "kernel-pacing", .offset = offsetof(struct send_options, plan.kernel_pacing), .max = 1},
    {.kind = OPTION_SET, .name = "write-each", .offset = offsetof(struct send_options, plan.write_each), .max = 1},
    {.kind = OPTION_COUNT, .name = "streams", .letter = 'P', .offset = offsetof(struct send_options, plan.streams), .min = 1, .max = MAX_STREAMS},
    {.kind = OPTION_SET, .name = "reverse", .letter = 'R', .offset = offsetof(struct send_options, plan.direction), .max = DIRECTION_REVERSE},
    {.kind = OPTION_SET, .name = "both", .offset = offsetof(struct send_options, plan.direction), .max = DIRECTION_BOTH},
    {.kind = OPTION_TIME, .name = "start-offset", .offset = offsetof(struct send_options, plan.start_offset_ns), .max = LONG},
    {.kind = OPTION_TIME, .name = "stagger", .offset = offsetof(struct send_options, plan.stagger_ns), .max = LONG},
    {.kind = OPTION_COUNT, .name = "run", .offset = offsetof(struct send_options, plan.run), .min = 1, .max = UINT32_MAX},
    {.kind = OPTION_SET, .name = "no-check", .offset = offsetof(struct send_options, plan.unchecked), .max = 1},
    {.kind = OPTION_SET, .name = "authenticate", .offset = offsetof(struct send_options, plan.authentic), .max = 1},
    {.kind = OPTION_SET, .name = "offload", .offset = offsetof(struct send_options, plan.offload), .max = OFFLOAD_ALWAYS},
    {.kind = OPTION_SET, .name = "no-offload", .offset = offsetof(struct send_options, plan.offload), .max = OFFLOAD_NEVER},
    {.kind = OPTION_PORT, .name = "port", .letter = 'p', .offset = offsetof(struct send_options, port), .min = 1, .max = 65535},
    {.kind = OPTION_SET, .name = "ipv4", .letter = '4', .offset = offsetof(struct send_options, family), .max = AF_INET},
    {.kind = OPTION_SET, .name = "ipv6", .letter = '6', .offset = offsetof(struct send_options, family), .max = AF_INET6},
    {.kind = OPTION_TEXT, .name = "bind", .letter = 'B', .offset = offsetof(struct send_options, local.bind)},
    {.kind = OPTION_TEXT, .name = "device", .offset = offsetof(struct send_options, local.device)},
    {.kind = OPTION_CUSTOM, .name = "data-ports", .offset = offsetof(struct send_options, local), .argument = "A-B", .take = local_plan_take_ports},
    {.kind = OPTION_CUSTOM, .name = "dscp", .argument = "N", .take = take_dscp},
    {.kind = OPTION_COUNT, .name = "ttl", .offset = offsetof(struct send_options, plan.socket.ttl), .min = 1, .max = 255},
    {.kind = OPTION_WORD, .name = "df", .offset = offsetof(struct send_options, plan.socket.path_mtu), .argument = "do|dont|want|probe", .words = path_mtu_names},
    {.kind = OPTION_SIZE, .name = "buffer", .letter = 'w', .offset = offsetof(struct send_options, plan.socket.buffer), .min = 1, .max = 1 << 30},
    {.kind = OPTION_SET, .name = "no-delay", .letter = 'N', .offset = offsetof(struct send_options, plan.socket.no_delay), .max = 1},
    {.kind = OPTION_CUSTOM, .name = "congestion", .letter = 'C', .argument = "NAME", .take = take_congestion},
    {.kind = OPTION_SIZE, .name = "mss", .letter = 'M', .offset = offsetof(struct send_options, plan.socket.mss), .min = 88, .max = 32767},
    {.kind = OPTION_CUSTOM, .name = "fq-rate", .argument = "RATE", .take = take_fq_rate},
    {.kind = OPTION_TIME, .name = "wait", .offset = offsetof(struct send_options, wait_ns), .max = LONG},
    {.kind = OPTION_TIME, .name = "connect-timeout", .offset = offsetof(struct send_options, connect_ns), .min = 1, .max = 3600 * NS_PER_S},
    {.kind = OPTION_TIME, .name = "idle", .offset = offsetof(struct send_options, plan.idle_ns), .min = NS_PER_MS, .max = LONG},
    {.kind = OPTION_TEXT, .name = "key", .offset = offsetof(struct send_options, key)},
    {.kind = OPTION_SET, .name = "stop-receiver", .letter = 'x', .offset = offsetof(struct send_options, plan.stop_receiver), .max = 1},
    {.kind = OPTION_FLAG, .name = "json", .letter = 'J', .offset = offsetof(struct send_options, exchange.style.json)},
    {.kind = OPTION_TIME, .name = "interval", .letter = 'i', .offset = offsetof(struct send_options, exchange.interval_ns), .min = 10 * NS_PER_MS, .max = LONG},
    {.kind = OPTION_CUSTOM, .name = "format", .letter = 'f', .offset = offsetof(struct send_options, exchange.style.format), .argument = "k|K|m|M|g|G", .take = rate_letter_take},
    {.kind = OPTION_FLAG, .name = "quiet", .letter = 'q', .offset = offsetof(struct send_options, exchange.style.quiet)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Send numbered blocks over TCP or UDP to `@ receive`, and report\n"
        "the figures of both ends.\n"
        "\n"
        "usage: @ send HOST [options]\n"
        "\n"
        "arguments:\n"
        "  HOST                  name or address of the receiver's host\n"
        "\n"
        "blocks (of each stream; without an amount: 10 s):\n"
        "  -u, --udp             send over UDP\n"
        "  --tcp                 send over TCP (the default)\n"
        "  -l, --size SIZES      bytes of a block, at least 32: 64, a range 64-1472:8, or\n"
        "                        a list 64,512,1472 taken in turn (default: 131072, over\n"
        "                        UDP 1472)\n"
        "  -n, --count N         number of blocks\n"
        "  --bytes BYTES         at least this many bytes, in whole blocks\n"
        "  -t, --time TIME       duration: 10, 1.5s, 200ms, 2m\n"
        "  -F, --file PATH       send this file instead of the pattern; - is standard\n"
        "                        input\n"
        "  -b, --rate RATE       bit/s of block bytes, or blocks/s: 10k, 1.9M, 1G, 100pps\n"
        "                        (default: no limit)\n"
        "  --poisson             gaps of a Poisson process instead of equal ones\n"
        "  --burst N             send N blocks at once, then wait N gaps\n"
        "  --pattern PATH        over UDP, sizes and gaps: lines of SIZE and GAP\n"
        "  --turns PATH          over TCP, requests and responses: lines of REQUEST, GAP,\n"
        "                        RESPONSE and SERVER\n"
        "  --draw                draw these lines at random; --run is the seed\n"
        "  --burst-cap N         after a delay send at most N blocks at once, and move\n"
        "                        the rest back (default: no limit)\n"
        "  --no-real-time        keep the usual priority although a rate is given and\n"
        "                        real-time priority is permitted\n"
        "  --kernel-pacing       over UDP, the kernel sends each block when it is due\n"
        "                        (SO_TXTIME; needs fq at the interface)\n"
        "  --write-each          over TCP, one write for each block, as ttcp does\n"
        "  -P, --streams N       number of parallel streams, one thread each (default: 1)\n"
        "  -R, --reverse         the receiver sends\n"
        "  --both                both ends send at the same time\n"
        "  --start-offset TIME   wait this long before the first block\n"
        "  --stagger TIME        start each stream this long after the one before\n"
        "  --run N               number of the test in its blocks (default: random)\n"
        "  --no-check            do not verify the pattern at the receiver\n"
        "  --authenticate        over UDP, end each block in a code of the --key; the\n"
        "                        receiver ignores others\n"
        "  --offload             over UDP, give the kernel joined datagrams also if\n"
        "                        captures then show them joined (default: only if it\n"
        "                        segments them before the interface)\n"
        "  --no-offload          give the kernel each datagram by itself\n"
        "\n"
        "sockets:\n"
        "  -p, --port PORT       port of the receiver (default: 5010)\n"
        "  -4, --ipv4            use IPv4 only\n"
        "  -6, --ipv6            use IPv6 only\n"
        "  -B, --bind ADDRESS    local address\n"
        "  --device IF           use this interface only (SO_BINDTODEVICE)\n"
        "  --data-ports A-B      local UDP ports that receive with --reverse or --both\n"
        "  --dscp N              differentiated services: 0 to 63, or ef, af41, cs1\n"
        "  --ttl N               time to live, hop limit\n"
        "  --df do|dont|want|probe\n"
        "                        don't fragment and path MTU discovery (IP_MTU_DISCOVER)\n"
        "  -w, --buffer BYTES    socket buffers at both ends\n"
        "  -N, --no-delay        TCP_NODELAY\n"
        "  -C, --congestion NAME\n"
        "                        congestion control: cubic, reno, bbr\n"
        "  -M, --mss BYTES       TCP_MAXSEG\n"
        "  --fq-rate RATE        over TCP, let the kernel send at most at this rate,\n"
        "                        evenly (SO_MAX_PACING_RATE)\n"
        "\n"
        "receiver:\n"
        "  --wait TIME           keep retrying for this long until the receiver accepts\n"
        "                        (default: try once)\n"
        "  --connect-timeout TIME\n"
        "                        give up one attempt to connect to an address after this\n"
        "                        time (default: 5s)\n"
        "  --idle TIME           silence that ends a test (default: 1s)\n"
        "  --key FILE            file with the receiver's key\n"
        "  -x, --stop-receiver   end the receiver after the test, which must permit it\n"
        "                        (receive --let-stop)\n"
        "\n"
        "output:\n"
        "  -J, --json            print one JSON object, on one line\n"
        "  -i, --interval TIME   print a line every TIME while the test runs\n"
        "  -f, --format k|K|m|M|g|G\n"
        "                        unit of rates as in ttcp: lower case bits, upper case\n"
        "                        bytes\n"
        "  -q, --quiet           print nothing but errors\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "examples:\n"
        "  # TCP for 10 s\n"
        "  @ send 192.0.2.7\n"
        "  # 10,000 datagrams at 10 Mbit/s, for a script\n"
        "  @ send 192.0.2.7 --udp --size 1472 --count 10000 --rate 10M \\\n"
        "      --json\n"
        "  # a file, once the receiver is there\n"
        "  @ send server --wait 30 --file data.bin --key ~/wiretale.key\n"
        "  # where blocks were lost, also by a capture between both hosts\n"
        "  @ send 192.0.2.7 --udp --rate 10M --json > send.json\n"
        "  wiretale compare tracer.pcapng --sender-log send.json\n"
        "\n"
        "exit codes:\n"
        "  0    done\n"
        "  2    wrong usage\n"
        "  3    the test was cut short, or a file did not arrive\n"
        "  4    no receiver, or it refused; a file or the output failed\n"
        "  5    a permission or resource is missing\n"
        "  130  interrupted (143 by SIGTERM)\n",
};
