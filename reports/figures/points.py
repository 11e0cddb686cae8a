# SPDX-License-Identifier: Apache-2.0
"""The points of a flow's figure, by the keys of its series.

DuckDB selects and thins them, so that Python handles only the points that are drawn. If a series has more than `most` points,
each of most / 4 columns of equal time keeps its first, last, least and greatest. A picture of so many pixels therefore has the
outline that all points would have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING

from wiretale.analyzer.options import PACKETS_MAX
from wiretale.analyzer.query import connect
from wiretale.reports.figures.lanes import Lane, lanes_of
from wiretale.reports.figures.styles import MARK_OF
from wiretale.reports.html.packing import base_time

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

KEPT = 4  # points of a column
# Bins of the throughput, as in page/flow/series/rates.js.
BINS_USUAL, PACKETS_PER_BIN = (12, 160), 4
WITH_MARGINS, LEAST_NS = 1.02, 2_000_000  # the range of the page of a whole flow


def round_step(value: float) -> float:
    """Returns the least of 1, 2 and 5 times a power of ten that is not below a value."""
    power = 10.0 ** floor(log10(value))
    return power * next((step for step in (1, 2, 5) if step * power >= value * (1 - 1e-9)), 10)


@dataclass(frozen=True)
class Points:
    """The points of one series in order of time; bars reach from y to y2. Unknown values are None."""

    x: list[float]
    y: list[float]
    y2: list[float | None]
    frames: list[int | None]
    texts: list[str | None]


# Each query returns time_ns, y, y2, frame, text; those of several series also key.
# A bin is a step. If the next one does not follow, the value is 0 from its end on.
STEPS = """
SELECT unnest([start_ns, CASE WHEN ended THEN start_ns + width_ns END]) AS time_ns,
    unnest([{y}, CASE WHEN {y} IS NOT NULL THEN 0 END]) AS y, NULL AS y2, NULL AS frame, NULL AS text
FROM (SELECT *, coalesce(lead(start_ns) OVER (ORDER BY start_ns) > start_ns + width_ns, true) AS ended
    FROM series WHERE flow = {flow} AND direction = {direction})
