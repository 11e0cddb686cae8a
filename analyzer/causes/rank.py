# SPDX-License-Identifier: Apache-2.0
"""The rank of a cause, or of findings that no cause explains: what the person should hear first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wiretale.analyzer.causes.cause import CERTAINTIES

UNJUDGED_MOST = 0.2  # of the packets: a fault of the capture that leaves more open is the answer
BLIND, FAILED, WAITED, WASTED, NOTED = range(5)


def class_of(row: Mapping[str, Any]) -> int:
    """Returns the class of a row of causes: the capture leaves much open, failures, waits, waste, notes."""
    if (row["unjudged"] or 0.0) > UNJUDGED_MOST:
        return BLIND
    if row["severity"] == "info":
        return NOTED
    return FAILED if row["failed"] else WAITED if row["waited_ns"] else WASTED


def rank_of(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Returns the sort key of a row of causes: its class, faults of the capture last; then its cost and its certainty."""
    return (
        class_of(row),
        row["place"] == "capture",
        -(row["unjudged"] or 0.0),
        -(row["waited_ns"] or 0),
        -(row["failed"] or 0),
        -(row["bytes"] or 0),
        CERTAINTIES.index(row["certainty"]),
    )
