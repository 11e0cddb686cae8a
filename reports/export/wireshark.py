# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --wireshark`: a script in Lua with which Wireshark and tshark show verdicts, findings, causes and costs.

The script has them by frame number, so that it needs no copy of the capture; it stays silent for another capture, which it
notices by the time of the first frame. No text of packets is in it: verdicts and titles are words of wiretale.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.cut.comments import verdicts_of
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings.evidence import evidence_of
from wiretale.analyzer.frames.cited import of_cause, places_in
from wiretale.analyzer.frames.raw_frames import raw_frames
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

FRAMES_MAX = 500_000
COLUMNS = {"Verdict": "verdict", "Cause": "cause", "Cost": "cost"}  # beside those that Wireshark begins with
BASIC = (("No.", "%m"), ("Time", "%t"), ("Source", "%s"), ("Destination", "%d"), ("Protocol", "%p"), ("Length", "%L"))
SCRIPT = """\
-- SPDX-License-Identifier: Apache-2.0
-- Made by wiretale {version}: verdicts, findings, causes and their cost in seconds, by frame.
-- wireshark -X lua_script:THIS.lua CAPTURE
local FIRST_TIME = {first_time}
local marks = {{}}
for line in ([==[
{lines}]==]):gmatch("[^\\n]+") do
    local number, time, verdict, finding, cause, cost =
        line:match("^(%d+)\\t([^\\t]*)\\t([^\\t]*)\\t([^\\t]*)\\t([^\\t]*)\\t([^\\t]*)$")
    if number then
        marks[tonumber(number)] = {{
            time = tonumber(time),
            verdict = verdict,
            finding = finding,
            cause = cause,
            cost = tonumber(cost),
        }}
    end
end
local wiretale = Proto("wiretale", "wiretale")
local fields = {{
    verdict = ProtoField.string("wiretale.verdict", "Verdict"),
    finding = ProtoField.string("wiretale.finding", "Finding"),
    cause = ProtoField.string("wiretale.cause", "Cause"),
    cost = ProtoField.double("wiretale.cost", "Cost of the cause (s)"),
}}
wiretale.fields = {{ fields.verdict, fields.finding, fields.cause, fields.cost }}
local function is_at(packet, time)
    local seen = packet.abs_ts -- as text, a number has 14 digits alone: 0.1 ms
    return math.abs((tonumber(seen) or tonumber(tostring(seen))) - time) < 1e-5
end
local is_same = true
function wiretale.dissector(buffer, packet, tree)
    if packet.number == 1 then
        is_same = is_at(packet, FIRST_TIME)
    end
    local mark = is_same and marks[packet.number]
    if not mark or (mark.time and not is_at(packet, mark.time)) then
        return
    end
    local branch = tree:add(wiretale)
    for _, name in ipairs({{ "verdict", "finding", "cause" }}) do
        if mark[name] ~= "" then
            branch:add(fields[name], mark[name]):set_generated()
        end
    end
    if mark.cost then
        branch:add(fields.cost, mark.cost):set_generated()
    end
end
register_postdissector(wiretale)
"""


def seconds(ns: int | None) -> str:
    """Returns a time or duration in s; nothing if it is unknown."""
    return "" if ns is None else f"{ns // 1000 / 1e6:.6f}"


class Marks:
    """What is said of each frame of a file."""

    def __init__(self) -> None:
        self.texts: dict[int, dict[str, dict[str, None]]] = {}
        #: ns
        self.costs: dict[int, int] = {}
        self.times: dict[int, int] = {}

    def add(self, frame: int, column: str, text: str) -> None:
        """Adds a text of a column once; frames beyond FRAMES_MAX are left out."""
        if frame in self.texts or len(self.texts) < FRAMES_MAX:
            self.texts.setdefault(frame, {}).setdefault(column, {})[text] = None

    def lines(self) -> Iterator[str]:
        """Yields frame, time, verdict, finding, cause and cost."""
        for frame, columns in sorted(self.texts.items()):
            texts = ("; ".join(columns.get(name, ())) for name in ("verdict", "finding", "cause"))
            yield "\t".join((str(frame), seconds(self.times.get(frame)), *texts, seconds(self.costs.get(frame))))


def marks_of(trace: Trace) -> Marks:
    """Returns what is said of the frames of the only file."""
    from wiretale.analyzer.causes.registry import CAUSES

    marks = Marks()
    for row in trace.causes:
        for _, frame in of_cause(trace, row["cause"]):
            marks.add(frame, "cause", CAUSES[row["code"]].title)
            if row["waited_ns"]:
                marks.costs[frame] = max(marks.costs.get(frame, 0), row["waited_ns"])
    codes = trace.findings.column("code")
    for number, evidence in enumerate(evidence_of(trace)):
        for _, frame in places_in(evidence.frames):
            marks.add(frame, "finding", codes[number])
    for _, frame, text in verdicts_of(trace, [0] * len(trace.interfaces), False):
        marks.add(frame, "verdict", text)
    marks.times = times_of(trace, [1, *marks.texts])
    return marks


def times_of(trace: Trace, frames: Iterable[int]) -> dict[int, int]:
    """Returns the times of frames of the only file. Events have those of most; of the others, few are read."""
    events = trace.events
    times = dict(zip(events.column("frame"), events.column("time_ns"), strict=True))
    untimed = [(0, frame) for frame in frames if times.get(frame) is None] if len(trace.interfaces) else []
    raw = raw_frames(trace, untimed)
    times.update((frame.number, frame.time_ns) for frame in raw)
    return {frame: ns for frame, ns in times.items() if frame is not None and ns is not None}


def check_trace(trace: Trace) -> None:
    """Raises UsageError if frames are of several files, or if the file cannot be read again."""
    if len(trace.inputs) > 1:
        raise UsageError("--wireshark: expected one capture, because each numbers its frames from 1")
    trace.check_readable()


def script(trace: Trace) -> str:
    """Returns the script."""
    check_trace(trace)
    marks = marks_of(trace)
    lines = "".join(f"{line}\n" for line in marks.lines())
    return SCRIPT.format(version=__version__, first_time=seconds(marks.times.get(1, 0)), lines=lines)


def command(trace: Trace, path: Path) -> str:
    """Returns the command that opens the capture with the script and its columns."""
    columns = [*BASIC, *((name, f"%Cus:wiretale.{field}:0:R") for name, field in COLUMNS.items()), ("Info", "%i")]
    layout = ",".join(f'"{name}","{code}"' for name, code in columns)
    words = ("wireshark", "-X", f"lua_script:{path}", "-o", f"gui.column.format:{layout}", trace.inputs[0])
    return shlex.join(words)
