# SPDX-License-Identifier: Apache-2.0
"""Data that its sender repeats although it had arrived: lost ACKs, timers that are too short, packets out of order, no SACK."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, Place, cause
from wiretale.analyzer.causes.path.lossy import ends_of, lacks_sack
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer
    from wiretale.analyzer.rows import DirectionRow

FLOWS_MAX = 50
PROBE = "probe_retransmission"  # sent early, so that nobody waits for it (RFC 8985 section 7)
TIMER, OF_TIMER = "timer", ("timeout_retransmission", PROBE)
AFTER_LOSS = ("recovery", "go_back_n")
UNPLACED = ("retransmission-unlocated", "lost-downstream")  # without SACK they are losses and needless repeats alike


class Reason(NamedTuple):
    """Why a sender repeats what had arrived."""

    repeats: int
    text: str
    certainty: Certainty
    place: Place
    advice: str
    rival: str = ""
    decides: str = ""  # what would exclude it
    is_of_timer: bool = False


def needless_events(case: Case, transfer: Transfer) -> list[tuple[str, str, str]]:
    """Returns kind, evidence and cause of the repeats that were not needed, in words."""
    words = {number: word for word, number in case.transfers.words.items()}
    names = ("direction", "kind", "spurious", "evidence", "cause")
    return [
        (words.get(kind, ""), words.get(evidence, ""), words.get(why, ""))
        for direction, kind, spurious, evidence, why in case.transfers.events([transfer.row["flow"]], *names)
        if direction == transfer.row["direction"] and spurious == 1 and words.get(kind) in RETRANSMISSIONS
    ]


def reason_of(transfer: Transfer, events: list[tuple[str, str, str]]) -> Reason:
    """Returns the reason of most of the repeats."""
    sender, receiver = ends_of(transfer)
    lost_acks = transfer.back["acks_lost_downstream"] or 0
    if lost_acks:
        return Reason(
            len(events),
            f"at least {plural(lost_acks, 'ACK')} {'was' if lost_acks == 1 else 'were'} lost on the way back, after the capture "
            "point",
            "proven",
            "after",
            f"Compare error and drop counters of every port on the way from {receiver} to {sender} (`ethtool -S`).",
            is_of_timer=True,
        )
    kinds = Counter(kind if kind not in OF_TIMER else TIMER for kind, _, _ in events)
    most, count = max(kinds.items(), key=lambda entry: (entry[1], entry[0] == TIMER))
    if most == TIMER:
        return expired(transfer, count, any(evidence == "acknowledged" for _, evidence, _ in events))
    if most != "fast_retransmission":
        return Reason(
            count,
            "why does not show at this capture point: its ACKs may reach it late, or its timer may be shorter than the round "
            "trip",
            "possible",
            "path",
            f"Capture at {sender}, and read `ss -ti` there (rto, rtt, reordering).",
            "reordering",
            f"a capture at {sender}: whether duplicate ACKs or its timer made it repeat",
        )
    if lacks_sack(transfer) and any(why in AFTER_LOSS for _, _, why in events):
        return Reason(
            count,
            "the connection has no SACK, so that after a loss it cannot know what had arrived",
            "proven",
            "path",
            "Turn on SACK at both ends (`net.ipv4.tcp_sack=1`), and let firewalls pass the option.",
        )
    return Reason(
        count,
        "duplicate ACKs made it do so, probably because packets overtake each other after the capture point",
        "likely",
        "after",
        "Balance load per flow, not per packet, on the way after the capture point (`xmit_hash_policy layer3+4` of a bond).",
        "reordering",
        "a capture at the receiver: the order in which the packets come",
    )


def expired(transfer: Transfer, count: int, acks_passed: bool) -> Reason:
    """Returns the reason of repeats by timers."""
    sender, receiver = ends_of(transfer)
    decides = f"a capture at {sender}: whether the ACKs come late or never"
    if acks_passed:
        return Reason(
            count,
            "ACKs of it had passed here, and were probably lost or late on the way back",
            "likely",
            "after",
            f"Compare drop counters of every port on the way from {receiver} to {sender}, and look for a queue there.",
            "stall",
            decides,
            is_of_timer=True,
        )
    rtt_ns = transfer.path_rtt_ns
    path = f", on a path of {show_duration(rtt_ns)}" if rtt_ns else ""
    return Reason(
        count,
        f"its timer expired before the ACKs came{path}: the delay probably grew briefly, or ACKs were lost",
        "likely",
        "path",
        f"Look for a radio link or a queue between {sender} and {receiver}; `tcp_frto=2` at the sender undoes such a timeout.",
        "stall",
        decides,
        is_of_timer=True,
    )


def timers_ns(row: DirectionRow) -> int | None:
    """Returns how long the sender waited for timers, if none of them was needed; None if one was, or without any."""
    is_needless = (row["timeouts"] or 0) <= (row["spurious_retransmissions"] or 0) and not row["lost_downstream"]
    return (row["rto_idle_ns"] or None) if is_needless else None


@cause(
    code="needless-repeats",
    title="Data repeated that had arrived",
    sentence="{sender} repeated {count:segment} ({share}) that had arrived{to}: {why}{price}.",
    advice="{advice}",
    shows="DSACKs, timestamps or earlier ACKs prove that repeated data had arrived (finding spurious), and no loss, stall or "
    "order of packets at the capture point explains it. Tail loss probes alone are a note. Lost ACKs show by the timestamps of "
    "the repeats (rule V6.7 of verdicts).",
    rivals={
        "random-loss": "the data had arrived; what was lost are ACKs, if anything",
        "reordering": "the timer repeated the data, not three duplicate ACKs",
        "stall": "single segments were repeated, not all flows stood still",
    },
    unknown="Whether ACKs were lost or late, if the timestamps of the sender do not show it.",
    explains=("spurious", "timeout-stalls", "retransmission-cost", "recovery-limited", "loss-limited-window"),
)
def needless_repeats(case: Case) -> Matches:
    every = {transfer.side: transfer for transfer in (*case.transfers.largest, *case.transfers.stalled)}
    for each in case.findings("spurious")[:FLOWS_MAX]:
        transfers = [every[side] for side in each.finding.flows if side in every]
        for transfer in transfers:
            events = needless_events(case, transfer)
            if events:
                is_note = each.finding.severity == "info" or all(kind == PROBE for kind, _, _ in events)
                yield repeats_match(case, is_note, transfer, reason_of(transfer, events))


def repeats_match(case: Case, is_note: bool, transfer: Transfer, reason: Reason) -> Match:
    """Returns the match of a sender that repeats what had arrived."""
    row, (sender, receiver) = transfer.row, ends_of(transfer)
    waited_ns = timers_ns(row) if reason.is_of_timer and not is_note else None
    excluded = {"random-loss": "DSACKs, timestamps or earlier ACKs prove that the data had arrived"}
    return Match(
        certainty=reason.certainty,
        place=reason.place,
        severity="info" if is_note else None,
        findings=case.effects(UNPLACED, [row["flow"]])
        if lacks_sack(transfer) or reason.repeats > transfer.unplaced
        else [],
        flows=[transfer.side],
        waited_ns=waited_ns,
        bytes=None if waited_ns else row["retransmitted_bytes"],
        proof="DSACKs, timestamps or earlier ACKs prove that the data had arrived",
        excluded=excluded,
        undecided={reason.rival: reason.decides} if reason.rival else {},
        sender=sender,
        to=f" at {receiver}",
        count=reason.repeats,
        share=show_share(reason.repeats, transfer.data_packets),
        why=reason.text,
        price=f"; its timers took {show_duration(waited_ns)}" if waited_ns else "",
        advice=reason.advice,
    )
