# SPDX-License-Identifier: Apache-2.0
"""`wiretale store compact`: the captures of a day in one file per table, because a query opens each file.

The folder of the day is made anew beside the store's, with these files in a folder `many=`, like captures that were added
together, and links to the files of others. It is exchanged with the old one by one rename. `rewrite_day()` also removes
captures from such files, for `store prune`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.errors import InputError, WiretaleError
from wiretale.analyzer.files.durable import exchange, locked, sync
from wiretale.analyzer.printable import utf8_name
from wiretale.reports.export.parquet import ERRNO, FORMATS, reason_of
from wiretale.reports.store.add import make_many, manifest, quoted, writer
from wiretale.reports.store.layout import (
    ADDING,
    MANIFEST,
    MANY,
    READING_LOCK,
    TABLES,
    UPKEEP_LOCK,
    Stored,
    cannot_write,
    captures,
    glob_escaped,
    open_store,
    publishing,
    staging,
    writing,
)

if TYPE_CHECKING:
    import duckdb

OWN_MEMBERS = {"schema", "sha256", "files", "captures", "sizes", "members"}  # of capture.json
QUERY_WAIT_S = 30.0
LEAST = 2  # folders of a day that are worth a new one


class Compacted(NamedTuple):
    """A day that was compacted."""

    day: str | None
    captures: int


@contextmanager
def between_queries(folder: Path) -> Iterator[None]:
    """Waits until no query reads the store, and keeps others waiting; at most QUERY_WAIT_S, because queries could follow on
    each other for ever. Those that read then begin again.
    """
    descriptor = os.open(folder / READING_LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    latest = time.monotonic() + QUERY_WAIT_S
    try:
        while time.monotonic() < latest:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)


def upkeep(folder: Path) -> AbstractContextManager[None]:
    """Holds the lock of the one process that compacts or prunes."""
    return locked(folder / UPKEEP_LOCK)


def files_of(store: Path, places: Iterable[Path], name: str) -> str:
    """Returns a list of SQL of the files of a table in these folders; empty if there is none. `store` is its UTF-8 path."""
    with_table = [place for place in places if (place / f"{name}.parquet").is_file()]
    files = [store / place.parent.name / place.name / f"{name}.parquet" for place in with_table]
    return ", ".join(quoted(glob_escaped(file)) for file in files)


def rows_sql(store: Path, name: str, units: Sequence[Stored], without: set[str]) -> str:
    """Returns the SQL of the rows of a table, but for those of some captures; empty if no folder has it."""
    removed = ", ".join(map(quoted, sorted(without))) or "''"
    settings = "union_by_name = true, hive_partitioning"
    types = "{'day': VARCHAR, 'capture_id': VARCHAR}"
    parts = []
    if many := files_of(store, [unit.folder for unit in units if is_many(unit)], name):
        parts.append(f"FROM read_parquet([{many}], {settings} = false)")
    if single := files_of(store, [unit.folder for unit in units if not is_many(unit)], name):
        parts.append(f"SELECT * EXCLUDE (day) FROM read_parquet([{single}], {settings} = true, hive_types = {types})")
    return f"FROM ({' UNION ALL BY NAME '.join(parts)}) WHERE capture_id NOT IN ({removed})" if parts else ""


def is_many(unit: Stored) -> bool:
    """Returns whether a folder has the captures of several files."""
    return unit.folder.name.startswith(MANY)


def write_rows(connection: duckdb.DuckDBPyConnection, queries: dict[Path, str]) -> None:
    """Writes the rows of each query; Ctrl-C ends it at once. Raises OSError, or InputError if a file of the store is damaged."""
    import duckdb

    from wiretale.analyzer.query import interruptible

    for file, sql in queries.items():
        copy = f"COPY ({sql}) TO {quoted(str(file))} ({FORMATS['parquet']})"
        try:
            interruptible(connection, partial(connection.execute, copy))
        except duckdb.Error as error:
            if ERRNO.search(str(error)):
                raise OSError(reason_of(error)) from None
            raise InputError(f"{file.name}: {str(error).splitlines()[0]}; run `wiretale store check`") from None


def manifest_of(unit: Stored) -> dict[str, Any]:
    """Returns capture.json of a folder. Raises InputError if it is missing or damaged."""
    try:
        return unit.manifest()
    except (OSError, ValueError):
        raise InputError(f"{unit.folder / MANIFEST}: is missing or damaged; run `wiretale store check`") from None


def sizes_of(unit: Stored) -> dict[str, float]:
    """Returns the size of each capture in a folder; those of captures that were added together are equal."""
    manifest = manifest_of(unit)
    digests = manifest["captures"] if is_many(unit) else [unit.digest]
    sizes = manifest.get("sizes") if is_many(unit) else None
    return dict(sizes) if sizes else dict.fromkeys(digests, unit.bytes / len(digests))


def members_of(unit: Stored) -> dict[str, Any]:
    """Returns the members of capture.json that other programs added, by capture."""
    manifest = manifest_of(unit)
    more = {name: manifest[name] for name in manifest.keys() - OWN_MEMBERS}
    return {**manifest.get("members", {}), **({unit.digest: more} if more else {})}


def write_manifest(made: Path, digest: str, units: Sequence[Stored], without: set[str]) -> None:
    """Writes capture.json. The sizes of captures become shares of the size of the files."""
    sizes = {name: size for unit in units for name, size in sizes_of(unit).items() if name not in without}
    factor = sum(file.stat().st_size for file in made.glob("*.parquet")) / max(1.0, sum(sizes.values()))
    shares = {name: round(size * factor) for name, size in sizes.items()}
    members = {name: more for unit in units for name, more in members_of(unit).items() if name in sizes}
    (made / MANIFEST).write_text(manifest(made, digest, captures=list(sizes), sizes=shares, members=members))


def keep_age(made: Path, places: Iterable[Path]) -> None:
    """Gives a folder the age of the newest one of those that it replaces."""
    newest = max(place.stat().st_mtime_ns for place in places)
    os.utime(made, ns=(newest, newest))


def link_others(day: Path, made: Path, gone: set[str]) -> None:
    """Links the files of the other captures of a day into its new folder, which were perhaps added meanwhile.

    Files of other programs, such as .DS_Store, stay.
    """
    for place in sorted(day.iterdir()):
        if place.is_file():
            os.link(place, made / place.name)
        elif place.name not in gone:
            (made / place.name).mkdir()
            for file in place.iterdir():
                os.link(file, made / place.name / file.name)
            keep_age(made / place.name, [place])
            sync(made / place.name)


def rewrite_day(
    folder: Path, connection: duckdb.DuckDBPyConnection, units: Sequence[Stored], without: set[str]
) -> None:
    """Writes the captures in some folders of a day into one, but for those that are removed."""
    day = units[0].folder.parent
    digests = sorted({digest for unit in units for digest in sizes_of(unit)} - without)
    digest = hashlib.sha256("".join(digests).encode()).hexdigest()
    with staging(folder, ADDING) as outer:
        made = outer / "day"
        target = made / f"{MANY}{digest}"
        target.mkdir(parents=True)
        with utf8_name(folder, plain=True) as store, utf8_name(target) as named:
            rows = {name: rows_sql(store, name, units, without) for name in TABLES}
            write_rows(connection, {named / f"{name}.parquet": sql for name, sql in rows.items() if sql})
        write_manifest(target, digest, units, without)
        for file in target.iterdir():
            sync(file)
        keep_age(target, [unit.folder for unit in units])
        sync(target)
        with between_queries(folder), publishing(folder):
            link_others(day, made, {unit.folder.name for unit in units})
            sync(made)
            exchange(made, day)
            sync(folder)


def compact(folder: Path, age_ns: int) -> Iterator[Compacted]:
    """Compacts each day that has several folders which were made more than `age_ns` ago, and yields it.

    Raises InputError if the folder is no store or a file of it is damaged, OutputError if it cannot be written.
    """
    open_store(folder)
    latest = time.time() - age_ns / 1e9
    try:
        with writing(folder), upkeep(folder), writer(folder) as connection:
            (folder / READING_LOCK).touch()
            make_many(folder)
            days: dict[Path, list[Stored]] = {}
            for unit in captures(folder):
                if unit.folder.stat().st_mtime <= latest:
                    days.setdefault(unit.folder.parent, []).append(unit)
            for units in days.values():
                if len(units) >= LEAST:
                    count = sum(len(sizes_of(unit)) for unit in units)
                    rewrite_day(folder, connection, units, set())
                    yield Compacted(units[0].day, count)
    except WiretaleError:
        raise
    except OSError as error:
        raise cannot_write(folder, error) from None
