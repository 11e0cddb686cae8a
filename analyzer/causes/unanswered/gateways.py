# SPDX-License-Identifier: Apache-2.0
"""Gateways: one that answers no ARP request of a host, or whose address another router takes over, while hosts still send to the
MAC address of the one before; and hosts that answer their neighbors after many tries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from ipaddress import ip_address, ip_network
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.host_down import lan_of, shows
from wiretale.analyzer.causes.unanswered.silent_hosts import about, about_host, attempt_fields, silent_hosts, spans_of
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, packets_of, waits_of
from wiretale.analyzer.findings.hosts.neighbors import FEW_HOSTS, NEIGHBORS_MAX, in_conflict, is_virtual, unanswered
from wiretale.analyzer.findings.judged import listed
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.causes.unanswered.silent_hosts import SilentHost
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import AnnouncerRow, ExchangeRow, NeighborRow

ROWS_MAX = 10_000
TAKEN_OVER_NS = 10_000_000_000  # from the last advertisement of one master to the first of the next
ANNOUNCED_NS = 10_000_000_000  # after it, in which a master tells its MAC address (gratuitous ARP)
SYNS_MIN = 2
TRIES_MIN, LATE_NS, LATE_MIN, LATE_SHARE = 3, 2_000_000_000, 3, 0.5  # of a reply; of the replies to an asker
CARDS_APART = 8  # of the MAC addresses of one machine
EFFECTS = ("syn-unanswered", "echo-unanswered", "icmp-errors", "network-duplicates", "one-way")


class Move(NamedTuple):
    """A moment from which on another machine has an address."""

    at_ns: int  # when the next machine spoke first
    cited: tuple[Cited, Cited]  # the last packet of the machine before, and the first of the next
    words: Words


def moves_of(case: Case) -> dict[str, Move]:
    """Returns the last change of the master of each virtual address."""
    table = case.trace.announcers
    groups: dict[tuple[str, int | None, int], list[AnnouncerRow]] = defaultdict(list)
    for row in table.rows(0, ROWS_MAX) if len(table) else ():
        if row["kind"] == "vrrp" and row["address"] and row["first_ns"] is not None and row["last_ns"] is not None:
            groups[row["address"], row["number"], row["capture"]].append(row)
    moves: dict[str, Move] = {}
    for (address, *_), rows in groups.items():
        masters = sorted(rows, key=lambda row: row["first_ns"] or 0)
        for before, after in pairwise(masters):
            gap_ns = (after["first_ns"] or 0) - (before["last_ns"] or 0)
            if before["source"] != after["source"] and 0 <= gap_ns <= TAKEN_OVER_NS:
                moves[address] = taken_over(address, before, after)
    return moves


def announcers_of(case: Case, kind: str) -> list[AnnouncerRow]:
    """Returns the first announcers of a kind."""
    table = case.trace.announcers
    return [row for row in table.rows(0, ROWS_MAX) if row["kind"] == kind] if len(table) else []


def cited(rows: Iterable[AnnouncerRow]) -> list[Cited]:
    """Returns the first and last announcement of each."""
    return [
        Cited(frame, at_ns, None, row["capture"])
        for row in rows
        for frame, at_ns in ((row["first_frame"], row["first_ns"]), (row["last_frame"], row["last_ns"]))
    ]


def taken_over(address: str, before: AnnouncerRow, after: AnnouncerRow) -> Move:
    """Returns the move of a virtual address from one master to the next."""
    words = {
        "where": f"to {after['source']} (VRRP group {after['number']})",
        "until": "since",
        "sends": "still {sends} to the old master's MAC address",
        "proof": f"advertisements of {before['source']}, then of {after['source']}, and no ARP packet of {address}",
        "up": f"{after['source']} announces it",
        "advice": "Let the new master announce the address again (keepalived `garp_master_refresh`, "
        "`vrrp_garp_lower_prio_repeat`), or give all masters the virtual MAC address (`use_vmac`)",
    }
    return Move(after["first_ns"] or 0, cited_pair(before, after), words)


def cited_pair(before: AnnouncerRow | NeighborRow, after: AnnouncerRow | NeighborRow) -> tuple[Cited, Cited]:
    """Returns the last packet of the machine before, and the first of the next."""
    return (
        Cited(before["last_frame"], before["last_ns"], None, before["capture"]),
        Cited(after["first_frame"], after["first_ns"], None, after["capture"]),
    )


def asked_again(case: Case) -> dict[str, Move]:
    """Returns the addresses of two MAC addresses, of which the second shows first in a reply to a host that asked for it, after
    the last packet of the first."""
    replies = {(row["capture"], row["answered_frame"]) for row in exchanges_of(case.transfers, "arp")}
    claims: dict[tuple[str, int | None, int], list[NeighborRow]] = defaultdict(list)
    rows = case.trace.neighbors.rows(0, NEIGHBORS_MAX) if replies else []
    for row in rows:
        claims[row["address"], row["vlan"], row["capture"]].append(row)
    many = Counter(row["mac"] for row in rows)
    pairs = (sorted(of, key=lambda row: row["first_ns"] or 0) for of in claims.values() if len(of) == 2)
    return {
        after["address"]: handed_over(before, after)
        for before, after in pairs
        if (after["capture"], after["first_frame"]) in replies and is_followed(before, after, many)
    }


def is_followed(before: NeighborRow, after: NeighborRow, many: Counter[str]) -> bool:
    """Returns whether the second of two machines, neither a router, has an IPv4 address after the last packet of the first."""
    is_later = 0 < (before["last_ns"] or 0) < (after["first_ns"] or 0) and ":" not in after["address"]
    return is_later and not any(many[row["mac"]] > FEW_HOSTS or is_virtual(row["mac"]) for row in (before, after))


def handed_over(before: NeighborRow, after: NeighborRow) -> Move:
    """Returns the move of an address from one MAC address to another that nobody announced."""
    words = {
        "where": f"from {before['mac']} to {after['mac']}",
        "until": "until {client} asked for its MAC address again",
        "sends": "{sent} to the old MAC address all the time",
        "proof": f"an ARP packet of {before['mac']} before, and no other of the address until the reply of {after['mac']}",
        "up": "connections to it opened before, and right after the ARP request",
        "advice": "Let whatever moves the address announce it from its new machine (`arping -A -c 3 -I eth0 {address}`)",
    }
    return Move(after["first_ns"] or 0, cited_pair(before, after), words)


def opened_ns(case: Case, address: str) -> list[int]:
    """Returns when the connections to an address began, in this order."""
    columns = (case.trace.flows.column(name) for name in ("destination", "first_ns", "handshake_rtt_ns"))
    return sorted(
        at_ns
        for to, at_ns, rtt_ns in zip(*columns, strict=True)
        if to == address and at_ns is not None and rtt_ns is not None
    )


def is_between(case: Case, host: SilentHost, move: Move) -> bool:
    """Returns whether a host left all attempts before a move without an answer, and served others before and since, but none
    between them, and nobody asked for its MAC address without a reply."""
    base_ns, spans, opened = case.transfers.base_ns, host.spans, opened_ns(case, host.address)
    began_ns = base_ns + min((span.start_ns for span in spans), default=math.inf)
    left_ns, until_ns = move.cited[0].time_ns or 0, base_ns + max((span.end_ns for span in spans), default=0)
    if not left_ns < began_ns <= until_ns <= move.at_ns or is_missed(case, host.address, left_ns, move.at_ns):
        return False
    is_served = bool(opened) and opened[0] < began_ns and opened[-1] >= move.at_ns
    return is_served and not any(began_ns < ns < move.at_ns for ns in opened)


def is_missed(case: Case, address: str, left_ns: int, until_ns: int) -> bool:
    """Returns whether an ARP request for an address got no reply in a time."""
    rows = exchanges_of(case.transfers, "arp")
    silent = [row["asked_ns"] or 0 for row in rows if row["server"] == address and row["outcome"] == "unanswered"]
    return any(left_ns < ns < until_ns for ns in silent)


def is_announced(case: Case, address: str, move: Move) -> bool:
    """Returns whether the next master told the hosts its MAC address, or needs not: all masters have the virtual one."""
    claims = [row for row in case.trace.neighbors.rows(0, NEIGHBORS_MAX) if row["address"] == address]
    soon_ns = move.at_ns + ANNOUNCED_NS
    return any(
        is_virtual(row["mac"]) or ((row["first_ns"] or 0) <= soon_ns and (row["last_ns"] or 0) >= move.at_ns)
        for row in claims
    )


@cause(
    code="moved-address",
    title="An address moved, and hosts do not know",
    sentence="{address} moved {where} without a gratuitous ARP: {count:connection} to it ({syns:SYN}{time}) got no answer "
    "{until}. {who} probably {sends}.",
    advice="{advice}; until then `ip neigh flush to {address}` on {client} helps.",
    shows="The master of a VRRP group changes. From then on, connections to its virtual address get no answer, though earlier "
    "ones did. In the 10 s after the change, the capture has no ARP packet of that address. Or an address without VRRP has "
    "another MAC address than before, which shows first in the reply to a host that asked for it. Connections opened before and "
    "since, but none between.",
    rivals={
        "host-down": "a master announces the address all the time, or each request for its MAC address gets a reply",
        "filtered": "connections to it opened before the change",
        "two-masters": "one master followed the other",
        "duplicate-address": "the first MAC address answers no longer",
    },
    unknown="The MAC address to which the hosts send: compare it with that of the new machine. Without VRRP, whether the new one "
    "had the address all the time.",
    explains=(*EFFECTS, "arp-unanswered"),
)
def moved_address(case: Case) -> Matches:
    hosts = silent_hosts(case)
    moves, replies = (moves_of(case), asked_again(case)) if hosts else ({}, {})
    for host in hosts if moves or replies else ():
        move, reply = moves.get(host.address), replies.get(host.address)
        if host.syns < SYNS_MIN or not host.open_ports:
            continue
        if move is not None and not is_announced(case, host.address, move):
            if case.transfers.base_ns + min((span.start_ns for span in host.spans), default=0) >= move.at_ns:
                yield moved_match(case, host, move)
        elif reply is not None and is_between(case, host, reply):
            yield moved_match(case, host, reply)


def moved_match(case: Case, host: SilentHost, move: Move) -> Match:
    """Returns the match of a host whose address moved."""
    case.claimed.update(host.flows)
    is_alone = len({host.facts.sources[flow] for flow in host.flows}) == 1
    polls = unanswered(case.transfers).get(host.address, [])
    effects = (
        about(case, host.flows, *EFFECTS),
        about_host(case, host.address, *EFFECTS),
        [each for each in case.findings("arp-unanswered") if polls and shows(each, polls)],
    )
    fields = attempt_fields(case, host, *EFFECTS) | {"findings": [each for group in effects for each in group]}
    fields["frames"] = [*move.cited, *fields.get("frames", ())]
    said = {"client": host.client, "address": host.address, "sends": "sends" if is_alone else "send", "sent": "sent"}
    words: dict[str, Any] = {name: str(text).format_map(said) for name, text in move.words.items()}
    return Match(
        certainty="likely",
        place="device",
        proof=words.pop("proof"),
        excluded={"host-down": words.pop("up")},
        undecided={"filtered": f"`ip neigh show {host.address}` on {host.client}: the MAC address of which machine?"},
        address=host.address,
        count=host.failed,
        client=host.client,
        who="The client" if is_alone else "The clients",
        syns=host.syns,
        time=host.time,
        **words,
        **fields,
    )


def kept_from_answering(case: Case, target: str, rows: list[ExchangeRow]) -> list[SilentHost]:
    """Returns the host that alone asks for an address of its network, if all attempts that it leaves without an answer are of
    clients of other networks, and it sends nothing to any: it needs a router for these."""
    askers = {str(row["client"]) for row in rows}
    return [
        host
        for host in silent_hosts(case)
        if askers == {host.address}
        and lan_of(target) == lan_of(host.address)
        and all(lan_of(host.facts.sources[flow]) != lan_of(target) for flow in host.flows)
        and not is_routed(case, host.address)
    ]


def is_routed(case: Case, host: str) -> bool:
    """Returns whether a host sent packets to hosts of other networks: a router takes these."""
    sides = case.trace.directions
    ends = zip(*(sides.column(name) for name in ("source", "destination", "packets")), strict=True)
    targets = {target for source, target, packets in ends if source == host and packets}
    return any(lan_of(target) != lan_of(host) for target in targets if is_one_host(target))


def is_one_host(address: str) -> bool:
    """Returns whether an address is neither of a group nor of all hosts of a network."""
    return not ip_address(address).is_multicast and not address.endswith(".255")


@cause(
    code="arp-flux",
    title="Two adapters of one machine answer ARP",
    sentence="Two adapters, {macs}, answer ARP for {address}; they are {probably}of one machine, so that packets to it take now "
    "the one, now the other.",
    advice="Give the adapters networks of their own or a bond, or let each answer for its own address only (Linux: "
    "`net.ipv4.conf.all.arp_ignore=1`, `arp_announce=2`).",
    shows="Two MAC addresses of one maker that differ by eight at most answer one ARP request, and nothing to this address "
    "fails.",
    rivals={"duplicate-address": "the MAC addresses are neighbors, as those of one machine, and nothing fails"},
    unknown="Whether they are of one machine: the switch shows their ports.",
)
def arp_flux(case: Case) -> Matches:
    findings = case.findings("duplicate-address")
    for rows in in_conflict(case.transfers) if findings else ():
        address, macs = rows[0]["address"], sorted({row["mac"] for row in rows})
        first, last = (int(mac.replace(":", ""), 16) for mac in (macs[0], macs[-1]))
        if len(macs) == 2 and last - first <= CARDS_APART and not about_host(case, address, *EFFECTS):
            yield Match(
                certainty="likely",
                place="server",
                findings=[each for each in findings if cites(each, rows)],
                severity="warning",
                proof=f"MAC addresses that differ by {last - first}",
                undecided={"duplicate-address": "the switch: whether both MAC addresses are at ports of one machine"},
                address=address,
                macs=" and ".join(macs),
            )


def cites(finding: Numbered, rows: Sequence[NeighborRow]) -> bool:
    """Returns whether a finding cites a reply of this conflict."""
    frames = {(row["capture"], row["conflict_frame"]) for row in rows}
    return any((packet.capture, packet.frame) in frames for packet in finding.finding.frames)


@cause(
    code="no-gateway",
    title="The gateway of a host does not answer",
    sentence="{router}, probably the default gateway of {host}, answers no ARP request ({count}{time}), so that {host} cannot "
    "answer {connections} of clients of other networks.",
    advice="Compare the gateway in the settings of {host} with the router's address (`ip route`, `ipconfig`), then the router's "
    "cable and VLAN.",
    shows="A host's ARP requests for an address of its own network get no reply. The host sends nothing to other networks (24 "
    "bits), and leaves SYNs from there unanswered, but none from its neighbors.",
    rivals={
        "host-down": "the host that is silent asks for the router",
        "bad-member": "the networks of the clients separate what fails",
        "filtered": "the host asks for the router in order to answer",
    },
    unknown="Whether the address is the gateway: the host's settings show it.",
    explains=("arp-unanswered", *EFFECTS),
)
def no_gateway(case: Case) -> Matches:
    findings = case.findings("arp-unanswered")
    by_target = unanswered(case.transfers) if findings else {}
    for target, rows in by_target.items() if len(by_target) <= FEW_HOSTS else ():
        is_arp = all(row["kind"] == "arp" for row in rows)
        for host in kept_from_answering(case, target, rows) if is_arp else ():
            case.claimed.update(host.flows)
            waited, count = union_ns(waits_of(rows)), sum(row["attempts"] for row in rows)
            yield Match(
                certainty="likely",
                place="server",
                findings=[
                    *(each for each in findings if shows(each, rows)),
                    *about(case, host.flows, *EFFECTS),
                ],
                flows=host.flows,
                failed=host.failed,
                attempts=host.failed,
                waited_ns=host.waited_ns,
                frames=packets_of(rows),
                packets=count,
                filter=f"arp.dst.proto_ipv4 == {target} || ({host.filter})",
                proof=f"{plural(count, 'ARP request')} of {host.address} without a reply, and {plural(host.syns, 'SYN')} that it "
                "leaves unanswered",
                excluded={"host-down": f"{host.address} sends ARP requests"},
                undecided={"filtered": f"the routes of {host.address}: is {target} its gateway?"},
                router=target,
                host=host.address,
                count=plural(count, "request"),
                time=f" in {show_duration(waited)}" if waited else "",
                connections=plural(host.failed, "connection"),
            )


def late_answers(case: Case) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns by asker and address the ARP requests and neighbor solicitations that got a reply after several tries only, if most
    of that asker do."""
    requests: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "arp", "nd"):
        if row["client"] and row["server"] and row["outcome"] != "unknown":
            requests[row["client"], row["server"]].append(row)
    late = {ends: [row for row in rows if is_late_answer(row)] for ends, rows in requests.items()}
    return {ends: rows for ends, rows in late.items() if len(rows) >= max(LATE_MIN, LATE_SHARE * len(requests[ends]))}


