# SPDX-License-Identifier: Apache-2.0
"""Services of the local network that fail: addresses (ARP, DHCP) and multicast."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.gateways import cites
from wiretale.analyzer.causes.unanswered.silent_hosts import about_host
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.findings.hosts.dhcp import REPEATS_MIN, mac_of
from wiretale.analyzer.findings.hosts.multicast import unanswered_queries
from wiretale.analyzer.findings.hosts.neighbors import in_conflict
from wiretale.analyzer.findings.judged import listed
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import ExchangeRow, NeighborRow

DHCP_ADVICE = (
    "Check the server and its free addresses (`show ip dhcp binding`), the relay of this subnet (`ip helper-address`), and "
    "portfast at the port."
)
SERVER_PORT, CLIENT_PORT = 67, 68
IGNORED_MIN, AGAIN_NS = 3, 35_000_000_000  # Discovers with an Offer, and the longest time between them
FLOWS_MAX = 1_000
LATE_REPLY_NS, LATE_REPLIES, BEHIND_NS = (
    200_000_000,
    2,
    100_000_000,
)  # replies of a MAC address; a flow that waited for one
PATH_SHARE = 0.5  # of the wait: a round trip that is longer explains it
Start = tuple[int, int]  # of a flow: time, round trip of its handshake or 0
GIVEN_UP_NS = 20_000_000_000  # after four Discovers (RFC 2131 section 4.1)
FAILURES = (
    "connection-refused",
    "echo-unanswered",
    "arp-unanswered",
    "reset",
    "idle-reset",
    "syn-unanswered",
    "syn-lost",
    "keep-alive-unanswered",
)


@cause(
    code="duplicate-address",
    title="Two machines with one address",
    sentence="{machines} machines claim {address}: {macs} both answer {kind} for it[, and {lost}].",
    advice="Find both with `show mac address-table`, and give one of them another address; `arping -D -I eth0 {address}` "
    "tests it.",
    shows="Two MAC addresses answered one ARP request, or one neighbor solicitation, within 1 s. Those of VRRP, CARP, HSRP, "
    "GLBP and NLB do not count, nor does one that answers for four addresses or more.",
    rivals={
        "host-down": "the address answers, from two machines",
        "outage": "other addresses go on, and each silence begins when the other machine answers",
    },
    unknown="Whether both MAC addresses are adapters of one machine in this network. Behind a router nothing of it shows.",
)
def duplicate_address(case: Case) -> Matches:
    findings = case.findings("duplicate-address")
    for rows in in_conflict(case.transfers) if findings else ():
        address, requests = rows[0]["address"], max(row["conflicts"] for row in rows)
        cited_by = [each for each in findings if cites(each, rows)]
        if not cited_by:  # two adapters of one machine
            continue
        effects = [*about_host(case, address, *FAILURES), *arp_of(case, address)]
        case.claimed.update(flow for each in effects for flow in unanswered_of(each))
        yield Match(
            certainty="proven",
            place="server",
            findings=[*cited_by, *effects],
            frames=[frame for each in cited_by for frame in each.finding.frames],
            packets=sum(row["conflicts"] for row in rows),
            filter=cited_by[0].finding.filter if cited_by else None,
            severity="error",
            proof=f"{plural(requests, 'request')} got replies of both within 1 s",
            excluded={"host-down": "the address answers, from two machines"},
            address=address,
            **conflict_words(rows),
            **conflict_costs(case, address, effects),
        )


def conflict_words(rows: list[NeighborRow]) -> dict[str, Any]:
    """Returns how the machines are told."""
    macs = list(dict.fromkeys(row["mac"] for row in rows))
    return {
        "machines": "Two" if len(macs) == 2 else f"{len(macs):,}",
        "macs": listed(macs, "and"),
        "kind": "neighbor solicitations" if ":" in rows[0]["address"] else "ARP",
    }


def unanswered_of(finding: Numbered) -> list[int]:
    """Returns the attempts of a finding about SYNs without an answer."""
    return [flow for flow, _ in finding.finding.flows] if finding.finding.code == "syn-unanswered" else []


def conflict_costs(case: Case, address: str, effects: list[Numbered]) -> dict[str, Any]:
    """Returns what failed because of it."""
    lost = sum(each.finding.failed or 0 for each in effects if each.finding.code == "echo-unanswered")
    vain = [flow for each in effects for flow in unanswered_of(each)]
    is_asker = bool(vain) and all(case.flow(flow)["source"] == address for flow in vain)
    return {
        "failed": sum(each.finding.failed or 0 for each in effects),
        "waited_ns": max((each.finding.waited_ns or 0 for each in effects), default=0) or None,
        "lost": f"{plural(lost, 'ping')} got no answer"
        if lost
        else f"{plural(len(vain), 'connection attempt')} from it got no answer, which went to the other one"
        if is_asker
        else "connections to it fail when the other one answers",
    }


def arp_of(case: Case, address: str) -> list[Numbered]:
    """Returns the findings about ARP requests for an address without a reply."""
    requests = {
        (row["capture"], row["asked_frame"])
        for row in exchanges_of(case.transfers, "arp", "nd")
        if row["server"] == address
    }
    return [
        each
        for each in case.findings("arp-unanswered")
        if any((packet.capture, packet.frame) in requests for packet in each.finding.frames)
    ]


@cause(
    code="dhcp-no-lease",
    title="No address from DHCP",
    sentence="{what}.",
    advice="{advice}",
    shows="A client repeats its Discover and gets no Offer. Or a server answers its Request with a NAK and it gets no address "
    "afterwards. Or the Offer is in the capture, and the client's repeated Request gets neither ACK nor NAK. Or it sends at "
    "least three Discovers, each of which gets an Offer, and no Request.",
    rivals={"one-direction": "the client repeats its Discover with the same id, as after an Offer that it never saw"},
    unknown="At the client, whether the server is down or has no free address, or the relay is missing.",
)
def dhcp_no_lease(case: Case) -> Matches:
    for each in case.findings("dhcp-no-offer", "dhcp-refused"):
        is_long = (each.finding.waited_ns or 0) >= GIVEN_UP_NS  # though other clients got an Offer
        if each.finding.severity != "info" or (each.finding.code == "dhcp-no-offer" and is_long):
            yield dhcp_match(case, each, each.finding.code == "dhcp-no-offer")
    yield from unconfirmed(case)
    yield from ignored_offers(case)


def without_ack(rows: list[ExchangeRow], offers: Mapping[str, ExchangeRow]) -> list[ExchangeRow]:
    """Returns the Requests of clients with an Offer that never got an ACK or NAK."""
    requests = [row for row in rows if row["type"] == "Request"]
    settled = {mac_of(row) for row in requests if row["outcome"] in ("answered", "refused")}
    silent = [row for row in requests if row["outcome"] == "unanswered"]
    return [row for row in silent if mac_of(row) in offers and mac_of(row) not in settled]


def unconfirmed(case: Case) -> Matches:
    """Yields the clients that got an Offer, and never an ACK or NAK of their Requests, although an Offer shows that replies pass
    here."""
    rows = exchanges_of(case.transfers, "dhcp")
    offers = {mac_of(row): row for row in rows if row["code"] == "OFFER" and row["answered_frame"] is not None}
    vain = without_ack(rows, offers)
    sent, waited = sum(row["attempts"] for row in vain), union_ns(waits_of(vain))
    if sent < REPEATS_MIN:
        return
    servers = named([str(offers[mac_of(row)]["server"]) for row in vain], 1)
    clients, time = named([row["name"] or "?" for row in vain], 1), f" in {show_duration(waited)}" if waited else ""
    yield Match(
        certainty="proven",
        place="server",
        failed=len({row["name"] for row in vain}),
        attempts=len({row["name"] for row in vain}),
        waited_ns=waited,
        frames=packets_of(vain),
        packets=sent,
        filter="dhcp.option.dhcp == 3",
        excluded={"one-direction": "an Offer of the same server is in the capture"},
        proof=f"{plural(sent, 'Request')}{time} after an Offer, without an ACK or NAK",
        what=f"The DHCP server {servers} offers {clients} an address and never confirms it: {plural(sent, 'Request')}{time} got "
        "no ACK, so it has no address",
        advice=f"Look at the log of {servers} for these Requests: the lease may be taken, or its database cannot be written. If "
        "they do not arrive there, look at the relay, and at a second server that answered sooner.",
    )


def dhcp_match(case: Case, each: Numbered, is_silent: bool) -> Match:
    """Returns the match of clients without an Offer, or with a NAK."""
    outcome = "unanswered" if is_silent else "refused"
    rows = [row for row in exchanges_of(case.transfers, "dhcp") if row["outcome"] == outcome]
    clients, sent = named([row["name"] or "?" for row in rows], 1), sum(row["attempts"] for row in rows)
    servers, waited = named([str(row["server"]) for row in rows if row["server"]], 1), each.finding.waited_ns
    time = f" in {show_duration(waited)}" if waited else ""
    words: dict[str, Any]
    if is_silent:
        words = {
            "proof": f"{plural(sent, 'Discover')}{time} without an Offer",
            "what": f"No DHCP server answered {clients}: {plural(sent, 'Discover')}{time} got no Offer, so it has no address",
            "advice": DHCP_ADVICE,
        }
    else:
        words = {
            "proof": f"a NAK of {servers}",
            "what": f"The DHCP server {servers} refuses the address that {clients} asks for ({plural(sent, 'Request')}, NAK)",
            "advice": f"Compare that address with the ranges of {servers}, and look for a second DHCP server in this network.",
        }
    return Match(
        certainty="proven",
        place="server",
        findings=[each],
        failed=each.finding.failed,
        attempts=each.finding.failed,
        waited_ns=waited,
        packets=each.finding.packets,
        filter=each.finding.filter,
        excluded={"one-direction": "the client asks again, so that no Offer reached it"} if is_silent else {},
        **words,
    )


def offers_without_request(rows: list[ExchangeRow]) -> dict[str, list[ExchangeRow]]:
    """Returns by client the Discovers that got an Offer, if the client soon asked again as a rule and sent no Request at all."""
    requesting = {mac_of(row) for row in rows if row["type"] == "Request"}
    by_client: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in rows:
        if (
            row["name"]
            and mac_of(row) not in requesting
            and row["code"] == "OFFER"
            and row["answered_frame"] is not None
        ):
            by_client[row["name"]].append(row)
    return {
        client: of for client, of in by_client.items() if len(of) >= IGNORED_MIN and 2 * soon_again(of) > len(of) - 1
    }


def soon_again(rows: list[ExchangeRow]) -> int:
    """Returns how many Discovers soon follow another one: a client waits longer and longer and begins anew, a monitor asks
    every minute."""
    times = [row["asked_ns"] or 0 for row in rows]
    return sum(later - at_ns <= AGAIN_NS for at_ns, later in pairwise(times))


def are_damaged(case: Case) -> bool:
    """Returns whether the UDP checksums of all that DHCP servers send to clients are wrong."""
    sent = [case.direction(flow, 0) for flow in dhcp_flows(case)]
    wrong = [(row["checksum_errors"] or 0) + (row["checksums_offloaded"] or 0) for row in sent]
    return bool(sent) and all(count == row["packets"] for count, row in zip(wrong, sent, strict=True))


def ignored_offers(case: Case) -> Matches:
    """Yields the clients that get Offers and ask again all the same."""
    for client, rows in offers_without_request(exchanges_of(case.transfers, "dhcp")).items():
        servers, is_damaged = named(sorted({str(row["server"]) for row in rows}), 1), are_damaged(case)
        lasted = (rows[-1]["asked_ns"] or 0) - (rows[0]["asked_ns"] or 0)
        yield Match(
            certainty="likely",
            place="server" if is_damaged else "client",
            failed=1,
            attempts=1,
            waited_ns=lasted,
            frames=packets_of(rows),
            packets=len(rows),
            filter="dhcp",
            undecided={"one-direction": f"a capture at the adapter of {client}: whether the Offers arrive there"},
            proof=f"{plural(len(rows), 'Discover')}, an Offer to each, and no Request"
            + (", and the UDP checksums of the Offers are wrong" if is_damaged else ""),
            what=f"{client} takes no Offer of {servers}: it sent {plural(len(rows), 'Discover')} in {show_duration(lasted)}, "
            "each got an Offer, and no Request followed. "
            + (
                "It ignores them, probably because their UDP checksum is wrong"
                if is_damaged
                else "The Offers probably do not reach it, or lack what it wants"
            ),
            advice="Turn checksum offload off at the server, or at its virtual adapter (`ethtool -K eth0 tx off`)."
            if is_damaged
            else f"Look whether a switch or a relay drops the Offers on their way to {client} (DHCP snooping, VLAN), and compare "
            "them with what it wants (its vendor class and list of parameters, a boot file for PXE).",
        )


def leases_of(case: Case) -> dict[str, list[ExchangeRow]]:
    """Returns the Requests that were confirmed, by server."""
    by_server: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "dhcp"):
        if row["type"] == "Request" and row["code"] == "ACK" and row["client"] and row["server"]:
            by_server[row["server"]].append(row)
    return by_server


def dhcp_flows(case: Case) -> list[int]:
    """Returns the first flows from DHCP servers to clients."""
    flows = case.trace.flows
    ports = zip(flows.column("source_port"), flows.column("destination_port"), strict=True)
    return [flow for flow, pair in enumerate(ports) if pair == (SERVER_PORT, CLIENT_PORT)][:FLOWS_MAX]


def network_of(row: ExchangeRow) -> str:
    """`192.168.1.x`: the network of a leased address, as far as 24 bits tell it."""
    return f"{str(row['client']).rpartition('.')[0]}.x"


@cause(
    code="second-dhcp",
    title="A second DHCP server with another network",
    sentence="{count} DHCP servers give out addresses of different networks on one LAN: {leases}; one of them {probably}does not "
    "belong there{effect}.",
    advice="Find the port of the one that does not belong there (`show mac address-table`; often a home router) and unplug it; "
    "DHCP snooping on the switches keeps others away.",
    shows="In one VLAN, at least two servers confirm addresses that have no network (24 bits) in common. At least one of them "
    "answers the clients itself, without a relay.",
    rivals={
        "dhcp-no-lease": "each client gets an address",
        "duplicate-address": "the addresses of the two have no network in common",
    },
    unknown="Which of them belongs there, and whether the LAN has two networks on purpose.",
    explains=("dns-unanswered",),
)
def second_dhcp(case: Case) -> Matches:
    leases = sorted(leases_of(case).items(), key=lambda each: -len(each[1]))
    if len(leases) > 1 and are_apart(case, leases):
        yield Match(
            certainty="likely",
            place="server",
            attempts=len({row["name"] for _, rows in leases for row in rows}),
            frames=packets_of([rows[0] for _, rows in leases]),
            packets=sum(len(rows) for _, rows in leases),
            filter="dhcp.option.dhcp == 2 || dhcp.option.dhcp == 5",
            excluded={"dhcp-no-lease": "each client gets an address"},
            undecided={"duplicate-address": "Ask who runs the LAN whether both servers belong there."},
            proof="; ".join(
                f"{server} confirmed {named([str(row['client']) for row in rows], 1)}" for server, rows in leases
            ),
            count="Two" if len(leases) == 2 else f"{len(leases):,}",
            leases=" and ".join(leases_str(server, rows) for server, rows in leases[:2]),
            **nameless_words(case, leases),
        )


def nameless_words(case: Case, leases: list[tuple[str, list[ExchangeRow]]]) -> dict[str, Any]:
    """Returns what failed, if one of these servers answers no DNS question of its clients."""
    for server, rows in leases:
        findings = about_host(case, server, "dns-unanswered")
        if findings:
            return {
                "findings": findings,
                "failed": len({row["name"] for row in rows}),
                "waited_ns": findings[0].finding.waited_ns,
                "effect": f", and no name resolves at {server}",
            }
    return {"effect": ""}


def are_apart(case: Case, leases: list[tuple[str, list[ExchangeRow]]]) -> bool:
    """Returns whether servers of one VLAN, of which one at least needs no relay, give out addresses of networks of their own."""
    sent = [case.flow(flow) for flow in dhcp_flows(case)]
    networks = [network for _, rows in leases for network in {network_of(row) for row in rows}]
    are_here = {row["source"] for row in sent}.intersection(server for server, _ in leases)
    return bool(are_here) and len({row["path"] for row in sent}) == 1 and len(set(networks)) == len(networks)


def leases_str(server: str, rows: list[ExchangeRow]) -> str:
    """`192.168.1.1 gave 192.168.1.x to 4 clients`."""
    networks, clients = sorted({network_of(row) for row in rows}), len({row["name"] for row in rows})
    return f"{server} gave {named(networks, 1)} to {plural(clients, 'client')}"


@cause(
    code="multicast-stop",
    title="Multicast stops because its membership ends",
    sentence="{sentence}",
    advice="{advice}",
    shows="A stream to a group ends 255 to 320 s after its last membership report, although the capture goes on. No IGMP "
    "query came since, or nobody answered those that came. A switch that snoops forgets a member after 260 s (RFC 3376 "
    "section 8.4).",
    rivals={"outage": "other streams go on, and the end comes as long after the report as a membership lasts"},
    unknown="Whether the source stopped at that moment by itself; a new report would bring the stream back.",
)
def multicast_stop(case: Case) -> Matches:
    for each in case.findings("multicast-stopped"):
        flows = [flow for flow, _ in each.finding.flows]
        is_asked = any(unanswered_queries(case.transfers, flow) for flow in flows)
        came = "and no report after the queries that came" if is_asked else "and no query came"
        yield Match(
            certainty="proven",
            place="client" if is_asked else "device",
            findings=[each],
            failed=1,
            attempts=1,
            waited_ns=each.finding.waited_ns,
            filter=each.finding.filter,
            excluded={"outage": f"the stream ended as long after the last report as a membership lasts, {came}"},
            sentence=each.finding.sentence,
            advice=each.finding.advice,
            proof=f"{'no report since, though queries came' if is_asked else 'no IGMP query since the report'}, and "
            f"{show_duration(each.finding.waited_ns)} without the stream",
            flows=flows,
        )


def starts_of(case: Case) -> dict[str, list[Start]]:
    """Returns when the first flows to each address began, and their round trips, ns."""
    flows, starts = case.trace.flows, defaultdict[str, list[Start]](list)
    columns = (flows.column(name) for name in ("destination", "first_ns", "handshake_rtt_ns"))
    for address, first_ns, rtt_ns in zip(*columns, strict=True):
        if first_ns is not None and len(starts) < FLOWS_MAX:
            starts[address].append((first_ns, rtt_ns or 0))
    return starts


def is_late(row: ExchangeRow) -> bool:
    """Returns whether an ARP reply came so late that somebody may notice."""
    return (row["waited_ns"] or 0) >= LATE_REPLY_NS


def is_waited_for(row: ExchangeRow, starts: Mapping[str, list[Start]]) -> bool:
    """Returns whether a flow to an address began right after its ARP reply, and met no such delay: else the path is long."""
    answered_ns, short_ns = row["answered_ns"] or 0, PATH_SHARE * (row["waited_ns"] or 0)
    began = starts.get(str(row["server"]), ())
    return any(0 <= at - answered_ns <= BEHIND_NS and rtt_ns <= short_ns for at, rtt_ns in began)


def late_replies(case: Case) -> dict[str, list[ExchangeRow]]:
    """Returns the ARP requests that were asked once and answered late, right before a flow to that address, by the MAC address
    that answers so as a rule."""
    answered: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "arp"):
        if row["outcome"] == "answered" and row["attempts"] == 1 and row["code"]:
            answered[row["code"]].append(row)
    starts = starts_of(case) if any(map(is_late, chain.from_iterable(answered.values()))) else {}
    waited = {mac: late_of(rows, starts) for mac, rows in answered.items()}
    return {mac: rows for mac, rows in waited.items() if rows}


def late_of(rows: list[ExchangeRow], starts: Mapping[str, list[Start]]) -> list[ExchangeRow]:
    """Returns the late replies for which a flow waited, if a machine answers late as a rule; else none."""
    late = [row for row in rows if is_late(row)]
    waited = [row for row in late if is_waited_for(row, starts)]
    return waited if len(waited) >= LATE_REPLIES and 2 * len(late) >= len(rows) else []


@cause(
    code="late-arp",
    title="ARP replies come late",
    sentence="{mac} answers ARP requests late: {client} waited {took} for the MAC address of {addresses} before the first packet "
    "could leave.",
    advice="If {mac} answers for other hosts (proxy ARP), turn its delay off: `sysctl net.ipv4.neigh.IF.proxy_delay=0`; else "
    "look for a host or radio that sleeps, or a busy CPU.",
    shows="At least two ARP requests were asked once, and one MAC address answered them 200 ms later or more, as it does half "
    "of all that it answers. A flow to the address began within 100 ms of the answer, and its round trip takes at most half "
    "of the wait.",
    rivals={
        "host-down": "every request is answered",
        "stall": "half of its answers or more are late, whatever else passes",
    },
    unknown="Why it waits.",
)
def late_arp(case: Case) -> Matches:
    for mac, rows in late_replies(case).items():
        waits = sorted(row["waited_ns"] or 0 for row in rows)
        addresses = {str(row["server"]) for row in rows}
        least, most = show_duration(waits[0]), show_duration(waits[-1])
        yield Match(
            certainty="proven",
            place="server",
            waited_ns=union_ns(waits_of(rows)),
            members=len(rows),
            frames=packets_of(rows),
            packets=len(rows),
            filter=f"arp.src.hw_mac == {mac} || arp.dst.hw_mac == {mac}",
            proof=f"{plural(len(rows), 'request')} asked once, and answered after {least} to {most}",
            excluded={"host-down": "every request is answered"},
            mac=mac,
            client=named([str(row["client"]) for row in rows], 1),
            took=least if least == most else f"{least} to {most}",
            addresses=next(iter(addresses)) if len(addresses) == 1 else f"{len(addresses):,} addresses",
        )
