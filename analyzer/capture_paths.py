# SPDX-License-Identifier: Apache-2.0
"""Which files are read: each once, folders as the captures in them."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from wiretale.analyzer.errors import InputError, SkippedFileWarning, UsageError

MAGIC_NUMBERS = (
    b"\xa1\xb2\xc3\xd4",  # pcap, µs
    b"\xa1\xb2\x3c\x4d",  # pcap, ns
    b"\xa1\xb2\xcd\x34",  # pcap, modified
    b"\x0a\x0d\x0d\x0a",  # pcapng
)
GZIP = b"\x1f\x8b"
COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # zstd, lz4: Python 3.11 cannot look into them
OTHER_COMPRESSED = {b"BZh": "bz2", b"\xfd7z": "lzma"}  # only protected from being replaced, by modules of Python
CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap|dmp|ntar)\b", re.IGNORECASE)
HEAD_BYTES = 4096  # enough for a gzip header, its file name included, and the first bytes after it


def first_of_gzip(head: bytes) -> bytes:
    """The first bytes of what is compressed; nothing where that cannot be told."""
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, 4)
    except zlib.error:
        return b""


def head_of(path: Path) -> bytes:
    """The first bytes of a file. InputError if one by a capture's name cannot be opened: omitting it would go unnoticed."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        if ".pcap" in path.name or path.suffix == ".cap":
            raise InputError(f"{path}: {error.strerror}") from None
        return b""


def is_magic_number(head: bytes) -> bool:
    """Whether a file that begins so is a capture, plain or compressed with gzip."""
    first = first_of_gzip(head) if head.startswith(GZIP) else head[:4]
    return first in MAGIC_NUMBERS or first[::-1] in MAGIC_NUMBERS


def is_capture(path: Path) -> bool:
    """Whether a file's first bytes are those of a capture; of zstd and lz4 files those that bear a capture's name.

    InputError as head_of().
    """
    head = head_of(path)
    return is_magic_number(head) or (".pcap" in path.name and head.startswith(COMPRESSED))


def is_compressed_capture(path: Path, module: str) -> bool:
    """Whether a file that this module of Python decompresses is a capture, or bears the name of one but is damaged."""
    from importlib import import_module

    try:
        with import_module(module).open(path) as file:
            return is_magic_number(file.read(len(MAGIC_NUMBERS[0])))
    except Exception:  # each module has errors of its own; a Python without the module cannot look into the file
        return CAPTURE_NAME.search(path.name) is not None


def holds_capture(path: Path) -> bool:
    """Whether a file is a capture by its first bytes, whatever its name and compression: the core decompresses them.

    InputError as head_of().
    """
    head = head_of(path)
    if head.startswith(tuple(OTHER_COMPRESSED)):
        return is_compressed_capture(path, OTHER_COMPRESSED[head[:3]])
    if not head.startswith(COMPRESSED):
        return is_magic_number(head) or bool(foreign_note(path))
    from wiretale.analyzer import _core

    try:
        _core.Analysis([str(path)], packets="none", interfaces_only=True)
    except _core.Error:
        return ".pcap" in path.name  # damaged, perhaps
    return True


def is_plain_file(path: Path) -> bool:
    """Whether it is a file itself, no link to one."""
    return os.path.isfile(path) and not os.path.islink(path)


def foreign_note(path: Path) -> str:
    """The format of a file that other programs read, and how to convert it; empty for a file of no known format.

    Only a compressed file that bears a capture's name counts: others are compressed too, as documents are.
    """
    import shlex

    from wiretale.analyzer import _core

    found = _core.foreign_format(head_of(path))
    if not found or (found[1].endswith("wiretale analyze -") and not CAPTURE_NAME.search(path.name)):
        return ""
    return f"{path} is {found[0]}; convert it: {found[1].replace('%s', shlex.quote(str(path)))}"


def captures_in(folder: Path) -> list[str]:
    """The captures in a folder and those below it (where this user may look), by name. InputError when there are none.

    SkippedFileWarning for captures in other programs' formats.
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
    """The path, if it can be one. UsageError otherwise."""
    try:
        path = os.fsdecode(given)
    except TypeError:
        raise UsageError(f"{given!r}: expected a path; several are arguments of their own, analyze(*paths)") from None
    if not path or "\0" in path:
        raise UsageError(f"{path!r}: expected a file, a folder, or - for standard input")
    return path


def identity(path: str) -> tuple[int, int] | str:
    """The same for every name of a file: its device and inode; the path of one that cannot be looked up."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def check_once(paths: Iterable[str]) -> None:
    """UsageError for a file that comes twice: every packet in it would seem to be repeated."""
    seen: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        same = "-" if path == "-" else identity(path)
        if same in seen:
            raise UsageError(
                f"{path}: expected each capture once; given twice{f' (also as {seen[same]})' if seen[same] != path else ''}"
            )
        seen[same] = path


def check_apart(points: Sequence[Sequence[str]]) -> None:
    """UsageError for a file that belongs to two capture points: nothing can differ between them."""
    seen: dict[tuple[int, int] | str, tuple[int, str]] = {}
    for number, paths in enumerate(points):
        for path in paths:
            before, name = seen.setdefault(identity(path), (number, path))
            if before != number:
                other = f" (also as {name})" if name != path else ""
                raise UsageError(f"{path}: expected different captures; given twice{other}")


def expand_paths(paths: Iterable[str | bytes | os.PathLike[str]]) -> list[str]:
    """Folders as the captures in them; files, pipes and `-` as they are. InputError, UsageError."""

    def expand() -> Iterator[str]:
        for path in map(check_path, paths):
            if path != "-" and os.path.isdir(path):
                yield from captures_in(Path(path))
            else:
                yield path

    found = list(expand())
    check_once(found)
    return found
