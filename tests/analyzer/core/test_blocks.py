# SPDX-License-Identifier: Apache-2.0
"""Numbered streams: wiretale's blocks over UDP and TCP, iperf2, iperf3 and RTP, against crafted captures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scapy.all import IP, UDP, IPv6, Raw, fragment, wrpcap

import wiretale
from crafted import START, ether, write_timed
from numbered_payloads import LENGTH, TILED, block, iperf2, iperf3, jitter_of, rtp, stream
from talk import RTT, Talk

COUNTS = ("blocks", "blocks_lost", "blocks_out_of_order", "blocks_duplicate", "blocks_corrupt", "block_restarts")


def capture(
    payloads: Iterable[tuple[float, bytes]], path: Path, snaplen: int = 65535, version: int = 4
) -> wiretale.Trace:
    """One UDP flow; times in ms."""
    ip = IP(src="10.0.0.1", dst="10.0.0.2") if version == 4 else IPv6(src="fd00::1", dst="fd00::2")
    timed = ((ms / 1000, ether(ip / UDP(sport=4000, dport=4001) / Raw(payload))) for ms, payload in payloads)
    return wiretale.analyze(write_timed(path, timed, snaplen=snaplen))


def counts(trace: wiretale.Trace) -> dict[str, Any]:
    """The counters that are not 0."""
    row = trace.directions.rows()[0]
    return {name: row[name] for name in COUNTS if row[name]}


ORDER = [0, 1, 2, 3, 4, 7, 8, 10, 9, 11, 11, 12, 13]  # 5 and 6 lost, 9 late, 11 twice


def test_blocks_over_udp(tmp_path: Path) -> None:  # case 35
    sent = [(10.0 + k, block(n, sent_ns=START * 10**9 + 1_000_000 * n)) for k, n in enumerate(ORDER)]
    trace = capture(sent, tmp_path / "blocks.pcap")
    assert trace.flows.column("application") == ["blocks"]
    assert counts(trace) == {"blocks": 12, "blocks_lost": 2, "blocks_out_of_order": 1, "blocks_duplicate": 1}
    events = [(row["kind"], row["frame"]) for row in trace.events.rows()]
    assert [row["blocks"] for row in trace.events.rows() if row["kind"] == "block_lost"] == [2]
    assert ("block_lost", 6) in events and ("block_out_of_order", 9) in events and ("block_duplicate", 11) in events
    rows = trace.blocks.rows()
    assert [row["sequence"] for row in rows] == ORDER
    assert [row["verdict"] for row in rows].count("delivered") == 11
    assert rows[1]["latency_ns"] == 10_000_000 and rows[1]["stream"] == 1
    direction = trace.directions.rows()[0]
    assert (direction["block_loss_runs"], direction["block_loss_run_max"]) == (1, 2)
    assert direction["jitter_ns"] is not None


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_a_block_in_fragments_arrives_with_the_last_of_them(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Seven datagrams of three fragments: of three of them a fragment is missing, the first, the second or the last; the
    sixth comes twice, the copy without its last fragment."""
    timed, frame, spans = [], 0, {}
    for number in [*range(7), 5]:
        ip = IP(src="10.0.0.1", dst="10.0.0.2", id=100 + number)
        fragments = fragment(ip / UDP(sport=4000, dport=4001) / Raw(block(number, length=3000)), fragsize=1400)
        missing = {1: 0, 3: 1, 6: 2}.get(number) if number not in spans else 2
        begin = frame + 1
        for place in order:
            if place != missing:
                frame += 1
                timed.append((frame / 1000, ether(fragments[place])))
        spans.setdefault(number, (begin, frame))
    trace = wiretale.analyze(write_timed(tmp_path / "fragments.pcap", timed))
    rows = [(row["sequence"], row["first_frame"], row["last_frame"], row["verdict"]) for row in trace.blocks.rows()]
    assert rows == [(number, *spans[number], "delivered") for number in (0, 2, 4, 5)]
    assert counts(trace) == {"blocks": 4, "blocks_lost": 2}  # after the highest that arrived, none is known to be lost
    assert [row["complete_ns"] - row["first_ns"] for row in trace.blocks.rows()] == [2_000_000] * 4


