# SPDX-License-Identifier: Apache-2.0
"""A proxy that accepts the connections of a client in place of the servers, so that a fast handshake says nothing about them."""

from __future__ import annotations

import math
from ipaddress import ip_address
from itertools import chain
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.servers import slow_of
from wiretale.analyzer.causes.ends.talk import middle
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.turns import server_end
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.ends.servers import Slow
    from wiretale.analyzer.rows import FlowRow

NETWORKS_MIN = 3  # of 16 bits: hosts of unrelated networks are not on one link
INITIAL_TTLS = (64, 128, 255)
LATER = 10.0  # an answer, in handshakes


def fresh_ttl(case: Case, flow: FlowRow) -> int | None:
    """Returns the TTL of a server's packets if no router can have passed on those of either end; None if one did."""
    ends = [case.direction(flow["flow"], side) for side in (0, 1)]
    if any(row["ttl_min"] != row["ttl_max"] or row["ttl_min"] not in INITIAL_TTLS for row in ends):
        return None
    return ends[1]["ttl_min"]


def accepted_beside(case: Case) -> dict[tuple[str, int], list[Slow]]:
    """Returns the slow servers whose public addresses answer on the client's own link, by client and TTL."""
    groups: dict[tuple[str, int], list[Slow]] = {}
    for slow in slow_of(case):
        flow = slow.server.flows[0]
        handshake, ttl = flow["handshake_rtt_ns"], fresh_ttl(case, flow)
        if flow["ip_version"] != 4 or not handshake or ttl is None or not ip_address(slow.host).is_global:
            continue
        if min(slow.server.slow) >= LATER * handshake:
            client = flow["source"] if slow.host == flow["destination"] else flow["destination"]
            groups.setdefault((client, ttl), []).append(slow)
    return groups


@cause(
    code="split-proxy",
    title="A proxy accepts in place of the servers",
    sentence="A proxy beside {client}, not the servers, accepts its connections: the SYN-ACKs of {servers} in {networks} "
    "networks came within {within} and passed no router (TTL {ttl}), while their answers took {took}. A fast handshake says "
    "nothing about servers and path behind the proxy.",
    advice="Find the proxy (compare `traceroute -T -p {port}` with `traceroute -I`), and capture behind it.",
    shows="Servers in at least three networks (16 bits of public IPv4 addresses) answer with an initial TTL (64, 128 or 255), "
    "as does the client: no router lies between. Their answers take at least ten handshakes, and 200 ms.",
    rivals={
        "slow-server": "hosts of unrelated networks are not on one link: something there answers in their name",
        "long-path": "the handshake takes no time",
    },
    unknown="Whether the path behind the proxy, the servers or the proxy itself take the time. A proxy behind a router.",
    explains=("slow-server",),
)
def split_proxy(case: Case) -> Matches:
    for (client, ttl), slows in accepted_beside(case).items():
        hosts = {slow.host for slow in slows}
        networks = {host.rsplit(".", 2)[0] for host in hosts}
        if len(networks) < NETWORKS_MIN:
            continue
        times = sorted(chain.from_iterable(slow.server.slow for slow in slows))
        within = max(flow["handshake_rtt_ns"] or 0 for slow in slows for flow in slow.server.flows)
        waited_ns = union_ns(chain.from_iterable(slow.server.waited for slow in slows)) or 0.0
        yield Match(
            certainty="proven",
            place="device",
            findings=[slow.numbered for slow in slows],
            flows=[number for slow in slows for number in slow.numbers],
            waited_ns=waited_ns,
            members=len(hosts),
            proof=f"public addresses of {len(networks):,} networks answer on the client's own link, with TTL {ttl}; "
            f"{math.fsum(times) / 1e9:.3g} s until the first bytes",
            excluded={"long-path": f"handshakes took {show_duration(within)} at most"},
            undecided={"slow-server": "a capture between the proxy and the servers"},
            client=client,
            servers=plural(len(hosts), "server"),
            networks=len(networks),
            within=show_duration(within),
            ttl=ttl,
            took=show_duration(middle(times)),
            port=server_end(slows[0].server.flows[0], slows[0].server.turns[0].direction)[1],
        )
