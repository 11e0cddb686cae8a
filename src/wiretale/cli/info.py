# SPDX-License-Identifier: Apache-2.0
"""wiretale info: what capture files say of themselves."""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.analyze import exit_code
from wiretale.cli.help_text import HelpText

EXAMPLES = """\
examples:
  wiretale info transfer.pcapng
  wiretale info captures/ --json | jq '.captures[].dropped_kernel'

Reads each file once to its end and shows, for every interface in it: format, link type, snap length, packets, bytes,
times, who captured it with what filter, the drops that the file tells, and damage. Exit code 3 for a damaged file.
"""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "info",
        usage="wiretale info FILE... [--json]",
        description=EXAMPLES,
        formatter_class=HelpText,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="capture, folder of captures, or - for stdin")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(command=info)


def info(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer.trace import analyze
    from wiretale.version import __version__

    trace = analyze(*arguments.files, captures_only=True)
    if arguments.json:
        from wiretale.reports.json_object import write_json

        write_json(trace, __version__, sys.stdout.buffer, ["captures"])
    else:
        from wiretale.reports.capture_info import print_info

        print_info(trace.captures, sys.stdout)
    sys.stdout.flush()
    return exit_code(trace)
