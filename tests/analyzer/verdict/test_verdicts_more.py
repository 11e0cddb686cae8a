# SPDX-License-Identifier: Apache-2.0
"""Further conversations with a known truth, each as it looks with and without what verdicts rest on.

As in test_verdicts.py, `expected` holds the initiator's counts that are not 0, and the responder's under "back".
What nobody can know from the capture is expected as undecided or without a kind, not as a guess.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scapy.all import CookedLinuxV2, wrpcap
from test_verdicts import LOST, SPURIOUS, Expected, burst, check

import wiretale
from talk import RTT, SEGMENT, WRITERS, Talk

S = SEGMENT
FAST = {**LOST, "fast_retransmissions": 1}
TIMEOUT = {**LOST, "timeout_retransmissions": 1, "timeouts": 1}
OFFER: list[Any] = [("MSS", 1460), ("SAckOK", b""), ("WScale", 7)]


@dataclass
class Variant(Talk):
    """A talk that leaves SACK blocks out where SACK was not agreed on."""

    def options(
        self, ms: float, side: int, sack: Sequence[tuple[int, int]], tsval: int | None, tsecr: int | None
    ) -> list[Any]:
        """As Talk."""
        return super().options(ms, side, sack if self.sack else (), tsval, tsecr)


VARIANTS: dict[str, dict[str, Any]] = {
    "ipv4": {},
    "ipv6": {"version": 6},
    "no-ids": {"ids": False},
    "no-timestamps": {"timestamps": False},
    "no-sack": {"sack": False},
    "bare": {"version": 6, "timestamps": False, "sack": False},
}
LACKS = {
    "ipv4": "",
    "ipv6": "ids",
    "no-ids": "ids",
    "no-timestamps": "timestamps",
    "no-sack": "sack",
    "bare": "ids timestamps sack order",
}
CASES: dict[str, tuple[Callable[[Talk], Expected], str, int]] = {}


def case(needs: str = "", flows: int = 1) -> Callable[[Callable[[Talk], Expected]], Callable[[Talk], Expected]]:
    """Registers a case that needs "ids", "timestamps", "sack" or any of the first two ("order")."""

    def register(function: Callable[[Talk], Expected]) -> Callable[[Talk], Expected]:
        CASES[function.__name__] = (function, needs, flows)
        return function

    return register


def sacks(talk: Talk, ms: float, ack: int, low: int, *highs: int, gap: float = 0.1, **more: Any) -> None:
    """Duplicate ACKs for `ack`, each reporting one segment more."""
    for k, high in enumerate(highs):
        talk.ack(ms + k * gap, ack * S, (low * S, high * S), **more)


# --- losses and how they are mended


@case()
def newreno_partial_ack(talk: Talk) -> Expected:
    """Two losses of one window, mended one a round trip."""
    talk.sack = False
    talk.open()
    burst(talk, 30, 8)
    talk.ack(50, S)
    for k in range(5):
        talk.ack(50.2 + k / 10, S)
    talk.data(50.7, S).ack(70.7, 4 * S).data(70.8, 4 * S).ack(90.8, 8 * S)
    return {
        **LOST,
        "retransmissions": 2,
        "fast_retransmissions": 2,
        "lost_downstream": 2,
        "retransmitted_bytes": 2 * S,
        "back": {"duplicate_acks": 5},
    }


@case()
def newreno_beside_the_receiver(talk: Talk) -> Expected:
    """The same, lost upstream of the capture."""
    talk.sack = False
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.05, S).missing(0).data(30.2, 2 * S).data(30.3, 3 * S).missing(0)
    talk.ack(30.25, S).ack(30.35, S)
    for k in range(5, 8):
        talk.data(30 + k / 10, k * S).ack(30.05 + k / 10, S)
    talk.data(50.7, S).ack(50.75, 4 * S).data(70.8, 4 * S).ack(70.85, 8 * S)
    return {"retransmissions": 2, "fast_retransmissions": 2, "lost_upstream": 2, "back": {"duplicate_acks": 5}}


@case("sack")
def lost_resend_then_timeout(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S).data(290, S).ack(310, 5 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "fast_retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 3},
    }


@case("sack")
def timeout_while_duplicates_keep_coming(talk: Talk) -> Expected:
    """The resend is lost, new data keeps the duplicate ACKs coming, and no ACK advances for a timeout."""
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S)
    for k in range(10):
        talk.data(51 + 22 * k, (5 + k) * S).ack(71 + 22 * k, S, (2 * S, (6 + k) * S))
    talk.data(275, S).ack(295, 15 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "fast_retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 13},
    }


@case()
def backoff_of_the_timer(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 2)
    talk.ack(50, S).data(270, S).data(710, S).data(1590, S).ack(1610, 2 * S)
    return {
        "retransmissions": 3,
        "retransmitted_bytes": 3 * S,
        "timeout_retransmissions": 3,
        "timeouts": 3,
        "lost_downstream": 3,
    }


@case()
def timeout_with_two_duplicates(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 4)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4)
    talk.data(275, S).ack(295, 4 * S)
    return {**TIMEOUT, "back": {"duplicate_acks": 2}}


@case("sack")
def rack_after_one_report(talk: Talk) -> Expected:
    """One SACK, and a quarter of the round trip later the segment before it is sent again."""
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).ack(50.2, S, (2 * S, 3 * S)).data(55.2, S).ack(75.2, 3 * S)
    return {**FAST, "back": {"duplicate_acks": 1}}


def resent_twice_with_new_data(talk: Talk, new_ms: float) -> None:
    """Two losses are mended, and so many ms after the start a new segment is lost, with nothing behind it."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S).ack(50.2, S, (2 * S, 3 * S)).ack(50.3, S, (4 * S, 5 * S), (2 * S, 3 * S))
    talk.ack(50.4, S, (4 * S, 6 * S), (2 * S, 3 * S)).data(50.5, S)
    for ms, at in sorted([(new_ms, 6 * S), (50.6, 3 * S)]):
        talk.data(ms, at)
    talk.ack(70.5, 3 * S, (4 * S, 6 * S)).ack(70.6, 6 * S).data(75.9, 6 * S).ack(95.9, 7 * S)


TWICE = {"retransmissions": 3, "retransmitted_bytes": 3 * S, "lost_downstream": 3, "back": {"duplicate_acks": 3}}


@case("sack")
def rack_after_a_cumulative_ack(talk: Talk) -> Expected:
    """What was sent again after the new segment is acknowledged, and that is not: lost, without any report above it."""
    resent_twice_with_new_data(talk, 50.55)
    return {**TWICE, "fast_retransmissions": 3}


@case("sack")
def rack_after_a_cumulative_ack_near(talk: Talk) -> Expected:
    """Sent after both: no acknowledgment says anything of it."""
    resent_twice_with_new_data(talk, 50.65)
    return {**TWICE, "fast_retransmissions": 2}


@case("sack")
def rack_on_a_long_path_beside_the_receiver(talk: Talk) -> Expected:
    """Lost upstream: the resend comes 1.25 round trips of 600 ms after the one report, which is no timeout."""
    talk.open(rtt=600, near=600)
    talk.data(700, 0).ack(700.1, S).missing(0).data(700.2, 2 * S).ack(700.3, S, (2 * S, 3 * S))
    talk.data(1450.4, S).ack(1450.5, 3 * S)
    return {"retransmissions": 1, "fast_retransmissions": 1, "lost_upstream": 1, "back": {"duplicate_acks": 1}}


@case("sack")
def probe_then_fast(talk: Talk) -> Expected:
    """A tail of three is lost; the probe for the last is reported, and the others follow."""
    talk.open()
    burst(talk, 30, 4)
    talk.ack(50, S).data(90.3, 3 * S).ack(110.3, S, (3 * S, 4 * S)).data(110.4, S).data(110.5, 2 * S)
    talk.ack(130.4, 2 * S, (3 * S, 4 * S)).ack(130.5, 4 * S)
    return {
        "retransmissions": 3,
        "retransmitted_bytes": 3 * S,
        "probe_retransmissions": 1,
        "fast_retransmissions": 2,
        "lost_downstream": 3,
        "back": {"duplicate_acks": 1},
    }


@case("sack")
def probe_then_timeout(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, 2 * S).data(90.2, 2 * S).data(310.2, 2 * S).ack(330.2, 3 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "probe_retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "lost_downstream": 2,
    }


@case()
def no_probe_without_sack(talk: Talk) -> Expected:
    """RFC 8985 takes SACK: without it what comes after 2.3 round trips of 140 ms is the timer's."""
    talk.sack = False
    talk.open(rtt=140)
    burst(talk, 200, 2)
    talk.ack(340, S).data(340 + 340, S).ack(820, 2 * S)
    return TIMEOUT


@case()
def ack_lost_beside_the_sender(talk: Talk) -> Expected:
    """The receiver had it; its first ACK never came, its second reports the duplicate."""
    talk.open()
    talk.data(30, 0).missing(1).data(260, 0).ack(280, S, (0, S))
    return {**SPURIOUS, "timeout_retransmissions": 1, "timeouts": 1} if talk.sack else TIMEOUT


@case()
def ack_lost_after_passing_here(talk: Talk) -> Expected:
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.1, S).data(270, 0).ack(270.1, S, (0, S))
    return {**SPURIOUS, "timeout_retransmissions": 1, "timeouts": 1}


