# SPDX-License-Identifier: Apache-2.0
"""Rules about the pattern of losses and of reordering: what it tells of their cause."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.losses import Loss, losses_of
from wiretale.analyzer.findings.model import SHOWN, Finding, events_of, frames_named, word_numbers
from wiretale.analyzer.findings.queueing import overload_of
from wiretale.analyzer.findings.spread import mean as mean_of
from wiretale.analyzer.findings.spread import median_of, variation
from wiretale.analyzer.findings.transfers import Bins, Transfer, survey_of
from wiretale.analyzer.units import plural, show_duration, show_share, three_digits

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

LOSSES_LEAST = 6  # fewer have no pattern
NEAR_FRAMES = 4  # losses no farther apart are of one run
PERIODIC_VARIATION = 0.2  # of the gaps between them
BURSTY_RUN, BURSTY_VARIATION = 2.0, 2.0  # packets a run on average; gaps of random losses have 1
GROWN = 1.3  # round trip before a loss, of the usual
GROWN_NS = 1_000_000
HIGH_RANK = 0.75  # of round trips before losses, among all
LOSSES_READ = 200
NEAR_GREATEST = 0.8  # of the delays
PAUSE_LEAST_NS = 50_000_000
AFTER_PAUSE = 0.6  # of the losses
LATE_LEAST = 3  # segments
BURSTS_LEAST, WHOLE_BEGINNINGS = 5, 0.9  # bursts; the share of them that lack no beginning
BURST_PAUSE_NS = 5_000_000


class Pattern(NamedTuple):
    """What the places of losses look like."""

    word: str
    sentence: str
    advice: str


class Grown(NamedTuple):
    """Delay before losses that tells of a full queue."""

    sentence: str


def runs_of(losses: Sequence[Loss]) -> list[list[Loss]]:
    """Losses side by side, together."""
    runs: list[list[Loss]] = []
    for loss in losses:
        if runs and loss.frame - runs[-1][-1].frame <= NEAR_FRAMES:
            runs[-1].append(loss)
        else:
            runs.append([loss])
    return runs


def block_times(trace: Trace, one: Transfer, column: str) -> list[tuple[float, float]]:
    """When each block of a direction came, with another of its times, both in ns; none but of wiretale's blocks over UDP."""
    if one.flow["application"] != "blocks" or one.flow["protocol"] == "tcp":
        return []
    fields = (("direction", "B", 0, 1), ("first_ns", "d", 0, 1), (column, "d", 0, 1))
    directions, *times = trace.blocks.packed_columns(fields, [one.row["flow"]])
    columns = zip(directions, *(array("d", data) for data in times), strict=True)
    return sorted(
        (at, value)
        for direction, at, value in columns
        if direction == one.row["direction"] and at + value == at + value
    )


def arrivals(trace: Trace, one: Transfer, bins: Bins) -> tuple[list[float], float]:
    """When packets of a direction came, in ns, and how exactly that is known: of each block, else of time bins."""
    times = [at for at, _ in block_times(trace, one, "first_ns")]
    return (times, 0.0) if times else (bins.start_ns, bins.width_ns)


def after_pauses(losses: Sequence[Loss], times: Sequence[float], exact_ns: float) -> float:
    """The share of the losses in the first packets after an unusual pause; 0 where most of the traffic comes so."""
    gaps = [after - before for before, after in pairwise(times)]
    if not gaps or not losses:
        return 0.0
    pause = max(PAUSE_LEAST_NS, 3 * exact_ns, 5 * median_of(gaps))
    ends = [times[i + 1] for i, gap in enumerate(gaps) if gap - exact_ns >= pause]
    near = 2 * exact_ns + PAUSE_LEAST_NS / 5
    of_all = near_share(times, ends, near)
    of_losses = near_share([loss.time_ns for loss in losses], ends, near)
    return of_losses if of_losses >= 2 * of_all else 0.0


