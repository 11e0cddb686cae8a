# SPDX-License-Identifier: Apache-2.0
"""Expands the paths of captures: a folder becomes the captures in it, and a file may occur only once."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from wiretale.analyzer.errors import InputError, SkippedFileWarning, SkippedFolderWarning, UsageError

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from typing import Any

    OnePath = str | bytes | os.PathLike[str]
    Paths = OnePath | Iterable[OnePath]
else:
    Paths = object

MAGIC_NUMBERS = (
    b"\xa1\xb2\xc3\xd4",  # pcap, µs
    b"\xa1\xb2\x3c\x4d",  # pcap, ns
    b"\xa1\xb2\xcd\x34",  # pcap, modified
    b"\x0a\x0d\x0d\x0a",  # pcapng
)
PCAPNG = MAGIC_NUMBERS[3]
HEADER_BYTES, SECTION_BYTES = 24, 28  # of a pcap file, and of the least section header of pcapng
CLUSTER_JOB, STORE_MARKER = "cluster.json", "store.json"
COPIES = {CLUSTER_JOB: "run of a cluster", STORE_MARKER: "store"}  # folders with these files
NAMED_MOST = 10  # skipped files of a folder
GZIP = b"\x1f\x8b"
COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # zstd, lz4: Python 3.11 cannot decompress them
OTHER_COMPRESSED = {b"BZh": "bz2", b"\xfd7z": "lzma"}  # not read, but protected from being overwritten
#: also numbered and compressed ones, but no a.pcap.sha256
CAPTURE_NAME = re.compile(
    r"\.(pcap|pcapng|cap|dmp|ntar)([._-]?\d+)*(\.(gz|zst|lz4|bz2|xz|zip|7z))*$", re.IGNORECASE | re.ASCII
)
URL = re.compile(r"(s3|gs|gcs|https?|ssh|sftp)://", re.IGNORECASE)
SCHEMES = "s3, gs, http, https, ssh or sftp"
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
HEAD_BYTES = 4096  # fits a gzip header with a file name, and the first bytes after it


def first_of_gzip(head: bytes) -> bytes:
    """Returns the first decompressed bytes; nothing if they cannot be decompressed."""
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, 4)
    except zlib.error:
        return b""


def is_named(path: str | Path) -> bool:
    """Returns whether a file has the name of a capture."""
    return CAPTURE_NAME.search(os.path.basename(path)) is not None


def head_of(path: str | Path) -> bytes | None:
    """Returns the first bytes of a file, None if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # a file object would take longer than the reading
        try:
            return os.read(descriptor, HEAD_BYTES)
        finally:
            os.close(descriptor)
    except OSError:
        return None


def is_magic_number(head: bytes) -> bool:
    """Returns whether a file with this head is a capture, plain or gzip."""
    first = first_of_gzip(head) if head.startswith(GZIP) else head[:4]
    return first in MAGIC_NUMBERS or first[::-1] in MAGIC_NUMBERS


def is_cut_header(head: bytes) -> bool:
    """Returns whether a file that begins as a capture ends within its header, as after a crash of the capturing program."""
    least = SECTION_BYTES if head.startswith(PCAPNG) else HEADER_BYTES
    return len(head) < least and not head.startswith(GZIP) and is_magic_number(head)


def refusal(path: str | Path) -> str:
    """Returns why the core refuses a file, empty if it is a capture."""
    from wiretale.analyzer import _core
    from wiretale.analyzer.options import NO_OPTIONS, ReadingMode

    try:
        _core.Analysis([str(path)], [str(path)], NO_OPTIONS, ReadingMode(interfaces_only=True))
    except _core.Error as error:
        return str(error.args[1])
    return ""


def is_compressed_capture(path: Path, module: str) -> bool:
    """Returns whether a file that this module decompresses is a capture, or has the name of one but is damaged."""
    from importlib import import_module

    try:
        with import_module(module).open(path) as file:
            return is_magic_number(file.read(len(MAGIC_NUMBERS[0])))
    except Exception:  # each module has errors of its own, and Python may lack the module
        return is_named(path)


