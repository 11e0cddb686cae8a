# SPDX-License-Identifier: Apache-2.0
"""`wiretale store watch`: the captures of a folder into a store, as a capture program finishes them (docs/watch.md).

One analysis goes on over all files (analyzer/running.py): a file is published with the flows that ended in it. The store is
the state: a file is in it once its packets were analyzed. `.watch-*.json` spares the hashing of these files, and has the
point from which a process that was killed continues (continuing.py).
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import InputError, OutputError, WiretaleError
from wiretale.analyzer.units import plural
from wiretale.reports.export.parquet import reason_of
from wiretale.reports.live.folder import Folder, Found, Stamp, first_time, missing_before, stamp_at
from wiretale.reports.live.snapshots import Snapshots, check_snapshots
from wiretale.reports.store.add import add_capture, as_analyzed, digest_of, make_store, utc_day, writer
from wiretale.reports.store.continuing import Continuing, Point, remove_flows, write_flows
from wiretale.reports.store.facts import Fact, publish_fact
from wiretale.reports.store.layout import cannot_write, stored, write_file, writing

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.options import AnalysisOptions

POLL_S, RETRY_S = 1.0, 10.0
SHARE = 0.1  # of a processor, for snapshots of open flows


class Notes(NamedTuple):
    """Functions that show a line."""

    progress: Callable[[str], None]
    problem: Callable[[str], None]


@dataclass
class Pending:
    """A file that the store lacks."""

    path: Path
    stamp: Stamp
    digest: str
    #: of its first packet; None without a time
    first_ns: int | None

    def order(self) -> tuple[int, str]:
        """Files without times come first."""
        return self.first_ns or 0, self.path.name

    def is_here(self) -> bool:
        """Returns whether the file is as it was when it was seen."""
        return stamp_at(self.path) == self.stamp


@contextmanager
def store_errors(store: Path) -> Iterator[None]:
    """Raises errors of writing to the store as OutputError."""
    import duckdb

    try:
        yield
    except WiretaleError:
        raise
    except OSError as error:
        raise cannot_write(store, error) from None
    except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
        raise OutputError(f"{store}: cannot write: {reason_of(error)}") from None


class Watch:
    """A folder, its files that are not in the store yet, and the analysis of those that are."""

    def __init__(
        self, folder: Path, store: Path, options: AnalysisOptions, notes: Notes, open_flows: Path | None = None
    ) -> None:
        self.options = options
        self.folder, self.store, self.notes = Folder(folder), store, notes
        #: of the open flows; None if they are not wanted
        self.snapshots = Snapshots(open_flows, notes.problem, SHARE) if open_flows else None
        self.pending: list[Pending] = []
        #: whether a file was damaged, missing or no capture
        self.damaged = False
        self._handled: dict[str, tuple[Stamp, str]] = {}  # stamp and digest of files by name
        self._before: dict[str, str] = {}  # digests of files that were in the folder at the look before
        self._names: list[str] = []  # of all finished files that are in the folder
        self._looked_below = False
        self._facts: list[Fact] = []
        self._stored: set[str] = set()  # digests of the captures in the store
        self._waited: list[tuple[str, int, str, int | None]] = []  # files of the process before that wait
        self._written: set[str] = set()  # digests of files that wait, in the cache
        self._points: list[Point] = []  # the last two: the newer one may not be published yet
        self._taken: tuple[Pending, Callable[[duckdb.DuckDBPyConnection], int]] | None = None
        key = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
        self._prefix = f".watch-{key}"
        self._cache, self._lock_name = f"{self._prefix}.json", f"{self._prefix}.lock"
        self._analysis = Continuing(options, self._prefix)
        self._lock = -1

    def open(self) -> None:
        """Makes the store if it is new. InputError if the folder cannot be read; OutputError if the store cannot be written, or
        if another process watches the folder; UsageError if it has captures with other options."""
        self._check_folder()
        if self.snapshots:
            check_snapshots(self.snapshots.folder)
        with store_errors(self.store):
            self.options = make_store(self.store, self.options)
            self._lock = os.open(self.store / self._lock_name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError(f"{self.store}: another process watches {self.folder.path}") from None
        self._stored = stored(self.store)
        self._read_cache()

    def _read_cache(self) -> None:
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            cached = json.loads((self.store / self._cache).read_text())
            self._points = [Point.of(point) for point in cached["points"]]
            self._handled = {
                name: ((dev, ino, size, ns), str(digest))
                for name, (dev, ino, size, ns, digest) in cached["done"].items()
            }
            self._waited = [
                (str(name), int(size), str(digest), None if ns is None else int(ns))
                for name, size, digest, ns in cached["waiting"]
            ]
        reached = [point for point in self._points if point.digest in self._stored]
        self._points = reached[-1:]
        self._analysis = Continuing(self.options, self._prefix, reached[-1] if reached else None)

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self.snapshots:
            self.snapshots.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check_folder(self) -> None:
        try:
            os.scandir(self.folder.path).close()
        except OSError as error:
            raise InputError(f"{self.folder.path}: {error.strerror}") from None

    def look(self) -> None:
        """Notes the files that are new. InputError if the folder cannot be read."""
        try:
            finished = self.folder.finished()
        except OSError as error:
            raise InputError(f"{self.folder.path}: {error.strerror}") from None
        self._before = {name: digest for name, (_, digest) in self._handled.items()}
        self._before.update((name, digest) for name, _, digest, _ in self._waited)
        self._names = [file.path.name for file in finished]
        self._handled = {name: self._handled[name] for name in self._names if name in self._handled}
        for file in finished:
            if self._handled.get(file.path.name, (None,))[0] != file.stamp:
                with suppress(FileNotFoundError):  # it is seen as missing by its number
                    self._take(file)
        self.pending.sort(key=Pending.order)
        here = {file.digest for file in self.pending}
        for name, size, digest, first_ns in self._waited:
            if digest not in here and digest not in self._stored:
                self._add_removed(self.folder.path / name, size, digest, first_ns)
        self._waited = []
        if here != self._written:
            with store_errors(self.store), writing(self.store):
                self._write_cache()

    def _take(self, finished: Found) -> None:
        try:
            digest = self._digest_before(finished.path) or digest_of(finished.path)
        except FileNotFoundError:
            raise
        except OSError as error:  # it may become readable
            self._handled[finished.path.name] = (finished.stamp, "")
            self._problem(f"{finished.path}: {error.strerror}; skipped")
            return
        if digest not in self._stored and all(pending.digest != digest for pending in self.pending):
            try:
                first_ns = first_time(finished.path, self.options)
            except InputError as error:
                day = utc_day(finished.stamp[3])
                self._facts.append(Fact(finished.path, finished.stamp[2], digest, day, str(error)))
            else:
                pending = Pending(finished.path, finished.stamp, digest, first_ns)
                if not pending.is_here():
                    return  # the next look sees it as it is then
                self.pending.append(pending)
        self._handled[finished.path.name] = (finished.stamp, digest)

    def _digest_before(self, path: Path) -> str | None:
        """Returns the digest that a file had before it was compressed in place, as by `tcpdump -z gzip`; None for others."""
        before = self._before.get(path.stem) if path.suffix == ".gz" else None
        with suppress(EOFError, gzip.BadGzipFile, zlib.error):
            if before:
                with gzip.open(path) as file:
                    return before if hashlib.file_digest(file, "sha256").hexdigest() == before else None
        return None

    def _look_below(self) -> None:
        """Names a subfolder with captures once, because it is not read; if no file is in the folder, it may come later."""
        if not self._looked_below:
            below = self.folder.capture_below()
            self._looked_below = bool(below or self._names)
            if below:
                self.notes.problem(f"{below}: captures in subfolders are not read: watch that folder instead")

    def _problem(self, text: str) -> None:
        self.damaged = True
        self.notes.problem(text)

    def publish(self, ending: bool) -> None:
        """Publishes the files that wait, each with the flows that ended in it; with all flows after the last one if `ending`.
        OutputError if the store cannot be written."""
        while self._has_next() or self._facts:
            # A connection for each file, because DuckDB keeps the memory of the one before.
            with store_errors(self.store), writing(self.store), writer(self.store) as connection:
                self._publish_facts(connection)
                if self.pending:
                    self._publish_next(connection, ending and len(self.pending) == 1)
                self._write_cache()
            if self.snapshots:
                self.snapshots.due = True
                if not self.pending or self.snapshots.urged:  # a watch that is behind reads first
                    self.show_open_flows()
        if ending and self._analysis.has_open_flows:
            with store_errors(self.store), writing(self.store), writer(self.store) as connection:
                self._publish_open(connection)
                self._write_cache()

    def _has_next(self) -> bool:
        if not self._taken:
            self._drop_gone()
        return bool(self.pending)

    def _drop_gone(self) -> None:
        """Forgets files that were removed or replaced; their packets are missing in the store. A renamed file stays."""
        if all(file.is_here() for file in self.pending):
            return
        self.look()
        for file in [file for file in self.pending if not file.is_here()]:
            stamp = stamp_at(file.path)
            with suppress(OSError):
                if stamp and digest_of(file.path) == file.digest:  # touched, or copied back
                    file.stamp = stamp
                    continue
            if same_content := self._same_content(file.digest):
                file.path, file.stamp = same_content
                continue
            self.pending.remove(file)
            self._add_removed(file.path, file.stamp[2], file.digest, file.first_ns)
        self.pending.sort(key=Pending.order)

    def _same_content(self, digest: str) -> Found | None:
        """Returns a finished file with this content."""
        for name, (stamp, seen_digest) in self._handled.items():
            if seen_digest == digest and stamp_at(self.folder.path / name) == stamp:
                return Found(self.folder.path / name, stamp)
        return None

    def _add_removed(self, path: Path, size: int, digest: str, first_ns: int | None) -> None:
        # Not the digest of the content: the file is not in the store, and may come back.
        name = hashlib.sha256(f"removed {digest}".encode()).hexdigest()
        day = None if first_ns is None else utc_day(first_ns)
        self._facts.append(Fact(path, size, name, day, "removed before it was analyzed"))

    def _publish_next(self, connection: duckdb.DuckDBPyConnection, ending: bool) -> None:
        if not self._taken:
            file = self.pending[0]
            try:
                self._taken = file, self._analyzed(file, ending)
            except InputError as error:
                if not file.is_here():
                    return  # it is seen as missing
                self.pending.remove(file)
                self._facts.append(Fact(file.path, file.stamp[2], file.digest, utc_day(file.stamp[3]), str(error)))
                return
        file, add = self._taken  # again after an error of the store
        flows = add(connection)
        self._taken = None
        self.pending.remove(file)
        self._stored.add(file.digest)
        self.notes.progress(f"{file.path.name}: {plural(flows, 'flow')} ended")

    def _analyzed(self, file: Pending, ending: bool) -> Callable[[duckdb.DuckDBPyConnection], int]:
        """Analyzes a file, and returns a function that publishes it and returns the number of its flows."""
        late = self._analysis.is_late(file.first_ns)
        analysis = Continuing(self.options, self._prefix) if late else self._analysis
        analysis.resume(self.store, self._places())
        analysis.read(file.path, file.digest)
        if stamp_at(file.path) not in (None, file.stamp):  # one that is gone was read whole
            analysis.forget()
            raise InputError(f"{file.path}: changed while it was read")
        trace = analysis.take(ending or late)
        files = analysis.files_of(trace)
        capture = as_analyzed(os.fspath(file.path), file.digest, file.stamp[2], trace)
        point = None if late else analysis.point(file.path.name, file.first_ns or 0, ending)

        def add(connection: duckdb.DuckDBPyConnection) -> int:
            if point:
                self._points = [*([self._analysis.last] if self._analysis.last else []), point[0]]
                write_flows(self.store, *point)
                self._write_cache()
            add_capture(self.store, connection, capture, files)
            if point:
                self._reach(file, point[0], ending)
            return trace.totals["flows"]

        if capture.damage:
            self._problem(f"{capture.damage}; kept up to the damage")
        return add

    def show_open_flows(self) -> None:
        """Writes a snapshot of the flows that are open after the file that was published last, if one is due."""
        if self.snapshots and self.snapshots.is_due() and self._analysis.resume(self.store, self._places()):
            self.snapshots.make(lambda: self._analysis.take(True, causes=True), self._unlock)

    def _places(self) -> dict[str, Path]:
        """Returns the files that are in the folder by their digests."""
        return {digest: self.folder.path / name for name, (_, digest) in self._handled.items()}

    def _publish_open(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Publishes the flows that are open after the last file, which is in the store, as a capture without packets."""
        last = self._analysis.last
        assert last is not None
        if self._analysis.resume(self.store, self._places()):
            self._publish_rest(connection, last)
        ended = last._replace(files=[], flows="")
        self._analysis.reached(ended, True)
        self._points = [ended]
        remove_flows(self.store, self._prefix, "")

    def _publish_rest(self, connection: duckdb.DuckDBPyConnection, last: Point) -> None:
        trace = self._analysis.take(True)
        digest = hashlib.sha256(f"open after {last.digest}".encode()).hexdigest()
        capture = as_analyzed(os.fspath(self.folder.path / last.name), digest, 0, trace, utc_day(last.first_ns))
        add_capture(self.store, connection, capture, self._analysis.files_of(trace))
        self.notes.progress(f"{last.name}: {plural(trace.totals['flows'], 'flow')} still open")

    def _reach(self, file: Pending, point: Point, ending: bool) -> None:
        """Goes on from a point, and names the files that are missing before it."""
        seen = [*self._names, *([self._analysis.last.name] if self._analysis.last else [])]
        self._analysis.reached(point, ending)
        self._points = [point]
        remove_flows(self.store, self._prefix, point.flows)
        missing = missing_before(file.path.name, seen)
        if missing:
            path = self.folder.path / missing[0]
            text = f"{plural(missing[1], 'file')} missing before {file.path.name}: removed before they were analyzed"
            digest = hashlib.sha256(os.fsencode(f"missing {path.absolute()} {file.digest}")).hexdigest()
            self._facts.append(Fact(path, None, digest, utc_day(point.first_ns), text))

    def _publish_facts(self, connection: duckdb.DuckDBPyConnection) -> None:
        while self._facts:
            fact = self._facts[0]
            if publish_fact(self.store, connection, fact):
                self._problem(fact.text if str(fact.path) in fact.text else f"{fact.path}: {fact.text}")
            self._stored.add(fact.digest)
            del self._facts[0]

    def _write_cache(self) -> None:
        """Writes which files need not be hashed, which ones wait (a restart names those that are gone), and where the
        analysis is."""
        self._written = {file.digest for file in self.pending}
        content = {
            "done": {
                name: [*stamp, digest]
                for name, (stamp, digest) in self._handled.items()
                if digest and digest not in self._written
            },
            "waiting": [[file.path.name, file.stamp[2], file.digest, file.first_ns] for file in self.pending],
            "points": [point._asdict() for point in self._points],
        }
        write_file(self.store, self._cache, json.dumps(content) + "\n")

    def run(self, once: bool) -> None:
        """Publishes what comes until KeyboardInterrupt; with `once`, all that is there.

        If the store cannot be written or the folder is gone, it waits; with `once`, it raises the error.
        """
        failed = ""
        while True:
            try:
                if once or failed or self.folder.has_changed():
                    self.look()
                self._look_below()
                self.publish(once)
                self.show_open_flows()
                if failed:
                    self.notes.problem(f"{self.store}: continues")
                failed = ""
            except (InputError, OutputError) as error:
                if once:
                    raise
                if str(error) != failed:
                    self.notes.problem(f"{error}; waiting")
                failed = str(error)
            except FileNotFoundError:
                if not failed:
                    self.notes.problem(f"{self.folder.path}: no such folder; waiting")
                failed = "folder"
            if once:
                return
            time.sleep(RETRY_S if failed else POLL_S)
