# SPDX-License-Identifier: Apache-2.0
"""Rules for every file that wiretale writes.

A regular file is written under a temporary name in its directory and renamed, so that it appears whole or not at all.
Symbolic links are followed; a device, a FIFO or a listening socket is opened and written to. check_outputs() rejects a path
that is also an input, and a capture unless the user chose to replace it. Commands must call it before their long work.

A process that is killed leaves its temporary file or directory. The next one that writes beside it removes it: a temporary name
without a lock has no process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wiretale.analyzer.capture_paths import COPIES, holds_capture
from wiretale.analyzer.errors import OutputError, UsageError, WiretaleError
from wiretale.analyzer.printable import utf8_name

PARTIAL = re.compile(r"\.partial-output-[0-9a-f]{16}")
LINKS_MOST = 40  # the limit of the kernel
PAGE_SUFFIXES = ("", ".html", ".htm")
PAGE_FORMATS = (
    "the report is an HTML page: expected a name that ends in .html or .htm, one without a suffix, a device, a FIFO, "
    "a socket, or - for standard output"
)
Identity = tuple[int, int]
Inputs = Iterable[str | os.PathLike[str]]


def is_shared(folder: Path) -> bool:
    """Returns whether every user may create files in a directory and remove only their own, as in /tmp."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)


def is_magic(path: Path) -> bool:
    """Returns whether a path is in /proc, as /dev/stdout is: it stands for an open file, and must not be renamed."""
    return os.path.realpath(path.parent).startswith("/proc/")


def resolve(path: Path) -> Path:
    """Returns the path behind symbolic links, even if it does not exist. OSError if the kernel would not follow one."""
    for _ in range(LINKS_MOST):
        if not path.is_symlink() or is_magic(path):
            return path
        owners = (os.geteuid(), path.parent.stat().st_uid)
        if is_shared(path.parent) and path.lstat().st_uid not in owners:  # proc_sys_fs(5), protected_symlinks
            raise PermissionError(errno.EACCES, "a symbolic link of another user in a shared directory")
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def status(path: Path) -> os.stat_result | None:
    """Returns the status of a file, or None if it does not exist."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def is_replaced(place: Path, state: os.stat_result | None) -> bool:
    """Returns whether an output is written under another name and renamed."""
    return state is None or (stat.S_ISREG(state.st_mode) and not is_magic(place))


def keep_rights(descriptor: int, place: Path, before: os.stat_result | None) -> None:
    """Copies mode and owner of the file that is replaced."""
    if before is None:
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid) and not is_shared(place.parent):
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def locks(descriptor: int) -> bool | None:
    """Locks a file for this process as long as it is open. Returns false if another process has it, None without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def remove_left(folder: Path) -> None:
    """Removes the temporary files and directories of processes that are gone."""
    names: list[str] = []
    with suppress(OSError):  # it may be writable, but not readable
        names = os.listdir(folder)
    for name in filter(PARTIAL.fullmatch, names):
        with suppress(OSError):
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if locks(descriptor):
                    shutil.rmtree(folder / name) if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.unlink(
                        folder / name
                    )
            finally:
                os.close(descriptor)


def new_partial(path: Path, is_folder: bool) -> int | None:
    """Makes a temporary file or directory and returns its descriptor; None if another process found it before
    its lock and removes it."""
    if not is_folder:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    else:
        path.mkdir(0o700)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
    if locks(descriptor) is not False and path.exists():
        return descriptor
    os.close(descriptor)
    return None


@contextmanager
def partial_in(folder: Path, is_folder: bool = False) -> Iterator[tuple[Path, int]]:
    """A new temporary file or directory, locked, and its descriptor. It is removed at the end, if it is still there."""
    remove_left(folder)
    descriptor = None
    while descriptor is None:
        path = folder / f".partial-output-{os.urandom(8).hex()}"
        descriptor = new_partial(path, is_folder)
    try:
        yield path, descriptor
    finally:
        shutil.rmtree(path, ignore_errors=True) if is_folder else path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def replacing(place: Path, before: os.stat_result | None) -> Iterator[BinaryIO]:
    """A temporary file that is renamed to `place` at the end."""
    with partial_in(place.parent) as (partial, descriptor):
        with open(descriptor, "wb", closefd=False) as out:
            keep_rights(descriptor, place, before)
            yield out
        os.replace(partial, place)


@contextmanager
def opened(place: Path, state: os.stat_result) -> Iterator[BinaryIO]:
    """A device, FIFO, socket or open file, opened without truncation or seeking."""
    if stat.S_ISSOCK(state.st_mode):
        import socket  # rare, so it must not slow down every start

        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(bytes(place))
            with connection.makefile("wb") as out:
                yield out
        return
    append = os.O_APPEND if stat.S_ISREG(state.st_mode) else 0
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_NOCTTY | append), "wb") as out:
        yield out


