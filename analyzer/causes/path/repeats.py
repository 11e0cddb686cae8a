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

FLOWS_MAX, TIMERS_MIN = 50, 3  # repeats
PROBE = "probe_retransmission"  # sent early, so that nobody waits for it (RFC 8985 section 7)
TIMER, OF_TIMER = "timer", ("timeout_retransmission", PROBE)
AFTER_LOSS = ("recovery", "go_back_n")
FULL = ("path-limited", "wire-full")
UNPLACED = ("retransmission-unlocated", "lost-downstream")  # without SACK they are losses and needless repeats alike


SOON, SPREAD, SAME = 0.9, 0.2, 0.02  # of the median round trip; of the median time to a repeat: timers of one length
SAMPLES_SHARE, LATE_TIMES, LATE_GAPS = 0.1, 1.5, 6  # round trips, of the segments; of the least round trip; segments


class Needless(NamedTuple):
    """A repeat that was not needed."""

    kind: str
    evidence: str
    cause: str
    after_ns: int | None  # the transmission before; None: unknown


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


def needless_events(case: Case, transfer: Transfer) -> list[Needless]:
    """Returns the repeats that were not needed."""
    words = {number: word for word, number in case.transfers.words.items()}
    names = ("direction", "kind", "spurious", "evidence", "cause", "time_ns", "due_ns")
    return [
        Needless(words.get(kind, ""), words.get(evidence, ""), words.get(why, ""), at - due if due else None)
        for direction, kind, spurious, evidence, why, at, due in case.transfers.events([transfer.row["flow"]], *names)
        if direction == transfer.row["direction"] and spurious == 1 and words.get(kind) in RETRANSMISSIONS
    ]


