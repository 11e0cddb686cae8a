# SPDX-License-Identifier: Apache-2.0
"""The tables in DuckDB, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

# Nothing is fetched from anywhere, whatever a query names.
SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def connect(trace: Trace) -> duckdb.DuckDBPyConnection:
    """A connection that knows the tables; they are read where they lie."""
    from wiretale.analyzer.trace import TABLES

    connection = duckdb.connect(config=dict(SETTINGS))
    for name in TABLES:
        connection.register(name, trace.table(name))
    return connection
