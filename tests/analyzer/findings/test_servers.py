# SPDX-License-Identifier: Apache-2.0
"""Attempts and resets of one cause are one finding for each server, or for each host that scans; written by Scapy."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Ether, IPv6, Packet, Raw, wrpcap

import needs
import wiretale
from crafted import NEIGHBOR
from placed import placed

Row = dict[str, Any]
SERVER, DEAD, START = "10.0.9.9", "10.0.9.66", 1_700_000_000


class Talk:
    """Packets of several connections, in the order in which they are added."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.ms = 0.0

    def add(
        self, source: str, target: str, ports: tuple[int, int], flags: str, after: float = 5.0, **more: Any
    ) -> Talk:
        payload = more.pop("payload", b"")
        layer = IPv6 if ":" in source else IP
        self.ms += after
        packet = (
            Ether(dst=NEIGHBOR)
            / layer(src=source, dst=target)
            / TCP(sport=ports[0], dport=ports[1], flags=flags, **more)
        )
        packet = packet / Raw(payload) if payload else packet
        packet.time = START + self.ms / 1000
        self.packets.append(packet)
        return self

    def attempt(self, client: str, port: int, server: str, service: int, refused: bool = False, tries: int = 1) -> Talk:
        for _ in range(tries):
            self.add(client, server, (port, service), "S", seq=100)
        return self.add(server, client, (service, port), "RA", seq=0, ack=101) if refused else self

    def connect(self, client: str, port: int, server: str = SERVER, service: int = 443) -> Talk:
        self.attempt(client, port, server, service).add(server, client, (service, port), "SA", seq=500, ack=101)
        return self.add(client, server, (port, service), "A", seq=101, ack=501)

    def request(self, client: str, port: int, server: str = SERVER, service: int = 443) -> Talk:
        """A connection with 100 bytes each way."""
        self.connect(client, port, server, service)
        self.add(client, server, (port, service), "PA", seq=101, ack=501, payload=bytes(100))
        self.add(server, client, (service, port), "PA", seq=501, ack=201, payload=bytes(100))
        return self.add(client, server, (port, service), "A", seq=201, ack=601)

    def reset(self, client: str, port: int, by_server: bool = True, server: str = SERVER, service: int = 443) -> Talk:
        if by_server:
            return self.add(server, client, (service, port), "RA", seq=601, ack=201)
        return self.add(client, server, (port, service), "RA", seq=201, ack=601)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "talk.pcap"


def findings_of(talk: Talk, path: Path) -> list[Row]:
    wrpcap(str(path), talk.packets)
    return placed(wiretale.analyze(path))


