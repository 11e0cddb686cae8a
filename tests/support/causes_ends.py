# SPDX-License-Identifier: Apache-2.0
"""Captures of transfers and dialogues that an end slows down: an example for each cause, and its nearest rivals."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

import transfer_wires as wires
from application_wire import answer, question
from finding_captures import of_wire
from plain_wire import ACK, FIN, MSS, PSH, SYN, Connection, Wire

PUSH = PSH | ACK
#: options of SYNs: MSS, SACK permitted, timestamps, and window scaling or what a device or stack leaves in its place
MODERN = bytes([2, 4, 5, 180, 4, 2, 8, 10]) + bytes(8)
SCALED, ERASED, WITHOUT = (MODERN + bytes(rest) for rest in ([1, 3, 3, 7], [1, 1, 1, 1], []))
OLD = bytes([2, 4, 5, 180])
EXPECTS = b"PUT /a HTTP/1.1\r\nHost: app.example\r\nExpect: 100-continue\r\nContent-Length: 3000\r\n\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: app.example\r\n\r\n"
PLAIN = EXPECTS.replace(b"Expect: 100-continue\r\n", b"")


class Dialogue:
    """A client's requests on one connection, seen at the client; times in ms."""

    def __init__(
        self,
        wire: Wire,
        rtt: float = 30.0,
        ms: float = 0.0,
        port: int = 40000,
        server_port: int = 80,
        ends: tuple[str, str] = ("10.0.0.1", "10.0.0.2"),
    ) -> None:
        self.rtt, self.now, self.sent, self.received = rtt, ms + rtt, 0, 0
        self.link = Connection(wire, port, ends, server_port=server_port).open(ms, rtt=rtt)

    def ask(
        self,
        pause: float = 0.2,
        think: float = 0.5,
        request: int = 120,
        response: int = 250,
        acked: float | None = None,
    ) -> Dialogue:
        """A request after a pause, and its answer a round trip and the server's own time later."""
        ms = self.now + pause
        self.link.send(ms, 0, self.sent, request, PUSH, self.received)
        self.sent += request
        if think > 5 or acked is not None:
            self.link.send(ms + (acked or self.rtt), 1, self.received, ack=self.sent)
        self.now = ms + self.rtt + think
        self.link.send(self.now, 1, self.received, response, PUSH, self.sent)
        self.received += response
        self.link.send(self.now + 0.05, 0, self.sent, ack=self.received)
        return self

    def ask_much(self, windows: tuple[int, ...] = (10, 20, 18)) -> Dialogue:
        """A request, and an answer of some segments in each round trip (slow start)."""
        self.ask(response=1460)
        for number, segments in enumerate(windows):
            begun = self.now + 0.1 if number == 0 else self.now + self.rtt
            for place in range(segments - (number == 0)):
                self.now = begun + 0.12 * place
                self.link.send(self.now, 1, self.received, 1460, ACK, self.sent)
                self.received += 1460
                self.link.send(self.now + 0.05, 0, self.sent, ack=self.received)
            self.now = begun
        self.now += 0.12 * windows[-1]
        return self

    def close(self) -> Wire:
        self.link.send(self.now + 1, 0, self.sent, 0, FIN | ACK, self.received)
        self.link.send(self.now + 1 + self.rtt, 1, self.received, 0, FIN | ACK, self.sent + 1)
        self.link.send(self.now + 1.1 + self.rtt, 0, self.sent + 1, ack=self.received + 1)
        return self.link.wire


def requests(count: int, rtt: float = 30.0, think: float = 0.5) -> Wire:
    """Requests one after another."""
    talk = Dialogue(Wire(), rtt)
    for _ in range(count):
        talk.ask(think=think)
    return talk.close()


def requests_lost(lost: Iterable[int], count: int = 70) -> Wire:
    """Requests one after another, of which some are lost and sent again by a timer."""
    talk = Dialogue(Wire(), 30.0)
    for number in range(count):
        if number in lost:
            talk.link.send(talk.now + 0.2, 0, talk.sent, 120, PUSH, talk.received)
        talk.ask(230.0 if number in lost else 0.2)
    return talk.close()


def requests_to_nfs(count: int) -> Wire:
    """Requests one after another, captured from an answer on: both ports are below those of other clients."""
    talk = Dialogue(Wire(), 30.0, port=873, server_port=2049)
    for _ in range(count):
        talk.ask()
    wire = talk.close()
    wire.packets = sorted(wire.packets, key=lambda packet: packet[0])[4:]
    return wire


def reconnecting(count: int = 30, rtt: float = 30.0, think: float = 0.5, every: float = 1.0) -> Wire:
    """A connection for each request, one after another."""
    wire, now = Wire(), 0.0
    for number in range(count):
        talk = Dialogue(wire, rtt, now, 41000 + number).ask(think=think)
        talk.close()
        now = talk.now + every
    return wire


def reconnecting_for_much(count: int = 14, rtt: float = 150.0) -> Wire:
    """A connection for each object, one after another, on a long path: each answer needs slow start's round trips."""
    wire, now = Wire(), 0.0
    for number in range(count):
        talk = Dialogue(wire, rtt, now, 41000 + number).ask_much()
        talk.close()
        now = talk.now + 1.0
    return wire


def requests_for_much(count: int = 12, rtt: float = 150.0) -> Wire:
    """Long answers one after another on a connection whose window starts anew each time, because the program pauses."""
    talk = Dialogue(Wire(), rtt)
    for _ in range(count):
        talk.ask_much((10, 20))
    return talk.close()


