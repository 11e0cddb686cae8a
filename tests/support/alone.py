# SPDX-License-Identifier: Apache-2.0
"""Tests marked `alone` run while no other test of this checkout does: they measure real time, which others would disturb."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

GATE, RUNNING = Path(__file__), Path(__file__).with_name("checkout.py")  # any two files that all workers can lock


class Turns:
    """The turns of one process. Tests that must be alone and follow each other share a turn: the others are waited for once."""

    def __init__(self) -> None:
        self.locks = contextlib.ExitStack()
        self.goes_on = False

    def take(self, alone: bool) -> None:
        """Waits until no other test runs if `alone`, and otherwise until none that must be alone runs or waits.

        The gate is for the latter: without it, a test that waits would starve, because one of the others always runs."""
        running = self.locks.enter_context(RUNNING.open())
        with GATE.open() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            fcntl.flock(gate, fcntl.LOCK_UN)
        self.locks.callback(fcntl.flock, running, fcntl.LOCK_UN)  # a process that the test forked may have it open, too

    @contextlib.contextmanager
    def turn(self, alone: bool, next_alone: bool) -> Iterator[None]:
        if not self.goes_on:
            self.take(alone)
        self.goes_on = alone and next_alone
        try:
            yield
        finally:
            if not self.goes_on:
                self.locks.close()
