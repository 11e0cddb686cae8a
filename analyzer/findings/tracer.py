# SPDX-License-Identifier: Apache-2.0
"""Rules about what the tracer recorded about its own link and clock, where it touches the packets of the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.findings.capture import capture_finding
from wiretale.analyzer.findings.model import Match, Matches, row_at
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import InterfaceRow

CHAPTER = "The tracer"
NO_PACKET = "the tracer recorded it, between the packets"


def rows_with(transfers: Transfers, column: str) -> Iterator[InterfaceRow]:
    """Yields the interfaces with a time in this column."""
    interfaces = transfers.trace.interfaces
    return (row_at(interfaces, number) for number in interfaces._rows_where(column))


def span_of(transfers: Transfers) -> tuple[int, int] | None:
    """Returns the times of the first and the last packet that were analyzed; None without packets."""
    interfaces = transfers.trace.interfaces
    firsts = [ns for ns in interfaces.column("first_ns") if ns is not None]
    lasts = [ns for ns in interfaces.column("last_ns") if ns is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def carrier_rows(transfers: Transfers) -> list[InterfaceRow]:
    """Returns the interfaces that had no carrier for a time between the first packet and the last."""
    span = span_of(transfers)
    return [
        row
        for row in rows_with(transfers, "carrier_lost_ns")
        if span and (row["carrier_lost_ns"] or 0) <= span[1] and (row["carrier_back_ns"] or span[1]) >= span[0]
    ]


def step_rows(transfers: Transfers) -> list[InterfaceRow]:
    """Returns the interfaces whose clock was set between packets, one of each file."""
    span = span_of(transfers)
    rows = {
        row["file"]: row
        for row in rows_with(transfers, "clock_step_ns")
        if span and (row["clock_step_ns"] or 0) <= span[1] and (row["clock_step_last_ns"] or 0) >= span[0]
    }
    return list(rows.values())


def carrier_str(row: InterfaceRow) -> str:
    """Returns for how long the link of an interface was down: ` for 2.1 s`, ` 3 times for 4.2 s in all`, ` until the end`."""
    losses, down_ns = row["carrier_losses"] or 0, row["carrier_down_ns"]
    times = f" {plural(losses, 'time')}" if losses > 1 else ""
    if row["carrier_back_ns"] is None:
        return f"{times} until the end"
    return times + (f" for {show_duration(down_ns)}{' in all' if losses > 1 else ''}" if down_ns else "")


def time_str(transfers: Transfers, time_ns: int | None) -> str:
    """Returns a time since the first packet: `at 5.2 s`; empty before it, as of a clock that was set back."""
    after = (time_ns or 0) - transfers.base_ns
    return f" at {show_duration(after)}" if after >= 0 else ""


@capture_finding(
    code="carrier-lost",
    title="The tracer's link was down",
    without_packets=NO_PACKET,
    computed="wiretale-capture recorded that an interface lost its carrier (interfaces.carrier_lost_ns) between the first packet "
    "and the last.",
    unknown="What passed in that time. A tracer of another program records nothing of it.",
    weakens="Pauses, losses, gaps and unanswered requests that reach into that time.",
    sentence="The tracer's link {interface} was down{down}{at}[: packets of that time are missing].",
    advice="Check the cable and the port of the tracer, and whether the mirror session was set up again then.",
)
def carrier_lost(transfers: Transfers) -> Matches:
    for row in carrier_rows(transfers):
        yield Match(
            interface=row["name"] or f"interface {row['interface']}",
            down=carrier_str(row),
            at=time_str(transfers, row["carrier_lost_ns"]),
        )


@capture_finding(
    code="clock-set",
    title="The tracer's clock was set",
    without_packets=NO_PACKET,
    computed="wiretale-capture recorded that CLOCK_REALTIME changed against CLOCK_MONOTONIC by at least 1 ms "
    "(interfaces.clock_steps), between packets.",
    unknown="Whether a program or a person set it. A tracer of another program records nothing of it.",
    weakens="Each duration, RTT and rate that spans the step, and the order of packets if the clock was set back.",
    sentence="The tracer's clock was set {jumped} by {furthest}{times}[: times before and after it cannot be compared].",
    advice="Slew the clock (chrony without `makestep`) while capturing.",
)
def clock_set(transfers: Transfers) -> Matches:
    for row in step_rows(transfers):
        yield Match(
            jumped="back" if (row["clock_step_size_ns"] or 0) < 0 else "forward",
            furthest=show_duration(abs(row["clock_step_size_ns"] or 0)),
            times=steps_str(transfers, row),
        )


def steps_str(transfers: Transfers, row: InterfaceRow) -> str:
    """Returns when, or how often: ` at 5.2 s`, ` at most, in 3 steps`."""
    steps = row["clock_steps"] or 0
    return f" at most, in {plural(steps, 'step')}" if steps > 1 else time_str(transfers, row["clock_step_ns"])