def in_networks(first: str, ttl: int = 64, servers: int = 4, rtt: float = 0.2) -> Wire:
    """Two requests to each of some servers in networks of their own, whose SYN-ACKs come at once and whose answers take 700 ms;
    `ttl` is that of the servers."""
    wire, now = Wire(), 0.0
    for number in range(servers):
        begun, address = len(wire.packets), f"{first}.{20 + number}.7.9"
        talk = Dialogue(wire, rtt, now, 42_000 + number).ask(think=600.0, acked=rtt).ask(think=700.0, acked=rtt)
        talk.close()
        now = talk.now + 300.0
        for place in range(begun, len(wire.packets)):
            ms, frame = wire.packets[place]
            is_client = frame[26:30] == bytes([10, 0, 0, 1])
            ends = [frame[26:30], frame[30:34]]
            ends[1 if is_client else 0] = bytes(map(int, address.split(".")))
            hops = frame[22:23] if is_client else bytes([ttl])
            wire.packets[place] = ms, frame[:22] + hops + frame[23:26] + b"".join(ends) + frame[34:]
    return wire


def pausing(pauses: Iterable[float], server_port: int = 5432) -> Wire:
    """A client that computes between its requests."""
    talk = Dialogue(Wire(), 1.0, server_port=server_port)
    for pause in pauses:
        talk.ask(pause)
    return talk.close()


VARIED = [100.0 + 37 * i % 151 for i in range(40)]


def colleagues(count: int) -> Wire:
    """Clients of one service that each pause between their requests."""
    wire = Wire()
    for number in range(count):
        talk = Dialogue(wire, 1.0, 40.0 * number, 41_000 + number, 1433)
        talk.link.ends = (f"10.0.0.{20 + number}", "10.0.0.2")
        wire.packets = wire.packets[:-3]
        talk.link.open(40.0 * number, rtt=1.0)
        for pause in VARIED * 2:
            talk.ask(pause + 7 * number)
        talk.close()
    return wire


def upload(wire: Wire, ms: float, port: int, wait: float, head: bytes = EXPECTS, leave: bool = False) -> None:
    """A request whose content follows after a wait, or after the leave of the server."""
    link = Connection(wire, port).open(ms, rtt=2.0)
    link.send(ms + 3, 0, 0, flags=PUSH, payload=head).ack(ms + 5, len(head))
    replied = 0
    if leave:
        line = b"HTTP/1.1 100 Continue\r\n\r\n"
        link.send(ms + 3 + wait - 0.1, 1, 0, flags=PUSH, ack=len(head), payload=line)
        replied = link.received[0] = len(line)
    for i in range(3):
        link.send(ms + 3 + wait + i * 0.01, 0, len(head) + i * 1000, 1000, PUSH if i == 2 else ACK)
    link.ack(ms + 5.1 + wait, len(head) + 3000)
    final = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
    link.send(ms + 12 + wait, 1, replied, flags=PUSH, ack=len(head) + 3000, payload=final)
    link.send(ms + 12.1 + wait, 0, len(head) + 3000, ack=replied + len(final))


def uploads(waits: Iterable[float], head: bytes = EXPECTS, leave: bool = False) -> Wire:
    wire = Wire()
    for number, wait in enumerate(waits):
        upload(wire, 3000.0 * number, 42000 + number, wait, head, leave)
    return wire


def small_writes(wait: float = 40.0, count: int = 40) -> Wire:
    """Requests in two pieces, of which the second leaves when the first is acknowledged after a wait, and their answers."""
    link, sent, received, now = Connection(Wire(), server_port=5001).open(rtt=1.0), 0, 0, 5.0
    for _ in range(count):
        link.send(now, 0, sent, 60, PUSH, received)
        link.send(now + wait, 1, received, ack=sent + 60)
        link.send(now + wait + 0.03, 0, sent + 60, 90, PUSH, received)
        sent += 150
        link.send(now + wait + 1.2, 1, received, 200, PUSH, sent)
        received += 200
        link.send(now + wait + 1.25, 0, sent, ack=received)
        now += wait + 2.0
    return link.wire


def header_then_body(wait: float = 200.0, body: float | None = None, size: int = 880, count: int = 4) -> Wire:
    """Connections with one answer each, whose body leaves when the header is acknowledged after a wait, or at another time."""
    wire, start = Wire(by_time=True), 0.0
    for i in range(count):
        link, at = Connection(wire, 52_000 + i).open(start, 3.0), start + 10.0
        link.send(at - 6, 0, 0, 84, PUSH).send(at - 3, 1, 0, ack=84).send(at, 1, 0, 135, PUSH, ack=84)
        link.send(at + wait, 0, 84, ack=135)
        at += wait + 3.6 if body is None else body
        link.send(at, 1, 135, size, PUSH, ack=84).send(at + 0.1, 0, 84, ack=135 + size)
        link.send(at + 1, 1, 135 + size, flags=FIN | ACK, ack=84).send(at + 1.1, 0, 84, flags=FIN | ACK, ack=136 + size)
        link.send(at + 4.1, 1, 136 + size, ack=85)
        start = at + 20.0
    return wire


def odd_flights(wait: float = 200.0, count: int = 25, each: int = 3, size: int = MSS) -> Wire:
    """Flights of an odd number of segments, the last of which is acknowledged after a wait, and releases the next."""
    link, now = Connection(Wire(), server_port=3260).open(rtt=0.4), 5.0
    for flight in range(count):
        at = each * flight * size
        for i in range(each):
            link.send(now + 0.01 * i, 0, at + i * size, size, ACK)
        if each > 1:
            link.ack(now + 0.3, at + (each - 1) * size)
        link.ack(now + wait, at + each * size)
        now += wait + 0.03
    return link.wire


def slow_reader(opens: bool, probes: bool = True) -> Wire:
    """A receiver whose window falls below a segment for 1.4 s, four times; the last time it may stay so."""
    link, at, now = Connection(Wire(), server_port=9100).open(rtt=0.4), 0, 5.0
    for turn in range(4):
        for i in range(4):
            link.send(now + 0.01 * i, 0, at + i * MSS, MSS, ACK)
        at += 4 * MSS
        link.ack(now + 0.3, at - 2 * MSS, window=20).ack(now + 0.4, at, window=3)  # of 128 bytes
        if turn < 3 or opens:
            link.ack(now + 1400, at, window=45)
        now += 1400.03
    if opens:
        link.send(now, 0, at, MSS, ACK).ack(now + 0.4, at + MSS)
    elif probes:
        for pause in (5000, 10_000, 15_000):
            link.send(now + pause, 0, at, 384, PUSH)
    return link.wire


