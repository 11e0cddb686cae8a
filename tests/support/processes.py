# SPDX-License-Identifier: Apache-2.0
"""Programs that a test runs, and conditions that it waits for."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SECONDS = 120  # that anything may take on a machine that is busy with others


def output(*command: str) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert not done.returncode, f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


def refusal(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """The one line with which wiretale ended: its message without the name of the program."""
    assert done.returncode == code and not done.stdout, done
    assert done.stderr.startswith("wiretale: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("wiretale: ").rstrip("\n")


def full_pipe() -> tuple[int, int]:
    """Its two ends; a message would not fit in."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)  # for who writes into it
    return reading, writing


class TerminalProgram:
    """A program on a pseudo-terminal, with all that it wrote there."""

    def __init__(self, *command: str | bytes) -> None:
        self._main, terminal = os.openpty()
        self._written = bytearray()
        self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with open(self._main, "rb", buffering=0) as main, contextlib.suppress(OSError):  # at the end of a terminal
            while piece := main.read(65536):
                self._written += piece

    def written(self) -> bytes:
        """Returns what the terminal has got until now."""
        return bytes(self._written)

    def end(self) -> bytes:
        """Returns all of it, once the program has ended."""
        self.process.wait(timeout=SECONDS)
        self._reader.join(SECONDS)
        return self.written()


@contextlib.contextmanager
def on_terminal(*command: str | bytes) -> Iterator[TerminalProgram]:
    """The program runs inside, and is gone after it."""
    program = TerminalProgram(*command)
    try:
        yield program
    finally:
        program.process.kill()
        program.end()


@contextlib.contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own at the folder, with little room."""
    folder.mkdir(exist_ok=True)
    output("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    try:
        yield folder
    finally:
        output("umount", "-l", str(folder))


def wait_until(
    is_so: Callable[[], object], condition: str | Callable[[], object] = "the condition holds", seconds: float = SECONDS
) -> None:
    """Fails if the condition does not hold in time; a callable gives the state at that moment."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"not within {seconds} s: {condition() if callable(condition) else condition}"
        time.sleep(0.02)


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Number and words of every process but zombies, which have no words."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words := path.read_bytes().decode("utf-8", "replace").split("\0")[:-1]:
                yield int(path.parent.name), words
