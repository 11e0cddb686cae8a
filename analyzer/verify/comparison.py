# SPDX-License-Identifier: Apache-2.0
"""Pairs the verdicts of wiretale and Wireshark on each frame, counts agreement by kind, and gives each difference a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from wiretale.analyzer.verify.case import (
    ANSWERS,
    COPIES,
    LASTING,
    PROBES,
    REPEATED,
    RETRANSMISSIONS,
    SEGMENT,
    SPURIOUS,
    Case,
    Row,
)
from wiretale.analyzer.verify.reasons import reason_of
from wiretale.analyzer.verify.tshark import End, Flagged

KINDS = (
    *("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission", SPURIOUS),
    *(
        "out_of_order",
        "ambiguous",
        "network_duplicate",
        "mirror_duplicate",
        "unknown_duplicate",
        "wlan_retry",
        "duplicate_ack",
        "gap",
    ),
    *("acked_unseen_segment", "captured_out_of_order", "keep_alive", "keep_alive_ack", "zero_window", "window_probe"),
    *("window_full", "reset", "icmp_error"),
)
COMPARED = frozenset(KINDS)
# Verdicts of wiretale that equal one of Wireshark's, which has no other kind than fast, and none for a spurious one.
ALIKE = {"retransmission": RETRANSMISSIONS - {"fast_retransmission"}, SPURIOUS: RETRANSMISSIONS}
# Verdicts of wiretale on the same subject as one of Wireshark's, nearest first; a copy of a frame can have any.
COUNTERPARTS: dict[str, tuple[Set[str], ...]] = {
    **dict.fromkeys(REPEATED | {"out_of_order"}, (SEGMENT,)),
    **dict.fromkeys(PROBES, (PROBES, SEGMENT)),
    **dict.fromkeys(ANSWERS, (ANSWERS, COPIES)),
    "acked_unseen_segment": ({"captured_out_of_order"}, COPIES),
}
UNFLAGGED = Flagged(frozenset())
NO_ROW: Row = {}


@dataclass
class Count:
    """Frames of one kind."""

    both: int = 0
    wiretale_only: int = 0
    wireshark_only: int = 0


class Reason(NamedTuple):
    """The reason of differences; those without a rule are grouped by their verdicts."""

    rule: str | None
    reason: str
    wiretale: str | None = None
    wireshark: str | None = None


class Difference(NamedTuple):
    """A frame with different verdicts; None if one of the two has none."""

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
        """Returns the reason by which differences are grouped."""
        return Reason(self.rule, self.reason) if self.rule else Reason(None, self.reason, self.wiretale, self.wireshark)


class Pair(NamedTuple):
    """Two verdicts on the same subject."""

    wiretale: str | None
    wireshark: str | None
    agree: bool = False


class Around(NamedTuple):
    """The context that may explain differences."""

    shared_flows: Set[int] = frozenset()  # flows that Wireshark merges with others
    shared_ends: Set[frozenset[End]] = frozenset()  # and their ends
    paths: Mapping[int, str] = {}  # VLANs and tunnels of flows that have some
    dropped: int = 0  # events that wiretale only counted
    full_ends: Mapping[frozenset[End], float] = {}  # last frame with an event, if the flow has more than are kept
    full_from: float = inf  # frame after which no event is kept
    cut_flows: Set[int] = frozenset()  # flows whose TCP options the snap length truncated
    one_way_ends: Set[frozenset[End]] = frozenset()  # of conversations with one captured direction
    begun_ends: Set[frozenset[End]] = frozenset()  # of those that began before the capture
    resumed_ends: Set[frozenset[End]] = frozenset()  # of those with a retransmission of data from before the capture
    ended_ends: Mapping[
        frozenset[End], int
    ] = {}  # last frame of the first flow that ended although the capture went on

    def misses(self, frame: int, flagged: Flagged) -> bool:
        """Returns whether wiretale may have dropped an event of the frame."""
        last = self.full_ends.get(flagged.ends) if flagged.ends else None
        return frame >= self.full_from or (last is not None and frame > last)


def same_verdict(wireshark: str, wiretale: Set[str]) -> str | None:
    """Returns the equal verdict of wiretale."""
    return wireshark if wireshark in wiretale else min(wiretale & ALIKE.get(wireshark, frozenset()), default=None)


def other_verdict(wireshark: str, wiretale: Set[str]) -> str | None:
    """Returns a different verdict of wiretale on the same subject."""
    return next((min(wiretale & kinds) for kinds in COUNTERPARTS.get(wireshark, (COPIES,)) if wiretale & kinds), None)


def pairs(kinds: Set[str], words: Set[str]) -> Iterator[Pair]:
    """Returns each verdict on a frame with its counterpart."""
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
    """The result. A capture may be added in parts, which must be in frame order, because earlier verdicts are evidence."""

    around: Around = field(default_factory=Around)
    most: int | None = None  # differences kept per reason
    problem: str | None = None  # why Wireshark did not read the file to its end
    last_frame: int | None = None  # then the last frame that was compared
    kinds: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    reasons: Counter[Reason] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    noted: dict[int, frozenset[str]] = field(default_factory=dict)  # earlier verdicts by Wireshark's stream
    streams: dict[frozenset[End] | None, int | None] = field(default_factory=dict)  # first of Wireshark, by ended ends
    probed: set[int] = field(default_factory=set)  # streams with a window probe of Wireshark
    shortened: set[int] = field(default_factory=set)  # streams with a record that is shorter than its packet

    def take(
        self,
        wiretale: Mapping[int, Sequence[Row]],
        wireshark: Mapping[int, Flagged],
        unread: Mapping[int, str] | None = None,
    ) -> None:
        """Adds wiretale's events by frame, the frames that Wireshark flags, and why wiretale did not read some of them."""
        for frame in sorted(wiretale.keys() | wireshark.keys()):
            self.take_frame(frame, wiretale.get(frame, ()), wireshark.get(frame, UNFLAGGED), (unread or {}).get(frame))

    def take_frame(self, frame: int, rows: Sequence[Row], flagged: Flagged, unread: str | None) -> None:
        events = {row["kind"]: row for row in reversed(rows) if row["kind"] in COMPARED}
        self.not_compared.update(row["kind"] for row in rows if row["kind"] not in COMPARED)
        if flagged.stream is not None:
            self.remember(flagged.stream, flagged, LASTING.intersection(events))
        compared = list(pairs(events.keys(), flagged.words))
        self.count(compared, events)
        for pair in compared:
            row = events.get(pair.wiretale or "", NO_ROW)
            if not pair.agree or (
                pair.wiretale in RETRANSMISSIONS and bool(row.get("spurious")) != (pair.wireshark == SPURIOUS)
            ):
                self.note(frame, pair, row, flagged, {row["kind"] for row in rows}, unread)

    def remember(self, stream: int, flagged: Flagged, kinds: Set[str]) -> None:
        """Keeps of the frame what may explain later ones of its conversation."""
        if kinds:
            self.noted[stream] = self.noted.get(stream, frozenset()) | kinds
        if "window_probe" in flagged.words:
            self.probed.add(stream)
        if flagged.shortened:
            self.shortened.add(stream)
        if flagged.ends in self.around.ended_ends:
            self.streams.setdefault(flagged.ends, stream)

    def has_ended(self, frame: int, flagged: Flagged) -> bool:
        """Returns whether wiretale ended a flow before this frame, and Wireshark continues its conversation."""
        last = self.around.ended_ends.get(flagged.ends) if flagged.ends else None
        return last is not None and frame > last and self.streams.get(flagged.ends) == flagged.stream

    def count(self, compared: Sequence[Pair], events: Mapping[str, Row]) -> None:
        """Counts each kind of one frame once."""
        same = {pair.wiretale for pair in compared if pair.agree}
        unmatched = {pair.wiretale for pair in compared if pair.wiretale} - same
        its = {pair.wireshark for pair in compared if pair.wireshark and (not pair.agree or pair.wireshark == SPURIOUS)}
        if any(row.get("spurious") for kind, row in events.items() if kind in RETRANSMISSIONS):
            unmatched.add(SPURIOUS)
        for kind, count in self.kinds.items():
            count.both += kind in same or kind in unmatched & its
            count.wiretale_only += kind in unmatched - its
            count.wireshark_only += kind in its - unmatched

    def note(self, frame: int, pair: Pair, row: Row, flagged: Flagged, kinds: Set[str], unread: str | None) -> None:
        """Adds a difference with its reason."""
        flow = row.get("flow")
        case = Case(
            pair.wiretale,
            pair.wireshark,
            row,
            flagged.words,
            kinds,
            unread=unread,
            shared=flow in self.around.shared_flows or flagged.ends in self.around.shared_ends,
            noted=self.noted.get(-1 if flagged.stream is None else flagged.stream, frozenset()),
            probed=flagged.stream in self.probed,
            shortened=flagged.stream in self.shortened,
            ended=self.has_ended(frame, flagged),
            dropped=self.around.misses(frame, flagged),
            path=self.around.paths.get(flow) if flow is not None else None,
            cut=flow in self.around.cut_flows,
            one_way=flagged.ends in self.around.one_way_ends,
            begun=flagged.ends in self.around.begun_ends,
            resumed=flagged.ends in self.around.resumed_ends,
        )
        rule, reason = reason_of(case)
        columns = ("time_ns", "spurious", "place", "evidence", "related_frame", "bytes", "detail")
        difference = Difference(
            frame=frame,
            flow=flow,
            stream=flagged.stream,
            wiretale=pair.wiretale,
            wireshark=pair.wireshark,
            rule=rule,
            reason=reason,
            **{name: row.get(name) for name in columns},
        )
        self.reasons[difference.cause()] += 1
        if self.most is None or self.reasons[difference.cause()] <= self.most:
            self.differences.append(difference)
