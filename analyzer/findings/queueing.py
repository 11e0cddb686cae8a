# SPDX-License-Identifier: Apache-2.0
"""Rules about queues on the path: delay under load, offers above its rate, bursts, jitter, sharing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.losses import lossy_bins
from wiretale.analyzer.findings.model import Finding
from wiretale.analyzer.findings.spread import mean, variation
from wiretale.analyzer.findings.transfers import Survey, Transfer, survey_of
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SAMPLES_LEAST = 30
QUEUE_WARNING_NS, QUEUE_INFO_NS = 30_000_000, 5_000_000
QUEUE_FACTOR = 2.0  # of the least round trip
LOSS_ABOVE = 0.02  # of the numbered packets
BINS_LEAST = 10
SPREAD = 0.5  # of the bins hold losses when the whole offer is too much
CAPPED_DISPERSION = 0.5  # of what chance makes of a steady offer: a path's rate evens it
HEAVY = 0.25  # of the packets: no chance loses as many all the time
CAPPED_VARIATION = 0.25  # of what comes through, where a path's rate caps it
BURST_FACTOR = 4.0
LOSSES_LEAST = 6
BURST_BIN_NS = 20_000_000  # wider bins hide bursts
JITTER_WARNING_NS, JITTER_INFO_NS = 30_000_000, 5_000_000
FAIR = 0.8  # Jain's index
FAIR_AT_A_GLANCE = 0.95  # of rates over whole lives: no need to look at the time together
SHARING_LEAST = 1_000_000  # bytes of a flow that takes part
OVERLAP_LEAST = 0.5
SECOND = 1e9


def bufferbloat(trace: Trace) -> Iterator[Finding]:
    """Round trips under load far above the least: a queue that stands."""
    for one in survey_of(trace).tcp():
        least, usual, high = (one.row[name] for name in ("rtt_ns_min", "rtt_ns_median", "rtt_ns_p99"))
        if (one.row["rtt_samples"] or 0) < SAMPLES_LEAST or not one.row["goodput_bps"]:
            continue
        path, queue = one.path_rtt_ns or least, usual - least
        if queue < QUEUE_INFO_NS or queue < (QUEUE_FACTOR - 1) * path:
            continue
        held = one.row["throughput_bps"] / 8 * queue / SECOND
        yield Finding(
            *("bufferbloat", "warning" if queue >= QUEUE_WARNING_NS else "info", "flow"),
            f"{one.name}: under load a round trip takes {show_duration(usual)} (99%: {show_duration(high)}), without "
            f"{show_duration(least)}: a queue beyond this point holds {show_duration(queue)}, about "
            f"{show_bytes(held)}, and all that shares it waits as long.",
            "Use a fair queue with AQM at the bottleneck (fq_codel, cake), shrink its buffer, or pace below its rate.",
            flow=one.row["flow"],
            cost=round(queue / SECOND, 6),
            cost_unit="seconds",
            evidence=f"{one.row['rtt_samples']:,} round trips, {one.frames}; rtt_ns in the series",
            filter=f"{flow_filter(one.flow)} && tcp.analysis.ack_rtt > {usual / SECOND:.4f}",
            impact=one.weight * queue / usual,
        )


class Overload(NamedTuple):
    """Numbered packets lost all the time, while what comes through is level."""

    came_bps: float
    lost_share: float
    evidence: str

    @property
    def offered_bps(self) -> float:
        """What came, and what did not."""
        return self.came_bps / (1 - self.lost_share)


def dispersion(one: Transfer, level: Sequence[float], share: float) -> float:
    """The variance of what comes in time bins, of that which losses by chance would make of a steady offer."""
    size = one.row["wire_bytes"] / max(one.row["packets"], 1)
    packets = [value / size for value in level]
    by_chance = mean(packets) / (1 - share) * share * (1 - share)
    return (variation(packets) * mean(packets)) ** 2 / by_chance if by_chance else math.inf


def overload_of(trace: Trace, one: Transfer) -> Overload | None:
    """Where it is one."""
    lost, came = one.row["blocks_lost"] or 0, one.row["blocks"] or 0
    if one.flow["protocol"] == "tcp" or not came or lost < LOSS_ABOVE * (lost + came):
        return None
    bins = survey_of(trace).bins(one)
    body = slice(1, max(len(bins.wire_bytes) - 1, 1))
    lossy, level = lossy_bins(trace, one, bins)[body], bins.wire_bytes[body]
    share = lost / (lost + came)
    if share < HEAVY and dispersion(one, level, share) > CAPPED_DISPERSION:
        return None
    if len(lossy) < BINS_LEAST or sum(lossy) < SPREAD * len(lossy) or variation(level) > CAPPED_VARIATION:
        return None
    return Overload(
        8 * sum(level) / (len(level) * bins.width_ns) * SECOND,
        share,
        f"{sum(lossy):,} of {plural(len(lossy), 'time bin')} of {show_duration(bins.width_ns)} hold losses; {one.frames}",
    )


def queue_words(one: Transfer) -> str:
    """How long packets wait where the offer is more than the path carries, by the numbered packets' own delays."""
    waited = one.row["delay_variation_ns"]
    if waited is None or waited < QUEUE_INFO_NS:
        return ""
    return f" What comes waits up to {show_duration(waited)} in the full queue before it."


