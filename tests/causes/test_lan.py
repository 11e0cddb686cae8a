# SPDX-License-Identifier: Apache-2.0
"""Routers and ports of a LAN: each cause, and its nearest rival that is not taken for it; frames read byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.all import Ether

import causes_lan as drawn
import wiretale
from causes_broken import of_timed
from causes_moved import handed, moved
from crafted import Timed, analyze_timed, write_timed


@pytest.mark.parametrize(
    ("code", "beginning"),
    [
        (
            "two-masters",
            "10.0.0.2 and 10.0.0.3 are both masters of VRRP group 10 at once: their "
            "advertisements go on side by side for 58.5 s, with priority 150 and 100.",
        ),
        (
            "second-router",
            "Two routers announce different IPv6 networks on one LAN, 2001:db8:1::/64 and "
            "2001:db8:2::/64; one of them probably does not belong there",
        ),
        ("pause-frames", "02:00:00:00:00:0a asks the other end of its link to stop sending: 40 PAUSE frames in 3.90 s"),
        (
            "wrong-mask",
            "10.0.4.10 probably has a wrong subnet mask: it asks its own LAN for 10.0.9.5 and 2 more hosts of other "
            "networks, which answer none of 9 ARP requests; hosts of its own /24 do.",
        ),
        (
            "redirected",
            "The router 10.0.4.1 sent 10.0.4.10 4 ICMP redirects: another router of the LAN, or the target itself, is nearer. "
            "Until the host sends there, its packets cross the LAN twice; nothing is lost by that.",
        ),
        (
            "late-neighbor",
            "fd00::50 answers fd00::10 only after 8 neighbor solicitations: 4 times it took 7 s until a reply came; what "
            "fd00::10 had for it meanwhile waited or was dropped.",
        ),
        (
            "arp-flux",
            "Two adapters, 00:25:90:aa:bb:10 and 00:25:90:aa:bb:11, answer ARP for 10.0.4.50; they are probably of one machine",
        ),
        (
            "address-in-use",
            "02:00:00:00:00:0a cannot use the IPv6 address fd00::50: 00:50:56:9a:11:22 has it already, and says so in answer to "
            "1 solicitation of duplicate address detection.",
        ),
        (
            "dhcp-declined",
            "02:00:00:00:00:0c declines 10.1.4.7 that 10.1.0.1 gave it, as already in use (ARP shows it at "
            "02:00:00:00:00:77), so it has none.",
        ),
        (
            "shared-group",
            "Two virtual routers probably use VRRP group 1 in one network: 10.0.0.2 and 10.0.0.3 advertise it side by side for "
            "28.5 s, each for other addresses",
        ),
        (
            "router-denied",
            "The IPv6 router fe80::1 tells hosts that it is none: 3 neighbor advertisements of it had no router flag, and each "
            "host that gets one drops its default route",
        ),
        (
            "topology-changes",
            "The spanning tree changed 8 times in 598 s, every 74.8 s on average, as BPDUs of 02:00:00:00:00:01 tell",
        ),
        (
            "foreign-nak",
            "02:00:00:00:00:0a sensor begins anew again and again: the DHCP server 10.66.0.1 answers its Requests to 10.1.0.1 "
            "with a "
            "NAK (3 times in 18 s), although 10.1.0.1 confirms the address.",
        ),
        ("port-login", "The switch answers no 802.1X login of 02:00:00:00:00:0a: 3 EAPOL-Starts got no EAP-Request."),
    ],
)
def test_sentences(code: str, beginning: str, tmp_path: Path) -> None:
    answer = wiretale.analyze(drawn.EXAMPLES[code](tmp_path / "capture.pcap")).answer
    assert (answer.cause, answer.sentence[: len(beginning)]) == (code, beginning)


@pytest.mark.parametrize(
    "timed",
    [
        drawn.two_cards(apart=80),  # two machines
        drawn.slow_neighbor(tries=2),
        drawn.slow_neighbor(times=2),  # it was away twice
        drawn.slow_neighbor(times=3, quick=5),  # it sleeps now and then
        drawn.slow_neighbor(replies=False),  # it is away
        drawn.detected(holder=drawn.STATION, after=0.5),  # its own
        drawn.detected(after=1.5),  # it has the address by then
        drawn.detected(after=-0.5),  # before
        drawn.masters(second_from=30, first_until=30),  # one takes over
        drawn.masters(second_from=30, first_until=31),
        drawn.masters(groups=(10, 11)),  # they share the work
        drawn.carp(),
        drawn.namesakes(beside=False),  # one after the other
        drawn.namesakes(second="10.0.7.3"),  # another network, as in another VLAN
        drawn.denied(flags=(1, 1, 1)),
        drawn.denied(flags=(0, 1, 1)),  # two machines, or it began to forward
        [*drawn.denied(), *((at + 4, p) for at, p in drawn.denied((), lifetime=0))],  # it resigned
        drawn.denied(lifetime=0),  # it offers no way out
        drawn.denied(target="fe80::7"),  # on behalf of a host
        drawn.bridge([30.0, 150.0, 320.0]),  # a switch that starts
        drawn.bridge([100.0 + 400 * n for n in range(5)], until=2000.0),  # seldom
        drawn.bridge([30.0], repeated=500.0),  # one change that is told long
        drawn.contested(stranger=drawn.DHCP_SERVER, confirms=False),  # the server itself refuses
        drawn.contested(again=False),  # the client ignores it
        drawn.contested(times=2),  # it happened once
        drawn.routers((("2001:db8:1::", "fd00::"), ("fd00::", "2001:db8:1::"))),
        drawn.routers(lifetimes=(1800, 0)),  # a border router of Thread
        drawn.routers((("2001:db8:1::",), ())),
        drawn.pauses(9),
        drawn.pauses(quanta=0),
        drawn.starts(answered=True),
        drawn.starts(1),
        drawn.redirects(other=1),  # the host is also reported as unreachable
        drawn.strangers(heard="10.0.9.8"),  # the network is wider
        drawn.strangers(("10.0.9.5", "10.0.9.6", "10.0.9.7")),  # one network, whose hosts may all be off
        drawn.strangers(local=False),
        drawn.strangers(("10.0.9.5", "10.0.20.33")),
        drawn.refused(again=True),
    ],
)
def test_healthy_lans(timed: Timed, tmp_path: Path) -> None:
    causes = analyze_timed(tmp_path, timed).causes
    assert not [row["code"] for row in causes if row["code"] in drawn.EXAMPLES]


def test_a_redirect_is_about_the_host_that_it_went_to_also_if_that_is_the_server(tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, drawn.redirected_server()).answer
    assert answer.sentence.startswith(f"The router {drawn.GATEWAY} sent 10.0.4.10 1 ICMP redirect: ")
    assert "way to 198.51.100.7: give 10.0.4.10 that route" in str(answer.advice)


def test_who_has_a_declined_address_later_or_gave_it_is_not_known(tmp_path: Path) -> None:
    sentence = analyze_timed(tmp_path, drawn.declined_alone()).answer.sentence
    assert (
        sentence == "02:00:00:00:00:0c declines 10.1.4.7 that a DHCP server gave it, as already in use, so it has none."
    )


def test_a_client_that_keeps_another_address_has_a_note(tmp_path: Path) -> None:
    rows = analyze_timed(tmp_path, drawn.declined(times=1, then=True)).causes.rows()
    assert [(row["code"], row["severity"], row["failed"]) for row in rows] == [("dhcp-declined", "info", None)]


@pytest.mark.parametrize("make", [lambda at: drawn.bridge(at, notified=True), drawn.per_vlan])
def test_changes_of_the_spanning_tree_are_told_in_other_frames_too(
    make: Callable[[list[float]], Timed], tmp_path: Path
) -> None:
    answer = analyze_timed(tmp_path, make([30.0 + 60 * n for n in range(8)])).answer
    assert answer.cause == "topology-changes" and "tree changed 8 times" in answer.sentence


CHANGES = [30.0 + 150 * n for n in range(8)]


@pytest.mark.parametrize(
    ("changes", "begins", "flooded"),
    [
        (CHANGES, [at + 5 for at in CHANGES], True),
        (CHANGES, [*(at + 5 for at in CHANGES), 130.0], False),  # one begins in quiet
        (CHANGES, [at + 5 + n for at in CHANGES[:2] for n in range(4)], False),  # two changes may be by chance
        ([30.0 + 60 * n for n in range(19)], [35.0 + 120 * n for n in range(8)], False),  # there is no quiet
    ],
)
def test_only_connections_that_begin_after_changes_are_due_to_them(
    changes: list[float], begins: list[float], flooded: bool, tmp_path: Path
) -> None:
    trace = analyze_timed(tmp_path, drawn.flooded(changes, begins))
    tree = next(row for row in trace.causes if row["code"] == "topology-changes")
    explaining = [row["cause"] for row in trace.table("cause_findings")]
    assert explaining and all((cause == tree["cause"]) == flooded for cause in explaining)
    assert ("one direction of 8 connections that began right after changes" in tree["sentence"]) == flooded


def test_a_client_without_its_name_in_the_request_takes_the_offer(tmp_path: Path) -> None:
    """Its Discovers have the host name, and the Requests that follow have none: they are of the same client."""
    timed = [each for each in drawn.contested() if each[1].src != "02:00:00:00:00:66"]
    assert "dhcp-no-lease" not in analyze_timed(tmp_path, timed).causes.column("code")


def test_version_3_has_two_masters(tmp_path: Path) -> None:
    assert analyze_timed(tmp_path, drawn.version_3()).answer.cause == "two-masters"


def test_an_address_in_use_is_seen_behind_a_tag(tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, drawn.detected(vlan=7, address="fe80::7")).answer
    assert answer.sentence.startswith("02:00:00:00:00:0a cannot use the IPv6 address fe80::7: ")


def test_a_refused_login(tmp_path: Path) -> None:
    sentence = analyze_timed(tmp_path, drawn.refused()).answer.sentence
    assert sentence.startswith("The 802.1X login of 02:00:00:00:00:0a is refused: 1 EAP-Failure and no EAP-Success")


def test_announcers(tmp_path: Path) -> None:
    timed = sorted([*drawn.masters(first_until=30), *drawn.routers(), *drawn.pauses(3)], key=lambda each: each[0])
    rows = {(row["kind"], row["source"] or row["mac"]): row for row in analyze_timed(tmp_path, timed).announcers}
    first = rows["vrrp", "10.0.0.2"]
    assert (first["number"], first["value"], first["address"]) == (10, 150, "10.0.0.1")
    assert (first["packets"], first["withdrawals"]) == (31, 1)
    router = rows["router", "fe80::2"]
    assert (router["value"], router["address"], router["prefix_length"]) == (1800, "2001:db8:2::", 64)
    assert rows["pause", drawn.STATION]["value"] == 0xFFFF and len(rows) == 5
    timed = sorted([*drawn.denied((0, 1)), *drawn.bridge([30.0, 90.0], until=200.0)], key=lambda each: each[0])
    trace = analyze_timed(tmp_path, timed)
    rows = {(row["kind"], row["source"] or row["mac"]): row for row in trace.announcers}
    flags = rows["router_na", "fe80::1"]
    assert (flags["packets"], flags["withdrawals"], flags["value"]) == (2, 1, 1)
    tree = rows["bridge", drawn.SWITCH]
    assert (tree["value"], tree["packets"], tree["withdrawals"]) == (2, 100, 64)
    changes = [row for row in trace.announcers if row["kind"] == "bridge_change"]
    assert [((row["last_ns"] or 0) - (row["first_ns"] or 0)) / 1e9 for row in changes] == [34, 34]
    assert [row["packets"] for row in changes] == [18, 18] and {row["mac"] for row in changes} == {drawn.SWITCH}


@pytest.mark.parametrize(
    "timed", [drawn.masters()[:1], drawn.routers()[:1], drawn.pauses(1), drawn.starts(1)[:1], drawn.bridge([0.0])[:1]]
)
def test_cut_frames(timed: Timed, tmp_path: Path) -> None:
    """Whatever a frame is cut to, nothing is read behind its end."""
    full = bytes(timed[0][1])
    cut = [(n * 0.001, Ether(full[:n]) if n >= 14 else Ether(full[:14])) for n in range(14, len(full))]
    assert len(wiretale.analyze(write_timed(tmp_path / "cut.pcap", cut)).announcers) <= 2


def test_an_address_that_moved_is_told_by_the_reply_to_who_asked_again(tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, handed()).answer
    assert answer.sentence.startswith(
        "10.0.0.100 moved from 02:00:00:00:00:0b to 02:00:00:00:00:0c without a gratuitous ARP: 3 connections to it ("
    )
    assert (
        "got no answer until 10.0.0.1 asked for its MAC address again. The client probably sent to the old"
        in answer.sentence
    )


@pytest.mark.parametrize("changed", ["announced", "vain", "between", "stays", "back"])
def test_an_address_that_was_absent_or_announced_did_not_move_unheard(changed: str, tmp_path: Path) -> None:
    causes = analyze_timed(tmp_path, handed(**{changed: True})).causes
    assert "moved-address" not in causes.column("code")


def test_nothing_moved_unheard_if_the_new_machine_serves_nobody(tmp_path: Path) -> None:
    assert "moved-address" not in analyze_timed(tmp_path, handed(served=False)).causes.column("code")


def test_an_address_that_moved_without_an_arp_packet_is_told_with_its_master(tmp_path: Path) -> None:
    answer = wiretale.analyze(of_timed(moved)(tmp_path / "capture.pcap")).answer
    assert (answer.cause, answer.certainty) == ("moved-address", "likely")
    assert answer.sentence.startswith("10.0.0.100 moved to 10.0.0.12 (VRRP group 51) without a gratuitous ARP")


@pytest.mark.parametrize("options", [{"announced": True}, {"reached": False}, {"moves": False}])
def test_an_address_that_is_announced_or_never_answered_did_not_move_unseen(
    options: dict[str, bool], tmp_path: Path
) -> None:
    trace = wiretale.analyze(of_timed(lambda: moved(**options))(tmp_path / "capture.pcap"))
    assert "moved-address" not in trace.causes.column("code")


@pytest.mark.parametrize(
    ("timed", "cause"),
    [
        (drawn.leads_nowhere(), "second-router"),
        (drawn.leads_nowhere(both=1), "filtered"),  # the second network leads on at times
        (drawn.leads_nowhere(working=0), "host-down"),
    ],
)
def test_connections_over_the_router_that_leads_nowhere(timed: Timed, cause: str, tmp_path: Path) -> None:
    answer = analyze_timed(tmp_path, timed).answer
    is_nowhere = "fe80::2 probably does not belong there, and none of 3 attempts to connect" in answer.sentence
    assert is_nowhere == (cause == "second-router") and (answer.cause == "second-router") == is_nowhere, answer.sentence
