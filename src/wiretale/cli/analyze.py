# SPDX-License-Identifier: Apache-2.0
"""Analyze captures: flows, losses, round trips and findings. Several files are merged by time. Ctrl-C stops and prints the
results so far.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
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
# a picture of one flow with two panels
wiretale analyze transfer.pcapng --figure 0:sequence,rtt -o transfer.svg
# two pictures: flow-0-sequence.png and flow-3-rtt.png
wiretale analyze transfer.pcapng --figure 0:sequence --figure 3:rtt -o 'flow-{flow}-{panel}.png'
# all cores of this machine, or the workers of a Dask scheduler
wiretale analyze day/*.pcapng --cluster local -o day.wiretale
wiretale analyze 's3://captures/day/*' --cluster 10.0.0.1:8786 -o s3://results/day
# live traffic
tcpdump -i eth0 -w - | wiretale analyze - --report live.html
# tables as JSON, for scripts
wiretale analyze transfer.pcapng --json --tables flows,events | jq .events
"""
EXIT_CODES = (0, 2, 3, 4, 5, 130, 143)
EXIT_TEXTS = {5: "a picture needs a browser, or kaleido; --cluster needs Dask and workers"}
DAMAGED = 3


def table_names(text: str) -> list[str]:
    """Returns the names in `a,b,c`."""
    from wiretale.analyzer.table import TABLES

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in TABLES:
            from wiretale.analyzer.units import one_of

            raise argparse.ArgumentTypeError(f"{name!r}: expected {one_of(TABLES)}")
    return names


