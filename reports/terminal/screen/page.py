# SPDX-License-Identifier: Apache-2.0
"""The whole screen, in at most 24 lines for one flow and 40 for more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.text import Text

from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import plural, show_duration
from wiretale.reports.phrases import drops_of, file_words
from wiretale.reports.terminal.command import Command
from wiretale.reports.terminal.console import last_lines, print_parts
from wiretale.reports.terminal.screen.causes import CAUSES_SHOWN, answer_parts, cause_parts
from wiretale.reports.terminal.screen.flows import flow_lines
from wiretale.reports.terminal.screen.time_bar import time_lines
from wiretale.reports.time_account import time_account

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from wiretale.analyzer.rows import InterfaceRow
    from wiretale.analyzer.trace import Trace

WHOLE = 9_000  # a snaplen from which on packets are hardly cut
TIME_LETTERS = 19  # of a time with seconds
LINES_OF_ONE_FLOW, LINES_MOST = 24, 40


class Room(NamedTuple):
    """What a screen has room for, beside what is never left out."""

    legend: int = 3  # lines
    causes: int = CAUSES_SHOWN
    proof: bool = True
    notes: bool = True  # why something was not judged, and how much of each packet was captured
    blank: bool = True  # lines between the blocks


#: tried in this order, until the screen is short enough; --all and --cause have what is left out. The last is for 60 columns.
ROOMS = (
    Room(),
    Room(1),
    Room(1, causes=1),
    Room(1, causes=1, proof=False),
    Room(1, causes=1, proof=False, notes=False),
    Room(1, causes=1, proof=False, notes=False, blank=False),
)


def cut_str(captures: Sequence[InterfaceRow]) -> str:
    """Returns how much of each packet was captured; empty if all of it was."""
    limits, cut = {row["snaplen"] for row in captures}, sum(row["truncated_packets"] for row in captures)
    limit = limits.pop() if len(limits) == 1 else None
    if not cut:
        return ""
    return f"first {limit} bytes of each" if limit and limit < WHOLE else f"{cut:,} of them cut"


def file_str(trace: Trace, notes: bool = True) -> str:
    """Returns name, packets, time and start of the captures, perhaps whether packets were cut, and how many were dropped."""
    captures = trace.interfaces.rows()
    names = list(dict.fromkeys(row["file"] for row in captures))
    starts = [row["first_ns"] for row in captures if row["first_ns"] is not None]
    dropped = sum(filter(None, map(drops_of, captures)))
    parts = [
        plural(sum(row["packets"] for row in captures), "packet"),
        f"{show_duration(trace.transfers.turns.capture_ns)} from {show_time(min(starts))[:TIME_LETTERS]} UTC"
        if starts
        else "",
        cut_str(captures) if notes else "",
        f"{dropped:,} dropped by the capture" if dropped else "",
    ]
    name = PurePath(names[0]).name if len(names) == 1 else plural(len(names), "file")
    return f"{name}: {', '.join(filter(None, parts))}"


def next_str(trace: Trace) -> str:
    """Returns the command that a person would run next; empty if the input cannot be read again."""
    answer, words = trace.answer, " ".join([*file_words(trace._arguments), *map(shlex.quote, trace.options.words())])
    if "-" in trace.inputs:
        return ""
    if answer.cause is not None:
        return f"wiretale {words} --cause {answer.cause}"
    if answer.findings:
        return f"wiretale {words} --finding {trace.findings[answer.findings[0] - 1]['code']}"
    if any(row["packets"] for row in trace.interfaces.rows()):
        return f"wiretale view {words}"
    files = " ".join(file_words(trace._arguments))
    return f"wiretale {files}" if trace.options.filter else f"wiretale info {words}"


def closing(trace: Trace, width: int, notes: bool) -> Iterator[RenderableType]:
    """Yields what was judged, the file, and the next command."""
    yield Text()
    above = {"Judged": judge(trace).brief(notes), "File": file_str(trace, notes)}
    yield from last_lines(above, Command(next_str(trace)), width)


def head_parts(trace: Trace, width: int, room: Room) -> Iterator[RenderableType]:
    """Yields the answer, where the time went, and the first causes."""
    yield from answer_parts(trace)
    account = time_account(trace)
    yield from [Text(), *time_lines(account, width, room.legend)] if account else []
    yield from cause_parts(trace, width, room.causes, ("Proof", "Fix") if room.proof else ("Fix",))


def is_blank(part: RenderableType) -> bool:
    """Returns whether a part is an empty line."""
    return isinstance(part, Text) and not part


def screen_parts(trace: Trace, console: Console) -> list[RenderableType]:
    """Returns the blocks of the screen, in at most 24 lines for one flow and 40 for more if its texts permit."""
    most = LINES_OF_ONE_FLOW if len(trace.flows) == 1 else LINES_MOST
    width = console.width
    parts: list[RenderableType] = []
    flows = list(flow_lines(trace, width))
    for room in ROOMS:
        parts = [*head_parts(trace, width, room), *flows, *closing(trace, width, room.notes)]
        parts = [part for part in parts if room.blank or not is_blank(part)]
        if len(console.render_lines(Group(*parts), pad=False)) <= most:
            break
    return parts


def print_screen(trace: Trace, out: IO[str]) -> None:
    """Prints the screen."""
    print_parts(out, lambda console: screen_parts(trace, console))
