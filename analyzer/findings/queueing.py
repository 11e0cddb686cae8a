# SPDX-License-Identifier: Apache-2.0
"""Rules about queues on the path: delay under load, offers above its rate, bursts, jitter."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import BY_COST
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import SECOND, Match, Matches, Words, finding, seconds
from wiretale.analyzer.findings.shared.places import longest_wait, most_lost, slowest_packet
from wiretale.analyzer.findings.throughput_limit import ETHERNET_MSS
from wiretale.analyzer.findings.transfers import Bins, Transfer, Transfers, mean, variation
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import InterfaceRow

CHAPTER = "Queues"
SAMPLES_MIN = 30
QUEUE_WARNING_NS, QUEUE_INFO_NS = 30_000_000, 5_000_000
QUEUE_FACTOR = 2.0  # of the least RTT
QUEUE_PACKETS = 2  # full ones that a standing queue holds at least
LOADED_SHARE = 0.25  # of transfer time, in which the sender had data to send
UNLOADED = (
    "pause",
    "send_buffer",
    "delayed_ack",
    "timeout",
    "connecting",
    "waiting",
)  # times in which a sender does not load the path
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


def bit_rate(size: float, ns: float) -> float:
    """Returns bit/s."""
    return 8 * size / ns * SECOND


@finding(
    code="bufferbloat",
    title="Standing queue (bufferbloat)",
    severity="warning from 30 ms, else info",
    unit="seconds",
    delays=True,
    computed="With 30 RTT samples or more: the median RTT must exceed the least, of all flows of hosts and service, by 5 ms "
    "or more, and by at least the RTT of the path. The transfer must have had data to send for at least 25% of transfer time, "
    "without the pauses of RTOs. The queue must hold at least two full packets of it. The queue in bytes is that delay times "
    "the rate in that time, at most the greatest flight. A queue must delay by more than timestamps go backward "
    "(time-backward).",
    unknown="Queues before the capture point; a receiver that delays ACKs; a least RTT that already includes the "
    "queue. Delays of a flow that asks and waits for answers are not examined, because they may be the other host's.",
    sentence="{name} has an RTT of {usual} under load[ (99th percentile {high})], {least} without[. A queue after the "
    "capture point delays by {queue}, about {held} of IP packets, and so every flow that shares it].",
    summary="waited in a standing queue",
    advice="Use a fair queue with AQM at the bottleneck (fq_codel, cake), shrink its buffer, or pace below its rate.",
)
def bufferbloat(transfers: Transfers) -> Matches:
    backward = max((ns or 0 for ns in transfers.trace.interfaces.column("backward_ns_max")), default=0)
    for transfer in transfers.tcp():
        rtt, samples = transfer.round_trips, transfer.row["rtt_samples"] or 0
        if rtt is None or samples < SAMPLES_MIN or not transfer.row["goodput_bps"]:
            continue
        path, queue = transfer.path_rtt_ns or rtt.least, rtt.median - rtt.least
        if queue < max(QUEUE_INFO_NS, backward) or queue < (QUEUE_FACTOR - 1) * path:
            continue
        queued = queue_bytes(transfer, queue)
        if queued >= QUEUE_PACKETS * full_packet(transfer):
            yield transfer.match(
                "warning" if queue >= QUEUE_WARNING_NS else "info",
                usual=show_duration(rtt.median),
                high=show_duration(rtt.high),
                least=show_duration(rtt.least) if rtt.least else "less than a step of the clock",
                queue=show_duration(queue),
                held=show_bytes(queued),
                cost=seconds(queue),
                figures=f"{samples:,} round trips; series: rtt_ns",
                filter=f"{flow_filter(transfer.flow)} && tcp.analysis.ack_rtt > {rtt.median / SECOND:.4f}",
                cited=longest_wait(transfers, transfer.row, "rtt"),
                weight=queue / rtt.median,
            )


def full_packet(transfer: Transfer) -> int:
    """Returns the bytes of a full IP packet of the path: of the MSS, or of Ethernet if no larger segment passes."""
    return min(transfer.back["mss"] or ETHERNET_MSS, max(transfer.row["segment_max"] or 0, ETHERNET_MSS)) + HEADERS


def queue_bytes(transfer: Transfer, queue_ns: int) -> float:
    """Returns the bytes of a transfer in a queue with this delay; 0 if it does not load the path.

    Only a sender with data to send loads a path. The others wait for an answer, and that wait includes the time in which the
    other host prepares it.
    """
    waiting = sum(transfer.times.get(name, 0) for name in UNLOADED)
    loaded_ns = transfer.waited_ns - waiting
    if loaded_ns < LOADED_SHARE * transfer.waited_ns or loaded_ns <= 0:
        return 0.0
    queued = transfer.row["ip_bytes"] / loaded_ns * queue_ns
    return float(min(queued, transfer.row["flight_max"] or 0))


class Overload(NamedTuple):
    """Numbered packets lost all the time while the received rate is level."""

    received_bps: float
    lost_share: float
    figures: str


def dispersion(transfer: Transfer, level: Sequence[float], share: float) -> float:
    """Returns the variance of received packets per bin, over that of random losses from a steady offer."""
    size = transfer.row["wire_bytes"] / max(transfer.row["packets"], 1)
    packets = [value / size for value in level]
    by_chance = mean(packets) / (1 - share) * share * (1 - share)
    return (variation(packets) * mean(packets)) ** 2 / by_chance if by_chance else math.inf


def lossy_bins(transfers: Transfers, transfer: Transfer, bins: Bins) -> list[bool]:
    """Returns for each time bin whether a loss showed in it."""
    lossy = [False] * len(bins.start_ns)
    for loss in transfers.losses(transfer):
        place = bisect_right(bins.start_ns, loss.time_ns) - 1
        if place >= 0:
            lossy[place] = True
    return lossy


def overload_of(transfers: Transfers, transfer: Transfer) -> Overload | None:
    """Returns the overload of a direction with numbered packets, if more was offered than the path carries."""
    lost, received = transfer.row["blocks_lost"] or 0, transfer.row["blocks"] or 0
    if transfer.flow["protocol"] == "tcp" or not received or lost < LOSS_MIN * (lost + received):
        return None
    bins = transfers.bins(transfer)
    body = slice(1, max(len(bins.wire_bytes) - 1, 1))
    lossy, level = lossy_bins(transfers, transfer, bins)[body], bins.wire_bytes[body]
    share = lost / (lost + received)
    if share < HEAVY_LOSS and dispersion(transfer, level, share) > CAPPED_DISPERSION:
        return None
    if len(lossy) < BINS_MIN or sum(lossy) < LOSSY_SHARE * len(lossy) or variation(level) > CAPPED_VARIATION:
        return None
    width = show_duration(bins.width_ns)
    figures = f"{sum(lossy):,} of {plural(len(lossy), 'time bin')} of {width} hold losses"
    return Overload(bit_rate(sum(level), len(level) * bins.width_ns), share, figures)


@finding(
    code="udp-above-path",
    title="More offered than the path carries",
    severity=BY_COST,
    unit="bytes",
    computed="At least 2% of the numbered packets must be missing, and at least half of the time bins must have losses. The "
    "received rate must be level: it varies by less than 25%. Below 25% of loss, its variance must be less than half of that "
    "of random losses. The offer is the received packets plus the missing numbers. The cost is the bytes of the missing "
    "packets.",
    unknown="Losses after the capture point. A policer and a full queue differ only in delay.",
    sentence="{name} offered {offered} on the wire[, and {received} arrived, level all the time][: more than the path "
    "before the capture point carries].[ {share} was lost.][{delay}]",
    summary="offered more than the path carries",
    advice="Send at most {received} on the wire, or use a transport that adapts (TCP, QUIC).",
)
def udp_above_path(transfers: Transfers) -> Matches:
    for transfer in transfers.largest:
        overload = overload_of(transfers, transfer)
        if overload:
            lost, waited = overload.lost_share, transfer.row["delay_variation_ns"]
            queued = waited is not None and waited >= QUEUE_INFO_NS
            yield transfer.match(
                offered=show_rate(overload.received_bps / (1 - lost)),
                received=show_rate(overload.received_bps),
                share=show_share(lost, 1),
                delay=f" Packets wait up to {show_duration(waited)} in the full queue." if queued else "",
                cost=float(
                    round(
                        (transfer.row["blocks_lost"] or 0)
                        * transfer.row["wire_bytes"]
                        / max(transfer.row["packets"], 1)
                    )
                ),
                figures=overload.figures,
                cited=most_lost(transfers, transfer),
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
    sentence="{name} has a jitter of {jitter}[ (RFC 3550)][; the slowest packet took {range} longer than the fastest].",
    summary="had jitter",
    advice="Look for a queue that fills and drains, Wi-Fi, or an unsteady sender; players need a buffer of that size.",
)
def jitter(transfers: Transfers) -> Matches:
    for transfer in transfers.largest:
        value = transfer.row["jitter_ns"]
        if value is not None and value >= JITTER_INFO_NS:
            yield transfer.match(
                "warning" if value >= JITTER_WARNING_NS else "info",
                jitter=show_duration(value),
                range=show_duration(transfer.row["delay_variation_ns"]),
                cost=seconds(value),
                figures=plural(transfer.row["blocks"] or 0, "numbered packet"),
                cited=slowest_packet(transfers, transfer),
                weight=0.05,
            )


def buffer_needed(row: InterfaceRow, port_bps: float) -> float:
    """Returns the bytes of the fullest burst of an interface that a port of this rate must hold; 0 if it needs no buffer."""
    bursts = ((integer_in(row, name), port_bps * ns / SECOND / 8) for name, ns in BURSTS.items())
    return max(0.0, *(size - sent for size, sent in bursts if size is not None))


def burst_sender(transfers: Transfers, time_ns: float) -> tuple[Transfer | None, str]:
    """Returns the transfer that sent half or more of the bytes of the time bins at that time, and a sentence."""
    sizes: list[tuple[float, Transfer]] = []
    for transfer in transfers.largest:
        bins = transfers.bins(transfer)
        place = bisect_right(bins.start_ns, time_ns) - 1
        if place >= 0 and time_ns < bins.start_ns[place] + bins.width_ns:
            sizes.append((bins.wire_bytes[place], transfer))
    most, sender = max(sizes, key=lambda pair: pair[0], default=(0.0, None))
    total = sum(size for size, _ in sizes)
    if sender is None or 2 * most < total:
        return None, " No single transfer sent most of it."
    width = show_duration(transfers.bins(sender).width_ns)
    return sender, f" {sender.name} sent {show_share(most, total)} of the bytes in the {width} around it."


def loses_packets(transfers: Transfers, capture: int) -> bool:
    """Returns whether a large transfer of an interface lost six packets or more."""
    return any(
        transfer.lost >= LOSSES_MIN and transfer.flow["first_capture"] == capture for transfer in transfers.largest
    )


def microburst_match(transfers: Transfers, row: InterfaceRow, buffers: dict[float, float], rates: Words) -> Match:
    """Returns the match of an interface, with the buffers that ports need by their bit/s."""
    needs = [
        f"{show_bytes(size)} of frames at {show_rate(port)}" for port, size in buffers.items() if size >= BUFFER_SHOWN
    ]
    finer = [
        f", {show_bytes(size)} in {show_duration(ns)}"
        for name, ns in list(BURSTS.items())[1:]
        if (size := integer_in(row, name))
    ]
    sender, who = burst_sender(transfers, row["burst_ns"] or 0)
    about: Words = {"flows": [sender.side], "filter": flow_filter(sender.flow)} if sender else {}
    burst = Cited(row["burst_frame"], row["burst_last_ns"], sender.row["flow"] if sender else None, row["capture"])
    return Match(
        interface=f"Interface {row['name']}" if row["name"] else "The interface",
        burst=show_bytes(row["burst_1ms_bytes"]),
        finer="".join(finer),
        ports=f"a port must buffer {', '.join(needs)}" if needs else "a port of 1 Gbit/s needs no buffer for them",
        who=who,
        figures="the burst ends at this frame",
        cited=[burst],
        impact=0.01 * (sender.traffic_share if sender else 1.0),
        **about,
        **rates,
    )


@finding(
    code="microburst",
    title="Microbursts",
    severity="info",
    computed="The fullest 1 ms, 100 µs and 10 µs of an interface (interfaces.burst_*_bytes, exact), compared with its mean "
    "rate. A port of rate R must hold the bytes of a window less those that it sends meanwhile. Reported if the rate in 1 ms "
    "is at least four times the mean. In addition, a port of 1, 10 or 40 Gbit/s that carries the mean must need a buffer of "
    "100 kB. Or the burst has 20 kB and a transfer lost at least six packets. The sender is that of most bytes in the time "
    "bins around the burst.",
    unknown="The rate of the port that the burst meets. Both directions of the interface count together. Interfaces with "
    "super-segments have no such finding, because their packets were not on the wire at that moment.",
    sentence="{interface} carried {burst} of frames in its fullest 1 ms[ ({peak}, {factor} times its mean of "
    "{usual})]{finer}[: {ports}].[{who}]",
    advice="Pace the sender (fq with SO_MAX_PACING_RATE, smaller writes), or give the slower port that much buffer: bursts "
    "overflow queues, averages do not.",
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
            rates = {"peak": show_rate(peak), "factor": f"{peak / usual:,.0f}", "usual": show_rate(usual)}
            yield microburst_match(transfers, row, buffers, rates)
