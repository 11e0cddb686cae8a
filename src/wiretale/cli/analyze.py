# SPDX-License-Identifier: Apache-2.0
"""wiretale analyze: captures in, tables, findings and a report out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from wiretale.cli.destination import STDOUT, add_overwrite, folder, note_written, page, print_page
from wiretale.cli.interruption import interrupted_code
from wiretale.cli.parser import exit_codes
from wiretale.cli.whole_number import size, whole_number
from wiretale.version import __version__

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from wiretale.analyzer.trace import Progress, Trace
    from wiretale.cli.parser import Commands, Parser

DESCRIPTION = """\
Analyze captures: flows, losses, round trips and findings. Several files are read as one, in time order; Ctrl-C ends the
reading and shows the results so far.
"""
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
TABLES = ("interfaces", "flows", "directions", "events", "series", "datagrams", "blocks", "packets", "findings")
REPORT = "report.html"  # in -o DIR
BLOCK_BYTES = (32, 2**30)  # analyzer/trace.py; not imported for --help
DAMAGED = 3


def table_names(text: str) -> list[str]:
    """The names in `a,b,c`."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in TABLES:
            from wiretale.analyzer.units import one_of

            raise argparse.ArgumentTypeError(f"{name!r}: expected {one_of(TABLES)}")
    return names


def add_reading(parser: Parser) -> None:
    """The options that choose packets."""
    reading = parser.add_argument_group("input")
    reading.add_argument(
        "-f",
        "--filter",
        metavar="BPF",
        help="analyze only packets that match a pcap-filter(7) expression, as in tcpdump",
    )
    reading.add_argument("--start", metavar="TIME", help="ignore packets before TIME: ISO 8601 (UTC) or epoch seconds")
    reading.add_argument("--end", metavar="TIME", help="ignore packets at or after TIME")
    reading.add_argument(
        "--max-flows",
        type=whole_number(1),
        default=1_000_000,
        metavar="N",
        help="maximum number of concurrent flows, about 1 kB each; the longest-idle flow is closed first (default 1000000)",
    )
    reading.add_argument(
        "--block-size",
        type=size(*BLOCK_BYTES),
        metavar="SIZE",
        help="bytes of each block (8192, 64KiB) in TCP streams whose block headers were not captured",
    )


