# SPDX-License-Identifier: Apache-2.0
"""The parts of `wiretale analyze` that the screen has no room for: every cause and finding, those of a code, and pages."""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from typing import TYPE_CHECKING

from wiretale.cli.options import add_json, finding_name, option, print_json, whole_number
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.diff.trace_condition import Checks
    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.trace import Trace
    from wiretale.cli.outputs import Outputs


def add_choices(parser: argparse.ArgumentParser, flows: int) -> None:
    """Adds the options that say how much is shown."""
    group = parser.add_argument_group("what is shown")
    option(group, "--all", None, f"everything: causes and findings with proof, captures, {flows} flows, each transfer")
    option(group, "--flows", "N", "the same with N flows, largest first", type=whole_number(1))
    option(group, "--top", "N", "the same with the first N findings", type=whole_number(1))
    option(group, "--cause", "CODE", "show this cause, and why it is none of its rivals; without FILE, explain it")
    text = "show finding N of --all, or those of a code, with frames and filter; a code without FILE: explain it"
    option(group, "--finding", "N|CODE", text, type=finding_name)
    add_json(group, " with the tables; with --all, --top, --cause or --finding, with these findings and their proof")


def check_choices(arguments: argparse.Namespace) -> None:
    """Raises UsageError if choices contradict each other, or if a code does not exist."""
    from wiretale.analyzer.errors import UsageError

    finding, cause, printed = arguments.finding, arguments.cause, not arguments.json
    listing = [name for name in ("all", "flows", "top", "link") if getattr(arguments, name)]
    contradictions = {
        "--finding and --cause: use only one": finding and cause,
        "--all and --top: use only one": arguments.all and arguments.top,
        "--cause shows causes alone: it takes no --all, --flows, --top or --link without --json": (
            cause and listing and printed
        ),
        "--finding shows findings alone: it takes no --all, --flows or --link without --json": (
            finding and printed and {*listing} - {"top"}
        ),
        "--tables has rows of its own: it takes no --all, --top, --cause or --finding": (
            arguments.tables and not printed and (listing or finding or cause)
        ),
    }
    for message, holds in contradictions.items():
        if holds:
            raise UsageError(message)
    check_codes(finding, cause)


def check_codes(finding: int | str | None, cause: str | None) -> None:
    """Raises UsageError if there is no such finding or cause."""
    from wiretale.analyzer.errors import UsageError

    if finding == 0:
        raise UsageError("finding 0: findings are numbered from 1")
    if isinstance(finding, str):
        from wiretale.analyzer.causes.registry import CAUSES
        from wiretale.analyzer.findings.registry import RULES, page_of

        if finding in CAUSES and finding not in RULES:
            raise UsageError(f"{finding} is a cause: --cause {finding}")
        page_of(finding)
    if cause:
        from wiretale.analyzer.causes.registry import cause_of

        cause_of(cause)


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


def show_cause(trace: Trace, code: str) -> None:
    """Prints the causes of a code."""
    from wiretale.reports.terminal.console import print_parts
    from wiretale.reports.terminal.screen.causes import cause_detail

    print_parts(sys.stdout, lambda console: cause_detail(trace, code))


def findings_shown(trace: Trace, finding: int | str | None) -> list[FindingRow]:
    """Returns the finding of a number, those of a code, or all. UsageError if the number is of none."""
    if isinstance(finding, int):
        from wiretale.analyzer.cut.choice import findings_named

        return list(findings_named(trace, [finding]))
    return [row for row in trace.findings.rows() if finding in (None, row["code"])]


def show_findings(trace: Trace, outputs: Outputs, checks: Checks | None = None) -> None:
    """Prints the findings of --finding alone; else causes, flows, and every transfer with its findings; or JSON."""
    from wiretale.analyzer.findings.explain import explain as explain_transfers

    findings = findings_shown(trace, outputs.finding)
    listed, unlisted = findings[: outputs.top], findings[outputs.top :] if outputs.top else []
    if outputs.finding is not None and not outputs.json:
        from wiretale.reports.terminal.explain import print_findings

        print_findings(trace, listed, outputs.finding, len(unlisted), sys.stdout)
        return
    transfers = explain_transfers(trace, outputs.link_bps)
    if outputs.json:
        from wiretale.reports.export.explain import explain_object

        content = explain_object(trace, transfers, listed, __version__, outputs.cause)
        print_json({**content, **(checks.as_dict() if checks else {})})
        return
    from wiretale.reports.terminal.explain import print_explanation

    print_explanation(trace, transfers, listed, sys.stdout, unlisted, outputs.flows)
