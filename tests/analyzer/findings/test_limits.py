# SPDX-License-Identifier: Apache-2.0
"""Transfers whose limit is known, because a simulated sender made them, as captured at any point of their path."""

from __future__ import annotations

import heapq
import struct
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

import wiretale
from plain_wire import ACK, MSS, PSH, Connection, Wire

SCALE = 7
RTT = 40.0  # ms
POINTS = {"sender": 0.0, "tracer": RTT / 2, "receiver": RTT - 0.02}  # RTT between capture point and sender, ms
ROOMY = 4000 << SCALE


def stamps(value: float, echo: int) -> bytes:
    return bytes([1, 1, 8, 10]) + struct.pack("!II", 5000 + int(value), echo)


@dataclass
class Sender:
    """A sender with a fixed congestion window, an application that writes, and a shaper in its host.

    Each segment is acknowledged at once.
    """

    timestamps: bool
    near: float  # RTT between capture point and sender, ms
    window: int = ROOMY  # bytes
    congestion_window: int = 10_000 * MSS
    write: int = 10**9  # bytes
    pause: float = 0.0  # from one write to the next, ms
    spacing: float = 0.0  # of segments that leave the shaper, ms
    rtt: float = RTT
    duration: float = 2000.0

    def wire(self) -> Wire:
        one = Connection(Wire(by_time=True)).open(rtt=self.rtt, near=self.near)
        una = nxt = 0
        now, limit, edge, echo = self.rtt + 10.0, self.write, self.window, 0
        departure = 0.0
        events: list[tuple[float, int, int, int]] = []  # time, TSval of the ACK, its position, its window's edge
        next_write = now + self.pause
        while now < self.duration:
            while nxt < limit and nxt + MSS <= edge and nxt - una < self.congestion_window:
                size = min(MSS, limit - nxt)
                departure = max(now, departure + self.spacing)
                options = stamps(now, echo) if self.timestamps else b""
                flags = ACK | (PSH if nxt + size == limit else 0)
                one.send(departure + self.near / 2, 0, nxt, size, flags, options=options)
                nxt += size
                received = departure + self.rtt / 2
                answer = stamps(received, 5000 + int(now)) if self.timestamps else b""
                passes = received + (self.rtt - self.near) / 2
                one.send(passes, 1, 0, 0, ACK, ack=nxt, window=self.window >> SCALE, options=answer)
                heapq.heappush(events, (received + self.rtt / 2, 5000 + int(received), nxt, nxt + self.window))
            if self.pause and (not events or next_write <= events[0][0]):
                now, limit = next_write, max(limit, nxt) + self.write
                next_write = now + self.pause
                continue
            now, echo, una, edge = heapq.heappop(events)
        return one.wire


def shares(folder: Path, sender: Sender) -> dict[str, float]:
    row = wiretale.analyze(sender.wire().write(folder / "wire.pcap")).directions.rows(0, 1)[0]
    limits = {name[6:-3]: row[name] for name in row if name.startswith("limit_")}
    assert all(value is not None for value in limits.values()), limits
    return {name: value / sum(limits.values()) for name, value in limits.items()}


EVERYWHERE = [(point, stamped) for point, stamped in product(POINTS, (True, False))]


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_a_full_window_is_seen_from_any_capture_point(tmp_path: Path, point: str, timestamps: bool) -> None:
    found = shares(tmp_path, Sender(timestamps, POINTS[point], window=160 << SCALE))
    assert found["window"] > 0.9, found


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_a_congestion_window_below_the_receive_window_is_no_full_window(
    tmp_path: Path, point: str, timestamps: bool
) -> None:
    found = shares(tmp_path, Sender(timestamps, POINTS[point], window=320 << SCALE, congestion_window=14 * MSS))
    assert found["network"] + found["slow_start"] > 0.9, found


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_an_application_that_writes_now_and_then_is_seen_from_any_capture_point(
    tmp_path: Path, point: str, timestamps: bool
) -> None:
    found = shares(tmp_path, Sender(timestamps, POINTS[point], write=20_000, pause=100.0))
    assert found["idle"] > 0.9, found


@pytest.mark.parametrize("timestamps", [True, False])
def test_a_shaper_in_the_host_of_the_sender_is_not_its_application(tmp_path: Path, timestamps: bool) -> None:
    sender = Sender(timestamps, 0.1, write=131_072, pause=40.0, spacing=0.6, rtt=0.2, congestion_window=100 * MSS)
    found = shares(tmp_path, sender)
    assert found["idle"] < 0.1, found


def test_a_window_that_a_shaper_drains_is_full(tmp_path: Path) -> None:
    found = shares(tmp_path, Sender(True, 0.1, window=160 << SCALE, spacing=0.6, rtt=0.2))
    assert found["window"] > 0.9, found


def test_a_window_that_a_shaper_drains_is_not_known_without_timestamps(tmp_path: Path) -> None:
    wire = Sender(False, 0.1, window=160 << SCALE, spacing=0.6, rtt=0.2).wire()
    row = wiretale.analyze(wire.write(tmp_path / "wire.pcap")).directions.rows(0, 1)[0]
    assert row["limit_network_ns"] is None and row["limit_window_ns"] is None


@pytest.mark.parametrize("timestamps", [True, False])
def test_pauses_behind_a_shaper_are_the_applications(tmp_path: Path, timestamps: bool) -> None:
    sender = Sender(timestamps, 0.1, write=40 * MSS, pause=100.0, spacing=0.6, rtt=0.2)
    found = shares(tmp_path, sender)
    assert 0.66 < found["idle"] < 0.86, found  # 100 ms less 40 times 0.6 ms


def test_limits_are_not_known_without_timestamps_and_rtt(tmp_path: Path) -> None:
    wire = Sender(False, POINTS["receiver"], window=160 << SCALE).wire()
    wire.packets = sorted(wire.packets)[3:]  # without the handshake
    row = wiretale.analyze(wire.write(tmp_path / "wire.pcap")).directions.rows(0, 1)[0]
    assert row["limit_network_ns"] is None and row["limit_window_ns"] is None


def test_timestamps_give_the_limits_without_a_handshake(tmp_path: Path) -> None:
    wire = Sender(True, POINTS["receiver"], window=160 << SCALE).wire()
    wire.packets = [packet for packet in sorted(wire.packets) if packet[0] > 200.0]
    row = wiretale.analyze(wire.write(tmp_path / "wire.pcap")).directions.rows(0, 1)[0]
    assert row["limit_network_ns"] is not None and row["limit_idle_ns"] == 0
