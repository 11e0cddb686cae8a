# SPDX-License-Identifier: Apache-2.0
"""The losses of a transfer at their moments, and the test whether a token bucket explains them.

A policer passes bursts of a bucket's size and a fixed rate, and drops the rest without queueing it (Flach et al., An
Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016). So the bucket is empty at each loss: what passes between two losses is
the rate times their distance, never a burst more, while the bytes before the first of them may be a burst. Losses by chance
have no such bound.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.loss_pattern import mean_rank
from wiretale.analyzer.findings.model import row_at
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS, median_of, variation

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfer, Transfers

LOSSES_MIN = 15
KNOWN_SHARE = 0.9  # of the losses, whose moment is known
MANY_LOSSES, KNOWN_OF_MANY = 100, 0.6
SLICES_MIN, THREE_MOST = 15, 0.5  # round trips with losses; share of the losses in three of them: more is an overshoot
SPAN_RTTS = 2  # between two losses whose distance shows the rate
SPAN_MIN_NS = 1_000_000
RATE_QUANTILE, LEVEL_MIN = 0.9, 0.8  # the median rate between losses, of that of the quantile
AFTER_QUANTILE = 0.9  # of losses with the end of a time bin behind them: they are few
EMPTY_QUANTILE, EMPTY_MAX = 0.95, 4.0  # full packets that pass beyond the rate between two losses
BUCKET_MIN = 4.0  # full packets
BY_CHANCE, CHANCE_ERROR = 0.15, 2.0  # from 1, the variation of the bytes between losses at random; times its error
STEADY_GROWTH, STEADY_NS = 0.3, 2_000_000  # of the least round trip; two frames at 10 Mbit/s: no queue that matters
FULL_RANK, FULL_GROWTH = 0.7, 0.1  # of round trips at losses among all, 0.5 by chance; of the least
TIMED_SHARE = 0.5  # of losses, with a round trip soon after them: a sender that repairs losses measures few
WAIT_SHARE = 0.25  # of the time that a queue would take
GROWN_BINS = 2  # time bins with round trips that grew
HELD_GROWTH, HELD_LOSSES = 2.0, 30  # of the least, in a short queue that is always full
QUEUED_PACKETS, QUEUED_MIN_NS, QUEUED_SHARE = 2.0, 500_000, 0.2  # of round trips before losses, above the least
SPENT_LOSSES_MIN, SPENT_GAP_RTTS, SPENT_TIMES, SPENT_SHARE = 30, 12.0, 1.5, 0.05  # losses; of the bytes that pass
SPENT_BINS, SPENT_RTTS, SPENT_BINS_AFTER, SPENT_EVEN = 4, 4.0, 6, 0.2  # before, after; variation
MOST_TRAFFIC = 0.8  # of the wire bytes
OVERSHOOT_RTTS = 4
#: after the first loss: losses, packets that pass, and round trips; before it, times the rate: a queue that holds as much delays
DRAINED_LOSSES, DRAINED_PASSED, DRAINED_RTTS, DRAINED_TIMES = 30, 60.0, 5.0, 1.5
EVEN_MIN, EVEN_RTTS, EVEN_VARIATION = 12, 8.0, 0.4  # distances between losses; their mean; by chance it is 0.75 or more
LOSSES_READ = 5000


class Moment(NamedTuple):
    """A loss: when it was due at the capture point, the payload that had passed before, and its own."""

    due_ns: float  # since Transfers.base_ns
    passed_bytes: float
    size: float
    frame: int
    shown_ns: float  # its retransmission, likewise
    is_upstream: bool = False  # lost before the capture point: due when the next packet came


class TokenBucket(NamedTuple):
    """A policer."""

    rate_bps: float  # of payload
    burst_bytes: float | None  # None: not known
    before_bps: float | None = None  # that passed until the bucket was empty, if that was long


def quantile(values: Sequence[float], share: float) -> float:
    """Returns a quantile; NaN without values."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else math.nan


