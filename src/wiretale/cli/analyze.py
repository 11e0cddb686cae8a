# SPDX-License-Identifier: Apache-2.0
"""Say what went wrong or took the time, why, and what to do, on one screen: the answer, where the time went, causes with proof
and advice, flows, what was not judged, and the next command. --all shows everything. Several files are merged by time. Ctrl-C
stops and prints the results so far.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli.explained import check_choices, show_cause, show_findings, show_pages
from wiretale.cli.options import (
    FILE_HELP,
    STDOUT,
    add_analysis_options,
    analysis_options,
    deliver,
    folder_or_url,
    note,
    option,
    print_page,
    report_paths,
    whole_number,
)
from wiretale.cli.outputs import Outputs, add_outputs, check_files, outputs_of
from wiretale.cli.process import interrupted_code
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.diff.trace_condition import Checks
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.trace import Progress, Trace
    from wiretale.cluster.command import ClusterRun

USAGE = "wiretale analyze FILE... [options]\nwiretale analyze --list\nwiretale analyze --cause CODE"
EXAMPLES = """\
wiretale analyze transfer.pcapng
# every cause, flow and finding; transfers compared with the maximum of the link
wiretale analyze transfer.pcapng --all --link 1G
# one cause with its proof, and the page that explains it
wiretale analyze transfer.pcapng --cause tail-loss
wiretale analyze --cause tail-loss
# the interactive report
wiretale analyze transfer.pcapng --report transfer.html
# a part of several files
wiretale analyze day/*.pcap.zst -f 'tcp port 443' --start 2026-01-15T12:00:00Z
# every table but packets as Parquet, and report.html; then with packets
wiretale analyze transfer.pcapng -o transfer.wiretale
wiretale analyze transfer.pcapng -o transfer.wiretale --tables packets
# verdicts and causes in Wireshark's packet list
wiretale analyze transfer.pcapng --wireshark transfer.lua
# a picture of one flow with two panels
wiretale analyze transfer.pcapng --figure 0:sequence,rtt -o transfer.svg
# two pictures: flow-0-sequence.png and flow-3-rtt.png
wiretale analyze transfer.pcapng --figure 0:sequence --figure 3:rtt -o 'flow-{flow}-{panel}.png'
# all cores of this machine, or the workers of a Dask scheduler
wiretale analyze day/*.pcapng --cluster local -o day.wiretale
wiretale analyze 's3://captures/day/*' --cluster 10.0.0.1:8786 -o s3://results/day
# live traffic
tcpdump -i eth0 -w - | wiretale analyze - --report live.html
# for scripts: the answer, the first finding with its proof, and tables
wiretale analyze transfer.pcapng --json | jq -r .answer.sentence
wiretale analyze transfer.pcapng --json --all | jq '.findings[0]'
wiretale analyze transfer.pcapng --json --tables flows,events | jq .events
wiretale analyze transfer.pcapng --jsonl exchanges --columns server,outcome
# for CI: exit code 1 if anything was lost, or if servers took longer than 200 ms
wiretale analyze transfer.pcapng --fail-if 'lost>0' --fail-if 'server_time>0.2s'
"""
NOTES = """\
CONDITION is MEASURE OPERATOR VALUE, as in `wiretale diff`, but of this analysis. Operators: < <= > >= = !=

Measures over all flows: lost, failed (connections and requests), server_time, network_time, client_time, transfer_time, and those
of `wiretale diff --help`. flow.MEASURE holds if it does for any flow; cause.waited, cause.failed and cause.bytes if it does for
any cause, answer.waited and so on for the answer. A condition whose value is unknown fails, too.

Words: cause, answer or finding is one of these codes (`wiretale analyze --list`); severity is info, warning or error, as in
'severity>=warning'; certainty and place are words of causes. docs/howto/fail-a-build.md has examples.
"""
EXIT_CODES = (0, 1, 2, 3, 4, 5, 130, 143)
EXIT_TEXTS = {
    3: "done, but a file is damaged, truncated or skipped, or there is no packet",
    5: "a picture needs a browser, or kaleido; --cluster needs Dask and workers",
}
FAILED, DAMAGED = 1, 3
INTERFACES_FILE = "interfaces.parquet"  # in every folder of -o


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds the options that divide the analysis among workers."""
    group = parser.add_argument_group("cluster (docs/cluster.md)")
    text = "divide the analysis among processes of this machine, or the workers of a Dask scheduler; -o may be a URL"
    option(group, "--cluster", "local|HOST:PORT", text)
    text = "folder or URL that all workers share, for shards (default: -o with .work); the same command continues in it"
    option(group, "--work", "DIR", text)
    option(group, "--workers", "N", "processes of --cluster local (default: cores)", type=whole_number(1, 1024))
    text = "number of shards (default: 8 to 64, by size)"
    option(group, "--shards", "K", text, type=whole_number(1, 256))


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", FILE_HELP, nargs="*")
    option(parser, "--list", None, "list every cause and finding that exists")
    inputs = parser.add_argument_group("input")
    option(inputs, "--merge", None, "join captures that are more than an hour apart, or whose hosts never meet")
    add_analysis_options(inputs)
    add_cluster(parser)
    add_outputs(parser, folder_or_url)


def write_stdout(trace: Trace, outputs: Outputs, checks: Checks | None = None) -> None:
    """Writes the screen, or the output of --all, --json, --csv or --report - instead."""
    if outputs.json and outputs.explained and not outputs.tables:
        show_findings(trace, outputs, checks)
    elif outputs.json:
        from wiretale.reports.export import analyze as json_object

        tables = outputs.tables or json_object.TABLES
        more = checks.as_dict() if checks else {}
        json_object.write_json(trace, __version__, sys.stdout.buffer, tables, outputs.columns, more=more)
    elif outputs.jsonl or outputs.csv_alone:
        write_table(trace, outputs)
    elif outputs.report == STDOUT:
        from wiretale.reports.html.analyze import render

        print_page(render(trace, outputs.link_bps, frames=outputs.frames))
    elif outputs.quiet:
        return
    elif outputs.cause:
        show_cause(trace, outputs.cause)
    elif outputs.explained:
        show_findings(trace, outputs)
    else:
        from wiretale.reports.terminal.screen.page import print_screen

        print_screen(trace, sys.stdout)


def write_checks(checks: Checks | None, outputs: Outputs) -> None:
    """Writes what came of --fail-if, below what a person reads."""
    if checks and not (outputs.quiet or outputs.prints_data or outputs.report == STDOUT):
        from wiretale.reports.terminal.diff import print_checks

        print_checks(checks, sys.stdout)


def write_table(trace: Trace, outputs: Outputs) -> None:
    """Writes the rows of one table."""
    name = (*outputs.tables, "flows")[0]
    parts = trace._packet_parts() if name == "packets" else [trace.table(name)]
    if outputs.jsonl:
        for part in parts:
            sys.stdout.buffer.writelines(part.json(outputs.columns or None, lines=True))
    else:
        from wiretale.reports.export.csv_text import write_csv

        write_csv(parts, sys.stdout, outputs.columns)


def write_files(trace: Trace, outputs: Outputs) -> Iterator[Path]:
    """Writes the files of -o, --figure and --report, and yields each path."""
    if outputs.pictures:
        from wiretale.reports.figures.picture import write_picture

        figures = [trace.figure(flow, *panels) for flow, panels in outputs.figures]  # all, before one is written
        yield from map(write_picture, figures, outputs.pictures)
    if outputs.wireshark:
        from wiretale.reports.export import wireshark
        from wiretale.reports.html.offline_page import write

        yield write(wireshark.script(trace), outputs.wireshark)
        if not outputs.quiet:
            note(f"open the capture with: {wireshark.command(trace, outputs.wireshark)}")
    paths = report_paths(outputs)
    pages: list[str] = []

    def draw() -> None:
        if paths:
            from wiretale.reports.html.analyze import render

            pages.append(render(trace, outputs.link_bps, frames=outputs.frames))

    if outputs.output:
        from wiretale.reports.export.parquet import write_tables

        yield write_tables(trace, outputs.output, outputs.formats, "packets" in outputs.tables, draw)
    else:
        draw()
    if paths:
        from wiretale.reports.html.offline_page import write

        yield from (write(pages[0], path) for path in paths)


def deliver_trace(
    trace: Trace, outputs: Outputs, placed: Callable[[Iterator[Path]], Iterator[Path | str]] = iter
) -> bool:
    """Shows the result and writes its files; `placed` yields where they are at last. Returns whether --fail-if fails."""
    checks = checks_of(trace, outputs)

    def show() -> None:
        write_stdout(trace, outputs, checks)
        write_checks(checks, outputs)

    deliver(outputs, show, placed(write_files(trace, outputs)))
    dropped = trace._packets_lost
    if dropped and "packets" in outputs.tables:
        note(f"the packets table is full: {dropped:,} packets are not in it (use --filter)")
    note_undetermined(checks)
    return bool(checks and not checks.passed)


def note_undetermined(checks: Checks | None) -> None:
    """Writes which conditions of --fail-if could not be checked, and why."""
    for holds, line in checks.lines() if checks else ():
        if holds is None:
            note(f"--fail-if {line}")


def checks_of(trace: Trace, outputs: Outputs) -> Checks | None:
    """Returns what came of --fail-if; None without it."""
    if not outputs.conditions:
        return None
    from wiretale.analyzer.diff.trace_condition import check_trace

    return check_trace(trace, outputs.conditions)


@contextmanager
def progress_bar(is_shown: bool) -> Iterator[Progress | None]:
    """A bar of the bytes read on stderr, if that is a terminal."""
    if not is_shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[packets]:,} packets"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, packets=0)
        yield lambda done, total, packets: bar.update(task, completed=done, total=total or None, packets=packets)


def is_empty(trace: Trace) -> bool:
    """Returns whether the captures have no packet, not even one that the options exclude."""
    return not (trace.empty_range or trace.interfaces.total("packets") or trace.interfaces.total("filtered_packets"))


def exit_code(trace: Trace, failed: bool = False) -> int:
    """Returns the exit code of an analysis, which may have `failed` --fail-if, and reports interruption, damage, and an empty
    range of --start and --end."""
    if trace.empty_range:
        note(trace.empty_range)
    if trace.interrupted:
        note(f"interrupted: results cover {trace.totals['packets']:,} packets")
        return interrupted_code()
    for row in trace.interfaces.rows() if trace.damaged else []:
        if row["damage"]:
            note(row["damage"])
    return FAILED if failed else DAMAGED if trace.damaged or is_empty(trace) else 0


def read(
    files: list[str], options: AnalysisOptions, quiet: bool, keep_packets: bool = False, as_json: bool = False
) -> Trace:
    """Analyzes the files; shows progress on a terminal."""
    from wiretale.analyzer import trace as traces

    later = traces.importing("wiretale.reports.export.analyze") if as_json else nullcontext()
    with later, progress_bar(not quiet) as progress:
        return traces.analyze_with([files], options, keep_packets=keep_packets, progress=progress)


def run_local(files: list[str], options: AnalysisOptions, outputs: Outputs, tells: bool = False) -> int:
    """Analyzes the files in this process; `tells` if unrelated captures were merged."""
    from wiretale.analyzer.trace import can_reread

    if outputs.has_files:
        from wiretale.analyzer.capture_paths import expand_paths

        files = expand_paths(files)
        check_files(outputs, files)
    # Packets are kept if they are shown, but the input cannot be read twice.
    keep = "packets" in outputs.tables or (outputs.has_packets and not can_reread([files]))
    trace = read(files, options, outputs.quiet, keep, outputs.json)
    if tells and not (outputs.quiet or outputs.prints_data):
        from wiretale.cli.apart import merged_note

        merged_note(trace)
    return exit_code(trace, deliver_trace(trace, outputs))


def run_on_cluster(files: list[str], options: AnalysisOptions, outputs: Outputs, cluster: ClusterRun) -> int:
    """The same by the workers of --cluster."""
    from wiretale.analyzer.capture_paths import expand_paths, is_url
    from wiretale.analyzer.errors import UsageError
    from wiretale.cluster.command import check_cluster, local_output, result

    cluster = check_cluster(cluster, outputs.place)
    with local_output(outputs.url) as (folder, placed):
        outputs = outputs._replace(output=folder or outputs.output)
        expanded = expand_paths(files)
        if ("packets" in outputs.tables or outputs.pictures) and any(map(is_url, expanded)):
            raise UsageError(
                "--tables packets and --figure with --cluster need local files, which are read a second time"
            )
        check_files(outputs, expanded)
        with result(expanded, options, cluster, outputs.quiet) as (trace, left_out):
            if not left_out and not any(map(is_url, expanded)):
                trace._arguments = expanded.arguments
            failed = deliver_trace(trace, outputs, placed)
    return exit_code(trace, failed) or (DAMAGED if left_out else 0)


def check_local(arguments: argparse.Namespace) -> None:
    """Raises UsageError if there are options of --cluster without it."""
    from wiretale.analyzer.errors import UsageError

    for name in ("work", "workers", "shards"):
        if getattr(arguments, name):
            raise UsageError(f"--{name} needs --cluster")
    if any(isinstance(place, str) for place in arguments.output):
        raise UsageError("-o URL needs --cluster: expected a directory")


def run_several(files: list[str], options: AnalysisOptions, outputs: Outputs) -> int:
    """Analyzes several captures: unrelated ones apart if only the screen is wanted, else merged with a note."""
    from wiretale.analyzer.capture_paths import expand_paths, is_url
    from wiretale.cli.apart import groups_of, show_apart

    files = expand_paths(files)
    groups = groups_of(files, options) if outputs.is_screen and not any(map(is_url, files)) else []
    return show_apart(groups, options, outputs) if len(groups) > 1 else run_local(files, options, outputs, True)


def reopened(arguments: argparse.Namespace, options: AnalysisOptions) -> tuple[list[str], AnalysisOptions]:
    """Returns captures and options: those of its analysis if the only input is an output folder of -o."""
    first, *further = arguments.files
    if further or not Path(first, INTERFACES_FILE).is_file():
        return arguments.files, options
    from wiretale.reports.view.folder import analysis_of, is_output, refuse_options

    if not is_output(Path(first)):
        return arguments.files, options
    refuse_options(options, Path(first))
    files, analyzed = analysis_of(Path(first))
    return files, analyzed._replace(jobs=options.jobs)


def run_pages(arguments: argparse.Namespace) -> int:
    """Shows the list of causes and findings, or a page, without a capture."""
    from wiretale.analyzer.errors import UsageError

    if arguments.list and (arguments.files or arguments.finding or arguments.cause):
        raise UsageError("--list takes no FILE, no --finding and no --cause")
    if isinstance(arguments.finding, int) or not (arguments.list or arguments.finding or arguments.cause):
        raise UsageError("expected FILE; see `wiretale analyze --help`")
    check_choices(arguments)
    show_pages(arguments.finding, arguments.cause, arguments.json)
    return 0


def run(arguments: argparse.Namespace) -> int:
    if arguments.list or not arguments.files:
        return run_pages(arguments)
    if arguments.cluster is None:
        check_local(arguments)
    outputs, options = outputs_of(arguments), analysis_options(arguments)
    if arguments.cluster is None:
        files, options = reopened(arguments, options)
        is_several = not arguments.merge and (len(files) > 1 or any(map(os.path.isdir, files)))
        return (run_several if is_several else run_local)(files, options, outputs)
    from wiretale.cluster.command import ClusterRun

    cluster = ClusterRun(arguments.cluster, arguments.work, arguments.workers, arguments.shards)
    return run_on_cluster(arguments.files, options, outputs, cluster)