def figure_choice(text: str) -> tuple[int, list[str]]:
    """Returns flow and panels of `3`, `3:sequence` or `3:sequence,rtt`."""
    flow, _, panels = text.partition(":")
    if not (flow.isascii() and flow.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: expected FLOW or FLOW:PANEL, such as 0:sequence")
    return int(flow), [name.strip() for name in panels.split(",")] if panels else []


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select packets."""
    group = parser.add_argument_group("input")
    options.add_selection(group)
    text = "maximum number of open flows, 1 to 2 kB each; the longest-idle flow is closed first (default 1000000)"
    option(group, "--max-flows", "N", text, type=options.whole_number(1), default=1_000_000)
    text = "number of threads beside those that decompress files (default: one for each processor); no result depends on it"
    option(group, "-j --jobs", "N", text, type=options.whole_number(1, 64))
    text = "bytes of each block (8192, 64KiB) in TCP streams whose block headers were not captured"
    option(group, "--block-size", "SIZE", text, type=options.block_size)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds the options that divide the analysis among workers."""
    group = parser.add_argument_group("cluster (docs/cluster.md)")
    text = "divide the analysis among processes of this machine, or the workers of a Dask scheduler; -o may be a URL"
    option(group, "--cluster", "local|HOST:PORT", text)
    text = "folder or URL that all workers share, for shards (default: -o with .work); the same command continues in it"
    option(group, "--work", "DIR", text)
    option(group, "--workers", "N", "processes of --cluster local (default: cores)", type=options.whole_number(1, 1024))
    text = "number of shards (default: 8 to 64, by size)"
    option(group, "--shards", "K", text, type=options.whole_number(1, 256))
    option(
        group, "--inexact", None, "accept rows that may differ from those of one run, which might have reached a limit"
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", options.FILE_HELP, nargs="+")
    add_reading(parser)
    add_cluster(parser)
    add_outputs(parser, options.folder_or_url)


def add_outputs(parser: argparse.ArgumentParser, place: Callable[[str], Path | str] = options.folder) -> None:
    """Adds the options of outputs; `place` parses the directory of -o."""
    output = parser.add_argument_group("output")
    text = "number of flows listed, largest first (default 10)"
    option(output, "--flows", "N", text, type=options.whole_number(1), default=10)
    add_json(output, " instead of the summary")
    option(output, "--csv", None, "print one table as CSV (flows); with -o, also write its tables as CSV")
    text = "tables for --json, or the table for --csv (docs/tables.md); packets is added to -o DIR"
    option(output, "--tables", "A,B", text, type=table_names, default=[])
    text = "write every table but packets (add --tables packets) as Parquet, and report.html"
    option(output, "-o --output", "DIR", text, type=place, action="append", default=[])
    text = (
        "draw a flow into the picture of -o: x.svg, x.png or x.pdf; all panels, or those named: 0:sequence,rtt. Repeat both for "
        "several, or name all by one -o '{flow}-{panel}.svg'"
    )
    option(output, "--figure", "FLOW[:PANEL]", text, type=figure_choice, action="append", default=[])
    option(output, "--report", "FILE", "write the interactive report; - for standard output", type=options.page)
    text = "keep bytes and decoded fields of frames out of the report: payload can be private"
    option(output, "--no-frames", None, text)
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

        name = (*arguments.tables, "flows")[0]
        write_csv(trace._packet_parts() if name == "packets" else [trace.table(name)], sys.stdout)
    elif arguments.report == options.STDOUT:
        from wiretale.reports.html.analyze import render

        options.print_page(render(trace, arguments.link, frames=not arguments.no_frames))
    elif not arguments.quiet:
        from wiretale.reports.terminal.analyze import print_summary

        print_summary(trace, sys.stdout, arguments.flows, arguments.link)


def write_files(trace: Trace, arguments: argparse.Namespace) -> Iterator[Path]:
    """Writes the files of -o, --figure and --report, and yields each path."""
    if arguments.pictures:
        from wiretale.reports.figures.picture import write_picture

        figures = [trace.figure(flow, *panels) for flow, panels in arguments.figure]  # all, before one is written
        yield from map(write_picture, figures, arguments.pictures)
    paths = options.report_paths(arguments)
    pages: list[str] = []

    def draw() -> None:
        if paths:
            from wiretale.reports.html.analyze import render

            pages.append(render(trace, arguments.link, frames=not arguments.no_frames))

    if arguments.output:
        from wiretale.reports.export.parquet import write_tables

        yield write_tables(trace, arguments.output, table_formats(arguments), "packets" in arguments.tables, draw)
    else:
        draw()
    if paths:
        from wiretale.reports.html.offline_page import write

        yield from (write(pages[0], path) for path in paths)


def deliver(
    trace: Trace, arguments: argparse.Namespace, placed: Callable[[Iterator[Path]], Iterator[Path | str]] = iter
) -> None:
    """Shows the result and writes its files; `placed` yields where they are at last."""
    options.deliver(arguments, lambda: write_stdout(trace, arguments), placed(write_files(trace, arguments)))
    dropped = trace._packets_lost
    if dropped and "packets" in arguments.tables:
        note(f"the packets table is full: {dropped:,} packets are not in it (use --filter)")


def table_formats(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Returns the formats of the tables in -o DIR."""
    return ("parquet", "csv") if arguments.csv else ("parquet",)


def take_outputs(arguments: argparse.Namespace) -> None:
    """Sets `pictures`, the file of each figure, and `output`, the directory of -o. UsageError if their numbers are wrong, or
    if an option of reports has no report."""
    from wiretale.analyzer.errors import UsageError

    outputs, arguments.pictures = arguments.output, []
    if arguments.figure:
        from wiretale.reports.figures.picture import check_pictures

        arguments.pictures, outputs = check_pictures(arguments.figure, outputs), []
    if len(outputs) > 1:
        raise UsageError("-o DIR: give it once; only pictures (--figure) can be several")
    arguments.output = outputs[0] if outputs else None
    if arguments.no_frames and not (arguments.report or arguments.output):
        raise UsageError("--no-frames needs --report FILE or -o DIR")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Parses the rate of --link. UsageError if it is wrong, or if options contradict each other."""
    from wiretale.analyzer.arguments import link_rate
    from wiretale.analyzer.errors import UsageError

    arguments.link = link_rate(arguments.link)
    take_outputs(arguments)
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
            arguments.files,
            filter=arguments.filter,
            start=arguments.start,
            end=arguments.end,
            max_flows=arguments.max_flows,
            jobs=arguments.jobs,
            block_size=arguments.block_size,
            keep_packets=keep_packets,
            progress=progress,
        )


def shows_packets(arguments: argparse.Namespace) -> bool:
    """Returns whether an output has packets: reports and pictures, and tables if these are asked for."""
    return bool(arguments.output or arguments.report or arguments.pictures or "packets" in arguments.tables)


def check_files(arguments: argparse.Namespace) -> None:
    """Rejects outputs that would destroy an input or cannot be written."""
    from wiretale.reports.export.parquet import table_files

    packets = "packets" in arguments.tables
    options.check_outputs(arguments, arguments.files, table_files(table_formats(arguments), packets))


def run_on_cluster(arguments: argparse.Namespace) -> int:
    """The same as run(), by the workers of --cluster."""
    from wiretale.analyzer.capture_paths import expand_paths, is_url
    from wiretale.analyzer.errors import UsageError
    from wiretale.cluster.command import check_options, local_output, result

    check_arguments(arguments)
    check_options(arguments)
    with local_output(arguments) as placed:
        arguments.files = expanded = expand_paths(arguments.files)
        if ("packets" in arguments.tables or arguments.pictures) and any(map(is_url, arguments.files)):
            raise UsageError(
                "--tables packets and --figure with --cluster need local files, which are read a second time"
            )
        check_files(arguments)
        with result(arguments) as (trace, left_out):
            if not left_out and not any(map(is_url, expanded)):
                trace._given = expanded.given
            deliver(trace, arguments, placed)
    return exit_code(trace) or (DAMAGED if left_out else 0)


def check_local(arguments: argparse.Namespace) -> None:
    """Raises UsageError if there are options of --cluster without it."""
    from wiretale.analyzer.errors import UsageError

    for name in ("work", "workers", "shards", "inexact"):
        if getattr(arguments, name):
            raise UsageError(f"--{name} needs --cluster")
    if any(isinstance(one, str) for one in arguments.output):
        raise UsageError("-o URL needs --cluster: expected a directory")


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.trace import can_reread
    from wiretale.cli.shards.shard import run_shard, shard_in

    if shard := shard_in(arguments.files):
        return run_shard(arguments, *shard)

    if arguments.cluster is not None:
        return run_on_cluster(arguments)
    check_local(arguments)
    check_arguments(arguments)
    if options.report_paths(arguments) or arguments.pictures:
        from wiretale.analyzer.capture_paths import expand_paths

        arguments.files = expand_paths(arguments.files)
        check_files(arguments)
    # Packets are kept if they are shown, but the input cannot be read twice.
    keep = "packets" in arguments.tables or (shows_packets(arguments) and not can_reread([arguments.files]))
    trace = read(arguments, keep)
    deliver(trace, arguments)
    return exit_code(trace)
