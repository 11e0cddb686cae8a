# SPDX-License-Identifier: Apache-2.0
"""Compare every verdict with Wireshark's: run tshark over the same file, count the frames of each kind that both or only one
of them report, and explain each difference.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wiretale.cli.analyze import exit_code, progress_bar
from wiretale.cli.options import note, option, whole_number
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.verify.comparison import Comparison
    from wiretale.analyzer.verify.tshark import Dissector

USAGE = "wiretale verify FILE... [--json] [--differences N]"
NOTES = """\
Wireshark distinguishes only fast and spurious retransmissions; its plain retransmission agrees with every other kind. It
reads about 50,000 packets per second, with its default preferences.
"""
EXAMPLES = """\
wiretale verify transfer.pcapng
wiretale verify transfer.pcapng --differences 100
# the differences that no rule explains
wiretale verify transfer.pcapng --json | jq '.differences[] | select(.rule == null)'
"""
EXIT_CODES = (0, 2, 3, 4, 5, 130, 143)
EXIT_TEXTS = {
    0: "done, also with differences",
    4: "wiretale or tshark cannot read a file; the other files are compared",
    5: "tshark is missing",
}
LISTED = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", "a capture, or a directory of captures; each is read separately", nargs="+")
    option(parser, "--json", None, "print one JSON object for each file, one per line")
    text = f"differences listed for each reason (default: {LISTED}, with --json all)"
    option(parser, "--differences", "N", text, type=whole_number(0))


@contextmanager
def waiting(path: str) -> Iterator[None]:
    """Shows on stderr that Wireshark reads, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    from wiretale.analyzer.printable import printable

    with Console(stderr=True).status(Text(f"Wireshark reads {printable(path)}")):
        yield


def lasting_paths(files: list[str]) -> list[str]:
    """Returns the captures, also those in directories. UsageError if one cannot be read twice."""
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.trace import is_lasting

    paths = expand_paths(files, local=True)
    for path in paths:
        if path == "-" or (os.path.exists(path) and not is_lasting(path)):
            raise UsageError(f"{path}: expected a file, because Wireshark reads it again")
    return paths


def show(path: str, comparison: Comparison, wireshark: str, as_json: bool) -> None:
    """Prints the comparison of one file."""
    if as_json:
        from wiretale.reports.export.verify import write_json

        write_json(path, comparison, (__version__, wireshark), sys.stdout)
    else:
        from wiretale.reports.terminal.verify import print_comparison

        print_comparison(path, comparison, wireshark, sys.stdout)
    sys.stdout.flush()


def verify_file(path: str, dissector: Dissector, wireshark: str, arguments: argparse.Namespace) -> int:
    """Compares one file and returns its exit code. InputError if it cannot be read by either program."""
    from wiretale.analyzer.errors import InputError
    from wiretale.analyzer.trace import analyze_whole
    from wiretale.analyzer.verify.file import compare_file

    most = LISTED if arguments.differences is None and not arguments.json else arguments.differences
    with progress_bar(True) as progress:
        trace = analyze_whole(path, causes=False, progress=progress)
    with waiting(path):
        comparison = compare_file(trace, path, dissector, most)
    show(path, comparison, wireshark, arguments.json)
    if comparison.problem:
        note(f"{path}: {comparison.problem}")
        return InputError.exit_code
    return exit_code(trace)


def not_compared(path: str, why: str, wireshark: str, as_json: bool) -> None:
    """Says that a file was not compared, if others are."""
    note(why if path in why else f"{path}: {why}")
    if as_json:
        from wiretale.reports.export.verify import write_error

        write_error(path, why, (__version__, wireshark), sys.stdout)
        sys.stdout.flush()


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.errors import InputError
    from wiretale.analyzer.verify.tshark import Dissector

    paths = lasting_paths(arguments.files)
    dissector = Dissector()
    wireshark = dissector.version()
    code = 0
    for number, path in enumerate(paths):
        if number and not arguments.json:
            print()
        try:
            code = max(code, verify_file(path, dissector, wireshark, arguments))
        except InputError as error:
            if len(paths) == 1:
                raise
            not_compared(path, str(error), wireshark, arguments.json)
            code = max(code, error.exit_code)
    return code
