# SPDX-License-Identifier: Apache-2.0
"""Times in which nothing came from a host: the path was down, or stood still and delivered everything afterwards."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.path.loss_moments import Moment, moments_of
from wiretale.analyzer.causes.path.lossy import EFFECTS
from wiretale.analyzer.findings.shared.places import waits_of
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS, Transfer
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

SILENCE_MIN_NS, SILENCE_RTTS = 300_000_000, 4.0
BINS_MIN = 3.0  # bins of a series
FLOWS_MAX = 200
RTT_SHARE = 0.7  # of the silence: a round trip as long as it
LOST_MIN = 3  # segments
MIN_RTO_NS = 200_000_000
SHARED_NS = 500_000_000  # of several connections
LOSSY_SHARE = 0.05  # of the segments at other times: such a path is never up
LONG_NS, MANY_LOST = 1_000_000_000, 20  # at a receiver, which does not see the timers
TIMERS_MIN = 2  # that expired without success, one after the other: a flight that is lost once ends with the first
SENT_MIN, STALL_MOST_NS = 4, 30_000_000_000  # packets that were under way
SHOWN_RTTS = 4.0  # after a silence, until what was lost upstream in it shows
SPREAD = 0.25  # of a period


class Silence(NamedTuple):
    """A time without packets from a host to another, ns since Transfers.base_ns, and the transfers that waited for them."""

    start_ns: float
    end_ns: float
    hosts: tuple[str, str]  # silent one, other one
    lost: int  # segments of both directions that were due in it
    repaired: int  # segments that a retransmission in it, or behind it, shows as lost
    needless: int  # retransmissions in it, or behind it, of data that had arrived
    waiting: tuple[Transfer, ...]  # whose timers expired, or whose round trip was as long as it
    has_slow: bool  # a round trip was as long as it
    timers: int  # times in it at which timers repeated data
    sent: int  # packets with data, of the other host, shortly before it and in it

    @property
    def ns(self) -> float:
        """Its length."""
        return self.end_ns - self.start_ns


def timers_within(case: Case, transfer: Transfer, start_ns: float, end_ns: float) -> bool:
    """Returns whether a wait for a timer of a transfer overlaps a time by half of it or more."""
    base = case.transfers.base_ns
    for wait in waits_of(case.transfers, transfer.row, "timeout"):
        since, until = wait.before and wait.before.time_ns, wait.after.time_ns
        if since is not None and until is not None:
            common = min(until - base, end_ns) - max(since - base, start_ns)
            if common >= (until - since) / 2 or 2 * common >= end_ns - start_ns:
                return True
    return False


def by_hosts(case: Case) -> dict[tuple[str, str], list[Transfer]]:
    """Returns the TCP transfers by their hosts, in alphabetical order; those in which nobody waited for a timer are among them,
    because they show that the path was up."""
    groups: dict[tuple[str, str], list[Transfer]] = defaultdict(list)
    for transfer in case.transfers.limited()[:FLOWS_MAX]:
        ends = sorted((transfer.row["source"], transfer.row["destination"]))
        groups[ends[0], ends[1]].append(transfer)
    return {
        hosts: members
        for hosts, members in groups.items()
        if any(
            each.row["timeouts"] or each.row["rto_idle_ns"] or each.lost or long_round_trip(each) for each in members
        )
    }


def long_round_trip(transfer: Transfer) -> bool:
    """Returns whether the longest round trip of a transfer is a silence that its usual ones are not."""
    most, median = transfer.row["rtt_ns_max"] or 0, transfer.row["rtt_ns_median"] or 0
    return most >= SILENCE_MIN_NS and most >= SILENCE_RTTS * median


class Gap(NamedTuple):
    """A time without packets from a host to another."""

    start_ns: float
    end_ns: float
    hosts: tuple[str, str]
    width_ns: float  # of the time bins that show it


def gaps_of(case: Case, members: list[Transfer], source: str, other: str) -> list[Gap]:
    """Returns the times without a packet of a host in any flow of these transfers, between its packets.

    Time bins show them; if there is one flow, the longest time between two packets of the direction has the exact length.
    """
    flows, base = {transfer.row["flow"] for transfer in members}, case.transfers.base_ns
    spans, idle_ns, width = list[tuple[float, float]](), 0, 0.0
    for flow in flows:
        direction = 0 if case.flow(flow)["source"] == source else 1
        bins = case.transfers.bins_at(flow, direction)
        spans += [(at - base, at + bins.width_ns - base) for at in bins.start_ns]
        width = max(width, bins.width_ns)
        idle_ns = (case.direction(flow, direction)["idle_ns_max"] or 0) if len(flows) == 1 else 0
    spans.sort()
    gaps, end = [], spans[0][1] if spans else 0.0
    for before, after in pairwise(spans):
        end = max(end, before[1])
        silent = after[0] - end
        if silent + 2 * width < SILENCE_MIN_NS or silent <= 0:
            continue
        more = idle_ns - silent if silent <= idle_ns <= silent + 2 * width else 0.0
        if silent + more >= SILENCE_MIN_NS:
            gaps.append(Gap(end - more / 2, after[0] + more / 2, (source, other), width))
    return gaps


def needless_within(case: Case, members: list[Transfer], start_ns: float, end_ns: float) -> int:
    """Returns the retransmissions in a time of data that had arrived."""
    kinds = {case.transfers.words[name] for name in RETRANSMISSIONS}
    flows = sorted({transfer.row["flow"] for transfer in members})
    events = (event for flow in flows for event in case.transfers.events([flow], "kind", "spurious", "time_ns"))
    return sum(kind in kinds and spurious == 1 and start_ns < at <= end_ns for kind, spurious, at in events)


def timers_in(case: Case, members: list[Transfer], start_ns: float, end_ns: float, rtt: float) -> int:
    """Returns at how many times within a silence timers repeated data."""
    kind = case.transfers.words["timeout_retransmission"]
    flows = sorted({transfer.row["flow"] for transfer in members})
    events = (event for flow in flows for event in case.transfers.events([flow], "kind", "time_ns"))
    times = sorted(at for event, at in events if event == kind and start_ns < at < end_ns - rtt / 2)
    return (1 + sum(later - sooner > MIN_RTO_NS / 2 for sooner, later in pairwise(times))) if times else 0


def sent_in(case: Case, members: list[Transfer], gap: Gap, rtt: float) -> int:
    """Returns the packets with data that the other host sent in a silence, and within a round trip before it."""
    since, until = gap.start_ns - max(rtt, gap.width_ns), gap.end_ns
    total = 0.0
    for transfer in members:
        if transfer.row["source"] == gap.hosts[1]:
            bins, base = case.transfers.bins(transfer), case.transfers.base_ns
            total += sum(
                packets
                for at, packets, size in zip(bins.start_ns, bins.packets, bins.payload_bytes, strict=True)
                if size > 0 and since - bins.width_ns <= at - base < until
            )
    return round(total)


def silence_of(case: Case, members: list[Transfer], moments: list[Moment], gap: Gap, rtt: float) -> Silence | None:
    """Returns a time without packets of a host, if somebody waited for them. What was lost in it before the capture point shows
    with the first packets behind it."""
    start, end = gap.start_ns, gap.end_ns
    lost = sum(
        start - rtt <= moment.due_ns < end + moment.is_upstream * (gap.width_ns + SHOWN_RTTS * rtt)
        for moment in moments
    )
    expired = [each for each in members if timers_within(case, each, start, end)]
    slow = [each for each in members if (each.row["rtt_ns_max"] or 0) >= RTT_SHARE * (end - start)]
    if end - start < SILENCE_RTTS * rtt or not (expired or slow or lost >= LOST_MIN):
        return None
    return Silence(
        start,
        end,
        gap.hosts,
        lost,
        sum(start < moment.shown_ns <= end + rtt for moment in moments),
        needless_within(case, members, start, end + rtt),
        tuple({each.number: each for each in (*expired, *slow)}.values()) or tuple(members),
        bool(slow),
        timers_in(case, members, start, end, rtt),
        sent_in(case, members, gap, rtt),
    )


def silences(case: Case) -> list[Silence]:
    """Returns the times in which nothing came from a host although somebody waited for it."""
    every = []
    for hosts, members in by_hosts(case).items():
        gaps = [gap for silent, other in (hosts, hosts[::-1]) for gap in gaps_of(case, members, silent, other)]
        if not gaps:
            continue
        rtt = float(min((each.path_rtt_ns for each in members if each.path_rtt_ns), default=0))
        places = ("upstream", "downstream")
        moments = [moment for each in members for at in places for moment in moments_of(case.transfers, each, at)]
        waits = (silence_of(case, members, moments, gap, rtt) for gap in gaps)
        every += [silence for silence in waits if silence is not None]
    return without_echoes(every)


def without_echoes(every: list[Silence]) -> list[Silence]:
    """Returns silences without those of the other host at the same time: it had nothing to answer."""
    distinct: list[Silence] = []
    for silence in sorted(every, key=lambda each: -each.ns):
        if not any(
            set(other.hosts) == set(silence.hosts)
            and other.start_ns < silence.end_ns
            and silence.start_ns < other.end_ns
            for other in distinct
        ):
            distinct.append(silence)
    return sorted(distinct)


def when(case: Case, group: list[Silence]) -> str:
    """Returns `at 14.3 s`, with how often and the period if there are several."""
    begin = f"at {show_duration(group[0].start_ns)}"
    starts = [each.start_ns for each in group]
    steps = [later - sooner for sooner, later in pairwise(starts)]
    if not steps:
        return begin
    usual = sum(steps) / len(steps)
    is_even = len(steps) > 1 and max(abs(step - usual) for step in steps) <= SPREAD * usual
    return f"{begin}, and {plural(len(steps), 'time')} more{f' every {show_duration(usual)}' if is_even else ''}"


def grouped(case: Case, has_lost: bool) -> list[list[Silence]]:
    """Returns the outages, or the stalls, by the other host."""
    groups: dict[frozenset[str], list[Silence]] = defaultdict(list)
    for silence in case.once(silences):
        flows = len({each.row["flow"] for each in silence.waiting})
        is_long = silence.ns >= LONG_NS and silence.lost >= MANY_LOST
        is_shared = flows > 1 and silence.ns >= SHARED_NS
        is_outage = silence.lost >= LOST_MIN and (silence.timers >= TIMERS_MIN or is_long or is_shared)
        is_distinct = silence.sent >= SENT_MIN and silence.ns <= STALL_MOST_NS
        is_stall = not (silence.lost or silence.repaired) and silence.has_slow and silence.needless and is_distinct
        if is_outage if has_lost else is_stall:
            groups[frozenset(silence.hosts)].append(silence)
    return list(groups.values())


def is_always_lossy(group: list[Silence]) -> bool:
    """Returns whether segments are lost at other times, too, as on a path that is never really up."""
    transfers = {each.number: each for silence in group for each in silence.waiting}.values()
    lost, sent = sum(each.lost for each in transfers), sum(each.sent_or_lost for each in transfers)
    return lost - sum(silence.lost for silence in group) >= LOSSY_SHARE * sent


@cause(
    code="outage",
    title="Path down for a time",
    sentence="The path between {near} and {far} was down {times}: nothing got through for {length}, what was sent was lost, and "
    "{who} went on by timers.",
    advice="Read the logs of switches and routers at {clock}: link flaps, spanning tree, VRRP, routing.",
    shows="For 0.3 s and 4 round trips or more no packet of a host came in any flow of the two, and three "
    "segments or more that were due in that time were lost; then traffic went on. Two connections were silent, or timers "
    "repeated data twice without success, or (at the receiver) 20 segments were missing after 1 s.",
    rivals={
        "stall": "what was sent in that time is lost, not late",
        "tail-loss": "several segments in a row are lost, and all flows of both hosts are silent",
    },
    unknown="When exactly the path came back: timers show it only when they expire. Whether the path or the host was down, if "
    "only one host was talked to.",
    explains=EFFECTS,
)
def outage(case: Case) -> Matches:
    for group in grouped(case, has_lost=True):
        flows = {each.row["flow"]: each.side for silence in group for each in silence.waiting}
        longest = max(group, key=lambda each: each.ns)
        if is_always_lossy(group):
            continue
        yield Match(
            certainty="proven",
            place="path",
            flows=list(flows.values()),
            waited_ns=sum(each.ns for each in group),
            proof=f"no packet of {longest.hosts[0]} for {show_duration(longest.ns)}, then retransmissions by timers",
            excluded={"stall": f"{plural(longest.lost, 'segment')} of that time never arrived"},
            near=longest.hosts[1],
            far=longest.hosts[0],
            length=show_duration(longest.ns) if len(group) == 1 else f"up to {show_duration(longest.ns)}",
            times=when(case, group),
            clock=clock_of(case, longest),
            who={1: "the connection", 2: "both connections"}.get(len(flows), f"all {len(flows):,} connections"),
        )


def clock_of(case: Case, silence: Silence) -> str:
    """Returns the time of day of a silence, UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp((case.transfers.base_ns + silence.start_ns) / 1e9, UTC).strftime(
        "%Y-%m-%d %H:%M:%S UTC"
    )