@case()
def needless_while_acks_flow(talk: Talk) -> Expected:
    """A segment long acknowledged is sent again, while ACKs of later data pass every millisecond."""
    talk.open(near=10)
    for k in range(60):
        talk.data(30 + k, k * S).ack(40 + k, (k + 1) * S)
    talk.data(100.5, 3 * S)
    return SPURIOUS


@case()
def needless_while_acks_flow_near(talk: Talk) -> Expected:
    """Half the way to the sender is still before its ACK: the sender could not know, but the receiver had it."""
    talk.open(near=10)
    burst(talk, 30, 3)
    talk.ack(40, S).ack(240, 3 * S).data(242, S)
    return SPURIOUS


@case()
def needless_or_stored_late(talk: Talk) -> Expected:
    """The same within 1 ms, in a capture that has stored data behind its ACK: which came first is not known."""
    talk.open(near=10)
    talk.ack(40, S).data(40.1, 0)  # stored late
    talk.data(41, S).data(41.1, 2 * S).ack(240, 3 * S).data(240.5, S)
    return {
        "retransmissions": 1,
        "retransmitted_bytes": S,
        "capture_reordered": 1,
    }


@case("ids")
def go_back_behind_a_suspected_timeout(talk: Talk) -> Expected:
    """Beside the receiver: a burst is lost, its first segment comes again in order, new data shows how long it was."""
    talk.open(near=RTT)
    for k in range(4):
        talk.data(30 + k, k * S).ack(30.05 + k, (k + 1) * S)
    talk.missing(0, 4).data(300, 4 * S).ack(300.05, 5 * S)
    talk.data(320.1, 8 * S).data(320.2, 9 * S).ack(320.15, 5 * S, (8 * S, 9 * S)).ack(320.25, 5 * S, (8 * S, 10 * S))
    talk.data(340.3, 5 * S).data(340.4, 6 * S).data(340.5, 7 * S).ack(340.55, 10 * S)
    return {
        "retransmissions": 3,
        "timeout_retransmissions": 3,
        "suspected_timeouts": 1,
        "lost_upstream": 3,
        "back": {"duplicate_acks": 2},
    }


@case("ids")
def a_loss_after_a_suspected_timeout(talk: Talk) -> Expected:
    """The same, but what is missing was sent after the timeout: lost for itself."""
    talk.open(near=RTT)
    for k in range(4):
        talk.data(30 + k, k * S).ack(30.05 + k, (k + 1) * S)
    talk.missing(0, 1).data(300, 4 * S).ack(300.05, 5 * S).data(320.1, 5 * S).ack(320.15, 6 * S).missing(0)
    for k in range(7, 10):
        talk.data(340 + k / 10, k * S).ack(340.05 + k / 10, 6 * S, (7 * S, (k + 1) * S))
    talk.data(361, 6 * S).ack(361.05, 10 * S)
    return {
        "retransmissions": 1,
        "fast_retransmissions": 1,
        "suspected_timeouts": 1,
        "lost_upstream": 1,
        "back": {"duplicate_acks": 3},
    }


def overtaken_by(talk: Talk, later: int) -> None:
    """Beside the receiver: a segment is overtaken, reported missing, comes, and is sent again all the same."""
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.05, S).missing(0)
    for k in range(2, 2 + later):
        talk.data(32 + k / 10, k * S).ack(32.05 + k / 10, S, (2 * S, (k + 1) * S))
    end = (2 + later) * S
    talk.data(33, S, ip_id=1003, tsval=10_030).ack(33.05, end).data(52.5, S).ack(52.55, end, (S, 2 * S))


@case("order")
def a_report_outlives_its_gap(talk: Talk) -> Expected:
    overtaken_by(talk, 3)
    back = {"duplicate_acks": 3}
    return {**SPURIOUS, "fast_retransmissions": 1, "out_of_order": 1, "back": back}


@case("order")
def two_segments_above_are_no_report(talk: Talk) -> Expected:
    overtaken_by(talk, 2)
    return {**SPURIOUS, "out_of_order": 1, "back": {"duplicate_acks": 2}}


def answered_after(talk: Talk, ms: float, tsecr: int | None = None) -> None:
    """Twenty round trips of 20 ms, then a resend and its answer, which echoes the resend or this."""
    talk.open()
    for k in range(20):
        talk.data(30 + 25 * k, k * S).ack(50 + 25 * k, (k + 1) * S)
    burst(talk, 600, 5, first=20)
    talk.ack(620, 21 * S)
    sacks(talk, 620.2, 21, 22, 23, 24, 25)
    talk.data(620.5, 21 * S).ack(620.5 + ms, 25 * S, tsecr=tsecr)


@case()
def an_answer_sooner_than_any_before(talk: Talk) -> Expected:
    """Three quarters of the least round trip: it answers the first sending."""
    answered_after(talk, 15, tsecr=10_600)
    return {**SPURIOUS, "fast_retransmissions": 1, "back": {"duplicate_acks": 3}}


@case("timestamps")
def an_answer_sooner_than_any_before_to_the_resend(talk: Talk) -> Expected:
    """The same, but it echoes the resend: the way has become shorter."""
    answered_after(talk, 15)
    return {**FAST, "back": {"duplicate_acks": 3}}


@case()
def an_answer_as_soon_as_the_soonest(talk: Talk) -> Expected:
    answered_after(talk, 19)
    return {**FAST, "back": {"duplicate_acks": 3}}


@case()
def two_duplicates_after_a_recovery(talk: Talk) -> Expected:
    """Without SACK Linux goes on to count where a recovery ended."""
    talk.sack = False
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S).ack(70.5, 5 * S)
    burst(talk, 71, 4, first=5)
    talk.ack(91, 6 * S)
    sacks(talk, 91.2, 6, 7, 8, 9)
    talk.data(91.5, 6 * S).ack(111.5, 9 * S)
    twice = {name: 2 * count for name, count in FAST.items()}
    return {**twice, "back": {"duplicate_acks": 5}}


@case()
def two_duplicates_without_a_recovery(talk: Talk) -> Expected:
    talk.sack = False
    talk.open()
    burst(talk, 71, 4)
    talk.ack(91, S)
    sacks(talk, 91.2, 1, 2, 3, 4)
    talk.data(91.5, S).ack(111.5, 4 * S)
    return {**LOST, "back": {"duplicate_acks": 2}}


def going_back_without_sack(talk: Talk, repeats: int) -> dict[str, int]:
    """A timeout; then two segments are sent again at once, of which the second had arrived if its ACK is repeated."""
    talk.sack = False
    talk.open()
    burst(talk, 30, 7)
    talk.ack(50, S).data(290, S).ack(310, 3 * S).data(310.1, 3 * S).data(310.2, 4 * S).ack(330.1, 6 * S)
    for k in range(repeats):
        talk.ack(330.2 + k / 10, 6 * S)
    talk.data(330.5, 6 * S).ack(350.5, 7 * S)
    counts = {"retransmissions": 4, "timeout_retransmissions": 4, "timeouts": 1, "retransmitted_bytes": 4 * S}
    return {**counts, "lost_downstream": 3}


@case()
def sent_in_vain_without_sack(talk: Talk) -> Expected:
    return {**going_back_without_sack(talk, 1), "spurious_retransmissions": 1, "back": {"duplicate_acks": 1}}


@case()
def sent_again_without_sack(talk: Talk) -> Expected:
    """Not answered at once, it may have been lost both times, or the second time alone."""
    return going_back_without_sack(talk, 0)


def lost_after_a_timeout(talk: Talk, echo: int) -> Expected:
    """A timeout whose answer echoes this; then a loss below what had been sent by then, told by SACK."""
    talk.open()
    burst(talk, 30, 8)
    talk.data(280, 0).ack(285, S, tsecr=echo)
    sacks(talk, 285.2, 1, 2, 3, 4, 5, 6)
    talk.data(285.8, S).ack(305.8, 8 * S)
    return {"retransmissions": 2, "retransmitted_bytes": 2 * S, "timeouts": 1, "back": {"duplicate_acks": 4}}


@case("timestamps sack")
def fast_after_a_needless_timeout(talk: Talk) -> Expected:
    """The sender knows by the echo that the timeout was needless, and does not go back."""
    counts = lost_after_a_timeout(talk, echo=10_030)
    kinds = {"timeout_retransmissions": 1, "fast_retransmissions": 1}
    return {**counts, **kinds, "spurious_retransmissions": 1, "lost_downstream": 1}


@case("sack")
def lost_once_more_while_going_back(talk: Talk) -> Expected:
    """Behind a timeout one of what is sent again is lost again: with its report the sender recovers."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S).data(290, S).ack(310, 2 * S).data(310.1, 2 * S).data(310.2, 3 * S)
    talk.ack(330.2, 2 * S, (3 * S, 4 * S)).data(330.4, 2 * S).ack(350.4, 6 * S)
    return {
        "retransmissions": 4,
        "retransmitted_bytes": 4 * S,
        "timeout_retransmissions": 3,
        "timeouts": 1,
        "fast_retransmissions": 1,
        "lost_downstream": 4,
        "back": {"duplicate_acks": 1},
    }


@case()
def going_back_once_more(talk: Talk) -> Expected:
    """The same without any report: a second timeout. Without SACK the second segment may have been held the first time."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S).data(290, S).ack(310, 2 * S).data(310.1, 2 * S).data(310.2, 3 * S).data(560, 2 * S).ack(580, 6 * S)
    return {
        "retransmissions": 4,
        "retransmitted_bytes": 4 * S,
        "timeout_retransmissions": 4,
        "timeouts": 2,
        "lost_downstream": 4 if talk.sack else 3,
    }