def is_late_answer(row: ExchangeRow) -> bool:
    """Returns whether a reply came after several tries only."""
    return row["outcome"] == "answered" and row["attempts"] >= TRIES_MIN and (row["waited_ns"] or 0) >= LATE_NS


@cause(
    code="late-neighbor",
    title="A host answers its neighbors after many tries",
    sentence="{host} answers {client} only after {tries} {requests}: {count} times it took {waited} until a reply came; what "
    "{client} had for it meanwhile waited or was dropped.",
    advice="Capture on {host}: if the {requests} arrive there, its firewall or a limit drops them; if they do not, a switch or "
    "radio loses broadcast and multicast (MLD snooping without a querier).",
    shows="A host answers ARP requests or neighbor solicitations of another one at least three times only after at least three "
    "tries and 2 s, and so most that this one asks for it.",
    rivals={
        "host-down": "each question gets an answer",
        "late-arp": "the requests were repeated",
        "outage": "other packets pass, or the replies come as late each time",
    },
    unknown="Whether the first tries reach the host.",
)
def late_neighbor(case: Case) -> Matches:
    for (client, host), rows in late_answers(case).items():
        tries, waits = sorted(row["attempts"] for row in rows), sorted(row["waited_ns"] or 0 for row in rows)
        least, most = show_duration(waits[0]), show_duration(waits[-1])
        requests = "neighbor solicitations" if ":" in host else "ARP requests"
        yield Match(
            certainty="proven",
            place="server",
            waited_ns=union_ns(waits_of(rows)),
            members=len(rows),
            frames=packets_of(rows),
            packets=sum(tries),
            filter=f"icmpv6.nd.ns.target_address == {host}" if ":" in host else f"arp.dst.proto_ipv4 == {host}",
            proof=f"{sum(tries):,} {requests}, and {plural(len(rows), 'reply', 'replies')}",
            excluded={"host-down": "each question gets an answer", "late-arp": "they were repeated"},
            host=host,
            client=client,
            requests=requests,
            tries=f"{tries[0]}" if tries[0] == tries[-1] else f"{tries[0]} to {tries[-1]}",
            count=f"{len(rows):,}",
            waited=least if least == most else f"{least} to {most}",
        )


