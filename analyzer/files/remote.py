# SPDX-License-Identifier: Apache-2.0
"""Captures at URLs, streamed: each is read once, through a pipe, and never stored.

s3, gs, http and https are read by fsspec (extra `wiretale[remote]`) in a thread; ssh and sftp by the system's ssh, with the
user's keys, configuration and known hosts. No other module opens a connection, and none is opened without a URL.
"""

from __future__ import annotations

import logging
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from threading import Thread
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from wiretale.analyzer.capture_paths import (
    COMPRESSED,
    HEAD_BYTES,
    Inputs,
    is_cut_header,
    is_magic_number,
    is_named,
    is_url,
    public_url,
    warn_of_skipped,
)
from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.printable import printable
from wiretale.system_packages import install_command

PIECE = 1 << 20  # bytes
SSH = ("ssh", "sftp")
WEB = ("http", "https")
DOTS = re.compile(r"/\.\.?(/|$)")
FOLDERS_MOST = 2000  # of a web server, which could invent one in each
LOOKS = 16  # at files of a folder at the same time
SECONDS = 30  # that ssh may take to end after its last byte
SECONDS_LEFT = 1  # that the next byte may take if the core did not read to the end
LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}  # beside fsspec


def reason_of(error: BaseException) -> str:
    """Returns the first line of an error; libraries have messages of several lines, or none.

    fsspec makes every error of a web server FileNotFoundError; its status is in the error before.
    """
    before = error.__cause__ or error.__context__
    if isinstance(error, FileNotFoundError) and before and getattr(before, "status", None) != 404:
        return reason_of(before)
    if (reason := reason_of_web(error)) is not None:
        return reason
    if isinstance(error, FileNotFoundError):
        return "not found"
    if isinstance(error, PermissionError):
        return "permission denied, or credentials are missing"
    return printable(str(error).strip().partition("\n")[0]) or type(error).__name__


def reason_of_web(error: BaseException) -> str | None:
    """Returns the reason of an error of aiohttp, None for another one. Some have no text, or bytes that the server sent."""
    kind = type(error)
    if not kind.__module__.startswith("aiohttp."):
        return None
    status, names = getattr(error, "status", None), {base.__name__ for base in kind.__mro__}
    if "TooManyRedirects" in names:
        return "too many redirects"
    if "NonHttpUrlRedirectClientError" in names:
        return "the server redirects to a URL that is not of http or https"
    if "InvalidURL" in names:
        return "expected http://HOST/PATH"
    if "ClientConnectorError" in names:
        return f"cannot connect: {getattr(error, 'strerror', None) or 'no answer'}"
    if "ClientResponseError" in names:
        words = str(getattr(error, "message", ""))
        if not status or "\n" in words:  # which has bytes of the answer
            return "the answer of the server is no HTTP"
        return printable(f"the server answered {status} {words}".strip())
    return None


def unreadable(url: str, error: BaseException) -> InputError:
    return InputError(f"{public_url(url)}: {reason_of(error)}")


def folder_without_slash(url: str) -> InputError:
    return InputError(f"{public_url(url)}: is a folder: end the URL with a slash for the captures in it")


def web_page(url: str) -> InputError:
    return InputError(
        f"{public_url(url)}: is a web page: expected a capture, or for those in a folder a URL that ends with a slash"
    )


def file_system(url: str, **options: object) -> tuple[Any, str]:
    """Returns fsspec's file system of a URL and the path in it. MissingToolError if a library is missing."""
    logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # else it prints warnings about public buckets
    try:
        from fsspec.core import url_to_fs

        scheme, colon, location = url.partition(":")
        opened: tuple[Any, str] = url_to_fs(scheme.lower() + colon + location, **options)
        return opened
    except ImportError as error:
        scheme = urlsplit(url).scheme
        install = f"{sys.executable} -m pip install fsspec {LIBRARIES.get(scheme, '')}".rstrip()
        raise MissingToolError(f"reading {scheme}:// needs {error.name or 'a library'}: run `{install}`") from None
    except Exception as error:  # each file system has errors of its own
        raise unreadable(url, error) from None


