# SPDX-License-Identifier: Apache-2.0
"""Captures of paths that lose, damage, change or delay packets: one example for each cause, and the parts of which tests make
rivals."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scapy.all import IP, TCP, UDP, VXLAN, Ether, Packet, wrpcap

import one_queue
import transfer_wires as wires
from crafted import NEIGHBOR, write_timed
from finding_captures import CAPTURES as FINDINGS
from finding_captures import of_wire
from limited_sender import stamps
from numbered_payloads import rtp
from plain_wire import ACK, FIN, MSS, NO_SACK, PSH, SYN, Connection, Wire, sack, syn_options
from talk import Talk

Make = Callable[[Path], Path]


def of_packets(make: Callable[[], list[Packet]]) -> Make:
    def write(path: Path) -> Path:
        wrpcap(str(path), make())
        return path

    return write


@dataclass
class Policer:
    """A token bucket, which drops and never queues."""

    byte_ms: float = 1250.0  # 10 Mbit/s
    bucket: float = 30_000.0
    tokens: float = 30_000.0
    filled_ms: float = 0.0

    def drops(self, now: float) -> bool:
        """Whether a full segment that comes now is dropped."""
        self.tokens = min(self.bucket, self.tokens + (now - self.filled_ms) * self.byte_ms)
        self.filled_ms = now
        if self.tokens < MSS:
            return True
        self.tokens -= MSS
        return False


def rounds(
    drops: Callable[[float], bool],
    sizes: Iterable[int],
    behind: bool = False,
    rtt: float = 40.0,
    reply: float | None = None,
    each: int = 6,
) -> Wire:
    """Flights of these many segments, one each round trip, in groups of six (`each`) back to back at 100 Mbit/s. What is dropped
    is sent again with the next flight. Captured before the drops, or behind them; ACKs follow after a reply time."""
    reply = reply or (0.01 if behind else rtt - 4.0)
    talk, now, number, lost, delay = wires.connection(Wire(by_time=True), rtt=rtt), 60.0, 0, list[int](), set[int]()
    ready = 0
    for size in sizes:
        new = max(size - len(lost), 0)
        flight, number, lost = [*lost, *range(number, number + new)], number + new, []
        for place, segment in enumerate(flight):
            at = now + 0.9 * rtt * (place // each * each) / len(flight) + 0.12 * (place % each)
            is_lost = drops(at)
            if not (behind and is_lost):
                talk.data(at, segment * MSS)
            if is_lost:
                lost.append(segment)
                continue
            delay.add(segment)
            while ready in delay:
                delay.remove(ready)
                ready += 1
            blocks = sack(*blocks_of(delay, segment)) if delay else b""
            talk.ack(at + reply, ready * MSS, window=4000, options=blocks)
        now += rtt
    return talk.wire


def blocks_of(delay: set[int], newest: int) -> list[tuple[int, int]]:
    """The block of the newest segment, and up to two others."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(delay):
        start = ranges.pop()[0] if ranges and ranges[-1][1] == number else number
        ranges.append((start, number + 1))
    ranges.sort(key=lambda each: not each[0] <= newest < each[1])
    return [(start * MSS, end * MSS) for start, end in ranges[:3]]


def sizes_of(count: int, seed: int = 3) -> list[int]:
    """Flights that grow and shrink around 34 segments, the rate of the policer."""
    dice = random.Random(seed)
    return [dice.choice((20, 28, 34, 38, 44, 50)) for _ in range(count)]


def through(
    path: one_queue.Path, rtt: float = 40.0, seconds: float = 6.0, behind: bool = False, most: float = 400.0
) -> Wire:
    """A bulk transfer over a path, captured at its sender or at its receiver."""
    return one_queue.run([path], [rtt], seconds, behind, most=most)[0]


def policed(behind: bool = False) -> Wire:
    return rounds(Policer().drops, sizes_of(120), behind)


def dropped_at_random(behind: bool = False, share: float = 0.01) -> Wire:
    dice = random.Random(5)
    return rounds(lambda now: dice.random() < share, sizes_of(120), behind)