def selected(path: Path, row: Row) -> int:
    """Frames that the finding's filter selects in Wireshark."""
    needs.skip_without(needs.programs("tshark"))
    command = ["tshark", "-n", "-r", str(path), "-Y", row["filter"], "-T", "fields", "-e", "frame.number"]
    return len(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_a_syn_scan_of_200_ports_is_one_finding(capture: Path) -> None:
    talk = Talk()
    for port in range(1, 201):
        talk.attempt("10.0.0.1", 50000, SERVER, port, refused=port % 4 != 0)
    (row,) = findings_of(talk, capture)
    assert (row["code"], row["cost"]) == ("scan", 200)
    assert row["sentence"] == (
        "10.0.0.1 scanned 200 ports of 10.0.9.9 in 200 connection attempts: 150 refused by RST, 50 unanswered."
    )
    assert (
        row["evidence"].startswith("frames 1, 3, 5, 7, 8 and 195 more; flow 0 ")
        and row["members"] == row["failed"] == 200
        and selected(capture, row) == 200
    )


def test_fifty_clients_of_a_dead_server_are_one_finding(capture: Path) -> None:
    talk = Talk()
    for number in range(50):
        talk.attempt(f"10.0.1.{number + 1}", 40000 + number, DEAD, 443, tries=3)
        talk.attempt("10.0.2.1", 41000 + number, SERVER, 443)  # another port's filter must not include it
        talk.add(SERVER, "10.0.2.1", (443, 41000 + number), "SA", seq=500, ack=101)
        talk.add("10.0.2.1", SERVER, (41000 + number, 443), "A", seq=101, ack=501)
    (row,) = (row for row in findings_of(talk, capture) if row["code"] == "syn-unanswered")
    assert row["sentence"].startswith(
        "50 connection attempts from 50 clients to 10.0.9.66:443 got no answer at the capture "
    )
    assert "the host is down" in row["sentence"] and row["cost"] == 50 and row["cost_unit"] == "connections"
    assert row["evidence"].startswith("frames 1, 7, 13, 19, 25 and 45 more; flow 0 10.0.1.1:40000 → 10.0.9.66:443; ")
    assert selected(capture, row) == 150


def test_a_server_that_answers_others_is_not_down(capture: Path) -> None:
    talk = Talk()
    for number in range(10):
        talk.request("10.0.2.1", 41000 + number)
    for number in range(4):
        talk.attempt("10.0.2.1", 42000 + number, SERVER, 443, tries=2)
    (row,) = (row for row in findings_of(talk, capture) if row["code"] == "syn-unanswered")
    assert row["sentence"] == (
        "4 connection attempts from 10.0.2.1 to 10.0.9.9:443 got no answer at the capture point, while 10 others were "
        "established: a full listen queue, a rate limit or loss dropped them."
    )
    assert "listen queue of 10.0.9.9" in row["advice"]


@pytest.mark.parametrize("signed", [4, 3])
def test_syns_that_are_all_signed_may_have_another_key(capture: Path, signed: int) -> None:
    talk = Talk()
    for number in range(4):
        options = [(19, bytes(16))] if number < signed else []
        talk.add("10.0.2.1", SERVER, (42000 + number, 179), "S", seq=100, options=options)
    wrpcap(str(capture), talk.packets)
    (row,) = (row for row in placed(wiretale.analyze(capture)) if row["code"] == "syn-unanswered")
    assert ("their SYNs are signed (TCP-MD5 or TCP-AO)" in row["sentence"]) == (signed == 4)
    assert ("TcpExtTCPMD5Failure" in row["advice"]) == (signed == 4)


def test_servers_are_told_apart_by_host_and_port_and_few_attempts_are_summed(capture: Path) -> None:
    talk = Talk()
    for number in range(20):
        talk.attempt(f"10.0.1.{number + 1}", 40000, DEAD, 443).attempt("fd00::1", 40000 + number, "fd00::66", 80)
        talk.attempt(f"10.0.1.{number + 1}", 40001, DEAD, 8443, refused=True)
    for number in range(12):
        talk.attempt("10.0.5.1", 43000 + number, f"10.0.6.{number + 1}", 25)
    rows = findings_of(talk, capture)
    unanswered = [row for row in rows if row["code"] == "syn-unanswered"]
    assert [row["sentence"].split(" got ")[0] for row in sorted(unanswered, key=lambda row: row["sentence"])] == [
        "12 connection attempts from 10.0.5.1 to port 25 of 12 hosts",
        "20 connection attempts from 20 clients to 10.0.9.66:443",
        "20 connection attempts from fd00::1 to [fd00::66]:80",
    ]
    assert sorted(selected(capture, row) for row in unanswered) == [12, 20, 20]
    (refused,) = (row for row in rows if row["code"] == "connection-refused")
    assert refused["sentence"] == "20 connection attempts from 20 clients to 10.0.9.66:8443 were refused by a RST."
    assert refused["cost"] == 20 and selected(capture, refused) == 20


def test_resets_by_one_server_after_data_are_one_finding(capture: Path) -> None:
    talk = Talk()
    for number in range(50):
        talk.request(f"10.0.1.{number % 7 + 1}", 40000 + number).reset(f"10.0.1.{number % 7 + 1}", 40000 + number)
    for number in range(3):
        talk.request("10.0.4.1", 44000 + number).reset("10.0.4.1", 44000 + number, by_server=False)
    talk.connect("10.0.4.1", 45000, "10.0.9.10", 80).reset("10.0.4.1", 45000, server="10.0.9.10", service=80)
    rows = [row for row in findings_of(talk, capture) if row["code"] == "reset"]
    assert sorted(row["sentence"] for row in rows) == [
        "1 connection from 10.0.4.1 to 10.0.9.10:80 was ended by RST of the server, before any payload.",
        "3 connections from 10.0.4.1 to 10.0.9.9:443 were ended by RST of the client.",
        "50 connections from 7 clients to 10.0.9.9:443 were ended by RST of the server.",
    ]
    for row in rows:
        assert row["severity"] == "info" and selected(capture, row) == row["cost"]
    (many,) = (row for row in rows if row["cost"] == 50)
    assert many["evidence"].startswith("frames 7, 14, 21, 28, 35 and 45 more; flow 0 10.0.1.1:40000 → 10.0.9.9:443; ")
    assert "log of 10.0.9.9" in many["advice"]


def test_the_server_of_connections_that_were_open_before_is_their_shared_end(capture: Path) -> None:
    """The first packets captured are the server's."""
    talk = Talk()
    for number in range(6):
        talk.add(SERVER, "10.0.1.1", (443, 40000 + number), "PA", seq=501, ack=201, payload=bytes(100))
        talk.add("10.0.1.1", SERVER, (40000 + number, 443), "A", seq=201, ack=601)
        talk.reset("10.0.1.1", 40000 + number)
    (row,) = (row for row in findings_of(talk, capture) if row["code"] == "reset")
    assert row["sentence"] == "6 connections from 10.0.1.1 to 10.0.9.9:443 were ended by RST of the server."
    assert selected(capture, row) == 6


def test_half_open_attempts_are_grouped_by_server(capture: Path) -> None:
    """A flood from forged addresses: each SYN-ACK is retransmitted twice."""
    talk = Talk()
    for number in range(60):
        talk.attempt(f"10.7.1.{number + 1}", 1024 + number, SERVER, 443)
        for _ in range(3):
            talk.add(SERVER, f"10.7.1.{number + 1}", (443, 1024 + number), "SA", after=1000, seq=500, ack=101)
    (row,) = (row for row in findings_of(talk, capture) if row["code"] == "half-open")
    assert row["sentence"].startswith(
        "60 connection attempts from 60 clients to 10.0.9.9:443 stayed half-open: 120 retransmitted SYN-ACKs got no ACK"
    )
    assert selected(capture, row) == 180


def test_a_reset_after_an_idle_period_is_no_other_reset(capture: Path) -> None:
    talk = Talk()
    for number in range(3):
        talk.request("10.0.1.1", 40000 + number)
    for number in range(3):
        talk.add("10.0.1.1", SERVER, (40000 + number, 443), "PA", 60_000, seq=201, ack=601, payload=bytes(100))
        talk.add(SERVER, "10.0.1.1", (443, 40000 + number), "R", seq=601)
    (row,) = (row for row in findings_of(talk, capture) if "reset" in row["code"])
    assert row["code"] == "idle-reset" and row["cost"] == 3 and selected(capture, row) == 3
    assert row["sentence"].startswith(
        "3 connections from 10.0.1.1 to 10.0.9.9:443 were reset after an idle period of up"
    )
