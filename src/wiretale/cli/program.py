# SPDX-License-Identifier: Apache-2.0
"""wiretale send, receive, ttcp, capture, link: the C programs, by their way through the front door."""

from __future__ import annotations

import argparse

HELP = {
    "send": "send sequenced TCP or UDP blocks to a receiver",
    "receive": "receive them, count what is lost, late or corrupt",
    "ttcp": "a transfer with classic ttcp",
    "capture": "record what passes an interface, for days, and prove what was not recorded",
    "link": "a link between two interfaces that loses, delays and reorders as told",
}


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Lists them; what follows their names is theirs to read (see `parse`)."""
    for name, text in HELP.items():
        commands.add_parser(name, help=text, add_help=False)


def parse(arguments: list[str]) -> argparse.Namespace | None:
    """What runs the program, when the first argument names one: the others are the program's own."""
    if not arguments or arguments[0] not in HELP:
        return None
    return argparse.Namespace(command=run, program=arguments[0], arguments=arguments[1:])


def run(parsed: argparse.Namespace) -> int:
    """Does not come back but by an error."""
    from wiretale.traffic.program import become_program

    become_program(parsed.program, parsed.arguments)
