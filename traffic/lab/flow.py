# SPDX-License-Identifier: Apache-2.0
"""Measures one flow of blocks from the captures before and after the link, joined by run, stream and sequence.

The link itself and its settings are not used. The latency of a packet is the difference of its two times. The minimum latency
is that of a packet that found an empty queue, so the transmission of each packet began that long before it was captured after
the link. The number of queued packets at any time follows from these times.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import WiretaleError

if TYPE_CHECKING:
    import duckdb

BIN_SECONDS = 0.1

# One row for each block before the link: its times before and after it (null if it was lost).
JOINED = """
CREATE TABLE joined AS
WITH sent AS (
    SELECT stream, sequence, bytes, min(complete_ns) AS in_ns
    FROM before_blocks WHERE complete_ns IS NOT NULL GROUP BY ALL
), received AS (
    SELECT stream, sequence, min(complete_ns) AS out_ns, count(*) AS copies
    FROM after_blocks WHERE complete_ns IS NOT NULL GROUP BY ALL
)
SELECT stream, sequence, bytes, in_ns, out_ns, coalesce(copies, 0) AS copies, out_ns - in_ns AS latency_ns
FROM sent LEFT JOIN received USING (stream, sequence)
"""
# The jitter of a packet: the difference of its latency from that of the packet received before it, divided by the difference of
# their sequence numbers.
JITTERS = """
CREATE TABLE jitters AS
SELECT out_ns, abs(latency_ns - lag(latency_ns) OVER packets) / nullif(abs(sequence - lag(sequence) OVER packets), 0)
    AS jitter_ns
FROM joined WHERE out_ns IS NOT NULL
WINDOW packets AS (PARTITION BY stream ORDER BY out_ns, sequence)
"""
# Queued packets at each arrival: the packets that have arrived, including this one unless it is lost, minus those whose
# transmission has begun.
QUEUE = """
CREATE TABLE queue AS
WITH begun AS (
    SELECT out_ns - (SELECT min(latency_ns) FROM joined) AS begin_ns,
        row_number() OVER (ORDER BY out_ns, sequence) AS begun
    FROM joined WHERE out_ns IS NOT NULL
), came AS (
    SELECT in_ns, count(out_ns) OVER (ORDER BY in_ns, sequence ROWS UNBOUNDED PRECEDING) AS came FROM joined
)
SELECT in_ns, came - coalesce(begun, 0) AS waiting
FROM came ASOF LEFT JOIN begun ON came.in_ns > begun.begin_ns
"""
# Rates are from the first to the last arrival, without the bits of the first packet.
TOTALS = """
SELECT count(*) AS packets_sent, count(out_ns) AS packets_received, count(*) - count(out_ns) AS packets_lost,
    avg(latency_ns) / 1e6 AS latency_ms, min(latency_ns) / 1e6 AS latency_ms_min,
    median(latency_ns) / 1e6 AS latency_ms_median, quantile_cont(latency_ns, 0.99) / 1e6 AS latency_ms_p99,
    max(latency_ns) / 1e6 AS latency_ms_max, min(in_ns) AS first_in_ns, max(in_ns) AS last_in_ns,
    min(out_ns) AS first_out_ns, max(out_ns) AS last_out_ns,
    (count(out_ns) - 1) * 8 * $packet * 1e9 / nullif(max(out_ns) - min(out_ns), 0) AS throughput_bps,
    (count(*) - 1) * 8 * $packet * 1e9 / nullif(max(in_ns) - min(in_ns), 0) AS offered_bps,
    count(out_ns) * $packet AS bytes_received
FROM joined
"""
# The largest delay of the sender: arrival of a packet at the link, minus its planned time.
LATENESS = """
SELECT max(in_ns - (SELECT min(in_ns) FROM joined) - sequence * $interval_ns) / 1e6 AS sender_late_ms FROM joined
"""
WAITS = """
SELECT (SELECT median(waiting) FROM queue) AS queue_packets, (SELECT max(waiting) FROM queue) AS queue_packets_max,
    quantile_cont(jitter_ns, 0.95) / 1e6 AS jitter_ms, avg(jitter_ns) / 1e6 AS jitter_ms_mean,
    max(jitter_ns) / 1e6 AS jitter_ms_max
