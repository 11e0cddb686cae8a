# SPDX-License-Identifier: Apache-2.0
"""The command line: wiretale analyze, info, doctor.

Exit codes: 0 done; 2 usage; 3 done, but the input was damaged or cut short; 4 input unreadable or output not
writable; 5 a tool or a permission is missing; 130 interrupted. Only this package turns errors into them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from wiretale.cli import analyze, doctor, info
from wiretale.version import __version__

EXAMPLES = """\
examples:
  wiretale analyze transfer.pcapng                 what happened, in the terminal
  wiretale analyze transfer.pcapng --report t.html the same as an interactive page
  wiretale analyze captures/ --json | jq .findings for scripts
  wiretale info transfer.pcapng                    what the file says of itself
  wiretale doctor                                  what this machine lacks
"""
COMMANDS = (analyze, info, doctor)


def make_parser() -> argparse.ArgumentParser:
    """All commands and options; cheap, so that --help and --version answer at once."""
    parser = argparse.ArgumentParser(
        prog="wiretale",
        usage="wiretale COMMAND …",
        description=EXAMPLES + "\nWhat happened on the wire, and why.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wiretale {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_command(commands)
    return parser


def run(command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Runs a command; an error is one line on stderr."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.analyzer.printable import printable

    try:
        return command(arguments)
    except WiretaleError as error:
        print(f"wiretale: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except MemoryError:
        print("wiretale: out of memory: analyze a part with --filter, or lower --max-flows", file=sys.stderr)
        return 4


def close_output() -> None:
    """Nobody reads on: what is left to write is dropped, also by the interpreter's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `wiretale`; returns its exit code."""
    try:
        parsed = make_parser().parse_args(arguments)
        code = run(parsed.command, parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        close_output()
        return 0
    except OSError as error:
        close_output()
        print(f"wiretale: cannot write the output: {error.strerror}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        return 130
