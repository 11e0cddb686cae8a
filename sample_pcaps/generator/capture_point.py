# SPDX-License-Identifier: Apache-2.0
"""The capture point: stores passing packets with their true verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field

from byte_ranges import ByteRanges
from event_clock import Clock
from packet_fate import PLAIN, Fate
from simulate_transfer import START_NS, record
from tcp_segment import Segment
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
            taken = record(START_NS + self.clock.now, segment.packet)
            self.seen.append(Sighting(taken, 0, direction, verdict, segment.end - segment.start))

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