def video(lost_in_bursts: bool) -> Wire:
    """60 packets of a camera each second, and 4 each 40 ms: some in the middle of the bursts are lost, or any by chance."""
    wire, dice, number = Wire(), random.Random(5), 0
    for picture in range(750):
        burst = 4 if picture % 25 else 60
        for place in range(burst):
            share = 0.5 * (30 < place < 50) if lost_in_bursts else 0.03
            if dice.random() >= share:
                wire.udp(40.0 * picture + 0.1 * place, rtp(number, ssrc=7) + bytes(1000), 52_000)
            number += 1
    return wire


def smaller_path(tells: bool = True) -> Wire:
    """A flight of full segments of which none passes, and the same bytes in smaller segments, with all that follows; `tells`: a
    router reports each of the full ones."""
    talk, small = Connection(Wire()).open(window=4096), MSS - 100
    wire = talk.wire
    for i in range(8):
        talk.data(30 + 0.02 * i, i * MSS)
        if tells:
            quoted = wire.packets[-1][1][14 : 14 + 28]
            wire.ip(31 + 0.02 * i, "10.0.0.9", "10.0.0.1", 1, struct.pack("!BBHHH", 3, 4, 0, 0, 1400) + quoted)
    for flight in range(12):
        now = (40 if tells else 260) + 21 * flight
        for i in range(8):
            place = 8 * flight + i
            talk.data(now + 0.02 * i, place * small, small).ack(now + 20 + 0.02 * i, (place + 1) * small, window=4096)
    return wire


def repaired_one_by_one(sack_offered: bool = False, rtt: float = 120.0) -> Wire:
    """Of each flight of 20 segments five in a row are lost, and repaired one in each round trip; seen at the sender."""
    options, talk, now = (syn_options(), syn_options() if sack_offered else NO_SACK), Connection(Wire()), 2 * rtt
    talk.send(0, 0, -1, flags=SYN, options=options[0])
    talk.send(rtt, 1, -1, flags=SYN | ACK, ack=0, options=options[1], window=65535).send(rtt, 0, 0)
    for first in range(0, 200, 20):
        for n in range(20):
            talk.data(now + n / 10, (first + n) * MSS)
            if not 5 <= n < 10:
                talk.ack(now + rtt + n / 10, (first + min(n + 1, 5)) * MSS)
        for n in range(5, 10):
            now += rtt
            talk.data(now + 1.4, (first + n) * MSS)
            talk.ack(now + rtt + 1.4, (first + (n + 1 if n < 9 else 20)) * MSS)
        now += rtt + 2
    return talk.wire


def thinned(wire: Wire, every: int = 300, run: int = 24) -> Wire:
    """A wire of whose packets the capture missed some in a row, again and again, after the handshake."""
    ordered = sorted(wire.packets, key=lambda packet: packet[0])
    wire.packets = [packet for number, packet in enumerate(ordered) if number < every or number % every >= run]
    return wire


def dropped_by_the_host(summed: bool = False) -> Wire:
    """Segments that reach the receiver, at which the capture was made, and which it takes only when they come again. Its own
    packets have checksums if it was made behind its adapter."""
    dice = random.Random(5)
    wire = rounds(lambda now: dice.random() < 0.01, sizes_of(120), reply=0.01).summed("10.0.0.1")
    return wire.summed("10.0.0.2") if summed else wire


def acks_lost(waits: Sequence[float] = (240.0, 720.0, 1680.0)) -> list[Packet]:
    """An upload of single segments that are repeated although they had arrived, seen at the receiver: the ACKs before the last
    repeat are lost on the way back, as DSACKs and timestamps show."""
    talk, now = Talk().open(near=19.9), 100.0
    for turn in range(4):
        at, echoed = 1000 * turn, talk.echo[0]
        talk.data(now, at).ack(now + 0.1, at + 1000)
        for wait in waits:
            talk.data(now + wait, at, tsecr=echoed).ack(now + wait + 0.1, at + 1000, (at, at + 1000))
        now += waits[-1] + 20.2
    return talk.data(now, 4000).ack(now + 0.1, 5000).in_order()


