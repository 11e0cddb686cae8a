# SPDX-License-Identifier: Apache-2.0
"""Rules about connection attempts: scans, SYNs without an answer or refused, and handshakes that came about late."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.attempts import NULL, Retried, Scan, SynEvent
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.model import Match, Matches, endpoint_str, finding, flows_match, row_at, seconds
from wiretale.analyzer.findings.shared.servers import FROM, TO, failed_attempts, first_packets, flows_share
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import agreeing, plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FlowRow

CHAPTER = "Connection attempts"
SYNS, SYN_ACKS = "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.flags.syn == 1 && tcp.flags.ack == 1"
RESETS = "tcp.flags.reset == 1"
GROUPED = (
    " Attempts to one server (host and port) are one finding. The five largest groups have their own, the rest is one."
)


def outcome(refused: int, unanswered: int, attempted: int) -> str:
    """`3 answered, 4 refused by RST, 993 unanswered`."""
    counts = ((attempted - refused - unanswered, "answered"), (refused, "refused by RST"), (unanswered, "unanswered"))
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)


def scan_match(transfers: Transfers, scan: Scan) -> Match:
    """Returns the match of one scan."""
    version, open_ends = "ipv6" if ":" in scan.source else "ip", [endpoint_str(*end) for end in scan.open_ends]
    more = ", …" if len(open_ends) > SHOWN else ""
    cited = first_packets(transfers, scan.flows[:SHOWN])
    return Match(
        source=scan.source,
        extent=scan.extent,
        count=len(scan.flows),
        outcome=outcome(scan.refused, scan.unanswered, len(scan.flows)),
        cost=float(len(scan.flows)),
        failed=scan.refused + scan.unanswered,
        figures=f"answered: {', '.join(open_ends[:SHOWN])}{more}" if open_ends else None,
        filter=f"{version}.src == {scan.source} && tcp.flags.syn == 1 && tcp.flags.ack == 0",
        impact=flows_share(transfers, list(scan.flows)),
        flows=scan.flows,
        cited=cited,
        packets=len(scan.flows),
    )


@finding(
    code="scan",
    title="Port scan or host scan",
    unit="connections",
    computed="Connection attempts of one host without payload. At least 15 ports of a host, or 25 hosts at one port, must "
    "have refused or not answered. The attempts must be at least half of the TCP flows that the host began. If the capture "
    "may hide the answers of any host (as in syn-unanswered), only refusals count. No other finding counts these attempts or "
    "their retransmitted SYNs.",
    unknown="Whether the scan was permitted. A host whose way to many servers is blocked looks the same.",
    sentence="{source} scanned {extent} in {count:connection attempt}[: {outcome}].",
    advice="Find the program that scans (a vulnerability scanner, a monitor, malware); each port that answered is open.",
)
def scan(transfers: Transfers) -> Matches:
    scans = transfers.attempts.scans
    yield from (scan_match(transfers, attempt) for attempt in scans[:SHOWN])
    if unlisted := scans[SHOWN:]:
        flows = [flow for attempt in unlisted for flow in attempt.flows]
        refused, unanswered = (
            sum(getattr(attempt, name) for attempt in unlisted) for name in ("refused", "unanswered")
        )
        yield Match(
            source=plural(len(unlisted), "more host"),
            extent="ports or hosts",
            count=len(flows),
            outcome=outcome(refused, unanswered, len(flows)),
            cost=float(len(flows)),
            failed=refused + unanswered,
            figures=", ".join(attempt.source for attempt in unlisted[:SHOWN])
            + (", …" if len(unlisted) > SHOWN else ""),
            flows=flows,
            cited=first_packets(transfers, unlisted[0].flows[:1]),
            packets=len(flows),
        )


def are_signed(transfers: Transfers, flows: list[int]) -> bool:
    """Returns whether each of these connections has segments with a signature (RFC 2385, RFC 5925)."""
    counts = array("I", transfers.trace.directions._packed("signed_segments", "I", flows=flows))
    return all(any(0 < count < NULL for count in pair) for pair in zip(counts[::2], counts[1::2], strict=True))


@finding(
    code="syn-unanswered",
    title="Connection attempts without an answer",
    unit="connections",
    computed="Flows in the state syn_sent: they hold nothing but SYNs. Those of a scan are in that finding. They do not "
    "count if the capture may hide the answer. Either more than 1% of all packets, or any packets between the same hosts, were "
    "not decoded. Or the capture has only one direction of all connections, or of those between the same hosts."
    + GROUPED,
    unknown="Whether an answer took another path, or the capture ended too early.",
    sentence="{count:connection attempt} {ends} got no answer at the capture point[{beside}][: {cause}].",
    advice="{advice}",
)
def syn_unanswered(transfers: Transfers) -> Matches:
    for group, match in failed_attempts(transfers, transfers.attempts.unanswered(), SYNS, TO):
        beside, host, them = match.words["beside"], match.words["host"], agreeing(match.words["count"], "it", "them")
        if are_signed(transfers, group.flows):
            cause = (
                f"{agreeing(match.words['count'], 'its SYN is', 'their SYNs are')} signed (TCP-MD5 or TCP-AO), and a host "
                "silently drops a signature that its own key does not give"
            )
            advice = (
                f"Compare the keys and the peers' addresses at both ends; {host} counts what it drops (nstat "
                "TcpExtTCPMD5NotFound, TcpExtTCPMD5Unexpected, TcpExtTCPMD5Failure)."
            )
        elif beside:
            cause = f"a full listen queue, a rate limit or loss dropped {them}"
            advice = (
                f"Check the listen queue of {host} (ss -lnt, nstat TcpExtListenDrops), rate limits of firewalls, and packet "
                "loss."
            )
        else:
            cause = f"a firewall dropped {them}, the host is down, or the answer took another path"
            advice = "Try the port from a nearer host, and check firewalls that drop instead of rejecting."
        match.words.update(cause=cause, advice=advice)
        yield match


@finding(
    code="connection-refused",
    title="Connection attempts refused",
    unit="connections",
    computed="A RST answered the SYN. Attempts of a scan are in that finding." + GROUPED,
    unknown="Whether the host or a firewall sent the RST: compare TTLs.",
    sentence="{count:connection attempt} {ends} {count:~was|were} refused by a RST[{beside}].",
    advice="Check that the server listens on that port, and that no firewall rejects it.",
)
def connection_refused(transfers: Transfers) -> Matches:
    return (match for _, match in failed_attempts(transfers, transfers.attempts.flows_in("refused"), RESETS, FROM))


@finding(
    code="half-open",
    title="Half-open connection attempts",
    unit="connections",
    computed="Flows in the state syn_received whose SYN-ACK was retransmitted, except those of a scan, and those whose "
    "ACK the capture may hide as in syn-unanswered." + GROUPED,
    unknown="Whether SYN-ACKs or ACKs were lost, or the SYN's address is forged.",
    sentence="{count:connection attempt} {ends} stayed half-open[{beside}][: {again:retransmitted SYN-ACK} got no ACK either]"
    "[. The client does not answer (a SYN scan, a forged address), or the answers were lost].",
    advice="Capture at the client. If there are many, check the server's SYN queue (nstat TcpExtSyncookiesSent, "
    "net.ipv4.tcp_max_syn_backlog).",
)
def half_open(transfers: Transfers) -> Matches:
    flows = transfers.hidden.conclusive(transfers.attempts.flows_in("syn_received"))
    syns = array("I", transfers.trace.directions._packed("syns", "I", flows=flows))[1::2] if flows else ()
    again = {flow: count - 1 for flow, count in zip(flows, syns, strict=True) if 1 < count < NULL}
    for group, match in failed_attempts(transfers, list(again), SYN_ACKS, FROM):
        match.words["again"] = sum(again[flow] for flow in group.flows)
        yield match


def retried_match(transfers: Transfers, handshakes: list[Retried], repeated: list[SynEvent], **fields: Any) -> Matches:
    """Yields a match about these handshakes, whose evidence is the retransmitted SYNs."""
    flows, cited = [handshake.flow for handshake in handshakes], [event.packet for event in repeated[:SHOWN]]
    names = transfers.files.frame_filter(cited)
    return flows_match(transfers, flows, filter=names, cited=cited, packets=len(repeated), **fields)


@finding(
    code="syn-lost",
    title="Handshakes with retransmitted SYNs",
    unit="seconds",
    computed="Connections that opened, with SYNs or SYN-ACKs that were retransmitted before. The cost is the time "
    "from the first SYN or SYN-ACK to the last retransmission of it.",
    unknown="Whether the SYN or its answer was lost, unless the capture point is at the server. A listener with a "
    "full backlog drops SYNs and looks the same, as does an RTT longer than the initial RTO.",
    sentence="{count:connection was|connections were} established only after {again:retransmitted SYN or "
    "SYN-ACK|retransmitted SYNs or SYN-ACKs}[: the first, or its answer, was lost{waited}].",
    advice="Check the listener's backlog (ss -lnt, nstat TcpExtListenDrops), firewall rate limits and packet loss.",
)
def syn_lost(transfers: Transfers) -> Matches:
    slow = [handshake for handshake in transfers.attempts.retried if handshake.lost]
    lost, waited = (
        [event for handshake in slow for event in handshake.lost],
        round(sum(handshake.waited.ns for handshake in slow)),
    )
    return retried_match(
        transfers,
        slow,
        lost,
        again=len(lost),
        waited=f", which cost {show_duration(waited)} in RTOs" if waited else "",
        cost=seconds(waited),
        waited_ns=union_ns(handshake.waited for handshake in slow),
        impact=flows_share(transfers, [handshake.flow for handshake in slow]) * 0.2,
    )


class MetOld(NamedTuple):
    """A SYN that met an old connection of its ports, which its sender reset."""

    first: FlowRow  # the first attempt
    last: FlowRow  # the connection that a SYN from the same port opened then, else the last attempt
    flows: list[int]  # all of them
    is_open: bool


def was_met(transfers: Transfers, flow: int) -> bool:
    """Returns whether the answer to a SYN was no SYN-ACK and no RST, and its sender reset that."""
    client, server = transfers.trace.directions.rows(2 * flow, 2 * flow + 2)
    is_attempt = (
        row_at(transfers.trace.flows, flow)["state"] == "reset" and client["syns"] and not client["data_packets"]
    )
    return bool(is_attempt and client["resets"] and server["packets"]) and not (server["syns"] or server["resets"])


def met_by_old_connections(transfers: Transfers) -> list[MetOld]:
    """Returns the attempts that their senders reset and repeated from the same port, and what came of them."""
    flows, directions = transfers.trace.flows, transfers.trace.directions
    again = {
        row["other"]: row["flow"]
        for row in transfers.trace.relations
        if row["kind"] == "reuse" and ("sequence" in row["evidence"].split() or was_met(transfers, row["other"]))
    }
    met = []
    for flow in again.keys() - again.values():
        chain = [flow]
        while chain[-1] in again:
            chain.append(again[chain[-1]])
        first, last = row_at(flows, flow), row_at(flows, chain[-1])
        is_open = bool(row_at(directions, 2 * chain[-1] + 1)["syns"]) and transfers.attempts.came_about(chain[-1])
        if first["state"] == "reset" and (is_open or last["state"] == "reset"):
            met.append(MetOld(first, last, chain, is_open))
    return sorted(met, key=lambda each: each.first["flow"])


def gaps_of(met: Sequence[MetOld]) -> list[Span]:
    """Returns the times from the first packet of the first attempt to that of the last, as far as they are known."""
    times = [[row["first_ns"] for row in (each.first, each.last)] for each in met]
    return [Span(float(first), float(second)) for first, second in times if first is not None and second is not None]


@finding(
    code="port-reuse",
    title="Ports used again too soon",
    unit="seconds",
    computed="A segment that is no SYN-ACK answered a SYN, and the SYN's sender reset that (relations.kind is reuse). It sent "
    "SYNs from the same port until one opened a connection or the attempts ended. The cost is the time from the first SYN to "
    "the last.",
    unknown="Why the server still had the old connection; a firewall that kept its entry answers nothing.",
    sentence="{count:SYN} met an old connection of its ports that {host} still held[: an ACK of it answered the SYN, an RST "
    "followed, and {outcome}].",
    advice="Wait longer before the client reuses a port: widen net.ipv4.ip_local_port_range, keep connections open, or enable "
    "net.ipv4.tcp_tw_reuse with TCP timestamps.",
)
def port_reuse(transfers: Transfers) -> Matches:
    met = met_by_old_connections(transfers)
    waits = gaps_of(met)
    hosts = list(dict.fromkeys(each.last["destination"] for each in met))
    yield from flows_match(
        transfers,
        [flow for each in met for flow in reversed(each.flows)],
        count=len(met),
        host=hosts[0] if len(hosts) == 1 else plural(len(hosts), "server"),
        outcome=outcome_of(met),
        cost=seconds(sum(span.ns for span in waits)),
        waited_ns=union_ns(waits),
        cited=first_packets(transfers, [row["flow"] for each in met[:SHOWN] for row in (each.first, each.last)]),
        filter=" or ".join(dict.fromkeys(flow_filter(each.last) for each in met[:SHOWN])),
    )


def outcome_of(met: Sequence[MetOld]) -> str:
    """Returns `the connection opened 1 s later`, or that none did."""
    opened = [each for each in met if each.is_open]
    vain = len(met) - len(opened)
    longest_ns = max((span.ns for span in gaps_of(opened or met)), default=0)
    longest = show_duration(longest_ns)
    if not opened:
        return f"no connection opened in {longest}"
    return f"the connection opened {f'{longest} later' if longest_ns else 'at once'}" + (
        f" ({vain} of {len(met)} never)" if vain else ""
    )


@finding(
    code="initial-rto-short",
    title="SYNs retransmitted within one RTT",
    severity="info",
    unit="segments",
    computed="SYNs or SYN-ACKs of connections that opened were retransmitted sooner after the first than the least "
    "RTT of the same direction.",
    unknown="Whether one was lost as well.",
    sentence="{count:connection} retransmitted {early:SYN or SYN-ACK|SYNs or SYN-ACKs} sooner than the least RTT[: the "
    "initial RTO is shorter than the RTT, and {early:~it shows|they show} no loss].",
    advice="Check the initial RTO of the end that retransmits (1 s by RFC 6298) and the delay of the path, such as a "
    "radio that wakes up.",
)
def initial_rto_short(transfers: Transfers) -> Matches:
    early = [handshake for handshake in transfers.attempts.retried if handshake.early]
    events = [event for handshake in early for event in handshake.early]
    return retried_match(transfers, early, events, early=len(events), cost=float(len(events)))


@finding(
    code="accept-deferred",
    title="SYN-ACKs after the handshake",
    severity="info",
    unit="connections",
    computed="A SYN-ACK is retransmitted one RTT and 200 ms at least after the ACK that completed the handshake passed "
    "the capture point. No time is counted, because the client waits for nothing.",
    unknown="Which of the causes. If the capture point is not at the server, the ACK may have been lost after it.",
    sentence="{count:connection has a SYN-ACK that was|connections have SYN-ACKs that were} retransmitted up to {time} "
    "after the handshake[: the server defers accept until data comes (TCP_DEFER_ACCEPT), or its accept queue was full].",
    advice="Check the accept queue if the server is busy (ss -lnt, nstat TcpExtListenOverflows); otherwise it works "
    "as intended.",
)
def accept_deferred(transfers: Transfers) -> Matches:
    deferred = [handshake for handshake in transfers.attempts.retried if handshake.deferred]
    events = [event for handshake in deferred for event in handshake.deferred]
    time = show_duration(max((handshake.deferred_ns for handshake in deferred), default=0))
    return retried_match(transfers, deferred, events, time=time, cost=float(len(deferred)))
