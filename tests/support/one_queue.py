# SPDX-License-Identifier: Apache-2.0
"""TCP flows through one drop-tail queue, or each over a path of its own that drops at random, captured before it or behind it.

Senders follow RFC 5681 and 6675 with SACK: slow start, congestion avoidance, fast recovery, and an RTO of 300 ms. A
retransmission is never dropped, so that each drop is one loss.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import count

from plain_wire import MSS, Connection, Wire, sack

FRAME = MSS + 54 + 24  # bytes of link time of a full segment
WINDOW_MOST = 400  # segments
RTO_MS = 300.0
BEGIN, TIMER = -1, -2  # events that are no ACK


@dataclass
class Path:
    """Where packets wait and are dropped."""

    bit_s: float
    room: float  # packets of the queue
    drop: float = 0.0  # share that is dropped at random
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    outages: tuple[tuple[float, float], ...] = ()  # times in ms in which all is dropped
    free_ms: float = 0.0  # when the last packet in the queue has left

    def leaves(self, now: float, must_pass: bool) -> float | None:
        """The time at which a packet has left the queue; None if it is dropped."""
        service = FRAME * 8 / self.bit_s * 1000
        waiting = max(self.free_ms - now, 0.0) / service
        out = any(start <= now < end for start, end in self.outages)
        if not must_pass and (out or waiting >= self.room or self.dice.random() < self.drop):
            return None
        self.free_ms = max(self.free_ms, now) + service
        return self.free_ms


@dataclass
class Flow:
    """A sender that always has data, and its receiver."""

    wire: Connection
    path: Path
    rtt: float
    behind: bool  # the capture point is behind the queue, at the receiver
    window: float = 10.0
    threshold: float = WINDOW_MOST
    most: float = WINDOW_MOST
    next: int = 0
    acked: int = 0
    sacked: set[int] = field(default_factory=set)
    repaired: set[int] = field(default_factory=set)
    recover: int = -1
    gone: int = 0  # all below was outstanding at an RTO
    progress_ms: float = 0.0
    arrived: set[int] = field(default_factory=set)
    rcv_nxt: int = 0
    dropped: int = 0

    def transmit(self, now: float, number: int, again: bool) -> tuple[float, int] | None:
        """Sends a segment; returns when its ACK comes back."""
        left = self.path.leaves(now, again)
        if left is not None or not self.behind:
            self.wire.data(left if self.behind and left is not None else now, number * MSS)
        if left is None:
            self.dropped += 1
            return None
        return left + self.rtt, number

    def lost(self) -> list[int]:
        """The holes with three segments above them, or of before an RTO, that are not repaired."""
        above = sorted(self.sacked)
        end = max(above[-3] if len(above) > 2 else 0, self.gone)
        return [n for n in range(self.acked, end) if n not in self.sacked | self.repaired]

    def send(self, now: float, until: float) -> list[tuple[float, int]]:
        """Repairs first, then sends what the window allows."""
        sent = []
        for number in self.lost():
            if self.gone > self.acked and len(self.repaired - self.sacked) >= int(self.window):
                break
            self.repaired.add(number)
            sent.append(self.transmit(now, number, True))
        while now < until and not self.lost() and self.next - self.acked - len(self.sacked) < int(self.window):
            sent.append(self.transmit(now, self.next, False))
            self.next += 1
        return [segment for segment in sent if segment]

    def blocks(self, number: int) -> list[tuple[int, int]]:
        """The SACK blocks of an ACK: that of the segment that arrived first (RFC 2018)."""
        ranges: list[tuple[int, int]] = []
        for n in sorted(self.arrived):
            start = ranges.pop()[0] if ranges and ranges[-1][1] == n * MSS else n * MSS
            ranges.append((start, (n + 1) * MSS))
        newest = [block for block in ranges if block[0] <= number * MSS < block[1]]
        return (newest + [block for block in reversed(ranges) if block not in newest])[:3]

    def receive(self, now: float, number: int) -> None:
        """The receiver's ACK of a segment reaches the sender."""
        self.arrived.add(number)
        while self.rcv_nxt in self.arrived:
            self.arrived.remove(self.rcv_nxt)
            self.rcv_nxt += 1
        reported = self.blocks(number)
        seen = now - self.rtt + 0.01 if self.behind else now
        self.wire.ack(seen, self.rcv_nxt * MSS, options=sack(*reported) if reported else b"", window=16000)
        self.acked, self.sacked, self.progress_ms = self.rcv_nxt, set(self.arrived), now
        self.repaired = {n for n in self.repaired if n >= self.acked}
        if self.acked > self.recover:
            self.window += 1.0 if self.window < self.threshold else 1 / self.window
            self.window = min(self.window, self.most)
        if self.acked > self.recover and self.lost():
            self.recover, self.window = self.next - 1, max(self.window / 2, 2.0)
            self.threshold = self.window

    def time_out(self, now: float) -> None:
        """An RTO if no ACK came: all that is outstanding is taken for lost (RFC 6298, 5.4 to 5.6)."""
        if self.next > self.acked and now - self.progress_ms >= RTO_MS:
            self.gone, self.repaired, self.recover = self.next, set(), self.next - 1
            self.threshold, self.window, self.progress_ms = max(self.window / 2, 2.0), 2.0, now


