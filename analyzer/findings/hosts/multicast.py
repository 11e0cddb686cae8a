# SPDX-License-Identifier: Apache-2.0
"""Rules about multicast: streams that stop because no router asks who wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import Match, Matches, finding, row_at, seconds
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import FlowRow, GroupRow

CHAPTER = "Multicast"
GROUPS_MAX = 10_000
#: after which a switch or router forgets a member: 260 s (RFC 3376 section 8.4), 255 to 320 s with other timers
MEMBERSHIP_NS = (255_000_000_000, 320_000_000_000)
STREAM_MIN = 100  # packets
SILENT_NS, SILENT_GAPS = 10_000_000_000, 50  # before the end of the capture; in mean times between packets


def stopped_after(group: GroupRow, flow: FlowRow, end_ns: int | None) -> int | None:
    """Returns the time from the last report to the end of a stream that stopped then, ns; None if it did not."""
    first, last, reported = flow["first_ns"], flow["last_ns"], group["last_ns"]
    if first is None or last is None or reported is None or end_ns is None or flow["packets"] < STREAM_MIN:
        return None
    queried = group["query_ns"] is not None and group["query_ns"] >= reported
    silent = end_ns - last >= max(SILENT_NS, SILENT_GAPS * (last - first) // flow["packets"])
    after = last - reported
    return after if silent and not queried and MEMBERSHIP_NS[0] <= after <= MEMBERSHIP_NS[1] else None


@finding(
    code="multicast-stopped",
    title="A multicast stream stopped without a query",
    unit="seconds",
    computed="A stream of 100 packets or more to a group that ends 255 to 320 s after the last membership report of the group, "
    "although the capture goes on, if no IGMP query came since (groups.query_ns). A switch that snoops forgets a member after "
    "260 s (RFC 3376 section 8.4). The cost is the time without the stream.",
    unknown="Whether the source ended by itself at that moment.",
    sentence="Multicast {group} stopped {after} after the last membership report: no IGMP query followed, so a switch forgets "
    "the member.",
    advice="Enable an IGMP querier in this VLAN (ip igmp snooping querier; on Linux bridges mcast_querier 1), or PIM on its "
    "router.",
)
def multicast_stopped(transfers: Transfers) -> Matches:
    groups = transfers.trace.groups.rows(0, GROUPS_MAX)
    if not groups:
        return
    flows, ends = transfers.trace.flows, transfers.trace.interfaces.column("last_ns")
    streams: dict[str, list[int]] = {group["address"]: [] for group in groups}
    for number, address in enumerate(flows.column("destination")):
        if address in streams:
            streams[address].append(number)
    for group in groups:
        for number in streams[group["address"]]:
            flow, end_ns = row_at(flows, number), ends[group["capture"]]
            after = stopped_after(group, flow, end_ns) if flow["first_capture"] == group["capture"] else None
            if after is None:
                continue
            yield Match(
                flows=[number],
                cited=transfers.span(number),
                frames=[Cited(group["last_frame"], group["last_ns"], None, group["capture"])],
                cost=seconds(end_ns - (flow["last_ns"] or 0)),
                waited_ns=end_ns - (flow["last_ns"] or 0),
                failed=1,
                filter=f"igmp || ip.dst == {group['address']}",
                group=group["address"],
                after=show_duration(after),
            )
