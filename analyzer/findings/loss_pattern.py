# SPDX-License-Identifier: Apache-2.0
"""Rules about the pattern of losses and the extent of reordering, which hint at their cause."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.model import Matches, finding, percent
from wiretale.analyzer.findings.queueing import overload_of
from wiretale.analyzer.findings.transfers import Bins, Loss, Transfer, Transfers, mean, median_of, variation
from wiretale.analyzer.units import plural, show_duration, show_share, three_digits

CHAPTER = "Patterns of loss and reordering"
LOSSES_MIN = 6  # fewer have no pattern
NEAR_FRAMES = 4  # between losses of one run
PERIODIC_VARIATION = 0.2  # of the gaps between losses
BURSTY_RUN, BURSTY_VARIATION = 2.0, 2.0  # packets per run on average; gaps of random losses have 1
RTT_GROWTH = 1.3  # before a loss, of the least
GROWTH_MIN_NS = 1_000_000
HIGH_RANK = 0.75  # of RTTs before losses, among all
LOSSES_READ = 200
NEAR_GREATEST = 0.8  # of the delays
PAUSE_MIN_NS = 50_000_000
AFTER_PAUSE = 0.6  # of the losses
LATE_MIN, LATE_EXTENT = 3, 3  # segments; frames after which TCP takes reordering for loss
BURSTS_MIN, WHOLE_BEGINNINGS = 5, 0.9  # bursts; the share of them whose beginning arrived
BURST_PAUSE_NS = 5_000_000


class Pattern(NamedTuple):
    """A pattern with its explanation and advice."""

    word: str
    sentence: str
    advice: str


class Spacing(NamedTuple):
    """Runs of losses and the gaps between them."""

    run_mean: float  # packets
    run_max: int
    gap_ns: float = 0.0  # mean
    time_variation: float = 1.0
    frame_variation: float = 1.0


def runs_of(losses: Sequence[Loss]) -> list[list[Loss]]:
    """Returns the losses in runs of neighbors."""
    runs: list[list[Loss]] = []
    for loss in losses:
        if runs and loss.frame - runs[-1][-1].frame <= NEAR_FRAMES:
            runs[-1].append(loss)
        else:
            runs.append([loss])
    return runs


def block_times(transfers: Transfers, transfer: Transfer, column: str) -> list[tuple[float, float]]:
    """Returns the arrival of each of wiretale's blocks over UDP, in ns, with another column."""
    if transfer.flow["application"] != "blocks" or transfer.flow["protocol"] == "tcp":
        return []
    fields = (("direction", "B", 0, 1), ("first_ns", "d", 0, 1), (column, "d", 0, 1))
    directions, *packed = transfers.trace.blocks._packed_columns(fields, [transfer.row["flow"]])
    columns = zip(directions, *(array("d", data) for data in packed), strict=True)
    return sorted(
        (at, value)
        for direction, at, value in columns
        if direction == transfer.row["direction"] and not math.isnan(at + value)
    )


def near_share(times: Sequence[float], ends: Sequence[float], near: float) -> float:
    """Returns the share of times at most `near` after one of the ends."""
    hit = 0
    for time in times:
        place = bisect_right(ends, time)
        hit += place > 0 and time - ends[place - 1] <= near
    return hit / len(times)


def loss_after_pauses(losses: Sequence[Loss], times: Sequence[float], exact_ns: float) -> float:
    """Returns the share of losses right after unusual pauses; 0 if much of the traffic comes there."""
    gaps = [after - before for before, after in pairwise(times)]
    if not gaps or not losses:
        return 0.0
    pause = max(PAUSE_MIN_NS, 3 * exact_ns, 5 * median_of(gaps))
    ends = [times[i + 1] for i, gap in enumerate(gaps) if gap - exact_ns >= pause]
    near = 2 * exact_ns + PAUSE_MIN_NS / 5
    of_losses = near_share([loss.time_ns for loss in losses], ends, near)
    return of_losses if of_losses >= 2 * near_share(times, ends, near) else 0.0


