# SPDX-License-Identifier: Apache-2.0
"""What `wiretale analyze` shows and writes: its options, and which of them go together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.cli.explained import add_choices, check_choices
from wiretale.cli.options import (
    LINK_HELP,
    STDOUT,
    add_overwrite,
    check_outputs,
    file_or_stdout,
    folder,
    option,
    report_paths,
)

if TYPE_CHECKING:
    from wiretale.analyzer.diff.trace_condition import TraceCondition

FLOWS = 10  # in the tables of --all
CHOICES = ("all", "flows", "top", "finding", "cause")  # findings and causes that the screen lists


class Outputs(NamedTuple):
    """What the user wants to see and to have written."""

    #: the directory of -o
    output: Path | None
    #: the same at a URL, with --cluster
    url: str | None
    #: the file of each of `figures`
    pictures: list[Path]
    #: flow and panels
    figures: list[tuple[int, list[str]]]
    #: `-` is standard output
    report: Path | None
    #: whether reports have bytes of frames
    frames: bool
    json: bool
    csv: bool
    #: the rows of the only table as JSON, a line each
    jsonl: bool
    tables: list[str]
    #: of the only table; empty: all
    columns: list[str]
    #: flows in the tables of flows; None for the screen
    flows: int | None
    #: the finding of this number or those of this code, the causes of this code, the first findings
    finding: int | str | None
    cause: str | None
    top: int | None
    link_bps: int | None
    overwrite: bool
    quiet: bool
    conditions: Sequence[TraceCondition] = ()
    #: the script of --wireshark
    wireshark: Path | None = None

    @property
    def place(self) -> Path | str | None:
        """The directory of -o, or its URL."""
        return self.url or self.output

    @property
    def csv_alone(self) -> bool:
        """Whether a table is written to standard output as CSV."""
        return self.csv and not self.place

    @property
    def is_screen(self) -> bool:
        """Whether the screen is all that is wanted."""
        outputs = self.prints_data or self.csv or self.has_files or self.place or self.report or self.quiet
        return not outputs and not self.explained

    @property
    def prints_data(self) -> bool:
        """Whether a program reads standard output."""
        return self.json or self.jsonl or self.csv_alone

    @property
    def explained(self) -> bool:
        """Whether more is shown than the screen has room for."""
        return bool(self.flows or self.finding or self.cause or self.top)

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of the tables in -o DIR."""
        return ("parquet", "csv") if self.csv else ("parquet",)

    @property
    def has_files(self) -> bool:
        """Whether there are files to write."""
        return bool(report_paths(self) or self.pictures or self.wireshark)

    @property
    def has_packets(self) -> bool:
        """Whether an output has packets: reports and pictures, and tables if these are asked for."""
        return bool(self.output or self.report or self.pictures or "packets" in self.tables)


def parts_of(text: str) -> list[str]:
    """Returns the names in `a,b,c`."""
    return [name.strip() for name in text.split(",")]


def table_names(text: str) -> list[str]:
    """Returns the tables in `a,b,c`."""
    from wiretale.analyzer.table import TABLES

    names = parts_of(text)
    for name in names:
        if name not in TABLES:
            from wiretale.analyzer.units import one_of

            raise argparse.ArgumentTypeError(f"{name!r}: expected {one_of(TABLES)}")
    return names


def table_name(text: str) -> str:
    """Returns the name of one table."""
    (name, *further) = table_names(text)
    if further:
        raise argparse.ArgumentTypeError(f"{text!r}: expected one table")
    return name


