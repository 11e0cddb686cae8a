# SPDX-License-Identifier: Apache-2.0
"""The folder of a store.

    store.json                          the marker, with the version of the layout and a digest of the columns
    views.sql                           a view for each table, for `duckdb -init views.sql`
    day=2026-11-22/capture_id=<SHA-256>/   one capture, by the UTC day of its first packet
        flows.parquet, …                its tables that have rows
        captures.parquet                its path, size and time span: a row of the view `captures`
        capture.json                    bytes and SHA-256 of each of these files, for `store check`
    day=2026-11-22/many=<SHA-256>/      small captures that were added together: the same files, with a column capture_id
    .lock                               held by processes that change the store
    .publishing                         held by a process that publishes, or exchanges the folder of a day (compact.py)
    .upkeep                             held by the process that compacts or prunes
    .reading                            held by queries; `store compact` waits for them
    .adding-…, .removed-…               folders of such a process, or of one that was killed

A capture is published and removed by one rename of its folder, or that of its day, so a reader sees all of it or nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from wiretale.analyzer.capture_paths import STORE_MARKER
from wiretale.analyzer.errors import InputError, OutputError, UsageError
from wiretale.analyzer.files.durable import locked, sync
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions
from wiretale.analyzer.printable import utf8_name
from wiretale.analyzer.table import STORED_TABLES

SCHEMA = "wiretale.store/1"
MARKER, VIEWS, MANIFEST = STORE_MARKER, "views.sql", "capture.json"
#: the files of each capture, by the name of their view
TABLES = ("captures", *STORED_TABLES)
UNKNOWN_DAY = "__HIVE_DEFAULT_PARTITION__"  # which DuckDB reads as null
TABLE_FILE = re.compile(r"[a-z_]+\.parquet")
DAY = re.compile(rf"day=(\d{{4}}-\d\d-\d\d|{UNKNOWN_DAY})")
CAPTURE = re.compile(r"(?:capture_id|many)=([0-9a-f]{64})")
MANY = "many="  # and the digest of their digests; captures that were added together, or compacted
#: tables without rows: views need a file even if the store has no capture
EMPTY = f"day={UNKNOWN_DAY}/capture_id=none"
EMPTY_MANY = f"day={UNKNOWN_DAY}/many=none"
ADDING, REMOVED, LOCK, PUBLISHING = ".adding-", ".removed-", ".lock", ".publishing"
UPKEEP_LOCK, READING_LOCK = ".upkeep", ".reading"


def is_digest(value: object) -> bool:
    """Returns whether a value is the text of a SHA-256."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def check_shares(record: dict[str, Any], digests: Sequence[str]) -> None:
    """Raises ValueError if `sizes` or `members` of capture.json are not those of its captures."""
    sizes, members = record.get("sizes"), record.get("members", {})
    if sizes is not None and not (isinstance(sizes, dict) and sizes.keys() == {*digests}):
        raise ValueError("other sizes")
    if sizes and not all(type(size) is int and 0 <= size < 2**63 for size in sizes.values()):
        raise ValueError("no sizes")
    if not isinstance(members, dict) or not all(isinstance(member, dict) for member in members.values()):
        raise ValueError("no members")


def digests_in(table: Path) -> list[str]:
    """Returns the SHA-256 of each capture in a table `captures`. ValueError if it is missing or damaged."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS

    query = "SELECT capture_id FROM read_parquet(?, hive_partitioning = false)"
    try:
        with utf8_name(table.parent) as named, duckdb.connect(config=dict(SETTINGS)) as connection:
            digests = [row[0] for row in connection.execute(query, [glob_escaped(named / table.name)]).fetchall()]
    except duckdb.Error as error:
        raise ValueError(str(error)) from None
    if not all(map(is_digest, digests)):
        raise ValueError("no captures")
    return digests


def glob_escaped(path: Path) -> str:
    """Returns a path in which the characters of DuckDB's patterns stand for themselves."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in str(path))


