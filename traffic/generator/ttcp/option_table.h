/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/ttcp.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_FLAG, .letter = 't', .offset = offsetof(struct ttcp_options, transmit)},
    {.kind = OPTION_FLAG, .letter = 'r', .offset = offsetof(struct ttcp_options, receive)},
    {.kind = OPTION_FLAG, .letter = 'u', .offset = offsetof(struct ttcp_options, udp)},
    {.kind = OPTION_FLAG, .letter = 's', .offset = offsetof(struct ttcp_options, pattern)},
    {.kind = OPTION_CUSTOM, .letter = 'l', .offset = offsetof(struct ttcp_options, length), .argument = "BYTES", .take = take_length},
    {.kind = OPTION_CUSTOM, .letter = 'n', .offset = offsetof(struct ttcp_options, count), .argument = "COUNT", .take = take_count},
    {.kind = OPTION_FLAG, .letter = 'c', .offset = offsetof(struct ttcp_options, continuous)},
    {.kind = OPTION_FLAG, .letter = 'R', .offset = offsetof(struct ttcp_options, concurrent)},
    {.kind = OPTION_PORT, .letter = 'p', .offset = offsetof(struct ttcp_options, port), .min = 1, .max = 65535},
    {.kind = OPTION_SET, .letter = '4', .offset = offsetof(struct ttcp_options, family), .max = AF_INET},
    {.kind = OPTION_SET, .letter = '6', .offset = offsetof(struct ttcp_options, family), .max = AF_INET6},
    {.kind = OPTION_CUSTOM, .letter = 'b', .offset = offsetof(struct ttcp_options, buffer), .argument = "BYTES", .take = take_buffer},
    {.kind = OPTION_FLAG, .letter = 'D', .offset = offsetof(struct ttcp_options, no_delay)},
    {.kind = OPTION_FLAG, .letter = 'd', .offset = offsetof(struct ttcp_options, debug)},
    {.kind = OPTION_CUSTOM, .letter = 'A', .offset = offsetof(struct ttcp_options, align), .argument = "BYTES", .take = take_length},
    {.kind = OPTION_CUSTOM, .letter = 'O', .offset = offsetof(struct ttcp_options, offset), .argument = "BYTES", .take = take_offset},
    {.kind = OPTION_FLAG, .letter = 'B', .offset = offsetof(struct ttcp_options, full_blocks)},
    {.kind = OPTION_FLAG, .letter = 'T', .offset = offsetof(struct ttcp_options, touch)},
    {.kind = OPTION_TIME, .name = "idle", .offset = offsetof(struct ttcp_options, idle_ns), .max = MAX_TIME},
    {.kind = OPTION_TIME, .name = "pause", .offset = offsetof(struct ttcp_options, pause_ns), .max = MAX_TIME},
    {.kind = OPTION_CUSTOM, .letter = 'f', .offset = offsetof(struct ttcp_options, unit), .argument = "UNIT", .take = rate_letter_take},
    {.kind = OPTION_FLAG, .letter = 'v', .offset = offsetof(struct ttcp_options, verbose)},
    {.kind = OPTION_FLAG, .name = "json", .offset = offsetof(struct ttcp_options, json)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Transfer data to or from ttcp, PCATTCP or wiretale; over TCP, any program.\n"
        "\n"
        "usage: @ ttcp -t [options] HOST\n"
        "       @ ttcp -r [options]\n"
        "\n"
        "arguments:\n"
        "  HOST                  the host to transmit to\n"
        "\n"
        "transfer:\n"
        "  -t                    transmit\n"
        "  -r                    receive\n"
        "  -u                    UDP instead of TCP\n"
        "  -s                    send a pattern and drop received data, instead of stdin\n"
        "                        and stdout (default: if stdin is a terminal or\n"
        "                        /dev/null, or stdout a terminal)\n"
        "  -l BYTES              length of each buffer and datagram: 1400, 8k; k is 1024\n"
        "                        as in ttcp (default: 8192)\n"
        "  -n COUNT              number of buffers to send with -s (default: 2048)\n"
        "  -c                    transmit until stopped; receive one transfer after the\n"
        "                        other\n"
        "  -R                    receive from several senders at once until stopped; with\n"
        "                        -s\n"
        "\n"
        "sockets and buffers:\n"
        "  -p PORT               port (default: 5001)\n"
        "  -4                    IPv4 only\n"
        "  -6                    IPv6 only\n"
        "  -b BYTES              size of the socket buffer\n"
        "  -D                    TCP_NODELAY: do not wait for more data to send\n"
        "  -d                    SO_DEBUG\n"
        "  -A BYTES              align buffers to a multiple of this (default: 16384)\n"
        "  -O BYTES              start buffers this far past the alignment (default: 0)\n"
        "  -B                    write blocks of -l bytes to stdout\n"
        "  -T                    read every byte that is received\n"
        "  --idle TIME           silence that ends receiving: 5, 1.5s, 200ms (default:\n"
        "                        UDP 5s, TCP never)\n"
        "  --pause TIME          wait before the marks that end a transfer over UDP\n"
        "                        (default: 0.25s)\n"
        "\n"
        "output:\n"
        "  -f UNIT               rates in k, m, g bits or K, M, G bytes, of 1024 as in\n"
        "                        ttcp (default: K)\n"
        "  -v                    print more figures\n"
        "  --json                print one JSON object per transfer\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "examples:\n"
        "  # receive 1 transfer over TCP at port 5001\n"
        "  @ ttcp -r -s\n"
        "  # send it 4096 buffers of 8192 bytes\n"
        "  @ ttcp -t -s -n 4096 host\n"
        "  # receive over UDP until stopped\n"
        "  @ ttcp -r -s -u -c --json\n"
        "  # a pipe over the network\n"
        "  tar c . | @ ttcp -t host\n"
        "\n"
        "exit codes:\n"
        "  0    done\n"
        "  2    wrong usage\n"
        "  3    cut short\n"
        "  4    no connection, or the output failed\n"
        "  5    not permitted\n"
        "  130  interrupted (143 by SIGTERM)\n",
};
