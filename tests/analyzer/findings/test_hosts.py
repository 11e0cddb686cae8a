# SPDX-License-Identifier: Apache-2.0
"""Findings about ARP, neighbor discovery and pings, each beside a healthy twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from scapy.all import IP, UDP, Ether

import wiretale
from crafted import analyze_timed, dns_answer, dns_query
from dhcp_wire import lease, message
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
    ping,
    ping_error,
    pong,
    solicits,
)

CODES = {
    "arp-unanswered",
    "duplicate-address",
    "echo-unanswered",
    "echo",
    "dns-unanswered",
    "dhcp-no-offer",
    "dhcp-refused",
}


def findings(folder: Path, timed: Sequence[Timed]) -> dict[str, wiretale.analyzer.rows.FindingRow]:
    trace = analyze_timed(folder, sorted(timed, key=lambda entry: entry[0]))
    return {row["code"]: row for row in trace.findings if row["code"] in CODES}


def gateway_answers(at: float = 0.0) -> list[Timed]:
    """The host's own port: a reply to it is in the capture."""
    return [asks(at, GATEWAY), answers(at + 0.001, GATEWAY)]


# --- ARP


def test_absent_host(tmp_path: Path) -> None:
    row = findings(tmp_path, [*gateway_answers(), *(asks(1 + n, ABSENT) for n in range(12)), asks(60, SERVER)])[
        "arp-unanswered"
    ]
    assert row["sentence"] == f"{ABSENT} answered none of 12 ARP requests from {CLIENT} in 12 s."
    assert (row["severity"], row["failed"], row["waited_ns"]) == ("warning", 1, 12 * 10**9)
    assert (row["first_ns"], row["flow"]) == (1_700_000_001 * 10**9, None)


def test_present_host_gives_no_finding(tmp_path: Path) -> None:
    timed = [*gateway_answers(), asks(1, SERVER), asks(2, SERVER), answers(2.1, SERVER), asks(60, SERVER)]
    assert not findings(tmp_path, timed)


def test_third_port_of_a_switch(tmp_path: Path) -> None:
    """Requests of others arrive there, replies to them do not: a host that asks once was answered."""
    timed = [asks(n * 30, host) for n in range(4) for host in (SERVER, ABSENT, GATEWAY)]
    assert not findings(tmp_path, [*timed, *gateway_answers(130), asks(150, CLIENT, SERVER)])


def test_monitor_that_asks_again_and_again(tmp_path: Path) -> None:
    """Bonding watches its gateway by ARP; at another port the replies are missing, but the gateway is there."""
    timed = [*(asks(n, GATEWAY, SERVER) for n in range(30)), asks(31, CLIENT, GATEWAY), asks(60, CLIENT, GATEWAY)]
    assert not findings(tmp_path, timed)


def test_unshown_replies_make_no_warning(tmp_path: Path) -> None:
    row = findings(tmp_path, [*(asks(n, ABSENT) for n in range(4)), asks(60, SERVER, GATEWAY)])["arp-unanswered"]
    assert row["severity"] == "info"


def test_host_that_went_away(tmp_path: Path) -> None:
    timed = [asks(0, SERVER), answers(0.001, SERVER), asks(30, SERVER), asks(31, SERVER), asks(60, GATEWAY)]
    row = findings(tmp_path, timed)["arp-unanswered"]
    assert (
        row["sentence"]
        == f"{SERVER} answered none of 2 ARP requests from {CLIENT} in 2 s, but it answered at other times."
    )
    assert row["severity"] == "warning"


def test_sweep_is_no_finding(tmp_path: Path) -> None:
    timed = [asks(host + n, f"10.0.4.{100 + host}") for host in range(25) for n in range(3)]
    assert "arp-unanswered" not in findings(tmp_path, [*gateway_answers(), *timed, asks(90, SERVER)])


def test_absent_host_of_ipv6(tmp_path: Path) -> None:
    timed = [solicits(0, "fd00::50"), advertises(0.01, "fd00::50"), *(solicits(n + 1, "fd00::99") for n in range(3))]
    row = findings(tmp_path, [*timed, solicits(30, "fd00::50")])["arp-unanswered"]
    assert row["sentence"] == "fd00::99 answered none of 3 neighbor solicitations from fd00::10 in 3 s."


