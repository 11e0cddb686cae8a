# SPDX-License-Identifier: Apache-2.0
"""Hosts that drop what reaches them: their own checksums show that the capture is theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.path.lossy import EFFECTS, Lossy, lossy_transfers, packets_of_losses, waited_of
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import DirectionRow

DROPS_MIN = 3
OFFLOADED_SHARE, VERIFIED_SHARE = 0.9, 0.5  # of the packets


def leaves_unsummed(row: DirectionRow) -> bool:
    """Returns whether the packets of a direction were captured before an adapter filled in their checksums."""
    return row["checksums_offloaded"] >= OFFLOADED_SHARE * row["packets"] > 0


def arrives_summed(row: DirectionRow) -> bool:
    """Returns whether the packets of a direction came with right checksums."""
    is_verified = row["checksums_verified"] >= VERIFIED_SHARE * row["packets"]
    return is_verified and not row["checksums_offloaded"] and not row["checksum_errors"]


def is_at_receiver(lossy: Lossy) -> bool:
    """Returns whether the capture was made on the machine that receives a transfer: there alone its own packets lack "
    "checksums."""
    transfer = lossy.transfer
    is_tcp = transfer.flow["protocol"] == "tcp" and lossy.place == "downstream"
    return is_tcp and leaves_unsummed(transfer.back) and arrives_summed(transfer.row)


@cause(
    code="host-drops",
    title="The host drops what reaches it",
    sentence="The network is not at fault: {count:segment} from {source} ({share} of {sent}) reached {host} intact, but it "
    "dropped {count:~it|them}, and acknowledged {count:~it|them} only when {count:~it|they} came again{price}.",
    advice="At {host}, read `nstat -az TcpExtTCPRcvQDrop TcpExtTCPBacklogDrop TcpExtPruneCalled` and the counters of its "
    "firewall (`nft list ruleset`); raise `net.ipv4.tcp_rmem`, or let the program read faster.",
    shows="The capture was made on the receiving machine: its own packets have no checksum yet (90%), and the sender's have a "
    "right one. At least three segments that arrived there were repeated, and neither an ACK nor a DSACK shows that they had "
    "been taken.",
    rivals={
        "random-loss": "the segments are in a capture of the receiving machine",
        "damaged-packets": "their checksums are right",
        "zero-window": "its window had room",
    },
    unknown="Whether its firewall, its socket buffer or a bridge to a virtual machine dropped them. At another capture point "
    "this is a loss after it.",
    explains=EFFECTS,
)
def host_drops(case: Case) -> Matches:
    for lossy in lossy_transfers(case):
        if lossy.lost >= DROPS_MIN and is_at_receiver(lossy) and not lossy.transfer.back["zero_windows"]:
            yield drops_match(lossy)


def drops_match(lossy: Lossy) -> Match:
    """Returns the match of a transfer that its receiver drops in part."""
    row, waited_ns = lossy.transfer.row, waited_of([lossy])
    return Match(
        certainty="proven",
        place="client" if lossy.transfer.flow["client"] == lossy.transfer.back["direction"] else "server",
        flows=[lossy.transfer.side],
        waited_ns=waited_ns or None,
        bytes=None if waited_ns else row["lost_downstream_bytes"],
        frames=packets_of_losses([lossy]),
        proof="the capture was made there: its own packets have no checksum yet, those that it receives have a right one",
        excluded={
            "random-loss": "the segments reached the capturing machine, which is the receiver",
            "damaged-packets": f"{plural(row['checksums_verified'], 'checksum')} right, none wrong",
            "zero-window": "its window was never closed",
        },
        count=lossy.lost,
        share=show_share(lossy.lost, lossy.transfer.sent_or_lost),
        sent=lossy.transfer.sent_or_lost,
        source=row["source"],
        host=row["destination"],
        price=f". Repairing that took {show_duration(waited_ns)} of {show_duration(lossy.transfer.waited_ns)}"
        if waited_ns
        else "",
    )
