# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side, in the terminal: `wiretale diff`."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from math import isinf
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import UNKNOWN
from wiretale.reports.terminal.analyze import STYLES, make_console, section
from wiretale.reports.terminal.verify import plain_grid

if TYPE_CHECKING:
    from wiretale.analyzer.diff.difference import Change, Difference, FlowPair
    from wiretale.analyzer.diff.fail_condition import Condition

MOST = 5
FLOW_CHANGES = 6
VERDICTS = {"better": "green", "worse": "red"}
MATCHED = {"service": "ports differ", "port": "hosts differ", "protocol": "by rank alone"}


def percent_text(change: Change) -> str:
    """A relative change."""
    percent = change.percent
    if percent is None:
        return UNKNOWN
    if isinf(percent):
        return "from 0"
    if not change.weight:
        return "="
    return f"{percent:+.3g}%" if abs(percent) < 1000 else f"{percent:+,.0f}%"


def difference_text(change: Change) -> str:
    """An absolute change in the measure's unit."""
    if change.difference is None:
        return UNKNOWN
    sign = "+" if change.difference > 0 else ""
    text = change.measure.unit.show(change.difference)
    return sign + (text.replace("%", " points") if change.measure.unit.name == "%" else text)


def cells(change: Change) -> tuple[RenderableType, ...]:
    """A line of the table."""
    show = change.measure.unit.show
    style = VERDICTS.get(change.verdict or "", "")
    return (
        change.measure.name,
        show(change.before),
        show(change.after),
        Text(difference_text(change) if change.weight else "=", style=style),
        Text(percent_text(change) if change.weight else "", style=style),
        Text(change.verdict if change.verdict in VERDICTS else "", style=style),
    )


def changes_grid(changes: Sequence[Change]) -> RenderableType:
    """Measures side by side."""
    grid = plain_grid(("measure", "A", "B", "change", "", ""), (1, 2, 3, 4))
    for change in changes:
        grid.add_row(*cells(change))
    return grid


def sentence(change: Change) -> str:
    """A change in words."""
    show = change.measure.unit.show
    return f"{change.measure.name} {show(change.before)} → {show(change.after)} ({percent_text(change)})"


def flow_block(pair: FlowPair) -> RenderableType:
    """A pair of flows: what changed most in it."""
    if pair.before is None or pair.after is None:
        known, where = (pair.before, "A") if pair.before else (pair.after, "B")
        return Text(f"{printable(known.label if known else '')}: only in {where}", style="yellow")
    title = printable(pair.before.label)
    if pair.before.label != pair.after.label:
        title += f"  |  {printable(pair.after.label)}"
    if pair.evidence in MATCHED:
        title += f"  ({MATCHED[pair.evidence]})"
    changed = sorted((one for one in pair.changes if one.weight), key=lambda one: (not one.measure.better, -one.weight))
    if not changed:
        return Text(f"{title}: the same")
    return Group(Text(title), changes_grid(changed[:FLOW_CHANGES]))


def findings_block(difference: Difference) -> list[RenderableType]:
    """Findings that came and went."""
    lines: list[RenderableType] = []
    for sign, found in (("+", difference.appeared), ("−", difference.gone)):
        for code, severity, words in found:
            lines.append(
                Text(printable(f"{sign} {code}: {words}"), style=STYLES.get(severity, "") if sign == "+" else "")
            )
    return lines


def condition_line(condition: Condition, difference: Difference) -> Text:
    """A threshold, and whether it holds."""
    holds = condition.holds(difference)
    if holds is None:
        return Text(f"{condition.text}: cannot be judged, a run does not tell {condition.measure.name}", style="yellow")
    value = condition.value(difference)
    shown = f"{value:+.3g}%" if condition.relative else condition.measure.unit.show(value)
    return Text(
        f"{condition.text}: {'FAILED' if holds else 'passed'} ({shown})", style="bold red" if holds else "green"
    )


def print_sections(difference: Difference, conditions: Sequence[Condition], flows: int, console: Console) -> None:
    """What changed most, then everything."""
    console.print(Text(f"A  {printable(difference.before.path)} ({difference.before.kind})", style="bold"))
    console.print(Text(f"B  {printable(difference.after.path)} ({difference.after.kind})", style="bold"))
    most = difference.most_changed(MOST)
    lines = [Text(sentence(change), style=VERDICTS.get(change.verdict or "", "")) for change in most]
    console.print(section("Changed most", *(lines or [Text("nothing changed")])))
    console.print(section("In total", changes_grid(difference.changes)))
    if difference.appeared or difference.gone:
        console.print(section("Findings that came (+) and went (−)", *findings_block(difference)))
    if difference.flows and flows:
        blocks = [flow_block(pair) for pair in difference.flows[:flows]]
        left = len(difference.flows) - flows
        more = [Text(f"and {left:,} more (--flows)")] if left > 0 else []
        console.print(section("By flow", *blocks, *more))
    if conditions:
        console.print(section("Thresholds", *(condition_line(condition, difference) for condition in conditions)))


def print_difference(difference: Difference, conditions: Sequence[Condition], flows: int, out: IO[str]) -> None:
    """Writes what an engineer wants to know; in colour on a terminal."""
    if out.isatty():
        print_sections(difference, conditions, flows, make_console(out))
        return
    plain = StringIO()
    print_sections(difference, conditions, flows, make_console(plain))
    out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())
