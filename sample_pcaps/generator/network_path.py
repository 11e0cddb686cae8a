# SPDX-License-Identifier: Apache-2.0
"""The path between two hosts, with the capture point on it."""

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
