# SPDX-License-Identifier: Apache-2.0
"""Requests on TCP connections that were never answered: a server that hangs, and clients that gave up."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import REQUEST, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.findings.model import Match, Matches, Words, endpoint_str, finding, row_at
from wiretale.analyzer.findings.shared.places import packet_at
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

CHAPTER = "Requests without an answer"
DUE_NS = 5_000_000_000  # a server that computes answers sooner, as a rule
GIVEN_UP_NS = 200_000_000  # a client that closes sooner did not wait
TIMES_SLOWEST = 3  # a longer wait than any answer of the server took
ALIKE = 1.02  # the longest wait over the shortest, if it is a client's timeout
#: ports of services that answer nothing: syslog, its TLS, statsd, graphite, carbon, GELF, fluentd, raw printing
ONE_WAY_PORTS = frozenset((514, 601, 6514, 8125, 2003, 2004, 12201, 24224, 9100))
REPLYING_PORTS = frozenset((2049,))  # of NFS: each call of RPC has a reply (RFC 5531 section 9)
#: ports of services that answer the first message of a client: HTTP of applications, proxies, databases and their pools, queues,
#: remote desktops
FIRST_ANSWERED = frozenset(
    (1433, 1521, 1883, 3128, 3389, 5432, 5672, 6379, 6432, 8000, 8080, 8443, 9042, 9092, 9200, 11211, 27017)
)
NAMED = ("http", "tls")  # kinds that are known to want an answer
SYSTEM_PORTS = 1024  # ports below are of services that answer, but for those above (RFC 6335 section 6)


class Silence(NamedTuple):
    """A request without an answer."""

    row: ExchangeRow
    flow: int
    server: tuple[str, int | None]  # address and port of the end that was asked
    waited_ns: (
        int  # since the client had sent all of its request; if the connection stayed open, to the end of the capture
    )

    @property
    def was_given_up(self) -> bool:
        """Whether the client closed the connection."""
        return self.row["outcome"] == "abandoned"

    @property
    def is_due(self) -> bool:
        """Whether a service that answers would have done so."""
        due_ns = GIVEN_UP_NS if self.was_given_up else DUE_NS
        return self.waited_ns >= due_ns and self.server[1] not in ONE_WAY_PORTS

    @property
    def is_known(self) -> bool:
        """Whether the request wants an answer by its protocol, or by the port of a service."""
        port = self.server[1]
        is_first = port in FIRST_ANSWERED and not self.row["turn"]
        is_of_system = port is not None and port < SYSTEM_PORTS
        return self.row["kind"] in NAMED or self.has_replies or is_first or is_of_system

    @property
    def has_replies(self) -> bool:
        """Whether each message of its protocol wants an answer, the last one too."""
        return self.server[1] in REPLYING_PORTS


def silences(transfers: Transfers) -> Iterator[Silence]:
    """Yields the requests that the server's kernel acknowledged as a whole, and that nobody answered."""
    trace = transfers.trace
    until_ns = max((ns for ns in trace.interfaces.column("last_ns") if ns is not None), default=0)
    rows = transfers.without_legs(rows_where(transfers, "outcome", "unanswered", "abandoned"))
    of_turns = [(row["flow"], row) for row in rows if row["flow"] is not None and row["turn"] is not None]
    flows = sorted({flow for flow, _ in of_turns})
    unacked = array("d", trace.directions._packed("unacked_bytes", "d", flows=flows))  # of nearly a hundred columns
    ports = [array("I", trace.flows._packed(f"{end}_port", "I", flows=flows)) for end in ("destination", "source")]
    places = {flow: place for place, flow in enumerate(flows)}
    for flow, row in of_turns:
        place, side = places[flow], row["direction"] or 0
        silence = Silence(row, flow, (str(row["server"]), ports[side][place]), waited_ns(row, until_ns))
        if unacked[2 * place + side] == 0 and silence.is_due:
            yield silence


def waited_ns(row: ExchangeRow, until_ns: int) -> int:
    """Returns how long a client waited since it had sent all of its request, to the end of the capture without an end."""
    since_ns = row["waited_ns"]
    if since_ns is None:
        since_ns = 0 if row["asked_ns"] is None else until_ns - row["asked_ns"]
    return max(since_ns - (row["request_ns"] or 0), 0)


def slowest_answers(transfers: Transfers) -> dict[str, float]:
    """Returns the longest server time of each server, ns."""
    exchanges, slowest = transfers.trace.exchanges, dict[str, float]()
    times = array("d", exchanges._packed("server_ns", "d"))
    for server, took_ns in zip(exchanges.column("server"), times, strict=True):
        if took_ns > slowest.get(server, 0.0):
            slowest[server] = took_ns
    return slowest


def by_server(transfers: Transfers) -> dict[tuple[str, int | None], list[Silence]]:
    """Returns the requests by the server that left them without an answer, longer than it took for any answer."""
    open_requests = list(silences(transfers))
    slowest = {} if all(silence.was_given_up for silence in open_requests) else transfers.slowest_answers
    servers: dict[tuple[str, int | None], list[Silence]] = {}
    for silence in open_requests:
        if silence.was_given_up or silence.waited_ns >= TIMES_SLOWEST * slowest.get(silence.server[0], 0.0):
            servers.setdefault(silence.server, []).append(silence)
    return {server: group for server, group in servers.items() if is_convincing(group)}


