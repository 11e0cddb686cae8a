# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale receive`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, count, flag, port, read_by, size, stores, text, time

PROGRAM = Program(
    name="receive",
    header="traffic/generator/receive/option_table.h",
    struct="struct receive_options",
    description="Run tests for `@ send`: count lost, late and corrupt blocks, and report them to both ends.",
    usage="@ receive [options]",
    groups={
        "sockets": (
            port("-p --port", "port", "TCP port of control and data connections (default: 5010)"),
            stores("-4 --ipv4", "family", "AF_INET", "use IPv4 only"),
            stores("-6 --ipv6", "family", "AF_INET6", "use IPv6 only"),
            text("-B --bind", "ADDRESS", "local.bind", "listen at this address only"),
            text("--device", "IF", "local.device", "use this interface only (SO_BINDTODEVICE)"),
            read_by(
                "--data-ports",
                "A-B",
                "local_plan_take_ports",
                "UDP ports of data (default: chosen by the system)",
                member="local",
            ),
            size(
                "-w --buffer",
                "BYTES",
                "buffer",
                "socket buffers of data, unless the sender asks for a size",
                least=1,
                most="1 << 30",
            ),
        ),
        "tests": (
            stores("-1 --once", "tests", 1, "run one test, then end"),
            count("--tests", "N", "tests", "run N tests, then end", least=1, most="INT64_MAX"),
            time(
                "--accept-timeout",
                "TIME",
                "accept_ns",
                "end if no test is started for TIME while none runs (default: keep waiting)",
                least="NS_PER_MS",
                most="LONG",
            ),
            flag(
                "--let-stop",
                "lets_stop",
                "end after the test of a sender that asks for it (send --stop-receiver)",
            ),
            count(
                "--parallel",
                "N",
                "parallel",
                "tests run at once (default: 1); further senders are refused",
                least=1,
                most=1024,
            ),
            count(
                "--per-address",
                "N",
                "per_address",
                "of them, from one address or IPv6 /64 (default: 1)",
                least=1,
                most=1024,
            ),
            size(
                "--max-bytes",
                "BYTES",
                "exchange.max_bytes",
                "byte limit per test (default: 1T)",
                least=1,
                most="INT64_MAX",
            ),
            read_by(
                "--max-rate",
                "RATE",
                "take_rate",
                "limit of block bytes per test and direction: 10M, 1G (default: no limit)",
                member="exchange.max_bps",
            ),
            read_by(
                "--min-rate",
                "RATE",
                "take_floor",
                "end a test whose blocks are slower for a minute (default: 100 bit/s); 0: never",
                member="exchange.min_bps",
            ),
            time(
                "--max-time",
                "TIME",
                "exchange.max_ns",
                "time limit per test (default: 10m)",
                least="NS_PER_MS",
                most="LONG",
            ),
            count(
                "--max-streams", "N", "max_streams", "stream limit per test (default: 128)", least=1, most="MAX_STREAMS"
            ),
            time(
                "--idle",
                "TIME",
                "idle_ns",
                "silence that ends a test (default: as the sender asks, 1s)",
                least="NS_PER_MS",
                most="LONG",
            ),
            text("--key", "FILE", "key", "accept only senders with the same key file"),
            read_by(
                "--allow",
                "NETWORK",
                "allowed_networks_take",
                "accept only senders in this network, as in 192.0.2.0/24; repeat it for more (default: all)",
                member="allowed",
            ),
            read_by(
                "--quota",
                "BYTES/TIME",
                "quota_take",
                "bytes of blocks that each address may move in a time, as in 10G/24h (default: no limit)",
                member="quota",
            ),
        ),
        "files": (
            text(
                "-o --output-dir", "DIR", "target.folder", "write received files here (default: only compare checksums)"
            ),
            size(
                "--total-size",
                "BYTES",
                "room.most_bytes",
                "limit of all files in DIR together (default: 10G)",
                least=1,
                most="INT64_MAX",
            ),
            read_by(
                "--min-free",
                "BYTES|PERCENT%",
                "take_min_free",
                "space to leave free on the disk of DIR (default: 5%)",
                member="room",
            ),
            flag("--overwrite", "target.overwrite", "replace files that exist in DIR"),
            flag("--stdout", "target.to_stdout", "write files to standard output, and reports to standard error"),
        ),
        "rights": (
            text(
                "--user",
                "USER",
                "user",
                "as root, become this user (default: owner of DIR, wiretale or nobody); root: stay root",
            ),
            flag("--no-sandbox", "no_sandbox", "run without seccomp and Landlock"),
        ),
        "output": (
            flag("-J --json", "exchange.style.json", "print one JSON object per test, on one line"),
            time(
                "-i --interval",
                "TIME",
                "exchange.interval_ns",
                "print a line every TIME while a test runs",
                least="10 * NS_PER_MS",
                most="LONG",
            ),
            read_by(
                "-f --format",
                "k|K|m|M|g|G",
                "rate_letter_take",
                "unit of rates as in ttcp: lower case bits, upper case bytes",
                member="exchange.style.format",
            ),
            flag("-q --quiet", "exchange.style.quiet", "print nothing but the port and errors"),
        ),
    },
    examples="""# tests of anyone who reaches the port, until stopped
@ receive
# one test, for a script
@ receive --once --json > test.json
# files from senders with a key
@ receive --key ~/wiretale.key --output-dir incoming --max-bytes 10G
""",
    exit_codes={
        0: "done",
        2: "wrong usage",
        3: "a test was cut short (--once, --tests), or none began (--accept-timeout)",
        4: "a file or folder cannot be used, or the output failed",
        5: "a permission or the port is missing",
        130: "interrupted",
    },
)
