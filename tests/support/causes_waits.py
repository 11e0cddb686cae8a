# SPDX-License-Identifier: Apache-2.0
"""Captures of ends that wait for a name, for leave to ask or for a new connection, beside their nearest rivals."""

from __future__ import annotations

import struct

import causes_ends as ends
from application_wire import answer, question
from finding_captures import of_wire
from plain_wire import ACK, FIN, MSS, PSH, RST, SYN, Connection, Wire, syn_options
from rival_case import NOT, Case

PUSH = PSH | ACK
LOGIN_MS = 10_000.0


def logins(asks: bool = True, answered: bool = False, wait_ms: float = LOGIN_MS, is_alive: bool = True) -> Wire:
    """Two logins by SSH, which stop in the middle; meanwhile the server asks for the name of the client, twice."""
    wire = Wire(by_time=True)
    for i in range(2):
        start = 20_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=22).open(start, 4.0)
        link.send(start + 5, 1, 0, 21, PUSH, 0).send(start + 9, 0, 0, 21, PUSH, 21)
        link.send(start + 10, 1, 21, 900, PUSH, 21).send(start + 14, 0, 21, 60, PUSH, 921)
        link.send(start + 14.1, 1, 921, 0, ACK, 81)
        now = start + 14 + wait_ms
        for attempt in range((1 if answered else 2) if asks else 0):
            name, ports = "1.0.0.10.in-addr.arpa", (50_000 + i, 53)
            texts = [question(100 + i, name, "PTR")] + ([answer(100 + i, name)] if answered else [])
            for back, text in enumerate(texts):
                header = struct.pack("!HHHH", *ports[:: -1 if back else 1], 8 + len(text), 0)
                hosts = ("10.0.0.2", "10.0.0.53")[:: -1 if back else 1]
                wire.ip(start + 15 + 5_000.0 * attempt + 2 * back, *hosts, 17, header + text)
        link.send(now, 1, 921, 84, PUSH, 81).send(now + 4, 0, 81, 100, PUSH, 1005)
        link.send(now + 6, 1, 1005, 120, PUSH, 181).send(now + 10, 0, 181, 0, ACK, 1125)
    return ends.drawn_names(wire) if is_alive else wire


def read_blocks(
    count: int = 90, rtt: float = 22.0, pause: float = 0.3, sizes: tuple[int, ...] = (100,), block: int = 32_120
) -> Wire:
    """Requests to an SSH server, each answered by a block in full segments: a file read over SFTP, or what a person types."""
    talk = ends.Dialogue(Wire(), rtt, server_port=22)
    for number in range(count):
        talk.ask(pause=pause, request=sizes[number % len(sizes)], response=MSS)
        for _ in range(MSS, block, MSS):
            talk.now += 0.02
            talk.link.send(talk.now, 1, talk.received, MSS, PUSH, talk.sent)
            talk.received += MSS
        talk.link.send(talk.now + 0.01, 0, talk.sent, ack=talk.received)
    return talk.close()


def called_back(port: int = 113, refused: bool = False, every: int = 1) -> Wire:
    """Mail servers that greet 25 s late; after the handshake they ask a port of the client who connects, which stays silent."""
    wire = Wire(by_time=True)
    for i in range(3):
        start = 40_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=25).open(start, 4.0)
        query = Connection(wire, 50_001 + i, ("10.0.0.2", "10.0.0.1"), server_port=port)
        for later in (0.0, 1_000.0, 3_000.0, 7_000.0, 15_000.0)[: 1 if refused else 5] if i % every == 0 else ():
            query.send(start + 24 + later, 0, -1, 0, SYN)
            if refused:
                query.send(start + 28 + later, 1, 0, 0, RST | ACK, 0)
        now = start + 25_000.0
        link.send(now, 1, 0, 40, PUSH, 0).send(now + 4, 0, 0, 20, PUSH, 40).send(now + 8, 1, 40, 30, PUSH, 20)
        link.send(now + 12, 0, 20, 6, PUSH, 70).send(now + 16, 1, 70, 20, PUSH, 26).send(now + 20, 0, 26, 0, ACK, 90)
    return wire


