# SPDX-License-Identifier: Apache-2.0
"""Answers that take another path, and one family or protocol that is dead while the other one works."""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import about, any_filter, cut_off, spans_of
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

FLOWS_MAX = 1_000
REPEATS_MIN = 3  # of the first data, on the ladder of an RTO
FLIGHT = 10  # segments of a first flight (RFC 6928)
FALLBACK_NS = 3_000_000_000  # a client tries the other family within (RFC 8305: 250 ms)
FAILED_MIN = 2


def is_stuck(case: Case, flow: FlowRow) -> bool:
    """Returns whether the client completed a handshake of which the capture has no answer, and nothing of its data passed."""
    client, server = case.direction(flow["flow"], 0), case.direction(flow["flow"], 1)
    sent, repeated = client["data_packets"] or 0, client["retransmissions"] or 0
    return (
        not server["packets"]
        and bool(client["syns"])
        and repeated >= REPEATS_MIN
        and 0 < sent - repeated <= FLIGHT
        and repeated >= REPEATS_MIN * (sent - repeated)
    )


def stuck_servers(case: Case) -> dict[tuple[str, int], list[FlowRow]]:
    """Returns the connections that hang after a handshake without a SYN-ACK, by server."""
    numbers = [flow for flow, _ in case.transfers.flow_counts["one_way"]][:FLOWS_MAX]
    by_server: dict[tuple[str, int], list[FlowRow]] = defaultdict(list)
    for number in numbers:
        row = case.flow(number)
        if row["protocol"] == "tcp" and row["state"] not in ("syn_sent", "refused") and is_stuck(case, row):
            by_server[row["destination"], row["destination_port"] or 0].append(row)
    return by_server


@cause(
    code="asymmetric-path",
    title="Answers take another path",
    sentence="The answers of {server} do not pass here, and what the client sends after the SYN is {probably}dropped as out of "
    "state: {count:connection hangs|connections hang} after the handshake, {repeats:repeat} of the first data in "
    "{time} without an answer.",
    advice="Compare `ip route get` at both ends and make the path symmetric, or let the firewall see both directions; on "
    "Linux `net.ipv4.conf.all.rp_filter=2`.",
    shows="A client sends its SYN, then an ACK of a SYN-ACK that the capture does not have, and repeats its first data three "
    "times or more on the ladder of the RTO, so that nothing of it arrives.",
    rivals={
        "one-direction": "in a capture of one direction the client goes on with new data",
        "host-down": "the client acknowledges a SYN-ACK, so the host answered",
        "accept-queue": "a capture at the server shows whether the client's ACK arrives",
    },
    unknown="At one point, whether the firewall there drops the packets or something behind it does.",
    explains=("one-way", "retransmission-unlocated", "timeout-stalls", "suspected-timeout"),
)
def asymmetric_path(case: Case) -> Matches:
    for (host, port), rows in stuck_servers(case).items():
        flows = [row["flow"] for row in rows]
        repeats = sum(case.direction(flow, 0)["retransmissions"] or 0 for flow in flows)
        waits = spans_of(rows)
        case.claimed.update(flows)
        yield Match(
            certainty="likely",
            place="device",
            findings=about(case, flows, "one-way"),
            flows=flows,
            failed=len(rows),
            attempts=len(rows),
            waited_ns=union_ns(waits),
            frames=first_packets(case.transfers, flows),
            packets=repeats,
            filter=any_filter(rows),
            proof=f"an ACK of a SYN-ACK that is not in the capture, then {plural(repeats, 'repeat')} of the same data",
            excluded={
                "one-direction": "the client repeats the same data and gets no further",
                "host-down": "the client acknowledges a SYN-ACK",
            },
            undecided={"accept-queue": f"a capture on {host}: whether the client's ACK and data arrive there"},
            server=endpoint_str(host, port),
            count=len(rows),
            repeats=repeats,
            time=show_duration(max((span.ns for span in waits), default=0)),
        )


