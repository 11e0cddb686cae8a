# SPDX-License-Identifier: Apache-2.0
"""Takes down the lab of a process that was killed: `python -m wiretale.traffic.lab.watch NAME CREATED_NS`.

`lab run` starts it and holds the other end of its standard input, which is closed when that process ends, even if it was
killed. A lab that is down by then is not written down any more, and there is nothing to do.
"""

from __future__ import annotations

import os
import signal
import sys

STDIN = 0


def watch(name: str, created_ns: int) -> None:
    """Waits for the end of the other process, and takes its lab down."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # who ends a run by these lets it take its lab down
    while os.read(STDIN, 4096):
        pass
    from wiretale.traffic.lab.lifecycle import lab_down
    from wiretale.traffic.lab.state import known_labs

    for lab in known_labs():
        if (lab.name, lab.created_ns) == (name, created_ns):
            lab_down(lab)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
