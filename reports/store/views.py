# SPDX-License-Identifier: Apache-2.0
"""The views of a store: SQL that DuckDB alone can run, and the connection that `store query` uses."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wiretale.analyzer.errors import InputError, UsageError, WiretaleError
from wiretale.analyzer.printable import utf8_name
from wiretale.reports.store.layout import EMPTY, EMPTY_MANY, MANY, READING_LOCK, TABLES, VIEWS, columns_in, glob_escaped

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
Row = tuple[Any, ...]
ATTEMPTS = 4
# Types whose values become Python objects that JSON has; others become text.
PLAIN = {
    *("VARCHAR", "BOOLEAN", "FLOAT", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
}
STORE_FILE = re.compile(r"day=[^/]+/(?:capture_id|many)=[^/]+/\w+\.parquet")
PLACE = re.compile(r"\nLINE \d+: ")
HEAD = """\
-- The tables of all captures in this folder; columns are described in wiretale's docs/tables.md.
-- `capture_id` is the SHA-256 of the capture file, `day` the UTC day of its first packet: a condition on them skips files.
-- Usage: cd to this folder, then duckdb -init views.sql
"""


def files_sql(files: str, same: bool, places: str) -> str:
    """Returns the rows of all files of a pattern; `places` are the types of the parts of their paths."""
    pattern = files.replace("'", "''")
    return (
        f"read_parquet('{pattern}', union_by_name = {str(not same).lower()},\n"
        f"    hive_partitioning = true, hive_types = {{{places}}})"
    )


def view_sql(name: str, folder: str = ".", same: bool = False, many: bool = False) -> str:
    """Returns the statement that makes the view of a table; `many` if there are captures that were added together.

    Captures may be of several versions, so that columns are matched by name, for which DuckDB opens each file; `same` if all
    captures have the same columns.
    """
    single = files_sql(f"{folder}/day=*/capture_id=*/{name}.parquet", same, "'day': DATE, 'capture_id': VARCHAR")
    view = f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {single}"
    if many:
        together = files_sql(f"{folder}/day=*/{MANY}*/{name}.parquet", same, "'day': DATE, 'many': VARCHAR")
        view += f"\nUNION ALL BY NAME SELECT * EXCLUDE (many) FROM {together}"
    return f"{view};\n"


def views_sql(many: bool = False) -> str:
    """Returns the contents of views.sql."""
    return HEAD + "".join(view_sql(name, many=many) for name in TABLES)


def views_of(folder: Path) -> str:
    """Returns what views.sql of a store must have."""
    return views_sql(many=(folder / EMPTY_MANY).is_dir())


def has_views(folder: Path) -> bool:
    """Returns whether views.sql of a store is there and unchanged."""
    with suppress(OSError, ValueError):
        return (folder / VIEWS).read_text() == views_of(folder)
    return False


@contextmanager
def connect(folder: Path, sql: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the views that a query names. Raises InputError if it is no store or its files cannot be read."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS, confine, interruptible

    same, many = columns_in(folder) is not None, (folder / EMPTY_MANY).is_dir()
    with utf8_name(folder, plain=True) as named, duckdb.connect(config=dict(SETTINGS)) as connection:
        names = [name for name in tables_in(sql) if has_table(folder, name)]
        views = [view_sql(name, glob_escaped(named), same, many) for name in names]
        try:
            connection.execute("SET TimeZone = 'UTC'")  # of the text of times, and of conditions
            interruptible(connection, lambda: connection.execute("".join(views)))
            confine(connection, str(named), glob_escaped(named))  # patterns of views are escaped
        except duckdb.Error as error:
            raise InputError(f"{folder}: {str(error).splitlines()[0]}; run `wiretale store check`") from None
        yield connection


def days_of(folder: Path) -> dict[str, int]:
    """Returns the inode of the folder of each day, which `store compact` exchanges."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.inode() for entry in entries if entry.name.startswith("day=")}