def acks_late(sack: bool = True) -> list[Packet]:
    """An upload of single segments, seen at the client: each ACK comes after the timer."""
    talk, now = Talk(sack=sack).open(), 100.0
    for turn in range(12):
        at, late = 1000 * turn, turn % 3 == 2
        talk.data(now, at)
        if late:
            talk.data(now + 240, at).ack(now + 320, at + 1000, tsecr=10_000 + int(now))
            talk.ack(now + 380, at + 1000, (at, at + 1000))
            now += 400
        else:
            talk.ack(now + 20, at + 1000)
            now += 25
    return talk.in_order()


def collisions(rtt: float = 8.0, share: float = 0.15) -> Wire:
    """Many losses at random on a short path."""
    dice = random.Random(8)
    return rounds(lambda now: dice.random() < share, [8] * 150, rtt=rtt)


def lost_tails(turns: int = 12, idle_ms: float = 0.0) -> Wire:
    """Requests whose answers of five segments lack the last one until the timer of 300 ms; seen before the loss. After a pause
    the client closes."""
    talk, now, at = Connection(Wire()).open(), 50.0, 0
    for turn in range(turns):
        talk.send(now, 0, 50 * turn, 50, PSH | ACK, at)
        for n in range(5):
            talk.send(now + 2 + n / 100, 1, at + n * MSS, MSS, PSH | ACK if n == 4 else ACK, 50 * turn + 50)
        talk.send(now + 20, 0, 50 * turn + 50, ack=at + 4 * MSS)
        talk.send(now + 320, 1, at + 4 * MSS, MSS, PSH | ACK, 50 * turn + 50)
        at += 5 * MSS
        talk.send(now + 340, 0, 50 * turn + 50, ack=at)
        now += 400
    if idle_ms:
        talk.send(now + idle_ms, 0, 50 * turns, flags=FIN | ACK, ack=at)
    return talk.wire


def shifted_sacks(shift: int = 900_000_000, window: int = 512) -> Wire:
    """Every 40th segment is lost; SACK blocks of another numbering report the rest, and a timer repairs it."""
    talk, now = wires.connection(), 30.0
    for first in range(0, 400, 40):
        for n in range(first, first + 40):
            talk.data(now + (n - first) * 0.1, n * MSS)
        for n in range(1, 40):
            start, end = ((1001 + (first + edge) * MSS + shift) % 2**32 for edge in (1, n + 1))
            blocks = bytes([1, 1, 5, 10]) + struct.pack("!II", start, end)
            talk.ack(now + n * 0.1 + 20, first * MSS, options=blocks)
        talk.data(now + 330, first * MSS)
        talk.ack(now + 350, (first + 40) * MSS)
        now += 360
    return talk.wire


def in_tunnel(side: int, flags: str, checksum: int | None) -> Packet:
    """A packet of a connection in VXLAN; `checksum` is that of the outer UDP, None: right."""
    ends, ports = [("10.1.0.1", "10.1.0.2"), ("10.1.0.2", "10.1.0.1")][side], [(40000, 80), (80, 40000)][side]
    fields = {"seq": (100, 500)[side] + ("S" not in flags), "ack": (501, 101)[side] if "A" in flags else 0}
    inner = IP(src=ends[0], dst=ends[1]) / TCP(sport=ports[0], dport=ports[1], flags=flags, **fields)
    hosts = [end.replace("10.1.0", "192.0.2") for end in ends]
    packet = (
        Ether(dst=NEIGHBOR)
        / IP(src=hosts[0], dst=hosts[1])
        / UDP(sport=5000 + side, dport=4789)
        / VXLAN(vni=7)
        / Ether(dst=NEIGHBOR)
        / inner
    )
    if checksum is not None:
        packet[UDP].chksum = checksum
    return packet


