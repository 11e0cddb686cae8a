# SPDX-License-Identifier: Apache-2.0
"""Explain what went wrong or took the time, why, and what to do, on one screen: the answer, where the time went, causes with
proof and advice, flows, what was not judged, and the next command. --all adds each transfer with its findings, the most severe
and costly first; `wiretale cut --finding` takes their numbers.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from typing import TYPE_CHECKING

from wiretale.cli.analyze import exit_code, read
from wiretale.cli.options import (
    FILE_HELP,
    LINK_HELP,
    add_analysis_options,
    add_json,
    analysis_options,
    option,
    print_json,
    whole_number,
)
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

USAGE = "wiretale explain FILE... [options]\nwiretale explain --list\nwiretale explain --code CODE\nwiretale explain --cause CODE"
EXAMPLES = """\
wiretale explain transfer.pcapng
# every cause and finding with its evidence; transfers compared with the maximum of the link
wiretale explain transfer.pcapng --all --link 1G
# the first finding, for scripts
wiretale explain transfer.pcapng --json | jq '.findings[0]'
# the answer, for scripts
wiretale explain transfer.pcapng --json | jq -r .answer.sentence
# every finding and cause that exists; how one is computed and its limits
wiretale explain --list
wiretale explain --code bufferbloat
wiretale explain --cause copies
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", FILE_HELP, nargs="*")
    add_analysis_options(parser.add_argument_group("input"))
    output = parser.add_argument_group("output")
    add_json(output)
    option(output, "--code", "CODE", "show only findings of this code; without FILE, its page")
    option(output, "--cause", "CODE", "show only this cause, with what excludes its rivals; without FILE, its page")
    option(output, "--list", None, "list every finding and cause that exists")
    option(
        output,
        "--top",
        "N",
        "list the first N findings below the causes; with --json, only these",
        type=whole_number(1),
    )
    option(output, "--all", None, "list every cause and finding")
    option(output, "--link", "RATE", LINK_HELP)
    option(output, "-q --quiet", None, "print no progress")


def check_arguments(arguments: argparse.Namespace) -> None:
    """Raises UsageError if an argument is missing or contradicts another."""
    from wiretale.analyzer.errors import UsageError

    files, code, cause, every = arguments.files, arguments.code, arguments.cause, arguments.all
    listing = every or arguments.top or arguments.link
    contradictions = {
        "--list takes no FILE, no --code and no --cause": arguments.list and (files or code or cause),
        "--code and --cause exclude each other": code and cause,
        "--cause shows causes alone: it takes no --all, --top or --link without --json": (
            cause and listing and not arguments.json
        ),
        "--all and --top exclude each other": every and arguments.top,
        "no capture given: expected a file, a directory, - for standard input, --code, --cause or --list": (
            not (files or code or cause or arguments.list)
        ),
    }
    for message, holds in contradictions.items():
        if holds:
            raise UsageError(message)


def show_pages(code: str | None, cause: str | None, as_json: bool) -> None:
    """Prints the page of a finding or of a cause, or without either the list of all."""
    if as_json:
        from wiretale.reports.export.explain import cause_object, list_object, page_object

        page = page_object(code, __version__) if code else cause_object(cause, __version__) if cause else None
        print_json(page or list_object(__version__))
        return
    from wiretale.reports.terminal.console import print_parts
    from wiretale.reports.terminal.explain import list_parts, page_parts
    from wiretale.reports.terminal.screen.causes import cause_list, cause_page

    parts = page_parts(code) if code else cause_page(cause) if cause else chain(list_parts(), cause_list())
    print_parts(sys.stdout, lambda console: parts)


def show_screen(trace: Trace, arguments: argparse.Namespace) -> None:
    """Prints the screen, or the causes of a code."""
    if arguments.cause:
        from wiretale.reports.terminal.console import print_parts
        from wiretale.reports.terminal.screen.causes import cause_detail

        print_parts(sys.stdout, lambda console: cause_detail(trace, arguments.cause))
        return
    from wiretale.reports.terminal.screen.page import print_screen

    print_screen(trace, sys.stdout)


def show_findings(trace: Trace, arguments: argparse.Namespace, link: int | None) -> None:
    """Prints every transfer with its findings, or as JSON."""
    from wiretale.analyzer.findings.explain import explain as explain_transfers

    findings = [row for row in trace.findings.rows() if arguments.code in (None, row["code"])]
    listed, unlisted = findings[: arguments.top], findings[arguments.top :] if arguments.top else []
    transfers = explain_transfers(trace, link)
    if arguments.json:
        from wiretale.reports.export.explain import explain_object

        print_json(explain_object(trace, transfers, listed, __version__, arguments.cause))
        return
    from wiretale.reports.terminal.console import print_parts
    from wiretale.reports.terminal.explain import explain_parts

    print_parts(sys.stdout, lambda console: explain_parts(trace, transfers, listed, unlisted, console))


def run(arguments: argparse.Namespace) -> int:
    check_arguments(arguments)
    if arguments.code:
        from wiretale.analyzer.findings.registry import page_of

        page_of(arguments.code)  # UsageError before the analysis
    if arguments.cause:
        from wiretale.analyzer.causes.registry import cause_of

        cause_of(arguments.cause)
    if not arguments.files:
        show_pages(arguments.code, arguments.cause, arguments.json)
        return 0
    from wiretale.analyzer.options import link_rate

    link = link_rate(arguments.link)
    trace = read(arguments.files, analysis_options(arguments), arguments.quiet)
    if arguments.json or arguments.all or arguments.top or arguments.code or link:  # which the screen does not show
        show_findings(trace, arguments, link)
    else:
        show_screen(trace, arguments)
    sys.stdout.flush()
    return exit_code(trace)