def test_parquet_has_any_time_of_a_sender(tmp_path: Path) -> None:
    sent = [1, START * 10**9 + 5, 2**63 - 2, 2**63 - 1]
    trace = capture([(float(k), block(k, sent_ns=ns)) for k, ns in enumerate(sent)], tmp_path / "blocks.pcap")
    assert trace.blocks.column("sent_ns") == sent
    place = trace.write(tmp_path / "out") / "blocks.parquet"
    columns = "epoch_ns(sent_ns), epoch_ns(complete_ns), latency_ns"
    rows = duckdb.sql(f"select {columns} from '{place}' order by sequence").fetchall()
    more_columns = zip(trace.blocks.column("complete_ns"), trace.blocks.column("latency_ns"), strict=True)
    # The last would be infinity for DuckDB.
    assert rows == [(min(ns, 2**63 - 2), *more) for ns, more in zip(sent, more_columns, strict=True)]


def test_the_same_with_headers_alone(tmp_path: Path) -> None:
    sent = [(float(k), block(n, 1400)) for k, n in enumerate(ORDER)]
    trace = capture(sent, tmp_path / "cut.pcap", snaplen=80)
    assert counts(trace) == {"blocks": 12, "blocks_lost": 2, "blocks_out_of_order": 1, "blocks_duplicate": 1}


def test_one_late_packet_makes_jitter_and_delay_variation(tmp_path: Path) -> None:
    late = [0.5 if k == 6 else 0.0 for k in range(20)]
    sent = [(10 + k + late[k], block(k, sent_ns=START * 10**9 + 1_000_000 * k)) for k in range(20)]
    row = capture(sent, tmp_path / "late.pcap").directions.rows()[0]
    assert row["delay_variation_ns"] == 500_000 and row["jitter_ns"] == pytest.approx(1e6 * jitter_of(late), abs=2)


def test_rtp_whose_clock_is_known_has_a_delay_variation(tmp_path: Path) -> None:
    """Speech: 160 ticks of 8 kHz are 20 ms; one packet is 15 ms late, and the player must wait for it."""
    trace = capture([(20 * i + (15 if i == 30 else 0), rtp(i)) for i in range(60)], tmp_path / "x.pcap")
    row = trace.directions.rows()[0]
    assert (row["delay_variation_ns"], row["blocks_lost"]) == (15_000_000, 0)
    assert row["jitter_ns"] is not None


@pytest.mark.parametrize("flags", [0, TILED])
def test_a_wrong_pattern_is_corrupt(tmp_path: Path, flags: int) -> None:
    sent = [(float(k), block(k, length=1472, flags=flags)) for k in range(20)]
    damaged = bytearray(sent[8][1])
    damaged[1450] ^= 1
    sent[8] = (8.0, bytes(damaged))
    trace = capture(sent, tmp_path / "corrupt.pcap")
    assert counts(trace) == {"blocks": 20, "blocks_corrupt": 1}
    assert [row["verdict"] for row in trace.blocks.rows()][8] == "corrupt"


def test_a_sender_that_begins_again(tmp_path: Path) -> None:
    numbers = [*((k, 7) for k in range(10)), *((k, 8) for k in range(10))]
    sent = [(float(k), block(n, run=run, flags=n == 0, sent_ns=k * 10**6)) for k, (n, run) in enumerate(numbers)]
    trace = capture(sent, tmp_path / "again.pcap")
    assert counts(trace) == {"blocks": 20, "block_restarts": 1}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("version", [4, 6])
