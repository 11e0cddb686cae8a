# SPDX-License-Identifier: Apache-2.0
"""The largest transfers of a trace: the factor that limited each, compared with the capacity of its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretale.analyzer import theory
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


def carried(transfer: Transfer) -> str:
    """Returns bytes, duration and rate: `5.79 MB unique payload in 1.2 s, goodput 38.6 Mbit/s`."""
    unique = transfer.row["unique_bytes"]
    size = (
        f"{show_bytes(transfer.row['payload_bytes'])} payload"
        if unique is None
        else f"{show_bytes(unique)} unique payload"
    )
    if transfer.duration_ns <= 0:
        return size
    return f"{size} in {show_duration(transfer.duration_ns)}, goodput {show_rate(transfer.row['goodput_bps'])}"


def limit_str(transfer: Transfer, name: str) -> str:
    """Returns the name of a limit; that of the network is more specific if losses or RTTs explain it."""
    if name == "limit_timeout_ns" and transfer.row["suspected_timeouts"] and not transfer.row["timeouts"]:
        return "suspected RTOs"
    if name == "limit_idle_ns" and held_share(transfer) > transfer.share(name) / 2:
        return "the sender's send buffer"
    if name != "limit_network_ns":
        return LIMITS[name]
    if limiting_loss(transfer):
        return "a congestion window that loss keeps small"
    return "the path's rate" if queue_grows(transfer) else LIMITS[name]


def accounted_str(transfer: Transfer) -> str:
    """Returns the base of the shares if it is clearly less than the duration; otherwise nothing."""
    if transfer.accounted_ns >= WHOLE_DURATION * transfer.duration_ns:
        return ""
    since = "its first packet if idle, else its 8th," if transfer.flow["exchange"] == "turns" else "its 8th packet"
    return f"shares of {show_duration(transfer.accounted_ns)}, from {since} to its last data"


def main_limit(transfer: Transfer) -> tuple[str | None, float | None]:
    """Returns the limit that took the most time, and its share."""
    if not any(transfer.limits.values()):
        return None, None
    name = max(transfer.limits, key=transfer.limits.__getitem__)
    return name, transfer.share(name)


LIMITS_MIN_PACKETS = 8  # of a direction (ACCOUNTING_MIN_PACKETS of the core)


def unknown_because(transfer: Transfer) -> str:
    """Returns why no limit of a TCP transfer is known."""
    if transfer.flow["one_way"]:
        return "only transfer direction was captured"
    if transfer.row["first_ns"] is None:
        return "the packets have no timestamps"
    if transfer.row["packets"] < LIMITS_MIN_PACKETS or transfer.row["timestamps"]:
        return "too few packets"
    return "without TCP timestamps, this capture point does not show the sender's view"


def turns_line(transfers: Transfers, transfer: Transfer) -> str:
    """Returns who took the most time of a flow with turns; nothing without turns."""
    turns = transfers.turns.of_flow(transfer.row["flow"])
    if turns is None or not turns.split.total_ns:
        return ""
    name, ns = max(turns.split._asdict().items(), key=lambda part: part[1])
    time = f"{show_duration(ns)} of {show_duration(turns.split.total_ns)}"
    return TOOK[name].format(time=time, requests=plural(len(turns.first_frames), "request"))


def datagrams_line(transfers: Transfers, transfer: Transfer) -> str:
    """Returns what is known of datagrams without numbers."""
    if transfer.flow["application"] == "quic" and (quic := transfers.quic(transfer.row["flow"])):
        return quic_line(quic, transfer)
    count = transfer.row["data_packets"] or 0
    return f"{plural(count, 'datagram')}; losses unknown, because {agreeing(count, 'it has', 'they have')} no numbers"


def headline(transfers: Transfers, transfer: Transfer) -> str:
    """Returns the limiting factor, or the losses if it is unknown, in one line."""
    name, share = main_limit(transfer)
    if name in (None, "limit_idle_ns") and (line := turns_line(transfers, transfer)):
        return line
    if name is not None and share is not None:
        return HELD[name].format(limit=limit_str(transfer, name), time=f"{show_share(share, 1)} of transfer time")
    row = transfer.row
    incomplete = row["incomplete_datagrams"]
    if row["blocks"] is not None:
        lost = row["blocks_lost"] or 0
        expected = row["blocks"] + lost
        if incomplete and incomplete >= lost:
            sent = plural(max(expected, incomplete), "numbered packet")
            return f"{incomplete:,} of {sent} lost fragments before the capture point"
        losses = f"{show_share(lost, expected)} lost" if lost else "none lost"
        line = f"{plural(expected, 'numbered packet')}, {losses} before the capture point"
        return f"{line}: more was offered than the path carries" if overload_of(transfers, transfer) else line
    if incomplete:
        return f"{plural(incomplete, 'datagram')} of {row['data_packets']:,} stayed incomplete"
    if transfer.flow["protocol"] == "tcp":
        return f"limit unknown: {unknown_because(transfer)}"
    return datagrams_line(transfers, transfer)


def link_maximum(transfer: Transfer, link_bps: int) -> float:
    """Returns the payload rate of a link with packets like those of this direction, which must have payload."""
    row, tags = transfer.row, (transfer.flow["path"] or "").count("vlan")
    if row["wire_bytes"] and transfer.flow["protocol"] != "tcp":
        return float(link_bps * transfer.payload_bytes / row["wire_bytes"])
    options = TIMESTAMPS if row["timestamps"] else 0
    framing = ("ethernet", "vlan", "qinq")[min(tags, 2)]
    link = theory.Link(link_bps, framing=framing, ip=transfer.flow["ip_version"], tcp_options=options)
    return theory.maximum(link, "tcp").max_payload_bps


def explain(trace: Trace, link_bps: int | None = None) -> list[Explained]:
    """Returns the largest transfers, largest first, then smaller ones that stalled the longest; no answering directions."""
    transfers, explained = trace.transfers, []
    for transfer in (*transfers.largest, *transfers.stalled):
        payload, other = transfer.payload_bytes, transfer.back["payload_bytes"] or 0
        if transfer.flow["protocol"] in TRANSPORTS and payload >= CARRIED_MIN * (payload + other):
            most = link_maximum(transfer, link_bps) if link_bps else None
            explained.append(Explained(transfer, headline(transfers, transfer), *main_limit(transfer), most))
    return explained


def left_out(trace: Trace) -> int:
    """Returns the number of flows that stalled and are not explained, because others stalled longer."""
    return trace.transfers.stalled_left
