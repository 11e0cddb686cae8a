# SPDX-License-Identifier: Apache-2.0
"""The analysis of a watched folder, which goes on over its files, and what a restart needs to go on with it.

A flow is published with the file in which it ended. What is kept of the others is the first packet of each, in a file
`.watch-*.open` of the store: a restart reads the files again from the oldest one that has such a packet, takes no row of
them, and forgets open flows that are not among these, because they are rests of flows that had ended.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.errors import InputError
from wiretale.analyzer.running import FRAME_BITS, Running
from wiretale.reports.store.layout import write_file

if TYPE_CHECKING:
    from wiretale.analyzer import _core
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

FILES_MOST = 10_000  # in one analysis, whose lists of interfaces and encapsulations grow


class Point(NamedTuple):
    """Where the analysis was when a file was published."""

    digest: str
    name: str
    first_ns: int
    #: digests of the files that have the first packets of open flows, from the oldest on; the file is the last one
    files: list[str]
    #: the file of the store with these packets
    flows: str

    @classmethod
    def of(cls, member: Mapping[str, Any]) -> Point:
        """Returns a point from JSON. Raises KeyError or TypeError for another object."""
        point = cls(*(member[field] for field in cls._fields))
        texts = (point.digest, point.name, point.flows, *point.files)
        if not isinstance(point.first_ns, int) or not all(isinstance(text, str) for text in texts):
            raise TypeError
        return point


class Continuing:
    """The analysis after some files, or the point at which it goes on."""

    def __init__(self, options: AnalysisOptions, prefix: str, last: Point | None = None) -> None:
        self.options = options
        self._prefix = prefix  # of files in the store
        #: the file that was published last; None before the first one
        self.last = last
        self._running: Running | None = None
        self._digests: list[str] = []  # of the files that it read
        #: of the file of an interface; its path alone may be that of several files, whose names return
        self._digest_of: dict[tuple[str, int, int | None], str] = {}

    def is_late(self, first_ns: int | None) -> bool:
        """Returns whether a file begins before the one that was published last."""
        return first_ns is None or (self.last is not None and first_ns < self.last.first_ns)

    def resume(self, store: Path, places: Mapping[str, Path]) -> bool:
        """Reads the files with open flows after a restart, which `places` has by digest. Returns whether any file was read."""
        if self._running is None or self._can_begin_later(places):
            self._running = self._resumed(store, places)
        return bool(self._digests)

    def _can_begin_later(self, places: Mapping[str, Path]) -> bool:
        """Returns whether so many files were read that half of them need not be read again, and the others are there."""
        if self.last is None or len(self._digests) < max(FILES_MOST, 2 * len(self.last.files)):
            return False
        return all(digest in places for digest in self.last.files)

    def forget(self) -> None:
        """Goes on from the last point, because what was read since is not the file that it was taken for."""
        self._running = None

    def read(self, path: Path, digest: str) -> None:
        """Reads a further file. InputError if it is no capture."""
        assert self._running is not None
        try:
            self._running.read(os.fspath(path))
        except BaseException:
            self.forget()  # an interruption would leave a part of the file
            raise
        self._digests.append(digest)

    def _resumed(self, store: Path, places: Mapping[str, Path]) -> Running:
        running, self._digests, self._digest_of = Running(self.options), [], {}
        if self.last is None or not self.last.flows:
            return running
        try:
            flows = array("Q", (store / self.last.flows).read_bytes())
        except (OSError, ValueError):  # flows go on as new ones
            return running
        number_of: dict[int, int] = {}
        for number, digest in enumerate(self.last.files):
            with suppress(KeyError, InputError):  # it was removed
                running.read(os.fspath(places[digest]))
                number_of[number] = len(self._digests)
                self._digests.append(digest)
                self._digests_of(running.skip())
        if number_of:
            beginnings = (flow for flow in flows if flow >> FRAME_BITS in number_of)
            moved = ((number_of[flow >> FRAME_BITS] << FRAME_BITS) + flow % (1 << FRAME_BITS) for flow in beginnings)
            running.keep_flows(array("Q", moved))
        return running

    def take(self, ending: bool, causes: bool = False) -> Trace:
        """Returns the flows that ended since the file before; all if `ending`. A store has no causes."""
        assert self._running is not None
        return self._running.finish(causes) if ending else self._running.take(causes)

    def files_of(self, trace: Trace) -> list[str]:
        """Returns the digest of the file of each interface."""
        return self._digests_of(trace.interfaces)

    def _digests_of(self, interfaces: Table | _core.Table) -> list[str]:
        """Returns the digest of the file of each interface; an interface that was not seen before is of the last file."""
        columns = (interfaces.column(name) for name in ("file", "interface", "first_ns"))
        return [self._digest_of.setdefault(key, self._digests[-1]) for key in zip(*columns, strict=True)]

    def point(self, name: str, first_ns: int, ending: bool) -> tuple[Point, bytes]:
        """Returns where the analysis is after the last file, and the bytes of `Point.flows`."""
        assert self._running is not None
        digest = self._digests[-1]
        flows = array("Q") if ending else self._running.open_flows()
        if not flows:
            return Point(digest, name, first_ns, [], ""), b""
        oldest = flows[0] >> FRAME_BITS
        moved = array("Q", (flow - (oldest << FRAME_BITS) for flow in flows))
        file = f"{self._prefix}-{digest[:16]}.open"
        return Point(digest, name, first_ns, self._digests[oldest:], file), moved.tobytes()

    def reached(self, point: Point, ending: bool) -> None:
        """The rows up to a point are in the store."""
        self.last = point
        if ending:
            self._running = None

    @property
    def has_open_flows(self) -> bool:
        """Whether flows were open at the last point."""
        return bool(self.last and self.last.flows)


def write_flows(store: Path, point: Point, flows: bytes) -> None:
    """Writes the open flows of a point."""
    if point.flows:
        write_file(store, point.flows, flows)


def remove_flows(store: Path, prefix: str, current: str) -> None:
    """Removes the open flows of earlier points."""
    for file in store.glob(f"{prefix}-*.open"):
        if file.name != current:
            file.unlink(missing_ok=True)