def wrong_outer_checksum(path: Path) -> Path:
    """Five SYNs with a wrong checksum of the tunnel; the sixth has none, and is answered."""
    timed = [(float(2**n), in_tunnel(0, "S", 0x1234)) for n in range(5)]
    timed += [(32.0, in_tunnel(0, "S", 0)), (32.001, in_tunnel(1, "SA", 0)), (32.002, in_tunnel(0, "A", 0))]
    return write_timed(path, timed)


def damaged(path: Path) -> Path:
    """An upload of 200 segments of which six arrive damaged, and are sent again 30 ms later."""
    ends = [IP(src="10.0.0.1", dst="10.0.0.2"), IP(src="10.0.0.2", dst="10.0.0.1")]
    ports = [{"sport": 40000, "dport": 80}, {"sport": 80, "dport": 40000}]
    timed: list[tuple[float, Packet]] = []

    def send(at: float, side: int, flags: str, seq: int, ack: int, size: int = 0, right: bool = True) -> None:
        header = ends[side].copy()
        header.id = len(timed) + 1
        packet = (
            Ether(dst=NEIGHBOR)
            / header
            / TCP(flags=flags, seq=seq, ack=ack, window=60000, **ports[side])
            / (b"x" * size)
        )
        if not right:
            packet[TCP].chksum = 0x1234
        timed.append((at, packet))

    for at, side, flags, seq, ack in ((0.0, 0, "S", 100, 0), (0.02, 1, "SA", 500, 101), (0.021, 0, "A", 101, 501)):
        send(at, side, flags, seq, ack)
    now = 0.03
    for n in range(200):
        is_damaged = n % 33 == 20
        send(now, 0, "PA", 101 + 1000 * n, 501, 1000, not is_damaged)
        if is_damaged:
            now += 0.22
            send(now, 0, "PA", 101 + 1000 * n, 501, 1000)
        send(now + 0.0001, 1, "A", 501, 1101 + 1000 * n)
        now += 0.02
    return write_timed(path, timed)


def large_ones_wrong(path: Path) -> Path:
    """An upload of which all full segments arrive with a wrong checksum: timers repeat the first; a short request before it was
    answered. Captured at the receiver."""
    timed: list[tuple[float, Packet]] = []

    def send(at: float, side: int, flags: str, seq: int, ack: int, size: int = 0) -> None:
        hosts = ("10.0.0.1", "10.0.0.2")[:: -1 if side else 1]
        ports = (40000, 5201)[:: -1 if side else 1]
        header = IP(src=hosts[0], dst=hosts[1], id=len(timed) + 1, flags="DF")
        packet = (
            Ether(dst=NEIGHBOR)
            / header
            / TCP(sport=ports[0], dport=ports[1], flags=flags, seq=seq, ack=ack, window=60000)
        )
        packet /= b"x" * size
        if size > 1000:
            packet[TCP].chksum = 0x1234 + len(timed)
        timed.append((at, packet))

    for at, side, flags, seq, ack in ((0.0, 0, "S", 100, 0), (0.00001, 1, "SA", 500, 101), (0.001, 0, "A", 101, 501)):
        send(at, side, flags, seq, ack)
    send(0.002, 0, "PA", 101, 501, 37)
    send(0.00202, 1, "A", 501, 138)
    for n in range(10):
        send(0.003 + n * 1e-5, 0, "A", 138 + 1460 * n, 501, 1460)
    for at in (0.21, 0.63, 1.46, 3.12, 6.45):
        send(at, 0, "A", 138, 501, 1460)
    return write_timed(path, timed)


def clamped(mss: int = 536) -> Wire:
    """A bulk transfer in segments of a small MSS, which the server announces; it announces a larger one to another client."""
    wire = wires.steady(wires.connection(mss=mss), 3000, gap=1.0, size=mss)
    Connection(wire, 40001, ("10.0.0.3", "10.0.0.2")).open(5.0, 4.0)
    return wire


