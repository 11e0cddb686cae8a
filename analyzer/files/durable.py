# SPDX-License-Identifier: Apache-2.0
"""Files that must survive a crash of the machine, locks between processes, and folders that change as a whole."""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def sync(path: Path) -> None:
    """Waits until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file, which is made if it is missing. It ends with the process, also after kill -9."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def exchange(made: Path, place: Path) -> None:
    """Exchanges two folders, so that each has the name of the other at any time."""
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    if rename(AT_FDCWD, os.fsencode(made), AT_FDCWD, os.fsencode(place), RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, f"this file system cannot exchange folders: {os.strerror(number)}")
