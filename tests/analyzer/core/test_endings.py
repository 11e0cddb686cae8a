# SPDX-License-Identifier: Apache-2.0
"""How flows end and pause, and packets that pass again and again: crafted one by one, beside what looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, UDP, IPv6, Packet, Raw

import wiretale
from crafted import analyze_timed, ether
from talk import Talk

MS = 1_000_000
Rows = list[dict[str, Any]]


def opened(**more: Any) -> Talk:
    """A connection with a request of 1,000 bytes at 20 ms, acknowledged at 40 ms."""
    return Talk(**more).open().data(20.1, 0).ack(40, 1000)


def endings_of(talk: Talk, folder: Path) -> Rows:
    return [dict(row) for row in wiretale.analyze(talk.write(folder)).endings.rows()]


def test_a_reset_shows_who_sent_it(tmp_path: Path) -> None:
    """By a device: another TTL, an ID out of the run of the host, sooner than the host could answer, which goes on."""
    talk = opened().data(60, 1000).send(60.4, 1, 0, ack=None, flags="R", ttl=61, ip_id=0, window=0)
    talk.packets[-1]["TCP"].options = []
    talk.send(80, 1, 0, 300, 2000).send(80.1, 0, 2000, ack=300)
    (row,) = endings_of(talk, tmp_path)
    assert (row["direction"], row["kind"], row["frame"]) == (1, "reset", 7)
    assert (row["ttl"], row["ttl_before_min"], row["ttl_before_max"]) == (61, 64, 64)
    assert (row["ip_id"], row["ip_id_step"], row["window"], row["with_ack"]) == (0, None, 0, False)
    assert row["reply_ns"] == row["idle_ns"] == pytest.approx(0.4 * MS, rel=0.01)
    assert (row["unacked_bytes"], row["packets_after"], row["late_bytes"], row["late_ns"]) == (1000, 1, 0, None)


def test_a_reset_of_a_live_socket_is_in_the_run_of_its_host(tmp_path: Path) -> None:
    talk = opened().send(41, 1, 0, 500, 1000).send(45, 1, 500, ack=1000, flags="RA")
    talk.data(46, 1000, 700, ack=500)
    (row,) = endings_of(talk, tmp_path)
    assert (row["ip_id_step"], row["window"], row["with_ack"], row["timestamps"]) == (1, 8192, True, True)
    assert (row["unacked_bytes"], row["late_bytes"]) == (0, 700)
    assert row["late_ns"] == pytest.approx(1 * MS)


def test_an_end_whose_ids_do_not_rise_has_no_step(tmp_path: Path) -> None:
    talk = opened(ids=False).send(45, 1, 0, ack=1000, flags="RA")
    assert endings_of(talk, tmp_path)[0]["ip_id_step"] is None


def test_a_usual_close_has_no_row(tmp_path: Path) -> None:
    talk = opened().send(41, 1, 0, 500, 1000, flags="FPA").send(42, 0, 1000, ack=501, flags="FA").ack(62, 1001)
    assert endings_of(talk, tmp_path) == []


def test_a_fin_that_crossed_a_request_does_not_acknowledge_it(tmp_path: Path) -> None:
    talk = opened().data(5000, 1000, 300).send(5001, 1, 0, ack=1000, flags="FA").send(5002, 0, 1300, ack=1, flags="A")
    talk.send(5020, 1, 1, ack=None, flags="R", window=0)
    fin, reset = endings_of(talk, tmp_path)
    assert (fin["kind"], fin["unacked_bytes"], fin["acknowledged"]) == ("fin", 300, True)
    assert (reset["kind"], reset["with_ack"]) == ("reset", False)


@pytest.mark.parametrize("fin_ms", [None, 3471, 3469])  # of the other end; the last overtook its data
def test_a_half_that_stays_open_has_the_time_of_the_fin(fin_ms: float | None, tmp_path: Path) -> None:
    talk = opened().send(50, 0, 1000, flags="FA").ack(70, 1001).send(3470, 1, 0, 1200, 1001)
    if fin_ms:
        talk.send(fin_ms, 1, 1200, ack=1001, flags="FA")
    (row,) = endings_of(talk, tmp_path)
    assert (row["direction"], row["late_bytes"], row["acknowledged"], row["packets_after"]) == (0, 1200, True, None)
    assert row["late_ns"] == pytest.approx(3420 * MS)


def pause_of(talk: Talk, folder: Path) -> tuple[float | None, int | None, float | None]:
    """Seconds, the packet that ended the pause, and the longest pause before."""
    (row,) = wiretale.analyze(talk.write(folder)).flows.rows()
    pause_ns, before_ns = row["pause_ns"], row["pause_before_ns"]
    return pause_ns and pause_ns / 1e9, row["pause_frame"], before_ns and before_ns / 1e9


def test_the_pause_before_a_silence_is_not_one_of_its_timeouts(tmp_path: Path) -> None:
    talk = opened().data(9_000, 1000).ack(9_020, 2000)
    for ms in (39_020, 39_220, 39_620, 40_420, 42_020, 45_220, 51_620, 64_420, 90_020, 141_220):
        talk.data(ms, 2000)
    pause, frame, before = pause_of(talk, tmp_path)
    assert (pause, frame, before) == (pytest.approx(30), 8, pytest.approx(8.96))


def test_keep_alives_without_an_answer_do_not_end_the_pause_again(tmp_path: Path) -> None:
    talk = opened()
    for ms in (60_000, 135_000, 210_000):
        talk.send(ms, 0, 999)
    assert pause_of(talk, tmp_path)[:2] == (pytest.approx(59.96), 6)


def test_a_flow_without_a_pause_has_none(tmp_path: Path) -> None:
    assert pause_of(opened().data(1_030, 1000).ack(1_040, 2000), tmp_path) == (None, None, None)


def looping(
    passes: int, step: int = 2, first: int = 62, version: int = 4, number: int = 7
) -> list[tuple[float, Packet]]:
    """A datagram that passes again and again."""
    ends = (IPv6, ("2001:db8::1", "2001:db8::2")) if version == 6 else (IP, ("192.0.2.1", "192.0.2.2"))
    packets = []
    for i in range(passes):
        network = ends[0](src=ends[1][0], dst=ends[1][1])
        setattr(network, "hlim" if version == 6 else "ttl", first - step * i)
        if version == 4:
            network.id = number
        packets.append((number + i * 0.001, ether(network / UDP(sport=9, dport=9) / Raw(bytes(60)))))
    return packets


@pytest.mark.parametrize("version", [4, 6])
def test_a_packet_that_circles_is_counted_with_its_passes(version: int, tmp_path: Path) -> None:
    timed = [*looping(30, version=version), *looping(30, version=version, number=8)]
    (row,) = analyze_timed(tmp_path, timed).loops.rows()
    assert (row["packets"], row["passes_max"], row["ttl_step"], row["first_frame"]) == (2, 30, 2, 5)


def test_packets_that_circle_at_the_same_time_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    timed = sorted(
        (at % 1 + number / 10_000, packet) for number in range(4) for at, packet in looping(20, number=number)
    )
    (row,) = analyze_timed(tmp_path, timed).loops.rows()
    assert (row["packets"], row["passes_max"]) == (4, 20)


def test_copies_at_both_sides_of_two_routers_are_no_loop(tmp_path: Path) -> None:
    timed = [entry for number in range(40) for entry in looping(3, step=1, number=number + 1)]
    assert len(analyze_timed(tmp_path, timed).loops) == 0


def test_probes_of_traceroute_are_no_loop(tmp_path: Path) -> None:
    timed = [entry for number in range(3) for entry in reversed(looping(12, step=1, first=12, number=number + 1))]
    timed = [(float(i), packet) for i, (_, packet) in enumerate(timed)]
    assert len(analyze_timed(tmp_path, timed).loops) == 0
