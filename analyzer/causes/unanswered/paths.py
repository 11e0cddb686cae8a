# SPDX-License-Identifier: Apache-2.0
"""Answers that take another path, and one family or protocol that is dead while the other one works."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from ipaddress import IPv6Network
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import about, any_filter, cut_off, refusals, spans_of
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

FLOWS_MAX = 1_000
REPEATS_MIN = 3  # of the first data, on the ladder of an RTO
FLIGHT = 10  # segments of a first flight (RFC 6928)
FALLBACK_NS = (
    3_000_000_000  # a client tries the other family within (RFC 8305: 250 ms), or when the next SYN would be due
)
FAILED_MIN = 2
QUIC_PORT = 443


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
    sentence="{what}.",
    advice="Compare `ip route get` at both ends and make the path symmetric, or let the firewall see both directions; on "
    "Linux `net.ipv4.conf.all.rp_filter=2`.",
    shows="A client sends its SYN, then acknowledges a SYN-ACK that the capture doesn't have. It repeats its first data at "
    "least three times at RTO intervals, so nothing of it arrives. Or SYN-ACKs pass, and the client repeats its SYN.",
    rivals={
        "one-direction": "in a capture of one direction the client goes on with new data",
        "host-down": "the client acknowledges a SYN-ACK, so the host answered",
        "accept-queue": "a capture at the server shows whether the client's ACK arrives",
        "syn-flood": "the clients repeat their SYNs",
    },
    unknown="At one point, whether the firewall there drops the packets or something beyond it does.",
    explains=("one-way", "half-open", "retransmission-unlocated", "timeout-stalls", "suspected-timeout"),
)
def asymmetric_path(case: Case) -> Matches:
    yield from hanging(case)
    yield from lost_answers(case)


def lost_answers(case: Case) -> Matches:
    """Yields the servers whose SYN-ACKs passed here and did not reach the clients, which repeat their SYNs."""
    case_flows = case.transfers.hidden.conclusive(case.transfers.attempts.flows_in("syn_received"))[:FLOWS_MAX]
    by_server: dict[tuple[str, int], list[FlowRow]] = defaultdict(list)
    for flow in case_flows:
        sides = case.direction(flow, 0), case.direction(flow, 1)
        if min(sides[0]["syns"] or 0, sides[1]["syns"] or 0) > 1 and flow not in case.claimed:
            row = case.flow(flow)
            by_server[row["destination"], row["destination_port"] or 0].append(row)
    for (host, port), rows in by_server.items():
        flows = [row["flow"] for row in rows]
        answers = sum(case.direction(flow, 1)["syns"] or 0 for flow in flows)
        waits = spans_of(rows)
        case.claimed.update(flows)
        yield Match(
            certainty="likely",
            place="after",
            findings=about(case, flows, "half-open"),
            flows=flows,
            failed=len(rows),
            attempts=len(rows),
            waited_ns=union_ns(waits),
            frames=first_packets(case.transfers, flows),
            packets=answers,
            filter=any_filter(rows),
            proof=f"{plural(answers, 'SYN-ACK')} passed, and the clients repeated their SYNs all the same",
            excluded={"syn-flood": "the clients repeat their SYNs, so that they want an answer"},
            undecided={"filtered": f"a capture at {rows[0]['source']}: whether the SYN-ACKs arrive there"},
            what=f"The SYN-ACKs of {endpoint_str(host, port)} probably do not reach {named([row['source'] for row in rows], 1)}: "
            f"{plural(answers, 'SYN-ACK')} passed the capture point, and {plural(len(rows), 'client connection')} "
            "repeated the SYN",
        )


def hanging(case: Case) -> Matches:
    """Yields the servers whose SYN-ACKs take another path, so that a firewall drops what the client sends then."""
    for (host, port), rows in stuck_servers(case).items():
        flows = [row["flow"] for row in rows]
        repeats = sum(case.direction(flow, 0)["retransmissions"] or 0 for flow in flows)
        waits = spans_of(rows)
        time = show_duration(max((span.ns for span in waits), default=0))
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
            what=f"The SYN-ACKs of {endpoint_str(host, port)} take another path, so what the client sends next is probably "
            f"dropped as out of state. {plural(len(rows), 'connection')} hang after the handshake "
            f"({plural(repeats, 'repeat')} of the first data in {time})",
        )


class Fallback(NamedTuple):
    """An attempt without an answer, and how long its client waited before it connected otherwise."""

    flow: FlowRow
    waited: Span
    instead: int  # the connection


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
    """Yields the attempts after which a connection over IPv4 to the same port came about within seconds of the last SYN of the
    client, or when it gives up in place of its next SYN, whose pause is about as long as all before together; it may try other
    addresses over IPv6 before."""
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
        began, ladder_ns = row["first_ns"], (row["last_ns"] or 0) - (row["first_ns"] or 0)
        for other in later:
            then = other["first_ns"]
            if began is None or then is None or other["destination_port"] != row["destination_port"]:
                continue
            if began <= then and then - last_try(rows, row, then) <= FALLBACK_NS + ladder_ns:
                yield Fallback(row, Span(began, then), other["flow"])
                break


def last_try(rows: list[FlowRow], first: FlowRow, until_ns: int) -> int:
    """Returns the time of the last SYN of an attempt and those that its client began in turn, each within seconds."""
    last_ns: int = first["last_ns"] or 0
    for row in sorted(rows, key=lambda row: row["first_ns"] or 0):
        same_client = row["source"] == first["source"] and row["destination_port"] == first["destination_port"]
        if same_client and (first["first_ns"] or 0) < (row["first_ns"] or 0) <= min(until_ns, last_ns + FALLBACK_NS):
            last_ns = max(last_ns, row["last_ns"] or 0)
    return min(last_ns, until_ns)


def networks(hosts: Iterable[str]) -> int:
    """Returns the number of /64 networks of IPv6 addresses."""
    return len({IPv6Network((host, 64), strict=False) for host in hosts})


@cause(
    code="broken-family",
    title="IPv6 or QUIC does not work, IPv4 or TCP does",
    sentence="{dead} here: none of {count:{tries}} was answered{report}, and each client then waited {wait} before it connected "
    "over {instead}{names}.",
    advice="{advice}",
    shows="No connection over IPv6 is established. After each attempt, one over IPv4 to the same port is, within 3 s of the "
    "attempt (RFC 8305). If the client tried several addresses, the 3 s run from its last SYN; otherwise the limit may also "
    "be when its next SYN would be due. At least two attempts.",
    rivals={"host-down": "the same clients connect over IPv4 at once"},
    unknown="Whether the route, a firewall or the servers drop IPv6.",
    explains=("syn-unanswered",),
)
def broken_family(case: Case) -> Matches:
    yield from blocked_quic(case)
    rows = ipv6_attempts(case)
    fallen = list(fallbacks(case, rows)) if len(rows) >= FAILED_MIN else []
    if len(fallen) < FAILED_MIN or len(fallen) < len(rows):
        return
    case.claimed.update(row["flow"] for row in rows)
    yield family_match(case, rows, fallen)


def family_match(case: Case, rows: list[FlowRow], fallen: list[Fallback]) -> Match:
    """Returns the match of attempts over IPv6, each of which a connection over IPv4 followed."""
    flows, hosts = [row["flow"] for row in rows], {row["destination"] for row in rows}
    is_everywhere, reports = networks(hosts) > 1, Counter(refusals(case, flows).values()).most_common(1)
    waits = sorted(max(span.ns for span in spans) for spans in by_instead(fallen))
    names = dict.fromkeys(str(row["name"]) for row in case.exchanges("kind", "dns") if row["type"] == "AAAA")
    rivals: dict[str, Any] = {
        "excluded": {"host-down": "no IPv6 address of several networks answers"} if is_everywhere else {},
        "undecided": {} if is_everywhere else {"host-down": "a host of another network by IPv6: whether it answers"},
    }
    return Match(
        certainty="proven" if is_everywhere else "likely",
        place="path",
        findings=about(case, flows, "syn-unanswered", "icmp-errors"),
        flows=flows,
        attempts=len(rows),
        waited_ns=union_ns(fallback.waited for fallback in fallen),
        frames=first_packets(case.transfers, flows),
        packets=len(rows),
        filter="ipv6 && tcp.flags.syn == 1 && tcp.flags.ack == 0",
        proof=f"all {len(rows)} attempts over IPv6 failed, each followed by a connection over IPv4",
        **rivals,
        dead="IPv6 is dead" if is_everywhere else "IPv6 is probably dead",
        tries="connection attempt",
        report="".join(f" (the router {router} reports '{cause.replace('_', ' ')}')" for (cause, router), _ in reports),
        instead="IPv4",
        advice="Try `curl -6 -v` from here and repair the IPv6 route or firewall; else withdraw the AAAA records.",
        count=len(rows),
        wait=show_duration(waits[len(waits) // 2]),
        names=f" ({named(list(names))})" if names else "",
    )


def by_instead(fallen: list[Fallback]) -> list[list[Span]]:
    """Returns the waits for each connection over IPv4."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for fallback in fallen:
        spans[fallback.instead].append(fallback.waited)
    return list(spans.values())


