# SPDX-License-Identifier: Apache-2.0
"""Packets of an index are the rows of Trace.packets(); those that stand for many keep first, last and extremes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wiretale
from plain_wire import Connection, Wire
from sample_sets import FEW_SAMPLES
from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.index import pyramid, queries
from wiretale.analyzer.index.capture_index import DRAWN_TABLES, INDEX_FILE, CaptureIndex, write_index
from wiretale.analyzer.index.packet_store import PACKET_COLUMNS, TICK
from wiretale.analyzer.index.queries import Packets, Queries
from wiretale.analyzer.options import NO_OPTIONS, ReadingMode

Row = dict[str, int | None]
NULLABLE = {name for table, _, columns in _core.schemas() if table == "packets" for name, *_, null in columns if null}
DRAWN_COLUMNS = (
    *("sequence", "acknowledged", "window", "payload_bytes", "rtt_ns", "time_ns"),
    *("flight_bytes", "opposite_flight_bytes"),
)
LONG = 9000  # packets of the long transfer, more than RAW


def transfer(path: Path, count: int = LONG // 2) -> Path:
    """A long transfer with retransmissions, beside short ones that begin later."""
    wire = Wire()
    long = Connection(wire).open()
    at = 0
    for n in range(count):
        size = 200 + (n * 7919) % 1200
        long.data(30.0 + n, at, size)
        if n % 50 == 20:
            long.data(30.3 + n, at, size)
        at += size
        long.ack(30.6 + n, at, window=300 + n % 100)
    for n in range(20):
        short = Connection(wire, port=41000 + n).open(100.0 * n)
        short.data(100.0 * n + 30, 0, 1000).ack(100.0 * n + 50, 1000)
    return wire.write(path)


def rows(packets: Packets) -> list[Row]:
    return [dict(zip(PACKET_COLUMNS, row, strict=True)) for row in packets.rows]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> wiretale.Trace:
    return wiretale.analyze(transfer(tmp_path_factory.mktemp("captures") / "transfer.pcap"))


@pytest.fixture(scope="module")
def store(trace: wiretale.Trace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queries]:
    folder = tmp_path_factory.mktemp("index")
    write_index(trace, folder, 0)
    with closing(Queries(CaptureIndex(folder))) as opened:
        yield opened


def in_order(trace: wiretale.Trace, flow: int, begin: int | None = None, end: int | None = None) -> list[Row]:
    """The packets of a flow in a range, by time and frame."""
    packets = [
        row
        for row in trace.packets(flow).rows()
        if (begin is None or row["time_ns"] >= begin) and (end is None or row["time_ns"] <= end)
    ]
    return sorted(packets, key=lambda row: (row["time_ns"], row["capture"], row["frame"]))


FIELDS = [("flow", "I", 0, 1), ("direction", "B", 0, 1)]
FIELDS_OF = {
    "series": [("start_ns", "d", 5, 1_000_000), ("rtt_ns", "f", 0, 1_000_000), ("flight_bytes", "f", 0, 1)],
    "events": [
        ("time_ns", "d", 7, 10),
        ("frame", "d", 0, 1),
        *((name, "B", 0, 1) for name in ("kind", "place", "spurious")),
    ],
    "blocks": [("sequence", "d", 0, 1), ("verdict", "B", 0, 1), ("stream", "H", 0, 1)],
    "datagrams": [("first_ns", "d", 9, 1_000_000), ("fragments", "I", 0, 1)],
    "time_spans": [("start_ns", "d", 9, 1_000), ("end_ns", "d", 9, 1_000), ("part", "B", 0, 1), ("merged", "B", 0, 1)],
}


@FEW_SAMPLES
def test_columns_are_those_of_the_analysis(sample: Path, tmp_path: Path) -> None:
    """Of each flow and table: the bytes that the core packs for a report."""
    trace = wiretale.analyze(sample)
    write_index(trace, tmp_path, 0)
    with closing(Queries(CaptureIndex(tmp_path))) as store:
        for flow in [*range(min(20, len(trace.flows))), 10**9]:
            for name in DRAWN_TABLES:
                fields = [*(FIELDS if name != "datagrams" else FIELDS[:1]), *FIELDS_OF[name]]
                columns = [column.tobytes() for column in store.columns(name, flow, fields)]
                assert columns == trace.table(name)._packed_columns(fields, [flow]), (name, flow)
            sizes = {2 * row["flow"] + row["direction"]: row for row in trace.directions.rows() if row["flow"] == flow}
            larger = {
                number
                for number, row in sizes.items()
                if row["wire_mss"] and row["wire_segments"] > row["data_packets"]
            }
            assert store.segment_sizes(flow) == {number: sizes[number]["wire_mss"] for number in larger}


def test_all_packets_of_each_flow(trace: wiretale.Trace, store: Queries) -> None:
    for flow in range(len(trace.flows)):
        expected = in_order(trace, flow)
        answer = store.packets(flow, most=10**9)
        assert rows(answer) == expected
        assert (answer.of, answer.bucket) == (len(expected), 1)


def test_ranges_are_exact(trace: wiretale.Trace, store: Queries) -> None:
    expected = in_order(trace, 0)
    assert len(expected) > 8 * TICK
    times = [row["time_ns"] for row in expected]
    for first, last in ((0, 0), (1, TICK), (TICK, TICK), (TICK - 1, TICK + 1), (4000, 4100), (len(times) - 1,) * 2):
        begin, end = times[first], times[last]
        for more in (0, 1):
            in_range = rows(store.packets(0, begin - more, end + more, most=10**9))
            assert in_range == in_order(trace, 0, begin - more, end + more)
    assert rows(store.packets(0, times[0] - 10**9, times[0] - 1)) == []
    assert rows(store.packets(0, times[-1] + 1, times[-1] + 10**9)) == []
    assert rows(store.packets(0, times[50], times[20])) == []


def test_a_flow_that_does_not_exist(store: Queries) -> None:
    assert store.packets(10**6) == Packets([], 0, 1)
    assert store.beginning(10**6) == []


def extremes(packets: list[Row], direction: int, name: str) -> tuple[int, int] | None:
    values = [row[name] for row in packets if row["direction"] == direction and row[name] is not None]
    return (min(values), max(values)) if values else None


def check_outline(expected: list[Row], answer: Packets) -> None:
    """Packets that stand for buckets are true packets, at most a few of each, with what must not be lost."""
    outline, frames = rows(answer), {row["frame"] for row in rows(answer)}
    by_frame = {row["frame"]: row for row in expected}
    assert answer.of == len(expected)
    assert answer.bucket > 1
    assert len(outline) < len(expected)
    assert [row["frame"] for row in outline] == [row["frame"] for row in expected if row["frame"] in frames]
    assert all(row == by_frame[row["frame"]] for row in outline)
    for direction in (0, 1):
        for name in DRAWN_COLUMNS:
            assert extremes(outline, direction, name) == extremes(expected, direction, name), (direction, name)


def test_many_packets_keep_their_outline(trace: wiretale.Trace, store: Queries) -> None:
    expected = in_order(trace, 0)
    answer = store.packets(0)
    check_outline(expected, answer)
    assert answer.of // answer.bucket < queries.BUCKETS
    events = {row["frame"] for row in trace.events.rows() if row["flow"] == 0}
    assert events
    assert len(events & {row["frame"] for row in rows(answer)}) == len(events)  # no bucket has three


def test_levels_of_a_large_flow(trace: wiretale.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pyramid, queries):
        monkeypatch.setattr(module, "LEVELLED", 1000)
        monkeypatch.setattr(module, "FIRST_SHIFT", 2)
    monkeypatch.setattr(queries, "BUCKETS", 100)
    write_index(trace, tmp_path, 0)
    with closing(Queries(CaptureIndex(tmp_path))) as store:
        expected = in_order(trace, 0)
        for begin, end in ((0, len(expected)), (1000, 8000), (3000, 5000)):
            part = expected[begin:end]
            answer = store.packets(0, part[0]["time_ns"], part[-1]["time_ns"], most=500)
            assert answer.of == len(part)
            outline = [row["frame"] for row in rows(answer)]
            assert len(part) // 400 < len(outline) < len(part)
            assert set(outline) <= {row["frame"] for row in part}
            if end == len(expected):
                check_outline(part, answer)


def test_the_beginning_of_a_flow(trace: wiretale.Trace, store: Queries) -> None:
    first = in_order(trace, 0)[:3]
    assert store.beginning(0) == [(row["capture"], row["frame"]) for row in first]


def test_rows_pack_as_those_of_an_analysis(trace: wiretale.Trace, store: Queries) -> None:
    packets = trace.packets(3)
    assert _core.packet_rows(store.packets(3).rows).packet_streams([3], 5) == packets._packet_streams([3], 5)


def test_rows_that_are_no_packets() -> None:
    good = (0,) * len(PACKET_COLUMNS)
    nulls = [None if name in NULLABLE else 0 for name in PACKET_COLUMNS]
    assert len(_core.packet_rows([good, tuple(nulls)])) == 2
    rows: list[tuple[Any, type[Exception]]] = [
        ([good[1:]], TypeError),
        ([list(good)], TypeError),
        ([(0, 2, *good[2:])], ValueError),
        ([(None, *good[1:])], ValueError),
        ([(*good[:5], None, *good[6:])], ValueError),  # ip_bytes
        ([("0", *good[1:])], TypeError),
        ([(2**70, *good[1:])], OverflowError),
        (good, TypeError),
    ]
    for wrong, error in rows:
        with pytest.raises(error):
            _core.packet_rows(wrong)


def test_packets_that_are_taken_between_steps(trace: wiretale.Trace) -> None:
    core = _core.Analysis(trace.inputs, trace.inputs, NO_OPTIONS, ReadingMode(packets="all", packet_rows_most=2**40))
    parts = []
    more = True
    while more:
        more = core.step(500)
        parts.append(core.take_packets())
    core.finish()
    assert len([part for part in parts if len(part)]) >= 1
    packets = [row for part in parts for row in part.rows()]
    assert packets == trace.packets().rows()
    assert len(core.table("packets")) == 0


def test_a_capture_that_changed_is_named(samples: Path, tmp_path: Path) -> None:
    capture = Path(shutil.copy(samples / "timeouts.pcap", tmp_path))
    (tmp_path / "index").mkdir()
    write_index(wiretale.analyze(capture), tmp_path / "index", 0)
    index = CaptureIndex(tmp_path / "index")
    index.check()
    with pytest.raises(UsageError, match=r"timeouts\.pcap: has no frame 9,999 \(1 to \d+\)"):
        index.cut(0, 9999)
    with pytest.raises(UsageError, match="there is no interface 1"):
        index.cut(1, 1)
    with capture.open("ab") as file:
        file.write(bytes(16))
    with pytest.raises(InputError, match=r"timeouts\.pcap: changed since it was analyzed"):
        index.cut(0, 1)
    capture.unlink()
    with pytest.raises(InputError, match=r"timeouts\.pcap: is no longer there"):
        index.check()


def test_an_index_of_another_version(tmp_path: Path) -> None:
    (tmp_path / INDEX_FILE).write_text('{"format": 0}')
    with pytest.raises(InputError, match="another version"):
        CaptureIndex(tmp_path)
    (tmp_path / INDEX_FILE).write_text("{")
    with pytest.raises(InputError, match=INDEX_FILE):
        CaptureIndex(tmp_path)