class Stored(NamedTuple):
    """A capture in a store, or small ones that were added together."""

    folder: Path
    #: SHA-256 of the capture file, or of those of all files
    digest: str
    #: such as 2026-11-22; None if no packet has a time
    day: str | None

    @property
    def bytes(self) -> int:
        """The size of its tables."""
        return sum(file.stat().st_size for file in self.folder.iterdir())

    @property
    def captures(self) -> int:
        """The number of its captures; 1 if manifest and table of several are missing or damaged."""
        with suppress(OSError, ValueError):
            return len(self.digests)
        return 1

    @property
    def digests(self) -> list[str]:
        """The SHA-256 of each capture file; of several from their table if the manifest is missing or damaged.

        Raises OSError or ValueError if the table is, too.
        """
        if not self.folder.name.startswith(MANY):
            return [self.digest]
        with suppress(OSError, ValueError):
            return list(self.manifest()["captures"])
        return digests_in(self.folder / "captures.parquet")

    def manifest(self) -> dict[str, Any]:
        """Returns capture.json; `captures` and `sizes` are valid, `members` has an object for each name.

        Raises OSError or ValueError if it is missing or damaged.
        """
        try:
            record: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text())
        except RecursionError:
            raise ValueError("too deep") from None
        files = record.get("files") if isinstance(record, dict) else None
        if not isinstance(files, dict) or not all(map(TABLE_FILE.fullmatch, files)):
            raise ValueError("no files")
        digests = record.get("captures") if self.folder.name.startswith(MANY) else [self.digest]
        if not isinstance(digests, list) or not digests or not all(map(is_digest, digests)):
            raise ValueError("no captures")
        check_shares(record, digests)
        return record


def marker(columns: str | None, options: AnalysisOptions = NO_OPTIONS) -> str:
    """Returns store.json: `columns` is a digest of those that all captures have, null if captures differ; `options`, with which
    all were analyzed, is missing if there are none."""
    content: dict[str, object] = {"schema": SCHEMA, "columns": columns}
    if has_options(options):
        content["options"] = options.row_options()
    return json.dumps(content) + "\n"


def has_options(options: AnalysisOptions) -> bool:
    """Returns whether rows depend on an option that is not the default."""
    return options.row_options() != NO_OPTIONS.row_options()


def options_in(folder: Path) -> AnalysisOptions:
    """Returns the options with which all captures of a store were analyzed. Raises InputError if it is no store."""
    try:
        return AnalysisOptions.from_json(open_store(folder).get("options", {}))
    except ValueError:
        raise damaged_marker(folder) from None


def damaged_marker(folder: Path) -> InputError:
    remedy = marker(None).strip()
    return InputError(f"{folder / MARKER}: damaged: write `{remedy}` into it, then run `wiretale store check`")


def options_for(folder: Path, options: AnalysisOptions) -> AnalysisOptions:
    """Returns the options of a further capture in a store. UsageError if they are not those of the captures in it."""
    stored = options_in(folder)._replace(jobs=options.jobs)
    if has_options(options) and options != stored:
        flags = " ".join(stored.words()) or "none"
        raise UsageError(
            f"{folder}: has captures with other options of the analysis ({flags}): expected the same, or none"
        )
    return stored


def columns_in(folder: Path) -> str | None:
    """Returns the digest of the columns that all captures of a store have. Raises InputError if it is no store."""
    columns = open_store(folder).get("columns")
    return columns if isinstance(columns, str) else None


def write_file(folder: Path, name: str, content: str | bytes) -> None:
    """Writes or replaces a file of a store by one rename."""
    with staging(folder, ADDING) as made:
        file = made / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        sync(file)
        file.replace(folder / name)
    sync(folder)


def open_store(folder: Path) -> dict[str, object]:
    """Returns the marker of a store. Raises InputError if a folder is no store."""
    try:
        marker_record = json.loads((folder / MARKER).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder}: expected a store (made by `wiretale store add`): it has no {MARKER}") from None
    except OSError as error:
        raise InputError(f"{folder / MARKER}: {error.strerror}") from None
    except ValueError:
        raise damaged_marker(folder) from None
    schema = marker_record.get("schema") if isinstance(marker_record, dict) else None
    if schema != SCHEMA:
        raise InputError(f"{folder / MARKER}: expected schema {SCHEMA}, but it is {schema!r}")
    marker_found: dict[str, object] = marker_record
    return marker_found


