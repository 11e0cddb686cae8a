# SPDX-License-Identifier: Apache-2.0
"""The time accounts of all flows, by part: in columns, because a capture may have a million flows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FlowRow
    from wiretale.analyzer.table import Table


class Accounts(Mapping[int, dict[str, float]]):
    """The account of each flow that has one, in ns by part (columns time_*_ns of flows)."""

    def __init__(self, flows: Table[FlowRow], parts: Sequence[str], legs: Collection[int]) -> None:
        packed = flows._packed_columns([(f"time_{part}_ns", "d", 0, 1) for part in parts])
        self.columns = {part: array("d", data) for part, data in zip(parts, packed, strict=True)}
        first = self.columns[parts[0]]  # NaN without an account, in which no part is null
        self._flags = bytearray(ns == ns for ns in first)  # whether a flow has an account, and is judged
        for flow in legs:
            self._flags[flow] = 0

    def __getitem__(self, flow: int) -> dict[str, float]:
        """Returns the account of a flow. Raises KeyError if it has none."""
        if flow not in self:
            raise KeyError(flow)
        return {part: column[flow] for part, column in self.columns.items()}

    def __contains__(self, flow: object) -> bool:
        """Returns whether a flow has an account, and no other leg of it is judged."""
        return isinstance(flow, int) and 0 <= flow < len(self._flags) and bool(self._flags[flow])

    def __iter__(self) -> Iterator[int]:
        return compress(count(), self._flags)

    def __len__(self) -> int:
        return sum(self._flags)

    def take_off(self, flow: int, part: str, ns: float) -> None:
        """Takes time from a part."""
        column = self.columns[part]
        column[flow] = max(column[flow] - ns, 0.0)

    def total_ns(self, part: str) -> float:
        """Returns the time that all flows spent in a part."""
        return self.sum_of(self.columns[part])

    def sum_of(self, column: array[float]) -> float:
        """Returns the sum of a column of flows over those that have an account."""
        return math.fsum(compress(column, self._flags))
