# SPDX-License-Identifier: Apache-2.0
"""A host that answers nothing: neither ARP in its own network, nor any connection from afar; hosts of other networks that a
client takes for its own; or a port that gets no answer from anywhere."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.cause import PROBABLY, Certainty, Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    SilentHost,
    about,
    about_host,
    attempt_fields,
    first_syns,
    ports_str,
    silent_hosts,
)
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.findings.hosts.neighbors import (
    FEW_HOSTS,
    NEIGHBORS_MAX,
    is_shown,
    senders_of,
    unanswered,
)
from wiretale.analyzer.findings.shared.servers import WELL_KNOWN, family
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import ExchangeRow

NO_HOST = ("host_unreachable", "address_unreachable", "destination_unreachable")
NO_ROUTE = ("network_unreachable", "no_route")
EFFECTS = ("syn-unanswered", "echo-unanswered", "icmp-errors", "network-duplicates", "one-way")
REPEATED = 2  # SYNs of a single attempt
BROADCAST = ".255"
SEVERAL = 3  # hosts that do not answer a client, to which nobody does, or none at a port
FILTERED = "; it is not there, or a filter of ICMPv6 or multicast keeps them from it"
ADDRESSES_MOST = 8  # of one machine; a router answers for more
LAN_BITS, STRANGERS, STRANGE_LANS = 24, 3, 2  # a usual network; hosts beyond it, and the networks that they are in
NETWORK_BITS = {4: 16, 6: 32}  # hosts that differ in these do not fail together


@cause(
    code="egress-filtered",
    title="Port blocked on the way out",
    sentence="Outbound TCP {port} of {client} is probably blocked: none of {count:connection} to {hosts} got an answer "
    "({syns:SYN}{time}), while {open} to other ports opened.",
    advice="`traceroute -T -p {port} {host}` shows where the SYNs end. Ask the provider, or who runs the firewall, to allow TCP "
    "{port} outbound, or use a port that is open: for mail, a relay on port 587.",
    shows="A client's SYNs to one port of at least three hosts in several networks all stay unanswered, repeats included. It "
    "opens no connection to that port anywhere, but does to others. From port 1024 on, no other port stays silent, as those "
    "of peers do.",
    rivals={
        "host-down": "hosts of several networks do not fail together",
        "filtered": "hosts of several networks do not have the same rule",
        "accept-queue": "no connection to that port opened",
    },
    unknown="Whether the client's own firewall, the provider or the cloud drops them.",
    explains=("syn-unanswered", "icmp-errors"),
)
def egress_filtered(case: Case) -> Matches:
    by_way: dict[tuple[str, int], list[SilentHost]] = defaultdict(list)
    for host in silent_hosts(case):
        if len(host.ports) == 1 and not host.errors and host.syns > host.failed:
            by_way[host.client, host.ports[0]].append(host)
    tried = Counter(client for client, _ in by_way)
    for (client, port), hosts in by_way.items():
        if len(hosts) < SEVERAL or are_near(hosts) or (port >= WELL_KNOWN and tried[client] > 1):
            continue
        open_ports = opened_by(case, hosts[0], client)
        if open_ports and not open_ports[port]:
            every = hosts[0]._replace(flows=sorted(flow for host in hosts for flow in host.flows))
            case.claimed.update(every.flows)
            yield egress_match(case, every, len(hosts), open_ports.total())


def egress_match(case: Case, every: SilentHost, hosts: int, others: int) -> Match:
    """Returns the match of a port of which no host answers a client, beside so many of its connections to other ports."""
    client, port = every.client, every.ports[0]
    fields = attempt_fields(case, every, *EFFECTS) | {
        "filter": f"{family(client)}.src == {client} && tcp.dstport == {port} && tcp.flags.syn == 1"
    }
    return Match(
        certainty="likely",
        place="path",
        proof=f"no SYN to TCP {port} of {hosts} hosts in several networks was answered, others were",
        excluded={
            "host-down": "hosts of several networks do not fail together",
            "accept-queue": "no connection to that port opened",
        },
        undecided={"filtered": f"a connection to TCP {port} of one of them from another network: does it succeed?"},
        client=client,
        port=str(port),
        host=every.address,
        hosts=plural(hosts, "host"),
        count=every.failed,
        syns=every.syns,
        time=every.time,
        open=plural(others, "connection"),
        **fields,
    )


def are_near(hosts: list[SilentHost]) -> bool:
    """Returns whether the addresses of hosts have their first bits in common, as those of one network."""
    parsed = [ip_address(host.address) for host in hosts]
    return len({int(each) >> (each.max_prefixlen - NETWORK_BITS[each.version]) for each in parsed}) == 1


def opened_by(case: Case, host: SilentHost, client: str) -> Counter[int]:
    """Returns how many connections of a client to each port came about, whoever served them."""
    attempts, facts = case.transfers.attempts, host.facts
    return Counter(
        facts.ports[flow]
        for flow, source in enumerate(facts.sources)
        if source == client and attempts.is_connection(flow)
    )


def lan_of(address: str) -> str:
    """`10.1.4.0/24`: the network that an address has as a rule."""
    return str(ip_network((address, LAN_BITS), strict=False))


def are_strangers(targets: set[str]) -> bool:
    """Returns whether these are several hosts of several networks."""
    return len(targets) >= STRANGERS and len({lan_of(target) for target in targets}) >= STRANGE_LANS


def is_heard_beyond(case: Case, lan: str) -> bool:
    """Returns whether a host of another network sends ARP: then this one is wider."""
    senders = (row["address"] for row in case.trace.neighbors.rows(0, NEIGHBORS_MAX))
    return any("." in address and lan_of(address) != lan for address in senders)


def outcomes_of(rows: list[ExchangeRow]) -> set[str]:
    """Returns what came of requests."""
    return {row["outcome"] for row in rows}


def strangers_of(case: Case, client: str) -> list[ExchangeRow]:
    """Returns the ARP requests of a client for hosts beyond its usual network, if none of these answered and nobody sends from
    there, while all that it asked for within its network answered."""
    lan = lan_of(client)
    beyond: list[ExchangeRow] = []
    within: list[ExchangeRow] = []
    for row in exchanges_of(case.transfers, "arp"):
        if row["client"] == client and row["server"]:
            (within if lan_of(row["server"]) == lan else beyond).append(row)
    is_split = outcomes_of(within) == {"answered"} and outcomes_of(beyond) == {"unanswered"}
    is_strange = are_strangers({str(row["server"]) for row in beyond}) and not is_heard_beyond(case, lan)
    return beyond if is_split and is_strange else []


@cause(
    code="wrong-mask",
    title="Hosts of other networks taken for neighbors",
    sentence="{client} probably has a wrong subnet mask: it asks its own LAN for {hosts}, which answer none of "
    "{count:ARP request}; hosts of its own /24 do.",
    advice="Compare the mask of {client} with that of a neighbor (`ip addr`, `ipconfig`; DHCP option 1); what is for {host} "
    "belongs to the router.",
    shows="A client asks by ARP for at least three hosts in at least two networks outside the 24 bits of its own address. All "
    "stay unanswered, although it repeats them. Nobody there sends ARP, and everyone that it asks for within its 24 bits "
    "answers.",
    rivals={"host-down": "only hosts of other networks are silent, and all of them"},
    unknown="Whether the network is wider and all these hosts are off: a neighbor's mask shows it.",
    explains=("arp-unanswered",),
)
def wrong_mask(case: Case) -> Matches:
    findings = case.findings("arp-unanswered")
    silent = [row for rows in unanswered(case.transfers).values() for row in rows] if findings else []
    for client in dict.fromkeys(str(row["client"]) for row in silent if row["kind"] == "arp" and row["client"]):
        beyond = [] if ip_address(client).is_link_local else strangers_of(case, client)  # those have 16 bits
        cited_by = [each for each in findings if any(shows(each, [row]) for row in beyond)]
        if cited_by:
            yield mask_match(client, beyond, cited_by)


def mask_match(client: str, beyond: list[ExchangeRow], cited_by: list[Numbered]) -> Match:
    """Returns the match of a client that takes hosts of other networks for its neighbors."""
    first, *more = dict.fromkeys(str(row["server"]) for row in beyond)
    count = sum(row["attempts"] for row in beyond)
    return Match(
        certainty="likely",
        place="client",
        findings=cited_by,
        failed=count,
        attempts=count,
        waited_ns=union_ns(waits_of(beyond)),
        frames=packets_of(beyond),
        packets=count,
        filter=f"arp.opcode == 1 && arp.src.proto_ipv4 == {client}",
        proof=f"{plural(count, 'ARP request')} for hosts beyond {lan_of(client)}, none answered; all within it are",
        undecided={"host-down": "the mask of a neighbor: is the network wider than 24 bits?"},
        client=client,
        hosts=f"{first} and {plural(len(more), 'more host')} of other networks",
        host=first,
        count=count,
    )


@cause(
    code="host-down",
    title="Host down or not there",
    sentence="{host} {is_down}: {evidence}{beside}.",
    advice="{what}",
    shows="ARP requests or neighbor solicitations get no answer from the address asked for, although replies to the asker are "
    "in the capture. Or an ICMP error 'host unreachable' is about its connections. Or clients repeat SYNs to a host of which "
    "the capture has no packet at all.",
    rivals={
        "filtered": "from afar a host that is off and a firewall that drops all packets to it look alike; an ICMP error or ARP "
        "decides",
        "asymmetric-path": "the client repeats its SYNs, so no answer reached it on another path",
        "outage": "it is silent in the whole capture",
    },
    unknown="From afar, whether the host is off or a firewall drops all packets to it: only ARP, neighbor discovery or an "
    "ICMP error proves it.",
    explains=("syn-unanswered", "echo-unanswered", "icmp-errors", "network-duplicates"),
)
def host_down(case: Case) -> Matches:
    yield from not_on_the_lan(case)
    yield from nothing_answers(case)
    yield from silent_pings(case)
    for host in silent_hosts(case):
        match = from_afar(case, host)
        if match:
            case.claimed.update(host.flows)
            yield match


def not_on_the_lan(case: Case) -> Matches:
    """Yields the addresses that answer no ARP request."""
    findings = case.findings("arp-unanswered")
    by_target = unanswered(case.transfers) if findings else {}
    if len(by_target) > FEW_HOSTS:  # a router looks for the targets of a scan
        return
    for target, rows in by_target.items():
        shown_by = [each for each in findings if shows(each, rows)]
        if shown_by:
            attempts = [host for host in silent_hosts(case) if host.address == target]
            flows = [flow for host in attempts for flow in host.flows]
            case.claimed.update(flows)
            effects = [*about(case, flows, *EFFECTS), *about_host(case, target, *EFFECTS)]
            asking = addresses_of_machine(case, str(rows[0]["client"]))
            certain = is_shown(case.transfers, rows) or any(answering_hosts(case, address) for address in asking)
            yield lan_match(case, target, rows, findings=[*shown_by, *effects], flows=flows, is_certain=certain)


def addresses_of_machine(case: Case, address: str) -> set[str]:
    """Returns an address, and the others that its MAC address claims: packets to them would come by the same way."""
    neighbors = case.trace.neighbors.rows(0, NEIGHBORS_MAX)
    macs = {row["mac"] for row in neighbors if row["address"] == address}
    claimed = {row["address"] for row in neighbors if row["mac"] in macs}
    return {address, *claimed} if len(claimed) <= ADDRESSES_MOST else {address}


def shows(finding: Numbered, rows: list[ExchangeRow]) -> bool:
    """Returns whether a finding cites the first of these requests."""
    first = (rows[0]["capture"], rows[0]["asked_frame"])
    return first in {(packet.capture, packet.frame) for packet in finding.finding.frames}


def lan_match(case: Case, target: str, rows: list[ExchangeRow], *, is_certain: bool, **fields: Any) -> Match:
    """Returns the match of an address that answers no ARP request."""
    waited, count, packets = union_ns(waits_of(rows)), sum(row["attempts"] for row in rows), packets_of(rows)
    was_there = target in senders_of(case.transfers)
    asker, is_arp = str(rows[0]["client"]), rows[0]["kind"] == "arp"
    kind = "ARP request" if is_arp else "neighbor solicitation"
    evidence = f"{plural(count, kind)} from {named([str(row['client']) for row in rows], 1)}"
    time = f" in {show_duration(waited)}" if waited else ""
    return Match(
        certainty="proven" if is_certain else "likely",
        place="server",
        severity="info"
        if not is_certain and len(case.trace.flows)
        else None,  # replies may be at another port of the switch
        failed=count,
        attempts=count,
        waited_ns=waited,
        frames=packets,
        packets=count,
        filter=f"arp.dst.proto_ipv4 == {target}" if is_arp else f"icmpv6.nd.ns.target_address == {target}",
        proof=f"{plural(count, kind)}{time} without a reply"
        + (f", while others answered {asker}" if is_certain else ""),
        excluded={"filtered": "a firewall does not stop ARP within a network"} if is_certain and is_arp else {},
        undecided=undecided_of(asker, target, is_arp, is_certain),
        host=target,
        is_down=absence_str(is_arp, was_there) if is_certain else "is probably not on this network",
        evidence=f"{evidence}{time} got no reply",
        beside=", although it answered at other times" if was_there else "" if is_arp else FILTERED,
        what=repair_str(asker, target, is_arp),
        **fields,
    )


def undecided_of(asker: str, target: str, is_arp: bool, is_certain: bool) -> dict[str, str]:
    """Returns what would decide whether something keeps the requests or the replies away."""
    if not is_certain:
        return {"filtered": f"capture on {asker}: the reply goes to it alone"}
    return {} if is_arp else {"filtered": f"capture at {target}: do the solicitations arrive?"}


def repair_str(asker: str, target: str, is_arp: bool) -> str:
    """Returns what to do about an address that does not answer in its network."""
    if is_arp:
        return f"Check its cable, its VLAN and its address: `ip neigh show {target}` and `arping {target}` on {asker}."
    return (
        f"Capture at {target}: if the solicitations arrive, let ICMPv6 types 135 and 136 pass there (nftables, Docker); if not, "
        "look at multicast snooping on the switch or bridge."
    )


def absence_str(is_arp: bool, was_there: bool) -> str:
    """Returns how a host is told that does not answer in its network: neighbor solicitations may be filtered, ARP is not."""
    if was_there:
        return "stopped answering in this network"
    return "is not on this network" if is_arp else "does not answer in this network"


def nothing_answers(case: Case) -> Matches:
    """Yields the clients to which no host at all answers, although they try several."""
    by_client: dict[str, list[SilentHost]] = defaultdict(list)
    for host in silent_hosts(case):
        if not host.is_heard and not host.errors and host.syns >= REPEATED:
            by_client[host.client].append(host)
    for client, hosts in by_client.items():
        if len(hosts) >= SEVERAL and not answering_hosts(case, client):
            flows, syns = [flow for host in hosts for flow in host.flows], sum(host.syns for host in hosts)
            case.claimed.update(flows)
            yield Match(
                certainty="likely",
                place="path",
                findings=about(case, flows, *EFFECTS),
                flows=flows,
                failed=len(flows),
                attempts=len(flows),
                waited_ns=union_ns(hosts[0].facts.spans(flows)),
                frames=[packet for host in hosts for packet in first_syns(case, host)],
                packets=syns,
                filter=f"{family(client)}.src == {client} && tcp.flags.syn == 1",
                excluded={"asymmetric-path": "the client repeats its SYNs"},
                undecided={"filtered": f"a ping of the gateway of {client}, and a capture beyond it"},
                proof=f"no packet of {len(hosts)} hosts came to {client}",
                host="Nothing",
                is_down=f"answers {client}",
                evidence=f"none of {plural(len(flows), 'connection')} to {plural(len(hosts), 'host')} ({plural(syns, 'SYN')}) "
                "was answered; its own link, its gateway or a firewall there probably drops the packets",
                beside="",
                what=f"Check the link and the gateway of {client}: `ip route`, `ip neigh`, `ping` of the gateway.",
            )


def silent_pings(case: Case) -> Matches:
    """Yields the hosts that are pinged, answer none, and send nothing else."""
    findings = case.findings("echo-unanswered")
    senders = senders_of(case.transfers) if findings else set()
    tried = {host.address for host in silent_hosts(case)}
    by_host: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "icmp_echo") if findings else ():
        if not str(row["server"]).endswith(BROADCAST):  # hosts do not answer pings to all
            by_host[str(row["server"])].append(row)
    for host, rows in by_host.items():
        cited_by = about(
            case, [row["flow"] for row in rows if row["flow"] is not None], "echo-unanswered", "icmp-errors"
        )
        if (
            cited_by
            and host not in senders
            and host not in tried
            and not any(row["outcome"] == "answered" for row in rows)
        ):
            yield of_pings(case, host, rows, cited_by)


def of_pings(case: Case, host: str, rows: list[ExchangeRow], findings: list[Numbered]) -> Match:
    """Returns the match of a host that answers no ping."""
    codes = {str(row["code"]) for row in rows if row["outcome"] == "error"}
    is_reported = bool(codes & {"host unreachable", "address unreachable"})
    client, waits = str(rows[0]["client"]), waits_of(rows)
    return Match(
        certainty="proven" if is_reported else "possible",
        place="server",
        findings=findings,
        flows=list(dict.fromkeys(row["flow"] for row in rows if row["flow"] is not None)),
        failed=len(rows),
        attempts=len(rows),
        waited_ns=union_ns(waits),
        frames=packets_of(rows),
        packets=len(rows),
        excluded={"filtered": "a router reports that nobody there answers"} if is_reported else {},
        undecided={}
        if is_reported
        else {"filtered": f"a connection to a port that {host} serves: firewalls often drop pings"},
        proof=f"{plural(len(rows), 'ping')}, and no packet of {host} at all",
        host=host,
        is_down="is down or not there" if is_reported else "answers no ping",
        evidence=f"none of {plural(len(rows), 'ping')} from {client} was answered"
        + (", and a router reports 'host unreachable'" if is_reported else ""),
        beside="" if is_reported else ". It may be down, or a firewall drops pings",
        what=f"Check that {host} is up, and try a port that it serves: `nc -vz {host} PORT`.",
    )


def from_afar(case: Case, host: SilentHost) -> Match | None:
    """Returns the match of a host that is not heard of, or that a router reports as not there."""
    reports = [error for error in host.errors if error.cause in (*NO_HOST, *NO_ROUTE)]
    if reports:
        return reported(case, host, reports[0].cause in NO_ROUTE, str(reports[0].router))
    first_ns = min((span.start_ns for span in host.spans), default=0)
    had_worked = all(host.open_ports[port] for port in host.ports)  # else another port may be filtered
    was_heard = host.is_heard and had_worked and heard_until(case, host.address) < first_ns
    if (host.is_heard and not was_heard) or host.errors or host.syns < REPEATED:
        return None
    return unheard(case, host, was_heard)


def unheard(case: Case, host: SilentHost, was_heard: bool) -> Match:
    """Returns the match of a host of which no packet comes, or none any more."""
    neighbors = answering_hosts(case, host.client) - was_heard
    certainty: Certainty = "likely" if neighbors and (host.failed > 1 or host.syns > REPEATED) else "possible"
    tried = f"{plural(host.failed, 'connection')} to {ports_str(host.ports)} ({plural(host.syns, 'SYN')}{host.time})"
    working = f", while {plural(neighbors, 'other host')} answered" if neighbors else ""
    client = f" {host.client}" if working else ""
    return Match(
        certainty=certainty,
        place="server",
        undecided={
            "filtered": f"a ping of {host.address} or a connection to another port, from another place: whether it answers"
        },
        excluded={
            "asymmetric-path": "the client repeats its SYNs, so that no answer reached it on another path either"
        },
        proof=f"no packet of {host.address}{' since the first of them' if was_heard else ''}{working}{client}",
        host=host.address,
        **attempt_fields(case, host, *EFFECTS),
        is_down="stopped answering" if was_heard else "never answers",
        evidence=f"none of {tried} was answered" if host.failed > 1 else f"{tried} got no answer",
        beside=f"{working}. It is {PROBABLY[certainty]}down, or a firewall drops all packets to it",
        what=f"Try `ping {host.address}` and `traceroute -T -p {host.ports[0]} {host.address}`, also from a place nearer to it.",
    )


def heard_until(case: Case, host: str) -> float:
    """Returns when the last packet of a host came, ns since the first of the capture; negative without one."""
    directions = case.trace.directions
    lasts = array("d", directions._packed("last_ns", "d", offset=case.transfers.base_ns))
    of_host = (ns for source, ns in zip(directions.column("source"), lasts, strict=True) if source == host and ns == ns)
    return max(of_host, default=-1.0)


def reported(case: Case, host: SilentHost, no_route: bool, router: str) -> Match:
    """Returns the match of a host that a router reports as not there."""
    is_self = router == host.client
    request = "neighbor solicitations" if ":" in host.address else "ARP requests"
    reason = "no route to it" if no_route else f"no answer to its {request}"
    attempts = plural(host.failed, "connection")
    return Match(
        certainty="proven",
        place="device" if no_route else "server",
        excluded={"filtered": f"{router} reports that it has {reason}, not that it forbids"},
        proof=f"ICMP errors of {router}",
        host=host.address,
        **attempt_fields(case, host, *EFFECTS),
        is_down="cannot be reached" if no_route else "is down or not there",
        evidence=f"{'this host' if is_self else f'the router {router}'} reports that it has {reason}, and {attempts} failed",
        beside="",
        what=f"Look at the routes of {router}: `ip route get {host.address}`."
        if no_route
        else f"Check that {host.address} is up and in the network of {router}: `ip neigh show {host.address}` there.",
    )


def answering_hosts(case: Case, client: str) -> int:
    """Returns the number of other hosts from which a client got packets."""
    directions = case.trace.directions
    columns = (directions.column(name) for name in ("source", "destination", "packets"))
    return len({source for source, target, packets in zip(*columns, strict=True) if target == client and packets})
