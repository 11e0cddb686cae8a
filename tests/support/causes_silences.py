# SPDX-License-Identifier: Apache-2.0
"""Packets that something does not answer, or only late: FINs, first SYNs and queries, split hellos, data, changes of a call."""

from __future__ import annotations

import struct

from application_wire import CHANGE, SECRET, SNI, extension, hello
from attempt_wire import many
from causes_udp import asks, signals, tells
from causes_unanswered import all_of, asks_name, tells_name
from crafted import Timed
from finding_captures import of_timed, of_wire
from plain_wire import ACK, FIN, MSS, PSH, RST, SYN, Connection, Wire, sack, syn_options

SMALL = 300  # bytes of a ClientHello that is answered
LADDER = (280, 850, 2_000, 4_300, 8_900, 18_100)  # ms, of RTOs


def unheard_fins(answers: bool = True, repeats: int = 6, heard: bool = False, count: int = 3, size: int = 0) -> Wire:
    """Servers that close after their answer: the FIN is repeated, with so many bytes of data, and the client acknowledges the
    data before alone, or nothing more. `heard`: the last repeat is acknowledged."""
    wire = Wire(by_time=True)
    for i in range(count):
        start = 60_000.0 * i
        link = Connection(wire, 40_001 + i).open(start).send(start + 21, 0, 0, 100, PSH | ACK)
        link.send(start + 42, 1, 0, 500, PSH | ACK, ack=100).send(start + 42.1, 0, 100, ack=500)
        closed, end = start + 50, 501 + size
        for later in (0, *LADDER[:repeats]):
            link.send(closed + later, 1, 500, size, flags=FIN | ACK, ack=100)
            if answers:
                link.send(closed + later + 0.5, 0, 100, ack=500)
        if heard:
            last = closed + LADDER[repeats - 1]
            link.send(last + 1, 0, 100, flags=FIN | ACK, ack=end).send(last + 21, 1, end, ack=101)
    return wire


def learned(ladder: tuple[float, ...] = (0.0, 1.0, 3.0), apart: float = 10.0, count: int = 8) -> Timed:
    """Every second connection is answered at the last SYN of a ladder alone."""
    talks = []
    for i, ends in enumerate(many(count)):
        at, late = apart * i, ladder[-1] if i % 2 else 0.0
        talks.append([*(ends.syn(at + step) for step in ladder[:-1] if i % 2), *ends.connects(at + late)])
    return all_of(*talks)


def hello_of(size: int) -> bytes:
    """A ClientHello of so many bytes."""
    least = len(hello(1, b"", SNI, extension(21, b"")))
    return hello(1, b"", SNI, extension(21, bytes(size - least)))


def repeat_hello(link: Connection, fate: str, start: float, data: bytes) -> None:
    """Repeats the segment of a ClientHello that has no ACK: the first, if nothing arrived or the last alone, or the last."""
    at = MSS if fate == "cut" else 0
    if fate != "dropped":
        link.ack(start + 42, at, options=sack((MSS, len(data))) if fate == "hole" else b"")
    for later in LADDER:
        link.send(start + 21 + later, 0, at, flags=ACK, payload=data[at : at + MSS])


def split_hellos(fate: str = "ignored", small: int = 3, sizes: tuple[int, ...] = (1_600, 1_700, 1_800)) -> Wire:
    """Connections with a ClientHello of two segments, which are acknowledged and nothing more, dropped, lost but for the short
    last segment (hole) or the full one (cut), reset or closed; and so many with a short one, which is answered."""
    wire = Wire(by_time=True)
    for i, size in enumerate((*sizes, *[SMALL] * small)):
        start, data = 60_000.0 * i, hello_of(size)
        link = Connection(wire, 40_001 + i, server_port=443).open(start)
        for at in range(0, size, MSS):
            link.send(start + 21, 0, at, flags=PSH | ACK, payload=data[at : at + MSS])
        if size == SMALL:
            answer = hello(2, b"") + CHANGE + SECRET
            link.send(start + 42, 1, 0, flags=PSH | ACK, ack=size, payload=answer)
            link.send(start + 43, 0, size, flags=PSH | ACK, ack=len(answer), payload=CHANGE + SECRET)
            link.send(start + 63, 1, len(answer), flags=PSH | ACK, ack=size + len(CHANGE + SECRET), payload=SECRET)
            link.send(start + 64, 0, size + len(CHANGE + SECRET), flags=RST, window=0)
            continue
        if fate in ("dropped", "hole", "cut"):
            repeat_hello(link, fate, start, data)
            continue
        if fate == "reset":
            link.send(start + 42, 1, 0, flags=RST | ACK, ack=size, window=0)
            continue
        link.ack(start + 42, size)
        closer = 1 if fate == "closed" else 0
        end = start + (43 if closer else 30_000)
        link.send(end, closer, 0 if closer else size, flags=FIN | ACK, ack=size if closer else 0)
        link.send(end + 1, 1 - closer, size if closer else 0, flags=FIN | ACK, ack=1 if closer else size + 1)
    return wire


