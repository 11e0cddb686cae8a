# SPDX-License-Identifier: Apache-2.0
"""The result packet by packet: matched, with the delay of each hop, and lost, with where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.one_way_delay import hops_of
from wiretale.analyzer.compare.packet_matching import columns

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Vantage

KINDS = "CASE kind WHEN 0 THEN 'tcp data' WHEN 1 THEN 'tcp control' WHEN 2 THEN 'block' ELSE 'datagram' END AS kind"
PLACE = 2**40
# What tells the packet: its place in the stream, or run, stream and sequence of the block.
NUMBERS = (
    f"CASE WHEN kind = 0 THEN key1::BIGINT - {PLACE} WHEN kind = 1 THEN key2::BIGINT - {PLACE} END AS position, "
    "CASE WHEN kind = 2 THEN (key2 // 65536)::BIGINT END AS run, CASE WHEN kind = 2 THEN (key2 % 65536)::INTEGER END AS stream, "
    "CASE WHEN kind = 2 THEN key1::BIGINT END AS sequence"
)


def per_point(vantage: Vantage) -> str:
    """Frame and time at each point, by its role."""
    return ", ".join(
        f"f{point.number} AS {point.role}_frame, t{point.number} AS {point.role}_ns, w{point.number} AS {point.role}_whole"
        for point in vantage.points
    )


def last_seen(vantage: Vantage) -> str:
    """The point that saw a packet last on its way."""
    forth = "".join(f"WHEN p{p.number} IS NOT NULL THEN '{p.role}' " for p in reversed(vantage.points))
    back = "".join(f"WHEN p{p.number} IS NOT NULL THEN '{p.role}' " for p in vantage.points)
    return f"CASE WHEN heading > 0 THEN CASE {forth}END ELSE CASE {back}END END AS last_seen"


def direction_of(vantage: Vantage) -> str:
    """Which way, in words."""
    first, last = vantage.points[0].role, vantage.points[-1].role
    return f"CASE WHEN heading > 0 THEN '{first} → {last}' ELSE '{last} → {first}' END AS way"


def packets_sql(vantage: Vantage) -> str:
    """Every packet, with the delay of each hop."""
    clocks = {(clock.earlier, clock.later): clock for clock in vantage.clocks}
    delays = "".join(
        f", CASE WHEN w{hop.start} AND w{hop.end} "
        f"THEN round(heading * (t{hop.end} - t{hop.start} - ({hop.offset()})))::BIGINT END AS"
        f"  {vantage.points[hop.start].role}_{vantage.points[hop.end].role}_ns"
        for hop in (hops_of(clocks, len(vantage.points)) if len(vantage.points) > 1 else [])
        if hop.clocks[0].stretches
    )
    first = columns(len(vantage.points), "t{p}")
    return (
        f"SELECT flow, direction, {direction_of(vantage)}, {KINDS}, {NUMBERS}, bytes, {per_point(vantage)}{delays}, copy, "
        f"coalesce(proven, false) AS acknowledged, place AS lost, {last_seen(vantage)} FROM outcomes "
        f"ORDER BY flow, direction, coalesce({first})"
    )


def lost_packets(vantage: Vantage, most: int) -> tuple[list[dict[str, Any]], int]:
    """The first packets that were lost, and how many there are."""
    rows = vantage.rows(f"SELECT * FROM ({packets_sql(vantage)}) WHERE lost IS NOT NULL LIMIT {most}")
    total = vantage.rows("SELECT count(*) AS n FROM outcomes WHERE place IS NOT NULL")[0]["n"]
    return rows, total


LOSS_BINS = 200


def losses_by_time(vantage: Vantage) -> list[dict[str, Any]]:
    """How many packets were lost in each bin of time: moment, width, way, place, packets."""
    times = [f"t{p.number}" for p in vantage.points]
    sent = f"CASE WHEN heading > 0 THEN coalesce({', '.join(times)}) ELSE coalesce({', '.join(reversed(times))}) END"
    (span,) = vantage.rows(f"SELECT min({sent}) AS start, max({sent}) AS stop FROM outcomes")
    if span["start"] is None:
        return []
    width = max((span["stop"] - span["start"]) // LOSS_BINS, 1)
    return vantage.rows(
        f"SELECT {span['start']} + (({sent} - {span['start']}) // {width}) * {width} + {width // 2} AS moment, "
        f"{width} AS width, {direction_of(vantage)}, place, count(*) AS packets FROM outcomes "
        f"WHERE place IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