def is_convincing(group: Sequence[Silence]) -> bool:
    """Returns whether requests that were left open look like requests, not like messages that want no answer.

    A client that closes some time after its last message gave up only if its protocol is known, or if it does so after the
    same time again.
    """
    times = sorted(silence.waited_ns for silence in group)
    if any(silence.is_known for silence in group):
        return True
    if any(silence.was_given_up for silence in group):
        return len(group) > 1 and times[-1] <= ALIKE * times[0]
    return len(group) > 1 or bool(group[0].row["turn"])


def waits_str(times: Sequence[int]) -> str:
    """Returns `2.0 s`, or `11.2 to 16.0 s`; times must ascend."""
    if times[-1] <= ALIKE * times[0]:
        return show_duration(times[len(times) // 2])
    return f"{show_duration(times[0])} to {show_duration(times[-1])}"


def what_str(group: Sequence[Silence]) -> str:
    """Returns ` (GET, Host: example.org)` or ` (A for example.org)` if the requests are alike and were read."""
    names = {(silence.row["type"], silence.row["name"]) for silence in group}
    method, name = next(iter(names))
    if len(names) > 1 or not (method or name):
        return ""
    link = ", Host: " if group[0].row["kind"] == "http" else " for "
    return f" ({link.join(filter(None, (method, name)))})"


def asked_packets(transfers: Transfers, group: Sequence[Silence]) -> list[Cited]:
    """Returns the packets of the first requests."""
    return [
        packet
        for silence, flow in zip(group, flows_of(transfers, group), strict=False)
        for packet in packet_at(transfers, flow, silence.row["asked_frame"], silence.row["asked_ns"], REQUEST)
    ]


def flows_of(transfers: Transfers, group: Sequence[Silence]) -> list[FlowRow]:
    """Returns the flows of the first requests."""
    return [row_at(transfers.trace.flows, silence.flow) for silence in group[:SHOWN]]


@finding(
    code="request-unanswered",
    title="Requests without an answer",
    severity="warning if the protocol or port wants an answer; info for others, and for one of a connection whose others were "
    "answered, if it is no call of NFS",
    unit="requests",
    computed="Requests on TCP connections that the server acknowledged and never answered (exchanges.outcome). The client "
    "waited at least 5 s and three times longer than for any other answer of that server, or gave up after 200 ms or more. A "
    "request counts if it is HTTP, TLS or NFS, goes to a port below 1,024, or is the first on a connection to a database, "
    "queue, proxy or remote desktop. Of other protocols, one counts if earlier ones on its connection were answered, or "
    "several to one server; if clients gave up, only if they did so after the same time. Ports of services that answer "
    "nothing (syslog, statsd, graphite, GELF, fluentd, raw printing) do not count.",
    unknown="Whether the application hangs, or holds the request on purpose (long polling, a subscription). A proxy that "
    "acknowledges is the server of its connection.",
    sentence="The server {server} never answered {count:request}[{what}], although it acknowledged {them}: {clients} "
    "{waited}[{more}].",
    advice="Look at the application on {host}: its log for these requests, and where it hangs (`ss -ltn`: Recv-Q of the "
    "listener counts connections that it did not accept).",
)
def request_unanswered(transfers: Transfers) -> Matches:
    for (host, port), group in transfers.silences.items():
        packets = asked_packets(transfers, group)
        is_last = len(group) == 1 and bool(group[0].row["turn"]) and not group[0].has_replies
        is_note = is_last or not any(silence.is_known for silence in group)
        yield Match(
            "info" if is_note else "warning",
            flows=list(dict.fromkeys(silence.flow for silence in group)),
            cost=float(len(group)),
            failed=len(group),
            waited_ns=union_ns(map(span_of, group)),
            filter=" or ".join(map(flow_filter, flows_of(transfers, group))),
            frames=packets,
            packets=len(group),
            cited=packets[:1] or transfers.span(group[0].flow),
            server=endpoint_str(host, port),
            host=host,
            count=len(group),
            what=what_str(group),
            **waiting_words(transfers, group),
        )


def waiting_words(transfers: Transfers, group: Sequence[Silence]) -> Words:
    """Returns the words for who waited, for how long, and how it ended."""
    times, given_up = sorted(silence.waited_ns for silence in group), all(silence.was_given_up for silence in group)
    return {
        "them": "it" if len(group) == 1 else "them",
        "clients": "the client" if len({silence.row["client"] for silence in group}) == 1 else "clients",
        "waited": f"{'gave up after' if given_up else 'waited'} {waits_str(times)}",
        "more": " until the capture ended" if are_open(transfers, group) else "",
    }


def span_of(silence: Silence) -> Span:
    """Returns the time in which the client waited."""
    asked_ns = (silence.row["asked_ns"] or 0) + (silence.row["request_ns"] or 0)
    return Span(asked_ns, asked_ns + silence.waited_ns)


def are_open(transfers: Transfers, group: Sequence[Silence]) -> bool:
    """Returns whether the connections were open at the end of the capture."""
    words, ends, states = transfers.words, transfers.bytes_of("flows", "end"), transfers.bytes_of("flows", "state")
    of_open = {words["established"], words["midstream"]}
    return all(ends[each.flow] == words["end_of_capture"] and states[each.flow] in of_open for each in group)