def listed(url: str) -> list[str]:
    """Returns the URLs of a pattern, or of the captures in a folder, whose URL ends in a slash. InputError if there are none."""
    if urlsplit(url).scheme in SSH:
        raise UsageError(f"{public_url(url)}: expected the URL of a file: ssh has no folders and patterns")
    files, path = file_system(url)
    notes: list[str] = []
    try:
        if has_pattern(url):
            paths = files.glob(path)
        elif urlsplit(url).scheme.lower() in WEB:
            paths, notes = found_on_web(files, path)
        else:
            paths = files.find(path)
            if not paths:
                files.ls(path)  # find() has no errors
    except Exception as error:
        raise unreadable(url, error) from None
    urls = [files.unstrip_protocol(name) for name in sorted(paths) if has_pattern(url) or is_named(urlsplit(name).path)]
    if not has_pattern(url):
        with ThreadPoolExecutor(LOOKS) as looks:
            judged = list(zip(urls, looks.map(note_of_url, urls), strict=True))
        urls, notes = [address for address, note in judged if not note], notes + [note for _, note in judged if note]
    if not urls:
        raise InputError("; ".join([f"{public_url(url)}: no captures found", *notes[:1]]))
    warn_of_skipped(notes, public_url(url))
    return urls


def found_on_web(files: Any, folder: str) -> tuple[list[str], list[str]]:
    """Returns the files in a folder of a web server and its subfolders, and why a subfolder is skipped.

    fsspec's find() leaves such a subfolder out without an error. Raises the error for the folder itself.
    """
    files_seen: dict[str, None] = {}
    notes: list[str] = []
    waiting = [folder]
    for below in waiting:  # which grows
        try:
            entries = files.ls(below, detail=True)
        except Exception as error:
            if below == folder:
                raise
            notes.append(f"{public_url(below)}: {reason_of(error)}")
            continue
        entries = [entry for entry in entries if not DOTS.search(urlsplit(entry["name"]).path)]  # the same again
        files_seen.update((entry["name"], None) for entry in entries if entry["type"] != "directory")
        folders = dict.fromkeys(entry["name"] for entry in entries if entry["type"] == "directory")
        further = [name for name in folders if name not in waiting]
        room = FOLDERS_MOST - len(waiting)
        waiting += further[:room]
        notes += [f"{public_url(entry)}: there are more than {FOLDERS_MOST:,} folders" for entry in further[room:][:1]]
    return list(files_seen), notes


def note_of_url(url: str) -> str:
    """Returns why a file of a folder is skipped, empty if it begins as a capture or is compressed.

    One that is unreadable is left to the command that opens it.
    """
    from wiretale.analyzer import _core

    try:
        files, path = file_system(url)
        with files.open(path, "rb", block_size=HEAD_BYTES) as remote:
            head = remote.read(HEAD_BYTES)
    except Exception:
        return ""
    if is_cut_header(head) or not head:
        return f"{public_url(url)}: truncated at byte {len(head)}, within its header"
    if is_magic_number(head) or head.startswith(COMPRESSED):
        return ""
    name = _core.foreign_format(head)
    return f"{public_url(url)}: {name[0] if name else 'not a capture'} (expected pcap or pcapng)"


def has_pattern(url: str) -> bool:
    """Returns whether a URL is a pattern; in http, ? begins a query."""
    return "*" in urlsplit(url).path


def is_several(url: str) -> bool:
    """Returns whether a URL may stand for several files."""
    return url.endswith("/") or has_pattern(url)


