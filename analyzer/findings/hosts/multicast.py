# SPDX-License-Identifier: Apache-2.0
"""Rules about multicast: streams that stop because no router asks who wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import Match, Matches, finding, row_at, seconds
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import FlowRow, GroupRow

CHAPTER = "Multicast"
GROUPS_MAX, QUERIERS_MAX = 10_000, 16
ALL_HOSTS = "224.0.0.1"  # of general queries (RFC 3376 section 4.1.12)
NO_QUERIER = (
    "Enable an IGMP querier in this VLAN (ip igmp snooping querier; on Linux bridges mcast_querier 1), or PIM on its "
    "router."
)
NO_REPORT = (
    "Find out why the member does not answer the queries: a filter of multicast in its driver or firewall, a query of another "
    "version or from 0.0.0.0, or a program that has left the group."
)
#: after which a switch or router forgets a member: 260 s (RFC 3376 section 8.4), 255 to 320 s with other timers
MEMBERSHIP_NS = (255_000_000_000, 320_000_000_000)
STREAM_MIN = 100  # packets
RESUMED_NS = 5_000_000_000  # between a report and the packet with which a stream goes on
SILENT_NS, SILENT_GAPS = 10_000_000_000, 50  # before the end of the capture; in mean times between packets


class Queries(NamedTuple):
    """The general queries of one querier."""

    first_ns: int
    last_ns: int
    packets: int

    def come_between(self, since_ns: int, until_ns: int) -> bool:
        """Returns whether one of them came in that time, if they came at even intervals."""
        every_ns = (self.last_ns - self.first_ns) // max(self.packets - 1, 1)
        is_within = since_ns <= self.first_ns <= until_ns or since_ns <= self.last_ns <= until_ns
        return is_within or (self.first_ns < since_ns and self.last_ns > until_ns and every_ns <= until_ns - since_ns)


def queries_of(transfers: Transfers) -> list[Queries]:
    """Returns the general queries of each querier."""
    flows = transfers.trace.flows
    numbers = [number for number, address in enumerate(flows.column("destination")) if address == ALL_HOSTS]
    rows = [row_at(flows, number) for number in numbers[:QUERIERS_MAX]]
    return [
        Queries(row["first_ns"], row["last_ns"], row["packets"])
        for row in rows
        if row["protocol"] == "igmp" and row["first_ns"] is not None and row["last_ns"] is not None
    ]


def was_asked(group: GroupRow, flow: FlowRow, queries: Sequence[Queries]) -> bool | None:
    """Returns whether queries came between the last report of a group and the end of its stream; None if that is unknown."""
    reported, ended = group["last_ns"] or 0, flow["last_ns"] or 0
    if group["query_ns"] is None or group["query_ns"] < reported:
        return False
    return True if any(each.come_between(reported, ended) for each in queries) else None


def unanswered_queries(transfers: Transfers, number: int) -> bool:
    """Returns whether queries about the group of a stream that stopped came, which nobody answered."""
    flow, queries = row_at(transfers.trace.flows, number), queries_of(transfers)
    groups = (group for group in transfers.trace.groups.rows(0, GROUPS_MAX) if group["address"] == flow["destination"])
    return any(was_asked(group, flow, queries) for group in groups)


def stopped_after(group: GroupRow, flow: FlowRow, end_ns: int | None) -> int | None:
    """Returns the time from the last report to the end of a stream that stopped then, ns; None if it did not."""
    first, last, reported = flow["first_ns"], flow["last_ns"], group["last_ns"]
    if first is None or last is None or reported is None or end_ns is None or flow["packets"] < STREAM_MIN:
        return None
    silent = end_ns - last >= max(SILENT_NS, SILENT_GAPS * (last - first) // flow["packets"])
    after = last - reported
    return after if silent and MEMBERSHIP_NS[0] <= after <= MEMBERSHIP_NS[1] else None


def paused_after(group: GroupRow, flow: FlowRow) -> int | None:
    """Returns the time from the first report to the pause of a stream that went on with the last report, ns. None if none did, or
    queries came."""
    pause, until, first, last = flow["pause_ns"], flow["pause_until_ns"], group["first_ns"], group["last_ns"]
    if group["query_ns"] is not None or not pause or until is None or first is None or last is None:
        return None
    after, is_long = until - pause - first, pause >= SILENT_NS and flow["packets"] >= STREAM_MIN
    fits = MEMBERSHIP_NS[0] <= after <= MEMBERSHIP_NS[1] and abs(until - last) <= RESUMED_NS
    return after if fits and is_long else None


class Gap(NamedTuple):
    """The time in which a stream is missing, because its membership ended."""

    after_ns: int  # from the report to its begin
    lasted_ns: int
    is_asked: bool  # queries came that nobody answered
    is_over: bool  # the stream went on with another report


def gap_of(group: GroupRow, flow: FlowRow, end_ns: int | None, queries: Sequence[Queries]) -> Gap | None:
    """Returns the gap of a stream to a group; None without one, or if it is unknown whether queries came."""
    after = stopped_after(group, flow, end_ns)
    if after is not None:
        is_asked = was_asked(group, flow, queries)
        return None if is_asked is None else Gap(after, (end_ns or 0) - (flow["last_ns"] or 0), is_asked, False)
    paused = paused_after(group, flow)
    return None if paused is None else Gap(paused, flow["pause_ns"] or 0, False, True)


@finding(
    code="multicast-stopped",
    title="A multicast stream stopped without a report",
    unit="seconds",
    computed="A stream of at least 100 packets to a group ends 255 to 320 s after the group's last membership report, "
    "although the capture goes on. No IGMP query came since (groups.query_ns), or nobody answered those that came. A switch "
    "that snoops forgets a member after 260 s (RFC 3376 section 8.4). Or, without any query, the stream pauses so long after "
    "the first report and goes on with the last one. The cost is the time without the stream.",
    unknown="Whether the source ended by itself at that moment.",
    sentence="Multicast {group} stopped {after} after the last membership report: {reason}, so a switch forgets the "
    "member{again}.",
    advice="{advice}",
)
def multicast_stopped(transfers: Transfers) -> Matches:
    groups = transfers.trace.groups.rows(0, GROUPS_MAX)
    if not groups:
        return
    queries = queries_of(transfers)
    flows, ends = transfers.trace.flows, transfers.trace.interfaces.column("last_ns")
    streams: dict[str, list[int]] = {group["address"]: [] for group in groups}
    for number, address in enumerate(flows.column("destination")):
        if address in streams:
            streams[address].append(number)
    for group in groups:
        for number in streams[group["address"]]:
            flow, end_ns = row_at(flows, number), ends[group["capture"]]
            gap = gap_of(group, flow, end_ns, queries) if flow["first_capture"] == group["capture"] else None
            if gap is None:
                continue
            yield Match(
                flows=[number],
                cited=transfers.span(number),
                frames=[Cited(group["last_frame"], group["last_ns"], None, group["capture"])],
                cost=seconds(gap.lasted_ns),
                waited_ns=gap.lasted_ns,
                failed=1,
                filter=f"igmp || ip.dst == {group['address']}",
                group=group["address"],
                after=show_duration(gap.after_ns),
                reason="nobody answered the IGMP queries since" if gap.is_asked else "no IGMP query followed",
                again=f" (until the next report, {show_duration(gap.lasted_ns)} later)" if gap.is_over else "",
                advice=NO_REPORT if gap.is_asked else NO_QUERIER,
            )