def down(starts: Iterable[float] = (2000.0,), flows: int = 2, grows: bool = False) -> Wire:
    """Transfers of flights every 25 ms, which may grow, whose path is down for 1,200 ms at some times: timers repeat the first
    segment 300 and 900 ms later without success, and 2,100 ms later with success."""
    wire, left = Wire(), list(starts)
    talks = [Connection(wire, 40000 + i).open(3.0 * i) for i in range(flows)]
    now, at = 100.0, 0
    for turn in range(200):
        is_down, size = bool(left) and now >= left[0], 8 + turn // 6 if grows else 12
        for i, talk in enumerate(talks):
            start = now + 3.0 * i
            for n in range(size):
                talk.data(start + n * 0.1, (at + n) * MSS)
            if not is_down:
                for n in range(size):
                    talk.ack(start + 20 + n * 0.1, (at + n + 1) * MSS)
                continue
            for wait in (300.0, 900.0, 2100.0):
                talk.data(start + wait, at * MSS)
            talk.ack(start + 2120, (at + 1) * MSS)
            for n in range(1, size):
                talk.data(start + 2120 + n * 0.1, (at + n) * MSS)
                talk.ack(start + 2140 + n * 0.1, (at + n + 1) * MSS)
        if is_down:
            left.pop(0)
        now, at = now + (2200 if is_down else 25), at + size
    return wire


def down_at_receiver(timer: bool = True, hole: bool = True) -> Wire:
    """A transfer of flights every 25 ms at its receiver. The path is down for 1.9 s, then the sender's slow start repeats half
    of the lost flight in order before new data shows a hole, or all of it, so that IP IDs alone are missing. Or the sender pauses
    as long, and a burst is lost after that."""
    wire = Wire()
    talk = Connection(wire).open(0.0, 20.0, 20.0)

    def flight(now: float, at: int, segments: int) -> None:
        for n in range(segments):
            talk.data(now + n * 0.1, (at + n) * MSS).ack(now + n * 0.1 + 0.01, (at + n + 1) * MSS)

    for turn in range(40):
        flight(100.0 + 25 * turn, 12 * turn, 12)
    wire.ids["10.0.0.1"] += 90 if timer else 0
    now, at = 3000.0, 480
    for size in (1, 2, 4, 8, 16, 24):
        flight(now, at, size)
        now, at = now + 20, at + size
    if hole:
        wire.ids["10.0.0.1"] += 0 if timer else 36
        lose_36(talk, now, at)
        at += 48
    for turn in range(20):
        flight(now + 50 + 25 * turn, at + 12 * turn, 12)
    return wire


def lose_36(talk: Connection, now: float, at: int) -> None:
    """Segments behind a hole of 36, which is repaired a round trip later."""
    for n in range(12):
        blocks = sack(((at + 36) * MSS, (at + 37 + n) * MSS))
        talk.data(now + n * 0.1, (at + 36 + n) * MSS).ack(now + n * 0.1 + 0.01, at * MSS, options=blocks)
    blocks = sack(((at + 36) * MSS, (at + 48) * MSS))
    for n in range(36):
        talk.data(now + 20 + n * 0.1, (at + n) * MSS)
        is_last = n == 35
        position = at + 48 if is_last else at + n + 1
        talk.ack(now + 20 + n * 0.1 + 0.01, position * MSS, options=b"" if is_last else blocks)


