# SPDX-License-Identifier: Apache-2.0
"""`wiretale store`: rows of a query as a table, and the captures that were added or removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO, Any

from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural
from wiretale.reports.terminal.console import print_parts
from wiretale.reports.terminal.fitted import Column, fitted

NUMBERS = ("INT", "DOUBLE", "FLOAT")
CELL_MAX = 300
DIGEST_SHOWN = 12  # digits, as Git shows


NAMES = re.compile(r"(^|_)(port|flow|frame|year|number|interface|file|id)$")  # of columns whose numbers are names


def is_large(value: Any) -> bool:
    """Returns whether a number needs thousands separators."""
    return isinstance(value, int) and value > 99_999


def cell(name: str, value: Any, separated: bool) -> str:
    """Returns a value as text, a number with thousands separators or without; null is empty."""
    if value is None:
        return ""
    if name in ("capture", "capture_id"):
        return str(value)[:DIGEST_SHOWN]
    text = printable(f"{value:,}" if separated and isinstance(value, int) else str(value))
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…"


def print_rows(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    more: bool,
    out: IO[str],
    spare: Sequence[str] = (),
) -> None:
    """Prints rows under the names of their columns; `more` notes that the query has further ones.

    If the terminal is too narrow for all words, the columns of `spare` are left out one by one, then each row is a list.
    """
    names = [printable(name) for name, _ in columns]
    has_large = any(any(map(is_large, row)) for row in rows)
    large = [has_large and not NAMES.search(name) for name, _ in columns]
    cells = [[Text(cell(name, *value)) for (name, _), *value in zip(columns, row, large, strict=True)] for row in rows]
    ranks = {name: len(spare) - place for place, name in enumerate(spare)}
    heads = [
        Column(name, any(word in kind for word in NUMBERS), ranks.get(name, 0))
        for name, (_, kind) in zip(names, columns, strict=True)
    ]
    print_parts(out, lambda console: [fitted(heads, cells, console.width)])
    print(f"{plural(len(rows), 'row')}{', and more: see --limit' if more else ''}", file=out)
