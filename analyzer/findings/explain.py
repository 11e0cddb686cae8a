# SPDX-License-Identifier: Apache-2.0
"""A trace transfer by transfer: what limited each, against what its link could carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wiretale.analyzer import theory
from wiretale.analyzer.findings.queueing import overload_of
from wiretale.analyzer.findings.throughput_limit import held_by_loss, queue_grows
from wiretale.analyzer.findings.transfers import LIMITS, Transfer, survey_of
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

CARRIED_LEAST = 0.1  # of the flow's payload: less is the answering direction
WHOLE_LIFE = 0.95  # of it: that shares are of a little less need not be said
TIMESTAMPS = 12  # bytes of TCP options, RFC 7323 appendix A
SECOND = 1e9
TRANSPORTS = {"tcp", "udp", "udplite", "sctp", "dccp"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Explained:
    """One direction of a flow, its headline and its findings."""

    transfer: Transfer
    headline: str
    limited_by: str | None  # a name of LIMITS
    share: float | None  # of its time
    maximum_bps: float | None  # payload that the link could carry

    @property
    def used(self) -> float | None:
        """The share of that maximum that was reached."""
        rate = self.transfer.row["goodput_bps"]
        return rate / self.maximum_bps if self.maximum_bps and rate is not None else None


def carried(one: Transfer) -> str:
    """How much, how long, how fast."""
    size = one.row["unique_bytes"] if one.row["unique_bytes"] is not None else one.row["payload_bytes"]
    if one.life_ns <= 0:
        return show_bytes(size)
    return f"{show_bytes(size)} in {show_duration(one.life_ns)}, {show_rate(one.row['goodput_bps'])}"


def limit_words(one: Transfer, name: str) -> str:
    """What a limit is called; the network's more exactly where losses or round trips tell."""
    if name == "limit_timeout_ns" and one.row["suspected_timeouts"] and not one.row["timeouts"]:
        return "timeouts, it seems,"
    if name != "limit_network_ns":
        return LIMITS[name]
    if held_by_loss(one):
        return "a congestion window that loss keeps small"
    return "the path's rate" if queue_grows(one) else LIMITS[name]


def parted_words(one: Transfer) -> str:
    """What the shares are of, where that is not about its life: connecting, first packets and end are no part of it."""
    if one.parted_ns >= WHOLE_LIFE * one.life_ns:
        return ""
    return f"shares of {show_duration(one.parted_ns)}, from its 8th packet to its last data"


def main_limit(one: Transfer) -> tuple[str | None, float | None]:
    """What took the most of its time, and its share."""
    if not any(one.limits.values()):
        return None, None
    name = max(one.limits, key=one.limits.__getitem__)
    return name, one.share(name)


def headline(trace: Trace, one: Transfer) -> str:
    """In one line, what limited it."""
    name, share = main_limit(one)
    if name is not None and share is not None:
        return f"limited by {limit_words(one, name)} for {show_share(share, 1)} of its time"
    row = one.row
    if row["blocks"] is not None:
        expected = row["blocks"] + (row["blocks_lost"] or 0)
        if row["incomplete_datagrams"] and row["incomplete_datagrams"] >= (row["blocks_lost"] or 0):
            sent = plural(max(expected, row["incomplete_datagrams"]), "numbered packet")
            return f"{row['incomplete_datagrams']:,} of {sent} lost fragments before this point"
        lost = f"{show_share(row['blocks_lost'], expected)} lost" if row["blocks_lost"] else "none lost"
        told = f"{plural(expected, 'numbered packet')}, {lost} before this point"
        return f"{told}: more was offered than the path carries" if overload_of(trace, one) else told
    if row["incomplete_datagrams"]:
        return f"{plural(row['incomplete_datagrams'], 'datagram')} of {row['data_packets']:,} never became complete"
    if one.flow["protocol"] == "tcp":
        return "too few packets, or one direction alone: what limited it is not known"
    count = row["data_packets"] or 0
    return f"{plural(count, 'datagram')}; nothing in {agreeing(count, 'it', 'them')} tells of losses"


def link_maximum(one: Transfer, link_bps: int) -> float:
    """Payload in bit/s that a link of this rate carries with packets as this direction's are."""
    row, tcp = one.row, one.flow["protocol"] == "tcp"
    framing = (
        "qinq"
        if (one.flow["path"] or "").count("vlan") > 1
        else "vlan"
        if "vlan" in (one.flow["path"] or "")
        else "ethernet"
    )
    if row["wire_bytes"] and not tcp:
        return float(link_bps * row["payload_bytes"] / row["wire_bytes"])
    options = TIMESTAMPS if row["timestamps"] else 0
    link = theory.Link(link_bps, framing=framing, ip=one.flow["ip_version"], tcp_options=options)
    return theory.maximum(link, "tcp").max_payload_bps


def worth_telling(transfers: Iterable[Transfer]) -> Iterator[Transfer]:
    """Not the direction of a flow that only answers."""
    for one in transfers:
        if one.flow["protocol"] not in TRANSPORTS:
            continue
        mine, other = one.row["payload_bytes"] or 0, one.back["payload_bytes"] or 0
        if mine >= CARRIED_LEAST * (mine + other):
            yield one


def explain(trace: Trace, link_bps: int | None = None) -> list[Explained]:
    """The largest transfers, the largest first, then smaller ones that waited the longest for something."""
    found, survey = [], survey_of(trace)
    for one in worth_telling((*survey.transfers, *survey.held)):
        name, share = main_limit(one)
        most = link_maximum(one, link_bps) if link_bps else None
        found.append(Explained(one, headline(trace, one), name, share, most))
    return found


def left_out(trace: Trace) -> int:
    """Flows that waited for something and are not explained, because so many others waited longer."""
    return survey_of(trace).held_left
