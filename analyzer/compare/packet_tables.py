# SPDX-License-Identifier: Apache-2.0
"""The result by packet: times at each point, delay of each hop, place of loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.one_way_delay import hops_of
from wiretale.analyzer.compare.packet_matching import PLACE, columns

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.rows import LostPacketRow

KINDS = "CASE kind WHEN 0 THEN 'tcp data' WHEN 1 THEN 'tcp control' WHEN 2 THEN 'block' ELSE 'datagram' END AS kind"
# A packet is identified by its position in the stream, or by run, stream and sequence of the block.
NUMBERS = (
    f"CASE WHEN kind = 0 THEN key1::BIGINT - {PLACE} WHEN kind = 1 THEN key2::BIGINT - {PLACE} END AS position, "
    "CASE WHEN kind = 2 THEN (key2 // 65536)::BIGINT END AS run, CASE WHEN kind = 2 THEN (key2 % 65536)::INTEGER END AS stream, "
    "CASE WHEN kind = 2 THEN key1::BIGINT END AS sequence"
)


def per_point(comparison: Comparison) -> str:
    """Returns SQL: frame and time at each point."""
    return ", ".join(
        f"f{point.number} AS {point.role}_frame, t{point.number} AS {point.role}_ns, w{point.number} AS {point.role}_whole"
        for point in comparison.points
    )


def last_seen(comparison: Comparison) -> str:
    """Returns SQL: the last point on the way that captured a packet."""
    forth = "".join(f"WHEN p{p.number} IS NOT NULL THEN '{p.role}' " for p in reversed(comparison.points))
    back = "".join(f"WHEN p{p.number} IS NOT NULL THEN '{p.role}' " for p in comparison.points)
    return f"CASE WHEN heading > 0 THEN CASE {forth}END ELSE CASE {back}END END AS last_seen"


def direction_of(comparison: Comparison) -> str:
    """Returns SQL: the direction in words."""
    first, last = comparison.points[0].role, comparison.points[-1].role
    return f"CASE WHEN heading > 0 THEN '{first} → {last}' ELSE '{last} → {first}' END AS way"


def packets_sql(comparison: Comparison) -> str:
    """Returns SQL: every packet with the delay of each hop."""
    clocks = {(clock.earlier, clock.later): clock for clock in comparison.clocks}
    delays = "".join(
        f", CASE WHEN w{hop.start} AND w{hop.end} "
        f"THEN round(heading * (t{hop.end} - t{hop.start} - ({hop.offset()})))::BIGINT END AS"
        f"  {comparison.points[hop.start].role}_{comparison.points[hop.end].role}_ns"
        for hop in (hops_of(clocks, len(comparison.points)) if len(comparison.points) > 1 else [])
        if hop.clocks[0].stretches
    )
    first = columns(len(comparison.points), "t{p}")
    return (
        f"SELECT flow, direction, {direction_of(comparison)}, {KINDS}, {NUMBERS}, bytes, {per_point(comparison)}{delays}, copy, "
        f"coalesce(proven, false) AS acknowledged, place AS lost, {last_seen(comparison)} FROM outcomes "
        f"ORDER BY flow, direction, coalesce({first}), key1, key2"
    )


def lost_packets(comparison: Comparison, most: int) -> tuple[list[LostPacketRow], int]:
    """Returns the first lost packets and the number of all."""
    rows: list[Any] = comparison.rows(f"SELECT * FROM ({packets_sql(comparison)}) WHERE lost IS NOT NULL LIMIT {most}")
    total = comparison.rows("SELECT count(*) AS n FROM outcomes WHERE place IS NOT NULL")[0]["n"]
    return rows, total


LOSS_BINS = 200


def losses_by_time(comparison: Comparison) -> list[dict[str, Any]]:
    """Returns the lost packets by time bin: moment, width, way, place, packets."""
    times = [f"t{p.number}" for p in comparison.points]
    sent = f"CASE WHEN heading > 0 THEN coalesce({', '.join(times)}) ELSE coalesce({', '.join(reversed(times))}) END"
    (span,) = comparison.rows(f"SELECT min({sent}) AS start, max({sent}) AS stop FROM outcomes")
    if span["start"] is None:
        return []
    width = max((span["stop"] - span["start"]) // LOSS_BINS, 1)
    return comparison.rows(
        f"SELECT {span['start']} + (({sent} - {span['start']}) // {width}) * {width} + {width // 2} AS moment, "
        f"{width} AS width, {direction_of(comparison)}, place, count(*) AS packets FROM outcomes "
        f"WHERE place IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
