# SPDX-License-Identifier: Apache-2.0
"""The largest transfers of a trace: the factor that limited each, compared with the capacity of its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretale.analyzer import theory
from wiretale.analyzer.findings.model import Row
from wiretale.analyzer.findings.queueing import overload_of
from wiretale.analyzer.findings.quic import headline as quic_line
from wiretale.analyzer.findings.throughput_limit import held_share, limiting_loss, queue_grows
from wiretale.analyzer.findings.transfers import LIMITS, Transfer, Transfers
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

CARRIED_MIN = 0.1  # of the flow's payload; a direction with less only answers
WHOLE_DURATION = 0.95  # of it; shares of a little less need no note
TIMESTAMPS = 12  # bytes of TCP options, RFC 7323 appendix A
#: headlines of flows with turns, by the part of Split that took the most time
TOOK = {
    "server": "the server took {time} to answer {requests}",
    "network": "the network delayed {requests} and the responses by {time}",
    "client": "the client paused for {time} between or within {requests}",
    "transfer": "the data of {requests} and the responses took {time}",
}
#: headlines of other transfers, by limit
HELD = {
    "limit_idle_ns": "waited for data from the sending application for {time}",
    "limit_delayed_ack_ns": "waited for delayed ACKs for {time}",
    "limit_window_ns": "waited for the receive window for {time}",
    "limit_recovery_ns": "recovered from loss for {time}",
    "limit_timeout_ns": "stalled in {limit} for {time}",
    "limit_slow_start_ns": "in slow start for {time}",
    "limit_network_ns": "limited by {limit} for {time}",
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
    if name == "limit_idle_ns" and held_share(one) > one.share(name) / 2:
        return "the sender's send buffer"
    if name != "limit_network_ns":
        return LIMITS[name]
    if limiting_loss(one):
        return "a congestion window that loss keeps small"
    return "the path's rate" if queue_grows(one) else LIMITS[name]


def accounted_str(one: Transfer) -> str:
    """Returns the base of the shares if it is clearly less than the duration; otherwise nothing."""
    if one.accounted_ns >= WHOLE_DURATION * one.duration_ns:
        return ""
    since = "its first packet if idle, else its 8th," if one.flow["exchange"] == "turns" else "its 8th packet"
    return f"shares of {show_duration(one.accounted_ns)}, from {since} to its last data"


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
    return TOOK[name].format(time=time, requests=plural(len(found.first_frames), "request"))


def datagrams_line(transfers: Transfers, one: Transfer) -> str:
    """Returns what is known of datagrams without numbers."""
    if one.flow["application"] == "quic" and (quic := transfers.quic(one.row["flow"])):
        return quic_line(quic, one)
    count = one.row["data_packets"] or 0
    return f"{plural(count, 'datagram')}; losses unknown, because {agreeing(count, 'it has', 'they have')} no numbers"


def headline(transfers: Transfers, one: Transfer) -> str:
    """Returns the limiting factor, or the losses if it is unknown, in one line."""
    name, share = main_limit(one)
    if name in (None, "limit_idle_ns") and (line := turns_line(transfers, one)):
        return line
    if name is not None and share is not None:
        return HELD[name].format(limit=limit_str(one, name), time=f"{show_share(share, 1)} of transfer time")
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
    return datagrams_line(transfers, one)


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


def numbered_findings(trace: Trace) -> list[Row]:
    """Returns the rows of the findings table with the `number` by which the page and `wiretale cut` name them, from 1."""
    return [{"number": number, **row} for number, row in enumerate(trace.findings.rows(), 1)]


def left_out(trace: Trace) -> int:
    """Returns the number of flows that stalled and are not explained, because others stalled longer."""
    return trace.transfers.stalled_left
