# SPDX-License-Identifier: Apache-2.0
"""Compare the same traffic at two or three capture points: the delay of each packet, where it was last seen, and where
missing packets were lost. NAT, fragmentation and offloads between the points are followed; the offset and skew of the
clocks are estimated from packets of both directions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli import options
from wiretale.cli.options import add_json, add_overwrite, note, option
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Comparison

USAGE = (
    "wiretale compare SENDER [TRACER] RECEIVER [options]\n"
    "wiretale compare TRACER --sender-log FILE | --receiver-log FILE [options]"
)
EXAMPLES = """\
wiretale compare sender.pcapng receiver.pcapng
wiretale compare sender.pcapng tracer.pcapng receiver.pcapng --report places.html
# with the logs of the generator
wiretale compare a.pcapng b.pcapng --sender-log send.json --receiver-log receive.json
# whether the tracer captured everything that arrived
wiretale compare tracer.pcapng --receiver-log receive.json
# who lost the blocks: hosts, or the network before or after the tracer
wiretale compare tracer.pcapng --sender-log send.json
# losses, for scripts
wiretale compare sender.pcapng receiver.pcapng --json | jq .losses
"""
DAMAGED = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "captures or directories of captures, in path order; a single one is the tracer's"
    option(parser, "captures", "CAPTURE", text, nargs="+")
    reading = parser.add_argument_group("input")
    option(reading, "--sender-log", "FILE", "output of `wiretale send --json`, which contains the receiver's counts")
    option(reading, "--receiver-log", "FILE", "output of `wiretale receive --json`")
    option(reading, "--same-clock", None, "assume that all captures share one clock")
    output = parser.add_argument_group("output")
    add_json(output, " instead of the summary")
    option(output, "--report", "FILE", "write an interactive page; - for standard output", type=options.file_or_stdout)
    option(output, "-o --output", "DIR", "write every packet as Parquet, and report.html", type=options.folder)
    add_overwrite(output)
    option(output, "-q --quiet", None, "print nothing but errors")


def write_stdout(comparison: Comparison, arguments: argparse.Namespace) -> None:
    """Writes the summary, or the output of --json or --report - instead."""
    if arguments.json:
        from wiretale.reports.export.compare import write_json

        write_json(comparison, __version__, sys.stdout)
    elif arguments.report == options.STDOUT:
        from wiretale.reports.html.compare.page import render

        options.print_page(render(comparison))
    elif not arguments.quiet:
        from wiretale.reports.terminal.compare import print_comparison

        print_comparison(comparison, sys.stdout)


def write_files(comparison: Comparison, arguments: argparse.Namespace) -> Iterator[Path]:
    """Writes the files of -o and --report, and yields each path."""
    if arguments.output:
        from wiretale.reports.export.compare import write_tables

        yield write_tables(comparison, arguments.output)
    for path in options.report_paths(arguments):
        from wiretale.reports.html.compare.page import write_report

        yield write_report(comparison, path)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.compare.comparison import compare_captures
    from wiretale.analyzer.errors import UsageError

    if arguments.json and arguments.report == options.STDOUT:
        raise UsageError("--json and --report - write to stdout: use only one")
    logs = {"sender_log": arguments.sender_log, "receiver_log": arguments.receiver_log}
    if options.report_paths(arguments):
        from wiretale.analyzer.capture_paths import expand_paths
        from wiretale.reports.export.compare import TABLES

        inputs = [path for argument in arguments.captures for path in expand_paths([argument], local=True)]
        inputs += [log for log in logs.values() if log]
        options.check_outputs(arguments, inputs, [f"{name}.parquet" for name in TABLES])
    with compare_captures(*arguments.captures, **logs, same_clock=arguments.same_clock) as comparison:
        options.deliver(arguments, lambda: write_stdout(comparison, arguments), write_files(comparison, arguments))
        for point in comparison.points:
            for text in point.damage:
                note(text)
        return DAMAGED if comparison.damaged else 0
