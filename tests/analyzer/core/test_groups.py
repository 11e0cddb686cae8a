# SPDX-License-Identifier: Apache-2.0
"""Multicast groups: IGMP messages crafted one by one, and streams that stop, beside those that do not."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from scapy.all import IP, UDP, Ether, Packet, Raw

import wiretale
from capture_files import write_pcap
from crafted import analyze_timed
from plain_wire import START_NS

GROUP, MEMBER, ROUTER = "239.1.2.3", "192.0.2.10", "192.0.2.1"
Timed = tuple[float, Packet]


def igmp(at: float, source: str, target: str, body: bytes) -> Timed:
    return at, Ether(src="02:00:00:00:00:0a", dst="01:00:5e:01:02:03") / IP(
        src=source, dst=target, proto=2, ttl=1
    ) / Raw(body)


def number(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def report_2(at: float, group: str = GROUP) -> Timed:
    return igmp(at, MEMBER, group, struct.pack("!BBH", 0x16, 0, 0) + number(group))


def report_3(at: float, *records: tuple[int, str, int]) -> Timed:
    """Records: type, group, number of sources."""
    body = struct.pack("!BBHHH", 0x22, 0, 0, 0, len(records))
    for kind, group, sources in records:
        body += struct.pack("!BBH", kind, 0, sources) + number(group) + bytes(4 * sources)
    return igmp(at, MEMBER, "224.0.0.22", body)


def query(at: float, group: str = "0.0.0.0") -> Timed:
    return igmp(at, ROUTER, "224.0.0.1", struct.pack("!BBH", 0x11, 100, 0) + number(group))


def stream(until: float, after: float = 0.5) -> list[Timed]:
    """Ten packets a second, and another flow to the end of the capture."""
    ends = Ether(src="02:00:00:00:00:01", dst="01:00:5e:01:02:03")
    packet = ends / IP(src="192.0.2.99", dst=GROUP) / UDP(sport=5004, dport=5004) / Raw(bytes(100))
    other = ends / IP(src="192.0.2.99", dst="192.0.2.20") / UDP(sport=1, dport=2) / Raw(bytes(10))
    return [
        *((after + n / 10, packet) for n in range(int((until - after) * 10))),
        *((float(n), other) for n in range(0, 401, 10)),
    ]


def codes(folder: Path, timed: list[Timed]) -> dict[str, str]:
    trace = analyze_timed(folder, sorted(timed, key=lambda entry: entry[0]))
    return {row["code"]: row["sentence"] for row in trace.findings if row["code"] == "multicast-stopped"}


def test_reports_and_queries(tmp_path: Path) -> None:
    timed = [report_2(1), report_3(2, (4, GROUP, 0), (2, "239.9.9.9", 0)), query(3), report_2(4), query(5, GROUP)]
    first, second = analyze_timed(tmp_path, timed).groups.rows()
    assert (first["address"], first["reports"], first["first_frame"], first["last_frame"]) == (GROUP, 3, 1, 4)
    assert (first["query_frame"], second["address"], second["reports"], second["query_frame"]) == (5, "239.9.9.9", 1, 3)


def test_leaving_is_no_report(tmp_path: Path) -> None:
    """TO_INCLUDE without a source; with sources it wants them alone."""
    rows = analyze_timed(tmp_path, [report_3(1, (3, GROUP, 0), (3, "239.9.9.9", 2), (4, "239.8.8.8", 0))]).groups.rows()
    assert [row["address"] for row in rows] == ["239.9.9.9", "239.8.8.8"]


@pytest.mark.parametrize("size", range(34, 58))
def test_cut_reports(size: int, tmp_path: Path) -> None:
    at, packet = report_3(1, (4, GROUP, 0), (4, "239.9.9.9", 0))
    path = write_pcap(tmp_path / "cut.pcap", [(START_NS + round(at * 1e9), bytes(packet)[:size])])
    assert len(wiretale.analyze(path).groups) == max(0, (size - 42) // 8)


@pytest.mark.parametrize("report", [report_2, lambda at: report_3(at, (4, GROUP, 0))])
def test_stream_stops_without_a_query(report: object, tmp_path: Path) -> None:
    assert callable(report)
    sentence = codes(tmp_path, [report(0.2), *stream(260.3)])["multicast-stopped"]
    assert sentence.startswith(
        f"Multicast {GROUP} stopped 260 s after the last membership report: no IGMP query followed"
    )


@pytest.mark.parametrize(
    ("again", "queried", "is_said"), [(300.0, False, True), (300.0, True, False), (340.0, False, False)]
)
def test_stream_goes_on_with_the_next_report(again: float, queried: bool, is_said: bool, tmp_path: Path) -> None:
    later = [(at + 300.0, packet) for at, packet in stream(60.0)[:595]]
    timed = [report_2(0.2), *stream(260.3), report_2(again), *later, *([query(20)] if queried else [])]
    sentence = codes(tmp_path, timed).get("multicast-stopped", "")
    assert ("no IGMP query followed" in sentence and "(until the next report, 40" in sentence) == is_said


@pytest.mark.parametrize("times", [(125.0,), (0.1, 125.0, 250.0, 375.0)], ids=["a query", "queries all the time"])
def test_stream_stops_because_nobody_answers_queries(times: tuple[float, ...], tmp_path: Path) -> None:
    timed = [report_2(0.2), *map(query, times), *stream(260.3)]
    assert "report: nobody answered the IGMP queries since, so" in codes(tmp_path, timed)["multicast-stopped"]


@pytest.mark.parametrize(
    "timed",
    [
        [report_2(0.2), query(300), *stream(260.3)],
        [report_2(0.2), *stream(200)],
        [report_2(0.2), *stream(395)],
        [report_2(0.2), report_2(100), *stream(260.3)],
        stream(260.3),
    ],
    ids=["a query came later", "sooner", "it goes on", "another report", "no report"],
)
def test_other_streams(timed: list[Timed], tmp_path: Path) -> None:
    assert not codes(tmp_path, timed)
