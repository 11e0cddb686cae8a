# SPDX-License-Identifier: Apache-2.0
"""Rules about transfers that share the path: unequal shares, a full link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, combinations
from typing import NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.model import Match, Matches, Words, finding, seconds
from wiretale.analyzer.findings.queueing import CAPPED_VARIATION, JITTER_WARNING_NS, bit_rate
from wiretale.analyzer.findings.shared.places import slowest_packet
from wiretale.analyzer.findings.throughput_limit import limiting_loss
from wiretale.analyzer.findings.transfers import Transfer, Transfers, mean, variation
from wiretale.analyzer.units import plural, show_duration, show_rate, show_share

CHAPTER = "Sharing the path"
FAIR = 0.8  # Jain's index
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
FILLED_SHARE = 0.5  # of the wire bytes: the others fill the queue
ROUNDED = 1e-3  # of a time bin: times are doubles
FIRST_TTLS = {64, 128, 255}  # with which systems send packets
LOSS_RESPONSES = ("loss", "timeout")
PATH_LIMITS = ("network", "slow_start")
WANTING_SHARE, LOSS_SHARE_MAX = 0.5, 0.1  # of transfer time
EQUALIZE = (
    "Check for different RTTs, late starts, losses or a UDP flow; a fair queue at the bottleneck (fq_codel, cake) equalizes "
    "them."
)
LOWER_UDP = "Lower the rate that the UDP applications offer, or use a faster link: UDP does not yield to TCP."


def own_rate(transfer: Transfer) -> float:
    """Returns bit/s on the wire over the whole duration."""
    return bit_rate(transfer.row["wire_bytes"], transfer.duration_ns)


def overlap_ns(a: Transfer, b: Transfer) -> int:
    """Returns the ns for which both lasted together, negative if they did not; 0 without timestamps."""
    spans = [(row["first_ns"], row["last_ns"]) for row in (a.row, b.row)]
    began = [first for first, _ in spans if first is not None]
    ended = [last for _, last in spans if last is not None]
    return min(ended) - max(began) if len(began) == len(ended) == 2 else 0


def common_span(transfers: Transfers, members: Sequence[Transfer]) -> tuple[float, float]:
    """Returns the time in which all sent data; a connection may wait between its handshake and its data."""
    spans = [transfers.bins(transfer).data_span() for transfer in members]
    first, last = [transfer.row["first_ns"] for transfer in members], [transfer.row["last_ns"] for transfer in members]
    return (
        max(chain((ns for ns in first if ns is not None), (start for start, _ in spans))),
        min(chain((ns for ns in last if ns is not None), (end for _, end in spans))),
    )


def by_hosts(members: Sequence[Transfer]) -> dict[tuple[str, str], list[Transfer]]:
    """Returns the transfers by source and destination address."""
    groups: dict[tuple[str, str], list[Transfer]] = {}
    for transfer in members:
        groups.setdefault((transfer.row["source"], transfer.row["destination"]), []).append(transfer)
    return groups


def companions(transfers: Transfers) -> list[Transfer]:
    """Returns the large transfers between two hosts that lasted together: they may share a bottleneck."""
    able = [
        transfer
        for transfer in transfers.largest
        if transfer.duration_ns and (transfer.row["payload_bytes"] or 0) >= SHARING_MIN and transfer.row["goodput_bps"]
    ]
    group = max(by_hosts(able).values(), key=len, default=[])
    pairs = combinations(group, 2)
    together = [(a, b) for a, b in pairs if overlap_ns(a, b) >= OVERLAP_MIN * min(a.duration_ns, b.duration_ns)]
    return list({id(transfer): transfer for pair in together for transfer in pair}.values())


def jain(rates: Sequence[float]) -> float:
    """Returns Jain's fairness index: 1 for equal rates, 1/n if one transfer has all."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def rates_together(transfers: Transfers, members: Sequence[Transfer]) -> tuple[list[float], float]:
    """Returns bit/s of each in the common time and its length in ns; over their own durations and 0 without."""
    start, end = common_span(transfers, members)
    sizes = [sum(transfers.bins(transfer).wire_bytes_within(start, end).values()) for transfer in members]
    if end <= start or not all(sizes):
        return [own_rate(transfer) for transfer in members], 0.0
    return [bit_rate(size, end - start) for size in sizes], end - start


