# SPDX-License-Identifier: Apache-2.0
"""wiretale info: what capture files say of themselves."""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.analyze import FILE_HELP, exit_code
from wiretale.cli.parser import exit_codes

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from wiretale.cli.parser import Commands

DESCRIPTION = """\
Show file and interface metadata: format, link type, snap length, packets, bytes, times, capturing program and filter,
drop counts and damage. Each file is read once to its end.
"""
EXAMPLES = """\
wiretale info transfer.pcapng
# drop counts, for scripts
wiretale info captures/ --json | jq '.interfaces[].dropped_kernel'
"""


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser("info", usage="wiretale info FILE... [--json]", description=DESCRIPTION)
    parser.examples, parser.exit_codes = EXAMPLES, exit_codes(0, 2, 3, 4, 130, 143)
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=info)


def info(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer.trace import analyze
    from wiretale.version import __version__

    trace = analyze(*arguments.files, interfaces_only=True)
    if arguments.json:
        from wiretale.reports.export.analyze import write_json

        write_json(trace, __version__, sys.stdout.buffer, ["interfaces"])
    else:
        from wiretale.reports.terminal.info import print_info

        print_info(trace.interfaces, sys.stdout)
    sys.stdout.flush()
    return exit_code(trace)
