# SPDX-License-Identifier: Apache-2.0
"""The largest transfers of a trace: the factor that limited each, compared with the capacity of its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretale.analyzer import theory
from wiretale.analyzer.findings.queueing import overload_of
from wiretale.analyzer.findings.throughput_limit import limiting_loss, queue_grows
from wiretale.analyzer.findings.transfers import LIMITS, Transfer, Transfers
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

CARRIED_MIN = 0.1  # of the flow's payload; a direction with less only answers
WHOLE_DURATION = 0.95  # of it; shares of a little less need no note
TIMESTAMPS = 12  # bytes of TCP options, RFC 7323 appendix A
#: headlines of flows with turns, by the part of Split that took the most time
WAITS = {
    "server": "waited for the server",
    "network": "waited for the network",
    "client": "waited for the client's next request",
    "transfer": "transferred requests and responses",
}
TRANSPORTS = {"tcp", "udp", "udplite", "sctp", "dccp"}


@dataclass(frozen=True)
class Explained:
    """One direction of a flow and the factor that limited it."""

    transfer: Transfer
    headline: str
    limited_by: str | None  # a name of LIMITS
    share: float | None  # of transfer time
    maximum_bps: float | None  # payload that the link could carry

    @property
    def used(self) -> float | None:
        """The share of that maximum that was reached."""
        rate = self.transfer.row["goodput_bps"]
        return rate / self.maximum_bps if self.maximum_bps and rate is not None else None


def carried(one: Transfer) -> str:
    """Returns bytes, duration and rate: `5.79 MB unique payload in 1.2 s, goodput 38.6 Mbit/s`."""
    unique = one.row["unique_bytes"]
    size = (
        f"{show_bytes(one.row['payload_bytes'])} payload" if unique is None else f"{show_bytes(unique)} unique payload"
    )
    if one.duration_ns <= 0:
        return size
    return f"{size} in {show_duration(one.duration_ns)}, goodput {show_rate(one.row['goodput_bps'])}"


def limit_str(one: Transfer, name: str) -> str:
    """Returns the name of a limit; that of the network is more specific if losses or RTTs explain it."""
    if name == "limit_timeout_ns" and one.row["suspected_timeouts"] and not one.row["timeouts"]:
        return "suspected RTOs"
    if name != "limit_network_ns":
        return LIMITS[name]
    if limiting_loss(one):
        return "a congestion window that loss keeps small"
    return "the path's rate" if queue_grows(one) else LIMITS[name]


def accounted_str(one: Transfer) -> str:
    """Returns the base of the shares if it is clearly less than the duration; otherwise nothing."""
    if one.accounted_ns >= WHOLE_DURATION * one.duration_ns:
        return ""
    return f"shares of {show_duration(one.accounted_ns)}, from its 8th packet to its last data"


def main_limit(one: Transfer) -> tuple[str | None, float | None]:
    """Returns the limit that took the most time, and its share."""
    if not any(one.limits.values()):
        return None, None
    name = max(one.limits, key=one.limits.__getitem__)
    return name, one.share(name)


LIMITS_MIN_PACKETS = 8  # of a direction (ACCOUNTING_MIN_PACKETS of the core)


def unknown_because(one: Transfer) -> str:
    """Returns why no limit of a TCP transfer is known."""
    if one.flow["one_way"]:
        return "only one direction was captured"
    if one.row["first_ns"] is None:
        return "the packets have no timestamps"
    if one.row["packets"] < LIMITS_MIN_PACKETS or one.row["timestamps"]:
        return "too few packets"
    return "without TCP timestamps, this capture point does not show the sender's view"


def turns_line(transfers: Transfers, one: Transfer) -> str:
    """Returns who took the most time of a flow with turns; nothing without turns."""
    found = transfers.turns.of_flow(one.row["flow"])
    if found is None or not found.split.whole:
        return ""
    name, ns = max(found.split._asdict().items(), key=lambda part: part[1])
    time = f"{show_duration(ns)} of {show_duration(found.split.whole)}"
    return f"{WAITS[name]} for {time} in {plural(len(found.first_frames), 'turn')}"


def headline(transfers: Transfers, one: Transfer) -> str:
    """Returns the limiting factor, or the losses if it is unknown, in one line."""
    name, share = main_limit(one)
    if name in (None, "limit_idle_ns") and (line := turns_line(transfers, one)):
        return line
    if name is not None and share is not None:
        return f"limited by {limit_str(one, name)} for {show_share(share, 1)} of transfer time"
    row = one.row
    incomplete = row["incomplete_datagrams"]
    if row["blocks"] is not None:
        lost = row["blocks_lost"] or 0
        expected = row["blocks"] + lost
        if incomplete and incomplete >= lost:
            sent = plural(max(expected, incomplete), "numbered packet")
            return f"{incomplete:,} of {sent} lost fragments before the capture point"
        losses = f"{show_share(lost, expected)} lost" if lost else "none lost"
        line = f"{plural(expected, 'numbered packet')}, {losses} before the capture point"
        return f"{line}: more was offered than the path carries" if overload_of(transfers, one) else line
    if incomplete:
        return f"{plural(incomplete, 'datagram')} of {row['data_packets']:,} stayed incomplete"
    if one.flow["protocol"] == "tcp":
        return f"limit unknown: {unknown_because(one)}"
    count = row["data_packets"] or 0
    return f"{plural(count, 'datagram')}; losses unknown, because {agreeing(count, 'it has', 'they have')} no numbers"


def link_maximum(one: Transfer, link_bps: int) -> float:
    """Returns the payload rate of a link with packets like those of this direction, which must have payload."""
    row, tags = one.row, (one.flow["path"] or "").count("vlan")
    if row["wire_bytes"] and one.flow["protocol"] != "tcp":
        return float(link_bps * row["payload_bytes"] / row["wire_bytes"])
    options = TIMESTAMPS if row["timestamps"] else 0
    framing = ("ethernet", "vlan", "qinq")[min(tags, 2)]
    link = theory.Link(link_bps, framing=framing, ip=one.flow["ip_version"], tcp_options=options)
    return theory.maximum(link, "tcp").max_payload_bps


def explain(trace: Trace, link_bps: int | None = None) -> list[Explained]:
    """Returns the largest transfers, largest first, then smaller ones that stalled the longest; no answering directions."""
    transfers, found = trace.transfers, []
    for one in (*transfers.largest, *transfers.stalled):
        mine, other = one.row["payload_bytes"] or 0, one.back["payload_bytes"] or 0
        if one.flow["protocol"] in TRANSPORTS and mine >= CARRIED_MIN * (mine + other):
            most = link_maximum(one, link_bps) if link_bps else None
            found.append(Explained(one, headline(transfers, one), *main_limit(one), most))
    return found


def left_out(trace: Trace) -> int:
    """Returns the number of flows that stalled and are not explained, because others stalled longer."""
    return trace.transfers.stalled_left