"""
BINS = """
SELECT start_ns + {after} AS time_ns, {y} AS y, NULL AS y2, NULL AS frame, NULL AS text FROM series
WHERE flow = {flow} AND direction = {direction}
"""
# Bits per second in bins, whose width is that of the page.
RATES = """
SELECT {base_ns} + every.k * {bin_ns} AS time_ns, coalesce(bits, 0) * 1e9 / {bin_ns} AS y, NULL AS y2, NULL AS frame, NULL AS text
FROM (SELECT unnest(range({first}, {last} + 2)) AS k) AS every
LEFT JOIN (SELECT (time_ns - {base_ns}) // {bin_ns} AS k, 8 * sum({bytes})::DOUBLE AS bits FROM {source} GROUP BY 1) AS filled
    ON filled.k = least(every.k, {last})
"""
ADVANCES = """(SELECT time_ns, top - lag(top) OVER (ORDER BY time_ns, capture, frame) AS advance FROM (
    SELECT time_ns, capture, frame, max(acknowledged) OVER (ORDER BY time_ns, capture, frame ROWS UNBOUNDED PRECEDING) AS top
    FROM flow_packets WHERE direction = {answering} AND acknowledged IS NOT NULL AND time_ns IS NOT NULL))"""
PACKETS = "SELECT time_ns, {y} AS y, {y2} AS y2, frame, {text} AS text FROM flow_packets WHERE {where}"
SACKS = " UNION ALL ".join(
    f"SELECT time_ns, {name}_start AS y, {name}_end AS y2, frame, format('SACK {{:,}} to {{:,}}', {name}_start, {name}_end) AS "
    f"text FROM flow_packets WHERE {name}_end IS NOT NULL"
    for name in ("sack", "sack2", "sack3", "sack4")
)
SEGMENT = "format('{:,} bytes of payload from {:,}', payload_bytes, sequence)"
# Bytes between the last one sent and the last one acknowledged, at the capture point.
FLIGHT = """
SELECT time_ns, if(sent < acknowledged, 0, sent - acknowledged) AS y, NULL AS y2, frame, NULL AS text FROM (
    SELECT time_ns, frame, max(sequence + payload_bytes) FILTER (direction = {main}) OVER place AS sent,
        max(acknowledged) FILTER (direction <> {main}) OVER place AS acknowledged
    FROM flow_packets WINDOW place AS (ORDER BY time_ns, capture, frame ROWS UNBOUNDED PRECEDING))
"""
# Other protocols: the payload so far.
SO_FAR = """
SELECT time_ns, sum(payload_bytes) OVER place - payload_bytes AS y, sum(payload_bytes) OVER place AS y2, frame,
    format('{{:,}} bytes of payload', payload_bytes) AS text
FROM flow_packets WHERE direction = {direction}
WINDOW place AS (ORDER BY time_ns, capture, frame ROWS UNBOUNDED PRECEDING)
"""
SPACING = """
SELECT time_ns, (time_ns - lag(time_ns) OVER (ORDER BY time_ns, capture, frame)) / 1e6 AS y, NULL AS y2, frame, NULL AS text
FROM flow_packets WHERE direction = {direction}
"""
KEY = "CASE kind " + " ".join(f"WHEN '{kind}' THEN '{mark}'" for kind, mark in MARK_OF.items()) + " ELSE kind END"
# A mark is at the sequence number of its segment, or at the acknowledgment number if it is an ACK.
MARKED = f"""
SELECT {KEY} AS key, e.time_ns, {{y}} AS y, NULL AS y2, e.frame, concat_ws(', ', replace(kind, '_', ' '),
    CASE WHEN spurious THEN 'spurious' END, place, CASE WHEN bytes IS NOT NULL THEN format('{{{{:,}}}} bytes', bytes) END,
    'by ' || replace(evidence, '_', ' '), 'see frame ' || related_frame) AS text
FROM events AS e JOIN flow_packets AS p USING (capture, frame, direction) WHERE e.flow = {{flow}}
"""
# The originals of segments whose retransmission proves their loss.
LOSS = "kind LIKE '%retransmission' AND NOT coalesce(spurious, false) AND place IN ('upstream', 'downstream')"
ORIGINALS = f"""
SELECT 'lost' AS key, p.time_ns, p.sequence AS y, NULL AS y2, p.frame,
    format('lost {{{{}}}}, retransmitted in frame {{{{}}}}', place, e.frame) AS text
FROM events AS e JOIN flow_packets AS p ON p.capture = e.capture AND p.direction = e.direction AND p.frame = e.related_frame
WHERE e.flow = {{flow}} AND e.direction = {{main}} AND p.payload_bytes > 0 AND {LOSS}
"""
LEAST = """
SELECT unnest([first_ns, last_ns]) AS time_ns, least AS y, NULL AS y2, NULL AS frame, NULL AS text FROM (
    SELECT min(time_ns) AS first_ns, max(time_ns) AS last_ns, min(rtt_ns) / 1e6 AS least FROM flow_packets
    WHERE direction = {answering} AND rtt_ns IS NOT NULL HAVING count(*) > 1)
"""
# Lost segments so far by place, as on the wire: an event of a super-segment is several.
LOST = f"""
SELECT place AS key, e.time_ns, sum(CASE WHEN d.wire_segments > d.data_packets AND e.bytes > d.wire_mss
    THEN ceil(e.bytes / d.wire_mss) ELSE 1 END) OVER (PARTITION BY place ORDER BY e.number) AS y,
    NULL AS y2, e.frame, NULL AS text
FROM (SELECT *, row_number() OVER () AS number FROM events) AS e JOIN directions AS d USING (flow, direction)
WHERE e.flow = {{flow}} AND {LOSS}
"""
NUMBERED = """
SELECT {key} AS key, complete_ns AS time_ns, {y} AS y, NULL AS y2, last_frame AS frame,
    format('number {{:,}}', sequence) AS text
FROM blocks WHERE flow = {flow} AND complete_ns IS NOT NULL AND {where}
"""
# Numbered payloads of each stream in the order of their arrival; duplicates count (RFC 3550 6.4.1).
ARRIVALS = """
WITH arrivals AS (SELECT *, row_number() OVER () AS place FROM blocks
    WHERE flow = {flow} AND complete_ns IS NOT NULL)
"""
# A range of numbers that never came is where the first number above it came.
MISSING = f"""{ARRIVALS}
SELECT 'missing' AS key, a.complete_ns AS time_ns, r.sequence + 0.5 AS y, r.following - 0.5 AS y2, a.last_frame AS frame,
    if(r.following = r.sequence + 2, format('number {{{{:,}}}} never came', r.sequence + 1),
        format('numbers {{{{:,}}}} to {{{{:,}}}} never came', r.sequence + 1, r.following - 1)) AS text
FROM (SELECT sequence, lead(sequence) OVER later AS following,
        min(place) OVER (later ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS opener FROM arrivals
    WINDOW later AS (PARTITION BY direction, stream ORDER BY sequence, place)) AS r
JOIN arrivals AS a ON a.place = r.opener WHERE r.following > r.sequence + 1
"""
# RFC 3550 section 6.4.1: J += (|D| - J) / 16. A part of 512 values needs only the one before it: (15/16)^512 is 4e-15.
JITTER = f"""{ARRIVALS},
changes AS (SELECT *, abs(latency_ns - lag(latency_ns) OVER (PARTITION BY direction, stream ORDER BY place)) / 1e6 AS d
    FROM arrivals WHERE latency_ns IS NOT NULL),
numbered AS (SELECT *, row_number() OVER (PARTITION BY direction, stream ORDER BY place) - 1 AS k
    FROM changes WHERE d IS NOT NULL),
parted AS (SELECT *, pow(15 / 16, k % 512) / 16 * sum(d * pow(16 / 15, k % 512)) OVER (
    PARTITION BY direction, stream, k // 512 ORDER BY k) AS own FROM numbered)
SELECT 'jitter' || direction AS key, complete_ns AS time_ns, own + pow(15 / 16, k % 512 + 1) * coalesce(
    lag(own, (k % 512 + 1)::INTEGER) OVER (PARTITION BY direction, stream ORDER BY k), 0) AS y,
    NULL AS y2, last_frame AS frame, format('number {{{{:,}}}}', sequence) AS text
FROM parted
"""
NUMBER_OF = """CASE verdict WHEN 'out_of_order' THEN 'number_late' WHEN 'duplicate' THEN 'number_copy'
    WHEN 'late' THEN 'number_bad' WHEN 'corrupt' THEN 'number_bad' ELSE 'number' || direction END"""
DATAGRAMS = """
SELECT CASE WHEN missing_bytes = 0 THEN 'whole' ELSE 'broken' END AS key, first_ns AS time_ns, fragments AS y, NULL AS y2,
    first_frame AS frame, NULL AS text FROM datagrams WHERE flow = {flow} AND first_ns IS NOT NULL
"""
# A bar counts with both of its ends.
THINNED = """
WITH numbered AS (
    SELECT *, row_number() OVER (ORDER BY time_ns, place) - 1 AS i, count(*) OVER () AS whole,
        min(time_ns) OVER () AS begun, max(time_ns) OVER () AS ended
    FROM (SELECT *, row_number() OVER () AS place FROM ({points}) WHERE time_ns IS NOT NULL AND y IS NOT NULL)),
parted AS (SELECT *, (time_ns - begun)::HUGEINT * {parts} // (ended - begun + 1) AS part FROM numbered),
kept AS (SELECT unnest([min(i), arg_min(i, (y, i)), arg_max(i, (coalesce(y2, y), -i)), max(i)]) AS i FROM parted GROUP BY part)
SELECT (time_ns - {base_ns}) / 1e9, y::DOUBLE, y2::DOUBLE, frame, text FROM numbered
WHERE {most} IS NULL OR whole <= {most} OR i IN (SELECT i FROM kept) ORDER BY i
"""


class FlowPoints:
    """The points of a flow; at most about `most` of each series, or all for None."""

    def __init__(self, trace: Trace, flow: int, most: int | None) -> None:
        self.flow, self.most, self.base_ns = flow, most, base_time(trace)
        self.is_tcp = trace.flows[flow]["protocol"] == "tcp"
        payload = [row["payload_bytes"] or 0 for row in trace.directions[2 * flow : 2 * flow + 2]]
        self.main = int(payload[1] > payload[0])  # the direction that carries more
        self.has_packets = trace.packets_made
        self.connection = connect(trace)
        numbers = f"SELECT count(*) FROM blocks WHERE flow = {flow} AND complete_ns IS NOT NULL"
        self.is_numbered = not self.is_tcp and self.connection.execute(numbers).fetchall() != [(0,)]
        if self.has_packets:
            packets, spans = trace._packets_and_spans([flow], PACKETS_MAX)
            self.connection.register("flow_packets", packets.with_integers())
            self.connection.register("flow_spans", spans.with_integers())
        self.bins = self.find_bins() if self.has_packets else None

    def find_bins(self) -> dict[str, int] | None:
        """Returns the bins of the throughput, as the page has them of all packets: width, first and last; None without times."""
        ends = "SELECT min(time_ns), max(time_ns), count(time_ns) FROM flow_packets"
        ((first_ns, last_ns, count),) = self.connection.execute(ends).fetchall()
        if first_ns is None:
            return None
        bins = min(BINS_USUAL[1], max(BINS_USUAL[0], count / PACKETS_PER_BIN))
        bin_ns = max(1, round(round_step(max((last_ns - first_ns) * WITH_MARGINS, LEAST_NS) / bins)))
        first, last = ((ns - self.base_ns) // bin_ns for ns in (first_ns, last_ns))
        return {"base_ns": self.base_ns, "bin_ns": bin_ns, "first": first, "last": last}

    def lasted_ns(self) -> int:
        """Returns the time from the first packet to the last, at least 1 ns."""
        return max(1, (self.bins["last"] - self.bins["first"] + 1) * self.bins["bin_ns"]) if self.bins else 1

    def lanes(self, column_ns: int) -> list[Lane]:
        """Returns where the time of a TCP flow went, in spans of at least about a column."""
        return lanes_of(self.connection, self.base_ns, column_ns) if self.is_tcp and self.has_packets else []

    def rates(self) -> Iterator[tuple[str, str]]:
        """Yields the throughput of packets: of each direction, and of acknowledged bytes."""
        if not self.bins:
            return
        for direction in (0, 1):
            source = f"(FROM flow_packets WHERE direction = {direction} AND time_ns IS NOT NULL)"
            if self.connection.execute(f"SELECT count(*) FROM {source}").fetchall() != [(0,)]:
                yield f"throughput{direction}", RATES.format(bytes="ip_bytes", source=source, **self.bins)
        advances = ADVANCES.format(answering=1 - self.main)
        if self.is_tcp and self.connection.execute(f"SELECT count(*) FROM {advances} WHERE advance > 0").fetchall() != [
            (0,)
        ]:
            yield "acked", RATES.format(bytes="advance", source=advances, **self.bins)

    def __enter__(self) -> FlowPoints:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def all(self) -> dict[str, Points]:
        """Returns the points of each series that has some."""
        by_key = {key: self.points(sql) for key, sql in self.queries()}
        for sql in self.grouped_queries():
            for (key,) in self.connection.execute(f"SELECT DISTINCT key FROM ({sql}) ORDER BY key").fetchall():
                by_key[key] = self.points(f"SELECT * FROM ({sql}) WHERE key = '{key}'")
        return {key: points for key, points in by_key.items() if points.x}

    def points(self, sql: str) -> Points:
        """Returns the points of a query, thinned."""
        parts = max(1, (self.most or KEPT) // KEPT)
        most = "NULL" if self.most is None else self.most
        command = THINNED.format(points=sql, parts=parts, base_ns=self.base_ns, most=most)
        rows = self.connection.execute(command).fetchall()
        return Points(*map(list, zip(*rows, strict=True))) if rows else Points([], [], [], [], [])

    def queries(self) -> Iterator[tuple[str, str]]:
        """Yields the key of each series, and the SQL of its points."""
        yield from self.rates()
        for direction in (0, 1):
            where = {"flow": self.flow, "direction": direction}
            if not self.has_packets:
                yield f"throughput{direction}", STEPS.format(y="throughput_bps", **where)
            if self.has_packets:  # an ACK completes the sample of the other direction
                sample = f"direction = {1 - direction} AND rtt_ns IS NOT NULL"
                yield f"rtt{direction}", PACKETS.format(y="rtt_ns / 1e6", y2="NULL", text="NULL", where=sample)
            else:
                yield f"rtt{direction}", BINS.format(after="width_ns // 2", y="rtt_ns / 1e6", **where)
        if self.is_tcp and not self.has_packets:
            where = {"flow": self.flow, "direction": self.main}
            yield "flight", BINS.format(after="0", y="flight_bytes", **where)
            yield "room", BINS.format(after="0", y="window_bytes", **where)
        if self.has_packets and not self.is_numbered:
            yield from self.tcp_queries() if self.is_tcp else self.datagram_queries()

    def tcp_queries(self) -> Iterator[tuple[str, str]]:
        """Yields the series of packets by stream position of the direction that carries more."""
        sent, answered = f"direction = {self.main}", f"direction = {1 - self.main} AND acknowledged IS NOT NULL"
        segment = {"y": "sequence", "y2": "sequence + payload_bytes", "text": SEGMENT}
        data = f"{sent} AND payload_bytes > 0 AND sequence IS NOT NULL"
        repeated = "coalesce(unique_bytes < payload_bytes, false)"
        yield "data", PACKETS.format(where=f"{data} AND NOT {repeated}", **segment)
        yield "again", PACKETS.format(where=f"{data} AND {repeated}", **segment)
        yield "ack", PACKETS.format(y="acknowledged", y2="NULL", text="NULL", where=answered)
        yield "flight", FLIGHT.format(main=self.main)
        edge = f'{answered} AND "window" IS NOT NULL'
        yield "room", PACKETS.format(y='"window"', y2="NULL", text="NULL", where=edge)
        yield "window", PACKETS.format(y='acknowledged + "window"', y2="NULL", text="NULL", where=edge)
        yield "least", LEAST.format(answering=1 - self.main)
        yield "sack", SACKS.replace("WHERE ", f"WHERE {answered} AND ")

    def datagram_queries(self) -> Iterator[tuple[str, str]]:
        """Yields the series of packets without stream positions."""
        for direction, key in enumerate(("data", "other")):
            yield key, SO_FAR.format(direction=direction)
            yield f"spacing{direction}", SPACING.format(direction=direction)

    def grouped_queries(self) -> Iterator[str]:
        """Yields the SQL of several series, whose key is a column."""
        flow = {"flow": self.flow}
        yield LOST.format(**flow)
        yield DATAGRAMS.format(**flow)
        yield NUMBERED.format(key="'latency'", y="latency_ns / 1e6", where="latency_ns IS NOT NULL", **flow)
        yield NUMBERED.format(key="'waited'", y="head_of_line_ns / 1e6", where="head_of_line_ns > 0", **flow)
        if not self.is_tcp:
            yield NUMBERED.format(key=NUMBER_OF, y="sequence", where="true", **flow)
            yield MISSING.format(**flow)
            yield JITTER.format(**flow)
        elif self.has_packets:
            y = f"CASE WHEN e.direction = {self.main} THEN p.sequence ELSE p.acknowledged END"
            yield MARKED.format(y=y, **flow)
            yield ORIGINALS.format(main=self.main, **flow)
