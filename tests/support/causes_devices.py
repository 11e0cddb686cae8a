# SPDX-License-Identifier: Apache-2.0
"""Captures of links, marks, queues and limits that meet some packets alone, each beside its nearest rivals."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import causes_path as paths
import one_queue
from finding_captures import of_wire
from numbered_payloads import rtp
from plain_wire import ACK, ECE, ECT_0, ECT_CE, MSS, Connection, Wire
from rival_case import NOT, Case

LINK_BIT_S, ROOM = 30e6, 10**6
VOICE_MS = 20.0


def bundled(drop: Callable[[int], float], count: int = 12, turns: bool = True) -> Wire:
    """Connections of two hosts to one service over links of their own that drop at random, as a bundle has them; begun in turns,
    or first those that lose."""
    wire = Wire(by_time=True)
    links = [one_queue.Path(LINK_BIT_S, ROOM, drop(i), random.Random(7 + i)) for i in range(count)]
    order = links if turns else sorted(links, key=lambda link: -link.drop)
    made, _ = one_queue.run(order, [20.0] * count, 4.0, most=40.0)
    ends = {f"10.1.{side}.{i + 1}": f"10.1.{side}.1" for side in (1, 2) for i in range(count)}
    packed = {bytes(map(int, old.split("."))): bytes(map(int, new.split("."))) for old, new in ends.items()}
    for ms, frame in made.packets:
        wire.packets.append((ms, frame[:26] + packed[frame[26:30]] + packed[frame[30:34]] + frame[34:]))
    return wire


def half_lose(number: int) -> float:
    return 0.03 * (number % 2)


def marked(echoed: Callable[[int], bool], growth: float = 0.0, behind: bool = False, window: int = 2) -> Wire:
    """A sender that keeps some segments under way, because ACKs echo a mark; seen there, or at the receiver, where data comes
    marked. Round trips grow from flight to flight."""
    talk = Connection(Wire(by_time=True)).open(rtt=30.0, near=30.0 if behind else 0.0)
    now, at = 40.0, 0
    for turn in range(120):
        rtt = 30.0 + growth * turn
        for n in range(window):
            is_marked = echoed(window * turn + n)
            talk.data(now + 0.1 * n, at, ecn=ECT_CE if behind and is_marked else ECT_0)
            at += MSS
            answered = now + 0.1 * n + (0.02 if behind else rtt)
            talk.ack(answered, at, flags=ACK | (ECE if is_marked else 0), window=4096)
        now += rtt
    return talk.wire


def voice(delayed: float, beside: bool = True, seconds: float = 16.0) -> Wire:
    """A call whose packets of one direction wait up to so many ms, and an upload of the same host behind a link of 2 Mbit/s,
    captured behind that link."""
    wire = Wire(by_time=True)
    for number in range(int(seconds * 1000 / VOICE_MS)):
        now = VOICE_MS * number
        wait = delayed * min(max(now - 4_000, 0) / 4_000, 1.0) if now < 12_000 else 0.0
        for ends, ms in ((("10.0.0.1", "10.0.0.9"), now + wait), (("10.0.0.9", "10.0.0.1"), now + 3)):
            text = rtp(number, ssrc=0xCAFE + len(ends[0]))
            header = struct.pack("!HHHH", 16_384, 16_384, 8 + len(text), 0)
            wire.ip(ms, *ends, 17, header + text)
    if beside:
        talk = Connection(wire, server_port=443).open(4_000.0, 30.0, 29.9)
        for number in range(1_300):
            ms = 4_040 + 6.06 * number
            talk.data(ms, number * MSS)
            if number % 2:
                talk.ack(ms + 0.05, (number + 1) * MSS, window=4096)
    return wire


def uneven(wait_ms: float = 30.0, until: float = 1.0, both: bool = False, hold_ms: float = 0.0) -> Wire:
    """A call of 16 s whose packets come late by turns, in one direction or both, for a part of its time; near its end one end is
    on hold."""
    wire, waits = Wire(by_time=True), random.Random(5)
    last = [0.0, 0.0]
    for number in range(800):
        for side, hosts in enumerate((("10.0.0.1", "10.0.0.9"), ("10.0.0.9", "10.0.0.1"))):
            is_late = (side == 0 or both) and number < 800 * until
            wait = waits.expovariate(1 / wait_ms) if is_late else 1.0
            last[side] = max(last[side] + 0.1, VOICE_MS * number + 3 + wait + hold_ms * (side == 0 and number >= 780))
            text = rtp(number, ssrc=0xCAFE + side)
            wire.ip(last[side], *hosts, 17, struct.pack("!HHHH", 16_384, 16_384, 8 + len(text), 0) + text)
    return wire


def shaped(heads: bool = True, growth: float = 0.0, every: float = 1.2) -> Wire:
    """An upload of two segments at a time, at one rate, captured in the host that sends it; round trips may grow in a queue
    behind it."""
    talk, size = Connection(Wire(by_time=True)).open(rtt=20.0, window=4096), 2 * MSS
    for number in range(3_000):
        ms = 30 + every * number
        for part in range(1 if heads else 2):
            talk.data(ms + 0.01 * part, number * size + part * MSS, size if heads else MSS)
        wait = 20.0 + min(growth * number, 60.0)
        talk.ack(ms + wait, (number + 1) * size, window=4096)
    return talk.wire


def spent(behind: bool = False, tokens: float = 600_000) -> Wire:
    """Flights at three times the rate of a policer, which passes them until its large bucket is empty."""
    policer = paths.Policer(bucket=tokens, tokens=tokens)
    flights = [20, 40, 80, *[100] * 16, *[60] * 10, *[30] * 60]
    return paths.rounds(policer.drops, flights, behind, each=10)


LINKS, MARKS, VOICE, SHAPER, POLICER, UNEVEN = (
    "bad-link-of-several",
    "marks-on-all",
    "voice-behind-transfer",
    "host-shaper",
    "policer",
    "voice-jitter",
)
CASES = {
    "one link of two loses": Case(
        lambda: bundled(half_lose),
        LINKS,
        ("6 of 12 connections from 10.1.1.1 to 10.1.2.1:80", "The other 6 lost none of"),
    ),
    "one link of four loses": Case(
        lambda: bundled(lambda number: 0.03 * (number % 4 == 1), 16),
        LINKS,
        ("4 of 16 connections", "The other 12 lost none"),
    ),
    "all links lose": NOT(lambda: bundled(lambda _: 0.02), LINKS),
    "the path loses for the first half": NOT(lambda: bundled(half_lose, turns=False), LINKS),
    "two connections lose": NOT(lambda: bundled(lambda number: 0.03 * (number < 3 and number % 2 == 0)), LINKS),
    "each packet is marked": Case(
        lambda: marked(lambda _: True),
        MARKS,
        ("after the capture point marks all packets", "round trips stay at 30 ms"),
    ),
    "each packet came marked": Case(
        lambda: marked(lambda _: True, behind=True),
        MARKS,
        ("before the capture point probably marks", "first ones, too"),
    ),
    "a queue marks packets": NOT(lambda: marked(lambda number: number % 3 == 0), MARKS),
    "a queue grows and marks all": NOT(lambda: marked(lambda _: True, 0.4), MARKS),
    "a large window despite marks": NOT(lambda: marked(lambda _: True, window=24), MARKS),
    "a call behind an upload": Case(
        lambda: voice(900.0),
        VOICE,
        ("The voice of 10.0.0.1 probably waits in a queue", "transfer to 10.0.0.2:443", "up to 900 ms later"),
    ),
    "a call that comes unevenly": Case(
        uneven,
        UNEVEN,
        ("The voice of 10.0.0.1 comes unevenly", "none is lost; probably a queue"),
    ),
    "a call that is a little uneven": NOT(lambda: uneven(6.0), UNEVEN),
    "a call that was on hold": NOT(lambda: uneven(1.0, hold_ms=3_000.0), UNEVEN),
    "a call that comes unevenly for its first half": Case(
        lambda: uneven(until=0.5), UNEVEN, ("packets are up to 218 ms later than others",)
    ),
    "a call that was uneven once": NOT(lambda: uneven(until=0.03), UNEVEN),
    "a call that the capture itself holds": NOT(lambda: uneven(both=True), UNEVEN),
    "a call in a queue is not uneven": NOT(lambda: voice(900.0), UNEVEN),
    "a call beside an upload": NOT(lambda: voice(60.0), VOICE),
    "a call that is delayed alone": NOT(lambda: voice(900.0, beside=False), VOICE),
    "a shaper in the host": Case(shaped, SHAPER, ("10.0.0.1 itself probably holds", "19.3 Mbit/s", "stay at 20 ms")),
    "a link behind the host": NOT(lambda: shaped(growth=0.02), SHAPER),
    "a capture behind the host": NOT(lambda: shaped(heads=False), SHAPER),
    "a large bucket is spent": Case(
        spent, POLICER, ("after the capture point holds", "dropped", "round trip stayed at 40 ms")
    ),
    "a large bucket is spent, seen behind": Case(lambda: spent(True), POLICER, ("before the capture point probably",)),
    "a queue that slow start overflows": NOT(
        lambda: paths.through(one_queue.Path(20e6, 40.0), behind=True, most=300.0), POLICER
    ),
}
EXAMPLES = {
    LINKS: of_wire(lambda: bundled(half_lose)),
    MARKS: of_wire(lambda: marked(lambda _: True)),
    VOICE: of_wire(lambda: voice(900.0)),
    UNEVEN: of_wire(uneven),
    SHAPER: of_wire(shaped),
}
