# SPDX-License-Identifier: Apache-2.0
"""Times in which nothing came from a host: the path was down, or stood still and delivered everything afterwards."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.path.loss_moments import Moment, moments_of
from wiretale.analyzer.causes.path.lossy import EFFECTS
from wiretale.analyzer.findings.shared.places import waits_of
from wiretale.analyzer.findings.transfers import RETRANSMISSIONS, Transfer, only_fin_repeated
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.findings.cost import Span
    from wiretale.analyzer.findings.exchanges.turns import SlowServer

SILENCE_MIN_NS, SILENCE_RTTS = 200_000_000, 4.0
SHORT_NS = 300_000_000  # a shorter silence may be a delayed ACK, or a timer after a loss
BINS_MIN = 3.0  # bins of a series
FLOWS_MAX = 200
RTT_SHARE = 0.7  # of the silence: a round trip as long as it
LOST_MIN = 3  # segments
STUCK_TIMERS = 3  # of a transfer that never goes on
MIN_RTO_NS = 200_000_000
BREAKS = ("idle", "timeout", "network", "window", "send_buffer")  # what the account may call such a wait
SHARED_NS = 500_000_000  # of several connections
LOSSY_SHARE = 0.05  # of the segments at other times: such a path is never up
LONG_NS, MANY_LOST = 800_000_000, 20  # at a receiver, which does not see the timers: two of them in a row
FLIGHTS_MIN = 2.0  # round trips for which all segments were lost
TIMERS_MIN = 2  # that expired without success, one after the other: a flight that is lost once ends with the first
SENT_MIN, STALL_MOST_NS = 4, 30_000_000_000  # packets that were under way
SHOWN_RTTS = 4.0  # after a silence, until what was lost upstream in it shows
REPEATED_RTTS = 8.0  # likewise after a timer: slow start sends a flight of 250 segments again in so many
SPREAD = 0.25  # of a period
STALLED_SHARE = 0.8  # of the waits for a server, within times in which the path stood still


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
    has_expired: bool  # a timer ended it; else an application may have paused
    is_unseen: (
        bool  # IP IDs show that the silent host had sent packets in it, of which the capture point sees no other trace
    )
    has_repeats: bool  # right behind it comes what the silent host's timer repeated in it
    timers: int  # times in it at which timers repeated data
    sent: int  # packets with data, of the other host, shortly before it and in it; in a short one, in it alone
    flights: float  # round trips for which segments that the capture point saw were lost

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


def is_jump(case: Case, gap: Gap) -> bool:
    """Returns whether the capture's clock jumped in a time without packets."""
    begin, length = gap.start_ns - gap.width_ns, gap.end_ns - gap.start_ns + 2 * gap.width_ns
    return any(jump.within(begin, length, case.transfers.base_ns) for jump in case.transfers.clock_jumps)


def needless_within(case: Case, members: list[Transfer], start_ns: float, end_ns: float) -> int:
    """Returns the retransmissions in a time of data that had arrived."""
    kinds = {case.transfers.words[name] for name in RETRANSMISSIONS}
    flows = sorted({transfer.row["flow"] for transfer in members})
    events = (event for flow in flows for event in case.transfers.events([flow], "kind", "spurious", "time_ns"))
    return sum(kind in kinds and spurious == 1 and start_ns < at <= end_ns for kind, spurious, at in events)


def first_behind(case: Case, transfer: Transfer, gap: Gap) -> int | None:
    """Returns the frame of a transfer that ended a silence of its sender; None if it is not known."""
    base = case.transfers.base_ns
    ends = (wait.after for kind in BREAKS for wait in waits_of(case.transfers, transfer.row, kind))
    near = (end.frame for end in ends if end.time_ns and abs(end.time_ns - base - gap.end_ns) <= gap.width_ns)
    return min((frame for frame in near if frame is not None), default=None)


def sent_unseen(case: Case, members: list[Transfer], gap: Gap) -> tuple[bool, bool]:
    """Returns whether the silent host sent in a silence what was lost before the capture point, and whether packets that its
    timer repeated in the silence, needlessly, came behind what it had sent before: sooner than a timer can expire again."""
    words = case.transfers.words
    names = ("direction", "kind", "place", "spurious", "time_ns", "frame")
    is_lost = has_repeats = False
    for transfer in members:
        if transfer.row["source"] != gap.hosts[0]:
            continue
        begin = first_behind(case, transfer, gap)
        for direction, kind, place, spurious, at, frame in case.transfers.events([transfer.row["flow"]], *names):
            if direction == transfer.row["direction"] and abs(at - gap.end_ns) <= gap.width_ns + MIN_RTO_NS / 2:
                is_lost |= kind == words["suspected_timeout"] and place == words["upstream"]
                is_behind = begin is not None and frame - begin >= 2 * SENT_MIN  # with their ACKs
                has_repeats |= is_behind and kind == words["timeout_retransmission"] and spurious == 1
    return is_lost, has_repeats


