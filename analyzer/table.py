# SPDX-License-Identifier: Apache-2.0
"""A table of an analysis: over to any Arrow library without a copy, and readable as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from array import array
    from typing import Any

    from wiretale.analyzer import _core

ROWS_SHOWN = 10
COLUMNS_SHOWN = 12
CELL_MAX = 40


class Table:
    """Rows and named columns; see docs/tables.md for what they mean.

    >>> polars.DataFrame(trace.flows), pandas.DataFrame.from_arrow(trace.flows)  # doctest: +SKIP
    """

    def __init__(self, core: _core.Table) -> None:
        self._core = core

    @property
    def name(self) -> str:
        """The table's name."""
        return self._core.name

    @property
    def meaning(self) -> str:
        """What a row is."""
        return self._core.meaning

    def __len__(self) -> int:
        return len(self._core)

    def columns(self) -> list[tuple[str, str, str, str]]:
        """Name, type, unit and meaning of each column."""
        return self._core.columns()

    def column(self, name: str) -> list[Any]:
        """A column's values, None for null. KeyError for a name that is none."""
        return self._core.column(name)

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Rows `start` to `stop` as dicts; for small pieces."""
        return self._core.rows(start, stop)

    def nonzero(self, names: Iterable[str]) -> dict[str, list[tuple[int, Any]]]:
        """Of each of these columns the rows, by number and value, where it is neither null nor 0: one pass for all."""
        return self._core.nonzero(list(names))

    def total(self, name: str) -> int:
        """The sum of a column of integers; nulls count nothing."""
        return self._core.total(name)

    def rows_where(self, name: str, word: str | None = None) -> list[int]:
        """Numbers of the rows in which a column is not null, or is this word."""
        return self._core.rows_where(name, word)

    def words(self, name: str) -> list[tuple[int, str | None]]:
        """The number that packed() gives each word that occurs in a column, in the order of their first rows."""
        return self._core.words(name)

    def rows_by_flow(self, flow_count: int) -> array[int]:
        """How many rows the table has of each of the flows 0 to `flow_count` - 1."""
        from array import array

        return array("I", self._core.rows_by_flow(flow_count))

    def packed(
        self,
        name: str,
        code: str,
        *,
        offset: int = 0,
        divisor: int = 1,
        delta: bool = False,
        flows: list[int] | None = None,
    ) -> bytes:
        """A column as a little-endian typed array of (value - offset) / divisor.

        Codes are those of `array`: b B H i I f d. Null is NaN, or the greatest number of an integer code; `delta`
        gives differences to the value before; `flows` (ascending) chooses the rows of these flows.
        """
        return self._core.packed([(name, code, offset, divisor, delta)], flows)[0]

    def packed_columns(
        self, fields: Iterable[tuple[str, str, int, int]], flows: list[int] | None = None
    ) -> list[bytes]:
        """Several columns as packed() gives each (name, code, offset, divisor): in one pass over the table."""
        return self._core.packed([(*field, False) for field in fields], flows)

    def of_flows(self, flows: list[int], most: int) -> Table:
        """Of the packets table: the first `most` rows of these flows."""
        return Table(self._core.of_flows(flows, most))

    def packet_streams(self, flows: list[int], base_ns: int) -> tuple[int, dict[str, bytes]]:
        """Of the packets table: number and columns of the packets of these flows, as analyzer/core/export/packet_pack.h says."""
        return self._core.packet_streams(flows, base_ns)

    def json(self) -> Iterator[bytes]:
        """A JSON array of row objects, in pieces."""
        return self._core.json()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def with_integers(self) -> TimesAsIntegers:
        """The table for DuckDB, whose INTERVAL has microseconds: times and durations are int64 ns."""
        return TimesAsIntegers(self._core)

    def _shown(self) -> tuple[list[str], list[list[str]], str]:
        """Heads, cells and a line that says what is left out: the columns that hold something, first rows."""
        rows = self.rows(0, ROWS_SHOWN)
        held = [name for name, *_ in self.columns() if any(row[name] is not None for row in rows)]
        heads = held[:COLUMNS_SHOWN]
        cells = [["" if row[h] is None else shown_cell(row[h]) for h in heads] for row in rows]
        left = f"{self.name}: {plural(len(self), 'row')}, {len(self.columns())} columns"
        return heads, cells, left

    def __repr__(self) -> str:
        heads, cells, left = self._shown()
        widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in [heads, *cells]]
        return "\n".join([left, *(line.rstrip() for line in lines if heads)])

    def _repr_html_(self) -> str:
        from html import escape

        heads, cells, left = self._shown()
        head = "".join(f"<th>{escape(h)}</th>" for h in heads)
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in line) + "</tr>" for line in cells)
        return f"<p>{escape(left)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class TimesAsIntegers:
    """An Arrow stream of a table in which times and durations are int64 ns."""

    def __init__(self, core: _core.Table) -> None:
        self._core = core

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema, True)


def shown_cell(value: object) -> str:
    """A value as text of a bounded length, without control characters (they could steer a terminal)."""
    text = printable(str(value))
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…"