def moments_of(transfers: Transfers, transfer: Transfer, place: str) -> list[Moment]:
    """Returns the first losses of a TCP transfer at a place of which these are known, in the order in which they were due.

    Before a loss after the capture point, `passed_bytes` has what was captured without what had been lost until then.
    """
    kinds, where = {transfers.words[name] for name in RETRANSMISSIONS}, transfers.words[place]
    names = ("direction", "kind", "place", "spurious", "due_ns", "due_bytes", "bytes", "frame", "time_ns")
    moments = [
        Moment(due, passed, size, int(frame), shown, place == "upstream")
        for direction, kind, at, spurious, due, passed, size, frame, shown in transfers.events(
            [transfer.row["flow"]], *names
        )
        if direction == transfer.row["direction"]
        and kind in kinds
        and at == where
        and spurious != 1
        and not math.isnan(due + passed + size)
    ][:LOSSES_READ]
    moments.sort()
    if place == "downstream":
        lost = accumulate((moment.size for moment in moments), initial=0.0)
        moments = [
            moment._replace(passed_bytes=moment.passed_bytes - before)
            for moment, before in zip(moments, lost, strict=False)
        ]
    return moments


def rates_between(moments: Sequence[Moment], span_ns: float) -> list[float]:
    """Returns the bytes per ns that passed from each loss to the first that is a span or more later."""
    times = [moment.due_ns for moment in moments]
    rates = []
    for moment in moments:
        place = bisect_right(times, moment.due_ns + span_ns)
        if place < len(moments):
            later = moments[place]
            rates.append((later.passed_bytes - moment.passed_bytes) / (later.due_ns - moment.due_ns))
    return rates


def passed_at_ends(
    transfers: Transfers, transfer: Transfer, place: str, moments: Sequence[Moment]
) -> list[tuple[float, float]]:
    """Returns the end of each time bin and the bytes that had passed until then, without all that was lost."""
    bins, times = transfers.bins(transfer), [moment.due_ns for moment in moments]
    sizes = [moment.size if place == "downstream" else 0.0 for moment in moments]
    lost = list(accumulate(sizes, initial=0.0))
    ends = [start_ns + bins.width_ns - transfers.base_ns for start_ns in bins.start_ns]
    captured = accumulate(bins.payload_bytes)
    return [(end_ns, passed - lost[bisect_right(times, end_ns)]) for end_ns, passed in zip(ends, captured, strict=True)]


def bursts_before(passed: Sequence[tuple[float, float]], moments: Sequence[Moment], rate: float) -> list[float]:
    """Returns the bytes above the rate that passed from the end of each time bin to the next loss: tokens in the bucket."""
    times, bursts = [moment.due_ns for moment in moments], []
    for end_ns, until in passed:
        following = bisect_right(times, end_ns)
        if following < len(moments):
            loss = moments[following]
            bursts.append(loss.passed_bytes - until - rate * (loss.due_ns - end_ns))
    return bursts


def bursts_after(passed: Sequence[tuple[float, float]], moments: Sequence[Moment], rate: float) -> list[float]:
    """Returns the most bytes above the rate that passed from each loss to the end of a time bin, before the next loss: the
    bucket was empty."""
    times, most = [moment.due_ns for moment in moments], dict[int, float]()
    for end_ns, until in passed:
        before = bisect_right(times, end_ns) - 1
        if before >= 0:
            loss = moments[before]
            burst = until - loss.passed_bytes - rate * (end_ns - loss.due_ns)
            most[before] = max(most.get(before, burst), burst)
    return list(most.values())


class TripsAtLosses(NamedTuple):
    """Round trips of packets that were sent at losses after the capture point, ns."""

    usual: list[float]  # of the first time bin with an answer that such a packet may have
    most: list[float]  # the greatest of the bins in which its answer may have come
    all: list[float]  # of every time bin