def shrinking(floor: int = 40) -> Wire:
    """A reader that takes a segment or two in a while, so that the window falls from 64 kB to 5 kB and stays there."""
    link, at, now, window = Connection(Wire(), server_port=9100).open(rtt=10.0), 0, 20.0, 512
    for _ in range(120):
        each = max((window << 7) // MSS, 1)
        for i in range(each):
            link.send(now + i * 0.02, 0, at + i * MSS, MSS, ACK)
        at += each * MSS
        window = max(window - 9, floor)
        link.ack(now + 10.0, at, window)
        now += 10.1 + each * 0.02
    return link.wire


def full_windows(
    options: tuple[bytes, bytes], window: int = 65_535, rtt: float = 40.0, flights: int = 60, held: float = 0.0
) -> Wire:
    """An upload whose flights fill the receive window, which is scaled if both SYNs have the option; ACKs come `held` ms late."""
    shift = 7 if all(bytes([1, 3, 3, 7]) in each for each in options) else 0
    link = Connection(Wire(), server_port=5001)
    link.send(0, 0, -1, flags=SYN, options=options[0])
    link.send(rtt, 1, -1, flags=SYN | ACK, ack=0, options=options[1], window=65_535).send(rtt, 0, 0)
    at, now, offered = 0, rtt + 5, window >> shift
    each = (offered << shift) // MSS
    for _ in range(flights):
        for i in range(each):
            link.send(now + i * 0.02, 0, at + i * MSS, MSS, ACK)
        at += each * MSS
        for i in range(each):
            link.ack(now + rtt + held + i * 0.02, at - (each - 1 - i) * MSS, offered)
        now += rtt + held + each * 0.02
    return link.wire


PAUSE, OK = 0, b"HTTP/1.1 200 OK\r\nContent-Length: 150\r\n\r\n" + bytes(150)


def web_answers(
    statuses: Iterable[int], think: Callable[[int], float] = lambda _: 3.0, target: str | None = None, port: int = 80
) -> Wire:
    """Requests on one connection of HTTP, and the status of each answer; a server takes `think(status)` ms, and the client
    pauses for 5 s. After each answer the client gets a file from the target."""
    wire, rtt = Wire(by_time=True), 20.0
    link, now, sent, received = Connection(wire, server_port=port).open(rtt=rtt), 21.0, 0, 0
    mirror = Connection(wire, 41_000, ("10.0.0.1", target)).open(rtt=rtt) if target else None
    for number, status in enumerate(statuses):
        if status == PAUSE:
            now += 5_000
            continue
        reply = b"HTTP/1.1 %d Status\r\nContent-Length: 150\r\n\r\n" % status + bytes(150)
        link.send(now, 0, sent, flags=PUSH, ack=received, payload=GET)
        sent += len(GET)
        if think(status) > 200:
            link.send(now + rtt, 1, received, ack=sent)
        link.send(now + rtt + think(status), 1, received, flags=PUSH, ack=sent, payload=reply)
        received += len(reply)
        now += rtt + think(status) + 300
        link.send(now - 299.9, 0, sent, ack=received)
        if mirror:
            sent_to, come = number * len(GET), number * len(OK)
            mirror.send(now - 250, 0, sent_to, flags=PUSH, ack=come, payload=GET)
            mirror.send(now - 226, 1, come, flags=PUSH, ack=sent_to + len(GET), payload=OK)
            mirror.send(now - 225, 0, sent_to + len(GET), ack=come + len(OK))
    return wire


def late_reader(near: float, count: int = 1200) -> Wire:
    """A receiver that acknowledges a segment every 1.2 ms, when its program has read it, with 8 segments under way, which is its
    window; captured at the sender, or `near` ms of the round trip away from it."""
    link, window = Connection(Wire(by_time=True)).open(rtt=0.34, near=near), (8 * MSS >> 7) + 1
    for i in range(8):
        link.data(1.0 + 0.02 * i, i * MSS)
    for i in range(count):
        at = 2.2 + 1.2 * i
        link.ack(at, (i + 1) * MSS, window).data(at + near + 0.02, (i + 8) * MSS)
    return link.wire


def two_tiers(nested: bool) -> Wire:
    """A server whose answers take 900 ms, and its own queries to a database, within them or at other times."""
    wire = Wire()
    front = Dialogue(wire, 1.0, server_port=8080)
    back = Connection(wire, 52000, ("10.0.0.2", "10.0.0.3"), server_port=5432).open(rtt=0.5)
    sent = received = 0
    for i in range(10):
        began = front.now + 300.0 + 7 * i
        front.ask(300.0 + 7 * i, 900.0 + 11 * i)
        inner, took = (began + 20, 850.0) if nested else (began + 950 + 11 * i, 250.0)
        back.send(inner, 0, sent, 80, PUSH, received)
        sent += 80
        back.ack(inner + 0.5, sent)
        back.send(inner + took, 1, received, 500, PUSH, sent)
        received += 500
        back.send(inner + took + 0.1, 0, sent, ack=received)
    return front.close()


def proxied(
    inside: str = "10.0.9.2", passes: bool = True, backs: int = 3, proxy_ms: float = 2.0, back_ms: float = 850.0
) -> Wire:
    """A proxy that asks servers in turn from an address inside, once for each request, which it passes on as it is or changes;
    or the same requests of somebody else, at times of their own."""
    front = Dialogue(Wire(), 1.0, server_port=8080)
    links = [
        Dialogue(front.link.wire, 0.3, 1.0, 52_000 + number, 9000, (inside, f"10.0.9.{20 + number}"))
        for number in range(backs)
    ]
    for i in range(12):
        pause, works = 300.0 + 37 * i % 151, back_ms + 11 * (i % 9)
        begun = front.now + pause + 0.5
        front.ask(pause, 2 * proxy_ms + works)
        at = begun + proxy_ms if passes else 900.0 + i * 1310.0
        link = links[i % backs]
        link.ask(at - link.now, works - 0.3, request=120 if passes else 333)
    return front.close()


def chain() -> Wire:
    """A server that asks a second one, which asks a third."""
    front = Dialogue(Wire(), 1.0, server_port=8080)
    links = [
        Dialogue(
            front.link.wire, 0.3, 1.0, 52_000 + number, 9000 + number, (f"10.0.0.{2 + number}", f"10.0.0.{3 + number}")
        )
        for number in range(2)
    ]
    for i in range(8):
        begun = front.now + 300.0 + 37 * i % 151 + 0.5
        front.ask(300.0 + 37 * i % 151, 900.0)
        links[0].ask(begun + 20 - links[0].now, 850.0)
        links[1].ask(begun + 40 - links[1].now, 800.0, response=80)
    return front.close()


def small_buffer() -> Wire:
    """Flights of one size, far below the window."""
    return wires.flights(wires.connection(), 30, 28)


def names(waits: Iterable[float]) -> Wire:
    """Questions of DNS, each answered after a wait."""
    wire = Wire()
    for number, wait in enumerate(waits):
        for text, back in (
            (question(number + 1, f"host{number}.example"), 0),
            (answer(number + 1, f"host{number}.example"), 1),
        ):
            ports, ends = (50_000 + number, 53), ("10.0.0.1", "10.0.0.53")
            header = struct.pack("!HHHH", *ports[:: -1 if back else 1], 8 + len(text), 0)
            wire.ip(2000.0 * number + back * wait, *ends[:: -1 if back else 1], 17, header + text)
    return wire


def backup(pause: float, silent_ms: float = 20.0) -> Wire:
    """A server that speaks first, as SSH does, then an upload of 1.2 MB in bursts, and its end after a silence of the client."""
    link, at, now = Connection(Wire(), server_port=22).open(rtt=20.0), 0, 50.0
    link.send(25, 1, 0, 40, PUSH).send(25.1, 0, 0, ack=40)
    for _ in range(30):
        for i in range(28):
            link.send(now + i * 0.1, 0, at, MSS, PUSH if i == 27 else ACK, 40)
            at += MSS
            link.send(now + i * 0.1 + 20, 1, 40, ack=at)
        now += 20 + pause
    now += silent_ms - pause
    link.send(now, 0, at, flags=FIN | ACK, ack=40).send(now + 20, 1, 40, flags=FIN | ACK, ack=at + 1)
    return link.send(now + 20.1, 0, at + 1, ack=41).wire


def beside(wire: Wire, other: Wire) -> Wire:
    """Two wires in one capture; the client of the second has another port."""
    for ms, frame in other.packets:
        ports = frame[34:36], frame[36:38]
        moved = [struct.pack("!H", 41_000) if port == struct.pack("!H", 40_000) else port for port in ports]
        wire.packets.append((ms, frame[:34] + b"".join(moved) + frame[38:]))
    return wire


def names_behind(queue: Wire, late_ms: float) -> Wire:
    """Questions of the client whose uploads fill a queue, answered with a delay while it stands, and at once afterwards."""
    for number in range(8):
        ports, ms = (50_000 + number, 53), 3000.0 + 700 * number
        wait = late_ms if number < 6 else 20.0
        for back, make in enumerate((question, answer)):
            text = make(number + 1, f"host{number}.example")
            header = struct.pack("!HHHH", *ports[:: -1 if back else 1], 8 + len(text), 0)
            queue.ip(ms + back * wait, *("10.1.1.1", "10.1.9.53")[:: -1 if back else 1], 17, header + text)
    return queue


def answers_after_pauses(begins_anew: bool, count: int = 12, segments: int = 150, rtt: float = 100.0) -> Wire:
    """Answers after pauses of 1.5 s, whose flights grow from ten segments, in the first answer or in each."""
    link, sent, received, now = Connection(Wire()).open(rtt=rtt, window=4096), 0, 0, rtt + 1
    flight = 10
    for _ in range(count):
        link.send(now, 0, sent, 120, PUSH, received, window=4096)
        sent, now, left = sent + 120, now + rtt, segments
        flight = 10 if begins_anew else flight
        while left:
            each = min(flight, left)
            for i in range(each):
                link.send(
                    now + i * 0.05, 1, received + i * MSS, MSS, ACK if i < each - 1 or each < left else PUSH, sent
                )
                link.send(now + i * 0.05 + 0.01, 0, sent, ack=received + (i + 1) * MSS, window=4096)
            received, left, flight = received + each * MSS, left - each, 2 * flight
            now += rtt if left else each * 0.05
        now += 1500
    return link.wire


def stopping(rest_ms: float = 6_000.0) -> Wire:
    """An answer of HTTP that begins after 20 ms; the rest comes much later, and the client goes on."""
    link = Connection(Wire()).open(rtt=2.0).send(3, 0, 0, 0, PUSH, 0, payload=GET)
    head, sent = b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n" + bytes(400), len(GET)
    link.send(25, 1, 0, 0, PUSH, sent, payload=head).send(25.1, 0, sent, ack=len(head))
    now = 25 + rest_ms
    link.send(now, 1, len(head), 1400, PUSH, sent).send(now + 0.2, 1, len(head) + 1400, 1400, PUSH, sent)
    link.send(now + 0.3, 0, sent, ack=len(head) + 2800).send(now + 0.4, 1, len(head) + 2800, 800, PUSH, sent)
    return link.send(now + 0.5, 0, sent, ack=len(head) + 3600).wire


def breaking(holder: bool, wait_ms: float = 35_000.0) -> Wire:
    """A file server that begins an answer and stops; another client got a message at that moment, and is silent from then on."""
    wire = Wire(by_time=True)
    talk = Dialogue(wire, 1.0, port=50_001, server_port=445)
    for i in range(6):
        talk.ask(60.0 + 11 * i)
    link, now = talk.link, talk.now + 400
    if holder:
        other = Dialogue(wire, 1.0, 500.0, 50_002, 445)
        other.link.ends = ("10.0.0.3", "10.0.0.2")
        wire.packets = [
            (ms, frame[:26] + bytes([10, 0, 0, 3]) + frame[30:]) if frame[34:36] == bytes([195, 82]) else (ms, frame)
            for ms, frame in wire.packets
        ]
        other.link.send(now - 90, 0, 0, 117, PUSH, 0).send(now - 89, 1, 0, 600, PUSH, 117).send(
            now - 60, 0, 117, ack=600
        )
        other.link.send(now + 1.4, 1, 600, 92, PUSH, 117).send(now + 41, 0, 117, ack=692)
    link.send(now, 0, talk.sent, 170, PUSH, talk.received)
    sent, received = talk.sent + 170, talk.received
    link.send(now + 2, 1, received, 77, PUSH, sent).send(now + 42, 0, sent, ack=received + 77)
    now += wait_ms
    link.send(now, 1, received + 77, 156, PUSH, sent).send(now + 0.3, 0, sent, 117, PUSH, received + 233)
    return (
        link.send(now + 2, 1, received + 233, 900, PUSH, sent + 117)
        .send(now + 3, 0, sent + 117, ack=received + 1133)
        .wire
    )


def greeted(
    wait_ms: float = 10_000.0, asks: bool = True, speaks_first: bool = False, count: int = 2, port: int = 21
) -> Wire:
    """Connections of FTP that are greeted after a wait, in which the server asks for a name and gets no answer. On another port
    an agent may have opened them that waits for work."""
    wire = Wire(by_time=True)
    for i in range(count):
        start = 20_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=port).open(start, 4.0)
        now, size = start + 4 + wait_ms, 12 if speaks_first else 0
        if asks:
            for j in range(2):
                text = question(100 + 2 * i + j, "1.0.0.10.in-addr.arpa", "PTR")
                header = struct.pack("!HHHH", 50_000 + 2 * i + j, 53, 8 + len(text), 0)
                wire.ip(start + 6 + 5_000.0 * j, "10.0.0.2", "10.0.0.53", 17, header + text)
        if speaks_first:
            link.send(now - 4, 0, 0, 12, PUSH, 0)
        link.send(now, 1, 0, 23, PUSH, size).send(now + 4, 0, size, 10, PUSH, 23)
        link.send(now + 8, 1, 23, 23, PUSH, size + 10).send(now + 12, 0, size + 10, 10, PUSH, 46)
        link.send(now + 16, 1, 46, 23, PUSH, size + 20).send(now + 20, 0, size + 20, ack=69)
    return drawn_names(wire)


