# SPDX-License-Identifier: Apache-2.0
"""How a program that a lab is made with is run to its end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.program import program_path


def last_line(text: str) -> str:
    """What a program said last: its error, as a rule."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def run_program(command: Sequence[str], timeout: float = 30) -> str:
    """Standard output of a command that has to work. WiretaleError with its last line otherwise."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise WiretaleError(f"{' '.join(command)}: not done after {timeout:g} s") from None
    if done.returncode:
        raise WiretaleError(f"{' '.join(command)}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def dying_with_us(command: Sequence[str]) -> list[str]:
    """The command so that it gets a SIGTERM when this process ends, even if it is killed; util-linux has the program."""
    setpriv = program_path("setpriv")
    return [*([setpriv, "--pdeathsig", "TERM"] if setpriv else []), *command]


def real_time(priority: int) -> list[str]:
    """Words before a command that let it run before others, where that is allowed: packets leave when they are due."""
    chrt = program_path("chrt")
    if chrt is None:
        return []
    words = [chrt, "--fifo", str(priority)]
    allowed = subprocess.run([*words, "true"], capture_output=True, timeout=30).returncode == 0
    return words if allowed else []
