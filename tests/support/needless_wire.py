# SPDX-License-Identifier: Apache-2.0
"""Senders that repeat what had arrived: by a timer that is too short, or because packets overtake each other."""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

from plain_wire import MSS, Connection, Wire, sack


class Link(NamedTuple):
    """What is to come at a sender, a receiver or a link before it: time, number of the event, kind, and what it is about."""

    ms: float
    number: int
    kind: str
    about: int


def impatient(
    timer: float = 200.0,
    rate: float = 10.0,
    rtt: float = 60.0,
    window: int = 30,
    near: float = 0.0,
    count: int = 600,
    every: int = 1,
) -> Wire:
    """A sender that repeats each segment, or each n-th, once if it has no ACK after so many ms, over a link of so many ms for a
    segment, seen there or at the receiver; nothing is lost."""
    talk, free = Connection(Wire(by_time=True)).open(0, rtt, near), 0.0
    sent = cum = 0
    arrived, numbers, una = set[int](), itertools.count(), 0
    events = [Link(rtt + 1, next(numbers), "ack", 0)]

    def send(now: float, segment: int) -> None:
        nonlocal free
        free = max(now, free) + rate
        talk.data(free + rtt / 2 if near else now, segment * MSS)
        heapq.heappush(events, Link(free + rtt / 2, next(numbers), "arrival", segment))

    while events:
        now, _, kind, about = heapq.heappop(events)
        if kind == "arrival":
            blocks = [(about * MSS, (about + 1) * MSS)] if about < cum or about in arrived else []
            arrived.add(about)
            while cum in arrived:
                cum += 1
            talk.ack(now + (0 if near else rtt / 2), cum * MSS, options=sack(*blocks) if blocks else b"")
            heapq.heappush(events, Link(now + rtt / 2, next(numbers), "ack", cum))
        elif kind == "timer" and about >= una:
            send(now, about)
        elif kind == "ack":
            una = max(una, about)
            while sent < count and sent - una < window:
                send(now, sent)
                if sent % every == 0:
                    heapq.heappush(events, Link(now + timer, next(numbers), "timer", sent))
                sent += 1
    return talk.wire


def overtaken(every: int = 6, late: float = 6.0, gap: float = 0.3, rtt: float = 40.0, count: int = 600) -> Wire:
    """Segments at an even pace, some of which come late behind the capture point, so that three duplicate ACKs make the sender
    repeat them."""
    talk = Connection(Wire(by_time=True)).open(0, rtt)
    sent = [rtt + 1 + gap * segment for segment in range(count)]
    events = [(ms + rtt / 2 + late * (n % every == every - 1), n) for n, ms in enumerate(sent)]
    heapq.heapify(events)
    arrived, cum, repeated = set[int](), 0, set[int]()
    while events:
        now, segment = heapq.heappop(events)
        blocks = [(segment * MSS, (segment + 1) * MSS)] if segment < cum or segment in arrived else []
        arrived.add(segment)
        while cum in arrived:
            cum += 1
        above = sorted(each for each in arrived if each > cum)
        blocks += [(above[0] * MSS, (above[-1] + 1) * MSS)] if above else []
        talk.ack(now + rtt / 2, cum * MSS, options=sack(*blocks) if blocks else b"")
        if len(above) >= 3 and cum not in repeated:
            repeated.add(cum)
            talk.data(now + rtt / 2 + 0.01, cum * MSS)
            heapq.heappush(events, (now + rtt + 0.01, cum))
    for segment, ms in enumerate(sent):
        talk.data(ms, segment * MSS)
    return talk.wire
