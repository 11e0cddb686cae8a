# SPDX-License-Identifier: Apache-2.0
"""Responses that only a close ends, or that end before their length."""

from __future__ import annotations

from typing import NamedTuple

from attempt_wire import RTT, many
from causes_requests import CLOSES, GET, GIVES_UP, Word, talk
from crafted import Timed
from finding_captures import Make, of_timed

RESET = Word(0.3, True, flags="RA")
FIRST = 1200  # bytes of a response that come at once
STREAM = b"Content-Type: text/event-stream\r\n"
HEAD = GET.replace(b"GET", b"HEAD")
BEFORE = (Word(0.0, False, GET), Word(RTT + 0.003, True, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))


class Message(NamedTuple):
    """What a response says about its length, and what it has."""

    length: int | None = 5000
    body: int = 3000
    status: bytes = b"200 OK"
    extra: bytes = b""

    def octets(self) -> bytes:
        """The bytes of the response."""
        length = b"" if self.length is None else b"Content-Length: %d\r\n" % self.length
        return b"HTTP/1.1 " + self.status + b"\r\n" + self.extra + length + b"\r\n" + bytes(self.body)


CUT = Message()


def responses(
    response: Message = CUT,
    ending: list[Word] = CLOSES,
    ask: bytes = GET,
    before: tuple[Word, ...] = (),
    lost: bool = False,
    pause: float = 0.2,
) -> Timed:
    """Connections whose last response comes in two parts, and then ends. `lost`: the capture missed the second."""
    timed: Timed = []
    for number, ends in enumerate(many(3)):
        message, at = response.octets(), 61.3 * number
        words = [*before, Word(0.1, False, ask), Word(RTT + 0.01, True, message[:FIRST])]
        if second := message[FIRST:]:
            words.append(Word(pause, True, second))
        packets = talk(ends, at, words + ending)
        timed += [packet for packet in packets if not (lost and packet[1].haslayer("Raw") and second == packet[1].load)]
    return timed


def waits(seconds: float, by_server: bool = False) -> list[Word]:
    """One end closes after a time."""
    first, *after = CLOSES if by_server else GIVES_UP
    return [first._replace(pause=seconds), *after]


EXAMPLES: dict[str, Make] = {
    "endless-response": of_timed(lambda: responses(Message(None, 300), waits(30.0))),
}
