# SPDX-License-Identifier: Apache-2.0
"""Basics of a simulation: clock, fate of a packet, place of the capture point, and byte ranges."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from write_captures import MICROSECOND, MILLISECOND


@dataclass
class Clock:
    """Runs events by time; events of the same time run in the order of their calls."""

    now: int = 0  # ns since the start of the capture
    serial: int = 0
    events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)

    def at(self, time_ns: int, call: Callable[..., None], *arguments: Any) -> None:
        """Schedules a call."""
        self.serial += 1
        heapq.heappush(self.events, (time_ns, self.serial, call, arguments))

    def after(self, delay_ns: int, call: Callable[..., None], *arguments: Any) -> None:
        """Schedules a call after a delay."""
        self.at(self.now + delay_ns, call, *arguments)

    def run(self) -> None:
        """Runs until no event is left."""
        while self.events:
            self.now, _, call, arguments = heapq.heappop(self.events)
            call(*arguments)


@dataclass(frozen=True)
class Fate:
    """The events on the path of one packet."""

    lost: str = ""  # "upstream" of the capture point or "downstream"
    late_ns: int = 0  # delayed before the capture point, so that later packets overtake it
    copy_ns: int = 0  # delay of a copy that the network makes before the capture point; 0: no copy
    stalled_ns: int = 0  # delayed behind the capture point, with all later packets
    unstored: bool = False  # the capture drops it


PLAIN = Fate()


@dataclass(frozen=True)
class Distance:
    """Delays from the capture point to the sender and to the receiver of the data."""

    to_sender_ns: int = 10 * MICROSECOND
    to_receiver_ns: int = 10 * MILLISECOND - 10 * MICROSECOND
    segment_ns: int = 120 * MICROSECOND  # serialization of a full segment on the sender's link: 100 Mbit/s


BESIDE_SENDER = Distance()
MIDWAY = Distance(4 * MILLISECOND, 6 * MILLISECOND)
BESIDE_RECEIVER = Distance(10 * MILLISECOND - 10 * MICROSECOND, 10 * MICROSECOND)


@dataclass
class ByteRanges:
    """Sorted ranges [start, end) of stream offsets that neither overlap nor touch."""

    pairs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        apart = [pair for pair in self.pairs if pair[1] < start or pair[0] > end]
        touching = [pair for pair in self.pairs if pair not in apart]
        joined = min([start, *(pair[0] for pair in touching)]), max([end, *(pair[1] for pair in touching)])
        self.pairs = sorted([*apart, joined])

    def count(self, start: int, end: int) -> int:
        """Returns the number of bytes of this range that passed."""
        return sum(max(0, min(end, pair[1]) - max(start, pair[0])) for pair in self.pairs)

    def covers(self, start: int, end: int) -> bool:
        """Returns whether the whole range passed."""
        return self.count(start, end) == end - start

    def total(self) -> int:
        return sum(end - start for start, end in self.pairs)
