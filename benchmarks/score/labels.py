# SPDX-License-Identifier: Apache-2.0
"""Labels each frame of a capture with the truth, and with whether the capture alone can show it.

The truth of a frame follows from its sending (sendings.py): which earlier sendings carried its bytes, and how far each came. An
Observer walks the frames of one capture in order and keeps, per flow, the bytes and ACKs that passed. A label is decidable if
the capture holds evidence: the place of a loss needs an ACK that ends at the packet or SACK, and a spurious retransmission needs
an ACK, a SACK, a DSACK (RFC 2883) or an older TSecr (RFC 3522)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from score.capture_frames import FIN, SYN, TCP, UDP, Frame
from score.runs.testbed import SENDER
from score.sendings import Run, Sending

MIRROR_GAP_NS = 1_000_000  # a duplicate that follows sooner can be a mirror's


class Ranges:
    """Byte ranges, merged if they touch."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        first, last = bisect_left(self.ends, start), bisect_right(self.starts, end)
        if first < last:
            start, end = min(start, self.starts[first]), max(end, self.ends[last - 1])
        self.starts[first:last], self.ends[first:last] = [start], [end]

    def covered(self, start: int, end: int) -> int:
        """Returns how many bytes of [start, end) the ranges contain."""
        first = bisect_right(self.ends, start)
        total = 0
        while first < len(self.starts) and self.starts[first] < end:
            total += min(end, self.ends[first]) - max(start, self.starts[first])
            first += 1
        return total


@dataclass
class Label:
    """The truth of one frame. A field is None if it does not apply, or if both answers can be justified."""

    frame: int
    flow: int
    #: new, retransmission, reordered, duplicate, mirror, ack; datagram, datagram reordered, datagram duplicate
    what: str
    length: int = 0
    place: str | None = None  # of the loss that a retransmission repairs: upstream or downstream
    spurious: bool | None = None
    cause: str | None = None  # from the kernel
    causes: frozenset[str] = frozenset()  # all that the capture is consistent with, including the true one
    ack_lost: bool = False  # it had arrived, but no ACK of it passed the capture point
    decidable: bool = True  # the capture can show `what`
    place_decidable: bool = False
    spurious_decidable: bool = False
    acked: bool = False  # an ACK or SACK of a retransmission had passed
    waited_ns: int = 0  # before a retransmission, since the last ACK that advanced
    opener: int | None = None  # frame that opened the gap which this frame fills
    unordered: bool = False  # neither IP IDs nor timestamps show which of the two was sent first
    cut: bool = False  # the snap length cut the options off
    unseen: int = 0  # bytes that this ACK is the first to cover and that the capture missed


@dataclass
class Answers:
    """ACKs of one flow that passed a capture point, in order."""

    times: list[int] = field(default_factory=list)
    highest: list[int] = field(default_factory=list)  # highest cumulative ACK so far
    frames: list[Frame] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)  # of all ACKs
    sacked: list[tuple[int, int, int]] = field(default_factory=list)  # time, start, end
    doubled: list[tuple[int, int, int]] = field(default_factory=list)  # DSACKs: time, start, end

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
        """Returns whether an ACK ended at this byte, or SACK blocks show which bytes the receiver holds."""
        return bool(self.sacked) or start in self.ends

    def acknowledged(self, end: int, before_ns: int) -> bool:
        """Returns whether a cumulative ACK of it had passed."""
        last = bisect_left(self.times, before_ns) - 1
        return last >= 0 and self.highest[last] >= end

    def waited_ns(self, now_ns: int) -> int:
        """Returns the time since an ACK advanced, 0 if none did."""
        last = bisect_left(self.times, now_ns) - 1
        return now_ns - self.times[bisect_left(self.highest, self.highest[last])] if last >= 0 else 0

    def reported(self, sending: Sending, before_ns: int) -> bool:
        return any(
            start <= sending.start and end >= sending.end for time, start, end in self.sacked if time < before_ns
        )

    def reported_twice(self, start: int, end: int, after_ns: int, times: int = 1) -> bool:
        """Returns whether that many DSACKs report it; each is about one sending, the newest first."""
        return sum(time > after_ns and left < end and right > start for time, left, right in self.doubled) >= times

    def echoes_earlier(self, sending: Sending, time_ns: int) -> bool:
        """Applies RFC 3522: the first ACK of the lowest outstanding segment echoes a TSval older than that of the segment.

        An echo older than the first sending is not of these bytes: the receiver does not follow RFC 7323 section 4.3."""
        at = bisect_right(self.times, time_ns)
        if sending.tsval is None or not at or self.highest[at - 1] < sending.start:
            return False
        first = bisect_left(self.highest, sending.end)
        if first < at or first >= len(self.frames):
            return False
        echo = self.frames[first].tsecr
        if echo is None or not 0 < (sending.tsval - echo) % 2**32 < 2**31:
            return False
        first_tsval = sending.earlier[0].tsval if sending.earlier else None
        return first_tsval is None or (echo - first_tsval) % 2**32 < 2**31


