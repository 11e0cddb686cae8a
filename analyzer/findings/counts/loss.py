# SPDX-License-Identifier: Apache-2.0
"""Rules about losses and retransmissions: their place, their cause, and those that were not needed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.counts.count_rule import (
    CountRule,
    amount_words,
    captured,
    held_in,
    retransmission_cost,
    stalled_seconds,
)
from wiretale.analyzer.findings.model import Words, data_segments, segments, syns_and_fins
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS
from wiretale.analyzer.units import agreeing, plural, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow

CHAPTER = "Loss and retransmissions"


def cause_words(row: DirectionRow, count: int) -> Words:
    """`causes` is ` (retransmitted: 3 fast, 1 by RTO)`. It counts all, also those of another finding."""
    probes = row["probe_retransmissions"] or 0
    counts: tuple[tuple[int | None, str], ...] = (
        (row["fast_retransmissions"], "fast"),
        (row["timeout_retransmissions"], "by RTO"),
        (probes, agreeing(probes, "as tail loss probe", "as tail loss probes")),
    )
    other = (row["retransmissions"] or 0) - sum(number or 0 for number, _ in counts)
    if any(number for number, _ in counts):
        counts = (*counts, (max(other, 0), "of unknown cause"))
    parts = [f"{number:,} {word}" for number, word in counts if number]
    total = sum(number or 0 for number, _ in counts)
    relation = "" if total == count else f"of all {total:,} " if total > count else f"known of {total:,} "
    return {"causes": f" ({relation}retransmitted: {', '.join(parts)})" if parts else ""}


def bounded_words(column: str, row: DirectionRow, count: int) -> Words:
    """The words of cause_words(); if retransmissions have no known place, `amount` is a range and `open` counts them."""
    unplaced, total = segments(row, "unplaced_retransmissions") or 0, segments(row, "data_packets") or 0
    causes = cause_words(row, captured(row, column, count))
    if not unplaced:
        return {**causes, "open": ""}
    least = count - syns_and_fins(row, column)
    most = least + (data_segments(row, "unplaced_retransmissions") or 0)
    again = plural(max(segments(row, "retransmissions") or 0, count + unplaced), "retransmission")
    unknown = f"; the place of {unplaced:,} of {again} is unknown"
    bounds = (least, most) if most > least else (least,)
    return {**causes, **amount_words(row, column, bounds, total, held_in(row, column, count)), "open": unknown}


UNDECIDED, NO_ACKS = "no SACK, timestamp or ACK decides", "it has no ACKs of them"
CUT_OPTIONS, NO_SACK = "the snap length cut the TCP options of the ACKs", "the connection has no SACK"
GAPS_FULL = "more gaps were open at once than wiretale keeps"
SILENT = "the receiver, or the path to it, may be gone"
REMEDIES = {
    UNDECIDED: "Capture at the sender, from the handshake on.",
    NO_ACKS: "Capture both directions.",
    CUT_OPTIONS: "Capture at least 128 bytes per packet (-s 128).",
    GAPS_FULL: "Capture at the sender, where losses leave no gaps.",
    SILENT: "Check whether the receiver still runs and has the connection (ss -tn), and capture there. If the connection was "
    "idle before, a NAT or firewall may have forgotten it: send keep-alives more often.",
    NO_SACK: "Enable SACK at both ends (net.ipv4.tcp_sack).",
}


def unplaced_words(row: DirectionRow, count: int) -> Words:
    """`answer` is `the place of 3 of 5 retransmissions is unknown`; `reason` names the missing evidence, `remedy` how to get
    it."""
    total = segments(row, "retransmissions") or 0
    reason = UNDECIDED
    if row["duplicate_acks"] is None:
        reason = NO_ACKS
    elif row["spurious_retransmissions"] is None:
        reason = CUT_OPTIONS
    elif row["unknown_bytes"]:
        reason = GAPS_FULL
    elif row["unacked_bytes"] and row["timeouts"]:
        reason = SILENT
    elif row["sack_permitted"] is False:
        reason = NO_SACK
    again = plural(max(total, count), "retransmission")
    unplaced = f"{count:,} of {again}" if total > count else again
    unanswered = f"the last data was never acknowledged despite {unplaced}"
    return {
        "answer": unanswered if reason == SILENT else f"the place of {unplaced} is unknown",
        "reason": reason,
        "remedy": REMEDIES[reason],
    }


lost_downstream = CountRule(
    code="lost-downstream",
    title="Lost between capture point and receiver",
    column="lost_downstream",
    events=RETRANSMISSIONS,
    place="downstream",
    computed="Segments that passed the capture point and were retransmitted, unless DSACK, timestamps or ACKs prove "
    "the retransmission spurious (directions.wire_lost_downstream). SYNs of attempts that never succeeded do not "
    "count. If the place of other retransmissions is unknown, the sentence has the least and the greatest number; if "
    "packets are longer than a segment on the wire, bytes and segments.",
    unknown="Whether the data or its ACK was lost, unless later ACKs show it.",
    sentence="{name} lost {amount}{amount_share}, or {count:~its ACK|their ACKs}, between capture point and "
    "receiver{causes}{open}.",
    headline=(
        "{sentence}",
        "{name} lost {amount}[{amount_share}] or {count:~its ACK|their ACKs} after the capture point[{causes}][{open}].",
    ),
    summary="lost segments after the capture point",
    advice="Check queues, links and policers between capture point and receiver. The events table lists each loss.",
    words=partial(bounded_words, "lost_downstream"),
    saves=partial(retransmission_cost, column="lost_downstream"),
)

lost_upstream = CountRule(
    code="lost-upstream",
    title="Lost between sender and capture point",
    column="lost_upstream",
    events=RETRANSMISSIONS,
    place="upstream",
    computed="Gaps in the stream that a retransmission filled (directions.wire_lost_upstream).",
    unknown="Losses after which nothing followed until the retransmission, because they leave no gap: see "
    "suspected-timeout.",
    sentence="{name} lost {amount}{amount_share} between sender and capture point: {count:~a retransmission fills the "
    "gap|retransmissions fill the gaps}{causes}{open}.",
    headline=(
        "{sentence}",
        "{name} lost {amount}[{amount_share}] before the capture point[: {count:~a retransmission fills the "
        "gap|retransmissions fill the gaps}][{causes}][{open}].",
    ),
    summary="lost segments before the capture point",
    advice="Compare drop counters between sender and capture point. The events table lists each loss.",
    words=partial(bounded_words, "lost_upstream"),
    saves=partial(retransmission_cost, column="lost_upstream"),
)

retransmission_unlocated = CountRule(
    code="retransmission-unlocated",
    title="Retransmissions of unknown place",
    column="unplaced_retransmissions",
    events=RETRANSMISSIONS,
    unplaced=True,
    computed="Retransmissions that are neither lost at a known place nor proven spurious "
    "(directions.unplaced_retransmissions). ACKs were not captured, the snap length cut their options, the connection has no "
    "SACK, or its receiver sends no DSACK. Or more gaps were open at once than wiretale keeps (4,096), or the first "
    "transmission precedes the capture.",
    unknown="Where the segments were lost, and whether they were.",
    sentence="{name}: {answer}[. Whether and where {count:~the segment was|the segments were} "
    "lost cannot be determined from this capture because {reason}].",
    summary="retransmitted segments of unknown place",
    advice="{remedy}",
    words=unplaced_words,
    saves=partial(retransmission_cost, column="unplaced_retransmissions"),
)

suspected_timeout = CountRule(
    code="suspected-timeout",
    title="Suspected retransmission timeouts",
    column="suspected_timeouts",
    events=("suspected_timeout",),
    unit="timeouts",
    severity="info",
    computed="New data in order after a pause as long as an RTO, with a packet of the sender missing before it by its "
    "IPv4 IDs.",
    unknown="Whether the missing packet had data.",
    sentence="{name} probably had {count:RTO} before the capture point[: after {count:~a pause|pauses} as long as an "
    "RTO the stream continues in order, and an IPv4 ID of the sender is missing].",
    summary="paused as long as a retransmission timeout",
    advice="Capture at the sender to confirm.",
    saves=stalled_seconds,
)

COUNTERS = {"TCP": "TcpInCsumErrors", "UDP": "UdpInCsumErrors", "ICMP": "IcmpInCsumErrors"}  # of Linux


def damage_words(row: DirectionRow, count: int) -> Words:
    """`counter` counts the same at a receiver that runs Linux."""
    protocol = "ICMP" if row["source_port"] is None else "UDP" if row["retransmissions"] is None else "TCP"
    verified = max(row["checksums_verified"], count)
    return {
        "whole": verified,
        "share": show_share(count, verified),
        "protocol": protocol,
        "counter": f"`nstat -az {COUNTERS[protocol]}`",
        "source": row["source"],
        "destination": row["destination"],
    }


damaged_packets = CountRule(
    code="damaged-packets",
    title="Damaged packets",
    column="checksum_errors",
    events=("checksum_error",),
    unit="packets",
    denominator="checksums_verified",
    computed="Packets captured whole whose TCP, UDP or ICMP checksum is wrong, while more packets of the direction have right "
    "ones (directions.checksum_errors, rules V14). Checksums that the capturing host leaves to its adapter do not count, nor "
    "does data that its receiver acknowledged.",
    unknown="Which device damaged them, and damage after the capture point. Ethernet's FCS reveals most damage on a cable. If "
    "the FCS is right and the checksum is wrong, suspect the memory, adapter or driver of a device that forwards them.",
    sentence="{name}: {count} of {whole:packet} arrived damaged[ ({share}, wrong {protocol} checksum)][ and {count:~is|are} "
    "discarded by {destination}: a fault of a device or cable before the capture point, not congestion].",
    summary="sent packets that arrived damaged",
    words=damage_words,
    advice="Compare {counter} at {destination} and the error counters of each port and module (`ethtool -S`) from {source} to "
    "the capture point. If none rises there, capture on both sides of each device that forwards the packets, and replace the "
    "one after which checksums are wrong.",
    saves=lambda row, count: retransmission_cost(row, row["checksum_retransmissions"] or 0, "checksum_retransmissions"),
)

LATE_ANSWERS = "Check for reordering, delay spikes, and a receiver whose ACKs are delayed."
LOST_ACKS = (
    "Find the loss between the capture point and {sender}: the ACKs passed the capture point in time and did not arrive, or "
    "{sender} discarded them. Compare drop counters and firewall rules in that direction, and capture at {sender}."
)


def answer_words(row: DirectionRow, back: DirectionRow) -> Words:
    """`lost_acks` says how many ACKs did not reach the sender, if any are known; `advice` follows from it."""
    sender, lost = row["source"], back["acks_lost_downstream"]
    if not lost:
        return {"lost_acks": "", "advice": LATE_ANSWERS}
    least = (
        f"at least {plural(lost, 'ACK')} {agreeing(lost, 'was', 'were')} lost between the capture point and {sender}"
    )
    return {"lost_acks": f"; {least}", "advice": LOST_ACKS.format(sender=sender)}


spurious = CountRule(
    code="spurious",
    title="Spurious retransmissions",
    column="spurious_retransmissions",
    events=RETRANSMISSIONS,
    spurious=True,
    computed="Retransmissions proven spurious by DSACK (RFC 2883), by an echoed timestamp (RFC 3522) or by an ACK that had "
    "passed the capture point before. ACKs were lost after the capture point if the sender repeated data long after they had "
    "passed. Its timestamps must show that it had received none of them (RFC 7323), and that it echoed none later "
    "(directions.acks_lost_downstream).",
    unknown="Spurious retransmissions without such proof. Whether ACKs were lost or late, without timestamps. SYN-ACKs after "
    "their handshake are in accept-deferred.",
    sentence="{name} sent {count:spurious retransmission}[: DSACKs, timestamps or earlier ACKs prove that the data had "
    "arrived]{lost_acks}.",
    summary="sent spurious retransmissions",
    advice="{advice}",
    words_of_both=answer_words,
    saves=partial(retransmission_cost, column="spurious_retransmissions"),
)
