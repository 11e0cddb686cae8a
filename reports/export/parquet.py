# SPDX-License-Identifier: Apache-2.0
"""Every table as a file, written by DuckDB: Parquet, or CSV for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.reports.export.csv_text import csv_sql, text_columns
from wiretale.reports.export.destination import output_folder

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

TABLES = ("interfaces", "flows", "directions", "events", "series", "datagrams", "blocks", "findings")
# Format version 2 has the DELTA encodings, which times and counters shrink by. Level 1 of zstd is as fast as none. Row
# groups of a quarter of DuckDB's usual size are made on all cores, in less memory; the files grow by some percent.
FORMATS = {
    "parquet": "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 30720",
    "csv": "FORMAT csv, HEADER",
}


def table_files(formats: Sequence[str] = ("parquet",), packets: bool = False) -> list[str]:
    """The names of the files that write_tables() writes."""
    return [f"{name}.{suffix}" for name in written_tables(packets) for suffix in formats]


def written_tables(packets: bool) -> tuple[str, ...]:
    """Every table; packets, by far the largest, only on request."""
    return (*TABLES, "packets") if packets else TABLES


# INT64_MAX and -INT64_MAX, which blocks.sent_ns may hold because it is what the packet says, would be infinity in DuckDB.
TIME_SQL = """make_timestamp_ns(CASE {0} WHEN 9223372036854775807 THEN 9223372036854775806
    WHEN -9223372036854775807 THEN -9223372036854775806 ELSE {0} END)::TIMESTAMPTZ_NS"""


def rows_of(trace: Trace, name: str, suffix: str) -> str:
    """The SQL that selects a table's rows for a format."""
    table = trace.table(name)
    if suffix == "csv":
        changed = {text: csv_sql(text) for text in text_columns(table)}
    else:
        changed = {column: TIME_SQL.format(column) for column, kind, *_ in table.columns() if kind == "time"}
    if not changed:
        return f"FROM {name}"
    return f"SELECT * REPLACE ({', '.join(f'{sql} AS {column}' for column, sql in changed.items())}) FROM {name}"


def write_tables(trace: Trace, folder: Path, formats: Sequence[str] = ("parquet",), packets: bool = False) -> Path:
    """Writes `flows.parquet` and so on into a folder, made if it is not there, and returns its path.

    OutputError when something cannot be written; what was there before is still there then.
    """
    import duckdb

    from wiretale.analyzer.query import connect

    with output_folder(folder) as partial, connect(trace) as connection:
        try:
            connection.execute("SET threads = 2; SET memory_limit = '400MB'")
            connection.execute("SET temp_directory = ?", [str(partial / "spilled")])
            if packets:
                connection.register("packets", trace.table("packets").with_integers())
            for name in written_tables(packets):
                for suffix in formats:
                    target = str(partial / f"{name}.{suffix}").replace("'", "''")
                    rows = rows_of(trace, name, suffix)
                    connection.execute(f"COPY ({rows}) TO '{target}' ({FORMATS[suffix]})")
        except duckdb.Error as error:
            raise OSError(str(error).splitlines()[0]) from None
    return folder
