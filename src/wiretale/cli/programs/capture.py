# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale capture`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, count, flag, hint, note, read_by, size, stores, text, time, word

PROGRAM = Program(
    name="capture",
    header="capture/option_table.h",
    struct="struct settings",
    description="Record packets from interfaces into pcapng files, unattended, and count every packet that could not "
    "be recorded.",
    usage="@ -i INTERFACE -w DIR|FILE|- [options] [FILTER]\n@ --list [--json]",
    arguments={
        "FILTER": "packets to record, as for tcpdump: tcp port 443; the rest of the command line",
    },
    groups={
        "interfaces": (
            read_by(
                "-i --interface",
                "NAME",
                "add_interface",
                "name or number of an interface, or any, which is never promiscuous; may be repeated",
            ),
            flag(
                "--wait", "wait", "wait for an interface that does not exist or is down; without it, that is an error"
            ),
            flag(
                "-D --list --list-interfaces",
                "list",
                "list interfaces with addresses, link types and sources of time stamps",
            ),
            flag("--json", "json", "the list as one JSON object"),
            flag("-p --no-promiscuous-mode", "no_promiscuous", "record only packets to and from this host"),
            flag(
                "--mirror",
                "mirror",
                "check that a mirror port delivers both directions, once, with their tags; say what to change",
            ),
        ),
        "packets": (
            text("-f --filter", "FILTER", "filter", "record only packets that match a pcap-filter(7) expression"),
            read_by(
                "-s --snaplen --snapshot-length",
                "BYTES",
                "set_snaplen",
                "record at most BYTES of each packet; 0: all (default)",
            ),
            flag(
                "--headers",
                "headers",
                "record no payload: cut each packet behind its transport header, at most 256 bytes",
            ),
            word(
                "-Q --direction",
                "in|out|inout",
                "direction",
                "directions",
                "record only packets that come or go (default: inout)",
            ),
            size(
                "-B --buffer-size --buffer",
                "SIZE",
                "buffer_bytes",
                "memory for packets that wait, in the kernel and for the disk (default: 160MiB; a number alone is MiB)",
                unit="MiB",
            ),
            size(
                "--ring-buffer",
                "SIZE",
                "ring_bytes",
                "of it, the kernel's part for each interface (default: a fifth for all)",
                most="INT32_MAX",
                unit="MiB",
            ),
            flag(
                "-U --immediate --immediate-mode",
                "immediate",
                "hand over each packet at once, at the cost of processor time",
            ),
            text("-j --time-stamp-type", "SOURCE", "time_source", "source of time stamps, as --list shows"),
            text("-y --linktype", "NAME", "link_type", "link type, as --list shows"),
        ),
        "files": (
            text("-w --write", "DIR", "output", "write into a directory, where files appear when finished"),
            note(
                "-w, --write FILE",
                "write a file: a name that ends in .pcapng, .pcap or .cap; %Y %m %d %H %M %S are of UTC",
            ),
            note("-w, --write -", "write a stream to standard output; a FIFO, a device or a socket gets one, too"),
            flag("--overwrite", "overwrite", "replace an existing capture file"),
            size(
                "-C",
                "SIZE, -b filesize:SIZE",
                "file_bytes",
                "begin a new file before SIZE is exceeded (a number alone: MB with -C, kB with -b)",
                unit="MB",
            ),
            time(
                "-G",
                "TIME, -b duration:TIME",
                "file_ns",
                "begin a new file each TIME (a number alone: seconds)",
                least=1,
            ),
            read_by("-b", "", "set_rotation"),
            note("-b packets:N", "begin a new file after N packets"),
            flag("--align", "align", "begin files at multiples of -G since the epoch"),
            count("-W", "N, -b files:N", "ring_files", "keep only the newest N files", least=1),
            size("--total-size", "SIZE", "ring_total_bytes", "keep only the newest files, up to SIZE"),
            time("--max-age", "TIME", "ring_age_ns", "remove files that were finished longer ago than TIME", least=1),
            read_by(
                "--min-free", "SIZE|PERCENT%", "set_min_free", "remove the oldest files while less of the disk is free"
            ),
            stores("-P --pcap", "format", "RECORD_PCAP", "write classic pcap files instead of pcapng"),
            flag("-z --zstd", "compress", "compress finished files"),
            text(
                "--on-close",
                "COMMAND",
                "on_close",
                "run for each finished file, without a shell, until it succeeds; {} is its path",
            ),
            time("--on-close-timeout", "TIME", "on_close_ns", "end a command that takes longer (default: 1h)", least=1),
            count(
                "--on-close-tries",
                "N",
                "on_close_tries",
                "give up after N runs, until the next start (default: 20)",
                least=1,
            ),
        ),
        "kept spans": (
            time(
                "--keep-before",
                "TIME",
                "keep_before_ns",
                "at `status --keep`, SIGUSR2 or --keep-on: keep the files of TIME before it from removal",
                least=1,
            ),
            time("--keep-after", "TIME", "keep_after_ns", "and of TIME after it", least=1),
            read_by(
                "--keep-on",
                "RULE",
                "add_keep_rule",
                "keep a span when packets are lost (drops), an interface comes, goes or loses its carrier (link), a packet "
                "matches a pcap-filter(7) expression (match:FILTER), N packets come per second (rate:N), or PERCENT of "
                "the TCP segments are retransmitted (retransmissions:PERCENT); may be repeated",
            ),
        ),
        "end": (
            count("-c --count", "N", "stop_packets", least=1),
            note("-c N, -a packets:N", "end after N packets"),
            read_by("-a --autostop", "", "set_end"),
            note("-a duration:TIME", "end after TIME"),
            note("-a filesize:SIZE", "end once SIZE is written (a number alone: kB)"),
            note("-a files:N", "end after N files"),
            read_by(
                "--max-loss",
                "PERCENT",
                "set_max_loss",
                "exit with code 1 if more than PERCENT of the packets are lost; 0: if any is",
            ),
        ),
        "program": (
            text("--status", "SOCKET", "status", "serve the counts on a Unix socket, as lines of JSON"),
            time("--interval", "TIME", "interval_ns", "print the counts each TIME, also to --status", least=1),
            text(
                "-Z --user --relinquish-privileges",
                "USER",
                "user",
                "user to become; default: the owner of the directory, wiretale or nobody",
            ),
            flag("--no-sandbox", "no_sandbox", "run without seccomp and Landlock"),
            flag("-q --quiet", "quiet", "print nothing but `capturing` and errors"),
        ),
    },
    sections={
        "signals": {
            "SIGTERM, SIGINT": "write all packets, publish the file and end",
            "SIGHUP": "open the directory again and begin a new file",
            "SIGUSR1": "begin a new file",
            "SIGUSR2": "keep a span",
        }
    },
    examples="""# the headers of all packets, in a ring of 100 files
@ -i eth0 --headers -w /captures/ -C 64MB -b files:100
# one file of a minute
@ -i eth0 -w minute.pcapng -a duration:1min 'tcp port 443'
# live, into another program
@ -i eth0 -w - | tshark -r -
""",
    exit_codes={
        0: "done; without --max-loss also if the kernel or the interface dropped packets, as with tcpdump and dumpcap",
        1: "more packets lost than --max-loss allows",
        2: "wrong usage, also a filter or link type that does not fit the interface",
        3: "done, but packets were received and not written: the disk was full, too slow, or failed (with "
        "--max-loss, the code is 0 or 1)",
        4: "output not writable or in use, or memory missing",
        5: "interface, permission or system feature missing",
        130: "interrupted twice",
    },
    hidden=(
        flag("-n --nano", "ignored"),
        hint("rR", "files are read by wiretale analyze FILE"),
        hint("Y", "a display filter is for reading; expected a capture filter: -f 'tcp port 443'"),
        hint("vxXAeEtT", "packets are recorded, not printed: -w - | tshark -r -"),
        hint("F", "files are pcapng; --pcap is classic pcap"),
        hint("d", "the counts come with --interval TIME"),
    ),
)