def pages_that_wait(asks: bool = True) -> Wire:
    """Web pages for which the server looks up the client's name, which takes until its resolver gives up, twice."""
    wire = Wire(by_time=True)
    for i in range(3):
        start = 30_000.0 * i
        link = Connection(wire, 40_001 + i, server_port=80).open(start, 8.0)
        link.send(start + 9, 0, 0, len(ends.GET), PUSH, 0, payload=ends.GET).send(start + 17, 1, 0, ack=len(ends.GET))
        for attempt in range(2 if asks else 0):
            text = question(100 + i, "1.0.0.10.in-addr.arpa", "PTR")
            header = struct.pack("!HHHH", 50_000 + i, 53, 8 + len(text), 0)
            wire.ip(start + 18 + 5_000.0 * attempt, "10.0.0.2", "10.0.0.53", 17, header + text)
        page = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"
        link.send(start + 10_030, 1, 0, len(page), PUSH, len(ends.GET), payload=page)
        link.send(start + 10_038, 0, len(ends.GET), ack=len(page))
    return ends.drawn_names(wire)


def in_two_pieces(
    later: float = 36.1, count: int = 14, near: float = 0.0, answers: bool = False, body: int = 300
) -> Wire:
    """Messages of a header and a body on a path of 36 ms, the body so much later than the header; seen `near` ms from a client
    whose requests they are, or the answers are."""
    link, now, requested, replied = Connection(Wire(by_time=True)).open(rtt=36.0, near=near), 50.0, 0, 0
    first, back = (36.0, 36.0 - near)[::-1] if answers else (36.0 - near, 36.0)
    for number in range(count):
        sizes = (90, 140) if answers else (140, body)
        link.send(now, 0, requested, sizes[0], PUSH, replied)
        if not answers:
            link.send(now + first, 1, replied, ack=requested + 140).send(
                now + later, 0, requested + 140, body, PUSH, replied
            )
            requested, now = requested + 140 + body, now + later + first
            link.send(now + 0.4, 1, replied, 200, PUSH, requested).send(
                now + 0.4 + near, 0, requested, ack=replied + 200
            )
            replied += 200
        else:
            requested, now = requested + 90, now + first + 0.6
            link.send(now, 1, replied, 140, PUSH, requested).send(now + 0.05, 0, requested, ack=replied + 140)
            now += later
            link.send(now, 1, replied + 140, body, PUSH, requested).send(
                now + 0.05, 0, requested, ack=replied + 140 + body
            )
            replied += 140 + body
        now += back + 20.0 + 7.0 * (number % 3)
    return link.wire


def one_at_a_time(mss: int = 536, count: int = 3) -> Wire:
    """Pages of a device in segments of many sizes, each sent when the one before it has been acknowledged, 200 ms later."""
    wire = Wire(by_time=True)
    for i in range(count):
        now, at, start = 0.0, 0, 10_000.0 * i
        link = Connection(wire, 40_001 + i).open(start, 1.0, mss=mss)
        link.send(start + 2, 0, 0, 90, PUSH, 0).send(start + 3, 1, 0, ack=90)
        for number in range(15):
            size, now = min(mss, (60, 536, 210, 536, 120)[number % 5]), start + 6 + 201.5 * number
            link.send(now, 1, at, size, PUSH, 90).send(now + 200, 0, 90, ack=at + size)
            at += size
    return wire


def reads(count: int = 16, asks: bool = True, segments: int = 22, rounds: int = 25, window: int = 16_384) -> Wire:
    """Reads of a file over a path of 100 ms, so many of which are open at a time; seen at the server."""
    link = Connection(Wire(by_time=True), server_port=22).open(rtt=100.0, near=99.9, window=window)
    at, sent, begun = 0, 0, 101.0
    for _ in range(count if asks else 1):
        link.send(begun, 0, sent, 68, PUSH, 0, window)
        sent += 68
    for turn in range(rounds):
        now = begun + 1 + 101.0 * turn
        for unit in range(count):
            due = now + 1.4 * unit
            for n in range(segments):
                link.send(
                    due + 0.06 * n, 1, at, MSS, PUSH if n == segments - 1 else ACK, sent - 68 * asks * (count - 1)
                )
                at += MSS
                if n % 2:
                    link.send(due + 0.06 * n + 100.0, 0, sent, 0, ACK, at, window)
            if asks and turn < rounds - 1:
                link.send(due + 0.06 * segments + 100.0, 0, sent, 68, PUSH, at, window)
                sent += 68
    return link.wire


