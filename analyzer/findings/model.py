# SPDX-License-Identifier: Apache-2.0
"""A finding, and the rule that makes it: page, sentence and computation in one place.

`@finding(...)` above a function makes it a Rule. The function yields a Match for each occurrence, whose words must fill the
templates of sentence and advice. Integers in templates take the form of their noun:

    {n}                   1,234
    {n:segment}           1 segment, 2 segments
    {n:loss|losses}       1 loss, 2 losses
    {n:~it was|they were} it was, they were
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from wiretale.analyzer.display_filter import frame_filter
from wiretale.analyzer.findings.cost import BY_COST
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import DatagramRow, DirectionRow, FindingRow, FlowRow, InterfaceRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

MEMBERS_MAX = 200  # flows of a finding that a report can show
SHOWN = 5  # rows that a sentence or its evidence names
SECOND = 1e9  # ns
Words = dict[str, Any]  # of a template, or fields of a match
Row = TypeVar("Row")
#: columns of directions that count captured packets, and those that count segments on the wire (docs/tables.md)
ON_WIRE = {
    "data_packets": "wire_segments",
    "retransmissions": "wire_retransmissions",
    "spurious_retransmissions": "wire_spurious",
    "unplaced_retransmissions": "wire_unplaced",
    "lost_upstream": "wire_lost_upstream",
    "lost_downstream": "wire_lost_downstream",
}


class Cited(NamedTuple):
    """A packet that a finding cites."""

    frame: int | None  # None: its number is unknown, because it may be one of another file
    time_ns: int | None = None
    flow: int | None = None
    capture: int | None = None


class Place(NamedTuple):
    """Where the evidence of a finding is: the last columns of its row (docs/tables.md)."""

    cited_flow: int | None = None
    capture: int | None = None
    first_frame: int | None = None
    last_frame: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None


def place_of(cited: Sequence[Cited]) -> Place:
    """Returns the place of packets of the first one's flow and capture: frames of other files do not compare."""
    if not cited:
        return Place()
    alike = [one for one in cited if (one.flow, one.capture) == (cited[0].flow, cited[0].capture)]
    alike.sort(key=lambda one: math.inf if one.frame is None else one.frame)
    first, last = alike[0], alike[-1]
    return Place(first.flow, first.capture, first.frame, last.frame, first.time_ns, last.time_ns)


class Finding(NamedTuple):
    """A row of the findings table (docs/tables.md)."""

    code: str
    severity: str
    scope: str
    sentence: str
    advice: str
    flow: int | None = None
    cost: float | None = None
    cost_unit: str | None = None
    evidence: str | None = None
    filter: str | None = None
    impact: float | None = 0.0  # share of the trace's bytes, 0 to 1; None: all of it may be affected
    lost_ns: float | None = None  # the cost as time; None if it is none. No column
    place: Place = Place()
    members: tuple[int, ...] = ()  # the first flows of a finding about several. No column

    def row(self) -> tuple[Any, ...]:
        """Returns the row as the core takes it."""
        return (
            self.code,
            self.severity,
            self.scope,
            self.flow,
            self.sentence,
            self.cost,
            self.cost_unit,
            None if self.impact is None else round(self.impact, 6),
            self.evidence,
            self.advice,
            self.filter,
            *self.place,
        )


class Count(int):
    """An integer that a template formats with its noun (see the head of this file)."""

    def __format__(self, spec: str) -> str:
        one, _, several = spec.lstrip("~").partition("|")
        if spec.startswith("~"):
            return one if self == 1 else several
        return plural(int(self), one, several or None) if spec else f"{int(self):,}"


def fill(template: str, words: Words) -> str:
    """Fills a template; see the head of this file."""
    return template.format_map({name: Count(word) if type(word) is int else word for name, word in words.items()})


