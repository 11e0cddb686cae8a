# SPDX-License-Identifier: Apache-2.0
"""A table of an analysis, which any Arrow library reads without a copy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from wiretale.analyzer import _core
from wiretale.analyzer.core_stamp import check_core
from wiretale.analyzer.errors import MissingToolError
from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from array import array
    from typing import Any, overload

    import pandas
    import polars
    import pyarrow
    from typing_extensions import TypeVar

    Row = TypeVar("Row", covariant=True, default=Any)  # of rows.py
else:
    Row = object

check_core()  # before its schemas are read
#: names of the tables, in the order of lists and files
TABLES = tuple(name for name, _, _ in _core.schemas())
COLUMNS = {name: tuple(column for column, *_ in columns) for name, _, columns in _core.schemas()}
#: those that are made if they are asked for, and those that every analysis has
ASKED_TABLES = ("packets", "time_spans")
OF_INTERFACES = ("interfaces", "decode_stops", "second_ports", "neighbors", "announcers", "groups")
OF_FINDINGS = ("findings", "finding_frames", "finding_flows")
OF_CAUSES = ("causes", "cause_frames", "cause_flows", "cause_findings", "cause_rivals")
AFTER_PASS = ("relations", *OF_FINDINGS, *OF_CAUSES)  # of all flows together, by Python
KEPT_TABLES = tuple(name for name in TABLES if name not in ASKED_TABLES)
#: tables of a store, whose files are analyzed part by part: a cause is of a whole capture
STORED_TABLES = tuple(name for name in KEPT_TABLES if name not in OF_CAUSES)
OF_FLOWS = tuple(name for name in KEPT_TABLES if name not in (*OF_INTERFACES, *AFTER_PASS))
ROWS_SHOWN = 10
COLUMNS_SHOWN = 12
CELL_MAX = 40
ROWS_AT_ONCE = 4096  # of a loop over a table


def library(name: str) -> Any:
    """Imports a library that wiretale does not need itself."""
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingToolError(f"{name} is not installed: run `{sys.executable} -m pip install {name}`") from None


class Table(Iterable[Row]):
    """Rows and named columns (docs/tables.md): a sequence of rows, each a dict, whose columns have names.

    Any library that reads Arrow takes it, without a copy: `duckdb.from_arrow(table)`, `polars.DataFrame(table)`.

    >>> import wiretale
    >>> flows = wiretale.analyze("sample_pcaps/vlan_ipv6.pcap").flows
    >>> len(flows), flows[3]["protocol"], flows[-1]["packets"]
    (7, 'tcp', 6)
    >>> [row["flow"] for row in flows if row["protocol"] == "udp"]
    [2, 4]
    >>> [row["packets"] for row in flows[:3]], flows["packets"][:3]
    ([10, 10, 12], [10, 10, 12])
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

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield from self.rows(start, start + ROWS_AT_ONCE)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: int) -> Row: ...
        @overload
        def __getitem__(self, key: slice) -> list[Row]: ...
        @overload
        def __getitem__(self, key: str) -> list[Any]: ...

    def __getitem__(self, key: int | slice | str) -> Row | list[Row] | list[Any]:
        """Returns a row by its number, rows by a slice, or a column by its name. Raises IndexError or KeyError."""
        if isinstance(key, str):
            return self._core.column(key)
        if isinstance(key, slice):
            numbers = range(len(self))[key]
            if not numbers:
                return []
            first, last = min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1])
            return self.rows(first, last + 1)[:: numbers.step]
        number = range(len(self))[key]  # raises IndexError
        return self.rows(number, number + 1)[0]

    def to_polars(self) -> polars.DataFrame:
        """Returns a polars DataFrame. Raises MissingToolError if polars is not installed.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> flows.to_polars()["packets"].sum()
        342
        """
        frame: polars.DataFrame = library("polars").DataFrame(self)
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Returns a pyarrow Table. Raises MissingToolError if pyarrow is not installed.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> flows.to_arrow().num_rows
        1
        """
        return library("pyarrow").table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a pandas DataFrame, made by pyarrow. Raises MissingToolError if either is not installed.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> flows.to_pandas().loc[0, "protocol"]
        'tcp'
        """
        library("pandas")
        return self.to_arrow().to_pandas()

    def with_integers(self, times: bool = False) -> WithIntegers:
        """Returns the table for any library that reads Arrow, with durations and times as int64 ns, because DuckDB's INTERVAL has
        microseconds only. If `times`, times stay timestamps.

        >>> import duckdb, wiretale
        >>> flows = wiretale.analyze("sample_pcaps/vlan_ipv6.pcap").flows.with_integers()
        >>> duckdb.sql("SELECT last_ns - first_ns AS ns FROM flows WHERE flow = 3").fetchall()
        [(36000000,)]
        """
        return WithIntegers(self._core, times)

    def columns(self) -> list[tuple[str, str, str, str]]:
        """Returns name, type, unit and meaning of each column.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> flows.columns()[1]
        ('protocol', 'word', '', 'transport protocol; ip for one that is not decoded, without ports')
        """
        return [column[:4] for column in self._core.columns()]

    def column(self, name: str) -> list[Any]:
        """Returns a column; null is None. Raises KeyError if there is no such column.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> flows.column("packets")
        [342]
        """
        return self._core.column(name)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """Returns rows `start` to `stop` as dicts, which should be few, because each value becomes a Python object.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> [row["state"] for row in flows.rows(0, 5)]
        ['closed']
        """
        rows: list[Any] = self._core.rows(start, stop)
        return rows

    def _rows_at(self, numbers: Iterable[int]) -> list[Row]:
        """Returns rows by their numbers, which should ascend."""
        rows: list[Any] = self._core.rows_at(list(numbers))
        return rows

    def _held_columns(self) -> list[str]:
        """Returns the names of the columns that have a value in some row, in one pass."""
        return self._core.held_columns()

    def _nonzero(self, names: Iterable[str]) -> dict[str, list[tuple[int, Any]]]:
        """Returns for each column the rows, as number and value, in which it is neither null nor 0, in one pass."""
        return self._core.nonzero(list(names))

    def total(self, name: str) -> int:
        """Returns the sum of an integer column; nulls count as 0.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> flows.total("packets")
        342
        """
        return self._core.total(name)

    def _rows_where(self, name: str, word_or_least: str | int | None = None) -> list[int]:
        """Returns the numbers of the rows in which a column is not null, is this word, or is this integer or more."""
        return self._core.rows_where(name, word_or_least)

    def _words(self, name: str) -> dict[int, str]:
        """Returns the words that occur in a column by their numbers in _packed()."""
        words = _core.vocabulary()
        return {number: words[number] for number in set(self._packed(name, "B")) if number < len(words)}

    def _rows_by_flow(self, flow_count: int) -> array[int]:
        """Returns the number of rows of each flow from 0 to `flow_count` - 1."""
        from array import array

        return array("I", self._core.rows_by_flow(flow_count))

    def _packed(
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

    def _packed_columns(
        self, fields: Iterable[tuple[str, str, int, int]], flows: list[int] | None = None
    ) -> list[bytes]:
        """Returns several columns (name, code, offset, divisor) as _packed() does, in one pass over the table."""
        return self._core.packed([(*field, False) for field in fields], flows)

    def _time_sums(
        self, names: list[str], base_ns: int, bin_ns: int, bins: int, start: str = "start_ns", width: str = "width_ns"
    ) -> list[array[float]]:
        """Returns sums of integer columns over `bins` bins of `bin_ns` from `base_ns` on.

        A row is spread evenly over its time, from `start` for `width`; null counts as 0.
        """
        from array import array

        sums = array("d", self._core.time_sums(start, width, names, base_ns, bin_ns, bins))
        return [sums[place : place + bins] for place in range(0, len(sums), bins)]

    def _flow_sums(
        self,
        names: list[str],
        base_ns: int,
        bin_ns: int,
        bins: int,
        most: int,
        time: Sequence[str] = ("start_ns", "width_ns"),
    ) -> tuple[array[int], array[int], list[array[float]]] | None:
        """Returns what _time_sums() does, of each flow: the flow and the bin of each entry that is not 0, in the order of
        flows and bins, and its sums; None if there are more than `most`."""
        from array import array

        entries = self._core.flow_sums([*time, "flow", *names], base_ns, bin_ns, bins, most)
        if entries is None:
            return None
        flows, places, sums = array("I", entries[0]), array("I", entries[1]), array("d", entries[2])
        return flows, places, [sums[at : at + len(flows)] for at in range(0, len(sums), len(flows) or 1)]

    def _of_flows(self, flows: list[int], most: int) -> Table[Row]:
        """Returns the first `most` rows of these flows, of a table of ASKED_TABLES."""
        return Table(self._core.of_flows(flows, most))

    def _packet_streams(self, flows: list[int], base_ns: int) -> tuple[int, dict[str, bytes]]:
        """Returns number and columns of the packets of these flows (packets table; analyzer/core/export/export.h)."""
        return self._core.packet_streams(flows, base_ns)

    def json(self, columns: Sequence[str] | None = None, lines: bool = False) -> Iterator[bytes]:
        """Returns a JSON array of row objects, in parts; or with `lines` an object a line, without columns that are null.

        >>> import wiretale
        >>> flows = wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows
        >>> b"".join(flows.json(["flow", "state"]))
        b'[\\n{"flow":0,"state":"closed"}\\n]'
        """
        return self._core.json(columns, lines)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def _shown(self) -> tuple[list[str], list[list[str]], str]:
        """Returns heads and cells of the first rows, without columns that are null there, and a line with the size."""
        rows = self._core.rows(0, ROWS_SHOWN)
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


class WithIntegers:
    """An Arrow stream of a table in which durations are int64 ns, and times, unless they stay times."""

    def __init__(self, core: _core.Table, times: bool) -> None:
        self._core, self._times = core, times

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema, True, self._times)


