# SPDX-License-Identifier: Apache-2.0
"""Small captures of one `wiretale store add` that are written together: a set of Parquet files for each of them would take ten
times as long as its analysis.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.table import STORED_TABLES, Joined
from wiretale.reports.export.parquet import TIME_SQL, TIMED, rows_of

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.trace import Trace

LEAST = 16  # captures of a command; fewer are kept one by one
MOST = 256  # captures, whose tables wait in memory; files take most of the time, however many captures they have
SMALL_BYTES, MOST_BYTES = 4_000_000, 64_000_000  # of a capture, and of all that wait
LONGEST_NS = 10_000_000_000  # until captures that wait are kept, so that a killed process loses little


class Analyzed(NamedTuple):
    """A capture whose tables are to be written."""

    path: str
    digest: str
    bytes: int
    trace: Trace
    damage: str
    #: UTC day of the first packet; None if no packet has a time
    day: str | None
    #: tables that have rows, and interfaces, of which `captures` is made
    tables: list[str]
    #: monotonic clock
    at_ns: int


def is_full(waiting: Sequence[Analyzed]) -> bool:
    """Returns whether captures must not wait longer."""
    age_ns = time.monotonic_ns() - waiting[0].at_ns
    return len(waiting) >= MOST or sum(capture.bytes for capture in waiting) >= MOST_BYTES or age_ns >= LONGEST_NS


def digest_of_group(group: Sequence[Analyzed]) -> str:
    """Returns the name of a group, which depends on its captures alone."""
    return hashlib.sha256("".join(sorted(capture.digest for capture in group)).encode()).hexdigest()


def register_group(connection: duckdb.DuckDBPyConnection, group: Sequence[Analyzed]) -> list[str]:
    """Gives a connection the joined tables of a group, and `grouped` with a row for each capture; returns their names."""
    names = [name for name in STORED_TABLES if any(name in capture.tables for capture in group)]
    for name in names:
        connection.register(TIMED + name, Joined([capture.trace.table(name) for capture in group], times=True))
    connection.register("interfaces", Joined([capture.trace.interfaces for capture in group]))
    values = {
        "table_number": list(range(len(group))),
        "capture_id": [capture.digest for capture in group],
        "path": [capture.path.encode("utf-8", "replace").decode() for capture in group],
        "bytes": [capture.bytes for capture in group],
        "flows": [capture.trace.totals["flows"] for capture in group],
    }
    columns = ", ".join(f"unnest(${name}) AS {name}" for name in values)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE grouped AS SELECT {columns}", values)
    return names


def group_sql(group: Sequence[Analyzed], name: str) -> str:
    """Returns the rows of a table for all captures of a group, with their capture_id."""
    rows = rows_of(group[0].trace, f"{name}.parquet", timed=True)
    ids = "(SELECT list(capture_id ORDER BY table_number) FROM grouped)"  # a join takes longer, because it copies each column
    return f"SELECT * EXCLUDE (table_number), {ids}[table_number + 1] AS capture_id FROM ({rows})"


def captures_sql(version: str) -> str:
    """Returns the rows of `captures`, with the columns of one that is kept alone, and capture_id."""
    times = {name: TIME_SQL.format(f"{how}({name})") for name, how in (("first_ns", "min"), ("last_ns", "max"))}
    return (
        "SELECT g.path, g.bytes::BIGINT AS bytes, coalesce(sum(i.packets), 0)::BIGINT AS packets, g.flows::BIGINT AS flows, "
        f"{times['first_ns']} AS first_ns, {times['last_ns']} AS last_ns, "
        "first(i.damage) FILTER (i.damage IS NOT NULL) AS damage, "
        f"{TIME_SQL.format(time.time_ns())} AS added_ns, '{version}' AS wiretale, "
        "list_resize([]::VARCHAR[], count(i.capture), g.capture_id) AS interface_captures, g.capture_id "
        "FROM grouped AS g LEFT JOIN interfaces AS i USING (table_number) "
        "GROUP BY g.table_number, g.path, g.bytes, g.flows, g.capture_id ORDER BY g.table_number"
    )