def timers_in(case: Case, members: list[Transfer], start_ns: float, end_ns: float, rtt: float) -> int:
    """Returns at how many times within a silence timers repeated data."""
    kind = case.transfers.words["timeout_retransmission"]
    flows = sorted({transfer.row["flow"] for transfer in members})
    events = (event for flow in flows for event in case.transfers.events([flow], "kind", "time_ns"))
    times = sorted(at for event, at in events if event == kind and start_ns < at < end_ns - rtt / 2)
    return (1 + sum(later - sooner > MIN_RTO_NS / 2 for sooner, later in pairwise(times))) if times else 0


def sent_in(case: Case, members: list[Transfer], gap: Gap, rtt: float) -> int:
    """Returns the packets with data that the other host sent in a silence, and, if it is no short one, within a round trip before
    it."""
    is_short = gap.end_ns - gap.start_ns < SHORT_NS
    since, until = gap.start_ns - (0.0 if is_short else max(rtt, gap.width_ns)), gap.end_ns
    total = 0.0
    for transfer in members:
        if transfer.row["source"] == gap.hosts[1]:
            bins, base = case.transfers.bins(transfer), case.transfers.base_ns
            total += sum(
                packets
                for at, packets, size in zip(bins.start_ns, bins.packets, bins.payload_bytes, strict=True)
                if size > 0 and since - (0.0 if is_short else bins.width_ns) <= at - base < until
            )
    return round(total)


def lost_in(moments: list[Moment], gap: Gap, rtt: float, has_expired: bool) -> list[Moment]:
    """Returns the segments that were due in a silence and were lost: what was lost before the capture point shows with the first
    packets behind it."""
    shown = gap.width_ns + (REPEATED_RTTS if has_expired else SHOWN_RTTS) * rtt
    since = gap.start_ns - rtt
    return [moment for moment in moments if since <= moment.due_ns < gap.end_ns + moment.is_upstream * shown]


def flights_of(lost: list[Moment], rtt: float) -> float:
    """Returns for how many round trips segments were lost that the capture point saw: a flight is sent within one."""
    times = [moment.due_ns for moment in lost if not moment.is_upstream]
    return (max(times) - min(times)) / rtt if times and rtt else 0.0


def waiting_of(members: list[Transfer]) -> list[Transfer]:
    """Returns the transfers of which somebody waits for what is lost: nobody does for a FIN alone."""
    return [each for each in members if not only_fin_repeated(each.row)]


def silence_of(case: Case, members: list[Transfer], moments: list[Moment], gap: Gap, rtt: float) -> Silence | None:
    """Returns a time without packets of a host, if somebody waited for them."""
    start, end = gap.start_ns, gap.end_ns
    losing = waiting_of(members)
    expired = [each for each in losing if timers_within(case, each, start, end)]
    lost = lost_in(moments, gap, rtt, bool(expired))
    slow = [each for each in members if (each.row["rtt_ns_max"] or 0) >= RTT_SHARE * (end - start)]
    is_unseen, has_repeats = sent_unseen(case, members, gap)
    if end - start < SILENCE_RTTS * rtt or not (expired or slow or len(lost) >= LOST_MIN or has_repeats):
        return None
    return Silence(
        start,
        end,
        gap.hosts,
        len(lost),
        sum(start < moment.shown_ns <= end + rtt for moment in moments),
        needless_within(case, members, start, end + rtt),
        tuple({each.number: each for each in (*expired, *slow)}.values()) or tuple(members),
        bool(slow),
        bool(expired),
        is_unseen,
        has_repeats,
        timers_in(case, losing, start, end, rtt),
        sent_in(case, members, gap, rtt),
        flights_of(lost, rtt),
    )


def silences(case: Case) -> list[Silence]:
    """Returns the times in which nothing came from a host although somebody waited for it."""
    every = []
    for hosts, members in by_hosts(case).items():
        gaps = [gap for silent, other in (hosts, hosts[::-1]) for gap in gaps_of(case, members, silent, other)]
        gaps = [gap for gap in gaps if not is_jump(case, gap)]
        if not gaps:
            continue
        rtt = float(min((each.path_rtt_ns for each in members if each.path_rtt_ns), default=0))
        places = ("upstream", "downstream")
        moments = [
            moment for each in waiting_of(members) for at in places for moment in moments_of(case.transfers, each, at)
        ]
        waits = (silence_of(case, members, moments, gap, rtt) for gap in gaps)
        every += [silence for silence in waits if silence is not None]
    return without_echoes(every)