def burst_tails(trace: Trace, one: Transfer) -> float:
    """The share of bursts whose first packet came, where bursts are of one size and lost packets stand between them.

    A gap in the numbers around a pause may be the end of one burst or the beginning of the next. Numbers begin with 0: where
    each burst that is seen begins with a multiple of the distance between them, it is the end. 0 where that cannot be told.
    """
    arrived = block_times(trace, one, "sequence")
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(arrived)]
    if not gaps:
        return 0.0
    pause = max(BURST_PAUSE_NS, 5 * median_of(gaps))
    firsts = [arrived[i + 1][1] for i, gap in enumerate(gaps) if gap >= pause]
    lasts = [arrived[i][1] for i, gap in enumerate(gaps) if gap >= pause]
    size = median_of([later - sooner for sooner, later in pairwise(firsts)])
    if (
        len(firsts) < BURSTS_LEAST
        or not size >= 2
        or sum(b - a > 1 for a, b in zip(lasts, firsts, strict=True)) < BURSTS_LEAST
    ):
        return 0.0
    return sum(first % size == 0 for first in firsts) / len(firsts)


def near_share(times: Sequence[float], ends: Sequence[float], near: float) -> float:
    """The share of times soon after one of these."""
    hit = 0
    for time in times:
        place = bisect_right(ends, time)
        hit += place > 0 and time - ends[place - 1] <= near
    return hit / len(times)


def before_losses(losses: Sequence[Loss], times: Sequence[float], values: Sequence[float]) -> list[float]:
    """The two values before the last one before each loss."""
    places = [bisect_left(times, loss.time_ns) for loss in losses]
    return [value for place in places for value in values[max(place - 3, 0) : max(place - 1, 0)]]


def mean_rank(chosen: Sequence[float], values: Sequence[float]) -> float:
    """Where those stand among all, 0 the least and 1 the greatest: 0.5 on average for any chosen by chance."""
    ordered = sorted(values)
    return mean_of([(bisect_left(ordered, one) + bisect_right(ordered, one)) / 2 / len(ordered) for one in chosen])


def rtt_grown(losses: Sequence[Loss], bins: Bins) -> Grown | None:
    """Round trips just before losses that stand out: a queue beyond this point filled up, then overflowed."""
    known = [(at, rtt) for at, rtt in zip(bins.start_ns, bins.rtt_ns, strict=True) if rtt == rtt]
    values = [rtt for _, rtt in known]
    before = before_losses(losses, [at for at, _ in known], values)
    usual, grown = median_of(values), median_of(before)
    if not before or mean_rank(before, values) < HIGH_RANK or grown <= GROWN * min(values) + GROWN_NS:
        return None
    return Grown(
        f"the round trip had grown to {show_duration(grown)} before them ({show_duration(usual)} is usual, "
        f"{show_duration(min(values))} the least)"
    )


def delay_grown(losses: Sequence[Loss], delays: Sequence[tuple[float, float]]) -> Grown | None:
    """One-way delays just before losses that are about the greatest; clocks that differ do not matter."""
    least = min((delay for _, delay in delays), default=math.nan)
    values = [delay - least for _, delay in delays]
    grown = median_of(before_losses(losses, [at for at, _ in delays], values))
    if not grown > GROWN_NS or grown < NEAR_GREATEST * sorted(values)[int(0.95 * (len(values) - 1))]:
        return None
    return Grown(
        f"the delay had grown by {show_duration(grown)} over the least before them ({show_duration(median_of(values))} is "
        "usual)"
    )


def spacing(losses: Sequence[Loss]) -> tuple[float, float, float]:
    """Mean gap in time, and the variation of gaps in time and in frames, between runs."""
    starts = [run[0] for run in runs_of(losses)]
    times = [b.time_ns - a.time_ns for a, b in pairwise(sorted(starts, key=lambda loss: loss.time_ns))]
    frames = [float(b.frame - a.frame) for a, b in pairwise(starts)]
    if len(times) < LOSSES_LEAST - 1 or not mean_of(times):
        return 0.0, 1.0, 1.0
    return mean_of(times), variation(times), variation(frames)


def run_words(one: Transfer, losses: Sequence[Loss]) -> tuple[float, int]:
    """Mean and longest run, in packets."""
    runs, longest = one.row["block_loss_runs"], one.row["block_loss_run_max"]
    if runs:
        return one.row["blocks_lost"] / runs, longest
    lengths = [len(run) for run in runs_of(losses)]
    return mean_of(lengths), max(lengths)


