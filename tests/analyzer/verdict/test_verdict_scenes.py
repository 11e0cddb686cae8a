# SPDX-License-Identifier: Apache-2.0
"""The cases of docs/verdicts.md that are more than one conversation's counts, with their near misses, in every wrapping."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import test_near_misses
import test_verdicts
from scapy.all import GRE, IP, TCP, Dot1AD, Dot1Q, Ether, IPv6, Packet
from scapy.contrib.mpls import MPLS
from test_verdicts import SEGMENT, WRITERS, burst

import wiretale
from scene import Registry, Scene, play, register, rows, says, sent_by
from talk import RTT, Talk

S = SEGMENT
SCENES: Registry = {}
scene = partial(register, SCENES)
OFFER: list[Any] = [("SAckOK", b""), ("WScale", 7)]
TAKES_ACKS = (
    *("fast_retransmissions", "timeout_retransmissions", "timeouts", "probe_retransmissions"),
    *("spurious_retransmissions", "lost_downstream", "unseen_bytes", "keep_alives", "window_probes", "window_full"),
)


# --- what was captured of the conversation


def one_way(version: int, late: bool) -> Scene:
    talk = Talk(version=version)
    (test_near_misses.the_original_after_three_duplicates if late else test_verdicts.fast_upstream)(talk)

    def verify(trace: wiretale.Trace) -> None:
        names = ("retransmissions", "lost_upstream", "out_of_order", "ambiguous")
        assert rows(trace, *names)[0] == ((0, 0, 1, 0) if late else (1, 1, 0, 0))
        assert rows(trace, *TAKES_ACKS)[0] == (None,) * len(TAKES_ACKS)

    return Scene(sent_by(talk, 0), verify)


@scene("17")
def only_the_data_was_captured(version: int) -> Scene:
    return one_way(version, late=False)


@scene("17 near")
def only_the_data_was_captured_and_came_late(version: int) -> Scene:
    return one_way(version, late=True)


def handshake_or_not(version: int, first: int) -> list[Packet]:
    talk = Talk(version=version)
    test_verdicts.window_full(talk)
    return talk.in_order()[first:]


@scene("18")
def begins_mid_stream(version: int) -> Scene:
    names = "window_min window_max window_full retransmissions"
    return Scene(handshake_or_not(version, 3), says((None, None, None, 0), (None, None, None, 0), names=names))


@scene("18 near")
def begins_with_the_handshake(version: int) -> Scene:
    names = "window_min window_max window_full retransmissions"
    return Scene(handshake_or_not(version, 0), says((8192, 8192, 1, 0), (1000, 8192, 0, 0), names=names))


@scene("45")
def only_the_acks_were_captured(version: int) -> Scene:
    talk = Talk(version=version)
    test_verdicts.two_gaps_resent_at_once(talk)

    def verify(trace: wiretale.Trace) -> None:
        unseen = next(row for row in trace.directions.rows() if not row["packets"])
        assert unseen["sack_gaps"] == 2 and unseen["unseen_bytes"] in (0, None)
        assert "acked_unseen_segment" not in trace.events.column("kind")
        assert "sack-gaps" in trace.findings.column("code")

    return Scene(sent_by(talk, 1), verify)


@scene("45 near")
def only_the_acks_and_a_report_of_a_duplicate(version: int) -> Scene:
    """A DSACK is no gap."""
    talk = Talk(version=version)
    test_verdicts.tail_loss_probe(talk)

    def verify(trace: wiretale.Trace) -> None:
        unseen = next(row for row in trace.directions.rows() if not row["packets"])
        assert unseen["sack_gaps"] == 0
        assert "sack-gaps" not in trace.findings.column("code")

    return Scene(sent_by(talk, 1), verify)


def stepped(version: int, step_ms: float) -> Scene:
    talk = Talk(version=version)
    test_verdicts.clean(talk)
    packets = talk.in_order()
    for packet in packets[12:]:
        packet.time -= step_ms / 1000

    def verify(trace: wiretale.Trace) -> None:
        assert sum(trace.interfaces.column("backward_steps")) == (step_ms > 0)
        assert ("time_backward" in trace.events.column("kind")) == (step_ms > 0)
        for row in trace.directions.rows():
            assert row["lost_upstream"] == row["lost_downstream"] == row["retransmissions"] == 0
            assert (row["rtt_ns_min"] or 0) >= 0 and row["throughput_bps"] > 0

    return Scene(packets, verify)


@scene("31")
def the_clock_steps_back(version: int) -> Scene:
    return stepped(version, 5)


@scene("31 near")
def the_clock_goes_on(version: int) -> Scene:
    return stepped(version, 0)


def cut_at(version: int, behind_ip: int, names: str, *wanted: tuple[Any, ...], code: bool = True) -> Scene:
    """A loss, of each packet so many bytes from the TCP header on."""
    talk = Talk(version=version)
    test_verdicts.fast_downstream(talk)
    packets = talk.in_order()

    def verify(trace: wiretale.Trace) -> None:
        says(*wanted, names=names)(trace)
        assert ("headers-cut" in trace.findings.column("code")) is code
        assert sum(trace.interfaces.column("cut_headers")) == (len(packets) if code else 0)

    return Scene(packets, verify, keep=14 + (20 if version == 4 else 40) + behind_ip)


@scene("32")
def tcp_options_cut_off(version: int) -> Scene:
    """Sequence numbers tell of the loss; what stood in the options is not known, so neither is the window's scale."""
    names = "unique_bytes retransmissions mss sack_permitted timestamps window_min window_scale"
    return cut_at(version, 20, names, (5 * S, 1, *(None,) * 5), (0, 0, *(None,) * 5))


