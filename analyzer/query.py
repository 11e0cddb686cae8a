# SPDX-License-Identifier: Apache-2.0
"""The tables in DuckDB, by their names.

The queries of users see times as timestamps in ns, as stores, Parquet and data frames have them, and durations as int64 ns,
because DuckDB's INTERVAL has microseconds. The queries of wiretale see both as int64 ns.
"""

from __future__ import annotations

import re
from _thread import start_new_thread
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from wiretale.analyzer.table import ASKED_TABLES

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

T = TypeVar("T")

# DuckDB must not download extensions, whatever a query names.
SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


NEEDED = {"df": "pandas numpy", "pl": "polars pyarrow"}  # by the methods of a result
NOT_MADE = re.compile(rf"table with name ({'|'.join(ASKED_TABLES)}) does not exist", re.IGNORECASE)


class QueryResult:
    """The rows of a query: a relation of DuckDB, which other libraries take as a table.

    Every method of DuckDBPyRelation works, such as filter(), show() or to_parquet().

    >>> import wiretale
    >>> result = wiretale.analyze("sample_pcaps/tcp_losses.pcap").query("SELECT flow, packets FROM flows")
    >>> result.columns, result.fetchall()
    (['flow', 'packets'], [(0, 342)])
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation: Any = relation  # the types of DuckDB lack some of its methods

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self._relation.columns]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns the rows.

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").query("SELECT flow, protocol FROM flows").fetchall()
        [(0, 'tcp')]
        """
        return list(self._relation.fetchall())

    def df(self) -> Any:
        """Returns a DataFrame of pandas. MissingToolError without pandas and numpy.

        >>> import wiretale
        >>> result = wiretale.analyze("sample_pcaps/tcp_losses.pcap").query("SELECT flow, first_ns FROM flows")
        >>> result.df().dtypes["first_ns"]
        datetime64[ns, UTC]
        """
        frame = self._library("df")
        for name, kind in zip(self.columns, self._relation.types, strict=True):
            if str(kind) == "TIMESTAMPTZ_NS" and frame[name].dt.tz is None:  # DuckDB leaves the zone out
                frame[name] = frame[name].dt.tz_localize("UTC")
        return frame

    def pl(self) -> Any:
        """Returns a DataFrame of polars. MissingToolError without polars and pyarrow.

        >>> import wiretale
        >>> result = wiretale.analyze("sample_pcaps/tcp_losses.pcap").query("SELECT flow, first_ns FROM flows")
        >>> result.pl().schema["first_ns"]
        Datetime(time_unit='ns', time_zone='UTC')
        """
        return self._library("pl")

    def arrow(self) -> Any:
        """Returns the rows for pyarrow. MissingToolError without pyarrow.

        >>> import wiretale
        >>> result = wiretale.analyze("sample_pcaps/tcp_losses.pcap").query("SELECT flow, first_ns FROM flows")
        >>> result.arrow().schema.names
        ['flow', 'first_ns']
        """
        return self._library("arrow")

    def _library(self, method: str) -> Any:
        try:
            convert: Any = getattr(self._relation, method)
            return convert()
        except ImportError as error:
            from wiretale.analyzer.errors import MissingToolError

            name = (error.name or "a library").partition(".")[0]
            raise MissingToolError(f"{method}() needs {name}: pip install {NEEDED.get(method, name)}") from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._relation, name)

    def __len__(self) -> int:
        return len(self._relation)

    def __repr__(self) -> str:
        return repr(self._relation)


def connect(trace: Trace, times: bool = False) -> duckdb.DuckDBPyConnection:
    """Returns a connection with the tables of every analysis, which it reads in place. With `times`, times stay timestamps."""
    from wiretale.analyzer.table import KEPT_TABLES

    connection = duckdb.connect(config=dict(SETTINGS))
    register(connection, trace, KEPT_TABLES, times=times)
    return connection


def confine(connection: duckdb.DuckDBPyConnection, *folders: str) -> None:
    """Lets the SQL of a user read files of these folders alone, none without one; no later statement can change that."""
    connection.execute("SET allowed_directories = $folders", {"folders": folders})
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")


def register(
    connection: duckdb.DuckDBPyConnection, trace: Trace, names: Iterable[str], timed: str = "", times: bool = False
) -> None:
    """Gives a connection tables of an analysis, in place of those with the same names. With `timed`, which begins their names,
    or `times`, times stay timestamps."""
    for name in names:
        try:
            connection.register(timed + name, trace.table(name).with_integers(times or bool(timed)))
        except duckdb.Error as error:
            raise_interrupt(error)
            raise


def raise_interrupt(error: duckdb.Error) -> None:
    """Raises KeyboardInterrupt if Ctrl-C came while DuckDB called Python, which makes an error of it."""
    if "KeyboardInterrupt" in str(error):
        raise KeyboardInterrupt from None


def run(trace: Trace, sql: str) -> QueryResult:
    """Returns the result. A table that may need a second pass over the files is made only if the query names it."""
    connection = connect(trace, times=True)
    connection.execute("SET TimeZone = 'UTC'")  # of the text of times, and of conditions
    confine(connection)
    while True:
        try:
            return QueryResult(connection.sql(sql))
        except duckdb.CatalogException as error:
            missing = NOT_MADE.search(str(error))
            if missing is None:
                raise
        register(connection, trace, (missing[1].lower(),), times=True)


def interruptible(
    connection: duckdb.DuckDBPyConnection, call: Callable[[], T], meanwhile: Callable[[], object] | None = None
) -> T:
    """Returns what a function that uses a connection returns. Ctrl-C, or an error of `meanwhile`, ends its query at once.

    The query runs on a thread, because Python handles signals between bytecodes of the main thread only. `meanwhile` runs
    here; DuckDB needs no Python for a query.
    """
    begun, ended = Lock(), Lock()  # no Event or Future: a signal may leave their locks held
    results: list[T] = []
    errors: list[BaseException] = []
    ended.acquire()

    def work() -> None:
        if begun.acquire(blocking=False):
            try:
                results.append(call())
            except BaseException as error:
                errors.append(error)
            ended.release()

    try:
        start_new_thread(work, ())  # Thread.start() waits for an Event
        if meanwhile:
            meanwhile()
        ended.acquire()
    except BaseException:
        # again and again, because a query that begins after an interrupt() does not see it
        while not (results or errors or begun.acquire(blocking=False)):
            with suppress(KeyboardInterrupt):
                connection.interrupt()
                ended.acquire(timeout=0.02)
        raise
    if errors:
        raise errors[0]
    return results[0]


def dicts(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """Returns the result of a query as dicts; it should be small."""
    result = connection.execute(sql)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
