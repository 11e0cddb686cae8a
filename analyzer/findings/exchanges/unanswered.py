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
from wiretale.analyzer.findings.exchanges.turns import server_end
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
NAMED = ("http", "tls")  # kinds that are known to want an answer
SYSTEM_PORTS = 1024  # ports below are of services that answer, but for those above (RFC 6335 section 6)


class Silence(NamedTuple):
    """A request without an answer, and its flow."""

    row: ExchangeRow
    flow: FlowRow
    until_ns: int  # end of the capture

    @property
    def server(self) -> tuple[str, int | None]:
        """Address and port of the end that was asked."""
        return server_end(self.flow, self.row["direction"])

    @property
    def waited_ns(self) -> int:
        """How long the client waited since it had sent all of its request; if the connection stayed open, to the end of the
        capture."""
        waited_ns, asked_ns = self.row["waited_ns"], self.row["asked_ns"]
        since_ns = (0 if asked_ns is None else self.until_ns - asked_ns) if waited_ns is None else waited_ns
        return max(since_ns - (self.row["request_ns"] or 0), 0)

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
        return self.row["kind"] in NAMED or self.has_replies or (port is not None and port < SYSTEM_PORTS)

    @property
    def has_replies(self) -> bool:
        """Whether each message of its protocol wants an answer, the last one too."""
        return self.server[1] in REPLYING_PORTS


def silences(transfers: Transfers) -> Iterator[Silence]:
    """Yields the requests that the server's kernel acknowledged as a whole, and that nobody answered."""
    trace = transfers.trace
    until_ns = max((ns for ns in trace.interfaces.column("last_ns") if ns is not None), default=0)
    (packed,) = trace.directions._packed_columns([("unacked_bytes", "d", 0, 1)])
    unacked = array("d", packed)  # a row of directions has many more columns
    for row in rows_where(transfers, "outcome", "unanswered", "abandoned"):
        flow, turn = row["flow"], row["turn"]
        if flow is None or turn is None or flow in transfers.legs or unacked[2 * flow + (row["direction"] or 0)] != 0:
            continue
        silence = Silence(row, row_at(trace.flows, flow), until_ns)
        if silence.is_due:
            yield silence


def slowest_answers(transfers: Transfers, hosts: set[str]) -> dict[str, tuple[float, float]]:
    """Returns of each of these servers the longest server time, and when it answered last, ns."""
    exchanges = transfers.trace.exchanges
    slowest: dict[str, tuple[float, float]] = {}
    times = (
        array("d", data)
        for data in exchanges._packed_columns([(name, "d", 0, 1) for name in ("server_ns", "answered_ns")])
    )
    for server, took_ns, answered_ns in zip(exchanges.column("server"), *times, strict=True):
        if server in hosts and took_ns == took_ns:
            longest, last = slowest.get(server, (0.0, 0.0))
            slowest[server] = max(longest, took_ns), max(last, answered_ns)
    return slowest


def by_server(transfers: Transfers) -> dict[tuple[str, int | None], list[Silence]]:
    """Returns the requests by the server that left them without an answer, longer than it took for any answer."""
    open_requests = list(silences(transfers))
    hosts = {silence.server[0] for silence in open_requests}
    slowest = slowest_answers(transfers, hosts) if hosts else {}
    servers: dict[tuple[str, int | None], list[Silence]] = {}
    for silence in open_requests:
        longest, _ = slowest.get(silence.server[0], (0.0, 0.0))
        if silence.was_given_up or silence.waited_ns >= TIMES_SLOWEST * longest:
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
    """Returns ` (GET of example.org)` if the requests are alike and were read."""
    names = {(silence.row["type"], silence.row["name"]) for silence in group}
    method, name = next(iter(names))
    if len(names) > 1 or not (method or name):
        return ""
    return f" ({f'{method} ' if method else ''}{'of ' if method and name else ''}{name or ''})".replace(" )", ")")


def asked_packets(transfers: Transfers, group: Sequence[Silence]) -> list[Cited]:
    """Returns the packets of the first requests."""
    return [
        packet
        for silence in group[:SHOWN]
        for packet in packet_at(transfers, silence.flow, silence.row["asked_frame"], silence.row["asked_ns"], REQUEST)
    ]


@finding(
    code="request-unanswered",
    title="Requests without an answer",
    severity="warning if the protocol or port wants an answer; info for others, and for one of a connection whose others were "
    "answered, if it is no call of NFS",
    unit="requests",
    computed="Requests on TCP connections that the server acknowledged and never answered (exchanges.outcome): the client waited "
    "5 s or longer and three times longer than for any other answer of that server, or gave up after 200 ms or more. A request "
    "counts if it is HTTP, TLS or NFS, or goes to a port below 1,024. Of other protocols, one counts if earlier ones on its "
    "connection were answered, or several to one server; if clients gave up, only if they did so after the same time. Ports of "
    "services that answer nothing (syslog, statsd, graphite, GELF, fluentd, raw printing) do not count.",
    unknown="Whether the application hangs, or holds the request on purpose (long polling, a subscription). A proxy that "
    "acknowledges is the server of its connection.",
    sentence="The server {server} never answered {count:request}[{what}], although it acknowledged {them}: {clients} "
    "{waited}[{more}].",
    advice="Look at the application on {host}: its log for these requests, and where it hangs (`ss -ltn`: Recv-Q of the "
    "listener counts connections that it did not accept).",
)
def request_unanswered(transfers: Transfers) -> Matches:
    for (host, port), group in transfers.silences.items():
        packets, flows = asked_packets(transfers, group), [silence.flow for silence in group]
        is_last = len(group) == 1 and bool(group[0].row["turn"]) and not group[0].has_replies
        is_note = is_last or not any(silence.is_known for silence in group)
        yield Match(
            "info" if is_note else "warning",
            flows=list(dict.fromkeys(row["flow"] for row in flows)),
            cost=float(len(group)),
            failed=len(group),
            waited_ns=union_ns(map(span_of, group)),
            filter=" or ".join(flow_filter(row) for row in flows[:SHOWN]),
            frames=packets,
            packets=len(group),
            cited=packets[:1] or transfers.span(flows[0]["flow"]),
            server=endpoint_str(host, port),
            host=host,
            count=len(group),
            what=what_str(group),
            **waiting_words(group),
        )


def waiting_words(group: Sequence[Silence]) -> Words:
    """Returns the words for who waited, for how long, and how it ended."""
    times, given_up = sorted(silence.waited_ns for silence in group), all(silence.was_given_up for silence in group)
    return {
        "them": "it" if len(group) == 1 else "them",
        "clients": "the client" if len({silence.row["client"] for silence in group}) == 1 else "clients",
        "waited": f"{'gave up after' if given_up else 'waited'} {waits_str(times)}",
        "more": " until the capture ended" if all(map(is_open, group)) else "",
    }


def span_of(silence: Silence) -> Span:
    """Returns the time in which the client waited."""
    asked_ns = (silence.row["asked_ns"] or 0) + (silence.row["request_ns"] or 0)
    return Span(asked_ns, asked_ns + silence.waited_ns)


def is_open(silence: Silence) -> bool:
    """Returns whether the connection was open at the end of the capture."""
    return silence.flow["end"] == "end_of_capture" and silence.flow["state"] in ("established", "midstream")
