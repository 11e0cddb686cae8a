# SPDX-License-Identifier: Apache-2.0
"""wiretale send, receive, ttcp, capture, link: the C programs, by their way through the front door."""

from __future__ import annotations

import argparse

COMMANDS = ("send", "receive", "ttcp", "capture", "link")


def parse(arguments: list[str]) -> argparse.Namespace | None:
    """What runs the program, when the first argument names one: the others are the program's own."""
    if not arguments or arguments[0] not in COMMANDS:
        return None
    return argparse.Namespace(command=run, program=arguments[0], arguments=arguments[1:])


def run(parsed: argparse.Namespace) -> int:
    """Does not come back but by an error."""
    from wiretale.traffic.program import become_program

    become_program(parsed.program, parsed.arguments)