@cause(
    code="stall",
    title="Path stood still, and lost nothing",
    sentence="The path between {near} and {far} stood still for {length} {times}, then delivered everything: nothing was lost"
    "{needless}.",
    advice="Look at the link that holds packets back at {clock}: a radio that scans or hands over, ARQ, a paused virtual "
    "machine; keep F-RTO on (`net.ipv4.tcp_frto=2`).",
    shows="For 0.3 s and 4 round trips or more no packet of a host came in any flow of the two, four packets or more were under "
    "way, nothing was lost, a round trip was 70% as long, and data was repeated needlessly: a long round trip alone "
    "may be an ACK that waited for data.",
    rivals={
        "outage": "nothing of that time was lost",
        "bufferbloat": "round trips are long once, whatever is in flight",
        "tail-loss": "nothing was lost",
    },
    unknown="Whether the path or the host stood still, if only one host was talked to.",
    explains=(
        "spurious",
        "timeout-stalls",
        "recovery-limited",
        "suspected-timeout",
        "retransmission-cost",
        "bufferbloat",
    ),
)
def stall(case: Case) -> Matches:
    for group in grouped(case, has_lost=False):
        flows = {each.row["flow"]: each for silence in group for each in silence.waiting}
        needless = sum(silence.needless for silence in group)
        longest = max(group, key=lambda each: each.ns)
        again = f"{plural(needless, 'segment')} {'was' if needless == 1 else 'were'} repeated needlessly"
        yield Match(
            certainty="proven",
            place="path",
            flows=[each.side for each in flows.values()],
            waited_ns=sum(each.ns for each in group),
            proof=f"no packet of {longest.hosts[0]} for {show_duration(longest.ns)}, then answers to all that was sent before",
            excluded={"outage": "nothing of that time was lost"},
            near=longest.hosts[1],
            far=longest.hosts[0],
            length=show_duration(longest.ns) if len(group) == 1 else f"up to {show_duration(longest.ns)}",
            times=when(case, group),
            needless=f", yet {again}" if needless else "",
            clock=clock_of(case, longest),
        )
