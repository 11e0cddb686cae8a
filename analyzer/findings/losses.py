# SPDX-License-Identifier: Apache-2.0
"""Where and when the packets of a direction were lost, from its events."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.model import events_of, word_numbers
from wiretale.analyzer.findings.transfers import Bins, Transfer

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

EVENTS_MOST = 5000  # of a direction; a pattern shows in these
RESENDS = ("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission")


class Loss(NamedTuple):
    """A lost packet or run of them: about where it stood, when it showed, how many."""

    frame: int
    time_ns: float
    packets: int = 1


def losses_of(trace: Trace, one: Transfer) -> list[Loss]:
    """The losses of a direction, in their order."""
    numbers = word_numbers()
    resends, lost = {numbers[name] for name in RESENDS}, numbers["block_lost"]
    somewhere = {numbers["upstream"], numbers["downstream"]}
    names = ("direction", "kind", "place", "spurious", "frame", "related_frame", "time_ns")
    columns = zip(*events_of(trace, [one.row["flow"]], names), strict=True)
    found: list[Loss] = []
    for direction, kind, place, spurious, frame, related, time_ns in columns:
        if direction != one.row["direction"] or len(found) == EVENTS_MOST:
            continue
        if kind == lost or (kind in resends and place in somewhere and spurious != 1):
            sent = frame if kind == lost or math.isnan(related) else related
            found.append(Loss(int(sent), time_ns))
    return sorted(found, key=lambda loss: (loss.frame, loss.time_ns))


def lossy_bins(trace: Trace, one: Transfer, bins: Bins) -> list[bool]:
    """For each time bin of a direction, whether a loss showed in it."""
    lossy = [False] * len(bins.start_ns)
    for loss in losses_of(trace, one):
        place = bisect_right(bins.start_ns, loss.time_ns) - 1
        if place >= 0:
            lossy[place] = True
    return lossy
