# SPDX-License-Identifier: Apache-2.0
"""Losses of single transfers: by a policer, at the end of a flight, on a link that may be broken, or at random."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.captured.missing import missed_share
from wiretale.analyzer.causes.cause import Match, Matches, Place, Severity, cause
from wiretale.analyzer.causes.ends.acks import TIMERS_MS
from wiretale.analyzer.causes.ends.talk import parts_str
from wiretale.analyzer.causes.path.loss_moments import (
    TokenBucket,
    drained_bucket,
    moments_of,
    spent_bucket,
    token_bucket,
)
from wiretale.analyzer.causes.path.lossy import (
    EFFECTS,
    OPEN_QUEUE,
    POOL_MIN,
    SUSPECTS,
    Lossy,
    Manner,
    beside_str,
    by_place,
    cost_of,
    ends_of,
    ends_of_all,
    is_pool,
    is_voice,
    lossy_transfers,
    manner_of,
    packets_of_losses,
    pooled,
    priced,
    sackless_str,
    waited_of,
)
from wiretale.analyzer.findings.evidence import RETRANSMISSION, Cited
from wiretale.analyzer.findings.loss_pattern import LOSSES_MIN
from wiretale.analyzer.findings.model import Words
from wiretale.analyzer.findings.shared.places import around, waits_of
from wiretale.analyzer.findings.transfers import Transfer
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

TAIL_SHARE, TAILS_MIN = 0.5, 3
MANY_SHARE, MANY_MIN, SHORT_PATH_NS = 0.05, 30, 10_000_000  # of losses that a busy path does not explain
CODEPOINTS = {0: "default", 46: "EF"}
#: without and with round trips that stayed
TOGETHER_NS, TOGETHER_RTTS = 5_000_000, 2.0  # between losses of one burst
STEP_NS, STEP_RTTS, STEPS_MIN, STEPS_SHARE, STEPS_WITHIN = 30_000_000, 10.0, 3, 0.5, 0.2  # between their repairs
#: words about hosts that lose alike
SHARED = {"doubt": f", probably at a place that they share: {SUSPECTS[0]}", "marking": "", "sackless": ""}


class Repair(NamedTuple):
    """How a sender repairs losses that came together."""

    step_ns: float  # from one retransmission to the next
    longest: int  # losses that came together
    by_timer: bool

    @property
    def is_delayed(self) -> bool:
        """Whether a delayed ACK takes as long as a step."""
        return not self.by_timer and any(least * 1e6 <= self.step_ns <= most * 1e6 for _, least, most in TIMERS_MS)

    def reason(self, receiver: str) -> str:
        """Returns what starts the next repair."""
        if self.by_timer:
            return "when a timer expires"
        return (
            f"probably when the delayed ACK of {receiver} comes"
            if self.is_delayed
            else f"when the ACK of {receiver} comes"
        )


def repair_of(case: Case, lossy: Lossy) -> Repair | None:
    """Returns how a sender repairs the losses of a burst, if it sends one segment again, and the next one only much later, each
    time after the same time; else None."""
    transfer, rtt = lossy.transfer, float(lossy.transfer.path_rtt_ns or 0)
    if transfer.flow["protocol"] != "tcp" or not rtt:
        return None
    together_ns, steps, longest, run = max(TOGETHER_RTTS * rtt, TOGETHER_NS), [], 1, 1
    for sooner, later in pairwise(moments_of(case.transfers, transfer, lossy.place)):
        is_together = later.due_ns - sooner.due_ns <= together_ns
        run = run + 1 if is_together else 1
        longest = max(longest, run)
        if is_together:
            steps.append(later.shown_ns - sooner.shown_ns)
    slow = sorted(step for step in steps if step >= max(STEP_NS, STEP_RTTS * rtt))
    quarter = len(slow) // 4
    half = slow[quarter : len(slow) - quarter]
    if len(slow) < STEPS_MIN or len(slow) < STEPS_SHARE * len(steps) or half[-1] > (1 + STEPS_WITHIN) * half[0]:
        return None
    return Repair(slow[len(slow) // 2], longest, (transfer.row["timeouts"] or 0) >= len(slow))


@cause(
    code="slow-repair",
    title="Lost segments are repaired one at a time",
    sentence="{lost} of {sent} segments ({share}) from {source} to {destination} were lost {where} in bursts of "
    "up to {longest}. {sender} repairs them one at a time, each {step} after the one before, {reason}{price}.",
    advice="{advice}",
    shows="Losses that were due within 5 ms or two round trips of each other are repaired one by one. Each repair comes at "
    "least 30 ms and 10 round trips after the one before. That happens at least three times, in most such cases, and always "
    "after the same time (the middle half to 20%). A sender that knows of several holes (SACK) fills them within a round "
    "trip, and doubles a timer that brought no ACK.",
    rivals={
        "random-loss": "the segments are lost at once, and repaired one by one",
        "tail-loss": "several timers in a row, each for one segment of the same burst",
        "outage": "the timer is not doubled, and each repair arrives",
    },
    unknown="Why the segments were lost.",
    explains=(*EFFECTS, "delayed-ack"),
)
def slow_repair(case: Case) -> Matches:
    repairs = [(lossy, repair) for lossy in lossy_transfers(case) if (repair := repair_of(case, lossy))]
    slowest = {lossy.transfer.side: repair for lossy, repair in repairs}
    for group in by_place(lossy for lossy, _ in repairs):
        worst = max(group, key=lambda lossy: slowest[lossy.transfer.side].step_ns)
        repair, transfer, waited = slowest[worst.transfer.side], worst.transfer, waited_of(group)
        lost, sent = sum(lossy.lost for lossy in group), sum(lossy.transfer.sent_or_lost for lossy in group)
        source, destination = ends_of_all(group)
        receiver, sender = transfer.row["destination"], transfer.row["source"]
        yield Match(
            certainty="proven" if repair.by_timer else "likely",
            place="after" if worst.place == "downstream" else "before",
            flows=[lossy.transfer.side for lossy in group],
            waited_ns=waited or None,
            frames=packets_of_losses(group),
            proof=f"up to {repair.longest} segments of one burst, repaired {show_duration(repair.step_ns)} apart on a path of "
            f"{show_duration(transfer.path_rtt_ns)}",
            excluded={
                "random-loss": f"holes of one burst are filled {show_duration(repair.step_ns)} apart",
                "outage": "the next repair waits as long as the one before, and each arrives",
            },
            undecided={} if repair.by_timer else {"tail-loss": f"a capture at {sender}: what comes before each repair"},
            share=show_share(lost, sent),
            source=source,
            destination=destination,
            lost=lost,
            sent=sent,
            where=worst.words["where"],
            longest=repair.longest,
            sender=sender,
            step=show_duration(repair.step_ns),
            reason=repair.reason(receiver),
            price=price_of(group, waited),
            advice=repair_advice(sender, receiver, worst.words["where"], repair.is_delayed),
        )


def repair_advice(sender: str, receiver: str, where: str, is_delayed: bool) -> str:
    """Returns what to do about slow repairs."""
    remedy = (
        f"turn off delayed ACKs at {receiver} (ESXi: the iSCSI adapter's DelayedAck; Windows: `TcpAckFrequency=1`)"
        if is_delayed
        else f"update the TCP stack or profile of {sender}, so that it uses SACK (NetScaler: the TCP profile's SACK and flavor)"
    )
    return f"Find what drops bursts {where} (drop counters of each port, flow control); until then, {remedy}."


def bucket_of(case: Case, lossy: Lossy) -> TokenBucket | None:
    """Returns the policer that explains the losses of a transfer; None if none does, or if a queue grows before them."""
    transfers, transfer = case.transfers, lossy.transfer
    if transfer.flow["protocol"] != "tcp":
        return None
    tests = (token_bucket, spent_bucket, drained_bucket)
    return next((bucket for test in tests if (bucket := test(transfers, transfer, lossy.place))), None)


@cause(
    code="policer",
    title="Traffic policer",
    sentence="A policer {where} {probably}holds {route} at {rate} after bursts{burst}. It dropped {lost} of {sent} "
    "segments ({share}) and queued none{steady}.",
    advice="Compare the rate with the contract (`show policy-map interface`), and shape just below it at the sender: `tc qdisc "
    "replace dev IF root tbf rate {shaped} burst 32k latency 50ms`.",
    shows="There are at least 15 losses in as many round trips. Three round trips may have half of them at most; the "
    "overshoot of slow start does not count. The same rate of payload passes between losses that are at least two round trips "
    "apart: the median is at least 80% of the 90th percentile. Faster bursts of at least 4 packets pass before a loss, but "
    "not after one. From a loss to the next, at most 4 packets pass beyond the rate (in 95%; in 90% of all times after a "
    "loss). The bytes between losses vary more or less than they would by chance. Round trips do not grow at losses (by the "
    "time of 2 packets, or 0.5 ms), and the bucket would take longer to drain: a queue as short would not show. If the "
    "losses are before the capture point, bursts of 4 packets in 1 ms exceed the rate "
    "there. Or the bucket is large. For four round trips before the first of at least 30 losses, half as much again passes as "
    "in any later time bin with losses, and that later rate is even (to 20%). Or the bucket never fills again. From the first "
    "of at least 30 losses on, 60 or more packets pass at one rate, from which they stray by at most 4. Before it, half as "
    "much again had passed in the time.",
    rivals={
        "bottleneck": "round trips do not grow before the losses, and bursts faster than the rate pass",
        "random-loss": "no more than the rate passes between two losses",
    },
    unknown="Whose policer it is. A bucket of fewer than 4 packets looks like losses at random. Several flows that share one.",
    explains=EFFECTS,
)
def policer(case: Case) -> Matches:
    for lossy in lossy_transfers(case):
        bucket = bucket_of(case, lossy)
        if bucket is None:
            continue
        after = lossy.place == "downstream" and lossy.transfer.round_trips is not None
        rtt = show_duration(lossy.transfer.path_rtt_ns)
        burst = f" of {show_bytes(bucket.burst_bytes)} or more" if bucket.burst_bytes else ""
        yield Match(
            certainty="proven" if after else "likely",
            place="after" if lossy.place == "downstream" else "before",
            flows=[lossy.transfer.side],
            waited_ns=waited_of([lossy]),
            frames=packets_of_losses([lossy]),
            proof=bounds_str(bucket, burst),
            excluded={
                "random-loss": "what passes between two losses is bounded by one rate",
                **({"bottleneck": f"the round trip stays at {rtt} before the losses"} if after else {}),
            },
            undecided={} if after else {"bottleneck": OPEN_QUEUE},
            rate=show_rate(bucket.rate_bps),
            shaped=f"{0.95 * bucket.rate_bps / 1000:.0f}kbit",
            burst=burst,
            steady=f", so the round trip stayed at {rtt}" if after else "",
            **lossy.words,
        )


def bounds_str(bucket: TokenBucket, burst: str) -> str:
    """Returns what shows the rate of a policer."""
    rate = show_rate(bucket.rate_bps)
    if bucket.before_bps is None:
        return f"between two losses never more than {rate} passes, before them bursts{burst}"
    before = show_rate(bucket.before_bps)
    return f"{before} passed until the first loss, then {rate}: a link never carries more before its queue overflows"


def tails_of(case: Case, lossy: Lossy) -> list[Cited]:
    """Returns the retransmissions of the last data sent, after whose loss nothing followed to show it."""
    words = case.transfers.words
    tail, kinds = words["tail"], {words["timeout_retransmission"], words["probe_retransmission"]}
    names, flow = ("direction", "kind", "cause", "spurious", "frame", "time_ns", "capture"), lossy.transfer.row["flow"]
    return [
        case.transfers.cited(frame, after, flow, capture, RETRANSMISSION)
        for direction, kind, why, spurious, frame, after, capture in case.transfers.events([flow], *names)
        if direction == lossy.transfer.row["direction"]
        and spurious != 1
        and ((kind in kinds and why == tail) or kind == words["probe_retransmission"])
    ]


def tails_in(case: Case, group: Sequence[Lossy]) -> list[tuple[Lossy, list[Cited]]]:
    """Returns the transfers of which at least half of the losses are such, with these."""
    tails = [(lossy, tails_of(case, lossy)) for lossy in group]
    return [(lossy, packets) for lossy, packets in tails if packets and len(packets) >= TAIL_SHARE * len(lossy.losses)]


@cause(
    code="tail-loss",
    title="Losses at the end of a burst",
    sentence="{lost} {where}: nothing followed to reveal {tails:~it|them}, so the sender waited {waited} for "
    "{tails:~a timer|timers}.",
    advice="Repair the loss {where}; until then keep tail loss probes on (`net.ipv4.tcp_early_retrans=3`), or lower "
    "`rto_min` on a LAN.",
    shows="At least half of the losses are of the last data sent, repaired by an RTO or a tail loss probe without a duplicate "
    "ACK. There are at least three, or fewer if their timers took half of the time that all losses cost.",
    rivals={
        "random-loss": "half of the losses or more are of the last segment, after which the sender waits for its timer",
        "outage": "what was sent shortly before and after arrived",
        "delack-tail": "the data is repeated, not only its ACK late",
    },
    unknown="At the receiver such a loss leaves no gap: only the pause shows.",
    explains=EFFECTS,
)
def tail_loss(case: Case) -> Matches:
    for group in by_place(lossy for lossy in lossy_transfers(case) if lossy.transfer.flow["protocol"] == "tcp"):
        tails = tails_in(case, group)
        members, repeats = [lossy for lossy, _ in tails], [packet for _, packets in tails for packet in packets]
        timers_ns = priced(lossy.transfer.row["rto_idle_ns"] or 0 for lossy in members)
        if timers_ns and (len(repeats) >= TAILS_MIN or timers_ns >= TAIL_SHARE * waited_of(group)):
            yield tails_match(case, members, repeats)


def tails_match(case: Case, members: Sequence[Lossy], repeats: Sequence[Cited]) -> Match:
    """Returns the match of transfers that lost the last segments of bursts, and repeated them by timers."""
    count, ends = len(repeats), {packet.frame for packet in repeats}
    stalls = [wait for lossy in members for wait in waits_of(case.transfers, lossy.transfer.row, "timeout")]
    before = [around(case.transfers, wait)[0] for wait in stalls if wait.after.frame in ends]
    waited = priced(lossy.transfer.row["rto_idle_ns"] or 0 for lossy in members)
    route = " from {} to {}".format(*ends_of(members[0].transfer)) if len(members) == 1 else ""
    return Match(
        certainty="proven",
        place="after" if members[0].place == "downstream" else "before",
        flows=[lossy.transfer.side for lossy in members],
        waited_ns=waited,
        frames=[*before, *repeats],
        proof=f"{plural(count, 'retransmission')} of the last data sent, without a duplicate ACK",
        tails=count,
        lost=f"The last segment of a burst{route} was lost"
        if count == 1
        else f"The last segments of {count:,} bursts{route} were lost",
        waited=show_duration(waited),
        where=members[0].words["where"],
    )


def marking_of(lossy: Lossy) -> str:
    """Returns a sentence about the DSCP of both directions of a voice or video stream, if they differ."""
    marks = [row["dscp"] for row in (lossy.transfer.row, lossy.transfer.back)]
    if not is_voice(lossy.transfer) or None in marks or marks[0] == marks[1]:
        return ""
    here, there = (f"{mark}{f' ({CODEPOINTS[mark]})' if mark in CODEPOINTS else ''}" for mark in marks)
    return f" Its packets carry DSCP {here}, those of the other direction {there}."


@cause(
    code="duplex-mismatch",
    title="Duplex mismatch, or a bad cable",
    sentence="{lost} of {sent} segments ({share}) from {source} to {destination} were lost {where}, one at a time, though "
    "nothing queues ({rtt}). The ends of an Ethernet link may differ in duplex, or a cable is bad{price}.",
    advice="Read both ends of each link {where}: `ethtool IF` (Duplex: Half?), late collisions and FCS errors in "
    "`ethtool -S IF`; let both ends negotiate.",
    shows="At least 5% of the segments, and 30, are lost in one direction, one at a time. The path takes at most 10 ms, and "
    "its round trips do not grow at losses. No packet proves it: the counters of the ports decide.",
    rivals={
        "policer": "what passes between two losses has no bound",
        "bottleneck": "round trips do not grow at losses",
        "random-loss": "no busy or long path explains so many losses on so short a path",
    },
    unknown="Whether duplex, cable or radio is the reason.",
    explains=EFFECTS,
)
def duplex_mismatch(case: Case) -> Matches:
    suspects = (lossy for lossy in lossy_transfers(case) if is_mismatch(case, lossy))
    for group in by_place(suspects):
        worst, waited = max(group, key=lambda lossy: lossy.lost), waited_of(group)
        lost, sent = sum(lossy.lost for lossy in group), sum(lossy.transfer.sent_or_lost for lossy in group)
        source, destination = ends_of_all(group)
        yield Match(
            certainty="possible",
            place="after",
            flows=[lossy.transfer.side for lossy in group],
            waited_ns=waited or None,
            frames=packets_of_losses(group),
            proof=f"{lost:,} of {sent:,} lost{manner_of(case, worst).text}",
            excluded={"bottleneck": "round trips do not grow at losses", "policer": "no rate bounds what passes"},
            undecided={"random-loss": "error counters of both ports of each link"},
            source=source,
            destination=destination,
            rtt=show_duration(worst.transfer.path_rtt_ns),
            price=price_of(group, waited),
            share=show_share(lost, sent),
            lost=lost,
            sent=sent,
            where=worst.words["where"],
        )


def is_mismatch(case: Case, lossy: Lossy) -> bool:
    """Returns whether a transfer loses more, at random, than a short path without a queue explains."""
    transfer, rtt = lossy.transfer, lossy.transfer.path_rtt_ns
    is_many = lossy.lost >= max(MANY_SHARE * transfer.sent_or_lost, MANY_MIN)
    is_short = rtt is not None and 0 < rtt <= SHORT_PATH_NS and transfer.flow["protocol"] == "tcp"
    return is_many and is_short and manner_of(case, lossy).certainty == "proven"


@cause(
    code="random-loss",
    title="Losses on the path",
    sentence="{amount} {route} {lost:~was|were} lost {where}{manner}{doubt}{price}.{marking}{sackless}",
    advice="{advice}",
    shows="Segments or numbered packets are lost, and no other cause separates them from those that passed: not by size, "
    "port, checksum, time, token bucket or round trip. Six or more have a pattern (finding loss-pattern): single ones are "
    "random. If about as much passes between losses each time (12 distances that vary by at most 40%, on average 8 round "
    "trips), and round trips stay, a short queue overflows again and again. Some pairs of hosts lose alike on one side of the "
    "capture point (to a factor of 4 from their median). At least three are told as one, if they are most of those whose "
    "transfers would show such a share.",
    rivals={
        "policer": "what passes between two losses has no bound",
        "bottleneck": "round trips do not grow before the losses",
        "damaged-packets": "checksums are right; a damaged packet is captured, a lost one leaves a gap",
        "tail-loss": "later segments arrived and revealed the loss",
    },
    unknown="Before the capture point, whether a queue overflowed: no round trip here includes it; and whether the packets "
    "were lost at all, if the capture missed more: a note then. Without SACK, whether data or its ACK was lost.",
    explains=(*EFFECTS, "blocks-lost", "jitter"),
)
def random_loss(case: Case) -> Matches:
    groups = by_place(lossy for lossy in lossy_transfers(case) if is_for_one(lossy.transfer))
    for group in pooled(groups, case.transfers.largest if len(groups) >= POOL_MIN else ()):
        yield random_match(case, group)


def is_for_one(transfer: Transfer) -> bool:
    """Returns whether a transfer is sent to one host: a router may end a multicast stream on purpose."""
    return not ip_address(transfer.row["destination"]).is_multicast


def price_of(group: Sequence[Lossy], waited: int) -> str:
    """Returns what losses cost, or of a voice stream whether the other direction lost anything."""
    transfer = max(group, key=lambda lossy: lossy.lost).transfer
    if is_voice(transfer) and transfer.back["blocks_lost"] == 0:
        return "; the other direction lost none"
    if not waited:
        return ""
    whole_ns = max(group, key=cost_of).transfer.waited_ns
    return f". That cost {'up to ' if len(group) > 1 else ''}{parts_str(waited, whole_ns)}"


def severity_of(case: Case, place: Place, share: float) -> Severity | None:
    """Returns the severity of losses: a note if they may be packets that the capture missed."""
    return "info" if place == "before" and share < missed_share(case) else None


def random_match(case: Case, group: Sequence[Lossy]) -> Match:
    """Returns the match of transfers that lose at one place."""
    worst = max(group, key=lambda lossy: lossy.lost)
    of_several, (source, destination), row = is_pool(group), ends_of_all(group), worst.transfer.row
    manner = Manner("", "likely", {"bottleneck": OPEN_QUEUE}) if of_several else manner_of(case, worst)
    lost, sent = sum(lossy.lost for lossy in group), sum(lossy.transfer.sent_or_lost for lossy in group)
    waited, several = waited_of(group), f"of {plural(len(group), 'transfer')} " if len(group) > 1 else ""
    place: Place = "after" if worst.place == "downstream" else "before"
    unit = "segments" if worst.transfer.flow["protocol"] == "tcp" else "packets"
    return Match(
        certainty=manner.certainty,
        place=place,
        flows=[lossy.transfer.side for lossy in group],
        waited_ns=waited or None,
        severity=severity_of(case, place, lost / sent),
        bytes=None if waited else round(lost * row["wire_bytes"] / max(row["packets"], 1)),
        frames=packets_of_losses(group),
        proof=f"{lost:,} of {sent:,} lost {worst.words['where']}{manner.text}",
        undecided=manner.open,
        route=f"{several}from {source} to {destination}",
        lost=lost,
        where=f"{worst.words['where']}{beside_str(group, worst.place)}",
        manner=manner.text,
        price=price_of(group, waited),
        **amount_of(lost, sent, unit),
        **(SHARED if of_several else words_of_one(case, worst, manner)),
        advice=loss_advice(worst, place, manner),
    )


def amount_of(lost: int, sent: int, unit: str) -> Words:
    """Returns how much was lost, with its share unless it is little."""
    share = "" if lost < LOSSES_MIN else f" ({show_share(lost, sent)})"
    return {"amount": f"{lost:,} of {sent:,} {unit}{share}"}


def words_of_one(case: Case, lossy: Lossy, manner: Manner) -> Words:
    """Returns words about the losses of one transfer, which may be of a group with one sender or receiver."""
    return {
        "doubt": manner.suspect and f", probably to {manner.suspect}",
        "marking": marking_of(lossy),
        "sackless": sackless_str(case, lossy),
    }


def loss_advice(lossy: Lossy, place: Place, manner: Manner) -> str:
    """Returns what to check about losses on the path."""
    if manner.advice:
        return manner.advice
    if marking_of(lossy):
        return "Mark both directions alike (EF) and compare drop counters of each class on the way from the sender."
    side = "from the capture point to the receiver" if place == "after" else "from the sender to the capture point"
    return f"Check every port {side} for errors and drops (`ethtool -S`, `show interfaces counters errors`) and for weak optics."
