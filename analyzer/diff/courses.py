# SPDX-License-Identifier: Apache-2.0
"""The course of a run over time, for the overlay of two runs: rates, stream position, RTTs and losses in bins, and the
distributions of RTT samples and block delays. Times count from the first packet of the run.

Bins of the series table begin at multiples of their width, which is a power of two in ms, so wider bins of that kind hold
whole ones. A direction with few packets has wider bins, which are spread over several at the same rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.run import Run, connect_tables

if TYPE_CHECKING:
    import duckdb

ALL = -1  # stands for all flows of a run
BINS = 500  # of the longer run, at most
BIN_LEAST_NS = 1_000_000
PACKETS_MOST = 500_000  # whose RTT samples are read
SHARES = 200  # points of a distribution
TABLES = ("flows", "directions", "series", "events", "blocks")

# For each flow: the direction with most payload, and the one with most RTT samples. A super-segment is several segments.
WAYS = """CREATE TEMP TABLE ways AS SELECT flow, arg_max(direction, (coalesce(payload_bytes, 0), direction = 0)) AS main,
    arg_max(direction, (coalesce(rtt_samples, 0), direction = 0)) AS timed FROM directions GROUP BY flow"""
RATES = """SELECT {key} AS key, s.start_ns // {width} + s.part AS bin,
    fsum(s.throughput_bps::DOUBLE * least(s.width_ns, {width})) FILTER ({counted}) / {width} AS throughput,
    fsum(coalesce(s.unique_bytes, s.goodput_bps::DOUBLE * s.width_ns / 8e9) / s.parts) FILTER ({counted}) AS payload,
    median(s.rtt_ns) FILTER (s.direction = w.timed AND s.part = s.parts // 2) / 1e6 AS rtt
FROM (SELECT *, greatest(1, width_ns // {width}) AS parts, unnest(range(greatest(1, width_ns // {width}))) AS part
    FROM series) AS s
JOIN ways AS w USING (flow) WHERE {which} GROUP BY ALL ORDER BY key, bin"""
LOSSES = """SELECT {key} AS key, s.time_ns // {width} AS bin,
    sum(CASE WHEN s.kind = 'block_lost' THEN coalesce(s.blocks, 1)
        WHEN d.wire_segments > d.data_packets AND s.bytes > d.wire_mss THEN ceil(s.bytes / d.wire_mss) ELSE 1 END) AS lost
FROM events AS s JOIN directions AS d USING (flow, direction) JOIN ways AS w USING (flow) WHERE {which} AND {counted}
    AND (s.kind = 'block_lost'
        OR s.kind LIKE '%retransmission' AND s.spurious IS NOT TRUE AND s.place IN ('upstream', 'downstream'))
    AND s.time_ns IS NOT NULL GROUP BY ALL ORDER BY key, bin"""
JUDGED = """SELECT {key} AS key, count(coalesce(lost_upstream, lost_downstream, blocks_lost)) AS judged
FROM directions AS s JOIN ways AS w USING (flow) WHERE {which} AND {counted} GROUP BY ALL"""
RTTS = """SELECT {key} AS key, count(*), quantile_disc(s.rtt_ns / 1e6, {shares})
FROM {source} AS s JOIN ways AS w USING (flow) WHERE {which} AND s.direction = {way} AND s.rtt_ns IS NOT NULL GROUP BY ALL"""
DELAYS = """SELECT {key} AS key, count(*), quantile_disc((s.latency_ns - least) / 1e6, {shares})
FROM (SELECT *, min(latency_ns) OVER (PARTITION BY flow, direction) AS least FROM blocks WHERE latency_ns IS NOT NULL) AS s
JOIN ways AS w USING (flow) WHERE {which} AND {counted} GROUP BY ALL"""


@dataclass
class Course:
    """One flow of a run, or all; x of bins in seconds since the run's first packet."""

    x: list[float] = field(default_factory=list)
    #: bit/s of IP in each bin; 0 without packets
    throughput: list[float] = field(default_factory=list)
    #: unique payload so far, at the end of each bin
    position: list[float] = field(default_factory=list)
    #: ms, the median of the least RTTs in each bin; None without a sample
    rtt: list[float | None] = field(default_factory=list)
    #: segments, and blocks over UDP, lost so far, at the end of each bin; empty if losses were not judged
    lost: list[float] = field(default_factory=list)
    #: ms at equal shares from 0 to 1
    rtt_shares: list[float] = field(default_factory=list)
    delay_shares: list[float] = field(default_factory=list)
    rtt_samples: int = 0
    delay_samples: int = 0


@dataclass
class Courses:
    """The courses of one run by flow; ALL for the sum of all flows."""

    width_s: float
    by_flow: dict[int, Course]
    #: whether RTT distributions are of all samples, not of the least of each bin
    exact: bool


@contextmanager
def connect_run(run: Run, names: Sequence[str] = TABLES) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens the tables of a capture that load_run() kept, or of a folder."""
    if run.trace is None:
        with connect_tables(run.path, names) as connection:
            yield connection
        return
    from wiretale.analyzer.query import connect

    with connect(run.trace) as connection:
        yield connection


def has_courses(run: Run) -> bool:
    """Returns whether a run has packets over time; reports of the generator have sums alone."""
    return bool(run.total.get("packets")) and (run.trace is not None or run.kind == "tables")


def can_read_samples(run: Run) -> bool:
    """Returns whether the packets of a run, and so all its RTT samples, can be read."""
    return run.trace is not None and run.trace.packets_made and (run.total.get("packets") or 0) <= PACKETS_MOST


def bin_width(runs: Sequence[Run]) -> int:
    """Returns the least width in ns that divides the longer run into BINS at most."""
    width, longest = BIN_LEAST_NS, max(run.total.get("duration") or 0 for run in runs)
    while width * BINS < longest:
        width *= 2
    return width


def rows(
    connection: duckdb.DuckDBPyConnection, sql: str, flows: Sequence[int], **words: object
) -> list[tuple[Any, ...]]:
    """Returns the rows of a query for all flows together, then for some: of each, the direction with most payload."""
    some = f"s.flow IN ({', '.join(map(str, flows)) or 'NULL'})"
    every = connection.execute(sql.format(key=ALL, which="true", counted="true", **words)).fetchall()
    main = sql.format(key="s.flow", which=some, counted="s.direction = w.main", **words)
    return every + connection.execute(main).fetchall()


def by_flow(numbered_rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    """Returns the rows of each flow, without its number."""
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for flow, *row in numbered_rows:
        groups.setdefault(flow, []).append(tuple(row))
    return groups


def course_of(rates: list[tuple[Any, ...]], lost: dict[int, float] | None, width_ns: int, first_ns: int) -> Course:
    """Returns the bins of one flow, also those without packets; `lost` by bin is None if losses were not judged."""
    by_bin = {bin: row for bin, *row in rates}
    bins = range(min(by_bin), max(by_bin) + 1) if by_bin else range(0)
    each = [by_bin.get(bin, (0.0, 0.0, None)) for bin in bins]
    return Course(
        x=[max(0.0, (bin * width_ns - first_ns) / 1e9) for bin in bins],
        throughput=[row[0] or 0.0 for row in each],
        position=list(accumulate(row[1] or 0.0 for row in each)),
        rtt=[row[2] for row in each],
        lost=[] if lost is None else list(accumulate(lost.get(bin, 0.0) for bin in bins)),
    )


def courses(run: Run, flows: Sequence[int], width_ns: int, exact: bool) -> Courses:
    """Returns the courses of all flows together and of some. If `exact`, the packets are read for their RTT samples."""
    shares = [n / SHARES for n in range(SHARES + 1)]
    with connect_run(run) as connection:
        connection.execute(WAYS)
        (first_ns,) = connection.execute("SELECT min(first_ns) FROM flows").fetchone() or (None,)
        rates = by_flow(rows(connection, RATES, flows, width=width_ns))
        losses = by_flow(rows(connection, LOSSES, flows, width=width_ns))
        judged = {flow for flow, count in rows(connection, JUDGED, flows) if count}
        if exact and run.trace is not None:
            connection.register("packets", run.trace.table("packets").with_integers())
        # A sample is in the packet that acknowledges, of the other direction.
        source = {"source": "packets", "way": "1 - w.timed"} if exact else {"source": "series", "way": "w.timed"}
        rtts = rows(connection, RTTS, flows, shares=shares, **source)
        delays = rows(connection, DELAYS, flows, shares=shares)
    made = {}
    for flow in (ALL, *flows):
        lost = dict(losses.get(flow, ())) if flow in judged else None
        made[flow] = course_of(rates.get(flow, []), lost, width_ns, first_ns or 0)
    for flow, count, values in rtts:
        made[flow].rtt_samples, made[flow].rtt_shares = count, values or []
    for flow, count, values in delays:
        made[flow].delay_samples, made[flow].delay_shares = count, values or []
    return Courses(width_ns / 1e9, made, exact)
