# SPDX-License-Identifier: Apache-2.0
"""Gather the rows of all shards of a split: the tables, findings and report of one run over the captures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wiretale.cli.analyze import deliver_trace, exit_code
from wiretale.cli.options import folder, note, option
from wiretale.cli.outputs import add_outputs, check_files, outputs_of

if TYPE_CHECKING:
    from pathlib import Path

    from wiretale.analyzer.trace import Trace
    from wiretale.cli.outputs import Outputs

USAGE = "wiretale cluster gather DIR [options]"
NOTES = """\
Each shard must have been analyzed by `wiretale analyze DIR/shard-NN`. Reports, pictures and --tables packets read the captures
a second time. If one run might have reached a limit, such as the number of open flows, its rows depend on more than a shard:
that is an error, unless --inexact is given. docs/split.md lists the limits.
"""
EXAMPLES = """\
wiretale cluster gather day.split -o day.wiretale
# findings as JSON
wiretale cluster gather day.split --json --tables findings
"""
EXIT_CODES = (0, 2, 3, 4, 5, 130, 143)
EXIT_TEXTS = {5: "a picture needs a browser, or kaleido; captures at URLs need fsspec"}


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "split", "DIR", "the folder of `wiretale cluster split`, with all shards analyzed", type=folder)
    option(parser, "--inexact", None, "gather even if one run might have reached a limit")
    add_outputs(parser)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.capture_paths import is_url
    from wiretale.analyzer.shards import layout, steps

    outputs = outputs_of(arguments)
    files = layout.open_split(arguments.split).files
    if outputs.has_files:
        check_files(outputs, files)
    trace = steps.gather(arguments.split, arguments.inexact)
    if outputs.has_packets and any(map(is_url, files)):
        keep_packets(trace, arguments.split, outputs)
    with steps.rows_of_others(arguments.split):
        deliver_trace(trace, outputs)
    return exit_code(trace)


def keep_packets(trace: Trace, split: Path, outputs: Outputs) -> None:
    """Reads the packets of captures at URLs. If they cannot be read, a report is made without them."""
    from wiretale.analyzer.errors import InputError, MissingToolError
    from wiretale.analyzer.shards import steps

    try:
        steps.keep_packets(split, trace)
    except (InputError, MissingToolError) as error:
        if outputs.pictures or "packets" in outputs.tables:
            raise
        note(f"the report has no packets: {error}")
