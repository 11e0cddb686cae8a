# SPDX-License-Identifier: Apache-2.0
"""The user namespace of an ordinary user's lab, seen from outside.

Its network namespaces have names only inside. If the process that made them is gone, they cannot be entered by name; only
programs that still run remain, and the kernel removes the namespaces with the last of them.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from wiretale.traffic.lab.state import USER, Lab, own_space

END_SECONDS = 3.0


def is_elsewhere(lab: Lab) -> bool:
    """Returns whether the lab is in a user namespace that this process is not in."""
    return lab.space not in (0, own_space())


def is_marked(pid: int) -> bool:
    """Returns whether a program belongs to a lab's user namespace; the check is needed because numbers are reused."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(word.startswith(f"{USER}=".encode()) for word in file.read().split(b"\0"))
    except OSError:
        return False


def processes_of(space: int) -> list[int]:
    """Returns the processes in that user namespace, if it is a lab's."""
    found = []
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdecimal() and os.stat(f"/proc/{entry}/ns/user").st_ino == space:
                found.append(int(entry))
    return found if any(map(is_marked, found)) else []


def end_space(space: int) -> None:
    """Stops all processes in that user namespace; SIGTERM first, so that the link can write its truth."""
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
