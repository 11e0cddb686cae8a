# SPDX-License-Identifier: Apache-2.0
"""Places of a transfer's evidence: the packets around its longest waits, and those that lost the most."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.model import Cited, row_at, stalls_of

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
            ends = ((first, before_ns), (last, after_ns))
            cited = [Cited(frame, began + ns, row["flow"], capture) for frame, ns in ends]
            return cited if transfers.has_one_file else cited[1:]
    return []


def slow_start_of(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the first packet of a transfer, and the data with which bytes in flight last doubled; nothing if that is not
    known, because few packets followed."""
    first, end = transfers.span(one.row["flow"])[0], longest_wait(transfers, one.row, "slow_start")[-1:]
    return [first._replace(capture=end[0].capture), *end] if end and transfers.has_one_file else end


def packet_at(transfers: Transfers, flow: FlowRow, frame: int | None, time_ns: int | None) -> list[Cited]:
    """Returns a packet of a flow by its frame and time in a table without captures: that of the flow's first packet; nothing
    if the frame is null, or if it is of a file after that one."""
    capture = row_at(transfers.trace.interfaces, flow["first_capture"])
    began, ended = capture["first_ns"], capture["last_ns"]
    if time_ns is None or began is None or ended is None or not began <= time_ns <= ended:
        frame = frame if transfers.has_one_file else None
    return [] if frame is None else [Cited(frame, time_ns, flow["flow"], flow["first_capture"])]


def opening(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the first packet of a flow: the SYN that offers its options, or the first without it."""
    return transfers.span(one.row["flow"])[:1]


def most_lost(transfers: Transfers, one: Transfer) -> list[Cited]:
    """Returns the packets that showed the losses in the time bin of a direction with the most of them."""
    starts = transfers.bins(one).start_ns
    lost: dict[int, list[Cited]] = {}
    for loss in transfers.losses(one):
        if loss.shown is not None:
            lost.setdefault(bisect_right(starts, loss.time_ns), []).append(loss.shown)
    return max(lost.values(), key=len, default=[])


def stalled_at(transfers: Transfers, row: DirectionRow) -> list[Cited]:
    """Returns the packets around the longest stall of a directions row; nothing if its frames or its end are not known."""
    stalls = stalls_of(row)
    if not stalls:
        return []
    names = ("kind", "direction", "frame", "time_ns", "capture")
    flow, (before, after), kinds = row["flow"], stalls[0], {transfers.words[kind] for kind in STALL_ENDS}
    for kind, direction, frame, since, capture in transfers.events([flow], *names):
        if kind in kinds and direction == row["direction"] and frame == after:
            end = transfers.cited(frame, since, flow, capture)
            lasted = (row["stall_ns"] or "").split(", ")[0]
            begin_ns = None if end.time_ns is None or not lasted else end.time_ns - int(lasted)
            return [end._replace(frame=before, time_ns=begin_ns), end] if transfers.has_one_file else [end]
    return []
