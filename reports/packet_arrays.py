# SPDX-License-Identifier: Apache-2.0
"""Columns of integers in few bytes, as the page's script reads them.

A column is stored as differences (or plainly), each folded into an unsigned number (0, -1, 1, -2 … become
0, 1, 2, 3 …), in the least of 1, 2, 4 or 8 bytes that holds the greatest, and as planes: first the lowest byte
of every value, then the next, so that bytes which hardly change lie side by side and compress to nothing.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from operator import itemgetter, sub
from typing import Any

PLANE_CODES = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))

Values = Sequence[float]  # whole numbers as doubles, NaN for null
Row = Callable[[Values], Values]


@dataclass(frozen=True)
class Column:
    """A column as the page gets it.

    `mode` is "plain", "delta" (from the value before) or "chain" (from the value before plus the value before of
    column `after`: stream positions follow payloads, so that nearly all are 0).
    """

    name: str
    mode: str
    values: Values
    after: Values = ()
    after_name: str = ""


def table_values(table: Any, name: str, offset: int = 0) -> array[float]:
    """A column of a table less `offset`, NaN for null; whole numbers are exact up to 2**53."""
    values = array("d")
    values.frombytes(table.packed(name, "d", offset=offset))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def sorted_rows(*keys: Values) -> Row:
    """What puts columns into the order of these keys, the first one first; equal rows keep their order."""
    order = list(range(len(keys[0])))
    for key in reversed(keys):
        order.sort(key=key.__getitem__)
    return chosen_rows(order)


def chosen_rows(order: Sequence[int]) -> Row:
    """What takes these rows out of columns, in this order."""
    if len(order) < 2:
        return lambda values: [values[i] for i in order]
    return itemgetter(*order)


def flagged_rows(flags: Iterable[object]) -> Row:
    """What takes the rows with a true flag out of columns."""
    flags = list(flags)
    return lambda values: list(compress(values, flags))


def has_null(values: Values) -> bool:
    """Whether any value is NaN."""
    total = sum(values)
    return total != total


def filled(values: Values, mode: str) -> Values:
    """Nulls replaced by what costs least: the value before (delta, chain) or 0."""
    if mode == "plain":
        return [0.0 if v != v else v for v in values]
    return list(accumulate(values, lambda last, v: last if v != v else v, initial=0.0))[1:]


def residuals(column: Column, values: list[int]) -> list[int]:
    """What is stored in place of the values."""
    if column.mode == "plain" or not values:
        return values
    if column.mode == "delta":
        return [values[0], *map(sub, values[1:], values)]
    expected = map(int.__add__, values, (0 if v != v else int(v) for v in column.after))
    return [values[0], *map(sub, values[1:], expected)]


def folded(values: list[int]) -> list[int]:
    """Signed to unsigned, small ones small."""
    if not values or min(values) >= 0:
        return [v << 1 for v in values]
    return [v << 1 if v >= 0 else ~(v << 1) for v in values]


def planes(values: list[int]) -> tuple[int, bytes]:
    """Width in bytes and the planes of unsigned values, the lowest bytes first."""
    most = max(values, default=0)
    width, code = next(pair for pair in PLANE_CODES if most < 1 << 8 * pair[0])
    packed = array(code, values)
    if sys.byteorder == "big":
        packed.byteswap()
    data = packed.tobytes()
    return width, b"".join(data[k::width] for k in range(width))


def pack_columns(columns: Iterable[Column]) -> tuple[list[dict[str, Any]], bytes]:
    """How each column is stored, and the bytes of all of them in that order.

    A description holds name, mode, width (bytes of a value) and, when the column has nulls, `nulls`: then one byte
    a row (1: null) follows its planes. A column of nothing but nulls has width 0 and no bytes.
    """
    described: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for column in columns:
        about: dict[str, Any] = {"name": column.name, "mode": column.mode}
        about.update({"after": column.after_name} if column.after_name else {})
        described.append(about)
        parts += pack_column(column, about)
    return described, b"".join(parts)


def pack_column(column: Column, about: dict[str, Any]) -> list[bytes]:
    """The column's planes and, if any, its nulls; width and nulls are added to `about`."""
    nulls = bytes(v != v for v in column.values) if has_null(column.values) else b""
    if nulls and 0 not in nulls:
        about["width"] = 0
        return []
    values = filled(column.values, column.mode) if nulls else column.values
    about["width"], data = planes(folded(residuals(column, list(map(int, values)))))
    about.update({"nulls": True} if nulls else {})
    return [data, nulls]
