# SPDX-License-Identifier: Apache-2.0
"""Packets that circle: a loop between routers, on the loop and off it, and a loop of bridges."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import grouped, largest_groups
from wiretale.analyzer.causes.unanswered.silent_hosts import about
from wiretale.analyzer.findings.evidence import CITED, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import EXCHANGES_MAX, exchanges_of
from wiretale.analyzer.findings.hosts.neighbors import KINDS, NEIGHBORS_MAX
from wiretale.analyzer.findings.model import duration_of
from wiretale.analyzer.findings.transfers import rows_of_kind
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import EventRow, LoopRow, NeighborRow

LOOPS_MAX, ERRORS_MAX = 200, 2000
EFFECTS = (
    *("network-duplicates", "mirror-duplicates", "syn-unanswered", "icmp-errors", "several-places", "one-way"),
    *(
        "retransmission-unlocated",
        "timeout-stalls",
        "echo-unanswered",
        "syn-lost",
        "lost-downstream",
        "unknown-duplicates",
    ),
)
EXPIRED = "ttl_exceeded", "hop_limit_exceeded"
PROBE_TTL = 32  # traceroute sends lower ones
ROUTERS_MIN, EXPIRED_MIN = 2, 2
COPIES_MIN, COPIES_EACH = 100, 10  # of broadcasts of a host, and of each: mirror ports make two
STORM_RATE = 50  # copies a second
FLOODED = 0.5  # of all packets: so many copies leave no room for others
HOSTS_MIN = 2  # whose broadcasts multiply: one alone may send them


@cause(
    code="routing-loop",
    title="Routing loop",
    sentence="Packets to {target} {probably}circle between routers: {how}.",
    advice="Compare the routes to {target} on the routers that `traceroute {target}` names in turn: each points to the other "
    "(often a default route against an aggregate without a discard route).",
    shows="A packet passes at least five times with the same IP ID and size, and a lower TTL each time (table loops). Off the "
    "loop, at least two routers report in turn that the TTL ran out, of packets that were sent with a TTL of 32 or more.",
    rivals={
        "copies": "copies of a mirror port have one TTL or two, and pass twice",
        "bridge-loop": "the TTL falls, so routers forward it",
    },
    unknown="Off the loop: its routers, other than those that report.",
    explains=EFFECTS,
)
def routing_loop(case: Case) -> Matches:
    rows = case.transfers.without_legs(case.trace.loops.rows(0, LOOPS_MAX))
    by_target = grouped(rows, lambda row: case.direction(row["flow"], row["direction"])["destination"])
    for target, loops in by_target.items():
        case.claimed.update(row["flow"] for row in loops)
        yield passing_here(case, target, loops)
    yield from reported(case, set(by_target))


def passing_here(case: Case, target: str, loops: Sequence[LoopRow]) -> Match:
    """Returns the match of packets to one address that pass the capture point again and again."""
    most = max(loops, key=lambda row: row["passes_max"])
    packets = sum(row["packets"] for row in loops)
    flows = [case.flow(row["flow"]) for row in loops]
    again = (
        "the same packet passed"
        if packets == 1
        else f"{plural(packets, 'packet')} passed the capture point again and again, one"
    )
    return Match(
        certainty="proven",
        place="path",
        findings=of_target(case, {row["flow"] for row in loops}),
        flows=[row["flow"] for row in loops],
        failed=sum(flow["state"] in ("syn_sent", "syn_received", None) for flow in flows) or None,
        waited_ns=max(((flow["last_ns"] or 0) - (flow["first_ns"] or 0) for flow in flows), default=None),
        frames=[
            Cited(row["first_frame"], row["first_ns"], row["flow"], row["first_capture"], CITED)
            for row in loops[:SHOWN]
        ],
        filter=f"ip.dst == {target}" if ":" not in target else f"ipv6.dst == {target}",
        proof="the IP ID stays, so it is no retransmission",
        excluded={"copies": f"a mirror stores two copies, this packet passed {most['passes_max']} times"},
        target=target,
        how=f"{again} {plural(most['passes_max'], 'time')}, its TTL falling by {most['ttl_step']}, until it expired or left",
    )


def of_target(case: Case, flows: set[int]) -> list[Numbered]:
    """Returns findings that are about some of these flows alone, or about the copies that a loop looks like."""
    return case.effects(EFFECTS, flows)


def is_probe(case: Case, event: EventRow) -> bool:
    """Returns whether packets of a direction were sent with so low a TTL that it must run out."""
    least = case.direction(event["flow"] or 0, event["direction"] or 0)["ttl_min"]
    return least is None or least < PROBE_TTL


def expired_in(case: Case) -> list[EventRow]:
    """Returns the first ICMP errors of routers at which the TTL of packets of a flow ran out."""
    if not case.transfers.flow_counts["icmp_errors"]:
        return []
    events = rows_of_kind(case.transfers, "icmp_error", ERRORS_MAX)
    return [event for event in events if event["cause"] in EXPIRED and event["flow"] is not None and event["router"]]


def reported(case: Case, seen: set[str]) -> Matches:
    """Yields destinations of which routers report that packets with a usual TTL expired."""

    def target_of(event: EventRow) -> str:
        return case.direction(event["flow"] or 0, event["direction"] or 0)["destination"]

    for target, errors in largest_groups(expired_in(case), target_of):
        if target not in seen and len(errors) >= EXPIRED_MIN and not any(is_probe(case, event) for event in errors):
            yield expired_match(case, target, errors)


def expired_match(case: Case, target: str, errors: Sequence[EventRow]) -> Match:
    """Returns the match of packets to one address of which routers report that they expired."""
    routers = list(dict.fromkeys(event["router"] or "" for event in errors))
    flows = sorted({event["flow"] or 0 for event in errors})
    case.claimed.update(flows)
    is_sure = len(routers) >= ROUTERS_MIN
    return Match(
        certainty="proven" if is_sure else "likely",
        place="path",
        findings=of_target(case, set(flows)),
        flows=flows,
        failed=len(flows),
        waited_ns=max(duration_of(case.flow(flow)) or 0 for flow in flows) or None,
        frames=[Cited(event["frame"], event["time_ns"], event["flow"], event["capture"]) for event in errors[:SHOWN]],
        packets=len(errors),
        filter="icmp.type == 11 || icmpv6.type == 3",
        proof="the packets had a TTL that no path of the Internet uses up",
        undecided={} if is_sure else {"copies": f"Run `traceroute {target}`: do routers come in turn?"},
        target=target,
        how=f"{' and '.join(routers[:2])} reported {plural(len(errors), 'time')} that the TTL ran out",
    )


@cause(
    code="bridge-loop",
    title="Loop of bridges",
    sentence="{network} {probably}has a layer 2 loop: {broadcasts} of {hosts} passed the capture point {count} times in {time}, "
    "though a host sends each once.",
    advice="Find the two ports of one switch that learn the same MAC address in turn (`show mac address-table`, logs of MAC "
    "flapping), and unplug one; then turn on spanning tree and `bpduguard`.",
    shows="ARP broadcasts or neighbor solicitations of a host pass at least 100 times, at 50 per second, and each at least "
    "ten times within 100 ms (neighbors.claims against the requests in exchanges). Two or more such hosts on the same port "
    "prove it.",
    rivals={
        "copies": "mirror ports store each packet twice or four times",
        "routing-loop": "no router forwards ARP, and no TTL falls",
        "duplicate-address": "all copies have one MAC address",
    },
    unknown="If only one host loops, whether it sends them itself. Where the loop is: the ports of the switches show it.",
)
def bridge_loop(case: Case) -> Matches:
    for (_, vlan), rows in grouped(storming(case), lambda row: (row["capture"], row["vlan"])).items():
        match = bridge_match(vlan, rows)
        if sum(map(copies_of, rows)) >= FLOODED * case.trace.totals["packets"]:
            blame(case, match, rows)
        yield match


def blame(case: Case, match: Match, rows: Sequence[NeighborRow]) -> None:
    """Charges what was not answered during a storm to it: its copies fill links and switches."""
    first_ns, last_ns = min(row["first_ns"] or 0 for row in rows), max(row["last_ns"] or 0 for row in rows)
    attempts = case.transfers.attempts.unanswered() if case.all_findings("syn-unanswered") else []
    flows = [flow for flow in attempts if first_ns <= (case.flow(flow)["first_ns"] or 0) <= last_ns]
    names = case.findings("dns-unanswered")
    case.claimed.update(flows)
    match.failed = len(flows) + sum(each.finding.failed or 0 for each in names) or None
    match.findings = [*match.findings, *about(case, flows, "syn-unanswered"), *names]


def copies_of(row: NeighborRow) -> int:
    """Returns how often broadcasts of a host passed: what it claims without an answer to somebody."""
    return row["claims"] - row["answers"]


def storming(case: Case) -> list[NeighborRow]:
    """Returns the hosts whose broadcasts pass again and again, far faster than they ask."""
    neighbors = case.trace.neighbors
    if (neighbors.total("claims") if len(neighbors) else 0) < COPIES_MIN:
        return []
    rows = [row for row in neighbors.rows(0, NEIGHBORS_MAX) if copies_of(row) >= COPIES_MIN and is_storm(row)]
    exchanges = exchanges_of(case.transfers, *KINDS) if rows else []
    if len(exchanges) >= EXCHANGES_MAX:  # a scan, of which not all requests were read
        return []
    requests: Counter[str | None] = Counter()
    for exchange in exchanges:
        requests[exchange["client"]] += exchange["attempts"]
    return [row for row in rows if copies_of(row) >= COPIES_EACH * requests[row["address"]]]


def is_storm(row: NeighborRow) -> bool:
    """Returns whether the claims of a host follow one another fast."""
    first, last = row["first_ns"], row["last_ns"]
    return first is not None and last is not None and copies_of(row) * 1e9 >= STORM_RATE * (last - first)


def bridge_match(vlan: int | None, rows: Sequence[NeighborRow]) -> Match:
    """Returns the match of hosts in one network whose broadcasts circle."""
    is_sure, copies = len(rows) >= HOSTS_MIN, sum(copies_of(row) for row in rows)
    lasted_ns = max(row["last_ns"] or 0 for row in rows) - min(row["first_ns"] or 0 for row in rows)
    is_arp = "." in rows[0]["address"]
    return Match(
        certainty="proven" if is_sure else "likely",
        place="path",
        waited_ns=lasted_ns,
        members=len(rows),
        severity="error",
        frames=[
            Cited(frame, time_ns, None, row["capture"], CITED)
            for row in rows[:SHOWN]
            for frame, time_ns in ((row["first_frame"], row["first_ns"]), (row["last_frame"], row["last_ns"]))
        ],
        packets=copies,
        filter="arp" if is_arp else "icmpv6.type == 135",
        proof="no host repeats a request within 100 ms" if is_sure else None,
        excluded={
            "copies": "a mirror stores two copies or four, each of these passed ten times or more",
            "routing-loop": "no router forwards them",
            "duplicate-address": "all copies have one MAC address",
        },
        undecided={}
        if is_sure
        else {"copies": f"Capture at the port of {rows[0]['address']}: does the host itself send that often?"},
        network=f"VLAN {vlan}" if vlan else "The network",
        broadcasts="ARP broadcasts" if is_arp else "neighbor solicitations",
        hosts=rows[0]["address"] if len(rows) == 1 else plural(len(rows), "host"),
        count=f"{copies:,}",
        time=show_duration(lasted_ns),
    )
