# SPDX-License-Identifier: Apache-2.0
"""Compare two runs and rank the changes: totals, and each flow with its counterpart (the same endpoints if they are unique,
else the same rank).
"""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.options import add_json, note, option, print_json, whole_number
from wiretale.version import __version__

USAGE = "wiretale diff A B [options]"
EXAMPLES = """\
wiretale diff before.pcapng after.pcapng
# exit code 1 for a regression
wiretale diff monday.wiretale tuesday.wiretale --fail-if 'goodput<-5%' --fail-if 'rtt_p99>20ms'
# the largest changes, for scripts
wiretale diff before.json after.json --json | jq .changed_most
"""
NOTES = """\
A run is a capture, a directory of captures, the output of `wiretale analyze -o` or `wiretale experiment run`, or the
output of `wiretale send --json`.

CONDITION is MEASURE OPERATOR VALUE. It holds if the change from A to B matches: with % relative to A, else the absolute
change (5ms, 10Mbit, 0.5). Operators: < <= > >= == !=

Measures: goodput, throughput, retransmissions, spurious, lost_upstream, lost_downstream, block_loss, blocks_lost,
rtt_min, rtt_median, rtt_p99, jitter, out_of_order, fragments, incomplete_datagrams, zero_windows, host_dropped, duration,
packets, bytes, flows, findings
"""
EXIT_CODES = (0, 1, 2, 3, 4, 130, 143)
FAILED, DAMAGED = 1, 3


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "before", "A", "the run that changes are measured from")
    option(parser, "after", "B", "the run that changes are measured to")
    text = "exit with 1 if it holds; repeatable"
    option(parser, "--fail-if", "CONDITION", text, action="append", default=[])
    text = "flows listed, most changed first (default 10)"
    option(parser, "--flows", "N", text, type=whole_number(0), default=10)
    add_json(parser, " instead of the tables")


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.diff.difference import diff_runs
    from wiretale.analyzer.diff.fail_condition import parse_condition
    from wiretale.analyzer.diff.run import load_run

    conditions = [parse_condition(text) for text in arguments.fail_if]  # UsageError before the runs are read
    difference = diff_runs(load_run(arguments.before), load_run(arguments.after))
    if arguments.json:
        from wiretale.reports.export.diff import diff_object

        print_json(diff_object(difference, conditions, arguments.flows, __version__))
    else:
        from wiretale.reports.terminal.diff import print_difference

        print_difference(difference, conditions, arguments.flows, sys.stdout)
    sys.stdout.flush()
    for run in (difference.before, difference.after):
        if run.damaged:
            note(f"{run.path}: damaged or truncated: results cover its readable part")
    for condition in conditions:
        if condition.holds(difference) is None:
            note(f"--fail-if {condition.text}: undetermined, because {condition.measure.name} is unknown in a run")
    if any(condition.holds(difference) for condition in conditions):
        return FAILED
    return DAMAGED if difference.before.damaged or difference.after.damaged else 0
