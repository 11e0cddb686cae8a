# SPDX-License-Identifier: Apache-2.0
"""A flood of SYNs whose handshakes nobody completes, and what the SYN cookies against it take from real clients."""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import about
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

SCATTERED_MIN, SCATTERED_MAX, SCATTERED_NS = 10, 5_000, 1_000_000_000  # SYN-ACKs, connections; their time
FLOOD_MIN, FLOOD_SHARE, FLOOD_RATE = 100, 0.9, 100.0  # SYNs, share of all to the port, SYNs per second
NS = 1e9
CLIENTS_MAX = 100
REPEATS_MOST, SOURCES_MIN = 1.1, 50  # SYNs of each attempt; addresses of SYNs that nobody answers
BACKSCATTER = ("reset", "one-way", "retransmission-unlocated", "half-open", "spurious")
EFFECTS = ("window-scaling-off", "receive-window-limited", "half-open", "syn-unanswered", "syn-lost", "accept-deferred")


class Flood(NamedTuple):
    """The SYNs to a port that were never completed, and the connections to it."""

    host: str
    port: int
    flows: list[int]
    sources: int
    span_ns: float
    syns: int
    answers: int  # of the SYNs, by SYN-ACK
    connections: list[int]

    @property
    def rate(self) -> float:
        """SYNs per second."""
        return len(self.flows) / (self.span_ns / NS) if self.span_ns else 0.0


def floods(case: Case) -> list[Flood]:
    """Returns the ports with many SYNs that were never completed."""
    attempts = case.transfers.attempts
    candidates = [*attempts.flows_in("syn_received"), *attempts.flows_in("syn_sent")]
    if len(candidates) < FLOOD_MIN:
        return []
    flows, by_port = case.trace.flows, defaultdict[tuple[str, int], list[int]](list)
    hosts, ports = flows.column("destination"), case.transfers.ports
    for flow in case.transfers.hidden.conclusive(candidates):
        by_port[hosts[flow], ports[flow]].append(flow)
    large = {server: sorted(of) for server, of in by_port.items() if len(of) >= FLOOD_MIN}
    connections: dict[tuple[str, int], list[int]] = defaultdict(list)
    for flow, server in enumerate(zip(hosts, ports, strict=True) if large else ()):
        if server in large and attempts.is_connection(flow):
            connections[server].append(flow)
    made = (flood_of(case, server, of, connections[server]) for server, of in large.items())
    return [flood for flood in made if is_flood(flood)]


def flood_of(case: Case, server: tuple[str, int], of: list[int], connections: list[int]) -> Flood:
    """Returns the SYNs to a port that were never completed."""
    flows, sources = case.trace.flows, case.trace.flows.column("source")
    firsts = array("d", flows._packed("first_ns", "d", offset=case.transfers.base_ns, flows=of))
    times = [ns for ns in firsts if ns == ns]
    syns = array("I", case.trace.directions._packed("syns", "I", flows=of))
    return Flood(
        *server,
        of,
        len({sources[flow] for flow in of}),
        max(times, default=0.0) - min(times, default=0.0),
        sum(syns[::2]),
        sum(count > 0 for count in syns[1::2]),
        connections,
    )


def is_flood(flood: Flood) -> bool:
    """Returns whether so many handshakes were begun so fast and not completed, by senders that want no answer: they repeat
    none, though the server answers or they are many."""
    count = len(flood.flows)
    wants_none = flood.syns <= REPEATS_MOST * count and (flood.answers >= count / 2 or flood.sources >= SOURCES_MIN)
    return wants_none and count >= FLOOD_SHARE * (count + len(flood.connections)) and flood.rate >= FLOOD_RATE


def without_scale(case: Case, flood: Flood) -> list[int]:
    """Returns the connections whose client offered window scaling and whose server did not answer it."""
    return [
        flow
        for flow in flood.connections[:CLIENTS_MAX]
        if case.direction(flow, 0)["window_scale"] is not None and case.direction(flow, 1)["window_scale"] is None
    ]


@cause(
    code="syn-flood",
    title="SYN flood",
    sentence="{server} is under a SYN flood: {count:SYN} from {sources:address|addresses} in {time} stayed half-open"
    "[{cookies}].",
    advice="Filter the flood upstream; on {host} look at `nstat -az TcpExtSyncookiesSent`, raise "
    "`net.ipv4.tcp_max_syn_backlog`, and keep `net.ipv4.tcp_timestamps=1`, in which cookies carry the window scale.",
    shows="At least 100 SYNs arrive at one port, 100 a second, and at least 90% of them are never completed. A server that "
    "repeats no SYN-ACK keeps no state (SYN cookies, RFC 4987). Without timestamps, its cookies lose window scaling and SACK.",
    rivals={
        "accept-queue": "the final ACK of these handshakes is missing",
    },
    unknown="Who sends it, because the addresses are forged as a rule.",
    explains=("half-open", "syn-unanswered"),
)
def syn_flood(case: Case) -> Matches:
    for flood in floods(case):
        victims = without_scale(case, flood)
        scaled = [
            flow for flow in flood.connections[:CLIENTS_MAX] if case.direction(flow, 1)["window_scale"] is not None
        ]
        effects = about(case, [*flood.flows, *victims], *EFFECTS)
        waited = sum(each.finding.waited_ns or 0 for each in effects if each.finding.code == "receive-window-limited")
        case.claimed.update(flood.flows)
        cookies = ", and it answers real clients without window scaling, as SYN cookies do"
        yield Match(
            certainty="proven",
            place="server",
            findings=effects,
            flows=[*victims, *flood.flows],
            members=len(flood.flows),
            waited_ns=waited or None,
            severity="error",
            frames=first_packets(case.transfers, flood.flows),
            packets=len(flood.flows),
            filter=f"tcp.dstport == {flood.port} && tcp.flags.syn == 1 && tcp.flags.ack == 0",
            proof=f"{flood.rate:,.0f} SYNs a second, and {plural(len(flood.connections), 'completed handshake')} beside them",
            excluded={"accept-queue": "the final ACK of these handshakes is missing"},
            server=endpoint_str(flood.host, flood.port),
            host=flood.host,
            count=len(flood.flows),
            sources=flood.sources,
            time=show_duration(flood.span_ns),
            cookies=""
            if not victims
            else cookies + (f" ({plural(len(scaled), 'connection')} had it)" if scaled else ""),
        )


