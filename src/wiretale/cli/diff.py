# SPDX-License-Identifier: Apache-2.0
"""Compare two runs: which is faster, and what changed. --all adds every measure, and each flow beside its counterpart (the
same endpoints if they are unique, else the same rank).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli import options
from wiretale.cli.options import add_json, add_overwrite, note, option, print_json, whole_number
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.diff.difference import Difference
    from wiretale.analyzer.diff.fail_condition import Compared, Condition
    from wiretale.analyzer.diff.run import Run

USAGE = "wiretale diff A B [options]\nwiretale diff --store DIR B [options]"
EXAMPLES = """\
wiretale diff before.pcapng after.pcapng
wiretale diff before.pcapng after.pcapng --report changes.html
# exit code 1 for a regression
wiretale diff monday.wiretale tuesday.wiretale --fail-if 'goodput<-5%' --fail-if 'rtt_p99>20ms'
# a run against the captures of a store, each a run; exit code 1 if it is unusual and worse
wiretale diff --store archive/ new.pcapng --fail-if worse
wiretale diff --store archive/ --where "day >= '2026-11-01'" new.pcapng
# every measure, finding and flow that changed
wiretale diff before.pcapng after.pcapng --all
# the largest changes, for scripts
wiretale diff before.json after.json --json | jq .changed_most
"""
NOTES = """\
A run is a capture, a directory of captures, the output of `wiretale analyze -o` or `wiretale experiment run`, or the
output of `wiretale send --json`.

The output begins with which run is slower, by goodput, and with each run's own answer. The main measures follow, then the
parts of the time and the findings that changed most; --all lists all of them. goodput counts unique payload, throughput IP
packets, bytes payload.

The page of --report has the same, and draws both runs over one time axis, each from its own start: throughput, unique
payload, RTT, losses and distributions, of all flows and of the most changed. Output of the generator has no packets to draw.

CONDITION is MEASURE OPERATOR VALUE. A condition holds if the change from A to B matches: with % relative to A, else the absolute
change (5ms, 10Mbit, 0.5); a change that is unknown fails, too. Operators: < <= > >= = !=

With --store, A is all captures of the store, or those that --where selects. The output begins with whether B is unusual among
them. A measure is unusual if its p is at most 0.05: the share of runs, B included, that are as far from the median in any
measure. That needs 19 runs. CONDITION then compares B with the median, or is `worse` or `unusual`. docs/compare.md has the
measures and the method.

Measures: goodput, throughput, retransmissions, spurious, lost_upstream, lost_downstream, block_loss, blocks_lost,
rtt_min, rtt_median, rtt_p99, jitter, out_of_order, fragments, incomplete_datagrams, zero_windows, host_dropped, duration,
packets, bytes, flows, findings
"""
EXIT_CODES = (0, 1, 2, 3, 4, 130, 143)
FAILED, DAMAGED = 1, 3
FLOWS_LISTED = 10
# The verdicts of --store for which these words of --fail-if hold.
FAIL_WORDS = {"worse": ("worse",), "unusual": ("worse", "better", "different")}


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "before", "A", "the run that changes are measured from", nargs="?")
    option(parser, "after", "B", "the run that changes are measured to", nargs="?")
    option(
        parser, "--store", "DIR", "compare B with the distribution over the captures of a store", type=options.folder
    )
    text = "SQL condition on the view captures, such as \"day >= '2026-11-01'\" (with --store)"
    option(parser, "--where", "SQL", text)
    text = "exit with 1 if it holds; repeatable"
    option(parser, "--fail-if", "CONDITION", text, action="append", default=[])
    option(parser, "--all", None, "everything: all times, findings and measures that changed, and 10 flows")
    text = "the same with N flows, most changed first; of --store and --json, the services and flows (default: 10)"
    option(parser, "--flows", "N", text, type=whole_number(0))
    add_json(parser, " instead of the tables")
    option(parser, "--report", "FILE", "write an interactive page; - for standard output", type=options.file_or_stdout)
    add_overwrite(parser)
    option(parser, "-q --quiet", None, "print nothing but errors; --fail-if still decides the exit code")


def files_of(run: str) -> list[str]:
    """Returns the files that a run is read from."""
    return [str(file) for file in Path(run).iterdir()] if Path(run).is_dir() else [run]


def check_report(arguments: argparse.Namespace, runs: Sequence[str]) -> None:
    """Rejects a page that would destroy a run, that cannot be written, or that --json excludes."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.reports.export.destination import check_outputs

    if arguments.report == options.STDOUT:
        if arguments.json:
            raise UsageError("--json and --report - write to stdout: use only one")
    elif arguments.report:
        inputs = [file for run in runs for file in files_of(run)]
        check_outputs([arguments.report], inputs, arguments.overwrite, page=True)