def whole_beginnings(transfers: Transfers, transfer: Transfer) -> float:
    """Returns the share of bursts whose first block arrived, if bursts have one size and blocks are missing around pauses.

    Blocks missing at a pause are the end of one burst or the beginning of the next. Numbers begin with 0, so if each burst
    begins with a multiple of the burst size, its beginning arrived and the end of the previous burst is missing.
    """
    arrived = block_times(transfers, transfer, "sequence")
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(arrived)]
    pause = max(BURST_PAUSE_NS, 5 * median_of(gaps)) if gaps else math.inf
    places = [i for i, gap in enumerate(gaps) if gap >= pause]
    firsts, lasts = [arrived[i + 1][1] for i in places], [arrived[i][1] for i in places]
    size = median_of([later - sooner for sooner, later in pairwise(firsts)])
    missing = sum(first - last > 1 for last, first in zip(lasts, firsts, strict=True))
    if min(len(firsts), missing) < BURSTS_MIN or not size >= 2:
        return 0.0
    return sum(first % size == 0 for first in firsts) / len(firsts)


def before_losses(losses: Sequence[Loss], times: Sequence[float], values: Sequence[float]) -> list[float]:
    """Returns the two values before the last one before each loss."""
    places = [bisect_left(times, loss.time_ns) for loss in losses]
    return [value for place in places for value in values[max(place - 3, 0) : max(place - 1, 0)]]


