# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a running analysis: its tables and page, as if it ended now.

The state of open flows cannot be copied, and ending them changes it. So a snapshot is a fork between two files, when the analysis
has one thread: the child ends the flows in its own memory and writes, and the parent reads on. Threads of DuckDB
are begun in the child alone. The folder is exchanged as a whole.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import OutputError, UsageError, WiretaleError
from wiretale.analyzer.files.durable import exchange
from wiretale.reports.export.destination import check_folder, partial_in
from wiretale.reports.export.parquet import table_files, write_tables

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

PAGE_FILE, ABOUT_FILE = "page.html", "snapshot.json"
RETRY_S = 10.0  # after one that could not be written
JOINED_S = 1.0
FAILED = 4


def about(folder: Path) -> dict[str, Any] | None:
    """Returns `version` (ns since the epoch) and `base_ns` of a snapshot; None for another folder."""
    with suppress(OSError, ValueError):
        read = json.loads((folder / ABOUT_FILE).read_text("utf-8"))
        if isinstance(read, dict) and all(isinstance(read.get(name), int) for name in ("version", "base_ns")):
            return read
    return None


def check_snapshots(folder: Path) -> None:
    """UsageError if a folder has anything but a snapshot, which the next would replace; OutputError if none can be written."""
    check_folder(folder, [], [])
    names = {*table_files(), PAGE_FILE, ABOUT_FILE}
    with suppress(FileNotFoundError):
        present = set(os.listdir(folder))
        foreign = sorted(present if ABOUT_FILE not in present else present - names)
        if foreign:
            raise UsageError(f"{folder}: has {foreign[0]}: expected a folder for snapshots alone, each replaces it")


def write_snapshot(trace: Trace, folder: Path, link_bps: int | None = None, tables: Sequence[str] = ()) -> None:
    """Writes tables (all if none is named) and page into a folder that replaces the one before. OutputError if it cannot."""
    from wiretale.reports.html.analyze import render
    from wiretale.reports.html.packing import base_time

    version = time.time_ns()
    with replaced(folder) as made:
        pages: list[str] = []

        def draw() -> None:
            pages.append(render(trace, link_bps, served=True, live=version))

        write_tables(trace, made, meanwhile=draw, names=tables)
        (made / PAGE_FILE).write_text(pages[0], "utf-8")
        (made / ABOUT_FILE).write_text(json.dumps({"version": version, "base_ns": base_time(trace)}), "utf-8")


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A new folder, which is exchanged with another one at the end. OutputError if none can be written."""
    try:
        folder = Path(os.path.realpath(folder))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with partial_in(folder.parent, is_folder=True) as (made, descriptor):
            yield made
            check_snapshots(folder)
            before = folder.stat().st_mode if folder.exists() else 0o777 & ~current_umask()
            os.fchmod(descriptor, before & 0o7777)
            if folder.exists():
                exchange(made, folder)  # what was there is removed under the other name
            else:
                os.rename(made, folder)
    except WiretaleError:
        raise
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror or error}") from None


def current_umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def is_alone() -> bool:
    """Returns whether this thread is the only one of the process. The kernel lists a joined one for a moment."""
    until = time.monotonic() + JOINED_S
    while (count := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < until:
        time.sleep(0.001)
    return count == 1


class Snapshots:
    """Snapshots into one folder, each by a process of its own, one at a time.

    They take at most a share of one processor, unless they are asked for. `problem` shows a line if one cannot be written, once
    until one is.
    """

    def __init__(self, folder: Path, problem: Callable[[str], None], share: float) -> None:
        self.folder = folder
        #: the rate that goodput is compared with
        self.link_bps: int | None = None
        #: those that are written; all if none is named
        self.tables: Sequence[str] = ()
        self._problem, self._share = problem, share
        self._child = 0
        self._began = 0.0
        self._next = 0.0  # time.monotonic()
        self._failed = False
        #: whether there is something new
        self.due = False
        #: whether it is urgent, whatever it takes
        self.urged = False

    def ask(self, number: int = 0, frame: object = None) -> None:
        """Asks for a snapshot as soon as possible; a signal handler."""
        self.urged = True

    def is_due(self) -> bool:
        """Returns whether one should be made now."""
        return not self._runs() and (self.urged or (self.due and time.monotonic() >= self._next))

    def make(self, finish: Callable[[], Trace], release: Callable[[], None] = lambda: None) -> None:
        """Forks a child that writes the result of `finish`, after `release`, which closes what only the parent may hold."""
        if not is_alone():  # locks of another thread would never be released in the child
            raise RuntimeError("a snapshot needs a process with one thread")
        self.due = self.urged = False
        self._began = time.monotonic()
        self._child = os.fork()
        if self._child:
            return
        code = FAILED
        try:
            release()
            if self._written(finish):
                code = 0
        except BaseException as error:  # the caller must not go on in this process
            if not isinstance(error, KeyboardInterrupt):
                self._tell(repr(error))
        finally:
            os._exit(code)

    def _written(self, finish: Callable[[], Trace]) -> bool:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        try:
            write_snapshot(finish(), self.folder, self.link_bps, self.tables)
        except WiretaleError as error:
            self._tell(str(error))
            return False
        return True

    def _tell(self, text: str) -> None:
        if not self._failed:
            self._problem(f"{text}; no snapshot")

    def _runs(self) -> bool:
        """Returns whether a child runs; notes what the last one took."""
        if not self._child:
            return False
        pid, status, usage = os.wait4(self._child, os.WNOHANG)
        if not pid:
            return True
        self._child, self._failed = 0, os.waitstatus_to_exitcode(status) != 0
        took = usage.ru_utime + usage.ru_stime
        self._next = max(self._began + took / self._share, time.monotonic() + (RETRY_S if self._failed else 0))
        self.due |= self._failed
        return False

    def wait(self) -> bool:
        """Waits for the child; returns whether the last snapshot was written."""
        while self._runs():
            time.sleep(0.01)
        return not self._failed

    def close(self) -> None:
        """Ends the child."""
        if self._runs():
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGTERM)
            self.wait()
