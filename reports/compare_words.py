# SPDX-License-Identifier: Apache-2.0
"""What the parts of a comparison of capture points are called, in the terminal and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import UNKNOWN, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.compare.clock_offset import Clock

STAGES = {"planned": "to be sent", "sent": "sent (log)", "received": "received (log)"}
CLOCK_EVIDENCE = {
    "forward": "unknown: packets matched one way only; delays are told above the least",
    "back": "unknown: packets matched one way only; delays are told above the least",
    "none": "unknown: no packet was matched",
    "same": "none: one clock, as told",
}
ASSUMPTION = (
    "Assumed of the clocks: the least delays of both directions are equal. However wrong that is, offsets and delays are off by "
    "no more than the ± beside them."
)


def stage_name(role: str) -> str:
    """A stage of a ledger."""
    return STAGES.get(role, f"{role}'s capture")


def signed(ns: float | None) -> str:
    """A duration with its sign."""
    if ns is None:
        return UNKNOWN
    return ("−" if ns < 0 else "+") + show_duration(abs(round(ns)))


def delay_text(ns: float | None) -> str:
    """A delay; noise of the clocks can bring it below zero."""
    if ns is None:
        return UNKNOWN
    return ("−" if round(ns) < 0 else "") + show_duration(abs(round(ns)))


def clock_line(clock: Clock, roles: list[str]) -> str:
    """Offset, skew and steps of one clock."""
    name = f"{roles[clock.later]}'s clock against the {roles[clock.earlier]}'s: "
    if clock.evidence != "both":
        return name + CLOCK_EVIDENCE[clock.evidence]
    doubt = f"±{clock.skew_error_ppm:.2f} ppm" if clock.skew_error_ppm is not None else ""
    skew = f"no skew measurable ({doubt})" if not clock.skew_ppm else f"skew {clock.skew_ppm:+.2f} ppm ({doubt})"
    steps = "".join(f"; set by {signed(change)} at {show_time(time)}" for time, change in clock.steps)
    return (
        f"{name}{signed(clock.offset_ns)}, at most ±{delay_text(clock.error_ns)} off; {skew}; least round trip "
        f"{delay_text(clock.least_rtt_ns)}{steps}"
    )
