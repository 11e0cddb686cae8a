# SPDX-License-Identifier: Apache-2.0
"""Analyze captures: flows, losses, round trips and findings. Several files are merged by time. Ctrl-C stops and prints the
results so far.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from wiretale.cli import options
from wiretale.cli.options import add_json, add_overwrite, note, option
from wiretale.cli.process import interrupted_code
from wiretale.version import __version__

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from wiretale.analyzer.trace import Progress, Trace

USAGE = "wiretale analyze FILE... [options]"
EXAMPLES = """\
wiretale analyze transfer.pcapng
# the interactive report
wiretale analyze transfer.pcapng --report transfer.html
# a part of several files
wiretale analyze day/*.pcap.zst -f 'tcp port 443' --start 2026-01-15T12:00:00Z
# every table but packets as Parquet, and report.html; then with packets
wiretale analyze transfer.pcapng -o transfer.wiretale
wiretale analyze transfer.pcapng -o transfer.wiretale --tables packets
# live traffic
tcpdump -i eth0 -w - | wiretale analyze - --report live.html
# tables as JSON, for scripts
wiretale analyze transfer.pcapng --json --tables flows,events | jq .events
"""
TABLES = (
    *(
        "interfaces",
        "flows",
        "directions",
        "events",
        "series",
        "turns",
        "datagrams",
        "blocks",
        "handshakes",
        "queries",
        "requests",
    ),
    *("packets", "findings"),
)
DAMAGED = 3


def table_names(text: str) -> list[str]:
    """Returns the names in `a,b,c`."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in TABLES:
            from wiretale.analyzer.units import one_of

            raise argparse.ArgumentTypeError(f"{name!r}: expected {one_of(TABLES)}")
    return names


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select packets."""
    group = parser.add_argument_group("input")
    option(group, "-f --filter", "BPF", "analyze only packets that match a pcap-filter(7) expression, as in tcpdump")
    option(group, "--start", "TIME", "skip packets before TIME: ISO 8601 (UTC) or epoch seconds")
    option(group, "--end", "TIME", "skip packets at or after TIME")
    text = "maximum number of open flows, about 1 kB each; the longest-idle flow is closed first (default 1000000)"
    option(group, "--max-flows", "N", text, type=options.whole_number(1), default=1_000_000)
    text = "bytes of each block (8192, 64KiB) in TCP streams whose block headers were not captured"
    option(group, "--block-size", "SIZE", text, type=options.block_size)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", options.FILE_HELP, nargs="+")
    add_reading(parser)
    output = parser.add_argument_group("output")
    text = "number of flows listed, largest first (default 10)"
    option(output, "--flows", "N", text, type=options.whole_number(1), default=10)
    add_json(output, " instead of the summary")
    option(output, "--csv", None, "print one table as CSV (flows); with -o, also write its tables as CSV")
    text = "tables for --json, or the table for --csv (docs/tables.md); packets is added to -o DIR"
    option(output, "--tables", "A,B", text, type=table_names, default=[])
    text = "write every table but packets (add --tables packets) as Parquet, and report.html"
    option(output, "-o --output", "DIR", text, type=options.folder)
    option(output, "--report", "FILE", "write the interactive report; - for standard output", type=options.page)
    add_overwrite(output)
    option(output, "--link", "RATE", options.LINK_HELP)
    option(output, "-q --quiet", None, "print nothing but errors")


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Progress | None]:
    """A bar of the bytes read on stderr, if that is a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[packets]:,} packets"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, packets=0)
        yield lambda done, whole, packets: bar.update(task, completed=done, total=whole or None, packets=packets)


def write_stdout(trace: Trace, arguments: argparse.Namespace) -> None:
    """Writes the summary, or the output of --json, --csv or --report - instead."""
    if arguments.json:
        from wiretale.reports.export import analyze as json_object

        json_object.write_json(trace, __version__, sys.stdout.buffer, arguments.tables or json_object.TABLES)
    elif arguments.csv and not arguments.output:
        from wiretale.reports.export.csv_text import write_csv

        write_csv(trace.table((*arguments.tables, "flows")[0]), sys.stdout)
    elif arguments.report == options.STDOUT:
        from wiretale.reports.html.analyze import render

        options.print_page(render(trace, arguments.link))
    elif not arguments.quiet:
        from wiretale.reports.terminal.analyze import print_summary

        print_summary(trace, sys.stdout, arguments.flows, arguments.link)


def write_files(trace: Trace, arguments: argparse.Namespace) -> Iterator[Path]:
    """Writes the files of -o and --report, and yields each path."""
    if arguments.output:
        from wiretale.reports.export.parquet import write_tables

        yield write_tables(trace, arguments.output, table_formats(arguments), "packets" in arguments.tables)
    for path in options.report_paths(arguments):
        yield trace.report(path, arguments.link, overwrite=arguments.overwrite)


def table_formats(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Returns the formats of the tables in -o DIR."""
    return ("parquet", "csv") if arguments.csv else ("parquet",)


def check_arguments(arguments: argparse.Namespace) -> None:
    """Parses the rate of --link. UsageError if it is wrong, or if options contradict each other."""
    from wiretale.analyzer.arguments import link_rate
    from wiretale.analyzer.errors import UsageError

    arguments.link = link_rate(arguments.link)
    csv_alone = arguments.csv and not arguments.output
    if arguments.tables and not (arguments.json or csv_alone or arguments.output):
        raise UsageError("--tables needs --json, --csv or -o DIR")
    if arguments.tables and not arguments.json and not csv_alone and "packets" not in arguments.tables:
        raise UsageError("--tables: -o DIR has every table but packets; only packets can be added")
    if sum(map(bool, (arguments.json, csv_alone, arguments.report == options.STDOUT))) > 1:
        raise UsageError("--json, --csv and --report - write to stdout: use only one")
    if csv_alone and len(arguments.tables) > 1:
        raise UsageError("--csv writes one table to stdout: use one name in --tables, or -o DIR")


def exit_code(trace: Trace) -> int:
    """Returns the exit code of an analysis, and reports interruption, damage, and an empty range of --start and --end."""
    if trace.empty_range:
        note(trace.empty_range)
    if trace.interrupted:
        note(f"interrupted: results cover {trace.totals['packets']:,} packets")
        return interrupted_code()
    for row in trace.interfaces.rows() if trace.damaged else []:
        if row["damage"]:
            note(row["damage"])
    return DAMAGED if trace.damaged else 0


def read(arguments: argparse.Namespace, keep_packets: bool) -> Trace:
    """Analyzes the files; shows progress on a terminal."""
    from wiretale.analyzer import trace as traces

    later = traces.importing("wiretale.reports.export.analyze") if arguments.json else nullcontext()
    with later, progress_bar(not arguments.quiet) as progress:
        return traces.analyze(
            *arguments.files,
            filter=arguments.filter,
            start=arguments.start,
            end=arguments.end,
            max_flows=arguments.max_flows,
            block_size=arguments.block_size,
            keep_packets=keep_packets,
            progress=progress,
        )


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.trace import can_reread

    check_arguments(arguments)
    packets = "packets" in arguments.tables
    if options.report_paths(arguments):
        from wiretale.analyzer.capture_paths import expand_paths
        from wiretale.reports.export.parquet import table_files

        arguments.files = expand_paths(arguments.files)
        options.check_outputs(arguments, arguments.files, table_files(table_formats(arguments), packets))
    drawn = bool(arguments.output or arguments.report)  # a report shows packets, and stdin cannot be read twice
    trace = read(arguments, packets or (drawn and not can_reread(arguments.files)))
    options.deliver(arguments, lambda: write_stdout(trace, arguments), write_files(trace, arguments))
    dropped = trace.totals["packets_rows_dropped"]
    if dropped and packets:
        note(f"the packets table is full: {dropped:,} packets are not in it (use --filter)")
    return exit_code(trace)
