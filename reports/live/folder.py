# SPDX-License-Identifier: Apache-2.0
"""The folder that a capture program writes to: which files are finished, and which numbers are missing."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import head_of, is_magic_number, is_named
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.options import AnalysisOptions, ReadingMode
from wiretale.analyzer.trace import core_errors

Stamp = tuple[int, int, int, int]  # device, inode, size, mtime
TEMPORARY = (".part", ".partial", ".tmp", ".swp")
UNFINISHED = ".unfinished"  # ".NAME.unfinished": wiretale-capture will replace the file by its compressed one
UNFINISHED_NS = 7200 * 1_000_000_000  # it does so within an hour, or never
SETTLED_NS = 2_000_000_000  # without a change, if the kernel does not reveal writers
# A rename may come in the same tick of the file system's clock as the look that missed it.
TICK_NS = 1_000_000_000
# The names of wiretale-capture: the number shows a gap if a file was removed.
NUMBERED = re.compile(r"(.+)_(\d{8}T\d{6}\.\d{9}Z)_(\d{5,})(?:-\d+)?(\.(?:pcapng|pcap)(?:\.\w+)?)")


class Found(NamedTuple):
    """A finished file."""

    path: Path
    stamp: Stamp


def stamp_at(path: Path) -> Stamp | None:
    """Returns the stamp of a file that is not empty; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) if status.st_size else None


def has_writer(path: Path) -> bool | None:
    """Returns whether a process has a file open for writing; None if the kernel does not reveal it.

    A read lease is refused if there is a writer. It needs the owner of the file or CAP_LEASE, and a local file system.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    finally:
        os.close(descriptor)
    return False


def is_named_capture(path: Path) -> bool:
    """Returns whether a file is a capture by its name or its first bytes."""
    return is_named(path) or is_magic_number(head_of(path) or b"")


def first_time(path: Path, options: AnalysisOptions) -> int | None:
    """Returns the time of a file's first packet. InputError if it is no capture; OSError if it is gone."""
    name = os.fspath(path)
    try:
        with core_errors():
            core = _core.Analysis([name], [name], options._replace(jobs=1), ReadingMode(interfaces_only=True))
            core.step(1)
            core.finish()
    except InputError:
        path.stat()
        raise
    return min((ns for ns in core.table("interfaces").column("first_ns") if ns is not None), default=None)


class Folder:
    """The captures of a folder. It is read only if it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._looked_ns = 0  # when the folder was read
        self._unfinished = False  # a file is being written
        self._finished: dict[str, Stamp] = {}
        self._others: dict[str, Stamp] = {}  # no captures

    def has_changed(self) -> bool:
        """Returns whether a file may have come or gone since finished(). OSError if the folder is gone."""
        return self._unfinished or self.path.stat().st_mtime_ns > self._looked_ns - TICK_NS

    def finished(self) -> list[Found]:
        """Returns the captures that no program writes to, by name. OSError if the folder cannot be read."""
        self._looked_ns = time.time_ns()
        finished: dict[str, Stamp] = {}
        unfinished: dict[str, Stamp] = {}
        self._unfinished = False
        with os.scandir(self.path) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        replaced = {name[1 : -len(UNFINISHED)] for name in names if self._is_replaced(name)}
        for name in names:
            path = self.path / name
            if name in replaced:
                self._unfinished = True
                continue
            if name.startswith(".") or name.endswith(TEMPORARY) or (stamp := stamp_at(path)) is None:
                continue
            if self._others.get(name) == stamp:
                unfinished[name] = stamp
            elif self._finished.get(name) == stamp:
                finished[name] = stamp
            elif self._is_written(path, stamp):
                self._unfinished = True
            elif is_named_capture(path):
                finished[name] = stamp
            else:
                unfinished[name] = stamp
        self._finished, self._others = finished, unfinished
        return [Found(self.path / name, stamp) for name, stamp in finished.items()]

    def capture_below(self) -> Path | None:
        """Returns a subfolder that has captures by their names; subfolders are not read."""
        with suppress(OSError):
            for entry in sorted(self.path.iterdir()):
                if entry.is_dir() and not entry.name.startswith(".") and any(map(is_named, os.listdir(entry))):
                    return entry
        return None

    def _is_replaced(self, marker: str) -> bool:
        """Returns whether a marker is there that says that its file will be replaced soon."""
        if not (marker.startswith(".") and marker.endswith(UNFINISHED)):
            return False
        with suppress(OSError):
            return self._looked_ns - (self.path / marker).stat().st_mtime_ns < UNFINISHED_NS
        return False

    def _is_written(self, path: Path, stamp: Stamp) -> bool:
        written = has_writer(path)
        return self._looked_ns - stamp[3] < SETTLED_NS if written is None else written


def place_in_series(name: str) -> tuple[str, str, int] | None:
    """Returns the series of a numbered name, its time, and its number; None for other names."""
    matched = NUMBERED.fullmatch(name)
    return (f"{matched[1]}|{matched[4]}", matched[2], int(matched[3])) if matched else None


def missing_before(name: str, seen: Iterable[str]) -> tuple[str, int] | None:
    """Returns a name for the files that are missing between a numbered file and the one before it, and their number.

    None if none is missing, or if no file before it was seen. A capture program that starts again begins with number 1.
    """
    place = place_in_series(name)
    if place is None:
        return None
    series, at, number = place
    before = [
        numbered
        for numbered in map(place_in_series, seen)
        if numbered and numbered[0] == series and numbered[1:] < (at, number)
    ]
    if not before:
        return None
    last = max(before, key=lambda numbered: numbered[1:])[2]
    first = last + 1 if number > last else 1
    if number <= first:
        return None
    start, _, suffix = series.partition("|")
    numbers = f"{first:05}" if first == number - 1 else f"{first:05}-{number - 1:05}"
    return f"{start}_*_{numbers}{suffix}", number - first
