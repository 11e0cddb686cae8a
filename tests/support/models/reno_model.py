# SPDX-License-Identifier: Apache-2.0
"""A sender without SACK behind a drop-tail queue, with the cause of each retransmission: fast retransmit and NewReno (RFC
5681, 6582) and the retransmission timer (RFC 6298). Its timer is as the RFCs have it and differs from Linux: neither
duplicate ACKs nor retransmissions restart it, nor partial ACKs but the first. Times are in ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from struct import pack

from plain_wire import ACK, SYN, Connection, Wire, syn_options

SIZE = 100
ONE_WAY = 10.0  # without the queue
TSVALS = (5000, 900_000)  # of both ends at time 0
NO_SACK = syn_options()[:4] + syn_options()[-4:]  # MSS and window scale


@dataclass(frozen=True)
class Sent:
    """A segment (side 0) or an ACK (side 1) at a capture point."""

    ms: float
    side: int
    number: int  # of the segment, or of the next one expected
    tsval: int
    tsecr: int
    cause: str = ""  # of a retransmission: fast or timeout


@dataclass
class Reno:
    """`captures` holds what passes the sender and the receiver."""

    seed: int
    queue: int  # segments
    least_rto: float
    loss: float = 0.01
    segments: int = 1200
    rate: float = 1.0  # segments per ms
    now: float = 21.0
    captures: tuple[list[Sent], list[Sent]] = field(default_factory=lambda: ([], []))
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    order: count[int] = field(default_factory=count)
    idle_at: float = 0.0  # when the queue is empty
    # the sender; segments are numbered from 0
    una: int = 0
    next: int = 0
    highest: int = 0
    window: float = 10.0
    threshold: float = 1e9
    duplicates: int = 0
    recover: int = -1  # RFC 6582
    recovering: bool = False
    first_partial: bool = False
    echo: int = TSVALS[1] + 10
    srtt: float = 0.0
    rttvar: float = 0.0
    rto: float = 1000.0
    backoff: int = 1
    timer: int = 0  # number of the running one, 0 if none
    # the receiver
    expected: int = 0
    buffered: set[int] = field(default_factory=set)
    recent: int = TSVALS[0] + 20

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def later(self, ms: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (ms, next(self.order), action))

    def run(self) -> Reno:
        self.fill_window()
        while self.events and self.una < self.segments:
            self.now, _, action = heapq.heappop(self.events)
            action()
        return self

    # --- the sender

    def send(self, number: int, cause: str = "") -> None:
        sent = Sent(self.now, 0, number, TSVALS[0] + int(self.now), self.echo, cause)
        self.captures[0].append(sent)
        if not self.timer:
            self.restart_timer()
        if self.random.random() < self.loss or (self.idle_at - self.now) * self.rate >= self.queue:
            return
        self.idle_at = max(self.idle_at, self.now) + 1 / self.rate
        self.later(self.idle_at + ONE_WAY, lambda: self.arrive(sent))

    def restart_timer(self) -> None:
        self.timer = number = next(self.order) + 1
        self.later(self.now + self.rto * self.backoff, lambda: self.expire(number))

    def expire(self, number: int) -> None:
        if number != self.timer:
            return
        self.timer = 0
        self.backoff = min(2 * self.backoff, 64)
        self.threshold = max((self.next - self.una) / 2, 2)
        self.window, self.duplicates, self.recovering = 1, 0, False
        self.recover = self.highest
        self.next = self.una
        self.fill_window()

    def fill_window(self) -> None:
        """Also go-back-N after a timeout."""
        while self.next < min(self.una + int(self.window), self.segments):
            self.send(self.next, "timeout" if self.next < self.highest else "")
            self.next += 1
            self.highest = max(self.highest, self.next)

    def sample(self, rtt: float) -> None:
        """RFC 6298 section 2, with timestamps."""
        if self.srtt:
            self.rttvar += (abs(self.srtt - rtt) - self.rttvar) / 4
            self.srtt += (rtt - self.srtt) / 8
        else:
            self.srtt, self.rttvar = rtt, rtt / 2
        self.rto = max(self.least_rto, self.srtt + max(1, 4 * self.rttvar))
        self.backoff = 1

    def acknowledged(self, ack: Sent) -> None:
        self.captures[0].append(Sent(self.now, 1, ack.number, ack.tsval, ack.tsecr))
        self.echo = ack.tsval
        if ack.number > self.una:
            self.advance(ack.number, self.now - (ack.tsecr - TSVALS[0]))
        elif self.next > self.una:
            self.duplicate()
        self.fill_window()

    def advance(self, number: int, rtt: float) -> None:
        self.sample(rtt)
        new, self.una = number - self.una, number
        self.next = max(self.next, number)
        restarts = True
        if self.recovering and number < self.recover:
            self.window = max(self.window - new + 1, 1)
            self.send(number, "fast")
            restarts, self.first_partial = self.first_partial, False
        elif self.recovering:
            self.recovering, self.window = False, self.threshold
        else:
            self.window += new if self.window < self.threshold else new / self.window
        self.duplicates = 0
        if restarts and self.next > number:
            self.restart_timer()
        elif restarts:
            self.timer = 0

    def duplicate(self) -> None:
        self.duplicates += 1
        if self.recovering:
            self.window += 1
        elif self.duplicates == 3 and self.una > self.recover:
            self.recovering, self.recover, self.first_partial = True, self.highest, True
            self.threshold = max((self.next - self.una) / 2, 2)
            self.window = self.threshold + 3
            self.send(self.una, "fast")

    # --- the receiver

    def arrive(self, sent: Sent) -> None:
        self.captures[1].append(Sent(self.now, 0, sent.number, sent.tsval, sent.tsecr, sent.cause))
        if sent.number <= self.expected:
            self.recent = sent.tsval
        if sent.number >= self.expected:
            self.buffered.add(sent.number)
        while self.expected in self.buffered:
            self.buffered.remove(self.expected)
            self.expected += 1
        ack = Sent(self.now, 1, self.expected, TSVALS[1] + int(self.now), self.recent)
        self.captures[1].append(ack)
        self.later(self.now + ONE_WAY, lambda: self.acknowledged(ack))

    # --- the capture

    def write(self, point: int, path: Path, timestamps: bool = True) -> list[Sent | None]:
        """Writes the capture beside the sender (0) or the receiver (1), and returns its packets by frame."""
        wire = Wire(by_time=True)
        connection = Connection(wire)
        begin = point * ONE_WAY
        hello = [(begin, 0, SYN), (begin if point else 2 * ONE_WAY, 1, SYN | ACK), (begin + 2 * ONE_WAY, 0, ACK)]
        for ms, side, flags in hello:
            option = options(TSVALS[side] + int(ms), 0 if flags == SYN else TSVALS[1 - side], timestamps)
            at = -1 if flags & SYN else 0
            connection.send(ms, side, at, flags=flags, ack=0, options=(NO_SACK if flags & SYN else b"") + option)
        for sent in self.captures[point]:
            option = options(sent.tsval, sent.tsecr, timestamps)
            if sent.side:
                connection.send(sent.ms, 1, 0, ack=sent.number * SIZE, options=option)
            else:
                connection.send(sent.ms, 0, sent.number * SIZE, SIZE, ack=0, options=option)
        wire.write(path)
        return [None] * len(hello) + self.captures[point]


def options(tsval: int, tsecr: int, timestamps: bool) -> bytes:
    return b"\1\1\x08\x0a" + pack("!II", tsval, tsecr) if timestamps else b""
