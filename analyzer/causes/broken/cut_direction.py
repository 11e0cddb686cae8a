# SPDX-License-Identifier: Apache-2.0
"""Connections on which one end's packets stop arriving, while those of the other end go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import grouped
from wiretale.analyzer.causes.unanswered.silent_hosts import any_filter
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import DirectionRow

REPEATS_MIN = 3  # of each end
FLOWS_MAX = 1000
EFFECTS = (
    *("lost-downstream", "retransmission-unlocated", "retransmission-cost", "timeout-stalls", "suspected-timeout"),
    *("spurious", "recovery-limited", "loss-pattern", "reset", "request-unanswered"),
)


def repeats_of(row: DirectionRow) -> int:
    """Returns how often a direction repeated data that the other one had acknowledged."""
    return row["spurious_retransmissions"] or 0


def is_unheard(row: DirectionRow) -> bool:
    """Returns whether a direction repeated its last few segments without an answer."""
    unacked, largest = row["unacked_bytes"] or 0, row["segment_max"] or 0
    return (row["timeouts"] or 0) >= REPEATS_MIN and 0 < unacked < largest * REPEATS_MIN


def cut_directions(case: Case) -> Iterator[tuple[DirectionRow, DirectionRow]]:
    """Yields the directions of which nothing arrives any more, each with the other one."""
    counts = case.transfers.counts["spurious_retransmissions"]
    numbers, explained = [number for number, count in counts if count >= REPEATS_MIN], case.flows_of()
    for number in numbers[:FLOWS_MAX]:
        if number // 2 in explained:
            continue
        cut, hearing = case.direction(number // 2, 1 - number % 2), case.direction(number // 2, number % 2)
        if is_unheard(cut) and (hearing["timeouts"] or 0) >= REPEATS_MIN and not hearing["zero_windows"]:
            yield cut, hearing


@cause(
    code="one-direction-cut",
    title="One direction of open connections is cut",
    sentence="Nothing that {source} sent on {count:connection} to {hosts} arrived any more{since}, while the packets of "
    "{several:~that host|those hosts} still came: {several:~it|they} repeated {repeats:segment} that it had acknowledged. A "
    "device after the capture point {probably}drops {what}.",
    advice="Capture on both sides of the next firewall, NAT or router: where do its packets end? {check}",
    shows="Both ends repeat in three timeouts or more. The last data of one is never acknowledged, and what the other repeats "
    "had been acknowledged by it before each repeat. If the DSCP of its last packets is not that of the first, which arrived, "
    "the mark may be why.",
    rivals={
        "random-loss": "nothing of one direction arrives from then on, and all of the other",
        "peer-gone": "packets of the other end still arrive",
        "damaged-packets": "a capture at the other end shows whether its packets arrive, and with right checksums",
        "tail-loss": "the other end repeats what was acknowledged, too",
    },
    unknown="Whether a device drops the packets, or the other host does (a wrong checksum or timestamp).",
    explains=EFFECTS,
)
def one_direction_cut(case: Case) -> Matches:
    for source, pairs in grouped(cut_directions(case), lambda pair: pair[0]["source"]).items():
        cut, heard = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        flows, hosts = [row["flow"] for row in cut], list(dict.fromkeys(row["destination"] for row in cut))
        repeats = sum(map(repeats_of, heard))
        yield Match(
            certainty="likely",
            place="after",
            flows=flows,
            failed=len(flows),
            waited_ns=waited_of(cut),
            frames=first_packets(case.transfers, flows[:FLOWS_MAX]),
            filter=any_filter([case.flow(flow) for flow in flows]),
            proof=f"{plural(repeats, 'repeat')} of what was acknowledged, and "
            f"{plural(sum(row['timeouts'] or 0 for row in cut), 'timeout')} of the end that nobody hears",
            excluded={"peer-gone": "its packets still arrive", "random-loss": "all of the other direction arrives"},
            undecided={"damaged-packets": f"Capture at {hosts[0]}: do its packets arrive, with right checksums?"},
            source=source,
            count=len(flows),
            hosts=named(hosts, 1),
            several=len(hosts),
            repeats=repeats,
            **words_of(cut, heard),
        )


def waited_of(rows: Sequence[DirectionRow]) -> float | None:
    """Returns the time in which these ends repeated their last data."""
    return max((row["rto_idle_ns"] or 0 for row in rows), default=0) or None


def words_of(cut: Sequence[DirectionRow], heard: Sequence[DirectionRow]) -> Words:
    """Returns since when nothing arrives, what is dropped, and what to look for: all packets, or those that are marked otherwise
    than the first, which were acknowledged."""
    marks = {(row["dscp"], row["last_dscp"]) for row in cut}
    first, last = next(iter(marks))
    if len(marks) == 1 and first != last:
        return {
            "since": f" since it marks its packets with DSCP {last} in place of {first}",
            "what": "packets with this mark",
            "check": f"Send without the mark (ssh `-o IPQoS=none`), and let the device pass or clear DSCP {last}.",
        }
    since = since_str(heard)
    return {
        "since": f" {since}" if since else "",
        "what": "its packets",
        "check": "One that lost track of the connection drops them as invalid (`nft` or `iptables` counters of `ct state "
        "invalid`, `conntrack -L`, offload of flows).",
    }


def since_str(heard: Sequence[DirectionRow]) -> str:
    """Returns that all began with the FIN of the other ends, which they repeat; else nothing."""
    return "once the other end had closed" if all((row["fins"] or 0) >= REPEATS_MIN for row in heard) else ""