@case()
def satellite_fast(talk: Talk) -> Expected:
    talk.open(rtt=600)
    burst(talk, 700, 5)
    talk.ack(1300, S)
    sacks(talk, 1300.2, 1, 2, 3, 4, 5)
    talk.data(1300.5, S).ack(1900.5, 5 * S)
    return {**FAST, "back": {"duplicate_acks": 3}}


@case()
def satellite_two_round_trips_are_no_timeout(talk: Talk) -> Expected:
    """After its first samples a sender's timer is at three round trips (RFC 6298)."""
    talk.open(rtt=600)
    burst(talk, 700, 3)
    talk.ack(1300, S).data(2500, S).ack(3100, 3 * S)
    return LOST


@case()
def short_path_timeout(talk: Talk) -> Expected:
    talk.open(rtt=0.1)
    burst(talk, 1, 3, gap=0.01)
    talk.ack(1.1, S).data(201.2, S).ack(201.3, 3 * S)
    return TIMEOUT


@case()
def delayed_ack_of_40_ms_on_a_short_path(talk: Talk) -> Expected:
    talk.open(rtt=0.1)
    for k in range(5):
        talk.data(1 + 50 * k, k * S).ack(41 + 50 * k, (k + 1) * S)
    return {"rtt_below_ms": 1}


@case()
def delayed_ack_of_200_ms_on_a_short_path(talk: Talk) -> Expected:
    talk.open(rtt=0.1)
    for k in range(5):
        talk.data(1 + 250 * k, k * S).ack(200.5 + 250 * k, (k + 1) * S)
    return {"rtt_below_ms": 1}


@case("sack")
def three_losses_of_one_window(talk: Talk) -> Expected:
    """Beside the sender, with SACK; the third after the second resend's report."""
    talk.open()
    burst(talk, 30, 10)
    talk.ack(50, S).ack(50.2, S, (2 * S, 3 * S)).ack(50.4, S, (4 * S, 5 * S), (2 * S, 3 * S))
    talk.ack(50.6, S, (6 * S, 7 * S), (4 * S, 5 * S), (2 * S, 3 * S)).data(50.65, S)
    talk.ack(50.7, S, (6 * S, 8 * S), (4 * S, 5 * S), (2 * S, 3 * S)).data(50.75, 3 * S)
    talk.ack(50.9, S, (6 * S, 10 * S), (4 * S, 5 * S), (2 * S, 3 * S)).data(50.95, 5 * S)
    talk.ack(70.65, 3 * S).ack(70.75, 5 * S).ack(70.95, 10 * S)
    return {
        "retransmissions": 3,
        "retransmitted_bytes": 3 * S,
        "fast_retransmissions": 3,
        "lost_downstream": 3,
        "back": {"duplicate_acks": 5},
    }


@case()
def upstream_and_downstream_in_one_window(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 6, 2)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4)
    talk.ack(50.5, S, (5 * S, 6 * S), (2 * S, 4 * S)).data(50.55, S).ack(50.6, S, (5 * S, 8 * S), (2 * S, 4 * S))
    talk.ack(70.55, 4 * S, (5 * S, 8 * S)).data(70.6, 4 * S).ack(90.6, 8 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": S,
        "fast_retransmissions": 2,
        "lost_upstream": 1,
        "lost_downstream": 1,
        "back": {"duplicate_acks": 4},
    }


@case("sack")
def resends_that_were_swapped(talk: Talk) -> Expected:
    """Two lost upstream; what was sent in their place comes the second first."""
    talk.open()
    talk.data(30, 0).missing(0, 2)
    burst(talk, 30.3, 4, 3)
    talk.ack(50, S)
    sacks(talk, 50.3, 1, 3, 4, 5, 6, 7)
    first = talk.next_id[0]
    talk.data(50.9, 2 * S, ip_id=first + 1, tsval=10_050).data(50.95, S, ip_id=first, tsval=10_050)
    talk.next_id[0] += 2
    talk.ack(70.9, S, (2 * S, 7 * S)).ack(70.95, 7 * S)
    return {"retransmissions": 2, "fast_retransmissions": 2, "lost_upstream": 2, "back": {"duplicate_acks": 5}}


