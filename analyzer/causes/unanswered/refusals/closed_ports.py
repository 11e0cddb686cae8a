# SPDX-License-Identifier: Apache-2.0
"""Ports on which nothing listens: the host itself refuses."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.refusals.refused_servers import (
    TURNS_MIN,
    Refused,
    fields_of,
    refused_servers,
)
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    HOSTS_MAX,
    Refusal,
    about,
    any_filter,
    refusals,
    spans_of,
)
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import waits_of
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import WELL_KNOWN, first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

NO_PORT = "port_unreachable"
PROBE_PORTS = range(33434, 33535)  # of traceroute, which wants the error
IGNORED_SYNS = 1
EPHEMERAL = 32_768  # the least port that a client of Linux takes


@cause(
    code="reset-ignored",
    title="The client ignores the refusal",
    sentence="{server} refuses {count} by RSTs that do not acknowledge the SYN, so that {client} ignores them: it repeats its "
    "SYN {repeats:time}, and waits {waited} instead of giving up at once.",
    advice="Repair the TCP of {host}, or of the device that answers for it: a RST to a SYN must acknowledge its sequence number "
    "plus one (RFC 9293 section 3.5.2). Nothing listens on that port, if the host sends them.",
    shows="RSTs with an ACK answer the SYNs of a connection, and none acknowledges the SYN (directions.acks_out_of_range), which "
    "the client repeats.",
    rivals={"refused": "the client goes on, because no RST acknowledges its SYN"},
    unknown="Whether the host sends such RSTs, or a device rewrites sequence numbers of SYNs and not of RSTs.",
    explains=("connection-refused", "timeout-stalls"),
)
def reset_ignored(case: Case) -> Matches:
    for server in refused_servers(case):
        ignored = [flow for flow in server.flows[:ATTEMPTS_MAX] if is_ignored(case, flow)]
        if ignored and len(ignored) == len(server.flows[:ATTEMPTS_MAX]):
            case.claimed.update(server.flows)
            spans = spans_of(map(case.flow, ignored))
            yield Match(
                certainty="proven",
                place="server",
                proof=f"no RST acknowledges the SYN, and {plural(len(ignored), 'connection')} went on with it",
                excluded={"refused": "the client went on with its SYNs"},
                **fields_of(case, server, len(server.flows) + server.opened),
                server=server.server,
                host=server.host,
                client=case.flow(ignored[0])["source"],
                count=plural(len(server.flows), "connection"),
                repeats=max((case.direction(flow, 0)["syns"] or 0) - 1 for flow in ignored),
                waited=show_duration(max(span.ns for span in spans)),
            )


def is_ignored(case: Case, flow: int) -> bool:
    """Returns whether no RST of an attempt acknowledges its SYN, which was repeated."""
    client, server = case.direction(flow, 0), case.direction(flow, 1)
    is_wrong = (server["acks_out_of_range"] or 0) >= max(server["resets"] or 0, 1)
    return is_wrong and (client["syns"] or 0) > IGNORED_SYNS


@cause(
    code="refused",
    title="Connections refused",
    sentence="{subject}: {evidence}.",
    advice="{what}",
    shows="A RST answers the SYN; the host itself sent it if it has the TTL of the host's other packets. Or the host answers a "
    "UDP datagram with the ICMP error 'port unreachable'.",
    rivals={
        "filtered": "the RST of a firewall has another TTL than the host's other packets",
        "reset-by-device": "the host accepts no SYN that was refused",
    },
    unknown="Without another packet of that host, whether it or a firewall before it sent the RST.",
    explains=("connection-refused",),
)
def refused(case: Case) -> Matches:
    for server in refused_servers(case):
        if server.hops == 0 or server.hops is None:
            case.claimed.update(server.flows)
            yield by_the_host(case, server)
    yield from closed_udp_ports(case)


def by_the_host(case: Case, server: Refused) -> Match:
    """Returns the match of a host that refuses, or probably does."""
    certain, attempted = server.hops == 0, len(server.flows) + server.opened
    if server.is_by_turns:
        return by_turns(case, server, attempted)
    ttl, beside = min(server.reset_ttls, default=0), open_beside(case, server)
    if beside and certain:
        return at_limit(case, server, attempted, beside)
    listens = "listened for a time" if server.is_over else "listens any more" if server.opened else "listens"
    return Match(
        certainty="proven" if certain else "likely",
        place="server",
        excluded={"filtered": f"the RST has the TTL of its other packets ({ttl})"} if certain else {},
        undecided={}
        if certain
        else {"filtered": f"any other packet of {server.host}: whether it has the TTL of the RST ({ttl})"},
        proof=f"a RST answered each SYN{server.after}" + (f", with the host's own TTL of {ttl}" if certain else ""),
        **fields_of(case, server, attempted),
        subject=f"{'Nothing' if certain else 'Probably nothing'} {listens} on {server.server}",
        evidence=f"{'the host itself' if certain else 'it, or a firewall before it,'} refused "
        f"{plural(len(server.flows), 'connection')}{f' of {attempted:,}' if server.opened else ''}{server.after}",
        what=f"Look on {server.host} with `ss -ltnp 'sport = :{server.port}'`: the service is stopped, or bound to 127.0.0.1.",
    )


def open_beside(case: Case, server: Refused) -> int:
    """Returns how many connections to that port, opened before the refusals, were never closed: their program goes on."""
    earlier = [flow for flow in case.connections.to_server((server.host, server.port)) if flow < server.flows[0]]
    return 0 if server.is_over else sum(case.flow(flow)["state"] == "established" for flow in earlier[:ATTEMPTS_MAX])


def at_limit(case: Case, server: Refused, attempted: int, beside: int) -> Match:
    """Returns the match of a port that refuses while its program keeps other connections."""
    return Match(
        certainty="likely",
        place="server",
        excluded={"filtered": f"the RST has the TTL of its other packets ({min(server.reset_ttls)})"},
        undecided={
            "bad-member": f"`ss -tlnp 'sport = :{server.port}'` on {server.host}: does its program still listen?"
        },
        proof=f"a RST answered each SYN{server.after}, and {plural(beside, 'connection')} before stayed open",
        **fields_of(case, server, attempted),
        subject=f"{server.server} takes no further connections",
        evidence=f"the host itself refused {plural(len(server.flows), 'connection')}{server.after} while "
        f"{plural(beside, 'other')} stayed open, so its program goes on, and probably takes no more",
        what=f"See how many connections the program on {server.host} takes, and close those that nobody needs.",
    )


def by_turns(case: Case, server: Refused, attempted: int) -> Match:
    """Returns the match of a port that refuses some connections and accepts others in between."""
    return Match(
        certainty="likely",
        place="server",
        undecided={"filtered": f"the logs of the servers behind {server.host}: which of them does not listen?"},
        proof=f"a RST answered {plural(len(server.flows), 'SYN')}, and {server.changes:,} times the next one was accepted",
        **fields_of(case, server, attempted) | {"failed": len(server.flows)},
        subject=f"One of several servers behind {server.server} probably does not listen",
        evidence=f"{plural(len(server.flows), 'connection')} of {attempted:,} were refused{server.after}, in turn with others "
        "that were accepted",
        what=f"Look at each server behind {server.host} for one whose service is stopped; a load balancer should check them.",
    )


def tells_no_listener(row: FlowRow, error: Refusal) -> bool:
    """Returns whether a host says that nothing listens on a port that was asked. What a service sends to another port is an
    answer, whose socket is gone or belongs to another question."""
    port = row["destination_port"] or 0
    is_answer = any((row["source_port"] or 0) < least <= port for least in (WELL_KNOWN, EPHEMERAL))
    is_question = row["protocol"] == "udp" and row["one_way"] and port not in PROBE_PORTS and not is_answer
    return is_question and error.cause == NO_PORT and error.router == row["destination"]


def closed_ports(case: Case) -> dict[tuple[str, int], list[int]]:
    """Returns the flows to UDP ports on which nothing listens, by host and port."""
    numbers = [flow for flow, _ in case.transfers.flow_counts["icmp_errors"] if flow not in case.claimed]
    by_server: dict[tuple[str, int], list[int]] = defaultdict(list)
    for flow, error in refusals(case, numbers[:ATTEMPTS_MAX]).items():
        row = case.flow(flow)
        if tells_no_listener(row, error):
            by_server[row["destination"], row["destination_port"] or 0].append(flow)
    return by_server


def answered_between(case: Case, host: str, port: int, refused_flows: Sequence[int]) -> int:
    """Returns how many flows to a UDP port have packets of both ends, among those that began between the refused ones."""
    flows = case.trace.flows
    hosts, ports = flows.column("destination"), array("I", flows._packed("destination_port", "I"))
    between = range(min(refused_flows) + 1, max(refused_flows))
    near = [case.flow(flow) for flow in between if ports[flow] == port and hosts[flow] == host]
    return sum(row["protocol"] == "udp" and not row["one_way"] for row in near)


def closed_udp_ports(case: Case) -> Matches:
    """Yields the hosts that answered datagrams with 'port unreachable', all of them or some."""
    for (host, port), flows in list(closed_ports(case).items())[:HOSTS_MAX]:
        served, server = answered_between(case, host, port, flows), f"UDP {endpoint_str(host, port)}"
        is_by_turns = served >= TURNS_MIN
        rows = [row for row in case.exchanges("kind", "dns") if row["flow"] in set(flows)]
        case.claimed.update(flows)
        yield Match(
            certainty="likely" if is_by_turns else "proven",
            place="server",
            findings=about(case, flows, "icmp-errors", "dns-unanswered"),
            flows=flows,
            failed=len(flows),
            attempts=len(flows) + served * is_by_turns,
            waited_ns=union_ns(waits_of(rows)),
            frames=first_packets(case.transfers, flows),
            filter=any_filter([case.flow(flow) for flow in flows]),
            excluded={} if is_by_turns else {"filtered": f"the ICMP error comes from {host} itself"},
            undecided={"filtered": f"the logs of the servers behind {host}: which of them does not listen?"}
            if is_by_turns
            else {},
            proof="the host itself answered with ICMP 'port unreachable'",
            **closed_words(server, len(flows), served if is_by_turns else 0),
            what=f"Look on {host} with `ss -lunp 'sport = :{port}'`: the service is stopped, or bound to another address.",
        )


def closed_words(server: str, refused_flows: int, served: int) -> dict[str, Any]:
    """Returns the sentence about a UDP port that refuses, and answers so many between."""
    if served:
        return {
            "subject": f"One of several servers behind {server} probably does not listen",
            "evidence": f"ICMP 'port unreachable' answered {refused_flows:,} of {refused_flows + served:,} flows, in turn with "
            "others that got replies",
        }
    return {
        "subject": f"Nothing listens on {server}",
        "evidence": f"the host itself answers with ICMP 'port unreachable' ({plural(refused_flows, 'flow')}, nothing else)",
    }
