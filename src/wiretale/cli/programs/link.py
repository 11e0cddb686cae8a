# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale traffic link`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, count, flag, read_by, text, time

PROGRAM = Program(
    name="link",
    header="traffic/link/option_table.h",
    struct="struct link_options",
    description="Join two interfaces by an emulated link that loses, delays, reorders or corrupts packets, and record"
    " the fate of each. It prints `linking` on stderr once it does; SIGINT and SIGTERM end it, and a "
    "summary goes to stdout.",
    usage="@ INTERFACE INTERFACE [options]\n@ --print-truth FILE",
    arguments={
        "INTERFACE": "one of two in this network namespace",
    },
    groups={
        "options": (
            read_by("--forward", "SPEC", "take_forward", "packets from the first interface to the second"),
            read_by("--reverse", "SPEC", "take_reverse", "packets from the second to the first"),
            read_by("--both", "SPEC", "take_both", "packets in both directions"),
            count("--seed", "N", "seed", "random seed; the same seed gives packet n the same fate (default: 1)"),
            text("--truth", "FILE", "truth_path", "write the fate of each packet"),
            flag("--overwrite", "overwrite", "replace an existing capture file"),
            text("--print-truth", "FILE", "print_path", "print such a file as CSV; - is standard input"),
            read_by(
                "--address",
                "A",
                "take_address",
                "the link's own address in ICMP messages, once for each family (default: 192.0.0.8 and 100:0:0:1::1)",
            ),
            time(
                "--spin",
                "TIME",
                "spin_ns",
                "busy-wait if the next packet is due within TIME (default: 0)",
                most="MAX_DURATION_NS",
            ),
            count(
                "--priority", "N", "priority", "real-time priority, if allowed; 0 disables it (default: 10)", most=99
            ),
            flag("--json", "json", "print the summary as one JSON object"),
        ),
    },
    sections={
        "settings of a direction (SPEC is one or more, separated by blanks)": {
            "rate=2Mbit": "bits a second",
            "overhead=BYTES": "bytes that the link adds to an IP packet (default: 0); Ethernet adds 38",
            "trace=FILE": "a rate that changes: each line is a millisecond in which 1500 bytes may leave (the format of "
            "mahimahi)",
            "delay=10ms": "jitter=2ms, distribution=uniform|normal|exponential, jitter-reorders=yes",
            "queue=20, queue=64KiB": "room, with the packet being sent (default: 1000 packets)",
            "discipline=tail|red|codel|fq_codel|pie": "red-min, red-max, red-probability, red-weight; target "
            "(default: codel 5ms, pie 15ms), interval, flows, quantum",
            "ecn=yes": "mark packets in place of dropping them, if they permit it; not with tail",
            "schedule=0s:rate=9Mbit:delay=20ms:loss=1%,5s:rate=1Mbit": "rate, delay and loss from these times on",
            "loss=1%": "random loss",
            "gilbert=1%,25%": "loss in bursts: to bad, to good[, loss while bad[, loss while good]]",
            "periodic=N": "lose every Nth packet",
            "drop=17,90-95": "lose these packets",
            "loss-span=2s-3s:50%": "lose a share of the packets in this time",
            "outage=2s-3s": "lose all packets in this time",
            "stall=2s-3s": "send nothing in this time; the queue fills",
            "reorder=1%": "hold packets back until distance=3 others have left, or for reorder-wait=50ms",
            "duplicate=1%": "send packets twice",
            "corrupt=0.1%": "flip bits=1 in packets",
            "mtu=1400": "answer larger IP packets by ICMP; with black-hole=yes, drop them",
        }
    },
    examples="""# a slow link in both directions, with its log
@ left right --both 'rate=2Mbit delay=10ms queue=20' --truth run.truth
# exactly these packets are lost, and answers are late
@ left right --forward 'drop=17,90-95' --reverse 'delay=50ms jitter=5ms'
# the log as CSV
@ --print-truth run.truth > truth.csv
""",
    exit_codes={
        0: "done",
        2: "wrong usage",
        4: "no such interface, or a file or the output failed",
        5: "a permission or resource is missing",
    },
)