def flows_of(arguments: argparse.Namespace) -> int:
    """Returns how many flows or services are listed."""
    return FLOWS_LISTED if arguments.flows is None else int(arguments.flows)


def write_stdout(difference: Difference, conditions: list[Condition], arguments: argparse.Namespace) -> None:
    """Writes the tables, or the output of --json or --report - instead."""
    if arguments.json:
        from wiretale.reports.export.diff import diff_object

        print_json(diff_object(difference, conditions, flows_of(arguments), __version__))
    elif arguments.report == options.STDOUT:
        from wiretale.reports.html.compare.diff import render

        options.print_page(render(difference))
    elif not arguments.quiet:
        from wiretale.reports.terminal.diff import print_difference

        is_short = arguments.flows is None and not arguments.all
        print_difference(difference, conditions, None if is_short else flows_of(arguments), sys.stdout)


def write_files(difference: Difference, arguments: argparse.Namespace) -> Iterator[Path]:
    """Writes the file of --report and yields its path."""
    if arguments.report not in (None, options.STDOUT):
        from wiretale.reports.html.compare.diff import write_report

        yield write_report(difference, arguments.report)


def finish(compared: Compared, runs: Sequence[Run], conditions: Sequence[Condition], failed: bool) -> int:
    """Writes notes about damaged runs and undetermined conditions, and returns the exit code."""
    from wiretale.analyzer.diff.fail_condition import any_failed

    damaged = [run for run in runs if run.damaged]
    for run in damaged:
        note(f"{run.path}: damaged or truncated: results cover its readable part")
    for condition in conditions:
        if condition.holds(compared) is None:
            note(f"--fail-if {condition.text}: undetermined, because {condition.unknown}")
    return FAILED if failed or any_failed(conditions, compared) else DAMAGED if damaged else 0


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.diff.difference import diff_runs
    from wiretale.analyzer.diff.fail_condition import parse_condition
    from wiretale.analyzer.diff.run import load_run
    from wiretale.analyzer.errors import UsageError

    if arguments.store is not None:
        return run_against_store(arguments)
    if arguments.after is None:
        raise UsageError("diff needs two runs, or one with --store")
    if arguments.where is not None:
        raise UsageError("--where chooses captures of a store: it needs --store")
    conditions = [parse_condition(text) for text in arguments.fail_if]  # UsageError before the runs are read
    check_report(arguments, (arguments.before, arguments.after))
    keep = arguments.report is not None
    difference = diff_runs(load_run(arguments.before, keep), load_run(arguments.after, keep))
    options.deliver(
        arguments,
        lambda: write_stdout(difference, conditions, arguments),
        write_files(difference, arguments),
    )
    return finish(difference, (difference.before, difference.after), conditions, False)


def run_against_store(arguments: argparse.Namespace) -> int:
    """wiretale diff --store."""
    from wiretale.analyzer.diff.baseline import BASELINE
    from wiretale.analyzer.diff.fail_condition import any_failed, parse_condition
    from wiretale.analyzer.diff.run import load_run
    from wiretale.analyzer.errors import UsageError
    from wiretale.reports.store.baseline import diff_with_store

    if arguments.before is None or arguments.after is not None:
        raise UsageError("diff --store compares one run with the store: expected one run, B")
    words = [text for text in arguments.fail_if if text in FAIL_WORDS]
    conditions = [parse_condition(text, BASELINE, FAIL_WORDS) for text in arguments.fail_if if text not in words]
    check_report(arguments, (arguments.before,))
    difference = diff_with_store(
        arguments.store, arguments.where, partial(load_run, arguments.before, True), flows_of(arguments)
    )
    failed = any(difference.verdict in FAIL_WORDS[word] for word in words)

    def write() -> None:
        if arguments.json:
            from wiretale.reports.export.baseline import baseline_object

            is_failed = failed or any_failed(conditions, difference)
            print_json(baseline_object(difference, conditions, is_failed, __version__))
        elif arguments.report == options.STDOUT:
            from wiretale.reports.store.baseline_page import render

            options.print_page(render(difference))
        elif not arguments.quiet:
            from wiretale.reports.terminal.baseline import print_against

            print_against(difference, conditions, sys.stdout)

    def files() -> Iterator[Path]:
        if arguments.report not in (None, options.STDOUT):
            from wiretale.reports.store.baseline_page import write_report

            yield write_report(difference, arguments.report)

    options.deliver(arguments, write, files())
    if words and difference.verdict is None:
        note(
            f"--fail-if {words[0]}: undetermined, because the baseline has too few runs or no measure in common with B"
        )
    return finish(difference, (difference.after,), conditions, failed)
