# SPDX-License-Identifier: Apache-2.0
"""Ports, or pings, that get no or no good answer while their host answers others: no listener, or a firewall."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    HOSTS_MAX,
    Refusal,
    SilentHost,
    about,
    any_filter,
    attempt_fields,
    opened,
    ports_str,
    refusals,
    silent_hosts,
    spans_of,
)
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, packets_of, waits_of
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import WELL_KNOWN, first_packets, first_resets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

FORBIDDEN = ("prohibited", "host_prohibited", "network_prohibited")
NO_PORT = "port_unreachable"
PROBE_PORTS = range(33434, 33535)  # of traceroute, which wants the error
IGNORED_SYNS = 1
AT_HOST_NS = 50_000  # in which only the host at which a capture was made answers, or a container on it
SYNS_MIN, PINGS_MIN, PING_BYTES = 2, 3, 500  # of payload: larger pings test the path MTU
HEARD_NS = 60_000_000_000  # before the first ping: a host that was heard then is probably still up
TURNS_MIN = 4  # connections between refusals
NEXT_NS = 1_000_000_000  # from a reset to what the client tries in its place
HOPS_PROVEN = 2  # difference of TTLs; one hop may be a second interface
BYTE_MAX = 255
TCP, BGP_PORT = 6, 179
INITIAL_TTLS, HOPS_MAX = (64, 128, 255), 40  # a path is shorter; a TTL below is that of a socket


def initial(ttl: int) -> int:
    """Returns the TTL that a system sets, of which a packet has this rest."""
    return next(value for value in INITIAL_TTLS if ttl <= value)


def distance(ttl: int) -> int:
    """Returns the number of routers that a packet passed."""
    return initial(ttl) - ttl


def hops_between(ttl: int, other: int) -> int | None:
    """Returns the difference of two TTLs; of other initial values that of the routers passed, None if that is 0, because a socket
    can set its own."""
    if initial(ttl) == initial(other):
        return abs(ttl - other)
    return abs(distance(ttl) - distance(other)) or None


class Refused(NamedTuple):
    """The connections that a server refused by RST."""

    host: str
    port: int
    flows: list[int]
    waits_ns: list[float]  # of the first of them, to the last RST
    replies_ns: list[float]  # of those of them with one SYN, to its RST
    reset_ttls: set[int]  # of the RSTs
    host_ttls: set[int]  # of the other TCP packets of that host
    other_ttls: set[int]  # of its packets of other protocols, which may have their own
    opened: int  # connections to that port that came about
    is_over: bool  # the last of them after the last refusal
    changes: int = 0  # from refusals to connections of that port, one after the other

    @property
    def is_by_turns(self) -> bool:
        """Whether the port accepts connections between most refusals, as an address of several servers does, one of them down."""
        return self.changes >= max(TURNS_MIN, min(len(self.flows), self.opened) / 2)

    @property
    def server(self) -> str:
        """Address and port."""
        return endpoint_str(self.host, self.port)

    @property
    def hops(self) -> int | None:
        """The difference between the TTL of the RSTs and that of the host's other packets; None if it is unknown."""
        if self.reset_ttls & self.other_ttls:
            return 0
        if not self.host_ttls or not self.reset_ttls:
            return None
        pairs = [(ttl, other) for ttl in self.reset_ttls for other in self.host_ttls if distance(other) <= HOPS_MAX]
        return min((hops for pair in pairs if (hops := hops_between(*pair)) is not None), default=None)

    @property
    def after(self) -> str:
        """` within 0.8 ms`: the median time to the RST."""
        waits = sorted(self.replies_ns)
        return f" within {show_duration(waits[len(waits) // 2])}" if waits and waits[len(waits) // 2] > 0 else ""


def refused_servers(case: Case) -> list[Refused]:
    """Returns the servers that refused connections, those with the most first, without those that answered by SYN-ACK as
    well, before the RST or after it."""
    if not case.findings("connection-refused"):
        return []
    left_out = case.claimed.union(case.connections.contradicted)
    flows = [flow for flow in case.transfers.attempts.flows_in("refused") if flow not in left_out]
    hosts, by_server = case.trace.flows.column("destination"), defaultdict[tuple[str, int], list[int]](list)
    numbers = array("I", case.trace.flows._packed("destination_port", "I"))
    for flow in flows:
        by_server[hosts[flow], numbers[flow]].append(flow)
    plain = [(server, of) for server, of in by_server.items() if not case.direction(of[0], 1)["syns"]]
    most = sorted(plain, key=lambda group: -len(group[1]))[:HOSTS_MAX]
    names = {host for (host, _), _ in most}
    connections, ttls = opened(case, names), ttls_of(case, names, set(flows))

    def waits(numbers: Iterable[int]) -> list[float]:
        return [span.ns for span in spans_of(map(case.flow, numbers))]

    return [
        Refused(
            host,
            port,
            of,
            waits(of[:ATTEMPTS_MAX]),
            waits(flow for flow in of[:ATTEMPTS_MAX] if case.direction(flow, 0)["syns"] == 1),
            {ttl for flow in of[:HOSTS_MAX] if (ttl := case.direction(flow, 1)["ttl_min"]) is not None},
            ttls[host][True],
            ttls[host][False],
            connections.get(host, Counter())[port],
            last_opened(case, host, port) > of[-1],
            changes_of(case, host, port, of) if connections.get(host, Counter())[port] >= TURNS_MIN else 0,
        )
        for (host, port), of in most
    ]


def changes_of(case: Case, host: str, port: int, refusals: list[int]) -> int:
    """Returns how often a connection to a port came about between two refusals."""
    flows, attempts = case.connections.to_server((host, port)), case.transfers.attempts
    among = set(refusals)
    were = [flow in among for flow in sorted({*flows, *refusals}) if flow in among or attempts.is_connection(flow)]
    return sum(before and not after for before, after in pairwise(were))


def last_opened(case: Case, host: str, port: int) -> int:
    """Returns the last connection to a port that came about; -1 without one."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    hosts, ports = flows.column("destination"), array("I", flows._packed("destination_port", "I"))
    numbers = range(len(flows) - 1, -1, -1)
    return next(
        (flow for flow in numbers if ports[flow] == port and hosts[flow] == host and attempts.is_connection(flow)), -1
    )


def ttls_of(case: Case, hosts: set[str], without: set[int]) -> dict[str, dict[bool, set[int]]]:
    """Returns the TTLs of the packets of these hosts, apart those of TCP, without those of some flows and of BGP, whose sockets
    set their own."""
    directions, flows = case.trace.directions, case.trace.flows
    least, most = directions._packed_columns([(name, "B", 0, 1) for name in ("ttl_min", "ttl_max")])
    protocols, ports = flows._packed("protocol_number", "B"), array("I", flows._packed("destination_port", "I"))
    ttls: dict[str, dict[bool, set[int]]] = defaultdict(lambda: {True: set(), False: set()})
    for number, source in enumerate(directions.column("source")):
        flow = number // 2
        if source in hosts and flow not in without and least[number] != BYTE_MAX and ports[flow] != BGP_PORT:
            ttls[source][protocols[flow] == TCP].update((least[number], most[number]))
    return ttls


@cause(
    code="reset-ignored",
    title="The client ignores the refusal",
    sentence="{server} refuses {count} by RSTs that do not acknowledge the SYN, so that {client} ignores them: it repeats its "
    "SYN {repeats:time}, and gives up after {waited} in place of at once.",
    advice="Repair the TCP of {host}, or of the device that answers for it: a RST to a SYN must acknowledge its sequence number "
    "plus one (RFC 9293 section 3.5.2). Nothing listens there.",
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
                proof=f"no RST acknowledges the SYN, and {plural(len(ignored), 'client')} went on with it",
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
    ttl = min(server.reset_ttls, default=0)
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


def is_second_choice(case: Case, server: Refused) -> bool:
    """Returns whether the clients tried that port right after the host had reset their connection to another one."""
    connections = case.connections
    resets = [connections[flow] for flow in connections.endings_with_reset]
    ended = [(each.end(each.client_side)[0], each.last_ns) for each in resets if each.server[0] == server.host]
    starts = [(row["source"], row["first_ns"] or 0) for row in map(case.flow, server.flows[:ATTEMPTS_MAX])]
    return bool(ended) and all(
        any(client == source and 0 <= first_ns - last_ns <= NEXT_NS for client, last_ns in ended)
        for source, first_ns in starts
    )


def fields_of(case: Case, server: Refused, attempted: int) -> dict[str, Any]:
    """Returns what matches about refused connections have in common."""
    return {
        "findings": about(case, server.flows, "connection-refused"),
        "flows": server.flows,
        "failed": None if server.is_over else len(server.flows),
        "severity": "info" if is_second_choice(case, server) else None,
        "attempts": attempted,
        "waited_ns": sum(server.waits_ns) if len(server.flows) <= ATTEMPTS_MAX else None,
        "frames": first_resets(case.transfers, server.flows[:ATTEMPTS_MAX]),
        "packets": len(server.flows),
        "filter": f"tcp.port == {server.port} && tcp.flags.reset == 1",
    }


def tells_no_listener(row: FlowRow, error: Refusal) -> bool:
    """Returns whether a host says that nothing listens on a port that was asked. What a service sends to another port is an
    answer, whose socket is gone or belongs to another question."""
    port = row["destination_port"] or 0
    is_answer = (row["source_port"] or 0) < WELL_KNOWN <= port
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


@cause(
    code="filtered",
    title="Port blocked by a firewall",
    sentence="{who} {blocks} {ports} of {host}: {evidence}[{beside}].",
    advice="{what}",
    shows="An ICMP error says 'prohibited', or 'port unreachable' about a SYN. Or a RST comes with a TTL that isn't the "
    "host's. Or a port answers nobody's SYNs, repeats included, while the host's other ports or pings answer. If "
    "these answer within 50 µs, the capture was made at the host itself, which drops the SYNs.",
    rivals={
        "host-down": "another port of the host, or a ping, is answered",
        "accept-queue": "that port answers nobody in the whole capture",
        "refused": "no RST came, or one with another TTL than the host's packets",
    },
    unknown="At the client, where a silent drop happens. A listener whose accept queue was full from the start looks the same.",
    explains=("syn-unanswered", "connection-refused", "icmp-errors"),
)
def filtered(case: Case) -> Matches:
    for server in refused_servers(case):
        if server.hops:
            case.claimed.update(server.flows)
            yield by_reset(case, server)
    for host in silent_hosts(case):
        forbidding = [error for error in host.errors if error.cause in (*FORBIDDEN, NO_PORT)]
        if forbidding:
            case.claimed.update(host.flows)
            yield by_icmp(case, host, forbidding)
            continue
        closed = host.at_ports(
            [port for port in host.ports if not host.open_ports[port] or is_stopped(case, host, port)]
        )
        if closed.is_heard and not closed.errors and closed.syns >= SYNS_MIN:
            case.claimed.update(closed.flows)
            yield by_silence(case, closed)


def is_stopped(case: Case, host: SilentHost, port: int) -> bool:
    """Returns whether all attempts without an answer at a port came after the last connection to it."""
    return last_opened(case, host.address, port) < min(host.at_ports([port]).flows)


def by_reset(case: Case, server: Refused) -> Match:
    """Returns the match of a device that refuses in the name of a host."""
    certainty: Certainty = "proven" if (server.hops or 0) >= HOPS_PROVEN else "likely"
    ttls = f"its RSTs have a TTL of {min(server.reset_ttls)}, the host's own packets {min(server.host_ttls)}"
    return Match(
        certainty=certainty,
        place="device",
        excluded={"host-down": "the host answers"} | ({"refused": ttls} if certainty == "proven" else {}),
        undecided={}
        if certainty == "proven"
        else {"refused": f"a capture on {server.host}: whether it sends these RSTs"},
        proof=ttls,
        **fields_of(case, server, len(server.flows) + server.opened),
        who="A firewall before the host",
        blocks="rejects" if certainty == "proven" else "probably rejects",
        ports=ports_str([server.port]),
        host=server.host,
        evidence=f"{plural(len(server.flows), 'connection')} got a RST, and {ttls}",
        beside="",
        what=f"Find the device with `traceroute -T -p {server.port} {server.host}`, and look at its rules.",
    )


def by_icmp(case: Case, host: SilentHost, errors: Sequence[Refusal]) -> Match:
    """Returns the match of a device that says that it forbids."""
    (router, word), _ = Counter((error.router, error.cause) for error in errors).most_common(1)[0]
    is_own = router == host.address
    means = "port unreachable" if word == NO_PORT else "administratively prohibited"
    return Match(
        certainty="proven",
        place="server" if is_own else "device",
        excluded={"host-down": f"{router} says that it forbids", "refused": "no RST came"},
        proof=f"ICMP '{means}' of {router}",
        **attempt_fields(case, host, "syn-unanswered", "icmp-errors"),
        who="The firewall of the host itself" if is_own else f"A firewall at {router}",
        blocks="blocks",
        ports=ports_str(host.ports),
        host=host.address,
        evidence=f"it answers {plural(host.syns, 'SYN')} with ICMP '{means}'",
        beside=beside(host),
        what=f"Look in the rules of {router} for {ports_str(host.ports)} (`nft list ruleset`).",
    )


def answer_ns(case: Case, host: SilentHost) -> int | None:
    """Returns the shortest time in which a host answered pings or SYNs at the capture point; None if it answered none."""
    pings = (row["waited_ns"] for row in case.exchanges("kind", "icmp_echo") if row["server"] == host.address)
    flows = (flow for port in host.open_ports for flow in case.connections.to_server((host.address, port))[:TURNS_MIN])
    trips = (case.direction(flow, 0)["rtt_ns_min"] for flow in flows)
    return min((ns for ns in (*pings, *trips) if ns), default=None)


def by_the_host_itself(case: Case, host: SilentHost, near_ns: int) -> Match:
    """Returns the match of a host that gets SYNs to a port, as far as its quick answers to others show, and drops them."""
    port, others = host.ports[0], f"answers others within {show_duration(near_ns)}"
    return Match(
        certainty="likely",
        place="server",
        excluded={"host-down": f"{host.address} {others}", "refused": "no RST came"},
        undecided={"accept-queue": f"`ss -ltn` on {host.address}: a full queue"},
        proof=f"{plural(host.syns, 'SYN')}{host.time} without an answer at a capture point where the host {others}",
        **attempt_fields(case, host, "syn-unanswered", "icmp-errors"),
        who="The host itself",
        blocks="probably drops",
        ports=ports_str(host.ports),
        host=host.address,
        evidence=f"{plural(host.syns, 'SYN')} of {host.client}{host.time} arrive there, where it {others}, and get no answer",
        beside=beside(host, port),
        what=f"Look on {host.address} at its rules (`nft list ruleset`), and at rp_filter: it drops packets whose way back to "
        f"{host.client} leads out of another interface (`nstat -az TcpExtIPReversePathFilter`, `ip route get {host.client}`).",
    )


def by_silence(case: Case, host: SilentHost) -> Match:
    """Returns the match of a port that answers nobody while its host answers."""
    port, near_ns = host.ports[0], answer_ns(case, host)
    if near_ns is not None and near_ns <= AT_HOST_NS:
        return by_the_host_itself(case, host, near_ns)
    return Match(
        certainty="likely",
        place="path",
        excluded={"host-down": f"{host.address} answers{beside(host) or ' otherwise'}", "refused": "no RST came"},
        undecided={
            "accept-queue": f"`ss -ltn` on {host.address}: a full queue; or a capture there: whether the SYNs arrive"
        },
        proof=f"{plural(host.syns, 'SYN')}{host.time} without an answer, and nobody connected to that port meanwhile",
        **attempt_fields(case, host, "syn-unanswered", "icmp-errors"),
        who="A firewall",
        blocks="probably drops",
        ports=ports_str(host.ports),
        host=host.address,
        evidence=f"{plural(host.syns, 'SYN')}{host.time} got no answer",
        beside=beside(host, port) or ", while the host answers otherwise",
        what=f"Find the place with `traceroute -T -p {port} {host.address}`, and look at the rules there (`nft list ruleset`).",
    )


def beside(host: SilentHost, port: int | None = None) -> str:
    """`, while port 443 of it connects`, or `, though 4 connections to it opened before`."""
    if port is not None and host.open_ports[port]:
        return f", though {plural(host.open_ports[port], 'connection')} to it opened before"
    return f", while port {host.open_ports.most_common(1)[0][0]} of it connects" if host.open_ports else ""


def unanswered_pings(case: Case) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns the pings by client and host, if none was answered or failed with an ICMP error; those at the end of the capture
    are left out."""
    by_ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in exchanges_of(case.transfers, "icmp_echo") if case.findings("echo-unanswered") else ():
        by_ends[str(row["client"]), str(row["server"])].append(row)
    silent = {ends: [row for row in rows if row["outcome"] == "unanswered"] for ends, rows in by_ends.items()}
    return {
        ends: rows
        for ends, rows in silent.items()
        if len(rows) >= PINGS_MIN and all(row["outcome"] in ("unanswered", "cut_off") for row in by_ends[ends])
    }


def connections_between(case: Case, client: str, host: str) -> list[FlowRow]:
    """Returns the first connections of a client to a host that came about."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    ends = zip(flows.column("source"), flows.column("destination"), strict=True)
    numbers = [flow for flow, pair in enumerate(ends) if pair == (client, host) and attempts.is_connection(flow)]
    return [case.flow(flow) for flow in numbers[:ATTEMPTS_MAX]]


@cause(
    code="ping-filtered",
    title="Pings are filtered",
    sentence="{host} is {probably}up, but a firewall drops pings: none of {count:ping} from {client} was answered, while "
    "{open} of the same client to it opened.",
    advice="Nothing is wrong if pings are forbidden there; test with a port instead: `nc -vz {host} {port}`.",
    shows="At least three small pings of a client to a host get no answer, while TCP connections between the two were "
    "established. The host was heard at most 60 s before the first ping, and no data to it lacks an ACK. It is sure if the "
    "host was heard after three of the pings, on a connection that began before the last one.",
    rivals={
        "host-down": "the host accepts connections of the same client",
        "outage": "a connection was open meanwhile",
        "mtu-black-hole": "the pings are small",
    },
    unknown="Whether the host or a device before it drops them, and which of request and reply.",
    explains=("echo-unanswered",),
)
def ping_filtered(case: Case) -> Matches:
    for (client, host), rows in unanswered_pings(case).items():
        flows = list(dict.fromkeys(row["flow"] for row in rows if row["flow"] is not None))
        cited_by, talks = about(case, flows, "echo-unanswered"), connections_between(case, client, host)
        is_small = all(
            (case.direction(flow, side)["segment_max"] or 0) <= PING_BYTES for flow in flows for side in (0, 1)
        )
        if cited_by and talks and is_small and is_heard(case, rows, talks):
            yield ping_match(case, rows, talks, host=host, client=client, findings=cited_by, flows=flows)


def is_heard(case: Case, rows: Sequence[ExchangeRow], talks: Sequence[FlowRow]) -> bool:
    """Returns whether a host was heard shortly before pings or later, and leaves no data without an ACK: else it may be down."""
    since_ns = min(row["asked_ns"] or 0 for row in rows) - HEARD_NS
    is_gone = any(case.direction(talk["flow"], 0)["unacked_bytes"] for talk in talks)
    return not is_gone and any((case.direction(talk["flow"], 1)["last_ns"] or 0) >= since_ns for talk in talks)


def were_open(case: Case, rows: Sequence[ExchangeRow], talks: Sequence[FlowRow]) -> bool:
    """Returns whether a host was heard on a connection while pings to it stayed without an answer."""
    times = sorted(row["asked_ns"] or 0 for row in rows)
    return any(
        (talk["first_ns"] or 0) <= times[-1]
        and (case.direction(talk["flow"], 1)["last_ns"] or 0) >= times[PINGS_MIN - 1]
        for talk in talks
    )


def ping_match(
    case: Case, rows: Sequence[ExchangeRow], talks: Sequence[FlowRow], *, host: str, client: str, **fields: Any
) -> Match:
    """Returns the match of pings without an answer beside connections to the same host."""
    is_sure = were_open(case, rows, talks)
    excluded = {"host-down": "it accepts connections of the same client"}
    return Match(
        certainty="proven" if is_sure else "likely",
        place="device",
        severity="warning",
        frames=packets_of(rows),
        packets=len(rows),
        filter=f"icmp.type == 8 && ip.dst == {host}" if "." in host else f"icmpv6.type == 128 && ipv6.dst == {host}",
        proof=f"{plural(len(talks), 'connection')} opened, and no ping of {len(rows):,} was answered",
        excluded=excluded | ({"outage": "a connection was open meanwhile"} if is_sure else {}),
        undecided={} if is_sure else {"outage": f"pings of {host} while a connection to it is open"},
        host=host,
        client=client,
        port=talks[0]["destination_port"] or 0,
        count=len(rows),
        open=plural(len(talks), "connection"),
        **fields,
    )
