# SPDX-License-Identifier: Apache-2.0
"""Connections that are open and carry nothing any more: each cause, and its nearest rival that is not taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Ether, IPv6

import causes_broken as drawn
import transfer_wires as wires
import wiretale
from causes_broken import of_timed
from causes_ends import backup
from crafted import Timed, ether
from finding_captures import of_wire


def trace_of(make: drawn.Make, folder: Path) -> wiretale.Trace:
    return wiretale.analyze(make(folder / "capture.pcap"))


def causes_of(make: drawn.Make, folder: Path) -> dict[str, Any]:
    return {row["code"]: row for row in trace_of(make, folder).causes.rows()}


def rivals_of(trace: wiretale.Trace, code: str) -> dict[str, bool]:
    """Whether each rival of a cause is excluded."""
    number = next(row["cause"] for row in trace.causes if row["code"] == code)
    return {row["rival"]: row["excluded"] for row in trace.cause_rivals if row["cause"] == number}


def over_ipv6(timed: Timed) -> Timed:
    """The TCP segments in packets of IPv6."""
    timed_6 = [(at, IPv6(src=f"fd00::{p[IP].src[-1]}", dst=f"fd00::{p[IP].dst[-1]}") / p[TCP]) for at, p in timed]
    for _, packet in timed_6:
        del packet[TCP].chksum
    return [(at, ether(packet)) for at, packet in timed_6]


def test_a_nat_that_forgot_is_proven_by_a_new_connection(tmp_path: Path) -> None:
    trace = trace_of(of_wire(drawn.forgotten), tmp_path)
    (row,) = trace.causes.rows()
    assert (row["code"], row["certainty"], row["place"], row["failed"]) == ("nat-forgot", "proven", "device", 1)
    assert row["sentence"] == (
        "10.0.0.2:5432 stopped answering after 612 s without traffic: 8 packets were sent in 51 s and none got an answer, while "
        "a new connection took 20 ms. A NAT or firewall forgot the idle connection."
    )
    assert rivals_of(trace, "nat-forgot")["peer-gone"] and trace.answer.cause == "nat-forgot"


def test_keep_alives_into_a_forgotten_connection_are_the_same(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.forgotten(60_000, keep_alives=True)), tmp_path)["nat-forgot"]
    assert "after 60 s without traffic: 9 packets were sent in 600 s" in row["sentence"]


def test_without_a_new_connection_it_is_likely(tmp_path: Path) -> None:
    wire = drawn.alive(drawn.repeated(drawn.dialogue(drawn.Wire(), 0), 614_052), 700_000)
    trace = trace_of(of_wire(lambda: wire), tmp_path)
    (row,) = trace.causes.rows()
    assert row["certainty"] == "likely" and "probably forgot" in row["sentence"]
    assert trace.answer.next_steps == [
        "Open a new connection to the server while the old one is silent, or capture at the server."
    ]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (drawn.survived, "nat-forgot"),
        (lambda: drawn.forgotten(fresh=False), "nat-forgot"),
        (drawn.gone, "nat-forgot"),
        (lambda: drawn.forgotten(3_000.0), "peer-gone"),
        (drawn.upload_alone, "peer-gone"),
        (drawn.hung, "peer-gone"),
        (drawn.slow, "hung-server"),
        (lambda: drawn.hole(filled=True), "mtu-black-hole"),
        (lambda: drawn.hole(size=700), "mtu-black-hole"),
        (lambda: drawn.opened(with_data=True), "mtu-black-hole"),
    ],
)
def test_the_nearest_rival_is_not_taken_for_it(make: Any, code: str, tmp_path: Path) -> None:
    assert code not in causes_of(of_wire(make), tmp_path)


def test_a_peer_that_is_gone_answers_no_new_connection(tmp_path: Path) -> None:
    trace = trace_of(of_wire(drawn.gone), tmp_path)
    row = next(row for row in trace.causes if row["code"] == "peer-gone")
    assert row["sentence"] == (
        "10.0.0.2:5432 went away or lost its network in mid-connection: 8 retransmissions in 51.1 s got no answer, nor "
        "did 1 new connection."
    )
    assert rivals_of(trace, "peer-gone") == {"hung-server": True, "nat-forgot": True}


def test_one_end_that_repeats_alone_hears_nothing(tmp_path: Path) -> None:
    trace = trace_of(of_wire(drawn.ladder_alone), tmp_path)
    assert trace.answer.cause == "peer-gone" and trace.answer.certainty == "likely"
    assert "8 retransmissions of one segment" in trace.answer.sentence


def test_a_hung_server_is_told_with_its_requests(tmp_path: Path) -> None:
    row = causes_of(of_wire(drawn.hung), tmp_path)["hung-server"]
    assert (row["certainty"], row["failed"], row["attempts"]) == ("proven", 6, 6)
    assert row["sentence"].startswith(
        "10.0.0.2:80 accepts connections and never answers: none of 6 requests got a reply in 11 s. It acknowledged each within "
        "2.10 ms"
    )


def test_a_mount_hangs_beside_busy_clients(tmp_path: Path) -> None:
    answer = wiretale.analyze(of_wire(drawn.hung_mount)(tmp_path / "capture.pcap")).answer
    assert answer.cause == "hung-server" and "10.0.0.2:2049 answers only some requests" in answer.sentence, (
        answer.sentence
    )


def test_the_last_message_of_an_unknown_protocol_may_want_no_answer(tmp_path: Path) -> None:
    """Neither is the client that waits for an answer called slow."""
    answer = wiretale.analyze(of_wire(lambda: drawn.hung_mount(7777))(tmp_path / "capture.pcap")).answer
    assert answer.cause is None, answer.sentence


@pytest.mark.parametrize("first", [0, 2])
def test_a_server_answers_others_while_some_requests_hang(first: int, tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.hung(3, answered=5, first=first)), tmp_path)["hung-server"]
    assert row["sentence"].startswith("10.0.0.2:80 answers only some requests: 3 of 8 requests got no reply")
    assert "hung on these" in row["sentence"], row["sentence"]


def test_a_server_stopped_answering_after_requests_that_it_answered(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.hung(3, answered=5, first=5)), tmp_path)["hung-server"]
    assert row["sentence"].startswith("10.0.0.2:80 stopped answering: 3 of 8 requests got no reply")


def test_a_hole_of_full_segments_is_probably_the_path_mtu(tmp_path: Path) -> None:
    trace = trace_of(of_wire(drawn.hole), tmp_path)
    assert (trace.answer.cause, trace.answer.certainty, trace.answer.place) == ("mtu-black-hole", "likely", "before")
    assert "a gap of 1 segment of 1,460 bytes by SACK, which nothing filled for 59.9 s" in trace.answer.sentence


@pytest.mark.parametrize("hears", ["answer", "sack"])
def test_large_segments_vanish_behind_small_ones(hears: str, tmp_path: Path) -> None:
    """More than one segment was acknowledged before, as by SSH or TLS: none of it was large."""
    trace = trace_of(of_wire(lambda: wires.stuck_behind(hears)), tmp_path)
    assert (trace.answer.cause, trace.answer.certainty) == ("mtu-black-hole", "proven"), trace.answer.sentence
    assert "while smaller ones of up to 340 bytes passed" in trace.answer.sentence


@pytest.mark.parametrize(
    "make",
    [
        lambda: wires.stuck_behind("nothing"),  # the receiver died
        lambda: wires.stuck_behind("reset"),  # and booted
        lambda: wires.stuck_behind("repeats"),  # it hears nothing, small or large
        lambda: wires.stuck_behind("sack", passes=True),  # random loss
        lambda: wires.stuck_behind("answer", size=700),
        drawn.merged_lost,  # only single segments pass
    ],
)
def test_the_rivals_of_large_segments_behind_small_ones(make: Any, tmp_path: Path) -> None:
    trace = trace_of(of_wire(make), tmp_path)
    assert "mtu-black-hole" not in {row["code"] for row in trace.causes}
    assert "path-mtu-black-hole" not in {row["code"] for row in trace.findings}


@pytest.mark.parametrize(("headers", "size"), [(28, "1472"), (48, "1452")])
def test_the_ping_of_the_advice_is_a_packet_of_that_size(headers: int, size: str, tmp_path: Path) -> None:
    """IPv6 has a longer header than IPv4."""
    timed = [(at / 1e3, Ether(packet)) for at, packet in drawn.hole(1460 - (headers - 28)).packets]
    trace = trace_of(of_timed(lambda: timed if headers == 28 else over_ipv6(timed)), tmp_path)
    assert trace.answer.cause == "mtu-black-hole" and f"ping -M do -s {size} " in trace.causes.rows()[0]["advice"]


def test_a_connection_that_stays_empty_may_be_the_path_mtu(tmp_path: Path) -> None:
    trace = trace_of(
        lambda path: of_wire(lambda: drawn.Connection(drawn.Wire(), server_port=5001).open().wire)(path), tmp_path
    )
    assert trace.answer.cause is None  # the capture ended at once
    trace = trace_of(of_wire(drawn.opened), tmp_path)
    assert trace.answer.cause is None or trace.answer.certainty == "possible"


def test_fragments_that_a_device_drops_are_all_but_the_first(tmp_path: Path) -> None:
    row = causes_of(drawn.EXAMPLES["fragments-dropped"], tmp_path)["fragments-dropped"]
    assert row["sentence"] == (
        "A device before the capture point probably drops IP fragments: all 7 fragmented datagrams from 203.0.113.5 arrived "
        "with only the first fragment, while all 6 datagrams without fragments arrived."
    )
    assert (row["failed"], row["attempts"], row["place"]) == (7, 7, "before")


def test_later_fragments_of_others_show_that_no_filter_hides_them(tmp_path: Path) -> None:
    unharmed = drawn.datagrams(2, lambda number, index: False, source="203.0.113.6")
    timed = of_timed(lambda: [*drawn.datagrams(7, lambda number, index: index > 0), *unharmed])
    assert causes_of(timed, tmp_path)["fragments-dropped"]["certainty"] == "proven"


def test_requests_that_a_user_stopped_are_no_hung_server(tmp_path: Path) -> None:
    assert "hung-server" not in causes_of(of_wire(lambda: drawn.hung(1, answered=5, wait_ms=700.0)), tmp_path)


def test_an_upload_that_lasts_is_no_request_without_an_answer(tmp_path: Path) -> None:
    assert "hung-server" not in causes_of(of_wire(lambda: backup(200.0)), tmp_path)
    row = causes_of(of_wire(lambda: backup(200.0, 7000.0)), tmp_path)["hung-server"]
    assert "in 7.02 s" in row["sentence"], "since the upload was complete"


def test_fragments_that_are_lost_at_random_are_no_device(tmp_path: Path) -> None:
    rows = causes_of(drawn.EXAMPLES["fragment-loss"], tmp_path)
    assert "fragments-dropped" not in rows and "8.33% of its datagrams" in rows["fragment-loss"]["sentence"]


def test_two_lost_tails_are_no_device(tmp_path: Path) -> None:
    timed = of_timed(lambda: drawn.datagrams(40, lambda number, index: number in (3, 4) and index > 0))
    assert "fragments-dropped" not in causes_of(timed, tmp_path)


def test_a_routing_loop_is_no_copy(tmp_path: Path) -> None:
    rows = causes_of(of_timed(drawn.circling), tmp_path)
    assert set(rows) == {"routing-loop"}
    assert rows["routing-loop"]["sentence"] == (
        "Packets to 10.9.0.5 circle between routers: 3 packets passed the capture point again and again, one 30 "
        "times, its TTL falling by 2, until it expired or left."
    )


def test_routers_off_the_loop_report_it(tmp_path: Path) -> None:
    rows = causes_of(of_timed(drawn.expired), tmp_path)
    assert "10.1.0.1 and 10.1.0.2 reported 4 times that the TTL ran out" in rows["routing-loop"]["sentence"]


def test_a_traceroute_is_no_loop(tmp_path: Path) -> None:
    assert "routing-loop" not in causes_of(of_timed(lambda: drawn.expired(ttl=1)), tmp_path)


def test_broadcasts_of_two_hosts_that_circle_are_a_loop_of_bridges(tmp_path: Path) -> None:
    trace = trace_of(drawn.EXAMPLES["bridge-loop"], tmp_path)
    assert trace.answer.sentence == (
        "VLAN 20 has a layer 2 loop: ARP broadcasts of 2 hosts passed the capture point 800 times in 200 ms, though a host "
        "sends each once."
    )
    assert all(rivals_of(trace, "bridge-loop").values())


def test_broadcasts_of_one_host_may_be_its_own(tmp_path: Path) -> None:
    row = causes_of(of_timed(lambda: drawn.storm(["10.0.4.10"])), tmp_path)["bridge-loop"]
    assert row["certainty"] == "likely" and "VLAN 20 probably has a layer 2 loop" in row["sentence"]


@pytest.mark.parametrize(
    "make",
    [drawn.sweep, lambda: drawn.sweep(copies=4), lambda: drawn.storm(copies=40), lambda: drawn.storm(every=1.0)],
    ids=["a sweep at a mirror port", "at four ports", "a few copies", "a host that asks each second"],
)
def test_other_broadcasts_are_no_loop(make: Any, tmp_path: Path) -> None:
    assert "bridge-loop" not in causes_of(of_timed(make), tmp_path)


def test_a_call_of_which_one_end_is_not_heard(tmp_path: Path) -> None:
    row = causes_of(of_timed(drawn.call), tmp_path)["one-way-media"]
    assert row["certainty"] == "likely"
    assert row["sentence"] == (
        "The call is probably one-way: 600 RTP packets left 198.51.100.7 for 192.168.1.20 in 12 s, and none came back here, "
        "although SIP passes in both directions."
    )


@pytest.mark.parametrize("more", [{"answered": True}, {"packets": 200}, {"port": 554}, {"status": "487 Gone"}])
def test_media_of_both_ends_a_ring_tone_and_a_stream_are_no_one_way_call(more: Any, tmp_path: Path) -> None:
    assert "one-way-media" not in causes_of(of_timed(lambda: drawn.call(**more)), tmp_path)


@pytest.mark.parametrize(
    ("more", "passed", "alone"),
    [
        ({}, "7.98 s", "16 s"),
        ({"split": True, "hangs_up": True}, "7.98 s", "16 s, until the call was hung up"),
        ({"until": 600, "packets": 1000, "split": True, "hangs_up": True}, "12 s", "8 s, until the call was hung up"),
    ],
)
def test_an_end_of_a_call_that_falls_silent(more: dict[str, Any], passed: str, alone: str, tmp_path: Path) -> None:
    answer = trace_of(of_wire(lambda: drawn.falls_silent(**more)), tmp_path).answer
    assert answer.cause == "media-stops" and answer.sentence == (
        f"No more RTP came from 10.0.0.20 after the first {passed} of the call, while that of 10.0.0.5 went on for {alone}. "
        "It probably stopped sending, or its packets are dropped before the capture point."
    )


def test_without_sip_the_end_may_have_put_the_call_on_hold(tmp_path: Path) -> None:
    row = causes_of(of_wire(lambda: drawn.falls_silent(with_sip=False)), tmp_path)["media-stops"]
    assert row["certainty"] == "possible" and "or put the call on hold (no SIP is in the capture)" in row["sentence"]


@pytest.mark.parametrize(
    "more",
    [
        *({"change": method, "split": split} for method in ("INVITE", "UPDATE", "BYE") for split in (False, True)),
        *({"until": 1000}, {"until": 1200}, {"until": 100}, {"noise": True}, {"moves": True, "with_sip": False}),
    ],
)
def test_a_call_on_hold_and_its_last_seconds_are_no_silence(more: dict[str, Any], tmp_path: Path) -> None:
    assert "media-stops" not in causes_of(of_wire(lambda: drawn.falls_silent(**more)), tmp_path)


def test_one_end_that_is_not_heard_any_more(tmp_path: Path) -> None:
    answer = trace_of(of_wire(drawn.unheard), tmp_path).answer
    assert answer.cause == "one-direction-cut", answer.sentence
    assert "once the other end had closed" in answer.sentence and "repeated 5 segments" in answer.sentence


def test_packets_with_a_mark_that_are_not_heard(tmp_path: Path) -> None:
    answer = trace_of(of_wire(drawn.unheard_marks), tmp_path).answer
    assert answer.cause == "one-direction-cut", answer.sentence
    assert "since it marks its packets with DSCP 18 in place of 0" in answer.sentence
    assert "DSCP" not in trace_of(of_wire(lambda: drawn.unheard_marks(0)), tmp_path).answer.sentence


@pytest.mark.parametrize("more", [{"heard": True}, {"repeats": 2}, {"answered": True}])
def test_losses_that_end_and_a_silent_peer_cut_no_direction(more: dict[str, Any], tmp_path: Path) -> None:
    assert "one-direction-cut" not in causes_of(of_wire(lambda: drawn.unheard(**more)), tmp_path)


@pytest.mark.parametrize(("passing", "is_dropped"), [(0, True), (3, False)])
def test_packets_of_several_segments_that_vanish(passing: int, is_dropped: bool, tmp_path: Path) -> None:
    """If some of them pass, their size does not matter."""
    trace = trace_of(of_wire(lambda: drawn.merged_lost(passing=passing)), tmp_path)
    assert (trace.answer.cause == "offload-dropped") is is_dropped
    assert not is_dropped or trace.answer.sentence.startswith(
        "Only single segments pass: 10.0.0.1:40000 → 10.0.0.2:80 hands over packets of up to 5,840 bytes of payload (TSO, GSO), "
        "none acknowledged, while 12 segments of 1,460 bytes that a timer repeated got through."
    )
