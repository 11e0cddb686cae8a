# SPDX-License-Identifier: Apache-2.0
"""The packets of a capture, sorted by flow and time, as Parquet.

`row` numbers them in this order, so that the packets of a flow in a range of time are a range of rows, and Parquet's
statistics find their row groups. The times of every 1,024th row are kept apart (TICK): a search in them and one query of
1,024 rows turn a time into a row.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from wiretale.analyzer import _core
from wiretale.analyzer.options import ROWS_MAX, AnalysisOptions, ReadingMode
from wiretale.analyzer.query import SETTINGS
from wiretale.analyzer.table import Table
from wiretale.analyzer.trace import packets_in_parts

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

TICK = 1024  # rows
#: columns of the packets table, in its order
PACKET_COLUMNS = tuple(name for table, _, columns in _core.schemas() if table == "packets" for name, *_ in columns)
PARQUET = "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 30720"


class Rows:
    """The rows of a batch for DuckDB, with integers for times."""

    def __init__(self, table: _core.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema, True)


def connected(folder: Path, threads: int = 2, memory_mb: int = 96) -> duckdb.DuckDBPyConnection:
    """Returns a connection whose memory is limited; what does not fit goes to files in the folder."""
    connection = duckdb.connect(config=dict(SETTINGS))
    connection.execute(f"SET threads = {threads}; SET memory_limit = '{memory_mb}MB'")
    connection.execute("SET temp_directory = ?", [str(folder / "spilled")])
    return connection


def sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sql_path(path: Path) -> str:
    """Returns a path as an SQL string."""
    return sql_text(str(path))


def second_reading(inputs: list[str], options: AnalysisOptions, flows: int) -> _core.Analysis:
    """Returns an analysis that makes the packets of all flows, and their time_spans."""
    mode = ReadingMode(packets=list(range(flows)), packet_rows_most=ROWS_MAX, time_spans=True)
    return _core.Analysis(inputs, inputs, options, mode)


def write_packets(trace: Trace, folder: Path, progress: Callable[[int], None] | None = None) -> tuple[int, Table]:
    """Writes packets.parquet, the ticks and the rows of each flow (spans.parquet). Returns the number of packets, and the
    time_spans of all flows, which the same reading makes."""
    count = 0
    core = second_reading(trace.inputs, trace.options, trace.totals["flows"])
    store = folder / "unsorted.duckdb"
    connection = connected(folder)
    connection.execute(f"ATTACH {sql_path(store)} AS unsorted")
    connection.register("events", trace.events.with_integers())
    try:
        for batch in packets_in_parts(core):
            connection.register("batch", Rows(batch))
            create = "INSERT INTO unsorted.packets" if count else "CREATE OR REPLACE TABLE unsorted.packets AS"
            connection.execute(f"{create} FROM batch")
            connection.unregister("batch")
            count += len(batch)
            if progress:
                progress(count)
        sort_packets(connection, folder)
    finally:
        connection.close()
        store.unlink(missing_ok=True)
    return count, Table(core.table("time_spans"))


def sort_packets(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Sorts the packets by flow and time, numbers them, and marks those with an event."""
    packets = sql_path(folder / "packets.parquet")
    connection.execute(
        f"""COPY (
            WITH marks AS (SELECT DISTINCT capture, frame, flow, true AS marked FROM events WHERE frame IS NOT NULL),
            sorted AS (FROM unsorted.packets WHERE time_ns IS NOT NULL ORDER BY flow, time_ns, capture, frame)
            SELECT row_number() OVER () - 1 AS row, sorted.*, coalesce(marked, false) AS marked
            FROM sorted LEFT JOIN marks USING (flow, capture, frame) ORDER BY row
        ) TO {packets} ({PARQUET})"""
    )
    connection.execute(
        f"""COPY (SELECT flow, min(row) AS first, count(*) AS packets, min(time_ns) AS first_ns, max(time_ns) AS last_ns
            FROM {packets} GROUP BY flow ORDER BY flow) TO {sql_path(folder / "spans.parquet")} ({PARQUET})"""
    )
    ticks = connection.execute(f"SELECT time_ns FROM {packets} WHERE row % {TICK} = 0 ORDER BY row").fetchall()
    (folder / "ticks").write_bytes(array("q", (time for (time,) in ticks)).tobytes())
