# SPDX-License-Identifier: Apache-2.0
"""Tables as files, written by DuckDB: Parquet, or CSV for spreadsheets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.table import KEPT_TABLES, InParts, no_packets
from wiretale.analyzer.trace import stamp_of
from wiretale.reports.export.csv_text import csv_sql, text_columns
from wiretale.reports.export.destination import output_folder

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.trace import Trace

# Format version 2 has the DELTA encodings, which shrink times and counters. Level 1 of zstd is as fast as no compression.
# Row groups of a quarter of DuckDB's default use all cores and less memory; the files grow by some percent.
FORMATS = {
    "parquet": "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 30720",
    "csv": "FORMAT csv, HEADER",
}
ERRNO = re.compile(r'"errno":"(\d{1,4})"')
# The options of the analysis are in the metadata of a file that every output folder has.
OPTIONS_FILE, OPTIONS_KEY = "interfaces.parquet", "wiretale_analysis"
# DuckDB would read INT64_MAX and -INT64_MAX as infinity; blocks.sent_ns can hold them, because a packet can.
# A cast would take the time for one in the time zone of the machine.
TIME_SQL = """timezone('UTC', make_timestamp_ns(CASE {0} WHEN 9223372036854775807 THEN 9223372036854775806
    WHEN -9223372036854775807 THEN -9223372036854775806 ELSE {0} END))"""
# The same of a timestamp. For large tables TIME_SQL takes a fifth of the time of writing.
FINITE_SQL = """CASE {0} WHEN 'infinity' THEN timezone('UTC', make_timestamp_ns(9223372036854775806))
    WHEN '-infinity' THEN timezone('UTC', make_timestamp_ns(-9223372036854775806)) ELSE {0} END"""
TIMED = "timed_"  # begins the names of tables with timestamps


def reason_of(error: duckdb.Error) -> str:
    """Returns why DuckDB could not write: the system's reason, if its text has a number of one, else its first line."""
    number = ERRNO.search(str(error))
    return os.strerror(int(number[1])) if number else str(error).splitlines()[0]


def analysis_options(trace: Trace) -> str:
    """Returns captures and options of an analysis as JSON, so that `wiretale view` can repeat it."""
    here = os.getcwd()
    captures = [{"path": path, "absolute": os.path.join(here, path), "stamp": stamp_of(path)} for path in trace.inputs]
    return json.dumps({"captures": captures, "options": trace.options.row_options()})


def copy_to(connection: duckdb.DuckDBPyConnection, queries: Mapping[Path, str], options: str = "{}") -> None:
    """Writes the result of each query to its file; the suffix selects the format. OSError if a file cannot be written.

    OPTIONS_FILE has the options in its metadata.
    """
    import duckdb

    from wiretale.analyzer.query import raise_interrupt

    for path, sql in queries.items():
        target, form = str(path).replace("'", "''"), FORMATS[path.suffix[1:]]
        if path.name == OPTIONS_FILE:
            form += ", KV_METADATA {" + OPTIONS_KEY + ": '" + options.replace("'", "''") + "'}"
        try:
            connection.execute(f"COPY ({sql}) TO '{target}' ({form})")
        except duckdb.Error as error:
            raise_interrupt(error)
            raise OSError(reason_of(error)) from None


def table_files(formats: Sequence[str] = ("parquet",), packets: bool = False) -> list[str]:
    """Returns the names of the files that write_tables() writes; packets, by far the largest table, only on request."""
    return [f"{name}.{suffix}" for name in (*KEPT_TABLES, *(["packets"] if packets else [])) for suffix in formats]


def rows_of(trace: Trace, file: str, timed: bool = False) -> str:
    """Returns the SQL that selects the rows of a table for a file; if `timed`, Parquet has those of a table with timestamps."""
    name, _, suffix = file.partition(".")
    table, source = no_packets() if name == "packets" else trace.table(name), name
    if suffix == "csv":
        changed = {text: csv_sql(text) for text in text_columns(table)}
    else:
        sql, source = (FINITE_SQL, TIMED + name) if timed else (TIME_SQL, name)
        changed = {column: sql.format(column) for column, kind, *_ in table.columns() if kind == "time"}
    if not changed:
        return f"FROM {source}"
    return f"SELECT * REPLACE ({', '.join(f'{sql} AS {column}' for column, sql in changed.items())}) FROM {source}"


def write_tables(
    trace: Trace,
    folder: Path,
    formats: Sequence[str] = ("parquet",),
    packets: bool = False,
    meanwhile: Callable[[], object] | None = None,
    names: Sequence[str] = (),
) -> Path:
    """Writes `flows.parquet` and so on into a directory, which is made if it does not exist, and returns its path.
    Packets are written while the files are read, if memory does not have all of them. With `names`, no other table is written.

    `meanwhile` is called while they are written. OutputError if a file cannot be written; files that existed before are
    then unchanged, as after an error of `meanwhile`.
    """
    from wiretale.analyzer.query import connect, interruptible, register

    with output_folder(folder) as place, connect(trace) as connection:
        # The report is made at the same time, so one thread is enough, which needs less memory and keeps the order of rows by
        # itself. Packets have the widest rows, and are read by threads meanwhile.
        threads, memory = (2, 400) if packets else (1, 200)
        connection.execute(f"SET threads = {threads}; SET memory_limit = '{memory}MB'")
        connection.execute("SET preserve_insertion_order = $order", {"order": packets})
        connection.execute("SET temp_directory = ?", [str(place / "spilled")])
        register(connection, trace, KEPT_TABLES, TIMED)
        sources = [InParts(trace._packet_parts, times) for times in (False, True) if packets]
        for prefix, source in zip(("", TIMED), sources, strict=False):
            connection.register(f"{prefix}packets", source)
        files = [f"{name}.{suffix}" for name in names for suffix in formats] or table_files(formats, packets)
        queries = {place / file: rows_of(trace, file, timed=True) for file in files}
        write = partial(copy_to, connection, queries, analysis_options(trace))
        try:
            interruptible(connection, write, meanwhile)
        except OSError:
            for failure in [source.failure for source in sources if source.failure]:
                raise failure from None
            raise
    return folder
