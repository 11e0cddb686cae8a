# SPDX-License-Identifier: Apache-2.0
"""SIGTERM does what Ctrl-C does, and ends with 143 as supervisors expect it."""

from __future__ import annotations

import signal
from contextlib import suppress

terminated = False


def take_terminate_as_interrupt() -> None:
    """SIGTERM ends the reading, results of what was read are reported, nothing half-written stays."""

    def terminate(number: int, frame: object) -> None:
        global terminated
        terminated = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script: `wiretale … &`
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, terminate)


def interrupted_code() -> int:
    """The exit code after an interruption: 130, or 143 after SIGTERM."""
    return 128 + (signal.SIGTERM if terminated else signal.SIGINT)
