# SPDX-License-Identifier: Apache-2.0
"""Rules about queues on the path: delay under load, offers above its rate, bursts, jitter, sharing, a full link."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import BY_COST
from wiretale.analyzer.findings.model import SECOND, Match, Matches, Row, finding, seconds
from wiretale.analyzer.findings.throughput_limit import ETHERNET_MSS
from wiretale.analyzer.findings.transfers import Bins, Transfer, Transfers, mean, variation
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

CHAPTER = "Queues and sharing"
SAMPLES_MIN = 30
QUEUE_WARNING_NS, QUEUE_INFO_NS = 30_000_000, 5_000_000
QUEUE_FACTOR = 2.0  # of the least RTT
QUEUE_PACKETS = 2  # full ones that a standing queue holds at least
LOADED_SHARE = 0.25  # of transfer time, in which the sender had data to send
HEADERS = 40  # bytes of IPv4 and TCP
LOSS_MIN = 0.02  # of the numbered packets
BINS_MIN = 10
LOSSY_SHARE = 0.5  # of the bins, if more is offered than the path carries
CAPPED_DISPERSION = 0.5  # of that of random losses; a path's rate reduces it
HEAVY_LOSS = 0.25  # of the packets; random losses are not as many all the time
CAPPED_VARIATION = 0.25  # of the received rate, if the path's rate caps it
BURST_FACTOR = 4.0  # of the mean rate
LOSSES_MIN = 6
BURSTS = {"burst_1ms_bytes": 1_000_000, "burst_100us_bytes": 100_000, "burst_10us_bytes": 10_000}  # ns
PORTS = (1e9, 10e9, 40e9)  # bit/s
BUFFER_SHOWN = 3000  # bytes, two full frames
BUFFER_MIN = 100_000  # bytes that a port of a shallow switch can hold
LOSSY_BURST = 20_000  # bytes in 1 ms; more than an initial window (RFC 6928)
JITTER_WARNING_NS, JITTER_INFO_NS = 30_000_000, 5_000_000
FAIR = 0.8  # Jain's index
FAIR_OVERALL = 0.95  # of rates over whole durations; the common time is not examined
SHARING_MIN = 1_000_000  # bytes of a transfer that takes part
OVERLAP_MIN = 0.5
SPEEDS = (10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9)  # bit/s, IEEE 802.3
FULL_MIN, FULL_MAX = 0.985, 1.01  # of a speed
LEVEL = 0.25  # variation of the time bins of one transfer
FULL_BINS_MIN = 20
FULL_SHARE_MIN = 0.01  # of the trace's bytes
PAIRS_MAX = 5  # of hosts
FULL_WEIGHT = 0.11  # ranks before path-limited, which it explains
SHARES_SHOWN = 6


def bit_rate(size: float, ns: float) -> float:
    """Returns bit/s."""
    return 8 * size / ns * SECOND


@finding(
    code="bufferbloat",
    title="Standing queue (bufferbloat)",
    severity="warning from 30 ms, else info",
    unit="seconds",
    delays=True,
    computed="With 30 RTT samples or more: the median RTT must exceed the least by 5 ms or more, and by at least the "
    "RTT of the path. The transfer must have had data to send for 25% of transfer time or more, without the pauses of "
    "RTOs, and the queue must hold two full packets of it or more. The queue in bytes is that delay times the rate in "
    "that time, at most the greatest flight. A queue must delay by more than timestamps go backward (time-backward).",
    unknown="Queues before the capture point; a receiver that delays ACKs; a least RTT that already includes the "
    "queue. Delays of a flow that asks and waits for answers are not examined, because they may be the other host's.",
    sentence="{name} has an RTT of {usual} under load (99th percentile {high}), {least} without: a queue after the "
    "capture point holds {queue}, about {held}, and delays every flow that shares it.",
    advice="Use a fair queue with AQM at the bottleneck (fq_codel, cake), shrink its buffer, or pace below its rate.",
)
def bufferbloat(transfers: Transfers) -> Matches:
    backward = max((row["backward_ns_max"] or 0 for row in transfers.trace.interfaces.rows()), default=0)
    for one in transfers.tcp():
        least, usual, high = (one.row[name] for name in ("rtt_ns_min", "rtt_ns_median", "rtt_ns_p99"))
        if (one.row["rtt_samples"] or 0) < SAMPLES_MIN or not one.row["goodput_bps"]:
            continue
        path, queue = one.path_rtt_ns or least, usual - least
        if queue < max(QUEUE_INFO_NS, backward) or queue < (QUEUE_FACTOR - 1) * path:
            continue
        held = queue_bytes(one, queue)
        if held >= QUEUE_PACKETS * full_packet(one):
            yield one.match(
                "warning" if queue >= QUEUE_WARNING_NS else "info",
                usual=show_duration(usual),
                high=show_duration(high),
                least=show_duration(least) if least else "less than a step of the clock",
                queue=show_duration(queue),
                held=show_bytes(held),
                cost=seconds(queue),
                evidence=f"{one.row['rtt_samples']:,} round trips, {one.frames}; rtt_ns in the series",
                filter=f"{flow_filter(one.flow)} && tcp.analysis.ack_rtt > {usual / SECOND:.4f}",
                weight=queue / usual,
            )


def full_packet(one: Transfer) -> int:
    """Returns the bytes of a full IP packet of the path: of the MSS, or of Ethernet if no larger segment passes."""
    return min(one.back["mss"] or ETHERNET_MSS, max(one.row["segment_max"] or 0, ETHERNET_MSS)) + HEADERS


def queue_bytes(one: Transfer, queue_ns: int) -> float:
    """Returns the bytes of a transfer in a queue with this delay; 0 if it does not load the path.

    Only a sender with data to send loads a path. The others wait for an answer, and that wait includes the time in which the
    other host prepares it.
    """
    waiting = sum(one.limits.get(name, 0) for name in ("limit_idle_ns", "limit_delayed_ack_ns", "limit_timeout_ns"))
    loaded_ns = one.accounted_ns - waiting
    if loaded_ns < LOADED_SHARE * one.accounted_ns or loaded_ns <= 0:
        return 0.0
    held = one.row["ip_bytes"] / loaded_ns * queue_ns
    return float(min(held, one.row["flight_max"] or 0))


class Overload(NamedTuple):
    """Numbered packets lost all the time while the received rate is level."""

    received_bps: float
    lost_share: float
    evidence: str


def dispersion(one: Transfer, level: Sequence[float], share: float) -> float:
    """Returns the variance of received packets per bin, over that of random losses from a steady offer."""
    size = one.row["wire_bytes"] / max(one.row["packets"], 1)
    packets = [value / size for value in level]
    by_chance = mean(packets) / (1 - share) * share * (1 - share)
    return (variation(packets) * mean(packets)) ** 2 / by_chance if by_chance else math.inf


def lossy_bins(transfers: Transfers, one: Transfer, bins: Bins) -> list[bool]:
    """Returns for each time bin whether a loss showed in it."""
    lossy = [False] * len(bins.start_ns)
    for loss in transfers.losses(one):
        place = bisect_right(bins.start_ns, loss.time_ns) - 1
        if place >= 0:
            lossy[place] = True
    return lossy


def overload_of(transfers: Transfers, one: Transfer) -> Overload | None:
    """Returns the overload of a direction with numbered packets, if more was offered than the path carries."""
    lost, received = one.row["blocks_lost"] or 0, one.row["blocks"] or 0
    if one.flow["protocol"] == "tcp" or not received or lost < LOSS_MIN * (lost + received):
        return None
    bins = transfers.bins(one)
    body = slice(1, max(len(bins.wire_bytes) - 1, 1))
    lossy, level = lossy_bins(transfers, one, bins)[body], bins.wire_bytes[body]
    share = lost / (lost + received)
    if share < HEAVY_LOSS and dispersion(one, level, share) > CAPPED_DISPERSION:
        return None
    if len(lossy) < BINS_MIN or sum(lossy) < LOSSY_SHARE * len(lossy) or variation(level) > CAPPED_VARIATION:
        return None
    width = show_duration(bins.width_ns)
    evidence = f"{sum(lossy):,} of {plural(len(lossy), 'time bin')} of {width} hold losses; {one.frames}"
    return Overload(bit_rate(sum(level), len(level) * bins.width_ns), share, evidence)


@finding(
    code="udp-above-path",
    title="More offered than the path carries",
    severity=BY_COST,
    unit="bytes",
    computed="2% of the numbered packets or more must be missing, half of the time bins or more must have losses, and "
    "the received rate must be level: it varies by less than 25% and (below 25% of loss) by less than half of the "
    "variance that random losses cause. The offer is the received packets plus the missing numbers. "
    "The cost is the bytes of the missing packets.",
    unknown="Losses after the capture point. A policer and a full queue differ only in delay.",
    sentence="{name} offered {offered}, and {received} arrived, level all the time: more than the path before the "
    "capture point carries. {share} was lost.{delay}",
    advice="Send at most {received}, or use a transport that adapts (TCP, QUIC).",
)
def udp_above_path(transfers: Transfers) -> Matches:
    for one in transfers.largest:
        overload = overload_of(transfers, one)
        if overload:
            lost, waited = overload.lost_share, one.row["delay_variation_ns"]
            queued = waited is not None and waited >= QUEUE_INFO_NS
            yield one.match(
                offered=show_rate(overload.received_bps / (1 - lost)),
                received=show_rate(overload.received_bps),
                share=show_share(lost, 1),
                delay=f" Packets wait up to {show_duration(waited)} in the full queue." if queued else "",
                cost=float(round(one.row["blocks_lost"] * one.row["wire_bytes"] / max(one.row["packets"], 1))),
                evidence=overload.evidence,
                weight=1.01 * min(lost / (1 - lost), 1.0),  # the cause ranks before its effects
            )


@finding(
    code="jitter",
    title="Jitter",
    severity="warning from 30 ms, else info",
    unit="seconds",
    delays=True,
    computed="RFC 3550 interarrival jitter of numbered packets that contain their sending time, and the range of "
    "their delays, which needs no synchronized clocks. Reported from 5 ms.",
    unknown="Whether the sending times themselves are steady.",
    sentence="{name} has a jitter of {jitter} (RFC 3550); the slowest packet took {range} longer than the fastest.",
    advice="Look for a queue that fills and drains, Wi-Fi, or an unsteady sender; players need a buffer of that size.",
)
def jitter(transfers: Transfers) -> Matches:
    for one in transfers.largest:
        value = one.row["jitter_ns"]
        if value is not None and value >= JITTER_INFO_NS:
            yield one.match(
                "warning" if value >= JITTER_WARNING_NS else "info",
                jitter=show_duration(value),
                range=show_duration(one.row["delay_variation_ns"]),
                cost=seconds(value),
                evidence=f"{plural(one.row['blocks'], 'numbered packet')}, {one.frames}",
                weight=0.05,
            )


def buffer_needed(row: Row, port_bps: float) -> float:
    """Returns the bytes of the fullest burst of an interface that a port of this rate must hold; 0 if it needs no buffer."""
    rests = (float(row[name]) - port_bps * ns / SECOND / 8 for name, ns in BURSTS.items() if row[name] is not None)
    return max(0.0, *rests)


def burst_sender(transfers: Transfers, time_ns: float) -> tuple[Transfer | None, str]:
    """Returns the transfer that sent half or more of the bytes of the time bins at that time, and a sentence."""
    sizes: list[tuple[float, Transfer]] = []
    for one in transfers.largest:
        bins = transfers.bins(one)
        place = bisect_right(bins.start_ns, time_ns) - 1
        if place >= 0 and time_ns < bins.start_ns[place] + bins.width_ns:
            sizes.append((bins.wire_bytes[place], one))
    most, sender = max(sizes, key=lambda pair: pair[0], default=(0.0, None))
    whole = sum(size for size, _ in sizes)
    if sender is None or 2 * most < whole:
        return None, " No single transfer sent most of it."
    width = show_duration(transfers.bins(sender).width_ns)
    return sender, f" {sender.name} sent {show_share(most, whole)} of the bytes in the {width} around it."


def loses_packets(transfers: Transfers, capture: int) -> bool:
    """Returns whether a large transfer of an interface lost six packets or more."""
    return any(one.lost >= LOSSES_MIN and one.flow["first_capture"] == capture for one in transfers.largest)


def microburst_match(transfers: Transfers, row: Row, buffers: dict[float, float], rates: Row) -> Match:
    """Returns the match of an interface, with the buffers that ports need by their bit/s."""
    needs = [f"{show_bytes(size)} at {show_rate(port)}" for port, size in buffers.items() if size >= BUFFER_SHOWN]
    finer = [f", {show_bytes(row[name])} in {show_duration(ns)}" for name, ns in list(BURSTS.items())[1:] if row[name]]
    sender, who = burst_sender(transfers, row["burst_ns"])
    about: Row = {"flow": sender.row["flow"], "filter": flow_filter(sender.flow)} if sender else {}
    return Match(
        interface=f"Interface {row['name']}" if row["name"] else "The interface",
        burst=show_bytes(row["burst_1ms_bytes"]),
        finer="".join(finer),
        ports=f"a port needs a buffer of {', '.join(needs)}"
        if needs
        else "a port of 1 Gbit/s needs no buffer for that",
        who=who,
        evidence=f"ends at frame {row['burst_frame']}",
        impact=0.01 * (sender.traffic_share if sender else 1.0),
        **about,
        **rates,
    )


@finding(
    code="microburst",
    title="Microbursts",
    severity="info",
    computed="The fullest 1 ms, 100 µs and 10 µs of an interface (interfaces.burst_*_bytes, exact), compared with its mean "
    "rate. A port of rate R must hold the bytes of a window less those that it sends meanwhile. Reported if the rate in 1 ms is "
    "four times the mean or more, and either a port of 1, 10 or 40 Gbit/s that carries the mean needs a buffer of 100 kB or "
    "more, or the burst has 20 kB and a transfer lost six packets or more. The sender is that of most bytes in the time bins "
    "around the burst.",
    unknown="The rate of the port that the burst meets. Both directions of the interface count together. Interfaces with "
    "super-segments have no such finding, because their packets were not on the wire at that moment.",
    sentence="{interface} carried {burst} in its fullest 1 ms ({peak}, {factor} times its mean of {usual}){finer}: {ports}.{who}",
    advice="Pace the sender (fq with SO_MAX_PACING_RATE, smaller writes), or give the slower port that buffer, because bursts "
    "overflow queues, not means.",
)
def microburst(transfers: Transfers) -> Matches:
    for row in transfers.trace.interfaces.rows():
        burst, whole_ns = row["burst_1ms_bytes"], (row["last_ns"] or 0) - (row["first_ns"] or 0)
        if not burst or row["super_segments"] or whole_ns < SECOND:
            continue
        usual, peak = bit_rate(row["bytes"], whole_ns), bit_rate(burst, BURSTS["burst_1ms_bytes"])
        buffers = {port: buffer_needed(row, port) for port in PORTS if port > usual}
        deep = max(buffers.values(), default=0.0) >= BUFFER_MIN
        overflows = deep or (burst >= LOSSY_BURST and loses_packets(transfers, row["capture"]))
        if peak >= BURST_FACTOR * usual and overflows:
            shown = {"peak": show_rate(peak), "factor": f"{peak / usual:,.0f}", "usual": show_rate(usual)}
            yield microburst_match(transfers, row, buffers, shown)


def own_rate(one: Transfer) -> float:
    """Returns bit/s on the wire over the whole duration."""
    return bit_rate(one.row["wire_bytes"], one.duration_ns)


def overlap_ns(a: Transfer, b: Transfer) -> int:
    return int(min(a.row["last_ns"], b.row["last_ns"]) - max(a.row["first_ns"], b.row["first_ns"]))


def common_span(members: Sequence[Transfer]) -> tuple[int, int]:
    """Returns the time in which all transfers lasted."""
    return max(one.row["first_ns"] for one in members), min(one.row["last_ns"] for one in members)


def by_hosts(members: Sequence[Transfer]) -> dict[tuple[str, str], list[Transfer]]:
    """Returns the transfers by source and destination address."""
    groups: dict[tuple[str, str], list[Transfer]] = {}
    for one in members:
        groups.setdefault((one.row["source"], one.row["destination"]), []).append(one)
    return groups


def companions(transfers: Transfers) -> list[Transfer]:
    """Returns the large transfers between two hosts that lasted together: they may share a bottleneck."""
    able = [
        one
        for one in transfers.largest
        if one.duration_ns and (one.row["payload_bytes"] or 0) >= SHARING_MIN and one.row["goodput_bps"]
    ]
    group = max(by_hosts(able).values(), key=len, default=[])
    pairs = combinations(group, 2)
    together = [(a, b) for a, b in pairs if overlap_ns(a, b) >= OVERLAP_MIN * min(a.duration_ns, b.duration_ns)]
    return list({id(one): one for pair in together for one in pair}.values())


def jain(rates: Sequence[float]) -> float:
    """Returns Jain's fairness index: 1 for equal rates, 1/n if one transfer has all."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def rates_together(transfers: Transfers, members: Sequence[Transfer]) -> tuple[list[float], float]:
    """Returns bit/s of each in the common time and its length in ns; over their own durations and 0 without."""
    start, end = common_span(members)
    sizes = [sum(transfers.bins(one).wire_bytes_within(start, end)) for one in members]
    if end <= start or not all(sizes):
        return [own_rate(one) for one in members], 0.0
    return [bit_rate(size, end - start) for size in sizes], end - start


