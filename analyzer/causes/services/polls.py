# SPDX-License-Identifier: Apache-2.0
"""Requests of which a server leaves some without an answer: those over UDP, and those of Modbus for a unit that it
does not serve."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.services.dialogs import facts_of
from wiretale.analyzer.causes.unanswered.silent_hosts import HOSTS_MAX, about, any_filter, spans_of
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural, show_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

#: services of which each request wants one answer
SERVICES = {123: "NTP request", 161: "SNMP request"}
#: why a server leaves a request without an answer
DROPS = {123: "too many, or of clients that it does not serve", 161: "too many, or a wrong community or user"}
MODBUS, MODBUS_PORTS = "Modbus request", (502,)
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


def by_name(case: Case, kind: str) -> dict[tuple[str, str], dict[str, list[ExchangeRow]]]:
    """Returns the requests of a kind of each client and server, by what they ask for."""
    groups: dict[tuple[str, str], dict[str, list[ExchangeRow]]] = defaultdict(lambda: defaultdict(list))
    for row in case.exchanges("kind", "service"):
        if row["type"] == kind and row["name"]:
            groups[row["client"] or "?", row["server"] or "?"][row["name"].replace("\\032", " ")].append(row)
    return groups


@cause(
    code="unserved-requests",
    title="A device answers some requests and never others",
    sentence='{server} never answers the Modbus request "{silent}" of {client}{more} ({count}), but answers "{served}": '
    "it probably serves no such unit or register.",
    advice="Compare unit (slave address), function and address of the request with the manual of {server}: many devices "
    "answer one unit only, 1 or 255, and ignore all others.",
    shows="A Modbus request goes out at least twice and is never answered; the same server later answers another one of that "
    "client, of another unit, function or address.",
    rivals={
        "hung-server": "it answers other requests",
        "slow-server": "no answer came late",
    },
    unknown="Whether the device is slow with these requests: the client gave up.",
    explains=("request-unanswered",),
)
def unserved_requests(case: Case) -> Matches:
    for (client, server), names in by_name(case, MODBUS).items():
        served = [name for name, rows in names.items() if any(row["answered_frame"] for row in rows)]
        last_ns = max((row["answered_ns"] or 0 for name in served for row in names[name]), default=0)
        silent = [
            name for name, rows in names.items() if name not in served and asked_before(rows, last_ns) >= SILENT_MIN
        ]
        if silent:
            vain = [row for name in silent for row in names[name]]
            yield unserved_match(case, vain, sum(map(len, names.values())), server, client, silent, served)


def asked_before(rows: Sequence[ExchangeRow], ns: int) -> int:
    """Returns how many requests went out before a time."""
    return sum((row["asked_ns"] or 0) < ns for row in rows)


def unserved_match(
    case: Case,
    vain: Sequence[ExchangeRow],
    attempts: int,
    server: str,
    client: str,
    silent: Sequence[str],
    served: Sequence[str],
) -> Match:
    """Returns the match of requests that a device never answers, while it answers other ones."""
    facts = facts_of(case, vain, MODBUS_PORTS)
    flows = [flow for flow in facts["flows"] if not case.direction(flow, 1)["payload_bytes"]]
    return Match(
        certainty="likely",
        place="server",
        findings=about(case, flows, "request-unanswered"),
        failed=len(vain),
        attempts=attempts,
        filter=f"mbtcp && ip.addr == {server}",
        proof=f"{plural(len(vain), 'request')} without an answer, {plural(len(served), 'other kind')} with one",
        excluded={"hung-server": "it answers other requests"},
        undecided={"slow-server": "Let the client wait longer for one of these requests."},
        server=server,
        client=client,
        silent=silent[0],
        more=f" and {plural(len(silent) - 1, 'other')}" if len(silent) > 1 else "",
        count=plural(len(vain), "try", "tries"),
        served=served[0],
        **{**facts, "flows": flows},
    )
