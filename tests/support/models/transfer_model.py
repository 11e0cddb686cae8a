# SPDX-License-Identifier: Apache-2.0
"""A small model of a TCP transfer over a network that loses, delays and copies, with a log of each packet's fate.

The sender has SACK, timestamps, fast retransmission and a timer; the receiver acknowledges every segment, with SACK and
DSACK. The capture point is somewhere between. Times are in microseconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from talk import Talk

SIZE = 1000
TIMEOUT = 300_000
WINDOW = 12  # segments
GAP = 200


@dataclass(frozen=True)
class Fate:
    """The network's actions on one packet."""

    lost: str = ""  # "", "upstream" or "downstream" of the capture point
    late: int = 0  # added on the way to the capture point
    copied: bool = False  # by the network before the capture point


@dataclass(frozen=True)
class Sent:
    """One sending of a segment as the capture point saw it."""

    time: int
    segment: int
    attempt: int
    ip_id: int
    tsval: int
    tsecr: int
    copy: bool = False


@dataclass
class Transfer:
    """Runs the model; `stored` and `acks` are in the capture."""

    segments: int
    fate: Callable[[int, int], Fate]  # of a segment and attempt
    to_capture: int  # one way from the sender
    to_receiver: int  # from the capture point
    now: int = 0
    events: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    order: count[int] = field(default_factory=count)
    stored: list[Sent] = field(default_factory=list)
    acks: list[tuple[int, int, tuple[tuple[int, int], ...], int, int, int]] = field(default_factory=list)
    arrivals: dict[int, list[int]] = field(default_factory=dict)  # attempts of a segment that reached the receiver
    # the sender
    next: int = 0
    acked: int = 0
    sacked: set[int] = field(default_factory=set)
    duplicates: int = 0
    resent: set[int] = field(default_factory=set)  # in this recovery
    recover: int = 0
    attempts: dict[int, int] = field(default_factory=dict)
    next_id: int = 1002  # after those of the handshake
    timer: int = 0
    echo: int = 0
    # the receiver
    got: set[int] = field(default_factory=set)
    recent: list[int] = field(default_factory=list)
    receiver_id: int = 7000
    timestamp: int = 0

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Schedules."""
        heapq.heappush(self.events, (time, next(self.order), action))

    def run(self) -> Transfer:
        """To the end of the transfer."""
        self.at(100_000, self.fill_window)
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()
        return self

    # --- the sender

    def send(self, segment: int) -> None:
        """One sending."""
        attempt = self.attempts.get(segment, -1) + 1
        self.attempts[segment] = attempt
        fate = self.fate(segment, attempt)
        sent = Sent(0, segment, attempt, self.next_id, 10_000 + self.now // 1000, self.echo)
        self.next_id += 1
        self.arm()
        if fate.lost == "upstream":
            return
        arrival = self.now + self.to_capture + fate.late
        for copy in (False, True)[: 1 + fate.copied]:
            passed = Sent(arrival + 30 * copy, segment, attempt, sent.ip_id, sent.tsval, sent.tsecr, copy)
            self.stored.append(passed)
            if fate.lost != "downstream":
                self.at(passed.time + self.to_receiver, lambda sent=passed: self.receive(sent))

    def arm(self) -> None:
        """Starts the retransmission timer anew."""
        self.timer += 1
        self.at(self.now + TIMEOUT, lambda number=self.timer: self.expire(number))

    def expire(self, number: int) -> None:
        """The retransmission timer."""
        if number != self.timer or self.acked == self.segments:
            return
        self.resent = {self.acked}
        self.recover = self.next
        self.duplicates = 0
        self.send(self.acked)

    def fill_window(self) -> None:
        """New data, a segment every GAP."""
        if self.next < self.segments and self.next < self.acked + WINDOW:
            self.send(self.next)
            self.next += 1
            self.at(self.now + GAP, self.fill_window)

    def hear(self, ack: int, sacked: set[int], tsval: int) -> None:
        """An acknowledgment."""
        self.echo = tsval
        self.sacked |= sacked
        if ack > self.acked:
            self.acked, self.duplicates = ack, 0
            self.arm()
        elif ack == self.acked and ack < self.next:
            self.duplicates += 1
        if self.acked >= self.recover:
            self.resent.clear()
        for segment in range(self.acked, self.next):
            above = sum(other > segment for other in self.sacked)
            if segment not in self.sacked and segment not in self.resent and above >= 3:
                self.recover = self.next
                self.resent.add(segment)
                self.send(segment)
        self.fill_window()

    # --- the receiver

    def receive(self, sent: Sent) -> None:
        """A segment; the answer leaves at once."""
        duplicate = sent.segment in self.got
        self.arrivals.setdefault(sent.segment, []).append(sent.attempt)
        edge = self.edge()
        if sent.segment <= edge:
            self.timestamp = max(self.timestamp, sent.tsval)
        self.got.add(sent.segment)
        self.recent = [sent.segment] + [s for s in self.recent if s != sent.segment]
        blocks = self.blocks(self.edge())
        if duplicate:
            blocks = [(sent.segment, sent.segment + 1), *blocks][:3]
        tsval = 50_000 + self.now // 1000
        ack, sacked = self.edge(), {s for s in self.got if s > self.edge()}
        self.receiver_id += 1
        self.acks.append((self.now + self.to_receiver, ack, tuple(blocks), self.receiver_id, tsval, self.timestamp))
        self.at(self.now + self.to_receiver + self.to_capture, lambda: self.hear(ack, sacked, tsval))

    def edge(self) -> int:
        """The first segment that is missing."""
        return next(s for s in range(self.segments + 1) if s not in self.got)

    def blocks(self, edge: int) -> list[tuple[int, int]]:
        """SACK blocks, the newest first."""
        ranges: list[tuple[int, int]] = []
        for segment in self.recent:
            if segment <= edge or any(a <= segment < b for a, b in ranges):
                continue
            low = high = segment
            while low - 1 in self.got and low - 1 > edge:
                low -= 1
            while high + 1 in self.got:
                high += 1
            ranges.append((low, high + 1))
        return ranges[:3]

    # --- the capture

    def talk(self) -> Talk:
        """The packets at the capture point, after a handshake."""
        talk = Talk()
        there = 2 * (self.to_capture + self.to_receiver) / 1000
        talk.open(rtt=there, near=2 * self.to_capture / 1000)
        for sent in sorted(self.stored, key=lambda sent: sent.time):
            talk.data(sent.time / 1000, sent.segment * SIZE, SIZE, ip_id=sent.ip_id, tsval=sent.tsval, tsecr=sent.tsecr)
        for time, ack, blocks, ip_id, tsval, tsecr in self.acks:
            sack = [(a * SIZE, b * SIZE) for a, b in blocks]
            talk.ack(time / 1000, ack * SIZE, *sack, ip_id=ip_id, tsval=tsval, tsecr=tsecr)
        return talk


@dataclass
class Truth:
    """Counters that a complete capture must show."""

    again: int = 0  # sendings after the first
    hidden: int = 0  # of them, lost before, yet in order when they came here
    upstream: int = 0  # gaps filled by one that was not overtaken
    late: int = 0
    copies: int = 0
    needless: set[int] = field(default_factory=set)  # segments retransmitted though an earlier transmission arrived


def truth_of(transfer: Transfer) -> Truth:
    """From the log."""
    truth, seen, highest = Truth(), {}, -1
    truth.needless = {s for s, arrived in transfer.arrivals.items() if min(arrived) < transfer.attempts[s]}
    for sent in sorted(transfer.stored, key=lambda sent: sent.time):
        before = seen.setdefault(sent.segment, [])
        if sent.copy:
            truth.copies += 1
        elif sent.attempt == 0:
            truth.late += sent.segment < highest or bool(before)
        elif not before and sent.segment > highest:
            truth.hidden += 1
        else:
            truth.again += 1
            later = any(
                s.segment == sent.segment and s.attempt < sent.attempt and s.time > sent.time for s in transfer.stored
            )
            truth.upstream += not before and not later
        before.append(sent.attempt)
        highest = max(highest, sent.segment)
    return truth
