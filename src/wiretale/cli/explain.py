# SPDX-License-Identifier: Apache-2.0
"""wiretale explain: what limited each transfer, what went wrong, where, what it cost and what to change."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from wiretale.cli.analyze import FILE_HELP, LINK_HELP, add_reading, exit_code, read
from wiretale.cli.parser import exit_codes
from wiretale.cli.whole_number import whole_number
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace
    from wiretale.cli.parser import Commands

DESCRIPTION = """\
Explain what limited each transfer, what went wrong and how to fix it. A headline for each transfer is followed by its
findings, the most severe and costly first.
"""
EXAMPLES = """\
wiretale explain transfer.pcapng
# compared with the maximum of the link
wiretale explain transfer.pcapng --link 1G
# the first finding, for scripts
wiretale explain transfer.pcapng --json | jq '.findings[0]'
# every finding that exists; how one is computed and its limits
wiretale explain --list
wiretale explain --code bufferbloat
"""
Row = dict[str, Any]


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "explain",
        usage="wiretale explain FILE... [options]\nwiretale explain --list\nwiretale explain --code CODE",
        description=DESCRIPTION,
    )
    parser.examples, parser.exit_codes = EXAMPLES, exit_codes(0, 2, 3, 4, 130, 143)
    parser.add_argument("files", nargs="*", metavar="FILE", help=FILE_HELP)
    add_reading(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--code", metavar="CODE", help="show only findings of this code; without FILE, its page")
    output.add_argument("--list", action="store_true", help="list every finding that exists")
    output.add_argument("--top", type=whole_number(1), metavar="N", help="show only the first N findings")
    output.add_argument("--link", metavar="RATE", help=LINK_HELP)
    output.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    parser.set_defaults(command=explain)


def check_arguments(arguments: argparse.Namespace) -> None:
    """What is missing or contradicts."""
    from wiretale.analyzer.errors import UsageError

    if arguments.list and (arguments.files or arguments.code):
        raise UsageError("--list: expected no FILE and no --code with it")
    if not arguments.files and not arguments.code and not arguments.list:
        raise UsageError("no capture given: expected a file, a folder, - for standard input, --code or --list")


def show_list(as_json: bool) -> None:
    """Every code and title."""
    from wiretale.analyzer.findings.catalogue import pages

    if as_json:
        found = [{"code": page.code, "title": page.title} for page in pages().values()]
        print(json.dumps({"schema": "wiretale.finding-codes/1", "wiretale": __version__, "findings": found}))
        return
    from wiretale.reports.terminal.explain import list_parts, print_parts

    print_parts(sys.stdout, lambda console: list_parts())


def show_page(code: str, as_json: bool) -> None:
    """The page of a code."""
    from wiretale.analyzer.findings.catalogue import page_of

    page = page_of(code)
    if as_json:
        from wiretale.reports.export.explain import page_object

        print(json.dumps(page_object(page, __version__)))
        return
    from wiretale.reports.terminal.explain import page_parts, print_parts

    print_parts(sys.stdout, lambda console: page_parts(page))


def chosen_findings(trace: Trace, code: str | None) -> list[Row]:
    """By rank; those of one code where it is asked for."""
    return [row for row in trace.findings.rows() if code in (None, row["code"])]


def show_trace(trace: Trace, arguments: argparse.Namespace, link_bps: int | None) -> None:
    """Headlines and findings."""
    from wiretale.analyzer.findings.explain import explain as explain_transfers

    found = chosen_findings(trace, arguments.code)
    shown = found[: arguments.top]
    transfers = explain_transfers(trace, link_bps)
    if arguments.json:
        from wiretale.reports.export.explain import explain_object

        print(json.dumps(explain_object(trace, transfers, shown, __version__)))
        return
    from wiretale.reports.terminal.explain import explain_parts, print_parts

    left = len(found) - len(shown)
    print_parts(sys.stdout, lambda console: explain_parts(trace, transfers, shown, left, console))


def explain(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    check_arguments(arguments)
    if arguments.list:
        show_list(arguments.json)
        return 0
    if arguments.code:
        from wiretale.analyzer.findings.catalogue import page_of

        page_of(arguments.code)
    if not arguments.files:
        show_page(arguments.code, arguments.json)
        return 0
    from wiretale.analyzer.units import parse_rate

    link_bps = parse_rate(arguments.link) if arguments.link is not None else None
    trace = read(arguments, keep_packets=False)
    show_trace(trace, arguments, link_bps)
    sys.stdout.flush()
    return exit_code(trace)
