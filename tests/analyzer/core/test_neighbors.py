# SPDX-License-Identifier: Apache-2.0
"""ARP and neighbor discovery: exchanges and neighbors of packets crafted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import ARP, Raw

import wiretale
from capture_files import block, interface, section
from crafted import START, analyze_timed
from neighbor_wire import (
    ABSENT,
    CLIENT,
    GATEWAY,
    MACS,
    OTHER_MAC,
    SERVER,
    Timed,
    advertises,
    announces,
    answers,
    asks,
    frame,
    solicits,
)

MS = 1_000_000


def rows(folder: Path, timed: list[Timed], **options: Any) -> list[dict[str, Any]]:
    trace = analyze_timed(folder, timed, **options)
    return [dict(row) for row in trace.exchanges.rows() if row["kind"] in ("arp", "nd")]


def last_packet(at: float) -> Timed:
    """Another packet, which ends the capture."""
    return at, frame(MACS[CLIENT], MACS[GATEWAY], None) / Raw(b"\x88\xb5" + bytes(50))


def test_answered_request(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [asks(0, SERVER), answers(0.0005, SERVER)])
    assert row["flow"] is None and row["direction"] is None
    assert (row["kind"], row["client"], row["server"], row["outcome"]) == ("arp", CLIENT, SERVER, "answered")
    assert (row["attempts"], row["asked_frame"], row["answered_frame"], row["code"]) == (1, 1, 2, MACS[SERVER])
    assert row["asked_ns"] == START * 10**9 and row["waited_ns"] == 500_000


def test_repeated_request_without_reply(tmp_path: Path) -> None:
    """12 requests, one each second: one exchange that waited until a second after the last of them."""
    (row,) = rows(tmp_path, [*(asks(second, ABSENT) for second in range(12)), last_packet(30)])
    assert (row["outcome"], row["attempts"], row["code"], row["answered_frame"]) == ("unanswered", 12, None, None)
    assert row["waited_ns"] == 12_000 * MS


def test_late_reply_answers_the_first_request(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [asks(0, SERVER), asks(1, SERVER), answers(1.2, SERVER)])
    assert (row["outcome"], row["attempts"], row["waited_ns"]) == ("answered", 2, 1200 * MS)


@pytest.mark.parametrize(("gap", "count"), [(5.0, 1), (5.1, 2)])
def test_repeat_after_a_pause_is_another_exchange(gap: float, count: int, tmp_path: Path) -> None:
    assert len(rows(tmp_path, [asks(0, ABSENT), asks(gap, ABSENT), last_packet(20)])) == count


@pytest.mark.parametrize(("end", "outcome"), [(0.9, "cut_off"), (1.1, "unanswered")])
def test_end_of_the_capture(end: float, outcome: str, tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [asks(0, ABSENT), last_packet(end)])
    assert row["outcome"] == outcome and row["waited_ns"] == min(round(end * 1000), 1000) * MS


def test_copies_of_a_request_are_no_repeats(tmp_path: Path) -> None:
    """A bridge and its port store each packet."""
    (row,) = rows(tmp_path, [asks(0, SERVER), asks(0.001, SERVER), answers(0.002, SERVER), answers(0.003, SERVER)])
    assert (row["attempts"], row["answered_frame"]) == (1, 3)


def test_probes_and_announcements_ask_nothing(tmp_path: Path) -> None:
    probe = frame(MACS[CLIENT], "ff:ff:ff:ff:ff:ff", None) / ARP(op=1, hwsrc=MACS[CLIENT], psrc="0.0.0.0", pdst=CLIENT)
    timed = [(0.0, probe), announces(1, CLIENT, MACS[CLIENT], 1), announces(2, CLIENT, MACS[CLIENT]), last_packet(9)]
    trace = analyze_timed(tmp_path, timed)
    assert len(trace.exchanges) == 0
    (row,) = trace.neighbors.rows()
    assert (row["address"], row["mac"], row["claims"], row["answers"]) == (CLIENT, MACS[CLIENT], 2, 0)


def test_vlans_are_networks_of_their_own(tmp_path: Path) -> None:
    timed = [
        *(asks(0, SERVER, vlan=5), asks(0.001, SERVER, vlan=6)),
        *(answers(0.002, SERVER, vlan=6), answers(0.003, SERVER, vlan=5, mac=OTHER_MAC)),
    ]
    trace = analyze_timed(tmp_path, timed)
    assert [row["code"] for row in trace.exchanges.rows()] == [OTHER_MAC, MACS[SERVER]]
    assert trace.neighbors.total("conflicts") == 0
    assert sorted(row["vlan"] for row in trace.neighbors.rows() if row["answers"]) == [5, 6]


def test_two_owners_answer_one_request(tmp_path: Path) -> None:
    timed = [asks(0, SERVER), answers(0.0005, SERVER), answers(0.001, SERVER, mac=OTHER_MAC)]
    trace = analyze_timed(tmp_path, timed)
    owners = [row for row in trace.neighbors.rows() if row["address"] == SERVER]
    assert [(row["mac"], row["conflicts"], row["conflict_frame"], row["other_frame"]) for row in owners] == [
        (MACS[SERVER], 1, 2, 3),
        (OTHER_MAC, 1, 3, 2),
    ]
    assert [row["code"] for row in trace.exchanges.rows()] == [MACS[SERVER]]


def test_another_owner_later_is_no_conflict(tmp_path: Path) -> None:
    timed = [asks(0, SERVER), answers(0.001, SERVER), asks(9, SERVER), answers(9.001, SERVER, mac=OTHER_MAC)]
    assert analyze_timed(tmp_path, timed).neighbors.total("conflicts") == 0


def test_neighbor_discovery(tmp_path: Path) -> None:
    timed = [solicits(0, "fd00::50"), advertises(0.002, "fd00::50"), solicits(1, "fd00::99"), last_packet(9)]
    answered, silent = rows(tmp_path, timed)
    assert (answered["kind"], answered["client"], answered["server"]) == ("nd", "fd00::10", "fd00::50")
    assert (answered["outcome"], answered["code"], answered["waited_ns"]) == ("answered", MACS["fd00::50"], 2 * MS)
    assert (silent["server"], silent["outcome"]) == ("fd00::99", "unanswered")


def test_forwarded_advertisement_is_none(tmp_path: Path) -> None:
    """A router has forwarded it: RFC 4861 section 7.1.2 discards it."""
    (row,) = rows(tmp_path, [solicits(0, "fd00::50"), advertises(0.002, "fd00::50", hop_limit=254), last_packet(9)])
    assert row["outcome"] == "unanswered"


@pytest.mark.parametrize("size", range(14, 42))
def test_cut_requests(size: int, tmp_path: Path) -> None:
    """No byte behind the capture is read."""
    at, packet = asks(0, SERVER)
    trace = analyze_timed(tmp_path, [(at, type(packet)(bytes(packet)[:size])), last_packet(9)])
    assert len(trace.exchanges) == 0


def test_rows_of_any_number_of_threads(tmp_path: Path) -> None:
    """Many pairs, in an order that no thread could keep by itself."""
    hosts = [f"10.0.{i // 250}.{i % 250 + 1}" for i in range(700)]
    timed = []
    for number, host in enumerate(hosts * 3):
        at = number * 0.01
        timed.append(asks(at, host, mac="02:00:00:00:00:0a"))
        if number % 3:
            timed.append(answers(at + 0.001, host, mac=f"02:00:00:01:{number % 700 // 256:02x}:{number % 256:02x}"))
    traces = [analyze_timed(tmp_path, timed, jobs=jobs) for jobs in (1, 2, 3, 8)]
    for name in ("exchanges", "neighbors"):
        first, *further = (b"".join(trace.table(name).json()) for trace in traces)
        assert all(other == first for other in further), name
    assert len(traces[0].exchanges) == 2100


def test_without_times(tmp_path: Path) -> None:
    """Simple packet blocks: exchanges have frames alone."""
    packets = [bytes(packet) for _, packet in (asks(0, SERVER), answers(0, SERVER))]
    blocks = [block(3, len(packet).to_bytes(4, "little") + packet) for packet in packets]
    path = tmp_path / "untimed.pcapng"
    path.write_bytes(section() + interface() + b"".join(blocks))
    (row,) = wiretale.analyze(path).exchanges.rows()
    assert (row["outcome"], row["asked_ns"], row["waited_ns"], row["answered_frame"]) == ("answered", None, None, 2)
