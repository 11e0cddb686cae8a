# SPDX-License-Identifier: Apache-2.0
"""`wiretale store watch`: the captures of a folder into a store, as a capture program finishes them (docs/watch.md).

The store is the state: a file is in it once its window was analyzed (window.py), so a process that was killed continues with
the first file that is not. `.watch-*.json` in the store only spares the hashing of files that are in it.
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
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import InputError, OutputError, WiretaleError
from wiretale.analyzer.units import plural
from wiretale.reports.export.parquet import reason_of
from wiretale.reports.store.add import digest_of, make_store, writer
from wiretale.reports.store.folder import Folder, Found, Stamp, missing_before, stamp_at
from wiretale.reports.store.increment import SETTINGS, Earlier, Fact, Published, earlier_in, publish_fact, publish_slot
from wiretale.reports.store.layout import cannot_write, captures, stored, write_file, writing
from wiretale.reports.store.window import Limits, Pending, Plan, next_plan, pending_of, utc_day

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.options import AnalysisOptions

DAY_NS = 86_400_000_000_000
# No flow is over before it was silent for so long.
SHORTEST_SILENCE_NS = 60_000_000_000
# A window that may be incomplete is analyzed if this share of the time goes into it.
EARLY_SHARE = 0.05
EARLIER_KEPT = 256
POLL_S, RETRY_S = 1.0, 10.0


class Notes(NamedTuple):
    """Functions that show a line."""

    progress: Callable[[str], None]
    problem: Callable[[str], None]


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
    """A folder, its files that are not in the store yet, and the parts of the store that matter for them."""

    def __init__(self, folder: Path, store: Path, limits: Limits, options: AnalysisOptions, notes: Notes) -> None:
        self.options = options
        self.folder, self.store, self.limits, self.notes = Folder(folder), store, limits, notes
        self.pending: list[Pending] = []
        #: whether a file was damaged, missing or no capture
        self.damaged = False
        self._handled: dict[str, tuple[Stamp, str]] = {}  # stamp and digest of files by name
        self._before: dict[str, str] = {}  # digests of files that were in the folder at the look before
        self._names: list[str] = []  # of all finished files that are in the folder
        self._looked_below = False
        self._facts: list[Fact] = []
        self._stored: set[str] = set()  # digests of the captures in the store
        self._waited: list[tuple[str, int, str, int, str | None]] = []  # files of the process before that wait
        self._earlier: list[Earlier] | None = None
        self._written: set[str] = set()  # digests of files that wait, in the cache
        self._attempt = (0.0, 0)  # when the next early attempt may be made, and the files of the last one
        key = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
        self._cache, self._lock_name = f".watch-{key}.json", f".watch-{key}.lock"
        self._lock = -1

    def open(self) -> None:
        """Makes the store if it is new. InputError if the folder cannot be read; OutputError if the store cannot be written, or
        if another process watches the folder; UsageError if it has captures with other options."""
        self._check_folder()
        with store_errors(self.store):
            self.options = make_store(self.store, self.options)
            self._lock = os.open(self.store / self._lock_name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError(f"{self.store}: another process watches {self.folder.path}") from None
        self._stored = stored(self.store)
        with suppress(OSError, ValueError, TypeError):
            cached = json.loads((self.store / self._cache).read_text())
            self._handled = {
                name: ((dev, ino, size, ns), digest) for name, (dev, ino, size, ns, digest) in cached["done"].items()
            }
            self._waited = [
                (name, size, digest, packets, day) for name, size, digest, packets, day in cached["waiting"]
            ]

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check_folder(self) -> None:
        try:
            os.scandir(self.folder.path).close()
        except OSError as error:
            raise InputError(f"{self.folder.path}: {error.strerror}") from None

    def look(self) -> None:
        """Analyzes the files that are new, each by itself. InputError if the folder cannot be read."""
        try:
            finished = self.folder.finished()
        except OSError as error:
            raise InputError(f"{self.folder.path}: {error.strerror}") from None
        self._before = {name: digest for name, (_, digest) in self._handled.items()}
        self._before.update((name, digest) for name, _, digest, _, _ in self._waited)
        self._names = [file.path.name for file in finished]
        self._handled = {name: self._handled[name] for name in self._names if name in self._handled}
        for file in finished:
            if self._handled.get(file.path.name, (None,))[0] != file.stamp:
                with suppress(FileNotFoundError):  # it is seen as missing by its number
                    self._take(file)
        self.pending.sort(key=Pending.order)
        here = {file.digest for file in self.pending}
        for name, size, digest, packets, day in self._waited:
            if digest not in here and digest not in self._stored:
                self._add_removed(self.folder.path / name, size, digest, packets, day)
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
            pending = pending_of(finished, digest, self.options)
            if not pending.is_here():
                return  # the next look sees it as it is then
            if pending.readable:
                if pending.damage:
                    self._problem(f"{pending.damage}; kept up to the damage")
                self.pending.append(pending)
            else:
                day = utc_day(finished.stamp[3])
                self._facts.append(Fact(finished.path, finished.stamp[2], digest, day, pending.damage or ""))
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
        """Publishes the slots whose windows are complete; all if `ending`. OutputError if the store cannot be written."""
        while (plan := self._next(ending)) or self._facts:
            # A connection for each slot, because DuckDB keeps the memory of the one before.
            with store_errors(self.store), writing(self.store), writer(self.store) as connection:
                connection.execute(SETTINGS)
                self._publish_facts(connection)
                done = self._publish_plan(connection, plan, ending) if plan else []
                if done is not None:
                    self._settle(connection, done)
                self._write_cache()

    def _next(self, ending: bool) -> Plan | None:
        """Returns the plan of the next slot; None if it should wait for more files."""
        self._drop_gone()
        if not self.pending:
            return None
        windows = {
            tuple(capture.window): capture.window
            for capture in self._recent()
            if capture.complete and capture.slot != capture.window
        }
        plan = self._begun() or next_plan(self.pending, self.limits, list(windows.values()), ending)
        if plan is None or plan.complete or ending:
            return plan
        first, last = plan.slot[-1].last_ns, plan.window[-1].last_ns
        quiet = first is not None and last is not None and last - first >= SHORTEST_SILENCE_NS
        return plan if quiet and time.monotonic() >= self._attempt[0] and len(plan.window) != self._attempt[1] else None

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
            self._add_removed(file.path, file.stamp[2], file.digest, file.packets, file.day())
        self.pending.sort(key=Pending.order)

    def _same_content(self, digest: str) -> Found | None:
        """Returns a finished file with this content."""
        for name, (stamp, seen_digest) in self._handled.items():
            if seen_digest == digest and stamp_at(self.folder.path / name) == stamp:
                return Found(self.folder.path / name, stamp)
        return None

    def _add_removed(self, path: Path, size: int, digest: str, packets: int, day: str | None) -> None:
        text = f"removed before its flows were analyzed: {plural(packets, 'packet')} missing"
        # Not the digest of the content: the file is not in the store, and may come back.
        self._facts.append(Fact(path, size, hashlib.sha256(f"removed {digest}".encode()).hexdigest(), day, text))

    def _recent(self) -> list[Earlier]:
        """The captures in the store whose windows may reach into pending files, or whose names precede theirs."""
        waiting = {capture.digest for capture in self.pending}
        used = [capture for capture in self._earlier or () if not waiting.isdisjoint(capture.window)]
        if self._earlier is None or not all(capture.folder.is_dir() for capture in used):  # `store compact` moves them
            self._earlier = list(earlier_in(self.store, self._recent_days()))
        return self._earlier

    def _recent_days(self) -> set[str | None]:
        """The days of pending files and those before, and the newest days of the store."""
        firsts = [file.first_ns for file in self.pending if file.first_ns is not None]
        days: set[str | None] = {utc_day(ns - back) for ns in firsts for back in (0, DAY_NS)}
        return days | set(sorted({file.day for file in captures(self.store) if file.day})[-2:])

    def _begun(self) -> Plan | None:
        """Returns the plan of which a part was published before a restart."""
        first, files = self.pending[0], {capture.digest: capture for capture in self.pending}
        for capture in self._recent():
            if first.digest in capture.slot:
                slot, window = (
                    [files[digest] for digest in list if digest in files] for list in (capture.slot, capture.window)
                )
                return Plan(slot, window, capture.complete)
        return None

    def _publish_plan(self, connection: duckdb.DuckDBPyConnection, plan: Plan, ending: bool) -> list[Published] | None:
        began = time.process_time()
        try:
            done = publish_slot(self.store, connection, plan, self.options, self._recent(), ending)
        except InputError:
            if all(file.is_here() for file in plan.window):
                raise
            return []  # a file was removed meanwhile: it leaves the plan
        cost = time.process_time() - began
        if done is None:
            self._attempt = (time.monotonic() + cost / EARLY_SHARE, len(plan.window))
        return done

    def _settle(self, connection: duckdb.DuckDBPyConnection, done: list[Published]) -> None:
        """Forgets files that are in the store, and names the ones that are missing before them."""
        if done:
            self._attempt = (0.0, 0)
        recent = self._recent()
        for published in done:
            self._stored.add(published.file.digest)
            self.pending.remove(published.file)
            self._note_missing(published.file)
        recent.extend(published.earlier for published in done)
        if done:
            names = done[0].file.path.name + (f" … {done[-1].file.path.name}" if len(done) > 1 else "")
            flows, packets = (
                sum(published.flows for published in done),
                sum(published.file.packets for published in done),
            )
            self.notes.progress(f"{names}: {plural(packets, 'packet')}, {plural(flows, 'flow')} begun")
        waiting = {published.digest for published in self.pending}
        dropped = len(recent) - EARLIER_KEPT
        self._earlier = [
            published
            for place, published in enumerate(recent)
            if place >= dropped or not waiting.isdisjoint(published.window)
        ]
        self._publish_facts(connection)

    def _note_missing(self, file: Pending) -> None:
        names = [*self._names, *(capture.name for capture in self._recent())]
        missing = missing_before(file.path.name, names)
        if missing:
            path = self.folder.path / missing[0]
            text = f"{plural(missing[1], 'file')} missing before {file.path.name}: removed before they were analyzed"
            digest = hashlib.sha256(os.fsencode(f"missing {path.absolute()} {file.digest}")).hexdigest()
            self._facts.append(Fact(path, None, digest, file.day(), text))

    def _publish_facts(self, connection: duckdb.DuckDBPyConnection) -> None:
        while self._facts:
            fact = self._facts[0]
            entry, is_new = publish_fact(self.store, connection, fact)
            if is_new:
                self._problem(fact.text if str(fact.path) in fact.text else f"{fact.path}: {fact.text}")
            self._stored.add(fact.digest)
            self._recent().append(entry)
            del self._facts[0]

    def _write_cache(self) -> None:
        """Writes which files need not be hashed, and which ones wait: a restart names those that are removed meanwhile."""
        self._written = {file.digest for file in self.pending}
        done = {
            name: [*stamp, digest]
            for name, (stamp, digest) in self._handled.items()
            if digest and digest not in self._written
        }
        waiting = [[file.path.name, file.stamp[2], file.digest, file.packets, file.day()] for file in self.pending]
        write_file(self.store, self._cache, json.dumps({"done": done, "waiting": waiting}) + "\n")

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
