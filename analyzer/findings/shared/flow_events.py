# SPDX-License-Identifier: Apache-2.0
"""The events of flows that many rules examine, read together: a reading of one flow passes over the whole table."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table

Rows = Iterator[tuple[Any, ...]]
#: of other columns: d
CODES = {"flow": "I", **dict.fromkeys(("direction", "kind", "place", "spurious", "evidence", "cause"), "B")}
TIMES = ("time_ns", "due_ns")
READ_TOGETHER = (*CODES, *TIMES, "frame", "related_frame", "bytes", "due_bytes", "capture")
TOGETHER_MAX = 20_000  # events, 1 MB: a flow with more is read alone, and only the columns that a rule needs


class FlowEvents:
    """Columns of the events of some flows; words are numbers, null numbers NaN, times differences from `base_ns`.

    Events stay packed: millions of Python objects would take more memory than the analysis.
    """

    def __init__(self, events: Table, flow_count: int, base_ns: int, examined: Sequence[int]) -> None:
        self._events, self._base_ns = events, base_ns
        self._counts = events._rows_by_flow(flow_count)
        self._examined = examined  # in the order in which rules read them
        self._place = {flow: place for place, flow in enumerate(examined)}
        self._rows: dict[int, list[int]] = {}  # of the flows whose columns are held
        self._columns: dict[str, array[Any]] = {}

    def _read(self, flows: list[int], names: Sequence[str]) -> list[array[Any]]:
        codes = [(name, CODES.get(name, "d"), self._base_ns if name in TIMES else 0, 1) for name in names]
        packed = self._events._packed_columns(codes, flows)
        return [array(code, data) for (_, code, _, _), data in zip(codes, packed, strict=True)]

    def _hold(self, flow: int) -> None:
        """Reads a flow, and those that will be read next."""
        left, flows = TOGETHER_MAX, []
        for following in self._examined[self._place[flow] :]:
            left -= self._counts[following]
            if left < 0:
                break
            flows.append(following)
        columns = self._read(sorted(flows), READ_TOGETHER)
        self._columns = dict(zip(READ_TOGETHER, columns, strict=True))
        self._rows = {following: [] for following in flows}
        for row, owner in enumerate(self._columns["flow"]):
            if owner in self._rows:  # events of the capture itself have no flow
                self._rows[owner].append(row)

    def of_flow(self, flow: int, names: Sequence[str]) -> Rows:
        """Returns these columns of one flow."""
        if not self._counts[flow]:
            return iter(())
        if flow not in self._place or self._counts[flow] > TOGETHER_MAX:
            return self.of_flows([flow], names)
        if flow not in self._rows:
            self._hold(flow)
        rows, columns = self._rows[flow], [self._columns[name] for name in names]
        return (tuple([column[row] for column in columns]) for row in rows)

    def of_flows(self, flows: list[int], names: Sequence[str]) -> Rows:
        """Returns these columns of flows, which must ascend."""
        return zip(*self._read(flows, names), strict=True)
