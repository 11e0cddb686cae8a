# SPDX-License-Identifier: Apache-2.0
"""The help of `wiretale-traffic` without a command; each command has a declaration of its own."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program

PROGRAM = Program(
    name="traffic",
    header="traffic/generator/option_table.h",
    struct="",
    description="Send numbered blocks of traffic, and report which of them arrived.",
    usage="@ COMMAND [options]",
    arguments={
        "send": "send blocks to a receiver and report both ends",
        "receive": "receive blocks; count lost, late and corrupt ones",
        "ttcp": "test with a classic ttcp or PCATTCP",
        "path": "list the routers on the way to a host",
    },
    groups={
        "options": (),
    },
    notes="Each command has its own --help.",
    examples="""# on one host
@ receive
# on another
@ send HOST --udp --count 10000 --rate 10M
""",
    exit_codes={
        0: "done",
        2: "wrong usage",
        3: "a test was cut short",
        4: "no connection, or a file or the output failed",
        5: "a permission or resource is missing",
        130: "interrupted (143 by SIGTERM)",
    },
)
