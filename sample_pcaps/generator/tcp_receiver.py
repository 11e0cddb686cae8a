# SPDX-License-Identifier: Apache-2.0
"""The receiving end of a TCP connection: ACKs, SACK blocks and the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simulation import ByteRanges, Clock
from tcp_segment import Blocks, Endpoint, Segment
from write_captures import MILLISECOND


@dataclass
class Receiver:
    """Acknowledges every second segment; out-of-order data and duplicates at once (RFC 5681, 2018, 2883)."""

    clock: Clock
    end: Endpoint
    send: Callable[[Segment], None]
    buffer: int = 2048 << 7  # bytes
    every: int = 2  # segments per acknowledgment
    offset: int = 0  # bytes that this end sent

    got: ByteRanges = field(default_factory=ByteRanges)
    expected: int = 0
    recent: list[int] = field(default_factory=list)  # starts of the segments above `expected`, latest first
    pending: int = 0
    last_ack: int = 0
    reading: bool = True
    read_to: int = 0

    def window(self) -> int:
        """Returns the free space of the buffer."""
        return self.buffer - (self.expected - self.read_to)

    def receive(self, segment: Segment) -> None:
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
        """Stores the segment and delivers data in order to the application."""
        self.got.add(start, end)
        first = self.got.pairs[0]
        self.expected = first[1] if first[0] == 0 else 0
        if self.reading:
            self.read_to = self.expected
        self.recent = [offset for offset in (start, *self.recent) if offset > self.expected]

    def pause(self) -> None:
        """The application stops reading."""
        self.reading = False

    def resume(self, buffer: int, quiet: bool) -> None:
        """The application reads all data; the buffer may grow. An ACK updates the window unless `lost`."""
        self.reading, self.read_to, self.buffer = True, self.expected, buffer
        if not quiet:
            self.send_ack()

    def send_delayed_ack(self, expected: int) -> None:
        """Sends the delayed ACK if no other ACK was sent since."""
        if self.pending and self.expected == expected:
            self.send_ack()

    def sack_blocks(self) -> Blocks:
        """Returns the SACK blocks; the block that changed last must come first (RFC 2018 section 4)."""
        above = [pair for pair in self.got.pairs if pair[0] > self.expected]
        order = {pair: next(i for i, s in enumerate(self.recent) if pair[0] <= s < pair[1]) for pair in above}
        return tuple(sorted(above, key=lambda pair: order[pair]))

    def send_ack(self, duplicate: Blocks = (), kind: str = "") -> None:
        """Sends an ACK with a DSACK first if there is one (RFC 2883); timestamps leave room for three blocks."""
        self.pending = 0
        self.last_ack = self.expected
        blocks = (*duplicate, *self.sack_blocks())[:3]
        self.send(Segment(self.offset, self.expected, window=self.window(), blocks=blocks, kind=kind))
