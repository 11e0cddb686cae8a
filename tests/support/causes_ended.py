# SPDX-License-Identifier: Apache-2.0
"""Connections that end too early, or of which one half stays open: one example for each cause, and its rivals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scapy.all import ICMP, IP, TCP, UDP, Ether, Packet, Raw, wrpcap

import causes_broken as drawn
from application_wire import CHANGE, SECRET, SNI, hello, record
from application_wire import Talk as Web
from attempt_wire import RTT, Ends
from crafted import NEIGHBOR, Timed, ether, tls_handshake
from finding_captures import ALERT, of_timed, of_wire
from plain_wire import ACK, FIN, MSS, PSH, RST, SYN, Connection, Wire, syn_options
from talk import Talk

Make = Callable[[Path], Path]


def of_talks(make: Callable[[], list[Talk]]) -> Make:
    def write(path: Path) -> Path:
        packets = [packet for talk in make() for packet in talk.packets]
        wrpcap(str(path), sorted(packets, key=lambda packet: float(packet.time)))
        return path

    return write


def aborted(
    count: int = 3,
    ttl: int = 64,
    reply: float = 20.5,
    socket: bool = True,
    number: int | None = None,
    goes_on: bool = False,
    hops: int = 0,
) -> list[Talk]:
    """Requests whose connections are reset `reply` ms after the request, on a path of 20 ms; the last one is answered. The server
    is `hops` away."""
    talks = []
    for i in range(count + 1):
        talk = Talk(ends=(("10.0.0.1", 40_001 + i), ("10.0.0.2", 443)), isn=(1000 * (i + 1), 500_000), timestamps=False)
        talk.open().data(25, 0, 300)
        if i == count:
            talk.send(46, 1, 0, 500, 300).send(46.1, 0, 300, ack=500)
        elif socket:
            talk.send(45, 1, 0, ack=300).send(25 + reply, 1, 0, ack=300, flags="RA", ttl=ttl, ip_id=number)
        else:
            talk.send(25 + reply, 1, 0, ack=None, flags="R", ttl=ttl, window=0, ip_id=number)
        if goes_on and i < count:
            talk.send(45, 1, 0, 500, 300)
        talks.append(talk)
    for i, talk in enumerate(talks):
        for packet in talk.packets:
            packet.time += i
            if packet[IP].src == "10.0.0.2" and packet[IP].ttl == 64:
                packet[IP].ttl -= hops
    return talks


def cut(
    idle_ms: float = 412_000.0, count: int = 3, ttl: int = 64, reply: float = 20.2, spared_ms: float = 0.0
) -> list[Talk]:
    """Connections of which the first request after a pause is reset; one survives a pause of `spared_ms`."""
    talks = []
    for i in range(count + bool(spared_ms)):
        talk = Talk(ends=(("10.0.0.1", 40_001 + i), ("10.0.0.2", 443)), isn=(1000 * (i + 1), 500_000), timestamps=False)
        talk.open().data(25, 0, 300).send(46, 1, 0, 500, 300).send(46.1, 0, 300, ack=500)
        at = 46.1 + (idle_ms if i < count else spared_ms)
        talk.data(at, 300, 300, ack=500)
        if i < count:
            talk.send(at + reply, 1, 500, ack=None, flags="R", ttl=ttl, window=0)
        else:
            talk.send(at + 21, 1, 500, 500, 600).send(at + 21.1, 0, 600, ack=1000)
        for packet in talk.packets:
            packet.time += i
        talks.append(talk)
    return talks


def restarted(
    pauses: tuple[float, ...] = (10_000, 10_700, 12_500), survives: bool = False, near: bool = True
) -> list[Talk]:
    """Connections that are idle for so long; the server resets the next request of each, and accepts another connection.
    `survives`: one more is used all the time; `near`: the pauses have a moment in common."""
    talks = []
    for i, pause in enumerate((*pauses, *([0] if survives else []), -1)):
        talk = Talk(
            ends=(("10.0.0.1", 40_001 + i), ("10.0.0.2", 6379)), isn=(1000 * (i + 1), 500_000), timestamps=False
        )
        start = 20_000 if pause < 0 else 10 * i if near else 15_000 * i
        talk.open()
        for turn in range(8 if pause == 0 else 1):
            at = 25 + 3_000 * turn
            talk.data(at, 20 * turn, 20, ack=5 * turn).send(at + 20, 1, 5 * turn, 5, 20 * (turn + 1))
            talk.send(at + 20.1, 0, 20 * (turn + 1), ack=5 * (turn + 1))
        if pause > 0:
            talk.data(45.1 + pause, 20, 20, ack=5).send(65.3 + pause, 1, 5, ack=None, flags="R", window=0)
        for packet in talk.packets:
            packet.time += start / 1000
        talks.append(talk)
    return talks


def closing(after_ms: float, count: int = 3, keep_ms: float = 5_000.0, usual: int = 5) -> Wire:
    """A server that closes idle connections after `keep_ms`, 20 ms away; the next request leaves `after_ms` after its FIN did."""
    wire = Wire(by_time=True)
    for i in range(count + usual):
        start = 10_000.0 * i
        link = Connection(wire, 40_001 + i).open(start).send(start + 21, 0, 0, 200, PSH | ACK)
        link.send(start + 42, 1, 0, 500, PSH | ACK, ack=200).send(start + 42.1, 0, 200, ack=500)
        fin = start + 42 + keep_ms
        if i >= count:
            link.send(start + 2_000, 0, 200, 200, PSH | ACK, ack=500).send(
                start + 2_021, 1, 500, 500, FIN | ACK, ack=400
            )
            link.send(start + 2_022, 0, 400, flags=FIN | ACK, ack=1001).send(start + 2_042, 1, 1001, ack=401)
            continue
        link.send(fin + after_ms, 0, 200, 200, PSH | ACK, ack=500 if after_ms < 0 else 501)
        link.send(fin, 1, 500, flags=FIN | ACK, ack=200)
        link.send(fin + after_ms + 20, 1, 501, flags=RST, window=0)
    return wire


def aged(
    ages: tuple[float, ...] = (60_000.0,) * 4,
    idles: tuple[float, ...] = (300.0, 900.0, 1_700.0, 2_500.0),
    apart_ms: float = 7_000.0,
    met: int = 2,
    paces: tuple[float, ...] = (2_000.0, 3_000.0, 1_500.0, 2_500.0),
    longer: bool = False,
) -> Wire:
    """Connections in use that a server closes at an age; the first ones send a request that meets the close. `idles`: the pauses
    before; `paces`: from one request to the next; `longer`: another connection lives for longer."""
    wire = Wire(by_time=True)
    for i, (age, idle) in enumerate(zip((*ages, *([100_000.0] if longer else [])), (*idles, 500.0), strict=False)):
        start = apart_ms * i
        pace = paces[i % len(paces)]
        link, turns = Connection(wire, 40_001 + i).open(start, 1.0), int((age - idle - 10) // pace)
        asked = [start + 10 + pace * turn for turn in range(turns)] + [start + age - idle - 6]
        for turn, at in enumerate(asked):
            link.send(at, 0, 200 * turn, 200, PSH | ACK, ack=400 * turn)
            link.send(at + 5, 1, 400 * turn, 400, PSH | ACK, ack=200 * (turn + 1))
        sent, got, at = 200 * len(asked), 400 * len(asked), start + age
        if i < met:
            link.send(at - 0.3, 0, sent, 200, PSH | ACK, ack=got)
        link.send(at, 1, got, flags=FIN | ACK, ack=sent)
        if i < met:
            link.send(at + 0.5, 1, got + 1, flags=RST, window=0)
        else:
            link.send(at + 0.2, 0, sent, flags=FIN | ACK, ack=got + 1).send(at + 1, 1, got + 1, ack=sent + 1)
    return wire


def closed_after_answers() -> Wire:
    """A server that closes right after its second answer, 1.5 s after the first; the third request is on its way."""
    wire = Wire(by_time=True)
    for i in range(3):
        start = 10_000.0 * i
        link = Connection(wire, 40_001 + i).open(start).send(start + 21, 0, 0, 200, PSH | ACK)
        link.send(start + 42, 1, 0, 500, PSH | ACK, ack=200).send(start + 42.1, 0, 200, ack=500)
        link.send(start + 1_500, 0, 200, 200, PSH | ACK, ack=500).send(start + 1_521, 1, 500, 500, PSH | ACK, ack=400)
        link.send(start + 1_521.1, 1, 1000, flags=FIN | ACK, ack=400)
        link.send(start + 1_521.3, 0, 400, 200, PSH | ACK, ack=1000).send(start + 1_541, 1, 1001, flags=RST, window=0)
    return wire


def impatient(
    waits: tuple[float, ...] = (2_000.0, 2_000.0, 2_000.0), late_ms: float = 3_400.0, shut: bool = False
) -> Wire:
    """Clients that close after a time, and reset the answer that comes later; or only shut their half, if `shut`."""
    wire = Wire()
    for i, wait in enumerate(waits):
        start = 10_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=8443).open(start).send(start + 21, 0, 0, 400, PSH | ACK)
        link.send(start + 41, 1, 0, ack=400)
        link.send(start + 21 + wait, 0, 400, flags=FIN | ACK).send(start + 41 + wait, 1, 0, ack=401)
        link.send(start + 21 + late_ms, 1, 0, 1200, PSH | ACK, ack=401)
        if shut:
            link.send(start + 22 + late_ms, 0, 401, ack=1200)
            link.send(start + 23 + late_ms, 1, 1200, flags=FIN | ACK, ack=401).send(
                start + 43 + late_ms, 0, 401, ack=1201
            )
        else:
            link.send(start + 22 + late_ms, 0, 401, flags=RST, window=0)
    return wire


def farewells() -> Wire:
    """Clients that close with their whole answer, and reset the TLS close_notify that answers their FIN."""
    wire = Wire()
    for i in range(3):
        start = 10_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=443).open(start).send(start + 21, 0, 0, 400, PSH | ACK)
        link.send(start + 61, 1, 0, 1200, PSH | ACK, ack=400).send(start + 61.1, 0, 400, ack=1200)
        link.send(start + 321, 0, 400, flags=FIN | ACK, ack=1200).send(start + 341, 1, 1200, 24, PSH | ACK, ack=401)
        link.send(start + 341.1, 0, 401, flags=RST, window=0)
        link.send(start + 341.2, 1, 1224, flags=FIN | ACK, ack=401).send(start + 341.3, 0, 401, flags=RST, window=0)
    return wire


def unused(late: int = 24, count: int = 3) -> Wire:
    """TLS connections that a browser opens in advance and closes unused 10 s later: close_notify and FIN, the server's last
    record of so many bytes, and RSTs of the client."""
    wire = Wire()
    first, second = hello(1, b"", SNI), hello(2, b"") + CHANGE + SECRET
    finished, bye = CHANGE + SECRET, record(23, bytes(19))
    for i in range(count):
        start, at = 15_000.0 * i, len(first)
        link = (
            Connection(wire, 40_001 + i, server_port=443)
            .open(start)
            .send(start + 21, 0, 0, 0, PSH | ACK, payload=first)
        )
        link.send(start + 42, 1, 0, 0, PSH | ACK, ack=at, payload=second)
        link.send(start + 43, 0, at, 0, PSH | ACK, ack=len(second), payload=finished)
        at += len(finished)
        link.send(start + 63, 1, len(second), ack=at)
        link.send(start + 10_043, 0, at, 0, PSH | ACK, ack=len(second), payload=bye)
        link.send(start + 10_043.1, 0, at + len(bye), flags=FIN | ACK, ack=len(second))
        link.send(
            start + 10_064, 1, len(second), 0, PSH | ACK, ack=at + len(bye) + 1, payload=record(23, bytes(late - 5))
        )
        link.send(start + 10_064.1, 0, at + len(bye) + 1, flags=RST, window=0)
    return wire


def plain_answer(
    answer: bytes = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    alert: bool = True,
    count: int = 3,
    port: int = 8080,
    closer: int = 1,
    leave_ms: float = 0.5,
) -> Wire:
    """ClientHellos to a port that answers in plain text. The server closes and the client ends with an alert or without, or
    the client resets after `leave_ms`."""
    wire = Wire()
    first, refusal = hello(1, b"", SNI), record(21, b"\2\x46")
    for i in range(count):
        start, at, size = 10_000.0 * i, len(first), len(answer)
        link = Connection(wire, 40_001 + i, server_port=port).open(start, 1.0)
        link.send(start + 2, 0, 0, 0, PSH | ACK, payload=first).send(
            start + 3, 1, 0, 0, PSH | ACK, ack=at, payload=answer
        )
        if closer == 0:
            link.send(start + 3 + leave_ms, 0, at, flags=RST | ACK, ack=size)
            continue
        link.send(start + 3.1, 1, size, flags=FIN | ACK, ack=at)
        if alert:
            link.send(start + 3.5, 0, at, 0, PSH | ACK, ack=size + 1, payload=refusal)
            at += len(refusal)
        link.send(start + 3.6, 0, at, flags=FIN | ACK, ack=size + 1).send(start + 4.6, 1, size + 1, ack=at + 1)
    return wire


def demanding(hello_first: bool = True, count: int = 3) -> Wire:
    """TLS handshakes that the server ends with handshake_failure, after its hello and a last flight of the client, or at once."""
    wire = Wire()
    first, second, flight, alert = hello(1, b"", SNI), hello(2, b""), record(22, bytes(40)), record(21, b"\2\x28")
    for i in range(count):
        start, requested, position = 1_000.0 * i, len(first), len(second) if hello_first else 0
        link = Connection(wire, 40_001 + i, server_port=443).open(start, 1.0)
        link.send(start + 2, 0, 0, 0, PSH | ACK, payload=first)
        if hello_first:
            link.send(start + 3, 1, 0, 0, PSH | ACK, ack=requested, payload=second)
            link.send(start + 4, 0, requested, 0, PSH | ACK, ack=position, payload=flight)
            requested += len(flight)
        link.send(start + 5, 1, position, 0, PSH | ACK, ack=requested, payload=alert)
        link.send(start + 5.1, 1, position + len(alert), flags=FIN | ACK, ack=requested)
        link.send(start + 5.2, 0, requested, flags=FIN | ACK, ack=position + len(alert) + 1)
        link.send(start + 6, 1, position + len(alert) + 1, ack=requested + 1)
    return wire


def nameless(named: int = 1, name_refused: bool = False, count: int = 3) -> Wire:
    """ClientHellos without a name, which the server refuses by internal_error, and others with it, which it answers or not."""
    wire, alert = Wire(), record(21, b"\2\x50")
    for i in range(count + named):
        start, first = 1_000.0 * i, hello(1, b"", *([SNI] if i >= count else []))
        link = Connection(wire, 40_001 + i, server_port=443).open(start, 1.0)
        link.send(start + 2, 0, 0, 0, PSH | ACK, payload=first)
        answer = alert if i < count or name_refused else hello(2, b"") + CHANGE + SECRET
        link.send(start + 3, 1, 0, 0, PSH | ACK, ack=len(first), payload=answer)
        link.send(start + 5, 1, len(answer), flags=FIN | ACK, ack=len(first))
        link.send(start + 5.2, 0, len(first), flags=FIN | ACK, ack=len(answer) + 1)
        link.send(start + 6, 1, len(answer) + 1, ack=len(first) + 1)
    return wire


def limited(counts: tuple[int, ...] = (20, 20, 20), idle_ms: float = 0.0, met: bool = True) -> Wire:
    """Requests of 5 ms, one after the other; the server closes after so many of each connection, while the next one is on the
    way, which it resets; `idle_ms`: after a pause; `met`: False, the client sees the close in time."""
    wire = Wire()
    for i, count in enumerate(counts):
        now = 10_000.0 * i
        link = Connection(wire, 40_001 + i).open(now, 1.0)
        for turn in range(count):
            now += 6
            link.send(now, 0, 200 * turn, 200, PSH | ACK, ack=400 * turn)
            link.send(now + 5, 1, 400 * turn, 400, PSH | ACK, ack=200 * (turn + 1))
        at, sent, got = now + 5.1 + idle_ms, 200 * count, 400 * count
        link.send(at, 1, got, flags=FIN | ACK, ack=sent)
        if met:
            link.send(at + 0.1, 0, sent, 200, PSH | ACK, ack=got).send(at + 0.6, 1, got + 1, flags=RST, window=0)
        else:
            link.send(at + 0.1, 0, sent, flags=FIN | ACK, ack=got + 1).send(at + 0.6, 1, got + 1, ack=sent + 1)
    return wire


def reset_behind(resets: int = 2, total: int = 4, reads: bool = True, after_ms: float = 30.0) -> Wire:
    """Requests that are answered, and a server that resets so many connections afterwards; `reads`: the client acknowledges
    the answer before."""
    wire = Wire(by_time=True)
    for i in range(total):
        start = 2_000.0 * i
        link = Connection(wire, 40_001 + i).open(start, 1.0).send(start + 2, 0, 0, 300, PSH | ACK)
        link.send(start + 3, 1, 0, ack=300)
        for part in range(3):
            link.send(start + 20 + part, 1, 900 * part, 900, PSH | ACK, ack=300)
            if reads:
                link.send(start + 20.5 + part, 0, 300, ack=900 * (part + 1))
        at = start + 22 + after_ms
        if i < resets:
            link.send(at, 1, 2700, flags=RST | ACK, window=0, ack=300)
            continue
        link.send(at, 1, 2700, flags=FIN | ACK, ack=300).send(at + 0.5, 0, 300, flags=FIN | ACK, ack=2701)
        link.send(at + 1, 1, 2701, ack=301)
    return wire


def by_turns(count: int = 7, after_ms: float = 3.0, by_server: bool = True, closes: bool = False) -> Wire:
    """Connections of one client, each reset (or by the client) when the next one has begun; `closes`: after a FIN."""
    wire = Wire()
    for i in range(count):
        start = 3_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=502).open(start, 1.0)
        for turn in range(4):
            at = start + 100 * (turn + 1)
            link.send(at, 0, 12 * turn, 12, PSH | ACK, ack=29 * turn)
            link.send(at + 5, 1, 29 * turn, 29, PSH | ACK, ack=12 * (turn + 1))
        side, ends = (1, (116, 48)) if by_server else (0, (48, 116))
        if closes:
            link.send(start + 2_990, 1, 116, flags=FIN | ACK, ack=48)
        if i < count - 1:
            link.send(start + 3_000 + after_ms, side, ends[0], flags=RST | ACK, window=0, ack=ends[1])
    return wire


def sessions(count: int = 2, silent_ms: float = 60_000.0, stream: bool = True, longer_ms: float = 0.0) -> Wire:
    """Sessions whose server sends datagrams until it closes, a time after the client's last message; `longer_ms`: they go on."""
    wire = Wire()
    for i in range(count):
        start = (silent_ms + 20_000.0) * i
        link = Connection(wire, 40_001 + i, server_port=8554).open(start, 1.0).send(start + 2, 0, 0, 300, PSH | ACK)
        link.send(start + 3, 1, 0, 200, PSH | ACK, ack=300).send(start + 3.5, 0, 300, ack=200)
        at = start + 2 + silent_ms
        for n in range(240 if stream else 0):
            moment = start + 4 + n * (silent_ms + longer_ms - 10) / 239
            wire.udp(moment, bytes(700), 8000 + i, source="10.0.0.2", target="10.0.0.1")
        link.send(at, 1, 200, flags=FIN | ACK, ack=300).send(at + 0.5, 0, 300, flags=FIN | ACK, ack=201)
        link.send(at + 1, 1, 201, ack=301)
    return wire


