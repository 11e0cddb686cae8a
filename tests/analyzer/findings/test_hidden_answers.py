# SPDX-License-Identifier: Apache-2.0
"""No finding says that there was no answer if the capture may hold it undecoded, or lacks one direction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import needs
import wiretale
from plain_wire import ACK, SYN, Connection, Wire, syn_options

HOSTS, OTHERS = ("10.0.0.1", "10.0.0.2"), ("10.0.0.8", "10.0.0.9")
ESP, IPCOMP, TCP_PROTOCOL = 50, 108, 6
DEFLATE = bytes.fromhex("06000002") + bytes(40)
Codes = Callable[[Wire], set[str]]


@pytest.fixture
def codes(tmp_path: Path) -> Codes:
    return lambda wire: set(wiretale.analyze(wire.write(tmp_path / "wire.pcap")).findings.column("code"))


def attempt(wire: Wire, ms: float = 0.0, port: int = 40000, ends: tuple[str, str] = HOSTS) -> Connection:
    """Two SYNs."""
    talk = Connection(wire, port, ends)
    for later in (0, 1000):
        talk.send(ms + later, 0, -1, flags=SYN, options=syn_options())
    return talk


def two_way(wire: Wire, ends: tuple[str, str], packets: int = 10) -> None:
    talk = Connection(wire, 50000, ends).open()
    for i in range(packets):
        talk.data(30 + i, 100 * i, 100).ack(50.5 + i, 100 * (i + 1))


def one_way(wire: Wire, ends: tuple[str, str], port: int = 51000) -> None:
    """The initiator goes on, so the other end answered."""
    talk = Connection(wire, port, ends).send(0, 0, -1, flags=SYN, options=syn_options()).send(20, 0, 0)
    for i in range(3):
        talk.data(21 + i, 100 * i, 100)


@pytest.mark.parametrize("protocol", [ESP, IPCOMP])
@pytest.mark.parametrize(("ends", "is_named"), [(HOSTS, False), (HOSTS[::-1], False), (OTHERS, True)])
def test_packets_between_the_same_hosts_may_be_the_answer(
    codes: Codes, protocol: int, ends: tuple[str, str], is_named: bool
) -> None:
    wire = Wire()
    attempt(wire)
    two_way(wire, OTHERS, 200)
    wire.ip(100, *ends, protocol, DEFLATE)
    assert ("syn-unanswered" in codes(wire)) == is_named


@pytest.mark.parametrize(("hidden", "is_named"), [(0, True), (1, True), (20, False)])
def test_packets_of_unknown_hosts_may_be_the_answer(codes: Codes, hidden: int, is_named: bool) -> None:
    wire = Wire()
    attempt(wire)
    two_way(wire, OTHERS, 100)
    for i in range(hidden):
        wire.packets.append((i, bytes(12) + bytes.fromhex("88b50001") + bytes(60)))
    assert ("syn-unanswered" in codes(wire)) == is_named


def test_esp_of_other_hosts_hides_nothing(codes: Codes) -> None:
    """Its addresses are known, however much of it there is."""
    wire = Wire()
    attempt(wire)
    for i in range(500):
        wire.ip(i, *OTHERS, ESP, bytes(60))
    assert "syn-unanswered" in codes(wire)


def test_a_direction_that_is_missing_entirely(codes: Codes) -> None:
    wire = Wire()
    attempt(wire)
    assert "syn-unanswered" in codes(wire)
    one_way(wire, OTHERS)
    assert codes(wire) == {"one-way"}


@pytest.mark.parametrize(("ends", "is_named"), [(HOSTS, False), (("10.0.0.1", "10.0.0.7"), True)])
def test_a_direction_that_is_missing_between_two_hosts(codes: Codes, ends: tuple[str, str], is_named: bool) -> None:
    wire = Wire()
    attempt(wire)
    two_way(wire, OTHERS)
    one_way(wire, ends)
    assert ("syn-unanswered" in codes(wire)) == is_named


def test_a_connection_in_both_directions_shows_that_answers_are_captured(codes: Codes) -> None:
    wire = Wire()
    attempt(wire)
    one_way(wire, HOSTS)
    two_way(wire, HOSTS)
    assert "syn-unanswered" in codes(wire)


@pytest.mark.parametrize(("hidden", "codes_named"), [(False, {"scan"}), (True, {"one-way"})])
def test_a_scan_of_which_only_the_syns_were_captured(codes: Codes, hidden: bool, codes_named: set[str]) -> None:
    """Without its answers, a host that opens many connections looks like one."""
    wire = Wire()
    for number in range(30):
        attempt(wire, number, 40000 + number, (HOSTS[0], f"10.1.0.{number + 1}"))
    if hidden:
        one_way(wire, HOSTS)
    assert codes(wire) == codes_named


@pytest.mark.parametrize(("protocol", "is_named"), [(TCP_PROTOCOL, True), (ESP, False)])
def test_the_ack_of_a_half_open_attempt_may_be_hidden(codes: Codes, protocol: int, is_named: bool) -> None:
    wire = Wire()
    talk = attempt(wire)
    for ms in (20, 1020, 3020):
        talk.send(ms, 1, -1, flags=SYN | ACK, ack=0, options=syn_options())
    if protocol == ESP:
        wire.ip(40, *HOSTS, ESP, bytes(60))
    assert ("half-open" in codes(wire)) == is_named


@pytest.mark.parametrize("esp", [0, 2])
def test_a_packet_that_is_not_decoded_counts_in_one_finding(tmp_path: Path, esp: int) -> None:
    wire = Wire()
    for i in range(3):
        wire.ip(i, *HOSTS, IPCOMP, DEFLATE)
    for i in range(esp):
        wire.ip(10 + i, *HOSTS, ESP, bytes(60))
    trace = wiretale.analyze(wire.write(tmp_path / "wire.pcap"))
    sentences = {row["code"]: row["sentence"] for row in trace.findings.rows()}
    assert "3 packets" in sentences["undecoded"] and "IP protocol 108 (IPComp): 3" in sentences["undecoded"]
    assert ("not-understood" in sentences) == bool(esp)
    if esp:
        assert (
            "2 packets have" in sentences["not-understood"]
            and "40%; 2 encrypted packets)" in sentences["not-understood"]
        )


def test_a_real_capture_of_one_direction() -> None:
    """An SSH session whose server was not captured, and a SYN to each of five ports."""
    codes_named = set(wiretale.analyze(needs.shared("captures/tcpdump-tests/ipoib.pcap")).findings.column("code"))
    assert "one-way" in codes_named and not {"syn-unanswered", "scan"} & codes_named