def holds_capture(path: Path) -> bool:
    """Returns whether a file is a capture, whatever its name and compression; by its name if it is unreadable."""
    head = head_of(path)
    if head is None:
        return is_named(path)
    if head.startswith(tuple(OTHER_COMPRESSED)):
        return is_compressed_capture(path, OTHER_COMPRESSED[head[:3]])
    if not head.startswith(COMPRESSED):
        return is_magic_number(head) or bool(foreign_note(path, head))
    return not refusal(path) or is_named(path)  # perhaps damaged


class Inputs:
    """The inputs of an analysis: the paths that the core opens, and the names that rows and messages show."""

    def __init__(self, inputs: list[str]) -> None:
        self.names, self.paths = inputs, list(inputs)

    def failure(self) -> InputError | None:
        """Returns the reason why an input broke off; None if the core read it to its end, or stopped before."""
        return None

    def close(self) -> None:
        """Ends everything that still reads."""


def is_url(path: str) -> bool:
    """Returns whether an input is read by analyzer/files/remote.py."""
    return URL.match(path) is not None


def public_url(url: str) -> str:
    """Returns a URL without its password and query, which may be secret, for rows and messages. UsageError if it is none."""
    if not is_url(url):
        return url
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        _ = parts.port  # which is checked only now
    except ValueError as error:
        raise UsageError(f"{url.partition('://')[0]}://…: {error}") from None
    user, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"


def expand_url(url: str) -> list[str]:
    """Returns the URLs of a pattern or folder; another is returned as it is. Raises as remote.listed()."""
    from wiretale.analyzer.files import remote

    public_url(url)
    return remote.listed(url) if remote.is_several(url) else [url]


def foreign_note(path: str | Path, head: bytes) -> str:
    """Returns the foreign format of a file with this head and how to convert it; empty if the format is unknown.

    A compressed file counts only if it has a capture's name, because documents are compressed too.
    """
    import shlex

    from wiretale.analyzer import _core

    foreign = _core.foreign_format(head)
    if not foreign or (foreign[1].endswith("wiretale analyze -") and not is_named(path)):
        return ""
    return f"{path}: {foreign[0]}; convert it: {foreign[1].replace('%s', shlex.quote(str(path)))}"


def note_of(path: str) -> str | None:
    """Returns why a file in a folder is left out, empty if nothing about it is of a capture; None for a capture."""
    head = head_of(path)
    if head is None:
        return refusal(path) if is_named(path) else ""
    if note := foreign_note(path, head):
        return note
    return (refusal(path) or None) if is_named(path) or is_magic_number(head) else ""


def nothing_to_read(path: str) -> str:
    """Returns why a regular file cannot be read at all: it is empty, no capture, or the system refuses. Empty for other inputs,
    which the analysis opens itself: a pipe can be opened once, and a missing file is a mistake."""
    if path == "-" or is_url(path) or not os.path.isfile(path):
        return ""
    head = head_of(path)
    return "" if head and is_magic_number(head) else refusal(path)


def readable(paths: Sequence[str]) -> list[str]:
    """Returns the inputs without those that cannot be read at all, and warns of these, if others are left.

    `*.pcap` has the file that a running capture just opened, and `*` has notes. Raises InputError if nothing can be read.
    """
    reasons = {path: reason for path in paths if (reason := nothing_to_read(path))} if len(paths) > 1 else {}
    if reasons and len(reasons) == len(set(paths)):
        first, *further = reasons.values()
        raise InputError(first + (f" (and {len(further):,} more)" if further else ""))
    warn_of_skipped(list(reasons.values()))
    return [path for path in paths if path not in reasons]


def check_no_copies(folder: Path) -> None:
    """Raises UsageError if a folder is a split or store, which have copies of packets."""
    for name, kind in COPIES.items():
        if (folder / name).is_file():
            raise UsageError(f"{folder}: is a {kind}: expected captures")


def skip(note: str, kind: type[SkippedFileWarning] = SkippedFileWarning) -> None:
    warnings.warn(f"skipped {note}", kind, stacklevel=2)


