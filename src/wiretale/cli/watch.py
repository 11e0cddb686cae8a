# SPDX-License-Identifier: Apache-2.0
"""Analyze the files of a capture folder as they are finished, and keep the flows in a store. A flow that crosses files is one
flow. A restart, also after kill -9, neither loses nor repeats one.
"""

from __future__ import annotations

import argparse
import signal
from typing import TYPE_CHECKING

from wiretale.cli.options import add_analysis_options, analysis_options, folder, note, option

if TYPE_CHECKING:
    from wiretale.cli.parser import Parser

USAGE = "wiretale store watch FOLDER --store DIR [options]"
NOTES = """\
A file is in the store as soon as it is finished, with the flows that ended in it; flows that are open are in the store when they
end, and before that in the folder of --open-flows. A file that a program still writes to, a hidden file and one with the suffix
.part is not read. docs/watch.md says when flows end, and has a systemd unit.
"""
EXAMPLES = """\
# beside `wiretale capture -i eth0 --headers -w captures/ -G 60 -b files:1000`
wiretale store watch captures/ --store archive/
# open flows as tables, and as the page of `wiretale view now/`
wiretale store watch captures/ --store archive/ --open-flows now/
# all files that are there with all flows, and end
wiretale store watch captures/ --store archive/ --once
"""
EXIT_CODES = (0, 2, 3, 4, 130, 143)
EXIT_TEXTS = {
    0: "done with --once, or without it ended by SIGTERM, SIGHUP or Ctrl-C",
    3: "done with --once, but a file is damaged, missing or no capture",
}
DAMAGED = 3


def add_options(parser: Parser) -> None:
    option(parser, "folder", "FOLDER", "the folder that a capture program writes to", type=folder)
    option(
        parser, "--store", "DIR", "the store (docs/store.md), which is made if it is new", type=folder, required=True
    )
    option(parser, "--once", None, "store the files that exist now, including flows that are still open, then end")
    text = "keep tables and a page of the open flows in this folder, refreshed after each file, and at once at SIGUSR1"
    option(parser, "--open-flows", "DIR", text, type=folder)
    option(parser, "-q --quiet", None, "print nothing but errors")
    add_analysis_options(parser.add_argument_group("input"))


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.units import agreeing, plural
    from wiretale.reports.store.watch import Notes, Watch

    quiet = arguments.quiet
    notes = Notes((lambda text: None) if quiet else note, note)
    if arguments.once and arguments.open_flows:
        raise UsageError("--open-flows: no flow is open after --once")
    watch = Watch(arguments.folder, arguments.store, analysis_options(arguments), notes, arguments.open_flows)
    try:
        watch.open()
        if watch.snapshots:
            signal.signal(signal.SIGUSR1, watch.snapshots.ask)
        notes.progress(f"watching {arguments.folder} for {arguments.store}")
        watch.run(arguments.once)
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != "Query interrupted":  # so DuckDB ends at a signal
            raise
        waiting = len(watch.pending)
        wait = f"; {plural(waiting, 'file')} {agreeing(waiting, 'waits', 'wait')} for the next start" if waiting else ""
        notes.progress(f"stopped{wait}")
        if arguments.once:  # not all that was there is stored
            raise KeyboardInterrupt from None
        return 0
    finally:
        watch.close()
    return DAMAGED if watch.damaged else 0
