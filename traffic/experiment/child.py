# SPDX-License-Identifier: Apache-2.0
"""A program that an experiment started. It ends if this process ends for any reason."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType

from wiretale.analyzer.errors import MissingToolError, WiretaleError
from wiretale.traffic.experiment.endpoint import watched

GRACE_S = 10.0  # to end when stopped
POLL_S = 0.01
LOG_MOST = 1 << 16
OUTPUT_MOST = 1 << 28


class ProgramError(WiretaleError):
    """A program failed, or did not start."""

    exit_code = 4


class Child:
    """Runs in its own session, because Ctrl-C must reach only this process, which then stops the program."""

    def __init__(self, command: Sequence[str], remote: bool) -> None:
        self.command = list(command)
        started = self.command if remote else ["/bin/sh", "-c", watched(command)]
        self._files = ExitStack()
        self._out, self._err = (self._files.enter_context(tempfile.TemporaryFile()) for _ in range(2))  # noqa: SIM115 (_files closes them)
        try:
            self.process = subprocess.Popen(
                started, stdin=subprocess.PIPE, stdout=self._out, stderr=self._err, start_new_session=True
            )
        except OSError as error:
            self._files.close()
            raise MissingToolError(f"{self.command[0]}: {error.strerror}") from None

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._files.close()

    @property
    def is_running(self) -> bool:
        """Whether the program has not ended."""
        return self.process.poll() is None

    def output(self) -> str:
        """Returns its standard output so far."""
        return os.pread(self._out.fileno(), OUTPUT_MOST, 0).decode("utf-8", "replace")

    def log(self) -> str:
        """Returns its standard error so far."""
        return os.pread(self._err.fileno(), LOG_MOST, 0).decode("utf-8", "replace").strip()

    def last_line(self) -> str:
        """Returns the last line of its log, or its exit code."""
        lines = self.log().splitlines()
        return lines[-1] if lines else f"ended with exit code {self.process.returncode}"

    def wait_until(self, is_ready: Callable[[str], bool], seconds: float, name: str) -> None:
        """Waits until its log shows that it is ready. ProgramError if it ends before, or takes too long."""
        until = time.monotonic() + seconds
        while not is_ready(self.log()):
            if not self.is_running:
                raise ProgramError(f"{name} did not start: {self.last_line()}")
            if time.monotonic() > until:
                raise ProgramError(f"{name} was not ready within {seconds:g} s: {self.last_line()}")
            time.sleep(POLL_S)

    def ask(self) -> None:
        """Sends SIGUSR1: the program logs its counts."""
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGUSR1)

    def stop(self) -> int:
        """Ends the program, which must write its buffered data first. Returns its exit code."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()  # the signal to end (endpoint.py)
        try:
            return self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()