@case("order")
def slow_by_more_than_a_round_trip(talk: Talk) -> Expected:
    """Reordered over 1.5 round trips; only its age tells."""
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).ack(50, S).ack(50.1, S, (2 * S, 3 * S))
    talk.data(60.1, S, ip_id=1003, tsval=10_029).ack(80.1, 3 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case()
def reordered_on_a_short_path_and_nothing_reported(talk: Talk) -> Expected:
    """It came 1.5 round trips late, but no ACK could have told the sender: not sent again for sure."""
    talk.ids = talk.timestamps = False
    talk.open(rtt=0.2)
    talk.data(30, 0).data(30.01, 2 * S).data(30.31, S).ack(30.5, 3 * S)
    return {"ambiguous": 1}


@case()
def half_a_round_trip_known_is_not_a_round_trip(talk: Talk) -> Expected:
    """Beside the receiver from mid-stream on: its delay is known, the path's is not."""
    talk.ids = talk.timestamps = False
    for k in range(4):
        talk.data(30 + k, k * S).ack(30.05 + k, (k + 1) * S)
    talk.data(40, 5 * S).ack(40.05, 4 * S).data(40.2, 4 * S).ack(40.25, 6 * S)
    return {"ambiguous": 1, "back": {"duplicate_acks": 1}}


@case("order")
def window_update_is_no_duplicate(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S)
    for k in range(4):
        talk.ack(50.1 + k / 10, S, window=8200 + k)
    talk.ack(51, 3 * S)
    return {}


@case()
def duplicates_that_carry_data(talk: Talk) -> Expected:
    """Data in both directions: ACKs that come with data are no duplicates."""
    talk.open()
    burst(talk, 30, 3)
    for k in range(4):
        talk.send(50 + k / 10, 1, k * S, S, S).send(70 + k / 10, 0, 3 * S, 0, (k + 1) * S)
    talk.send(70.8, 1, 4 * S, 0, 3 * S)
    return {}


@case("sack")
def loss_while_data_flows_back(talk: Talk) -> Expected:
    """SACK blocks on data segments are reports as well."""
    talk.open()
    burst(talk, 30, 6)
    talk.send(50, 1, 0, S, S)
    for k in range(4):
        talk.send(50.2 + k / 10, 1, (k + 1) * S, S, S, sack=[(2 * S, (3 + k) * S)])
    talk.data(50.55, S, ack=5 * S).ack(70.6, 6 * S)
    talk.packets[-1]["TCP"].seq += 5 * S
    return FAST


@case()
def losses_in_both_directions(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 2)
    talk.send(50, 1, 0, S, S).send(50.1, 1, S, S, S)
    talk.data(275, S, ack=0).send(295, 1, 0, S, 2 * S)  # each sends its first unacknowledged again
    talk.send(295.1, 1, S, S, 2 * S).send(315, 0, 2 * S, 0, 2 * S)
    return {
        **TIMEOUT,
        "back": {
            "retransmissions": 2,
            "retransmitted_bytes": 2 * S,
            "timeout_retransmissions": 2,
            "timeouts": 1,
            "lost_downstream": 2,
        },
    }


@case()
def timeout_on_a_path_of_100_ms(talk: Talk) -> Expected:
    """The last segment again after 300 ms: a probe would come after 200, the timer after RTT + 200 (Linux) or 3 RTT."""
    talk.open(rtt=100)
    burst(talk, 200, 3)
    talk.ack(300, 2 * S).data(600, 2 * S).ack(700, 3 * S)
    return TIMEOUT


@case("sack")
def probe_on_a_path_of_100_ms(talk: Talk) -> Expected:
    talk.open(rtt=100)
    burst(talk, 200, 3)
    talk.ack(300, 2 * S).data(503, 2 * S).ack(603, 3 * S)
    return {**LOST, "probe_retransmissions": 1}


@case("sack")
def probe_of_data_with_fin(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).data(30.1, S, flags="FPA").ack(50, S).data(90.2, S, flags="FPA").ack(110.2, 2 * S + 1)
    return {**LOST, "probe_retransmissions": 1}


@case()
def ack_too_soon_for_the_resend(talk: Talk) -> Expected:
    """The timer was a little too fast: 5 ms after the resend its ACK cannot come over a path of 20 ms.

    But of the path only the handshake tells, which may have waited: without timestamps it is open.
    """
    talk.open()
    talk.data(30, 0).data(280, 0).ack(285, S, tsecr=10_030)
    again = {"retransmissions": 1, "retransmitted_bytes": S, "timeout_retransmissions": 1, "timeouts": 1}
    return {**again, "spurious_retransmissions": 1} if talk.timestamps else again


@case()
def ack_too_soon_for_the_resend_on_a_known_path(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S).data(51, S).data(301, S).ack(306, 2 * S, tsecr=10_051)
    return {**SPURIOUS, "timeout_retransmissions": 1, "timeouts": 1}


@case("sack")
def a_handshake_that_waited(talk: Talk) -> Expected:
    """The SYN-ACK took four times as long as data: what is sent again after 34 ms is fast, its answer after 20 ms its own."""
    talk.open(rtt=80)
    burst(talk, 100, 5)
    talk.ack(123.2, 0, (S, 2 * S)).ack(123.5, 0, (3 * S, 4 * S), (S, 2 * S))
    talk.data(134, 0).ack(154.5, 2 * S, (3 * S, 4 * S))
    talk.data(154.6, 2 * S).data(154.7, 4 * S).ack(175.1, 4 * S).ack(175.2, 5 * S)
    counts = {"retransmissions": 3, "retransmitted_bytes": 3 * S, "fast_retransmissions": 3, "lost_downstream": 3}
    return {**counts, "back": {"duplicate_acks": 2}}


@case()
def reordered_downstream_and_resent(talk: Talk) -> Expected:
    """Behind this point a segment was overtaken by three; the ACK of all comes right after the needless resend."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.45, S).ack(50.5, 6 * S, tsecr=10_030).ack(70.45, 6 * S, (S, 2 * S))
    return {**SPURIOUS, "fast_retransmissions": 1, "back": {"duplicate_acks": 3}}


@case()
def all_of_a_window_lost(talk: Talk) -> Expected:
    """One expiry, then slow start over what was lost."""
    talk.open()
    burst(talk, 30, 5)
    talk.data(260, 0).ack(280, S).data(280.1, S).data(280.2, 2 * S).ack(300.1, 2 * S).ack(300.2, 3 * S)
    talk.data(300.3, 3 * S).data(300.4, 4 * S).ack(320.3, 4 * S).ack(320.4, 5 * S)
    return {
        "retransmissions": 5,
        "retransmitted_bytes": 5 * S,
        "timeout_retransmissions": 5,
        "timeouts": 1,
        "lost_downstream": 5,
    }


@case()
def limited_transmit(talk: Talk) -> Expected:
    """New data at the first two duplicates, the resend at the third (RFC 3042)."""
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).ack(50.2, S, (2 * S, 3 * S)).data(50.25, 3 * S).data(50.3, 4 * S)
    sacks(talk, 70.3, 1, 2, 4, 5)
    talk.data(70.5, S).ack(90.5, 5 * S)
    return {**FAST, "back": {"duplicate_acks": 3}}


@case()
def burst_lost_to_the_end_of_the_connection(talk: Talk) -> Expected:
    """The receiver is gone: each expiry is a loss, and nothing is ever acknowledged again."""
    talk.open()
    talk.data(30, 0).ack(50, S).data(51, S)
    for ms in (275, 715, 1600, 3400):
        talk.data(ms, S)
    talk.send(5000, 0, 2 * S, flags="RA")
    return {
        "retransmissions": 4,
        "retransmitted_bytes": 4 * S,
        "timeout_retransmissions": 4,
        "timeouts": 4,
        "lost_downstream": 4,
    }


@case("sack")
def needless_resend_that_was_overtaken(talk: Talk) -> Expected:
    """The original came late, so it was sent again; new data overtakes that on the way to here."""
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 4, 2)
    talk.data(30.9, S, ip_id=1003, tsval=10_029).ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5, 6)
    talk.ack(50.9, 6 * S).missing(0)
    burst(talk, 51, 3, 6)
    talk.data(51.45, S, ip_id=talk.next_id[0] - 4, tsval=10_050).ack(71.4, 9 * S).ack(71.5, 9 * S, (S, 2 * S))
    return {**SPURIOUS, "out_of_order": 1, "fast_retransmissions": 1, "back": {"duplicate_acks": 4}}


@case("sack")
def two_resends_of_which_one_was_needed(talk: Talk) -> Expected:
    """The second is proven needless by time and by its report, which says nothing against the first."""
    talk.open()
    burst(talk, 30, 2)
    talk.ack(50, S).data(270, S).data(288, S).ack(290, 2 * S, tsecr=10_270).ack(308, 2 * S, (S, 2 * S))
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "timeout_retransmissions": 2,
        "timeouts": 1,
        "lost_downstream": 1,
        "spurious_retransmissions": 1,
    }


@case("sack")
def go_back_n_over_reported_segments(talk: Talk) -> Expected:
    """Half of the window was reported as received; the timer's go-back-N sends it again all the same."""
    talk.open(near=10)
    burst(talk, 30, 5)
    talk.ack(40, S).ack(40.2, S, (3 * S, 4 * S)).ack(40.3, S, (3 * S, 5 * S))
    talk.data(280, S).ack(290, 2 * S, (3 * S, 5 * S)).data(300.1, 2 * S).data(300.2, 3 * S)
    talk.ack(310.1, 5 * S).data(320.2, 4 * S)
    return {
        "retransmissions": 4,
        "retransmitted_bytes": 4 * S,
        "timeout_retransmissions": 4,
        "timeouts": 1,
        "lost_downstream": 2,
        "spurious_retransmissions": 2,
        "back": {"duplicate_acks": 2},
    }


@case()
def fast_on_a_very_short_path(talk: Talk) -> Expected:
    """Within a millisecond of the first sending: no mirror's copy, it was asked for, twice."""
    talk.sack = False
    talk.open(rtt=0.1)
    burst(talk, 1, 8, gap=0.01)
    talk.ack(1.1, S)
    for k in range(5):
        talk.ack(1.12 + k / 100, S)
    talk.data(1.165, S).ack(1.265, 4 * S).data(1.27, 4 * S).ack(1.37, 8 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "fast_retransmissions": 2,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 5},
    }


@case("sack")
def probe_on_a_short_path(talk: Talk) -> Expected:
    """Ten milliseconds are the least."""
    talk.open(rtt=0.2)
    burst(talk, 1, 3, gap=0.01)
    talk.ack(1.2, 2 * S).data(11.3, 2 * S).ack(11.5, 3 * S)
    return {**LOST, "probe_retransmissions": 1}


@case("sack")
def probe_by_a_fine_timer(talk: Talk) -> Expected:
    """Linux adds 2 ms to two round trips; a clock of 250 Hz may make 5 of them."""
    talk.open(rtt=0.2)
    burst(talk, 1, 3, gap=0.01)
    talk.ack(1.2, 2 * S).data(5.9, 2 * S).ack(6.1, 3 * S)
    return {**LOST, "probe_retransmissions": 1}


@case()
def too_soon_for_any_probe(talk: Talk) -> Expected:
    talk.open(rtt=0.2)
    burst(talk, 1, 3, gap=0.01)
    talk.ack(1.2, 2 * S).data(2.9, 2 * S).ack(3.1, 3 * S)
    return LOST


@case()
def one_resend_over_a_gap_and_what_was_seen(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0, 500).missing(0).data(30.2, 1000, 500).ack(50, 500).ack(50.2, 500, (1000, 1500))
    talk.data(270, 500, 1000).ack(290, 1500)
    return {
        "retransmissions": 1,
        "retransmitted_bytes": 500,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "lost_upstream": 1,
        "back": {"duplicate_acks": 1},
    }


@case()
def tail_lost_upstream_and_probed(talk: Talk) -> Expected:
    """Beside the receiver: the last three were lost before; the probe, the last of them, opens the gap."""
    talk.sack = True
    talk.open(near=RTT)
    talk.data(30, 0).ack(30.05, S).missing(0, 3).data(90, 3 * S).ack(90.05, S, (3 * S, 4 * S))
    talk.data(110.1, S).ack(110.15, 2 * S, (3 * S, 4 * S)).data(110.2, 2 * S).ack(110.25, 4 * S)
    return {"retransmissions": 2, "fast_retransmissions": 2, "lost_upstream": 2, "back": {"duplicate_acks": 1}}


@case()
def ack_of_the_resend_and_a_later_loss(talk: Talk) -> Expected:
    """After a recovery, another loss begins another."""
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S).ack(70.5, 5 * S)
    burst(talk, 71, 5, 5)
    talk.ack(91, 6 * S)
    sacks(talk, 91.2, 6, 7, 8, 9, 10)
    talk.data(91.5, 6 * S).ack(111.5, 10 * S)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 2 * S,
        "fast_retransmissions": 2,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 6},
    }


# --- windows, probes, keep-alives


@case()
def window_closes_on_data_in_flight(talk: Talk) -> Expected:
    """The receiver drops what its window has no room for; it is sent again when the window opens: no timer."""
    talk.open()
    burst(talk, 30, 2)
    talk.ack(50, S, window=0).send(270, 0, S - 1, 0).ack(290, S, window=0).ack(900, S, window=8000)
    talk.data(900.1, S).ack(920, 2 * S, window=8000)
    return {**LOST, "window_probes": 1, "back": {"zero_windows": 2}}


@case()
def window_shrinks(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=4000).data(51, S).ack(71, 2 * S, window=100).data(72, 2 * S).ack(92, 3 * S)
    return {}


@case()
def probe_opens_the_window(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=0).send(270, 0, S - 1, 0).ack(290, S, window=500)
    talk.data(290.1, S).ack(310, 2 * S, window=500)
    return {"window_probes": 1, "back": {"zero_windows": 1}, "closed_ms": 240}


@case()
def keep_alives_without_an_answer(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S)
    for k in range(9):
        talk.send(7_200_000 + 75_000 * k, 0, S - 1, k % 2)
    talk.send(7_900_000, 0, S, 0, flags="RA")
    return {"keep_alives": 9}