def dropped_at_once(count: int = 9, served: int = 2, later: float = 2.0, side: int = 1, serves_ms: float = 0.0) -> Wire:
    """Connections that an end resets some ms after the handshake, without a byte, while another client is served, from a time
    on."""
    wire = Wire()
    for i in range(count):
        link = Connection(wire, 40_001 + i, server_port=502).open(5_000.0 * i + 100, 1.0)
        link.send(5_000.0 * i + 101 + later, side, 0, flags=RST | ACK, window=0)
    for i in range(served):
        link = Connection(wire, 41_001 + i, ("10.0.0.3", "10.0.0.2"), server_port=502).open(serves_ms, 1.0)
        for turn in range(40):
            now = serves_ms + 1_000.0 * turn + 10 * i + 5
            link.send(now, 0, 12 * turn, 12, PSH | ACK, ack=29 * turn)
            link.send(now + 6, 1, 29 * turn, 29, PSH | ACK, ack=12 * turn + 12)
    return wire


def cut_short(count: int = 2, rounds: int = 12, client_ends: bool = False, resets: bool = True) -> Wire:
    """Uploads of 15 kB in each round trip of 20 ms, which the server ends by a message and a FIN while more is under way, before
    it resets that; `client_ends`: the client has closed its half."""
    wire = Wire()
    for number in range(count):
        start, size = 5_000.0 * number, 10 * MSS
        link = Connection(wire, 40_001 + number).open(start, 20.0)
        for turn in range(rounds + 1):
            for i in range(10):
                last = client_ends and turn == rounds and i == 9
                place = turn * size + i * MSS
                link.send(start + 21 + 20 * turn + 0.1 * i, 0, place, MSS, ACK | (FIN if last else 0))
                if turn < rounds and i % 2:
                    link.send(start + 41 + 20 * turn + 0.1 * i, 1, 0, ack=place + MSS)
        now = start + 43 + 20 * rounds - 20
        link.send(now, 1, 0, 44, PSH | ACK, ack=rounds * size).send(
            now + 0.1, 1, 44, flags=FIN | ACK, ack=rounds * size
        )
        for i in range(5 if resets else 0):
            link.send(now + 18 + 0.1 * i, 1, 45, flags=RST, window=0)
    return wire