def stood_still_at_receiver(timer: bool = True) -> Wire:
    """A transfer of flights every 25 ms at its receiver. The path keeps one for 1.1 s, and with it what a tail loss probe and two
    timers repeat meanwhile. Or the sender pauses, and sends segments again at once after that, in vain."""
    wire, at, now = Wire(), 0, 100.0
    talk = Connection(wire)
    talk.send(0.0, 0, -1, flags=SYN, options=syn_options() + stamps(0.0, 0))
    talk.send(0.01, 1, -1, flags=SYN | ACK, ack=0, options=syn_options() + stamps(0.01, 5000), window=65535)
    talk.send(20.0, 0, 0, options=stamps(20.0, 5000))
    for turn in range(80):
        arrives = now + (1100.0 if turn == 40 else 0.0)
        sent = now if timer else arrives
        for n in range(12):
            talk.send(arrives + n * 0.1, 0, (at + n) * MSS, MSS, options=stamps(sent, 5000))
            echo = stamps(arrives + n * 0.1, 5000 + int(sent))
            talk.ack(arrives + n * 0.1 + 0.01, (at + n + 1) * MSS, options=echo)
        for n, (number, wait) in enumerate(((at + 11, 60.0), (at, 300.0), (at, 900.0)) if turn == 40 else ()):
            again = stamps(sent + wait if timer else arrives + 2, 5000)
            talk.send(arrives + 2 + n * 0.1, 0, number * MSS, MSS, options=again)
            report = stamps(arrives + 2, 5000 + int(sent)) + sack((number * MSS, (number + 1) * MSS))
            talk.ack(arrives + 2.05 + n * 0.1, (at + 12) * MSS, options=report)
        now, at = arrives + 25, at + 12
    return wire


def stood_still(ms: float = 1100.0, lost: bool = False) -> Wire:
    """A transfer of flights of 14 to 26 segments whose path keeps what was sent from 990 ms on, and delivers it at once. Its
    timer repeats the first segment 300 ms later without success, which a DSACK reports."""
    talk, now, at = wires.connection(Wire(by_time=True)), 30.0, 0
    for turn in range(60):
        delay, size = ms if turn == 40 else 0.0, 14 + turn % 13
        for n in range(size):
            talk.data(now + n * 0.1, (at + n) * MSS)
        if delay:
            talk.data(now + 300, at * MSS)
        for n in range(size):
            talk.ack(now + 20 + delay + n * 0.1, (at + n + 1) * MSS)
        if delay and not lost:
            talk.ack(now + 22.5 + delay, (at + size) * MSS, options=sack((at * MSS, (at + 1) * MSS)))
        now, at = now + 24 + delay, at + size
    return talk.wire


def held_up(ms: float = 250.0) -> Wire:
    """A segment each 5 ms, whose ACKs the path keeps for a while and delivers at once. A probe meanwhile was not needed, as a
    DSACK reports."""
    talk = wires.connection(Wire(by_time=True))
    for number in range(600):
        sent = 30.0 + 5 * number
        talk.data(sent, number * MSS)
        arrives = max(sent + 20, 1000.0 + ms) if 1000 <= sent + 20 < 1000 + ms else sent + 20
        talk.ack(arrives + number / 1000, (number + 1) * MSS)
        if number == 200:
            talk.data(sent + 2, number * MSS)
            talk.ack(1002.0 + ms, (number + 1) * MSS, options=sack((number * MSS, (number + 1) * MSS)))
    return talk.wire


def acks_held(wait: float = 240.0) -> Wire:
    """Flights of five segments of which the last is acknowledged late, by a timer; a probe in one of these waits was not
    needed."""
    talk, now = wires.connection(Wire(by_time=True)), 30.0
    for turn in range(12):
        at = 5 * turn * MSS
        for n in range(5):
            talk.data(now + n * 0.1, at + n * MSS)
        talk.ack(now + 20, at + 2 * MSS).ack(now + 20.2, at + 4 * MSS)
        if turn == 6:
            talk.data(now + 100, at + 4 * MSS)
            talk.ack(now + 20 + wait + 1, at + 5 * MSS, options=sack((at + 4 * MSS, at + 5 * MSS)))
        talk.ack(now + 20 + wait, at + 5 * MSS)
        now += 25 + wait
    return talk.wire


def out_of_order(every: int = 2, late: float = 3.0) -> Wire:
    """A stream captured behind two links of which one is slower: every nth segment comes late."""
    talk, now = wires.connection(), 30.0
    arrived: list[tuple[float, int]] = []
    for number in range(1200):
        now += 0.25
        arrived.append((now + late * (number % every == every - 1), number))
        talk.data(arrived[-1][0], number * MSS)
    seen, ready = set[int](), 0
    for at, number in sorted(arrived):
        seen.add(number)
        while ready in seen:
            seen.remove(ready)
            ready += 1
        talk.ack(at + 0.01, ready * MSS, options=sack(*blocks_of(seen, number)) if seen else b"")
    return talk.wire


