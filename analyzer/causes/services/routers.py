# SPDX-License-Identifier: Apache-2.0
"""Routers and ports of a LAN that disagree: two masters of one virtual router, two virtual routers of one number,
two IPv6 routers
with networks of their own, ports that ask for pauses, and logins of 802.1X without an answer; and routers that know
a shorter way.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import facts_of
from wiretale.analyzer.causes.unanswered.gateways import announcers_of, cited
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.judged import listed
from wiretale.analyzer.findings.transfers import rows_of_kind
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import AnnouncerRow, DirectionRow, EventRow, ExchangeRow

ROWS_MAX = 10_000
TOGETHER_NS, ANNOUNCED_MIN = 3_000_000_000, 3  # longer than a master needs to resign, and its advertisements
PAUSES_MIN = 10
CHANGES_MIN, CHANGES_NS = 5, 300_000_000_000  # of the spanning tree, and the longest time for each
AGEING_NS = 15_000_000_000  # switches forget hosts after this forward delay while a change is told (IEEE 802.1D 7.9.2)
CHANCE_MOST = 0.05
STARTS_MIN = 2
REDIRECT = "redirect"


def together_ns(rows: Sequence[AnnouncerRow]) -> int:
    """Returns the time in which all of these announced themselves; 0 without one."""
    if any(row["first_ns"] is None or row["last_ns"] is None for row in rows):
        return 0
    return max(min(row["last_ns"] or 0 for row in rows) - max(row["first_ns"] or 0 for row in rows), 0)


@cause(
    code="two-masters",
    title="Two masters of one virtual router",
    sentence="{routers} are {number} masters of VRRP group {group} at once: their advertisements "
    "go on side by side for {time}, with priority {priorities}.",
    advice="Let the routers hear each other: the same VLAN at both ports, no filter or IGMP snooping on 224.0.0.18, the same "
    "version, password and interval. `show vrrp` on each shows what it receives.",
    shows="At least two routers in one VLAN advertise the same virtual router, with the same group and first virtual address. "
    "Each does so at least three times, side by side for 3 s or more. When the master changes, they come one after the other.",
    rivals={
        "duplicate-address": "both send the advertisements of one virtual router",
        "outage": "both go on all the time",
    },
    unknown="Why they do not hear each other; the capture point hears both.",
)
def two_masters(case: Case) -> Matches:
    groups: dict[tuple[object, ...], list[AnnouncerRow]] = defaultdict(list)
    for row in announcers_of(case, "vrrp"):
        if row["packets"] - row["withdrawals"] >= ANNOUNCED_MIN:
            groups[row["capture"], row["vlan"], row["number"], row["address"]].append(row)
    for rows in groups.values():
        shared_ns = together_ns(rows)
        if len(rows) > 1 and shared_ns >= TOGETHER_NS:
            yield Match(
                certainty="proven",
                place="device",
                failed=1,
                attempts=1,
                frames=cited(rows),
                packets=sum(row["packets"] for row in rows),
                filter=f"vrrp.virt_rtr_id == {rows[0]['number']}",
                proof=f"{plural(sum(row['packets'] for row in rows), 'advertisement')} for {rows[0]['address']}, "
                f"{show_duration(shared_ns)} side by side",
                excluded={"duplicate-address": "both send the advertisements of one virtual router"},
                routers=listed([str(row["source"]) for row in rows], "and"),
                number="both" if len(rows) == 2 else f"all {len(rows)}",
                group=str(rows[0]["number"]),
                time=show_duration(shared_ns),
                priorities=listed([str(row["value"]) for row in rows], "and"),
            )


def network_of(address: object) -> str | None:
    """Returns the /24 of an IPv4 address; None of others."""
    return str(address).rpartition(".")[0] or None


@cause(
    code="shared-group",
    title="Two virtual routers with one number",
    sentence="Two virtual routers {probably}use VRRP group {group} in one network: {routers} advertise it side by side for "
    "{time}, each for other addresses; each takes the other's advertisements for faulty.",
    advice="Give one of them another number (keepalived: `virtual_router_id`): a number must be used once in a VLAN.",
    shows="Routers whose addresses share their first 24 bits advertise one group in one VLAN, each at least three times, side "
    "by side for 3 s or more, and with different first virtual addresses.",
    rivals={
        "two-masters": "they advertise different addresses",
        "duplicate-address": "both send advertisements of VRRP, for different addresses",
    },
    unknown="Whether the capture has several VLANs without their tags, in each of which a number may be used.",
)
def shared_group(case: Case) -> Matches:
    groups: dict[tuple[object, ...], list[AnnouncerRow]] = defaultdict(list)
    for row in announcers_of(case, "vrrp"):
        if row["packets"] - row["withdrawals"] >= ANNOUNCED_MIN and network_of(row["source"]):
            groups[row["capture"], row["vlan"], row["number"], network_of(row["source"])].append(row)
    for rows in groups.values():
        by_address = {row["address"]: row for row in reversed(rows)}
        apart = list(reversed(by_address.values()))
        shared_ns = together_ns(apart)
        if len(apart) > 1 and len({row["source"] for row in apart}) == len(apart) and shared_ns >= TOGETHER_NS:
            yield Match(
                certainty="likely",
                place="device",
                failed=1,
                attempts=1,
                frames=cited(apart),
                packets=sum(row["packets"] for row in apart),
                filter=f"vrrp.virt_rtr_id == {rows[0]['number']}",
                proof="; ".join(f"{row['source']} for {row['address']}: {row['packets']:,}" for row in apart),
                excluded={"two-masters": "they advertise different addresses"},
                undecided={"duplicate-address": "Ask whether the mirror port joins several VLANs."},
                group=str(rows[0]["number"]),
                routers=listed([str(row["source"]) for row in apart[:2]], "and"),
                time=show_duration(shared_ns),
            )


@cause(
    code="router-denied",
    title="An IPv6 router says that it is none",
    sentence="The IPv6 router {router} tells hosts that it is none: {count} of it had no router flag, and each host that gets "
    "one "
    "drops its default route until the next router advertisement.",
    advice="Turn IPv6 forwarding on for this interface of the router, not only for all of them (`sysctl "
    "net.ipv6.conf.IF.forwarding=1`): "
    "its kernel sets the flag from that.",
    shows="A router sends router advertisements, all with a lifetime above 0, and all of its neighbor advertisements have a "
    "cleared router flag; a host must then take it from its list of default routers (RFC 4861 section 7.3.3).",
    rivals={
        "second-router": "it is the same router that announces and denies itself",
        "outage": "the router answers",
    },
    unknown="Which hosts had no other router, and what they lost by it.",
    explains=("retransmission-unlocated", "timeout-stalls", "suspected-timeout", "one-way"),
)
def router_denied(case: Case) -> Matches:
    offering = {row["source"]: row for row in announcers_of(case, "router") if row["value"] and not row["withdrawals"]}
    for row in announcers_of(case, "router_na"):
        if row["source"] in offering and row["withdrawals"] == row["packets"]:
            yield Match(
                certainty="proven",
                place="device",
                failed=row["packets"],
                frames=cited([row]),
                packets=row["packets"],
                filter=f"icmpv6.type == 136 && ipv6.src == {row['source']}",
                proof=f"{plural(offering[row['source']]['packets'], 'router advertisement')} of it, and "
                f"{plural(row['packets'], 'neighbor advertisement')}, none with the router flag",
                excluded={"second-router": "it is the same router", "outage": "the router answers"},
                router=str(row["source"]),
                count=plural(row["packets"], "neighbor advertisement"),
            )


def windows_after(case: Case, bridge: AnnouncerRow) -> list[Span]:
    """Returns when switches flood because of each change that a bridge tells: while it does, and until its hosts are heard
    again."""
    place = bridge["capture"], bridge["vlan"], bridge["mac"]
    return [
        Span(row["first_ns"], (row["last_ns"] or row["first_ns"]) + AGEING_NS)
        for row in announcers_of(case, "bridge_change")
        if row["first_ns"] is not None and (row["capture"], row["vlan"], row["mac"]) == place
    ]


def are_after(windows: Sequence[Span], times_ns: Sequence[int], lasted_ns: float) -> bool:
    """Returns whether all of these moments are after changes, of so many that this is hardly by chance."""
    places = [
        next((place for place, span in enumerate(windows) if span.start_ns <= ns <= span.end_ns), None)
        for ns in times_ns
    ]
    share = min((union_ns(windows) or 0.0) / lasted_ns, 1.0)
    return bool(places) and None not in places and share ** len(set(places)) <= CHANCE_MOST


def flooded_findings(case: Case, bridge: AnnouncerRow, lasted_ns: float) -> list[Numbered]:
    """Returns findings about connections of which one direction passes, if all of them began after changes."""
    times_ns = [case.flow(flow)["first_ns"] or 0 for flow in case.transfers.hidden.one_way_answered[:ROWS_MAX]]
    findings = case.findings("one-way")
    return findings if findings and are_after(windows_after(case, bridge), times_ns, lasted_ns) else []


def flooded_str(findings: Sequence[Numbered]) -> str:
    """Returns what is said of connections of which one direction passes, as of those that switches flood."""
    count = sum(each.finding.members or 1 for each in findings)
    return (
        f", which is probably why the capture has one direction of {plural(count, 'connection')} that began right after changes"
        if count
        else ""
    )


@cause(
    code="topology-changes",
    title="The spanning tree changes again and again",
    sentence="The spanning tree changed {count} times in {time}, every {interval} on average, as BPDUs of {mac} tell: each "
    "time the switches forget where hosts are and flood what is sent to them{flooded}.",
    advice="Find the port from which the changes come (`show spanning-tree detail | include from|ieee|occur`), and follow it "
    "from switch to switch: ports of hosts should be edge ports (portfast), which cause none when a host goes on or off; else "
    "look for a link that goes up and down.",
    shows="A bridge tells at least five changes of the topology (a notification, or the flag in its BPDUs after others "
    "without it), one in five minutes or more. While it repeats the same change, that counts once. Connections with one "
    "direction belong to it if all of them begin while a change is told, or up to 15 s later (the age to which switches then "
    "shorten their tables), after so many changes that this happens by chance in 5% of captures at most.",
    rivals={
        "bridge-loop": "no frame passes again and again",
        "outage": "the BPDUs tell the changes",
    },
    unknown="Which port changes, and which losses are due to it.",
)
def topology_changes(case: Case) -> Matches:
    lans: dict[tuple[object, ...], list[AnnouncerRow]] = defaultdict(list)
    for row in announcers_of(case, "bridge"):
        lans[row["capture"], row["vlan"]].append(row)
    for rows in lans.values():
        row = max(rows, key=lambda row: row["value"])
        lasted_ns = together_ns([row, row]) and (row["last_ns"] or 0) - (row["first_ns"] or 0)
        if row["value"] >= CHANGES_MIN and lasted_ns and lasted_ns <= row["value"] * CHANGES_NS:
            findings = flooded_findings(case, row, lasted_ns)
            told = row["packets"] - row["withdrawals"]
            yield Match(
                certainty="proven",
                place="device",
                failed=row["value"],
                findings=findings,
                frames=cited([row]),
                packets=row["packets"],
                filter="stp.flags.tc == 1 || stp.type == 0x80",
                proof=f"{told:,} of {plural(row['packets'], 'BPDU')} of {row['mac']} tell a change",
                excluded={"outage": "the BPDUs tell the changes"},
                count=f"{row['value']:,}",
                time=show_duration(lasted_ns),
                interval=show_duration(lasted_ns / row["value"]),
                flooded=flooded_str(findings),
                mac=str(row["mac"]),
            )


@cause(
    code="pause-frames",
    title="PAUSE frames: a port asks its link partner to stop",
    sentence="{mac} asks the other end of its link to stop sending: {count} in {time} (IEEE 802.3x).",
    advice="Find the port of {mac} (`show mac address-table`, `ethtool -S`): its host or switch cannot keep up. Look "
    "there for the slow receiver, and turn flow control off (`ethtool -A eth0 rx off tx off`) if one port "
    "should not hold up others.",
    shows="One sender asks for a pause in at least ten PAUSE frames.",
    rivals={"zero-window": "the frames stop the whole link, and not one connection"},
    unknown="How long the link stood still: a pause ends early, and its length depends on the link's rate. Most adapters keep "
    "these frames from the capture.",
)
def pause_frames(case: Case) -> Matches:
    for row in announcers_of(case, "pause"):
        asking = row["packets"] - row["withdrawals"]
        if asking >= PAUSES_MIN and row["first_ns"] is not None and row["last_ns"] is not None:
            time = Span(row["first_ns"], row["last_ns"])
            yield Match(
                certainty="proven",
                place="device",
                frames=cited([row]),
                packets=row["packets"],
                filter="macc.opcode == 1",
                proof=f"{plural(asking, 'frame')} of {row['value']} quanta at most, and {row['withdrawals']} that end a pause",
                excluded={"zero-window": "the frames stop the whole link"},
                mac=str(row["mac"]),
                count=plural(asking, "PAUSE frame"),
                time=show_duration(time.ns),
            )


@cause(
    code="port-login",
    title="802.1X does not open the port",
    sentence="{what}.",
    advice="{advice}",
    shows="A station sends EAPOL-Start at least twice, without an EAP message from the switch. Or it sends its identity and "
    "gets EAP-Failure, and no Success afterwards.",
    rivals={"radius-rejected": "the switch itself does not answer, or the capture has no RADIUS"},
    unknown="Whether the port is set up for 802.1X at all, and the reason of a failure.",
)
def port_login(case: Case) -> Matches:
    rows = case.exchanges("kind", "eapol")
    starts = [
        row
        for row in rows
        if row["type"] == "Start" and row["outcome"] == "unanswered" and row["attempts"] >= STARTS_MIN
    ]
    logins = [row for row in rows if row["type"] == "Login"]
    opened = {row["name"] for row in logins if row["outcome"] == "answered"}
    refused = [row for row in logins if row["outcome"] == "refused" and row["name"] not in opened]
    if starts:
        yield unheard_match(case, starts)
    if refused:
        yield refused_match(case, refused)


def stations_of(rows: Sequence[ExchangeRow]) -> str:
    """`02:00:00:00:00:0a and 3 more`."""
    return named([str(row["name"]) for row in rows], 1)


def unheard_match(case: Case, starts: Sequence[ExchangeRow]) -> Match:
    """Returns the match of stations to which the switch says nothing."""
    sent = plural(sum(row["attempts"] for row in starts), "EAPOL-Start")
    return Match(
        certainty="proven",
        place="device",
        failed=len({row["name"] for row in starts}),
        filter="eapol.type == 1",
        proof=f"{sent} without an EAP message",
        what=f"The switch answers no 802.1X login of {stations_of(starts)}: {sent} got no EAP-Request",
        advice="Check that 802.1X is on at the port (`show authentication sessions`) and that its RADIUS servers answer; else "
        "turn it off at the station.",
        **facts_of(case, starts, ()),
    )


def refused_match(case: Case, logins: Sequence[ExchangeRow]) -> Match:
    """Returns the match of stations that get EAP-Failure."""
    failures = plural(len(logins), "EAP-Failure")
    return Match(
        certainty="proven",
        place="device",
        failed=len({row["name"] for row in logins}),
        filter="eap.code == 4",
        proof=failures,
        what=f"The 802.1X login of {stations_of(logins)} is refused: {failures} and no EAP-Success",
        advice="Look at the log of the RADIUS server for this station: a wrong password, a certificate that one end does "
        "not trust, an EAP method that is not allowed, or a policy.",
        **facts_of(case, logins, ()),
    )


def redirects_of(case: Case) -> dict[str, list[EventRow]]:
    """Returns the first ICMP redirects by their router; none if there are other errors, too."""
    events = rows_of_kind(case.transfers, "icmp_error", ROWS_MAX) if case.findings("icmp-errors") else []
    by_router: dict[str, list[EventRow]] = defaultdict(list)
    for event in events:
        if event["cause"] != REDIRECT or event["flow"] is None:
            return {}
        by_router[event["router"] or "?"].append(event)
    return by_router


def redirected_packets(case: Case, events: Sequence[EventRow]) -> list[DirectionRow]:
    """Returns the directions whose packets a router would rather have elsewhere."""
    sides = dict.fromkeys((event["flow"] or 0, event["direction"] or 0) for event in events)
    return [case.direction(*side) for side in sides]


@cause(
    code="redirected",
    title="A router knows a shorter way (ICMP redirect)",
    sentence="The router {router} sent {hosts} {count:ICMP redirect}: another router of the LAN, or the target "
    "itself, is nearer. Until the host sends there, its packets cross the LAN twice{arrived}.",
    advice="The redirect names the better way to {target}: give {host} that route or mask (DHCP option 121 or 1). If {router} is "
    "no router of yours, look at it: redirects can be forged.",
    shows="ICMP or ICMPv6 redirects about flows in the capture, and no other errors.",
    rivals={"routing-loop": "the packets arrive", "host-down": "the packets arrive"},
    unknown="Whether the host takes the redirect, if its packets go on by the same router.",
    explains=("icmp-errors",),
)
def redirected(case: Case) -> Matches:
    for router, events in redirects_of(case).items():
        flows = [case.flow(flow) for flow in dict.fromkeys(event["flow"] or 0 for event in events)]
        sent = redirected_packets(case, events)
        hosts, targets = ([row[name] for row in sent] for name in ("source", "destination"))
        arrived = not any(flow["one_way"] for flow in flows)
        yield Match(
            certainty="proven",
            place="device",
            findings=case.findings("icmp-errors"),
            flows=[flow["flow"] for flow in flows],
            severity="warning",
            frames=[
                Cited(event["frame"], event["time_ns"], event["flow"], event["capture"]) for event in events[:SHOWN]
            ],
            packets=len(events),
            filter="icmp.type == 5 || icmpv6.type == 137",
            proof=f"{plural(len(events), 'redirect')} about packets to {named(list(dict.fromkeys(targets)), 1)}",
            excluded=dict.fromkeys(("routing-loop", "host-down"), "answers came") if arrived else {},
            router=router,
            hosts=named(list(dict.fromkeys(hosts)), 1),
            host=hosts[0],
            target=named(list(dict.fromkeys(targets)), 1),
            count=len(events),
            arrived="; nothing is lost by that" if arrived else "",
        )