def leaking(count: int = 6, wait_ms: float = 60_000.0, closed: int = 2, pushes: bool = False) -> Wire:
    """Clients that close, and a server that keeps its half open."""
    wire = Wire()
    for i in range(count + closed):
        start = 1_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=9090).open(start, 1.0).send(start + 2, 0, 0, 300, PSH | ACK)
        link.send(start + 20, 1, 0, 900, PSH | ACK, ack=300).send(start + 20.1, 0, 300, ack=900)
        link.send(start + 500, 0, 300, flags=FIN | ACK, ack=900).send(start + 501, 1, 900, ack=301)
        if pushes:
            link.send(start + 5_000, 1, 900, 900, PSH | ACK, ack=301).send(start + 5_001, 0, 301, ack=1800)
        if i >= count:
            link.send(start + 502, 1, 900, flags=FIN | ACK, ack=301).send(start + 503, 0, 301, ack=901)
    return drawn.alive(wire, 1_000.0 * (count + closed) + wait_ms)


def closed_at(answer: bool = False, port: int = 80) -> list[Web]:
    """First HTTP requests on which the server closes 0.9 s later, with an answer or without."""
    talks = []
    for i in range(3):
        talk = Web(port)
        talk.send(0.02, b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n")
        if answer:
            talk.send(0.5, b"HTTP/1.1 204 No Content\r\n\r\n", back=True)
        size = 27 if answer else 0
        fin = talk.segment(True, size, b"", "FA")
        fin[TCP].ack = 0xFFFFFF01 + 41
        talk.timed.append((0.92, fin))
        for _, packet in talk.timed:
            side = packet[TCP].dport == port
            setattr(packet[TCP], "sport" if side else "dport", 40_000 + i)
        talk.timed = [(at + i, packet) for at, packet in talk.timed]
        talks.append(talk)
    return talks


def ungreeted(port: int = 22, greeted: int = 2, first: int = 1, same: bool = False, last: bool = True) -> Wire:
    """Connections that an end (`first`: 1 is the server) closes 5 s after the handshake, without a byte of either one; another
    client, or the same, is greeted. `last`: the capture has the last ACK."""
    wire = Wire()
    for i in range(3):
        start = 20_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=port).open(start, 1.0)
        link.send(start + 5_001, first, 0, flags=FIN | ACK).send(start + 5_002, 1 - first, 0, flags=FIN | ACK, ack=1)
        if last:
            link.send(start + 5_003, first, 1, ack=1)
    for i in range(greeted):
        start = 20_000.0 * i + 8_000
        client = "10.0.0.1" if same else "10.0.0.3"
        link = Connection(wire, 41_001 + i, (client, "10.0.0.2"), server_port=port).open(start, 1.0)
        link.send(start + 20, 1, 0, 40, PSH | ACK).send(start + 21, 0, 0, ack=40)
        link.send(start + 900, 0, 0, flags=FIN | ACK, ack=40).send(start + 901, 1, 40, flags=FIN | ACK, ack=1)
        link.send(start + 902, 0, 1, ack=41)
    return wire


