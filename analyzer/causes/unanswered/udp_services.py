# SPDX-License-Identifier: Apache-2.0
"""UDP services that answer nothing, and DNS queries of one port that stay without an answer."""

from __future__ import annotations

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
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

FLOWS_MAX = 2_000
DATAGRAMS_MIN = 3
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
INITIATION, INITIATION_BYTES = "WireGuard handshake initiation", 148
BROADCAST = ".255"
PORT_QUESTIONS_MIN = 4  # on each side


def service_of(row: FlowRow) -> str | None:
    """Returns what a flow of datagrams without an answer asks for; None if it is unknown."""
    port = row["destination_port"] or 0
    if row["protocol"] != "udp" or row["packets"] < DATAGRAMS_MIN or row["icmp_errors"]:
        return None
    if row["payload_bytes"] == INITIATION_BYTES * row["packets"]:
        return INITIATION
    is_single = not ip_address(row["destination"]).is_multicast and not row["destination"].endswith(BROADCAST)
    return SERVICES.get(port) if is_single else None


@cause(
    code="udp-silent",
    title="UDP service does not answer",
    sentence="{server} answers none of {count} {requests} of {client}{time}, {state}.",
    advice="Capture on {host}: whether the datagrams arrive. If they do, the service ignores them (stopped, a wrong key, "
    "an unknown client); else a firewall on the way drops UDP {port}.",
    shows="Three datagrams or more to a service that answers each (NTP, SNMP, RADIUS, Kerberos, IKE, OpenVPN), or handshake "
    "initiations of WireGuard by their size, none of which gets an answer or an ICMP error, while other packets come to the "
    "client or from the server. It is a note if another server of that service answers the client.",
    rivals={
        "one-direction": "other packets come to the client, or from the server",
        "refused": "no ICMP error 'port unreachable' came",
    },
    unknown="Whether the service ignores the datagrams, or they or the answers are dropped on the way.",
    explains=("one-way",),
)
def udp_silent(case: Case) -> Matches:
    by_server: dict[tuple[str, int, str], list[FlowRow]] = defaultdict(list)
    for flow, _ in case.transfers.flow_counts["one_way"][:FLOWS_MAX]:
        row = case.flow(flow)
        service = service_of(row) if flow not in case.claimed else None
        if service:
            by_server[row["destination"], row["destination_port"] or 0, service].append(row)
    clients = served_clients(case) if by_server else set()
    for (host, port, service), rows in list(by_server.items())[:HOSTS_MAX]:
        is_up, is_served = host in senders_of(case.transfers), (rows[0]["source"], port) in clients
        if is_up or answering_hosts(case, rows[0]["source"]):
            match = silent_match(case, endpoint_str(host, port), service, rows, is_up)
            match.severity = "info" if is_served else None  # another server of that service answers
            yield match


def served_clients(case: Case) -> set[tuple[str, int]]:
    """Returns the clients that get answers of these services, each with the port of the service."""
    flows, alone = case.trace.flows, {flow for flow, _ in case.transfers.flow_counts["one_way"]}
    ports = array("I", flows._packed("destination_port", "I"))
    sources = enumerate(flows.column("source"))
    return {(source, ports[flow]) for flow, source in sources if ports[flow] in SERVICES and flow not in alone}


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
        state="although it sends other packets" if is_up else "and nothing else of it is in the capture",
        host=host,
        port=str(rows[0]["destination_port"]),
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
    sentence="No DNS query that {client} sends from port {port} to {server} gets an answer ({silent} of {silent}), while all "
    "{answered} from its other ports do: a NAT {probably}keeps an old entry for that port.",
    advice="Delete the entry (`conntrack -D -p udp --orig-port-src {port}`) or let the client use a new port; on "
    "Kubernetes it points to a DNS pod that is gone.",
    shows="Four queries or more of one client port without an answer, and four or more of other ports of that client to the same "
    "server, all answered.",
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
