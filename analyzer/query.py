# SPDX-License-Identifier: Apache-2.0
"""The tables in DuckDB, by their names.

Times and durations are int64 ns there: DuckDB's INTERVAL has microseconds, and Python needs pytz to fetch its
timestamps with a time zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

# DuckDB must not download extensions, whatever a query names.
SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


NO_PACKETS = "table with name packets does not exist"


def connect(trace: Trace) -> duckdb.DuckDBPyConnection:
    """Returns a connection with the tables except packets, which it reads in place."""
    from wiretale.analyzer.trace import TABLES

    connection = duckdb.connect(config=dict(SETTINGS))
    for name in TABLES:
        if name != "packets":
            connection.register(name, trace.table(name).with_integers())
    return connection


def run(trace: Trace, sql: str) -> duckdb.DuckDBPyRelation:
    """Returns the result. The packets table, which may need a second reading, is made only if the query names it."""
    connection = connect(trace)
    try:
        return connection.sql(sql)
    except duckdb.CatalogException as error:
        if NO_PACKETS not in str(error).lower():
            raise
    connection.register("packets", trace.table("packets").with_integers())
    return connection.sql(sql)


def dicts(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """Returns the result of a query as dicts; it should be small."""
    result = connection.execute(sql)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