def offered_above_rate(trace: Trace) -> Iterator[Finding]:
    """More offered than the path carries."""
    for one in survey_of(trace).transfers:
        overload = overload_of(trace, one)
        if not overload:
            continue
        lost = overload.lost_share
        yield Finding(
            *("udp-above-path", "warning", "flow"),
            f"{one.name} offered {show_rate(overload.offered_bps)}, and {show_rate(overload.came_bps)} came through, level all "
            f"the time: more than the path before this point carries. {show_share(lost, 1)} was lost to it.{queue_words(one)}",
            f"Send at no more than {show_rate(overload.came_bps)}, or use a transport that adapts (TCP, QUIC).",
            flow=one.row["flow"],
            cost=round(100 * lost, 3),
            cost_unit="percent",
            evidence=overload.evidence,
            filter=flow_filter(one.flow),
            impact=1.01 * one.weight * min(lost / (1 - lost), 1.0),  # the cause before what it causes
        )


def bursts(trace: Trace) -> Iterator[Finding]:
    """Losses of a sender that sends in bursts far above its mean rate."""
    survey = survey_of(trace)
    for one in survey.transfers:
        if one.lost < LOSSES_LEAST or one.life_ns < SECOND:
            continue
        bins = survey.bins(one)
        if len(bins.wire_bytes) < BINS_LEAST or bins.width_ns > BURST_BIN_NS:
            continue
        ordered = sorted(bins.wire_bytes)
        peak = 8 * ordered[int(0.99 * (len(ordered) - 1))] / bins.width_ns * SECOND
        usual = 8 * one.row["wire_bytes"] / one.life_ns * SECOND
        if peak < BURST_FACTOR * usual:
            continue
        yield Finding(
            *("bursty-sender", "info", "flow"),
            f"{one.name} sends in bursts: {show_rate(peak)} in the fullest {show_duration(bins.width_ns)}, "
            f"{show_rate(usual)} on average ({peak / usual:.0f} times), and loses packets.",
            "Pace it (fq with SO_MAX_PACING_RATE, a smaller burst of the application): queues overflow by bursts, not "
            "by means.",
            flow=one.row["flow"],
            cost=round(100 * one.lost / max(one.row["data_packets"] or 1, 1), 3),
            cost_unit="percent",
            evidence=f"throughput_bps in the series; {one.frames}",
            filter=flow_filter(one.flow),
            impact=one.weight * 0.01,
        )


