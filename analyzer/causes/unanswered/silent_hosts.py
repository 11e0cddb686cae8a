# SPDX-License-Identifier: Apache-2.0
"""Connection attempts without an answer, by the host that was asked, and what else the capture shows of that host."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.attempts import NULL
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.hosts.neighbors import senders_of
from wiretale.analyzer.findings.shared.servers import family, first_packets
from wiretale.analyzer.findings.transfers import rows_of_kind
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.findings.evidence import Cited
    from wiretale.analyzer.rows import FlowRow

ATTEMPTS_MAX = 200  # whose rows are read
HOSTS_MAX = 8  # that have a cause of their own
ERRORS_MAX = 1_000


class Refusal(NamedTuple):
    """An ICMP error about an attempt."""

    cause: str  # events.cause
    router: str | None


class Facts(NamedTuple):
    """Columns of all flows, and what is said of single attempts."""

    sources: list[str]
    ports: array[int]  # of the responder
    first_ns: array[float]  # since the first packet of the capture; NaN if unknown
    last_ns: array[float]
    syn_counts: dict[int, int]  # of attempts without an answer
    reports: dict[int, Refusal]  # ICMP errors about them

    def spans(self, flows: Iterable[int]) -> list[Span]:
        """Returns the time of each of these flows, as far as it is known."""
        spans = (Span(self.first_ns[flow], self.last_ns[flow]) for flow in flows)
        return [span for span in spans if span.ns == span.ns]


class SilentHost(NamedTuple):
    """A host, and the attempts that it left without an answer."""

    address: str
    flows: list[int]  # the attempts
    facts: Facts
    is_heard: bool  # the capture has packets of it
    open_ports: Counter[int]  # connections to it that came about

    @property
    def failed(self) -> int:
        """The number of the attempts."""
        return len(self.flows)

    @property
    def client(self) -> str:
        """The first that tried."""
        return self.facts.sources[self.flows[0]]

    @property
    def spans(self) -> list[Span]:
        """The time of each attempt, from the first SYN to the last."""
        return self.facts.spans(self.flows)

    @property
    def errors(self) -> list[Refusal]:
        """The ICMP errors about the attempts."""
        return [self.facts.reports[flow] for flow in self.flows if flow in self.facts.reports]

    @property
    def syns(self) -> int:
        """The SYNs of the attempts."""
        return sum(self.facts.syn_counts[flow] for flow in self.flows)

    @property
    def ports(self) -> list[int]:
        """The ports, the most frequent first."""
        return [port for port, _ in Counter(self.facts.ports[flow] for flow in self.flows).most_common()]

    @property
    def waited_ns(self) -> float | None:
        """How long somebody waited for it."""
        return union_ns(self.spans)

    @property
    def time(self) -> str:
        """The time from the first SYN to the last: ` in 95 s`."""
        spans = self.spans
        if not spans:
            return ""
        ns = max(span.end_ns for span in spans) - min(span.start_ns for span in spans)
        return f" in {show_duration(ns)}" if ns else ""

    @property
    def filter(self) -> str:
        """A filter of the SYNs."""
        syns = "tcp.flags.syn == 1 && tcp.flags.ack == 0"
        port = f" && tcp.dstport == {self.ports[0]}" if len(self.ports) == 1 else ""
        return f"{family(self.address)}.dst == {self.address}{port} && {syns}"

    def at_ports(self, ports: Collection[int]) -> SilentHost:
        """Returns the same with the attempts at some ports."""
        return self._replace(flows=[flow for flow in self.flows if self.facts.ports[flow] in ports])


def spans_of(rows: Iterable[FlowRow]) -> list[Span]:
    """Returns the time of each flow."""
    return [
        Span(row["first_ns"], row["last_ns"])
        for row in rows
        if row["first_ns"] is not None and row["last_ns"] is not None
    ]


def ports_str(ports: Sequence[int]) -> str:
    """`TCP 80`, `TCP 80 and 443`, `12 TCP ports`."""
    if len(ports) > 2:
        return f"{len(ports):,} TCP ports"
    return f"TCP {' and '.join(map(str, ports))}"


def about(case: Case, flows: Iterable[int], *codes: str) -> list[Numbered]:
    """Returns the findings of these codes, not explained yet, most of whose flows are among these."""
    among = set(flows)
    findings = [(each, [flow for flow, _ in each.finding.flows]) for each in case.findings(*codes)]
    return [each for each, of in findings if of and 2 * sum(flow in among for flow in of) >= len(of)]


def about_host(case: Case, address: str, *codes: str) -> list[Numbered]:
    """Returns the findings of these codes, not explained yet, all of whose flows have this host at an end."""
    return [
        each
        for each in case.findings(*codes)
        if each.finding.flows
        and all(
            address in (row["source"], row["destination"])
            for row in (case.flow(flow) for flow, _ in each.finding.flows)
        )
    ]


def cut_off(case: Case) -> set[int]:
    """Returns the flows of attempts for whose answer the capture ended too early."""
    flows = {row["flow"] for row in case.exchanges("outcome", "cut_off") if row["kind"] == "connect"}
    return {flow for flow in flows if flow is not None}


def refusals(case: Case, flows: Iterable[int]) -> dict[int, Refusal]:
    """Returns the first ICMP error about each of these flows."""
    if not case.transfers.flow_counts["icmp_errors"]:
        return {}
    among = set(flows)
    errors: dict[int, Refusal] = {}
    for event in rows_of_kind(case.transfers, "icmp_error", ERRORS_MAX):
        if event["flow"] in among and event["cause"]:
            errors.setdefault(event["flow"], Refusal(event["cause"], event["router"]))
    return errors


def syns_of(case: Case, flows: Sequence[int]) -> dict[int, int]:
    """Returns the number of SYNs that the initiator of each flow sent."""
    counts = array("I", case.trace.directions._packed("syns", "I", flows=list(flows)))[::2] if flows else ()
    return {flow: count if count < NULL else 0 for flow, count in zip(flows, counts, strict=True)}


def opened(case: Case, hosts: set[str]) -> dict[str, Counter[int]]:
    """Returns for each of these hosts how many connections to each of its ports came about."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    ports, by_host = array("I", flows._packed("destination_port", "I")), defaultdict[str, Counter[int]](Counter)
    for flow, host in enumerate(flows.column("destination")):
        if host in hosts and attempts.is_connection(flow):
            by_host[host][ports[flow]] += 1
    return by_host


