# SPDX-License-Identifier: Apache-2.0
"""The receiving end of a TCP connection: when it acknowledges, with which SACK blocks and window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from byte_ranges import ByteRanges
from event_clock import Clock
from tcp_segment import Blocks, Endpoint, Segment
from write_captures import MILLISECOND


@dataclass
class Receiver:
    """Acknowledges every second segment, at once what is out of order or a copy (RFC 5681, 2018, 2883)."""

    clock: Clock
    end: Endpoint
    send: Callable[[Segment], None]
    buffer: int = 2048 << 7  # bytes
    every: int = 2  # segments for an acknowledgment
    offset: int = 0  # of its own stream: what it sent itself

    got: ByteRanges = field(default_factory=ByteRanges)
    expected: int = 0
    recent: list[int] = field(default_factory=list)  # starts of the segments above `expected`, latest first
    pending: int = 0
    last_ack: int = 0
    reading: bool = True
    read_to: int = 0

    def window(self) -> int:
        """Room in the buffer."""
        return self.buffer - (self.expected - self.read_to)

    def receive(self, segment: Segment) -> None:
        """A segment arrives."""
        start, end = segment.start, segment.end
        if start <= self.last_ack:  # RFC 7323 section 4.3
            self.end.echo = max(self.end.echo, segment.stamp)
        if start == end or end > self.expected + self.window():  # a probe or a keep-alive
            self.send_ack(kind="keep_alive_ack" if segment.kind == "keep_alive" else "")
            return
        copied = self.got.covers(start, end)
        plain = start == self.expected and self.got.total() == self.expected
        self.keep(start, end)
        self.pending += 1
        if copied:
            self.send_ack(((start, end),), "keep_alive_ack" if segment.kind == "keep_alive" else "")
        elif plain and self.pending < self.every:
            self.clock.after(40 * MILLISECOND, self.send_delayed_ack, self.expected)
        else:
            self.send_ack()

    def keep(self, start: int, end: int) -> None:
        """Into the buffer, and out of it when the application reads."""
        self.got.add(start, end)
        first = self.got.pairs[0]
        self.expected = first[1] if first[0] == 0 else 0
        if self.reading:
            self.read_to = self.expected
        self.recent = [offset for offset in (start, *self.recent) if offset > self.expected]

    def pause(self) -> None:
        """The application reads no more."""
        self.reading = False

    def resume(self, buffer: int, quiet: bool) -> None:
        """It reads all, the buffer may grow; unless the update is lost it tells the window."""
        self.reading, self.read_to, self.buffer = True, self.expected, buffer
        if not quiet:
            self.send_ack()

    def send_delayed_ack(self, expected: int) -> None:
        """The delayed acknowledgment, if none went since."""
        if self.pending and self.expected == expected:
            self.send_ack()

    def sack_blocks(self) -> Blocks:
        """What is above the gap; the block that changed last comes first (RFC 2018 section 4)."""
        above = [pair for pair in self.got.pairs if pair[0] > self.expected]
        order = {pair: next(i for i, s in enumerate(self.recent) if pair[0] <= s < pair[1]) for pair in above}
        return tuple(sorted(above, key=lambda pair: order[pair]))

    def send_ack(self, duplicate: Blocks = (), kind: str = "") -> None:
        """Acknowledges; a copy is told first (RFC 2883), three blocks at most beside timestamps."""
        self.pending = 0
        self.last_ack = self.expected
        blocks = (*duplicate, *self.sack_blocks())[:3]
        self.send(Segment(self.offset, self.expected, window=self.window(), blocks=blocks, kind=kind))
