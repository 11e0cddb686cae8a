# SPDX-License-Identifier: Apache-2.0
"""A table of an analysis, which any Arrow library reads without a copy."""

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
    """Rows and named columns (docs/tables.md).

    >>> polars.DataFrame(trace.flows), pandas.DataFrame.from_arrow(trace.flows)  # doctest: +SKIP
    """

    def __init__(self, core: _core.Table) -> None:
        self._core = core

    @property
    def name(self) -> str:
        """The name: `flows`."""
        return self._core.name

    @property
    def meaning(self) -> str:
        """The meaning of a row."""
        return self._core.meaning

    def __len__(self) -> int:
        return len(self._core)

    def columns(self) -> list[tuple[str, str, str, str]]:
        """Returns name, type, unit and meaning of each column."""
        return self._core.columns()

    def column(self, name: str) -> list[Any]:
        """Returns a column; null is None. Raises KeyError if there is no such column."""
        return self._core.column(name)

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Returns rows `start` to `stop` as dicts, which should be few, because each value becomes a Python object."""
        return self._core.rows(start, stop)

    def nonzero(self, names: Iterable[str]) -> dict[str, list[tuple[int, Any]]]:
        """Returns for each column the rows, as number and value, in which it is neither null nor 0, in one pass."""
        return self._core.nonzero(list(names))

    def total(self, name: str) -> int:
        """Returns the sum of an integer column; nulls count as 0."""
        return self._core.total(name)

    def rows_where(self, name: str, word: str | None = None) -> list[int]:
        """Returns the numbers of the rows in which a column is not null, or is this word."""
        return self._core.rows_where(name, word)

    def words(self, name: str) -> list[tuple[int, str | None]]:
        """Returns the words that occur in a column, each with its number in packed(), in the order of their first rows."""
        return self._core.words(name)

    def rows_by_flow(self, flow_count: int) -> array[int]:
        """Returns the number of rows of each flow from 0 to `flow_count` - 1."""
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
        """Returns a column as a little-endian typed array of (value - offset) / divisor.

        Codes are those of `array`: b B H i I f d. Null is NaN, or the greatest number of an integer code. `delta`
        returns differences from the previous value; `flows`, which must ascend, selects the rows of these flows.
        """
        return self._core.packed([(name, code, offset, divisor, delta)], flows)[0]

    def packed_columns(
        self, fields: Iterable[tuple[str, str, int, int]], flows: list[int] | None = None
    ) -> list[bytes]:
        """Returns several columns (name, code, offset, divisor) as packed() does, in one pass over the table."""
        return self._core.packed([(*field, False) for field in fields], flows)

    def of_flows(self, flows: list[int], most: int) -> Table:
        """Returns the first `most` rows of these flows, of the packets table."""
        return Table(self._core.of_flows(flows, most))

    def packet_streams(self, flows: list[int], base_ns: int) -> tuple[int, dict[str, bytes]]:
        """Returns number and columns of the packets of these flows (packets table; analyzer/core/export/export.h)."""
        return self._core.packet_streams(flows, base_ns)

    def json(self) -> Iterator[bytes]:
        """Returns a JSON array of row objects, in parts."""
        return self._core.json()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def with_integers(self) -> TimesAsIntegers:
        """The table for DuckDB, whose INTERVAL has microseconds: times and durations are int64 ns."""
        return TimesAsIntegers(self._core)

    def _shown(self) -> tuple[list[str], list[list[str]], str]:
        """Returns heads and cells of the first rows, without columns that are null there, and a line with the size."""
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
    """Returns a value as short text without control characters, because these could steer a terminal."""
    text = printable(str(value))
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…"