@case()
def loss_after_an_unanswered_keep_alive(talk: Talk) -> Expected:
    """The keep-alive's answer was lost; the duplicate ACKs that come later are of data."""
    talk.sack = False
    talk.open()
    talk.data(30, 0).ack(50, S).send(10_000, 0, S - 1, 0)
    burst(talk, 10_500, 5, 1)
    talk.ack(10_520, 2 * S)
    for k in range(3):
        talk.ack(10_520.2 + k / 10, 2 * S)
    talk.data(10_520.5, 2 * S).ack(10_540.5, 6 * S)
    return {**FAST, "keep_alives": 1, "back": {"duplicate_acks": 3}}


@case()
def first_of_the_data_lost_after_an_unanswered_keep_alive(talk: Talk) -> Expected:
    """The same, with nothing acknowledged in between."""
    talk.sack = False
    talk.open()
    talk.data(30, 0).ack(50, S).send(10_000, 0, S - 1, 0)
    burst(talk, 10_500, 5, 1)
    for k in range(3):
        talk.ack(10_520.2 + k / 10, S)
    talk.data(10_520.5, S).ack(10_540.5, 6 * S)
    return {**FAST, "keep_alives": 1, "back": {"duplicate_acks": 3}}


@case()
def full_segments_into_a_closed_window(talk: Talk) -> Expected:
    """As Linux does while data is outstanding: the timer, not a probe of 0 or 1 byte."""
    talk.open()
    burst(talk, 30, 2)
    talk.ack(50, S, window=0).data(275, S).ack(295, S, window=0).data(720, S).ack(740, S, window=0)
    talk.ack(1000, S, window=8000).data(1100, S).ack(1120, 2 * S, window=8000)
    return {
        "retransmissions": 3,
        "retransmitted_bytes": 3 * S,
        "timeout_retransmissions": 3,  # the last is of the same go-back-N
        "timeouts": 2,
        "lost_downstream": 3,
        "back": {"zero_windows": 3, "duplicate_acks": 2},
    }


@case()
def probe_bytes_accepted_into_a_closed_window(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S, window=0)
    for k in range(3):
        talk.data(270 + 500 * k, S + k, 1).ack(290 + 500 * k, S + k + 1, window=0)
    talk.ack(2000, S + 3).data(2000.1, S + 3).ack(2020, 2 * S + 3)
    return {"window_probes": 3, "back": {"zero_windows": 4}}


@case()
def a_typed_character_again_is_no_keep_alive(talk: Talk) -> Expected:
    """One byte of data whose ACK was lost after it passed here."""
    talk.open(near=RTT)
    for k in range(4):
        talk.data(30 + 100 * k, k, 1, flags="PA").ack(30.1 + 100 * k, k + 1)
    talk.data(570, 3, 1, flags="PA").ack(570.1, 4, (3, 4))
    return {
        "retransmissions": 1,
        "retransmitted_bytes": 1,
        "spurious_retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
    }


@case()
def keep_alive_of_one_byte_after_one_byte(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0, 1, flags="PA").ack(50, 1).data(45_000, 0, 1).ack(45_020, 1)
    return {"keep_alives": 1}


@case("sack")
def report_of_a_keep_alive_byte_proves_nothing(talk: Talk) -> Expected:
    """The last segment was lost and sent again in earnest; the receiver reports the keep-alive's byte as a duplicate."""
    talk.open()
    burst(talk, 30, 2)
    talk.ack(50, S).data(270, S).ack(290, 2 * S)
    talk.send(30_000, 0, 2 * S - 1, 1).ack(30_020, 2 * S, (2 * S - 1, 2 * S))
    return {**TIMEOUT, "keep_alives": 1}


# --- SYN, FIN, RST


@case()
def syn_ack_sent_again(talk: Talk) -> Expected:
    talk.send(0, 0, -1, ack=None, flags="S", options=OFFER).send(10, 1, -1, flags="SA", options=OFFER)
    talk.send(1010, 1, -1, flags="SA", options=OFFER).send(1020, 0, 0).data(1021, 0).ack(1041, S)
    return {"back": {"retransmissions": 1, "timeout_retransmissions": 1, "timeouts": 1, "lost_downstream": 1}}


@case()
def syn_again_since_its_answer_was_lost(talk: Talk) -> Expected:
    """The SYN had arrived; its answer was lost beyond this point."""
    talk.send(0, 0, -1, ack=None, flags="S", options=OFFER).send(10, 1, -1, flags="SA", options=OFFER)
    talk.send(1000, 0, -1, ack=None, flags="S", options=OFFER).send(1010, 1, -1, flags="SA", options=OFFER)
    talk.send(1020, 0, 0).data(1021, 0).ack(1041, S)
    return {
        "retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "spurious_retransmissions": 1,
        "back": {"retransmissions": 1, "timeout_retransmissions": 1, "timeouts": 1, "lost_downstream": 1},
    }


@case()
def fin_with_data_sent_again(talk: Talk) -> Expected:
    """One segment was lost, one was sent again."""
    talk.open()
    talk.data(30, 0).data(30.1, S, flags="FPA").ack(50, S).data(275, S, flags="FPA").ack(295, 2 * S + 1)
    return TIMEOUT


@case()
def fin_with_data_fast(talk: Talk) -> Expected:
    """The last data, with the FIN, is lost downstream... of three before, the first as well."""
    talk.open()
    burst(talk, 30, 4)
    talk.data(30.4, 4 * S, flags="FA").ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4)
    talk.ack(50.4, S, (2 * S, 5 * S + 1)).data(50.5, S).ack(70.5, 5 * S + 1)
    return {**FAST, "back": {"duplicate_acks": 3}}


@case("order")
def fin_overtakes_data(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).missing(0).send(30.2, 0, 2 * S, flags="FA").data(30.25, S, ip_id=1003, tsval=10_029)
    talk.ack(50, S).ack(50.1, S).ack(50.2, 2 * S + 1)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case()
def fin_data_lost_upstream(talk: Talk) -> Expected:
    """The data before the FIN was lost upstream; the FIN was seen once."""
    talk.open()
    talk.data(30, 0).missing(0).send(30.2, 0, 2 * S, flags="FA").ack(50, S).ack(50.1, S)
    talk.data(260, S, flags="FA").ack(280, 2 * S + 1)
    return {
        "retransmissions": 1,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "lost_upstream": 1,
        "back": {"duplicate_acks": 1},
    }


def fin_after_a_pause(talk: Talk, lost: int) -> None:
    talk.open(near=RTT)
    burst(talk, 30, 5)
    talk.ack(30.5, 5 * S).missing(0, lost).send(330, 0, 5 * S, flags="FA").ack(330.1, 5 * S + 1)


@case("ids")
def lone_fin_lost_upstream(talk: Talk) -> Expected:
    """Beside the receiver: the FIN comes in order, after a timeout and with one id missing before it."""
    fin_after_a_pause(talk, 1)
    return {"suspected_timeouts": 1}


@case("ids")
def lone_fin_lost_upstream_near(talk: Talk) -> Expected:
    """None is missing: the end had nothing to say for a while, and then closed."""
    fin_after_a_pause(talk, 0)
    return {}


def fin_passed_by_an_ack(talk: Talk, ms: float, **marks: int) -> None:
    """The other end closes too, and the acknowledgment of its FIN stands behind a FIN that was not seen."""
    talk.open()
    talk.data(30, 0).ack(50, S).missing(0).send(60, 1, 0, 0, S, flags="FA").send(60.1, 0, S + 1, ack=1)
    talk.send(ms, 0, S, ack=1, flags="FA", **marks).send(ms + RTT, 1, 1, ack=S + 1)


@case()
def fin_lost_upstream_and_passed_by_an_ack(talk: Talk) -> Expected:
    fin_passed_by_an_ack(talk, 300)
    return {"retransmissions": 1, "timeout_retransmissions": 1, "timeouts": 1, "lost_upstream": 1}


@case("order")
def fin_lost_upstream_and_passed_by_an_ack_near(talk: Talk) -> Expected:
    """It left before that acknowledgment."""
    fin_passed_by_an_ack(talk, 60.2, ip_id=1003, tsval=10_058)
    return {"out_of_order": 1}


@case()
def fin_copied_by_the_network(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S).send(60, 0, S, flags="FA").copy(3).ack(80, S + 1)
    return {"network_duplicates": 1}


@case()
def syn_copied_by_the_network(talk: Talk) -> Expected:
    """No sender repeats its SYN after 5 ms."""
    talk.send(0, 0, -1, ack=None, flags="S", options=OFFER).copy(5)
    talk.send(20, 1, -1, flags="SA", options=OFFER).send(20.1, 0, 0).data(30, 0).ack(50, S)
    return {"network_duplicates": 1}


@case("ids")
def ack_copied_by_the_network(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).copy(4).ack(55, 3 * S)
    return {"back": {"network_duplicates": 1}}


@case(flows=2)
def reset_of_a_half_open_connection(talk: Talk) -> Expected:
    """RFC 9293 figure 9: a SYN meets an old connection: its ACK is reset, and the SYN sent again is answered."""
    talk.send(0, 0, -1, ack=None, flags="S", options=OFFER)
    talk.send(20, 1, 400_000, 0, 70_000)  # of the old connection
    talk.send(20.1, 0, 70_000, 0, ack=None, flags="R")
    talk.send(1000, 0, -1, ack=None, flags="S", options=OFFER).send(1020, 1, -1, flags="SA", options=OFFER)
    talk.send(1020.1, 0, 0).data(1021, 0).ack(1041, S)
    for k in range(3):
        talk.send(1042 + k, 1, k * S, S, S).send(1062 + k, 0, S, 0, (k + 1) * S)
    return {"back": {"acks_out_of_range": 1}}


