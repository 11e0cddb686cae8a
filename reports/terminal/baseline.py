# SPDX-License-Identifier: Apache-2.0
"""`wiretale diff --store`: whether a run is unusual, then the measures that are, findings and services, and all measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from wiretale.analyzer.diff.baseline import p_text
from wiretale.analyzer.printable import printable
from wiretale.reports.changes import baseline_lines, percent_text
from wiretale.reports.terminal.console import INDENT, STYLES, print_parts, section
from wiretale.reports.terminal.diff import VERDICTS, condition_line
from wiretale.reports.terminal.fitted import Column, fitted

if TYPE_CHECKING:
    from wiretale.analyzer.diff.baseline import AgainstBaseline, Standing
    from wiretale.analyzer.diff.fail_condition import Condition

COLUMNS = (
    *(Column("measure"), Column("B", True), Column("change", True, 1), Column("median", True), Column("p5", True, 3)),
    *(Column("p95", True, 2), Column("runs", True, 5), Column("p alone", True, 6), Column("p", True, 4), Column("")),
)


def standing_row(standing: Standing) -> tuple[Text | str, ...]:
    """Returns the row of a measure."""
    show, verdict = standing.measure.unit.show, standing.verdict or ""
    style = VERDICTS.get(verdict, "yellow" if verdict == "different" else "")
    mark = (
        verdict if standing.is_unusual else "outside all runs" if standing.is_outside and standing.p is not None else ""
    )
    spread = (show(standing.quantile(share)) for share in (0.5, 0.05, 0.95))
    chances = ("" if p is None else p_text(p) for p in (standing.p_alone, standing.p))
    cells = (
        show(standing.value),
        percent_text(standing.change),
        *spread,
        f"{len(standing.baseline_values):,}",
        *chances,
    )
    return standing.measure.label, *(Text(cell, style=style) for cell in cells), Text(mark, style=style)


def parts(difference: AgainstBaseline, conditions: Sequence[Condition], width: int) -> Iterator[RenderableType]:
    """Yields the sections."""
    left_out = f", {difference.left_out:,} more left out (damaged, empty or B itself)" if difference.left_out else ""
    yield Text(f"A  {printable(difference.store)} ({difference.runs:,} runs{left_out})", style="bold")
    yield Text(f"B  {printable(difference.after.path)} ({difference.after.kind})", style="bold")
    style = VERDICTS.get(difference.verdict or "", "yellow" if difference.verdict == "different" else "")
    yield Text(f"\n{printable(difference.sentence())}", style=f"bold {style}".strip())
    if lines := list(baseline_lines(difference)):
        rare = [Text(printable(line), style=STYLES.get(severity, "")) for severity, line in lines]
        yield section("Findings and services that are rare in the baseline", *rare)
    for service in dict.fromkeys(standing.service for standing in difference.standings):
        heading = "All flows" if service is None else printable(f"Service {service}")
        rows = (standing_row(standing) for standing in difference.standings if standing.service == service)
        yield section(heading, fitted(COLUMNS, rows, width))
    if conditions:
        yield section("Thresholds", *(condition_line(condition, difference) for condition in conditions))


def print_against(difference: AgainstBaseline, conditions: Sequence[Condition], out: IO[str]) -> None:
    """Prints where a run stands in its baseline."""
    print_parts(out, lambda console: parts(difference, conditions, console.width - INDENT))
