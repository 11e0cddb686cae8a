# SPDX-License-Identifier: Apache-2.0
"""Places of a transfer's evidence: the packets around its longest waits, and those that lost the most."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.evidence import AFTER, BEFORE, CITED, Cited
from wiretale.analyzer.findings.model import row_at

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfer, Transfers
    from wiretale.analyzer.rows import DirectionRow, FlowRow

STALL_ENDS = ("timeout_retransmission", "suspected_timeout")
#: a wait of directions.longest_waits: kind, frames, times since first_ns, capture
WAIT = re.compile(r"(\w+) (\d+)-(\d+) (-?\d+)-(-?\d+) (\d+)")


def longest_wait(transfers: Transfers, row: DirectionRow, kind: str) -> list[Cited]:
    """Returns the packets before and after the longest wait of a kind of a directions row; nothing if it is not known. Of
    several files, the last packet alone, because only its capture is known."""
    began = row["first_ns"]
    for found in WAIT.finditer(row["longest_waits"] or ""):
        if found[1] == kind and began is not None:
            first, last, before_ns, after_ns, capture = map(int, found.groups()[1:])
            ends = ((first, before_ns, BEFORE), (last, after_ns, AFTER))
            cited = [Cited(frame, began + ns, row["flow"], capture, role) for frame, ns, role in ends]
            return cited if transfers.has_one_file else cited[1:]
    return []


def slowest_packet(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the numbered packet of a transfer that took the longest; nothing if it is not known."""
    return [packet._replace(role=CITED) for packet in longest_wait(transfers, one.row, "slowest")[:1]]


def slow_start_of(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the first packet of a transfer, and the data with which bytes in flight last doubled; nothing if that is not
    known, because few packets followed."""
    end = [packet._replace(role=CITED) for packet in longest_wait(transfers, one.row, "slow_start")[-1:]]
    return (
        [opening(transfers, one)[0]._replace(capture=end[0].capture), *end] if end and transfers.has_one_file else end
    )


def packet_at(
    transfers: Transfers, flow: FlowRow, frame: int | None, time_ns: int | None, role: str = CITED
) -> list[Cited]:
    """Returns a packet of a flow by its frame and time in a table without captures: that of the flow's first packet; nothing
    if the frame is null, or if it is of a file after that one."""
    capture = row_at(transfers.trace.interfaces, flow["first_capture"])
    began, ended = capture["first_ns"], capture["last_ns"]
    if time_ns is None or began is None or ended is None or not began <= time_ns <= ended:
        frame = frame if transfers.has_one_file else None
    return [] if frame is None else [Cited(frame, time_ns, flow["flow"], flow["first_capture"], role)]


def opening(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the first packet of a flow: the SYN that offers its options, or the first without it."""
    return [transfers.span(one.row["flow"])[0]._replace(role=CITED)]


def most_lost(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the packets that showed the losses in the time bin of a direction with the most of them."""
    starts = transfers.bins(one).start_ns
    lost: dict[int, list[Cited]] = {}
    for loss in transfers.losses(one):
        if loss.shown is not None:
            lost.setdefault(bisect_right(starts, loss.time_ns), []).append(loss.shown)
    return max(lost.values(), key=len, default=[])


def stall_frames(row: DirectionRow) -> list[tuple[int, int]]:
    """Returns the frames before and after the longest stalls of a directions row, longest first."""
    pairs = [pair.split("-") for pair in (row["stall_frames"] or "").split(", ") if pair]
    return [(int(first), int(last)) for first, last in pairs]


def stalls_of(transfers: Transfers, row: DirectionRow) -> list[Cited]:
    """Returns the packets before and after the longest stalls of a directions row, longest first; none of several files,
    because theirs are unknown."""
    pairs, flow = stall_frames(row) if transfers.has_one_file else [], row["flow"]
    capture = row_at(transfers.trace.flows, flow)["first_capture"] if pairs else None
    return [
        Cited(frame, None, flow, capture, role)
        for pair in pairs
        for frame, role in zip(pair, (BEFORE, AFTER), strict=True)
    ]


def stalled_at(transfers: Transfers, row: DirectionRow) -> list[Cited]:
    """Returns the packets around the longest stall of a directions row; nothing if its frames or its end are not known."""
    stalls = stall_frames(row)
    if not stalls:
        return []
    names = ("kind", "direction", "frame", "time_ns", "capture")
    flow, (before, after), kinds = row["flow"], stalls[0], {transfers.words[kind] for kind in STALL_ENDS}
    for kind, direction, frame, since, capture in transfers.events([flow], *names):
        if kind in kinds and direction == row["direction"] and frame == after:
            end = transfers.cited(frame, since, flow, capture, AFTER)
            lasted = (row["stall_ns"] or "").split(", ")[0]
            begin_ns = None if end.time_ns is None or not lasted else end.time_ns - int(lasted)
            return [Cited(before, begin_ns, flow, end.capture, BEFORE), end] if transfers.has_one_file else [end]
    return []