@case(flows=2)
def ports_reused_in_time_wait(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0).ack(50, S).send(60, 0, S, flags="FA").send(80, 1, 0, 0, S + 1, flags="FA")
    talk.send(80.1, 0, S + 1, ack=1)
    again = Variant(
        **{name: getattr(talk, name) for name in ("ids", "timestamps", "sack", "version")}, isn=(3500, 510_000)
    )
    again.open()
    again.data(30, 0).ack(50, S)
    for packet in again.packets:
        packet.time += 0.5
    talk.packets += again.packets
    return {}


@case()
def fast_open_refused(talk: Talk) -> Expected:
    """The SYN's data was not taken, so it is sent again at once: no timer, no duplicate ACK."""
    talk.send(0, 0, -1, 100, ack=None, flags="S", options=OFFER).send(20, 1, -1, flags="SA", options=OFFER)
    talk.data(20.1, 0, 100).ack(40, 100)
    return {"retransmissions": 1, "retransmitted_bytes": 100, "lost_downstream": 1}


@case()
def defer_accept(talk: Talk) -> Expected:
    """The server waits for data, and repeats a SYN-ACK that had been acknowledged."""
    talk.open()
    talk.send(1010, 1, -1, flags="SA", options=OFFER).send(1020, 0, 0).data(2000, 0).ack(2020, S)
    return {"back": {"retransmissions": 1, "timeout_retransmissions": 1, "timeouts": 1, "spurious_retransmissions": 1}}


# --- copies


@case()
def mirror_that_starts_late(talk: Talk) -> Expected:
    talk.open()
    for k in range(10):
        talk.data(30 + k, k * S).ack(50 + k, (k + 1) * S)
    for k in range(9, len(talk.packets)):
        if talk.packets[k]["TCP"].dport == 80:
            talk.copy(0.002, k)
    return {"mirror_duplicates": 7}


def at_ports(talk: Talk, which: int, ms: float, ports: int) -> None:
    """A packet comes by at further ports of a bridge: other link addresses, and nothing else."""
    for port in range(1, ports):
        talk.copy(ms + 0.003 * port, which, src=f"02:00:00:00:{port:02}:11", dst=f"02:00:00:00:{port:02}:12")


@case()
def mirror_of_four_ports(talk: Talk) -> Expected:
    talk.open()
    for k in range(4):
        talk.data(30 + k, k * S).ack(50 + k, (k + 1) * S)
    for k in range(len(talk.packets)):
        at_ports(talk, k, 0, 4)
    return {"mirror_duplicates": 18, "back": {"mirror_duplicates": 15}}


@case("ids")
def network_duplicate_at_three_ports(talk: Talk) -> Expected:
    """The network's copy passes all the ports too: one is the network's, what follows it the capture's."""
    talk.open()
    for k in range(4):
        talk.data(30 + k, k * S)
    for k in range(3, 7):
        at_ports(talk, k, 0, 3)
    talk.copy(0.1, 4)
    at_ports(talk, 4, 0.1, 3)
    talk.ack(53, 4 * S)
    return {"mirror_duplicates": 10, "network_duplicates": 1}


@case()
def mirror_with_losses(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S).ack(70.5, 5 * S)
    for k in range(len(talk.packets)):
        talk.copy(0.003, k)
    return {**FAST, "mirror_duplicates": 8, "back": {"mirror_duplicates": 6, "duplicate_acks": 3}}


@case()
def mirror_on_a_very_short_path(talk: Talk) -> Expected:
    """Round trip 0.1 ms, the copy 0.06 ms after: no timer is that fast, and no ACK asks for anything."""
    talk.open(rtt=0.1)
    for k in range(10):
        talk.data(30 + k, k * S).ack(30.1 + k, (k + 1) * S)
    for k in range(len(talk.packets)):
        talk.copy(0.06, k)
    return {"mirror_duplicates": 12, "back": {"mirror_duplicates": 11}}


@case("ids")
def mirror_of_three_hops(talk: Talk) -> Expected:
    talk.open()
    for k in range(4):
        talk.data(30 + k, k * S).ack(50 + k, (k + 1) * S)
    for k in range(len(talk.packets)):
        talk.copy(0.04, k, ttl=63).copy(0.04, -1, ttl=62)
    return {"mirror_duplicates": 12, "back": {"mirror_duplicates": 10}}


@case()
def mirror_behind_a_burst(talk: Talk) -> Expected:
    """Two ports of a router at 10 Gbit/s: twenty packets lie between a segment and its copy."""
    talk.open()
    burst(talk, 30, 40, gap=0.0012)
    name = "ttl" if talk.version == 4 else "hlim"
    for k in range(3, 43):
        talk.copy(0.024, k, **{name: 63})
    talk.ack(50.1, 40 * S)
    return {"mirror_duplicates": 40}


def copied_once(talk: Talk, *report: tuple[int, int], **changed: Any) -> None:
    talk.open()
    burst(talk, 30, 6)
    talk.copy(0.05, 5, **changed).ack(50, 2 * S).ack(50.15, 3 * S).ack(50.25, 3 * S, *report).ack(50.5, 6 * S)


@case()
def one_copy_at_once(talk: Talk) -> Expected:
    """A receiver with SACK would have reported a second segment; without, nobody can tell who made the copy."""
    copied_once(talk)
    twice = {"back": {"duplicate_acks": 1}}
    return {"mirror_duplicates": 1, **twice} if talk.sack else {"unknown_duplicates": 1, **twice}


@case("sack")
def one_copy_at_once_that_was_reported(talk: Talk) -> Expected:
    copied_once(talk, (2 * S, 3 * S))
    return {"network_duplicates": 1, "back": {"duplicate_acks": 1}}


@case()
def one_copy_at_another_port(talk: Talk) -> Expected:
    """Other link addresses: a second place of the capture, whatever else is known."""
    copied_once(talk, src="02:00:00:00:00:11", dst="02:00:00:00:00:12")
    return {"mirror_duplicates": 1, "back": {"duplicate_acks": 1}}


@case()
def one_copy_one_hop_on(talk: Talk) -> Expected:
    copied_once(talk, **{"ttl" if talk.version == 4 else "hlim": 63})
    return {"mirror_duplicates": 1, "back": {"duplicate_acks": 1}}


@case("sack")
def one_copy_above_a_gap(talk: Talk) -> Expected:
    """The receiver may leave the report out while it tells of gaps (Linux puts such ACKs together)."""
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).data(30.2, 3 * S).copy(0.05).ack(50, S).ack(50.1, S, (2 * S, 3 * S))
    talk.ack(50.2, S, (2 * S, 4 * S)).data(75, S).ack(95, 4 * S)
    return {
        "retransmissions": 1,
        "fast_retransmissions": 1,
        "lost_upstream": 1,
        "unknown_duplicates": 1,
        "back": {"duplicate_acks": 2},
    }


@case("ids")
def one_ack_copied_at_once(talk: Talk) -> Expected:
    """No one reports acknowledgments."""
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S).copy(0.05).ack(50.2, 2 * S).ack(50.3, 3 * S)
    return {"back": {"unknown_duplicates": 1}}


@case("sack")
def network_copies_a_resend(talk: Talk) -> Expected:
    """Lost, sent again in earnest, and that copied by the network: the report is of the copy."""
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S).copy(3).ack(70.5, 5 * S).ack(73.5, 5 * S, (S, 2 * S))
    return {**FAST, "network_duplicates": 1, "back": {"duplicate_acks": 3}}


@case("timestamps")
def network_copy_by_its_timestamp(talk: Talk) -> Expected:
    """It comes 0.8 round trips after the first, with the old timestamp: no sender stamps so."""
    talk.open()
    talk.data(30, 0)
    for k in range(1, 8):
        talk.data(30 + 2 * k, k * S)
    talk.copy(16, 3)
    for k in range(8):
        talk.ack(50 + 2 * k, (k + 1) * S)
    talk.ack(66.3, 8 * S, (0, S))
    return {"network_duplicates": 1}


# --- identifications, timestamps, sequence numbers


