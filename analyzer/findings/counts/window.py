# SPDX-License-Identifier: Apache-2.0
"""Rules about the receive window, and the congestion marks of routers (ECN)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.findings.cost import BY_COST, SECONDS, Saved
from wiretale.analyzer.findings.counts.count_rule import CountRule
from wiretale.analyzer.findings.model import Words, endpoint_str
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow

CHAPTER = "Receive window and congestion marks"


def seconds_of(ns: int | None) -> Saved | None:
    """Returns a time as a cost; None if it is unknown or 0."""
    return Saved(ns / 1e9, SECONDS) if ns else None


def closed_cost(row: DirectionRow) -> Saved | None:
    """Returns the time in which a window was closed; None if it is unknown, or if the capture ends when it closes."""
    is_open = row["zero_window_ns"] == 0 and row["window_shut_ns"] is None
    return Saved(0.0, SECONDS) if is_open else seconds_of(row["zero_window_ns"])


def zero_window_words(row: DirectionRow, count: int) -> Words:
    ns = row["zero_window_ns"]
    return {
        "receiver": endpoint_str(row["source"], row["source_port"]),
        "time": f" for {show_duration(ns)}: its application reads too slowly, and the sender had to wait" if ns else "",
    }


zero_window = CountRule(
    code="zero-window",
    title="Zero receive window",
    column="zero_windows",
    events=("zero_window",),
    severity=BY_COST,
    computed="Segments with window 0 after the handshake, and the time until the window reopened "
    "(directions.zero_window_ns).",
    unknown="Why the application did not read.",
    sentence="{receiver} announced a zero window in {count:segment}[{time}].",
    summary="announced a zero window",
    advice="Profile the receiving application and check its socket buffer; the network is not the limit.",
    words=zero_window_words,
    saves=lambda row, count: closed_cost(row),
)

window_full = CountRule(
    code="window-full",
    title="Receive window filled",
    column="window_full",
    events=("window_full",),
    severity="info",
    computed="Data whose last byte is the last that the receive window allows (directions.window_full).",
    unknown="Full windows if the capture point is near the receiver, because data passes it too late to be in flight "
    "there.",
    sentence="{name} filled the receive window {count:time}[: the window, not the network, limited the sender then].",
    summary="filled the receive window",
    advice="If the receiver announced a zero window as well, profile its application; otherwise raise its "
    "receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem) if the path should carry more.",
    saves=lambda row, count: seconds_of(row["time_window_ns"]),
)

congestion_marks = CountRule(
    code="congestion-marks",
    title="Congestion marks (ECN)",
    column="ecn_ce",
    applies=lambda row: row["ecn_ce"] < row["packets"],
    events=("congestion_mark",),
    unit="packets",
    severity="info",
    computed="IP packets marked Congestion Experienced (RFC 3168), unless all of a direction are. Then its sender may have "
    "set the mark, and none of its packets says that it is ECN-capable.",
    unknown="Which router marked them.",
    sentence="{name}: a router marked {count:packet} as Congestion Experienced[ (ECN)][: the sender slows down as after "
    "a loss, without one].",
    summary="had congestion marks",
    advice="Look for the queue that marks; it works as intended.",
)
