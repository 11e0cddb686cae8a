# SPDX-License-Identifier: Apache-2.0
"""The programs that a lab is made with, and how one is run to its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, WiretaleError

# Program, and the command that mends its absence.
PACKAGES = {
    "ip": "apt-get install iproute2",
    "tc": "apt-get install iproute2",
    "ethtool": "apt-get install ethtool",
    "tcpdump": "apt-get install tcpdump",
    "dumpcap": "apt-get install wireshark-common",
    "unshare": "apt-get install util-linux",
    "nsenter": "apt-get install util-linux",
}
OWN = "install wiretale again, or put it into PATH"


def program_path(name: str) -> str | None:
    """The full path of a program: beside the Python interpreter, where pip puts ours, then in PATH."""
    beside = Path(sys.executable).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def find_program(name: str) -> str:
    """The full path of a program. MissingToolError, with what mends it, when there is none."""
    path = program_path(name)
    if path is None:
        raise MissingToolError(f"{name} is missing: {PACKAGES.get(name, OWN)}")
    return path


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


def real_time(priority: int) -> list[str]:
    """Words before a command that let it run before others, where that is allowed: packets leave when they are due."""
    chrt = program_path("chrt")
    if chrt is None:
        return []
    words = [chrt, "--fifo", str(priority)]
    allowed = subprocess.run([*words, "true"], capture_output=True, timeout=30).returncode == 0
    return words if allowed else []
