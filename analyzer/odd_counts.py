# SPDX-License-Identifier: Apache-2.0
"""What is seldom more than 0 in the directions table: read once for all rules, which each pass over it would cost more."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

Counts = list[tuple[int, int]]  # directions row, count
#: columns of what a healthy transfer hardly waits for: those that waited the longest are looked at, whatever their size
HELD = ("limit_delayed_ack_ns", "limit_window_ns", "limit_recovery_ns", "limit_timeout_ns")
COLUMNS = (
    *("blocks_corrupt", "blocks_duplicate", "blocks_head_of_line", "blocks_lost", "blocks_out_of_order", "ecn_ce"),
    *("fragment_overhead_bytes", "keep_alives", "late_stored", "lost_downstream", "lost_upstream"),
    *("mirror_duplicates", "network_duplicates", "out_of_order", "retransmissions", "sack_holes"),
    *("spurious_retransmissions", "suspected_timeouts", "timeouts", "undecided", "unknown_duplicates", "unseen_bytes"),
    *("window_full", "zero_windows"),
    *HELD,
)

_counts: WeakKeyDictionary[Trace, dict[str, Counts]] = WeakKeyDictionary()


def odd_counts(trace: Trace) -> dict[str, Counts]:
    """Of each of these columns the rows, by number and value, where it is neither null nor 0."""
    if trace not in _counts:
        _counts[trace] = trace.directions.nonzero(COLUMNS)
    return _counts[trace]