def round_trips_at(transfers: Transfers, transfer: Transfer, moments: Sequence[Moment]) -> TripsAtLosses:
    """Returns the round trips at losses, which are empty without any."""
    bins = transfers.bins(transfer)
    timed = [(at - transfers.base_ns, rtt) for at, rtt in zip(bins.start_ns, bins.rtt_ns, strict=True) if rtt > 0]
    values, starts = [rtt for _, rtt in timed], [at for at, _ in timed]
    least, greatest = min(values, default=0.0), max(values, default=0.0)
    trips = TripsAtLosses([], [], values)
    for moment in moments:
        place = bisect_right(starts, moment.due_ns + least - bins.width_ns)
        until = bisect_right(starts, moment.due_ns + greatest)
        if place < len(values) and starts[place] <= moment.due_ns + greatest + bins.width_ns:
            trips.usual.append(values[place])
            trips.most.append(max(values[place : max(until, place + 1)]))
    return trips


def are_longer(trips: TripsAtLosses, beyond_ns: float) -> bool:
    """Returns whether round trips at more than a fifth of the losses exceed the least by so much."""
    limit = min(trips.all) + beyond_ns
    return sum(rtt > limit for rtt in trips.most) > QUEUED_SHARE * len(trips.most)


def are_held(moments: Sequence[Moment], rtt: float) -> bool:
    """Returns whether the bytes between losses are those of one rate, and not those of chance."""
    rates = rates_between(moments, max(SPAN_RTTS * rtt, SPAN_MIN_NS)) if len(moments) >= HELD_LOSSES else []
    rate = quantile(rates, RATE_QUANTILE)
    is_level = rate > 0 and quantile(rates, 0.5) >= LEVEL_MIN * rate
    return is_level and is_bounded(moments, rate, max(moment.size for moment in moments))


def growth_at_losses(transfers: Transfers, transfer: Transfer, place: str) -> float | None:
    """Returns by how much the round trips of packets that were sent at losses exceed the least, ns, if a queue was full then:
    they rank high among all, or are several times the least while one rate passes. None if they stay near the least; NaN if
    neither is known: before the capture point none shows it."""
    moments = moments_of(transfers, transfer, place)
    trips = round_trips_at(transfers, transfer, moments)
    if place != "downstream" or len(trips.usual) < TIMED_SHARE * len(moments) or not trips.usual:
        return math.nan
    least, growth = min(trips.all), median_of(trips.usual) - min(trips.all)
    if growth >= max(FULL_GROWTH * least, QUEUED_MIN_NS) and (
        mean_rank(trips.usual, trips.all) >= FULL_RANK
        or (growth >= HELD_GROWTH * least and are_held(moments, float(transfer.path_rtt_ns or 0)))
    ):
        grown = sum(rtt >= least + growth / 2 for rtt in trips.all)
        return growth if grown >= GROWN_BINS else math.nan  # the ACK behind a hole comes a round trip late
    return math.nan if are_longer(trips, max(STEADY_GROWTH * least, STEADY_NS)) else None


def unseen_ns(rate: float, size: float) -> float:
    """Returns how long packets may wait in a queue of this rate (bytes per ns) before round trips show it."""
    return max(QUEUED_PACKETS * size / rate, QUEUED_MIN_NS)


def is_queued(
    transfers: Transfers, transfer: Transfer, place: str, moments: Sequence[Moment], rate: float, size: float
) -> bool:
    """Returns whether packets waited in a queue of this rate (bytes per ns), or may have.

    After the capture point round trips grow before losses. Before it the packets come no faster than the rate; if they are not
    most of the traffic, that is not known.
    """
    if place == "downstream":
        trips = round_trips_at(transfers, transfer, moments)
        return not trips.usual or are_longer(trips, unseen_ns(rate, size))
    row = row_at(transfers.trace.interfaces, transfer.flow["first_capture"])
    most = row["burst_1ms_bytes"] or 0
    return transfer.traffic_share < MOST_TRAFFIC or most < BUCKET_MIN * size + 2 * rate * 1e6