def early_mail(
    hello_ms: float = 10_000.0, greeting_ms: float = 20_000.0, greeting: bytes = b"220 mx ESMTP\r\n"
) -> Wire:
    """Two mail connections, in which the client speaks and the server greets so long after the handshake."""
    wire, hello, reply = Wire(by_time=True), b"EHLO a.example\r\n", b"250 mx\r\n"
    for i in range(2):
        start = 60_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=25).open(start, 4.0)
        is_early = hello_ms < greeting_ms
        link.send(start + 4 + hello_ms, 0, 0, flags=PUSH, ack=0 if is_early else len(greeting), payload=hello)
        link.send(start + 4 + greeting_ms, 1, 0, flags=PUSH, ack=len(hello) if is_early else 0, payload=greeting)
        now, sent = start + 30_000, len(greeting)
        link.send(now, 0, len(hello), flags=PUSH, ack=sent, payload=b"NOOP\r\n")
        link.send(now + 4, 1, sent, flags=PUSH, ack=len(hello) + 6, payload=reply).send(
            now + 8, 0, len(hello) + 6, ack=sent + 8
        )
    return wire


def starttls_behind_a_hole() -> Wire:
    """Mail of which the capture lacks the answer to EHLO and the STARTTLS, whose answer looks like a greeting."""
    wire, hello, greeting = Wire(by_time=True), b"EHLO a.example\r\n", b"220 mx ESMTP\r\n"
    link = Connection(wire, server_port=25).open(0.0, 4.0).send(8, 1, 0, flags=PUSH, payload=greeting)
    link.send(12, 0, 0, flags=PUSH, ack=14, payload=hello).send(300, 1, 14 + 30, flags=PUSH, ack=26, payload=greeting)
    link.send(301, 0, 26, 500, PUSH, 58).send(305, 1, 58, 3000, PUSH, 526).send(306, 0, 526, ack=3058)
    return wire