class Deprived(NamedTuple):
    """The transfer that an equal share would help most."""

    transfer: Transfer
    rate_bps: float
    equal_bps: float

    def saved_ns(self, span_ns: float) -> float:
        """Returns the time by which an equal share shortens the common time of the transfers."""
        return span_ns * (1 - self.rate_bps / self.equal_bps)


def wants_more(transfer: Transfer) -> bool:
    """Returns whether the path limits a TCP transfer, and not its losses: it would use a larger share."""
    lossy = transfer.share(*LOSS_RESPONSES) > LOSS_SHARE_MAX or limiting_loss(transfer) is not None
    return transfer.flow["protocol"] == "tcp" and transfer.share(*PATH_LIMITS) >= WANTING_SHARE and not lossy


def deprived_of(rated: Sequence[tuple[float, Transfer]]) -> Deprived | None:
    """Returns the transfer with the least of an equal share, if two or more would use a larger one. The others keep theirs."""
    wanting = [pair for pair in rated if wants_more(pair[1])]
    if len(wanting) < 2:
        return None
    rate, least = min(wanting, key=lambda pair: pair[0])
    return Deprived(least, rate, sum(pair[0] for pair in wanting) / len(wanting))


def steady_udp(transfers: Transfers, members: Sequence[Transfer]) -> list[Transfer]:
    """Returns the UDP transfers whose rate does not depend on the others'; QUIC has congestion control, as TCP does."""
    start, end = common_span(transfers, members)
    udp = [
        transfer
        for transfer in members
        if transfer.flow["protocol"] == "udp" and transfer.flow["application"] != "quic"
    ]
    sizes = [list(transfers.bins(transfer).wire_bytes_within(start, end).values()) for transfer in udp]
    return [
        transfer for transfer, bin_sizes in zip(udp, sizes, strict=True) if variation(bin_sizes) <= CAPPED_VARIATION
    ]


def sharing_words(transfers: Transfers, rated: Sequence[tuple[float, Transfer]], span: float) -> Words:
    """Returns cost, severity, advice and the words about steady UDP and an equal share; `span` is 0 without a common time."""
    members, total_rate = [transfer for _, transfer in rated], sum(rate for rate, _ in rated)
    least = deprived_of(rated) if span else None
    udp = (
        steady_udp(transfers, members)
        if span and any(transfer.flow["protocol"] == "tcp" for transfer in members)
        else []
    )
    words: Words = {"severity": "info", "mixed": "", "equal": "", "advice": LOWER_UDP if udp else EQUALIZE}
    if udp:
        udp_share = show_share(sum(rate for rate, transfer in rated if transfer in udp), total_rate)
        words["mixed"] = f" {plural(len(udp), 'UDP transfer')} at a steady rate took {udp_share}, and TCP got the rest."
    if least:
        saved = least.saved_ns(span)
        equal = (
            f" With an equal share, flow {least.transfer.row['flow']} would save {show_duration(saved)} of that time."
        )
        words.update(severity="warning", advice=EQUALIZE, equal=equal, cost=seconds(saved))
    return words


@finding(
    code="unfair-share",
    without_packets="compares rates over the common time of several flows",
    title="Unequal shares of the path",
    severity="warning if a transfer that the path limits would be faster with an equal share, else info",
    unit="seconds",
    computed="Transfers of 1 MB or more between the same two hosts must overlap for half of the shorter duration. The finding "
    "compares their rates in the common time by Jain's index (sum x)^2 / (n sum x^2). Reported below 0.8. The path must limit "
    "at least two TCP transfers for half of their time, and loss recovery and RTOs may take at most 10%. Then the cost is the "
    "time that an equal share among these would save the slowest in the common time.",
    unknown="Whether they share a bottleneck at all, and the other traffic on it.",
    sentence="{count} transfers from {source} to {destination} shared {total} on the wire{time} unequally[: {shares}; Jain's "
    "index is {index} (1 is equal)].[{mixed}][{equal}]",
    advice="{advice}",
)
def unfair_share(transfers: Transfers) -> Matches:
    members = companions(transfers)
    if len(members) < 2:
        return
    rates, span = rates_together(transfers, members)
    index, total_rate = jain(rates), sum(rates)
    if index >= FAIR:
        return
    rated = list(zip(rates, members, strict=True))
    order = sorted(rated, key=lambda pair: -pair[0])[:SHARES_SHOWN]
    shares = [
        f"flow {transfer.row['flow']} ({transfer.flow['protocol']}) {show_share(rate, total_rate)}"
        for rate, transfer in order
    ]
    yield Match(
        count=len(members),
        source=members[0].row["source"],
        destination=members[0].row["destination"],
        total=show_rate(total_rate),
        time=f" for {show_duration(span)}" if span else "",
        shares=", ".join(shares),
        index=f"{index:.2f}",
        figures="; ".join(f"{transfer.name} {show_rate(rate)} on the wire" for rate, transfer in order),
        impact=sum(transfer.traffic_share for transfer in members) * (1 - index),
        cited=transfers.span(order[0][1].row["flow"]),
        flows=[transfer.side for _, transfer in sorted(rated, key=lambda pair: -pair[0])],
        **sharing_words(transfers, rated, span),
    )