class Spent(NamedTuple):
    """What passed before the first losses of a transfer and during them, by time bin."""

    before: list[float]  # the last bins before the first loss
    during: list[float]  # the bins from then until no more are lost
    earlier: list[float]  # all bins before the first loss
    width_ns: float
    lost_bytes: float  # by these losses

    @property
    def usual(self) -> float:
        """What usually passes during the losses."""
        return median_of(self.during)

    def is_bucket(self, rtt: float) -> bool:
        """Returns whether a bucket of tokens explains both: much more passed for some round trips, then always the same."""
        is_long = len(self.before) >= max(SPENT_BINS, SPENT_RTTS * rtt / self.width_ns)
        if not is_long or len(self.during) < SPENT_BINS_AFTER or variation(self.during) > SPENT_EVEN:
            return False
        is_more = min(self.before) >= SPENT_TIMES * max(self.during)
        return is_more and self.lost_bytes >= SPENT_SHARE * math.fsum(self.during)


def spent_of(transfers: Transfers, transfer: Transfer, place: str, every: Sequence[Moment], rtt: float) -> Spent:
    """Returns what passed around the first losses of a transfer."""
    passed, width_ns = passed_at_ends(transfers, transfer, place, every), transfers.bins(transfer).width_ns
    bins = [(end_ns, now - then) for (_, then), (end_ns, now) in pairwise(passed)]
    first_ns, until_ns = every[0].due_ns, episode_end(every, max(SPENT_GAP_RTTS * rtt, 2 * width_ns))
    earlier = [size for end_ns, size in bins if end_ns <= first_ns]
    during = [size for end_ns, size in bins if first_ns + 2 * width_ns <= end_ns <= until_ns]
    last = max(SPENT_BINS, math.ceil(SPENT_RTTS * rtt / width_ns))
    lost_bytes = math.fsum(moment.size for moment in every if moment.due_ns <= until_ns)
    return Spent(earlier[-last:], during, earlier, width_ns, lost_bytes)


def spent_bucket(transfers: Transfers, transfer: Transfer, place: str) -> TokenBucket | None:
    """Returns the bucket of a policer that passed a long burst and then nothing beyond its rate; None without one.

    A link never carries more before its queue overflows than while it does: what passes in the time bins with losses is its rate.
    So much more for some round trips before the first loss was a bucket of tokens.
    """
    every, rtt = moments_of(transfers, transfer, place), float(transfer.path_rtt_ns or 0)
    if not rtt or len(every) < SPENT_LOSSES_MIN or not are_known(every, transfer.lost):
        return None
    spent = spent_of(transfers, transfer, place, every, rtt)
    if not spent.is_bucket(rtt) or (place == "downstream" and not is_passed_at_once(transfers, transfer, every)):
        return None
    burst = math.fsum(size - spent.usual for size in spent.earlier if size > spent.usual)
    return TokenBucket(8e9 * spent.usual / spent.width_ns, burst, 8e9 * median_of(spent.before) / spent.width_ns)


def episode_end(moments: Sequence[Moment], gap_ns: float) -> float:
    """Returns when the first losses end: no other one follows for so long."""
    for sooner, later in pairwise(moments):
        if later.due_ns - sooner.due_ns > gap_ns:
            return sooner.due_ns
    return moments[-1].due_ns


def is_passed_at_once(transfers: Transfers, transfer: Transfer, moments: Sequence[Moment]) -> bool:
    """Returns whether round trips at losses after the capture point stay near the least."""
    trips = round_trips_at(transfers, transfer, moments)
    return bool(trips.usual) and not are_longer(trips, max(STEADY_GROWTH * min(trips.all), STEADY_NS))


