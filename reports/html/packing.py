# SPDX-License-Identifier: Apache-2.0
"""Tables as the page's scripts read them: typed arrays, compressed, as text."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wiretale.analyzer.table import Table

TIMES = ("start_ns", "first_ns", "time_ns", "complete_ns")  # count from the page's base; other columns are durations


def encoded(data: bytes) -> str:
    """Compressed and as text; the page undoes both."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def packed_table(
    table: Table, fields: Iterable[tuple[str, str, int]], flows: Sequence[int], base_ns: int
) -> dict[str, Any]:
    """Columns of the rows of some flows: code and data of each."""
    chosen_fields = [(name, code, base_ns if name in TIMES else 0, divisor) for name, code, divisor in fields]
    packed = table.packed_columns(chosen_fields, sorted(flows))
    return {name: [code, encoded(data)] for (name, code, *_), data in zip(chosen_fields, packed, strict=True)}


def numbered_words(table: Table, column: str) -> dict[int, str]:
    """The words of a column by the number that packed_table() gives for each."""
    words = dict(table.words(column))
    occurring = ((number, words[number]) for number in set(bytes(words)))
    return {number: word for number, word in occurring if word is not None}
