# SPDX-License-Identifier: Apache-2.0
"""What is true of each frame of a capture, and what of that can be told from the capture alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from score.capture_frames import FIN, SYN, TCP, UDP, Frame
from score.sendings import Run, Sending
from score.testbed import SENDER

MIRROR_GAP_NS = 1_000_000  # copies that are nearer may be the mirror's, as far as one can see


class Ranges:
    """Bytes seen, as ranges that do not touch."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        first, last = bisect_left(self.ends, start), bisect_right(self.starts, end)
        if first < last:
            start, end = min(start, self.starts[first]), max(end, self.ends[last - 1])
        self.starts[first:last], self.ends[first:last] = [start], [end]

    def covered(self, start: int, end: int) -> int:
        """How many of these bytes."""
        first = bisect_right(self.ends, start)
        total = 0
        while first < len(self.starts) and self.starts[first] < end:
            total += min(end, self.ends[first]) - max(start, self.starts[first])
            first += 1
        return total


@dataclass
class Label:
    """The truth of one frame; None where the question does not arise, or has no one answer."""

    frame: int
    flow: int
    what: str  # new, again, late, copy, mirror, ack; datagram, datagram late, datagram copy
    length: int = 0
    place: str | None = None  # of the loss that a frame sent again repairs: upstream or downstream
    needless: bool | None = None
    cause: str | None = None  # by the kernel
    causes: frozenset[str] = frozenset()  # all that fit what the capture can hold, the true one among them
    answer_lost: bool = False  # it had arrived, but no acknowledgment of it came by
    told: bool = True  # `what` can be told here
    place_told: bool = False
    needless_told: bool = False
    opener: int | None = None  # the frame that opened the gap which this one fills
    unseen: int = 0  # bytes that this acknowledgment is the first to cover and that the capture missed


@dataclass
class Answers:
    """Acknowledgments of one flow that passed a point, in order."""

    times: list[int] = field(default_factory=list)
    highest: list[int] = field(default_factory=list)  # cumulative acknowledgment so far
    frames: list[Frame] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)  # of all of them
    sacked: list[tuple[int, int, int]] = field(default_factory=list)  # time, start, end
    doubled: list[tuple[int, int, int]] = field(default_factory=list)  # reported as received twice

    def take(self, frame: Frame, begin: int) -> None:
        position = (frame.acknowledgment - begin) % 2**32
        self.times.append(frame.time_ns)
        self.frames.append(frame)
        self.ends.add(position)
        self.highest.append(max(position, self.highest[-1] if self.highest else 0))
        blocks = [((left - begin) % 2**32, (right - begin) % 2**32) for left, right in frame.sacks]
        if blocks and is_doubled(blocks, position):
            self.doubled.append((frame.time_ns, *blocks.pop(0)))
        self.sacked += [(frame.time_ns, *block) for block in blocks]

    def ended_at(self, start: int) -> bool:
        """Whether an acknowledgment asked for just this byte, or the receiver reports what it holds above one (SACK)."""
        return bool(self.sacked) or start in self.ends

    def acknowledged(self, end: int, before_ns: int) -> bool:
        """Whether a cumulative acknowledgment or SACK of it had passed."""
        last = bisect_left(self.times, before_ns) - 1
        return last >= 0 and self.highest[last] >= end

    def reported(self, sending: Sending, before_ns: int) -> bool:
        return any(
            start <= sending.start and end >= sending.end for time, start, end in self.sacked if time < before_ns
        )

    def reported_twice(self, start: int, end: int, after_ns: int, times: int = 1) -> bool:
        """So often: each report is of one sending, the newest first."""
        return sum(time > after_ns and left < end and right > start for time, left, right in self.doubled) >= times

    def echoes_earlier(self, sending: Sending, time_ns: int) -> bool:
        """RFC 3522: the first acknowledgment of it echoes a time stamp older than its own, and it was the lowest."""
        at = bisect_right(self.times, time_ns)
        if sending.tsval is None or not at or self.highest[at - 1] < sending.start:
            return False
        first = bisect_left(self.highest, sending.end)
        if first < at or first >= len(self.frames):
            return False
        echo = self.frames[first].tsecr
        return echo is not None and 0 < (sending.tsval - echo) % 2**32 < 2**31


