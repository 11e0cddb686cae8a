# SPDX-License-Identifier: Apache-2.0
"""Which flows a page or a terminal shows when it cannot show all: the largest, and those with the most trouble."""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

TROUBLE = ("retransmissions", "gaps", "out_of_order", "zero_windows", "incomplete_datagrams", "resets")
BLOCK_TROUBLE = ("blocks_lost", "blocks_out_of_order", "blocks_duplicate", "blocks_corrupt")


def trouble_counts(trace: Trace) -> list[int]:
    """For each flow how often something went wrong in it, whatever it was."""
    trouble = [0] * len(trace.flows)
    for counts in trace.directions.nonzero(TROUBLE + BLOCK_TROUBLE).values():
        for number, count in counts:
            trouble[number // 2] += count
    return trouble


def choose_flows(trace: Trace, largest: int, troubled: int) -> tuple[list[int], list[int]]:
    """Numbers of the largest flows by wire bytes, and of the others those with the most trouble (none without)."""
    sizes = trace.flows.column("wire_bytes")
    first = nlargest(largest, range(len(sizes)), key=sizes.__getitem__)
    trouble = trouble_counts(trace)
    for number in first:
        trouble[number] = 0
    worst = nlargest(troubled, range(len(sizes)), key=trouble.__getitem__)
    return first, [number for number in worst if trouble[number]]