# --- one address, two machines


def both_answer(at: float, address: str = SERVER, other: str = OTHER_MAC) -> list[Timed]:
    return [asks(at, address), answers(at + 0.0005, address, mac=MACS[SERVER]), answers(at + 0.001, address, mac=other)]


def test_two_machines_with_one_address(tmp_path: Path) -> None:
    row = findings(tmp_path, [packet for n in range(4) for packet in both_answer(n * 30)])["duplicate-address"]
    macs = f"{MACS[SERVER]} and {OTHER_MAC}"
    claim = f"Two machines claim {SERVER}: {macs} answer ARP for it, and 4 requests got more than one reply."
    assert row["sentence"] == claim
    assert row["severity"] == "warning" and row["first_ns"] is not None


def test_failover_is_no_conflict(tmp_path: Path) -> None:
    """A standby takes over, announces itself, and stays; later the first one takes over again."""
    timed: list[Timed] = []
    for n, mac in enumerate((MACS[SERVER], OTHER_MAC, MACS[SERVER])):
        timed += [announces(n * 30, SERVER, mac), asks(n * 30 + 0.5, SERVER), answers(n * 30 + 0.501, SERVER, mac=mac)]
    assert not findings(tmp_path, timed)


@pytest.mark.parametrize(
    "virtual", ["00:00:5e:00:01:0a", "00:00:0c:07:ac:01", "00:00:0c:9f:f0:01", "00:07:b4:00:01:02"]
)
def test_virtual_router_is_no_conflict(virtual: str, tmp_path: Path) -> None:
    assert not findings(tmp_path, both_answer(0, other=virtual))


def test_proxy_arp_is_no_conflict(tmp_path: Path) -> None:
    """A router answers for all addresses, also for those of hosts that answer themselves."""
    timed = [packet for n in range(4) for packet in both_answer(n, f"10.0.4.{60 + n}", OTHER_MAC)]
    assert "duplicate-address" not in findings(tmp_path, timed)


# --- pings


def pings(count: int, lost: Sequence[int] = (), round_trip: float = 0.25) -> list[Timed]:
    timed = [packet for n in range(count) for packet in (ping(n, n), pong(n + round_trip, n))]
    return [packet for packet in timed if packet[1][IP].payload.type or packet[1][IP].payload.seq not in lost]


def test_pings_are_described(tmp_path: Path) -> None:
    timed = [*pings(9), ping(9, 9), pong(9.255, 9)]
    rows = findings(tmp_path, timed)
    assert set(rows) == {"echo"}
    assert rows["echo"]["severity"] == "info"
    assert (
        rows["echo"]["sentence"]
        == f"{SERVER} answered all 10 pings from {CLIENT} in 250 ms (median; 250 ms to 255 ms)."
    )
    trace = analyze_timed(tmp_path, timed)
    measures = wiretale.analyzer.findings.judged.judge(trace).measures
    assert [measures[name].packets for name in ("loss", "rtt", "limits")] == [20, 20, 0]


def test_lost_pings(tmp_path: Path) -> None:
    row = findings(tmp_path, [*pings(40, lost=[3, 10, 11, 12, 13]), asks(60, GATEWAY)])["echo-unanswered"]
    assert row["sentence"] == f"{SERVER} answered 35 of 40 pings from {CLIENT}: 12.5% lost, 1 outage of 4 s."
    assert (row["severity"], row["failed"], row["cost"], row["cost_unit"]) == ("warning", 5, 5.0, "packets")


def test_one_lost_ping_of_many_is_a_note(tmp_path: Path) -> None:
    assert findings(tmp_path, pings(60, lost=[5]))["echo-unanswered"]["severity"] == "info"


def test_host_that_answers_no_ping(tmp_path: Path) -> None:
    row = findings(
        tmp_path, [*gateway_answers(), *(ping(1 + n, n) for n in range(4)), asks(60, SERVER), asks(61, SERVER)]
    )["echo-unanswered"]
    assert row["sentence"] == f"{SERVER} answered none of 4 pings from {CLIENT}: 100% lost."
    assert row["severity"] == "warning"


def test_one_direction_shows_no_loss(tmp_path: Path) -> None:
    assert not findings(tmp_path, [ping(n, n) for n in range(10)])


