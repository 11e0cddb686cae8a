# SPDX-License-Identifier: Apache-2.0
"""Tests marked `alone` run while no other test of this checkout does: they measure real time, which others would disturb."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

GATE, RUNNING = Path(__file__), Path(__file__).with_name("checkout.py")  # any two files that all workers can lock


@contextlib.contextmanager
def turn(alone: bool) -> Iterator[None]:
    """Waits until no other test runs if `alone`, and otherwise until none that must be alone runs or waits.

    The gate is for the latter: without it, a test that waits would starve, because one of the others always runs."""
    with GATE.open() as gate, RUNNING.open() as running:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(running, fcntl.LOCK_UN)  # a process that the test forked may have the file open, too