def dropped_logins(
    message: int = 0, served: int = 2, port: int = 22, words: int = 21, ttl: int = 0, later: float = 0.0
) -> Timed:
    """Connections that a server resets at the first words of the client, perhaps with a message; others that it serves."""
    timed: Timed = []
    for number in range(3 + served):
        ends, at = Ends(40_001 + number, port), 0.5 * number
        timed += [ends.syn(at), *ends.accepts(at + RTT)]
        if number >= 3:
            timed += ends.talks(at + RTT + 0.001, 900)
            continue
        timed.append(ends.segment(at + RTT + 0.0002, False, "PA", data=bytes(words), seq=1001, ack=5001))
        if message:
            timed.append(
                ends.segment(at + 2 * RTT + 0.0003, True, "PA", data=bytes(message), seq=5001, ack=1001 + words)
            )
        timed.append(ends.segment(at + 2 * RTT + 0.0004 + later, True, "RA", ttl, seq=5001 + message, ack=1001 + words))
    return timed


def crossed() -> Wire:
    """Connections to an SSH server that it closes 1 ms after the handshake; the first words of the client come right after the
    FIN, and are reset; two others are greeted."""
    wire = Wire()
    for i in range(3):
        link = Connection(wire, 40_001 + i, server_port=22).open(100.0 * i, 1.0)
        link.send(100.0 * i + 2, 1, 0, flags=FIN | ACK).send(100.0 * i + 2.3, 0, 0, 21, PSH | ACK, ack=1)
        link.send(100.0 * i + 3.2, 1, 1, flags=RST)
    for i in range(2):
        link, start = Connection(wire, 41_001 + i, server_port=22).open(100.0 * i + 50, 1.0), 100.0 * i + 50
        link.send(start + 2, 0, 0, 21, PSH | ACK).send(start + 5, 1, 0, 21, PSH | ACK, ack=21)
    return wire