@scene("32")
def tcp_header_cut_off(version: int) -> Scene:
    names = "unique_bytes payload_bytes retransmissions duplicate_acks zero_windows syns"
    return cut_at(version, 12, names, (None,) * 6, (None,) * 6)


@scene("32 near")
def only_the_data_cut_off(version: int) -> Scene:
    names = "unique_bytes retransmissions mss sack_permitted timestamps window_scale fast_retransmissions"
    return cut_at(version, 60, names, (5 * S, 1, 1460, True, True, 7, 1), code=False)


# --- opening and closing


@scene("26")
def simultaneous_open_and_half_close(version: int) -> Scene:
    talk = half_closed(version)

    def verify(trace: wiretale.Trace) -> None:
        assert trace.flows.column("state") == ["closed"]
        says((0,) * 5, (0,) * 5, names=CLEAN)(trace)

    return Scene(talk.in_order(), verify)


CLEAN = "lost_upstream lost_downstream unseen_bytes gap_bytes acks_out_of_range"


def half_closed(version: int, lost: int = -1) -> Talk:
    """Both ends open at once; one closes, and the other goes on for three segments, one of them lost."""
    talk = Talk(version=version)
    talk.send(0, 0, -1, ack=None, flags="S", options=OFFER).send(1, 1, -1, ack=None, flags="S", options=OFFER)
    talk.send(21, 1, -1, flags="SA", options=OFFER).send(22, 0, -1, flags="SA", options=OFFER).send(42, 0, 0)
    talk.send(50, 0, 0, flags="FA").ack(70, 1)
    for k in range(3):
        talk.send(80 + k, 1, k * S, S, 1)
    acked = 3 if lost < 0 else lost
    talk.send(100, 0, 1, ack=acked * S)
    if lost >= 0:
        talk.send(400, 1, lost * S, S, 1).send(420, 0, 1, ack=3 * S)
    return talk.send(430, 1, 3 * S, 0, 1, flags="FA").send(431, 0, 1, ack=3 * S + 1)


@scene("26 near")
def a_loss_after_the_half_close(version: int) -> Scene:
    names = "retransmissions timeouts lost_downstream unseen_bytes"
    return Scene(half_closed(version, lost=1).in_order(), says((0, 0, 0, 0), (1, 1, 1, 0), names=names))