def consistent(folder: Path, read: Callable[[], T]) -> T:
    """Returns what a function reads from a store. It reads again if files were compacted or removed meanwhile.

    A view lists captures with folders of their own first, then others, so that it could have rows twice. `store
    compact` waits for queries for some time, unless the store is on a file system that cannot be written.
    """
    with reading(folder):
        return read_again(folder, read)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Holds the lock of queries if there is one."""
    descriptor = None
    with suppress(OSError):
        descriptor = os.open(folder / READING_LOCK, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def read_again(folder: Path, read: Callable[[], T]) -> T:
    """Returns what a function reads; it may be called several times."""
    import duckdb

    failed: WiretaleError = InputError(f"{folder}: files are compacted or removed all the time: try again")
    for _ in range(ATTEMPTS):
        try:
            days = days_of(folder)
        except OSError:
            break
        try:
            result = read()
            now = days_of(folder)
            if all(now.get(day) == inode for day, inode in days.items()):
                return result
        except WiretaleError as error:
            if not isinstance(error.__context__, duckdb.IOException):
                raise
            failed = error
    else:
        raise failed
    return read()  # which names the reason why the folder cannot be read


def has_table(folder: Path, name: str) -> bool:
    """Returns whether a store has a table, which it lacks if it was made by an older version."""
    return (folder / EMPTY / f"{name}.parquet").exists()


def words_of(sql: str) -> set[str]:
    """Returns the words of a query."""
    return {word.lower() for word in re.findall(r"\w+", sql)}


def tables_in(sql: str) -> list[str]:
    """Returns the tables whose names occur in a query; all if none does, because it may list them."""
    return [name for name in TABLES if name in words_of(sql)] or list(TABLES)


def select(
    connection: duckdb.DuckDBPyConnection, sql: str, limit: int, lists: bool = False, where: str | None = None
) -> tuple[list[tuple[str, str]], list[Row]]:
    """Returns name and type of each column, and at most `limit` rows, with times as text. A name that was used gets a number.

    With `lists`, a list of plain values is a list, else its text. `where` is the condition if it alone is of the user.
    UsageError if the text is not one SELECT statement, or if it fails. Ctrl-C ends it at once.
    """
    import duckdb

    from wiretale.analyzer.query import interruptible

    def answer() -> tuple[list[tuple[str, str]], list[Row]]:
        if where:
            check_select(connection, f"SELECT 1 WHERE {where}", "--where: expected one condition")
        check_select(connection, sql, "the query: expected one SELECT statement")
        relation = connection.sql(sql)
        columns = [(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]
        plain = [(kind.rstrip("[]") if lists else kind) in PLAIN for _, kind in columns]
        values = [f"#{place}" + ("" if is_plain else "::VARCHAR") for place, is_plain in enumerate(plain, 1)]
        names = distinct([name for name, _ in columns])
        columns = [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]
        return columns, relation.project(", ".join(values)).limit(limit).fetchall()

    try:
        return interruptible(connection, answer)
    except duckdb.Error as error:
        raise failure("--where" if where else "the query", error) from None


def check_select(connection: duckdb.DuckDBPyConnection, sql: str, refusal: str) -> None:
    """Raises UsageError with this text if a text is not one SELECT statement in UTF-8."""
    import duckdb

    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{refusal} in UTF-8") from None
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(refusal)


def failure(name: str, error: duckdb.Error) -> WiretaleError:
    """Returns the error of a query: that of a file of the store if DuckDB names one, else of the text.

    Lines with a place are left out: they show the text that the views and conditions were put into.
    """
    import duckdb

    text = " ".join(PLACE.split(str(error))[0].split())
    if isinstance(error, duckdb.IOException | duckdb.InvalidInputException) and STORE_FILE.search(text):
        return InputError(f"{text}; run `wiretale store check`")
    return UsageError(f"{name}: {text}")


def distinct(names: list[str]) -> list[str]:
    """Returns names of which none occurs twice: `flow`, `flow_1`, as after a join."""
    unique: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        unique[
            name
            if name not in unique
            else next(candidate for candidate in numbered if candidate not in {*unique, *names})
        ] = None
    return list(unique)
