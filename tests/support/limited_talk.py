# SPDX-License-Identifier: Apache-2.0
"""A connection made by Scapy whose limits stand at known times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scapy.all import IP, TCP, Ether, Raw, wrpcap

BASE = 1_700_000_000
MSS = 1448


class LimitedTalk:
    """A connection whose server sends, captured beside it; times in ms."""

    def __init__(self) -> None:
        self.packets: list[Any] = []
        self.sent = 0
        self.send(0, 0, "S", 99, 0, options=[("MSS", 1460), ("WScale", 0)])
        self.send(0.01, 1, "SA", 499, 100, options=[("MSS", 1460), ("WScale", 0)])
        self.send(20, 0, "A", 100, 500)

    def send(self, ms: float, side: int, flags: str, seq: int, ack: int, size: int = 0, **fields: Any) -> None:
        ends = [("10.0.0.1", 4000), ("10.0.0.2", 80)]
        (source, sport), (target, dport) = ends[side], ends[1 - side]
        window = fields.pop("window", 60_000)
        tcp = TCP(sport=sport, dport=dport, flags=flags, seq=seq, ack=ack, window=window, **fields)
        packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=source, dst=target) / tcp
        packet = packet / Raw(b"x" * size) if size else packet
        packet.time = BASE + ms / 1000
        self.packets.append(packet)

    def burst(self, ms: float, segments: int, window: int = 60_000, room: int = 60_000) -> float:
        """Data that is acknowledged a round trip of 20 ms later; returns the time of the last ACK."""
        for number in range(segments):
            flags = "PA" if number == segments - 1 else "A"
            self.send(ms + 0.01 * number, 1, flags, 500 + self.sent, 100, MSS)
            self.sent += MSS
        for number in range(segments):
            left = segments - 1 - number
            at = ms + 20 + 0.01 * number
            self.send(at, 0, "A", 100, 500 + self.sent - left * MSS, window=window if not left else room)
        return ms + 20 + 0.01 * (segments - 1)

    def write(self, path: Path) -> Path:
        wrpcap(str(path), sorted(self.packets, key=lambda packet: packet.time))
        return path


def closed_window() -> tuple[LimitedTalk, float, float]:
    """A receiver whose window is full from the last of ten segments on, then closed, and opens 300 ms later; with both times."""
    talk = LimitedTalk()
    talk.burst(100.0, 10, window=10 * MSS)  # the next ten segments fill the window
    closed = talk.burst(200.0, 10, window=0, room=0)
    opened = closed + 300.0
    talk.send(opened, 0, "A", 100, 500 + talk.sent, window=60_000)
    talk.burst(opened + 0.2, 10)
    talk.burst(opened + 40, 1)
    return talk, closed - 20, opened
