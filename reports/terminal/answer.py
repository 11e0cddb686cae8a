# SPDX-License-Identifier: Apache-2.0
"""The head of a summary: the answer, the fault of the capture that weakens it, and the causes with proof and advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.causes.registry import CAUSES
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural
from wiretale.reports.phrases import cause_cost
from wiretale.reports.terminal.console import STYLES, section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.analyzer.trace import Trace

CAUSES_SHOWN = 5
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
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    for row in rows[:CAUSES_SHOWN]:
        head = Text(f"{row['cause']} {SIGNS[row['severity']]} ", style=STYLES[row["severity"]])
        head.append(f"{CAUSES[row['code']].title}{SURE[row['certainty']]}", style="bold")
        count = effects.get(row["cause"], 0)
        head.append(f"  {plural(count, 'finding')}" if count else "", style="dim")
        grid.add_row(head, cause_cost(row))
        if row["proof"]:
            grid.add_row(Text(printable(f"    Proof  {row['proof']}")), "")
        grid.add_row(Text(printable(f"    Fix    {row['advice']}")), "")
    left = len(rows) - CAUSES_SHOWN
    more = [Text(f"{plural(left, 'more cause')}: table causes", style="dim")] if left > 0 else []
    yield section("Causes", grid, *more)