def test_iperf3(tmp_path: Path, wide: bool, version: int) -> None:  # case 36
    sent = [(2.0 * k, iperf3(n + 1, 2.0 * ORDER.index(n), wide)) for k, n in enumerate(ORDER)]
    trace = capture(sent, tmp_path / "iperf3.pcap", version=version)
    assert trace.flows.column("application") == ["iperf3"]
    assert counts(trace) == {"blocks": 12, "blocks_lost": 2, "blocks_out_of_order": 1, "blocks_duplicate": 1}
    assert len(trace.blocks) == 0


def test_iperf3_wraps_at_32_bits(tmp_path: Path) -> None:
    sent = [(2.0 * k, iperf3((2**32 - 20 + k) % 2**32, 2.0 * k)) for k in range(40) if k != 30]
    assert counts(capture(sent, tmp_path / "wrap.pcap")) == {"blocks": 39, "blocks_lost": 1}


def test_iperf2_with_its_end_marker(tmp_path: Path) -> None:
    sent = [(2.0 * k, iperf2(k, 2.0 * k)) for k in range(30) if k not in (10, 11)]
    sent += [(60.0 + k, iperf2(-30, 60.0)) for k in range(3)]
    trace = capture(sent, tmp_path / "iperf2.pcap")
    assert trace.flows.column("application") == ["iperf2"]
    assert counts(trace) == {"blocks": 28, "blocks_lost": 2}


@pytest.mark.parametrize("application", ["blocks", "iperf3", "rtp"])
@pytest.mark.parametrize("copies", [2, 3])
def test_a_mirror_that_stores_each_packet_again_hides_nothing(tmp_path: Path, application: str, copies: int) -> None:
    payloads = {"blocks": block, "iperf3": lambda k: iperf3(k, float(k)), "rtp": rtp}
    came = [k for k in range(1, 60) if k != 30]
    sent = [(k + 0.002 * n, payloads[application](k)) for k in came for n in range(copies)]
    trace = capture(sent, tmp_path / "mirror.pcap")
    assert counts(trace) == {"blocks": 58, "blocks_lost": 1, "blocks_duplicate": 58 * (copies - 1)}
    assert trace.flows.column("application") == [application]


@pytest.mark.parametrize("payload", [iperf3(5, 5.0), rtp(5)])
def test_one_constant_packet_belongs_to_no_application(tmp_path: Path, payload: bytes) -> None:
    trace = capture([(float(k), payload) for k in range(40)], tmp_path / "same.pcap")
    assert trace.flows.column("application") == [None]


def test_rtp_with_another_source(tmp_path: Path) -> None:
    sent = [(20.0 * k, rtp(65_530 + k)) for k in range(20) if k != 12]
    sent += [(400 + 20.0 * k, rtp(500 + k, ssrc=0xBEEF)) for k in range(20)]
    trace = capture(sent, tmp_path / "rtp.pcap")
    assert trace.flows.column("application") == ["rtp"]
    assert counts(trace) == {"blocks": 39, "blocks_lost": 1, "block_restarts": 1}
    assert trace.directions.rows()[0]["jitter_ns"] == 0


@pytest.mark.parametrize("payload", [b"\0" * 100, bytes(range(100)), b"GET / HTTP/1.1\r\n\r\n", b"WTB1" + b"\xff" * 60])
def test_other_payloads_belong_to_no_application(tmp_path: Path, payload: bytes) -> None:
    trace = capture([(float(k), payload) for k in range(40)], tmp_path / "other.pcap")
    assert trace.flows.column("application") == [None] and counts(trace) == {} and len(trace.blocks) == 0


SIZE = 1000


