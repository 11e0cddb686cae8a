# SPDX-License-Identifier: Apache-2.0
"""Jumps of the capture's clock that the timestamps of both ends show (flows.clock_jump_ns): nobody waited in them."""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

ALIKE = 0.25  # of a jump, as flows show it
FLOWS_MAX = 10_000  # that are read
JUMPS_MAX = 20  # the largest: each is looked for in every wait


class ClockJump(NamedTuple):
    """A jump forward."""

    after_ns: int  # time of the last packet before it
    until_ns: int  # of the first one behind it
    ns: int
    frame: int | None  # the first one behind it
    capture: int | None  # of the first packet of its flow
    flows: tuple[int, ...]

    def within(self, start_ns: float, ns: float, base_ns: int = 0) -> bool:
        """Returns whether it lies within a time that begins at a time since base_ns."""
        return start_ns <= self.after_ns - base_ns and start_ns + ns >= self.until_ns - base_ns

    def joined(self, later: ClockJump) -> ClockJump | None:
        """Returns both as one, if they are the same jump in several flows."""
        until = min(self.until_ns, later.until_ns)
        if later.after_ns >= until or abs(self.ns - later.ns) > ALIKE * self.ns:
            return None
        first = self if self.until_ns <= later.until_ns else later
        return first._replace(after_ns=later.after_ns, ns=min(self.ns, later.ns), flows=self.flows + later.flows)


def clock_jumps_of(trace: Trace, flows: list[int]) -> list[ClockJump]:
    """Returns the largest jumps of the capture's clock that flows show, in their order."""
    jumps: list[ClockJump] = []
    rows = trace.flows._rows_at(flows[:FLOWS_MAX])
    seen = [
        ClockJump(after, until, ns, row["clock_jump_frame"], row["first_capture"], (row["flow"],))
        for row in rows
        if (ns := row["clock_jump_ns"])
        and (after := row["clock_jump_after_ns"]) is not None
        and (until := row["clock_jump_until_ns"]) is not None
    ]
    for jump in sorted(seen):
        joined = jumps[-1].joined(jump) if jumps else None
        jumps[-1:] = [joined] if joined else [*jumps[-1:], jump]
    return sorted(nlargest(JUMPS_MAX, jumps, key=lambda jump: jump.ns))
