# SPDX-License-Identifier: Apache-2.0
"""Rows of the table exchanges by kind, and their packets as evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, compress, count, islice
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.cost import Span
from wiretale.analyzer.findings.evidence import REQUEST, RESPONSE, SHOWN, Cited

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import ExchangeRow

EXCHANGES_MAX = 50_000  # of a kind that are examined


def numbers_where(transfers: Transfers, column: str, word: str, most: int = EXCHANGES_MAX) -> list[int]:
    """Returns the numbers of the first exchanges with a word in a column (kind, outcome)."""
    return places_of(transfers.bytes_of("exchanges", column), transfers.words[word], most)


def places_of(column: bytes | bytearray, byte: int, most: int | None = None) -> list[int]:
    """Returns the places of a byte, or the first ones."""
    if byte not in column:
        return []
    return list(islice(compress(count(), column.translate(bytes(each == byte for each in range(256)))), most))


def rows_where(transfers: Transfers, column: str, *words: str) -> list[ExchangeRow]:
    """Returns the first exchanges with one of these words in a column, in their order."""
    numbers = chain.from_iterable(numbers_where(transfers, column, word) for word in words)
    return rows_numbered(transfers, sorted(numbers))


def rows_numbered(transfers: Transfers, numbers: Iterable[int]) -> list[ExchangeRow]:
    """Returns the first exchanges of these numbers, which must ascend, without the jumps of the capture's clock."""
    exchanges = transfers.trace.exchanges._rows_at(islice(numbers, EXCHANGES_MAX))
    for jump in transfers.clock_jumps:
        for exchange in exchanges:
            waited_ns, asked_ns = exchange["waited_ns"], exchange["asked_ns"]
            if waited_ns is not None and asked_ns is not None and jump.within(asked_ns, waited_ns):
                exchange["waited_ns"] = max(waited_ns - jump.ns, 0)
    return exchanges


def exchanges_of(transfers: Transfers, *kinds: str) -> list[ExchangeRow]:
    """Returns the first exchanges of these kinds."""
    return rows_where(transfers, "kind", *kinds)


def packets_of(rows: Sequence[ExchangeRow]) -> list[Cited]:
    """Returns the requests and answers of the first of these exchanges."""
    packets = []
    for row in rows[:SHOWN]:
        packets.append(Cited(row["asked_frame"], row["asked_ns"], row["flow"], row["capture"], REQUEST))
        if row["answered_frame"] is not None:
            packets.append(Cited(row["answered_frame"], row["answered_ns"], row["flow"], row["capture"], RESPONSE))
    return packets


def waits_of(rows: Iterable[ExchangeRow]) -> list[Span]:
    """Returns the times in which somebody waited."""
    return [
        Span(row["asked_ns"], row["asked_ns"] + row["waited_ns"])
        for row in rows
        if row["asked_ns"] is not None and row["waited_ns"] is not None
    ]


def named(texts: Sequence[str], most: int = 2) -> str:
    """`10.0.4.10, 10.0.4.11 and 3 more`."""
    distinct = list(dict.fromkeys(texts))
    more = len(distinct) - most
    return ", ".join(distinct[:most]) + (f" and {more:,} more" if more > 0 else "")
