# SPDX-License-Identifier: Apache-2.0
"""The head of a summary: the answer, the fault of the capture that weakens it, and the causes with proof and advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.causes.registry import CAUSES, CHAPTERS, cause_of, example_of
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural
from wiretale.reports.phrases import cause_cost
from wiretale.reports.terminal.console import STYLES, detail_lines, indented, section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.analyzer.rows import CauseRow
    from wiretale.analyzer.trace import Trace

CAUSES_SHOWN, FRAMES_SHOWN = 5, 10
SIGNS = {"error": "▲", "warning": "◇", "info": "○"}
SURE = {"proven": "", "likely": ", probably", "possible": ", possibly"}


def answer_parts(trace: Trace) -> Iterator[RenderableType]:
    """Yields the answer, and the fault of the capture that weakens it."""
    answer = trace.answer
    yield Text(printable(answer.sentence), style="bold")
    if answer.caveat:
        yield Text(printable(f"Caveat: {answer.caveat}"))


def cause_parts(trace: Trace) -> Iterator[RenderableType]:
    """Yields the causes above a note: mark, title, effects and cost, with proof and advice."""
    rows = [row for row in trace.causes if row["severity"] != "info"]
    if not rows:
        return
    effects: dict[int, int] = {}
    for member in trace.cause_findings:
        effects[member["cause"]] = effects.get(member["cause"], 0) + 1
    parts: list[RenderableType] = []
    for row in rows[:CAUSES_SHOWN]:
        head = Text(f"{row['cause']} {SIGNS[row['severity']]} ", style=STYLES[row["severity"]])
        head.append(f"{CAUSES[row['code']].title}{SURE[row['certainty']]}", style="bold")
        count = effects.get(row["cause"], 0)
        head.append(f"  {plural(count, 'finding')}" if count else "", style="dim")
        line = Grid.grid(padding=(0, 2), expand=True)
        line.add_column(overflow="fold", ratio=1)
        line.add_column(justify="right", no_wrap=True)
        line.add_row(head, cause_cost(row))
        parts += [line, indented(detail_lines({"proof": row["proof"], "fix": row["advice"]}, ("proof", "fix")))]
    left = len(rows) - CAUSES_SHOWN
    more = [Text(f"{plural(left, 'more cause')}: table causes", style="dim")] if left > 0 else []
    yield section("Causes", *parts, *more)
    yield Text()


def cause_page(code: str) -> Iterator[RenderableType]:
    """Yields the page of a cause."""
    rule, example = cause_of(code), example_of(code)
    yield Text.assemble((rule.code, "bold"), f"  {rule.title}")
    yield section("How it shows", Text(rule.shows))
    if rule.rivals:
        yield section("What it is not", *(Text(f"{rival}: {fact}") for rival, fact in rule.rivals.items()))
    if rule.unknown:
        yield section("Limits", Text(rule.unknown))
    if rule.explains:
        yield section("Findings that are effects of it", Text(", ".join(rule.explains)))
    if example:
        yield section("Example", Text(f"{example['sentence']} ({example['certainty']})"))


def cause_list() -> Iterator[RenderableType]:
    """Yields all causes by family."""
    for family, rules in CHAPTERS.items():
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for rule in rules:
            grid.add_row(rule.code, rule.title)
        yield section(f"Causes: {family}", grid)


def cause_detail(trace: Trace, code: str) -> Iterator[RenderableType]:
    """Yields the causes of a code in a trace with proof, rivals, findings and packets."""
    rows = [row for row in trace.causes if row["code"] == code]
    if not rows:
        yield Text(f"{code} is not among the causes of this capture.")
    for row in rows:
        yield Text(printable(row["sentence"]), style="bold")
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for name, text in detail_of(trace, row).items():
            if text:
                grid.add_row(name, Text(printable(text)))
        yield indented(grid)


def detail_of(trace: Trace, row: CauseRow) -> dict[str, str | None]:
    """Returns what is known of a cause beside its sentence, by the names of lines."""
    number = row["cause"]
    rivals = [rival for rival in trace.cause_rivals if rival["cause"] == number]
    findings = [str(member["finding"]) for member in trace.cause_findings if member["cause"] == number]
    frames = sorted({frame["frame"] for frame in trace.cause_frames if frame["cause"] == number})[:FRAMES_SHOWN]
    return {
        "certainty": row["certainty"],
        "cost": cause_cost(row),
        "proof": row["proof"],
        **{f"not {rival['rival']}": rival["fact"] for rival in rivals if rival["excluded"]},
        **{f"or {rival['rival']}": f"{rival['fact']} would decide" for rival in rivals if not rival["excluded"]},
        "findings": ", ".join(findings),
        "frames": ", ".join(map(str, frames)),
        "fix": row["advice"],
        "filter": row["filter"],
    }