def is_doubled(blocks: list[tuple[int, int]], position: int) -> bool:
    """Returns whether the first block is a DSACK (RFC 2883 section 4)."""
    if blocks[0][1] <= position:
        return True
    return len(blocks) > 1 and blocks[1][0] <= blocks[0][0] and blocks[0][1] <= blocks[1][1]


@dataclass
class Sight:
    """State of one flow at the capture point."""

    seen: Ranges = field(default_factory=Ranges)
    highest: int = 0
    acked: int = 0
    passed: dict[int, int] = field(default_factory=dict)  # index of a sending: time when it first passed
    gaps: list[tuple[int, int, int]] = field(default_factory=list)  # start, end, frame that opened the gap


class Observer:
    """Labels the frames of one capture. `held` are those of the frames that passed the point which the file contains."""

    def __init__(self, run: Run, point: str, captured: list[Frame], mirrored: bool = False) -> None:
        self.run, self.point, self.mirrored = run, point, mirrored
        self.captured = captured
        self.numbers: set[int] = set()  # of datagrams so far
        self.highest_datagram = -1
        self.flows: dict[int, Sight] = defaultdict(Sight)
        self.begins = {
            frame.source_port: frame.sequence
            for frame in run.frames["sender"]
            if frame.source == SENDER and frame.flags & SYN
        }
        self.answers = self.read_answers(self.captured)  # ACKs in this capture
        self.passed = self.read_answers(run.frames[point])  # that passed the point
        self.sent = self.read_answers(run.frames["receiver"])  # that the receiver sent
        self.heard = self.read_answers(run.frames["sender"])  # that reached the sender
        self.occurrences: dict[tuple[object, ...], int] = defaultdict(int)
        self.passings: Counter[tuple[object, ...]] = Counter()  # of each packet so far

    def read_answers(self, frames: Iterable[Frame]) -> dict[int, Answers]:
        answers: dict[int, Answers] = defaultdict(Answers)
        for frame in frames:
            if frame.protocol == TCP and frame.source != SENDER and frame.destination_port in self.begins:
                answers[frame.destination_port].take(frame, self.begins[frame.destination_port])
        return answers

    def labels(self) -> Iterator[Label]:
        """Yields a label for each packet of the sender with data, SYN or FIN, and for each ACK."""
        for frame in self.captured:
            self.passings[frame.key] += 1
            if self.mirrored and not self.passings[frame.key] % 2:
                yield Label(frame.number, 0, "mirror", frame.length)
            elif frame.protocol == UDP:
                if frame.datagram is not None:
                    yield self.label_datagram(frame, frame.datagram)
            elif frame.source != SENDER:
                yield self.label_ack(frame)
            elif frame.length or frame.flags & (SYN | FIN):
                yield self.label_sending(frame, self.sending_of(frame))

    def label_datagram(self, frame: Frame, number: int) -> Label:
        late = number < self.highest_datagram
        what = "datagram duplicate" if number in self.numbers else "datagram reordered" if late else "datagram"
        self.numbers.add(number)
        self.highest_datagram = max(self.highest_datagram, number)
        return Label(frame.number, frame.source_port, what, frame.length)

    def lost_datagrams(self) -> int:
        """Returns the number of datagrams between the lowest and the highest in this capture that it does not contain."""
        sent = {frame.datagram for frame in self.run.frames["sender"] if frame.datagram is not None}
        first, last = min(self.numbers, default=0), max(self.numbers, default=0)
        return sum(first < number < last for number in sent - self.numbers)

    def sending_of(self, frame: Frame) -> Sending:
        same = self.run.of_key[frame.key]
        number = self.occurrences[frame.key]
        self.occurrences[frame.key] += 1
        return same[min(number, len(same) - 1)]

    def label_ack(self, frame: Frame) -> Label:
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
        repeated = seen == sending.end - sending.start
        label.opener = next((gap[2] for gap in sight.gaps if gap[0] < sending.end and gap[1] > sending.start), None)
        if sending.index in sight.passed:
            self.label_duplicate(label, frame, sending, sight)
        elif sending.retransmits:
            self.label_retransmission(label, frame, sending, sight, repeated)
        elif sending.start < sight.highest:
            label.what = "reordered"
        if sending.start > sight.highest:
            sight.gaps.append((sight.highest, sending.start, frame.number))
        sight.passed.setdefault(sending.index, frame.time_ns)
        sight.seen.add(sending.start, sending.end)
        sight.highest = max(sight.highest, sending.end)
        return label

    def label_duplicate(self, label: Label, frame: Frame, sending: Sending, sight: Sight) -> None:
        label.what = "duplicate"
        near = frame.time_ns - sight.passed[sending.index] <= MIRROR_GAP_NS
        answers = self.answers[sending.flow]
        label.decidable = not near or answers.reported_twice(sending.start, sending.end, frame.time_ns)

    def label_retransmission(self, label: Label, frame: Frame, sending: Sending, sight: Sight, repeated: bool) -> None:
        label.what, label.cause = "retransmission", sending.cause
        label.causes = frozenset({sending.cause} if sending.cause else ())
        if sending.cause == "probe" and self.heard[sending.flow].acknowledged(sending.start, sending.time_ns):
            label.causes |= {"timeout"}  # only segment outstanding: the probe is due at the RTO (RFC 8985 section 7.2)
        label.decidable = sending.start < sight.highest
        label.spurious = is_spurious(sending)
        here = [other for other in sending.earlier if other.index in sight.passed]
        label.place = self.place_of(sending, here)
        answers = self.answers[sending.flow]
        behind = repeated and answers.ended_at(sending.start)
        label.place_decidable = label.decidable and (behind if label.place == "downstream" else not here)
        label.acked = answers.acknowledged(sending.end, frame.time_ns) or answers.reported(sending, frame.time_ns)
        label.waited_ns = answers.waited_ns(frame.time_ns)
        label.spurious_decidable = bool(label.spurious) and (
            label.acked
            or answers.reported_twice(sending.start, sending.end, frame.time_ns, 1 + sending.later)
            or answers.echoes_earlier(sending, frame.time_ns)
        )
        label.ack_lost = bool(label.spurious) and self.is_ack_lost(sending, frame.time_ns)

    def place_of(self, sending: Sending, here: list[Sending]) -> str | None:
        """Returns the side on which the last sending that passed was lost; if none passed, all were lost upstream."""
        if here and here[-1].refused:
            return None
        if here:
            return "downstream" if here[-1].delivered_ns is None else None
        passed = any(self.point in other.came for other in sending.earlier)
        return None if passed else "upstream"

    def is_ack_lost(self, sending: Sending, time_ns: int) -> bool:
        """Returns whether the receiver sent ACKs of it, none of which passed before its retransmission."""
        passed, sent = self.passed[sending.flow], self.sent[sending.flow]
        return not passed.acknowledged(sending.end, time_ns) and sent.acknowledged(sending.end, sending.time_ns)


def is_spurious(sending: Sending) -> bool | None:
    """Returns whether all bytes had arrived before; None if an earlier sending arrived later or can have failed PAWS."""
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