def calls(count: int = 30, rtt: float = 30.0, parallel: int = 1) -> Wire:
    """A connection for each request; the end of each is still under way when the next one begins."""
    wire = Wire(by_time=True)
    for i in range(count):
        start = 10.0 + (3 * rtt + 1) * (i // parallel) + 2.0 * (i % parallel)
        link = Connection(wire, 40_000 + i).open(start, rtt)
        link.send(start + rtt + 0.1, 0, 0, 300, PUSH, 0).send(start + 2 * rtt + 0.6, 1, 0, 900, PUSH, 300)
        done = start + 2 * rtt + 0.7
        link.send(done, 0, 300, 0, FIN | ACK, 900).send(done + 2.5 * rtt, 1, 900, 0, FIN | ACK, 301)
        link.send(done + 2.5 * rtt + 0.1, 0, 301, 0, ACK, 901)
    return wire


def limited(pause_ms: float = 2_000.0, status: int = 429) -> Wire:
    """A client of which each sixth request is refused, and which then pauses."""
    link, now, sent, received = Connection(Wire()).open(rtt=20.0), 21.0, 0, 0
    for number in range(36):
        code = status if number % 6 == 4 else 200
        reply = b"HTTP/1.1 %d Status\r\nContent-Length: 150\r\n\r\n" % code + bytes(150)
        link.send(now, 0, sent, flags=PUSH, ack=received, payload=ends.GET)
        sent += len(ends.GET)
        link.send(now + 25, 1, received, flags=PUSH, ack=sent, payload=reply)
        received += len(reply)
        link.send(now + 25.1, 0, sent, ack=received)
        now += 26 + (pause_ms if code != 200 else 1.0)
    return link.wire


def dripping(pause_ms: float = 130.0, window: int = 4_096) -> Wire:
    """A download of 3 MB in pieces of 29 kB, each of which the server sends after a pause, or when the window opens."""
    link = Connection(Wire()).open(rtt=10.0, window=window)
    link.send(11, 0, 0, 0, PUSH, 0, window, payload=ends.GET)
    now, at = 22.0, 0
    for _ in range(100):
        for n in range(20):
            link.send(now + 0.12 * n, 1, at, MSS, PUSH if n == 19 else ACK, len(ends.GET))
            at += MSS
            if n % 2:
                link.send(now + 0.12 * n + 0.02, 0, len(ends.GET), 0, ACK, at, window)
        now += pause_ms
    return link.wire


def lost_syns(count: int = 30, lost: int = 3) -> Wire:
    """A connection for each request, of which some lose their first SYN and repeat it after a second."""
    wire, now = Wire(), 10.0
    for i in range(count):
        link = Connection(wire, 40_000 + i)
        if i % (count // lost) == 4:
            link.send(now, 0, -1, flags=SYN, options=syn_options())
            now += 1_000.0
        link.open(now, 15.0).send(now + 15.1, 0, 0, 300, PUSH, 0).send(now + 40, 1, 0, 900, PUSH, 300)
        link.send(now + 41, 0, 300, 0, FIN | ACK, 900).send(now + 56, 1, 900, 0, FIN | ACK, 301)
        link.send(now + 57, 0, 301, 0, ACK, 901)
        now += 60.0
    return wire


def stops(together: bool = True, connections: int = 5, count: int = 60) -> Wire:
    """Requests by several connections to a program that stops for 1.2 s now and then, or is slow for each at another time."""
    wire = Wire(by_time=True)
    for i in range(connections):
        talk = ends.Dialogue(wire, 4.0, 10.0 * i, 40_000 + i, 8080)
        for _ in range(count):
            since = (talk.now - (0 if together else 700.0 * i)) % 4_000.0
            talk.ask(90.0 + 7 * i, 1_200.0 - since if since < 1_200.0 else 6.0)
    return wire


def reader(quiet_ms: float) -> Wire:
    """A person who reads pages for some seconds, beside a connection that stays open."""
    wire = ends.pausing(ends.VARIED * 2)
    link = Connection(wire, 41_000, server_port=8080).open(5.0, 20.0)
    return link.send(26, 0, 0, 90, PUSH, 0).send(46, 1, 0, 60, PUSH, 90).send(quiet_ms, 1, 60, 30, PUSH, 90).wire


NAME, OPEN, AGAIN, PAUSE = "name-lookup", "application-window", "reconnects", "client-pause"


def polled(code: int = 200, again: float = 5.0, limit: float = 10_000.0) -> Wire:
    """Requests that a server answers when there is news, or with this code after `limit` ms; the next comes `again` ms later."""
    link, now, sent, back = Connection(Wire(by_time=True)).open(rtt=4.0), 10.0, 0, 0
    for wait in (900.0, limit, 4_100.0, 350.0, limit, 7_300.0, 2_600.0, limit, 1_500.0, 5_200.0):
        reply = b"HTTP/1.1 %d Status\r\nContent-Length: 60\r\n\r\n" % (code if wait == limit else 200) + bytes(60)
        link.send(now, 0, sent, flags=PUSH, ack=back, payload=ends.GET)
        sent += len(ends.GET)
        link.send(now + 4, 1, back, ack=sent)
        now += wait + 4
        link.send(now, 1, back, flags=PUSH, ack=sent, payload=reply)
        back += len(reply)
        link.send(now + 0.1, 0, sent, ack=back)
        now += again
    return link.wire


def confirmed(request: int = 20, response: int = 50, server_port: int = 5555) -> Wire:
    """Messages of a server at any time, each of which the client answers at once with so many bytes."""
    talk = ends.Dialogue(Wire(), 4.0, server_port=server_port)
    for wait in (2_400.0, 3_900.0, 700.0, 7_100.0, 5_700.0, 1_500.0, 2_200.0, 4_400.0):
        talk.ask(think=wait, request=request, response=response)
    return talk.close()


def handshakes(code: int, upgrade: bytes = b"Upgrade: websocket\r\nConnection: Upgrade\r\n") -> Wire:
    """Handshakes of WebSockets, and the status of their answers."""
    wire = Wire(by_time=True)
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    ask = b"GET /live HTTP/1.1\r\nHost: app.example\r\n" + upgrade + key + b"\r\n"
    reply = b"HTTP/1.1 %d Status\r\nContent-Length: 11\r\n\r\nBad Request" % code
    for number in range(3):
        now = 2_000.0 * number
        link = Connection(wire, 40_000 + number).open(now, 8.0)
        link.send(now + 9, 0, 0, flags=PUSH, payload=ask).send(now + 18, 1, 0, flags=PUSH, ack=len(ask), payload=reply)
        link.send(now + 18.1, 0, len(ask), ack=len(reply)).send(now + 20, 0, len(ask), flags=FIN | ACK, ack=len(reply))
        link.send(now + 28, 1, len(reply), flags=FIN | ACK, ack=len(ask) + 1).send(
            now + 28.1, 0, len(ask) + 1, ack=len(reply) + 1
        )
    return wire


ERRORS, DRIPS, SLOW, POLLS = "error-answers", "app-limited", "slow-server", "long-polls"
GREETING, SERIAL, TRIP = "late-greeting", "serial-requests", "nagle-trip"
CASES = {
    "logins that wait for a name": Case(
        logins, NAME, ("10.0.0.2:22 kept its clients waiting 10 s each", "2 connections", "1.0.0.10.in-addr.arpa (PTR)")
    ),
    "logins that wait without a question": NOT(lambda: logins(asks=False), NAME),
    "logins whose names are answered": NOT(lambda: logins(answered=True), NAME),
    "logins that wait much longer than for a name": NOT(lambda: logins(wait_ms=19_000.0), NAME),
    "logins that wait for a resolver that answers nothing": Case(
        lambda: logins(is_alive=False),
        NAME,
        ("10.0.0.2:22 kept its clients waiting 10 s each", "(PTR) to 10.0.0.53 got no answer"),
    ),
    "pages that wait for a name": Case(
        pages_that_wait, NAME, ("app.example:80 kept its clients waiting 10 s each", "3 connections", "(PTR)")
    ),
    "pages that wait without a question": NOT(lambda: pages_that_wait(False), NAME),
    "greetings that wait for ident": Case(
        called_back,
        GREETING,
        ("3 connections waiting 25 s each", "its own SYNs to TCP 113 of the client (ident) got no answer"),
    ),
    "greetings that wait for another port": Case(
        lambda: called_back(8_113), GREETING, ("its own SYNs to TCP 8113 of the client got no answer",)
    ),
    "greetings that are late though ident is refused": Case(
        lambda: called_back(refused=True), "refused", ("Nothing listens on 10.0.0.1:113",)
    ),
    "greetings of which some have a query beside them": Case(
        lambda: called_back(every=2), "filtered", ("TCP 113 of 10.0.0.1",)
    ),
    "a file that is read block after block over SSH": Case(
        read_blocks, SERIAL, ("90 round trips of 22 ms", "10.0.0.2:22")
    ),
    "keys and screens over SSH": NOT(lambda: read_blocks(60, pause=130.0), SERIAL),
    "commands over SSH, one after the other": NOT(lambda: read_blocks(60, sizes=(36, 52, 84, 148, 60)), SERIAL),
    "a device that sends one segment at a time": Case(
        one_at_a_time,
        "nagle-delack",
        ("10.0.0.2:80 waits for the ACK of each segment", "10.0.0.1 delays", "3 connections"),
    ),
    "a host that sends one segment at a time": Case(
        lambda: one_at_a_time(1_460),
        "nagle-delack",
        ("10.0.0.2:80 writes messages in small pieces", "of 3 connections"),
    ),
    "bodies that wait for the ACK of the header": Case(
        in_two_pieces, TRIP, ("10.0.0.1 writes messages in pieces", "a round trip of 36", "of 14 requests")
    ),
    "bodies that wait for it, seen near the server": Case(lambda: in_two_pieces(near=35.6), TRIP, ("of 14 requests",)),
    "answers whose bodies wait for it": Case(
        lambda: in_two_pieces(36.2, answers=True), TRIP, ("10.0.0.2:80 writes messages in pieces",)
    ),
    "bodies that come later than the ACK": NOT(lambda: in_two_pieces(48.0), TRIP),
    "bodies that wait for no ACK": NOT(lambda: in_two_pieces(22.0), TRIP),
    "bodies that fill a segment": NOT(lambda: in_two_pieces(body=MSS), TRIP),
    "a few bodies that wait": NOT(lambda: in_two_pieces(count=5), TRIP),
    "16 reads at a time": Case(reads, OPEN, ("lets only 514 kB be under way", "round trip of 100 ms")),
    "4 reads at a time": Case(lambda: reads(4, rounds=60), OPEN, ("lets only 128 kB be under way",)),
    "flights without requests": NOT(lambda: reads(asks=False), OPEN),
    "reads behind a small window": NOT(lambda: reads(window=4_096), OPEN),
    "connections that end late": Case(calls, AGAIN, ("Each of 30 requests", "2 round trips of 30")),
    "connections side by side": NOT(lambda: calls(60, parallel=3), AGAIN),
    "a client that is told to come later": Case(
        limited, ERRORS, ("6 of 36 HTTP requests got status 429", "paused for 2 s each time, 12 s in all")
    ),
    "a client that goes on at once": Case(lambda: limited(100.0), ERRORS, ("6 of 36 HTTP requests got status 429",)),
    "no pause is blamed on a client that is told to come later": NOT(limited, PAUSE),
    "an answer in drops": Case(dripping, DRIPS, ("10.0.0.2:80 is the limit", "nothing to send for 11.7 of 12.9 s")),
    "an answer at the rate of the path": NOT(lambda: dripping(2.4), DRIPS),
    "connections of which some lose a SYN": NOT(lost_syns, AGAIN),
    "a program that stops": Case(
        stops, SLOW, ("5 connections together at 3 moments", "as if the whole program stopped")
    ),
    "a program that is slow for each": Case(lambda: stops(False), SLOW, (" requests: ",)),
    "requests that are held until there is news": Case(
        polled, POLLS, ("3 of 10 requests were answered after the same 10 s", "after 350 ms to 7.30 s")
    ),
    "requests of which some end with an error after a timer": Case(
        lambda: polled(504), ERRORS, ("status 504 after 10 s",)
    ),
    "requests after pauses": Case(lambda: polled(again=3_000.0), SLOW),
    "requests up to a shorter limit": NOT(lambda: polled(limit=3_000.0), POLLS),
    "WebSockets behind a proxy that removes a header": Case(
        lambda: handshakes(400), ERRORS, ("3 of 3 WebSocket handshakes got status 400", "removed the Upgrade header")
    ),
    "the same behind the proxy": Case(
        lambda: handshakes(426, b"Connection: close\r\n"), ERRORS, ("status 426 (a proxy removed the Upgrade header)",)
    ),
    "WebSockets that are forbidden": Case(
        lambda: handshakes(403), ERRORS, ("3 of 3 WebSocket handshakes got status 403 (no permission)",)
    ),
    "messages that may be confirmed": Case(confirmed, SLOW, ("probably took 700 ms", "unless those only confirm")),
    "requests of a database": Case(lambda: confirmed(server_port=5432), SLOW, (":5432 took 700 ms to 7.10 s",)),
    "longer requests": Case(lambda: confirmed(90, 200), SLOW, (":5555 took 700 ms to 7.10 s",)),
    "a person who reads beside a quiet connection": NOT(lambda: reader(200_000.0), PAUSE),
    "a client that computes beside one": Case(lambda: reader(9_000.0), PAUSE, ("10.0.0.2:5432",)),
}
EXAMPLES = {
    NAME: of_wire(logins),
    TRIP: of_wire(in_two_pieces),
    POLLS: of_wire(polled),
    "redirect-loop": of_wire(lambda: ends.web_answers([302] * 20)),
}