def without_echoes(every: list[Silence]) -> list[Silence]:
    """Returns silences without those of the other host at the same time: it had nothing to answer. A host that is known to have
    sent in that time is no echo."""
    distinct: dict[frozenset[str], list[Silence]] = defaultdict(list)
    for silence in sorted(every, key=lambda each: (not (each.is_unseen or each.has_repeats), -each.ns)):
        of_pair = distinct[frozenset(silence.hosts)]
        if not any(other.start_ns < silence.end_ns and silence.start_ns < other.end_ns for other in of_pair):
            of_pair.append(silence)
    return sorted(chain.from_iterable(distinct.values()))


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


def is_outage(silence: Silence) -> bool:
    """Returns whether what was due in a silence was lost, and timers, its length or several flows show that the path was down."""
    is_long = silence.has_expired and silence.ns >= LONG_NS
    if is_long and silence.is_unseen:
        return True
    is_long &= silence.lost >= MANY_LOST
    is_shared = len({each.row["flow"] for each in silence.waiting}) > 1 and silence.ns >= SHARED_NS
    is_whole = (
        silence.lost >= MANY_LOST and silence.flights >= FLIGHTS_MIN
    )  # more than one flight that overflows a queue
    is_down = silence.timers >= TIMERS_MIN or is_long or is_shared or is_whole
    return silence.ns >= SHORT_NS and silence.lost >= LOST_MIN and is_down


def is_stall(silence: Silence) -> bool:
    """Returns whether nothing that was due in a silence was lost, but came late."""
    is_late = silence.has_slow and silence.needless and silence.sent >= SENT_MIN
    is_whole = not (silence.lost or silence.repaired or silence.is_unseen)
    return is_whole and silence.ns <= STALL_MOST_NS and bool(is_late or silence.has_repeats)


def held_up_ns(case: Case, transfer: Transfer) -> float:
    """Returns the time in which the path kept back, or lost, what the sender of a transfer had sent."""
    return sum(
        silence.ns
        for silence in case.once(silences)
        if silence.hosts[0] == transfer.row["source"]
        and transfer.number in [each.number for each in silence.waiting]
        and (is_outage(silence) or is_stall(silence))
    )


def common_ns(case: Case, waits: Sequence[Span], gaps: Sequence[Silence]) -> float:
    """Returns how much of some waits is within silences."""
    base = case.transfers.base_ns
    return sum(
        max(min(wait.end_ns - base, gap.end_ns) - max(wait.start_ns - base, gap.start_ns), 0)
        for wait in waits
        for gap in gaps
    )


def gaps_before(case: Case, server: SlowServer) -> list[Silence]:
    """Returns the times in which the path between a server and its clients stood still, or was down."""
    pairs = {frozenset((flow["source"], flow["destination"])) for flow in server.flows}
    near = (gap for gap in case.once(silences) if frozenset(gap.hosts) in pairs)
    return [gap for gap in near if is_outage(gap) or is_stall(gap)]


def held_up_servers(case: Case) -> dict[int, set[frozenset[str]]]:
    """Returns by finding of a slow server between which hosts the path stood still, or was down, in most of the time that its
    clients waited."""
    findings, stalled = case.all_findings("slow-server"), dict[int, set[frozenset[str]]]()
    servers = case.transfers.turns.slow_servers if findings else []
    by_flow = {flow["flow"]: server for server in servers for flow in server.flows}
    for each in findings:
        server = by_flow[each.finding.flows[0][0]]
        waited_ns = sum(wait.ns for wait in server.waited)
        gaps = gaps_before(case, server) if waited_ns >= SHORT_NS else []
        if gaps and common_ns(case, server.waited, gaps) >= STALLED_SHARE * waited_ns:
            stalled[each.number] = {frozenset(gap.hosts) for gap in gaps}
    return stalled


def servers_behind(case: Case, group: list[Silence]) -> list[Numbered]:
    """Returns the findings of slow servers that a stall or an outage explains."""
    hosts, stalled = {frozenset(silence.hosts) for silence in group}, case.once(held_up_servers)
    return [each for each in case.findings("slow-server") if hosts & stalled.get(each.number, set())]