class Fallback(NamedTuple):
    """An attempt without an answer, and how long its client waited before it connected otherwise."""

    flow: FlowRow
    waited: Span


def ipv6_attempts(case: Case) -> list[FlowRow]:
    """Returns the attempts over IPv6 if none at all was answered."""
    if not case.findings("syn-unanswered"):
        return []
    flows, attempts = case.trace.flows, case.transfers.attempts
    versions = flows._packed("ip_version", "B")
    if any(version == 6 and attempts.is_connection(flow) for flow, version in enumerate(versions)):
        return []
    silent = [flow for flow in attempts.unanswered() if versions[flow] == 6 and flow not in case.claimed]
    cut = cut_off(case)
    return [case.flow(flow) for flow in silent[:FLOWS_MAX] if flow not in cut or len(silent) >= FAILED_MIN]


def fallbacks(case: Case, rows: list[FlowRow]) -> Iterator[Fallback]:
    """Yields the attempts after which a connection over IPv4 to the same port came about within seconds."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    versions, ports = flows._packed("ip_version", "B"), array("I", flows._packed("destination_port", "I"))
    later = [
        case.flow(flow)
        for flow in range(len(flows))
        if versions[flow] == 4
        and attempts.is_connection(flow)
        and ports[flow] in {row["destination_port"] for row in rows}
    ][:FLOWS_MAX]
    for row in rows:
        began = row["first_ns"]
        for other in later:
            then = other["first_ns"]
            if began is None or then is None or other["destination_port"] != row["destination_port"]:
                continue
            if 0 <= then - began <= FALLBACK_NS:
                yield Fallback(row, Span(began, then))
                break


@cause(
    code="broken-family",
    title="IPv6 does not work, IPv4 does",
    sentence="IPv6 is {probably}dead here: none of {count:connection attempt} was answered, and each client then waited {wait} "
    "before it connected over IPv4{names}.",
    advice="Try `curl -6 -v` from here and repair the IPv6 route or firewall; else withdraw the AAAA records.",
    shows="No connection over IPv6 comes about, and after each attempt one over IPv4 to the same port does within 3 s (RFC "
    "8305). Two attempts or more.",
    rivals={"host-down": "the same clients connect over IPv4 at once"},
    unknown="Whether the route, a firewall or the servers drop IPv6.",
    explains=("syn-unanswered",),
)
def broken_family(case: Case) -> Matches:
    rows = ipv6_attempts(case)
    fallen = list(fallbacks(case, rows)) if len(rows) >= FAILED_MIN else []
    if len(fallen) < FAILED_MIN or len(fallen) < len(rows):
        return
    flows, hosts = [row["flow"] for row in rows], {row["destination"] for row in rows}
    waits = sorted(fallback.waited.ns for fallback in fallen)
    case.claimed.update(flows)
    names = dict.fromkeys(str(row["name"]) for row in case.exchanges("kind", "dns") if row["type"] == "AAAA")
    yield Match(
        certainty="proven" if len(hosts) > 1 else "likely",
        place="path",
        findings=about(case, flows, "syn-unanswered", "icmp-errors"),
        flows=flows,
        attempts=len(rows),
        waited_ns=union_ns(fallback.waited for fallback in fallen),
        frames=first_packets(case.transfers, flows),
        packets=len(rows),
        filter="ipv6 && tcp.flags.syn == 1 && tcp.flags.ack == 0",
        proof=f"all {len(rows)} attempts over IPv6 failed, each followed by a connection over IPv4",
        excluded={"host-down": "no IPv6 address of several answers"} if len(hosts) > 1 else {},
        undecided={} if len(hosts) > 1 else {"host-down": "another host by IPv6: whether it answers"},
        count=len(rows),
        wait=show_duration(waits[len(waits) // 2]),
        names=f" ({named(list(names))})" if names else "",
    )