def facts_of(case: Case, attempts: list[int]) -> Facts:
    """Returns the columns of all flows, and what is said of these attempts."""
    flows, base_ns = case.trace.flows, case.transfers.base_ns
    fields = [("destination_port", "I", 0, 1), ("first_ns", "d", base_ns, 1), ("last_ns", "d", base_ns, 1)]
    ports, firsts, lasts = flows._packed_columns(fields)
    return Facts(
        flows.column("source"),
        array("I", ports),
        array("d", firsts),
        array("d", lasts),
        syns_of(case, attempts),
        refusals(case, attempts),
    )


def silent_hosts_of(case: Case) -> list[SilentHost]:
    """Returns the hosts that left attempts without an answer, those with the most attempts first. A host is not among them if the
    end of the capture cut off all of its attempts and no SYN was repeated."""
    if not case.all_findings("syn-unanswered"):
        return []
    flows, cut = case.transfers.attempts.unanswered(), cut_off(case)
    destinations, facts = case.trace.flows.column("destination"), facts_of(case, flows)
    by_host: dict[str, list[int]] = defaultdict(list)
    for flow in flows:
        by_host[destinations[flow]].append(flow)
    due = [
        (host, of) for host, of in by_host.items() if any(flow not in cut or facts.syn_counts[flow] > 1 for flow in of)
    ]
    most = sorted(due, key=lambda group: -len(group[1]))[:HOSTS_MAX]
    senders, ports = senders_of(case.transfers), opened(case, {host for host, _ in most})
    return [SilentHost(host, of, facts, host in senders, ports.get(host, Counter())) for host, of in most]


def silent_hosts(case: Case) -> list[SilentHost]:
    """Returns the same without the attempts that a cause explains."""
    hosts = (
        host._replace(flows=[flow for flow in host.flows if flow not in case.claimed]) for host in case.silent_hosts
    )
    return [host for host in hosts if host.flows]


def first_syns(case: Case, host: SilentHost) -> list[Cited]:
    """Returns the first SYN of each of the first attempts."""
    return first_packets(case.transfers, host.flows[:ATTEMPTS_MAX])


def attempt_fields(case: Case, host: SilentHost, *codes: str) -> dict[str, Any]:
    """Returns what matches about the attempts of a silent host have in common; `codes` are those of the findings about them."""
    return {
        "findings": about(case, host.flows, *codes),
        "flows": host.flows,
        "failed": host.failed,
        "attempts": host.failed,
        "waited_ns": host.waited_ns,
        "frames": first_syns(case, host),
        "packets": host.syns,
        "filter": host.filter,
    }


def any_filter(rows: Sequence[FlowRow], most: int = 5) -> str:
    """Returns a filter of the first of these flows."""
    return " or ".join(flow_filter(row) for row in rows[:most])