def opened_with_data(version: int, taken: int, answer: str = "SA") -> Talk:
    talk = Talk(version=version)
    talk.send(0, 0, -1, 100, ack=None, flags="S", options=OFFER)
    return talk.send(20, 1, -1, ack=taken, flags=answer, options=OFFER if "S" in answer else [])


@scene("26")
def syn_with_data_and_a_reset(version: int) -> Scene:
    talk = opened_with_data(version, 100).send(20.1, 0, 100).send(40, 1, 0, 0, 100, flags="RA")

    def verify(trace: wiretale.Trace) -> None:
        assert trace.flows.column("state") == ["reset"]
        says((100, 0, 0, 0), names="unique_bytes retransmitted_bytes unseen_bytes retransmissions")(trace)

    return Scene(talk.in_order(), verify)


@scene("26 near")
def syn_with_data_that_was_not_taken(version: int) -> Scene:
    talk = opened_with_data(version, 0).data(20.1, 0, 100).ack(40, 100)

    def verify(trace: wiretale.Trace) -> None:
        assert trace.flows.column("state") == ["established"]
        says((100, 100, 0, 1), names="unique_bytes retransmitted_bytes unseen_bytes retransmissions")(trace)

    return Scene(talk.in_order(), verify)


@scene("26")
def a_reset_in_answer(version: int) -> Scene:
    talk = Talk(version=version).send(0, 0, -1, ack=None, flags="S", options=OFFER).send(20, 1, -1, flags="RA")

    def verify(trace: wiretale.Trace) -> None:
        assert trace.flows.column("state") == ["refused"]
        says((0,) * 5, (0,) * 5, names=CLEAN)(trace)

    return Scene(talk.in_order(), verify)


def used_again(version: int, end: str, pause_ms: float, isn: tuple[int, int]) -> list[Packet]:
    """A connection that ends, and another SYN on its ports."""
    first, second = Talk(version=version), Talk(version=version, isn=isn)
    first.open()
    first.data(30, 0).ack(50, S).send(60, 0, S, flags=end)
    if end == "FA":
        first.send(80, 1, 0, 0, S + 1, flags="FA").send(80.1, 0, S + 1, ack=1)
    second.open()
    second.data(30, 0).ack(50, S)
    for packet in second.packets:
        packet.time += pause_ms / 1000
    return first.in_order() + second.in_order()


def two_flows(trace: wiretale.Trace) -> None:
    assert len(trace.flows) == 2
    assert sum(trace.directions.column("retransmissions")) == 0 == sum(trace.directions.column("acks_out_of_range"))


@scene("27")
def ports_again_after_a_fin(version: int) -> Scene:
    return Scene(used_again(version, "FA", 200, (900_000, 800_000)), two_flows)


@scene("27")
def ports_again_at_once_after_a_reset(version: int) -> Scene:
    return Scene(used_again(version, "RA", 61, (900_000, 800_000)), two_flows)


@scene("27 near")
def the_same_syn_again(version: int) -> Scene:
    """The answer was slow; the SYN has the same number, so it opens the same connection."""
    talk = Talk(version=version)
    talk.send(0, 0, -1, ack=None, flags="S", options=OFFER).send(1000, 0, -1, ack=None, flags="S", options=OFFER)
    talk.send(1020, 1, -1, flags="SA", options=OFFER).send(1020.1, 0, 0).data(1030, 0).ack(1050, S)

    def verify(trace: wiretale.Trace) -> None:
        assert len(trace.flows) == 1
        says((1, 1, 2), names="retransmissions timeouts syns")(trace)

    return Scene(talk.in_order(), verify)


# --- encapsulations


def wrapped(packets: list[Packet], *headers: Packet) -> list[Packet]:
    """Each packet's IP behind these headers."""
    done = []
    for packet in packets:
        outer = Ether(src="02:00:00:00:00:05", dst="02:00:00:00:00:06")
        for header in headers:
            outer = outer / header.copy()
        inner = packet.payload.copy()
        frame = Ether(bytes(outer / inner))
        frame.time = packet.time
        done.append(frame)
    return done


