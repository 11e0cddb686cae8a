/* SPDX-License-Identifier: Apache-2.0 */
/* Made by .ci/option_tables.py from src/wiretale/cli/programs/capture.py. */
/* clang-format off */
static const struct option_row rows[] = {
    {.kind = OPTION_CUSTOM, .name = "interface", .letter = 'i', .argument = "NAME", .take = add_interface},
    {.kind = OPTION_FLAG, .name = "wait", .offset = offsetof(struct settings, wait)},
    {.kind = OPTION_FLAG, .name = "list|list-interfaces", .letter = 'D', .offset = offsetof(struct settings, list)},
    {.kind = OPTION_FLAG, .name = "json", .offset = offsetof(struct settings, json)},
    {.kind = OPTION_FLAG, .name = "no-promiscuous-mode", .letter = 'p', .offset = offsetof(struct settings, no_promiscuous)},
    {.kind = OPTION_FLAG, .name = "mirror", .offset = offsetof(struct settings, mirror)},
    {.kind = OPTION_TEXT, .name = "filter", .letter = 'f', .offset = offsetof(struct settings, filter)},
    {.kind = OPTION_CUSTOM, .name = "snaplen|snapshot-length", .letter = 's', .argument = "BYTES", .take = set_snaplen},
    {.kind = OPTION_FLAG, .name = "headers", .offset = offsetof(struct settings, headers)},
    {.kind = OPTION_WORD, .name = "direction", .letter = 'Q', .offset = offsetof(struct settings, direction), .argument = "in|out|inout", .words = directions},
    {.kind = OPTION_SIZE, .name = "buffer-size|buffer", .letter = 'B', .offset = offsetof(struct settings, buffer_bytes), .unit = "MiB"},
    {.kind = OPTION_SIZE, .name = "ring-buffer", .offset = offsetof(struct settings, ring_bytes), .max = INT32_MAX, .unit = "MiB"},
    {.kind = OPTION_FLAG, .name = "immediate|immediate-mode", .letter = 'U', .offset = offsetof(struct settings, immediate)},
    {.kind = OPTION_TEXT, .name = "time-stamp-type", .letter = 'j', .offset = offsetof(struct settings, time_source)},
    {.kind = OPTION_TEXT, .name = "linktype", .letter = 'y', .offset = offsetof(struct settings, link_type)},
    {.kind = OPTION_TEXT, .name = "write", .letter = 'w', .offset = offsetof(struct settings, output)},
    {.kind = OPTION_FLAG, .name = "overwrite", .offset = offsetof(struct settings, overwrite)},
    {.kind = OPTION_SIZE, .letter = 'C', .offset = offsetof(struct settings, file_bytes), .unit = "MB"},
    {.kind = OPTION_TIME, .letter = 'G', .offset = offsetof(struct settings, file_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_CUSTOM, .letter = 'b', .take = set_rotation},
    {.kind = OPTION_FLAG, .name = "align", .offset = offsetof(struct settings, align)},
    {.kind = OPTION_COUNT, .letter = 'W', .offset = offsetof(struct settings, ring_files), .min = 1},
    {.kind = OPTION_SIZE, .name = "total-size", .offset = offsetof(struct settings, ring_total_bytes)},
    {.kind = OPTION_TIME, .name = "max-age", .offset = offsetof(struct settings, ring_age_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_CUSTOM, .name = "min-free", .argument = "SIZE|PERCENT%", .take = set_min_free},
    {.kind = OPTION_SET, .name = "pcap", .letter = 'P', .offset = offsetof(struct settings, format), .max = RECORD_PCAP},
    {.kind = OPTION_FLAG, .name = "zstd", .letter = 'z', .offset = offsetof(struct settings, compress)},
    {.kind = OPTION_TEXT, .name = "on-close", .offset = offsetof(struct settings, on_close)},
    {.kind = OPTION_TIME, .name = "on-close-timeout", .offset = offsetof(struct settings, on_close_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_COUNT, .name = "on-close-tries", .offset = offsetof(struct settings, on_close_tries), .min = 1},
    {.kind = OPTION_TIME, .name = "keep-before", .offset = offsetof(struct settings, keep_before_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TIME, .name = "keep-after", .offset = offsetof(struct settings, keep_after_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_CUSTOM, .name = "keep-on", .argument = "RULE", .take = add_keep_rule},
    {.kind = OPTION_COUNT, .name = "count", .letter = 'c', .offset = offsetof(struct settings, stop_packets), .min = 1},
    {.kind = OPTION_CUSTOM, .name = "autostop", .letter = 'a', .take = set_end},
    {.kind = OPTION_CUSTOM, .name = "max-loss", .argument = "PERCENT", .take = set_max_loss},
    {.kind = OPTION_TEXT, .name = "status", .offset = offsetof(struct settings, status)},
    {.kind = OPTION_TIME, .name = "interval", .offset = offsetof(struct settings, interval_ns), .min = 1, .max = INT64_MAX},
    {.kind = OPTION_TEXT, .name = "user|relinquish-privileges", .letter = 'Z', .offset = offsetof(struct settings, user)},
    {.kind = OPTION_FLAG, .name = "no-sandbox", .offset = offsetof(struct settings, no_sandbox)},
    {.kind = OPTION_FLAG, .name = "quiet", .letter = 'q', .offset = offsetof(struct settings, quiet)},
    {.kind = OPTION_HELP, .name = "help", .letter = 'h'},
    {.kind = OPTION_VERSION, .name = "version", .letter = 'V'},
    {.kind = OPTION_FLAG, .name = "nano", .letter = 'n', .offset = offsetof(struct settings, ignored)},
    {.kind = OPTION_HINT, .name = "rR", .hint = "files are read by wiretale analyze FILE"},
    {.kind = OPTION_HINT, .name = "Y", .hint = "a display filter is for reading; expected a capture filter: -f 'tcp port 443'"},
    {.kind = OPTION_HINT, .name = "vxXAeEtT", .hint = "packets are recorded, not printed: -w - | tshark -r -"},
    {.kind = OPTION_HINT, .name = "F", .hint = "files are pcapng; --pcap is classic pcap"},
    {.kind = OPTION_HINT, .name = "d", .hint = "the counts come with --interval TIME"},
};

static const struct command_line command = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .help =
        "Record packets from interfaces into pcapng files, unattended, and count every\n"
        "packet that could not be recorded.\n"
        "\n"
        "usage: @ -i INTERFACE -w DIR|FILE|- [options] [FILTER]\n"
        "       @ --list [--json]\n"
        "\n"
        "arguments:\n"
        "  FILTER                packets to record, as for tcpdump: tcp port 443; the\n"
        "                        rest of the command line\n"
        "\n"
        "interfaces:\n"
        "  -i, --interface NAME  name or number of an interface, or any, which is never\n"
        "                        promiscuous; may be repeated\n"
        "  --wait                wait for an interface that does not exist or is down;\n"
        "                        without it, that is an error\n"
        "  -D, --list            list interfaces with addresses, link types and sources\n"
        "                        of time stamps\n"
        "  --json                the list as one JSON object\n"
        "  -p, --no-promiscuous-mode\n"
        "                        record only packets to and from this host\n"
        "  --mirror              check that a mirror port delivers both directions, once,\n"
        "                        with their tags; say what to change\n"
        "\n"
        "packets:\n"
        "  -f, --filter FILTER   record only packets that match a pcap-filter(7)\n"
        "                        expression\n"
        "  -s, --snaplen BYTES   record at most BYTES of each packet; 0: all (default)\n"
        "  --headers             record no payload: cut each packet behind its transport\n"
        "                        header, at most 256 bytes\n"
        "  -Q, --direction in|out|inout\n"
        "                        record only packets that come or go (default: inout)\n"
        "  -B, --buffer-size SIZE\n"
        "                        memory for packets that wait, in the kernel and for the\n"
        "                        disk (default: 160MiB; a number alone is MiB)\n"
        "  --ring-buffer SIZE    of it, the kernel's part for each interface (default: a\n"
        "                        fifth for all)\n"
        "  -U, --immediate       hand over each packet at once, at the cost of processor\n"
        "                        time\n"
        "  -j, --time-stamp-type SOURCE\n"
        "                        source of time stamps, as --list shows\n"
        "  -y, --linktype NAME   link type, as --list shows\n"
        "\n"
        "files:\n"
        "  -w, --write DIR       write into a directory, where files appear when finished\n"
        "  -w, --write FILE      write a file: a name that ends in .pcapng, .pcap or\n"
        "                        .cap; %Y %m %d %H %M %S are of UTC\n"
        "  -w, --write -         write a stream to standard output; a FIFO, a device or a\n"
        "                        socket gets one, too\n"
        "  --overwrite           replace an existing capture file\n"
        "  -C SIZE, -b filesize:SIZE\n"
        "                        begin a new file before SIZE is exceeded (a number\n"
        "                        alone: MB with -C, kB with -b)\n"
        "  -G TIME, -b duration:TIME\n"
        "                        begin a new file each TIME (a number alone: seconds)\n"
        "  -b packets:N          begin a new file after N packets\n"
        "  --align               begin files at multiples of -G since the epoch\n"
        "  -W N, -b files:N      keep only the newest N files\n"
        "  --total-size SIZE     keep only the newest files, up to SIZE\n"
        "  --max-age TIME        remove files that were finished longer ago than TIME\n"
        "  --min-free SIZE|PERCENT%\n"
        "                        remove the oldest files while less of the disk is free\n"
        "  -P, --pcap            write classic pcap files instead of pcapng\n"
        "  -z, --zstd            compress finished files\n"
        "  --on-close COMMAND    run for each finished file, without a shell, until it\n"
        "                        succeeds; {} is its path\n"
        "  --on-close-timeout TIME\n"
        "                        end a command that takes longer (default: 1h)\n"
        "  --on-close-tries N    give up after N runs, until the next start (default: 20)\n"
        "\n"
        "kept spans:\n"
        "  --keep-before TIME    at `status --keep`, SIGUSR2 or --keep-on: keep the files\n"
        "                        of TIME before it from removal\n"
        "  --keep-after TIME     and of TIME after it\n"
        "  --keep-on RULE        keep a span when packets are lost (drops), an interface\n"
        "                        comes, goes or loses its carrier (link), a packet\n"
        "                        matches a pcap-filter(7) expression (match:FILTER), N\n"
        "                        packets come per second (rate:N), or PERCENT of the TCP\n"
        "                        segments are retransmitted (retransmissions:PERCENT);\n"
        "                        may be repeated\n"
        "\n"
        "end:\n"
        "  -c N, -a packets:N    end after N packets\n"
        "  -a duration:TIME      end after TIME\n"
        "  -a filesize:SIZE      end once SIZE is written (a number alone: kB)\n"
        "  -a files:N            end after N files\n"
        "  --max-loss PERCENT    exit with code 1 if more than PERCENT of the packets are\n"
        "                        lost; 0: if any is\n"
        "\n"
        "program:\n"
        "  --status SOCKET       serve the counts on a Unix socket, as lines of JSON\n"
        "  --interval TIME       print the counts each TIME, also to --status\n"
        "  -Z, --user USER       user to become; default: the owner of the directory,\n"
        "                        wiretale or nobody\n"
        "  --no-sandbox          run without seccomp and Landlock\n"
        "  -q, --quiet           print nothing but `capturing` and errors\n"
        "  -h, --help            print this help\n"
        "  -V, --version         print the version\n"
        "\n"
        "signals:\n"
        "  SIGTERM, SIGINT       write all packets, publish the file and end\n"
        "  SIGHUP                open the directory again and begin a new file\n"
        "  SIGUSR1               begin a new file\n"
        "  SIGUSR2               keep a span\n"
        "\n"
        "examples:\n"
        "  # the headers of all packets, in a ring of 100 files\n"
        "  @ -i eth0 --headers -w /captures/ -C 64MB -b files:100\n"
        "  # one file of a minute\n"
        "  @ -i eth0 -w minute.pcapng -a duration:1min 'tcp port 443'\n"
        "  # live, into another program\n"
        "  @ -i eth0 -w - | tshark -r -\n"
        "\n"
        "exit codes:\n"
        "  0    done; without --max-loss also if the kernel or the interface dropped\n"
        "       packets, as with tcpdump and dumpcap\n"
        "  1    more packets lost than --max-loss allows\n"
        "  2    wrong usage, also a filter or link type that does not fit the interface\n"
        "  3    done, but packets were received and not written: the disk was full, too\n"
        "       slow, or failed (with --max-loss, the code is 0 or 1)\n"
        "  4    output not writable or in use, or memory missing\n"
        "  5    interface, permission or system feature missing\n"
        "  130  interrupted twice\n",
};
