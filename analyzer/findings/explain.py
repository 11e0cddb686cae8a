# SPDX-License-Identifier: Apache-2.0
"""The largest transfers of a trace: the factor that limited each, compared with the capacity of its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.model import duration_of
from wiretale.analyzer.findings.queueing import overload_of
from wiretale.analyzer.findings.throughput_limit import limiting_loss, queue_grows
from wiretale.analyzer.findings.transfers import TIMES, Transfer, Transfers
from wiretale.analyzer.theory import capacity as theory
from wiretale.analyzer.units import agreeing, plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import HandshakeRow
    from wiretale.analyzer.trace import Trace

CARRIED_MIN = 0.1  # of the flow's payload; a direction with less only answers
WHOLE_DURATION = 0.95  # of it; shares of a little less need no note

#: headlines of flows with turns, by the part of Split that took the most time
TOOK = {
    "server": "the server took {time} to answer {requests}",
    "network": "the network delayed {requests} and the responses by {time}",
    "client": "the client paused for {time} between or within {requests}",
    "transfer": "the data of {requests} and the responses took {time}",
    "delayed": "delayed ACKs held up {requests} or the responses for {time}",
}
OF_TURNS = ("pause", "connecting", "waiting")  # of the time of a flow with turns, what its split says better
#: headlines of other transfers, by limit
HELD = {
    "pause": "waited for data from the sending application for {time}",
    "send_buffer": "waited for room in the send buffer for {time}",
    "delayed_ack": "waited for delayed ACKs for {time}",
    "window": "waited for the receive window for {time}",
    "loss": "recovered from loss for {time}",
    "timeout": "stalled in {limit} for {time}",
    "slow_start": "in slow start for {time}",
    "network": "limited by {limit} for {time}",
    "connecting": "waited for the connection for {time}",
    "waiting": "waited for the other end for {time}",
}
TRANSPORTS = {"tcp", "udp", "udplite", "sctp", "dccp"}


@dataclass(frozen=True)
class Explained:
    """One direction of a flow and the factor that limited it.

    >>> import wiretale
    >>> transfer = wiretale.explain("sample_pcaps/tcp_losses.pcap", link="100M").transfers[0]
    >>> transfer.limited_by, round(transfer.used, 3)
    ('timeout', 0.048)
    """

    transfer: Transfer
    headline: str
    limited_by: str | None  # a name of TIMES
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
    if name == "timeout" and transfer.row["suspected_timeouts"] and not transfer.row["timeouts"]:
        return "suspected RTOs"
    if name != "network":
        return TIMES[name]
    if limiting_loss(transfer):
        return "a congestion window that loss keeps small"
    return "the path's rate" if queue_grows(transfer) else TIMES[name]


def waited_str(transfer: Transfer) -> str:
    """Returns the base of the shares if it is clearly less than the life of the flow; otherwise nothing."""
    if transfer.waited_ns >= WHOLE_DURATION * (duration_of(transfer.flow) or 0):
        return ""
    return f"shares of {show_duration(transfer.waited_ns)}: nobody waited in the rest"


def main_limit(transfer: Transfer) -> tuple[str | None, float | None]:
    """Returns the limit that took the most time, and its share; None if that is not known."""
    name = max(transfer.times, key=transfer.times.__getitem__, default="unknown")
    return (None, None) if name == "unknown" or not transfer.times[name] else (name, transfer.share(name))


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
    flow = transfer.row["flow"]
    turns, split = transfers.turns.of_flow(flow), transfers.turns.split_of(flow)
    if turns is None or split is None:
        return ""
    name, ns = max(split._asdict().items(), key=lambda part: part[1])
    held_ns = sum(row["time_delayed_ack_ns"] or 0 for row in (transfer.row, transfer.back))
    if 2 * held_ns > ns and name in ("server", "client"):
        name, ns = "delayed", held_ns
    time = f"{show_duration(ns)} of {show_duration(split.total_ns)}"
    return TOOK[name].format(time=time, requests=plural(len(turns.first_frames), "request"))


def quic_line(row: HandshakeRow, transfer: Transfer) -> str:
    """Returns the round trips of a QUIC connection: `round trip 20 ms (handshake), 21 ms (spin bit)`, if known."""
    server, client, spin = row["server_rtt_ns"], row["client_rtt_ns"], row["spin_rtt_ns"]
    trip = ""
    if server is not None and client is not None:
        trip = f"; round trip {show_duration(server + client)} (handshake)"
    elif server is not None:
        trip = f"; round trip to the server {show_duration(server)} (handshake)"
    elif client is not None:
        trip = f"; round trip to the client {show_duration(client)} (handshake)"
    if spin is not None:
        trip += f", {show_duration(spin)} (spin bit)"
    datagrams = plural(transfer.row["data_packets"] or 0, "QUIC datagram")
    return f"{datagrams}{trip}; losses unknown, because QUIC is encrypted"


def datagrams_line(transfers: Transfers, transfer: Transfer) -> str:
    """Returns what is known of datagrams without numbers."""
    if transfer.flow["application"] == "quic" and (quic := transfers.quic(transfer.row["flow"])):
        return quic_line(quic, transfer)
    count = transfer.row["data_packets"] or 0
    return f"{plural(count, 'datagram')}; losses unknown, because {agreeing(count, 'it has', 'they have')} no numbers"


def headline(transfers: Transfers, transfer: Transfer) -> str:
    """Returns the limiting factor, or the losses if it is unknown, in one line."""
    name, share = main_limit(transfer)
    if (not share or share <= transfer.share(*OF_TURNS)) and (line := turns_line(transfers, transfer)):
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
    options = theory.TIMESTAMPS if row["timestamps"] else 0
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