def figure_choice(text: str) -> tuple[int, list[str]]:
    """Returns flow and panels of `3`, `3:sequence` or `3:sequence,rtt`."""
    flow, _, panels = text.partition(":")
    if not (flow.isascii() and flow.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: expected FLOW or FLOW:PANEL, such as 0:sequence")
    return int(flow), [name.strip() for name in panels.split(",")] if panels else []


def lua_script(text: str) -> Path:
    """Returns the file of a script for Wireshark."""
    if not text.endswith(".lua"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a name that ends in .lua")
    return Path(text)


def add_outputs(parser: argparse.ArgumentParser, place: Callable[[str], Path | str] = folder) -> None:
    """Adds the options of outputs; `place` parses the directory of -o."""
    add_choices(parser, FLOWS)
    output = parser.add_argument_group("output")
    option(output, "--csv", None, "print one table as CSV (flows); with -o, also write its tables as CSV")
    text = "tables for --json, or the table for --csv (docs/tables.md); packets is added to -o DIR"
    option(output, "--tables", "A,B", text, type=table_names, default=[])
    text = "print the rows of one table as JSON, a line each, without columns that are null"
    option(output, "--jsonl", "TABLE", text, type=table_name)
    text = "only these columns of the one table of --jsonl, --csv or --json --tables TABLE"
    option(output, "--columns", "A,B", text, type=parts_of, default=[])
    text = "write every table but packets (add --tables packets) as Parquet, and report.html"
    option(output, "-o --output", "DIR", text, type=place, action="append", default=[])
    text = (
        "draw a flow and write the picture to -o (x.svg, x.png or x.pdf): all panels, or those named, as in 0:sequence,rtt. "
        "Repeat both options for several pictures, or name all by one -o '{flow}-{panel}.svg'"
    )
    option(output, "--figure", "FLOW[:PANEL]", text, type=figure_choice, action="append", default=[])
    option(output, "--report", "FILE", "write the interactive report; - for standard output", type=file_or_stdout)
    text = "write a script for Wireshark that shows verdicts, causes and cost in columns, and print how to open it"
    option(output, "--wireshark", "FILE.lua", text, type=lua_script)
    text = "keep bytes and decoded fields of frames out of the report: payload can be private"
    option(output, "--no-frames", None, text)
    add_overwrite(output)
    option(output, "--link", "RATE", LINK_HELP)
    text = "exit with 1 if it holds, as in 'lost>0', 'cause=policer' or 'server_time>0.2s'; repeatable"
    option(output, "--fail-if", "CONDITION", text, action="append", default=[])
    option(output, "-q --quiet", None, "print nothing but errors; --fail-if still decides the exit code")


def check_streams(arguments: argparse.Namespace, has_folder: bool) -> None:
    """Raises UsageError for what cannot be written to standard output together."""
    from wiretale.analyzer.errors import UsageError

    if arguments.jsonl and (arguments.tables or has_folder):
        raise UsageError("--jsonl TABLE writes one table to stdout: it takes no --tables and no -o DIR")
    table = "--jsonl" if arguments.jsonl else "--csv" if arguments.csv and not has_folder else ""
    if table and (choice := next((name for name in CHOICES if getattr(arguments, name)), "")):
        raise UsageError(f"{table} prints the rows of a table: it takes no --{choice}")
    if arguments.all and arguments.report == STDOUT:
        raise UsageError("--all prints every finding: it takes no --report -")


def outputs_of(arguments: argparse.Namespace) -> Outputs:
    """Returns the outputs that were asked for. UsageError if they contradict each other, or if the rate of --link is wrong."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.options import link_rate

    check_choices(arguments)
    folders, pictures = arguments.output, []
    if arguments.figure:
        from wiretale.reports.figures.picture import check_pictures

        pictures, folders = check_pictures(arguments.figure, folders), []
    if len(folders) > 1:
        raise UsageError("-o DIR: give it once; only pictures (--figure) can be several")
    place = folders[0] if folders else None
    check_streams(arguments, bool(folders))
    outputs = Outputs(
        output=place if isinstance(place, Path) else None,
        url=place if isinstance(place, str) else None,
        pictures=pictures,
        figures=arguments.figure,
        report=arguments.report,
        frames=not arguments.no_frames,
        json=arguments.json,
        csv=arguments.csv,
        jsonl=arguments.jsonl is not None,
        tables=[arguments.jsonl] if arguments.jsonl else arguments.tables,
        columns=arguments.columns,
        flows=arguments.flows or (FLOWS if arguments.all or arguments.link else None),
        finding=arguments.finding,
        cause=arguments.cause,
        top=arguments.top,
        link_bps=link_rate(arguments.link),
        overwrite=arguments.overwrite,
        quiet=arguments.quiet,
        conditions=conditions_of(arguments.fail_if),
        wireshark=arguments.wireshark,
    )
    check_conflicts(outputs)
    return outputs


def conditions_of(texts: list[str]) -> list[TraceCondition]:
    """Returns the conditions of --fail-if."""
    if not texts:
        return []
    from wiretale.analyzer.diff.trace_condition import parse_condition

    return list(map(parse_condition, texts))


def check_columns(outputs: Outputs) -> None:
    """Raises UsageError if there is not one table, or if it lacks a column."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.table import COLUMNS
    from wiretale.analyzer.units import one_of

    tables = outputs.tables or (["flows"] if outputs.csv_alone else [])
    if not outputs.prints_data or len(tables) != 1:
        raise UsageError("--columns needs one table: --jsonl TABLE, --csv, or --json --tables TABLE")
    existing = COLUMNS[tables[0]]
    for name in outputs.columns:
        if name not in existing:
            raise UsageError(f"--columns {name}: expected a column of {tables[0]}: {one_of(existing)}")


def check_conflicts(outputs: Outputs) -> None:
    """Raises UsageError if outputs contradict each other."""
    from wiretale.analyzer.errors import UsageError

    if not outputs.frames and not (outputs.report or outputs.place):
        raise UsageError("--no-frames needs --report FILE or -o DIR")
    if outputs.columns:
        check_columns(outputs)
    if outputs.tables and not (outputs.prints_data or outputs.place):
        raise UsageError("--tables needs --json, --csv or -o DIR")
    if outputs.tables and not outputs.prints_data and "packets" not in outputs.tables:
        raise UsageError("--tables: -o DIR has every table but packets; only packets can be added")
    if sum(map(bool, (outputs.json, outputs.jsonl, outputs.csv_alone, outputs.report == STDOUT))) > 1:
        raise UsageError("--json, --jsonl, --csv and --report - write to stdout: use only one")
    if outputs.csv_alone and len(outputs.tables) > 1:
        raise UsageError("--csv writes one table to stdout: use one name in --tables, or -o DIR")


def check_files(outputs: Outputs, inputs: list[str]) -> None:
    """Rejects outputs that would destroy an input or cannot be written."""
    from wiretale.reports.export.parquet import table_files

    more = [*outputs.pictures, *([outputs.wireshark] if outputs.wireshark else [])]
    check_outputs(outputs, inputs, table_files(outputs.formats, "packets" in outputs.tables), more)