def refuses_version(later_ms: float = 20.0) -> list[Talk]:
    """Connections that the server resets at the first message, each before the client tries port 139, which refuses."""
    talks = aborted(reply=20.5)
    for i in range(3):
        talk = Talk(ends=(("10.0.0.1", 42_001 + i), ("10.0.0.2", 139)), isn=(7000, 0), timestamps=False)
        at = 1_000.0 * i + 45.5 + later_ms
        talk.send(at, 0, -1, ack=None, flags="S").send(at + 20, 1, -1, flags="RA", ack=0, window=0)
        talks.append(talk)
    return talks


def full_server(message: int = 33, first: int = 1, served: int = 2, port: int = 3306) -> Wire:
    """Connections to which a server sends a message and closes, before the client sent a byte; others that it serves. `first`: 0
    lets the client close, as one that only looks does."""
    wire = Wire()
    for i in range(3):
        start = 5_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=port).open(start, 1.0).send(start + 2, 1, 0, message, PSH | ACK)
        ends = ((0, message), (message, 0))[first]
        link.send(start + 2.1, first, ends[0], flags=FIN | ACK, ack=ends[1])
        link.send(start + 3, 1 - first, ends[1], flags=FIN | ACK, ack=ends[0] + 1)
        link.send(start + 4, first, ends[0] + 1, ack=ends[1] + 1)
    for i in range(served):
        start = 5_000.0 * i + 2_000
        link = Connection(wire, 41_001 + i, server_port=port).open(start, 1.0).send(start + 2, 1, 0, 80, PSH | ACK)
        link.send(start + 3, 0, 0, 90, PSH | ACK, ack=80).send(start + 4, 1, 80, 11, PSH | ACK, ack=90)
        link.send(start + 5, 0, 90, flags=FIN | ACK, ack=91).send(start + 6, 1, 91, flags=FIN | ACK, ack=91)
        link.send(start + 7, 0, 91, ack=92)
    return wire


