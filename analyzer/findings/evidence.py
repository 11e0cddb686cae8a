# SPDX-License-Identifier: Apache-2.0
"""The packets and flows that show a finding: rows of finding_frames and finding_flows, and their text.

The ends of the span in which a finding shows have the roles `first` and `last`. Packets with other roles show it by
themselves; a finding about a whole flow has none of them.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from wiretale.analyzer.display_filter import frame_filter
from wiretale.analyzer.table import integer_in

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingFlowRow, FindingFrameRow, InterfaceRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

MEMBERS_MAX = 200_000  # flows of a finding in finding_flows, as many as a page holds
MEMBERS_READ = 200  # of them, those whose rows are read, or shown
FRAMES_MAX = 200  # packets of a finding in finding_frames
SHOWN = 5  # rows that a sentence or its evidence names
ENDS = FIRST, LAST = "first", "last"
BEFORE, AFTER = "before", "after"  # a wait
CITED, LOST, RETRANSMISSION, REQUEST, RESPONSE = "cited", "lost", "retransmission", "request", "response"
PAIRS = {AFTER: BEFORE, RESPONSE: REQUEST}
R = TypeVar("R")
Side = tuple[int, int | None]  # flow; direction, None for both


class Cited(NamedTuple):
    """A packet that a finding cites."""

    frame: int | None  # None: its number is unknown, because it may be one of another file
    time_ns: int | None = None
    flow: int | None = None
    capture: int | None = None
    role: str = CITED


def lost_near(frame: int, loss: Cited) -> Cited:
    """Returns a lost segment, or the packet nearest to it, of the flow and file of the packet that showed the loss."""
    return Cited(frame, None, loss.flow, loss.capture, LOST)


class EvidenceFields(NamedTuple):
    """What shows a finding: fields of Finding."""

    first_ns: int | None = None
    last_ns: int | None = None
    packets: int | None = None
    frames: tuple[Cited, ...] = ()  # rows of finding_frames
    flows: tuple[Side, ...] = ()  # rows of finding_flows


def evidence_fields(
    cited: Sequence[Cited],
    frames: Sequence[Cited] | None = None,
    packets: int | None = None,
    flows: Sequence[Side] = (),
) -> EvidenceFields:
    """Returns the evidence of a finding about these flows. The span is that of the packets in `cited` that are of the flow and
    capture of the first, because frames of different files do not compare.

    `frames` is the packets that show the finding by themselves, if they are not those, and `packets` the number of all of them;
    without it, SHOWN packets or more may be a part.
    """
    ends = ends_of(cited)
    named = [packet for packet in (cited if frames is None else frames) if packet.role not in ENDS]
    numbered = [packet for packet in (*ends, *named) if packet.frame is not None and packet.capture is not None]
    return EvidenceFields(
        ends[0].time_ns if ends else None,
        ends[-1].time_ns if ends else None,
        total(len(named), packets),
        tuple(dict.fromkeys(numbered))[:FRAMES_MAX],
        tuple(dict.fromkeys((*example_of(cited, flows), *flows)))[:MEMBERS_MAX],
    )


def ends_of(cited: Sequence[Cited]) -> list[Cited]:
    """Returns the first and the last of the packets that are of the flow and capture of the first; nothing without any."""
    alike = [packet for packet in cited if (packet.flow, packet.capture) == (cited[0].flow, cited[0].capture)]
    alike.sort(key=lambda packet: math.inf if packet.frame is None else packet.frame)
    return [alike[0]._replace(role=FIRST), alike[-1]._replace(role=LAST)] if alike else []


def total(named: int, packets: int | None) -> int | None:
    """Returns the number of packets that show a finding, of which `named` are named; None if it is unknown, or without any."""
    if packets:
        return max(packets, named)
    return named if 0 < named < SHOWN else None


def example_of(cited: Sequence[Cited], flows: Sequence[Side]) -> Sequence[Side]:
    """Returns the flow of the first packet, as it is in `flows` if it is one of them; nothing without one."""
    flow = cited[0].flow if cited else None
    return [] if flow is None else [next((side for side in flows if side[0] == flow), (flow, None))]


class Evidence(NamedTuple):
    """The rows of finding_frames and finding_flows of one finding."""

    frames: list[FindingFrameRow]
    flows: list[FindingFlowRow]

    @property
    def ends(self) -> list[FindingFrameRow | None]:
        """The first and the last packet of its span; None if it has none, or if its number is unknown."""
        return [next((row for row in self.frames if row["role"] == role), None) for role in ENDS]

    @property
    def named(self) -> list[FindingFrameRow]:
        """The packets that show it by themselves."""
        return [row for row in self.frames if row["role"] not in ENDS]

    @property
    def flow(self) -> int | None:
        """The flow in which it shows best."""
        return self.flows[0]["flow"] if self.flows else None

    def members(self) -> dict[str, list[dict[str, Any]]]:
        """Returns both as members of a JSON object, without the number of the finding."""
        return {
            name: [{key: row[key] for key in row if key != "finding"} for row in rows]
            for name, rows in self._asdict().items()
        }


def first_rows(table: Table[R], column: str, count: int) -> list[list[R]]:
    """Returns the first rows of each of so many findings or causes, whose numbers ascend in a column."""
    numbers = table.column(column)
    starts = [bisect_left(numbers, number) for number in range(1, count + 2)]
    return [table.rows(start, min(stop, start + MEMBERS_READ)) for start, stop in pairwise(starts)]


def evidence_of(trace: Trace) -> list[Evidence]:
    """Returns what shows each finding, in the order of the table."""
    count = len(trace.findings)
    return [
        Evidence(*parts)
        for parts in zip(
            *(first_rows(table, "finding", count) for table in (trace.finding_frames, trace.finding_flows)), strict=True
        )
    ]


class Files:
    """The files of a trace, each of which numbers its frames. Of several files, texts name that of a frame, and a display
    filter has frames of one file alone.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths` are the files of the interfaces."""
        counts = Counter(map(os.path.basename, set(paths)))
        names = [name if counts[name := os.path.basename(path)] == 1 else path for path in paths]
        self._names = names if len(set(paths)) > 1 else []

    def _of(self, capture: int | None) -> str:
        return f" of {self._names[capture]}" if self._names and capture is not None else ""

    def frame_filter(self, cited: Iterable[Cited]) -> str | None:
        """Returns a display filter of these frames; None without any, or if they are of several files."""
        numbered = [packet for packet in cited if packet.frame is not None]
        files = {self._of(packet.capture) for packet in numbered}
        return frame_filter(frames_of(numbered)) if len(files) == 1 else None

    def frame_range(self, first: int, last: int | None, capture: int) -> str:
        """`frames 3–70`, `frame 3 of a.pcap`."""
        return (f"frame {first}" if last in (None, first) else f"frames {first}–{last}") + self._of(capture)

    def frame_list(self, rows: Sequence[FindingFrameRow], packets: int | None) -> str:
        """`frames 4, 7, 9 and 12 more` of `packets` (None: unknown), `frames 4, 7 of a.pcap; 9 of b.pcap`, `frames 3–5` around a
        wait or from request to response; empty without any."""
        places: dict[str, list[str]] = {}
        listed, before = 0, ""
        for row in rows:
            frames = places.setdefault(self._of(row["capture"]), [])
            if frames and before and PAIRS.get(row["role"]) == before:
                frames[-1] += f"–{row['frame']}"
            elif sum(map(len, places.values())) < SHOWN:
                frames.append(str(row["frame"]))
            else:
                break
            listed, before = listed + 1, row["role"]
        if not places:
            return ""
        text = "; ".join(f"{', '.join(frames)}{file}" for file, frames in places.items())
        more = ", …" if packets is None else f" and {packets - listed:,} more" if packets > listed else ""
        return f"{'frame' if packets == 1 else 'frames'} {text}{more}"

    def of_finding(self, evidence: Evidence, packets: int | None) -> str:
        """Returns the packets of a finding, else those of its span: `frames 160, 341`, `frames 3–70`; empty without any."""
        first, last = evidence.ends
        if first is None or evidence.named:
            return self.frame_list(evidence.named, packets)
        return self.frame_range(first["frame"], last and last["frame"], first["capture"])


def frames_of(cited: Iterable[Cited]) -> list[int]:
    """Returns the frames of packets."""
    return [packet.frame for packet in cited if packet.frame is not None]


def first_packet(row: InterfaceRow, column: str) -> list[Cited]:
    """Returns the packet in a column of an interfaces row, and its time if that has a column; nothing if it is null."""
    frame, time = integer_in(row, column), f"{column}_ns"
    return [] if frame is None else [Cited(frame, integer_in(row, time) if time in row else None, None, row["capture"])]
