# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale traffic ttcp`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, flag, port, read_by, stores, time

PROGRAM = Program(
    name="ttcp",
    header="traffic/generator/ttcp/option_table.h",
    struct="struct ttcp_options",
    description="Transfer data to or from ttcp, PCATTCP or wiretale; over TCP, any program.",
    usage="@ ttcp -t [options] HOST\n@ ttcp -r [options]",
    arguments={
        "HOST": "the host to transmit to",
    },
    groups={
        "transfer": (
            flag("-t", "transmit", "transmit"),
            flag("-r", "receive", "receive"),
            flag("-u", "udp", "UDP instead of TCP"),
            flag(
                "-s",
                "pattern",
                "send a pattern and drop received data, instead of stdin and stdout (default: if stdin is a "
                "terminal or /dev/null, or stdout a terminal)",
            ),
            read_by(
                "-l",
                "BYTES",
                "take_length",
                "length of each buffer and datagram: 1400, 8k; k is 1024 as in ttcp (default: 8192)",
                member="length",
            ),
            read_by("-n", "COUNT", "take_count", "number of buffers to send with -s (default: 2048)", member="count"),
            flag("-c", "continuous", "transmit until stopped; receive one transfer after the other"),
            flag("-R", "concurrent", "receive from several senders at once until stopped; with -s"),
        ),
        "sockets and buffers": (
            port("-p", "port", "port (default: 5001)"),
            stores("-4", "family", "AF_INET", "IPv4 only"),
            stores("-6", "family", "AF_INET6", "IPv6 only"),
            read_by("-b", "BYTES", "take_buffer", "size of the socket buffer", member="buffer"),
            flag("-D", "no_delay", "TCP_NODELAY: do not wait for more data to send"),
            flag("-d", "debug", "SO_DEBUG"),
            read_by(
                "-A", "BYTES", "take_length", "align buffers to a multiple of this (default: 16384)", member="align"
            ),
            read_by(
                "-O", "BYTES", "take_offset", "start buffers this far past the alignment (default: 0)", member="offset"
            ),
            flag("-B", "full_blocks", "write blocks of -l bytes to stdout"),
            flag("-T", "touch", "read every byte that is received"),
            time(
                "--idle",
                "TIME",
                "idle_ns",
                "silence that ends receiving: 5, 1.5s, 200ms (default: UDP 5s, TCP never)",
                most="MAX_TIME",
            ),
            time(
                "--pause",
                "TIME",
                "pause_ns",
                "wait before the marks that end a transfer over UDP (default: 0.25s)",
                most="MAX_TIME",
            ),
        ),
        "output": (
            read_by(
                "-f",
                "UNIT",
                "rate_letter_take",
                "rates in k, m, g bits or K, M, G bytes, of 1024 as in ttcp (default: K)",
                member="unit",
            ),
            flag("-v", "verbose", "print more figures"),
            flag("--json", "json", "print one JSON object per transfer"),
        ),
    },
    examples="""# receive 1 transfer over TCP at port 5001
@ ttcp -r -s
# send it 4096 buffers of 8192 bytes
@ ttcp -t -s -n 4096 host
# receive over UDP until stopped
@ ttcp -r -s -u -c --json
# a pipe over the network
tar c . | @ ttcp -t host
""",
    exit_codes={
        0: "done",
        2: "wrong usage",
        3: "cut short",
        4: "no connection, or the output failed",
        5: "not permitted",
        130: "interrupted (143 by SIGTERM)",
    },
)
