# SPDX-License-Identifier: Apache-2.0
"""UDP services that answer nothing, QUIC that is dropped, and DNS queries of one port that stay without an answer."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.host_down import answering_hosts
from wiretale.analyzer.causes.unanswered.silent_hosts import HOSTS_MAX, about, any_filter, spans_of
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.application import queries_of
from wiretale.analyzer.findings.exchanges.exchange_rows import named, waits_of
from wiretale.analyzer.findings.hosts.neighbors import senders_of
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import family, first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

FLOWS_MAX = 2_000
DATAGRAMS_MIN, BESIDE_MIN = 3, 2  # without an answer; of other ports, answered meanwhile
#: services of which each datagram of a client wants an answer
SERVICES = {
    88: "Kerberos request",
    123: "NTP request",
    161: "SNMP request",
    500: "IKE message",
    1194: "OpenVPN message",
    1812: "RADIUS request",
    1813: "RADIUS accounting request",
    4500: "IKE message",
}
IKE_PORTS, REDUNDANT = (500, 4500), (88, 123, 1812, 1813)  # services of which a client has several servers
INITIATION, INITIATION_BYTES = "WireGuard handshake initiation", 148
Service = tuple[str, int, str]  # address, port, and what its clients ask for
BROADCAST = ".255"
PORT_QUESTIONS_MIN = 4  # on each side
FALLBACK_NS, FALLBACK_QUICK_NS = 30_000_000_000, 500_000_000  # from QUIC to TCP: the longest, and a quick one


def service_of(row: FlowRow) -> str | None:
    """Returns what a flow of datagrams without an answer asks for; None if it is unknown."""
    port = row["destination_port"] or 0
    if row["protocol"] != "udp" or row["packets"] < DATAGRAMS_MIN or row["icmp_errors"]:
        return None
    if row["payload_bytes"] == INITIATION_BYTES * row["packets"]:
        return INITIATION
    if row["payload_bytes"] == row["packets"]:  # one byte each: keep-alives of a NAT
        return None
    is_single = not ip_address(row["destination"]).is_multicast and not row["destination"].endswith(BROADCAST)
    return SERVICES.get(port) if is_single else None


@cause(
    code="udp-silent",
    title="UDP service does not answer",
    sentence="{server} answers none of {count} {requests} of {client}{time}, {state}.",
    advice="{todo}",
    shows="At least three datagrams go to a service that answers each (NTP, SNMP, RADIUS, Kerberos, IKE, OpenVPN), or are "
    "WireGuard handshake initiations by their size, which a client repeats only without an answer. None of them gets an answer "
    "or an ICMP error, while other packets come to the client or from the server. It is a note if another server of that "
    "service (NTP, RADIUS, Kerberos) answers the client. That doesn't apply if none of them answers one port of "
    "the client, and the same server answers its other ports meanwhile: then the port is the reason. If it serves the client "
    "over TCP at the same port, UDP alone is missing.",
    rivals={
        "one-direction": "other packets come to the client, or from the server",
        "refused": "no ICMP error 'port unreachable' came",
    },
    unknown="Whether the service ignores the datagrams, or they or the answers are dropped on the way.",
    explains=("one-way",),
)
def udp_silent(case: Case) -> Matches:
    by_server = silent_services(case)
    clients, greeted = (served_clients(case), negotiated(case)) if by_server else (set(), set())
    yield from filtered_ports(case, by_server)
    unheard = unheard_hosts(case) if by_server else set()
    for (host, port, service), rows in list(by_server.items())[:HOSTS_MAX]:
        client, is_up = rows[0]["source"], host in senders_of(case.transfers)
        is_served = port in REDUNDANT and (client, port) in clients
        if is_up or service == INITIATION or answering_hosts(case, client):
            match = silent_match(case, endpoint_str(host, port), service, rows, is_up)
            match.severity = "info" if is_served else None
            if host in unheard:
                match.certainty = "possible"
                match.words["state"] = "but its packets of other connections are not in the capture either"
            if not is_served and talks_by_tcp(case, rows):
                match.words["state"] = (
                    f"although it answers over TCP {port}: a firewall probably drops UDP {port}, or nothing there takes UDP"
                )
            if port in IKE_PORTS and (client, host) in greeted:
                match.certainty = "likely"
                match.words.update(half_words(case, rows))
            yield match


def unheard_hosts(case: Case) -> set[str]:
    """Returns the hosts of which a TCP connection has only the other direction: their packets take another way."""
    flows = case.transfers.hidden.one_way_answered[:FLOWS_MAX]
    rows = (case.direction(flow, side) for flow in flows for side in (0, 1))
    return {row["destination"] for row in rows if row["packets"]}


def silent_services(case: Case) -> dict[Service, list[FlowRow]]:
    """Returns the flows without an answer to services that answer each datagram, which no cause explains yet."""
    by_server: dict[Service, list[FlowRow]] = defaultdict(list)
    for flow, _ in case.transfers.flow_counts["one_way"][:FLOWS_MAX]:
        row = case.flow(flow)
        service = service_of(row) if flow not in case.claimed else None
        if service:
            by_server[row["destination"], row["destination_port"] or 0, service].append(row)
    return by_server


def served_clients(case: Case) -> set[tuple[str, int]]:
    """Returns the clients that get answers of these services, each with the port of the service."""
    flows, alone = case.trace.flows, {flow for flow, _ in case.transfers.flow_counts["one_way"]}
    ports = array("I", flows._packed("destination_port", "I"))
    sources = enumerate(flows.column("source"))
    return {(source, ports[flow]) for flow, source in sources if ports[flow] in SERVICES and flow not in alone}


def filtered_ports(case: Case, by_server: dict[Service, list[FlowRow]]) -> Matches:
    """Yields for each port of a client from which no server of a service gets an answer, while one of them answers its other
    ports, the match of all these servers, which are taken out."""
    alone = {flow for flow, _ in case.transfers.flow_counts["one_way"]} if by_server else set()
    single = [key for key, rows in by_server.items() if key[1] in REDUNDANT and are_of(rows, end_of(rows[0]))]
    for key in single[:HOSTS_MAX]:
        rows = by_server.get(key, [])
        beside = answered_beside(case, rows, alone) if rows else 0
        if beside and end_of(rows[0]) not in answered_ends(case, key[1], alone):
            yield filtered_match(case, by_server, key, beside)


def filtered_match(case: Case, by_server: dict[Service, list[FlowRow]], key: Service, beside: int) -> Match:
    """Returns the match of a port of a client to which no server of a service answers; takes them out."""
    end = end_of(by_server[key][0])
    also = [other for other, rows in by_server.items() if other[1:] == key[1:] and are_of(rows, end)]
    silent = [row for other in (key, *also) for row in (by_server.pop(other, ()))]
    match = silent_match(case, endpoint_str(*key[:2]), key[2], silent, True)
    match.certainty, match.place = "likely", "path"
    match.words.update(port_words(silent[0], beside, len(also) - 1))
    return match


def end_of(row: FlowRow) -> tuple[str, int | None]:
    """Returns a client and its port."""
    return row["source"], row["source_port"]


def are_of(rows: Sequence[FlowRow], end: tuple[str, int | None]) -> bool:
    """Returns whether all flows come from one port of a client."""
    return all(end_of(row) == end for row in rows)


def answered_ends(case: Case, port: int, alone: Collection[int]) -> set[tuple[str, int | None]]:
    """Returns the clients and their ports to which a service answers."""
    names = ("source", "source_port", "destination_port")
    ends = zip(*(case.trace.flows.column(name) for name in names), strict=True)
    return {(source, sent) for flow, (source, sent, to) in enumerate(ends) if to == port and flow not in alone}


def answered_beside(case: Case, rows: Sequence[FlowRow], alone: Collection[int]) -> int:
    """Returns how many flows of other ports of the client this server answered, if at least two of the answers came between
    these."""
    client, host, port = rows[0]["source"], rows[0]["destination"], rows[0]["destination_port"]
    ends = zip(*(case.trace.flows.column(name) for name in ("source", "destination", "destination_port")), strict=True)
    flows = [flow for flow, end in enumerate(ends) if end == (client, host, port) and flow not in alone]
    silent = spans_of(rows)
    began = [(flow, case.flow(flow)["first_ns"] or 0) for flow in flows[:FLOWS_MAX]]
    within = [flow for flow, ns in began if any(span.start_ns < ns < span.end_ns for span in silent)]
    return len(flows) if sum(case.direction(flow, 1)["packets"] for flow in within) >= BESIDE_MIN else 0


def port_words(row: FlowRow, beside: int, also: int) -> Words:
    """Returns what is said of datagrams of one port without an answer, of this and other servers, while other ports get some."""
    source, host = row["source_port"], row["destination"]
    return {
        "server": endpoint_str(host, row["destination_port"] or 0)
        + (f", like {plural(also, 'other server')}," if also else ""),
        "client": f"{row['source']} from port {source}",
        "state": f"while {host if also else 'it'} answers {plural(beside, 'other port')} of that client: the way probably drops "
        f"what is to or from port {source}",
        "todo": f"Let the client send from another port (`ntpdate -u`, chrony `acquisitionport 0`), or ask who runs the firewall "
        f"or line to let answers to UDP {source} pass: some providers drop those to port 123.",
    }


def negotiated(case: Case) -> set[tuple[str | None, str | None]]:
    """Returns the clients and servers of which IKE_SA_INIT was answered."""
    rows = case.exchanges("kind", "service")
    return {
        (row["client"], row["server"])
        for row in rows
        if row["type"] == "IKE negotiation" and row["outcome"] == "answered"
    }


def in_parts(case: Case, rows: Sequence[FlowRow]) -> list[ExchangeRow]:
    """Returns the logins of IKE between these ends that were sent in fragments of IKE itself (RFC 7383)."""
    ends = {(row["source"], row["destination"]) for row in rows}
    logins = [row for row in case.exchanges("kind", "service") if row["type"] == "IKE login" and row["name"]]
    return [row for row in logins if (row["client"], row["server"]) in ends]


def parts_words(logins: Sequence[ExchangeRow]) -> Words:
    """Returns what is said of a login of IKE in fragments of its own that gets no answer."""
    parts = named(sorted({str(row["name"]).replace("\\032", " ") for row in logins}), 1)
    return {
        "count": f"{sum(row['attempts'] for row in logins):,}",
        "requests": f"IKE_AUTH messages ({parts} each)",
        "state": "although it answered IKE_SA_INIT before: a fragment never arrives, or it takes no message in so many",
        "todo": "Capture on the server: whether all fragments arrive. If they do, see its limit of fragments (some take 16 "
        "at most) and let the client make larger ones, or use smaller certificates (ECDSA); else look for what drops one on "
        "the way.",
    }


def half_words(case: Case, rows: Sequence[FlowRow]) -> Words:
    """Returns what is said of IKE messages without an answer that follow an answered IKE_SA_INIT."""
    sides = [case.direction(row["flow"], 0) for row in rows]
    count, parts = sum(side["fragmented_datagrams"] or 0 for side in sides), in_parts(case, rows)
    if parts:
        return parts_words(parts)
    if not count:
        return {
            "state": "although it answered IKE_SA_INIT before: they are dropped on the way, or it ignores what they say"
        }
    state = "although it answered the short IKE_SA_INIT before: their fragments are probably dropped on the way"
    return {"count": f"{count:,}", "requests": "fragmented IKE messages", "state": state}


def silent_match(case: Case, server: str, service: str, rows: Sequence[FlowRow], is_up: bool) -> Match:
    """Returns the match of a service that answers no datagram."""
    flows, sent = [row["flow"] for row in rows], sum(row["packets"] for row in rows)
    waited, host = union_ns(spans_of(rows)), rows[0]["destination"]
    case.claimed.update(flows)
    return Match(
        certainty="proven",
        place="server",
        findings=about(case, flows, "one-way"),
        flows=flows,
        failed=len(rows),
        attempts=len(rows),
        waited_ns=waited,
        frames=first_packets(case.transfers, flows),
        packets=sent,
        filter=any_filter(rows),
        proof=f"{plural(sent, 'datagram')} without an answer or an ICMP error",
        excluded={
            "one-direction": f"packets {'of ' + host if is_up else 'to the client'} are in the capture",
            "refused": "no ICMP error came back",
        },
        server=server,
        count=f"{sent:,}",
        requests=f"{service}s",
        client=named(sorted({row["source"] for row in rows}), 1),
        time=f" in {show_duration(waited)}" if waited else "",
        state="although it sends other packets" if is_up else "and the capture has nothing else from it",
        todo=f"Capture on {host}: whether the datagrams arrive. If they do, the service ignores them (stopped, a wrong key, an "
        f"unknown client); else a firewall on the way drops UDP {rows[0]['destination_port']}.",
    )


class Fallback(NamedTuple):
    """A QUIC handshake without an answer, and the TCP connection to the same server that followed it."""

    quic: FlowRow
    tcp: FlowRow

    @property
    def waited_ns(self) -> int:
        """The time from the first Initial to the SYN."""
        return (self.tcp["first_ns"] or 0) - (self.quic["first_ns"] or 0)


def reached_by_tcp(case: Case, silent: Sequence[FlowRow]) -> dict[tuple[str, str, int | None], list[FlowRow]]:
    """Returns the TCP connections of the clients of these flows to the same servers and ports that were opened."""
    flows, wanted = case.trace.flows, {(row["source"], row["destination"], row["destination_port"]) for row in silent}
    ends = zip(*(flows.column(name) for name in ("source", "destination", "destination_port", "protocol")), strict=True)
    reached: dict[tuple[str, str, int | None], list[FlowRow]] = defaultdict(list)
    for flow, (*key, protocol) in enumerate(ends):
        if protocol == "tcp" and tuple(key) in wanted:
            row = case.flow(flow)
            if row["handshake_rtt_ns"] is not None or row["state"] in ("established", "closed"):
                reached[key[0], key[1], key[2]].append(row)
    return reached


def talks_by_tcp(case: Case, silent: Sequence[FlowRow]) -> bool:
    """Returns whether these servers and clients sent each other data over TCP at the same ports."""
    flows = [row["flow"] for rows in reached_by_tcp(case, silent).values() for row in rows]
    return any(all(case.direction(flow, side)["payload_bytes"] for side in (0, 1)) for flow in flows)


def fallbacks_of(case: Case, silent: Sequence[FlowRow]) -> list[Fallback]:
    """Returns for each of these flows the connection by which its client reached the server and port afterwards."""
    reached = reached_by_tcp(case, silent)
    fallbacks = []
    for row in silent:
        later = (
            tcp
            for tcp in reached[row["source"], row["destination"], row["destination_port"]]
            if 0 <= (tcp["first_ns"] or 0) - (row["first_ns"] or 0) <= FALLBACK_NS
        )
        tcp = min(later, key=lambda tcp: tcp["first_ns"] or 0, default=None)
        if tcp is not None:
            fallbacks.append(Fallback(row, tcp))
    return fallbacks


@cause(
    code="quic-dropped",
    title="QUIC gets no answer",
    sentence="UDP {port} of {client} is {probably}dropped: {count} of QUIC with {servers} got no answer in {tries}; over "
    "TCP, {pages} answered at once, {waited} later.",
    advice="Allow UDP {port} out and its answers in, or reject it with an ICMP error in place of dropping it, so that browsers "
    "turn to TCP at once; or turn QUIC off in the browser.",
    shows="QUIC Initials to a server, repeats included, get no answer and no ICMP error, while TCP to the same server and "
    "port succeeds within 30 s. With at least two servers, the path probably drops UDP. It is a note if TCP followed within "
    "500 ms. No QUIC of that client is answered.",
    rivals={
        "one-direction": "TCP of the same hosts passes in both directions",
        "udp-silent": "several servers answer none, and all of them answer TCP",
    },
    unknown="Where it is dropped; whether these servers speak QUIC.",
    explains=("one-way",),
)
def quic_dropped(case: Case) -> Matches:
    alone = {flow for flow, _ in case.transfers.flow_counts["one_way"]}
    rows = case.transfers.without_legs(map(case.flow, case.transfers.flows_where("application", "quic")[:FLOWS_MAX]))
    served = {end for row in rows if row["flow"] not in alone for end in (row["source"], row["destination"])}
    by_client: dict[tuple[str, int], list[FlowRow]] = defaultdict(list)
    for row in rows:
        is_repeated = row["packets"] > 1 and row["last_ns"] != row["first_ns"]
        if row["flow"] in alone and is_repeated and not row["icmp_errors"] and row["source"] not in served:
            by_client[row["source"], row["destination_port"] or 0].append(row)
    for (client, port), silent in list(by_client.items())[:HOSTS_MAX]:
        fallbacks = fallbacks_of(case, silent)
        if fallbacks:
            yield quic_match(case, client, port, silent, fallbacks)


def quic_match(case: Case, client: str, port: int, silent: list[FlowRow], fallbacks: list[Fallback]) -> Match:
    """Returns the match of QUIC without an answer."""
    waits = sorted(each.waited_ns for each in fallbacks)
    flows, servers = [row["flow"] for row in silent], sorted({row["destination"] for row in silent})
    case.claimed.update(flows)
    waited, sent = waits[len(waits) // 2], sum(row["packets"] for row in silent)
    names = list(dict.fromkeys(each.tcp["server_name"] or each.tcp["destination"] for each in fallbacks))
    return Match(
        certainty="likely" if len(servers) > 1 else "possible",
        place="path",
        findings=about(case, flows, "one-way"),
        flows=[*flows, *(each.tcp["flow"] for each in fallbacks)],
        failed=len(silent) if waited >= FALLBACK_QUICK_NS else None,
        attempts=len(silent),
        waited_ns=math.fsum(waits),
        frames=first_packets(case.transfers, flows),
        packets=sent,
        severity=None if waited >= FALLBACK_QUICK_NS else "info",
        filter=f"udp.port == {port} && {family(client)}.addr == {client}",
        proof=f"{plural(sent, 'datagram')} without an answer, and {plural(len(fallbacks), 'connection')} of TCP that followed",
        excluded={"one-direction": "TCP of the same hosts passes in both directions"},
        undecided={"udp-silent": f"QUIC with {servers[0]} from another network: whether it answers there"},
        client=client,
        port=str(port),
        count=plural(len(silent), "handshake"),
        servers=plural(len(servers), "server") if len(servers) > 1 else servers[0],
        tries=plural(sent, "datagram"),
        pages=named(names, 1),
        waited=show_duration(waited),
    )


class Port(NamedTuple):
    """The DNS queries of one client port to a server, and those of its other ports."""

    silent: list[ExchangeRow]
    answered: int


def queries_by_port(case: Case) -> dict[tuple[str, str], dict[int, list[ExchangeRow]]]:
    """Returns the DNS queries by client and server, and by port of the client."""
    by_port: dict[tuple[str, str], dict[int, list[ExchangeRow]]] = defaultdict(lambda: defaultdict(list))
    for row in queries_of(case.transfers):
        if row["flow"] is not None and row["client"] and row["server"]:
            flow = case.flow(row["flow"])
            port = flow["source_port"] if flow["source"] == row["client"] else flow["destination_port"]
            by_port[row["client"], row["server"]][port or 0].append(row)
    return by_port


def silent_ports(case: Case) -> Iterator[tuple[str, str, int, Port]]:
    """Yields the client ports from which no query to a server was answered, while all of other ports of that client were."""
    for (client, server), ports in queries_by_port(case).items():
        answered = {port: sum(row["answered_frame"] is not None for row in rows) for port, rows in ports.items()}
        silent = [port for port, count in answered.items() if not count]
        beside = sum(answered.values())
        if len(silent) != 1 or beside < PORT_QUESTIONS_MIN or len(ports[silent[0]]) < PORT_QUESTIONS_MIN:
            continue
        if beside == sum(len(rows) for rows in ports.values()) - len(ports[silent[0]]):
            yield client, server, silent[0], Port(ports[silent[0]], beside)


@cause(
    code="dns-one-port",
    title="DNS queries of one port are lost",
    sentence="None of the {silent} DNS queries of {client} from port {port} to {server} gets an answer, but all {answered} from "
    "its other ports do: a NAT {probably}keeps a stale entry for that port.",
    advice="Delete the entry (`conntrack -D -p udp --orig-port-src {port}`) or let the client use a new port; on "
    "Kubernetes it points to a DNS pod that is gone.",
    shows="At least four queries from one client port get no answer, while at least four from other ports of that client to "
    "the same server all do.",
    rivals={
        "dns-silent": "the server answers queries from other ports",
        "dns-one-type": "the port separates them, whatever the type",
        "random-loss": "the port separates them without an exception",
    },
    unknown="Which device drops them or sends them to a server that is gone.",
    explains=("dns-unanswered",),
)
def dns_one_port(case: Case) -> Matches:
    for client, server, port, queries in silent_ports(case) if case.findings("dns-unanswered") else ():
        flows = list(dict.fromkeys(row["flow"] for row in queries.silent if row["flow"] is not None))
        case.claimed.update(flows)
        yield Match(
            certainty="likely",
            place="device",
            findings=about(case, flows, "dns-unanswered", "one-way"),
            flows=flows,
            failed=len(queries.silent),
            attempts=len(queries.silent) + queries.answered,
            waited_ns=union_ns(waits_of(queries.silent)),
            frames=first_packets(case.transfers, flows),
            packets=sum(row["attempts"] for row in queries.silent),
            filter=flow_filter(case.flow(flows[0])),
            proof=f"the port separates {len(queries.silent)} queries without an answer from {queries.answered} with one",
            excluded={
                "dns-silent": "the server answers queries from other ports",
                "dns-one-type": "the port separates them",
                "random-loss": "the port separates them without an exception",
            },
            undecided={"filtered": "a capture behind the NAT: where the queries of that port go"},
            client=client,
            server=server,
            port=str(port),
            silent=len(queries.silent),
            answered=queries.answered,
        )