def test_unreachable_host(tmp_path: Path) -> None:
    timed = [packet for n in range(4) for packet in (ping(n, n), ping_error(n + 0.01, n, 3, 1))]
    row = findings(tmp_path, timed)["echo-unanswered"]
    assert (
        row["sentence"]
        == f"{SERVER} answered none of 4 pings from {CLIENT}: 100% lost; 4 failed with host unreachable."
    )


def test_traceroute_is_no_loss(tmp_path: Path) -> None:
    """Hops that stay silent, and one that reports the end of the TTL."""
    timed = [ping(n, n, ttl=n + 1) for n in range(6)]
    timed += [ping_error(0.01, 0, 11, 0), pong(5.02, 5), asks(30, GATEWAY)]
    assert not findings(tmp_path, timed)


# --- an ARP reply shows that both directions are in the capture


def dns_questions() -> list[Timed]:
    return [
        (at, Ether(src=MACS[CLIENT], dst=MACS[GATEWAY]) / packet[IP])
        for at, packet in (dns_query(1 + n, n, f"{n}.example") for n in range(4))
    ]


def with_client(timed: Sequence[Timed], client: str = CLIENT) -> list[Timed]:
    changed = []
    for at, packet in timed:
        packet = packet.copy()
        packet[IP].src = client
        del packet[IP].chksum, packet[UDP].chksum
        changed.append((at, packet))
    return changed


def test_silent_dns_server_beside_an_arp_reply(tmp_path: Path) -> None:
    row = findings(tmp_path, [*gateway_answers(), *with_client(dns_questions()), asks(20, GATEWAY), asks(21, GATEWAY)])[
        "dns-unanswered"
    ]
    assert (row["severity"], row["failed"]) == ("warning", 4)


def test_silent_dns_server_alone_proves_nothing(tmp_path: Path) -> None:
    assert not findings(tmp_path, [*with_client(dns_questions()), asks(20, GATEWAY)])


def test_answered_dns(tmp_path: Path) -> None:
    timed = [*gateway_answers(), *(packet for n in range(3) for packet in (dns_query(n, n), dns_answer(n + 0.01, n)))]
    assert not findings(tmp_path, timed)


# --- DHCP


def test_no_dhcp_server(tmp_path: Path) -> None:
    timed = [*(message(at, "discover", n) for n, at in enumerate((0, 4, 12, 28))), asks(60, SERVER)]
    row = findings(tmp_path, timed)["dhcp-no-offer"]
    assert row["sentence"] == "No DHCP server answered 4 Discovers from 02:00:00:00:00:0a laptop in 31 s."
    assert (row["severity"], row["failed"], row["waited_ns"]) == ("warning", 1, 31 * 10**9)


@pytest.mark.parametrize("kinds", [("discover", "offer", "request", "ack"), ("discover", "discover", "request")])
def test_leases_and_unseen_offers_give_no_finding(kinds: Sequence[str], tmp_path: Path) -> None:
    """At another port of a switch, the client's messages alone are seen."""
    assert not findings(tmp_path, [*(message(n, kind) for n, kind in enumerate(kinds)), asks(60, SERVER)])


def test_other_clients_got_an_offer(tmp_path: Path) -> None:
    timed = [
        message(0, "discover"),
        message(4, "discover"),
        *lease(6, 9, "02:00:00:00:00:0b", "desk"),
        asks(60, SERVER),
    ]
    row = findings(tmp_path, timed)["dhcp-no-offer"]
    assert (row["severity"], row["sentence"].endswith(", but 1 other client got an offer.")) == ("info", True)


def test_refused_address(tmp_path: Path) -> None:
    row = findings(tmp_path, [message(0, "request"), message(0.01, "nak"), asks(60, SERVER)])["dhcp-refused"]
    assert row["sentence"] == "10.1.0.1 refused 1 DHCP Request from 02:00:00:00:00:0a laptop."
    assert row["severity"] == "warning"


def test_roaming_client_gets_another_address(tmp_path: Path) -> None:
    row = findings(tmp_path, [message(0, "request"), message(0.01, "nak"), *lease(1, 2)])["dhcp-refused"]
    assert (row["severity"], row["sentence"].endswith(", which got an address later.")) == ("info", True)
