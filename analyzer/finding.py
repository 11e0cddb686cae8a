# SPDX-License-Identifier: Apache-2.0
"""One finding, and what rules need to make one: sums and names from the tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

SHOWN = 5  # rows that a sentence or its evidence names


@dataclass(frozen=True)
class Finding:
    """A row of the findings table (docs/tables.md)."""

    code: str
    severity: str
    scope: str
    sentence: str
    advice: str
    flow: int | None = None
    cost: float | None = None
    cost_unit: str | None = None
    evidence: str | None = None
    filter: str | None = None

    def row(self) -> tuple[str, str, str, int, str, float, str | None, str | None, str | None, str | None]:
        """As the core takes it: -1 and NaN for null."""
        flow = -1 if self.flow is None else self.flow
        cost = math.nan if self.cost is None else self.cost
        return (
            *(self.code, self.severity, self.scope, flow, self.sentence),
            *(cost, self.cost_unit, self.evidence, self.advice, self.filter),
        )


Rule = Callable[["Trace"], Iterator[Finding]]


def total(table: Table, column: str) -> int:
    """The sum of a column; nulls count nothing."""
    return sum(filter(None, table.column(column)))


def rows_with(table: Table, column: str) -> list[int]:
    """Numbers of the rows in which a column is neither null nor 0 nor false."""
    return [i for i, value in enumerate(table.column(column)) if value]


def row_at(table: Table, number: int) -> dict[str, Any]:
    """One row."""
    return table.rows(number, number + 1)[0]


def named(row: dict[str, Any]) -> str:
    """A flow or a direction as people write it."""

    def end(address: str, port: int | None) -> str:
        shown = f"[{address}]" if ":" in address and port is not None else address
        return shown if port is None else f"{shown}:{port}"

    return f"{end(row['source'], row['source_port'])} → {end(row['destination'], row['destination_port'])}"


def flows_named(trace: Trace, numbers: Sequence[int]) -> str:
    """The first few flows by name."""
    shown = "; ".join(f"flow {n} {named(row_at(trace.flows, n))}" for n in numbers[:SHOWN])
    return shown + (f"; and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else "")


def event_frames(trace: Trace, direction: dict[str, Any], kind: str) -> str | None:
    """The first frames of a direction's events of a kind."""
    events = trace.events
    flows, ways, kinds = events.column("flow"), events.column("direction"), events.column("kind")
    chosen = [
        flow == direction["flow"] and way == direction["direction"] and what == kind
        for flow, way, what in zip(flows, ways, kinds, strict=True)
    ]
    frames = list(compress(events.column("frame"), chosen))
    shown = ", ".join(map(str, frames[:SHOWN]))
    more = f" and {len(frames) - SHOWN:,} more" if len(frames) > SHOWN else ""
    return f"{'frame' if len(frames) == 1 else 'frames'} {shown}{more}" if frames else None