def timed_out(
    silent_ms: float = 60_000.0,
    again_ms: float = 400.0,
    count: int = 4,
    answer: bool = False,
    first: int = 1,
    pushes: bool = False,
    port: int = 8080,
    later_ms: float = 0.0,
) -> Wire:
    """Connections that an end (`first`: 1 is the server) closes a time after the client's only message, with an answer or
    without, each opened again a time later; `pushes`: the answer is in two parts, the time is that since the second;
    `later_ms`: by how much later each is closed than the one before."""
    wire, start = Wire(), 0.0
    for i in range(count):
        link = Connection(wire, 40_001 + i, server_port=port).open(start, 1.0).send(start + 2, 0, 0, 300, PSH | ACK)
        later = 2_500.0 * i + 50 if pushes else 8.0
        at = start + 2 + silent_ms + later_ms * i + (later if pushes else 0.0)
        begin = 100 if pushes else 0
        if pushes:
            link.send(start + 3, 1, 0, begin, PSH | ACK, ack=300)
        spoken = at - 1 if answer else start + 2 + later
        link.send(spoken, 1, begin, 200 - begin, PSH | ACK, ack=300).send(spoken + 0.1, 0, 300, ack=200)
        ends = ((300, 200), (200, 300))[first]
        link.send(at, first, ends[0], flags=FIN | ACK, ack=ends[1])
        link.send(at + 1, 1 - first, ends[1], flags=FIN | ACK, ack=ends[0] + 1)
        link.send(at + 2, first, ends[0] + 1, ack=ends[1] + 1)
        start = at + again_ms
    return wire