def mute(port: int = 465, lasts_ms: float = 30_000.0, words: int = 0, unseen: int = 0) -> Wire:
    """Two connections on which nobody says a word, or only the client, until it closes; or each end does, and a capture of SYN,
    FIN and RST lacks it (`unseen`, bytes)."""
    wire = Wire()
    for i in range(2):
        end = 40_000.0 * i + lasts_ms
        link = Connection(wire, 40_001 + i, server_port=port).open(40_000.0 * i, 4.0)
        if words:
            link.send(end - 900, 0, 0, words, PUSH, 0).send(end - 896, 1, 0, ack=words)
        sent = words + unseen
        link.send(end, 0, sent, flags=FIN | ACK, ack=unseen).send(end + 4, 1, unseen, flags=FIN | ACK, ack=sent + 1)
        link.send(end + 8, 0, sent + 1, ack=unseen + 1)
    return wire


def drawn_names(wire: Wire) -> Wire:
    """The DNS server answers other questions of the server, so that it is up."""
    for i in range(4):
        for back, text in enumerate((question(7 + i, "a.example"), answer(7 + i, "a.example"))):
            ports, ends = (51_000 + i, 53), ("10.0.0.2", "10.0.0.53")
            header = struct.pack("!HHHH", *ports[:: -1 if back else 1], 8 + len(text), 0)
            wire.ip(300.0 + 7_000 * i + 3 * back, *ends[:: -1 if back else 1], 17, header + text)
    return wire


