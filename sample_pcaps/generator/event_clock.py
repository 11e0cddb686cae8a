# SPDX-License-Identifier: Apache-2.0
"""The time of a simulation: what is to happen, in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Clock:
    """Lets things happen; at the same time, in the order asked for."""

    now: int = 0  # ns since the start of the capture
    serial: int = 0
    events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)

    def at(self, time_ns: int, what: Callable[..., None], *arguments: Any) -> None:
        """Lets `what` happen then."""
        self.serial += 1
        heapq.heappush(self.events, (time_ns, self.serial, what, arguments))

    def after(self, delay_ns: int, what: Callable[..., None], *arguments: Any) -> None:
        """Lets `what` happen that much later."""
        self.at(self.now + delay_ns, what, *arguments)

    def run(self) -> None:
        """Until nothing is left to happen."""
        while self.events:
            self.now, _, what, arguments = heapq.heappop(self.events)
            what(*arguments)
