# SPDX-License-Identifier: Apache-2.0
"""The rule about flows that lose together: one finding about the queue that they share, in place of one for each flow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.loss_pattern import GROWTH_MIN_NS, RTT_GROWTH
from wiretale.analyzer.findings.model import SECOND, Match, Matches, finding, seconds
from wiretale.analyzer.findings.shared.queue import DOWNSTREAM, Member, SharedQueue, shared_queues
from wiretale.analyzer.findings.transfers import Bins, Transfers, mean, median_of, variation
from wiretale.analyzer.units import show_duration, show_rate, show_share, three_digits

CHAPTER = "Shared causes"
COST_WARNING = 0.01  # of the members' time
PLACES = {"downstream": "after the capture point", "upstream": "before the capture point"}
LEVEL = 0.15  # variation of the rate of a policer or a full link
SINGLE = 1.5  # losses in an episode; fewer are single
CELLS_MIN = 20
BUSY = 0.9  # quantile of the rate behind a queue: it is the link's while the queue is not empty
QUEUE_ADVICE = (
    "Use AQM or a fair queue at that bottleneck (fq_codel, cake), or send below its rate: this is congestion."
)
POLICER_ADVICE = "Send below the policer's rate, or shape to it before it."
OTHER_ADVICE = "Look for one queue, policer or link that all of them pass, and its drop counters at these times."


class Pattern(NamedTuple):
    """How members lose, and the advice that follows."""

    text: str
    advice: str


class Delay(NamedTuple):
    """The RTT of members, and its growth over the least of each."""

    least_ns: float
    usual_ns: float  # growth of the median
    full_ns: float  # growth of the 99th percentile: that of a full queue, if there is one

    @property
    def is_queue(self) -> bool:
        return self.usual_ns > self.small_ns

    @property
    def is_none(self) -> bool:
        return self.full_ns <= self.small_ns

    @property
    def small_ns(self) -> float:
        """A growth that shows no queue."""
        return (RTT_GROWTH - 1) * self.least_ns + GROWTH_MIN_NS


def cells_of(all_bins: Sequence[Bins], start_ns: float, end_ns: float) -> tuple[float, list[float]]:
    """Returns the width of time cells, the widest bin, and the wire bytes of all members in each whole cell of a span."""
    width = max((bins.width_ns for bins in all_bins), default=1.0)
    count = int((end_ns - start_ns) // width)
    cells = [0.0] * count
    for bins in all_bins:
        for at, size in zip(bins.start_ns, bins.wire_bytes, strict=True):
            place = (at - start_ns) / width
            for cell in (math.floor(place), math.floor(place) + 1):
                part = max(min(place + bins.width_ns / width, cell + 1) - max(place, cell), 0.0)
                if 0 <= cell < count:
                    cells[cell] += size * part * width / bins.width_ns
    return width, cells


def rates_of(transfers: Transfers, queue: SharedQueue) -> list[float]:
    """Returns bit/s of the members in each time cell between their first loss and their last."""
    times = [loss.time_ns for member in queue.members for loss in member.losses if not math.isnan(loss.time_ns)]
    if not times:
        return []
    width, cells = cells_of([transfers.bins(member.transfer) for member in queue.members], min(times), max(times))
    return [8 * size / width * SECOND for size in cells]


def rate_of(transfers: Transfers, queue: SharedQueue, rates: Sequence[float]) -> float | None:
    """Returns bit/s that passed the queue; None if there are too few time cells.

    Before the queue, what it did not drop, on average; behind it, the rate that is exceeded in a tenth of the time.
    """
    if len(rates) < CELLS_MIN:
        return None
    if queue.place == DOWNSTREAM:
        return mean(rates) * (1 - min(queue.lost / queue.sent, 1.0))
    return sorted(rates)[int(BUSY * (len(rates) - 1))]


def delay_of(queue: SharedQueue) -> Delay | None:
    """Returns the delay of the members, each their median; None if no RTT includes the queue."""
    delays = []
    for member in queue.members if queue.place == DOWNSTREAM else ():
        rtt = member.transfer.round_trips
        if rtt is not None:
            least = min(rtt.least, member.transfer.path_rtt_ns or rtt.least)
            delays.append(Delay(float(least), float(rtt.median - least), float(rtt.high - least)))
    return Delay(*(median_of(column) for column in zip(*delays, strict=True))) if delays else None


def pattern_of(queue: SharedQueue, delay: Delay | None, rates: Sequence[float], rate: float | None) -> Pattern:
    """Returns the pattern of drops, which delay and rate show."""
    passed = f"They pass {show_rate(rate)} on the wire" if rate else "Their rate is unknown"
    runs = f"drops come in bursts of {three_digits(queue.lost / len(queue.episodes))} on average"
    if queue.lost < SINGLE * len(queue.episodes):
        runs = "drops come one by one"
    if delay is None:
        if queue.place == DOWNSTREAM:
            return Pattern(f"The delay of the queue is unknown; {runs}. {passed}.", OTHER_ADVICE)
        passed = f"Behind it they pass up to {show_rate(rate)} on the wire" if rate else passed
        return Pattern(f"The delay of a queue cannot be seen after it; {runs}. {passed}.", OTHER_ADVICE)
    low, high, grown = (show_duration(ns) for ns in (delay.least_ns, delay.least_ns + delay.full_ns, delay.full_ns))
    if delay.is_queue:
        text = f"Tail drop: the RTT grows from {low} to {high}, so the queue delays by {grown} when it is full; {runs}"
        return Pattern(f"{text}. {passed}{' through it' if rate else ''}.", QUEUE_ADVICE)
    if not delay.is_none:
        text = f"The RTT is {low} to {high}: a queue that is seldom full, a link that fades, or a policer; {runs}"
        return Pattern(f"{text}. {passed}.", OTHER_ADVICE)
    text = f"No queue: the RTT stays below {high} ({low} at least), and {runs}"
    if len(rates) >= CELLS_MIN and variation(rates) <= LEVEL:
        return Pattern(f"{text}. {passed}, level: a policer drops the rest.", POLICER_ADVICE)
    return Pattern(f"{text}. {passed}: a policer, a very short queue, or a link that fades or fails.", OTHER_ADVICE)


def lost_time(members: Iterable[Member]) -> float | None:
    """Returns the ns in which recovery and RTOs delayed the members; None if that is unknown of all."""
    timed = [member.transfer for member in members if member.transfer.times]
    return sum(transfer.held_up_ns for transfer in timed) if timed else None


@finding(
    code="shared-queue",
    title="Flows that lose together at one queue",
    severity="warning if recovery and RTOs take 1% of the flows' time or more, else info",
    unit="seconds",
    computed="The 50 largest flows, each with three losses or more. The capture is cut into spans of a median RTT (three "
    "handshake RTTs for losses before the capture point), halved until losses are in a quarter of a transfer's spans or less. "
    "A group grows from the two transfers that lose most often in the same spans. Another one joins if, in the spans of its "
    "losses, 1.5 times as many members lose as in all spans. They must exceed that by three standard errors, in at least "
    "three spans. Two alone must lose together three times, with a probability by chance of 0.1% at most. The first losses of "
    "a transfer do not count for this, because flows that begin together overshoot together. The rate is the members' wire "
    "bytes from the first loss to the last: the mean without those lost, or after the queue the rate that a tenth of the time "
    "exceeds. The delay is the growth of the RTT from the least to the 99th percentile; it is a full queue if the median has "
    "grown by 30% and 1 ms too. The cost is the sum of the members' time in recovery and RTOs. The losses of members at that "
    "place have no other finding.",
    unknown="Other traffic in the queue, which is not in its rate. The delay of a queue before the capture point. Queues of "
    "flows of more than one capture file. Members that lose seldom.",
    sentence="{count:flow} lose together {place}[: {lost:segment}][ ({share})][ in {episodes:episode}].[ {pattern}]",
    advice="{advice}",
)
def shared_queue(transfers: Transfers) -> Matches:
    for queue in queues_of(transfers):
        members = [member.transfer for member in queue.members]
        rates, cost, total_ns = (
            rates_of(transfers, queue),
            lost_time(queue.members),
            sum(member.waited_ns for member in members),
        )
        pattern = pattern_of(queue, delay_of(queue), rates, rate_of(transfers, queue, rates))
        worst = sorted(queue.members, key=lambda member: -len(member.losses))
        losses = [f"{member.transfer.name} lost {queue.lost_of(member):,}" for member in worst[:SHOWN]]
        more = f"; and {len(worst) - SHOWN:,} more" if len(worst) > SHOWN else ""
        yield Match(
            "warning" if cost and cost >= COST_WARNING * total_ns else "info",
            count=len(queue.flows),
            place=PLACES[queue.place],
            lost=queue.lost,
            share=show_share(queue.lost, queue.sent),
            episodes=len(queue.episodes),
            pattern=pattern.text,
            advice=pattern.advice,
            cost=None if cost is None else seconds(cost),
            figures=f"{'; '.join(losses)}{more}",
            filter=transfers.files.frame_filter(queue.packets),
            cited=[loss.packet for loss in worst[0].losses if loss.packet][:SHOWN],
            frames=queue.packets,
            packets=len(queue.packets),
            impact=sum(member.traffic_share for member in members),
            flows=[member.transfer.side for member in worst],
            members=len(queue.flows),
        )


def queues_of(transfers: Transfers) -> list[SharedQueue]:
    """Returns the shared queues, which are found once; from then on, rules about single flows leave out their losses."""
    if transfers.shared_queues is None:
        transfers.shared_queues = shared_queues(transfers)
    return transfers.shared_queues
