# SPDX-License-Identifier: Apache-2.0
"""Rules about reordering, gaps that reordering or a loss may explain, and duplicates."""

from __future__ import annotations

from wiretale.analyzer.findings.counts.count_rule import CountRule, packet_bytes

CHAPTER = "Reordering and duplicates"

reordered = CountRule(
    code="reordered",
    title="Reordered before the capture point",
    column="out_of_order",
    events=("out_of_order",),
    computed="Segments that fill a gap and were sent before the segment that opened it, by timestamps, IPv4 IDs or "
    "time (directions.out_of_order).",
    unknown="Reordering after the capture point.",
    sentence="{name}: {amount}[{amount_share}] {count:~was|were} reordered before the capture point.",
    summary="had segments reordered",
    advice="Balance load per flow between sender and capture point; reordering by three segments or more reduces "
    "throughput.",
)

ambiguous_gap = CountRule(
    code="ambiguous-gap",
    title="Gaps from loss or reordering",
    column="ambiguous",
    events=("ambiguous",),
    computed="Gaps filled after a quarter to a whole RTT, without timestamps or IPv4 IDs that decide.",
    unknown="Whether the segments were lost or reordered.",
    sentence="{name}: {count:gap was|gaps were} filled by {count:~a segment that was|segments that were} either "
    "reordered or lost before the capture point and retransmitted[. Which of the two cannot be determined from this "
    "capture because it has no TCP timestamps or usable IPv4 IDs].",
    summary="had gaps from loss or reordering",
    advice="Enable TCP timestamps, or capture at the sender.",
)

network_duplicates = CountRule(
    code="network-duplicates",
    title="Duplicates made by the network",
    column="network_duplicates",
    events=("network_duplicate",),
    unit="packets",
    computed="The same packet (IPv4 ID, sequence number, timestamps, checksum) again, after its ID or timestamp has "
    "passed, or sooner than the sender could have detected a loss.",
    unknown="Duplicates of UDP packets without numbers.",
    sentence="{name}: the network duplicated {count:packet}.",
    summary="had packets duplicated by the network",
    advice="Check for a loop, a flooding bridge, or a failover pair of which both forward.",
    saves=packet_bytes,
)

unknown_duplicates = CountRule(
    code="unknown-duplicates",
    title="Duplicates of unknown origin",
    column="unknown_duplicates",
    events=("unknown_duplicate",),
    unit="packets",
    severity="info",
    computed="The same packet twice within 1 ms, without a sign (ports, TTL, VLAN, reports of the receiver) of its "
    "origin.",
    unknown="Whether the network or the capture made the duplicate.",
    sentence="{name}: {count:packet was|packets were} captured twice within 1 ms[. Whether the network or the capture "
    "duplicated {count:~it|them} cannot be determined from this capture because neither TTL, VLAN nor SACK shows it].",
    summary="had packets captured twice",
    advice="Capture at the receiver{sack}.",
    words=lambda row, count: {"sack": ", or enable SACK" if row["sack_permitted"] is False else ""},
)

capture_reordered = CountRule(
    code="capture-reordered",
    title="Captured after its ACK",
    column="capture_reordered",
    events=("captured_out_of_order",),
    severity="info",
    acknowledged=True,
    computed="Data that directly follows the ACK that covers it: the capture wrote its queues in the wrong order.",
    unknown="The true order.",
    sentence="{name}: the capture stored {count:segment} after {count:~its ACK|their ACKs}[. This is not network "
    "reordering].",
    summary="had segments stored after their ACKs",
    advice="Run reordercap on the file; capture with one queue or with hardware timestamps.",
)


sack_gaps = CountRule(
    code="sack-gaps",
    title="Gaps reported by SACK",
    column="sack_gaps",
    events=("sack_gap",),
    unit="gaps",
    acknowledged=True,
    computed="SACK blocks of the receiver leave gaps, and the data was not captured.",
    unknown="Whether the gaps were losses or reordering.",
    sentence="{name}: the receiver reported {count:gap} by SACK[. Whether the data was lost or reordered cannot be "
    "determined from this capture because it does not contain that direction].",
    summary="had gaps reported by SACK",
    advice="Capture the other direction.",
)