def check_empty(folder: Path) -> None:
    """Raises UsageError if a folder without a marker has files other than those that precede the marker of a new store."""
    store_names = (VIEWS, Path(EMPTY).parts[0])
    with suppress(FileNotFoundError):
        if foreign := [
            file.name for file in folder.iterdir() if not file.name.startswith(".") and file.name not in store_names
        ]:
            raise UsageError(f"{folder}: expected a store, or a new or empty folder: it has {foreign[0]}")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Holds the lock of those who change the store, several at a time; who has it alone removes what killed ones left."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        remove_left_over(folder, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:  # an interruption may have stopped the removal of a folder
            remove_left_over(folder, descriptor)
    finally:
        os.close(descriptor)


def remove_left_over(folder: Path, lock: int) -> None:
    """Removes the folders of processes that were killed, unless another process is changing the store."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for made in left_over(folder):
            shutil.rmtree(made, ignore_errors=True)


def is_changing(folder: Path) -> bool:
    """Returns whether a process is changing the store."""
    with suppress(FileNotFoundError), (folder / LOCK).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def left_over(folder: Path) -> list[Path]:
    """Returns the folders of processes that are changing the store, or were killed."""
    return sorted([*folder.glob(f"{ADDING}*"), *folder.glob(f"{REMOVED}*")])


@contextmanager
def staging(folder: Path, prefix: str) -> Iterator[Path]:
    """A folder in the store that readers do not see, removed at the end unless it was renamed."""
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def publish(made: Path, place: Path) -> bool:
    """Makes a capture visible by one rename. Returns whether it was new: another process may have added it meanwhile."""
    for file in made.iterdir():
        sync(file)
    sync(made)
    while True:
        place.parent.mkdir(exist_ok=True)
        try:
            made.rename(place)
            break
        except FileNotFoundError:  # the folder of the day was empty, and removed by `store prune`
            if not made.is_dir():
                raise
        except OSError:
            if not place.is_dir():
                raise
            return False
    with suppress(FileNotFoundError):  # it was removed already
        sync(place.parent)
    sync(place.parent.parent)
    return True


def captures(folder: Path) -> Iterator[Stored]:
    """Yields the captures of a store by day and digest, after those that were added together; those without a time last."""
    for day in sorted(folder.glob("day=*")):
        day_name = DAY.fullmatch(day.name)
        for place in sorted((*day.glob(f"{MANY}*"), *day.glob("capture_id=*"))) if day_name else ():
            if name := CAPTURE.fullmatch(place.name):
                yield Stored(
                    place, name[1], None if day_name and day_name[1] == UNKNOWN_DAY else day_name and day_name[1]
                )


def place_of(folder: Path, digest: str, day: str | None, prefix: str = "capture_id=") -> Path:
    """Returns the folder of a capture."""
    return folder / f"day={day or UNKNOWN_DAY}" / f"{prefix}{digest}"


def stored_as(folder: Path, digest: str) -> Path | None:
    """Returns the folder that has a capture with this content, or None."""
    alone = next(folder.glob(f"day=*/capture_id={digest}"), None)
    if alone:
        return alone
    for manifest in folder.glob(f"day=*/{MANY}*/{MANIFEST}"):
        with suppress(OSError, ValueError):  # pruned meanwhile, or damaged: `store check` reports it
            if digest in manifest.read_text():
                return manifest.parent
    return None


def stored(folder: Path) -> set[str]:
    """Returns the digests of all captures. A damaged group has none: `store check` reports it."""
    digests: set[str] = set()
    for capture in captures(folder):
        with suppress(OSError, ValueError):
            digests.update(capture.digests)
    return digests


def publishing(folder: Path) -> AbstractContextManager[None]:
    """Lets one process publish at a time, so that none of two that add the same capture publishes it twice."""
    return locked(folder / PUBLISHING)


def cannot_write(folder: Path, error: OSError) -> OutputError:
    """Returns the error of a store that cannot be written."""
    return OutputError(f"{folder}: cannot write: {error.strerror or error}")