def is_too_much_to_wait(transfers: Transfers, transfer: Transfer, moments: Sequence[Moment], wait_ns: float) -> bool:
    """Returns whether what passed before the first loss would have waited so long in a queue that round trips at losses showed
    it: half of them are much shorter."""
    trips = round_trips_at(transfers, transfer, moments)
    if not trips.usual:
        return False
    least = min(trips.all)
    return wait_ns > STEADY_GROWTH * least and median_of(trips.usual) - least <= WAIT_SHARE * wait_ns


def without_overshoot(moments: list[Moment], rtt: float) -> list[Moment]:
    """Returns losses without those of the round trips around the one with most, if those are more than half: slow start met the
    limit there."""
    slices = Counter(moment.due_ns // rtt for moment in moments)
    most = max(slices, key=slices.__getitem__, default=0.0)
    left = [moment for moment in moments if abs(moment.due_ns // rtt - most) > OVERSHOOT_RTTS]
    return moments if 2 * len(left) >= len(moments) else left


def are_spread(moments: Sequence[Moment], rtt: float) -> bool:
    """Returns whether losses are in many round trips, and most of them not in three."""
    slices = Counter(moment.due_ns // rtt for moment in moments)
    return len(slices) >= SLICES_MIN and sum(count for _, count in slices.most_common(3)) <= THREE_MOST * len(moments)


def is_bounded(moments: Sequence[Moment], rate: float, size: float) -> bool:
    """Returns whether no burst passes between two losses, and their distances are not those of chance."""
    distances = [later.passed_bytes - sooner.passed_bytes for sooner, later in pairwise(moments)]
    times = [later.due_ns - sooner.due_ns for sooner, later in pairwise(moments)]
    beyond = [(passed - rate * ns) / size for passed, ns in zip(distances, times, strict=True)]
    is_by_chance = abs(variation(distances) - 1) <= max(BY_CHANCE, CHANCE_ERROR / math.sqrt(len(distances)))
    return quantile(beyond, EMPTY_QUANTILE) <= EMPTY_MAX and not is_by_chance


def even_bytes(transfers: Transfers, transfer: Transfer, place: str) -> float | None:
    """Returns how much passes between losses, if it is always about as much; None if chance would do the same.

    A sender that grows until a short queue overflows loses at such distances. Losses within two round trips count as one.
    """
    rtt, apart = float(transfer.path_rtt_ns or math.inf), list[Moment]()
    for moment in moments_of(transfers, transfer, place):
        if not apart or moment.due_ns - apart[-1].due_ns > SPAN_RTTS * rtt:
            apart.append(moment)
    distances = [later.passed_bytes - sooner.passed_bytes for sooner, later in pairwise(apart)]
    if len(distances) < EVEN_MIN or apart[-1].due_ns - apart[0].due_ns < EVEN_RTTS * rtt * len(distances):
        return None
    return median_of(distances) if variation(distances) <= EVEN_VARIATION else None


def are_known(moments: Sequence[Moment], lost: int) -> bool:
    """Returns whether the moments of enough losses are known: those of long bursts are not. What is not known seems to have
    passed, so that a bound holds all the more."""
    return len(moments) >= (KNOWN_SHARE if len(moments) < MANY_LOSSES else KNOWN_OF_MANY) * lost


def strays(moments: Sequence[Moment], rate: float) -> float:
    """Returns by how many bytes at most what passed between two losses differs from a rate (bytes per ns)."""
    beyond = [moment.passed_bytes - rate * moment.due_ns for moment in moments]
    return max(beyond) - min(beyond)


def drained_bucket(transfers: Transfers, transfer: Transfer, place: str) -> TokenBucket | None:
    """Returns the bucket of a policer that a flow emptied at once and that never filled again; None without one.

    From the first loss on, what passes is the rate to a few packets, whatever the sender does: chance would stray by the square
    root of the packets. A full queue does the same, but never passed more before.
    """
    every, rtt = moments_of(transfers, transfer, place), float(transfer.path_rtt_ns or 0)
    if not rtt or len(every) < DRAINED_LOSSES or not are_known(every, transfer.lost):
        return None
    first, last = every[0], every[-1]
    size, span_ns = max(moment.size for moment in every), last.due_ns - first.due_ns
    passed = last.passed_bytes - first.passed_bytes
    if span_ns < DRAINED_RTTS * rtt or passed < DRAINED_PASSED * size or first.passed_bytes < BUCKET_MIN * size:
        return None
    rate, before_ns = passed / span_ns, first.due_ns + transfers.base_ns - (transfer.row["first_ns"] or math.inf)
    is_faster = before_ns > 0 and first.passed_bytes >= DRAINED_TIMES * rate * before_ns
    if not is_faster or strays(every, rate) > EMPTY_MAX * size:
        return None
    tokens = first.passed_bytes - rate * before_ns
    if place == "downstream" and not is_too_much_to_wait(transfers, transfer, every, tokens / rate):
        return None
    return TokenBucket(8e9 * rate, tokens, 8e9 * first.passed_bytes / before_ns)


def later_losses(transfers: Transfers, transfer: Transfer, every: Sequence[Moment], rtt: float) -> list[Moment]:
    """Returns the losses after the first ones, in which slow start met the limit; none if the moments of many are not known."""
    until_ns = episode_end(every, SPENT_GAP_RTTS * rtt) if every else math.inf
    later = [moment for moment in every if moment.due_ns > until_ns]
    since_ns = later[0].shown_ns if later else math.inf
    kinds = {transfers.words[name] for name in RETRANSMISSIONS}
    events = transfers.events([transfer.row["flow"]], "direction", "kind", "time_ns")
    shown = sum(
        direction == transfer.row["direction"] and kind in kinds and time_ns >= since_ns
        for direction, kind, time_ns in events
    )
    return later if later and are_known(later, shown) else []


def token_bucket(transfers: Transfers, transfer: Transfer, place: str) -> TokenBucket | None:
    """Returns the bucket that explains the losses of a transfer at a place, or those after the first ones; None if none does."""
    every, rtt = moments_of(transfers, transfer, place), float(transfer.path_rtt_ns or 0)
    if not rtt:
        return None
    bucket = (
        bucket_of(transfers, transfer, place, every, without_overshoot(every, rtt))
        if are_known(every, transfer.lost)
        else None
    )
    later = [] if bucket else later_losses(transfers, transfer, every, rtt)
    return bucket or (bucket_of(transfers, transfer, place, every, later) if later else None)


def bucket_of(
    transfers: Transfers, transfer: Transfer, place: str, every: Sequence[Moment], moments: Sequence[Moment]
) -> TokenBucket | None:
    """Returns the bucket that explains some losses of a transfer; None if none does."""
    rtt = float(transfer.path_rtt_ns or 0)
    if len(moments) < LOSSES_MIN or not are_spread(moments, rtt):
        return None
    rates = rates_between(moments, max(SPAN_RTTS * rtt, SPAN_MIN_NS))
    rate, size = quantile(rates, RATE_QUANTILE), max(moment.size for moment in moments)
    if not rate > 0 or quantile(rates, 0.5) < LEVEL_MIN * rate or not is_bounded(moments, rate, size):
        return None
    passed = passed_at_ends(transfers, transfer, place, every)
    if quantile(bursts_after(passed, moments, rate), AFTER_QUANTILE) > EMPTY_MAX * size:
        return None
    bucket = max(bursts_before(passed, moments, rate), default=0.0)
    if bucket < BUCKET_MIN * size or is_queued(transfers, transfer, place, moments, rate, size):
        return None
    if place == "downstream" and bucket <= rate * unseen_ns(rate, size):  # a queue as short would not show
        return None
    is_exact = len(every) >= KNOWN_SHARE * transfer.lost  # else losses that are not known seem to be part of it
    return TokenBucket(8e9 * quantile(rates, 0.5), bucket if is_exact else None)
