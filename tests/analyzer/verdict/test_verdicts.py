# SPDX-License-Identifier: Apache-2.0
"""Every verdict against a conversation crafted for it, in every wrapping, and the near miss that must not give it.

Cases are numbered as in docs/verdicts.md. `expected` holds the counts of the initiator's direction (of the responder's
under "back") that are not 0; every other verdict must be 0, or null where the case says so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wiretale
from talk import RTT, SEGMENT, WRITERS, Talk

VERDICTS = (
    *("retransmissions", "fast_retransmissions", "timeout_retransmissions", "timeouts", "probe_retransmissions"),
    *("spurious_retransmissions", "retransmitted_bytes", "out_of_order", "ambiguous", "network_duplicates"),
    *(
        "mirror_duplicates",
        "lost_upstream",
        "lost_downstream",
        "unseen_bytes",
        "capture_reordered",
        "suspected_timeouts",
    ),
    *("duplicate_acks", "zero_windows", "window_full", "window_probes", "keep_alives", "acks_out_of_range"),
    *("gap_bytes", "unknown_bytes", "sack_gaps", "unknown_duplicates"),
)
S = SEGMENT
Expected = dict[str, Any]
Case = Callable[[Talk], Expected]
CASES: dict[str, tuple[Case, bool]] = {}


def case(number: str, ids: bool = False, cases: dict[str, tuple[Case, bool]] = CASES) -> Callable[[Case], Case]:
    """Registers a case; `ids`: its truth takes IP ids, which IPv6 has not."""

    def register(function: Case) -> Case:
        cases[f"{number} {function.__name__}"] = (function, ids)
        return function

    return register


def burst(talk: Talk, ms: float, count: int, first: int = 0, gap: float = 0.1) -> None:
    """Segments one after another."""
    for k in range(count):
        talk.data(ms + k * gap, (first + k) * S)


LOST = {"retransmissions": 1, "retransmitted_bytes": S, "lost_downstream": 1}
SPURIOUS = {"retransmissions": 1, "retransmitted_bytes": S, "spurious_retransmissions": 1}


@case("1")
def clean(talk: Talk) -> Expected:
    talk.open()
    for k in range(10):
        talk.data(30 + k, k * S).ack(50 + k, (k + 1) * S)
    return {}


@case("2")
def delayed_acks(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50.2, 2 * S).ack(50.4, 4 * S).ack(250, 5 * S)
    return {"rtt_below_ms": 21}


def three_duplicates(talk: Talk) -> None:
    for k in range(2, 5):
        talk.ack(50 + k / 10, S, (2 * S, (k + 1) * S))


@case("3")
def fast_downstream(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    three_duplicates(talk)
    talk.data(50.5, S).ack(70.5, 5 * S)
    return {**LOST, "fast_retransmissions": 1, "back": {"duplicate_acks": 3}}


@case("3 near")
def two_duplicates_are_not_three(talk: Talk) -> Expected:
    """And without SACK there is no RACK: nobody knows why it was sent again."""
    talk.sack = False
    talk.open()
    burst(talk, 30, 4)
    talk.ack(50, S).ack(50.2, S).ack(50.3, S).data(52, S).ack(72, 4 * S)
    return {**LOST, "back": {"duplicate_acks": 2}}


@case("4")
def fast_upstream(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 3, 2)
    talk.ack(50, S)
    three_duplicates(talk)
    talk.data(50.5, S).ack(70.5, 5 * S)
    return {"retransmissions": 1, "fast_retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 3}}


@case("5")
def timeout_downstream(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 2)
    talk.ack(50, S).data(300, S).ack(320, 2 * S)
    return {**LOST, "timeout_retransmissions": 1, "timeouts": 1}


@case("5 near")
def soon_after_is_no_timeout(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).data(150, S).ack(170, 3 * S)
    return LOST


@case("6")
def go_back_n(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.data(290, 0).ack(310, S)  # of the rest 2, 3 and 4 had arrived, their reports were lost
    talk.data(310.1, S).data(310.2, 2 * S).ack(330, 5 * S).ack(330.2, 5 * S, (2 * S, 3 * S))
    talk.data(330.3, 3 * S).data(330.4, 4 * S)
    talk.ack(350.3, 5 * S, (3 * S, 4 * S)).ack(350.4, 5 * S, (4 * S, 5 * S))
    return {
        "retransmissions": 5,
        "retransmitted_bytes": 5 * S,
        "timeout_retransmissions": 5,
        "timeouts": 1,
        "spurious_retransmissions": 3,
        "lost_downstream": 2,
    }


@case("7")
def tail_loss_probe(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).data(90.2, 2 * S).ack(110, 3 * S).ack(110.2, 3 * S, (2 * S, 3 * S))
    return {**SPURIOUS, "probe_retransmissions": 1}


@case("8")
def neighbours_swapped(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).data(30.15, S, ip_id=1003, tsval=10_030)
    talk.ack(50, S).ack(50.1, S, (2 * S, 3 * S)).ack(50.15, 3 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("9", ids=True)
def swapped_on_a_short_path(talk: Talk) -> Expected:
    talk.timestamps = False
    talk.open(rtt=0.2)
    talk.data(30, 0).missing(0).data(30.01, 2 * S).data(30.11, S, ip_id=1003)
    talk.ack(30.2, S).ack(30.21, S, (2 * S, 3 * S)).ack(30.31, 3 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("9 near", ids=True)
def resent_on_a_short_path(talk: Talk) -> Expected:
    talk.timestamps = False
    talk.open(rtt=0.2)
    talk.data(30, 0).missing(0).data(30.01, 2 * S).data(30.11, S)  # its id is newer
    talk.ack(30.2, S).ack(30.21, S, (2 * S, 3 * S)).ack(30.31, 3 * S)
    return {"retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 1}}


@case("10")
def reordered_by_four_and_resent(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 4, 2)
    talk.data(30.7, S, ip_id=1003, tsval=10_029)
    talk.ack(50, S)
    for k in range(2, 6):
        talk.ack(50 + k / 10, S, (2 * S, (k + 1) * S))
    talk.data(50.65, S).ack(50.7, 6 * S).ack(70.65, 6 * S, (S, 2 * S))
    return {**SPURIOUS, "fast_retransmissions": 1, "out_of_order": 1, "back": {"duplicate_acks": 4}}


@case("10 other")
def original_after_its_resend(talk: Talk) -> Expected:
    """The capture sits where the slow original comes after what was sent in its place."""
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 3, 2)
    talk.ack(50, S)
    three_duplicates(talk)
    talk.data(50.5, S).data(50.6, S, ip_id=1003, tsval=10_029)
    talk.ack(70.5, 5 * S).ack(70.6, 5 * S, (S, 2 * S))
    return {
        "retransmissions": 1,
        "fast_retransmissions": 1,
        "spurious_retransmissions": 1,
        "out_of_order": 1,
        "retransmitted_bytes": S,
        "back": {"duplicate_acks": 3},
    }


@case("11")
def nothing_tells(talk: Talk) -> Expected:
    talk.ids = talk.timestamps = False
    talk.open()
    talk.data(30, 0).data(30.1, 2 * S).ack(50, S).ack(50.1, S, (2 * S, 3 * S))
    talk.data(30.1 + 0.6 * RTT, S).ack(62.1, 3 * S)
    return {"ambiguous": 1, "back": {"duplicate_acks": 1}}


@case("12")
def mirror_of_both_directions(talk: Talk) -> Expected:
    clean(talk)
    for k in range(len(talk.packets)):
        talk.copy(0.002, k)
    return {"mirror_duplicates": 12, "back": {"mirror_duplicates": 11}}


@case("13")
def mirror_on_both_sides_of_a_router(talk: Talk) -> Expected:
    clean(talk)
    name = "ttl" if talk.version == 4 else "hlim"
    for k in range(len(talk.packets)):
        talk.copy(0.04, k, src="02:00:00:00:00:11", dst="02:00:00:00:00:12", **{name: 63})
    return {"mirror_duplicates": 12, "back": {"mirror_duplicates": 11}}


@case("14")
def network_duplicate(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).copy(0.05).data(30.1, S).ack(50, S).ack(50.05, S, (0, S)).ack(50.1, 2 * S)
    return {"network_duplicates": 1, "back": {"duplicate_acks": 1}}


@case("15")
def capture_drops(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0, 3).data(30.4, 4 * S)
    for k in range(5):
        talk.ack(50 + k / 10, (k + 1) * S)
    return {"unseen_bytes": 3 * S}


@case("16")
def capture_drops_of_acks(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 10)
    talk.missing(1, 5).ack(50.5, 6 * S).missing(1, 3).ack(50.9, 10 * S)
    return {}


@case("20")
def zero_window(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=0)
    talk.data(250, S, 1).ack(270, S, window=0).send(650, 0, S - 1, 0).ack(670, S, window=0)
    talk.ack(1000, S, window=64).data(1000.1, S).ack(1020, 2 * S)
    return {"window_probes": 2, "back": {"zero_windows": 3}, "closed_ms": 950}


@case("20 other")
def probe_byte_accepted(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=0).data(250, S, 1).ack(270, S + 1, window=64)
    talk.data(270.1, S + 1).ack(290, 2 * S + 1)
    return {"window_probes": 1, "back": {"zero_windows": 1}}


@case("44")
def linux_window_probes(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=0)
    for k in range(3):
        talk.send(250 + 200 * k, 0, S - 1, 0).ack(270 + 200 * k, S, window=0)
    talk.ack(1000, S)
    return {"window_probes": 3, "back": {"zero_windows": 4}}


@case("19")
def keep_alives(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S)
    talk.send(10_000, 0, S - 1, 0).ack(10_020, S).send(20_000, 0, S - 1, 1).ack(20_020, S)
    talk.data(20_100, S).ack(20_120, 2 * S)
    return {"keep_alives": 2}


@case("21")
def window_full(talk: Talk) -> Expected:
    talk.open(scale=0)
    talk.data(30, 0).ack(50, S, window=3000)
    burst(talk, 50.1, 3, 1)
    talk.ack(70.1, 4 * S, window=1000).ack(80, 4 * S, window=8000)
    return {"window_full": 1}


@case("21 near")
def window_nearly_full(talk: Talk) -> Expected:
    talk.open(scale=0)
    talk.data(30, 0).ack(50, S, window=3001)
    burst(talk, 50.1, 3, 1)
    talk.ack(70.1, 4 * S)
    return {}


@case("22")
def sequence_wraps_at_a_loss(talk: Talk) -> Expected:
    talk.isn = (2**32 - 1501, 2**32 - 1)
    return fast_downstream(talk)


@case("23")
def super_segments(talk: Talk) -> Expected:
    talk.open(scale=10)
    for k in range(3):
        talk.data(30 + k, 60_000 * k, 60_000)
    for k in range(1, 181):
        talk.ack(50 + k / 100, k * 1000)
    return {"rtt_below_ms": 25}


@case("24")
def partial_overlap(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).data(30.1, S, 100).ack(50, S).data(300, S, 1460).ack(320, S + 1460)
    return {
        "retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "retransmitted_bytes": 100,
        "lost_downstream": 1,
    }


@case("46")
def resent_as_one(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).data(30.1, S, 500).data(30.2, S + 500, 500).ack(50, S).data(300, S, 1448).ack(320, S + 1448)
    return {
        "retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "retransmitted_bytes": 1000,
        "lost_downstream": 1,
    }


@case("25")
def syn_three_times(talk: Talk) -> Expected:
    offer: list[Any] = [("MSS", 1460), ("SAckOK", b""), ("WScale", 7)]
    for ms in (0, 1000, 3000):
        talk.send(ms, 0, -1, ack=None, flags="S", options=offer)
    talk.send(3020, 1, -1, flags="SA", options=offer).send(3020.1, 0, 0)
    talk.data(3030, 0).ack(3050, S)
    return {
        "retransmissions": 2,
        "timeout_retransmissions": 2,
        "timeouts": 2,
        "lost_downstream": 2,
        "handshake_ms": 20.1,
    }


@case("28")
def fin_again(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S).send(60, 0, S, flags="FA").send(300, 0, S, flags="FA").ack(320, S + 1)
    return {"retransmissions": 1, "timeout_retransmissions": 1, "timeouts": 1, "lost_downstream": 1}


@case("29")
def ack_just_late(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).data(280, 0).ack(285, S, tsecr=10_030)
    return {**SPURIOUS, "timeout_retransmissions": 1, "timeouts": 1}


@case("29 near")
def echo_of_the_resend(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).data(280, 0).ack(300, S, tsecr=10_280)
    return {**LOST, "timeout_retransmissions": 1, "timeouts": 1}


@case("30")
def acks_reordered(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 4)
    talk.ack(50, S).ack(50.1, 3 * S, window=8000).ack(50.12, 2 * S, window=1).ack(50.2, 4 * S, window=7900)
    return {"window_least": 8192}  # that of the SYN-ACK: the overtaken 1 << 7 is not taken


@case("41", ids=True)
def last_segment_lost_upstream(talk: Talk) -> Expected:
    talk.open(near=RTT)
    burst(talk, 30, 3)
    talk.ack(30.3, 3 * S).missing(0).data(330, 3 * S).ack(330.1, 4 * S)
    return {"suspected_timeouts": 1}


@case("41 near", ids=True)
def nothing_to_send_for_a_while(talk: Talk) -> Expected:
    talk.open(near=RTT)
    burst(talk, 30, 3)
    talk.ack(30.3, 3 * S).data(330, 3 * S).ack(330.1, 4 * S)
    return {}


@case("42")
def acks_stored_before_data(talk: Talk) -> Expected:
    talk.open(near=RTT)
    for k in range(5):
        talk.ack(40.99 + 10 * k, (k + 1) * S).data(41 + 10 * k, k * S)
    return {"capture_reordered": 5}


@case("43")
def id_always_zero(talk: Talk) -> Expected:
    talk.ids = False
    return timeout_downstream(talk)


@case("47")
def two_gaps_resent_at_once(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S).ack(50.2, S, (2 * S, 3 * S)).ack(50.4, S, (4 * S, 5 * S), (2 * S, 3 * S))
    talk.ack(50.5, S, (4 * S, 6 * S), (2 * S, 3 * S)).data(50.6, S).data(50.7, 3 * S).ack(70.6, 3 * S).ack(70.7, 6 * S)
    return {
        "retransmissions": 2,
        "fast_retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 3},
    }


@case("48")
def upstream_with_a_small_window(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0).data(30.2, 2 * S).ack(50, S).ack(50.2, S, (2 * S, 3 * S))
    talk.data(260, S).ack(280, 3 * S)
    return {
        "retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "lost_upstream": 1,
        "back": {"duplicate_acks": 1},
    }


@case("49")
def reordered_with_four_duplicates(talk: Talk) -> Expected:
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.05, S).missing(0)
    for k in range(2, 6):
        talk.data(30 + k, k * S).ack(30.05 + k, S, (2 * S, (k + 1) * S))
    talk.data(36, S, ip_id=1003, tsval=10_030).ack(36.05, 6 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 4}}


@case("7 near")
def too_soon_for_a_probe(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).data(52, 2 * S).ack(72, 3 * S)
    return LOST


@case("8 near")
def swapped_but_sent_later(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).data(32, S)  # TSval and id are newer
    talk.ack(50, S).ack(50.1, S, (2 * S, 3 * S)).ack(52, 3 * S)
    return {"retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 1}}


@case("12 near")
def the_same_bytes_with_another_id(talk: Talk) -> Expected:
    talk.open(rtt=0.4)
    talk.timestamps = False
    burst(talk, 30, 2, gap=0.01)
    talk.ack(30.41, S).data(30.9, S).ack(31.3, 2 * S)
    return LOST


@case("14 near")
def sent_again_after_a_round_trip(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).data(30.1, S).ack(50.1, S).data(52, S).ack(72, 2 * S)
    return LOST


@case("15 near")
def acknowledged_up_to_what_was_seen(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50.5, 5 * S)
    return {}


@case("19 near")
def one_new_byte_is_data(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S).data(10_000, S, 1).ack(10_020, S + 1)
    return {}


@case("20 near")
def a_small_window_is_not_closed(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=1).data(60, S, 1).ack(80, S + 1, window=64)
    return {}


@case("24 near")
def adjacent_segments_do_not_overlap(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0, 900).data(30.1, 900, 1460).ack(50.1, 2360)
    return {}


@case("28 near")
def a_fin_and_its_acknowledgment(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).send(31, 0, S, flags="FA").ack(51, S + 1).send(60, 1, 0, 0, S + 1, flags="FA")
    talk.send(60.1, 0, S + 1, ack=1)
    return {}


@case("30 near")
def acks_that_repeat_while_data_is_out(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0).data(30.2, 2 * S).ack(50, S).ack(50.2, S).ack(51, S, window=9000)
    return {"gap_bytes": S, "back": {"duplicate_acks": 1}}  # the last one tells a new window


@case("42 near")
def an_ack_long_before_its_data(talk: Talk) -> Expected:
    """What comes 50 ms after its acknowledgment was not stored late: the capture missed the first sending."""
    talk.open(near=RTT)
    talk.missing(0).data(40.1, S).ack(40.15, 2 * S).data(90, 0).ack(90.05, 2 * S, (0, S))
    return {"retransmissions": 1, "spurious_retransmissions": 1}


@case("48 near")
def late_with_a_small_window(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0).data(30.2, 2 * S).ack(50, S).ack(50.2, S, (2 * S, 3 * S))
    talk.data(260, S, ip_id=1003, tsval=10_029).ack(280, 3 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("49 near")
def four_duplicates_and_a_newer_segment(talk: Talk) -> Expected:
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.05, S).missing(0)
    for k in range(2, 6):
        talk.data(30 + k, k * S).ack(30.05 + k, S, (2 * S, (k + 1) * S))
    talk.data(56, S).ack(56.05, 6 * S)
    return {"retransmissions": 1, "fast_retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 4}}


def check(trace: wiretale.Trace, expected: Expected) -> None:
    """Every verdict of both directions."""
    out, back = trace.directions.rows(0, 2)
    wanted_back = expected.get("back", {})
    counts = [{name: row[name] for name in VERDICTS if row[name]} for row in (out, back)]
    events = [(row["frame"], row["kind"], row["place"], row["evidence"]) for row in trace.events.rows()]
    assert counts == [{k: v for k, v in expected.items() if k in VERDICTS}, wanted_back], events
    for row in (out, back):
        parts = ("unique_bytes", "retransmitted_bytes", "duplicate_bytes", "probe_bytes")
        assert row["payload_bytes"] == sum(row[part] for part in parts)
    if "rtt_below_ms" in expected:
        assert out["rtt_ns_max"] < expected["rtt_below_ms"] * 1e6
    if "rtt_above_ms" in expected:
        assert out["rtt_ns_max"] > expected["rtt_above_ms"] * 1e6
    if "closed_ms" in expected:
        assert back["zero_window_ns"] == expected["closed_ms"] * 1e6
    if "handshake_ms" in expected:
        assert trace.flows.rows()[0]["handshake_rtt_ns"] == pytest.approx(expected["handshake_ms"] * 1e6, abs=1000)
    if "window_least" in expected:
        assert back["window_min"] == expected["window_least"]


def judge(build: Case, writer: str, version: int, folder: Path) -> None:
    """One case in one wrapping."""
    talk = Talk(version=version)
    expected = build(talk)
    trace = wiretale.analyze(*WRITERS[writer](talk.in_order(), folder))
    assert len(trace.flows) == 1
    check(trace, expected)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, writer: str, version: int, tmp_path: Path) -> None:
    build, ids = CASES[name]
    if version == 6 and ids:
        pytest.skip("IPv6 has no identification")
    judge(build, writer, version, tmp_path)


def analyze(talk: Talk, folder: Path, **options: Any) -> wiretale.Trace:
    """From one file."""
    return wiretale.analyze(*WRITERS["pcap"](talk.in_order(), folder), **options)


def test_events_carry_place_evidence_and_proof(tmp_path: Path) -> None:
    talk = Talk()
    reordered_by_four_and_resent(talk)
    trace = analyze(talk, tmp_path)
    rows = {row["kind"]: row for row in trace.events.rows()}
    late, again = rows["out_of_order"], rows["fast_retransmission"]
    assert (late["evidence"], late["place"], late["related_frame"], late["spurious"]) == (
        "timestamps",
        "upstream",
        5,
        None,
    )
    assert (again["evidence"], again["place"], again["spurious"], again["bytes"]) == ("dsack", None, True, S)


def test_a_dsack_turns_a_mirror_copy_into_one_of_the_network(tmp_path: Path) -> None:
    talk = Talk()
    network_duplicate(talk)
    kinds = [(row["kind"], row["evidence"], row["frame"]) for row in analyze(talk, tmp_path).events.rows()]
    assert ("network_duplicate", "dsack", 5) in kinds and not [k for k in kinds if k[0] == "mirror_duplicate"]


def test_copies_are_counted_by_interface_too(tmp_path: Path) -> None:
    talk = Talk()
    mirror_of_both_directions(talk)
    trace = analyze(talk, tmp_path)
    assert trace.interfaces.column("mirror_duplicates") == [23]
    out = trace.directions.rows()[0]
    assert out["throughput_bps"] < 8e9 * out["ip_bytes"] / (out["last_ns"] - out["first_ns"])


def test_a_copy_that_was_the_networks_is_taken_back_where_it_was_stored(tmp_path: Path) -> None:
    talk = Talk()
    network_duplicate(talk)
    for packet in talk.packets:
        packet.sniffed_on = "there" if packet["TCP"].sport == 40000 else "back"
    captures = wiretale.analyze(*WRITERS["pcapng"](talk.in_order(), tmp_path)).interfaces
    used = {row["name"]: row["mirror_duplicates"] for row in captures.rows() if row["packets"]}
    assert used == {"there": 0, "back": 0}


def test_a_copy_long_ago_is_judged_when_it_is_forgotten(tmp_path: Path) -> None:
    """More verdicts follow than are kept, so no report can come for it any more: the event says what the counts say."""
    talk = Talk(sack=False)
    talk.open()
    burst(talk, 30, 6)
    talk.copy(0.05, 5).ack(50, 6 * S)
    for k in range(100):
        talk.data(1000 + 1000 * k, (6 + k) * S).data(1400 + 1000 * k, (6 + k) * S).ack(1420 + 1000 * k, (7 + k) * S)
    trace = analyze(talk, tmp_path)
    out = trace.directions.rows()[0]
    assert (out["retransmissions"], out["mirror_duplicates"], out["unknown_duplicates"]) == (100, 0, 1)
    assert [row["frame"] for row in trace.events.rows() if row["kind"] == "unknown_duplicate"] == [7]
    assert trace.interfaces.column("mirror_duplicates") == [0]
