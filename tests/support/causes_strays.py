# SPDX-License-Identifier: Apache-2.0
"""Resets: segments that came without translation, health checks, last words after the end, and answers that stop."""

from __future__ import annotations

from application_wire import IS_13, SECRET, SNI, hello
from attempt_wire import RTT, Ends
from causes_broken import of_timed
from crafted import Timed

HELLO, ANSWER = hello(1, b"", SNI), hello(2, b"", IS_13) + SECRET
CLIENT, SERVICE, BACKEND = "10.0.0.1", "10.96.0.10", "10.244.5.17"


def transfer(port: int, at: float, strays: bool = True, stray_port: int = 0, rejected: bool = True) -> Timed:
    """A download that breaks after a segment of the backend's own address came, or ends well."""
    ends, backend = Ends(port, 8080, CLIENT, SERVICE), Ends(stray_port or port, 8080, CLIENT, BACKEND)
    timed, sent, now = [ends.syn(at), *ends.accepts(at + RTT)], 5001, at + 2 * RTT
    timed.append(ends.segment(now, False, "PA", data=bytes(80), seq=1001, ack=5001))
    for number in range(12):
        now += RTT
        timed.append(ends.segment(now, True, "A", data=bytes(1_000), seq=sent, ack=1081))
        sent += 1_000
        timed.append(ends.segment(now + 0.0001, False, "A", seq=1081, ack=sent))
        if strays and number == 10:
            timed.append(backend.segment(now + 0.001, True, "A", data=bytes(1_000), seq=sent - 4_000, ack=1081))
            timed += [backend.segment(now + 0.0011, False, "R", seq=1081)] if rejected else []
    if strays and rejected:
        return [*timed, ends.segment(now + 0.5, True, "R", seq=sent)]
    return [*timed, *closed(ends, now + 0.1, 1081, sent)]


def closed(ends: Ends, at: float, client: int, server: int) -> Timed:
    """Both FINs."""
    return [
        ends.segment(at, False, "FA", seq=client, ack=server),
        ends.segment(at + RTT, True, "FA", seq=server, ack=client + 1),
        ends.segment(at + RTT + 0.001, False, "A", seq=client + 1, ack=server + 1),
    ]


def checks(
    count: int = 8,
    period: float = 2.0,
    jitter: float = 0.0,
    words: bytes = b"",
    wait: float = 0.0003,
    client: str = CLIENT,
) -> Timed:
    """Connections that their client resets after `wait` s, by a timer; `words`: after it said something."""
    timed: Timed = []
    for number in range(count):
        ends, at = Ends(41_000 + number, 9000, client), 5.0 + period * number + jitter * (number * 7 % 5)
        timed += [ends.syn(at), *ends.accepts(at + RTT)]
        timed += [ends.segment(at + RTT + 0.0002, False, "PA", data=words, seq=1001, ack=5001)] if words else []
        timed.append(ends.segment(at + RTT + wait, False, "RA", seq=1001 + len(words), ack=5001))
    return timed


def last_words(count: int = 4, size: int = 31, answered: bool = True, greeting: bytes = HELLO) -> Timed:
    """A server that closes after its answer, and resets what the client says after that."""
    timed: Timed = []
    for number in range(count):
        ends, at, sent, end = Ends(42_000 + number, 443), 5.0 + 3.0 * number, 1001 + len(greeting), 5002 + len(ANSWER)
        timed += [ends.syn(at), *ends.accepts(at + RTT)]
        timed += [
            ends.segment(at + 0.03, False, "PA", data=greeting, seq=1001, ack=5001),
            ends.segment(at + 0.05, True, "FPA", data=ANSWER, seq=5001, ack=sent),
        ]
        timed += [ends.segment(at + 0.0501, False, "A", seq=sent, ack=end)] if answered else []
        timed += [
            ends.segment(at + 0.052, False, "PA", data=bytes(size), seq=sent, ack=end if answered else 5001),
            ends.segment(at + 0.072, True, "R", seq=end),
        ]
    return timed


def idle(
    count: int = 3, pause: float = 60.0, back: bool = True, answered: bool = True, ttl: int = 0, used: bool = True
) -> Timed:
    """Connections that one end resets after a pause; the last request may wait for its answer."""
    timed: Timed = []
    for number in range(count):
        ends, at = Ends(43_000 + number, 5432), 5.0 + 3.0 * number
        timed += [ends.syn(at), *ends.accepts(at + RTT)]
        sent, received = 1001, 5001
        for turn in range(3 * used):
            now = at + 0.1 + 0.1 * turn
            timed.append(ends.segment(now, False, "PA", data=bytes(100), seq=sent, ack=received))
            sent += 100
            if answered or turn < 2:
                timed.append(ends.segment(now + RTT, True, "PA", data=bytes(500), seq=received, ack=sent))
                received += 500
            timed.append(ends.segment(now + RTT + 0.0001, not answered and turn == 2, "A", seq=sent, ack=received))
        seq, ack = (received, sent) if back else (sent, received)
        timed.append(ends.segment(at + 0.3 + pause, back, "RA", ttl, seq=seq, ack=ack))
    return timed


def half(
    came: int = 30_000,
    pause: float = 60.0,
    flags: str = "RA",
    back: bool = True,
    length: bytes = b"Content-Length: 60000",
    method: bytes = b"GET",
    lost: bool = False,
    shut: bool = False,
    unseen: bool = False,
    port: int = 80,
    count: int = 1,
) -> Timed:
    """Answers of which so many bytes come, and that one end ends after a pause; the last segment may have no ACK, the client a
    shut window, the capture a gap."""
    timed: Timed = []
    for number in range(count):
        ends, at = Ends(45_000 + number, port), 5.0 + 3.0 * number
        request = method + b" /a HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
        sent, answer = 1001 + len(request), b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n" + bytes(came)
        timed += [
            ends.syn(at),
            *ends.accepts(at + RTT),
            ends.segment(at + 0.1, False, "PA", data=request, seq=1001, ack=5001),
        ]
        now = at + 0.1 + RTT
        for start in range(0, len(answer), 1_000):
            part, end = answer[start : start + 1_000], start + 1_000 >= len(answer)
            if not (unseen and start == 5_000):
                timed.append(ends.segment(now, True, "PA" if end else "A", data=part, seq=5001 + start, ack=sent))
            if not (end and lost):
                window = 0 if end and shut else 64_000
                timed.append(
                    ends.segment(now + 0.0001, False, "A", seq=sent, ack=5001 + start + len(part), window=window)
                )
            now += 0.001
        received = 5001 + len(answer)
        seq, ack = (received, sent) if back else (sent, received)
        timed.append(ends.segment(now + pause, back, flags, seq=seq, ack=ack))
        if "F" in flags:
            timed.append(ends.segment(now + pause + RTT, not back, flags, seq=ack, ack=seq + 1))
            timed.append(ends.segment(now + pause + 2 * RTT, back, "A", seq=seq + 1, ack=ack + 1))
    return timed


EXAMPLES = {
    "answer-cut": of_timed(half),
    "untranslated": of_timed(lambda: [*transfer(40_000, 1.0), *transfer(40_001, 5.0)]),
}
