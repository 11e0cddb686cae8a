# SPDX-License-Identifier: Apache-2.0
"""The path between two hosts, and the capture point on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simulation import PLAIN, ByteRanges, Clock, Distance, Fate
from tcp_segment import Segment
from write_captures import MICROSECOND, START_NS, record
from write_truth import RETRANSMISSIONS, Sighting, Verdict


@dataclass
class CapturePoint:
    """The packets of one connection, as stored by the capture."""

    clock: Clock
    data_direction: int  # 0 if the data flows from the initiator
    seen: list[Sighting] = field(default_factory=list)
    passed: ByteRanges = field(default_factory=ByteRanges)  # data that passed, stored or not
    stored: ByteRanges = field(default_factory=ByteRanges)
    times: list[tuple[int, int, int]] = field(default_factory=list)  # start, end and time of new bytes
    acked: int = 0
    sent: int = 0  # highest byte that the sender has transmitted
    window: int = -1  # of the last acknowledgment
    dropped: int = 0

    def store(self, segment: Segment, direction: int, verdict: Verdict | None, fate: Fate) -> None:
        """Stores the packet unless the capture drops it."""
        if fate.unstored:
            self.dropped += 1
        else:
            stored = record(START_NS + self.clock.now, segment.packet)
            self.seen.append(Sighting(stored, 0, direction, verdict, segment.end - segment.start))

    def pass_control(self, segment: Segment, from_sender: bool) -> None:
        """Stores a packet that is neither data nor its acknowledgment."""
        direction = self.data_direction if from_sender else 1 - self.data_direction
        verdict = Verdict(segment.kind, segment.end - segment.start) if segment.kind else None
        self.store(segment, direction, verdict, PLAIN)

    def pass_data(self, segment: Segment, fate: Fate, copied: bool) -> None:
        self.store(segment, self.data_direction, self.judge_data(segment, fate, copied), fate)
        if segment.kind != "keep_alive":
            if not self.passed.covers(segment.start, segment.end):
                self.times.append((segment.start, segment.end, self.clock.now))
            self.passed.add(segment.start, segment.end)
            if not fate.unstored:
                self.stored.add(segment.start, segment.end)

    def judge_data(self, segment: Segment, fate: Fate, copied: bool) -> Verdict | None:
        """Returns the true verdict from the states of sender and network."""
        length = segment.end - segment.start
        if copied:
            return Verdict("network_duplicate", length)
        if segment.kind in RETRANSMISSIONS:
            place = "downstream" if self.passed.covers(segment.start, segment.end) else "upstream"
            return Verdict(segment.kind, length, place, segment.spurious)
        if fate.late_ns:
            return Verdict("out_of_order", length)
        return Verdict(segment.kind, length) if segment.kind else None

    def pass_ack(self, segment: Segment, fate: Fate) -> None:
        self.store(segment, 1 - self.data_direction, self.judge_ack(segment), fate)
        if not fate.unstored:
            self.acked, self.window = max(self.acked, segment.ack), segment.window

    def judge_ack(self, segment: Segment) -> Verdict | None:
        """Returns the true verdict; RFC 5681 section 2 defines a duplicate ACK."""
        unseen = max(0, segment.ack - self.acked) - self.stored.count(self.acked, segment.ack)
        if segment.kind:
            return Verdict(segment.kind)
        if segment.window == 0:
            return Verdict("zero_window")
        if segment.ack > self.acked:
            return Verdict("acked_unseen_segment", unseen) if unseen else None
        same = segment.ack == self.acked and segment.window == self.window
        return Verdict("duplicate_ack") if same and self.sent > segment.ack else None


Arrive = Callable[[Segment], None]


@dataclass
class NetworkPath:
    """Carries segments past the capture point, in order unless a fate delays one."""

    clock: Clock
    distance: Distance
    point: CapturePoint
    mss: int
    link_free: int = 0
    last_arrival: int = 0

    def carry_data(self, segment: Segment, arrive: Arrive, fate: Fate = PLAIN) -> None:
        """Carries a segment of the sender, whose link serializes them."""
        packets = (segment.end - segment.start) // self.mss
        begin = max(self.clock.now, self.link_free)
        self.link_free = begin + max(10 * MICROSECOND, self.distance.segment_ns * packets)
        # A super-segment is captured before it is split, because the network card splits it; a packet when it is complete.
        passes = (begin if packets > 1 else self.link_free) + self.distance.to_sender_ns
        if fate.lost != "upstream":
            self.clock.at(passes + fate.late_ns, self.pass_data, segment, arrive, fate, False)
        if fate.copy_ns:
            self.clock.at(passes + fate.copy_ns, self.pass_data, segment, arrive, fate, True)

    def pass_data(self, segment: Segment, arrive: Arrive, fate: Fate, copied: bool) -> None:
        """Passes the capture point and goes to the receiver; a super-segment goes on as packets."""
        self.point.pass_data(segment, fate, copied)
        if fate.lost:
            return
        arrival = self.clock.now + self.distance.to_receiver_ns + fate.stalled_ns
        for start in range(segment.start, segment.end, self.mss) or [segment.start]:
            arrival = max(arrival, self.last_arrival + self.distance.segment_ns // 3)
            end = min(segment.end, start + self.mss)
            part = Segment(start, segment.ack, end, kind=segment.kind, stamp=segment.stamp)
            self.clock.at(arrival, arrive, part)
            self.last_arrival = arrival

    def carry_ack(self, segment: Segment, arrive: Arrive, fate: Fate) -> None:
        """Carries an acknowledgment of the receiver."""
        if fate.lost != "upstream":
            self.clock.after(self.distance.to_receiver_ns, self.pass_ack, segment, arrive, fate)

    def pass_ack(self, segment: Segment, arrive: Arrive, fate: Fate) -> None:
        """Passes the capture point and goes to the sender of the data."""
        self.point.pass_ack(segment, fate)
        if not fate.lost:
            self.clock.after(self.distance.to_sender_ns, arrive, segment)

    def carry_control(self, segment: Segment, from_sender: bool, arrive: Arrive) -> None:
        """Carries a packet of the handshake, the request or the close."""
        near, far = self.distance.to_sender_ns, self.distance.to_receiver_ns
        before, after = (near, far) if from_sender else (far, near)
        self.clock.after(before, self.pass_control, segment, from_sender, after, arrive)

    def pass_control(self, segment: Segment, from_sender: bool, delay_ns: int, arrive: Arrive) -> None:
        self.point.pass_control(segment, from_sender)
        self.clock.after(delay_ns, arrive, segment)
