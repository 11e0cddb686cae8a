# SPDX-License-Identifier: Apache-2.0
"""What is sent again although it had arrived, by a sender that had not heard of it: with what each capture can tell.

As in test_verdicts_more.py: conversations with a known truth, each in all its variants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from test_verdicts import SPURIOUS, Expected, burst, check
from test_verdicts_more import LACKS, VARIANTS, S, Variant

import wiretale
from talk import RTT, WRITERS, Talk

Build = Callable[[Talk], Expected]
LONG = ("ipv4", "bare")
CASES: dict[str, Build] = {}
RUNS: list[tuple[str, str]] = []  # a case and a variant of it


def case(needs: str = "", variants: Iterable[str] = VARIANTS) -> Callable[[Build], Build]:
    """Registers a case that needs "sack", or that is long and looks the same in most variants."""

    def register(function: Build) -> Build:
        CASES[function.__name__] = function
        RUNS.extend((function.__name__, variant) for variant in variants if needs not in LACKS[variant].split())
        return function

    return register


# --- going back without SACK: which of it had been lost


def two_gaps(talk: Talk, answers: Callable[[], Any], **counts: int) -> Expected:
    """Segments 1 and 2 are lost, 3 to 5 are held above them, 6 and 7 are lost; the fast resend of 1 is lost too.

    At the timeout the sender goes back: 1; then 2 and 3, which the receiver answers with `answers`; then 6 and 7.
    """
    talk.sack = False
    talk.open()
    burst(talk, 30, 8)
    talk.ack(50, S)
    for k in range(3):
        talk.ack(50.3 + k / 10, S)
    talk.data(50.6, S).data(290, S).ack(310, 2 * S).data(310.1, 2 * S).data(310.2, 3 * S)
    answers()
    talk.data(330.6, 6 * S).data(330.7, 7 * S).ack(350.6, 7 * S).ack(350.7, 8 * S)
    return {
        "retransmissions": 6,
        "retransmitted_bytes": 6 * S,
        "fast_retransmissions": 1,
        "timeout_retransmissions": 5,
        "timeouts": 1,
        "back": {"duplicate_acks": 3},
        **counts,
    }


@case()
def held_above_a_gap(talk: Talk) -> Expected:
    """No acknowledgment ends where segment 3 begins, none answers it: it may have been lost or not."""
    return two_gaps(talk, lambda: talk.ack(330.1, 6 * S), lost_downstream=5)


@case()
def an_acknowledgment_ends_at_the_gap(talk: Talk) -> Expected:
    """Near miss: segment 3 was lost as well."""
    return two_gaps(talk, lambda: talk.ack(330.1, 3 * S).ack(330.2, 6 * S), lost_downstream=6)


@case()
def held_above_a_gap_and_answered(talk: Talk) -> Expected:
    """Near miss: the receiver repeats its acknowledgment at once, so it had segment 3."""
    counts = two_gaps(
        talk,
        lambda: talk.ack(330.1, 6 * S).ack(330.2, 6 * S),
        lost_downstream=5,
        spurious_retransmissions=1,
    )
    return {**counts, "back": {"duplicate_acks": 4}}


@case()
def held_above_a_gap_and_the_window_opens(talk: Talk) -> Expected:
    """Near miss: what follows may be the news of the window, and proves nothing."""
    return two_gaps(talk, lambda: talk.ack(330.1, 6 * S).ack(330.2, 6 * S, window=900), lost_downstream=5)


@case()
def nothing_held_above_the_gap(talk: Talk) -> Expected:
    """Everything behind the first segment was lost; the receiver acknowledges every second one, as usual."""
    talk.sack = False
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S).data(290, S).ack(310, 2 * S).data(310.1, 2 * S).data(310.2, 3 * S).ack(330.2, 4 * S)
    talk.data(330.3, 4 * S).data(330.4, 5 * S).ack(350.4, 6 * S)
    return {
        "retransmissions": 5,
        "retransmitted_bytes": 5 * S,
        "timeout_retransmissions": 5,
        "timeouts": 1,
        "lost_downstream": 5,
    }


def a_long_way_back(talk: Talk, held: int) -> Expected:
    """Segments 1 and 2 are lost, and the resend of 1; so many are held above them, and all are sent again at once."""
    talk.sack = False
    talk.open()
    burst(talk, 30, held + 3, gap=0.01)
    talk.ack(50, S)
    for k in range(held):
        talk.ack(50.03 + k / 100, S)
    talk.data(52, S).data(300, S).ack(320, 2 * S)
    burst(talk, 320.1, held + 1, 2, gap=0.01)
    talk.ack(340.1, (held + 3) * S)
    for k in range(held):
        talk.ack(340.11 + k / 100, (held + 3) * S)
    return {
        "retransmissions": held + 3,
        "retransmitted_bytes": (held + 3) * S,
        "fast_retransmissions": 1,
        "timeout_retransmissions": held + 2,
        "timeouts": 1,
        "lost_downstream": 3,
        "spurious_retransmissions": held,
        "back": {"duplicate_acks": held},
    }


@case(variants=LONG)
def many_held_above_a_gap(talk: Talk) -> Expected:
    """So many on their way that their answers come when a hundred more were sent."""
    return a_long_way_back(talk, 140)


@case(variants=LONG)
def more_held_than_is_kept(talk: Talk) -> Expected:
    """Of the first ones no verdict is kept that an answer could change: their loss is left open."""
    counts = a_long_way_back(talk, 300)
    return {**counts, "spurious_retransmissions": 256, "lost_downstream": 2}


# --- beside the receiver: what the sender had not heard of yet


def a_slow_way_back(talk: Talk, last: float, again: int) -> Expected:
    """Segments 1 and 2 are lost; what the sender sends behind 2, in vain, waits in a queue for twice the round trip."""
    talk.sack = False
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.01, S).missing(0, 2)
    for k in range(3, 90):
        talk.data(30 + k / 20, k * S).ack(30.01 + k / 20, S)
    talk.data(300, S).ack(300.01, 2 * S)
    for k in range(2, 80):
        talk.data(320 + (k - 2) / 2, k * S).ack(320.01 + (k - 2) / 2, 90 * S)
    talk.data(last, again * S).ack(last + 0.01, 90 * S)
    return {
        "retransmissions": 80,
        "timeout_retransmissions": 79,
        "timeouts": 1,
        "retransmitted_bytes": 78 * S,
        "lost_upstream": 2,
        "spurious_retransmissions": 78,
        "back": {"duplicate_acks": 87},
    }


@case(variants=LONG)
def going_back_through_a_queue(talk: Talk) -> Expected:
    """The sender cannot have heard: it goes straight on, later than an acknowledgment takes to it."""
    return {**a_slow_way_back(talk, 359.5, 80), "timeout_retransmissions": 80}


@case(variants=LONG)
def again_long_after_going_back(talk: Talk) -> Expected:
    """Near miss: the same segment long after that, when the sender knew that all had arrived."""
    return a_slow_way_back(talk, 400, 80)


@case(variants=LONG)
def again_beside_going_back(talk: Talk) -> Expected:
    """Near miss: not the next one."""
    return a_slow_way_back(talk, 359.5, 85)


def acknowledged_on_the_way(talk: Talk, first: float, again: float) -> None:
    """Three segments, the last of them again when their delayed acknowledgment has passed here, not come to the sender."""
    talk.open(near=RTT)
    burst(talk, 30, 3)
    if first:
        talk.ack(first, 2 * S)
    talk.ack(again - 6, 3 * S).data(again, 2 * S).ack(again + 0.1, 3 * S, (2 * S, 3 * S))


@case("sack")
def probe_of_what_was_acknowledged_on_the_way(talk: Talk) -> Expected:
    acknowledged_on_the_way(talk, 0, 81)
    return {**SPURIOUS, "probe_retransmissions": 1}


@case("sack")
def late_probe_behind_others(talk: Talk) -> Expected:
    """After 3.2 round trips: a sender that had been answered late before. The timer would have sent the first."""
    acknowledged_on_the_way(talk, 0, 94)
    return {**SPURIOUS, "probe_retransmissions": 1}


@case("sack")
def too_late_for_a_probe(talk: Talk) -> Expected:
    """Near miss: it is the only one outstanding."""
    acknowledged_on_the_way(talk, 30.25, 96)
    return SPURIOUS


@case("sack")
def probe_of_what_was_reported_on_the_way(talk: Talk) -> Expected:
    """A loss, and no report of it comes to the sender: nothing was sent behind the last segment, so it is no answer."""
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.1, S).missing(0).data(30.3, 2 * S).ack(30.4, S, (2 * S, 3 * S))
    talk.data(30.5, 3 * S).ack(30.6, S, (2 * S, 4 * S)).data(84, 3 * S).ack(84.1, S, (3 * S, 4 * S), (2 * S, 4 * S))
    talk.data(104.5, S).ack(104.6, 4 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": S,
        "probe_retransmissions": 1,
        "fast_retransmissions": 1,
        "spurious_retransmissions": 1,
        "lost_upstream": 1,
        "back": {"duplicate_acks": 3},
    }


def timer_on_the_way(talk: Talk, again: float) -> None:
    talk.open(near=RTT)
    talk.data(30, 0).ack(again - 15, S).data(again, 0).ack(again + 0.1, S)


@case()
def timeout_of_what_was_acknowledged_on_the_way(talk: Talk) -> Expected:
    timer_on_the_way(talk, 251)
    return {**SPURIOUS, "timeout_retransmissions": 1, "timeouts": 1}


@case()
def too_soon_for_a_timeout(talk: Talk) -> Expected:
    timer_on_the_way(talk, 180)
    return SPURIOUS


@pytest.mark.parametrize(("name", "variant"), RUNS)
def test_case(name: str, variant: str, tmp_path: Path) -> None:
    talk = Variant(**VARIANTS[variant])
    expected = CASES[name](talk)
    check(wiretale.analyze(*WRITERS["pcap"](talk.in_order(), tmp_path)), expected)


def test_a_loss_left_open_has_no_place(tmp_path: Path) -> None:
    talk = Variant()
    held_above_a_gap(talk)
    events = wiretale.analyze(*WRITERS["pcap"](talk.in_order(), tmp_path)).events.rows()
    again = [
        (row["place"], row["spurious"], row["evidence"]) for row in events if row["kind"] == "timeout_retransmission"
    ]
    known = ("downstream", False, "time")
    assert again == [known, known, (None, False, "time"), known, known]
