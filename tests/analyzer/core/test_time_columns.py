# SPDX-License-Identifier: Apache-2.0
"""Flows by columns of time (analyzer/core/export/time_columns.c) beside sums and extremes of their packets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wiretale
from plain_wire import Connection, Wire, sack
from wiretale.analyzer import _core
from wiretale.analyzer.trace import ColumnFlow

RANGES = (
    *("data", "again", "ack", "window", "sack", "flight", "room"),
    *("rtt0", "rtt1", "other", "spacing0", "spacing1"),
)
FOLLOWING = ("data", "again", "ack", "window", "sack", "other")
SCALES = {**dict.fromkeys(FOLLOWING, 0), "flight": 1, "room": 2}
Extents = dict[tuple[str, int], tuple[int, int]]  # least and greatest, by range and column


def numbers(data: bytes) -> Iterator[int]:
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            yield value >> 1 ^ -(value & 1)
            value, shift = 0, 0


def time_of(code: int) -> int:
    if code < 256:
        return code
    shift = code // 128 - 1
    return (code - 128 * shift) << shift


def decoded(streams: dict[str, bytes]) -> tuple[Extents, dict[tuple[int, int], int], list[int]]:
    """Extents, bytes of IP by direction and column, and scales of the only flow."""
    following = {name: numbers(data) for name, data in streams.items()}
    scales = [next(following["scale"]) for _ in range(5)]
    extents, rates, place = dict[tuple[str, int], tuple[int, int]](), dict[tuple[int, int], int](), -1
    before = dict.fromkeys(RANGES, 0)
    for _ in range(next(following["filled"])):
        place += 1 + next(following["column"])
        ranges = next(following["known"])
        for bit, name in enumerate(RANGES):
            if ranges >> bit & 1:
                low = before[name] + next(following[f"{name}_least"])
                high = low + next(following[f"{name}_size"])
                before[name] = high if name in FOLLOWING else low
                extents[name, place] = (
                    (low << scales[SCALES[name]], high << scales[SCALES[name]])
                    if name in SCALES
                    else (time_of(low), time_of(high))
                )
        for side in (0, 1):
            rates[side, place] = next(following[f"ip{side}"]) << scales[3 + side]
    return extents, rates, scales


def transfer(path: Path, packets: int) -> Path:
    """Segments of which some are lost and come again, with SACKs, and a pause."""
    talk = Connection(Wire()).open()
    for number in range(packets):
        at = 50 + number * 2 + 700 * (number > packets // 2)
        talk.data(at, 1000 * number, 1000)
        lost = number % 40 == 7
        blocks = sack((1000 * number, 1000 * (number + 1))) if number % 40 in range(8, 12) else b""
        behind = 1000 * (number - number % 40 + 7) if blocks else 1000 * (number + 1)
        if not lost:
            talk.ack(at + 21, behind, window=512 - number % 3, options=blocks)
        if number % 40 == 11:
            talk.data(at + 1, behind, 1000)
    return talk.wire.write(path)


def of_data(row: Any) -> dict[str, list[int]]:
    size, start = row["payload_bytes"], row["sequence"]
    if not size or start is None:
        return {}
    return {"data" if row["unique_bytes"] == size else "again": [start, start + size]}


def of_answer(row: Any) -> dict[str, list[int]]:
    ack, window, blocks = row["acknowledged"], row["window"], [row["sack_start"], row["sack_end"]]
    if ack is None:
        return {}
    return {
        "ack": [ack],
        "room": [window],
        "window": [ack + window],
        "sack": [end for end in blocks if end is not None],
    }


def expected(trace: wiretale.Trace, drawn: ColumnFlow) -> tuple[Extents, dict[tuple[int, int], int]]:
    _, begin, width, _, main, _ = drawn
    values, sums, sent, acked = (
        defaultdict[tuple[str, int], list[int]](list),
        defaultdict[tuple[int, int], int](int),
        0,
        0,
    )
    for row in trace.packets(0):
        column, side = ((row["time_ns"] or 0) - begin) // width, row["direction"]
        sums[side, column] += row["ip_bytes"]
        if row["rtt_ns"] is not None:
            values[f"rtt{1 - side}", column].append(row["rtt_ns"])
        extremes = of_data(row) if side == main else of_answer(row)
        sent = max(sent, *extremes.get("data", [0]))
        acked = max(acked, *extremes.get("ack", [0]), 0)
        if sent and extremes:
            extremes["flight"] = [sent - acked]
        for name, extents in extremes.items():
            values[name, column] += extents
    return {key: (min(extremes), max(extremes)) for key, extremes in values.items() if extremes}, dict(sums)


@pytest.mark.parametrize(("packets", "columns"), [(300, 40), (300, 7), (2_000, 128), (30, 1_340)])
def test_columns_have_the_extremes_of_their_packets(packets: int, columns: int, tmp_path: Path) -> None:
    trace = wiretale.analyze(transfer(tmp_path / "transfer.pcap", packets))
    row = trace.flows[0]
    assert row["first_ns"] is not None and row["last_ns"] is not None
    drawn = (0, row["first_ns"], (row["last_ns"] - row["first_ns"]) // columns + 1, columns, 0, 0)
    packets_table, spans, streams = trace._packets_and_columns([], 0, [drawn])
    assert not len(packets_table) and len(spans) == len(trace.time_spans(0))
    extents, rates, scales = decoded(streams)
    expected_extents, sums = expected(trace, drawn)
    assert extents.keys() == expected_extents.keys() and {name for name, _ in expected_extents} >= {
        "again",
        "sack",
        "flight",
        "rtt0",
    }
    for key, (least, most) in expected_extents.items():
        low, high = extents[key]
        room = max(most >> 7, 1 << scales[SCALES[key[0]]]) if key[0] in SCALES else most >> 7
        assert low <= least <= most <= high and least - low <= room and high - most <= room, key
    for key, size in rates.items():
        assert abs(size - sums.get(key, 0)) <= 1 << scales[3 + key[0]], key


def test_payload_so_far_and_times_between_datagrams(tmp_path: Path) -> None:
    wire = Wire()
    for number in range(100):
        wire.udp(number * 10 + number % 3, bytes(50 + number))
    trace = wiretale.analyze(wire.write(tmp_path / "datagrams.pcap"))
    row = trace.flows[0]
    assert row["first_ns"] is not None
    packets_table, _, streams = trace._packets_and_columns([0], 30, [(0, row["first_ns"], 100_000_000, 10, 0, 1)])
    extents, _, _ = decoded(streams)
    sums = [sum(50 + number for number in range(count)) for count in range(101)]
    assert [extents["data", column] for column in range(10)] == [(sums[10 * n], sums[10 * n + 10]) for n in range(10)]
    least, most = extents["spacing0", 4]
    assert 7_900_000 <= least <= 8_000_000 and 11_000_000 <= most <= 11_100_000
    assert packets_table.column("frame") == list(range(1, 31))


@pytest.mark.parametrize(
    "wrong", [[(0, 0, 0, 10, 0, 0)], [(0, 0, 1, 0, 0, 0)], [(0, 0, 1, 1, 2, 0)], [(0, 0, 1, 1, 0, 3)], [(0, 0)], [7]]
)
def test_columns_without_a_width_are_refused(wrong: list[ColumnFlow]) -> None:
    with pytest.raises((ValueError, TypeError)):
        _core.time_columns(iter([]), wrong, [], 0)


def test_more_columns_than_the_core_holds_are_refused() -> None:
    with pytest.raises(MemoryError):
        _core.time_columns(iter([]), [(0, 0, 1, 1 << 20, 0, 0), (1, 0, 1, 1, 0, 0)], [], 0)
