# SPDX-License-Identifier: Apache-2.0
"""The windows of `wiretale store watch`: which files are analyzed together, so that a flow that crosses files is one flow.

Files are grouped into slots, in order of their first packets. The flows that begin in a slot are taken from one analysis of its
window: the slot and the files after it, for the time of a flow at most. So the state is the folder and the store: a file is in
the store once its window was analyzed, and a flow belongs to the file of its first packet. The files after the slot only
continue its flows, and begin none: such a packet costs a quarter of one in the slot, and the flows of the slot alone take
memory. A slot is a quarter of a window, or less if it is limited by its packets, flows or files; so a flow is whole if it
takes up to three quarters of the window. Slots and windows depend on the contents of the files alone, never on when they
came: an interrupted watch gives the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import InputError
from wiretale.reports.store.add import NS, stamp_of
from wiretale.reports.store.folder import Found, Stamp

if TYPE_CHECKING:
    from wiretale.analyzer.findings.model import Finding
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.trace import Trace

TCP = 6
SLOTS = 4  # of a window whose slots are limited by time
SLOTS_LEAST, SLOTS_MOST = 2, 10  # of others; each slot is read in so many windows
PACKETS = 50_000_000  # of a slot
FILES = 100  # of a slot, because each of its captures lists all files of its window


class Limits(NamedTuple):
    """The sizes of a window and of its slots."""

    #: time from its first packet to that of its last file
    active_ns: int
    #: of a slot
    flows: int
    packets: int = PACKETS

    @property
    def slot_ns(self) -> int:
        """Time from the first packet of a slot to that of its last file."""
        return self.active_ns // SLOTS


LIMITS = Limits(600 * 10**9, 300_000)  # of a watch whose options say nothing else


@dataclass
class Pending:
    """A file of which the store lacks the flows, analyzed by itself."""

    path: Path
    stamp: Stamp
    digest: str
    packets: int = 0
    flows: int = 0
    #: flows without TCP connections that began before the file
    begun: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    damage: str | None = None
    #: the findings about the capture itself
    findings: list[Finding] = field(default_factory=list)
    readable: bool = True

    def order(self) -> tuple[int, str]:
        """Files without times are alone in their windows; they come first."""
        return self.first_ns or 0, self.path.name

    def day(self) -> str | None:
        """Returns the UTC day of the first packet."""
        return None if self.first_ns is None else utc_day(self.first_ns)

    def is_here(self) -> bool:
        """Returns whether the file is as it was when it was analyzed."""
        try:
            return stamp_of(self.path) == self.stamp
        except OSError:
            return False


def utc_day(ns: int) -> str:
    """Returns a day as the store names it."""
    return datetime.fromtimestamp(ns // NS, UTC).strftime("%Y-%m-%d")


def read(files: Sequence[Path], options: AnalysisOptions, flow_files: int = 0) -> Trace:
    """Returns the tables of files, merged by time, with relations and without findings. InputError if one cannot be read.

    Only packets of the first `flow_files` files begin flows, unless it is 0.
    """
    from wiretale.analyzer import _core
    from wiretale.analyzer.options import ReadingMode
    from wiretale.analyzer.relations.relate import add_relations
    from wiretale.analyzer.trace import Trace, core_errors, read_all

    paths = [str(path) for path in files]
    with core_errors():
        core = _core.Analysis(paths, paths, options, ReadingMode(flow_files=flow_files))
        if read_all(core, None):
            raise KeyboardInterrupt
        core.finish()
    trace = Trace(core, dict.fromkeys(paths), options)
    add_relations(trace)
    return trace


def carried_over(trace: Trace) -> int:
    """Returns the number of TCP connections whose beginning is not in a capture."""
    columns = (trace.flows.column(name) for name in ("protocol_number", "initiator_evidence"))
    return sum(pair == (TCP, "first_packet") for pair in zip(*columns, strict=True))


def pending_of(finished: Found, digest: str, options: AnalysisOptions) -> Pending:
    """Analyzes a file by itself. OSError if it is gone; a file that is no capture is not `readable`."""
    from wiretale.analyzer.findings.registry import find_about_capture

    try:
        trace = read([finished.path], options)
    except InputError as error:
        stamp_of(finished.path)
        return Pending(finished.path, finished.stamp, digest, damage=str(error), readable=False)
    rows = trace.interfaces.rows()
    firsts = [row["first_ns"] for row in rows if row["first_ns"] is not None]
    lasts = [row["last_ns"] for row in rows if row["last_ns"] is not None]
    return Pending(
        finished.path,
        finished.stamp,
        digest,
        packets=sum(row["packets"] for row in rows),
        flows=trace.totals["flows"],
        begun=trace.totals["flows"] - carried_over(trace),
        first_ns=min(firsts, default=None),
        last_ns=max(lasts, default=None),
        damage=next((row["damage"] for row in rows if row["damage"]), None),
        # flows have other numbers in the window
        findings=[about._replace(flow=None, direction=None, flows=()) for about in find_about_capture(trace.transfers)],
    )


def fitting(files: Sequence[Pending], limits: Limits, ends: Container[str]) -> int:
    """Returns the number of files that fit into a slot, at least one; it ends with a file of `ends`."""
    packets = flows = 0
    for count, file in enumerate(files):
        packets, flows = packets + file.packets, flows + (file.begun if count else file.flows)
        exceeds = packets > limits.packets or flows > limits.flows or count >= FILES
        if count and (exceeds or files[count - 1].digest in ends or distance(files[0], file) >= limits.slot_ns):
            return count
    return len(files)


def distance(first: Pending, other: Pending) -> float:
    """Returns the time between the first packets of two files; infinite if it is not known."""
    return math.inf if first.first_ns is None or other.first_ns is None else other.first_ns - first.first_ns


def window_size(files: Sequence[Pending], limits: Limits, ends: Container[str]) -> int | None:
    """Returns the number of files in the window of the first slot; None if files that come may belong to it.

    It consists of whole slots, because a flow that it cuts goes on in a file that begins a slot; else a later window would
    have both parts as one. Whether a slot belongs to it depends on the files before, and on the begin of the slot.
    """
    size = slots = 0
    while size < len(files):
        gap = distance(files[0], files[size])
        late = gap + limits.slot_ns / 2 >= limits.active_ns
        apart = size > 0 and gap >= limits.active_ns
        if apart or (slots >= SLOTS_LEAST and (late or slots >= SLOTS_MOST)):
            return size
        size += fitting(files[size:], limits, ends)
        slots += 1
    return None


class Plan(NamedTuple):
    """The next slot and its window."""

    slot: list[Pending]
    window: list[Pending]
    #: whether the window ends because of a limit: its open flows are cut
    complete: bool

    def read(self, options: AnalysisOptions, start_ns: int | None = None) -> Trace:
        """Analyzes the window, if need be from a time on; only flows that begin in the slot are in it."""
        starts = [ns for ns in (options.start_ns, start_ns) if ns is not None]
        options = options._replace(start_ns=max(starts, default=None))
        return read([file.path for file in self.window], options, len(self.slot))


def next_plan(
    files: Sequence[Pending], limits: Limits, windows: Sequence[Collection[str]], ending: bool
) -> Plan | None:
    """Returns the first slot of files in order; None if a file that comes may belong to it.

    `windows` are the complete windows of files in the store; `ending` if no more files come.
    """
    if not files:
        return None
    for window in windows:  # a file that came late is alone: the windows of files around it lacked it
        inside = [file.digest in window for file in files]
        if True in inside and False in inside[: (last := len(inside) - inside[::-1].index(True))]:
            file = files[inside.index(False, 0, last)]
            return Plan([file], [file], True)
    covered = ([file.digest for file in files if file.digest in window] for window in windows)
    ends = {digests[-1] for digests in covered if digests}
    size = fitting(files, limits, ends)
    if size == len(files) and not ending:
        return None
    most = window_size(files, limits, ends)
    return Plan(list(files[:size]), list(files[:most]), most is not None)