def standing_queue() -> Wire:
    """Two uploads that fill a deep queue of 4 Mbit/s."""
    return one_queue.through_one_queue(2, 4e6, 150.0, 12.0)[0]


def answers_at_once(together: bool = True, senders: int = 12, fast: int = 0) -> Wire:
    """Requests of one client to many servers: the answers start together, and two segments of most are dropped until the timer
    of 300 ms, those of the first `fast` servers until 3 ms later; or one after the other, with the same losses."""
    wire, now = Wire(by_time=True), 100.0
    talks = [Connection(wire, 40000 + i, ("10.0.0.1", f"10.0.1.{i + 1}")).open(5.0 * i, 0.4) for i in range(senders)]
    for turn in range(6):
        for i, talk in enumerate(talks):
            at = now + (0.01 * i if together else 40.0 * i)
            first, begin = turn * 10 * MSS, turn * 50
            is_hit, wait = (i + turn) % 3 != 0, 300.0 if i >= fast else 3.0
            talk.send(at, 0, begin, 50, PSH | ACK, first)
            for n in range(10):
                if not (is_hit and n in (6, 7)):
                    talk.send(at + 0.4 + 0.13 * n, 1, first + n * MSS, MSS, PSH | ACK if n == 9 else ACK, begin + 50)
            if is_hit:
                blocks = sack((first + 8 * MSS, first + 10 * MSS))
                talk.send(at + 2.2, 0, begin + 50, ack=first + 6 * MSS, options=blocks)
                for n in (6, 7):
                    talk.send(at + wait + 0.4 + n / 10, 1, first + n * MSS, MSS, ACK, begin + 50)
            talk.send(at + (wait + 3.0 if is_hit else 2.2), 0, begin + 50, ack=first + 10 * MSS)
        now += 400 if together else 900
    return wire


def from_full_link(flight: int = 1, count: int = 3000) -> Wire:
    """A transfer at its receiver, a segment each 1.2 ms, or as many at once as a flight has; 1% of them are repeated 30 ms
    later."""
    link, draw, holes = Connection(Wire()).open(rtt=30.0, near=30.0), random.Random(7), list[tuple[float, int]]()
    for number in range(count):
        now = 40.0 + 1.2 * (number - number % flight) + 0.01 * (number % flight)
        while holes and holes[0][0] <= now:
            _, lost = holes.pop(0)
            link.send(now - 0.005, 0, lost, MSS).ack(now - 0.004, number * MSS)
        if draw.random() < 0.01:
            holes.append((now + 30.0, number * MSS))
            continue
        link.send(now, 0, number * MSS, MSS)
        link.ack(now + 0.004, holes[0][1] if holes else (number + 1) * MSS)
    return link.wire


def short_queue() -> Wire:
    """A transfer through a link of 20 Mbit/s whose queue holds 12 packets."""
    return one_queue.through_one_queue(1, 20e6, 12.0, 8.0)[0]


EXAMPLES: dict[str, Make] = {
    "path-mtu-found": of_wire(smaller_path),
    "outage": of_wire(lambda: down(grows=True)),
    "stall": of_wire(stood_still),
    "reordering": of_wire(out_of_order),
    "bufferbloat": of_wire(standing_queue),
    "incast": of_wire(answers_at_once),
    "bottleneck": of_wire(short_queue),
    "wrong-checksums": wrong_outer_checksum,
    "damaged-packets": damaged,
    "options-rewritten": of_wire(shifted_sacks),
    "mss-clamp": of_wire(clamped),
    "wifi-retries": FINDINGS["wlan-retries"],
    "policer": of_wire(policed),
    "tail-loss": of_wire(lost_tails),
    "duplex-mismatch": of_wire(collisions),
    "random-loss": of_wire(dropped_at_random),
    "needless-repeats": of_packets(acks_lost),
    "host-drops": of_wire(dropped_by_the_host),
}
