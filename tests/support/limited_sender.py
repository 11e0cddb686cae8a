# SPDX-License-Identifier: Apache-2.0
"""A simulated sender whose limit is known, as captured at any point of its path."""

from __future__ import annotations

import heapq
import struct
from dataclasses import dataclass

from plain_wire import ACK, MSS, PSH, Connection, Wire

SCALE = 7
RTT = 40.0  # ms
POINTS = {"sender": 0.0, "tracer": RTT / 2, "receiver": RTT - 0.02}  # RTT between capture point and sender, ms
ROOMY = 4000 << SCALE


def stamps(value: float, echo: int) -> bytes:
    return bytes([1, 1, 8, 10]) + struct.pack("!II", 5000 + int(value), echo)


@dataclass
class Sender:
    """A sender with a congestion window, a send buffer, an application that writes, pacing, and a shaper in its host.

    One ACK comes for each `ack_every` segments, at once. The congestion window grows by `growth` segments per RTT.
    """

    timestamps: bool
    near: float  # RTT between capture point and sender, ms
    window: int = ROOMY  # bytes
    congestion_window: int = 10_000 * MSS
    growth: float = 0.0
    send_buffer: int = 10**9  # bytes; a third must be free before TCP takes more, as in Linux
    write: int = 10**9  # bytes
    pause: float = 0.0  # from one write to the next, ms
    pace: float = 0.0  # of segments that TCP creates, ms
    spacing: float = 0.0  # of segments that leave the shaper, ms
    ack_every: int = 1
    rtt: float = RTT
    duration: float = 2000.0

    def wire(self) -> Wire:
        connection = Connection(Wire(by_time=True)).open(rtt=self.rtt, near=self.near)
        una = nxt = 0
        now, limit, edge, echo = self.rtt + 10.0, self.write, self.window, 0
        created = departure = 0.0
        events: list[tuple[float, int, int, int]] = []  # time, TSval of the ACK, its position, its window's edge
        next_write, buffered = now + self.pause, self.send_buffer
        while now < self.duration:
            if buffered - una <= self.send_buffer * 2 // 3:
                buffered = una + self.send_buffer
            grown = self.congestion_window + int(self.growth * (now / self.rtt - 1)) * MSS
            while nxt < min(limit, buffered) and nxt + MSS <= edge and nxt - una < grown:
                size = min(MSS, min(limit, buffered) - nxt)
                created = max(now, created + self.pace)
                departure = max(created, departure + self.spacing)
                options = stamps(created, echo) if self.timestamps else b""
                flags = ACK | (PSH if nxt + size in (limit, buffered) else 0)
                connection.send(departure + self.near / 2, 0, nxt, size, flags, options=options)
                nxt += size
                if nxt % (self.ack_every * MSS) and nxt < limit:
                    continue
                received = departure + self.rtt / 2
                answer = stamps(received, 5000 + int(created)) if self.timestamps else b""
                passes = received + (self.rtt - self.near) / 2
                connection.send(passes, 1, 0, 0, ACK, ack=nxt, window=self.window >> SCALE, options=answer)
                heapq.heappush(events, (received + self.rtt / 2, 5000 + int(received), nxt, nxt + self.window))
            if self.pause and (not events or next_write <= events[0][0]):
                now, limit = next_write, max(limit, nxt) + self.write
                next_write = now + self.pause
                continue
            now, echo, una, edge = heapq.heappop(events)
        return connection.wire