def middle_mean(values: Sequence[float]) -> float:
    """Returns the mean of the middle half: pauses of the sender and late timestamps do not count."""
    quarter = len(values) // 4
    return mean(sorted(values)[quarter : len(values) - quarter])


def sums_together(
    transfers: Transfers, members: Sequence[Transfer], span: tuple[float, float]
) -> tuple[dict[int, float], float]:
    """Returns the wire bytes of all members in the time bins of a span, by number, and the width of a bin in ns: that of the
    widest ones, which contain several of the others. Without a common time there are none."""
    width = max(transfers.bins(transfer).width_ns for transfer in members)
    if span[0] >= span[1]:  # infinite without payload
        return {}, width
    first, end = (math.floor(ns / width + ROUNDED) for ns in span)
    sums = dict.fromkeys(range(first + 1, end), 0.0)
    for transfer in members:
        for at, size in transfers.bins(transfer).wire_bytes_within(*span).items():
            number = math.floor(at / width + ROUNDED)
            if number in sums:
                sums[number] += size
    return sums, width


def ethernet_speed(transfers: Transfers, members: Sequence[Transfer]) -> float | None:
    """Returns the speed of an Ethernet that these transfers fill together."""
    sums, width_ns = sums_together(transfers, members, common_span(transfers, members))
    sizes, alone = list(sums.values()), len(members) == 1
    if len(sizes) < FULL_BINS_MIN or (alone and variation(sizes) > LEVEL):
        return None
    rate = bit_rate(middle_mean(sizes) if alone else mean(sizes), width_ns)
    return next((speed for speed in SPEEDS if FULL_MIN * speed <= rate <= FULL_MAX * speed), None)


@finding(
    code="wire-full",
    without_packets="a mean rate over the whole transfer",
    title="Full link",
    severity="info",
    computed="Frames of all transfers (1% of the capture's bytes or more each) from one host to another in their common time, "
    "with preambles, checksums and gaps. Together they must reach 98.5% to 101% of an Ethernet speed (10 Mbit/s to 100 "
    "Gbit/s), in at least 20 time bins. For a single transfer it is the mean of the middle half of its time bins, which must "
    "be level.",
    unknown="Whether the link has that speed: a paced sender looks the same. Other frames on the link; frames that an "
    "offload merged count once.",
    sentence="{who} an Ethernet of {speed}[: {share} is payload ({payload}), {overhead} is headers, preambles, "
    "checksums and gaps].",
    advice="Use a faster link or fuller packets for more; the link is full, and nothing is wrong.",
)
def wire_full(transfers: Transfers) -> Matches:
    able = [
        transfer for transfer in transfers.largest if transfer.duration_ns and transfer.traffic_share >= FULL_SHARE_MIN
    ]
    for (source, destination), members in list(by_hosts(able).items())[:PAIRS_MAX]:
        speed = ethernet_speed(transfers, members)
        if speed is None:
            continue
        wire, payload = (
            sum(transfer.row[name] or 0 for transfer in members) for name in ("wire_bytes", "payload_bytes")
        )
        version = "ipv6" if ":" in source else "ip"
        who = f"{len(members)} transfers {source} → {destination} fill"
        selected = f"{version}.src == {source} && {version}.dst == {destination}"
        if len(members) == 1:
            who, selected = f"{members[0].name} fills", flow_filter(members[0].flow)
        yield Match(
            who=who,
            speed=show_rate(speed),
            share=show_share(payload, wire),
            payload=show_rate(speed * payload / wire),
            overhead=show_share(wire - payload, wire),
            figures="series: wire_bytes",
            filter=selected,
            impact=FULL_WEIGHT * sum(transfer.traffic_share for transfer in members),
            cited=transfers.span(members[0].row["flow"]),
            flows=[transfer.side for transfer in members],
        )


