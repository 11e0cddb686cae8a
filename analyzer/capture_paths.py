# SPDX-License-Identifier: Apache-2.0
"""Expands the paths of captures: a folder becomes the captures in it, and a file may occur only once."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from wiretale.analyzer.errors import InputError, SkippedFileWarning, UsageError

MAGIC_NUMBERS = (
    b"\xa1\xb2\xc3\xd4",  # pcap, µs
    b"\xa1\xb2\x3c\x4d",  # pcap, ns
    b"\xa1\xb2\xcd\x34",  # pcap, modified
    b"\x0a\x0d\x0d\x0a",  # pcapng
)
GZIP = b"\x1f\x8b"
COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # zstd, lz4: Python 3.11 cannot decompress them
OTHER_COMPRESSED = {b"BZh": "bz2", b"\xfd7z": "lzma"}  # not read, but protected from being overwritten
CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap|dmp|ntar)\b", re.IGNORECASE)
HEAD_BYTES = 4096  # fits a gzip header with a file name, and the first bytes after it


def first_of_gzip(head: bytes) -> bytes:
    """Returns the first decompressed bytes; nothing if they cannot be decompressed."""
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, 4)
    except zlib.error:
        return b""


def head_of(path: Path) -> bytes:
    """Returns the first bytes of a file.

    Raises InputError if a file with a capture's name cannot be opened, because skipping it would go unnoticed.
    """
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        if ".pcap" in path.name or path.suffix == ".cap":
            raise InputError(f"{path}: {error.strerror}") from None
        return b""


def is_magic_number(head: bytes) -> bool:
    """Returns whether a file with this head is a capture, plain or gzip."""
    first = first_of_gzip(head) if head.startswith(GZIP) else head[:4]
    return first in MAGIC_NUMBERS or first[::-1] in MAGIC_NUMBERS


def is_capture(path: Path) -> bool:
    """Returns whether a file is a capture by its first bytes; zstd and lz4 files by their name. Raises as head_of()."""
    head = head_of(path)
    return is_magic_number(head) or (".pcap" in path.name and head.startswith(COMPRESSED))


def is_compressed_capture(path: Path, module: str) -> bool:
    """Returns whether a file that this module decompresses is a capture, or has the name of one but is damaged."""
    from importlib import import_module

    try:
        with import_module(module).open(path) as file:
            return is_magic_number(file.read(len(MAGIC_NUMBERS[0])))
    except Exception:  # each module has errors of its own, and Python may lack the module
        return CAPTURE_NAME.search(path.name) is not None


def holds_capture(path: Path) -> bool:
    """Returns whether a file is a capture, whatever its name and compression. Raises as head_of()."""
    head = head_of(path)
    if head.startswith(tuple(OTHER_COMPRESSED)):
        return is_compressed_capture(path, OTHER_COMPRESSED[head[:3]])
    if not head.startswith(COMPRESSED):
        return is_magic_number(head) or bool(foreign_note(path))
    from wiretale.analyzer import _core

    try:
        _core.Analysis([str(path)], packets="none", interfaces_only=True)
    except _core.Error:
        return ".pcap" in path.name  # perhaps damaged
    return True


def is_plain_file(path: Path) -> bool:
    """Returns whether it is a regular file and no symbolic link."""
    return os.path.isfile(path) and not os.path.islink(path)


def foreign_note(path: Path) -> str:
    """Returns the foreign format of a file and how to convert it; empty if the format is unknown.

    A compressed file counts only if it has a capture's name, because documents are compressed too.
    """
    import shlex

    from wiretale.analyzer import _core

    found = _core.foreign_format(head_of(path))
    if not found or (found[1].endswith("wiretale analyze -") and not CAPTURE_NAME.search(path.name)):
        return ""
    return f"{path} is {found[0]}; convert it: {found[1].replace('%s', shlex.quote(str(path)))}"


def captures_in(folder: Path) -> list[str]:
    """Returns the captures in a folder and its subfolders by name, as far as they are readable.

    Raises InputError if the folder has no captures. Warns with SkippedFileWarning of captures in foreign formats.
    """
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    paths = (Path(below, name) for below, _, names in os.walk(folder) for name in names)
    found: list[Path] = []
    others: list[Path] = []
    for path in sorted(filter(is_plain_file, paths), key=str):
        (found if is_capture(path) else others).append(path)
    notes = list(filter(None, map(foreign_note, others)))
    more = f" (and {len(notes) - 1:,} more such)" if len(notes) > 1 else ""
    if not found:
        raise InputError("; ".join([f"{folder}: no capture files in this folder", *notes[:1]]) + more)
    if notes:
        warnings.warn(f"skipped {notes[0]}{more}", SkippedFileWarning, stacklevel=2)
    return list(map(str, found))


def check_path(given: str | bytes | os.PathLike[str]) -> str:
    """Returns a path as text. Raises UsageError if it cannot be one."""
    try:
        path = os.fsdecode(given)
    except TypeError:
        raise UsageError(f"{given!r}: expected a path; several are arguments of their own, analyze(*paths)") from None
    if not path or "\0" in path:
        raise UsageError(f"{path!r}: expected a file, a folder, or - for standard input")
    return path


def identity(path: str) -> tuple[int, int] | str:
    """Returns device and inode, the same for every name of a file; the real path if the file does not exist."""
    if path == "-":
        return path
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def check_apart(points: Iterable[Iterable[str]], expected: str = "different captures") -> None:
    """Raises UsageError if a file belongs to two capture points."""
    seen: dict[tuple[int, int] | str, tuple[int, str]] = {}
    for number, paths in enumerate(points):
        for path in paths:
            before, name = seen.setdefault(identity(path), (number, path))
            if before != number:
                other = f" (also as {name})" if name != path else ""
                raise UsageError(f"{path}: expected {expected}; given twice{other}")


def expand_paths(paths: Iterable[str | bytes | os.PathLike[str]]) -> list[str]:
    """Returns files, pipes and `-` as they are, and folders as the captures in them. Raises InputError or UsageError."""

    def expand() -> Iterator[str]:
        for path in map(check_path, paths):
            if path != "-" and os.path.isdir(path):
                yield from captures_in(Path(path))
            else:
                yield path

    found = list(expand())
    check_apart(([path] for path in found), "each capture once")  # else all its packets would count as duplicates
    return found
