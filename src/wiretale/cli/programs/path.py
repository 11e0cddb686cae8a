# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale traffic path`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, count, flag, port, stores, time

PROGRAM = Program(
    name="path",
    header="traffic/generator/path/option_table.h",
    struct="struct path_options",
    description="List the routers on the way to a host, with their round trips.",
    usage="@ path [options] HOST",
    arguments={
        "HOST": "name or address",
    },
    groups={
        "options": (
            port("-p --port", "port", "UDP port of the probes, which no program should use (default: 33434)"),
            count("--hops", "N", "hops", "routers at most (default: 30)", least=1, most="MOST_HOPS"),
            count("--probes", "N", "probes", "probes for each router (default: 3)", least=1, most="MOST_PROBES"),
            time(
                "--wait",
                "TIME",
                "wait_ns",
                "wait for an answer: 1, 500ms (default: 1s)",
                least="NS_PER_MS",
                most="60 * NS_PER_S",
            ),
            stores("-4", "family", "AF_INET", "IPv4 only"),
            stores("-6", "family", "AF_INET6", "IPv6 only"),
            flag("--json", "json", "print one JSON object"),
        ),
    },
    examples="""# the way of IPv4 to a name
@ path -4 HOST
# for a program, with one probe each
@ path --json --probes 1 HOST
""",
    exit_codes={
        0: "done: the host answered",
        2: "wrong usage",
        3: "the host did not answer",
        4: "no such host or no route, or the output failed",
        130: "interrupted (143 by SIGTERM)",
    },
)