FILE_HELP = "a pcap or pcapng file (also gzip, zstd or lz4), a folder of captures, or - for standard input"
LINK_HELP = "rate of the link in bit/s (100M, 1G), which goodput is compared with"


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser("analyze", usage="wiretale analyze FILE... [options]", description=DESCRIPTION)
    parser.examples, parser.exit_codes = EXAMPLES, exit_codes(0, 2, 3, 4, 130, 143)
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    add_reading(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--flows",
        type=whole_number(1),
        default=10,
        metavar="N",
        help="number of flows listed, largest first (default 10)",
    )
    output.add_argument("--json", action="store_true", help="print one JSON object instead of the summary")
    output.add_argument(
        "--csv", action="store_true", help="print one table as CSV (flows); with -o, also write its tables as CSV"
    )
    output.add_argument(
        "--tables",
        type=table_names,
        metavar="A,B",
        help="tables for --json, or the table for --csv (docs/tables.md); packets is added to -o DIR",
    )
    output.add_argument(
        "-o",
        "--output",
        type=folder,
        metavar="DIR",
        help="write every table but packets (add --tables packets) as Parquet, and report.html",
    )
    output.add_argument(
        "--report", type=page, metavar="FILE", help="write the interactive report; - for standard output"
    )
    add_overwrite(output)
    output.add_argument("--link", metavar="RATE", help=LINK_HELP)
    output.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=analyze)


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Progress | None]:
    """A bar on stderr by bytes read, where that is a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[packets]:,} packets"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, packets=0)
        yield lambda done, whole, packets: bar.update(task, completed=done, total=whole or None, packets=packets)


def link_bps(arguments: argparse.Namespace) -> int | None:
    """The rate that --link gives. UsageError for one that is none."""
    if arguments.link is None:
        return None
    from wiretale.analyzer.units import parse_rate

    return parse_rate(arguments.link)


def write_stdout(trace: Trace, arguments: argparse.Namespace) -> None:
    """The summary, or what --json, --csv or --report - ask for instead."""
    if arguments.json:
        from wiretale.reports.export import analyze as json_object

        json_object.write_json(trace, __version__, sys.stdout.buffer, arguments.tables or json_object.TABLES)
    elif arguments.csv and not arguments.output:
        from wiretale.reports.export.csv_text import write_csv

        write_csv(trace.table((arguments.tables or ["flows"])[0]), sys.stdout)
    elif arguments.report == STDOUT:
        from wiretale.reports.html.analyze import render

        print_page(render(trace, link_bps(arguments)))
    elif not arguments.quiet:
        from wiretale.reports.terminal.analyze import print_summary

        print_summary(trace, sys.stdout, arguments.flows, link_bps=link_bps(arguments))


def write_files(trace: Trace, arguments: argparse.Namespace) -> None:
    """What -o and --report ask for, each named on stderr when it is there."""
    written: list[Path] = []
    link, overwrite = link_bps(arguments), arguments.overwrite
    if arguments.output:
        from wiretale.reports.export.parquet import write_tables

        written += [
            write_tables(trace, arguments.output, table_formats(arguments), "packets" in (arguments.tables or [])),
            trace.report(arguments.output / REPORT, link, overwrite=overwrite),
        ]
    if arguments.report and arguments.report != STDOUT:
        written.append(trace.report(arguments.report, link, overwrite=overwrite))
    for path in written if not arguments.quiet else []:
        note_written(path)


def table_formats(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The formats of the tables in -o DIR."""
    return ("parquet", "csv") if arguments.csv else ("parquet",)


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuses, before anything is read, outputs that would destroy something or cannot be written."""
    if not arguments.output and arguments.report in (None, STDOUT):
        return
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.reports.export import destination
    from wiretale.reports.export.parquet import table_files

    arguments.files = expand_paths(arguments.files)
    if arguments.report and arguments.report != STDOUT:
        destination.check_outputs([arguments.report], arguments.files, arguments.overwrite, page=True)
    if arguments.output:
        packets = "packets" in (arguments.tables or [])
        names = [*table_files(table_formats(arguments), packets), REPORT]
        destination.check_folder(arguments.output, names, arguments.files, arguments.overwrite)


def check_arguments(arguments: argparse.Namespace) -> None:
    """Options that contradict each other, before anything is read."""
    from wiretale.analyzer.errors import UsageError

    link_bps(arguments)
    csv_alone = arguments.csv and not arguments.output
    if arguments.tables and not (arguments.json or csv_alone or arguments.output):
        raise UsageError("--tables: expected --json, --csv or -o DIR with it")
    if arguments.tables and not arguments.json and not csv_alone and "packets" not in arguments.tables:
        raise UsageError("--tables: -o DIR has every table but packets, which --tables packets adds")
    if sum(map(bool, (arguments.json, csv_alone, arguments.report == STDOUT))) > 1:
        raise UsageError("--json, --csv and --report -: expected only one, because all write to standard output")
    if csv_alone and len(arguments.tables or []) > 1:
        raise UsageError("--csv: expected one name in --tables, or -o DIR, because standard output takes one table")


def needs_packets(arguments: argparse.Namespace) -> bool:
    """Whether the packets table must be kept: it is printed, or drawn and the input cannot be read twice."""
    from wiretale.analyzer.trace import can_reread

    if "packets" in (arguments.tables or []):
        return True
    return bool(arguments.output or arguments.report) and not can_reread(arguments.files)


def note_empty_range(trace: Trace) -> None:
    """Where the packets are, if --start and --end exclude all of them."""
    if trace.empty_range:
        print(f"wiretale: {trace.empty_range}", file=sys.stderr)


def exit_code(trace: Trace) -> int:
    """By how the reading went."""
    note_empty_range(trace)
    if trace.interrupted:
        print(
            f"wiretale: interrupted: results cover {trace.totals['packets']:,} packets",
            file=sys.stderr,
        )
        return interrupted_code()
    from wiretale.analyzer.printable import printable

    for row in trace.interfaces.rows() if trace.damaged else []:
        if row["damage"]:
            print(f"wiretale: {printable(row['damage'])}", file=sys.stderr)
    return DAMAGED if trace.damaged else 0


def read(arguments: argparse.Namespace, keep_packets: bool) -> Trace:
    """The trace of the files, with progress on a terminal."""
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


def analyze(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    check_arguments(arguments)
    check_outputs(arguments)
    trace = read(arguments, needs_packets(arguments))
    try:
        write_stdout(trace, arguments)
        sys.stdout.flush()
    except OSError:  # `| head`, and a closed or full output, must not cost the files
        write_files(trace, arguments)
        raise
    write_files(trace, arguments)
    dropped = trace.totals["packets_rows_dropped"]
    if dropped and "packets" in (arguments.tables or []):
        print(f"wiretale: the packets table is full: {dropped:,} packets are not in it (use --filter)", file=sys.stderr)
    return exit_code(trace)