def grouped(case: Case, has_lost: bool) -> list[list[Silence]]:
    """Returns the outages, or the stalls, by the other host."""
    groups: dict[frozenset[str], list[Silence]] = defaultdict(list)
    for silence in case.once(silences):
        if is_outage(silence) if has_lost else is_stall(silence):
            groups[frozenset(silence.hosts)].append(silence)
    return list(groups.values())


def is_always_lossy(group: list[Silence]) -> bool:
    """Returns whether segments are lost at other times, too, as on a path that is never really up."""
    transfers = {each.number: each for silence in group for each in silence.waiting}.values()
    lost, sent = sum(each.lost for each in transfers), sum(each.sent_or_lost for each in transfers)
    return lost - sum(silence.lost for silence in group) >= LOSSY_SHARE * sent


def goes_on(group: list[Silence]) -> bool:
    """Returns whether any transfer that waited in the silences was acknowledged after them. If it never goes on, all that was
    ever under way is open at its end."""
    rows = [each.row for silence in group for each in silence.waiting]
    return any(
        (row["timeouts"] or 0) < STUCK_TIMERS or (row["unacked_bytes"] or 0) < (row["flight_max"] or 1) for row in rows
    )


@cause(
    code="outage",
    title="Path down for a while",
    sentence="The path between {near} and {far} was {probably}down {times}: nothing got through for {length}, what was sent "
    "was lost, and only timers got {who} going again.",
    advice="Read the logs of switches and routers at {clock}: link flaps, spanning tree, VRRP, routing.",
    shows="For 0.3 s and 4 round trips or more, no packet of a host came in any flow of the two; then traffic went on. At "
    "least three segments that were due in that time were lost. And two connections were silent, or timers repeated data "
    "twice without success, or 20 segments that were sent over two round trips or more were lost. Or, at the receiver, a "
    "timer ended after 0.8 s or more, and at least 20 segments or IP IDs of that time were missing.",
    rivals={
        "stall": "what was sent in that time is lost, not late",
        "tail-loss": "several segments in a row are lost, and all flows of both hosts are silent",
        "peer-gone": "traffic goes on",
        "capture-drops": "senders repeat what was lost",
        "clock-step": "the senders' timers ran meanwhile",
    },
    unknown="When exactly the path came back: timers show it only when they expire. Whether the path or the host was down, if "
    "only one host was talked to.",
    explains=EFFECTS,
)
def outage(case: Case) -> Matches:
    for group in grouped(case, has_lost=True):
        flows = {each.row["flow"]: each.side for silence in group for each in silence.waiting}
        longest = max(group, key=lambda each: each.ns)
        if is_always_lossy(group) or not goes_on(group):
            continue
        is_seen = longest.lost >= LOST_MIN
        lost = f"{plural(longest.lost, 'segment')} of that time never arrived"
        yield Match(
            certainty="proven" if is_seen else "likely",
            place="path",
            findings=servers_behind(case, group),
            flows=list(flows.values()),
            waited_ns=sum(each.ns for each in group),
            proof=f"no packet of {longest.hosts[0]} for {show_duration(longest.ns)}, then retransmissions by timers",
            excluded={
                "stall": lost if is_seen else f"IP IDs of {longest.hosts[0]} that it sent in that time are missing"
            },
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
    title="Path stalled, and lost nothing",
    sentence="The path between {near} and {far} stalled for {length} {times}, then delivered everything: nothing was lost"
    "{needless}.",
    advice="Look at the link that holds packets back at {clock}: a radio that scans or hands over, ARQ, a paused virtual "
    "machine; keep F-RTO on (`net.ipv4.tcp_frto=2`).",
    shows="For 0.2 s and 4 round trips or more, no packet of one host came in any flow of the two hosts, although at least "
    "four packets were under way. (Below 0.3 s, they must have been sent in that time.) Nothing was lost. A round trip took "
    "at least 70% of that time, and data was repeated needlessly; a long round trip alone may be an ACK that waited for data. "
    "At the receiver, what the sender's timer repeated meanwhile comes right after the silence.",
    rivals={
        "outage": "nothing of that time was lost",
        "bufferbloat": "round trips are long once, whatever is in flight",
        "tail-loss": "nothing was lost",
    },
    unknown="Whether the path or the host stalled, if only one host was talked to.",
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
        again = f"{plural(needless, 'segment')} {'was' if needless == 1 else 'were'} retransmitted needlessly"
        yield Match(
            certainty="proven",
            place="path",
            findings=servers_behind(case, group),
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