class Match:
    """One occurrence of a finding."""

    def __init__(
        self,
        severity: str | None = None,
        *,
        flow: int | None = None,
        cost: float | None = None,
        evidence: str | None = None,
        filter: str | None = None,
        impact: float | None = None,
        cited: Sequence[Cited] = (),
        members: Sequence[int] = (),
        **words: Any,
    ) -> None:
        self.severity = severity  # None: the rule's
        self.cited = cited  # empty: the whole flow
        self.members = tuple(members[:MEMBERS_MAX]) if len(members) > 1 else ()
        self.fields: Words = {"flow": flow, "cost": cost, "evidence": evidence, "filter": filter, "impact": impact}
        self.words = words


Matches = Iterator[Match]


class Rule(NamedTuple):
    """One finding: the function that looks for it, and its page."""

    matches: Callable[[Transfers], Matches]
    code: str
    title: str
    computed: str  # with thresholds
    unknown: str  # limits of the computation
    sentence: str
    advice: str
    severity: str = "warning"  # a severity, or how it is chosen
    scope: str = "flow"
    unit: str | None = None  # of the cost
    layer: str = "on the wire"  # of a cost in bytes
    weakens: str | None = None  # results that a finding about the capture affects
    delays: bool = False  # the cost is the delay of a packet, not time of the transfer

    def findings(self, transfers: Transfers) -> Iterator[Finding]:
        """Returns one finding per match."""
        for match in self.matches(transfers):
            fields = dict(match.fields)
            cited = match.cited or (() if fields["flow"] is None else transfers.span(fields["flow"]))
            if fields["impact"] is None and self.scope != "capture":
                fields["impact"] = 0.0
            yield Finding(
                self.code,
                match.severity or ("warning" if self.severity == BY_COST else self.severity),
                self.scope,
                fill(self.sentence, match.words),
                fill(self.advice, match.words),
                cost_unit=None if fields["cost"] is None else self.unit,
                place=place_of(cited),
                members=match.members,
                **fields,
            )


def finding(**page: Any) -> Callable[[Callable[[Transfers], Matches]], Rule]:
    """Makes a rule of the function below it; `page` is the other members of Rule. The registry collects the rules."""
    return partial(Rule, **page)


def seconds(ns: float) -> float:
    """Returns nanoseconds as a cost in seconds."""
    return round(ns / SECOND, 6)


def percent(part: float, whole: float = 1, digits: int = 3) -> float:
    """Returns a share as a cost in percent."""
    return round(100 * part / whole, digits)


def segments(row: DirectionRow, column: str) -> int | None:
    """Returns a count of a directions row in segments on the wire; as captured if that is unknown, or for other columns."""
    on_the_wire = integer_in(row, ON_WIRE.get(column, column))
    return integer_in(row, column) if on_the_wire is None else on_the_wire


def on_wire(counted: dict[str, list[tuple[int, int]]], column: str) -> list[tuple[int, int]]:
    """Returns the nonzero counts of a column of ON_WIRE by row in segments on the wire, or as captured if that is unknown."""
    counts, found = counted[column], counted[ON_WIRE[column]]
    if found == counts:  # no super-segments
        return counts
    known = dict(found)
    return [(number, known.get(number, count)) for number, count in counts]


def nonzero_rows(table: Table, column: str) -> list[int]:
    """Returns the rows in which a column is neither null, 0 nor false."""
    return [number for number, _ in table._nonzero([column])[column]]


def row_at(table: Table[Row], number: int) -> Row:
    """Returns one row."""
    return table.rows(number, number + 1)[0]


def opposite(trace: Trace, row: DirectionRow) -> DirectionRow:
    """Returns the directions row of the opposite direction."""
    return row_at(trace.directions, 2 * row["flow"] + 1 - row["direction"])


def duration_of(row: FlowRow | DirectionRow | InterfaceRow) -> int | None:
    """Returns the ns from the first packet to the last; None without timestamps."""
    first, last = row["first_ns"], row["last_ns"]
    return None if first is None or last is None else last - first


def only(flows: Sequence[int]) -> int | None:
    """Returns the flow if it is the only one."""
    return flows[0] if len(flows) == 1 else None


