# SPDX-License-Identifier: Apache-2.0
"""Packets that overtake each other on the path."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, cause
from wiretale.analyzer.causes.path.lossy import ends_of
from wiretale.analyzer.findings.transfers import Transfer
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

SHARE_MIN, SHARE_PER_PACKET = 0.001, 0.1  # of the segments: below the first nothing is said
LATE_MIN = 3  # segments
OF_CAPTURE_NS = 50_000  # less than that is the order of an adapter with several queues
NEEDLESS_MIN, EPISODE_MOST = 3, 4  # times of fast retransmissions of data that had arrived; segments each time
LATE_USUAL = 0.99  # quantile of how late they came
EFFECTS = (
    *("reordered", "reordering-extent", "spurious", "ambiguous-gap", "recovery-limited", "retransmission-cost"),
    *("loss-limited-window", "timeout-stalls", "blocks-reordered", "microburst"),
)


def latest_ns(case: Case, transfer: Transfer) -> float:
    """Returns how late reordered segments came, at most but for one in a hundred; NaN if unknown."""
    kind = case.transfers.words["out_of_order"]
    events = case.transfers.events([transfer.row["flow"]], "direction", "kind", "time_ns", "due_ns")
    late = sorted(
        arrived - due
        for direction, event, arrived, due in events
        if (direction, event) == (transfer.row["direction"], kind) and not math.isnan(due)
    )
    return late[int(LATE_USUAL * (len(late) - 1))] if late else math.nan


def needless_of(case: Case, transfer: Transfer) -> int:
    """Returns the fast retransmissions of data that had arrived."""
    kind = case.transfers.words["fast_retransmission"]
    events = case.transfers.events([transfer.row["flow"]], "direction", "kind", "spurious")
    return sum(
        spurious == 1 and (direction, event) == (transfer.row["direction"], kind)
        for direction, event, spurious in events
    )


@cause(
    code="reordering",
    title="Packets overtake each other",
    sentence="{share}{route} out of order{late}{reason}{needless}{price}.",
    advice="Balance load per flow {where}, not per packet: `xmit_hash_policy layer3+4` of a bond, `ip load-sharing "
    "per-destination` of a router.",
    shows="Segments fill a gap and are older by TSval or IP ID than the packet that overtook them (directions.out_of_order). "
    "They are at least 0.1%, or made the sender repeat data needlessly. From 10% on, links of unequal delay must carry the "
    "flow packet by packet. After the capture point, it shows at least three times as a few fast retransmissions of data that "
    "had arrived (DSACK, timestamps).",
    rivals={
        "random-loss": "what fills a gap is older than the packet after it, not a retransmission",
        "stall": "single packets are late, not all of a time",
    },
    unknown="Which device reorders. At the sender only DSACKs show it, not how late the packets were.",
    explains=EFFECTS,
)
def reordering(case: Case) -> Matches:
    for transfer in case.transfers.limited():
        row, late = transfer.row, transfer.row["out_of_order"] or 0
        share, needless = late / transfer.data_packets, needless_of(case, transfer)
        has_lost = 2 * transfer.lost > late + needless
        if late >= LATE_MIN and (share >= SHARE_MIN or needless) and not latest_ns(case, transfer) < OF_CAPTURE_NS:
            yield late_match(case, transfer, share, 0 if has_lost else needless)
        elif is_reordered_behind(case, transfer) and not has_lost and not row["suspected_timeouts"]:
            yield unseen_match(transfer, needless)


def is_reordered_behind(case: Case, transfer: Transfer) -> bool:
    """Returns whether a sender repeats a few segments needlessly, again and again, after three duplicate ACKs or SACKs each."""
    kind = case.transfers.words["fast_retransmission"]
    events = case.transfers.events([transfer.row["flow"]], "direction", "kind", "spurious", "time_ns")
    times = sorted(
        at
        for direction, event, spurious, at in events
        if spurious == 1 and (direction, event) == (transfer.row["direction"], kind)
    )
    apart = 2 * (transfer.path_rtt_ns or 0)
    episodes = 1 + sum(later - sooner > apart for sooner, later in pairwise(times)) if times else 0
    reports = max(transfer.back["duplicate_acks"] or 0, transfer.back["sack_acks"] or 0)
    return episodes >= NEEDLESS_MIN and len(times) <= EPISODE_MOST * episodes and reports >= 3 * episodes


def late_match(case: Case, transfer: Transfer, share: float, needless: int) -> Match:
    """Returns the match of a transfer whose segments came out of order at the capture point."""
    late, (source, destination) = transfer.row["out_of_order"] or 0, ends_of(transfer)
    by_packet, latest = share >= SHARE_PER_PACKET, latest_ns(case, transfer)
    waited, certainty = delay_of_repeats(transfer, needless), "proven" if by_packet else "likely"
    certain: Certainty = "proven" if by_packet else "likely"
    lateness = "" if math.isnan(latest) else f", up to {show_duration(latest)} late"
    return Match(
        certainty=certain,
        place="before",
        flows=[transfer.side],
        waited_ns=waited or None,
        severity=None if needless or by_packet else "info",
        proof=f"{late:,} of {plural(transfer.data_packets, 'segment')} are older than the packet that overtook them{lateness}",
        excluded={"random-loss": "they are older than the packets before them, so they are no retransmissions"},
        undecided={} if certainty == "proven" else {"random-loss": "a capture at the sender shows their order"},
        share=f"{show_share(late, transfer.data_packets)} of the segments ",
        route=f"from {source} to {destination} arrive",
        late=lateness,
        reason=": links of unequal delay carry this flow packet by packet"
        if by_packet
        else ": probably a device or link sends some of them another way",
        needless=f", and {plural(needless, 'segment')} {'was' if needless == 1 else 'were'} retransmitted needlessly"
        if needless
        else "",
        price=f" ({show_duration(waited)} with a smaller window)" if waited else "",
        where="before the capture point",
    )


def unseen_match(transfer: Transfer, needless: int) -> Match:
    """Returns the match of a transfer whose sender repeated data that had arrived, again and again."""
    source, destination = ends_of(transfer)
    waited = delay_of_repeats(transfer, needless)
    return Match(
        certainty="likely",
        place="after",
        flows=[transfer.side],
        waited_ns=waited or None,
        proof=f"{plural(needless, 'fast retransmission')} of data that had arrived",
        undecided={"stall": "a capture at the receiver shows the order in which they come"},
        share="Segments ",
        route=f"from {source} to {destination} probably arrive",
        late="",
        reason=" after the capture point",
        needless=f": {plural(needless, 'segment')} {'was' if needless == 1 else 'were'} repeated although "
        f"{'it' if needless == 1 else 'they'} had arrived",
        price=f", which took {show_duration(waited)}" if waited else "",
        where="after the capture point",
    )


def delay_of_repeats(transfer: Transfer, needless: int) -> int:
    """Returns the time that needless repeats cost; 0 without any."""
    return transfer.held_up_ns + (transfer.row["recovery_ns"] or 0) if needless else 0