def is_doubled(blocks: list[tuple[int, int]], position: int) -> bool:
    """Whether the first block is a DSACK (RFC 2883)."""
    if blocks[0][1] <= position:
        return True
    return len(blocks) > 1 and blocks[1][0] <= blocks[0][0] and blocks[0][1] <= blocks[1][1]


@dataclass
class Sight:
    """What a capture has seen of one flow so far."""

    seen: Ranges = field(default_factory=Ranges)
    highest: int = 0
    acked: int = 0
    passed: dict[int, int] = field(default_factory=dict)  # sending: when it first passed
    gaps: list[tuple[int, int, int]] = field(default_factory=list)  # start, end, frame that opened it


class Observer:
    """Labels the frames of one capture: of all that passed a point, those that it holds."""

    def __init__(self, run: Run, point: str, held: list[Frame], mirrored: bool = False) -> None:
        self.run, self.point, self.mirrored = run, point, mirrored
        self.held = held
        self.numbers: set[int] = set()  # of datagrams
        self.highest_datagram = -1
        self.flows: dict[int, Sight] = defaultdict(Sight)
        self.begins = {
            frame.source_port: frame.sequence
            for frame in run.frames["sender"]
            if frame.source == SENDER and frame.flags & SYN
        }
        self.answers = self.read_answers(self.held)  # that this capture holds
        self.passed = self.read_answers(run.frames[point])  # that passed here
        self.given = self.read_answers(run.frames["receiver"])  # that the receiver gave
        self.heard = self.read_answers(run.frames["sender"])  # that came to the sender
        self.occurrences: dict[tuple[object, ...], int] = defaultdict(int)
        self.passings: Counter[tuple[object, ...]] = Counter()  # of each packet so far

    def read_answers(self, frames: Iterable[Frame]) -> dict[int, Answers]:
        found: dict[int, Answers] = defaultdict(Answers)
        for frame in frames:
            if frame.protocol == TCP and frame.source != SENDER and frame.destination_port in self.begins:
                found[frame.destination_port].take(frame, self.begins[frame.destination_port])
        return found

    def labels(self) -> Iterator[Label]:
        """One for each packet of the sender with data, SYN or FIN, and each acknowledgment."""
        for frame in self.held:
            self.passings[frame.key] += 1
            if self.mirrored and not self.passings[frame.key] % 2:
                yield Label(frame.number, 0, "mirror", frame.length)
            elif frame.protocol == UDP:
                if frame.datagram is not None:
                    yield self.label_datagram(frame, frame.datagram)
            elif frame.source != SENDER:
                yield self.label_answer(frame)
            elif frame.length or frame.flags & (SYN | FIN):
                yield self.label_sending(frame, self.sending_of(frame))

    def label_datagram(self, frame: Frame, number: int) -> Label:
        late = number < self.highest_datagram
        what = "datagram copy" if number in self.numbers else "datagram late" if late else "datagram"
        self.numbers.add(number)
        self.highest_datagram = max(self.highest_datagram, number)
        return Label(frame.number, frame.source_port, what, frame.length)

    def lost_datagrams(self) -> int:
        """Sent between the first that this capture holds and the highest, and never here."""
        sent = {frame.datagram for frame in self.run.frames["sender"] if frame.datagram is not None}
        inside = (
            {number for number in sent if min(self.numbers) < number < max(self.numbers)} if self.numbers else set()
        )
        return len(inside - self.numbers)

    def sending_of(self, frame: Frame) -> Sending:
        same = self.run.of_key[frame.key]
        number = self.occurrences[frame.key]
        self.occurrences[frame.key] += 1
        return same[min(number, len(same) - 1)]

    def label_answer(self, frame: Frame) -> Label:
        flow = frame.destination_port
        sight = self.flows[flow]
        position = (frame.acknowledgment - self.begins.get(flow, 0)) % 2**32
        label = Label(frame.number, flow, "ack")
        if sight.acked < position < 2**31:
            label.unseen = position - sight.acked - sight.seen.covered(sight.acked, position)
            sight.acked = position
        return label

    def label_sending(self, frame: Frame, sending: Sending) -> Label:
        sight = self.flows[sending.flow]
        label = Label(frame.number, sending.flow, "new", sending.end - sending.start)
        seen = sight.seen.covered(sending.start, sending.end)
        whole = seen == sending.end - sending.start
        label.opener = next((gap[2] for gap in sight.gaps if gap[0] < sending.end and gap[1] > sending.start), None)
        if sending.index in sight.passed:
            self.label_copy(label, frame, sending, sight)
        elif sending.again:
            self.label_again(label, frame, sending, sight, whole)
        elif sending.start < sight.highest:
            label.what = "late"
        if sending.start > sight.highest:
            sight.gaps.append((sight.highest, sending.start, frame.number))
        sight.passed.setdefault(sending.index, frame.time_ns)
        sight.seen.add(sending.start, sending.end)
        sight.highest = max(sight.highest, sending.end)
        return label

    def label_copy(self, label: Label, frame: Frame, sending: Sending, sight: Sight) -> None:
        label.what = "copy"
        near = frame.time_ns - sight.passed[sending.index] <= MIRROR_GAP_NS
        answers = self.answers[sending.flow]
        label.told = not near or answers.reported_twice(sending.start, sending.end, frame.time_ns)

    def label_again(self, label: Label, frame: Frame, sending: Sending, sight: Sight, whole: bool) -> None:
        label.what, label.cause = "again", sending.cause
        label.causes = frozenset({sending.cause} if sending.cause else ())
        if sending.cause == "probe" and self.heard[sending.flow].acknowledged(sending.start, sending.time_ns):
            label.causes |= {"timeout"}  # of the only one outstanding: due when the timeout is (RFC 8985 section 7.2)
        label.told = sending.start < sight.highest
        label.needless = is_needless(sending)
        here = [other for other in sending.earlier if other.index in sight.passed]
        label.place = self.place_of(sending, here)
        answers = self.answers[sending.flow]
        told_behind = whole and answers.ended_at(sending.start)
        label.place_told = label.told and (told_behind if label.place == "downstream" else not here)
        label.needless_told = bool(label.needless) and (
            answers.acknowledged(sending.end, frame.time_ns)
            or answers.reported(sending, frame.time_ns)
            or answers.reported_twice(sending.start, sending.end, frame.time_ns, 1 + sending.later)
            or answers.echoes_earlier(sending, frame.time_ns)
        )
        label.answer_lost = bool(label.needless) and self.is_answer_lost(sending, frame.time_ns)

    def place_of(self, sending: Sending, here: list[Sending]) -> str | None:
        """Where the last sending that passed here was lost; where none did, all were lost before."""
        if here and here[-1].refused:
            return None
        if here:
            return "downstream" if here[-1].delivered_ns is None else None
        passed = any(self.point in other.came for other in sending.earlier)
        return None if passed else "upstream"

    def is_answer_lost(self, sending: Sending, time_ns: int) -> bool:
        """Whether acknowledgments of it were given, and none came by here before it was sent again."""
        return not self.passed[sending.flow].acknowledged(sending.end, time_ns) and self.given[
            sending.flow
        ].acknowledged(sending.end, sending.time_ns)


def is_needless(sending: Sending) -> bool | None:
    """Whether all of it had arrived before; None where an earlier sending arrived behind this one, or may have been refused."""
    if any(other.refused for other in sending.earlier):
        return None
    before, after = Ranges(), Ranges()
    for other in sending.earlier:
        if other.delivered_ns is None:
            continue
        late = sending.delivered_ns is not None and other.delivered_ns > sending.delivered_ns
        (after if late else before).add(other.start, other.end)
        after.add(other.start, other.end)
    length = sending.end - sending.start
    if before.covered(sending.start, sending.end) == length:
        return True
    return None if after.covered(sending.start, sending.end) == length else False
