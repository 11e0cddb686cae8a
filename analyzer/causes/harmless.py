# SPDX-License-Identifier: Apache-2.0
"""What worries people in captures in which nothing is wrong, or little: traced paths, multicast for others, lookups of
neighbors, and packets that Wireshark marks although they are as they should be."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of
from wiretale.analyzer.findings.hosts.neighbors import NEIGHBORS_MAX
from wiretale.analyzer.findings.hosts.traced import traced_paths
from wiretale.analyzer.units import plural, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.findings.hosts.traced import Traced
    from wiretale.analyzer.trace import Trace

PROBES_SHARE = 0.05  # of the packets: fewer probes are not what the capture is about
ARRIVING = 0.95  # of the answers of the router that answers most
RARE = 0.8  # of the same: a router that answers less often limits its answers
STREAMS_SHARE = 0.5  # of the bytes of a capture, in streams to multicast groups
STREAM_PACKETS = 100
#: ARP requests of one machine: their share of the packets, the hosts that they look for, and the most in a second
LOOKUPS_SHARE, TARGETS_LEAST, LOOKUPS_RATE = 0.5, 50, 1_000
LOCAL_GROUPS = ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16")
SHOWN = 2
MARKED_LEAST, MARKED_SHARE = 20, 0.01  # packets, and of all packets: fewer worry nobody


def traced_str(trace: Trace) -> str:
    """`203.0.113.9 answered 60 probes of traceroute or mtr …`; empty if the capture is about something else."""
    paths = traced_paths(trace.transfers)
    if not paths:
        return ""
    path = paths[0]
    probes = path.routers.total() + path.answered + path.silent
    if probes < PROBES_SHARE * trace.totals["packets"]:
        return ""
    head = f"{path.source} traced the path to {path.destination} (traceroute, mtr)"
    if not path.answered:
        return f"{head}, which never answered; {len(path.routers):,} routers on the way did"
    if path.answered < ARRIVING * path.most:
        return (
            f"{head}, which answered {path.answered:,} probes, and a router before it {path.most:,}: the rest was lost after "
            "that router, or the destination limits its answers"
        )
    return f"{head}, and nothing was lost on it: {path.destination} answered {arrived_str(path)}{rare_str(path)}"


def arrived_str(path: Traced) -> str:
    """`as many probes as the router that answered most (60)`."""
    if path.most == 1:
        return "the probe that came so far"
    return f"as many probes as any router before it ({path.answered:,})"


def rare_str(path: Traced) -> str:
    """Returns that some routers answer rarely; empty if none does."""
    rare = [router for router, count in path.routers.items() if count < RARE * path.most]
    if not rare and not path.silent:
        return ""
    who = f" ({rare[0]}: {path.routers[rare[0]]:,})" if rare else ""
    return f"; routers that answer less often{who} or not at all only limit such answers"


def streams_str(trace: Trace) -> str:
    """Returns that most of the capture is multicast that nobody here asked for; empty otherwise."""
    flows, members = trace.flows, set(trace.groups.column("address")) if len(trace.groups) else set()
    long, sizes = flows._rows_where("packets", STREAM_PACKETS), trace.transfers.sizes
    addresses = flows.column("destination") if long else []
    streamed = {address for address in {addresses[flow] for flow in long} - members if is_group(address)}
    groups: dict[str, float] = {}
    for flow in long if streamed else ():
        if addresses[flow] in streamed:
            groups[addresses[flow]] = groups.get(addresses[flow], 0.0) + sizes[flow]
    carried, total = sum(groups.values()), sum(sizes)
    capture_ns = trace.transfers.turns.capture_ns
    if not groups or carried < STREAMS_SHARE * total or not capture_ns:
        return ""
    largest = sorted(groups, key=lambda address: -groups[address])
    names = ", ".join(largest[:SHOWN]) + (", …" if len(largest) > SHOWN else "")
    return (
        f"{show_share(carried, total)} of the bytes are {plural(len(groups), 'multicast stream')} ({names}), "
        f"{show_rate(carried * 8e9 / capture_ns)}, and no IGMP report or query for them is in the capture: either this host "
        "joined them before, or the switch floods them to all ports (no IGMP snooping, or no querier)"
    )


def lookups_str(trace: Trace) -> str:
    """Returns that most packets are ARP requests of one machine for many hosts; empty otherwise."""
    neighbors = trace.neighbors.rows(0, NEIGHBORS_MAX)
    requests: Counter[str] = Counter()
    for row in neighbors:
        requests[row["mac"]] += row["claims"] - row["answers"] if "." in row["address"] else 0
    mac, count = requests.most_common(1)[0] if requests else ("", 0)
    span_ns = trace.transfers.turns.capture_ns
    if count < max(LOOKUPS_SHARE * trace.totals["packets"], TARGETS_LEAST) or not span_ns:
        return ""
    addresses = {row["address"] for row in neighbors if row["mac"] == mac}
    targets = {row["server"] for row in exchanges_of(trace.transfers, "arp") if row["client"] in addresses}
    rate = count * 1e9 / span_ns
    if len(targets) < TARGETS_LEAST or rate > LOOKUPS_RATE:
        return ""
    share, many = show_share(count, trace.totals["packets"]), "" if len(addresses) == 1 else "es"
    return (
        f"{share} of the packets are ARP requests of {mac} ({len(addresses):,} address{many}) for {len(targets):,} hosts, "
        f"{rate:,.0f} a second: a router that looks up its hosts, or a scan"
    )


def is_group(address: str) -> bool:
    """Returns whether an address is that of a multicast group that switches may keep from ports."""
    parsed = ipaddress.ip_address(address)
    return parsed.is_multicast and not any(parsed in network for network in LOCAL_GROUPS)


def marks_of(trace: Trace) -> list[str]:
    """Returns what many packets are that Wireshark marks although they are as they should be, what worries most first."""
    marks = (
        ("capture_reordered", "segment", "were stored by the capture after their ACKs (ACKed unseen segment)"),
        (
            "checksums_offloaded",
            "packet",
            "with a wrong checksum were probably captured before the adapter filled it in",
        ),
        ("keep_alives", "keep-alive", "kept idle connections open"),
    )
    least = max(MARKED_LEAST, MARKED_SHARE * trace.totals["packets"])
    counts = ((trace.directions.total(column), noun, text) for column, noun, text in marks)
    return [f"{plural(count, noun)} {text}" for count, noun, text in counts if count >= least]
