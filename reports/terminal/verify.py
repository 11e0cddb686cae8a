# SPDX-License-Identifier: Apache-2.0
"""Wiretale's verdicts beside Wireshark's, in the terminal: `wiretale verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from io import StringIO
from typing import IO, TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import shown_cell
from wiretale.analyzer.units import UNKNOWN, plural, show_count
from wiretale.reports.terminal.analyze import INDENT, make_console, section

if TYPE_CHECKING:
    from wiretale.analyzer.verify.comparison import Comparison, Difference, Reason

WIDE = 80  # columns that the tables need


def spoken(kind: str | None) -> str:
    """A kind as people write it."""
    return kind.replace("_", " ") if kind else UNKNOWN


def our_verdict(difference: Difference) -> str:
    """Wiretale's, with whether it was needed, and where the loss was."""
    spurious = "spurious" if difference.spurious else ""
    return ", ".join(filter(None, (spoken(difference.wiretale), spurious, difference.place)))


def our_evidence(difference: Difference) -> str:
    """What wiretale goes by."""
    word = spoken(difference.evidence) if difference.evidence else ""
    detail = shown_cell(difference.detail) if difference.detail else ""
    related = f"frame {difference.related_frame}" if difference.related_frame else ""
    return "; ".join(filter(None, (word, detail, related))) or UNKNOWN


def where(difference: Difference) -> str:
    """Wiretale's flow, or Wireshark's stream where wiretale has no event."""
    if difference.flow is not None:
        return f"flow {difference.flow}"
    return UNKNOWN if difference.stream is None else f"stream {difference.stream}"


def plain_grid(heads: Sequence[str], right: Sequence[int]) -> Grid:
    """An empty table in this program's style."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, head in enumerate(heads):
        grid.add_column(head, justify="right" if number in right else "left", overflow="fold")
    return grid


def kinds_block(found: Comparison, wide: bool) -> RenderableType:
    """How many frames of each kind both see, or one of them."""
    rows = [
        (spoken(kind), *map(show_count, astuple(count))) for kind, count in found.kinds.items() if any(astuple(count))
    ]
    if not wide:
        return Text(
            "\n".join(
                f"{kind}: both {both}, only wiretale {ours}, only Wireshark {its}" for kind, both, ours, its in rows
            )
        )
    grid = plain_grid(("kind", "both", "only wiretale", "only Wireshark"), (1, 2, 3))
    for row in rows:
        grid.add_row(*row)
    return grid


def differences_block(differences: Sequence[Difference], wide: bool) -> RenderableType:
    """Differences that have the same reason."""
    rows = [
        (str(one.frame), where(one), our_verdict(one), our_evidence(one), spoken(one.wireshark)) for one in differences
    ]
    if not wide:
        lines = (f"frame {frame}, {at}: wiretale {ours} ({by}), Wireshark {its}" for frame, at, ours, by, its in rows)
        return Text("\n".join(map(printable, lines)))
    grid = plain_grid(("frame", "in", "wiretale", "its evidence", "Wireshark"), (0,))
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    return grid


def reason_block(reason: Reason, count: int, shown: Sequence[Difference], wide: bool) -> RenderableType:
    """A reason, how often it was, and the first differences that have it."""
    title = Text(f"{count:,} × {reason.reason}.", style="" if reason.rule else "yellow")
    if not shown:
        return title
    more = Text(f"and {count - len(shown):,} more (--differences)" if count > len(shown) else "")
    parts = (differences_block(shown, wide), *([more] if more else []))
    return Group(title, *(Padding(part, (0, 0, 0, INDENT)) for part in parts))


def by_reason(found: Comparison) -> Iterator[tuple[Reason, int, list[Difference]]]:
    """The unexplained first, then the most frequent."""
    shown: dict[Reason, list[Difference]] = {}
    for difference in found.differences:
        shown.setdefault(difference.cause(), []).append(difference)
    for reason, count in sorted(found.reasons.items(), key=lambda item: (item[0].rule is not None, -item[1])):
        yield reason, count, shown.get(reason, [])


def print_sections(path: str, found: Comparison, wireshark: str, console: Console) -> None:
    """The counts, then the differences."""
    wide = console.width >= WIDE
    console.print(Text(printable(path), style="bold"))
    if any(any(astuple(count)) for count in found.kinds.values()):
        console.print(section(f"Frames, beside Wireshark {wireshark}", kinds_block(found, wide)))
    else:
        console.print(Text(f"\nNeither wiretale nor Wireshark {wireshark} sees anything odd.", style="green"))
    for number, one in enumerate(by_reason(found)):
        block = reason_block(*one, wide)
        title = plural(found.reasons.total(), "difference").capitalize()
        console.print(Padding(block, (1, 0, 0, INDENT)) if number else section(title, block))
    if found.not_compared:
        others = ", ".join(f"{count:,} {spoken(kind)}" for kind, count in sorted(found.not_compared.items()))
        console.print(Text(f"\nNot compared, for Wireshark has no such verdict: {others}."))


def print_comparison(path: str, found: Comparison, wireshark: str, out: IO[str]) -> None:
    """Writes what an engineer wants to know; in colour on a terminal."""
    if out.isatty():
        print_sections(path, found, wireshark, make_console(out))
        return
    plain = StringIO()  # tables are padded to the width, which only a terminal needs
    print_sections(path, found, wireshark, make_console(plain))
    out.writelines(line.rstrip() + "\n" for line in plain.getvalue().splitlines())
