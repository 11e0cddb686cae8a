# SPDX-License-Identifier: Apache-2.0
"""Who was slow: the finding about servers, the bar at the head of `explain`, and idle time by its cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from plain_wire import ACK, PSH, Connection, Wire
from wiretale.cli import main

RTT = 20.0  # all of it between capture point and server


def talk(
    servers: list[float], pause: float = 100.0, size: int = 1400, port: int = 40000, wire: Wire | None = None
) -> Wire:
    """Requests, captured at the client, whose responses take so many ms of server time."""
    one = Connection(wire or Wire(), port).open(0.0, RTT)
    now, sent = 100.0, [0, 0]
    for server in servers:
        one.send(now, 0, sent[0], 200, ACK | PSH, ack=sent[1])
        sent[0] += 200
        one.send(now + RTT, 1, sent[1], ack=sent[0])
        one.send(now + RTT + server, 1, sent[1], size, ACK | PSH, ack=sent[0])
        sent[1] += size
        one.send(now + RTT + server, 0, sent[0], ack=sent[1])
        now += RTT + server + pause
    return one.wire


def found(wire: Wire, folder: Path) -> list[dict[str, Any]]:
    trace = wiretale.analyze(wire.write(folder / "talk.pcap"))
    return [row for row in trace.findings.rows() if row["code"] == "slow-server"]


def test_a_server_is_slow(tmp_path: Path) -> None:
    (row,) = found(talk([800.0] * 6), tmp_path)
    assert row["sentence"] == (
        "The server 10.0.0.2:80 took 800 ms to answer each of 6 requests (4.80 s of 5.44 s): client and network waited "
        "for it."
    )
    assert row["severity"] == "warning" and row["cost"] == pytest.approx(6 * 0.6) and row["cost_unit"] == "seconds"
    assert row["flow"] == 0 and row["evidence"].startswith("frames ") and "turns: server_ns" in row["evidence"]


def test_slow_answers_among_fast_ones_are_info(tmp_path: Path) -> None:
    (row,) = found(talk([5.0] * 200 + [300.0, 250.0]), tmp_path)
    assert row["severity"] == "info" and row["cost"] == pytest.approx(0.15)
    assert "took 250 ms to 300 ms" in row["sentence"] or "each of 2 requests" in row["sentence"]


def test_a_fast_server_and_a_slow_client_have_no_finding(tmp_path: Path) -> None:
    assert not found(talk([150.0] * 6, pause=3000.0), tmp_path)


def test_flows_to_one_server_are_one_finding(tmp_path: Path) -> None:
    wire = talk([500.0] * 2)
    talk([500.0] * 2, port=40001, wire=wire)
    (row,) = found(wire, tmp_path)
    assert "each of 4 requests" in row["sentence"] and row["flow"] is None


def test_the_bar_says_who_was_slow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = talk([800.0] * 6).write(tmp_path / "talk.pcap")
    assert main(["explain", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Time of 6 turns")
    assert "server 4.80 s (88.2%)" in shown.splitlines()[2] and "client 500 ms (9.19%)" in shown.splitlines()[2]
    assert "6 turns: server 4.80 s (88.2%)" in shown
    assert main(["explain", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["time"] == pytest.approx({"server": 4.8, "network": 0.14, "client": 0.5, "transfer": 0.0})
    assert told["transfers"][0]["turns"] == {"count": 6, **told["time"]} and told["transfers"][0]["exchange"] == "turns"


def test_idle_time_is_divided(tmp_path: Path) -> None:
    """The server's direction is idle while it computes, and while it waits for the next request."""
    trace = wiretale.analyze(talk([300.0] * 20, pause=400.0).write(tmp_path / "talk.pcap"))
    (one,) = (one for one in trace.transfers.tcp() if one.row["direction"] == 1)
    idle = one.limits["limit_idle_ns"]
    parts = trace.transfers.turns.idle_parts(one)
    assert sum(parts.values()) == pytest.approx(idle)
    assert parts["the server"] == pytest.approx(300 / 720 * idle, rel=0.04)
    assert parts["waiting for requests"] == pytest.approx(420 / 720 * idle, rel=0.04)


def test_latency2_was_slow_in_the_network() -> None:
    """A capture of others: SYN to SYN-ACK 0.88 s, request to its ACK 1.15 s, response 0.02 s later."""
    trace = wiretale.analyze(needs.shared("labelled/cases/latency2.pcapng"))
    split = trace.transfers.turns.split
    assert split.network / split.whole > 0.95 and split.network == pytest.approx(2.03e9, rel=0.02)
    assert not [row for row in trace.findings.rows() if row["code"] == "slow-server"]
