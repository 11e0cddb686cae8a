# SPDX-License-Identifier: Apache-2.0
"""Transfers with one phenomenon each: tests of rules read them, and the examples of docs/findings.md are made of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

from plain_wire import ACK, ECE, ECT_CE, FIN, MSS, PSH, RST, SYN, Connection, Wire, block, sack, syn_options

RTT = 20.0
LINE_MS = 1538 * 8 / 100e3  # of a full frame at 100 Mbit/s


def connection(wire: Wire | None = None, **options: Any) -> Connection:
    """A connection that is open."""
    port = options.pop("port", 40000)
    return Connection(wire or Wire(), port).open(**{"rtt": RTT, **options})


def flights(flow: Connection, count: int, each: int, trip: float = RTT, window: int = 512) -> Wire:
    """`count` flights of `each` segments, the next when the last is acknowledged."""
    at, now = 0, 30.0
    for _ in range(count):
        for i in range(each):
            flow.data(now + i * 0.01, at + i * MSS)
        at += each * MSS
        for i in range(2, each + 1, 2):
            flow.ack(now + trip + i * 0.01, at - (each - i) * MSS, window)
        now += trip + (each + 1) * 0.01
    return flow.wire


def widening_flights(count: int, first: int) -> Wire:
    """Flights of which each has a segment more than the last."""
    flow, at, now = connection(window=4096), 0, 30.0
    for flight in range(first, first + count):
        for i in range(flight):
            flow.data(now + i * 0.01, at + i * MSS)
        at += flight * MSS
        for i in range(flight % 2 or 2, flight + 1, 2):
            flow.ack(now + RTT + i * 0.01, at - (flight - i) * MSS, 4096)
        now += RTT + (flight + 1) * 0.01
    return flow.wire


def steady(
    flow: Connection, count: int, gap: float = 2.0, delay: Callable[[float], float] | None = None, size: int = MSS
) -> Wire:
    """A segment every `gap` ms, acknowledged after `delay(ms)` (a round trip)."""
    now = 30.0
    for i in range(count):
        now += gap
        flow.data(now, i * size, size)
        flow.ack(now + (delay(now) if delay else RTT), (i + 1) * size)
    return flow.wire


def unscaled(window: int, count: int, each: int, trip: float = RTT) -> Wire:
    return flights(connection(rtt=trip, scale=None, window=window), count, each, trip=trip, window=window)


def small_writes(ack_delay: float, wire: Wire | None = None) -> Wire:
    """A short write, and the next one when it is acknowledged."""
    flow, now = connection(wire, rtt=1.0), 10.0
    for i in range(60):
        flow.data(now, i * 200, 200, PSH | ACK).ack(now + ack_delay, (i + 1) * 200)
        now += ack_delay + 0.1
    return flow.wire


def lossy(every: int, delay: Callable[[float], float] | None = None, count: int = 900) -> Wire:
    """A bulk transfer that loses every nth segment downstream and retransmits it fast."""
    flow, now, lost = connection(Wire(by_time=True)), 30.0, -1
    for i in range(count):
        now += 2.3
        flow.data(now, i * MSS)
        trip = delay(now) if delay else RTT
        if i % every == every - 1 and i + 25 < count:
            lost = i
        if lost >= 0 and lost < i < lost + 20:
            flow.ack(now + trip, lost * MSS, options=sack(((lost + 1) * MSS, (i + 1) * MSS)))
            if i == lost + 10:
                flow.data(now + trip + 0.1, lost * MSS)
        elif lost >= 0 and i == lost + 20:
            flow.ack(now + trip, (i + 1) * MSS)
            lost = -1
        elif lost < 0:
            flow.ack(now + trip + 0.2, (i + 1) * MSS)
    return flow.wire


def bursts_of_work(pause: float, rounds: int = 30) -> Wire:
    """An application that has 40 kB to send, then nothing for a while."""
    flow, now, at = connection(), 30.0, 0
    for _ in range(rounds):
        for i in range(28):
            last = i == 27
            flow.data(now + i * 0.1, at, MSS - 460 * last, ACK | PSH * last)
            at += MSS - 460 * last
            flow.ack(now + i * 0.1 + RTT, at)
        now += RTT + pause
    return flow.wire


def growing_flights(flights: tuple[int, ...] = (10, 20, 40, 80)) -> Wire:
    """Slow start takes most of the transfer, one RTT for each flight."""
    flow, at, now = connection(rtt=100.0, window=4096), 0, 110.0
    for flight in flights:
        for i in range(flight):
            flow.data(now + i * 0.05, at + i * MSS)
        for i in range(flight):
            flow.ack(now + 100 + i * 0.05, at + (i + 1) * MSS, window=4096)
        at += flight * MSS
        now += 100
    return flow.wire


def numbered(
    count: int, keep: Callable[[int], bool], gap: Callable[[int], float] = lambda i: 2.0, late: float = 0.0
) -> Wire:
    """Blocks over UDP, some of which do not come; each delayed by up to `late` ms."""
    wire, now, dice = Wire(), 0.0, random.Random(4)
    for i in range(count):
        now += gap(i)
        if keep(i):
            wire.udp(now + 5 + dice.random() * late, block(i, 200, sent_ms=now))
    return wire


def through_a_queue(count: int, gap: float = 2.0, service: float = 2.5, room: int = 20) -> Wire:
    """Blocks every `gap` ms through a queue that sends one each `service` ms."""
    wire, free = Wire(), 0.0
    for i in range(count):
        now = i * gap
        if free - now < room * service or i == count - 1:
            free = max(free, now) + service
            wire.udp(free, block(i, 200, sent_ms=now))
    return wire


def side_by_side(first: int, second: int) -> Wire:
    """Two connections that share 2 s."""
    wire = Wire()
    for port, count in ((40001, first), (40002, second)):
        flow = connection(wire, port=port)
        steady(flow, count, 2000 / count)
    return wire


def behind_a_transfer(least: float, most: float) -> Wire:
    """Numbered datagrams among the segments of a transfer that fills 10 Mbit/s. Both wait in one queue, whose delay grows from
    `least` to `most` ms each 0.4 s."""
    wire = Wire()
    flow = connection(wire)
    for i in range(3200):
        now = 30 + i * 10 * LINE_MS
        if i % 16 == 15:
            sent = now - least - (most - least) * (now % 400) / 400
            wire.udp(now, block(i // 16, 1472, sent_ms=sent))
        else:
            flow.data(now, flow.received[1], MSS)
            flow.received[1] += MSS
            flow.ack(now + 1, flow.received[1])
    return wire


def paced(gap_ms: float, flows: int = 1, burst: int = 1) -> Wire:
    """Datagrams of 1472 bytes, 1538 with all that goes with them, from each flow in turn; bursts are ten times as fast."""
    wire = Wire()
    for i in range(6000):
        wire.udp((i - i % burst + i % burst / 10) * gap_ms, bytes(1472), port=4000 + i % flows)
    return wire


def ended(silence_s: float) -> Wire:
    flow = connection()
    flow.data(50, 0, 100, PSH | ACK).ack(70, 100)
    flow.data(50 + silence_s * 1000, 100, 100, PSH | ACK)
    return flow.send(70 + silence_s * 1000, 1, 0, flags=RST).wire


def stuck(arrives: bool) -> Wire:
    """Small data passes; a large segment is sent four times."""
    flow = connection()
    flow.data(30, 0, 200, PSH | ACK).ack(50, 200)
    for at in (60, 360, 960, 2160):
        flow.data(at, 200, MSS)
    if arrives:
        flow.ack(2180, 200 + MSS)
        flow.data(2190, 200 + MSS, MSS).ack(2210, 200 + 2 * MSS)
    return flow.wire


def stuck_behind(hears: str, passes: bool = False, size: int = MSS) -> Wire:
    """3 kB of small messages with answers, then ten large segments, of which the first is repeated four times. `hears`: what the
    other end sends meanwhile, `sack` of a small tail, an `answer`, a `reset`, its own `repeats`, or `nothing`; `passes`: it has
    the second large segment."""
    flow, at = connection(), 0
    for turn in range(10):
        flow.data(30 + 50 * turn, at, 300, PSH | ACK)
        at += 300
        flow.ack(50 + 50 * turn, at)
    for i in range(10):
        flow.data(600 + i, at + i * size, size)
    tail = at + 10 * size
    flow.data(611, tail, 100, PSH | ACK)
    if passes:
        flow.ack(621, at, options=sack((at + size, at + 2 * size)))
    if hears == "sack":
        flow.ack(631, at, options=sack((tail, tail + 100)))
    for ms in (900, 1_500, 2_700, 5_100):
        flow.data(ms, at, size)
    replies = {"answer": [3_000.0], "repeats": [610.0, 900.0, 1_500.0, 2_700.0]}.get(hears, [])
    for ms in replies:
        flow.send(ms, 1, 0, 60, PSH | ACK, ack=at)
        if hears == "answer":
            flow.received[0] = 60
            flow.send(ms + 0.1, 0, tail + 100)
    if hears == "reset":
        flow.send(5_120, 1, 0, flags=RST | ACK, ack=at)
    return flow.wire


def refused_by_icmp(code: int) -> Wire:
    flow = connection()
    flow.data(30, 0, MSS)
    quoted = flow.wire.packets[-1][1][14 : 14 + 28]
    return flow.wire.ip(31, "10.0.0.9", "10.0.0.1", 1, struct.pack("!BBHHH", 3, code, 0, 0, 1400) + quoted)


def marked(echoed: bool) -> Wire:
    flow = connection()
    for i in range(20):
        flow.data(30 + i, i * MSS, ecn=ECT_CE if i == 5 else 2)
        flow.ack(50 + i, (i + 1) * MSS, flags=ACK | (ECE if echoed and i > 5 else 0))
    return flow.wire


def datagrams_of(size: int) -> Wire:
    wire = Wire()
    for i in range(1200):
        wire.udp(i, bytes(size))
    return wire


def bursts_of(count: int, source: str = "10.0.0.1") -> Wire:
    """Each 100 ms a burst of full frames at 10 Gbit/s, beside a trickle of another host."""
    wire = Wire()
    for burst in range(20):
        for i in range(count):
            wire.udp(100 * burst + i * 1538 * 8 / 10e6, bytes(1472), source=source)
        wire.udp(100 * burst + 50, bytes(100), source="10.0.0.9")
    return wire


def end(number: int) -> str:
    """An address of the scanned network."""
    return f"10.1.{number // 250}.{number % 250 + 1}"


def ports_again() -> Wire:
    """A SYN that the ACK of an old connection answers, the RST, and the same SYN 1 s later (RFC 5961 section 4)."""
    again = Connection(Wire())
    again.send(0, 0, -1, flags=SYN, options=syn_options())
    again.send(RTT, 1, 50_000, ack=70_000)
    again.send(RTT + 0.1, 0, 70_000, flags=RST)
    again.open(1000, RTT)
    for number in range(20):
        again.data(1030 + 40 * number, number * MSS).ack(1050 + 40 * number, (number + 1) * MSS)
    return again.wire


def probe(wire: Wire, number: int, host: str, port: int, outcome: str, source: str = "10.0.0.1") -> None:
    """A SYN, and how it ends. One without an answer is retransmitted, and so is a SYN-ACK without an ACK."""
    ms, flow = number * 5.0, Connection(wire, 40000 + number, (source, host), server_port=port)
    flow.send(ms, 0, -1, flags=SYN, options=syn_options())
    if outcome == "unanswered":
        flow.send(ms + 1000, 0, -1, flags=SYN, options=syn_options())
    elif outcome == "refused":
        flow.send(ms + 20, 1, -1, flags=RST | ACK, ack=0)
    else:
        for later in (20, 1020, 3020):
            if outcome == "half open" or later == 20:
                flow.send(ms + later, 1, -1, flags=SYN | ACK, ack=0, options=syn_options())
    if outcome == "reset":
        flow.send(ms + 40, 0, 0, flags=RST)
    elif outcome == "closed":
        flow.send(ms + 40, 0, 0)
        flow.send(ms + 41, 0, 0, flags=FIN | ACK).send(ms + 61, 1, 0, flags=FIN | ACK, ack=1).send(ms + 81, 0, 1, ack=1)
    elif outcome == "used":
        flow.send(ms + 40, 0, 0)
        flow.data(ms + 41, 0, 100, PSH | ACK).ack(ms + 61, 100)


def port_scan(ports: int, source: str = "10.0.0.1") -> Wire:
    wire, answers = Wire(), {3: "half open", 5: "reset", 7: "closed", 11: "refused", 13: "refused"}
    for number in range(ports):
        probe(wire, number, "10.0.0.2", number + 1, answers.get(number, "unanswered"), source)
    return wire
