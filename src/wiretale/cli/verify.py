# SPDX-License-Identifier: Apache-2.0
"""wiretale verify: the same captures by Wireshark's dissector, and where the verdicts differ."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wiretale.cli.analyze import exit_code, progress_bar
from wiretale.cli.parser import exit_codes
from wiretale.cli.whole_number import whole_number
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace
    from wiretale.analyzer.verify.comparison import Comparison
    from wiretale.analyzer.verify.tshark import Dissector, Flagged
    from wiretale.cli.parser import Commands

DESCRIPTION = """\
Compare every verdict with Wireshark's: run tshark over the same file, count the frames of each kind that both or only one
of them report, and explain each difference.
"""
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
PIECE = 65_536  # frames that Wireshark flags, compared at a time
LISTED = 5


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "verify", usage="wiretale verify FILE... [--json] [--differences N]", description=DESCRIPTION
    )
    parser.examples, parser.notes = EXAMPLES, NOTES
    parser.exit_codes = {**exit_codes(0, 2, 3, 4, 130, 143), 0: "done, also with differences", 5: "tshark is missing"}
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a capture, or a folder of captures; each is read separately"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each file, one per line")
    parser.add_argument(
        "--differences",
        type=whole_number(0),
        metavar="N",
        help=f"differences listed for each reason (default {LISTED}, with --json all)",
    )
    parser.set_defaults(command=verify)


@contextmanager
def waiting(path: str) -> Iterator[None]:
    """A line on stderr while Wireshark reads, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    from wiretale.analyzer.printable import printable

    with Console(stderr=True).status(Text(f"Wireshark reads {printable(path)}")):
        yield


def lasting_paths(files: list[str]) -> list[str]:
    """Folders as the captures in them. UsageError for what cannot be read twice."""
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.trace import is_lasting

    paths = expand_paths(files)
    for path in paths:
        if path == "-" or (os.path.exists(path) and not is_lasting(path)):
            raise UsageError(f"{path}: expected a file, because Wireshark reads it again")
    return paths


def pieces(frames: Iterable[tuple[int, Flagged]]) -> Iterator[dict[int, Flagged]]:
    """The flagged frames, some at a time."""
    piece: dict[int, Flagged] = {}
    for frame, flagged in frames:
        piece[frame] = flagged
        if len(piece) >= PIECE:
            yield piece
            piece = {}
    yield piece


def compare_file(trace: Trace, path: str, dissector: Dissector, most: int | None) -> Comparison:
    """Wiretale's events beside what Wireshark flags. InputError when Wireshark cannot read what wiretale could."""
    from wiretale.analyzer.errors import InputError
    from wiretale.analyzer.verify.comparison import Comparison
    from wiretale.analyzer.verify.frame_events import FrameEvents, around

    events = FrameEvents(trace.events)
    found = Comparison(around(trace), most)
    with waiting(path):
        for piece in pieces(dissector.frames(path)):
            found.take(events.take(max(piece, default=0)), piece)
    found.take(events.take(float("inf")), {})
    if dissector.problem and not trace.damaged:
        raise InputError(f"tshark: {dissector.problem}")
    return found


def show(path: str, found: Comparison, wireshark: str, as_json: bool) -> None:
    """The comparison of one file, on stdout."""
    if as_json:
        from wiretale.reports.export.verify import write_json

        write_json(path, found, (__version__, wireshark), sys.stdout)
    else:
        from wiretale.reports.terminal.verify import print_comparison

        print_comparison(path, found, wireshark, sys.stdout)
    sys.stdout.flush()


def verify_file(path: str, dissector: Dissector, wireshark: str, arguments: argparse.Namespace) -> int:
    """Reads, compares and shows one file; returns the exit code."""
    from wiretale.analyzer.trace import analyze

    with progress_bar(True) as progress:
        trace = analyze(path, progress=progress)
    if trace.interrupted:
        raise KeyboardInterrupt
    most = LISTED if arguments.differences is None and not arguments.json else arguments.differences
    show(path, compare_file(trace, path, dissector, most), wireshark, arguments.json)
    return exit_code(trace)


def verify(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer.verify.tshark import Dissector

    paths = lasting_paths(arguments.files)
    dissector = Dissector()
    wireshark = dissector.version()
    code = 0
    for number, path in enumerate(paths):
        if number and not arguments.json:
            print()
        code = max(code, verify_file(path, dissector, wireshark, arguments))
    return code
