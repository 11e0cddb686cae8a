# SPDX-License-Identifier: Apache-2.0
"""wiretale diff: two runs side by side."""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.help_text import HelpText
from wiretale.cli.whole_number import whole_number
from wiretale.version import __version__

EXAMPLES = """\
examples:
  wiretale diff before.pcapng after.pcapng
  wiretale diff monday.wiretale tuesday.wiretale --fail-if 'goodput<-5%' --fail-if 'rtt_p99>20ms'
  wiretale diff before.json after.json --json | jq .changed_most

A and B are captures, folders of captures, folders that `wiretale analyze -o` or `wiretale experiment run` wrote, or what
`wiretale send --json` printed. Measured are totals, and each flow against its partner: the same ends where these are
unique, else by rank.

--fail-if MEASURE OPERATOR VALUE fails (exit code 1) when the change from A to B is such: with % relative to A, else the
difference itself (5ms, 10Mbit, 0.5). Operators: < <= > >= == !=
"""
EXIT_CODES = """\
exit codes: 0 done, 1 a --fail-if holds, 2 wrong usage, 3 done but a file was damaged or cut short, 4 input unreadable,
130 interrupted
"""
FAILED, DAMAGED = 1, 3


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "diff",
        usage="wiretale diff A B [options]",
        description=EXAMPLES,
        epilog=EXIT_CODES,
        formatter_class=HelpText,
    )
    parser.add_argument("before", metavar="A", help="the run that changes are measured from")
    parser.add_argument("after", metavar="B", help="the run that they are measured to")
    parser.add_argument(
        "--fail-if", action="append", default=[], metavar="CONDITION", help="exit code 1 if it holds; repeatable"
    )
    parser.add_argument(
        "--flows", type=whole_number(0), default=10, metavar="N", help="flows shown, the most changed (default 10)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the tables")
    parser.set_defaults(command=diff)


def diff(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer.fail_condition import parse_condition
    from wiretale.analyzer.printable import printable
    from wiretale.analyzer.run_diff import diff_runs
    from wiretale.analyzer.run_load import load_run

    conditions = [parse_condition(text) for text in arguments.fail_if]  # before anything is read
    difference = diff_runs(load_run(arguments.before), load_run(arguments.after))
    if arguments.json:
        from wiretale.reports.diff_json import write_json

        write_json(difference, conditions, arguments.flows, __version__, sys.stdout)
    else:
        from wiretale.reports.diff_text import print_difference

        print_difference(difference, conditions, arguments.flows, sys.stdout)
    sys.stdout.flush()
    for run in (difference.before, difference.after):
        if run.damaged:
            print(f"wiretale: {printable(run.path)}: damaged or cut short; this is what was read", file=sys.stderr)
    for condition in conditions:
        if condition.holds(difference) is None:
            print(
                f"wiretale: --fail-if {condition.text}: cannot be judged, a run does not tell {condition.measure.name}",
                file=sys.stderr,
            )
    if any(condition.holds(difference) for condition in conditions):
        return FAILED
    return DAMAGED if difference.before.damaged or difference.after.damaged else 0
