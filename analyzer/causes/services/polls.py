# SPDX-License-Identifier: Apache-2.0
"""Requests over UDP of which a server leaves some without an answer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import HOSTS_MAX, about, any_filter, spans_of
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

#: services of which each request wants one answer
SERVICES = {123: "NTP request", 161: "SNMP request"}
#: why a server leaves a request without an answer
DROPS = {123: "too many, or of clients that it does not serve", 161: "too many, or a wrong community or user"}
FLOWS_MAX = 5_000
SILENT_MIN, ANSWERED_MIN, SHARE_MIN = 2, 3, 0.02


class Polled(NamedTuple):
    """Flows of a client to a service."""

    rows: list[FlowRow]
    requests: int
    answers: int

    @property
    def silent(self) -> int:
        """The requests without an answer."""
        return self.requests - self.answers


def polled(case: Case) -> dict[tuple[str, str, int], Polled]:
    """Returns the requests and answers of each client, server and service."""
    flows = case.trace.flows
    columns = (flows.column(name) for name in ("destination_port", "protocol"))
    port_pairs = enumerate(zip(*columns, strict=True))
    polling_flows = [flow for flow, (port, protocol) in port_pairs if port in SERVICES and protocol == "udp"][
        :FLOWS_MAX
    ]
    groups: dict[tuple[str, str, int], list[FlowRow]] = defaultdict(list)
    for row in case.transfers.without_legs(map(case.flow, polling_flows)):
        groups[row["source"], row["destination"], row["destination_port"] or 0].append(row)
    return {ends: polled_of(case, rows) for ends, rows in groups.items()}


def polled_of(case: Case, rows: list[FlowRow]) -> Polled:
    """Returns these flows, without those that began after the last answer: theirs may be on the way, or the server gone."""
    last_ns = max(case.direction(row["flow"], 1)["last_ns"] or 0 for row in rows)
    counted = [row for row in rows if (row["first_ns"] or 0) <= last_ns]
    requests, answers = (sum(case.direction(row["flow"], side)["packets"] for row in counted) for side in (0, 1))
    return Polled(counted, requests, answers)


@cause(
    code="some-unanswered",
    title="Some requests over UDP get no answer",
    sentence="{server} did not answer {silent} of {requests} of {client} ({share}): they or the answers are {probably}lost on "
    "the way, or it drops them ({drops}).",
    advice="Capture at {host} too: requests that do not arrive there, or answers that leave it, are lost on the way; else look "
    "at its CPU, its limit of requests, and in its log for what it drops.",
    shows="At least two SNMP or NTP requests, and 2% of those of a client, have no answer, while the server answers three or "
    "more. Those that begin after its last answer do not count.",
    rivals={
        "udp-silent": "it answers others",
        "late-udp-answers": "no answer came late",
        "capture-drops": "the capture itself lost nothing",
    },
    unknown="Where they are lost.",
    explains=("one-way",),
)
def some_unanswered(case: Case) -> Matches:
    explained = case.flows_of()
    groups = [(key, each) for key, each in polled(case).items() if is_partly_silent(each)]
    for (client, host, port), each in groups[:HOSTS_MAX]:
        flows = [row["flow"] for row in each.rows]
        if explained.intersection(flows) or case.findings("capture-dropped"):
            continue
        vain = [row for row in each.rows if not case.direction(row["flow"], 1)["packets"]]
        silent_flows = [row["flow"] for row in vain or each.rows]
        yield Match(
            certainty="likely",
            place="path",
            findings=about(case, silent_flows, "one-way"),
            flows=silent_flows,
            failed=each.silent,
            attempts=each.requests,
            waited_ns=union_ns(spans_of(vain)) if vain else None,
            frames=first_packets(case.transfers, silent_flows),
            packets=each.silent,
            filter=any_filter(vain or each.rows),
            proof=f"{plural(each.requests, SERVICES[port])}, {plural(each.answers, 'answer')}",
            excluded={"udp-silent": "it answers others"},
            undecided={"late-udp-answers": f"a capture at {host}: which requests arrive, and which answers leave"},
            server=endpoint_str(host, port),
            silent=f"{each.silent:,}",
            requests=plural(each.requests, SERVICES[port]),
            client=client,
            share=show_share(each.silent, each.requests),
            host=host,
            drops=DROPS[port],
        )


def is_partly_silent(each: Polled) -> bool:
    """Returns whether a server answers, and not all."""
    return each.answers >= ANSWERED_MIN and each.silent >= max(SILENT_MIN, SHARE_MIN * each.requests)