def granted_flights(count: int = 80, each: int = 22) -> Wire:
    """Halves of a window of 64 kB from a TLS server on a path of 40 ms, seen at the client, which grants each half anew."""
    link = Connection(Wire(), server_port=443).open(rtt=40.0, window=8192, scale=7)
    link.send(41, 0, 0, 300, PUSH, 0, 8192).send(81, 1, 0, ack=300)
    at, granted, arrivals = 0, 300, [90.0, 90.0 + each * 0.05]
    for number in range(count):
        now = arrivals[number]
        for i in range(each):
            link.send(now + i * 0.05, 1, at, MSS, PUSH if i == each - 1 else ACK, max(granted - 60, 300), 512)
            at += MSS
            if i % 2:
                link.send(now + i * 0.05 + 0.01, 0, granted, ack=at, window=8192)
        link.send(now + each * 0.05 - 0.03, 0, granted, 60, PUSH, at, 8192)
        granted += 60
        arrivals.append(now + each * 0.05 + 40)
    return link.wire


def windows_of_http2(count: int = 40, unit: int = 65_700, request: int = 44) -> Wire:
    """What passes for each small message of a client in TLS on a path of 100 ms, seen at the client."""
    link = Connection(Wire(), server_port=443).open(rtt=100.0, window=8192, scale=7)
    link.send(101, 0, 0, 300, PUSH, 0, 8192).send(201, 1, 0, 1000, PUSH, ack=300).send(
        201.1, 0, 300, 0, ack=1000, window=8192
    )
    now, requested, got = 202.0, 300, 1000
    for _ in range(count):
        link.send(now, 0, requested, request, PUSH, got, 8192)
        requested, now, end = requested + request, now + 100, got + unit
        while got < end:
            size = min(MSS, end - got)
            link.send(now, 1, got, size, PUSH if got + size == end else ACK, requested, 512)
            got, now = got + size, now + 0.05
            link.send(now - 0.03, 0, requested, 0, ack=got, window=8192)
    return link.wire


def paced(phase: float = 25.0, count: int = 120) -> Wire:
    """Ten segments each 30 ms, whatever the ACKs: those of an earlier flight come `phase` ms after one."""
    link, rtt = Connection(Wire()).open(rtt=55.0), 30.0 + phase
    for number in range(count):
        now, at = 100.0 + 30.0 * number, number * 10 * MSS
        for place in range(10):
            link.send(now + 0.05 * place, 0, at + place * MSS, MSS, PUSH if place == 9 else ACK)
            if place % 2:
                link.ack(now + rtt + 0.05 * place, at + (place + 1) * MSS)
    return link.wire


class Case(NamedTuple):
    """A capture, the cause that it has, and words of its sentence; None: no cause of an end above a note."""

    make: Callable[[], Wire]
    code: str | None
    says: tuple[str, ...] = ()
    certainty: str = "proven"


