# SPDX-License-Identifier: Apache-2.0
"""Congestion marks (ECN) on all packets, which no queue sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.path.lossy import route_of
from wiretale.analyzer.units import show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer

PACKETS_MIN, ECHOED_LEAST, MARKED_LEAST = 30, 0.95, 0.98
STEADY_GROWTH, STEADY_NS = 0.15, 2_000_000  # of round trips: more is a queue
WINDOW_MOST = 8.0  # segments under way, on average: with more, the marks are not the limit


def echoed_share(transfer: Transfer) -> float:
    """Returns the share of a receiver's packets that echo a mark."""
    return (transfer.back["ecn_echo"] or 0) / max(transfer.back["packets"], 1)


def marked_share(transfer: Transfer) -> float:
    """Returns the share of a sender's data that came marked."""
    return transfer.row["ecn_ce"] / max(transfer.row["data_packets"] or 0, 1)


def segments_under_way(transfer: Transfer) -> float:
    """Returns the segments that were sent in a round trip on average; infinite if that is unknown."""
    size = (transfer.row["unique_bytes"] or 0) / transfer.data_segments
    trip_ns, rate = transfer.path_rtt_ns, transfer.row["goodput_bps"]
    return rate * trip_ns / 8e9 / size if trip_ns and rate and size else float("inf")


def is_steady(transfer: Transfer) -> bool:
    """Returns whether round trips show that no queue stands; at the receiver there are none, and nothing contradicts."""
    trips = transfer.round_trips
    return trips is None or trips.median - trips.least <= max(STEADY_GROWTH * trips.least, STEADY_NS)


class Marked(NamedTuple):
    """A transfer of which all packets are marked."""

    transfer: Transfer
    share: float  # of the packets
    came: bool  # marked at the capture point; else the receiver's echo shows it
    round_trip_ns: int | None  # that includes the device; None: not seen

    @property
    def where(self) -> str:
        """On which side of the capture point the device is."""
        return "before the capture point" if self.came else "after the capture point"

    @property
    def steady(self) -> str:
        """What shows that no queue stands."""
        return (
            "the first ones, too"
            if self.round_trip_ns is None
            else f"though round trips stay at {show_duration(self.round_trip_ns)}"
        )


def marked_of(transfer: Transfer) -> Marked | None:
    """Returns a transfer whose packets are all marked although no queue shows; None if they are not, or if it is not slow."""
    came = marked_share(transfer) >= MARKED_LEAST and transfer.row["ecn_ce"] >= PACKETS_MIN
    is_echoed = echoed_share(transfer) >= ECHOED_LEAST and (transfer.back["ecn_echo"] or 0) >= PACKETS_MIN
    if not (came or is_echoed) or transfer.lost or not is_steady(transfer):
        return None
    trips, share = transfer.round_trips, marked_share(transfer) if came else echoed_share(transfer)
    marked = Marked(transfer, share, came, trips.median if trips and not came else None)
    return marked if segments_under_way(transfer) <= WINDOW_MOST and transfer.times.get("network") else None


@cause(
    code="marks-on-all",
    title="All packets are marked as congested",
    sentence="{marks} {probably}marks all packets of {route} as congested (ECN CE, {share}), {steady}. The sender keeps {window} "
    "segments under way and reaches {rate}.",
    advice="Find the device {where} that sets CE (`tcpdump -v 'ip[1] & 3 = 3'` at each hop: a rewritten TOS byte, an AQM with a "
    "threshold of 0); until then `sysctl net.ipv4.tcp_ecn=0` at an end.",
    shows="At least 30 packets: 95% of the receiver's echo a mark, or 98% of the sender's data come marked. Meanwhile nothing "
    "is lost, round trips do not grow (by 15%, or 2 ms), and at most 8 segments are under way. A queue marks some packets, "
    "when it is there.",
    rivals={
        "bottleneck": "round trips stay: no queue stands",
        "policer": "nothing is lost",
        "app-limited": "ACKs release the data",
    },
    unknown="Which device. At the receiver, whether a queue stood: round trips do not show there.",
    explains=("congestion-marks", "path-limited", "slow-start"),
)
def marks_on_all(case: Case) -> Matches:
    for transfer in case.transfers.tcp():
        marked = marked_of(transfer)
        if marked is None:
            continue
        is_seen = marked.round_trip_ns is not None
        yield Match(
            certainty="proven" if is_seen else "likely",
            place="before" if marked.came else "after",
            flows=[transfer.side],
            waited_ns=transfer.times["network"],
            filter="ip.dsfield.ecn == 3 || tcp.flags.ece == 1",
            proof=f"{show_share(marked.share, 1)} of the packets, and nothing was lost",
            excluded={
                **({"bottleneck": "round trips do not grow: no queue stands"} if is_seen else {}),
                "policer": "nothing was lost",
            },
            undecided={} if is_seen else {"bottleneck": "a capture at the sender: whether round trips grow"},
            marks=f"A device {marked.where}",
            route=route_of(transfer),
            share=show_share(marked.share, 1),
            steady=marked.steady,
            window=f"{segments_under_way(transfer):.1f}",
            rate=show_rate(transfer.row["goodput_bps"] or 0),
            where=marked.where,
        )