FROM jitters
"""
BINS = """
WITH span AS (SELECT min(in_ns) AS start_ns, max(out_ns) - min(in_ns) AS length_ns FROM joined),
came AS (
    SELECT (in_ns - start_ns) // $width AS bin, count(*) AS sent, count(*) FILTER (out_ns IS NULL) AS lost,
        avg(latency_ns) / 1e6 AS latency_ms
    FROM joined, span GROUP BY ALL
), gone AS (
    SELECT (out_ns - start_ns) // $width AS bin, count(*) AS received, max(out_ns) AS last_ns
    FROM joined, span WHERE out_ns IS NOT NULL GROUP BY ALL
), waits AS (
    SELECT (in_ns - start_ns) // $width AS bin, max(waiting) AS waiting FROM queue, span GROUP BY ALL
), spread AS (
    SELECT (out_ns - start_ns) // $width AS bin, avg(jitter_ns) / 1e6 AS jitter_ms,
        max(jitter_ns) / 1e6 AS jitter_ms_max
    FROM jitters, span GROUP BY ALL
)
SELECT bin * $width / 1e9 AS seconds, coalesce(sent, 0) AS sent, coalesce(received, 0) AS received,
    coalesce(lost, 0) AS lost, latency_ms, jitter_ms, jitter_ms_max, waiting,
    CASE WHEN (bin + 1) * $width <= length_ns THEN coalesce(received, 0) * $packet * 8e9 / $width END AS throughput_bps,
    sum(coalesce(received, 0)) OVER bins * $packet * 8 / (least((bin + 1) * $width, length_ns) / 1e9)
        AS cumulative_throughput_bps,
    sum(coalesce(received, 0)) OVER bins * $packet AS bytes,
    sum(coalesce(lost, 0)) OVER bins AS lost_so_far
FROM came FULL JOIN gone USING (bin) FULL JOIN waits USING (bin) FULL JOIN spread USING (bin), span
WINDOW bins AS (ORDER BY bin ROWS UNBOUNDED PRECEDING)
ORDER BY bin
"""


@dataclass(frozen=True)
class FlowMeasures:
    """Totals of a flow, and its figures over time."""

    totals: dict[str, Any]
    bins: dict[str, list[Any]]


def rows_of(
    connection: duckdb.DuckDBPyConnection, query: str, values: dict[str, Any] | None = None
) -> dict[str, list[Any]]:
    """Returns the columns of the result of a query."""
    result = connection.execute(query, values or {})
    names = [column[0] for column in result.description]
    return dict(zip(names, map(list, zip(*result.fetchall(), strict=True)), strict=False)) or {
        name: [] for name in names
    }


def first_row(
    connection: duckdb.DuckDBPyConnection, query: str, values: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the first row of the result of a query."""
    return {name: column[0] for name, column in rows_of(connection, query, values).items()}


def load_blocks(connection: duckdb.DuckDBPyConnection, name: str, captured: Path, packets: str | None) -> None:
    """Makes a table of the blocks at a capture point, in packets that match a capture filter."""
    from wiretale.analyzer.trace import analyze

    trace = analyze(str(captured), filter=packets)
    connection.register("the_blocks", trace.blocks.with_integers())
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM the_blocks")
    connection.unregister("the_blocks")


def measure_flow(
    before: Path, after: Path, packet_bytes: int, interval_ns: float | None = None, packets: str | None = None
) -> FlowMeasures:
    """Returns the figures of a flow from its two captures. `packet_bytes` is the size of the IP packet of a block,
    `interval_ns` the planned time between packets, if there is one, and `packets` a capture filter if there are other blocks."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS

    with duckdb.connect(config=dict(SETTINGS)) as connection:
        load_blocks(connection, "before_blocks", before, packets)
        load_blocks(connection, "after_blocks", after, packets)
        for query in (JOINED, JITTERS, QUEUE):
            connection.execute(query)
        totals = first_row(connection, TOTALS, {"packet": packet_bytes})
        if not totals["packets_received"]:
            raise WiretaleError(f"{before}, {after}: no block is in both captures: nothing to measure")
        extra = first_row(connection, WAITS) | {"sender_late_ms": None}
        if interval_ns is not None:
            extra |= first_row(connection, LATENESS, {"interval_ns": interval_ns})
        values = {"width": round(BIN_SECONDS * 1e9), "packet": packet_bytes}
        bins = rows_of(connection, BINS, values)
    return FlowMeasures({**totals, **extra}, bins)
