# SPDX-License-Identifier: Apache-2.0
"""Sizes and gaps of the datagrams of UDP flows, from the table `packets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wiretale.traffic.model.samples import Samples
from wiretale.traffic.pattern import GAP_MOST, SIZE_LEAST, SIZE_MOST

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

# Fragments of a datagram are one datagram. A gap ends with the next datagram of the same direction.
ADD = f"""
INSERT INTO samples
WITH numbered AS (
    SELECT flow, direction, time_ns, payload_bytes,
        count(*) FILTER (coalesce(fragment_offset, 0) = 0)
            OVER (PARTITION BY flow, direction ORDER BY time_ns, frame) AS number
    FROM packets
), whole AS (
    SELECT flow, direction, number, min(time_ns) AS time_ns, sum(payload_bytes)::BIGINT AS size
    FROM numbered WHERE number > 0 GROUP BY ALL
)
SELECT $run, flow, direction, number, time_ns, least(greatest(size, {SIZE_LEAST}), {SIZE_MOST}),
    CASE WHEN next_ns IS NOT NULL THEN least(greatest(next_ns - time_ns, 0), {GAP_MOST}) END
FROM (SELECT *, lead(time_ns) OVER (PARTITION BY flow, direction ORDER BY number) AS next_ns FROM whole)
"""


class Datagrams(Samples):
    """The datagrams of some UDP flows of one analysis, or of several. Sizes and gaps are clipped to those that a pattern can
    have."""

    COLUMNS = ("size", "gap")
    LINE = "size, coalesce(gap, 0)"

    def __init__(self) -> None:
        super().__init__()
        self.dropped = 0  # packets above the limit of the table

    def add(self, trace: Trace, flows: Sequence[int], run: int = 0) -> Datagrams:
        """Adds flows of an analysis."""
        self.connection.register("packets", trace.packets(flows).with_integers())
        self.connection.execute(ADD, {"run": run})
        self.connection.unregister("packets")
        self.dropped += int(trace.totals["packets_rows_dropped"])
        return self
