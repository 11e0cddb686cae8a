# SPDX-License-Identifier: Apache-2.0
"""Programs of a lab: run to their end, or started in the background until a lab is down."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from wiretale.analyzer.errors import InputError, MissingToolError, OutputError, UsageError, WiretaleError
from wiretale.traffic.program import program_path

READY_SECONDS = 10
END_SECONDS = 30
ERRORS = {error.exit_code: error for error in (UsageError, InputError, MissingToolError)}


def last_line(text: str) -> str:
    """Returns the last line of the output of a program, which usually is its error."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"


def run_program(command: Sequence[str], timeout: float = 30) -> str:
    """Runs a command and returns its output. WiretaleError with its last line if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise WiretaleError(f"{' '.join(command)}: still running after {timeout:g} s") from None
    if done.returncode:
        raise WiretaleError(f"{' '.join(command)}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def dying_with_us(command: Sequence[str]) -> list[str]:
    """Returns a command that gets SIGTERM if this process ends, even if it is killed; setpriv is part of util-linux."""
    setpriv = program_path("setpriv")
    return [*([setpriv, "--pdeathsig", "TERM"] if setpriv else []), *command]


def real_time(priority: int) -> list[str]:
    """Returns a prefix for a command that gives it real-time priority, if that is allowed, so that packets leave on time."""
    chrt = program_path("chrt")
    if chrt is None:
        return []
    words = [chrt, "--fifo", str(priority)]
    allowed = subprocess.run([*words, "true"], capture_output=True, timeout=30).returncode == 0
    return words if allowed else []


def wait_until(process: subprocess.Popen[bytes], messages: Path, word: str, name: str) -> None:
    """Waits until the log of a process has a word. WiretaleError with its last line if it ends before."""
    deadline = time.monotonic() + READY_SECONDS
    while word not in messages.read_text("utf-8", "replace"):
        if process.poll() is not None:
            text = messages.read_text("utf-8", "replace").strip()
            error = last_line(text).removeprefix("wiretale-link: ") if text else f"{messages} is empty (full disk?)"
            raise ERRORS.get(process.returncode, WiretaleError)(f"{name}: {error}")
        if time.monotonic() > deadline:
            process.kill()
            raise WiretaleError(f"{name} was not ready after {READY_SECONDS} s")
        time.sleep(0.01)


def start_program(command: list[str], folder: Path, name: str, word: str) -> subprocess.Popen[bytes]:
    """Starts a program with its output in NAME.out and NAME.log, and waits until the log has a word."""
    try:
        with (folder / f"{name}.out").open("wb") as out, (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
            )
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror}") from None
    wait_until(process, folder / f"{name}.log", word, name)
    return process


def end_all(find: Callable[[], list[int]], seconds: float) -> None:
    """Ends the processes that `find` returns: by SIGTERM, so that the link can write its truth, and later by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in find():
            with suppress(ProcessLookupError, PermissionError):  # it may have ended
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while find() and time.monotonic() < deadline:
            time.sleep(0.05)


def end_program(process: subprocess.Popen[bytes]) -> None:
    """Ends a program; if SIGTERM does not end it, it is killed."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
