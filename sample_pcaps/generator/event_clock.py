# SPDX-License-Identifier: Apache-2.0
"""The time of a simulation and its events, in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


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