def blocked_talk(lost: int = -1, count: int = 6) -> Talk:
    """Blocks in segments; the segment `lost` comes 30 ms after its turn."""
    talk, content = Talk(), stream(count)
    talk.open()
    for k in range(count * LENGTH // SIZE):
        if k == lost:
            talk.missing(0)
            continue
        talk.data(30 + 0.1 * k, k * SIZE, SIZE)
        talk.packets[-1]["Raw"].load = content[k * SIZE : (k + 1) * SIZE]
    if lost >= 0:
        talk.data(30 + 0.1 * lost + 1.5 * RTT, lost * SIZE, SIZE)
        talk.packets[-1]["Raw"].load = content[lost * SIZE : (lost + 1) * SIZE]
    return talk


def test_blocks_over_tcp_wait_for_a_lost_segment(tmp_path: Path) -> None:  # case 37
    trace = wiretale.analyze(blocked_talk(lost=25).write(tmp_path))
    rows = trace.blocks.rows()
    assert [row["sequence"] for row in rows] == list(range(6))
    assert [row["verdict"] for row in rows] == ["delivered"] * 3 + ["head_of_line"] * 3
    filled = 30 + 0.1 * 25 + 1.5 * RTT
    for row in rows[3:]:
        arrived = 30 + 0.1 * (10 * row["sequence"] + 9)
        assert row["head_of_line_ns"] == pytest.approx((filled - arrived) * 1e6, abs=2000)
        assert row["complete_ns"] == pytest.approx((START + filled / 1000) * 1e9, abs=2000)
    out = trace.directions.rows()[0]
    assert (out["blocks"], out["blocks_lost"], out["blocks_head_of_line"]) == (6, 0, 3)
    assert out["head_of_line_ns_max"] == rows[3]["head_of_line_ns"]
    assert trace.flows.column("application") == ["blocks"]


def test_a_block_that_is_not_whole_is_unfinished(tmp_path: Path) -> None:
    talk = blocked_talk(count=3)
    talk.packets = talk.packets[:-2]
    rows = wiretale.analyze(talk.write(tmp_path)).blocks.rows()
    assert [row["verdict"] for row in rows] == ["delivered", "delivered", "unfinished"]
    assert rows[2]["complete_ns"] is None and rows[2]["last_frame"] is None


@pytest.mark.parametrize("snaplen", [66, 98])
def test_blocks_of_a_cut_capture(tmp_path: Path, snaplen: int) -> None:
    """98 bytes hold the block's header after the packet's; 66 do not, so their length must be given."""
    path = tmp_path / "cut.pcap"
    wrpcap(str(path), blocked_talk(lost=25).in_order(), snaplen=snaplen)
    trace = wiretale.analyze(path, block_size=LENGTH)
    assert [row["verdict"] for row in trace.blocks.rows()] == ["delivered"] * 3 + ["head_of_line"] * 3
    assert trace.blocks.rows()[0]["stream"] == (1 if snaplen == 98 else None)
    assert len(wiretale.analyze(path).blocks) == (6 if snaplen == 98 else 0)


def test_a_given_length_makes_no_shorter_block(tmp_path: Path) -> None:
    """A control connection beside the blocks, whose payload was not captured either."""
    talk = Talk().open().data(30, 0, 300).send(50, 1, 0, 200, 300).ack(51, 300)
    path = tmp_path / "control.pcap"
    wrpcap(str(path), talk.in_order(), snaplen=66)
    trace = wiretale.analyze(path, block_size=LENGTH)
    assert (len(trace.blocks), trace.flows.column("application")) == (0, [None])
    assert trace.directions.rows()[0]["blocks"] is None


def test_blocks_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from wiretale.cli import main

    path = tmp_path / "blocks.pcap"
    capture([(float(k), block(n)) for k, n in enumerate(ORDER)], path)
    assert main(["analyze", str(path), "--json"]) == 0
    (summary,) = json.loads(capsys.readouterr().out)["blocks_summary"]
    assert (summary["application"], summary["blocks"], summary["blocks_lost"]) == ("blocks", 12, 2)


def test_a_block_size_that_cannot_be_is_refused(tmp_path: Path) -> None:
    capture([(0.0, block(0))], tmp_path / "x.pcap")
    with pytest.raises(wiretale.UsageError, match="block_size 31: expected 32 to 1,073,741,824 bytes"):
        wiretale.analyze(tmp_path / "x.pcap", block_size=31)
