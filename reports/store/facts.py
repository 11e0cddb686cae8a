# SPDX-License-Identifier: Apache-2.0
"""Rows of `captures` for files without tables: those that are no captures, and those that were removed too early."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.printable import utf8_name
from wiretale.reports.export.parquet import copy_to
from wiretale.reports.store.add import capture_row, manifest, quoted
from wiretale.reports.store.layout import ADDING, MANIFEST, place_of, publish, publishing, staging, stored

if TYPE_CHECKING:
    import duckdb


class Fact(NamedTuple):
    """A file without tables in the store."""

    path: Path
    size: int | None
    digest: str
    day: str | None
    text: str


def publish_fact(store: Path, connection: duckdb.DuckDBPyConnection, fact: Fact) -> bool:
    """Publishes the row of a file. Returns whether it is new."""
    counts = f"(SELECT NULL::BIGINT AS packets, NULL::BIGINT AS first_ns, NULL::BIGINT AS last_ns, {quoted(fact.text)} AS damage)"
    row = capture_row(str(fact.path), fact.size or 0, 0, [], counts)
    unknown = ["packets", "flows", *(["bytes"] if fact.size is None else [])]
    with staging(store, ADDING) as outer:
        made = outer / "capture"
        made.mkdir()
        with utf8_name(made) as folder:
            nulls = ", ".join(f'NULL::BIGINT AS "{name}"' for name in unknown)
            copy_to(connection, {folder / "captures.parquet": f"SELECT * REPLACE ({nulls}) FROM ({row})"})
        (made / MANIFEST).write_text(manifest(made, fact.digest))
        with publishing(store):
            return fact.digest not in stored(store) and publish(made, place_of(store, fact.digest, fact.day))
