# SPDX-License-Identifier: Apache-2.0
"""`wiretale view --follow`: snapshots of the flows of a folder that a capture program writes to, those that ended lately and
those that are open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import InputError
from wiretale.analyzer.running import Running, traced
from wiretale.reports.live.folder import Folder, Found, Stamp, first_time
from wiretale.reports.live.recent import joined
from wiretale.reports.live.snapshots import Snapshots

if TYPE_CHECKING:
    from wiretale.analyzer import _core
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.trace import Trace

POLL_S = 0.5
SHARE = 0.3  # of a processor, for snapshots
FILES_MOST = 10_000  # in one analysis, whose list of interfaces grows; flows that are open then are cut


class Ended(NamedTuple):
    """The flows that ended in a file."""

    last_ns: int
    flows: _core.Analysis


class Follow:
    """A folder, the analysis of its files, and the flows that ended in the last ones."""

    def __init__(
        self, folder: Path, output: Path, options: AnalysisOptions, last_ns: int, problem: Callable[[str], None]
    ) -> None:
        self.options, self.last_ns, self.problem = options, last_ns, problem
        self.folder = Folder(folder)
        self.snapshots = Snapshots(output, problem, SHARE)
        self.snapshots.tables = ("flows", "interfaces")  # that the page asks for
        self._seen: set[Stamp] = set()
        self._ended: list[Ended] = []
        self._running = Running(options)
        self._newest_ns = 0  # first packet of the file that was read last

    def files(self) -> list[tuple[int, Path]]:
        """Returns the files that are new, each after its first time; at the start those of the last time alone. OSError if the
        folder cannot be read."""
        finished = self.folder.finished()
        new = [file for file in finished if file.stamp not in self._seen]
        if not self._seen and new:
            since = max(file.stamp[3] for file in new) - self.last_ns
            new = [file for file in new if file.stamp[3] >= since]
        self._seen = {file.stamp for file in finished}
        return sorted(filter(None, map(self._timed, new)))

    def _timed(self, file: Found) -> tuple[int, Path] | None:
        try:
            first_ns = first_time(file.path, self.options)
        except InputError as error:
            self.problem(str(error))
        except FileNotFoundError:
            self.problem(f"{file.path}: removed before it was analyzed")
        else:
            if first_ns is None:
                return None  # no packet
            if first_ns >= self._newest_ns:
                return first_ns, file.path
            self.problem(f"{file.path}: begins before a file that was read: left out")
        return None

    def read(self, first_ns: int, path: Path) -> None:
        """Reads a file, and keeps the flows that ended in it."""
        if len(self._running.paths) >= FILES_MOST:
            self._ended.append(Ended(self._newest_ns, self._running.still_open()))
            self._running = Running(self.options)
        try:
            self._running.read(os.fspath(path))
        except InputError as error:
            self.problem(str(error))
            return
        ended = self._running.ended()
        last_ns = max((ns for ns in ended.table("interfaces").column("last_ns") if ns is not None), default=first_ns)
        self._newest_ns = first_ns
        self._ended = [before for before in self._ended if before.last_ns >= last_ns - self.last_ns]
        self._ended.append(Ended(last_ns, ended))
        self.snapshots.due = True

    def finish(self) -> Trace:
        """Returns the flows that ended lately and all that are open. No file may follow."""
        return traced(joined([*(ended.flows for ended in self._ended), self._running.still_open()]), self.options)

    def show(self) -> None:
        """Makes a snapshot, if one is due."""
        if self.snapshots.is_due():
            self.snapshots.make(self.finish)

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Reads what comes, as long as `goes_on` says so."""
        failed = False
        while goes_on():
            try:
                for first_ns, path in self.files() if failed or self.folder.has_changed() else []:
                    self.read(first_ns, path)
                failed = False
            except OSError as error:
                if not failed:
                    self.problem(f"{self.folder.path}: {error.strerror}; waiting")
                failed = True
            self.show()
            time.sleep(POLL_S)