def loss_behind(version: int, *headers: Packet) -> Scene:
    talk = Talk(version=version)
    expected = test_verdicts.fast_downstream(talk)

    def verify(trace: wiretale.Trace) -> None:
        assert len(trace.flows) == 1
        test_verdicts.check(trace, expected)

    return Scene(wrapped(talk.in_order(), *headers), verify)


@scene("38")
def a_loss_in_a_vlan(version: int) -> Scene:
    return loss_behind(version, Dot1Q(vlan=5))


@scene("38")
def a_loss_in_two_vlans(version: int) -> Scene:
    return loss_behind(version, Dot1AD(vlan=9), Dot1Q(vlan=5))


@scene("38")
def a_loss_behind_labels(version: int) -> Scene:
    return loss_behind(version, MPLS(label=16, s=0), MPLS(label=17, s=1))


@scene("38")
def a_loss_in_gre(version: int) -> Scene:
    return loss_behind(version, IP(src="192.0.2.8", dst="192.0.2.9"), GRE(proto=0x800 if version == 4 else 0x86DD))


def clean_twice(version: int, vlans: tuple[int, int], later_ms: float) -> list[Packet]:
    talk = Talk(version=version)
    test_verdicts.clean(talk)
    first = wrapped(talk.in_order(), Dot1Q(vlan=vlans[0]))
    second = wrapped(talk.in_order(), Dot1Q(vlan=vlans[1]))
    for packet in second:
        packet.time += later_ms / 1000
    return sorted(first + second, key=lambda packet: float(packet.time))


@scene("38")
def addresses_again_in_another_vlan(version: int) -> Scene:
    def verify(trace: wiretale.Trace) -> None:
        assert len(trace.flows) == 2 and len(trace.events) == 0
        assert trace.directions.column("unique_bytes") == [10 * S, 0] * 2

    return Scene(clean_twice(version, (5, 6), 0.3), verify)


@scene("38 near")
def packets_again_in_the_same_vlan(version: int) -> Scene:
    """Equal in all, so they are copies: one conversation."""

    def verify(trace: wiretale.Trace) -> None:
        assert len(trace.flows) == 1
        says((12, 0, 10 * S), (11, 0, 0), names="mirror_duplicates retransmissions unique_bytes")(trace)

    return Scene(clean_twice(version, (5, 5), 0.3), verify)


@scene("38 near")
def no_loss_in_a_vlan(version: int) -> Scene:
    talk = Talk(version=version)
    test_verdicts.clean(talk)

    def verify(trace: wiretale.Trace) -> None:
        assert len(trace.flows) == 1 and len(trace.events) == 0

    return Scene(wrapped(talk.in_order(), Dot1Q(vlan=5)), verify)


# --- options, congestion marks, resets


def optioned(version: int, *options: list[Any]) -> list[Packet]:
    talk = Talk(version=version, timestamps=False)
    talk.open()
    for k, option in enumerate(options):
        talk.data(30 + k, k * S, options=option).ack(50 + k, (k + 1) * S)
    return talk.in_order()


@scene("39")
def unusual_options(version: int) -> Scene:
    options = [(30, b"\x20\x00\x01\x02\x03\x04"), (19, bytes(16)), (29, b"\x01\x02" + bytes(12)), (200, b"")]
    packets = optioned(version, *([option] for option in options))
    return Scene(packets, says((4, 4 * S, 0), names="unusual_options unique_bytes retransmissions"))


@scene("39 near")
def usual_options(version: int) -> Scene:
    options: list[list[Any]] = [[("NOP", None)], [("Timestamp", (5, 0))], [("SAck", (7, 9))], []]
    names = "unusual_options unique_bytes retransmissions"
    return Scene(optioned(version, *options), says((0, 4 * S, 0), names=names))


def marked(version: int, mark: int, echo: str) -> Talk:
    talk = Talk(version=version)
    talk.open()
    talk.data(30, 0)
    if version == 4:
        talk.packets[-1][IP].tos = mark
        del talk.packets[-1][IP].chksum
    else:
        talk.packets[-1][IPv6].tc = mark
    return talk.ack(50, S, flags="A" + echo).data(51, S, flags="AC" if echo else "A").ack(71, 2 * S)