CASES: dict[str, Case] = {
    "300 requests of 30 ms": Case(lambda: requests(300), "serial-requests", ("300 round trips of 30 ms", "9.0")),
    "300 requests to NFS from a reserved port, without the handshake": Case(
        lambda: requests_to_nfs(300), "serial-requests", ("299 round trips of 30.6 ms", "10.0.0.2:2049")
    ),
    "300 requests, the server takes 200 ms": Case(
        lambda: requests(60, 5.0, think=250.0), "slow-server", ("250 ms", "each of 60 requests")
    ),
    "70 requests of which 2 are lost": Case(
        lambda: requests_lost((20, 45)), "serial-requests", ("Losses cost 4", "70 round trips of 30 ms")
    ),
    "a page of 12 requests": Case(lambda: requests(12), None),
    "30 connections of 30 ms": Case(reconnecting, "reconnects", ("Each of 30 requests", "2 round trips")),
    "14 connections of 150 ms, each for an answer of three windows": Case(
        reconnecting_for_much, "reconnects", ("Each of 14 requests", "4 round trips of 150 ms", "8.4")
    ),
    "the same within 2 s": Case(lambda: reconnecting_for_much(rtt=30.0), None),
    "12 long answers on one connection": Case(
        requests_for_much, "serial-requests", ("12 requests, each with 1.9 round trips of 150 ms",)
    ),
    "8 connections": Case(lambda: reconnecting(8), None),
    "30 connections to a slow server": Case(lambda: reconnecting(30, 5.0, 400.0), "slow-server", ("400 ms",)),
    "a client that computes": Case(lambda: pausing(VARIED * 2), "client-pause", ("10.0.0.2:5432",)),
    "two clients that compute": Case(lambda: colleagues(2), "client-pause"),
    "three clients of one service, each at its own pace": Case(lambda: colleagues(3), None),
    "a client that asks every 150 ms": Case(lambda: pausing([150.0] * 60), None),
    "a client that computes 8 times": Case(lambda: pausing(VARIED[:8]), None),
    "uploads of curl": Case(lambda: uploads([1001, 1002, 1000]), "expect-continue", ("Each of 3 uploads", "3.0")),
    "one upload of .NET": Case(lambda: uploads([351]), "expect-continue", ("The upload", "351 ms")),
    "one upload, odd pause": Case(lambda: uploads([1730]), "expect-continue", ("1.73 s",), "likely"),
    "uploads with a late leave": Case(
        lambda: uploads([1001, 1002], leave=True), "slow-server", ("each of 2 requests",)
    ),
    "uploads without the header": Case(lambda: uploads([1001, 1002, 1000], PLAIN), None),
    "two writes, 40 ms": Case(small_writes, "nagle-delack", ("40 ms", "1.6")),
    "two writes, 200 ms": Case(lambda: small_writes(200.0), "nagle-delack", ("by 200 ms",)),
    "a header, and a body when it is acknowledged": Case(
        header_then_body, "nagle-delack", ("10.0.0.2:80 writes", "by 200 ms", "in 4 of 4 answers"), "likely"
    ),
    "a header, and a body when it is ready": Case(lambda: header_then_body(40.0, 200.0), None),
    "a header, and a full body when it is acknowledged": Case(lambda: header_then_body(size=1_460), None),
    "a header that is acknowledged at once, and a body then": Case(lambda: header_then_body(1.0), None),
    "a header and a body, acknowledged late once": Case(lambda: header_then_body(count=1), None),
    "two writes, acknowledged at once": Case(lambda: small_writes(1.0), None),
    "flights of three segments": Case(odd_flights, "delack-tail", ("4.38 kB", "by 200 ms", "4.8")),
    "one full segment at a time": Case(
        lambda: odd_flights(each=1),
        "delack-tail",
        ("only one segment (1.46 kB) in flight", "of a single segment by 200"),
    ),
    "one short segment at a time": Case(lambda: odd_flights(each=1, size=1400), "nagle-delack", ("by 200 ms",)),
    "flights of three, acknowledged at once": Case(lambda: odd_flights(0.4), None),
    "a reader that is slow": Case(lambda: slow_reader(True), "zero-window", ("10.0.0.2:9100", "5.60")),
    "a reader that stops": Case(lambda: slow_reader(False), "zero-window", ("stopped answering",)),
    "a reader that falls behind": Case(shrinking, "zero-window", ("window shrank from", "to 5.12 kB")),
    "a device erases scaling": Case(
        lambda: full_windows((SCALED, ERASED)), "no-window-scaling", ("A device on the way strips", "13.1 Mbit/s")
    ),
    "the answer lacks scaling": Case(
        lambda: full_windows((SCALED, WITHOUT)), "no-window-scaling", ("probably because a device",), "likely"
    ),
    "the answer lacks all": Case(
        lambda: full_windows((SCALED, OLD)), "no-window-scaling", ("10.0.0.2:5001 probably cannot scale",), "likely"
    ),
    "the client offers none": Case(
        lambda: full_windows((WITHOUT, WITHOUT)), "no-window-scaling", ("10.0.0.1 probably does not offer",), "likely"
    ),
    "a reader that is slow, captured beside it": Case(
        lambda: late_reader(0.3), "zero-window", ("10.0.0.2:80 probably reads too slowly", "is 40 µs away"), "likely"
    ),
    "a window that opens late on a short path": Case(
        lambda: full_windows((SCALED, SCALED), 20 * MSS, 0.2, 300, 0.7),
        "small-window",
        ("probably makes room only long after the round trip of 200 µs",),
        "likely",
    ),
    "a small window": Case(lambda: full_windows((SCALED, SCALED)), "small-window", ("65.4 kB", "40 ms")),
    "a small window, and a larger one in the SYN": Case(
        lambda: full_windows((SCALED, SCALED), window=17_536), "small-window", ("17.5 kB", "40 ms")
    ),
    "servers of four networks on one link": Case(
        lambda: in_networks("93"), "split-proxy", ("A proxy beside 10.0.0.1", "4 servers in 4 networks", "TTL 64")
    ),
    "servers of four networks behind routers": Case(lambda: in_networks("93", 57), "slow-server", ("4 servers",)),
    "private servers on one link": Case(lambda: in_networks("10"), "slow-server", ("4 servers",)),
    "a server behind another": Case(lambda: two_tiers(True), "slow-dependency", ("10.0.0.3:5432", "850 ms each")),
    "a proxy that asks from another address": Case(
        proxied,
        "slow-dependency",
        ("The 3 servers behind the proxy 10.0.0.2:8080 (10.0.9.20:9000, …) took the time", "ms each"),
    ),
    "a proxy that asks one server from its address": Case(
        lambda: proxied("10.0.0.2", backs=1), "slow-dependency", ("The server behind the proxy", "10.0.9.20:9000, took")
    ),
    "a proxy that is slow itself": Case(
        lambda: proxied(proxy_ms=430.0, back_ms=20.0), "slow-server", ("The server 10.0.0.2:8080 took",)
    ),
    "a proxy that takes half of the time": Case(
        lambda: proxied("10.0.0.2", backs=1, proxy_ms=210.0, back_ms=450.0),
        "slow-dependency",
        ("slow in part because of 10.0.9.20:9000", "itself"),
    ),
    "servers of other clients": Case(lambda: proxied(passes=False), "slow-server", ("4 servers",)),
    "servers of the client": Case(lambda: proxied("10.0.0.1"), "slow-server", ("4 servers",)),
    "three servers, each behind another": Case(
        chain,
        "slow-dependency",
        ("10.0.0.2:8080 is slow because of 10.0.0.4:9001", "requests of 10.0.0.3 to it, 800 ms each"),
    ),
    "a server beside another": Case(lambda: two_tiers(False), "slow-server", ("each of 10 requests",)),
    "a DNS server that is slow": Case(
        lambda: names([2, 700, 900, 800, 3]),
        "slow-dns",
        ("DNS server 10.0.0.53", "3 questions", "quickest answer took 2 ms"),
    ),
    "a DNS server that is slow or far": Case(lambda: names([700, 900, 800]), "slow-dns", ("probably",), "likely"),
    "a DNS server that is far": Case(
        lambda: names([102.0, 101.5, 103.0, 102.2, 101.8, 102.4] * 2),
        "slow-dns",
        ("is probably 102 ms away, as each of 12",),
        "likely",
    ),
    "a path of 900 ms": Case(lambda: requests(2, 900.0), "long-path", ("900 ms", "10.0.0.2:80")),
    "a server of 900 ms": Case(lambda: requests(2, 20.0, think=880.0), "slow-server", ("880 ms",)),
    "an application that pauses": Case(lambda: wires.bursts_of_work(80.0), "app-limited", ("had nothing to send",)),
    "an upload that pauses": Case(lambda: backup(200.0), "app-limited", ("had nothing to send",)),
    "a reader that is slow beside an application that pauses": Case(
        lambda: beside(slow_reader(True), wires.bursts_of_work(400.0)), "zero-window", ("10.0.0.2:9100", "5.60")
    ),
    "answers that begin anew after pauses": Case(
        lambda: answers_after_pauses(True),
        "idle-restart",
        ("10.0.0.2:80 starts again from 14.6 kB in flight", "11 of 11 answers", "100 ms"),
    ),
    "answers whose window stays": Case(lambda: answers_after_pauses(False), None),
    "a server that needs 30 ms for each of 120 requests": Case(
        lambda: requests(120, 1.0, think=30.0), "server-time", ("30 ms", "each of 120 requests", "3.6")
    ),
    "a server that needs 10 ms on a path of 30 ms": Case(lambda: requests(120, 30.0, think=10.0), "serial-requests"),
    "a server that needs 30 ms for 10 requests": Case(lambda: requests(10, 1.0, think=30.0), None),
    "an answer that stops": Case(stopping, "server-stops", ("within an answer", "6 s"), "likely"),
    "an answer without a stop": Case(lambda: stopping(300.0), None),
    "an oplock that is not given up": Case(
        lambda: breaking(True),
        "server-stops",
        ("first bytes came 2 ms after", "waited for 10.0.0.3", "oplock"),
        "likely",
    ),
    "a message of a file server, much later": Case(lambda: breaking(False), None),
    "a greeting after a lookup": Case(
        greeted, "late-greeting", ("2 connections waiting 10 s each", "1.0.0.10.in-addr.arpa (PTR) got no answer")
    ),
    "a greeting that comes late": Case(
        lambda: greeted(asks=False), "late-greeting", ("waiting 10 s each for its greeting",)
    ),
    "an agent that waits for work": Case(lambda: greeted(asks=False, port=4444), None),
    "a greeting after a timer of retransmission": Case(
        lambda: greeted(1_010.0, asks=False, count=1),
        "late-greeting",
        ("probably kept 1 connection waiting",),
        "likely",
    ),
    "a client that does not wait for a greeting": Case(
        early_mail,
        "early-command",
        (
            "10.0.0.1 did not wait for the greeting of the mail server 10.0.0.2:25, which came 20 s after the handshake",
            "in 2 connections it sent EHLO 10 s earlier",
        ),
    ),
    "a client that waits for the greeting": Case(lambda: early_mail(20_004.0), None),
    "a greeting that the capture stored late": Case(lambda: early_mail(0.5, 1.0), None),
    "a slow answer to EHLO": Case(lambda: early_mail(greeting=b"250 mx\r\n"), "slow-server", ("10 s",)),
    "a client of mail that knows no TLS": Case(
        mute, "both-wait", ("neither said a word on 2 connections", "after 30 s. Port 465 wants TLS"), "likely"
    ),
    "a monitor of mail that hangs up": Case(lambda: mute(lasts_ms=1_000.0), None),
    "a browser that connects in advance": Case(lambda: mute(443), None),
    "a client of mail that speaks late": Case(lambda: mute(words=200), None),
    "a client that speaks late": Case(lambda: greeted(asks=False, speaks_first=True), None),
    "flights that the client releases": Case(
        granted_flights, "application-window", ("10.0.0.1 probably lets only 64.2 kB", "HTTP/2"), "likely"
    ),
    "windows of HTTP/2, one for each message": Case(
        windows_of_http2, "application-window", ("only 65.7 kB", "as HTTP/2 does by default"), "likely"
    ),
    "requests for parts of 64 kB": Case(lambda: windows_of_http2(request=400), "serial-requests", ("41 round trips",)),
    "small requests for parts of 100 kB": Case(lambda: windows_of_http2(unit=100_000), "serial-requests"),
    "a program with a rate of its own": Case(paced, None),
    "the same, whose ACKs come at other times": Case(lambda: paced(12.0), None),
    "a small send buffer": Case(small_buffer, "send-buffer", ("though window, path and queue are free",)),
}
EXAMPLES = {
    "serial-requests": of_wire(lambda: requests(300)),
    "reconnects": of_wire(reconnecting),
    "client-pause": of_wire(lambda: pausing(VARIED * 2)),
    "expect-continue": of_wire(lambda: uploads([1001, 1002, 1000])),
    "nagle-delack": of_wire(small_writes),
    "delack-tail": of_wire(odd_flights),
    "zero-window": of_wire(lambda: slow_reader(False)),
    "no-window-scaling": of_wire(lambda: full_windows((SCALED, ERASED))),
    "small-window": of_wire(lambda: full_windows((SCALED, SCALED))),
    "split-proxy": of_wire(lambda: in_networks("93")),
    "slow-dependency": of_wire(lambda: two_tiers(True)),
    "slow-server": of_wire(lambda: requests(60, 5.0, think=250.0)),
    "slow-dns": of_wire(lambda: names([2, 700, 900, 800, 3])),
    "long-path": of_wire(lambda: requests(2, 900.0)),
    "idle-restart": of_wire(lambda: answers_after_pauses(True)),
    "slow-start": of_wire(wires.growing_flights),
    "app-limited": of_wire(lambda: wires.bursts_of_work(80.0)),
    "send-buffer": of_wire(small_buffer),
    "application-window": of_wire(granted_flights),
    "server-time": of_wire(lambda: requests(120, 1.0, think=30.0)),
    "server-stops": of_wire(lambda: breaking(True)),
    "both-wait": of_wire(mute),
    "late-greeting": of_wire(greeted),
    "early-command": of_wire(early_mail),
    "login-each-request": of_wire(lambda: web_answers([401, 200] * 12)),
}