@case("ids")
def ids_wrap_and_skip_zero(talk: Talk) -> Expected:
    talk.timestamps = False
    talk.next_id[0] = 65_531
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).data(30.2, S, ip_id=65_534)
    talk.next_id[0] = 1
    burst(talk, 31, 3, 3)
    talk.ack(50, S).ack(50.1, S, (2 * S, 3 * S)).ack(50.15, 3 * S).ack(51.5, 6 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("ids")
def ids_of_swapped_bytes(talk: Talk) -> Expected:
    """As old Windows counts: they rise by 256, so they tell no order here; time does."""
    talk.timestamps = False
    talk.open()
    for k, (at, place) in enumerate(((0, 4), (1, 5), (3, 7), (2, 6), (4, 8), (5, 9))):
        talk.data(30 + k / 10, at * S, ip_id=256 * (place % 250) + 1)
    talk.ack(50, 2 * S).ack(50.1, 2 * S, (3 * S, 4 * S)).ack(50.2, 4 * S).ack(50.4, 6 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("ids")
def ids_at_random(talk: Talk) -> Expected:
    talk.timestamps = False
    talk.open()
    for k, ip_id in enumerate((50_000, 123, 31_000, 999, 47_001)):
        talk.data(30 + k / 10, k * S, ip_id=ip_id)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S, ip_id=12).ack(70.5, 5 * S)
    return {**FAST, "back": {"duplicate_acks": 3}}


@case("ids")
def pause_with_a_counter_shared_by_other_connections(talk: Talk) -> Expected:
    """The host's ids rise by 3 for each packet here: a step of 3 after a pause tells of no loss."""
    talk.open(near=RTT)
    for k in range(8):
        talk.missing(0, 2).data(30 + k, k * S).ack(30.05 + k, (k + 1) * S)
    talk.missing(0, 2).data(1500, 8 * S).ack(1500.1, 9 * S)
    return {}


@case("ids")
def pause_too_long_for_one_loss(talk: Talk) -> Expected:
    """A minute of nothing and one id missing: no timer waits so long for one lost packet."""
    talk.open(near=RTT)
    burst(talk, 30, 5)
    talk.ack(31, 5 * S).missing(0).data(60_000, 5 * S).ack(60_000.1, 6 * S)
    return {}


@case()
def long_idle_then_data(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50.2, 3 * S).data(3_600_000, 3 * S).ack(3_600_020, 4 * S)
    return {}


@case("timestamps")
def timestamps_that_do_not_tick(talk: Talk) -> Expected:
    """The same TSval for all: IP ids tell, else time."""
    talk.open()
    for k, (at, tick) in enumerate(((0, 3), (2, 5), (1, 4), (3, 6))):
        talk.data(30 + k / 10, at * S, tsval=77, ip_id=1000 + tick if talk.ids else None)
    talk.ack(50, S).ack(50.1, S, (2 * S, 3 * S)).ack(50.2, 3 * S).ack(50.3, 4 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("timestamps")
def timestamps_wrap_at_a_swap(talk: Talk) -> Expected:
    talk.ids = False
    talk.open(rtt=0.2)
    talk.data(30, 0, tsval=2**32 - 2).data(31, 2 * S, tsval=1).data(31.3, S, tsval=2**32 - 1)
    talk.ack(31.4, S).ack(31.41, S, (2 * S, 3 * S)).ack(31.5, 3 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


@case("order")
def sequence_wraps_at_a_swap(talk: Talk) -> Expected:
    talk.isn = (2**32 - 1501, 77)
    talk.open()
    talk.data(30, 0).missing(0).data(30.1, 2 * S).data(30.15, S, ip_id=1003, tsval=10_029)
    talk.ack(50, S).ack(50.1, S, (2 * S, 3 * S)).ack(50.15, 3 * S)
    return {"out_of_order": 1, "back": {"duplicate_acks": 1}}


# --- what the capture saw only in part


@case("order")
def begins_with_a_swap(talk: Talk) -> Expected:
    """Mid-stream, the first segment stored is ahead of the second."""
    talk.data(30, S, tsval=10_030, ip_id=1001).data(30.05, 0, tsval=10_029, ip_id=1000)
    talk.next_id[0] = 1002
    talk.data(30.1, 2 * S).ack(50, 3 * S)
    return {"out_of_order": 1}


@case("order")
def begins_with_a_swap_near(talk: Talk) -> Expected:
    """The second one left its sender later: sent again. Whether the capture point had its first sending is not known."""
    talk.data(30, S, tsval=10_030, ip_id=1001).data(30.05, 0, tsval=10_031, ip_id=1002)
    talk.next_id[0] = 1003
    talk.data(30.1, 2 * S, tsval=10_031).ack(50, 3 * S)
    return {"retransmissions": 1}


@case()
def begins_with_a_swap_that_nothing_tells(talk: Talk) -> Expected:
    talk.ids = talk.timestamps = False
    talk.data(30, S).data(30.05, 0).data(30.1, 2 * S).ack(50, 3 * S)
    return {"ambiguous": 1}


@case("order")
def begins_with_a_swap_and_its_copy(talk: Talk) -> Expected:
    """What came below the first segment has been seen by then: once more is no new byte."""
    talk.data(30, S, tsval=10_030, ip_id=1001).data(30.05, 0, tsval=10_029, ip_id=1000)
    talk.next_id[0] = 1002
    talk.data(30.1, 2 * S).ack(50, 0).data(300, 0).ack(320, 3 * S)
    return {**TIMEOUT, "out_of_order": 1}


@case()
def begins_inside_a_loss(talk: Talk) -> Expected:
    """Duplicate ACKs ask for what went before the capture began; then it comes again, and its place is not known."""
    burst(talk, 30, 4, 2)
    sacks(talk, 50, 1, 2, 3, 4, 5)
    talk.ack(50.4, S, (2 * S, 6 * S)).data(50.5, S).ack(70.5, 6 * S)
    return {"retransmissions": 1, "fast_retransmissions": 1, "back": {"duplicate_acks": 3}}


@case("sack")
def begins_with_what_was_reported_lost(talk: Talk) -> Expected:
    """What lies between it and the newest report went by before the capture began: nothing of that is unseen."""
    sacks(talk, 50, 1, 2, 4, 5, 6)
    talk.data(50.5, S).ack(70.5, 6 * S)
    burst(talk, 70.6, 3, 6)
    talk.ack(90.9, 9 * S)
    return {"back": {"retransmissions": 1, "fast_retransmissions": 1}}


@case("sack")
def begins_behind_what_was_reported(talk: Talk) -> Expected:
    """New data from the newest report on."""
    sacks(talk, 50, 1, 2, 4, 5, 6)
    burst(talk, 50.6, 3, 6)
    talk.data(50.9, S).ack(70.9, 9 * S)
    return {"back": {"retransmissions": 1, "fast_retransmissions": 1}}


@case("sack")
def begins_with_reports_of_somebody_else(talk: Talk) -> Expected:
    """A firewall that renumbers a stream and leaves its SACK blocks as they were."""
    talk.ack(50, S, (900_000_000, 900_001_000)).ack(50.1, S, (900_000_000, 900_002_000))
    burst(talk, 50.6, 4, 1)
    talk.ack(70.9, 5 * S)
    return {}


@case()
def capture_drop_and_loss_at_once(talk: Talk) -> Expected:
    """Segment 1 passed unseen and arrived, segment 2 was seen and lost."""
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 4, 2)
    talk.ack(50, S).ack(50.1, 2 * S)
    sacks(talk, 50.3, 2, 3, 4, 5, 6)
    talk.data(50.6, 2 * S).ack(70.6, 6 * S)
    return {**FAST, "unseen_bytes": S, "back": {"duplicate_acks": 3}}


@case()
def resend_dropped_by_the_capture(talk: Talk) -> Expected:
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.missing(0).ack(70.5, 5 * S)
    return {"back": {"duplicate_acks": 3}}


@case()
def gap_filled_by_an_unseen_resend(talk: Talk) -> Expected:
    """Lost upstream, its resend dropped by the capture: bytes that were never seen."""
    talk.open()
    talk.data(30, 0).missing(0)
    burst(talk, 30.2, 3, 2)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.missing(0).ack(70.5, 5 * S)
    return {"unseen_bytes": S, "back": {"duplicate_acks": 3}}


@case()
def ack_stored_before_two_segments(talk: Talk) -> Expected:
    talk.open(near=RTT)
    for k in range(3):
        talk.ack(40 + 10 * k, 2 * (k + 1) * S)
        talk.data(40.02 + 10 * k, 2 * k * S).data(40.03 + 10 * k, (2 * k + 1) * S)
    return {"capture_reordered": 6}


# --- segments of other sizes


@case()
def part_of_a_super_segment_again(talk: Talk) -> Expected:
    """One of the 40 packets of a super-segment was lost; no round trip may be measured through it."""
    talk.open(scale=10)
    talk.data(30, 0, 40_000).ack(50, 10 * S).data(275, 10 * S).ack(295, 40 * S)
    return {**TIMEOUT, "rtt_below_ms": 25}


@case()
def part_of_the_first_of_two_super_segments(talk: Talk) -> Expected:
    talk.open(scale=10)
    talk.data(30, 0, 40_000).data(30.1, 40 * S, 40_000).ack(50, 10 * S).data(275, 10 * S).ack(295, 80 * S)
    return {**TIMEOUT, "rtt_below_ms": 25}


@case("sack")
def part_of_a_super_segment_fast(talk: Talk) -> Expected:
    talk.open(scale=10)
    talk.data(30, 0, 40_000).ack(50, 10 * S)
    sacks(talk, 50.2, 10, 11, 12, 13, 14, 40)
    talk.data(50.7, 10 * S).ack(70.7, 40 * S)
    return {**FAST, "back": {"duplicate_acks": 4}, "rtt_below_ms": 25}


@case()
def smaller_segments_after_a_timeout(talk: Talk) -> Expected:
    """1,400 bytes are sent again as two of 700: a path MTU that fell."""
    talk.open()
    talk.data(30, 0, 1400).data(270, 0, 700).ack(290, 700).data(290.1, 700, 700).ack(310, 1400)
    return {
        "retransmissions": 2,
        "retransmitted_bytes": 1400,
        "timeout_retransmissions": 2,
        "timeouts": 1,
        "lost_downstream": 2,
    }


@case()
def urgent_data(talk: Talk) -> Expected:
    talk.open()
    talk.data(30, 0, flags="PAU").ack(50, S).data(51, S, 1, flags="PAU").ack(71, S + 1)
    return {}


# --- SACK


@case("sack")
def sack_blocks_wrap(talk: Talk) -> Expected:
    talk.isn = (2**32 - 2501, 9)
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5, 6)
    talk.data(50.7, S).ack(70.7, 6 * S, tsecr=10_030).ack(70.8, 6 * S, (S, 2 * S))
    return {**SPURIOUS, "fast_retransmissions": 1, "back": {"duplicate_acks": 4}}


@case("sack")
def a_report_of_a_copy_of_the_resend(talk: Talk) -> Expected:
    """The first acknowledgment echoes the resend, so it was needed; what came twice is a copy that the network made."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5, 6)
    talk.data(60.7, S).ack(80.7, 6 * S, tsecr=10_060).ack(80.8, 6 * S, (S, 2 * S))
    twice = FAST if talk.timestamps else {**SPURIOUS, "fast_retransmissions": 1}
    return {**twice, "back": {"duplicate_acks": 4}}


def after_a_timeout(talk: Talk, *, held: bool) -> Expected:
    """A timeout; what had been sent before it is reported, or only what was sent after it."""
    talk.open()
    burst(talk, 30, 8)
    talk.ack(50, S).data(290, S).ack(310, 2 * S)
    if held:
        talk.ack(310.2, 2 * S, (3 * S, 8 * S)).data(325, 2 * S).ack(345, 8 * S)
    else:
        burst(talk, 310.1, 4, 8)
        talk.ack(330.5, 2 * S, (8 * S, 12 * S)).data(345, 2 * S).ack(366, 3 * S, (8 * S, 12 * S))
    return {"retransmissions": 2, "retransmitted_bytes": 2 * S, "timeouts": 1, "lost_downstream": 2}


@case("sack")
def reported_behind_a_timeout(talk: Talk) -> Expected:
    """RFC 5682 section 3.1: not all was lost, the sender takes the timeout back; then it recovers by RACK."""
    counts = after_a_timeout(talk, held=True)
    return {**counts, "timeout_retransmissions": 1, "fast_retransmissions": 1, "back": {"duplicate_acks": 1}}


@case("sack")
def reported_of_what_came_after_a_timeout(talk: Talk) -> Expected:
    """Near miss: what was sent after it says nothing of what was sent before."""
    counts = after_a_timeout(talk, held=False)
    return {**counts, "timeout_retransmissions": 2, "back": {"duplicate_acks": 1}}


def lost_once_more_going_back(talk: Talk, again: float) -> Expected:
    """The timer's resend of segment 2 is lost, those of 3 to 5 arrive; then comes 6 again."""
    talk.open()
    burst(talk, 30, 8)
    talk.ack(50, S).data(290, S).ack(310, 2 * S)
    burst(talk, 310.1, 4, 2)
    for k in range(3):
        talk.ack(330.2 + k / 10, 2 * S, (3 * S, (4 + k) * S))
    if again:
        talk.data(again, 2 * S)
    talk.data(331, 6 * S).data(331.1, 7 * S).ack(351, 6 * S).ack(351.1, 8 * S)
    times = 8 if again else 7
    counts = {"retransmissions": times, "retransmitted_bytes": times * S, "timeouts": 1, "lost_downstream": times}
    return {**counts, "back": {"duplicate_acks": 3}}


@case("sack")
def going_on_behind_what_was_lost_once_more(talk: Talk) -> Expected:
    """What is reported lost once more begins a recovery (FLAG_LOST_RETRANS in Linux), and the rest is part of it."""
    return {
        **lost_once_more_going_back(talk, 330.6),
        "timeout_retransmissions": 5,
        "fast_retransmissions": 3,
    }


@case("sack")
def going_on_though_one_is_missing(talk: Talk) -> Expected:
    """Near miss: it is not sent again, so the sender goes on as the timer began."""
    counts = lost_once_more_going_back(talk, 0)
    return {**counts, "timeout_retransmissions": 7}


@case("sack")
def sack_blocks_from_nowhere(talk: Talk) -> Expected:
    """A firewall that renumbers the stream and forgets SACK: the blocks report nothing of this stream."""
    talk.open()
    burst(talk, 30, 3)
    talk.ack(50, S, (300_000_000, 300_001_000)).data(150, S).ack(170, 3 * S)
    return LOST


@case("sack")
def reported_and_dropped_by_the_receiver(talk: Talk) -> Expected:
    """An acknowledgment that ends where a report began, and reports nothing, takes that back (RFC 2018 section 8)."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5, 6)
    talk.data(50.7, S).data(300, S).ack(320, 2 * S)
    for k in range(2, 6):
        talk.data(320.1 + 20 * (k - 2), k * S).ack(340.1 + 20 * (k - 2), (k + 1) * S)
    return {
        "retransmissions": 6,
        "retransmitted_bytes": 6 * S,
        "fast_retransmissions": 1,
        "timeout_retransmissions": 5,
        "timeouts": 1,
        "lost_downstream": 6,
        "back": {"duplicate_acks": 4},
    }


@case("sack")
def reported_and_kept_by_the_receiver(talk: Talk) -> Expected:
    """What is sent again while the last report holds it, the receiver has."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5, 6)
    talk.data(50.7, S).data(300, S).data(300.1, 2 * S).ack(320, 6 * S)
    return {
        "retransmissions": 3,
        "retransmitted_bytes": 3 * S,
        "fast_retransmissions": 1,
        "timeout_retransmissions": 2,
        "timeouts": 1,
        "spurious_retransmissions": 1,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 4},
    }


