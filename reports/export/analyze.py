# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --json`: the tables as one JSON object, written piece by piece.

The core serializes the rows: no library is imported and no row becomes a Python object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.table import AFTER_PASS, OF_INTERFACES

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

SUMMARY = {  # columns of directions
    *("flow", "direction", "blocks", "blocks_lost", "blocks_out_of_order", "blocks_duplicate", "blocks_late"),
    *("blocks_corrupt", "block_loss_runs", "block_loss_run_max", "block_restarts", "blocks_head_of_line"),
    *("head_of_line_ns_max", "jitter_ns", "delay_variation_ns"),
}
SCHEMA = "wiretale.analyze/3"
TABLES = (
    *OF_INTERFACES,
    *("flows", "directions", "waits", "endings", "loops", "datagrams", "handshakes", "exchanges"),
    *AFTER_PASS,
)


def blocks_summary(trace: Trace) -> list[dict[str, object]]:
    """Returns the directions with numbered blocks or packets of an application, and their counts."""
    directions, numbers = trace.directions, trace.directions._rows_where("blocks")
    applications = trace.flows.column("application") if numbers else []
    rows = (directions.rows(i, i + 1)[0] for i in numbers)
    return [
        {
            "application": applications[row["flow"]],
            **{name: value for name, value in row.items() if name in SUMMARY and value is not None},
        }
        for row in rows
    ]


def rows_of(table: Table, columns: Sequence[str], with_null: bool) -> Iterator[bytes]:
    """Returns the rows with these columns, or with all; those that are null in the whole table only `with_null`."""
    return table.json(columns or (None if with_null else table._held_columns()))


def array_of(parts: Iterable[Table], columns: Sequence[str]) -> Iterator[bytes]:
    """Yields one JSON array of the rows of a table that comes in parts, with all columns or these."""
    mark = b"["
    for part in filter(len, parts):
        pieces = part.json(columns or None)
        yield mark + next(pieces).removeprefix(b"[")
        pending = b""
        for piece in pieces:
            yield pending
            pending = piece
        mark = b","
    yield b"[]" if mark == b"[" else b"\n]"


def write_json(
    trace: Trace,
    version: str,
    out: IO[bytes],
    tables: Sequence[str] = TABLES,
    columns: Sequence[str] = (),
    with_null: bool = False,
    more: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Writes one object: members about the analysis, `more` of them, and the rows of each table with these columns, or all that
    have values."""
    parts = trace._packet_parts() if "packets" in tables else iter(())
    head = {
        "schema": SCHEMA,
        "wiretale": version,
        "inputs": trace.inputs,
        "answer": trace.answer._asdict(),
        "interrupted": trace.interrupted,
        "totals": {**trace.totals, "conversations": trace.transfers.conversations},
        "blocks_summary": blocks_summary(trace),
        "judged": judge(trace).as_object(),
        **more,
    }
    out.write(json.dumps(head).encode()[:-1])
    for name in tables:
        out.write(f',\n"{name}":'.encode())
        for piece in array_of(parts, columns) if name == "packets" else rows_of(trace.table(name), columns, with_null):
            out.write(piece)
    out.write(b"}\n")