def quic_attempts(case: Case) -> list[FlowRow]:
    """Returns the QUIC connections to port 443 without an answer if none was answered."""
    numbers = case.transfers.flows_where("application", "quic")[:FLOWS_MAX]
    rows = [row for row in map(case.flow, numbers) if row["destination_port"] == QUIC_PORT]
    silent = [row for row in rows if row["one_way"] and row["packets"] > 1 and not row["icmp_errors"]]
    return silent if len(silent) == len(rows) >= FAILED_MIN else []


def tcp_instead(case: Case, rows: list[FlowRow]) -> list[Span]:
    """Returns how long clients waited after these attempts before they connected to the same host by TLS over TCP."""
    opened = [case.flow(flow) for flow in case.transfers.flows_where("application", "tls")[:FLOWS_MAX]]
    firsts = {row["destination"]: row["first_ns"] for row in reversed(opened)}
    waits = [Span(row["first_ns"] or 0, firsts.get(row["destination"]) or 0) for row in rows]
    return [span for span in waits if span.start_ns and 0 <= span.ns <= FALLBACK_NS]


def blocked_quic(case: Case) -> Matches:
    """Yields UDP 443 if it answers nobody and TCP 443 of the same hosts does."""
    rows = quic_attempts(case)
    waits = tcp_instead(case, rows) if rows else []
    if len(waits) < FAILED_MIN:
        return
    flows, times = [row["flow"] for row in rows], sorted(span.ns for span in waits)
    is_certain = len({row["destination"] for row in rows}) > 1
    yield Match(
        certainty="proven" if is_certain else "likely",
        place="path",
        findings=about(case, flows, "one-way"),
        flows=flows,
        attempts=len(rows),
        waited_ns=union_ns(waits),
        frames=first_packets(case.transfers, flows),
        packets=sum(row["packets"] for row in rows),
        filter="udp.port == 443",
        proof=f"TCP 443 of the same hosts answered after {plural(len(rows), 'QUIC connection')} failed",
        excluded={"host-down": "TCP 443 of the same hosts answers"},
        undecided={} if is_certain else {"filtered": "another host: whether its UDP 443 answers"},
        dead=f"UDP 443 (QUIC) is {'' if is_certain else 'probably '}blocked",
        tries="QUIC connection",
        report="",
        instead="TCP",
        names="",
        advice="Open UDP 443 in the firewall, or turn QUIC off at the clients.",
        count=len(rows),
        wait=show_duration(times[len(times) // 2]),
    )
