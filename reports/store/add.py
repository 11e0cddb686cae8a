# SPDX-License-Identifier: Apache-2.0
"""`wiretale store add`: captures into a store, each analyzed by itself and kept once by its content."""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.capture_paths import is_url
from wiretale.analyzer.errors import InputError, UsageError, WiretaleError
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions
from wiretale.analyzer.printable import utf8_name
from wiretale.analyzer.table import STORED_TABLES
from wiretale.reports.export.parquet import FORMATS, TIME_SQL, TIMED, copy_to, rows_of
from wiretale.reports.store.group import (
    LEAST,
    SMALL_BYTES,
    Analyzed,
    captures_sql,
    digest_of_group,
    group_sql,
    is_full,
    register_group,
)
from wiretale.reports.store.layout import (
    ADDING,
    EMPTY,
    EMPTY_MANY,
    MANIFEST,
    MANY,
    MARKER,
    REMOVED,
    SCHEMA,
    TABLES,
    VIEWS,
    cannot_write,
    check_empty,
    columns_in,
    marker,
    options_for,
    options_in,
    place_of,
    publish,
    publishing,
    staging,
    stored,
    stored_as,
    write_file,
    writing,
)
from wiretale.reports.store.views import has_views, views_of
from wiretale.version import __version__

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.trace import Trace

NS = 1_000_000_000
CAPTURES_COLUMNS = 2  # rises with each change of the columns of `captures`


class Added(NamedTuple):
    """The outcome for one file."""

    path: str
    #: added, present, damaged (added up to the damage) or failed
    outcome: str
    #: of a file that failed or is damaged
    reason: str = ""
    flows: int = 0


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file."""
    with path.open("rb") as file:
        if path.stat().st_size <= SMALL_BYTES:  # the buffer of file_digest() costs more than the bytes of a small file
            return hashlib.sha256(file.read()).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()


def stamp_of(path: Path) -> tuple[int, int, int, int]:
    """Returns what changes if a file is written to or replaced."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def writer(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection that writes the tables of all captures, because a new one costs more than a small capture."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS

    with (
        staging(folder, ADDING) as made,
        utf8_name(made) as spilled,
        duckdb.connect(config=dict(SETTINGS)) as connection,
    ):
        connection.execute("SET threads = 2; SET memory_limit = '400MB'")
        connection.execute("SET temp_directory = ?", [str(spilled)])
        yield connection


def write_tables(
    connection: duckdb.DuckDBPyConnection, trace: Trace, made: Path, names: Sequence[str], captures_sql: str
) -> None:
    """Writes the tables of a capture, and its row of `captures`. OSError if a file cannot be written."""
    from wiretale.analyzer.query import register

    register(connection, trace, ["interfaces"])
    register(connection, trace, names, TIMED)
    try:
        with utf8_name(made) as folder:
            rows = {folder / f"{name}.parquet": rows_of(trace, f"{name}.parquet", timed=True) for name in names}
            copy_to(connection, rows)
            copy_to(connection, {folder / "captures.parquet": captures_sql})
    finally:  # the next analysis begins without the memory of this one
        for name in ("interfaces", *(TIMED + name for name in names)):
            connection.unregister(name)


