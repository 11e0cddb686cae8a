# SPDX-License-Identifier: Apache-2.0
"""The traces that are part of wiretale, by formula: `python -m wiretale.traffic.lab.traces DIR` writes them.

A trace is a function of time that gives a rate. It becomes lines in mahimahi's format: the milliseconds at which the integral of
the rate reaches another 1500 bytes. The last line is the duration, after which the trace repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import exp, pi, sin
from pathlib import Path

OPPORTUNITY_BITS = 12_000
MASK = (1 << 64) - 1


def draw(number: int) -> float:
    """Returns a number in [0, 1) that depends on `number` alone (SplitMix64)."""
    state = number * 0x9E3779B97F4A7C15 & MASK
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
    state = (state ^ state >> 27) * 0x94D049BB133111EB & MASK
    return ((state ^ state >> 31) >> 11) / (1 << 53)


def step(ms: int) -> float:
    """12 Mbit/s for 5 s, then 3 Mbit/s for 5 s."""
    return 12e6 if ms < 5000 else 3e6


def outage(ms: int) -> float:
    """6 Mbit/s for 8 s, then nothing for 2 s."""
    return 6e6 if ms < 8000 else 0


def saw(ms: int) -> float:
    """Rises from 1 to 12 Mbit/s in 10 s, then falls at once."""
    return 1e6 + 11e6 * ms / 10_000


FADES = [0.0]  # the logarithm of the channel by 100 ms: an autoregressive process of order 1
for block in range(1, 200):
    shock = sum(draw(12 * block + k) for k in range(12)) - 6  # near a normal distribution
    FADES.append(0.9 * FADES[-1] + 0.25 * shock)


def lte(ms: int) -> float:
    """A mobile receiver: 8 Mbit/s times a fading channel, at most 30 Mbit/s, in grants of 5 of 10 ms."""
    return min(8e6 * exp(FADES[ms // 100]), 30e6) * 2 if ms % 10 < 5 else 0


def handover(ms: int) -> float:
    """A low satellite: 8 Mbit/s and 30% more or less with its height, and nothing for 120 ms at the change to the next."""
    return 0 if ms >= 14_880 else 8e6 * (1 + 0.3 * sin(2 * pi * ms / 15_000 - pi / 2))


TRACES: dict[str, tuple[Callable[[int], float], int]] = {
    "step": (step, 10_000),
    "outage": (outage, 10_000),
    "saw": (saw, 10_000),
    "lte-drive": (lte, 20_000),
    "satellite-handover": (handover, 15_000),
}


def lines_of(rate: Callable[[int], float], duration_ms: int) -> list[int]:
    """Returns the opportunities of a rate, and the duration as the last of them."""
    times, bits = list[int](), 0.0
    for ms in range(duration_ms):
        bits += rate(ms) / 1000
        count = int(bits // OPPORTUNITY_BITS)
        times += [ms + 1] * count
        bits -= count * OPPORTUNITY_BITS
    return times if times[-1] == duration_ms else [*times, duration_ms]


def trace_text(name: str) -> str:
    """Returns the file of a trace."""
    rate, duration_ms = TRACES[name]
    return "".join(f"{time}\n" for time in lines_of(rate, duration_ms))


if __name__ == "__main__":
    for each in TRACES:
        Path(sys.argv[1], f"{each}.trace").write_text(trace_text(each))
