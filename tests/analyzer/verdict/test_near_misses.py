# SPDX-License-Identifier: Apache-2.0
"""Conversations that differ from a case in the one thing that matters, and must not get its verdict.

The near misses of cases that stand in test_verdicts.py and have none there. Each runs through the same wrappings.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import test_verdicts
from test_verdicts import LOST, SEGMENT, WRITERS, Case, Expected, burst, judge, three_duplicates

from talk import RTT, Talk

S = SEGMENT
NEAR_MISSES: dict[str, tuple[Case, bool]] = {}
near = partial(test_verdicts.case, cases=NEAR_MISSES)
TIMEOUT = {**LOST, "timeout_retransmissions": 1, "timeouts": 1}


@near("1 near")
def one_segment_again(talk: Talk) -> Expected:
    talk.open()
    for k in range(10):
        talk.data(30 + k, k * S)
        if k < 9:
            talk.ack(50 + k, (k + 1) * S)
    talk.data(290, 9 * S).ack(310, 10 * S)
    return TIMEOUT


@near("2 near")
def an_ack_that_no_timer_delayed(talk: Talk) -> Expected:
    """It comes a few milliseconds late, with others before it: a sample like any."""
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50.2, 2 * S).ack(50.4, 4 * S).ack(55, 5 * S)
    return {"rtt_above_ms": 24}


@near("4 near")
def the_original_after_three_duplicates(talk: Talk) -> Expected:
    """What fills the gap is the slow first sending: older TSval and id."""
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 3, 2)
    talk.ack(50, S)
    three_duplicates(talk)
    talk.data(50.5, S, ip_id=1003, tsval=10_029).ack(70.5, 5 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 3}}


@near("6 near")
def again_after_all_was_acknowledged(talk: Talk) -> Expected:
    """The sender knows by then that its go-back-N is over: what it sends again now is needless, and no timer's."""
    talk.open()
    burst(talk, 30, 5)
    talk.data(290, 0).ack(310, 5 * S).data(410, 4 * S).ack(430, 5 * S, (4 * S, 5 * S))
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "spurious_retransmissions": 1,
        "lost_downstream": 1,
    }