def delayed(
    ms: float = 100.0,
    segments: int = 6,
    rtt: float = 0.4,
    window: int = 8_760,
    spread: bool = False,
    varies: float = 0.0,
    rounds: int = 40,
) -> Wire:
    """A transfer whose flights are each acknowledged after so long by one ACK, or, `spread`, by one for two segments as they
    leave a queue; `varies`: by how much the time does, in ms."""
    wire = Wire(by_time=True)
    link = Connection(wire, server_port=5001).send(0.0, 0, -1, flags=SYN, options=syn_options())
    link.send(rtt, 1, -1, flags=SYN | ACK, ack=0, options=syn_options(scale=None), window=window).send(rtt + 0.1, 0, 0)
    now, at = rtt + 1, 0
    for turn in range(rounds):
        for number in range(segments):
            link.data(now + 0.12 * number, at + MSS * number)
        at, began, took = at + MSS * segments, now + 0.12 * (segments - 1), ms + varies * (turn % 5) / 4
        parts = segments // 2 if spread else 1
        for part in range(1, parts + 1):
            link.ack(began + took * part / parts, at - MSS * segments * (parts - part) // parts, window=window)
        now = began + took + 0.1
    return wire


def asked_again(count: int = 4, wait: float = 5.0, code: int = 3, late: bool = False) -> Timed:
    """Questions whose first query is lost, each beside one that is answered at once. `late`: the answer comes before the
    repeat could be answered."""
    talk: Timed = []
    for i in range(count):
        at, port = 20.0 * i, 4_000 + 2 * i
        talk += [asks_name(at, 2 * i, name=f"{i}.example", port=port)]
        if not late:
            talk += [asks_name(at + wait, 2 * i, name=f"{i}.example", port=port)]
        talk += [tells_name(at + wait + 0.01, 2 * i, name=f"{i}.example", port=port, code=code)]
        talk += [asks_name(at + 10, 2 * i + 1, name=f"{i}.example", port=port + 1)]
        talk += [tells_name(at + 10.01, 2 * i + 1, name=f"{i}.example", port=port + 1, code=code)]
    return talk


def changed_calls(status: int = 488, method: str = "INVITE", hangs_up: float | None = 0.1, first: bool = True) -> Timed:
    """Two calls that are changed after a minute, which the other end answers with a status; the caller may hang up then."""
    steps = []
    for call in range(2):
        at, name = 100.0 * call, f"{call}@phone"
        if first:
            steps += [(at, True, asks("INVITE", 1, name)), (at + 2, False, tells(200, "INVITE", 1, name))]
            steps.append((at + 2.01, True, asks("ACK", 1, name)))
        steps += [(at + 62, True, asks(method, 2, name)), (at + 62.03, False, tells(status, method, 2, name))]
        steps.append((at + 62.04, True, asks("ACK", 2, name)))
        if hangs_up is not None:
            steps += [(at + 62.04 + hangs_up, True, asks("BYE", 3, name))]
            steps.append((at + 62.1 + hangs_up, False, tells(200, "BYE", 3, name)))
    return signals(steps)


def cut_while_waiting(waits: tuple[float, ...] = (350_000.0,) * 3, apart: float = 20_000.0) -> Wire:
    """Requests that a server acknowledges; after so long a silence, a RST comes from its side."""
    wire = Wire(by_time=True)
    for i, wait in enumerate(waits):
        start = apart * i
        link = Connection(wire, 40_001 + i).open(start).send(start + 21, 0, 0, 100, PSH | ACK)
        link.send(start + 42, 1, 0, 500, PSH | ACK, ack=100).send(start + 42.1, 0, 100, ack=500)
        link.send(start + 900, 0, 100, 100, PSH | ACK, ack=500).send(start + 920, 1, 500, ack=200)
        link.send(start + 920 + wait, 1, 500, flags=RST, window=0)
    return wire


def acknowledged_by_a_device(pause: float = 900_000.0, window: int = 0, count: int = 3) -> Wire:
    """The first request after a pause gets a RST that acknowledges it; a window shows a live socket."""
    wire = Wire(by_time=True)
    for i in range(count):
        start = 20_000.0 * i
        link = Connection(wire, 40_001 + i).open(start).send(start + 21, 0, 0, 100, PSH | ACK)
        link.send(start + 42, 1, 0, 500, PSH | ACK, ack=100).send(start + 42.1, 0, 100, ack=500)
        at = start + 42 + pause
        link.send(at, 0, 100, 100, PSH | ACK, ack=500).send(at + 20.5, 1, 500, flags=RST | ACK, ack=200, window=window)
    return wire


def late_answers(rtt: float = 0.6, count: int = 4, patient: bool = False) -> Timed:
    """A client that resets each SYN-ACK; `patient`: another attempt is completed."""
    talks = []
    for i, ends in enumerate(many(count)):
        at = 3.0 * i
        answer = ends.accepts(at + rtt)[0]
        talks.append([ends.syn(at), answer, ends.segment(at + rtt + 0.0001, False, "R", seq=1001, window=0)])
    if patient:
        talks += [[ends.syn(60.0), *ends.accepts(60.0 + 1.1 * rtt), *ends.talks(61.0 + rtt)] for ends in many(1, 45000)]
    return all_of(*talks)


def sized(silent: tuple[int, ...] = (1_300, 1_400, 1_400), answered: tuple[int, ...] = (60, 300, 900)) -> Wire:
    """Questions in datagrams of these sizes, each from a port of its own and repeated if nothing answers."""
    wire = Wire(by_time=True)
    for i, size in enumerate((*silent, *answered)):
        start, port = 10_000.0 * i, 4_000 + i
        for again in (0, 1_000, 3_000) if i < len(silent) else (0,):
            wire.udp(start + again, bytes(size), port)
        if i >= len(silent):
            wire.ip(start + 20, "10.0.0.2", "10.0.0.1", 17, struct.pack("!HHHH", 5000, port, 58, 0) + bytes(50))
    return wire


def sized_turns(
    sizes: tuple[int, ...] = (200, 1_450, 1_400, 800), every: float = 200.0, passing: int = 0, lost: int = 0
) -> Wire:
    """Requests of these sizes in one flow, so many ms apart (0.05 ms: the pieces of a message, of which the last is answered).
    None is answered above 1,400 bytes but each n-th (`passing`), nor each n-th of all (`lost`)."""
    wire = Wire(by_time=True)
    for number in range(40 if every > 1 else 120):
        size = sizes[number % len(sizes)]
        ms = 200.0 * (number // len(sizes)) + every * (number % len(sizes)) if every < 1 else every * number
        wire.udp(ms, bytes(size))
        is_passed = size <= 1_400 or (passing and number % passing == 1)
        if is_passed and not (lost and number % lost == 0):
            wire.ip(ms + 15, "10.0.0.2", "10.0.0.1", 17, struct.pack("!HHHH", 5000, 4000, 48, 0) + bytes(40))
    return wire


EXAMPLES = {
    "large-datagrams": of_wire(sized),
    "connect-given-up": of_timed(late_answers),
    "fin-ignored": of_wire(unheard_fins),
    "setup-lost": of_timed(learned),
    "split-hello": of_wire(split_hellos),
    "late-acks": of_wire(delayed),
    "dns-repeated": of_timed(asked_again),
    "sip-change-refused": of_timed(changed_calls),
}
