# SPDX-License-Identifier: Apache-2.0
"""Ports that a firewall blocks, while their host answers others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, cause
from wiretale.analyzer.causes.unanswered.refusals.closed_ports import NO_PORT
from wiretale.analyzer.causes.unanswered.refusals.refused_servers import (
    TURNS_MIN,
    Refused,
    fields_of,
    last_opened,
    refused_servers,
)
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    Refusal,
    SilentHost,
    attempt_fields,
    ports_str,
    silent_hosts,
)
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

FORBIDDEN = ("prohibited", "host_prohibited", "network_prohibited")
AT_HOST_NS = 50_000  # in which only the host at which a capture was made answers, or a container on it
SYNS_MIN = 2
HOPS_PROVEN = 2  # difference of TTLs; one hop may be a second interface


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
    """`, while its port 443 accepts connections`, or `, though 4 connections to it opened before`."""
    if port is not None and host.open_ports[port]:
        return f", though {plural(host.open_ports[port], 'connection')} to it opened before"
    return f", while its port {host.open_ports.most_common(1)[0][0]} accepts connections" if host.open_ports else ""