class Filled(NamedTuple):
    """The transfers that fill a queue in front of another, largest first, and their share of the wire bytes."""

    transfers: list[Transfer]
    share: float


def filled_by(transfers: Transfers, transfer: Transfer) -> Filled | None:
    """Returns the transfers of the same source or destination that have most of the wire while a transfer sends data, if
    the sum of all is level, as behind a queue that is never empty."""
    span = transfers.bins(transfer).data_span()
    sizes = {
        other.number: sum(transfers.bins(other).wire_bytes_within(*span).values())
        for other in transfers.largest
        if other.row["source"] == transfer.row["source"] or other.row["destination"] == transfer.row["destination"]
    }
    total = sum(sizes.values())
    members = [other for other in transfers.largest if sizes.get(other.number, 0.0) >= FULL_SHARE_MIN * max(total, 1.0)]
    further = [other for other in members if other is not transfer]
    share = sum(sizes[other.number] for other in further) / max(total, 1.0)
    if transfer not in members or share < FILLED_SHARE:
        return None
    level = list(sums_together(transfers, members, span)[0].values())
    if len(level) < FULL_BINS_MIN or variation(level) > LEVEL:
        return None
    return Filled(sorted(further, key=lambda other: -sizes[other.number]), share)


@finding(
    code="sender-queue",
    title="Queue at the sender",
    severity="warning",
    unit="seconds",
    delays=True,
    computed="Numbered packets that contain their sending time must wait at least 30 ms longer than the fastest of them "
    "before the capture point (directions.delay_variation_ns). Their TTL or hop limit must be that of a sender (64, 128 or "
    "255): no router is between. Meanwhile, other transfers of the same source or destination must have at least half of the "
    "wire bytes, with a level sum in at least 20 time bins. A queue that is filled by others is then before the capture "
    "point.",
    unknown="Whether the queue is in the sender's host or in the next switch; a clock that drifts. Whether the program "
    "offered more than it sent: if its send buffer is full, it must wait for this queue, and nothing is lost.",
    sentence="{name} sent {rate} on the wire[. Its packets waited up to {wait} longer than the fastest before the capture point, "
    "where no router is][ (TTL {ttl})][: {others} filled a queue of the sender's host, or of the next switch, with {share} of "
    "the wire bytes].",
    advice="On that host, give each flow its own queue (tc qdisc replace dev IF root fq_codel), or shorten the queue "
    "(txqueuelen). A full send buffer holds up the program: if the rate is below the offered one, packets are late or fewer, "
    "not lost on the network.",
)
def sender_queue(transfers: Transfers) -> Matches:
    for transfer in transfers.largest:
        wait, ttl = transfer.row["delay_variation_ns"], transfer.row["ttl_min"]
        blocks = transfer.row["blocks"] if transfer.flow["protocol"] == "udp" else None
        if not blocks or not transfer.duration_ns or wait is None or wait < JITTER_WARNING_NS:
            continue
        if ttl not in FIRST_TTLS or ttl != transfer.row["ttl_max"]:
            continue
        filled = filled_by(transfers, transfer)
        if filled:
            first, several = filled.transfers[0], plural(len(filled.transfers), "other transfer")
            yield transfer.match(
                rate=show_rate(own_rate(transfer)),
                wait=show_duration(wait),
                ttl=ttl,
                others=several if len(filled.transfers) > 1 else f"flow {first.row['flow']}",
                share=show_share(filled.share, 1),
                cost=seconds(wait),
                figures=f"{plural(blocks, 'numbered packet')}; series: wire_bytes",
                cited=slowest_packet(transfers, transfer),
                weight=1.0,
            )