def endpoint_str(address: str, port: int | None) -> str:
    """`10.0.0.1:80`, `[2001:db8::1]:80`; the address alone without a port."""
    shown = f"[{address}]" if ":" in address and port is not None else address
    return shown if port is None else f"{shown}:{port}"


def flow_str(row: FlowRow | DirectionRow) -> str:
    """`10.0.0.1:5000 → 10.0.0.2:80` of a flows or directions row."""
    source = endpoint_str(row["source"], row["source_port"])
    return f"{source} → {endpoint_str(row['destination'], row['destination_port'])}"


def flow_list(trace: Trace, numbers: Sequence[int]) -> str:
    """`flow 3 10.0.0.1:5000 → 10.0.0.2:80; …; and 7 more`."""
    shown = "; ".join(f"flow {n} {flow_str(row_at(trace.flows, n))}" for n in numbers[:SHOWN])
    return shown + (f"; and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else "")


def flows_match(transfers: Transfers, flows: Sequence[int], **fields: Any) -> Matches:
    """Yields a match about these flows if there are any; its words include their `count`."""
    if flows:
        usual = {"evidence": flow_list(transfers.trace, flows), "cited": transfers.span(flows[0])}
        yield Match(**{"count": len(flows), "flow": only(flows), "members": flows, **usual, **fields})


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

    def frame_list(self, cited: Sequence[Cited], count: int = 0) -> str | None:
        """`frames 4, 7, 9 and 12 more` of `count`, `frames 4, 7 of a.pcap; 9 of b.pcap` of these alone; None without any."""
        frames: dict[str, list[int]] = {}
        for one in cited:
            if one.frame is not None:
                frames.setdefault(self._of(one.capture), []).append(one.frame)
        shown = "; ".join(f"{', '.join(map(str, numbers))}{file}" for file, numbers in frames.items())
        known = len(frames_of(cited))
        more = f" and {count - known:,} more" if count > known else ""
        return f"{'frame' if max(count, known) == 1 else 'frames'} {shown}{more}" if shown else None

    def frame_filter(self, cited: Sequence[Cited]) -> str | None:
        """Returns a display filter of these frames; None without any, or if they are of several files."""
        frames = frames_of(cited)
        files = {self._of(one.capture) for one in cited if one.frame is not None}
        return frame_filter(frames) if len(files) == 1 else None

    def frame_range(self, row: FlowRow | DatagramRow | FindingRow) -> str:
        """`frames 3–70`, `frame 3` of a flow, datagram or finding; `first at frame 3 of a.pcap` if only the file of that
        frame is known."""
        first, last = row["first_frame"], row["last_frame"]
        capture = integer_in(row, "capture" if "capture" in row else "first_capture")
        if self._names and "code" not in row:
            return f"first at frame {first}{self._of(capture)}"
        return (f"frame {first}" if first == last else f"frames {first}–{last}") + self._of(capture)

    def first_at(self, row: InterfaceRow, column: str) -> Words:
        """Returns the evidence of a match that knows the first frame alone, from an interfaces row."""
        cited = first_packet(row, column)
        if not cited:
            return {}
        evidence = f"first at {self.frame_list(cited, 1)}"
        return {"evidence": evidence, "filter": self.frame_filter(cited), "cited": cited}


def first_packet(row: InterfaceRow, column: str) -> list[Cited]:
    """Returns the packet in a column of an interfaces row, and its time if that has a column; nothing if it is null."""
    frame, time = integer_in(row, column), f"{column}_ns"
    return [] if frame is None else [Cited(frame, integer_in(row, time) if time in row else None, None, row["capture"])]


def frames_of(cited: Sequence[Cited]) -> list[int]:
    """Returns the frames of packets."""
    return [one.frame for one in cited if one.frame is not None]


def stall_list(stalls: Sequence[tuple[int, int]], count: int) -> str:
    """`frames 340 and 341; frames 90 and 120; 2 more stalls` of `count` stalls."""
    shown = [f"frames {first} and {last}" for first, last in stalls]
    return "; ".join([*shown, f"{plural(count - len(stalls), 'more stall')}"] if count > len(stalls) else shown)
