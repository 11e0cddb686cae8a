# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of TCP flows, from the table `exchanges`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.traffic.model.samples import Samples
from wiretale.traffic.pattern import GAP_MOST, MESSAGE_MOST, SIZE_LEAST

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

# A pause is before its request, so the gap of a turn is the pause of the next one. Requests without a response are left out.
ADD = f"""
INSERT INTO samples
SELECT $run, flow, direction, turn, asked_ns,
    least(greatest(request_bytes, {SIZE_LEAST}), {MESSAGE_MOST}), least(greatest(response_bytes, {SIZE_LEAST}), {MESSAGE_MOST}),
    CASE WHEN server_ns IS NOT NULL THEN least(greatest(server_ns, 0), {GAP_MOST}) END,
    CASE WHEN next_ns IS NOT NULL THEN least(greatest(next_ns, 0), {GAP_MOST}) END
FROM (SELECT *, lead(pause_ns) OVER (PARTITION BY flow, direction ORDER BY turn) AS next_ns FROM exchanges WHERE turn IS NOT NULL)
WHERE response_bytes IS NOT NULL
"""


class Turns(Samples):
    """The turns of all TCP flows of one analysis, or of several. Sizes and times are clipped to those that a file can have."""

    COLUMNS = ("request", "response", "server", "pause")
    LINE = "request, coalesce(pause, 0), response, coalesce(server, 0)"

    def add(self, trace: Trace, run: int = 0) -> Turns:
        """Adds the turns of an analysis."""
        self.connection.register("exchanges", trace.exchanges.with_integers())
        self.connection.execute(ADD, {"run": run})
        self.connection.unregister("exchanges")
        return self

    def direction(self, flow: int, run: int = 0) -> int:
        """Returns the direction of most requests of a flow."""
        query = "SELECT direction FROM samples WHERE run = ? AND flow = ? GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        return int((self.row(query, [run, flow]) or (0,))[0])
