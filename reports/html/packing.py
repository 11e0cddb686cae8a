# SPDX-License-Identifier: Apache-2.0
"""Tables for the scripts of a page: typed arrays, compressed, as base64."""

from __future__ import annotations

import base64
import zlib
from array import array
from typing import TYPE_CHECKING, Any

from wiretale.analyzer import _core
from wiretale.analyzer.findings.transfers import NULL_BYTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

GZIP_FORMAT = 16 + zlib.MAX_WBITS
LARGE = 50_000  # bytes, of which level 6 takes some ms

Column = list[Any]  # array code, number of byte planes if it has any, data
# Relative to the base of the page; other columns are durations.
TIMES = ("start_ns", "asked_ns", "first_ns", "time_ns", "complete_ns")


def gzipped(data: bytes, level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """Returns gzip without a time."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, GZIP_FORMAT, zlib.DEF_MEM_LEVEL, strategy)
    return compressor.compress(data) + compressor.flush()


def encoded(data: bytes) -> str:
    """Returns gzip in base64; page/plotly.js decodes it.

    Of much data, the smaller of two fast forms: byte planes are often noise, in which only runs can be found.
    """
    if len(data) < LARGE:
        return base64.b64encode(gzipped(data, 6)).decode()
    return base64.b64encode(min(gzipped(data, 6, zlib.Z_RLE), gzipped(data, 1), key=len)).decode()


def planes(code: str, data: bytes, most: int = 0) -> Column:
    """Returns a column as byte planes: the most significant byte of all values, then the next, because similar bytes in a row
    compress better. Of a float only the first `kept` planes may be stored."""
    size = array(code).itemsize
    order = range(size - 1, size - 1 - (most or size), -1)
    return [code, len(order), encoded(b"".join(data[place::size] for place in order))]


def shorter(code: str, data: bytes) -> Column:
    """Returns a column as it is or as byte planes: few different values compress better as they are."""
    plain, divided = [code, encoded(data)], planes(code, data)
    return divided if len(divided[-1]) < len(plain[-1]) else plain


def base_time(trace: Trace) -> int:
    """Returns the base of all times: the first packet."""
    return min((ns for ns in trace.interfaces.column("first_ns") if ns is not None), default=0)


def packed_table(
    table: Table, fields: Iterable[tuple[str, str, int]], flows: Sequence[int], base_ns: int
) -> dict[str, Any]:
    """Returns array code and data of each column, some as byte planes, for the rows of some flows."""
    chosen_fields = [(name, code, base_ns if name in TIMES else 0, divisor) for name, code, divisor in fields]
    packed = table._packed_columns(chosen_fields, sorted(flows))
    return {name: shorter(code, data) for (name, code, *_), data in zip(chosen_fields, packed, strict=True)}


def numbered_words(packed: bytes) -> dict[int, str]:
    """Returns the words of a column of bytes by the numbers that stand for them."""
    words = _core.vocabulary()
    return {number: words[number] for number in set(packed) if number != NULL_BYTE}
