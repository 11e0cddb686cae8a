# SPDX-License-Identifier: Apache-2.0
"""Tables for the scripts of a page: typed arrays, compressed, as base64."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wiretale.analyzer.table import Table

# Relative to the base of the page; other columns are durations.
TIMES = ("start_ns", "first_ns", "time_ns", "complete_ns")


def encoded(data: bytes) -> str:
    """Returns gzip in base64; page/plotly.js decodes it."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def packed_table(
    table: Table, fields: Iterable[tuple[str, str, int]], flows: Sequence[int], base_ns: int
) -> dict[str, Any]:
    """Returns array code and data of each column, for the rows of some flows."""
    chosen_fields = [(name, code, base_ns if name in TIMES else 0, divisor) for name, code, divisor in fields]
    packed = table.packed_columns(chosen_fields, sorted(flows))
    return {name: [code, encoded(data)] for (name, code, *_), data in zip(chosen_fields, packed, strict=True)}


def numbered_words(table: Table, column: str) -> dict[int, str]:
    """Returns the words of a column by the numbers that stand for them in packed_table()."""
    words = dict(table.words(column))
    occurring = ((number, words[number]) for number in set(bytes(words)))
    return {number: word for number, word in occurring if word is not None}
