# SPDX-License-Identifier: Apache-2.0
"""Rows of a store, a snapshot and an analysis in one form, with file and frame in place of numbers of flows and interfaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

import wiretale
from wiretale.analyzer.query import connect
from wiretale.analyzer.table import OF_FLOWS

Rows = list[tuple[Any, ...]]
ENDED = ("end_of_capture", "idle")


def store_rows(store: Path, name: str) -> Rows:
    """The rows of a table of a store."""
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = 'UTC'; SET file_search_path = '{store}'")
        connection.execute((store / "views.sql").read_text().replace("'./", f"'{store}/"))
        connection.execute(
            "CREATE TABLE files AS SELECT capture_id, parse_filename(path) AS file, interface_captures FROM captures"
        )
        connection.execute("CREATE TABLE names AS SELECT capture_id, file FROM files")
        numbered = """SELECT capture_id, generate_subscripts(interface_captures, 1) - 1 AS number,
            unnest(interface_captures) AS of_file FROM files"""
        connection.execute(f"""CREATE TABLE interface_files AS SELECT n.capture_id, number, names.file FROM ({numbered}) AS n
            JOIN names ON names.capture_id = of_file""")
        return selected(
            connection, name, "capture_id", "AND b.capture_id = t.capture_id", "AND i.capture_id = t.capture_id"
        )


def trace_rows(trace: wiretale.Trace, name: str) -> Rows:
    """The same of an analysis."""
    with connect(trace) as connection:
        connection.execute(
            "CREATE TABLE names AS SELECT capture AS number, parse_filename(file) AS file FROM interfaces"
        )
        connection.execute("CREATE TABLE interface_files AS FROM names")
        return selected(connection, name, "", "", "")


def selected(connection: duckdb.DuckDBPyConnection, name: str, key: str, same_flow: str, same_file: str) -> Rows:
    columns = [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()]
    kinds = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {name}").fetchall()}
    expressions = []
    for column in columns:
        if column in ("day", "capture_id", "flow", "impact"):
            continue
        if column in ("capture", "first_capture", "before_capture", "after_capture", "pause_capture"):
            expressions.append(
                f"(SELECT file FROM interface_files AS i WHERE i.number = t.{column} {same_file}) AS {column}"
            )
        elif column == "within":  # the parent of a request is in its flow
            expressions.append("t.within = t.flow AS within")
        elif column == "end":
            expressions.append(f'if(t."end" IN {ENDED}, \'time\', t."end"::VARCHAR) AS ended')
        elif kinds[column].startswith("TIMESTAMP"):
            expressions.append(f"epoch_ns(t.{column}) AS {column}")
        else:
            expressions.append(f"t.{column}::VARCHAR AS {column}" if "ENUM" in kinds[column] else f"t.{column}")
    begin = f"""(SELECT file || '#' || b.first_frame FROM flows AS b JOIN interface_files AS i ON i.number = b.first_capture
        {same_file.replace("t.", "b.")} WHERE b.flow = t.flow {same_flow})"""
    selection = connection.execute(f"SELECT {begin} AS begin, {', '.join(expressions)} FROM {name} AS t").fetchall()
    return sorted(selection, key=repr)


def snapshot_rows(folder: Path, name: str) -> Rows:
    """The same of a snapshot."""
    with duckdb.connect() as connection:
        for table in ("interfaces", *OF_FLOWS):
            connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")
        connection.execute(
            "CREATE TABLE interface_files AS SELECT capture AS number, parse_filename(file) AS file FROM interfaces"
        )
        return selected(connection, name, "", "", "")