def files_below(folder: Path) -> Iterator[str]:
    """Yields the regular files in a folder and its subfolders, but no symbolic links.

    Warns of subfolders that are unreadable, and of those that are a split or store, perhaps of these captures.
    """
    waiting = [str(folder)]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(below) as listing:
                entries = list(listing)
        except OSError as error:
            if os.path.basename(below) != "lost+found":  # of the file system, for its owner alone
                skip(f"{below}: {error.strerror}")
            continue
        if copies := [COPIES[entry.name] for entry in entries if entry.name in COPIES]:
            skip(f"{below}: is a {copies[0]}", SkippedFolderWarning)
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path.removeprefix("./")  # as Path shows it


def captures_in(folder: Path) -> list[str]:
    """Returns the captures in a folder and its subfolders by name.

    Raises InputError if the folder has no captures, UsageError if it is a split or store. Warns with SkippedFileWarning of
    files that the core refuses but that have the name or first bytes of a capture, because one of thousands must not end the
    analysis of the others.
    """
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    check_no_copies(folder)
    judged = [(path, note_of(path)) for path in sorted(files_below(folder))]
    captures = [path for path, note in judged if note is None]
    notes = [note for _, note in judged if note]
    if not captures:
        more = f" (and {len(notes) - 1:,} more)" if len(notes) > 1 else ""
        raise InputError("; ".join([f"{folder}: no capture files in this folder", *notes[:1]]) + more)
    warn_of_skipped(notes, str(folder))
    return captures


def warn_of_skipped(notes: Sequence[str], folder: str = "") -> None:
    """Warns of the files that were skipped, all in a folder if there is one."""
    for note in notes[:NAMED_MOST]:
        skip(note)
    if len(notes) > NAMED_MOST:
        skip(f"{len(notes) - NAMED_MOST:,} more files{f' in {folder}' if folder else ''}")


def each_path(paths: Iterable[Paths]) -> Iterator[object]:
    """Yields the paths, also those in lists; check_path() rejects other objects."""
    for item in paths:
        if isinstance(item, Iterable) and not isinstance(item, (str, bytes, os.PathLike)):
            yield from item
        else:
            yield item


def check_path(path_like: Any) -> str:
    """Returns a path as text. Raises UsageError if it cannot be one."""
    try:
        path = os.fsdecode(path_like)
    except TypeError:
        raise UsageError(f"{path_like!r}: expected a path, or a list of paths") from None
    if not path or "\0" in path:
        raise UsageError(f"{path!r}: expected a file, a folder, or - for standard input")
    return path


def identity(path: str) -> tuple[int, int] | str:
    """Returns device and inode, the same for every name of a file; the real path if the file does not exist."""
    if path == "-" or is_url(path):
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


class Expanded(list[str]):
    """The result of expand_paths(), which it returns again as it is."""

    def __init__(self, paths: Iterable[str], arguments: list[str]) -> None:
        super().__init__(paths)
        #: files and folders as they were given, which are fewer words in a command
        self.arguments = arguments


def expand_paths(paths: Iterable[Paths], local: bool = False) -> Expanded:
    """Returns files, pipes and `-` as they are, and folders as the captures in them. Raises InputError or UsageError.

    Of several, files that are empty, unreadable or no captures are skipped with a SkippedFileWarning. If `local`, a URL is
    refused.
    """
    wholes = list(paths)
    if len(wholes) == 1 and isinstance(wholes[0], Expanded) and not local:
        return wholes[0]
    arguments = list(map(check_path, each_path(wholes)))

    def expand() -> Iterator[str]:
        for path in readable(arguments):
            if is_url(path):
                if local:
                    raise UsageError(
                        f"{public_url(path)}: expected a local file, because this command cannot read URLs"
                    )
                yield from expand_url(path)
            elif SCHEME.match(path) and not os.path.exists(path):
                url = "" if local else f", or a URL of {SCHEMES}"
                raise UsageError(f"{path.partition('://')[0]}://…: expected a path{url}")
            elif path != "-" and os.path.isdir(path):
                yield from captures_in(Path(path))
            else:
                yield path

    expanded = Expanded(expand(), arguments)
    check_apart(([path] for path in expanded), "each capture once")  # else all its packets would count as duplicates
    return expanded
