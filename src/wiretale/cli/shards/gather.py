# SPDX-License-Identifier: Apache-2.0
"""Gather the rows of all shards of a split: the tables, findings and report of one run over the captures."""

from __future__ import annotations

import argparse
from pathlib import Path

from wiretale.cli import analyze, options
from wiretale.cli.options import add_json, add_overwrite, option

USAGE = "wiretale gather DIR [options]"
NOTES = """\
If one run might have reached a limit, such as that of open flows, its rows depend on more than a shard: that is an error, unless
--inexact is given. docs/split.md lists the limits.
"""
EXAMPLES = """\
wiretale gather day.split -o day.wiretale
# findings as JSON
wiretale gather day.split --json --tables findings
"""
EXIT_CODES = (0, 2, 3, 4, 130, 143)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "split", "DIR", "the folder of `wiretale split`, with all shards analyzed", type=Path)
    option(parser, "--inexact", None, "gather even if one run might have reached a limit")
    output = parser.add_argument_group("output")
    text = "number of flows listed, largest first (default 10)"
    option(output, "--flows", "N", text, type=options.whole_number(1), default=10)
    add_json(output, " instead of the summary")
    option(output, "--csv", None, "print one table as CSV (flows); with -o, also write its tables as CSV")
    text = "tables for --json, or the table for --csv (docs/tables.md)"
    option(output, "--tables", "A,B", text, type=analyze.table_names, default=[])
    text = "write every table but packets as Parquet, and report.html"
    option(output, "-o --output", "DIR", text, type=options.folder, action="append", default=[])
    option(output, "--report", "FILE", "write the interactive report; - for standard output", type=options.page)
    option(output, "--no-frames", None, "keep bytes and decoded fields of frames out of the report")
    add_overwrite(output)
    option(output, "--link", "RATE", options.LINK_HELP)
    option(output, "-q --quiet", None, "print nothing but errors")


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.shards import layout, steps
    from wiretale.reports.export.parquet import table_files

    arguments.figure = []
    analyze.check_arguments(arguments)
    if options.report_paths(arguments):
        captures = layout.open_split(arguments.split).files
        options.check_outputs(arguments, captures, table_files(analyze.table_formats(arguments), False))
    trace = steps.gather(arguments.split, arguments.inexact)
    with steps.rows_of_others(arguments.split):
        options.deliver(
            arguments, lambda: analyze.write_stdout(trace, arguments), analyze.write_files(trace, arguments)
        )
    return analyze.exit_code(trace)
