# SPDX-License-Identifier: Apache-2.0
"""Where the time of a capture went: the time account of all flows, as the terminal and the page draw it as one bar."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.exchanges.turns import OVERLAP
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

LIFE_LEAST = 0.2  # of the capture: the time account says little about a stream beside it
NAMED, NAMED_LEAST = 5, 0.005  # parts in a legend, and the least share of each

#: parts in the order of the bar, with their words
PARTS = {
    "connecting": "connecting",
    "client": "client",
    "server": "server",
    "loss": "loss",
    "queue": "queue",
    "path": "path",
    "window": "window",
    "send_buffer": "send buffer",
    "transfer": "transfer",
    "unknown": "unknown",
    "idle": "idle",
}

#: kinds of exchanges without a time account of their flow, by the part that their waits count as
BESIDE = {"connecting": "connect", "server": "dns"}


class TimeAccount(NamedTuple):
    """The time of all flows by part."""

    parts: dict[str, float]  # ns of each part that took time, in the order of the bar
    waited_ns: float
    capture_ns: int

    @property
    def base(self) -> str:
        """`20 s of 24.5 s`, or what the sum of flows at the same time is more than."""
        several = ", summed over flows that overlap, in " if self.waited_ns > OVERLAP * self.capture_ns else " of "
        return f"{show_duration(self.waited_ns)}{several}{show_duration(self.capture_ns)}"

    def named(self, most: int = NAMED) -> tuple[dict[str, float], float]:
        """Returns the parts that a legend names, the largest first, and the time of the others; 0 if it is little."""
        ranked = sorted(self.parts.items(), key=lambda part: -part[1])
        named = dict(part for part in ranked[:most] if part[1] >= NAMED_LEAST * self.waited_ns)
        left_ns = math.fsum(ns for _, ns in ranked[len(named) :])
        return named, left_ns if left_ns >= NAMED_LEAST * self.waited_ns else 0.0


def time_account(trace: Trace) -> TimeAccount | None:
    """Returns where the time went; None if most of it is unknown. Idle time counts if the answer is about more time than that in
    which somebody waited."""
    answer, turns = trace.answer, trace.transfers.turns
    answer_ns = math.inf if answer.certainty is None else answer.cost["waited_ns"] or 0.0
    beside = {part: turns.waited_beside_ns(kind) for part, kind in BESIDE.items()}
    waits = {part: ns + beside.get(part, 0.0) for part, ns in turns.waits.items()}
    waited_ns, capture_ns = math.fsum(waits.values()), turns.capture_ns
    idle_ns = min(turns.idle_ns, capture_ns - waited_ns - turns.unknown_ns)  # a flow is idle while others wait
    times = {**waits, "unknown": turns.unknown_ns, "idle": idle_ns if answer_ns > waited_ns else 0.0}
    parts = {name: times[name] for name in PARTS if times[name] > 0}
    if waited_ns + turns.idle_ns + turns.unknown_ns < LIFE_LEAST * capture_ns or not parts:
        return None
    return TimeAccount(parts, waited_ns, capture_ns)
