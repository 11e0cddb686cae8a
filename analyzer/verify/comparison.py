# SPDX-License-Identifier: Apache-2.0
"""Wiretale's verdicts and Wireshark's, frame by frame: where both agree, where they differ, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from wiretale.analyzer.verify.reasons import (
    AGAIN,
    ANSWERS,
    COPIES,
    LASTING,
    PROBES,
    RESENT,
    SEGMENT,
    SPURIOUS,
    Case,
    Row,
    reason_of,
)
from wiretale.analyzer.verify.tshark import End, Flagged

KINDS = (
    "fast_retransmission",
    "timeout_retransmission",
    "probe_retransmission",
    "retransmission",
    SPURIOUS,
    "out_of_order",
    "ambiguous",
    "network_duplicate",
    "mirror_duplicate",
    "unknown_duplicate",
    "duplicate_ack",
    "gap",
    "acked_unseen_segment",
    "captured_out_of_order",
    "keep_alive",
    "keep_alive_ack",
    "zero_window",
    "window_probe",
    "window_full",
    "reset",
    "icmp_error",
)
COMPARED = frozenset(KINDS)
# Verdicts that say as much as one of Wireshark's, which has no kinds but fast, and none for a spurious one.
ALIKE = {"retransmission": RESENT - {"fast_retransmission"}, SPURIOUS: RESENT}
# Verdicts on the same thing as one of Wireshark's, the nearest first; a copy of a frame can draw any.
COUNTERPARTS: dict[str, tuple[Set[str], ...]] = {
    **dict.fromkeys(AGAIN | {"out_of_order"}, (SEGMENT,)),
    **dict.fromkeys(PROBES, (PROBES, SEGMENT)),
    **dict.fromkeys(ANSWERS, (ANSWERS, COPIES)),
    "acked_unseen_segment": ({"captured_out_of_order"}, COPIES),
}
UNFLAGGED = Flagged(frozenset())
NO_ROW: Row = {}


@dataclass
class Count:
    """Frames of a kind."""

    both: int = 0
    wiretale_only: int = 0
    wireshark_only: int = 0


class Reason(NamedTuple):
    """Why verdicts differ; what no rule explains is told apart by the verdicts."""

    rule: str | None
    reason: str
    wiretale: str | None = None
    wireshark: str | None = None


class Difference(NamedTuple):
    """A frame that the two judge differently; None where one says nothing of the kind."""

    frame: int
    flow: int | None
    stream: int | None
    time_ns: int | None
    wiretale: str | None
    wireshark: str | None
    spurious: bool | None
    place: str | None
    evidence: str | None
    related_frame: int | None
    bytes: int | None
    detail: str | None
    rule: str | None
    reason: str

    def cause(self) -> Reason:
        """What it has in common with others."""
        return Reason(self.rule, self.reason) if self.rule else Reason(None, self.reason, self.wiretale, self.wireshark)


class Pair(NamedTuple):
    """Verdicts on a frame that belong together."""

    ours: str | None
    theirs: str | None
    agree: bool = False


class Around(NamedTuple):
    """What is known beside the verdicts."""

    shared_flows: Set[int] = frozenset()  # flows that Wireshark takes for one with others
    shared_ends: Set[frozenset[End]] = frozenset()  # and their ends
    paths: Mapping[int, str] = {}  # VLANs and tunnels of flows that have some
    dropped: int = 0  # events over wiretale's bounds
    full_ends: Mapping[frozenset[End], float] = {}  # last frame with an event where there were more than are kept
    full_from: float = inf  # frame from which no event is kept
    cut_flows: Set[int] = frozenset()  # flows with TCP options that the snap length cut
    one_way_ends: Set[frozenset[End]] = frozenset()  # of conversations of which one direction was captured
    begun_ends: Set[frozenset[End]] = frozenset()  # of those that were under way when the capture began
    resumed_ends: Set[frozenset[End]] = frozenset()  # of those in which something was sent again that came by before it

    def misses(self, frame: int, flagged: Flagged) -> bool:
        """Whether wiretale may have dropped an event of the frame."""
        last = self.full_ends.get(flagged.ends) if flagged.ends else None
        return frame >= self.full_from or (last is not None and frame > last)


def same_verdict(theirs: str, ours: Set[str]) -> str | None:
    """The verdict of ours that says as much."""
    return theirs if theirs in ours else min(ours & ALIKE.get(theirs, frozenset()), default=None)


def other_verdict(theirs: str, ours: Set[str]) -> str | None:
    """The verdict of ours on the same thing that says something else."""
    return next((min(ours & kinds) for kinds in COUNTERPARTS.get(theirs, (COPIES,)) if ours & kinds), None)


def pairs(kinds: Set[str], words: Set[str]) -> Iterator[Pair]:
    """Each verdict on a frame with its counterpart."""
    left, unmatched = set(kinds), []
    for word in sorted(words & COMPARED):
        same = same_verdict(word, left)
        if same:
            left.remove(same)
            yield Pair(same, word, True)
        else:
            unmatched.append(word)
    for word in unmatched:
        other = other_verdict(word, left) or other_verdict(word, kinds & COPIES)  # a copy repeats all verdicts
        left.discard(other or "")
        yield Pair(other, word)
    for kind in sorted(left):
        yield Pair(kind, None)


@dataclass
class Comparison:
    """The result, over as many pieces of a capture as are taken in, in the order of their frames."""

    around: Around = field(default_factory=Around)
    most: int | None = None  # differences kept of each reason
    kinds: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    reasons: Counter[Reason] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    noted: dict[int, frozenset[str]] = field(default_factory=dict)  # of Wireshark's streams

    def take(self, ours: Mapping[int, Sequence[Row]], theirs: Mapping[int, Flagged]) -> None:
        """Frames with wiretale's events and frames that Wireshark flags."""
        for frame in sorted(ours.keys() | theirs.keys()):
            self.take_frame(frame, ours.get(frame, ()), theirs.get(frame, UNFLAGGED))

    def take_frame(self, frame: int, rows: Sequence[Row], flagged: Flagged) -> None:
        """All verdicts on one frame."""
        events = {row["kind"]: row for row in reversed(rows) if row["kind"] in COMPARED}
        self.not_compared.update(row["kind"] for row in rows if row["kind"] not in COMPARED)
        if flagged.stream is not None and not LASTING.isdisjoint(events):
            self.noted[flagged.stream] = self.noted.get(flagged.stream, frozenset()) | LASTING.intersection(events)
        found = list(pairs(events.keys(), flagged.words))
        self.count(found, events)
        for pair in found:
            row = events.get(pair.ours or "", NO_ROW)
            if not pair.agree or (pair.ours in RESENT and bool(row.get("spurious")) != (pair.theirs == SPURIOUS)):
                self.note(frame, pair, row, flagged, events.keys())

    def count(self, found: Sequence[Pair], events: Mapping[str, Row]) -> None:
        """The kinds of one frame, each once."""
        same = {pair.ours for pair in found if pair.agree}
        mine = {pair.ours for pair in found if pair.ours} - same
        its = {pair.theirs for pair in found if pair.theirs and (not pair.agree or pair.theirs == SPURIOUS)}
        if any(row.get("spurious") for kind, row in events.items() if kind in RESENT):
            mine.add(SPURIOUS)
        for kind, count in self.kinds.items():
            count.both += kind in same or kind in mine & its
            count.wiretale_only += kind in mine - its
            count.wireshark_only += kind in its - mine

    def note(self, frame: int, pair: Pair, row: Row, flagged: Flagged, kinds: Set[str]) -> None:
        """A difference, with its reason."""
        flow = row.get("flow")
        case = Case(
            *(pair.ours, pair.theirs, row, flagged.words, kinds),
            shared=flow in self.around.shared_flows or flagged.ends in self.around.shared_ends,
            noted=self.noted.get(-1 if flagged.stream is None else flagged.stream, frozenset()),
            dropped=self.around.misses(frame, flagged),
            path=self.around.paths.get(flow) if flow is not None else None,
            cut=flow in self.around.cut_flows,
            one_way=flagged.ends in self.around.one_way_ends,
            begun=flagged.ends in self.around.begun_ends,
            resumed=flagged.ends in self.around.resumed_ends,
        )
        difference = Difference(
            *(frame, flow, flagged.stream, row.get("time_ns"), pair.ours, pair.theirs),
            *(row.get("spurious"), row.get("place"), row.get("evidence"), row.get("related_frame")),
            *(row.get("bytes"), row.get("detail"), *reason_of(case)),
        )
        self.reasons[difference.cause()] += 1
        if self.most is None or self.reasons[difference.cause()] <= self.most:
            self.differences.append(difference)


def compare(
    ours: Mapping[int, Sequence[Row]], theirs: Mapping[int, Flagged], around: Around | None = None
) -> Comparison:
    """Wiretale's events of each frame and what Wireshark says of it: counts for each kind, and each difference."""
    comparison = Comparison(around or Around())
    comparison.take(ours, theirs)
    return comparison