class DeadEnd(NamedTuple):
    """A router that leads nowhere: no connection from its network is answered."""

    router: AnnouncerRow
    flows: list[int]  # these attempts
    opened: int  # connections from the other networks


def dead_end(case: Case, routers: Sequence[AnnouncerRow]) -> DeadEnd | None:
    """Returns the router that leads nowhere, while another one leads on; None without one."""
    attempts, sources = case.transfers.attempts, case.trace.flows.column("source")
    places = network_of(routers, set(sources))
    silent: dict[int, list[int]] = defaultdict(list)
    for flow in attempts.unanswered():
        if sources[flow] in places:
            silent[places[sources[flow]]].append(flow)
    used = [flow for flow, source in enumerate(sources) if source in places]
    opened = Counter(places[sources[flow]] for flow in used if attempts.is_connection(flow))
    for place, flows in silent.items():
        if min(len(flows), opened.total()) >= SYNS_MIN and not opened[place]:
            return DeadEnd(routers[place], flows, opened.total())
    return None


def network_of(routers: Sequence[AnnouncerRow], addresses: set[str]) -> dict[str, int]:
    """Returns the place of the router in whose network an address is, for each address in such a one."""
    numbers = {address: ip_address(address) for address in addresses if ":" in address}
    networks = [ip_network(f"{row['address']}/{row['prefix_length']}", strict=False) for row in routers]
    pairs = ((address, place) for place in range(len(networks)) for address in numbers)
    return {address: place for address, place in pairs if numbers[address] in networks[place]}


