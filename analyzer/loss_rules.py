# SPDX-License-Identifier: Apache-2.0
"""Rules about the pattern of losses and of reordering: what it tells of their cause."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.finding import SHOWN, Finding, frames_named, word_numbers
from wiretale.analyzer.queue_rules import median_of, variation
from wiretale.analyzer.survey import Bins, Transfer, survey_of
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

LOSSES_LEAST = 6  # fewer have no pattern
EVENTS_MOST = 5000  # of a direction; a pattern shows in these
NEAR_FRAMES = 4  # losses no farther apart are of one run
PERIODIC_VARIATION = 0.2  # of the gaps between them
BURSTY_RUN, BURSTY_VARIATION = 2.0, 2.0  # packets a run on average; gaps of random losses have 1
GROWN = 1.3  # round trip before a loss, of the usual
GROWN_NS = 1_000_000
PAUSE_LEAST_NS = 50_000_000
AFTER_PAUSE = 0.6  # of the losses
LATE_LEAST = 3  # segments
RESENDS = ("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission")
NULL = 2**32 - 1


@dataclass(frozen=True)
class Loss:
    """A lost packet or run of them: about where it stood, when it showed, how many."""

    frame: int
    time_ns: float
    count: int = 1


@dataclass(frozen=True)
class Pattern:
    """What the places of losses look like."""

    word: str
    sentence: str
    advice: str


def losses_of(trace: Trace, one: Transfer) -> list[Loss]:
    """The losses of a direction, in their order."""
    events, flows = trace.events, [one.row["flow"]]
    kinds, places = word_numbers(events, "kind"), word_numbers(events, "place")
    resends = {kinds[name] for name in RESENDS if name in kinds}
    gaps = {kinds.get("block_lost")}
    somewhere = {places.get("upstream"), places.get("downstream")}
    columns = zip(
        *(events.packed(name, "B", flows=flows) for name in ("direction", "kind", "place", "spurious")),
        *(array("d", events.packed(name, "d", flows=flows)) for name in ("frame", "related_frame", "time_ns")),
        strict=True,
    )
    found: list[Loss] = []
    for direction, kind, place, spurious, frame, related, time_ns in columns:
        if direction != one.row["direction"] or len(found) == EVENTS_MOST:
            continue
        if kind in gaps or (kind in resends and place in somewhere and spurious != 1):
            sent = frame if kind in gaps or math.isnan(related) else related
            found.append(Loss(int(sent), time_ns))
    return sorted(found, key=lambda loss: (loss.frame, loss.time_ns))


def runs_of(losses: Sequence[Loss]) -> list[list[Loss]]:
    """Losses side by side, together."""
    runs: list[list[Loss]] = []
    for loss in losses:
        if runs and loss.frame - runs[-1][-1].frame <= NEAR_FRAMES:
            runs[-1].append(loss)
        else:
            runs.append([loss])
    return runs


def after_pauses(losses: Sequence[Loss], bins: Bins) -> float:
    """The share of the losses in the first bins after nothing was sent for a while."""
    pause = max(PAUSE_LEAST_NS, 3 * bins.width_ns)
    ends = [after for before, after in pairwise(bins.start_ns) if after - before - bins.width_ns >= pause]
    near = 2 * bins.width_ns + PAUSE_LEAST_NS / 5
    hit = sum(1 for loss in losses if any(0 <= loss.time_ns - end <= near for end in ends))
    return hit / len(losses) if losses and ends else 0.0


def grew_before(losses: Sequence[Loss], bins: Bins) -> tuple[float, float] | None:
    """Round trips just before losses and usual ones, where the former stand out: a queue filled up, then overflowed."""
    usual = median_of(bins.rtt_ns)
    before = []
    for loss in losses:
        near = [rtt for at, rtt in zip(bins.start_ns, bins.rtt_ns, strict=True) if at < loss.time_ns and rtt == rtt]
        before += near[-3:-1]
    grown = median_of(before)
    least = min((rtt for rtt in bins.rtt_ns if rtt == rtt), default=math.nan)
    return (grown, usual) if grown > GROWN * least + GROWN_NS and grown >= usual else None


def spacing(losses: Sequence[Loss]) -> tuple[float, float, float]:
    """Mean gap in time, and the variation of gaps in time and in frames, between runs."""
    starts = [run[0] for run in runs_of(losses)]
    times = [b.time_ns - a.time_ns for a, b in pairwise(sorted(starts, key=lambda loss: loss.time_ns))]
    frames = [float(b.frame - a.frame) for a, b in pairwise(starts)]
    if len(times) < LOSSES_LEAST - 1 or not fmean(times):
        return 0.0, 1.0, 1.0
    return fmean(times), variation(times), variation(frames)


def run_words(one: Transfer, losses: Sequence[Loss]) -> tuple[float, int]:
    """Mean and longest run, in packets."""
    runs, longest = one.row["block_loss_runs"], one.row["block_loss_run_max"]
    if runs:
        return one.row["blocks_lost"] / runs, longest
    lengths = [len(run) for run in runs_of(losses)]
    return fmean(lengths), max(lengths)


def pattern_of(one: Transfer, losses: Sequence[Loss], bins: Bins) -> Pattern:
    """The first that fits."""
    mean, longest = run_words(one, losses)
    gap_ns, by_time, by_frame = spacing(losses)
    grown = grew_before(losses[:200], bins)
    paused = after_pauses(losses[:200], bins)
    if gap_ns and min(by_time, by_frame) <= PERIODIC_VARIATION:
        return Pattern(
            "periodic",
            f"losses come at even distances, every {show_duration(gap_ns)}",
            "Look for what happens as often: a timer, a scan, a policer's refill, a bad lane of a bundle, a duty "
            "cycle.",
        )
    if paused >= AFTER_PAUSE:
        return Pattern(
            "start-of-burst",
            f"{show_share(paused, 1)} of them hit the first packets after a pause",
            "A buffer that cannot take a burst at line rate, or a neighbour entry, route or radio that must wake up "
            "first: pace "
            "the beginning, or keep the path warm.",
        )
    if grown:
        return Pattern(
            "tail drop",
            f"the round trip had grown to {show_duration(grown[0])} before them ({show_duration(grown[1])} is usual): "
            "a queue "
            "fills up and overflows",
            "Congestion, not a bad link: AQM or a fair queue at the bottleneck, or a sender that stays below its rate.",
        )
    if mean >= BURSTY_RUN or by_frame >= BURSTY_VARIATION:
        return Pattern(
            "bursty",
            f"they come in runs, {mean:.1f} packets long on average and up to {longest:,}",
            "A queue that overflows, a receiver that is overrun, or a radio that fades: look for drops in bulk "
            "(ethtool -S, "
            "netstat -s) at those times.",
        )
    return Pattern(
        "random",
        "each stands alone, without a rhythm and without growing delay",
        "So a bad cable, optic or radio loses, or a policer far from its limit; count errors on the interfaces of the "
        "path.",
    )


def loss_pattern(trace: Trace) -> Iterator[Finding]:
    """How losses lie in time."""
    survey = survey_of(trace)
    for one in survey.transfers:
        if one.lost < LOSSES_LEAST:
            continue
        losses = losses_of(trace, one)
        if sum(loss.count for loss in losses) < LOSSES_LEAST and (one.row["block_loss_runs"] or 0) < 2:
            continue
        pattern = pattern_of(one, losses, survey.bins(one))
        frames = [loss.frame for loss in losses[:SHOWN]]
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
    events, flows = trace.events, [one.row["flow"]]
    wanted = word_numbers(events, "kind").get("out_of_order")
    columns = zip(
        *(events.packed(name, "B", flows=flows) for name in ("direction", "kind")),
        *(array("d", events.packed(name, "d", flows=flows)) for name in ("frame", "related_frame")),
        strict=True,
    )
    return [
        (int(frame), int(frame - overtaker))
        for direction, kind, frame, overtaker in columns
        if kind == wanted and direction == one.row["direction"] and overtaker == overtaker
    ]


def reordering_extent(trace: Trace) -> Iterator[Finding]:
    """How far packets were overtaken, and what that made the ends do."""
    for one in survey_of(trace).tcp():
        if not one.row["out_of_order"]:
            continue
        late = lateness(trace, one)
        far = sum(1 for _, extent in late if extent >= 3)
        if not far and len(late) < LATE_LEAST:
            continue
        repeats, needless = one.back["duplicate_acks"] or 0, one.row["spurious_retransmissions"] or 0
        triggered = (
            f" It made the sender repeat {plural(needless, 'segment')} needlessly."
            if needless and far
            else " Nothing was sent again for it."
        )
        yield Finding(
            *("reordering-extent", "warning" if needless and far else "info", "flow"),
            f"{one.name}: late segments came up to {plural(max(extent for _, extent in late), 'frame')} behind the "
            "one that overtook "
            f"them (an upper bound of RFC 4737's extent), {far:,} of {len(late):,} by three or more; "
            f"{plural(repeats, 'duplicate ACK')} "
            f"answered.{triggered}",
            "Beyond three places TCP takes reordering for loss. Look for per-packet balancing over paths or queues; "
            "balance by flow.",
            flow=one.row["flow"],
            cost=round(100 * len(late) / max(one.row["data_packets"] or 1, 1), 3),
            cost_unit="percent",
            evidence=frames_named([frame for frame, _ in late[:SHOWN]], len(late)),
            filter=f"{flow_filter(one.flow)} && {frame_filter(frame for frame, _ in late[:SHOWN])}",
            impact=one.weight * len(late) / max(one.row["data_packets"] or 1, 1) * 0.5,
        )
