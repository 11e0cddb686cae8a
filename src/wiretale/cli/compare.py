# SPDX-License-Identifier: Apache-2.0
"""wiretale compare: the same packets at several capture points."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli.destination import STDOUT, add_overwrite, folder, note_written, page, print_page
from wiretale.cli.parser import exit_codes
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Vantage
    from wiretale.cli.parser import Commands

DESCRIPTION = """\
Compare the same traffic at two or three capture points: the delay of each packet, where it was last seen, and where
missing packets were lost. NAT, fragmentation and offloads between the points are followed; the offset and skew of the
clocks are estimated from packets of both directions.
"""
EXAMPLES = """\
wiretale compare sender.pcapng receiver.pcapng
wiretale compare sender.pcapng tracer.pcapng receiver.pcapng --report places.html
# with the logs of the generator
wiretale compare a.pcapng b.pcapng --sender-log send.json --receiver-log receive.json
# whether the tracer captured everything that arrived
wiretale compare tracer.pcapng --receiver-log receive.json
# losses, for scripts
wiretale compare sender.pcapng receiver.pcapng --json | jq .losses
"""
DAMAGED = 3


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "compare",
        usage="wiretale compare SENDER [TRACER] RECEIVER [options]\nwiretale compare TRACER --receiver-log FILE [options]",
        description=DESCRIPTION,
    )
    parser.examples, parser.exit_codes = EXAMPLES, exit_codes(0, 2, 3, 4, 130, 143)
    parser.add_argument(
        "captures",
        nargs="+",
        metavar="CAPTURE",
        help="captures or folders of captures, in path order; one: the tracer's",
    )
    reading = parser.add_argument_group("input")
    reading.add_argument("--sender-log", metavar="FILE", help="output of `wiretale send --json`")
    reading.add_argument("--receiver-log", metavar="FILE", help="output of `wiretale receive --json`")
    reading.add_argument("--same-clock", action="store_true", help="assume that all captures share one clock")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    output.add_argument("--report", type=page, metavar="FILE", help="write an interactive page; - for standard output")
    output.add_argument(
        "-o", "--output", type=folder, metavar="DIR", help="write every packet as Parquet, and report.html"
    )
    add_overwrite(output)
    output.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=compare)


def write_stdout(vantage: Vantage, arguments: argparse.Namespace) -> None:
    """The summary, or what --json or --report - ask for instead."""
    if arguments.json:
        from wiretale.reports.export.compare import write_json

        write_json(vantage, __version__, sys.stdout)
    elif arguments.report == STDOUT:
        from wiretale.reports.html.compare import render

        print_page(render(vantage))
    elif not arguments.quiet:
        from wiretale.reports.terminal.compare import print_comparison

        print_comparison(vantage, sys.stdout)
    sys.stdout.flush()


def write_files(vantage: Vantage, arguments: argparse.Namespace) -> None:
    """What -o and --report ask for, each named on stderr when it is there."""
    written: list[Path] = []
    if arguments.output:
        from wiretale.reports.export.compare_parquet import write_tables

        written.append(write_tables(vantage, arguments.output))
    for path in pages(arguments):
        from wiretale.reports.html.compare import write_report

        written.append(write_report(vantage, path))
    for path in written if not arguments.quiet else []:
        note_written(path)


def pages(arguments: argparse.Namespace) -> list[Path]:
    """The files that the page is written to."""
    alone = [arguments.report] if arguments.report not in (None, STDOUT) else []
    return alone + ([arguments.output / "report.html"] if arguments.output else [])


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuses, before anything is read, outputs that would destroy something or cannot be written."""
    if not arguments.output and not pages(arguments):
        return
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.reports.export import destination
    from wiretale.reports.export.compare_parquet import TABLES

    logs = [log for log in (arguments.sender_log, arguments.receiver_log) if log]
    inputs = [*(path for given in arguments.captures for path in expand_paths([given])), *logs]
    if arguments.output:
        names = [*(f"{name}.parquet" for name in TABLES), "report.html"]
        destination.check_folder(arguments.output, names, inputs, arguments.overwrite)
    if arguments.report not in (None, STDOUT):
        destination.check_outputs([arguments.report], inputs, arguments.overwrite, page=True)


def compare(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer.compare.comparison import compare_captures
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.printable import printable

    if arguments.json and arguments.report == STDOUT:
        raise UsageError("--json and --report -: expected only one, because both write to standard output")
    check_outputs(arguments)
    with compare_captures(
        *arguments.captures,
        sender_log=arguments.sender_log,
        receiver_log=arguments.receiver_log,
        same_clock=arguments.same_clock,
    ) as vantage:
        try:
            write_stdout(vantage, arguments)
        except BrokenPipeError:  # `| head` must not cost the files
            write_files(vantage, arguments)
            raise
        write_files(vantage, arguments)
        for point in vantage.points:
            for text in point.damage:
                print(f"wiretale: {printable(text)}", file=sys.stderr)
        return DAMAGED if vantage.damaged else 0
