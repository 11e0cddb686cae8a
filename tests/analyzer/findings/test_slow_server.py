# SPDX-License-Identifier: Apache-2.0
"""Who was slow: the finding about servers, the bar at the head of `explain`, and what a direction waited for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Raw

import needs
import wiretale
from crafted import analyze_timed, ether, tls_handshake
from exchange_rows import turns_of
from placed import placed
from plain_wire import ACK, FIN, PSH, Connection, Wire
from wiretale.analyzer.findings.explain import explain
from wiretale.cli import main

RTT = 20.0  # all of it between capture point and server


def talk(
    servers: list[float], pause: float = 100.0, size: int = 1400, port: int = 40000, wire: Wire | None = None
) -> Wire:
    """Requests, captured at the client, whose responses take so many ms of server time."""
    connection = Connection(wire or Wire(), port).open(0.0, RTT)
    now, sent = 100.0, [0, 0]
    for server in servers:
        connection.send(now, 0, sent[0], 200, ACK | PSH, ack=sent[1])
        sent[0] += 200
        connection.send(now + RTT, 1, sent[1], ack=sent[0])
        connection.send(now + RTT + server, 1, sent[1], size, ACK | PSH, ack=sent[0])
        sent[1] += size
        connection.send(now + RTT + server, 0, sent[0], ack=sent[1])
        now += RTT + server + pause
    return connection.wire


def findings_in(wire: Wire, folder: Path) -> list[dict[str, Any]]:
    trace = wiretale.analyze(wire.write(folder / "talk.pcap"))
    return [row for row in placed(trace) if row["code"] == "slow-server"]


def test_a_server_is_slow(tmp_path: Path) -> None:
    (row,) = findings_in(talk([800.0] * 6), tmp_path)
    assert row["sentence"] == (
        "The server 10.0.0.2:80 took 800 ms to answer each of 6 requests (4.80 s of 5.52 s): client and network waited "
        "for it."
    )
    assert row["severity"] == "warning" and row["cost"] == pytest.approx(6 * 0.8) and row["cost_unit"] == "seconds"
    assert row["flow"] == 0 and row["evidence"].startswith("frames ") and "exchanges: server_ns" in row["evidence"]


def test_a_saving_needs_a_handshake(tmp_path: Path) -> None:
    wire = talk([800.0] * 6)
    assert [row["saving_ns"] for row in findings_in(wire, tmp_path)] == [pytest.approx(4.8e9)]
    del wire.packets[:3]
    (row,) = findings_in(wire, tmp_path)
    assert row["waited_ns"] == pytest.approx(4.8e9, rel=0.02) and row["saving_ns"] is None


def test_slow_answers_among_fast_ones_are_info(tmp_path: Path) -> None:
    (row,) = findings_in(talk([5.0] * 200 + [300.0, 250.0]), tmp_path)
    assert row["severity"] == "info" and row["cost"] == pytest.approx(0.55)
    assert "took 250 ms to 300 ms" in row["sentence"] or "each of 2 requests" in row["sentence"]


def test_a_fast_server_and_a_slow_client_have_no_finding(tmp_path: Path) -> None:
    assert not findings_in(talk([150.0] * 6, pause=3000.0), tmp_path)


def test_flows_to_one_server_are_one_finding(tmp_path: Path) -> None:
    wire = talk([500.0] * 2)
    talk([500.0] * 2, port=40001, wire=wire)
    (row,) = findings_in(wire, tmp_path)
    assert "each of 4 requests" in row["sentence"] and row["flow"] is None


def test_the_bar_says_who_was_slow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = talk([800.0] * 6).write(tmp_path / "talk.pcap")
    assert main(["analyze", str(path), "--all"]) == 0
    answer, details = capsys.readouterr().out.split("\n\n", 1)
    assert answer.startswith("The server 10.0.0.2:80 took 800 ms to answer each of 6 requests")
    assert details.startswith("Where the time went   5.52 s of 5.5")
    assert "s server 4.80 s   c client 580 ms" in details.splitlines()[2]
    assert (
        "6 requests: server 4.80 s (87%)" in details
        and "The server took 4.80 s of 5.52 s to answer 6 requests" in details
    )
    assert main(["analyze", "--all", "--json", str(path)]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["time"] == pytest.approx({"server": 4.8, "network": 0.14, "client": 0.58, "transfer": 0.0})
    turns = {"count": 6, **explained["time"]}
    assert (
        explained["transfers"][0]["turns"] == pytest.approx(turns) and explained["transfers"][0]["exchange"] == "turns"
    )


def test_a_stall_after_the_last_response_is_time_in_the_network(tmp_path: Path) -> None:
    wire = talk([50.0] * 4)
    connection, bye = Connection(wire), 100.0 + 4 * (RTT + 150.0)
    connection.send(bye, 0, 800, 280, ACK | PSH, ack=5600)
    connection.send(bye + 1.2, 1, 5600, 224, ACK | PSH, ack=1080)
    connection.send(bye + 1.8, 1, 5824, 31, ACK | PSH | FIN, ack=1080)
    connection.send(bye + 2.4, 0, 1080, 94, ACK | PSH, ack=5824)  # before the response is complete: these are no turns
    connection.send(bye + 2.8, 0, 1174, 31, ACK | PSH | FIN, ack=5856)
    for late in (250, 750, 1750, 3750):  # RTOs: the client's last data are not acknowledged
        connection.send(bye + late, 0, 1080, 125, ACK | PSH | FIN, ack=5856)
    trace = wiretale.analyze(wire.write(tmp_path / "stall.pcap"))
    turns = trace.transfers.turns
    lost_ns = turns.accounts.total_ns("loss")
    assert len(turns) == 4 and lost_ns == pytest.approx(3.75e9, abs=1e7)
    assert turns.split.network >= lost_ns


def test_a_direction_waits_for_its_application_or_for_the_other_end(tmp_path: Path) -> None:
    times = [300.0, 10.0, 500.0, 0.0, 120.0] * 3
    trace = wiretale.analyze(talk(times, pause=400.0).write(tmp_path / "talk.pcap"))
    client, server = sorted(trace.transfers.tcp(), key=lambda transfer: transfer.number)
    for transfer, pauses in ((server, sum(times)), (client, 14 * 400 + 80)):
        assert transfer.times["pause"] == pytest.approx(pauses * 1e6, abs=1e6)
        assert sum(transfer.times[name] for name in ("pause", "waiting", "connecting")) == transfer.waited_ns


def test_nobody_waits_for_what_an_application_has_not_written_yet(tmp_path: Path) -> None:
    connection = Connection(Wire(), 40000).open(0.0, RTT)
    for i in range(40):
        connection.send(100 + 50.0 * i, 0, 1000 * i, 1000, ACK | PSH)
        connection.send(100 + 50.0 * i + RTT, 1, 0, ack=1000 * (i + 1))
    trace = wiretale.analyze(connection.wire.write(tmp_path / "stream.pcap"))
    (transfer,) = trace.transfers.tcp()
    assert transfer.times["pause"] > 0.7 * transfer.waited_ns
    assert trace.transfers.turns.split.client == 0


def test_a_pause_within_a_response_is_time_of_the_server() -> None:
    """11 s without data of the server, only keep-alives of the client."""
    trace = wiretale.analyze(Path(__file__).parents[3] / "sample_pcaps/keep_alives.pcapng")
    (row,) = turns_of(trace)
    assert (
        row["response_pause_ns"] == pytest.approx(10.969e9, rel=1e-3) and row["response_ns"] > row["response_pause_ns"]
    )
    split = trace.transfers.turns.split
    assert split.server / split.total_ns > 0.98  # beside the handshake
    headlines = [explained.headline for explained in explain(trace) if explained.transfer.row["flow"] == row["flow"]]
    assert headlines == ["the server took 11 s of 11 s to answer 1 request"]


def test_latency2_was_slow_in_the_network() -> None:
    """A capture of others: SYN to SYN-ACK 0.88 s, request to its ACK 1.15 s, response 0.02 s later."""
    trace = wiretale.analyze(needs.shared("labelled/cases/latency2.pcapng"))
    split = trace.transfers.turns.split
    assert split.network / split.total_ns > 0.95 and split.network == pytest.approx(2.03e9, rel=0.02)
    assert not [row for row in trace.findings.rows() if row["code"] == "slow-server"]


@pytest.mark.parametrize("encrypted", [True, False])
def test_an_alert_that_closes_an_idle_connection_is_no_part_of_a_response(tmp_path: Path, encrypted: bool) -> None:
    """60 s after its response the server sends 24 bytes and its FIN: TLS closes, any other server may have computed."""
    hello = next(
        bytes(packet["Raw"]) for _, packet in tls_handshake(0) if packet.haslayer("Raw") and len(packet["Raw"])
    )
    hello = hello if encrypted else bytes(len(hello))
    sent, timed = [1, 1], []

    def send(ms: float, side: int, data: bytes = b"", flags: str = "PA") -> None:
        ends = [("10.0.0.1", 4000), ("10.0.0.2", 443)][:: -1 if side else 1]
        header = TCP(sport=ends[0][1], dport=ends[1][1], seq=sent[side], ack=sent[1 - side], flags=flags)
        timed.append((ms / 1000, ether(IP(src=ends[0][0], dst=ends[1][0]) / header / Raw(data))))
        sent[side] += len(data) + ("F" in flags or "S" in flags)

    send(0, 0, flags="S")
    send(RTT, 1, flags="SA")
    send(RTT, 0, flags="A")
    for i, answer in enumerate((2000, 900)):
        send(100 + 200 * i, 0, bytes(200) if i else hello)
        send(100 + 200 * i + RTT, 1, flags="A")
        send(150 + 200 * i, 1, bytes(answer)[:1400])
        send(150 + 200 * i, 0, flags="A")
    send(60_350, 1, bytes(24))
    send(60_350, 1, flags="FA")
    trace = analyze_timed(tmp_path, timed)
    row = turns_of(trace)[-1]
    assert (row["response_pause_ns"], row["response_ns"]) == ((0, 0) if encrypted else (60_000_000_000,) * 2)
    assert trace.flows.rows()[0]["application"] == ("tls" if encrypted else None)