def mean_rank(sample: Sequence[float], values: Sequence[float]) -> float:
    """Returns the mean rank of some values among all, 0 to 1; 0.5 by chance."""
    ordered = sorted(values)
    return mean([(bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 / len(ordered) for value in sample])


def rtt_growth(losses: Sequence[Loss], bins: Bins) -> str:
    """Describes the growth of RTTs just before losses: a queue after the capture point filled and overflowed."""
    timed = [(at, rtt) for at, rtt in zip(bins.start_ns, bins.rtt_ns, strict=True) if not math.isnan(rtt)]
    values = [rtt for _, rtt in timed]
    before = before_losses(losses, [at for at, _ in timed], values)
    usual, grown = median_of(values), median_of(before)
    if not before or mean_rank(before, values) < HIGH_RANK or grown <= RTT_GROWTH * min(values) + GROWTH_MIN_NS:
        return ""
    least = show_duration(min(values))
    return f"the RTT had grown to {show_duration(grown)} before them (median {show_duration(usual)}, least {least})"


def delay_growth(losses: Sequence[Loss], delays: Sequence[tuple[float, float]]) -> str:
    """Describes one-way delays just before losses if they are near the greatest; clock offsets cancel out."""
    least = min(delay for _, delay in delays)
    values = [delay - least for _, delay in delays]
    grown = median_of(before_losses(losses, [at for at, _ in delays], values))
    if not grown > GROWTH_MIN_NS or grown < NEAR_GREATEST * sorted(values)[int(0.95 * (len(values) - 1))]:
        return ""
    usual = show_duration(median_of(values))
    return f"the delay had grown by {show_duration(grown)} over the least before them (median {usual})"


def spacing_of(transfer: Transfer, losses: Sequence[Loss]) -> Spacing:
    runs = runs_of(losses)
    lengths, starts = [sum(loss.segments for loss in run) for run in runs], [run[0] for run in runs]
    lost = Spacing(mean(lengths), max(lengths, default=0))
    if loss_runs := transfer.row["block_loss_runs"]:
        lost = Spacing((transfer.row["blocks_lost"] or 0) / loss_runs, transfer.row["block_loss_run_max"] or 0)
    times = [b.time_ns - a.time_ns for a, b in pairwise(sorted(starts, key=lambda loss: loss.time_ns))]
    if len(times) < LOSSES_MIN - 1 or not mean(times):
        return lost
    frames = variation([float(b.frame - a.frame) for a, b in pairwise(starts)])
    return Spacing(*lost[:2], mean(times), variation(times), frames)


def pattern_of(transfers: Transfers, transfer: Transfer, losses: Sequence[Loss]) -> Pattern:
    """Returns the first pattern that fits."""
    bins, spacing, first = transfers.bins(transfer), spacing_of(transfer, losses), losses[:LOSSES_READ]
    delays = block_times(transfers, transfer, "latency_ns")
    growth = delay_growth(first, delays) if delays else rtt_growth(first, bins)
    if whole_beginnings(transfers, transfer) >= WHOLE_BEGINNINGS:
        grown = f", and {growth}" if growth else ""
        return Pattern(
            "tail drop",
            f"the beginning of each burst arrives and its end does not{grown}: a queue or policer is full by then",
            "Use smaller bursts or pace packets: this is congestion, not a bad link. A deeper queue accepts longer bursts.",
        )
    arrived = [at for at, _ in block_times(transfers, transfer, "first_ns")]
    makes_pause = (
        spacing.run_mean * transfer.duration_ns / transfer.data_segments > PAUSE_MIN_NS / 2
    )  # a run leaves a pause itself
    paused = loss_after_pauses(first, arrived or bins.start_ns, 0.0 if arrived else bins.width_ns)
    if paused >= AFTER_PAUSE and not makes_pause:
        return Pattern(
            "start-of-burst",
            f"{show_share(paused, 1)} of them hit the first packets after a pause",
            "Pace the beginning, or keep the path warm: a buffer cannot absorb a burst at line rate, or a neighbor entry, route "
            "or radio must wake up first.",
        )
    if growth:
        return Pattern(
            "tail drop",
            f"{growth}: a queue fills and overflows",
            "Use AQM or a fair queue at the bottleneck, or send below its rate: this is congestion, not a bad link.",
        )
    if overload_of(transfers, transfer):
        return Pattern(
            "tail drop",
            "they never cease while the received rate is level: more is offered than a full queue or policer passes",
            "Offer less than the received rate: this is congestion, not a bad link.",
        )
    return pattern_of_spacing(spacing)


def pattern_of_spacing(spacing: Spacing) -> Pattern:
    if spacing.gap_ns and min(spacing.time_variation, spacing.frame_variation) <= PERIODIC_VARIATION:
        return Pattern(
            "periodic",
            f"losses come at even distances, every {show_duration(spacing.gap_ns)}",
            "Look for a cause with that period: a timer, a scan, a policer's refill, a bad lane of a bundle, a duty cycle.",
        )
    if spacing.run_mean >= BURSTY_RUN or spacing.frame_variation >= BURSTY_VARIATION:
        runs = f"they come in runs of {three_digits(spacing.run_mean)} packets on average, {spacing.run_max:,} at most"
        return Pattern(
            "bursty",
            runs if spacing.run_max > 1 else "many single losses come close together, then long gaps without any",
            "Look for drops in bulk at those times (ethtool -S, netstat -s): a queue that overflows, an overrun receiver, or a "
            "radio that fades.",
        )
    return Pattern(
        "random",
        f"{'all are' if spacing.run_max == 1 else 'most are'} single losses, without a period and without growing delay",
        "Check error counters of the interfaces on the path: a bad cable, optic or radio, or a policer far from its limit, drops "
        "packets at random.",
    )


def has_pattern(transfer: Transfer) -> bool:
    """Returns whether losses are enough, and neither whole datagrams nor the sender's timer hides their pattern."""
    hidden = (transfer.row["incomplete_datagrams"] or 0) >= transfer.lost or 2 * (
        transfer.row["timeouts"] or 0
    ) > transfer.lost
    return transfer.lost >= LOSSES_MIN and not hidden


def evidence_of(transfers: Transfers, losses: Sequence[Loss]) -> list[Cited]:
    """Returns the first lost segments; of several files, of which only that of the packet that showed a loss is known, this."""
    near = [loss.near if transfers.has_one_file else loss.packet for loss in losses]
    return list(dict.fromkeys(filter(None, near)))[:SHOWN]


@finding(
    code="loss-pattern",
    title="Pattern of losses",
    severity="info",
    unit="percent",
    computed="From six losses, the first that fits. Tail drop at the end of bursts: wiretale's blocks are missing around "
    "pauses, and 90% of five bursts or more begin with a multiple of their size, so the end is missing. Start-of-burst: 60% "
    "come within 10 ms (or two time bins) after 50 ms or more without a packet, and little of the traffic does. Tail drop: "
    "RTTs just before losses are at least 1.3 times the minimum and rank among the highest (0.75 on average; 0.5 by chance). "
    "For wiretale's blocks, their own delay is near the maximum. Or more is offered than the path carries (udp-above-path). "
    "Periodic: gaps between runs of losses vary by less than 20%, in time or in frames. Bursty: two packets or more per run "
    "on average, or gaps that vary twice as much as by chance. Otherwise random.",
    unknown="Which end of a burst was lost if bursts have different sizes. RTTs need ACKs and include only queues after the "
    "capture point. At most 5,000 losses are examined. None is if datagrams lack fragments, because whole datagrams do not "
    "show the pattern of fragments. Nor if RTOs are more than half as many as the losses, because the sender's timer then "
    "spaces them. Transfers of a shared-queue have that finding.",
    sentence="{name}: the pattern of its {lost:loss|losses}{placed} is {word}[: {reason}].",
    summary="have a known pattern of losses",
    advice="{advice}",
)
def loss_pattern(transfers: Transfers) -> Matches:
    shared = transfers.lost_together(None)
    for transfer in (
        transfer for transfer in transfers.largest if has_pattern(transfer) and transfer.number not in shared
    ):
        losses = transfers.losses(transfer)
        if len(losses) < LOSSES_MIN and (transfer.row["block_loss_runs"] or 0) < 2:
            continue
        word, reason, advice = pattern_of(transfers, transfer, losses)
        cited = [loss.packet for loss in losses if loss.packet]
        near = evidence_of(transfers, losses)
        filters = (flow_filter(transfer.flow), transfers.files.frame_filter(near))
        yield transfer.match(
            lost=transfer.lost,
            placed=" of known place" if transfer.unplaced else "",
            word=word,
            reason=reason,
            advice=advice,
            cost=None if transfer.unplaced else percent(transfer.lost, transfer.sent_or_lost),
            frames=near,
            packets=transfer.lost_as_captured,
            filter=" && ".join(filter(None, filters)),
            cited=cited[:SHOWN],
            weight=min(transfer.lost / transfer.data_segments, 1) * 0.5,
        )


def reordered_segments(transfers: Transfers, transfer: Transfer) -> list[tuple[Cited, int]]:
    """Returns the reordered segments of a direction, each with the frames after the one that overtook it.

    Nothing if there are several files, because the other frame may be one of another file.
    """
    if len(set(transfers.trace.interfaces.column("file"))) > 1:
        return []
    out_of_order = transfers.words["out_of_order"]
    names, flow = ("direction", "kind", "frame", "related_frame", "time_ns", "capture"), transfer.row["flow"]
    events = transfers.events([flow], *names)
    return [
        (transfers.cited(frame, after, flow, capture), int(frame - overtaker))
        for direction, kind, frame, overtaker, after, capture in events
        if kind == out_of_order and direction == transfer.row["direction"] and not math.isnan(overtaker)
    ]


@finding(
    code="reordering-extent",
    title="Extent of reordering",
    severity="warning if it caused spurious retransmissions, else info",
    unit="percent",
    computed="For each reordered segment, the frames between it and the packet that overtook it. That is an upper bound of "
    "the extent in RFC 4737 section 4.2.1, because frames of other flows and directions count too. Reported from three "
    "reordered segments, or if one is three frames late, because after three TCP assumes a loss (RFC 5681). Spurious "
    "retransmissions and duplicate ACKs of the transfer are shown beside it.",
    unknown="Which duplicate ACK belongs to which reordered segment. The extent in captures of several files, because "
    "frames are counted within a file.",
    sentence="{name}: reordered segments came up to {extent:frame} after the one that overtook them[ (an upper bound "
    "of RFC 4737's extent)], {far} of {late} by three or more[; the receiver sent {answers}].[ {consequence}]",
    summary="have a known extent of reordering",
    advice="Balance load per flow: TCP assumes a loss after three segments, so look for per-packet balancing over "
    "paths or queues.",
)
def reordering_extent(transfers: Transfers) -> Matches:
    for transfer in transfers.tcp():
        late = reordered_segments(transfers, transfer) if transfer.row["out_of_order"] else []
        far = sum(extent >= LATE_EXTENT for _, extent in late)
        if not far and len(late) < LATE_MIN:
            continue
        spurious = (transfer.row["spurious_retransmissions"] or 0) if far else 0
        answers, cited = transfer.back["duplicate_acks"] or 0, [packet for packet, _ in late[:SHOWN]]
        share, consequence = len(late) / transfer.data_packets, "No retransmission followed."
        if spurious:
            consequence = f"The sender sent {plural(spurious, 'spurious retransmission')}."
        yield transfer.match(
            "warning" if spurious else "info",
            extent=max(extent for _, extent in late),
            far=far or "none",
            late=len(late),
            answers=plural(answers, "duplicate ACK") if answers else "no duplicate ACKs",
            consequence=consequence,
            cost=percent(len(late), transfer.data_packets),
            packets=len(late),
            filter=f"{flow_filter(transfer.flow)} && {transfers.files.frame_filter(cited)}",
            cited=cited,
            weight=min(share, 1) * 0.5,
        )
