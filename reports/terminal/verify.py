# SPDX-License-Identifier: Apache-2.0
"""`wiretale verify`: wiretale's and Wireshark's verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import shown_cell
from wiretale.analyzer.units import UNKNOWN, plural, show_count
from wiretale.reports.terminal.console import INDENT, indented, print_parts, section
from wiretale.reports.terminal.fitted import Column, fitted

if TYPE_CHECKING:
    from wiretale.analyzer.verify.comparison import Comparison, Difference, Reason

KIND_COLUMNS = (Column("kind"), Column("both", True), Column("only wiretale", True), Column("only Wireshark", True))
DIFFERENCE_COLUMNS = (Column("frame", True), *map(Column, ("in", "wiretale", "its evidence", "Wireshark")))


def spoken(kind: str | None) -> str:
    """Returns a kind of event with blanks."""
    return kind.replace("_", " ") if kind else UNKNOWN


def difference_row(difference: Difference) -> tuple[str, ...]:
    """Returns frame, flow (or Wireshark's stream), wiretale's verdict with its evidence, and Wireshark's verdict."""
    stream = UNKNOWN if difference.stream is None else f"stream {difference.stream}"
    flow = stream if difference.flow is None else f"flow {difference.flow}"
    spurious = "spurious" if difference.spurious else ""
    verdict = ", ".join(filter(None, (spoken(difference.wiretale), spurious, difference.place)))
    word = spoken(difference.evidence) if difference.evidence else ""
    detail = shown_cell(difference.detail) if difference.detail else ""
    related = f"frame {difference.related_frame}" if difference.related_frame else ""
    evidence = "; ".join(filter(None, (word, detail, related))) or UNKNOWN
    return str(difference.frame), flow, verdict, evidence, spoken(difference.wireshark)


def kinds_block(comparison: Comparison, width: int) -> RenderableType:
    """Returns the number of frames of each kind that both report, or only one."""
    counts = {spoken(kind): astuple(count) for kind, count in comparison.kinds.items() if any(astuple(count))}
    return fitted(KIND_COLUMNS, [(kind, *map(show_count, count)) for kind, count in counts.items()], width)


def differences_block(differences: Sequence[Difference], width: int) -> RenderableType:
    """Returns differences that have the same reason."""
    return fitted(
        DIFFERENCE_COLUMNS, [list(map(printable, difference_row(difference))) for difference in differences], width
    )


def reason_block(reason: Reason, count: int, listed: Sequence[Difference], width: int) -> RenderableType:
    """Returns a reason, its count, and the first differences that have it."""
    title = Text(f"{count:,} × {reason.reason}.", style="" if reason.rule else "yellow")
    if not listed:
        return title
    more = [Text(f"and {count - len(listed):,} more (--differences)")] if count > len(listed) else []
    return Group(title, *map(indented, (differences_block(listed, width - INDENT), *more)))


def by_reason(comparison: Comparison) -> Iterator[tuple[Reason, int, list[Difference]]]:
    """Yields reasons with their differences: unexplained ones first, then by count."""
    by_cause: dict[Reason, list[Difference]] = {}
    for difference in comparison.differences:
        by_cause.setdefault(difference.cause(), []).append(difference)
    for reason, count in sorted(comparison.reasons.items(), key=lambda item: (item[0].rule is not None, -item[1])):
        yield reason, count, by_cause.get(reason, [])


def comparison_parts(path: str, comparison: Comparison, wireshark: str, console: Console) -> Iterator[RenderableType]:
    """Yields the counts, then the differences."""
    width = console.width - INDENT
    yield Text(printable(path), style="bold")
    if any(any(astuple(count)) for count in comparison.kinds.values()):
        yield section(f"Frames, compared with Wireshark {wireshark}", kinds_block(comparison, width))
    else:
        yield Text(f"\nNeither wiretale nor Wireshark {wireshark} reports an anomaly.", style="green")
    for number, reason_rows in enumerate(by_reason(comparison)):
        block = reason_block(*reason_rows, width)
        heading = plural(comparison.reasons.total(), "difference").capitalize()
        yield Padding(block, (1, 0, 0, INDENT)) if number else section(heading, block)
    if comparison.problem:
        yield Text(f"\nLater frames are not compared: {printable(comparison.problem)}.", style="yellow")
    if comparison.not_compared:
        kinds = ", ".join(f"{count:,} {spoken(kind)}" for kind, count in sorted(comparison.not_compared.items()))
        yield Text(f"\nNot compared, because Wireshark has no such verdict: {kinds}.")


def print_comparison(path: str, comparison: Comparison, wireshark: str, out: IO[str]) -> None:
    """Prints the comparison of one file with Wireshark of a version."""
    print_parts(out, lambda console: comparison_parts(path, comparison, wireshark, console))
