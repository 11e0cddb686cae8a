# SPDX-License-Identifier: Apache-2.0
"""Time and memory of a program."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from typing import NamedTuple

MEGABYTE = 1_000_000


class Usage(NamedTuple):
    """Cost of a run: time in seconds, highest resident memory in MB of 10^6 bytes."""

    wall: float
    cpu: float
    memory: float


def run_measured(command: list[str], most_cpu: int | None = None) -> Usage | None:
    """Runs a command without output. Returns None if it needed more than `most_cpu` seconds of CPU; exits if it failed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (most_cpu or 0, (most_cpu or 0) + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limit if most_cpu else None
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if most_cpu and process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    if process.returncode != 0:
        sys.exit(f"{' '.join(command[:9])} failed ({process.returncode}): {errors.decode(errors='replace')[-500:]}")
    return Usage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MEGABYTE)