def quoted(text: str) -> str:
    """Returns a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def capture_row(path: str, size: int, flows: int, captures: Sequence[str], rows: str = "interfaces") -> str:
    """Returns the SQL of the row of `captures`; `captures` has the digest of the file of each interface number."""
    times = {
        name: TIME_SQL.format(f"{how}({name}) FILTER (packets > 0)")
        for name, how in (("first_ns", "min"), ("last_ns", "max"))
    }
    text = path.encode("utf-8", "replace").decode()
    return (
        f"SELECT {quoted(text)} AS path, {size}::BIGINT AS bytes, coalesce(sum(packets), 0)::BIGINT AS packets, "
        f"{flows}::BIGINT AS flows, {times['first_ns']} AS first_ns, {times['last_ns']} AS last_ns, "
        f"first(damage) FILTER (damage IS NOT NULL) AS damage, "
        f"{TIME_SQL.format(time.time_ns())} AS added_ns, {quoted(__version__)} AS wiretale, "
        f"[{', '.join(map(quoted, captures))}]::VARCHAR[] AS interface_captures FROM {rows}"
    )


def manifest(made: Path, digest: str, **more: object) -> str:
    """Returns capture.json for the files in a folder, with more members."""
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": digest_of(file)} for file in sorted(made.glob("*.parquet"))
    }
    return json.dumps({"schema": SCHEMA, "sha256": digest, "files": files, **more}, indent=1) + "\n"


def day_of(trace: Trace) -> str | None:
    """Returns the UTC day of the first packet; None if no packet has a time."""
    columns = (trace.interfaces.column(name) for name in ("first_ns", "packets"))
    times = [ns for ns, packets in zip(*columns, strict=True) if ns is not None and packets]
    return utc_day(min(times)) if times else None


def utc_day(ns: int) -> str:
    """Returns a day as the store names it."""
    return datetime.fromtimestamp(ns // NS, UTC).strftime("%Y-%m-%d")


def make_store(folder: Path, options: AnalysisOptions = NO_OPTIONS) -> AnalysisOptions:
    """Makes a folder a store, unless it is one; the marker comes last. Returns the options for its captures. UsageError if it is
    a store with others."""
    from wiretale.analyzer.trace import analyze_whole

    if (folder / MARKER).exists():
        of_store = options_for(folder, options)
        write_views(folder)
        return of_store
    check_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with writing(folder), staging(folder, ADDING) as made:
        empty = made / "empty.pcap"
        empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        trace = analyze_whole(empty, causes=False)
        tables = made / "tables"
        tables.mkdir()
        with writer(folder) as connection:
            write_tables(connection, trace, tables, STORED_TABLES, f"FROM ({capture_row('', 0, 0, [])}) WHERE false")
        with utf8_name(tables) as named:
            keep_no_rows(named)
        publish(tables, folder / EMPTY)
        write_views(folder)
        write_file(folder, MARKER, marker(columns_of(trace), options))
    return options


def write_views(folder: Path) -> None:
    """Writes views.sql, unless it is there and unchanged."""
    if not has_views(folder):
        write_file(folder, VIEWS, views_of(folder))


def keep_no_rows(folder: Path) -> None:
    """Removes the rows of tables, of which an empty capture has one interface and findings; the columns stay."""
    import duckdb

    with duckdb.connect() as connection:
        for name in TABLES:
            file, other = folder / f"{name}.parquet", folder / "none.parquet"
            connection.execute(
                f"COPY (FROM {quoted(str(file))} WHERE false) TO {quoted(str(other))} ({FORMATS['parquet']})"
            )
            other.rename(file)


def columns_of(trace: Trace) -> str:
    """Returns a digest that differs between versions whose tables have other columns."""
    columns = {name: [column[:2] for column in trace.table(name).columns()] for name in STORED_TABLES}
    return hashlib.sha256(json.dumps([__version__, columns, CAPTURES_COLUMNS]).encode()).hexdigest()


def analyzed(path: str, options: AnalysisOptions, is_known: Callable[[str], object]) -> Analyzed | None:
    """Analyzes one file; None if its digest is known. Raises InputError if it is unreadable."""
    from wiretale.analyzer.trace import analyze_whole

    file = Path(path)
    try:
        before, digest = stamp_of(file), digest_of(file)
        if is_known(digest):
            return None
        trace = analyze_whole(path, options=options, causes=False)
        if stamp_of(file) != before:
            raise InputError(f"{path}: changed while it was read: expected a finished capture")
    except OSError as error:
        if isinstance(error, WiretaleError):
            raise
        raise InputError(f"{path}: {error.strerror}") from None
    return as_analyzed(path, digest, before[2], trace)


def as_analyzed(path: str, digest: str, size: int, trace: Trace, day: str | None = None) -> Analyzed:
    """Returns the capture of a file with these tables; `day` if it has no packets."""
    damage = next((text for text in trace.interfaces.column("damage") if text), "")
    tables = [name for name in STORED_TABLES if name == "interfaces" or len(trace.table(name))]
    return Analyzed(path, digest, size, trace, damage, day or day_of(trace), tables, time.monotonic_ns())


def outcome(capture: Analyzed, new: bool) -> Added:
    """Returns the outcome of a capture that was published, unless another process had published it."""
    kind = ("damaged" if capture.damage else "added") if new else "present"
    return Added(capture.path, kind, capture.damage, capture.trace.totals["flows"])


def already_there(folder: Path, digests: Sequence[str]) -> set[str]:
    """Returns those of these digests that the store has."""
    if len(digests) > 1:
        return stored(folder).intersection(digests)
    return {digest for digest in digests if stored_as(folder, digest)}


def publish_new(folder: Path, made: Path, place: Path, group: Sequence[Analyzed]) -> set[str]:
    """Publishes captures, unless some of them are in the store already, whose digests it returns."""
    if columns_in(folder) not in (None, columns_of(group[0].trace)):
        write_file(folder, MARKER, marker(None, options_in(folder)))
    with publishing(folder):
        there = already_there(folder, [capture.digest for capture in group])
        if not there and not publish(made, place):  # of the same captures, but neither manifest nor table lists them
            with staging(folder, REMOVED) as aside:
                place.rename(aside / "damaged")
                publish(made, place)
    return there


def add_capture(
    folder: Path, connection: duckdb.DuckDBPyConnection, capture: Analyzed, files: Sequence[str] | None = None
) -> Added:
    """Keeps a capture alone; `files` has the digest of the file of each interface. OSError if the store cannot be written."""
    with staging(folder, ADDING) as outer:
        made = outer / "capture"
        made.mkdir()
        files = files or [capture.digest] * len(capture.trace.interfaces)
        row = capture_row(capture.path, capture.bytes, capture.trace.totals["flows"], files)
        write_tables(connection, capture.trace, made, capture.tables, row)
        (made / MANIFEST).write_text(manifest(made, capture.digest))
        return outcome(capture, not publish_new(folder, made, place_of(folder, capture.digest, capture.day), [capture]))


def add_group(folder: Path, connection: duckdb.DuckDBPyConnection, group: Sequence[Analyzed]) -> Iterator[Added]:
    """Keeps captures of one day together. If another process published some of them meanwhile, the others are kept."""
    if len(group) < 2:
        yield from (add_capture(folder, connection, capture) for capture in group)
        return
    digest = digest_of_group(group)
    with staging(folder, ADDING) as outer:
        made = outer / "captures"
        made.mkdir()
        names = register_group(connection, group)
        try:
            with utf8_name(made) as named:
                copy_to(connection, {named / f"{name}.parquet": group_sql(group, name) for name in names})
                copy_to(connection, {named / "captures.parquet": captures_sql(__version__)})
        finally:
            for name in ("interfaces", *(TIMED + name for name in names)):
                connection.unregister(name)
        (made / MANIFEST).write_text(manifest(made, digest, captures=[capture.digest for capture in group]))
        there = publish_new(folder, made, place_of(folder, digest, group[0].day, MANY), group)
    yield from (outcome(capture, not there) for capture in group if not there or capture.digest in there)
    if there:
        yield from add_group(folder, connection, [capture for capture in group if capture.digest not in there])


def add_waiting(folder: Path, connection: duckdb.DuckDBPyConnection, waiting: Sequence[Analyzed]) -> Iterator[Added]:
    """Keeps small captures, those of a day together."""
    for day in dict.fromkeys(capture.day for capture in waiting):
        yield from add_group(folder, connection, [capture for capture in waiting if capture.day == day])


def make_many(folder: Path) -> None:
    """Prepares a store for captures that are kept together: tables without rows, and views of them."""
    import duckdb

    if (folder / EMPTY_MANY).is_dir() and has_views(folder):
        return
    with staging(folder, ADDING) as outer, utf8_name(folder) as named, duckdb.connect() as connection:
        made = outer / "captures"
        made.mkdir()
        with utf8_name(made) as place:
            for name in TABLES:
                file = quoted(str(named / EMPTY / f"{name}.parquet"))
                rows = f"SELECT *, NULL::VARCHAR AS capture_id FROM read_parquet({file}, hive_partitioning = false)"
                copy_to(connection, {place / f"{name}.parquet": rows})
        publish(made, folder / EMPTY_MANY)
    write_views(folder)


def outcomes(
    folder: Path,
    connection: duckdb.DuckDBPyConnection,
    paths: Sequence[str],
    options: AnalysisOptions,
    count: Callable[[], None],
) -> Iterator[Added]:
    """Adds captures. If there are many, small ones wait until they are kept together."""
    many, waiting = len(paths) >= LEAST, list[Analyzed]()
    digests = stored(folder)
    for path in paths:
        count()
        try:
            capture = analyzed(path, options, digests.__contains__)
        except InputError as error:
            yield Added(path, "failed", str(error))
            continue
        if capture is None:
            yield Added(path, "present")
            continue
        digests.add(capture.digest)
        if not many or capture.bytes > SMALL_BYTES:
            yield add_capture(folder, connection, capture)
            continue
        waiting.append(capture)
        if is_full(waiting):
            yield from add_waiting(folder, connection, waiting)
            waiting.clear()
            gc.collect(1)  # their tables, which commands with a short life would keep
    yield from add_waiting(folder, connection, waiting)


def add(
    folder: Path,
    paths: Sequence[str],
    count: Callable[[], None] = lambda: None,
    options: AnalysisOptions = NO_OPTIONS,
) -> Iterator[Added]:
    """Adds captures, and yields the outcome of each; one that cannot be read does not end the others. `count` is called for each
    before it is read, because outcomes of small ones come together.

    UsageError if the folder is no store and not empty, or a store with other options; OutputError if it cannot be written.
    """
    for path in paths:
        if path == "-" or is_url(path) or (Path(path).exists() and not Path(path).is_file()):
            raise UsageError(f"{path}: expected capture files, because a store keeps each by its content")
    try:
        options = make_store(folder, options)
        with writing(folder), writer(folder) as connection:
            if len(paths) >= LEAST:
                make_many(folder)
            yield from outcomes(folder, connection, paths, options, count)
    except WiretaleError:
        raise
    except OSError as error:
        raise cannot_write(folder, error) from None