class InParts:
    """The packets table in parts that are made while it is read, for DuckDB, as WithIntegers. Each reading begins anew; the error
    that ended one is in `failure`. `empty` has the columns of the parts if they are not those of every analysis."""

    def __init__(self, begin: Callable[[], Iterator[Table]], times: bool, empty: Table | None = None) -> None:
        self._begin, self._times, self._empty = begin, times, empty
        self.failure: BaseException | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        parts = self._begin()

        def following() -> _core.Table | None:
            try:
                return next(parts)._core
            except StopIteration:
                return None
            except BaseException as error:
                self.failure = error
                raise

        empty = no_packets() if self._empty is None else self._empty
        return empty._core.following_stream(following, self._times)


def integer_in(row: Mapping[str, object], column: str) -> int | None:
    """Returns an integer column of a row by a name that is not known before run time, so that mypy knows that it can be null."""
    value = row[column]
    if value is None or isinstance(value, int):
        return value
    raise TypeError(f"{column} has no integers")


def no_packets() -> Table:
    """Returns an empty packets table, which has its columns."""
    return Table(_core.packet_rows([]))


class Joined:
    """Tables of several analyses as one for DuckDB, as WithIntegers, with the place of the analysis as the last column,
    table_number."""

    def __init__(self, tables: list[Table], times: bool = False) -> None:
        self._core, self._times = [table._core for table in tables], times

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._core[0].joined_stream(self._core, self._times)


def shown_cell(value: object) -> str:
    """Returns a value as short text without control characters, because these could steer a terminal."""
    text = printable(str(value))
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…"
