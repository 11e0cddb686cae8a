# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale send`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, count, flag, port, read_by, size, stores, text, time, word

PROGRAM = Program(
    name="send",
    header="traffic/generator/send/option_table.h",
    struct="struct send_options",
    description="Send numbered blocks over TCP or UDP to `@ receive`, and report the figures of both ends.",
    usage="@ send HOST [options]",
    arguments={
        "HOST": "name or address of the receiver's host",
    },
    groups={
        "blocks (of each stream; without an amount: 10 s)": (
            stores("-u --udp", "plan.protocol", "PROTOCOL_UDP", "send over UDP"),
            stores("--tcp", "plan.protocol", "PROTOCOL_TCP", "send over TCP (the default)"),
            text(
                "-l --size",
                "SIZES",
                "size",
                "bytes of a block, at least 32: 64, a range 64-1472:8, or a list 64,512,1472 taken in turn "
                "(default: 131072, over UDP 1472)",
            ),
            count("-n --count", "N", "plan.count", "number of blocks", least=1, most="INT64_MAX"),
            size(
                "--bytes", "BYTES", "plan.bytes", "at least this many bytes, in whole blocks", least=1, most="INT64_MAX"
            ),
            time("-t --time", "TIME", "plan.time_ns", "duration: 10, 1.5s, 200ms, 2m", least=1, most="LONG"),
            text("-F --file", "PATH", "file", "send this file instead of the pattern; - is standard input"),
            read_by(
                "-b --rate",
                "RATE",
                "take_rate",
                "bit/s of block bytes, or blocks/s: 10k, 1.9M, 1G, 100pps (default: no limit)",
            ),
            flag("--poisson", "is_poisson", "gaps of a Poisson process instead of equal ones"),
            count("--burst", "N", "plan.burst", "send N blocks at once, then wait N gaps", least=1, most=1000000),
            text("--pattern", "PATH", "pattern", "over UDP, sizes and gaps: lines of SIZE and GAP"),
            text(
                "--turns",
                "PATH",
                "turns",
                "over TCP, requests and responses: lines of REQUEST, GAP, RESPONSE and SERVER",
            ),
            stores("--draw", "plan.draws_lines", 1, "draw these lines at random; --run is the seed"),
            count(
                "--burst-cap",
                "N",
                "plan.burst_cap",
                "after a delay send at most N blocks at once, and move the rest back (default: no limit)",
                least=1,
                most=1000000,
            ),
            stores(
                "--no-real-time",
                "plan.no_real_time",
                1,
                "keep the usual priority although a rate is given and real-time priority is permitted",
            ),
            stores(
                "--kernel-pacing",
                "plan.kernel_pacing",
                1,
                "over UDP, the kernel sends each block when it is due (SO_TXTIME; needs fq at the interface)",
            ),
            stores("--write-each", "plan.write_each", 1, "over TCP, one write for each block, as ttcp does"),
            count(
                "-P --streams",
                "N",
                "plan.streams",
                "number of parallel streams, one thread each (default: 1)",
                least=1,
                most="MAX_STREAMS",
            ),
            stores("-R --reverse", "plan.direction", "DIRECTION_REVERSE", "the receiver sends"),
            stores("--both", "plan.direction", "DIRECTION_BOTH", "both ends send at the same time"),
            time(
                "--start-offset", "TIME", "plan.start_offset_ns", "wait this long before the first block", most="LONG"
            ),
            time(
                "--stagger", "TIME", "plan.stagger_ns", "start each stream this long after the one before", most="LONG"
            ),
            count(
                "--run",
                "N",
                "plan.run",
                "number of the test in its blocks (default: random)",
                least=1,
                most="UINT32_MAX",
            ),
            stores("--no-check", "plan.unchecked", 1, "do not verify the pattern at the receiver"),
            stores(
                "--authenticate",
                "plan.authentic",
                1,
                "over UDP, end each block in a code of the --key; the receiver ignores others",
            ),
            stores(
                "--offload",
                "plan.offload",
                "OFFLOAD_ALWAYS",
                "over UDP, give the kernel joined datagrams also if captures then show them joined (default: "
                "only if it segments them before the interface)",
            ),
            stores("--no-offload", "plan.offload", "OFFLOAD_NEVER", "give the kernel each datagram by itself"),
        ),
        "sockets": (
            port("-p --port", "port", "port of the receiver (default: 5010)"),
            stores("-4 --ipv4", "family", "AF_INET", "use IPv4 only"),
            stores("-6 --ipv6", "family", "AF_INET6", "use IPv6 only"),
            text("-B --bind", "ADDRESS", "local.bind", "local address"),
            text("--device", "IF", "local.device", "use this interface only (SO_BINDTODEVICE)"),
            read_by(
                "--data-ports",
                "A-B",
                "local_plan_take_ports",
                "local UDP ports that receive with --reverse or --both",
                member="local",
            ),
            read_by("--dscp", "N", "take_dscp", "differentiated services: 0 to 63, or ef, af41, cs1"),
            count("--ttl", "N", "plan.socket.ttl", "time to live, hop limit", least=1, most=255),
            word(
                "--df",
                "do|dont|want|probe",
                "plan.socket.path_mtu",
                "path_mtu_names",
                "don't fragment and path MTU discovery (IP_MTU_DISCOVER)",
            ),
            size("-w --buffer", "BYTES", "plan.socket.buffer", "socket buffers at both ends", least=1, most="1 << 30"),
            stores("-N --no-delay", "plan.socket.no_delay", 1, "TCP_NODELAY"),
            read_by("-C --congestion", "NAME", "take_congestion", "congestion control: cubic, reno, bbr"),
            size("-M --mss", "BYTES", "plan.socket.mss", "TCP_MAXSEG", least=88, most=32767),
            read_by(
                "--fq-rate",
                "RATE",
                "take_fq_rate",
                "over TCP, let the kernel send at most at this rate, evenly (SO_MAX_PACING_RATE)",
            ),
        ),
        "receiver": (
            time(
                "--wait",
                "TIME",
                "wait_ns",
                "keep retrying for this long until the receiver accepts (default: try once)",
                most="LONG",
            ),
            time(
                "--connect-timeout",
                "TIME",
                "connect_ns",
                "give up one attempt to connect to an address after this time (default: 5s)",
                least=1,
                most="3600 * NS_PER_S",
            ),
            time(
                "--idle",
                "TIME",
                "plan.idle_ns",
                "silence that ends a test (default: 1s)",
                least="NS_PER_MS",
                most="LONG",
            ),
            text("--key", "FILE", "key", "file with the receiver's key"),
            stores(
                "-x --stop-receiver",
                "plan.stop_receiver",
                1,
                "end the receiver after the test, which must permit it (receive --let-stop)",
            ),
        ),
        "output": (
            flag("-J --json", "exchange.style.json", "print one JSON object, on one line"),
            time(
                "-i --interval",
                "TIME",
                "exchange.interval_ns",
                "print a line every TIME while the test runs",
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
            flag("-q --quiet", "exchange.style.quiet", "print nothing but errors"),
        ),
    },
    examples="""# TCP for 10 s
@ send 192.0.2.7
# 10,000 datagrams at 10 Mbit/s, for a script
@ send 192.0.2.7 --udp --size 1472 --count 10000 --rate 10M --json
# a file, once the receiver is there
@ send server --wait 30 --file data.bin --key ~/wiretale.key
# where blocks were lost, also by a capture between both hosts
@ send 192.0.2.7 --udp --rate 10M --json > send.json
wiretale compare tracer.pcapng --sender-log send.json
""",
    exit_codes={
        0: "done",
        2: "wrong usage",
        3: "the test was cut short, or a file did not arrive",
        4: "no receiver, or it refused; a file or the output failed",
        5: "a permission or resource is missing",
        130: "interrupted (143 by SIGTERM)",
    },
)
