/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/find.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_CUSTOM, .name = "host", .argument = "ADDRESS", .take = add_host},
    {.kind = OPTION_CUSTOM, .name = "port", .argument = "PORT", .take = add_port},
    {.kind = OPTION_CUSTOM, .name = "start", .offset = offsetof(struct query, start_ns), .argument = "TIME", .take = set_time},
    {.kind = OPTION_CUSTOM, .name = "end", .offset = offsetof(struct query, end_ns), .argument = "TIME", .take = set_time},
    {.kind = OPTION_TEXT, .name = "filter", .letter = 'f', .offset = offsetof(struct query, filter)},
    {.kind = OPTION_FLAG, .name = "spans", .offset = offsetof(struct query, spans)},
    {.kind = OPTION_TEXT, .name = "kept", .offset = offsetof(struct query, kept)},
    {.kind = OPTION_TEXT, .name = "release", .offset = offsetof(struct query, release)},
    {.kind = OPTION_TEXT, .name = "output", .letter = 'o', .offset = offsetof(struct query, output)},
    {.kind = OPTION_FLAG, .name = "overwrite", .offset = offsetof(struct query, overwrite)},
    {.kind = OPTION_FLAG, .name = "json", .offset = offsetof(struct query, json)},
    {.kind = OPTION_FLAG, .name = "quiet", .letter = 'q', .offset = offsetof(struct query, quiet)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Find packets in folders of captures, such as the ring of a running capture: an\n"
        "index beside each file says which 64 KiB of it have packets of a host or port,\n"
        "so that one flow out of 1,000 files takes less than a second.\n"
        "\n"
        "usage: @ find FOLDER... [options]\n"
        "\n"
        "arguments:\n"
        "  FOLDER                folders with captures, or single files\n"
        "\n"
        "packets:\n"
        "  --host ADDRESS        packets of this host, or of a net such as 192.0.2.0/24;\n"
        "                        a second one: between both\n"
        "  --port PORT           packets of this port of TCP, UDP, SCTP or DCCP\n"
        "  --start TIME          skip packets before TIME: ISO 8601 (UTC) or epoch\n"
        "                        seconds\n"
        "  --end TIME            skip packets at or after TIME\n"
        "  -f, --filter FILTER   only packets that also match a pcap-filter(7) expression\n"
        "\n"
        "kept spans:\n"
        "  --spans               list the spans that captures keep (--keep-before,\n"
        "                        --keep-after)\n"
        "  --kept SPAN           the packets of a span\n"
        "  --release SPAN        let a span go: its files may be removed\n"
        "\n"
        "output:\n"
        "  -o, --output OUT.pcapng\n"
        "                        write the packets, in the order of time; - for standard\n"
        "                        output\n"
        "  --overwrite           replace an existing file\n"
        "  --json                the list of files with such packets as one JSON object\n"
        "  -q, --quiet           print nothing but errors\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "`wiretale capture` writes the index .NAME.index of each file that it finishes.\n"
        "One that is missing is made, and kept if the folder can be written. The open\n"
        "file of a capture is read, too, up to its last whole packet.\n"
        "\n"
        "Hosts and ports are also found inside VLANs, MPLS, PPPoE and tunnels, in ARP,\n"
        "and in the packet that an ICMP error quotes. Only the first fragment of a packet\n"
        "has ports. A net or --filter alone is looked for in every packet of the time.\n"
        "\n"
        "examples:\n"
        "  # one conversation of yesterday's ring\n"
        "  @ find /captures --host 192.0.2.7 --host 198.51.100.1 \\\n"
        "      --port 443 -o flow.pcapng\n"
        "  # two minutes around an alert\n"
        "  @ find /captures --start 2026-11-30T11:59 \\\n"
        "      --end 2026-11-30T12:01 --host 192.0.2.7 -o alert.pcapng\n"
        "  # the files that have a host\n"
        "  @ find /captures --host 2001:db8::7 --json\n"
        "\n"
        "exit codes:\n"
        "  0  done, also if there is no such packet\n"
        "  2  wrong usage\n"
        "  3  done, but files could not be read, or were removed meanwhile\n"
        "  4  no captures there, output not writable, or memory missing\n"
        "  5  a folder is missing\n",
};
