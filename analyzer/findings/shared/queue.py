# SPDX-License-Identifier: Apache-2.0
"""Transfers that lose together: those whose losses on one side of the capture point come at the same times.

The capture is cut into spans of about one RTT, counted in frames, because the frame of a lost segment is known more exactly than
its time. Groups grow from the two transfers that lose most often in the same spans. Another one joins if the members lose much
more often in the spans in which it loses than in all spans; independent losses do not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.transfers import Loss, Transfer, Transfers, mean, median_of, variation

LOSSES_MIN = 3  # of a member, unless it stood still in an outage
MEMBERS_MAX = 50  # transfers that are compared: each with each
SPANS_MIN, SPANS_MAX, SPAN_FRAMES_MIN = 40, 2000, 8
SPANS_WITHOUT_RTT = 200  # of the capture
DEVIATIONS, FACTOR = 3.0, 1.5  # losses of the members with those of another, over their mean in all spans
SEED_MIN, SEEDS_MAX = 1.5, 20  # standard deviations of the pair that begins a group; pairs tried without a result
OCCUPIED_MAX = 0.25  # of the spans of a member have losses; else they are halved
RTTS_UNLOADED = 3  # in a span, if the capture point is behind the queue: no RTT there includes it
CHANCE = 1e-3  # at most, that two transfers lose together as often
EPISODE_GAP = 4  # spans without losses between two episodes
COINCIDENCES_MIN = 3  # times that a member loses with others: fewer come about by chance among many flows
UPSTREAM, DOWNSTREAM = "upstream", "downstream"


class Member(NamedTuple):
    """A direction with its losses on one side of the capture point, and the spans that hold them."""

    transfer: Transfer
    losses: list[Loss]
    spans: frozenset[int]  # with losses, but for the first run of several: flows that begin together overshoot together
    near: frozenset[int]  # those and their neighbors
    onsets: list[int]  # first spans of runs of neighbors
    first: int  # span of its flow
    last: int

    @property
    def occupied(self) -> float:
        """The share of its spans with losses."""
        return len(self.spans) / (self.last - self.first + 1)


class SharedQueue(NamedTuple):
    """Members that lose together at one place."""

    place: str
    members: list[Member]
    width: int  # frames of a span

    @property
    def flows(self) -> list[int]:
        return sorted({member.transfer.row["flow"] for member in self.members})

    def lost_of(self, member: Member) -> int:
        """Returns the segments, or numbered packets, that a member lost at this place."""
        names = ("lost_upstream", "blocks_lost") if self.place == UPSTREAM else ("lost_downstream",)
        return member.transfer.count(*names)

    @property
    def lost(self) -> int:
        """The same of all members."""
        return sum(self.lost_of(member) for member in self.members)

    @property
    def sent(self) -> int:
        """Segments that the members sent into the queue: those captured, and behind it those lost too."""
        return sum(member.transfer.data_segments for member in self.members) + (self.place == UPSTREAM) * self.lost

    @property
    def packets(self) -> list[Cited]:
        """The lost segments, or the packets nearest to them, in the order of frames."""
        losses = {loss.frame: loss.near for member in self.members for loss in member.losses}
        return [near for _, near in sorted(losses.items()) if near]

    @property
    def episodes(self) -> list[list[int]]:
        """The runs of neighboring spans in which any member loses."""
        return runs_of((loss.frame // self.width for member in self.members for loss in member.losses), 1)


def runs_of(spans: Iterable[int], gap: int = EPISODE_GAP) -> list[list[int]]:
    """Returns spans in runs, which are more than `gap` apart."""
    ordered = sorted(set(spans))
    runs = [ordered[:1]] if ordered else []
    for before, after in pairwise(ordered):
        if after - before > gap:
            runs.append([])
        runs[-1].append(after)
    return runs


def at_least(count: int, trials: int, share: float) -> float:
    """Returns the probability that so many of all or more happen, each with the probability `share`."""
    return sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(count, trials + 1))


class Coincidence(NamedTuple):
    """How often a transfer begins to lose where another loses."""

    hits: int
    onsets: int
    share: float  # of all spans in which the other one loses

    @property
    def excess(self) -> float:
        """Standard deviations above independent losses."""
        expected = self.onsets * self.share
        return (
            (self.hits - expected) / math.sqrt(expected * (1 - self.share)) if 0 < self.share < 1 and expected else 0.0
        )


def coincidence(first: Member, second: Member) -> Coincidence:
    """Returns how often that one of two transfers that loses less often begins to lose where the other loses."""
    few, many = sorted((first, second), key=lambda member: len(member.onsets))
    both = range(max(few.first, many.first), min(few.last, many.last) + 1)
    onsets = [span for span in few.onsets if span in both]
    if len(both) < SPANS_MIN:
        return Coincidence(0, 0, 0.0)
    share = sum(span in both for span in many.near) / len(both)
    return Coincidence(sum(span in many.near for span in onsets), len(onsets), min(share, 1.0))


def is_pair(first: Member, second: Member) -> bool:
    """Returns whether two transfers alone lose together: three times or more, and much more often than by chance."""
    hits, onsets, share = coincidence(first, second)
    enough = hits >= max(COINCIDENCES_MIN, FACTOR * onsets * share)
    return enough and at_least(hits, onsets, share) <= CHANCE


def loses_with(candidate: Member, counts: Counter[int]) -> bool:
    """Returns whether the members, whose losses `counts` has by span, lose much more in the spans in which this one loses."""
    if sum(counts[span] > 0 for span in candidate.spans) < COINCIDENCES_MIN:
        return False
    span_losses = [counts[span] for span in range(candidate.first, candidate.last + 1)]
    usual, together = mean(span_losses), mean([counts[span] for span in candidate.spans])
    if len(span_losses) < SPANS_MIN or not usual:
        return False
    deviation = variation(span_losses) * usual / math.sqrt(len(candidate.spans))
    return together >= FACTOR * usual and together - usual >= DEVIATIONS * deviation


def counts_of(members: Iterable[Member]) -> Counter[int]:
    """Returns the number of members that lose in each span."""
    return Counter(chain.from_iterable(member.spans for member in members))


def grown_from(seed: Sequence[Member], members: Sequence[Member]) -> list[Member]:
    """Returns the seed with all members that lose with it, without those that do not lose with all the others."""
    group, left = list(seed), [member for member in members if member not in seed]
    while left:
        counts = counts_of(group)
        able = [member for member in left if loses_with(member, counts)]
        if not able:
            break
        group, left = group + able, [member for member in left if member not in able]
    while len(group) > 2:
        counts = counts_of(group)
        remaining = [member for member in group if loses_with(member, counts - Counter(member.spans))]
        if len(remaining) == len(group):
            break
        group = remaining
    return group


def is_together(group: Sequence[Member]) -> bool:
    """Returns whether members lose together often enough."""
    if len({member.transfer.row["flow"] for member in group}) < 2:
        return False
    return len(group) > 2 or is_pair(*group)


def groups_of(members: list[Member]) -> list[list[Member]]:
    """Returns the groups that lose together; each member is in one at most."""
    groups: list[list[Member]] = []
    found_pairs = ((coincidence(*pair), pair) for pair in combinations(members, 2))
    seeds = [(each.excess, pair) for each, pair in found_pairs if each.hits >= COINCIDENCES_MIN]
    left, failed = list(members), 0
    for excess, seed in sorted(seeds, key=lambda pair: -pair[0]):
        if excess <= SEED_MIN or failed == SEEDS_MAX:
            break
        if all(member in left for member in seed):
            group = grown_from(seed, left)
            if is_together(group):
                groups.append(group)
                left = [each for each in left if each not in group]
            else:
                failed += 1
    return groups


def span_frames(transfers: Transfers, able: Sequence[Transfer]) -> int:
    """Returns the frames in about one RTT of these transfers; a small part of the capture if no RTT is known."""
    frames = transfers.trace.interfaces.total("packets")
    rtts = [float(max(transfer.row["rtt_ns_median"] or 0, transfer.path_rtt_ns or 0) or math.nan) for transfer in able]
    began = [ns for transfer in able if (ns := transfer.flow["first_ns"]) is not None]
    ended = [ns for transfer in able if (ns := transfer.flow["last_ns"]) is not None]
    duration = max(ended, default=0) - min(began, default=0)
    rtt = median_of(rtts)
    spans = SPANS_WITHOUT_RTT if math.isnan(rtt) or not duration else duration / rtt
    return max(round(frames / min(max(spans, SPANS_MIN), SPANS_MAX)), SPAN_FRAMES_MIN)


def member_of(transfers: Transfers, transfer: Transfer, place: str, width: int) -> Member:
    """Returns a direction with the spans of its losses at a place."""
    losses = [loss for loss in transfers.losses(transfer) if loss.place == place]
    spans = sorted({loss.frame // width for loss in losses})
    later = runs_of(spans)[1:]
    spans = list(chain(*later)) if later else spans
    onsets = [span for i, span in enumerate(spans) if not i or span - spans[i - 1] > 1]
    near = frozenset(span + step for span in spans for step in (-1, 0, 1))
    return Member(
        transfer,
        losses,
        frozenset(spans),
        near,
        onsets,
        transfer.flow["first_frame"] // width,
        transfer.flow["last_frame"] // width,
    )


def members_of(transfers: Transfers, able: Sequence[Transfer], place: str, width: int) -> list[Member]:
    """Returns the transfers with losses at a place, in spans of so many frames."""
    return [member for member in (member_of(transfers, each, place, width) for each in able) if member.onsets]


def shared_queues(transfers: Transfers) -> list[SharedQueue]:
    """Returns the groups of transfers that lose together; none in captures of several files, whose frames do not compare."""
    able = [transfer for transfer in transfers.largest if transfer.lost >= LOSSES_MIN][:MEMBERS_MAX]
    if len({transfer.row["flow"] for transfer in able}) < 2 or not transfers.has_one_file:
        return []
    queues = []
    for place, rtts in ((DOWNSTREAM, 1), (UPSTREAM, RTTS_UNLOADED)):
        width = rtts * span_frames(transfers, able)
        members = members_of(transfers, able, place, width)
        while width >= 2 * SPAN_FRAMES_MIN and median_of([transfer.occupied for transfer in members]) > OCCUPIED_MAX:
            width //= 2
            members = members_of(transfers, able, place, width)
        queues += [SharedQueue(place, group, width) for group in groups_of(members)]
    return queues
