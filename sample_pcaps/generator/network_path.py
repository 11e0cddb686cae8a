# SPDX-License-Identifier: Apache-2.0
"""The way between two hosts, with the capture point on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from capture_point import CapturePoint
from event_clock import Clock
from packet_fate import PLAIN, Distance, Fate
from tcp_segment import Segment
from write_captures import MICROSECOND

Arrive = Callable[[Segment], None]


@dataclass
class NetworkPath:
    """Carries segments by the capture point, in order unless a fate says otherwise."""

    clock: Clock
    distance: Distance
    point: CapturePoint
    mss: int
    link_free: int = 0
    last_arrival: int = 0

    def carry_data(self, segment: Segment, arrive: Arrive, fate: Fate = PLAIN) -> None:
        """From the sender of the data, whose link takes one segment after the other."""
        packets = (segment.end - segment.start) // self.mss
        begin = max(self.clock.now, self.link_free)
        self.link_free = begin + max(10 * MICROSECOND, self.distance.segment_ns * packets)
        # A super-segment is captured before it is cut, a packet when it is whole.
        passes = (begin if packets > 1 else self.link_free) + self.distance.to_sender_ns
        if fate.lost != "upstream":
            self.clock.at(passes + fate.late_ns, self.pass_data, segment, arrive, fate, False)
        if fate.copy_ns:
            self.clock.at(passes + fate.copy_ns, self.pass_data, segment, arrive, fate, True)

    def pass_data(self, segment: Segment, arrive: Arrive, fate: Fate, copied: bool) -> None:
        """By the capture point and on to the receiver; a super-segment goes on as packets."""
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
        """From the receiver of the data."""
        if fate.lost != "upstream":
            self.clock.after(self.distance.to_receiver_ns, self.pass_ack, segment, arrive, fate)

    def pass_ack(self, segment: Segment, arrive: Arrive, fate: Fate) -> None:
        """By the capture point and on to the sender of the data."""
        self.point.pass_ack(segment, fate)
        if not fate.lost:
            self.clock.after(self.distance.to_sender_ns, arrive, segment)

    def carry_control(self, segment: Segment, from_sender: bool, arrive: Arrive) -> None:
        """Neither data nor its acknowledgment: handshake, request, close."""
        near, far = self.distance.to_sender_ns, self.distance.to_receiver_ns
        before, beyond = (near, far) if from_sender else (far, near)
        self.clock.after(before, self.pass_control, segment, from_sender, beyond, arrive)

    def pass_control(self, segment: Segment, from_sender: bool, beyond_ns: int, arrive: Arrive) -> None:
        """By the capture point and on."""
        self.point.pass_control(segment, from_sender)
        self.clock.after(beyond_ns, arrive, segment)
