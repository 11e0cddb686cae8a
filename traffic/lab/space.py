# SPDX-License-Identifier: Apache-2.0
"""The user namespace that an ordinary user's lab lives in, seen from outside.

Its network namespaces have names only in there. Once the process that made them is gone, nobody can go in by name; what
is left are the programs that still run, and with the last of them the kernel removes all the rest.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from wiretale.traffic.lab.state import USER, Lab, own_space

END_SECONDS = 3.0


def is_elsewhere(lab: Lab) -> bool:
    """Whether the lab is in a user namespace that this process is not in."""
    return lab.space not in (0, own_space())


def is_marked(pid: int) -> bool:
    """Whether a program was started in a lab's user namespace: numbers of namespaces are given again."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(word.startswith(f"{USER}=".encode()) for word in file.read().split(b"\0"))
    except OSError:
        return False


def processes_of(space: int) -> list[int]:
    """What runs in that user namespace, if it is a lab's."""
    found = []
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdecimal() and os.stat(f"/proc/{entry}/ns/user").st_ino == space:
                found.append(int(entry))
    return found if any(map(is_marked, found)) else []


def end_space(space: int) -> None:
    """Ends what runs in that user namespace: asked first, so that the link can write its truth."""
    deadline = time.monotonic() + END_SECONDS
    number = signal.SIGTERM
    while left := processes_of(space):
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if time.monotonic() > deadline + END_SECONDS:
            return
        if time.monotonic() > deadline:
            number = signal.SIGKILL
        time.sleep(0.05)