def cut_answers(
    after_ms: float = 15_000.0, count: int = 3, step: int = 40, closes: bool = True, rest_ms: float = 0.0
) -> Wire:
    """Answers of 20 segments a second that end a time after the request, by a FIN of the server or of the client; `step`: by
    how many segments each is larger; `rest_ms`: how much later each ends than the one before."""
    wire = Wire()
    for i in range(count):
        start, size = 20_000.0 * i, MSS
        link = Connection(wire, 40_001 + i, server_port=80).open(start, 1.0).send(start + 2, 0, 0, 300, PSH | ACK)
        segments, end = 300 + step * i, after_ms + rest_ms * i
        for number in range(segments):
            at = start + 50 + number * (end - 100) / segments
            link.send(at, 1, number * size, size, ack=300).send(at + 0.1, 0, 300, ack=(number + 1) * size)
        ends = ((segments * size, 300), (300, segments * size))
        first = (1, 0) if closes else (0, 1)
        last = start + 2 + end
        link.send(last, first[0], ends[not closes][0], flags=FIN | ACK, ack=ends[not closes][1])
        link.send(last + 0.5, first[1], ends[not closes][1], flags=FIN | ACK, ack=ends[not closes][0] + 1)
        link.send(last + 1, first[0], ends[not closes][0] + 1, ack=ends[not closes][1] + 1)
    return wire


def closing_late(quiet_ms: float = 5_000.0, next_ms: float = 60.0, count: int = 4, timer_ms: float = 0.0) -> Wire:
    """Connections with one request each, answered at once; the server closes later, and the client opens the next one then, or
    in a beat of its own (`timer_ms`), however long the answer took."""
    wire, start = Wire(), 0.0
    for i in range(count):
        link = Connection(wire, 40_001 + i, server_port=80).open(start, 1.0).send(start + 2, 0, 0, 300, PSH | ACK)
        link.send(start + 50, 1, 0, 900, PSH | ACK, ack=300).send(start + 50.1, 0, 300, ack=900)
        at = start + 50 + quiet_ms + (17.0 * (i * i % 5) if timer_ms else 0.0)
        link.send(at, 1, 900, flags=FIN | ACK, ack=300).send(at + 0.1, 0, 300, flags=FIN | ACK, ack=901)
        link.send(at + 1, 1, 901, ack=301)
        start = start + timer_ms if timer_ms else at + next_ms
    return wire


def shut_and_silent(reset: bool = False) -> Wire:
    """A server that closes at once, and answers the request that comes then by nothing, or by a RST."""
    link = Connection(Wire(), server_port=8089).open(0, 3.0).send(3.1, 1, 0, 85, PSH | ACK)
    link.send(3.2, 1, 85, flags=FIN | ACK).send(3.7, 0, 0, ack=86)
    for wait in (0, 300, 900, 2_100, 4_500, 9_300):
        link.send(450 + wait, 0, 0, 383, PSH | ACK, ack=86)
        if reset:
            return link.send(453, 1, 86, flags=RST, window=0).wire
    return drawn.alive(link.wire, 30_000.0)


def refused_by_a_device(accepts: bool = True) -> Wire:
    """A RST answers the SYN, and a second later the server does; or it answers another SYN."""
    link = Connection(Wire(), server_port=6649).send(0, 0, -1, flags=SYN, options=syn_options())
    link.send(230, 1, -1, flags=RST | ACK, ack=0)
    if not accepts:
        link.send(1_200, 0, 99, flags=SYN, options=syn_options())
        return link.send(1_230, 1, -1, flags=RST | ACK, ack=100).wire
    link.send(1_260, 1, -1, flags=SYN | ACK, ack=0, options=syn_options()).send(1_261, 0, 0)
    link.send(1_262, 0, 0, 300, PSH | ACK).send(1_300, 1, 0, 500, PSH | ACK, ack=300).send(1_301, 0, 300, ack=500)
    return link.wire


def answers_too_late(refuses: int = 0, goes_on: bool = False) -> list[tuple[float, Packet]]:
    """A client asks from two ports over UDP; answers that come after it closed them are refused. `refuses`: 1, the server does;
    `goes_on`: the client sends from the port that it reports."""
    ends, timed = ("10.0.0.1", "10.0.0.9"), []
    for number, port in enumerate((52_000, 52_001)):
        at = 1_000.0 * number
        there = [IP(src=ends[side], dst=ends[1 - side]) for side in (0, 1)]
        ask = there[0] / UDP(sport=port, dport=9_000) / (b"ask" * 20)
        answer = there[1] / UDP(sport=9_000, dport=port) / (b"answer" * 20)
        late = (answer, ask)[refuses]
        error = there[refuses] / ICMP(type=3, code=3) / Raw(bytes(late)[:28])
        timed += [(at, ask), (at + 20, answer), (at + 300, late), (at + 300.1, error)]
        timed += [(at + 500, ask)] if goes_on else []
    return [(ms, Ether(dst=NEIGHBOR) / packet) for ms, packet in timed]


