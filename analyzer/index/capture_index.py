# SPDX-License-Identifier: Apache-2.0
"""The folder of an index: made from an analysis, opened later without one.

index.json       captures with their stamps, base of all times, levels
packets.parquet  packets sorted by flow and time, and ticks, spans.parquet (packet_store.py)
pyramid.parquet  packets that stand for many (pyramid.py)
series.parquet   and other tables that are drawn, sorted by flow; the size of segments (segments.parquet)
capture-0.*      the frames and seek points of the first capture file (frame_index.py)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.index.frame_index import FrameIndex
from wiretale.analyzer.index.packet_store import PARQUET, connected, sql_path, write_packets
from wiretale.analyzer.index.pyramid import write_pyramid
from wiretale.analyzer.trace import core_errors, stamp_of

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

FORMAT = 4
INDEX_FILE = "index.json"
KEPT_TABLES = ("series", "events", "blocks", "datagrams")
DRAWN_TABLES = (*KEPT_TABLES, "time_spans")


def write_index(trace: Trace, folder: Path, base_ns: int, progress: Callable[[int], None] | None = None) -> None:
    """Writes the index of an analysis into a folder; `base_ns` is the base of the page's times.

    InputError if a capture changed meanwhile.
    """
    with core_errors():
        frames = [FrameIndex.make(capture, folder / f"capture-{number}") for number, capture in enumerate(trace.inputs)]
        count, spans = write_packets(trace, folder, progress)
    tables = {**{name: trace.table(name) for name in KEPT_TABLES}, "time_spans": spans}
    with connected(folder) as connection:
        shifts = write_pyramid(connection, folder)
        write_drawn(tables, connection, folder)
        write_sizes(trace, connection, folder)
    trace.check_readable()
    files, numbers = trace.interfaces.column("file"), {path: number for number, path in enumerate(trace.inputs)}
    about = {
        "format": FORMAT,
        "captures": [
            {"path": str(Path(path).absolute()), "stamp": stamp_of(path), "frames": count}
            for path, count in zip(trace.inputs, frames, strict=True)
        ],
        "interfaces": [numbers[file] for file in files],  # the capture file of each interface
        "base_ns": base_ns,
        "packets": count,
        "shifts": shifts,
        "words": {name: words_of(table) for name, table in tables.items()},
    }
    (folder / INDEX_FILE).write_text(json.dumps(about), "utf-8")


def write_drawn(tables: dict[str, Table], connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Writes the tables that are drawn, with the rows of a flow in their order."""
    for name, table in tables.items():
        connection.register(name, table.with_integers())
        target, rows = sql_path(folder / f"{name}.parquet"), f"SELECT *, row_number() OVER () AS row FROM {name}"
        connection.execute(f"COPY (FROM ({rows}) ORDER BY flow, row) TO {target} ({PARQUET})")


def write_sizes(trace: Trace, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Writes the directions with super-segments, and the size of their segments on the wire."""
    connection.register("directions", trace.directions.with_integers())
    sizes = """SELECT flow, direction, wire_mss FROM directions
        WHERE wire_segments > data_packets AND wire_mss IS NOT NULL ORDER BY flow, direction"""
    connection.execute(f"COPY ({sizes}) TO {sql_path(folder / 'segments.parquet')} ({PARQUET})")


def words_of(table: Table) -> dict[str, dict[str, int]]:
    """Returns the number of each word in the columns of a table, as in the data of a report."""
    columns = [column for column, kind, *_ in table.columns() if kind == "word"]
    return {column: {word: number for number, word in table._words(column).items()} for column in columns}


class CaptureIndex:
    """An index that was written; its captures are checked at each use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[str, Any] = read_about(folder)
        self._frames: dict[int, FrameIndex] = {}

    @property
    def captures(self) -> list[str]:
        return [capture["path"] for capture in self.about["captures"]]

    def check(self) -> None:
        """Raises InputError, with the name of the capture, if one is missing or has changed since the analysis."""
        for capture in self.about["captures"]:
            stamp = stamp_of(capture["path"])
            if stamp is None:
                raise InputError(f"{capture['path']}: is no longer there")
            if list(stamp) != capture["stamp"]:
                raise InputError(f"{capture['path']}: changed since it was analyzed: run wiretale view again")

    def cut(self, interface: int, frame: int) -> bytes:
        """Returns a capture file of one frame of the file of an interface. UsageError if there is none."""
        files = self.about["interfaces"]
        if not 0 <= interface < len(files):
            raise UsageError(f"there is no interface {interface} (0 to {len(files) - 1})")
        self.check()
        number = files[interface]
        most = self.about["captures"][number]["frames"]
        if not 1 <= frame <= most:
            raise UsageError(f"{self.captures[number]}: has no frame {frame:,} (1 to {most:,})")
        if number not in self._frames:
            self._frames[number] = FrameIndex(self.captures[number], self.folder / f"capture-{number}")
        return self._frames[number].cut(frame)


def read_about(folder: Path) -> dict[str, Any]:
    """Returns the description of an index. InputError if it cannot be read or is of another version."""
    path = folder / INDEX_FILE
    try:
        about = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: is of another version of wiretale: remove {folder}")
    if not is_description(about):
        raise InputError(f"{path}: is damaged: remove {folder}")
    return about


def is_description(about: dict[str, Any]) -> bool:
    """Returns whether all parts of a description are there, with the types that they are used as."""
    types = {"captures": list, "interfaces": list, "base_ns": int, "packets": int, "shifts": list, "words": dict}
    if not all(isinstance(about.get(name), kind) for name, kind in types.items()):
        return False
    parts = {"path": str, "stamp": list, "frames": int}
    captures = [entry for entry in about["captures"] if isinstance(entry, dict)]
    return (
        len(captures) == len(about["captures"])
        and all(isinstance(entry.get(name), kind) for entry in captures for name, kind in parts.items())
        and all(isinstance(entry, int) and 0 <= entry < len(captures) for entry in about["interfaces"])
        and all(isinstance(entry, int) for entry in about["shifts"])
        and all(isinstance(about["words"].get(name), dict) for name in DRAWN_TABLES)
    )