@case("sack")
def one_copy_long_after_a_loss(talk: Talk) -> Expected:
    """Nothing is missing any more: the receiver would report a copy of the network's."""
    talk.open()
    burst(talk, 30, 5)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5)
    talk.data(50.5, S).ack(70.5, 5 * S)
    for k in range(5, 12):
        talk.data(100 + k, k * S)
    talk.copy(0.05).ack(140, 12 * S)
    return {**FAST, "mirror_duplicates": 1, "back": {"duplicate_acks": 3}}


@case("sack")
def dsack_above_the_ack(talk: Talk) -> Expected:
    """A segment above a gap was sent again in vain: the report's first block lies within its second."""
    talk.open()
    burst(talk, 30, 6)
    talk.ack(50, S)
    sacks(talk, 50.2, 1, 2, 3, 4, 5, 6)
    talk.data(50.7, S).data(50.8, 3 * S).ack(70.8, S, (3 * S, 4 * S), (2 * S, 6 * S))
    talk.data(280, S).ack(300, 6 * S)
    return {
        "retransmissions": 3,
        "retransmitted_bytes": 3 * S,
        "fast_retransmissions": 2,
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "spurious_retransmissions": 1,
        "lost_downstream": 2,
        "back": {"duplicate_acks": 5},
    }


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, variant: str, tmp_path: Path) -> None:
    build, needs, flows = CASES[name]
    if set(needs.split()) & set(LACKS[variant].split()):
        pytest.skip("takes " + needs)
    talk = Variant(**VARIANTS[variant])
    expected = build(talk)
    trace = wiretale.analyze(*WRITERS["pcap"](talk.in_order(), tmp_path))
    assert len(trace.flows) == flows
    check(trace, expected)


def test_three_sack_gaps_without_the_data(tmp_path: Path) -> None:
    talk = Talk()
    three_losses_of_one_window(talk)
    talk.packets = [packet for packet in talk.packets if packet["IP"].src == "10.0.0.2"]
    trace = wiretale.analyze(*WRITERS["pcap"](talk.in_order(), tmp_path))
    unseen = next(row for row in trace.directions.rows() if not row["packets"])
    assert unseen["sack_gaps"] == 3


def test_data_of_one_direction_without_ids_and_timestamps_is_undecided(tmp_path: Path) -> None:
    talk = Talk(ids=False, timestamps=False)
    for at in (0, 2, 1, 3):
        talk.data(30 + at * 0.1, at * S)
    talk.packets.sort(key=lambda packet: float(packet.time))
    talk.packets[1], talk.packets[2] = talk.packets[2], talk.packets[1]
    talk.packets[1].time, talk.packets[2].time = talk.packets[2].time, talk.packets[1].time
    row = wiretale.analyze(*WRITERS["pcap"](talk.packets, tmp_path)).directions.rows()[0]
    assert (row["ambiguous"], row["out_of_order"], row["retransmissions"]) == (1, 0, 0)


def test_copies_of_all_interfaces_of_a_host_are_the_captures(tmp_path: Path) -> None:
    """`tcpdump -i any` on a bridge: the link addresses are the same at each."""
    talk = Talk().open()
    talk.data(30, 0).ack(50, S)
    packets = []
    for packet in talk.in_order():
        for port in range(3):
            address = bytes.fromhex("0200000000010000")
            cooked = struct.pack(">HHIHBB", 0x800, 0, port + 2, 1, 0, 6) + address + bytes(packet["IP"])
            copy = CookedLinuxV2(cooked)
            copy.time = float(packet.time) + port * 3e-6
            packets.append(copy)
    packets.sort(key=lambda packet: float(packet.time))
    wrpcap(str(tmp_path / "any.pcap"), packets, linktype=276)
    out, back = wiretale.analyze(tmp_path / "any.pcap").directions.rows(0, 2)
    assert [(row["mirror_duplicates"], row["network_duplicates"]) for row in (out, back)] == [(6, 0), (4, 0)]
