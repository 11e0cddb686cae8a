# SPDX-License-Identifier: Apache-2.0
"""`wiretale diff`: which run is slower and what changed on one screen, or all times, findings, measures and flows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.reports.changes import (
    FINDINGS_SHOWN,
    MATCHED,
    TIMES_SHOWN,
    change_texts,
    finding_cost,
    finding_text,
    sign_of,
    time_text,
)
from wiretale.reports.terminal.command import Command
from wiretale.reports.terminal.console import INDENT, STYLES, detail_lines, last_lines, print_parts, section
from wiretale.reports.terminal.fitted import Column, fitted

if TYPE_CHECKING:
    from wiretale.analyzer.diff.difference import Change, Difference, FindingChange, FlowPair
    from wiretale.analyzer.diff.fail_condition import Compared, Condition
    from wiretale.analyzer.diff.trace_condition import Checks

FLOW_CHANGES = 6
#: of the screen, most telling first
MEASURES = ("goodput", "duration", "lost_upstream", "lost_downstream", "blocks_lost", "rtt_median", "rtt_min", "bytes")
SIGNS = {"+": "New", "−": "Gone", "~": "Changed"}
PARTS_SHOWN = 3  # of the time, and findings of a sign
COLUMNS = (
    *(Column("measure"), Column("A", True), Column("B", True)),
    *(Column("change", True, 2), Column("relative", True), Column("", rank=1)),
)
VERDICTS = {"better": "green", "worse": "red"}


def change_row(change: Change) -> tuple[Text | str, ...]:
    """Returns the row of a measure."""
    show = change.measure.unit.show
    style = VERDICTS.get(change.word, "")
    absolute, relative = change_texts(change)
    cells = (Text(text, style=style) for text in (absolute, relative, change.word))
    return change.measure.label, show(change.before), show(change.after), *cells


def changes_grid(changes: Sequence[Change], width: int) -> RenderableType:
    """Returns a table of measures."""
    return fitted(COLUMNS, map(change_row, changes), width)


def time_lines(difference: Difference) -> Iterator[Text]:
    """Yields the parts of the time that changed most."""
    for time in difference.times[:TIMES_SHOWN]:
        style = VERDICTS["worse" if time.after > time.before else "better"] if time.name == "loss" else ""
        yield Text(time_text(time), style=style)


def flow_block(pair: FlowPair, width: int) -> RenderableType:
    """Returns a pair of flows with the measures that changed most."""
    if pair.before is None or pair.after is None:
        flow, run = (pair.before, "A") if pair.before else (pair.after, "B")
        return Text(f"{printable(flow.label if flow else '')}: only in {run}", style="yellow")
    title = printable(pair.before.label)
    if pair.before.label != pair.after.label:
        title += f"  |  {printable(pair.after.label)}"
    if pair.evidence in MATCHED:
        title += f"  ({MATCHED[pair.evidence]})"
    changed = sorted(
        (change for change in pair.changes if change.weight),
        key=lambda change: (not change.measure.better, -change.weight),
    )
    if not changed:
        return Text(f"{title}: the same")
    return Group(Text(title), changes_grid(changed[:FLOW_CHANGES], width))


def findings_block(difference: Difference) -> Iterator[Text]:
    """Yields the findings of one run alone (+ and −) and those whose cost changed, with the first sentence of each."""
    for finding in difference.findings[:FINDINGS_SHOWN]:
        style = STYLES.get(finding.after[0].severity, "") if finding.after else ""
        yield Text(printable(finding_text(finding)), style=style)
    left = len(difference.findings) - FINDINGS_SHOWN
    if left > 0:
        yield Text(f"and {left:,} more (--json)")


VERDICT_STYLES = {True: "bold red", False: "green", None: "yellow"}  # whether a condition holds


def condition_line(condition: Condition, difference: Compared) -> Text:
    """Returns a threshold and whether it holds."""
    holds, value = condition.holds(difference), condition.value(difference)
    if holds is None or value is None:
        return Text(f"{condition.text}: undetermined, {condition.unknown}", style=VERDICT_STYLES[None])
    verdict = "FAILED" if holds else "passed"
    return Text(f"{condition.text}: {verdict} ({condition.show(value)})", style=VERDICT_STYLES[holds])


def runs_grid(difference: Difference) -> Grid:
    """Returns both runs, a capture with its answer."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, run in (("A", difference.before), ("B", difference.after)):
        grid.add_row(name, Text(f"{printable(run.path)} ({run.kind})", style="bold"))
        if run.answer:
            grid.add_row("", printable(run.answer))
    return grid


