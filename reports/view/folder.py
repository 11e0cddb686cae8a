# SPDX-License-Identifier: Apache-2.0
"""The folder that `wiretale view` opens: the page of an analysis, and the index of its captures."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.index.capture_index import INDEX_FILE, write_index
from wiretale.analyzer.options import DEFAULTS, OPTIONS, AnalysisOptions
from wiretale.analyzer.trace import can_reread, stamp_of
from wiretale.reports.export.destination import output_folder
from wiretale.reports.export.parquet import OPTIONS_FILE, OPTIONS_KEY, reason_of
from wiretale.reports.html.analyze import render
from wiretale.reports.html.packing import base_time

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

PAGE_FILE = "page.html"
INSIDE = "view"  # the index in an output folder of analyze
TABLES = ("flows.parquet", OPTIONS_FILE)  # such a folder has them


def write_view(trace: Trace, folder: Path, link_bps: int | None, progress: Callable[[int], None] | None = None) -> None:
    """Writes page and index. OutputError if the folder cannot be written, InputError if a capture changed meanwhile."""
    import duckdb

    with output_folder(folder) as partial:
        (partial / PAGE_FILE).write_text(render(trace, link_bps, served=True), "utf-8")
        try:
            write_index(trace, partial, base_time(trace), progress)
        except duckdb.IOException as error:
            raise OSError(reason_of(error)) from None


def index_in(folder: Path) -> Path | None:
    """Returns the folder of the index in an output folder, or None."""
    return next((place for place in (folder, folder / INSIDE) if (place / INDEX_FILE).is_file()), None)


def is_output(folder: Path) -> bool:
    """Returns whether a folder was written by `analyze -o`."""
    return all((folder / name).is_file() for name in TABLES)


def refuse_options(options: AnalysisOptions, folder: Path) -> None:
    """UsageError if there is an option of the analysis, which the folder has already."""
    for name, value in options.row_options().items():
        if value != DEFAULTS[name]:
            flag = OPTIONS[name].flags.split()[0]
            raise UsageError(f"{flag}: {folder} has the options of its analysis: expected captures with this option")


def refuse_streams(paths: Sequence[str]) -> None:
    """UsageError for input that cannot be read twice; what does not exist is left to the analysis."""
    is_there = all(path == "-" or os.path.exists(path) for path in paths)
    if is_there and not can_reread(paths):
        raise UsageError("view reads packets when they are looked at: expected files, not a pipe or standard input")


Captured = tuple[str, str, tuple[int, ...]]  # path as it was given, absolute, stamp


def record_of(folder: Path) -> tuple[list[Captured], AnalysisOptions]:
    """Returns the captures that an output folder of `analyze -o` is about, and the options of analyze(). InputError if the folder
    does not have them."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS

    path = folder / OPTIONS_FILE
    with duckdb.connect(config=dict(SETTINGS)) as connection:
        sql = "SELECT value FROM parquet_kv_metadata(?) WHERE key::VARCHAR = ?"
        try:
            rows = connection.execute(sql, [str(path), OPTIONS_KEY]).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    try:
        record = json.loads(rows[0][0])
        captures = [(entry["path"], entry["absolute"], tuple(entry["stamp"] or ())) for entry in record["captures"]]
        options = AnalysisOptions.from_json(record["options"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise InputError(f"{path}: has no options of its analysis: run wiretale view with the captures") from None
    return captures, options


def analysis_of(folder: Path) -> tuple[list[str], AnalysisOptions]:
    """Returns the same captures by their names. InputError if one is not there or has changed."""
    captures, options = record_of(folder)
    return [unchanged(folder, *capture) for capture in captures], options


def unchanged(folder: Path, path: str, absolute: str, stamp: tuple[int, ...]) -> str:
    """Returns the path of a capture, as it was given or absolute. InputError if it is not there or has changed."""
    there = [name for name in (path, absolute) if stamp_of(name) is not None]
    for name in there:
        if stamp_of(name) == stamp:
            return name
    if there:
        raise InputError(f"{path}: changed since {folder} was written: run wiretale view {shlex.quote(path)}")
    raise InputError(f"{path}: expected the capture that {folder} is about")