@finding(
    code="unfair-share",
    title="Unequal shares of the path",
    severity="info",
    computed="Transfers of 1 MB or more between the same two hosts must overlap for half of the shorter duration. The "
    "finding compares their rates in the common time by Jain's index (sum x)^2 / (n sum x^2). Reported below 0.8.",
    unknown="Whether they share a bottleneck at all, and the other traffic on it.",
    sentence="{count} transfers from {source} to {destination} shared {total}{time} unequally: {shares}; Jain's index "
    "is {index} (1 is equal).{mixed}",
    advice="Check for different RTTs, late starts, losses or a UDP flow; a fair queue at the bottleneck (fq_codel, "
    "cake) equalizes them.",
)
def unfair_share(transfers: Transfers) -> Matches:
    members = companions(transfers)
    if len(members) < 2 or jain([own_rate(one) for one in members]) >= FAIR_OVERALL:
        return
    rates, span = rates_together(transfers, members)
    index, whole = jain(rates), sum(rates)
    if index >= FAIR:
        return
    order = sorted(zip(rates, members, strict=True), key=lambda pair: -pair[0])[:SHARES_SHOWN]
    shares = [f"flow {one.row['flow']} ({one.flow['protocol']}) {show_share(rate, whole)}" for rate, one in order]
    mixed = {"tcp", "udp"} <= {one.flow["protocol"] for one in members}
    yield Match(
        count=len(members),
        source=members[0].row["source"],
        destination=members[0].row["destination"],
        total=show_rate(whole),
        time=f" for {show_duration(span)}" if span else "",
        shares=", ".join(shares),
        index=f"{index:.2f}",
        mixed=" UDP takes its offered rate and TCP the rest." if mixed else "",
        evidence="; ".join(f"flow {one.row['flow']} {one.name} {show_rate(rate)}" for rate, one in order),
        impact=sum(one.traffic_share for one in members) * (1 - index),
    )


