# SPDX-License-Identifier: Apache-2.0
"""Runs the programs that make a lab."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.program import program_path


def last_line(text: str) -> str:
    """Returns the last line of a program's output, which is usually its error."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no output"


def run_program(command: Sequence[str], timeout: float = 30) -> str:
    """Returns the standard output of a command. Raises WiretaleError with its last line if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise WiretaleError(f"{' '.join(command)}: not done after {timeout:g} s") from None
    if done.returncode:
        raise WiretaleError(f"{' '.join(command)}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def dying_with_us(command: Sequence[str]) -> list[str]:
    """Returns the command with a parent-death SIGTERM (setpriv of util-linux), even if this process is killed."""
    setpriv = program_path("setpriv")
    return [*([setpriv, "--pdeathsig", "TERM"] if setpriv else []), *command]


def real_time(priority: int) -> list[str]:
    """Returns a prefix for real-time scheduling, empty if it is not permitted."""
    chrt = program_path("chrt")
    if chrt is None:
        return []
    words = [chrt, "--fifo", str(priority)]
    allowed = subprocess.run([*words, "true"], capture_output=True, timeout=30).returncode == 0
    return words if allowed else []