@contextmanager
def output_at(path: Path) -> Iterator[BinaryIO]:
    """As output_file(), but raises OSError."""
    place = resolve(path)
    state = status(place)
    if state is None or is_replaced(place, state):
        with replacing(place, state) as out:
            yield out
    else:
        with opened(place, state) as out:
            yield out


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to. OutputError if it cannot be written; a regular file is then unchanged."""
    try:
        with output_at(path) as out:
            yield out
    except WiretaleError:  # of the caller's block; some are OSErrors
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {error.strerror or error}") from None


def move(file: Path, path: Path) -> None:
    """Moves a finished file to its path, by the same rules."""
    state = status(path)
    if path.is_symlink() or not is_replaced(path, state):
        with output_at(path) as out, file.open("rb") as made:
            shutil.copyfileobj(made, out)
        return
    with file.open("rb") as made:
        keep_rights(made.fileno(), path, state)
    os.replace(file, path)


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """A temporary directory in `folder`, which need not exist. OutputError if it cannot be made."""
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            partial, _ = stack.enter_context(partial_in(folder, is_folder=True))
        except OSError as error:
            raise OutputError(f"{folder}: cannot write into it: {error.strerror}") from None
        yield partial


@contextmanager
def output_folder(folder: Path) -> Iterator[Path]:
    """A temporary directory, whose files move into `folder` at the end.

    OutputError if a file cannot be written; `folder` is then unchanged, and removed if it did not exist.
    """
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with partial_folder(folder) as partial:
            with utf8_name(partial) as name:
                yield name
            for file in sorted(path for path in partial.iterdir() if path.is_file()):
                move(file, folder / file.name)
    except WiretaleError:
        raise
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror or error}") from None
    finally:
        with suppress(OSError):  # a directory with files stays
            for path in absent:
                path.rmdir()


def identity(state: os.stat_result) -> Identity | None:
    """Returns the same value for two names of one file; None for a terminal or /dev/null, which may be input and output."""
    if stat.S_ISCHR(state.st_mode):
        return None
    return (-1, state.st_rdev) if stat.S_ISBLK(state.st_mode) else (state.st_dev, state.st_ino)


def identities(inputs: Inputs) -> dict[Identity, str]:
    """Returns the names of existing inputs by identity; - is standard input."""
    names: dict[Identity, str] = {}
    for name in map(str, inputs):
        with suppress(OSError):
            number = identity(os.fstat(0) if name == "-" else os.stat(name))
            if number is not None:
                names.setdefault(number, "standard input" if name == "-" else name)
    return names


def refusal(path: Path) -> str:
    """Returns the reason why a path that exists is not writable."""
    return os.strerror(errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES)


def check_writable(path: Path, place: Path, state: os.stat_result | None) -> None:
    """Raises OutputError if the permissions do not allow to write."""
    if state is not None and stat.S_ISDIR(state.st_mode):
        raise OutputError(f"{path}: cannot write: it is a directory")
    needed = [place] if state is not None else []
    needed += [place.parent] if is_replaced(place, state) else []
    if not all(map(os.path.exists, needed)):
        raise OutputError(f"{path}: cannot write: {os.strerror(errno.ENOENT)}")
    for path_needed in needed:
        if not os.access(path_needed, os.W_OK):
            raise OutputError(f"{path}: cannot write: {refusal(path_needed)}")


def check_output(path: Path, names: dict[Identity, str], overwrite: bool, page: bool) -> None:
    """Checks one file; see check_outputs()."""
    try:
        place = resolve(path)
        state = status(place)
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {error.strerror}") from None
    same = names.get(identity(state) or (0, 0)) if state else None
    if same is not None:
        also = "" if same == str(path) else f" (as {same})"
        raise UsageError(f"{path}: is an input too{also}: choose another name for the output")
    regular = state is None or stat.S_ISREG(state.st_mode)
    if page and regular and path.suffix.lower() not in PAGE_SUFFIXES:
        raise UsageError(f"{path}: {PAGE_FORMATS}")
    if state and regular and not overwrite and holds_capture(place):
        raise UsageError(f"{path}: is a capture file: expected another name, or --overwrite to replace it")
    check_writable(path, place, state)


def check_outputs(paths: Iterable[Path], inputs: Inputs, overwrite: bool = False, page: bool = False) -> None:
    """Checks files that will be written. UsageError if one is also an input, is a capture and not `overwrite`, or is a page
    and has the suffix of another format; OutputError if one cannot be written."""
    names = identities(inputs)
    for path in paths:
        check_output(path, names, overwrite, page)


def check_owner(folder: Path) -> None:
    """Raises UsageError if a directory is a split or a store, or in one, because only their own commands write there."""
    for place in (folder, folder.absolute().parent):
        for name, kind in COPIES.items():
            if (place / name).is_file():
                raise UsageError(f"{folder}: {place} is a {kind}: expected another directory for the output")


def check_folder(folder: Path, files: Iterable[str], inputs: Inputs, overwrite: bool = False) -> None:
    """Checks files in a directory, which need not exist; see check_outputs()."""
    check_owner(folder)
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not os.path.isdir(nearest) or not os.access(nearest, os.W_OK | os.X_OK):
        reason = refusal(nearest) if os.path.isdir(nearest) else os.strerror(errno.ENOTDIR)
        raise OutputError(f"{folder}: cannot write into it: {reason}")
    if nearest == folder:
        check_outputs((folder / name for name in files), inputs, overwrite)
