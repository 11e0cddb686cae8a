# SPDX-License-Identifier: Apache-2.0
"""Split captures into shards that other processes and machines analyze. Packets that influence each other are in one shard, so
`wiretale cluster gather` returns the rows of one run. Payload that the analysis does not read is left out. Finished steps
are skipped.
"""

from __future__ import annotations

import argparse

from wiretale.cli.options import (
    FILE_HELP,
    add_analysis_options,
    analysis_options,
    count_bar,
    folder,
    note,
    option,
    whole_number,
)
from wiretale.cli.process import interrupted_code
from wiretale.version import __version__

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from wiretale.analyzer.shards.layout import Split

USAGE = "wiretale cluster split FILE... -o DIR --shards K [options]"
NOTES = """\
Each step has only files as input and output, which appear when they are complete: a step that is repeated skips what is done.
docs/split.md has the layout of DIR, and examples for xargs, make, SLURM and Kubernetes.
"""
EXAMPLES = """\
# split, analyze each shard (at the same time, on any machines), gather
wiretale cluster split day/*.pcapng -o day.split --shards 16
wiretale analyze day.split/shard-00
wiretale cluster gather day.split -o day.wiretale
# a part of the packets
wiretale cluster split day/*.pcapng -o web.split --shards 16 -f 'tcp port 443' --start 2026-01-15T12:00:00Z
# for schedulers: the plan, which prints the number of captures, then each of them
wiretale cluster split day/*.pcapng -o day.split --shards 16 --plan
wiretale cluster split -o day.split --only 0
"""
DAMAGED = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files", "FILE", f"{FILE_HELP.rpartition(',')[0]}; none if DIR has a plan", nargs="*")
    option(parser, "-o --output", "DIR", "the folder of the split", type=folder, required=True)
    text = "number of shards, 1 to 256: a few for each core that analyzes them"
    option(parser, "--shards", "K", text, type=whole_number(1, 256))
    add_analysis_options(parser, packets_only=True)
    option(parser, "--plan", None, "write the plan alone, and print the number of captures")
    option(parser, "--only", "N", "split one capture of the plan, from 0 on", type=whole_number(0), default=None)
    option(parser, "-q --quiet", None, "print nothing but errors")


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.options import NO_OPTIONS
    from wiretale.analyzer.shards import layout, steps

    if arguments.plan and arguments.only is not None:
        raise UsageError("--plan and --only are two steps: give one of them")
    options = analysis_options(arguments)
    layout.check_filter(options)
    if arguments.files:
        if arguments.shards is None:
            raise UsageError("expected --shards K")
        split = layout.plan(arguments.files, arguments.output, arguments.shards, options)
    else:
        if not (arguments.output / layout.PLAN).exists():
            raise UsageError(f"expected captures (FILE...), because {arguments.output} has no {layout.PLAN}")
        split = layout.open_split(arguments.output)
        if arguments.shards not in (None, split.shards):
            raise UsageError(f"{arguments.output}: has {split.shards} shards, but {arguments.shards} are asked for")
        if options != NO_OPTIONS:
            layout.check_options(split, options)
    if arguments.plan:
        print(len(split.files))
        return 0
    if arguments.only is not None:
        done = steps.split_file(split.folder, arguments.only, __version__)
        facts = layout.read_facts(split, arguments.only)
        damage = [facts.damage] if facts and facts.damage else []
        return report(arguments, f"capture {arguments.only}", done, damage)
    return split_all(arguments, split)


def split_all(arguments: argparse.Namespace, split: Split) -> int:
    """Splits the captures that are left; Ctrl-C leaves those that are done."""
    from wiretale.analyzer.shards import steps
    from wiretale.analyzer.units import plural

    total, ready = plural(len(split.files), "capture"), 0
    with count_bar("splitting", len(split.files), arguments.quiet) as advance:

        def count() -> None:
            nonlocal ready
            ready += 1
            advance()

        try:
            done, damage = steps.split_captures(split.folder, __version__, count)
        except KeyboardInterrupt:
            note(f"interrupted: {ready:,} of {total} are split: the same command splits the others")
            return interrupted_code()
    return report(arguments, f"{done:,} of {total}", done > 0, damage)


def report(arguments: argparse.Namespace, what: str, done: bool, damage: list[str]) -> int:
    """Says what was done, and returns the exit code."""
    if not arguments.quiet:
        note(f"{arguments.output}: split {what}" if done else f"{arguments.output}: split before, nothing to do")
    for text in damage:
        note(text)
    return DAMAGED if damage else 0
