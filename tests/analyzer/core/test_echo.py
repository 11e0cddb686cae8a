# SPDX-License-Identifier: Apache-2.0
"""Echo requests as exchanges: packets crafted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, Ether, fragment

import wiretale
from crafted import NEIGHBOR, analyze_timed, write_timed
from neighbor_wire import CLIENT, GATEWAY, SERVER, Timed, asks, ping, ping6, ping_error, pong

MS = 1_000_000


def rows(folder: Path, timed: list[Timed], **options: Any) -> list[dict[str, Any]]:
    trace = analyze_timed(folder, timed, **options)
    return [dict(row) for row in trace.exchanges.rows() if row["kind"] == "icmp_echo"]


def test_answered_pings(tmp_path: Path) -> None:
    timed = [packet for n in range(3) for packet in (ping(n, n), pong(n + 0.02 + n / 1000, n))]
    first, _, last = rows(tmp_path, timed)
    assert (first["flow"], first["direction"], first["id"], first["outcome"]) == (0, 0, 0, "answered")
    assert (first["client"], first["server"], first["code"], first["attempts"]) == (CLIENT, SERVER, None, 1)
    assert (first["waited_ns"], last["waited_ns"], last["id"], last["answered_frame"]) == (20 * MS, 22 * MS, 2, 6)


def test_lost_ping(tmp_path: Path) -> None:
    timed = [ping(0, 0), pong(0.02, 0), ping(1, 1), ping(2, 2), pong(2.02, 2), asks(9, GATEWAY), asks(10, GATEWAY)]
    assert [row["outcome"] for row in rows(tmp_path, timed)] == ["answered", "unanswered", "answered"]


@pytest.mark.parametrize(("round_trip", "outcome"), [(0.02, "unanswered"), (0.7, "cut_off")])
def test_end_of_the_capture(round_trip: float, outcome: str, tmp_path: Path) -> None:
    """The capture ends 1.2 s after the last request: on a path of 0.7 s its answer may have followed."""
    timed = [ping(0, 0), pong(round_trip, 0), ping(1, 1), asks(2.2, GATEWAY), asks(2.2, CLIENT)]
    assert rows(tmp_path, timed)[1]["outcome"] == outcome


def test_late_answer(tmp_path: Path) -> None:
    """Behind a full queue, answers come after the next requests."""
    timed = [*(ping(n, n) for n in range(3)), *(pong(n + 2.5, n) for n in range(3))]
    assert [row["waited_ns"] for row in rows(tmp_path, timed)] == [2500 * MS] * 3


def test_error_answers_its_request(tmp_path: Path) -> None:
    timed = [
        ping(0, 0),
        ping(1, 1),
        ping_error(1.005, 1, 3, 1),
        ping(2, 2),
        pong(2.01, 2),
        asks(9, GATEWAY),
        asks(9, CLIENT),
    ]
    lost, failed, answered = rows(tmp_path, timed)
    assert [row["outcome"] for row in (lost, failed, answered)] == ["unanswered", "error", "answered"]
    assert (failed["code"], failed["answered_frame"], failed["waited_ns"]) == ("host unreachable", 3, 5 * MS)


def test_redirect_answers_nothing(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [ping(0, 0), ping_error(0.001, 0, 5, 1), pong(0.01, 0)])
    assert (row["outcome"], row["code"], row["answered_frame"]) == ("answered", None, 3)


def test_copies_of_a_request(tmp_path: Path) -> None:
    """Both sides of a router: the copy has the same IPv4 ID, also behind a queue and after the answer."""
    timed = [ping(0, 0), ping(0.03, 0, ttl=63), pong(0.05, 0), ping(1, 1), pong(1.0001, 1), ping(1.0002, 1, ttl=63)]
    assert [row["outcome"] for row in rows(tmp_path, timed)] == ["answered", "answered"]


def test_one_number_for_all_requests(tmp_path: Path) -> None:
    """Some programs never count: each request is one of its own."""
    timed = []
    for n in range(4):
        at, request = ping(n, 0)
        request[IP].id = 100 + n
        timed += [(at, request)] + ([pong(n + 0.01, 0)] if n != 2 else [])
    assert [row["outcome"] for row in rows(tmp_path, timed)] == ["answered", "answered", "unanswered", "answered"]


def test_both_hosts_ping(tmp_path: Path) -> None:
    timed = [ping(0, 0), pong(0.01, 0), ping(0.5, 0, SERVER, CLIENT, ident=8), pong(0.52, 0, SERVER, CLIENT, ident=8)]
    assert [(row["direction"], row["client"], row["waited_ns"]) for row in rows(tmp_path, timed)] == [
        (0, CLIENT, 10 * MS),
        (1, SERVER, 20 * MS),
    ]


def test_ipv6(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [ping6(0, 1), ping6(0.004, 1, reply=True)])
    assert (row["client"], row["server"], row["waited_ns"]) == ("fd00::10", "fd00::50", 4 * MS)


def test_broadcast_ping_is_not_kept(tmp_path: Path) -> None:
    assert not rows(tmp_path, [ping(0, 0, server="255.255.255.255"), ping(1, 1, server="224.0.0.1"), asks(9, GATEWAY)])


def test_large_pings_in_fragments(tmp_path: Path) -> None:
    timed: list[Timed] = []
    for at, large in (ping(0, 0), pong(0.01, 0)):
        packet = large[IP].copy()
        packet[IP].payload.payload.load = b"x" * 3000
        timed += [(at + i / 10_000, Ether(dst=NEIGHBOR) / piece) for i, piece in enumerate(fragment(packet, 1400))]
    (row,) = rows(tmp_path, timed)
    assert (row["outcome"], row["waited_ns"]) == ("answered", 10 * MS)


def test_more_requests_than_wait(tmp_path: Path) -> None:
    """The oldest of 1,024 is given up; each is a row."""
    timed = [ping(n / 1000, n) for n in range(1500)]
    outcomes = [row["outcome"] for row in rows(tmp_path, [*timed, pong(1.5, 1499), pong(1.6, 0)])]
    assert len(outcomes) == 1500 and outcomes[1499] == "answered" and outcomes[0] == "unanswered"


def test_rows_of_any_number_of_threads(tmp_path: Path) -> None:
    timed = []
    for n in range(3000):
        host = f"10.0.{n % 40}.50"
        timed += [ping(n / 100, n, server=host)] + ([pong(n / 100 + 0.3, n, server=host)] if n % 5 else [])
    timed.sort(key=lambda entry: entry[0])
    capture = write_timed(tmp_path / "pings.pcap", timed)
    first, *further = (b"".join(wiretale.analyze(capture, jobs=jobs).exchanges.json()) for jobs in (1, 2, 3, 8))
    assert all(other == first for other in further)
