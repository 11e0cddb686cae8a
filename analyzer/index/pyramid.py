# SPDX-License-Identifier: Apache-2.0
"""Packets that stand for many, so that a view of millions needs a few thousand.

A bucket is 2^shift consecutive rows of a flow. Of each direction in it the first and last packet are kept, those with the
least and greatest value of all that is drawn, and the first and last with a verdict. What is drawn from these packets
therefore has the same outline as if it were drawn from all. Buckets of 256 rows and more are kept in pyramid.parquet, each
level four times as wide as the one below and made from it, as an extreme of extremes is an extreme.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.index.packet_store import PARQUET, sql_path

if TYPE_CHECKING:
    import duckdb

FIRST_SHIFT, SHIFT_STEP = 8, 2
LEVELLED = 200_000  # packets; smaller flows and views are selected from directly
SLICE = 1 << 12  # buckets that are made at once: DuckDB holds about a kilobyte for each, in every thread
DRAWN = (  # values whose extremes are kept
    *("sequence", "sequence + payload_bytes", "payload_bytes", "acknowledged", 'acknowledged + "window"', '"window"'),
    *("sack_end", "rtt_ns", "flight_bytes", "opposite_flight_bytes"),
)


def selection(source: str, shift: int, key: str = "") -> str:
    """Returns the SQL of the rows of a source that stand for their buckets; `key` adds columns to group by."""
    extremes = [f"arg_{end}(row, {value})" for value in DRAWN for end in ("min", "max")]
    rows_kept = ["min(row)", "max(row)", "min(row) FILTER (marked)", "max(row) FILTER (marked)", *extremes]
    return f"""SELECT s.* FROM {source} s SEMI JOIN (
        SELECT unnest([{", ".join(rows_kept)}]) AS row FROM {source} GROUP BY {key}direction, row >> {shift}
    ) k ON s.row = k.row"""


def write_pyramid(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[int]:
    """Writes pyramid.parquet and returns the shift of each level; none if no flow is large."""
    largest = connection.execute(f"SELECT max(packets) FROM {sql_path(folder / 'spans.parquet')}").fetchall()
    most = largest[0][0] or 0
    shifts = [shift for shift in range(FIRST_SHIFT, 64, SHIFT_STEP) if most > LEVELLED and most >> shift > 1]
    if not shifts:
        return []
    connection.execute(f"""CREATE TEMP VIEW level_source AS FROM {sql_path(folder / "packets.parquet")}
        WHERE flow IN (SELECT flow FROM {sql_path(folder / "spans.parquet")} WHERE packets > {LEVELLED})""")
    source = "level_source"
    ((rows,),) = connection.execute(f"SELECT sum(packets)::BIGINT FROM {sql_path(folder / 'spans.parquet')}").fetchall()
    for shift in shifts:
        connection.execute(f"CREATE TEMP TABLE level_{shift} AS FROM {source} LIMIT 0")
        for begin in range(0, rows, SLICE << shift):
            part = f"(FROM {source} WHERE row >= {begin} AND row < {begin + (SLICE << shift)})"
            connection.execute(f"INSERT INTO level_{shift} {selection(part, shift, 'flow, ')}")
        source = f"level_{shift}"
    union = " UNION ALL ".join(f"SELECT {shift} AS shift, * FROM level_{shift}" for shift in shifts)
    connection.execute(
        f"COPY (FROM ({union}) ORDER BY shift, row) TO {sql_path(folder / 'pyramid.parquet')} ({PARQUET})"
    )
    return shifts