@near("10 near")
def resent_and_the_original_never_came(talk: Talk) -> Expected:
    """Without the late original and its DSACK the same four duplicates mean a loss."""
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 4, 2)
    talk.ack(50, S)
    for k in range(2, 6):
        talk.ack(50 + k / 10, S, (2 * S, (k + 1) * S))
    talk.data(50.65, S).ack(70.65, 6 * S)
    return {"retransmissions": 1, "fast_retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 4}}


def filled(talk: Talk, round_trips: float) -> None:
    """A gap that is filled so late, with nothing but time to tell."""
    talk.ids = talk.timestamps = False
    talk.open()
    ms = 30.1 + round_trips * RTT
    talk.data(30, 0).data(30.1, 2 * S).ack(50, S).ack(50.1, S, (2 * S, 3 * S)).data(ms, S).ack(ms + RTT, 3 * S)


@near("11 near")
def filled_after_more_than_a_round_trip(talk: Talk) -> Expected:
    filled(talk, 1.1)
    return {"retransmissions": 1, "fast_retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 1}}


@near("11 near")
def filled_after_a_fifth_of_a_round_trip(talk: Talk) -> Expected:
    filled(talk, 0.2)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@near("13 near")
def a_copy_of_one_hop_less_after_five_milliseconds(talk: Talk) -> Expected:
    """No second port is so slow: the network sent it another way too."""
    test_verdicts.clean(talk)
    talk.copy(5, 3, **{"ttl" if talk.version == 4 else "hlim": 63})
    return {"network_duplicates": 1}


@near("16 near")
def capture_drops_of_acks_and_one_segment(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.missing(0)
    burst(talk, 30.6, 4, 6)
    talk.missing(1, 5).ack(50.5, 6 * S).missing(1, 3).ack(50.9, 10 * S)
    return {"unseen_bytes": S}


@near("22 near")
def sequence_wraps_at_a_swap(talk: Talk) -> Expected:
    talk.isn = (2**32 - 1501, 2**32 - 1)
    return test_verdicts.neighbours_swapped(talk)


@near("23 near")
def part_of_a_super_segment_lost(talk: Talk) -> Expected:
    """An ACK in the middle of a super-segment is no artefact when nothing follows it: a packet of it was lost."""
    talk.open(scale=10)
    talk.data(30, 0, 60_000).ack(50, 10 * S).data(275, 10 * S).ack(295, 60 * S)
    return {**TIMEOUT, "rtt_below_ms": 25}


@near("25 near")
def syn_answered_after_three_seconds(talk: Talk) -> Expected:
    offer = [("MSS", 1460), ("SAckOK", b""), ("WScale", 7)]
    talk.send(0, 0, -1, ack=None, flags="S", options=offer).send(3020, 1, -1, flags="SA", options=offer)
    talk.send(3020.1, 0, 0).data(3030, 0).ack(6050, S)
    return {"handshake_ms": 3020.1}


@near("43 near")
def id_always_zero_and_the_same_at_once(talk: Talk) -> Expected:
    """Half a millisecond later with the same TSval: no timer, and no receiver that reports having it twice."""
    talk.ids = False
    talk.open()
    burst(talk, 30, 2)
    talk.copy(0.5).ack(50, S).ack(50.1, 2 * S)
    return {"mirror_duplicates": 1}


@near("44 near")
def keep_alives_at_an_open_window(talk: Talk) -> Expected:
    """The same packets as Linux's window probes, but that the window was never closed."""
    talk.open()
    talk.data(30, 0).ack(50, S)
    for k in range(3):
        talk.send(250 + 200 * k, 0, S - 1, 0).ack(270 + 200 * k, S)
    return {"keep_alives": 3}


@near("46 near")
def small_segments_and_a_large_one(talk: Talk) -> Expected:
    """The same sizes and times, but the large one begins behind the small ones."""
    talk.open()
    talk.data(30, 0).data(30.1, S, 500).data(30.2, S + 500, 500).ack(50.2, 2 * S).data(300, 2 * S, 1448)
    talk.ack(320, 2 * S + 1448)
    return {}


@near("47 near")
def two_gaps_filled_by_late_segments(talk: Talk) -> Expected:
    """The same gaps, filled as soon, by segments that left before those around them."""
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).missing(0).data(30.2, 4 * S).data(30.3, 5 * S)
    talk.data(30.4, S, ip_id=1003, tsval=10_029).data(30.5, 3 * S, ip_id=1005, tsval=10_029)
    talk.ack(50, S).ack(50.1, S, (2 * S, 3 * S)).ack(50.2, S, (4 * S, 5 * S), (2 * S, 3 * S))
    talk.ack(50.3, S, (4 * S, 6 * S), (2 * S, 3 * S)).ack(50.4, 3 * S, (4 * S, 6 * S)).ack(50.5, 6 * S)
    return {"out_of_order": 2, "back": {"duplicate_acks": 3}}


def on_both_sides_of_a_router(talk: Talk, sides: tuple[int, ...] = (0, 1)) -> None:
    """Every packet once more, one hop later."""
    for k in range(len(talk.packets)):
        side = 0 if talk.packets[k]["TCP"].sport == 40000 else 1
        if side in sides:
            hops = {"ttl" if talk.version == 4 else "hlim": 63}
            talk.copy(0.04, k, src="02:00:00:00:00:11", dst="02:00:00:00:00:12", **hops)


@near("50")
def a_loss_captured_on_both_sides_of_a_router(talk: Talk) -> Expected:
    test_verdicts.fast_downstream(talk)
    on_both_sides_of_a_router(talk)
    counts = {**LOST, "fast_retransmissions": 1, "mirror_duplicates": 8}
    return {**counts, "back": {"duplicate_acks": 3, "mirror_duplicates": 6}}


@near("50 near")
def a_resend_that_took_another_way(talk: Talk) -> Expected:
    """One hop less as well, but sent later: another id and TSval."""
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    three_duplicates(talk)
    talk.data(50.5, S, ttl=63).ack(70.5, 5 * S)
    return {**LOST, "fast_retransmissions": 1, "back": {"duplicate_acks": 3}}


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_miss(name: str, writer: str, version: int, tmp_path: Path) -> None:
    judge(NEAR_MISSES[name][0], writer, version, tmp_path)