def middle_mean(values: Sequence[float]) -> float:
    """Returns the mean of the middle half: pauses of the sender and late timestamps do not count."""
    quarter = len(values) // 4
    return mean(sorted(values)[quarter : len(values) - quarter])


def ethernet_speed(transfers: Transfers, members: Sequence[Transfer]) -> float | None:
    """Returns the speed of an Ethernet that these transfers fill together."""
    start, end = common_span(members)
    all_bins = [transfers.bins(one) for one in members]
    rates = [[bit_rate(size, bins.width_ns) for size in bins.wire_bytes_within(start, end)] for bins in all_bins]
    if min(map(len, rates)) < FULL_BINS_MIN or (len(rates) == 1 and variation(rates[0]) > LEVEL):
        return None
    whole = middle_mean(rates[0]) if len(rates) == 1 else sum(map(mean, rates))
    return next((speed for speed in SPEEDS if FULL_MIN * speed <= whole <= FULL_MAX * speed), None)


@finding(
    code="wire-full",
    title="Full link",
    severity="info",
    computed="Frames of all transfers (1% of the capture's bytes or more each) from one host to another in their "
    "common time, with preambles, checksums and gaps: together they must reach 98.5% to 101% of an Ethernet speed (10 "
    "Mbit/s to 100 Gbit/s), in 20 time bins or more. For a single transfer it is the mean of the middle half of its "
    "time bins, which must be level.",
    unknown="Whether the link has that speed: a paced sender looks the same. Other frames on the link; frames that an "
    "offload merged count once.",
    sentence="{who} an Ethernet of {speed}: {share} is payload ({payload}), {overhead} is headers, preambles, "
    "checksums and gaps.",
    advice="Use a faster link or fuller packets for more; the link is full, and nothing is wrong.",
)
def wire_full(transfers: Transfers) -> Matches:
    able = [one for one in transfers.largest if one.duration_ns and one.traffic_share >= FULL_SHARE_MIN]
    for (source, destination), members in list(by_hosts(able).items())[:PAIRS_MAX]:
        speed = ethernet_speed(transfers, members)
        if speed is None:
            continue
        wire, payload = (sum(one.row[name] or 0 for one in members) for name in ("wire_bytes", "payload_bytes"))
        version = "ipv6" if ":" in source else "ip"
        who, flow, frames = f"{len(members)} transfers {source} → {destination} fill", None, f"{len(members)} transfers"
        selected = f"{version}.src == {source} && {version}.dst == {destination}"
        if len(members) == 1:
            alone = members[0]
            who, flow, frames = f"{alone.name} fills", alone.row["flow"], alone.frames
            selected = flow_filter(alone.flow)
        yield Match(
            who=who,
            speed=show_rate(speed),
            share=show_share(payload, wire),
            payload=show_rate(speed * payload / wire),
            overhead=show_share(wire - payload, wire),
            flow=flow,
            evidence=f"{frames}; wire_bytes in the series",
            filter=selected,
            impact=FULL_WEIGHT * sum(one.traffic_share for one in members),
        )
