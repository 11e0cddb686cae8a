# SPDX-License-Identifier: Apache-2.0
"""Tunnels that are set up, and through which nothing comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import about
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

FLOWS_MAX = 2_000
PACKETS_MIN, LASTS_NS = 10, 5_000_000_000  # of ESP in one direction; a new tunnel may be silent at first
IKE_PORTS = (500, 4500)


def key_exchanges(case: Case) -> dict[frozenset[str], FlowRow]:
    """Returns by pair of hosts the flow of IKE that passes in both directions."""
    flows = case.trace.flows
    ports = enumerate(zip(flows.column("source_port"), flows.column("destination_port"), strict=True))
    rows = (case.flow(flow) for flow, pair in ports if pair[0] in IKE_PORTS and pair[1] in IKE_PORTS)
    return {frozenset((row["source"], row["destination"])): row for row in rows if not row["one_way"]}


def one_way_tunnels(case: Case) -> Iterator[FlowRow]:
    """Yields the flows of ESP of which one direction alone passes."""
    for flow, _ in case.transfers.flow_counts["one_way"][:FLOWS_MAX]:
        row = case.flow(flow)
        if row["protocol"] == "esp" and flow not in case.transfers.legs and row["packets"] >= PACKETS_MIN:
            yield row


@cause(
    code="esp-one-way",
    title="ESP in one direction only",
    sentence="The tunnel between {source} and {target} {probably}carries nothing back: {count} of ESP left for {target} in "
    "{time} and none came from it, although it answers IKE.",
    advice="Allow IP protocol 50 (ESP) from {target} in the firewalls and NATs on the way, or force UDP encapsulation (NAT-T, "
    "port 4500); if a capture at {target} shows none leaving, compare its policies and routes with those of {source}.",
    shows="At least ten ESP packets in 5 s or more go from one host to another, and none comes back. IKE (UDP 500 or 4500) "
    "passes between both in both directions.",
    rivals={"one-direction": "IKE of the same two hosts passes in both directions"},
    unknown="Whether the other end sends ESP at all: a capture there shows it.",
    explains=("one-way",),
)
def esp_one_way(case: Case) -> Matches:
    tunnels = list(one_way_tunnels(case))
    exchanged = key_exchanges(case) if tunnels else {}
    for row in tunnels:
        ike = exchanged.get(frozenset((row["source"], row["destination"])))
        lasted_ns = (row["last_ns"] or 0) - (row["first_ns"] or 0)
        if ike is None or lasted_ns < LASTS_NS:
            continue
        yield Match(
            certainty="likely",
            place="path",
            findings=about(case, [row["flow"]], "one-way"),
            flows=[row["flow"], ike["flow"]],
            failed=1,
            attempts=1,
            waited_ns=lasted_ns,
            frames=[Cited(row["first_frame"], row["first_ns"], row["flow"], row["first_capture"])],
            packets=row["packets"],
            filter=f"esp && ip.addr == {row['destination']}".replace("ip.", "ipv6." if ":" in row["source"] else "ip."),
            proof=f"{plural(row['packets'], 'packet')} of ESP one way, {plural(ike['packets'], 'packet')} of IKE both ways",
            undecided={"one-direction": f"Capture at {row['destination']}: does ESP leave it?"},
            source=row["source"],
            target=row["destination"],
            count=plural(row["packets"], "packet"),
            time=show_duration(lasted_ns),
        )
