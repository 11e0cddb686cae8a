# SPDX-License-Identifier: Apache-2.0
"""Which capture files a folder holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from wiretale.analyzer.errors import InputError

MAGIC_NUMBERS = (
    b"\xa1\xb2\xc3\xd4",  # pcap, µs
    b"\xa1\xb2\x3c\x4d",  # pcap, ns
    b"\xa1\xb2\xcd\x34",  # pcap, modified
    b"\x0a\x0d\x0d\x0a",  # pcapng
)
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")


def is_capture(path: Path) -> bool:
    """Whether a file's first bytes are those of a capture, or of a compressed file that bears a capture's name."""
    try:
        with path.open("rb") as file:
            first = file.read(4)
    except OSError:
        return False
    if first in MAGIC_NUMBERS or first[::-1] in MAGIC_NUMBERS:
        return True
    return ".pcap" in path.name and first.startswith(COMPRESSED)


def captures_in(folder: Path) -> list[str]:
    """The captures in a folder and those below it, by name. InputError when there are none."""
    found = sorted(
        str(path) for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and is_capture(path)
    )
    if not found:
        raise InputError(f"{folder}: a folder without a capture file in it")
    return found


def expand_paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Folders as the captures in them; files, pipes and `-` as they are."""

    def expand() -> Iterator[str]:
        for path in (os.fspath(path) for path in paths):
            if path != "-" and os.path.isdir(path):
                yield from captures_in(Path(path))
            else:
                yield path

    return list(expand())