def run(
    paths: list[Path], rtts: list[float], seconds: float, behind: bool = False, net: int = 1, most: float = WINDOW_MOST
) -> tuple[Wire, list[Flow]]:
    """Runs a flow over each path, which may be the same one, and returns the capture at the senders or the receivers."""
    wire, order = Wire(by_time=True), count()
    flows = [
        Flow(
            Connection(wire, 40000 + i, (f"10.{net}.1.{i + 1}", f"10.{net}.2.{i + 1}")).open(
                i * 3.0, rtt, rtt - 0.01 if behind else 0.0
            ),
            path,
            rtt,
            behind,
            most=most,
        )
        for i, (path, rtt) in enumerate(zip(paths, rtts, strict=True))
    ]
    events = [(40.0 + 7.0 * i + rtts[i], next(order), i, BEGIN) for i in range(len(flows))]
    events += [
        (RTO_MS / 4 * tick, next(order), i, TIMER) for i in range(len(flows)) for tick in range(1, int(seconds * 14))
    ]
    heapq.heapify(events)
    while events:
        now, _, i, number = heapq.heappop(events)
        if number >= 0:
            flows[i].receive(now, number)
        elif number == TIMER:
            flows[i].time_out(now)
        for at, each in flows[i].send(now, seconds * 1000) if now > events_start(i, rtts) else []:
            heapq.heappush(events, (at, next(order), i, each))
    return wire, flows


def events_start(i: int, rtts: list[float]) -> float:
    """The time before a flow begins, in ms."""
    return 39.9 + 7.0 * i + rtts[i]


def through_one_queue(
    flows: int, bit_s: float, room: float, seconds: float, behind: bool = False, net: int = 1
) -> tuple[Wire, list[Flow]]:
    """Flows of different RTTs through one queue that drops what does not fit."""
    path = Path(bit_s, room)
    return run([path] * flows, [20.0 + 3 * i for i in range(flows)], seconds, behind, net)


def each_alone(flows: int, bit_s: float, drop: float, seconds: float, net: int = 1) -> tuple[Wire, list[Flow]]:
    """Flows over paths of their own, which drop at random."""
    paths = [Path(bit_s, 10**6, drop, random.Random(7 + i)) for i in range(flows)]
    return run(paths, [20.0 + 3 * i for i in range(flows)], seconds, net=net)


def each_own_queue(flows: int, bit_s: float, room: float, seconds: float, net: int = 1) -> tuple[Wire, list[Flow]]:
    """Flows over drop-tail queues of their own, of slightly different rates."""
    paths = [Path(bit_s * (1 + 0.13 * i), room) for i in range(flows)]
    return run(paths, [20.0 + 3 * i for i in range(flows)], seconds, net=net)