@scene("40")
def congestion_marks(version: int) -> Scene:
    def verify(trace: wiretale.Trace) -> None:
        says((1, 1, 0, 0), (0, 0, 1, 0), names="ecn_ce ecn_cwr ecn_echo retransmissions")(trace)
        assert trace.findings.column("code") == ["congestion-marks"]

    return Scene(marked(version, 3, "E").in_order(), verify)


@scene("40 near")
def able_to_mark_and_not_marked(version: int) -> Scene:
    """ECT(0), and ECE on the SYN alone, which only offers."""
    talk = marked(version, 2, "")
    talk.packets[0][TCP].flags = "SEC"
    del talk.packets[0][TCP].chksum

    def verify(trace: wiretale.Trace) -> None:
        says((0, 0, 0, 0), (0, 0, 0, 0), names="ecn_ce ecn_cwr ecn_echo retransmissions")(trace)
        assert trace.findings.column("code") == []

    return Scene(talk.in_order(), verify)


@scene("23")
def super_segments_are_one_finding(version: int) -> Scene:
    talk = Talk(version=version)
    test_verdicts.super_segments(talk)

    def verify(trace: wiretale.Trace) -> None:
        assert trace.findings.column("code") == ["offload"]
        says((180 * S, 0), names="unique_bytes retransmissions")(trace)

    return Scene(talk.in_order(), verify)


@scene("23 near")
def segments_of_a_link(version: int) -> Scene:
    talk = Talk(version=version)
    test_verdicts.clean(talk)

    def verify(trace: wiretale.Trace) -> None:
        assert trace.findings.column("code") == []

    return Scene(talk.in_order(), verify)


def after_a_pause(version: int, pause_ms: float, *told: str) -> Scene:
    """Beside the receiver, nothing but the pause to go by: without identifications nobody can count what is missing."""
    talk = Talk(version=version, ids=False)
    talk.open(near=RTT)
    burst(talk, 30, 3)
    ms = 30.2 + pause_ms
    talk.ack(30.3, 3 * S).missing(0).data(ms, 3 * S).ack(ms + 0.1, 4 * S)

    def verify(trace: wiretale.Trace) -> None:
        assert trace.events.column("kind") == list(told)
        says((0, 0, 0), names="suspected_timeouts retransmissions lost_upstream")(trace)

    return Scene(talk.in_order(), verify)


@scene("41")
def a_pause_that_nothing_explains(version: int) -> Scene:
    """A loss, or nothing to send: not known, and said so."""
    return after_a_pause(version, 300, "idle_gap")


@scene("41 near")
def no_pause_of_a_timer(version: int) -> Scene:
    return after_a_pause(version, 100)


@scene("16")
def throughput_without_its_acks(version: int) -> Scene:
    return rated(version, whole=False)


@scene("16 near")
def throughput_with_its_acks(version: int) -> Scene:
    return rated(version, whole=True)


def rated(version: int, whole: bool) -> Scene:
    """What is sent in a second, whether or not its acknowledgments were captured."""
    talk = Talk(version=version)
    talk.open()
    for k in range(97):
        talk.data(30 + 10 * k, k * S)
        if whole or k > 94:
            talk.ack(50 + 10 * k, (k + 1) * S)
        else:
            talk.missing(1)
    talk.data(1000, 97 * S).ack(1020, 98 * S)

    def verify(trace: wiretale.Trace) -> None:
        row = trace.directions.rows()[0]
        assert row["goodput_bps"] == 784_000 and row["unseen_bytes"] == 0
        assert row["throughput_bps"] == pytest.approx(8 * row["ip_bytes"], rel=1e-6)
        assert (row["rtt_samples"] > 90) is whole

    return Scene(talk.in_order(), verify)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(("name", "version"), [(name, version) for name in SCENES for version in SCENES[name][1]])
def test_scene(name: str, version: int, writer: str, tmp_path: Path) -> None:
    play(SCENES[name][0](version), writer, tmp_path)