def jitter(trace: Trace) -> Iterator[Finding]:
    """Packets of a stream that come at uneven times."""
    for one in survey_of(trace).transfers:
        value, span = one.row["jitter_ns"], one.row["delay_variation_ns"]
        if value is None or value < JITTER_INFO_NS:
            continue
        yield Finding(
            *("jitter", "warning" if value >= JITTER_WARNING_NS else "info", "flow"),
            f"{one.name}: packets come {show_duration(value)} early or late (RFC 3550 jitter); the slowest took "
            f"{show_duration(span)} longer than the fastest.",
            "Look for a queue that fills and drains, Wi-Fi, or a sender that is not steady; players need a buffer of "
            "that size.",
            flow=one.row["flow"],
            cost=round(value / SECOND, 6),
            cost_unit="seconds",
            evidence=f"{plural(one.row['blocks'], 'numbered packet')}, {one.frames}",
            filter=flow_filter(one.flow),
            impact=one.weight * 0.05,
        )


def overlap_ns(a: Transfer, b: Transfer) -> int:
    """Time that both last."""
    return int(min(a.row["last_ns"], b.row["last_ns"]) - max(a.row["first_ns"], b.row["first_ns"]))


def companions(survey: Survey) -> list[Transfer]:
    """The large transfers to one place that lasted together: they may share a bottleneck."""
    able = [
        one
        for one in survey.transfers
        if one.life_ns and (one.row["payload_bytes"] or 0) >= SHARING_LEAST and one.row["goodput_bps"]
    ]
    groups: dict[tuple[str, str], list[Transfer]] = {}
    for one in able:
        groups.setdefault((one.row["source"], one.row["destination"]), []).append(one)
    largest = max(groups.values(), key=len, default=[])
    together = [
        (a, b) for a, b in combinations(largest, 2) if overlap_ns(a, b) >= OVERLAP_LEAST * min(a.life_ns, b.life_ns)
    ]
    members = {id(one): one for pair in together for one in pair}
    return list(members.values())


def own_rate(one: Transfer) -> float:
    """bit/s on the wire over its life."""
    return float(8 * one.row["wire_bytes"] / one.life_ns * SECOND)


def jain(rates: Sequence[float]) -> float:
    """Jain's fairness index: 1 for equal rates, 1/n where one has all."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def rates_together(survey: Survey, members: Sequence[Transfer]) -> tuple[list[float], float]:
    """bit/s of each while all of them lasted, and that time in ns; of their own lives where there was none."""
    start = max(one.row["first_ns"] for one in members)
    end = min(one.row["last_ns"] for one in members)
    rates = []
    for one in members:
        bins = survey.bins(one)
        size = sum(
            size
            for at, size in zip(bins.start_ns, bins.wire_bytes, strict=True)
            if at >= start and at + bins.width_ns <= end
        )
        rates.append(8 * size / max(end - start, 1) * SECOND)
    if end <= start or not all(rates):
        return [own_rate(one) for one in members], 0.0
    return rates, end - start


def fairness(trace: Trace) -> Iterator[Finding]:
    """How transfers between the same hosts shared the path."""
    survey = survey_of(trace)
    members = companions(survey)
    if len(members) < 2 or jain([own_rate(one) for one in members]) >= FAIR_AT_A_GLANCE:
        return
    rates, span = rates_together(survey, members)
    index = jain(rates)
    if index >= FAIR:
        return
    order = sorted(zip(rates, members, strict=True), key=lambda pair: -pair[0])
    shares = ", ".join(
        f"flow {one.row['flow']} ({one.flow['protocol']}) {show_share(r, sum(rates))}" for r, one in order[:6]
    )
    kinds = {one.flow["protocol"] for one in members}
    mixed = " UDP takes what it offers and TCP gets the rest." if {"tcp", "udp"} <= kinds else ""
    yield Finding(
        *("unfair-share", "info", "flow"),
        f"{len(members)} transfers from {members[0].row['source']} to {members[0].row['destination']} ran "
        f"together{' for ' + show_duration(span) if span else ''} and shared {show_rate(sum(rates))} unevenly: "
        f"{shares}; Jain's index {index:.2f} (1 is even).{mixed}",
        "Different round trips, late starts, losses or a UDP flow do this; a fair queue at the bottleneck (fq_codel, "
        "cake) evens it.",
        cost=round(100 * (1 - index), 1),
        cost_unit="percent",
        evidence="; ".join(f"flow {one.row['flow']} {one.name} {show_rate(rate)}" for rate, one in order[:6]),
        impact=sum(one.weight for one in members) * (1 - index),
    )