class Shape(NamedTuple):
    """What there is to know of a direction's losses."""

    mean: float  # of runs, packets
    longest: int
    gap_ns: float  # between runs, on average
    by_time: float  # how much those gaps vary
    by_frame: float
    grown: Grown | None
    paused: float  # share of losses right after pauses
    overload: bool  # more is offered than the path carries
    tails: float  # share of bursts that lack no beginning, though packets are missing around pauses


def shape_of(trace: Trace, one: Transfer, losses: Sequence[Loss], bins: Bins) -> Shape:
    """All of it."""
    mean, longest = run_words(one, losses)
    first = losses[:LOSSES_READ]
    makes_pause = mean * one.life_ns / max(one.row["data_packets"] or 1, 1) > PAUSE_LEAST_NS / 2
    paused = 0.0 if makes_pause else after_pauses(first, *arrivals(trace, one, bins))
    delays = block_times(trace, one, "latency_ns")
    grown = delay_grown(first, delays) if delays else rtt_grown(first, bins)
    return Shape(
        mean, longest, *spacing(losses), grown, paused, overload_of(trace, one) is not None, burst_tails(trace, one)
    )


def start_of_burst(shape: Shape) -> Pattern | None:
    """Losses of the first packets after a pause."""
    if shape.paused < AFTER_PAUSE:
        return None
    return Pattern(
        "start-of-burst",
        f"{show_share(shape.paused, 1)} of them hit the first packets after a pause",
        "A buffer that cannot take a burst at line rate, or a neighbour entry, route or radio that must wake up "
        "first: pace the beginning, or keep the path warm.",
    )


def end_of_burst(shape: Shape) -> Pattern | None:
    """Losses of the last packets of bursts."""
    if shape.tails < WHOLE_BEGINNINGS:
        return None
    grown = f", and {shape.grown.sentence}" if shape.grown else ""
    return Pattern(
        "tail drop",
        f"the beginning of each burst comes and its end does not{grown}: a queue, or a policer, takes so much at once "
        "and no more",
        "Congestion, not a bad link: smaller bursts, or packets paced over the time; a deeper queue takes longer bursts.",
    )


def tail_drop(shape: Shape) -> Pattern | None:
    """Losses of a queue that is full."""
    if not shape.grown:
        return None
    return Pattern(
        "tail drop",
        f"{shape.grown.sentence}: a queue fills up and overflows",
        "Congestion, not a bad link: AQM or a fair queue at the bottleneck, or a sender that stays below its rate.",
    )


def periodic(shape: Shape) -> Pattern | None:
    """Losses with a rhythm."""
    if not shape.gap_ns or min(shape.by_time, shape.by_frame) > PERIODIC_VARIATION:
        return None
    return Pattern(
        "periodic",
        f"losses come at even distances, every {show_duration(shape.gap_ns)}",
        "Look for what happens as often: a timer, a scan, a policer's refill, a bad lane of a bundle, a duty cycle.",
    )


def bursty(shape: Shape) -> Pattern | None:
    """Losses in runs."""
    if shape.mean < BURSTY_RUN and shape.by_frame < BURSTY_VARIATION:
        return None
    runs = f"they come in runs, {three_digits(shape.mean)} packets long on average and {shape.longest:,} at most"
    return Pattern(
        "bursty",
        runs if shape.longest > 1 else "many come close together, each alone, then none for long",
        "A queue that overflows, a receiver that is overrun, or a radio that fades: look for drops in bulk (ethtool "
        "-S, netstat -s) at those times.",
    )


def overflow(shape: Shape) -> Pattern | None:
    """Losses of an offer that is always too much."""
    if not shape.overload:
        return None
    return Pattern(
        "tail drop",
        "they never cease while what comes through is level: more is offered than a full queue, or a policer, lets pass",
        "Congestion, not a bad link: offer less than comes through.",
    )


def random(shape: Shape) -> Pattern:
    """Losses by chance."""
    return Pattern(
        "random",
        f"{'each stands' if shape.longest == 1 else 'most stand'} alone, without a rhythm and without growing delay",
        "So a bad cable, optic or radio loses, or a policer far from its limit; count errors on the interfaces of the "
        "path.",
    )