@cause(
    code="second-router",
    title="A second IPv6 router with another network",
    sentence="{count} routers announce different IPv6 networks on one LAN, {networks}; {unwanted} {probably}does not belong "
    "there, and {effect}.",
    advice="Find the port of the one that does not belong there by its MAC address (a home router, or a host that shares its "
    "connection), and turn its router advertisements off; RA guard on the switches keeps others away.",
    shows="At least two routers in one VLAN send router advertisements with a lifetime above 0 whose lowest prefixes differ. "
    "Routers that announce the same prefix share the work; a lifetime of 0 offers no way out. If no connection from an address "
    "of the one network is answered, and those from another are, its router leads nowhere.",
    rivals={
        "second-dhcp": "the routers announce themselves; no DHCP server does",
        "host-down": "connections from an address of the other network are answered",
    },
    unknown="Which of them belongs there, if both lead on, and whether the LAN has two networks on purpose.",
    explains=("syn-unanswered",),
)
def second_router(case: Case) -> Matches:
    lans: dict[tuple[object, ...], list[AnnouncerRow]] = defaultdict(list)
    for row in announcers_of(case, "router"):
        if row["value"] and row["address"] is not None:
            lans[row["capture"], row["vlan"]].append(row)
    for rows in lans.values():
        by_prefix = {(row["address"], row["prefix_length"]): row for row in reversed(rows)}
        apart = list(reversed(by_prefix.values()))
        if len(apart) > 1 and len({row["source"] for row in apart}) == len(apart):
            yield second_match(case, apart)


def second_match(case: Case, apart: Sequence[AnnouncerRow]) -> Match:
    """Returns the match of routers with different networks."""
    dead = dead_end(case, apart)
    silent = dead.flows if dead else []
    case.claimed.update(silent)
    return Match(
        certainty="likely",
        place="device",
        flows=silent,
        failed=len(silent),
        attempts=len(silent) or None,
        waited_ns=union_ns(spans_of(case.flow(flow) for flow in silent)),
        frames=cited(apart),
        packets=sum(row["packets"] for row in apart),
        filter="icmpv6.type == 134",
        proof="; ".join(f"{row['source']}: {plural(row['packets'], 'advertisement')}" for row in apart),
        excluded={"host-down": f"{plural(dead.opened, 'connection')} from the other network came about"}
        if dead
        else {},
        undecided={"second-dhcp": "Ask who runs the LAN whether both routers belong there."},
        count="Two" if len(apart) == 2 else f"{len(apart):,}",
        unwanted=str(dead.router["source"]) if dead else "one of them",
        effect=f"none of {plural(len(silent), 'attempt')} to connect from its network is answered"
        if dead
        else "clients may send through either",
        networks=listed([f"{row['address']}/{row['prefix_length']}" for row in apart[:2]], "and"),
    )
