# SPDX-License-Identifier: Apache-2.0
"""`wiretale store`: rows of a query as a table, and the captures that were added or removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural
from wiretale.reports.terminal.console import grid_of, print_parts

NUMBERS = ("INT", "DOUBLE", "FLOAT")
CELL_MAX = 300
DIGEST_SHOWN = 12  # digits, as Git shows


def cell(name: str, value: Any) -> str:
    """Returns a value as text; null is empty."""
    if value is None:
        return ""
    if name in ("capture", "capture_id"):
        return str(value)[:DIGEST_SHOWN]
    text = printable(
        f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and value > 99_999 else str(value)
    )
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…"


def print_rows(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], more: bool, out: IO[str]) -> None:
    """Prints rows under the names of their columns; `more` notes that the query has further ones."""
    names = [name for name, _ in columns]
    right = {i for i, (_, kind) in enumerate(columns) if any(word in kind for word in NUMBERS)}
    shown = [[Text(cell(name, value)) for name, value in zip(names, row, strict=True)] for row in rows]
    print_parts(out, lambda console: [grid_of(list(map(printable, names)), right, shown)])
    print(f"{plural(len(rows), 'row')}{', and more: see --limit' if more else ''}", file=out)