def impatient_polls(late: float = 1.6, again: float = 1.0, count: int = 3, stays: bool = False) -> Timed:
    """A client asks an agent three times from each of its ports, and closes it after 3 s; the answers come later; `stays`: it
    does not close it."""
    timed: Timed = []
    for number in range(count):
        at, port = 1.0 + 8 * number, 50_001 + number
        ways = ({"sport": port, "dport": 161}, {"sport": 161, "dport": port})
        hosts = ({"src": "10.0.0.1", "dst": "10.0.0.9"}, {"src": "10.0.0.9", "dst": "10.0.0.1"})
        for turn in range(3):
            timed.append((at + again * turn, ether(IP(**hosts[0]) / UDP(**ways[0]) / Raw(bytes(40)))))
            answer = IP(**hosts[1]) / UDP(**ways[1]) / Raw(bytes(60))
            timed.append((at + again * turn + late, ether(answer)))
            if again * turn + late > 3 and not stays:
                error = IP(**hosts[0]) / ICMP(type=3, code=3) / bytes(answer)[:28]
                timed.append((at + again * turn + late + 0.001, ether(error)))
    return sorted(timed, key=lambda each: each[0])


def taken_over(clients: int = 2, times: int = 8, after: float = 0.006, open_for: float = 3.0) -> Timed:
    """Clients connect in turn; the server closes each connection as long after the next one began."""
    timed: Timed = []
    for number in range(times):
        ends, at = Ends(41000 + number, 1883, f"10.0.0.{1 + number % clients}", "10.0.0.9"), 1.0 + open_for * number
        timed += [ends.syn(at), *ends.accepts(at + 0.002)]
        timed.append(ends.segment(at + 0.003, False, "PA", data=b"\x10" + bytes(20), seq=1001, ack=5001))
        timed.append(ends.segment(at + 0.005, True, "PA", data=b"\x20\x02\0\0", seq=5001, ack=1022))
        end = at + open_for + after
        timed += [
            ends.segment(end, True, "FA", seq=5005, ack=1022),
            ends.segment(end + 0.01, False, "FA", seq=1022, ack=5006),
        ]
        timed.append(ends.segment(end + 0.011, True, "A", seq=5006, ack=1023))
    return sorted(timed, key=lambda each: each[0])


def end_of_a_test(controlled: bool = True, closes: bool = True) -> Wire:
    """A stream of 3 s to a server, which resets it; another connection to the same port began before it, waits meanwhile, talks
    after it and closes."""
    wire = Wire(by_time=True)
    if controlled:
        link = Connection(wire, 40_000, server_port=5201).open()
        link.send(21, 0, 0, 37, PSH | ACK).send(42, 1, 0, 1, PSH | ACK, 37).send(42.1, 0, 37, ack=1)
        if closes:
            link.send(3_090, 0, 37, 1, PSH | ACK, 1).send(3_115, 1, 1, 1, PSH | ACK, 38).send(3_115.1, 0, 38, ack=2)
            link.send(3_120, 0, 38, flags=FIN | ACK, ack=2).send(3_141, 1, 2, flags=FIN | ACK, ack=39).send(
                3_141.1, 0, 39, ack=3
            )
    stream = Connection(wire, 40_001, server_port=5201).open(60.0)
    for number in range(300):
        stream.data(90 + 10.0 * number, number * MSS).ack(110.1 + 10.0 * number, (number + 1) * MSS)
    stream.data(3_090, 300 * MSS)
    return stream.send(3_111, 1, 0, flags=RST | ACK, ack=300 * MSS).wire


EXAMPLES: dict[str, Make] = {
    "session-takeover": of_timed(taken_over),
    "late-datagrams": of_timed(answers_too_late),
    "late-udp-answers": of_timed(impatient_polls),
    "silent-after-close": of_wire(shut_and_silent),
    "not-tls": of_wire(plain_answer),
    "tls-refused": of_timed(lambda: tls_handshake(0, ALERT)),
    "close-race": of_wire(lambda: closing(-5)),
    "idle-timeout": of_talks(lambda: cut(ttl=61, spared_ms=300_000)),
    "server-restarted": of_talks(restarted),
    "client-gave-up": of_wire(impatient),
    "close-wait": of_wire(leaking),
    "reset-by-device": of_talks(lambda: aborted(ttl=61, reply=0.4, socket=False, hops=12)),
    "reset-by-peer": of_talks(aborted),
    "closed-by-timer": of_wire(timed_out),
    "late-close": of_wire(closing_late),
    "answer-time-limit": of_wire(cut_answers),
    "not-greeted": of_wire(ungreeted),
    "reset-at-once": of_wire(dropped_at_once),
    "upload-cut": of_wire(cut_short),
    "request-limit": of_wire(limited),
    "age-limit": of_wire(aged),
    "session-timeout": of_wire(sessions),
    "reset-behind-answer": of_wire(reset_behind),
    "one-at-a-time": of_wire(by_turns),
    "turned-away": of_wire(full_server),
    "closed-unanswered": of_timed(lambda: [entry for talk in closed_at() for entry in talk.timed]),
}