def ssh_command(url: str) -> list[str]:
    """Returns the command that writes a remote file to its standard output.

    UsageError if the URL lacks host or path; MissingToolError if ssh is not installed.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)
    if not parts.hostname or path in ("", "/"):
        raise UsageError(f"{public_url(url)}: expected ssh://[USER@]HOST[:PORT]/PATH")
    if not shutil.which("ssh"):
        raise MissingToolError(f"reading ssh:// needs ssh: run `{install_command('openssh-client')}`")
    user = f"{unquote(parts.username)}@" if parts.username else ""
    port = ["-p", str(parts.port)] if parts.port else []
    file = shlex.quote(path.removeprefix("/~/"))
    return ["ssh", "-o", "BatchMode=yes", *port, "--", user + parts.hostname, f"cat -- {file}"]


class Streams(Inputs):
    """The inputs of an analysis as paths that the core can open: local ones as they are, URLs as pipes."""

    def __init__(self, inputs: list[str]) -> None:
        super().__init__(inputs)
        self.names = list(map(public_url, inputs))
        self._problems: list[InputError] = []
        self._programs: list[tuple[str, int, subprocess.Popen[bytes], IO[bytes]]] = []
        self._undone = ExitStack()
        with ExitStack() as undone:
            undone.callback(self.close)
            for number, url in enumerate(inputs):
                if is_url(url):
                    self.paths[number] = self._start(url)
            undone.pop_all()

    def _start(self, url: str) -> str:
        """Begins to read a URL; returns the path of its pipe."""
        command = ssh_command(url) if urlsplit(url).scheme in SSH else None
        remote = None if command else self._open(url)
        end, into = os.pipe()
        self._undone.callback(os.close, end)
        if command:
            self._start_ssh(url, command, end, into)
        else:
            Thread(target=self._pump, args=(url, remote, into), daemon=True).start()
        return f"/dev/fd/{end}"

    def _open(self, url: str) -> Any:
        files, path = file_system(url)
        try:
            remote = files.open(path, "rb")
            is_folder = getattr(remote, "size", None) == 0 and files.isdir(path)
        except Exception as error:
            raise unreadable(url, error) from None
        if is_folder:
            remote.close()
            raise folder_without_slash(url)
        return remote

    def _start_ssh(self, url: str, command: list[str], end: int, into: int) -> None:
        with open(into, "wb", buffering=0) as pipe, ExitStack() as undone:
            messages = undone.enter_context(tempfile.TemporaryFile())
            program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=messages)
            undone.callback(program.wait)
            undone.callback(program.kill)
            self._undone.callback(undone.pop_all().close)
        self._programs.append((url, end, program, messages))

    def _pump(self, url: str, remote: Any, into: int) -> None:
        """Copies a remote file into its pipe, in a thread of its own.

        The pipe is broken if the analysis ended early, which is no error. A problem is noted before the pipe is closed, because
        failure() may be called as soon as the core has read the end.
        """
        with suppress(BrokenPipeError), open(into, "wb", buffering=0) as pipe, closing(remote):
            try:
                first = remote.read(HEAD_BYTES)
                if first.lstrip()[:5].lower() in (b"<!doc", b"<html"):
                    self._problems.append(web_page(url))
                pipe.write(first)
                shutil.copyfileobj(remote, pipe, PIECE)
            except BrokenPipeError:
                raise
            except Exception as error:
                self._problems.append(unreadable(url, error))

    def failure(self) -> InputError | None:
        until = time.monotonic() + SECONDS_LEFT
        for url, end, program, messages in self._programs:
            if has_ended(end, until - time.monotonic()) and (reason := reason_of_ssh(program, messages)):
                return InputError(f"{public_url(url)}: {reason}")
        return self._problems[0] if self._problems else None

    def close(self) -> None:
        """Ends the programs; a thread ends when it writes to its closed pipe."""
        self._undone.close()


def has_ended(end: int, seconds: float) -> bool:
    """Returns whether a pipe was read to its end; not if it has bytes left, or more can come after this time."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return any(not event & select.POLLIN for _, event in poll.poll(max(seconds, 0) * 1000))


def reason_of_ssh(program: subprocess.Popen[bytes], messages: IO[bytes]) -> str | None:
    """Returns the reason why ssh, whose output has ended, did not write the whole file."""
    try:
        status = program.wait(SECONDS)
    except subprocess.TimeoutExpired:
        return f"ssh has not ended within {SECONDS} s after its last byte"
    messages.seek(0)
    last = messages.read().decode(errors="replace").strip().rpartition("\n")[2]
    return (printable(last) or f"ssh ended with {status}") if status else None
