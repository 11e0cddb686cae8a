# SPDX-License-Identifier: Apache-2.0
"""`wiretale experiment model --check`: each measure of each session, with its test and verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import IO, Any

from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import UNKNOWN, show_bytes, show_count, show_duration
from wiretale.reports.terminal.console import print_parts
from wiretale.reports.terminal.fitted import Column, fitted

COLUMNS = (
    *(Column("session"), Column("measure"), Column("original", True), Column("rerun", True), Column("mean", True, 4)),
    *(Column("mean", True, 3), Column("resolution", True, 5), Column("D", True, 2), Column("p", True, 1), Column("")),
)
VERDICTS = {True: ("agree", "green"), False: ("differ", "red"), None: ("undetermined", "yellow")}
SHOWN: dict[str, Callable[[float | None], str]] = {  # the mean
    **dict.fromkeys(("sizes", "requests", "responses"), show_bytes),
    **dict.fromkeys(("gaps", "server times", "pauses"), show_duration),
}


def hide(value: float | None) -> str:
    """Returns the text of a measure without a mean."""
    return UNKNOWN


def cells(row: dict[str, Any]) -> tuple[Text, ...]:
    """Returns the line of a measure."""
    show = SHOWN.get(row["measure"], hide)
    verdict, style = VERDICTS[row["agrees"]]
    texts = (
        *(printable(row["session"]), row["measure"], show_count(row["original"]), show_count(row["rerun"])),
        *(show(row["original_mean"]), show(row["rerun_mean"])),
        UNKNOWN if row["resolution_ns"] is None else show_duration(row["resolution_ns"]),
        *(UNKNOWN if row[name] is None else f"{row[name]:.3f}" for name in ("distance", "p")),
    )
    return *map(Text, texts), Text(verdict, style=style)


def print_agreement(rows: Iterable[dict[str, Any]], out: IO[str]) -> None:
    """Prints a line for each measure."""
    lines = list(map(cells, rows))
    print_parts(out, lambda console: [fitted(COLUMNS, lines, console.width)])
