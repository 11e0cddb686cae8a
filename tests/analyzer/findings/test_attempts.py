# SPDX-License-Identifier: Apache-2.0
"""Connection attempts: scans, handshakes that came about late, and those that never did; and real captures of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from placed import placed
from plain_wire import ACK, PSH, RST, SYN, Connection, Wire, syn_options
from transfer_wires import end, port_scan, probe
from wiretale.analyzer.findings import attempts

Row = dict[str, Any]
Found = Callable[[Wire], dict[str, Row]]


@pytest.fixture
def findings_of(tmp_path: Path) -> Found:
    """The first finding of each code."""

    def run(wire: Wire) -> dict[str, Row]:
        return by_code(wire.write(tmp_path / "wire.pcap"))

    return run


def by_code(path: Path) -> dict[str, Row]:
    first: dict[str, Row] = {}
    for row in placed(wiretale.analyze(path)):
        first.setdefault(row["code"], row)
    return first


def host_scan(hosts: int) -> Wire:
    wire = Wire()
    for number in range(hosts):
        probe(wire, number, end(number), 22, "unanswered")
    return wire


def test_a_port_scan_is_one_finding_with_its_extent(findings_of: Found) -> None:
    rows = findings_of(port_scan(100))
    assert set(rows) == {"scan"}
    row = rows["scan"]
    assert row["sentence"] == (
        "10.0.0.1 scanned 100 ports of 10.0.0.2 in 100 connection attempts: 3 answered, 2 refused by RST, 95 unanswered."
    )
    assert (row["severity"], row["cost"], row["cost_unit"], row["impact"]) == ("warning", 100, "connections", 1)
    assert (row["members"], row["failed"], row["packets"]) == (100, 97, 100)
    assert row["evidence"].startswith("frames 1, 2, 3, 4, 5 and 95 more; flow 0 10.0.0.1:")
    assert row["evidence"].endswith("; and 95 more; answered: 10.0.0.2:4, 10.0.0.2:6, 10.0.0.2:8")
    assert row["filter"] == "ip.src == 10.0.0.1 && tcp.flags.syn == 1 && tcp.flags.ack == 0"


def test_a_host_scan_is_one_finding_with_its_extent(findings_of: Found) -> None:
    rows = findings_of(host_scan(300))
    assert set(rows) == {"scan"}
    assert "scanned port 22 of 300 hosts in 300 connection attempts: 300 unanswered." in rows["scan"]["sentence"]


def test_a_scan_of_ports_and_hosts_has_both(findings_of: Found) -> None:
    wire = Wire()
    for number in range(60):
        probe(wire, number, end(number % 3), number // 3 + 1, "refused")
    assert "scanned 20 ports of 3 hosts in 60 connection attempts" in findings_of(wire)["scan"]["sentence"]


@pytest.mark.parametrize("wire", [port_scan(17), host_scan(24)])
def test_a_few_attempts_are_no_scan(wire: Wire, findings_of: Found) -> None:
    rows = findings_of(wire)
    assert "scan" not in rows and "syn-unanswered" in rows


def test_a_busy_client_with_some_dead_servers_does_not_scan(findings_of: Found) -> None:
    wire = Wire()
    for number in range(100):
        probe(wire, number, end(number), 443, "unanswered" if number % 3 == 0 else "used")
    rows = findings_of(wire)
    assert (
        "scan" not in rows
        and "34 connection attempts from 10.0.0.1 to port 443 of 34 hosts got no answer"
        in rows["syn-unanswered"]["sentence"]
    )


def test_peers_each_at_a_port_of_its_own_are_no_scan(findings_of: Found) -> None:
    wire = Wire()
    for number in range(100):
        probe(wire, number, end(number), 5000 + number, "unanswered")
    assert set(findings_of(wire)) == {"syn-unanswered"}


def test_a_server_that_is_down_is_not_scanned(findings_of: Found) -> None:
    wire = Wire()
    for number in range(100):
        probe(wire, number, "10.0.0.2", 80, "refused")
    assert set(findings_of(wire)) == {"connection-refused"}


def test_attempts_beside_a_scan_keep_their_findings(findings_of: Found) -> None:
    wire = port_scan(100)
    for number in range(100, 103):
        probe(wire, number, "10.0.0.2", 80, "unanswered", source="10.0.0.7")
    rows = findings_of(wire)
    assert set(rows) == {"scan", "syn-unanswered"} and rows["syn-unanswered"]["cost"] == 3


def test_many_scans_are_summed_up(findings_of: Found, tmp_path: Path) -> None:
    wire = Wire()
    for source in range(8):
        for number in range(20):
            probe(wire, 20 * source + number, "10.0.0.2", number + 1, "refused", source=f"10.0.1.{source}")
    wire.write(tmp_path / "wire.pcap")
    rows = placed(wiretale.analyze(tmp_path / "wire.pcap"))
    assert [row["code"] for row in rows] == ["scan"] * 6
    assert "3 more hosts scanned ports or hosts in 60 connection attempts: 60 refused by RST." in [
        row["sentence"] for row in rows
    ]


def test_the_sources_of_a_flood_are_bounded(findings_of: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "SOURCES_MAX", 1)
    wire = port_scan(100)
    for number in range(100, 160):
        probe(wire, number, "10.0.0.2", number, "refused", source="10.0.0.7")
    assert findings_of(wire)["scan"]["cost"] == 100


# --- handshakes


def handshake_with_losses() -> Wire:
    """The SYN is lost twice, and later data by an RTO."""
    talk = Connection(Wire())
    for ms in (0, 1000):
        talk.send(ms, 0, -1, flags=SYN, options=syn_options())
    talk.open(ms=3000)
    for ms in (3050, 3550):
        talk.data(ms, 0, 100, PSH | ACK)
    return talk.ack(3570, 100).wire


def test_the_cost_of_a_late_handshake_is_its_own_wait(findings_of: Found) -> None:
    row = findings_of(handshake_with_losses())["syn-lost"]
    assert row["cost"] == pytest.approx(3.0, abs=1e-5) and "after 2 retransmitted SYNs or SYN-ACKs" in row["sentence"]
    assert row["evidence"].startswith("frames 2, 3; flow 0 ") and row["filter"] == "frame.number in {2, 3}"


def test_a_syn_ack_that_was_lost_is_one_wait(findings_of: Found) -> None:
    """SYN and SYN-ACK are both retransmitted in the same second."""
    talk = Connection(Wire())
    talk.send(0, 0, -1, flags=SYN, options=syn_options()).send(10, 1, -1, flags=SYN | ACK, ack=0, options=syn_options())
    talk.open(ms=1000)
    talk.data(1050, 0, 100, PSH | ACK).ack(1070, 100)
    assert findings_of(talk.wire)["syn-lost"]["cost"] == pytest.approx(1.01, abs=1e-5)


@pytest.mark.parametrize("data", [True, False])
def test_a_reset_connection_came_about_if_it_was_acknowledged(findings_of: Found, data: bool) -> None:
    talk = Connection(Wire())
    talk.send(0, 0, -1, flags=SYN, options=syn_options())
    if data:
        talk.open(ms=1000)
    else:
        talk.send(1000, 0, -1, flags=SYN, options=syn_options())
        talk.send(1020, 1, -1, flags=SYN | ACK, ack=0, options=syn_options())
    talk.send(1060, 0, 0, flags=RST)
    assert ("syn-lost" in findings_of(talk.wire)) == data


@pytest.mark.parametrize("again", [0, 3])
def test_a_half_open_attempt_is_found_if_its_syn_ack_was_retransmitted(findings_of: Found, again: int) -> None:
    talk = Connection(Wire()).send(0, 0, -1, flags=SYN, options=syn_options())
    for i in range(again + 1):
        talk.send(20 + 1000 * (2**i - 1), 1, -1, flags=SYN | ACK, ack=0, options=syn_options())
    rows = findings_of(talk.wire)
    assert set(rows) == ({"half-open"} if again else set())
    assert (
        not again
        or "1 connection attempt from 10.0.0.1 to 10.0.0.2:80 stayed half-open: 3 retransmitted"
        in rows["half-open"]["sentence"]
    )


def test_a_syn_ack_after_the_handshake_was_deferred(findings_of: Found) -> None:
    talk = Connection(Wire()).open()
    talk.send(31_020, 1, -1, flags=SYN | ACK, ack=0, options=syn_options()).send(31_040, 0, 0)
    talk.data(40_000, 0, 100, PSH | ACK).ack(40_020, 100)
    rows = findings_of(talk.wire)
    assert set(rows) == {"accept-deferred"}
    row = rows["accept-deferred"]
    assert row["severity"] == "info" and "retransmitted up to 31 s after the handshake" in row["sentence"]
    assert row["evidence"].startswith("frame 4; flow 0 ")


# --- captures of others


def test_a_real_port_scan() -> None:
    rows = by_code(needs.shared("labelled/cases/synscan.pcapng"))
    assert "scanned 1,000 ports of 64.13.134.52" in rows["scan"]["sentence"]
    assert not {"lost-downstream", "syn-lost", "syn-unanswered", "connection-refused", "spurious"} & set(rows)


def test_real_unanswered_syns_are_no_retransmissions_of_unknown_place() -> None:
    rows = by_code(needs.shared("labelled/cases/http_espn_fail.pcapng"))
    assert (
        "9 connection attempts from 172.16.16.154 to 203.0.113.94:80 got no answer"
        in rows["syn-unanswered"]["sentence"]
    )
    assert "retransmission-unlocated" not in rows


def test_a_real_deferred_accept_is_no_loss() -> None:
    rows = by_code(needs.shared("labelled/cases/sessionhijacking.pcapng"))
    assert "2 connections have SYN-ACKs" in rows["accept-deferred"]["sentence"]
    assert rows["accept-deferred"]["evidence"].startswith("frames 90, 91; ")
    assert not {"lost-downstream", "syn-lost", "spurious"} & set(rows)


def test_a_server_that_thinks_is_no_queue() -> None:
    assert "bufferbloat" not in by_code(needs.shared("labelled/cases/dns_over_https_POST.pcap"))