def pattern_of(shape: Shape) -> Pattern:
    """The first that fits."""
    found = (
        end_of_burst(shape)
        or start_of_burst(shape)
        or tail_drop(shape)
        or overflow(shape)
        or periodic(shape)
        or bursty(shape)
    )
    return found or random(shape)


def loss_pattern(trace: Trace) -> Iterator[Finding]:
    """How losses lie in time."""
    survey = survey_of(trace)
    for one in survey.transfers:
        if one.lost < LOSSES_LEAST:
            continue
        if (one.row["incomplete_datagrams"] or 0) >= one.lost:
            continue  # fragments were lost, and how they lie is not seen by whole datagrams
        losses = losses_of(trace, one)
        if sum(loss.packets for loss in losses) < LOSSES_LEAST and (one.row["block_loss_runs"] or 0) < 2:
            continue
        pattern = pattern_of(shape_of(trace, one, losses, survey.bins(one)))
        frames = list(dict.fromkeys(loss.frame for loss in losses))[:SHOWN]
        yield Finding(
            *("loss-pattern", "info", "flow"),
            f"{one.name}: the pattern of its {plural(one.lost, 'loss', 'losses')} is {pattern.word}: "
            f"{pattern.sentence}.",
            pattern.advice,
            flow=one.row["flow"],
            cost=round(100 * one.lost / max((one.row["data_packets"] or 0) + one.lost, 1), 3),
            cost_unit="percent",
            evidence=frames_named(frames, one.lost),
            filter=f"{flow_filter(one.flow)} && {frame_filter(frames)}" if frames else flow_filter(one.flow),
            impact=one.weight * min(one.lost / max(one.row["data_packets"] or 1, 1), 1) * 0.5,
        )


def lateness(trace: Trace, one: Transfer) -> list[tuple[int, int]]:
    """The late packets of a direction: frame, and how many frames after the one that overtook it."""
    wanted = word_numbers()["out_of_order"]
    names = ("direction", "kind", "frame", "related_frame")
    columns = zip(*events_of(trace, [one.row["flow"]], names), strict=True)
    return [
        (int(frame), int(frame - overtaker))
        for direction, kind, frame, overtaker in columns
        if kind == wanted and direction == one.row["direction"] and overtaker == overtaker
    ]


def told_late(one: Transfer, late: Sequence[tuple[int, int]], far: int) -> Finding:
    """The finding of a direction's late segments, `far` of them by three frames or more."""
    packets = max(one.row["data_packets"] or 1, 1)
    needless = (one.row["spurious_retransmissions"] or 0) if far else 0
    triggered = (
        f"It made the sender repeat {plural(needless, 'segment')} needlessly."
        if needless
        else "Nothing was sent again for it."
    )
    shown, answers = [frame for frame, _ in late[:SHOWN]], one.back["duplicate_acks"] or 0
    return Finding(
        *("reordering-extent", "warning" if needless else "info", "flow"),
        f"{one.name}: late segments came up to {plural(max(extent for _, extent in late), 'frame')} behind the one "
        f"that overtook them (an upper bound of RFC 4737's extent), {f'{far:,}' if far else 'none'} of {len(late):,} by three or "
        f"more; {plural(answers, 'duplicate ACK') if answers else 'no duplicate ACK'} answered. {triggered}",
        "Beyond three places TCP takes reordering for loss. Look for per-packet balancing over paths or queues; "
        "balance by flow.",
        flow=one.row["flow"],
        cost=round(100 * len(late) / packets, 3),
        cost_unit="percent",
        evidence=frames_named(shown, len(late)),
        filter=f"{flow_filter(one.flow)} && {frame_filter(shown)}",
        impact=one.weight * min(len(late) / packets, 1) * 0.5,
    )


def reordering_extent(trace: Trace) -> Iterator[Finding]:
    """How far packets were overtaken, and what that made the ends do."""
    for one in survey_of(trace).tcp():
        late = lateness(trace, one) if one.row["out_of_order"] else []
        far = sum(1 for _, extent in late if extent >= 3)
        if far or len(late) >= LATE_LEAST:
            yield told_late(one, late, far)
