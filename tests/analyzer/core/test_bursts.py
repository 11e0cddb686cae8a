# SPDX-License-Identifier: Apache-2.0
"""The fullest 10 µs, 100 µs and 1 ms of an interface, compared with those of every packet by brute force."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import wiretale
from capture_files import block, enhanced, interface, section, write_pcap

START_NS = 1_700_000_000 * 10**9
WINDOWS = {"burst_10us_bytes": 10_000, "burst_100us_bytes": 100_000, "burst_1ms_bytes": 1_000_000}
Packets = list[tuple[int, bytes]]


def fullest(packets: Packets, window_ns: int) -> tuple[int, int, int]:
    """Returns the bytes of the fullest window, and the number of its first and last packet."""
    most, first, total = (0, 0, 0), 0, 0
    for last, (ns, data) in enumerate(packets):
        total += len(data)
        while packets[first][0] <= ns - window_ns:
            total -= len(packets[first][1])
            first += 1
        if total > most[0]:
            most = total, first, last
    return most


def row_of(path: Path) -> dict[str, Any]:
    return wiretale.analyze(path).interfaces.rows()[0]


def with_gaps(seed: int, count: int, gaps: tuple[int, ...]) -> Packets:
    """Packets of any size, at one of these mean gaps in ns for a while, then at another."""
    dice, now, packets, gap = random.Random(seed), START_NS, [], gaps[0]
    for _ in range(count):
        if dice.random() < 0.01:
            gap = dice.choice(gaps)
        now += round(dice.expovariate(1 / gap))
        packets.append((now, bytes(dice.choice((60, 60, 590, 1514, dice.randint(60, 9000))))))
    return packets


@pytest.mark.parametrize(
    ("seed", "gaps"),
    [
        (1, (1_000, 50_000, 2_000_000)),
        (2, (800, 12_000)),  # some 1,000 packets in 1 ms: the ring grows
        (3, (100, 3_000_000)),  # 10,000 packets in 1 ms
        (4, (9_000_000,)),  # no window has two packets
        (5, (10_000, 100_000, 1_000_000)),
    ],
)
def test_the_fullest_windows_are_exact(tmp_path: Path, seed: int, gaps: tuple[int, ...]) -> None:
    packets = with_gaps(seed, 20_000, gaps)
    row = row_of(write_pcap(tmp_path / "a.pcap", packets))
    for column, window_ns in WINDOWS.items():
        most, first, last = fullest(packets, window_ns)
        assert row[column] == most, column
    assert (row["burst_ns"], row["burst_frame"]) == (packets[first][0], last + 1)


def test_a_window_excludes_its_end(tmp_path: Path) -> None:
    packets = [(START_NS, bytes(100)), (START_NS + 9_999, bytes(200)), (START_NS + 10_000, bytes(300))]
    assert row_of(write_pcap(tmp_path / "a.pcap", packets))["burst_10us_bytes"] == 500


def test_a_coarse_clock_shows_no_burst_shorter_than_its_tick(tmp_path: Path) -> None:
    packets = [(START_NS + i // 2 * 50_000, bytes(100)) for i in range(200)]
    row = row_of(write_pcap(tmp_path / "a.pcap", packets))
    assert row["clock_tick_ns"] == 50_000
    assert [row[name] for name in WINDOWS] == [None, 400, 4000]


def test_no_burst_is_known_if_a_time_is_missing(tmp_path: Path) -> None:
    path, frame = tmp_path / "a.pcapng", bytes(60)
    simple = block(3, (60).to_bytes(4, "little") + frame)
    path.write_bytes(section() + interface() + enhanced(10**15, frame) + simple)
    row = row_of(path)
    assert row["time_unknown"] == 1 and {row[name] for name in (*WINDOWS, "burst_ns", "burst_frame")} == {None}


@pytest.mark.parametrize(("back_ns", "windows_known"), [(5_000, 3), (50_000, 2), (500_000, 1), (5_000_000, 0)])
def test_a_step_back_hides_the_windows_that_are_no_longer(tmp_path: Path, back_ns: int, windows_known: int) -> None:
    times = [0, 20_000_000, 20_000_000 - back_ns, 40_000_000]
    row = row_of(write_pcap(tmp_path / "a.pcap", [(START_NS + ns, bytes(100)) for ns in times]))
    assert [row[name] for name in WINDOWS] == [None] * (3 - windows_known) + [200] * windows_known


def test_bursts_are_those_of_each_interface(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    at = (10**15 + i for i in range(6))  # µs, both interfaces by turns
    path.write_bytes(section() + interface() + interface() + b"".join(enhanced(t, bytes(100), t % 2) for t in at))
    assert [row["burst_10us_bytes"] for row in wiretale.analyze(path).interfaces.rows()] == [300, 300]


def test_more_packets_than_the_ring_holds_hide_the_burst(tmp_path: Path) -> None:
    """262,144 at one moment."""
    packets = [(START_NS + (i > 262_000), bytes(14)) for i in range(262_200)]
    row = row_of(write_pcap(tmp_path / "a.pcap", packets))
    assert {row[name] for name in WINDOWS} == {None}
