# SPDX-License-Identifier: Apache-2.0
"""The screen of unrelated captures: the worst answer, then a line for each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Protocol

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural, show_duration
from wiretale.reports.terminal.command import Command
from wiretale.reports.terminal.console import STYLES, last_lines, print_parts
from wiretale.reports.terminal.screen.causes import NONE, SIGNS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wiretale.analyzer.causes.answer import Answer

LINES_MOST = 30
NAME_MOST = 28
RANKS = {"error": 0, "warning": 1, "info": 2, None: 3}


class Part(Protocol):
    """Captures that belong together, and what is said of them."""

    @property
    def files(self) -> list[str]: ...
    @property
    def answer(self) -> Answer: ...
    @property
    def severity(self) -> str | None: ...


def rank(part: Part) -> tuple[int, int]:
    """Returns the order: the most severe first, then the longest wait."""
    return RANKS[part.severity], -(part.answer.cost["waited_ns"] or 0)


def shortened(text: str, width: int) -> str:
    """Returns a text of at most this width; a longer one ends at a word and with a mark."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip().rpartition(" ")[0].rstrip(",;:") + "…"


def name_of(part: Part) -> str:
    """Returns the name of a capture, or of the first of several."""
    name = printable(PurePath(part.files[0]).name)
    more = f" +{len(part.files) - 1}" if len(part.files) > 1 else ""
    room = NAME_MOST - len(more)
    short = name if cell_len(name) <= room else f"{name[: room // 2 - 1]}…{name[-(room - room // 2) :]}"
    return short + more


def apart_parts(parts: Sequence[Part], width: int) -> Iterator[RenderableType]:
    """Yields the blocks of the screen."""
    ordered = sorted(parts, key=rank)
    files = sum(len(part.files) for part in parts)
    worst = ordered[0]
    head = f"{plural(len(parts), 'unrelated capture')}, each judged by itself."
    if worst.severity is not None:
        head += f" The worst, {printable(PurePath(worst.files[0]).name)}: {printable(worst.answer.sentence)}"
    yield Text(head, style="bold")
    yield Text()
    column = max(cell_len(name_of(part)) for part in ordered[:LINES_MOST])
    yield Text(f"  {'file':{column}}  {'waited':>8}  answer", style="dim")
    for part in ordered[:LINES_MOST]:
        waited_ns = part.answer.cost["waited_ns"]
        sign = SIGNS[part.severity] if part.severity else " "
        line = Text(f"{sign} ", STYLES[part.severity] if part.severity else "")
        waited = show_duration(waited_ns) if waited_ns else NONE
        line.append(f"{set_cell_size(name_of(part), column)}  {waited:>8}  ", "")
        line.append(shortened(printable(part.answer.sentence), width - line.cell_len), "")
        yield line
    if len(ordered) > LINES_MOST:
        yield Text(f"  and {len(ordered) - LINES_MOST:,} more", style="dim")
    yield Text()
    text = f"{plural(files, 'file')}: an hour or more between them, or hosts that never meet (--merge joins them)"
    again = worst.files if len(worst.files) < 3 else worst.files[:1]
    command = Command(f"wiretale {' '.join(map(shlex.quote, again))}")
    yield from last_lines({"Judged": text}, command, width)


def print_apart(parts: Sequence[Part], out: IO[str]) -> None:
    """Prints the screen."""
    print_parts(out, lambda console: apart_parts(parts, console.width))
