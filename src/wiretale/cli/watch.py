# SPDX-License-Identifier: Apache-2.0
"""Analyze the files of a capture folder as they are finished, and keep the flows in a store. A flow that crosses files is one
flow. A restart, also after kill -9, neither loses nor repeats one.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wiretale.cli.options import add_analysis_options, analysis_options, folder, note, option, whole_number

if TYPE_CHECKING:
    from wiretale.cli.parser import Parser

USAGE = "wiretale store watch FOLDER --store DIR [options]"
NOTES = """\
A file is in the store once all flows that begin in it are over, or after --active. A file that a program still writes to, a
hidden file and one with the suffix .part is not read. docs/watch.md has the limits, and a systemd unit.
"""
EXAMPLES = """\
# beside `wiretale capture -i eth0 --headers -w captures/ -G 60 -b files:1000`
wiretale store watch captures/ --store archive/
# whole flows of up to 45 minutes, and more memory for them
wiretale store watch captures/ --store archive/ --active 1h --window-flows 1M
# all files that are there, and end
wiretale store watch captures/ --store archive/ --once
"""
EXIT_CODES = (0, 2, 3, 4)
EXIT_TEXTS = {
    0: "done with --once, or ended by SIGTERM, SIGHUP or Ctrl-C",
    3: "done with --once, but a file is damaged, missing or no capture",
}
DAMAGED = 3
ACTIVE, FLOWS = "10m", 300_000
SECOND_NS = 1_000_000_000
ACTIVE_LEAST_NS, ACTIVE_MOST_NS = 4 * SECOND_NS, 86_400 * SECOND_NS


def active_time(text: str) -> int:
    """Returns ns, from `10m`."""
    from wiretale.analyzer.units import parse_duration

    ns = parse_duration(text)
    if ns is None or not ACTIVE_LEAST_NS <= ns <= ACTIVE_MOST_NS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time from 4s to 24h, such as 10m")
    return ns


def add_options(parser: Parser) -> None:
    option(parser, "folder", "FOLDER", "the folder that a capture program writes to", type=folder)
    option(
        parser, "--store", "DIR", "the store (docs/store.md), which is made if it is new", type=folder, required=True
    )
    text = f"how long to wait for a flow to end; a longer one is stored in pieces (default {ACTIVE})"
    option(parser, "--active", "TIME", text, type=active_time, default=ACTIVE)
    text = f"flows analyzed together, about 3 kB each; with more, windows are shorter than --active (default {FLOWS})"
    option(parser, "--window-flows", "N", text, type=whole_number(1), default=FLOWS)
    option(parser, "--once", None, "store all files that are there, with flows that may go on, then end")
    option(parser, "-q --quiet", None, "print nothing but errors")
    add_analysis_options(parser.add_argument_group("input"))


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.units import agreeing, plural
    from wiretale.reports.store.watch import Notes, Watch
    from wiretale.reports.store.window import Limits

    limits = Limits(arguments.active, arguments.window_flows)
    quiet = arguments.quiet
    notes = Notes((lambda text: None) if quiet else note, note)
    watch = Watch(arguments.folder, arguments.store, limits, analysis_options(arguments), notes)
    try:
        watch.open()
        notes.progress(f"watching {arguments.folder} for {arguments.store}")
        watch.run(arguments.once)
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != "Query interrupted":  # so DuckDB ends at a signal
            raise
        waiting = len(watch.pending)
        wait = f"; {plural(waiting, 'file')} {agreeing(waiting, 'waits', 'wait')} for the next start" if waiting else ""
        notes.progress(f"stopped{wait}")
        return 0
    finally:
        watch.close()
    return DAMAGED if watch.damaged else 0
