# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze DIR/shard-07`: one shard of a split, whose rows `wiretale cluster gather` takes."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from wiretale.cli.options import analysis_options, note

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from wiretale.analyzer.options import AnalysisOptions

OUTPUTS = ("all", "flows", "json", "jsonl", "columns", "csv", "tables", "report", "figure", "no_frames", "link")
REFUSED = ("code", "cause", "top", "cluster", "work", "workers", "shards", "inexact", *OUTPUTS)


def shard_in(paths: list[str]) -> tuple[Path, int] | None:
    """Returns split and number if one of the paths is a shard. UsageError if there are others."""
    folders = list(filter(os.path.isdir, paths))
    if not folders:
        return None
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.shards.layout import PLAN, shard_of

    for path in folders:
        if os.path.isfile(os.path.join(path, PLAN)):
            raise UsageError(f"{path}: is a split: analyze its shards one by one, then use `wiretale cluster gather`")
    shards = [(path, shard) for path in paths if (shard := shard_of(path))]
    if shards and len(paths) > 1:
        raise UsageError(f"{shards[0][0]}: a shard of a split is analyzed by itself: give it alone")
    return shards[0][1] if shards else None


def run_shard(arguments: argparse.Namespace, folder: Path, shard: int) -> int:
    """Writes the rows of a shard, unless they are there, and with -o its tables."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.options import OPTIONS, keyword_of
    from wiretale.analyzer.shards import layout, steps
    from wiretale.cli.analyze import progress_bar

    options = analysis_options(arguments)
    choosing = [keyword_of(name) for name, declared in OPTIONS.items() if declared.chooses_packets]
    for name in (*choosing, *REFUSED):
        if getattr(arguments, name):
            text = name.replace("_", "-")
            raise UsageError(
                f"--{text} is not for a shard of a split: `wiretale cluster gather` has options of outputs, and others need "
                "the captures"
            )
    if len(arguments.output) > 1:
        raise UsageError("-o DIR: give it once")
    rows = layout.open_split(folder).rows_path(shard)
    with progress_bar(not arguments.quiet) as progress:
        if arguments.output:
            write_tables(arguments, folder, shard, options)
        done = steps.analyze_shard(folder, shard, options, progress)
    if not arguments.quiet:
        note(f"wrote {rows}" if done else f"{rows}: analyzed before, nothing to do")
    return 0


def write_tables(arguments: argparse.Namespace, folder: Path, shard: int, options: AnalysisOptions) -> None:
    """Writes the tables and rows of a shard. Its flows have numbers of their own."""
    from wiretale.analyzer.shards import layout, steps
    from wiretale.analyzer.trace import add_findings
    from wiretale.reports.export.destination import check_folder
    from wiretale.reports.export.parquet import table_files, write_tables

    output = arguments.output[0]
    check_folder(output, table_files(), layout.open_split(folder).files, arguments.overwrite)
    trace = steps.read_shard(folder, shard, options)
    add_findings(trace)
    steps.write_rows(folder, shard, trace)
    written = write_tables(trace, output)
    if not arguments.quiet:
        note(f"wrote {written}")