def short_timer_ns(transfer: Transfer, events: list[Needless]) -> float | None:
    """Returns after how long a sender repeats data, ns, if no ACK of it or of later data can have come by then: it waits equally
    long each time, and for less than a usual round trip, or hardly an ACK comes before it repeats; or it waits for less than the
    least round trip. None if it does not."""
    after = sorted(event.after_ns for event in events if event.after_ns)
    least_rtt, usual_rtt = transfer.row["rtt_ns_min"], transfer.row["rtt_ns_median"]
    if len(after) < TIMERS_MIN or 2 * len(after) < len(events) or least_rtt is None or usual_rtt is None:
        return None
    soonest, usual, latest = (after[tenth * len(after) // 10] for tenth in (1, 5, 9))
    is_timer = usual <= SOON * usual_rtt and latest - soonest <= SPREAD * usual
    is_soonest = is_unanswered(transfer) and latest - soonest <= SAME * usual and is_late(transfer, usual, least_rtt)
    return float(usual) if is_timer or is_soonest or latest < least_rtt else None


def is_late(transfer: Transfer, after_ns: int, least_rtt: int) -> bool:
    """Returns whether three duplicate ACKs would have come sooner, if packets had overtaken the data."""
    gap_ns = transfer.duration_ns / transfer.data_packets
    return after_ns >= max(LATE_TIMES * least_rtt, least_rtt + LATE_GAPS * gap_ns)


def is_unanswered(transfer: Transfer) -> bool:
    """Returns whether hardly an ACK gives a round trip: data had been repeated before (Karn's rule)."""
    return (transfer.row["rtt_samples"] or 0) <= SAMPLES_SHARE * transfer.data_packets


def short_timer(transfer: Transfer, events: list[Needless], after_ns: float) -> Reason:
    """Returns the reason of repeats by a timer that is shorter than the round trip."""
    sender, receiver = ends_of(transfer)
    late = f"ACKs take {show_duration(transfer.row['rtt_ns_median'])} (median)"
    late = "hardly an ACK comes sooner" if is_unanswered(transfer) else late
    return Reason(
        len(events),
        f"it repeats after {show_duration(after_ns)} what has no ACK, and {late}",
        "likely" if is_unanswered(transfer) else "proven",
        "client" if transfer.row["direction"] == 0 else "server",
        f"Raise the least retransmission timeout of {sender} above the round trip (Linux: `ip route change ... rto_min`; others: "
        f"RFC 6298), and look for what makes the way to {receiver} so long.",
    )


def reason_of(transfer: Transfer, events: list[Needless]) -> Reason:
    """Returns the reason of most of the repeats."""
    sender, receiver = ends_of(transfer)
    timer_ns = short_timer_ns(transfer, events)
    if timer_ns is not None:
        return short_timer(transfer, events, timer_ns)
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
    kinds = Counter(each.kind if each.kind not in OF_TIMER else TIMER for each in events)
    most, count = max(kinds.items(), key=lambda entry: (entry[1], entry[0] == TIMER))
    if most == TIMER:
        return expired(transfer, count, any(each.evidence == "acknowledged" for each in events))
    if most != "fast_retransmission":
        return Reason(
            count,
            "the reason does not show at this capture point: its ACKs may reach it late, or its timer may be shorter than the "
            "round trip",
            "possible",
            "path",
            f"Capture at {sender}, and read `ss -ti` there (rto, rtt, reordering).",
            "reordering",
            f"a capture at {sender}: whether duplicate ACKs or its timer made it repeat",
        )
    if lacks_sack(transfer) and any(each.cause in AFTER_LOSS for each in events):
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
            "its ACKs passed the capture point, and were probably lost or late on the way back",
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


def wasted_ns(transfer: Transfer, repeats: int) -> float:
    """Returns the time that repeats took on a path that is full."""
    return transfer.waited_ns * min(repeats / transfer.data_packets, 1.0)


def timers_ns(row: DirectionRow) -> int | None:
    """Returns how long the sender waited for timers, if none of them was needed; None if one was, or without any."""
    is_needless = (row["timeouts"] or 0) <= (row["spurious_retransmissions"] or 0) and not row["lost_downstream"]
    return (row["rto_idle_ns"] or None) if is_needless else None


@cause(
    code="needless-repeats",
    title="Data retransmitted that had arrived",
    sentence="{sender} retransmitted {count:segment} ({share}) that had arrived{to}: {why}{price}{full}.",
    advice="{advice}",
    shows="DSACKs, timestamps or earlier ACKs prove that repeated data had arrived (finding spurious), and no loss, stall or "
    "order of packets at the capture point explains it. The timer is too short if the repeats come equally long after the data "
    "(20%), in less than 0.9 of the median round trip, or sooner than any ACK. Tail loss probes alone are a note. Lost ACKs "
    "show by the timestamps of the repeats (rule V6.7 of verdicts).",
    rivals={
        "random-loss": "the data had arrived; what was lost are ACKs, if anything",
        "reordering": "the timer repeated the data, not three duplicate ACKs",
        "stall": "single segments were retransmitted, and not all flows stalled",
        "bottleneck": "a tenth or more of the segments on a full path are repeats, and hardly any was needed",
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
                is_note = each.finding.severity == "info" or all(event.kind == PROBE for event in events)
                yield repeats_match(case, is_note, transfer, reason_of(transfer, events))


def repeats_match(case: Case, is_note: bool, transfer: Transfer, reason: Reason) -> Match:
    """Returns the match of a sender that repeats what had arrived."""
    row, (sender, receiver) = transfer.row, ends_of(transfer)
    waited_ns = timers_ns(row) if reason.is_of_timer and not is_note else None
    excluded = {"random-loss": "DSACKs, timestamps or earlier ACKs prove that the data had arrived"}
    full, share = case.effects(FULL, [row["flow"]]), show_share(reason.repeats, transfer.data_packets)
    if full:
        excluded["bottleneck"] = f"{share} of the segments are not needed"
    return Match(
        certainty=reason.certainty,
        place=reason.place,
        severity="info" if is_note else None,
        findings=[
            *full,
            *(
                case.effects(UNPLACED, [row["flow"]])
                if lacks_sack(transfer) or reason.repeats > transfer.unplaced
                else []
            ),
        ],
        flows=[transfer.side],
        waited_ns=waited_ns or (wasted_ns(transfer, reason.repeats) if full else None),
        bytes=None if waited_ns else row["retransmitted_bytes"],
        proof="DSACKs, timestamps or earlier ACKs prove that the data had arrived",
        excluded=excluded,
        undecided={reason.rival: reason.decides} if reason.rival else {},
        sender=sender,
        to=f" at {receiver}",
        count=reason.repeats,
        share=share,
        why=reason.text,
        price=f"; its timers took {show_duration(waited_ns)}" if waited_ns else "",
        full=f"; they take {share} of a path that is full" if full else "",
        advice=reason.advice,
    )
