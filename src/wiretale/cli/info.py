# SPDX-License-Identifier: Apache-2.0
"""Show file and interface metadata: format, link type, snap length, packets, bytes, times, capturing program and filter,
drop counts and damage. Each file is read once to its end.
"""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.analyze import exit_code
from wiretale.cli.options import FILE_HELP, add_json, option
from wiretale.version import __version__

USAGE = "wiretale info FILE... [--json]"
EXAMPLES = """\
wiretale info transfer.pcapng
# drop counts, for scripts
wiretale info captures/ --json | jq '.interfaces[].dropped_kernel'
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", FILE_HELP, nargs="+")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.trace import analyze

    trace = analyze(*arguments.files, interfaces_only=True)
    if arguments.json:
        from wiretale.analyzer.table import OF_INTERFACES
        from wiretale.reports.export.analyze import write_json

        write_json(trace, __version__, sys.stdout.buffer, OF_INTERFACES, with_null=True)
    else:
        from wiretale.reports.terminal.info import print_info

        print_info(trace.interfaces, sys.stdout)
    sys.stdout.flush()
    return exit_code(trace)
