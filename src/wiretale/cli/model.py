# SPDX-License-Identifier: Apache-2.0
"""Turn flows of a capture into a plan that sends flows like them: UDP datagrams by their sizes and gaps, TCP by requests
and responses or its bytes. With --check, test whether the flows of an experiment agree with the original (docs/model.md).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wiretale.cli.options import add_json, note, option, print_json
from wiretale.version import __version__

USAGE = (
    "wiretale experiment model CAPTURE... -o PLAN [options]\nwiretale experiment model --check CAPTURE... DIR [options]"
)
EXAMPLES = """\
wiretale experiment model call.pcapng -o call.toml
# sizes and gaps of what `wiretale lab run call.toml -o call/` sent
wiretale experiment model --check call.pcapng call/
"""
NOTES = """\
The plan is TOML (docs/experiments.md), with a file of sizes and times for each session in a directory beside it: PLAN.toml
has them in PLAN.d/. All datagrams of a direction, or turns of a flow, are in its file, or 10,000 that are drawn from them.

DIR is the output of `wiretale experiment run` or `wiretale lab run`. Sizes and gaps are compared by the two-sample test of
Kolmogorov and Smirnov: they differ if p is below 0.01. Gaps may differ by the resolution.
"""
CAPTURE_HELP = (
    "a pcap or pcapng file (also gzip, zstd or lz4), or a directory of captures, which are read twice; with --check, "
    "followed by DIR"
)
DIFFER, DAMAGED = 1, 3
EXIT_CODES = (0, DIFFER, 2, DAMAGED, 4, 130, 143)
EXIT_TEXTS = {DIFFER: "a measure differs or is undetermined (--check)"}


def resolution(text: str) -> int:
    """Returns the ns of a time."""
    from wiretale.analyzer.units import parse_duration

    duration_ns = parse_duration(text)
    if duration_ns is None or duration_ns > 10**12:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time such as 200us or 1ms")
    return duration_ns


def flow_number(text: str) -> int:
    """Returns the number of a flow."""
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise argparse.ArgumentTypeError(f"{text!r}: expected the number of a flow, from 0")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "CAPTURE", CAPTURE_HELP, nargs="+")
    option(parser, "-o --output", "PLAN", "the plan to write, as PLAN.toml", type=Path)
    text = "model this flow; repeatable (default: the 32 with the most payload)"
    option(parser, "--flow", "N", text, type=flow_number, action="append", default=[])
    option(parser, "--check", None, "test whether the flows in DIR agree with the original")
    text = "timing resolution of --check (default: the delay that 99% of the blocks were sent within, plus 0.25 ms)"
    option(parser, "--resolution", "TIME", text, type=resolution)
    add_json(parser, " (--check)")


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.errors import UsageError

    if arguments.check:
        if arguments.output or arguments.flow:
            raise UsageError("--check writes no plan: expected no -o or --flow")
        return check(arguments)
    if not arguments.output:
        raise UsageError("expected -o PLAN, the plan to write")
    if arguments.output.suffix != ".toml":
        raise UsageError(f"-o {arguments.output}: expected the name of a plan, ending in .toml")
    if arguments.json or arguments.resolution is not None:
        raise UsageError("--json and --resolution need --check")
    return make(arguments)


def make(arguments: argparse.Namespace) -> int:
    """wiretale experiment model CAPTURE -o PLAN."""
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.trace import analyze_whole
    from wiretale.analyzer.units import plural
    from wiretale.traffic.model.flows import model_of
    from wiretale.traffic.model.plan_file import write_plan

    trace = analyze_whole(expand_paths(arguments.files, local=True), causes=False)
    trace.check_readable()
    model = model_of(trace, arguments.flow)
    source = ", ".join(Path(name).name for name in arguments.files)
    write_plan(arguments.output, arguments.files, source, model.sessions, model.remarks)
    note(f"wrote {arguments.output}: {plural(len(model.sessions), 'session')}")
    for remark in model.remarks:
        note(remark)
    return DAMAGED if trace.damaged else 0


def check(arguments: argparse.Namespace) -> int:
    """wiretale experiment model --check."""
    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.trace import analyze_whole
    from wiretale.traffic.model.agreement import agreement, experiment_folder

    *files, folder = arguments.files
    if not files:
        raise UsageError("--check: expected the original capture and DIR")
    experiment_folder(Path(folder))  # InputError before the capture is read
    trace = analyze_whole(expand_paths(files, local=True), causes=False)
    trace.check_readable()
    rows = [vars(measure) for measure in agreement(trace, Path(folder), arguments.resolution)]
    agrees = all(row["agrees"] for row in rows)
    if arguments.json:
        print_json({"schema": "wiretale.model-check/1", "wiretale": __version__, "agrees": agrees, "measures": rows})
    else:
        from wiretale.reports.terminal.model import print_agreement

        print_agreement(rows, sys.stdout)
    return DAMAGED if trace.damaged and agrees else 0 if agrees else DIFFER
