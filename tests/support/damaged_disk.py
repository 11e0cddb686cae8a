# SPDX-License-Identifier: Apache-2.0
"""A disk with bad sectors: a file system in a file that was truncated, so that reading beyond its end is an I/O error."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from processes import output

DISK_BYTES = 32 << 20
PADDING_BYTES = 8 << 20  # before the files: free space for new ones, once it is removed
SECTOR_BYTES = 4096
HEAD_BYTES = 64 << 10
FIBMAP = 1


def append(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(data)
        os.fsync(file.fileno())


def place_of(path: Path, offset: int) -> int:
    """The place on the disk of a byte of a file."""
    with path.open("rb") as file:
        block = fcntl.ioctl(file, FIBMAP, struct.pack("=i", offset // SECTOR_BYTES))
    return int(struct.unpack("=i", block)[0]) * SECTOR_BYTES


def write_files(folder: Path, files: Mapping[str, bytes]) -> int:
    """Writes the heads of all files before any tail. Returns the place of the first tail."""
    padding = folder / "padding"
    append(padding, bytes(PADDING_BYTES))
    for name, data in files.items():
        append(folder / name, data[:HEAD_BYTES])
    for name, data in files.items():
        append(folder / name, data[HEAD_BYTES:])
    tails = [place_of(folder / name, HEAD_BYTES) for name, data in files.items() if len(data) > HEAD_BYTES]
    heads = [place_of(folder / name, at) for name in files for at in range(0, HEAD_BYTES, SECTOR_BYTES)]
    assert max(heads) < min(tails), "the file system put a tail before a head"
    padding.unlink()
    return min(tails)


@contextlib.contextmanager
def damaged_disk(folder: Path, files: Mapping[str, bytes]) -> Iterator[Path]:
    """A disk at the folder with these files, each of which is an I/O error from HEAD_BYTES on, if it is as long."""
    written, image = folder.with_suffix(".written"), folder.with_suffix(".image")
    written.touch()
    os.truncate(written, DISK_BYTES)
    output("mkfs.ext4", "-q", "-b", str(SECTOR_BYTES), "-O", "^has_journal", str(written))
    folder.mkdir()
    output("mount", "-o", "loop", str(written), str(folder))
    try:
        first_bad = write_files(folder, files)
        output("sync", "-f", str(folder))
    finally:
        output("umount", str(folder))
    # No byte may be in memory. Other processes with mounts of their own may keep the first disk, and its bytes, mounted.
    shutil.copyfile(written, image)
    written.unlink()
    output("mount", "-o", "loop", str(image), str(folder))
    try:
        os.truncate(image, first_bad)
        yield folder
    finally:
        output("umount", "-l", str(folder))
