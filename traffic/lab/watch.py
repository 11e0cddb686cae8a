# SPDX-License-Identifier: Apache-2.0
"""Removes the lab of a process that was killed: `python -m wiretale.traffic.lab.watch NAME CREATED_NS`.

`lab run` starts it and holds the other end of its standard input, which the kernel closes if that process ends, even if it is
killed. If the lab is down by then, it is no longer recorded, and there is nothing to do.
"""

from __future__ import annotations

import os
import signal
import sys

STDIN = 0


def watch(name: str, created_ns: int) -> None:
    """Waits for the end of the other process, then removes its lab."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the run that gets them removes its lab itself
    while os.read(STDIN, 4096):
        pass
    from wiretale.traffic.lab.lifecycle import lab_down
    from wiretale.traffic.lab.state import known_labs

    for lab in known_labs():
        if (lab.name, lab.created_ns) == (name, created_ns):
            lab_down(lab)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
