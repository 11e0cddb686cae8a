# SPDX-License-Identifier: Apache-2.0
"""Answers about one flow of an index: its tables, and its packets in a range of time.

A range with at most RAW packets is answered by all of them. A larger one is answered by those that stand for at most BUCKETS
buckets of rows (pyramid.py), each cut at the columns of time that a picture has.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from wiretale.analyzer.index.capture_index import DRAWN_TABLES, CaptureIndex
from wiretale.analyzer.index.packet_store import PACKET_COLUMNS, TICK, connected, sql_path, sql_text
from wiretale.analyzer.index.pyramid import FIRST_SHIFT, LEVELLED, SHIFT_STEP, selection

RAW = 6_000  # packets
BUCKETS = 1_000  # of each direction
COLUMNS = 1_340  # of time, the width of a picture; each has its own extremes
ROWS_MOST = 200_000  # of another table of a flow
FIRST_PACKETS, FIRST_SEARCHED = 3, 50  # of a flow, for tshark
Field = tuple[str, str, int, int]  # column, array code, what is subtracted, divisor
SELECTED = ", ".join(f'"{name}"' for name in PACKET_COLUMNS)


@dataclass(frozen=True)
class Packets:
    """Packets of a flow: some stand for all of a range if `bucket` is more than 1."""

    rows: list[tuple[int | None, ...]]  # with PACKET_COLUMNS
    of: int  # packets in the range
    bucket: int  # consecutive packets for which some rows stand


@dataclass(frozen=True)
class Span:
    """The rows of a flow in the store: [first, end)."""

    first: int
    end: int


def expression(field: Field, words: Mapping[str, int] | None) -> str:
    """Returns the SQL of a column as it is packed; words become their numbers."""
    name, code, offset, divisor = field
    if code in "fd":
        return f"coalesce(({name} - {offset})::DOUBLE / {divisor}, 'nan'::DOUBLE)"
    most = 256 ** array(code).itemsize - 1
    if words is None:
        value = f"({name}::BIGINT - {offset}) // {divisor}"
        return f"CASE WHEN {name} IS NULL THEN {most} ELSE least(greatest({value}, 0), {most}) END"
    cases = " ".join(f"WHEN {sql_text(word)} THEN {int(number)}" for word, number in words.items())
    return f"CASE {name} {cases} ELSE {most} END" if cases else str(most)


class Queries:
    """Queries of an index by one connection, one at a time."""

    def __init__(self, index: CaptureIndex) -> None:
        self._folder = index.folder
        self._shifts: list[int] = index.about["shifts"]
        self._words: dict[str, dict[str, dict[str, int]]] = index.about["words"]
        self._connection = connected(index.folder)
        self._connection.execute("SET parquet_metadata_cache = true")
        self._lock = Lock()
        self._ticks = array("q")
        self._ticks.frombytes((index.folder / "ticks").read_bytes())

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _file(self, name: str) -> str:
        return f"read_parquet({sql_path(self._folder / name)})"

    def _fetch(self, sql: str, *values: object) -> tuple[list[str], list[tuple[Any, ...]]]:
        with self._lock:
            result = self._connection.execute(sql, list(values))
            return [column[0] for column in result.description or ()], result.fetchall()

    def columns(self, name: str, flow: int, fields: Sequence[Field]) -> list[array[Any]]:
        """Returns columns of the rows of a flow in one of DRAWN_TABLES, at most ROWS_MOST, as Table._packed_columns() does:
        null is NaN, or the greatest value of an integer."""
        assert name in DRAWN_TABLES
        words = self._words[name]
        source = self._file(f"{name}.parquet")
        selected = ", ".join(expression(field, words.get(field[0])) for field in fields)
        rows = self._fetch(f"SELECT {selected} FROM {source} WHERE flow = ? ORDER BY row LIMIT {ROWS_MOST}", flow)[1]
        values: Iterable[tuple[Any, ...]] = zip(*rows, strict=True) if rows else [()] * len(fields)
        return [array(code, column) for (_, code, *_), column in zip(fields, values, strict=True)]

    def words(self, name: str, column: str) -> dict[int, str]:
        """Returns the words of a column by the numbers that stand for them in columns()."""
        return {number: word for word, number in self._words[name][column].items()}

    def segment_sizes(self, flow: int) -> dict[int, int]:
        """Returns the segment size on the wire of each direction, numbered 2 * flow + direction, that has super-segments."""
        sql = f"SELECT 2 * flow + direction, wire_mss FROM {self._file('segments.parquet')} WHERE flow = ?"
        return dict(self._fetch(sql, flow)[1])

    def span(self, flow: int) -> Span | None:
        """Returns the rows of a flow; None if no packet of it has a time."""
        _, rows = self._fetch(f"SELECT first, packets FROM {self._file('spans.parquet')} WHERE flow = ?", flow)
        return Span(rows[0][0], rows[0][0] + rows[0][1]) if rows else None

    def begin_ns(self, flow: int) -> int | None:
        """Returns the time of a flow's first packet; None if no packet of it has a time."""
        span = self.span(flow)
        if span is None:
            return None
        return int(
            self._fetch(f"SELECT time_ns FROM {self._file('packets.parquet')} WHERE row = ?", span.first)[1][0][0]
        )

    def _row_at(self, span: Span, time_ns: int) -> int:
        """Returns the first row of a flow that is not before a time, or the end."""
        low = -(-span.first // TICK)
        place = bisect_left(self._ticks, time_ns, low, max(low, -(-span.end // TICK)))
        begin, end = max(span.first, (place - 1) * TICK), min(span.end, place * TICK)
        if begin >= end:
            return end
        sql = f"SELECT count(*) FROM {self._file('packets.parquet')} WHERE row >= ? AND row < ? AND time_ns < ?"
        return begin + int(self._fetch(sql, begin, end, time_ns)[1][0][0])

    def rows_between(self, flow: int, from_ns: int | None, to_ns: int | None) -> Span:
        """Returns the rows of a flow from a time up to and including another; None is its begin or end."""
        span = self.span(flow)
        if span is None:
            return Span(0, 0)
        first = span.first if from_ns is None else self._row_at(span, from_ns)
        end = span.end if to_ns is None else self._row_at(span, to_ns + 1)
        return Span(first, max(first, end))

    def packets(self, flow: int, from_ns: int | None = None, to_ns: int | None = None, most: int = RAW) -> Packets:
        """Returns the packets of a flow in a range, or if they are more than `most`, some that stand for them."""
        span = self.rows_between(flow, from_ns, to_ns)
        count = span.end - span.first
        if count <= most:
            return self._raw(span, count)
        shift = next(shift for shift in range(1, 64) if count >> shift < BUCKETS)
        place = f"row >= {span.first} AND row < {span.end}"
        source = f"(SELECT * FROM {self._file('packets.parquet')} WHERE {place})"
        if count > LEVELLED:
            shift = max(FIRST_SHIFT, shift + (shift - FIRST_SHIFT) % SHIFT_STEP)
            level = min(max(FIRST_SHIFT, shift - SHIFT_STEP), self._shifts[-1])
            source = f"(SELECT * EXCLUDE shift FROM {self._file('pyramid.parquet')} WHERE shift = {level} AND {place})"
        times = self._fetch(f"SELECT min(time_ns), max(time_ns) FROM {source}")[1][0]
        columns = f"(time_ns - {times[0]}) // {(times[1] - times[0]) // COLUMNS + 1}, "
        rows = self._fetch(f"SELECT {SELECTED} FROM ({selection(source, shift, columns)}) ORDER BY row")[1]
        return Packets(rows, count, 1 << shift)

    def _raw(self, span: Span, count: int) -> Packets:
        sql = f"SELECT {SELECTED} FROM {self._file('packets.parquet')} WHERE row >= ? AND row < ? ORDER BY row"
        return Packets(self._fetch(sql, span.first, span.end)[1], count, 1)

    def carrying(self, flow: int, from_ns: int | None, to_ns: int | None, most: int) -> Packets:
        """Returns the first `most` packets with payload of a flow in a range; `of` counts all of them."""
        span = self.rows_between(flow, from_ns, to_ns)
        source = f"{self._file('packets.parquet')} WHERE row >= ? AND row < ? AND payload_bytes > 0"
        ((count,),) = self._fetch(f"SELECT count(*) FROM {source}", span.first, span.end)[1]
        sql = f"SELECT {SELECTED} FROM {source} ORDER BY row LIMIT {most}"
        return Packets(self._fetch(sql, span.first, span.end)[1], count, 1)

    def beginning(self, flow: int) -> list[tuple[int, int]]:
        """Returns interface and frame of the first packets of a flow, and of the first one of each direction, by frame."""
        span = self.span(flow)
        if span is None:
            return []
        part = f"(FROM {self._file('packets.parquet')} WHERE row >= ? AND row < ?)"
        sql = f"""SELECT DISTINCT capture, frame FROM (SELECT *, row_number() OVER (ORDER BY row) AS place,
            row_number() OVER (PARTITION BY direction ORDER BY row) AS own FROM {part})
            WHERE place <= {FIRST_PACKETS} OR own = 1 ORDER BY frame"""
        return self._fetch(sql, span.first, min(span.end, span.first + FIRST_SEARCHED))[1]
