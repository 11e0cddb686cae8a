# SPDX-License-Identifier: Apache-2.0
"""Transfers whose limit is known, because a simulated sender made them, as captured at any point of their path."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import wiretale
from limited_sender import POINTS, RTT, SCALE, Sender
from plain_wire import MSS

TIMES = ("pause", "send_buffer", "delayed_ack", "window", "loss", "network", "unknown")
LINE_MS = 0.123  # of a full segment at 100 Mbit/s


def direction(folder: Path, sender: Sender) -> dict[str, Any]:
    return wiretale.analyze(sender.wire().write(folder / "wire.pcap")).directions.rows(0, 1)[0]


def shares_of(row: dict[str, Any]) -> dict[str, float]:
    times = {name: row[f"time_{name}_ns"] for name in TIMES}
    return {name: value / sum(times.values()) for name, value in times.items()}


def shares(folder: Path, sender: Sender) -> dict[str, float]:
    return shares_of(direction(folder, sender))


EVERYWHERE = [(point, stamped) for point, stamped in product(POINTS, (True, False))]


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_a_full_window_is_seen_from_any_capture_point(tmp_path: Path, point: str, timestamps: bool) -> None:
    parts = shares(tmp_path, Sender(timestamps, POINTS[point], window=160 << SCALE))
    assert parts["window"] > 0.9, parts


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_a_congestion_window_below_the_receive_window_is_no_full_window(
    tmp_path: Path, point: str, timestamps: bool
) -> None:
    parts = shares(tmp_path, Sender(timestamps, POINTS[point], congestion_window=14 * MSS, growth=0.5))
    assert parts["network"] > 0.9, parts


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_a_small_send_buffer_is_seen_from_any_capture_point(tmp_path: Path, point: str, timestamps: bool) -> None:
    row = direction(tmp_path, Sender(timestamps, POINTS[point], send_buffer=12 * MSS))
    parts = shares_of(row)
    assert parts["send_buffer"] > 0.85, parts  # the flight grows to that level first
    assert abs(row["send_buffer_bytes"] - 12 * MSS) <= 2 * MSS


def test_a_pause_between_writes_is_not_the_send_buffers(tmp_path: Path) -> None:
    row = direction(tmp_path, Sender(True, 0.1, write=20_000, pause=100.0))
    assert row["time_send_buffer_ns"] == 0 and row["send_buffer_bytes"] is None


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_an_application_that_writes_now_and_then_is_seen_from_any_capture_point(
    tmp_path: Path, point: str, timestamps: bool
) -> None:
    parts = shares(tmp_path, Sender(timestamps, POINTS[point], write=20_000, pause=100.0))
    assert parts["pause"] > 0.9, parts


@pytest.mark.parametrize("timestamps", [True, False])
def test_a_shaper_in_the_host_of_the_sender_is_not_its_application(tmp_path: Path, timestamps: bool) -> None:
    sender = Sender(timestamps, 0.1, write=131_072, pause=40.0, spacing=0.6, rtt=0.2, congestion_window=100 * MSS)
    parts = shares(tmp_path, sender)
    assert parts["pause"] < 0.1, parts


@pytest.mark.parametrize("point", [0.1, 0.18])
@pytest.mark.parametrize(
    "settings",
    [{"congestion_window": 900 * MSS}, {"window": 10_000 << SCALE}],  # a full window over a full queue is not the limit
)
def test_a_queue_of_110_ms_before_the_capture_holds_more_acks_than_are_kept(
    tmp_path: Path, point: float, settings: dict[str, int]
) -> None:
    """9 ACKs per ms: the view of the sender is that of 900 ACKs ago."""
    sender = Sender(True, point, spacing=LINE_MS, rtt=0.2, **{"window": 20_000 << SCALE, **settings})
    parts = shares(tmp_path, sender)
    assert parts["network"] > 0.85, parts


@pytest.mark.parametrize("timestamps", [True, False])
def test_a_window_over_a_busy_shaper_is_not_the_limit(tmp_path: Path, timestamps: bool) -> None:
    parts = shares(tmp_path, Sender(timestamps, 0.1, window=160 << SCALE, spacing=0.6, rtt=0.2))
    assert parts["network"] > 0.9, parts


@pytest.mark.parametrize(("point", "timestamps"), EVERYWHERE)
def test_pacing_is_not_the_window_that_it_fills(tmp_path: Path, point: str, timestamps: bool) -> None:
    # Two ACKs per RTT release 7 segments each, so the window is not full for 12 gaps of 1.2 ms.
    sender = Sender(timestamps, POINTS[point], window=160 << SCALE, ack_every=7, pace=1.2)
    parts = shares(tmp_path, sender)
    if timestamps or point == "sender":
        assert parts["network"] == pytest.approx(12 * 1.2 / RTT, abs=0.05), parts
    else:
        assert parts["unknown"] > 0.9, parts  # the path may have spread them


@pytest.mark.parametrize("point", [0.0, 0.1, 0.18])
@pytest.mark.parametrize(
    ("timestamps", "limit"),
    [
        (False, {"send_buffer": 8 * MSS}),
        (False, {"write": 4 * MSS, "pause": 3.0}),
        (True, {"write": 4 * MSS, "pause": 3.0}),
    ],
)
def test_a_shaper_and_too_little_data_are_not_known_apart(
    tmp_path: Path, timestamps: bool, point: float, limit: dict[str, Any]
) -> None:
    parts = shares(tmp_path, Sender(timestamps, point, spacing=0.6, rtt=0.2, **limit))
    assert parts["unknown"] > 0.3 and parts["network"] + parts["unknown"] > 0.99, (
        parts
    )  # the shaper was busy for the rest


@pytest.mark.parametrize("point", [0.0, 0.1, 0.18])
def test_a_send_buffer_over_a_busy_shaper_is_not_the_limit(tmp_path: Path, point: float) -> None:
    parts = shares(tmp_path, Sender(True, point, spacing=0.6, rtt=0.2, send_buffer=8 * MSS))
    assert parts["network"] > 0.9, parts


@pytest.mark.parametrize("timestamps", [True, False])
def test_little_flight_with_more_data_behind_it_is_the_networks(tmp_path: Path, timestamps: bool) -> None:
    parts = shares(tmp_path, Sender(timestamps, 0.1, congestion_window=6 * MSS, spacing=0.6, rtt=0.2))
    assert parts["network"] > 0.9, parts


def test_one_loss_does_not_explain_little_flight(tmp_path: Path) -> None:
    wire = Sender(False, 0.1, send_buffer=8 * MSS, spacing=0.6, rtt=0.2).wire()
    segment = next(packet for packet in sorted(wire.packets)[2000:] if len(packet[1]) > MSS)
    wire.packets.append((segment[0] + 3.0, *segment[1:]))
    row = wiretale.analyze(wire.write(tmp_path / "wire.pcap")).directions.rows(0, 1)[0]
    assert row["retransmissions"] == 1 and shares_of(row)["unknown"] > 0.3


@pytest.mark.parametrize("timestamps", [True, False])
def test_pauses_behind_a_shaper_are_the_applications(tmp_path: Path, timestamps: bool) -> None:
    sender = Sender(timestamps, 0.1, write=40 * MSS, pause=100.0, spacing=0.6, rtt=0.2)
    parts = shares(tmp_path, sender)
    assert 0.66 < parts["pause"] < 0.86, parts  # 100 ms less 40 times 0.6 ms


def test_limits_are_not_known_without_timestamps_and_rtt(tmp_path: Path) -> None:
    wire = Sender(False, POINTS["receiver"], window=160 << SCALE).wire()
    wire.packets = sorted(wire.packets)[3:]  # without the handshake
    row = wiretale.analyze(wire.write(tmp_path / "wire.pcap")).directions.rows(0, 1)[0]
    assert shares_of(row)["unknown"] > 0.9


def test_timestamps_give_the_limits_without_a_handshake(tmp_path: Path) -> None:
    wire = Sender(True, POINTS["receiver"], window=160 << SCALE).wire()
    wire.packets = [packet for packet in sorted(wire.packets) if packet[0] > 200.0]
    row = wiretale.analyze(wire.write(tmp_path / "wire.pcap")).directions.rows(0, 1)[0]
    assert row["time_unknown_ns"] == row["time_pause_ns"] == 0