def scattered(case: Case) -> dict[str, list[FlowRow]]:
    """Returns by host the connections that begin with a SYN-ACK for it which it resets at once: it never sent a SYN."""
    attempts: dict[str, list[FlowRow]] = defaultdict(list)
    resets = case.transfers.flows_where("state", "reset")
    evidence = case.trace.flows._packed("initiator_evidence", "B", flows=resets) if resets else b""
    unasked = [flow for flow, word in zip(resets, evidence, strict=True) if word == case.transfers.words["syn_ack"]]
    for row in case.trace.flows._rows_at(unasked[:SCATTERED_MAX]) if len(unasked) >= SCATTERED_MIN else ():
        flow = row["flow"]
        if not row["payload_bytes"]:
            client, server = case.direction(flow, 0), case.direction(flow, 1)
            if client["packets"] == client["resets"] and not server["resets"]:
                attempts[row["source"]].append(row)
    slow = {host: rows for host, rows in attempts.items() if len(rows) >= SCATTERED_MIN and is_slow(rows)}
    return {
        host: rows for host, rows in slow.items() if not begins_too(case, host, {row["destination"] for row in rows})
    }


def begins_too(case: Case, host: str, servers: set[str]) -> bool:
    """Returns whether a host connects to one of these servers, or resets connections that it began before a byte, as a scanner
    does: the capture may have missed its other SYNs, or another host has its address."""
    flows, syn = case.trace.flows, case.transfers.words["syn"]
    columns = [flows.column(name) for name in ("source", "destination", "state", "payload_bytes")]
    rows = zip(*columns, flows._packed("initiator_evidence", "B"), strict=True)
    begun = [
        (target, state == "reset" and not size)
        for source, target, state, size, word in rows
        if (source, word) == (host, syn)
    ]
    return any(target in servers for target, _ in begun) or sum(is_scan for _, is_scan in begun) >= SCATTERED_MIN


def is_slow(rows: list[FlowRow]) -> bool:
    """Returns whether connections began over a time: a capture that begins in the middle of a scan has them at its begin."""
    begins = [row["first_ns"] or 0 for row in rows]
    return max(begins) - min(begins) >= SCATTERED_NS


@cause(
    code="backscatter",
    title="Answers to SYNs that were never sent",
    sentence="{host} gets {count:SYN-ACK} of {servers} for connections that it never began, and resets them: {probably}"
    "backscatter of a SYN flood against {target}, whose senders forge its address; it does no harm here.",
    advice="Nothing to repair: drop them at the firewall (state INVALID) if they are many, and tell whoever runs {target}.",
    shows="At least ten connections of a host, over 1 s or longer, begin with a SYN-ACK to it, and it resets each. A host "
    "that had sent the SYN by another path would accept it. It connects to none of these servers itself, and scans nobody.",
    rivals={
        "asymmetric-path": "the host resets the SYN-ACKs: it has not sent the SYNs",
        "reset-by-peer": "no connection was open",
    },
    unknown="Whether a scanner on the host, or another host with its address, sent the SYNs by another path.",
    explains=("reset", "one-way", "retransmission-unlocated", "half-open", "spurious"),
)
def backscatter(case: Case) -> Matches:
    for host, rows in scattered(case).items():
        flows, servers = [row["flow"] for row in rows], sorted({row["destination"] for row in rows})
        alone = {row["flow"] for row in map(case.flow, one_way_from(case, servers, host))}
        case.claimed.update(flows, alone)
        target = servers[0] if len(servers) == 1 else "them"
        yield Match(
            certainty="likely",
            place="path",
            findings=[*about(case, [*flows, *alone], *BACKSCATTER), *case.findings("one-direction")],
            flows=[*flows, *alone],
            members=len(flows),
            severity="warning",
            frames=first_packets(case.transfers, flows),
            packets=len(flows),
            filter=f"ip.addr == {host} && tcp.flags.syn == 1 && tcp.flags.ack == 1",
            proof=f"{plural(len(flows), 'RST')} of {host} to SYN-ACKs without a SYN before",
            excluded={"asymmetric-path": "the host resets them"},
            undecided={
                "reset-by-peer": f"a capture on {host} of all interfaces: does it send SYNs?",
                "duplicate-address": f"`arping -D {host}` on its network: does another host have its address?",
            },
            host=host,
            count=len(flows),
            servers=servers[0] if len(servers) == 1 else plural(len(servers), "server"),
            target=target,
        )


def one_way_from(case: Case, servers: list[str], host: str) -> list[int]:
    """Returns the flows of which only packets of these servers to a host are there: their resets of the same flood."""
    flows = case.trace.flows
    ends = zip(flows.column("source"), flows.column("destination"), flows._packed("one_way", "B"), strict=True)
    among = set(servers)
    return [
        flow for flow, (source, target, alone) in enumerate(ends) if alone == 1 and source in among and target == host
    ]
