# SPDX-License-Identifier: Apache-2.0
"""What is seldom more than 0 in the tables of directions and flows: read in one pass for all rules."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

Counts = list[tuple[int, int]]  # row, count
#: columns of what a healthy transfer hardly waits for: those that waited the longest are looked at, whatever their size
HELD = ("limit_delayed_ack_ns", "limit_window_ns", "limit_recovery_ns", "limit_timeout_ns")
COLUMNS = (
    *("blocks_corrupt", "blocks_duplicate", "blocks_head_of_line", "blocks_lost", "blocks_out_of_order", "ecn_ce"),
    *("fragment_overhead_bytes", "keep_alives", "capture_reordered", "lost_downstream", "lost_upstream"),
    *("mirror_duplicates", "network_duplicates", "out_of_order", "retransmissions", "sack_gaps"),
    *("spurious_retransmissions", "suspected_timeouts", "timeouts", "ambiguous", "unknown_duplicates", "unseen_bytes"),
    *("window_full", "zero_windows"),
    *HELD,
)
FLOW_COLUMNS = ("icmp_errors", "one_way")

_of_directions: WeakKeyDictionary[Trace, dict[str, Counts]] = WeakKeyDictionary()
_of_flows: WeakKeyDictionary[Trace, dict[str, Counts]] = WeakKeyDictionary()


def odd_counts(trace: Trace) -> dict[str, Counts]:
    """Of each of these columns of directions the rows, by number and value, where it is neither null nor 0."""
    if trace not in _of_directions:
        _of_directions[trace] = trace.directions.nonzero(COLUMNS)
    return _of_directions[trace]


def odd_flows(trace: Trace) -> dict[str, Counts]:
    """The same of flows."""
    if trace not in _of_flows:
        _of_flows[trace] = trace.flows.nonzero(FLOW_COLUMNS)
    return _of_flows[trace]


def forget(trace: Trace) -> None:
    """They are many where everything is odd."""
    _of_directions.pop(trace, None)
    _of_flows.pop(trace, None)