def first_parts(difference: Difference) -> Iterator[RenderableType]:
    """Yields which run is slower, and both runs."""
    color = {"slower": VERDICTS["worse"], "faster": VERDICTS["better"]}.get(difference.verdict or "", "")
    yield Text(difference.sentence(), style=f"bold {color}".strip())
    yield Text()
    yield runs_grid(difference)


def several(texts: Sequence[str]) -> str:
    """`a, b, c and 2 more`."""
    left = len(texts) - PARTS_SHOWN
    return f"{', '.join(texts[:PARTS_SHOWN])}{f' and {left:,} more' if left > 0 else ''}"


def with_cost(change: FindingChange) -> str:
    """`timeout-stalls (1.2 s → 3.4 s)`."""
    cost = finding_cost(change).strip()
    return f"{change.code} ({cost})" if cost else change.code


def screen_parts(difference: Difference, conditions: Sequence[Condition], width: int) -> Iterator[RenderableType]:
    """Yields what is shown without --all."""
    yield from first_parts(difference)
    by_name = {change.measure.name: change for change in difference.changes if change.before or change.after}
    if changes := [by_name[name] for name in MEASURES if name in by_name]:
        yield Text()
        yield changes_grid(changes, width)
    yield Text()
    rows: dict[str, str] = {"Time": several([time_text(time) for time in difference.times])}
    for sign, name in SIGNS.items():
        rows[name] = several([with_cost(each) for each in difference.findings if sign_of(each) == sign])
    yield detail_lines(rows, tuple(rows))
    yield from [*condition_parts(conditions, difference), Text()] if conditions else ()
    runs = " ".join(shlex.quote(printable(run.path)) for run in (difference.before, difference.after))
    yield from last_lines({}, Command(f"wiretale diff {runs} --all"), width + INDENT)


def condition_parts(conditions: Iterable[Condition], difference: Difference) -> Iterator[RenderableType]:
    """Yields the thresholds; nothing without."""
    if lines := [condition_line(condition, difference) for condition in conditions]:
        yield section("Thresholds", *lines)


def every_part(
    difference: Difference, conditions: Sequence[Condition], flows: int, width: int
) -> Iterator[RenderableType]:
    """Yields the sections of --all."""
    yield from first_parts(difference)
    if difference.times:
        yield section("Where the time went, summed over flows", *time_lines(difference))
    if difference.findings:
        yield section("Findings that appeared (+), disappeared (−) or changed (~)", *findings_block(difference))
    if changes := [change for change in difference.changes if change.before or change.after]:
        yield section("In total", changes_grid(changes, width))
    if difference.flows and flows:
        blocks = [flow_block(pair, width) for pair in difference.flows[:flows]]
        left = len(difference.flows) - flows
        yield section("By flow", *blocks, *([Text(f"and {left:,} more (--flows)")] if left > 0 else []))
    yield from condition_parts(conditions, difference)


def print_checks(checks: Checks, out: IO[str]) -> None:
    """Prints what came of conditions on one analysis."""
    lines = [Text(printable(line), style=VERDICT_STYLES[holds]) for holds, line in checks.lines()]
    print_parts(out, lambda console: [section("Thresholds", *lines)])


def print_difference(difference: Difference, conditions: Sequence[Condition], flows: int | None, out: IO[str]) -> None:
    """Prints the screen, or with a number of flows everything."""

    def parts(width: int) -> Iterator[RenderableType]:
        if flows is None:
            return screen_parts(difference, conditions, width)
        return every_part(difference, conditions, flows, width)

    print_parts(out, lambda console: parts(console.width - INDENT))
