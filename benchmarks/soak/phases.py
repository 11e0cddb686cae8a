# SPDX-License-Identifier: Apache-2.0
"""The phases of a soak: what fails, and how many packets it may cost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.namespaces import run, wait_until
from soak.tracer import Soak, lost_in

CALM_SECONDS = 1.5  # at the ends of a phase, so that its packets and counts belong to it
STALL_SECONDS = 6.0
KILL_SECONDS = 1.0  # that kill -9 may lose, besides the time until the next start captures


@dataclass
class Phase:
    """One run of a phase: the numbers of its frames, what the tracer counted, and what nobody could record."""

    name: str
    first: int
    last: int
    counted: int  # losses by the tracer's counters
    deaf_seconds: float | None  # how long no tracer listened, None if one did all the time


def rotate(soak: Soak) -> float | None:
    for _ in range(30):
        soak.signal_tracer(signal.SIGUSR1)
        time.sleep(0.1)
    return None


def kill(soak: Soak) -> float | None:
    begun = time.monotonic()
    soak.kill_tracer()
    soak.start_tracer()
    return time.monotonic() - begun + KILL_SECONDS


def fill_disk(soak: Soak) -> float | None:
    """Fills the disk, as a neighbor would."""
    with filled(soak.disk / "filler"):
        time.sleep(STALL_SECONDS)
    return None


@contextmanager
def filled(path: Path) -> Iterator[None]:
    piece = bytes(1 << 16)
    until = time.monotonic() + 2  # what the tracer's own files leave is filled again
    with path.open("wb", buffering=0) as file:
        while time.monotonic() < until:
            try:
                file.write(piece)
            except OSError:
                time.sleep(0.02)
    try:
        yield
    finally:
        path.unlink()


def freeze_disk(soak: Soak) -> float | None:
    run("fsfreeze", "-f", str(soak.disk))
    try:
        time.sleep(STALL_SECONDS)
    finally:
        run("fsfreeze", "-u", str(soak.disk))
    return None


def remove_interface(soak: Soak) -> float | None:
    """Nobody sends while there is no interface; the tracer opens the new one after some time."""
    run("ip", "-n", soak.names["tracer"], "link", "del", "in0")
    time.sleep(1)
    begun = time.monotonic()
    soak.make_link()
    while soak.status()["state"] == "waiting":
        time.sleep(0.02)
    return time.monotonic() - begun


def lose_carrier(soak: Soak) -> float | None:
    link = ("ip", "-n", soak.names["sender"], "link", "set", "out0")
    losses = soak.status()["interfaces"][0]["carrier_losses"]
    for _ in range(3):
        run(*link, "down")
        time.sleep(0.3)
        run(*link, "up")
        time.sleep(0.3)
    # The kernel tells changes that follow each other with a delay.
    wait_until(
        lambda: soak.status()["interfaces"][0]["carrier_losses"] - losses == 3, "3 losses of the carrier are told"
    )
    return None


def set_clock(soak: Soak) -> float | None:
    steps = soak.status()["clock"]["steps"]
    for step in (1, 2, 3, 0):
        soak.signal_tracer(signal.SIGRTMIN + step)
        time.sleep(0.7)
    wait_until(lambda: soak.status()["clock"]["steps"] - steps == 4, "4 steps of the clock are told")
    return None


PHASES: dict[str, Callable[[Soak], float | None]] = {
    "rotation, 30 signals": rotate,
    "kill -9 and start": kill,
    "full disk": fill_disk,
    "frozen disk": freeze_disk,
    "removed interface": remove_interface,
    "carrier lost 3 times": lose_carrier,
    "clock +0.5 s, ±1 h": set_clock,
}


def carry_out(soak: Soak, name: str) -> Phase:
    """Runs a phase between two calm times. After kill -9 the counts begin at 0."""
    time.sleep(CALM_SECONDS)
    before, first = lost_in(soak.wait_settled()), soak.sent()
    soak.calm_counted += before - soak.counted
    time.sleep(CALM_SECONDS)
    deaf_seconds = PHASES[name](soak)
    time.sleep(CALM_SECONDS)
    soak.counted = after = lost_in(soak.wait_settled())
    time.sleep(CALM_SECONDS)
    soak.frames.take_files()
    os.sync()
    return Phase(name, first, soak.sent(), after - (0 if PHASES[name] is kill else before), deaf_seconds)
