# SPDX-License-Identifier: Apache-2.0
"""Places of a transfer's evidence: the packets around its longest waits, and those that lost the most."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.evidence import AFTER, BEFORE, CITED, Cited
from wiretale.analyzer.findings.model import row_at

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfer, Transfers
    from wiretale.analyzer.rows import DirectionRow, FlowRow

#: columns of waits after direction and kind
ENDS = ("before_frame", "before_ns", "before_capture", "after_frame", "after_ns", "after_capture")


class Wait(NamedTuple):
    """One of the longest waits: the packets that began and ended it."""

    before: Cited | None  # None: the packet with the greatest transit time waited by itself
    after: Cited


def cited_at(flow: int, base_ns: int, role: str, frame: float, since: float, capture: float) -> Cited:
    """Returns a packet by packed values, of which NaN is null; its time is relative to `base_ns`."""
    numbers = [None if math.isnan(value) else int(value) for value in (frame, since, capture)]
    return Cited(numbers[0], None if numbers[1] is None else base_ns + numbers[1], flow, numbers[2], role)


def waits_of(transfers: Transfers, row: DirectionRow, kind: str) -> list[Wait]:
    """Returns the waits of a kind of a directions row, the longest first."""
    if row["flow"] not in transfers.waits:
        transfers.waits[row["flow"]] = read_waits(transfers, row["flow"])
    return transfers.waits[row["flow"]].get((row["direction"], transfers.words[kind]), [])


def read_waits(transfers: Transfers, flow: int) -> dict[tuple[int, int], list[Wait]]:
    """Returns the waits of a flow by direction and the number of the kind."""
    base_ns = transfers.base_ns
    fields = [("direction", "B", 0, 1), ("kind", "B", 0, 1)]
    fields += [(name, "d", base_ns if name.endswith("_ns") else 0, 1) for name in ENDS]
    packed = transfers.trace.waits._packed_columns(fields, [flow])
    columns = (array(code, data) for (_, code, _, _), data in zip(fields, packed, strict=True))
    waits: dict[tuple[int, int], list[Wait]] = {}
    for direction, kind, *ends in zip(*columns, strict=True):
        before = cited_at(flow, base_ns, BEFORE, *ends[:3])
        wait = Wait(before if before.frame else None, cited_at(flow, base_ns, AFTER, *ends[3:]))
        waits.setdefault((direction, kind), []).append(wait)
    return waits


def around(transfers: Transfers, wait: Wait) -> list[Cited]:
    """Returns the packets before and after a wait; the packet after it alone if the file of the other is not known."""
    before, after = wait
    if before and transfers.has_one_file:  # whatever its interface: frames of a file compare
        before = before._replace(capture=after.capture)
    return [before, after] if before and before.capture is not None else [after]


def longest_wait(transfers: Transfers, row: DirectionRow, kind: str) -> list[Cited]:
    """Returns the packets around the longest wait of a kind of a directions row; nothing if there was none."""
    return [packet for wait in waits_of(transfers, row, kind)[:1] for packet in around(transfers, wait)]


def stalls_of(transfers: Transfers, row: DirectionRow) -> list[Cited]:
    """Returns the packets around the longest RTO stalls of a directions row, the longest first."""
    return [packet for wait in waits_of(transfers, row, "timeout") for packet in around(transfers, wait)]


def slowest_packet(transfers: Transfers, transfer: Transfer) -> list[Cited]:
    """Returns the numbered packet of a transfer that took the longest; nothing if it is not known."""
    return [packet._replace(role=CITED) for packet in longest_wait(transfers, transfer.row, "slowest")]


def slow_start_of(transfers: Transfers, transfer: Transfer) -> list[Cited]:
    """Returns the first packet of a transfer, and the data with which bytes in flight last doubled; nothing if that is not
    known, because few packets followed."""
    end = [packet._replace(role=CITED) for packet in longest_wait(transfers, transfer.row, "slow_start")[-1:]]
    return (
        [opening(transfers, transfer)[0]._replace(capture=end[0].capture), *end]
        if end and transfers.has_one_file
        else end
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


def opening(transfers: Transfers, transfer: Transfer) -> list[Cited]:
    """Returns the first packet of a flow: the SYN that offers its options, or the first without it."""
    return [transfers.span(transfer.row["flow"])[0]._replace(role=CITED)]


def most_lost(transfers: Transfers, transfer: Transfer) -> list[Cited]:
    """Returns the packets that showed the losses in the time bin of a direction with the most of them."""
    starts = transfers.bins(transfer).start_ns
    lost: dict[int, list[Cited]] = {}
    for loss in transfers.losses(transfer):
        if loss.packet is not None:
            lost.setdefault(bisect_right(starts, loss.time_ns), []).append(loss.packet)
    return max(lost.values(), key=len, default=[])
