# SPDX-License-Identifier: Apache-2.0
"""Rules about the first bytes of applications: DNS answers that are slow, missing or errors, and TLS handshakes.

They read the tables exchanges and handshakes. Times that overlap are counted once per client, because clients ask
for several names at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import REQUEST, RESPONSE, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of
from wiretale.analyzer.findings.model import Match, Matches, finding, flow_str, row_at, seconds
from wiretale.analyzer.findings.shared.places import packet_at
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.rows import ExchangeRow, FlowRow, HandshakeRow

CHAPTER = "Applications"
SLOW_NS = 100_000_000  # of an answer, and of a handshake beyond its round trips
MUCH_NS = 1_000_000_000  # from here on a warning
QUERIES_MAX = 50_000  # that are examined
BROADCAST = ".255"
FAILURES = frozenset(("SERVFAIL", "REFUSED", "FORMERR", "NOTIMP", "NOTAUTH"))
NO_NAME = "NXDOMAIN"
SERVER_ADVICE = (
    "Check the load of the server, and that it resumes sessions and waits for no OCSP response or backend meanwhile."
)
CLIENT_ADVICE = (
    "Check how the client verifies certificates (OCSP, CRL, a prompt for a client certificate), and its load."
)
ENCRYPTED = "encrypted"  # the alert cannot be read
ALERT_ADVICE = {
    "protocol_version": "Enable a TLS version that both ends have.",
    "handshake_failure": "Compare the cipher suites and groups of both ends; the server may want a client certificate.",
    "unrecognized_name": "Check the server name (SNI) against the names that the server is configured for.",
    "unknown_ca": "Install the CA that signed the certificate, or have the server send its intermediate certificates.",
    "certificate_expired": "Renew the certificate, and check the clocks of both ends.",
    ENCRYPTED: "Check the log of the end that sent the alert; a client most often refuses the server's certificate.",
    "no_application_protocol": "Enable an application protocol (ALPN) that both ends have.",
}


class Waits(NamedTuple):
    """The times in which clients waited for answers."""

    spans: dict[str, list[Span]]  # by client

    @property
    def added_ns(self) -> float:
        """The time in which a client waited for at least one answer, summed over clients."""
        return sum(union_ns(spans) or 0.0 for spans in self.spans.values())

    @property
    def union_ns(self) -> float | None:
        """The time in which any client waited; None without one."""
        return union_ns(span for spans in self.spans.values() for span in spans)


def queries_of(transfers: Transfers) -> list[ExchangeRow]:
    """Returns the first questions of DNS, of each conversation once; those of NetBIOS to all hosts ask nobody in particular."""
    rows = transfers.without_legs(exchanges_of(transfers, "dns"))
    return [row for row in rows if not (row["server"] or "").endswith(BROADCAST)]


def handshakes_of(transfers: Transfers) -> list[HandshakeRow]:
    return transfers.without_legs(transfers.trace.handshakes.rows(0, QUERIES_MAX))


def flows_of(rows: Sequence[ExchangeRow]) -> list[int]:
    """Returns the flow of each question."""
    return [flow for row in rows if (flow := row["flow"]) is not None]


def names_of(rows: Sequence[ExchangeRow]) -> str:
    """`example.org (A), www.example.org (AAAA) and 3 more`."""
    names = list(dict.fromkeys(f"{row['name'] or '?'} ({row['type']})" for row in rows))
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def waits_for(rows: Sequence[ExchangeRow]) -> Waits:
    """Returns the waits for the answers of these queries."""
    waits = Waits({})
    for row in rows:
        asked_ns, answered_ns = row["asked_ns"], row["answered_ns"]
        if asked_ns is not None and answered_ns is not None:
            waits.spans.setdefault(row["client"] or "", []).append(Span(asked_ns, answered_ns))
    return waits


def servers_of(rows: Sequence[ExchangeRow]) -> str:
    """`10.0.0.53 (12), 10.0.1.53 (2)`: the servers of these queries, most frequent first."""
    counts = Counter(row["server"] or "?" for row in rows)
    more = f" and {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else ""
    frequent = counts.most_common(SHOWN)
    return ", ".join(f"{server} ({count:,})" if len(counts) > 1 else server for server, count in frequent) + more


def query_packet(transfers: Transfers, row: ExchangeRow, role: str) -> list[Cited]:
    """Returns the question or the answer of a query; nothing if its file is unknown."""
    frame, time_ns = (
        (row["answered_frame"], row["answered_ns"]) if role == RESPONSE else (row["asked_frame"], row["asked_ns"])
    )
    return [
        packet
        for flow in flows_of([row])
        for packet in packet_at(transfers, row_at(transfers.trace.flows, flow), frame, time_ns, role)
    ]


def query_match(transfers: Transfers, rows: Sequence[ExchangeRow], severity: str, role: str, **words: Any) -> Match:
    """Returns a match about these queries, whose evidence is their packets of this role."""
    packets = list(chain.from_iterable(query_packet(transfers, row, role) for row in rows[:SHOWN]))
    cited = list(chain.from_iterable(query_packet(transfers, rows[0], end) for end in (REQUEST, RESPONSE)))
    return Match(
        severity,
        flows=list(dict.fromkeys(flows_of(rows))),
        frames=packets,
        packets=len(rows),
        filter=transfers.files.frame_filter(packets),
        count=len(rows),
        server=servers_of(rows),
        names=names_of(rows),
        cited=cited,
        **words,
    )


@finding(
    code="dns-slow",
    title="Slow DNS answers",
    severity="warning if a client waited 1 s or longer in all, else info",
    unit="seconds",
    computed="Answers 100 ms or more after the first query (exchanges.waited_ns). The cost is the time in which a client "
    "waited for at least one of them: parallel queries count once. The first 50,000 questions are examined.",
    unknown="Whether the client waited for the name, or asked ahead. An answer that another packet than the query of the "
    "same id and name caused.",
    sentence="{count:DNS answer} of {server} took 100 ms or longer, {longest} at most[{retried}][: {names}][. Clients "
    "waited {waited} for them].",
    advice="Use a resolver nearer to the client that caches; check its forwarders, and the path to {server} for loss.",
)
def dns_slow(transfers: Transfers) -> Matches:
    rows = [
        row for row in queries_of(transfers) if row["answered_ns"] is not None and (row["waited_ns"] or 0) >= SLOW_NS
    ]
    if not rows:
        return
    rows.sort(key=lambda row: -(row["waited_ns"] or 0))
    waits = waits_for(rows)
    waited = waits.added_ns
    retried = sum(row["attempts"] > 1 for row in rows)
    yield query_match(
        transfers,
        rows,
        "warning" if waited >= MUCH_NS else "info",
        RESPONSE,
        cost=seconds(waited),
        waited_ns=waits.union_ns,
        longest=show_duration(rows[0]["waited_ns"]),
        retried=f" ({plural(retried, 'of them was', 'of them were')} asked again)" if retried else "",
        waited=show_duration(waited),
    )


def unanswered(transfers: Transfers) -> list[ExchangeRow]:
    """Returns the queries without an answer that the capture would show."""
    rows = [row for row in queries_of(transfers) if row["outcome"] == "unanswered"]
    conclusive = set(transfers.hidden.unanswered(sorted(set(flows_of(rows)))))
    return [row for row in rows if row["flow"] in conclusive]


@finding(
    code="dns-unanswered",
    title="DNS questions without an answer",
    unit="queries",
    computed="Questions that were not answered (exchanges.outcome): sent three times, or 5 s or more before the end of the "
    "capture. They do not count if the capture may hide the answer, as in syn-unanswered, or has only one direction of "
    "all flows and neither a packet nor an ARP reply to the host that asked. The first 50,000 questions are examined.",
    unknown="Whether an answer took another path, or came after 30 s.",
    sentence="{count:DNS question} to {server} got no answer after {sent:query|queries}[: {names}].",
    advice="Check that {server} answers (dig @SERVER NAME) and that no firewall drops port 53; a client waits some "
    "seconds before it asks another resolver.",
)
def dns_unanswered(transfers: Transfers) -> Matches:
    rows = unanswered(transfers)
    if rows:
        sent = sum(row["attempts"] for row in rows)
        failed = len(rows)
        yield query_match(transfers, rows, "warning", REQUEST, cost=float(failed), failed=failed, sent=sent)


@finding(
    code="dns-failed",
    title="DNS questions answered by an error",
    severity="warning if a server failed or refused, info if names do not exist",
    unit="seconds",
    computed="Answers with the code SERVFAIL, REFUSED, FORMERR, NOTIMP or NOTAUTH; NXDOMAIN is reported apart, because "
    "search lists ask for such names as a rule. The cost is the time in which a client waited for at least one of these "
    "answers. The first 50,000 questions are examined.",
    unknown="Which zone or forwarder failed behind the resolver.",
    sentence="{server} answered {count:DNS question} with {codes}[: {names}].",
    advice="{what}",
)
def dns_failed(transfers: Transfers) -> Matches:
    rows = queries_of(transfers)
    for severity, codes, what in (
        (
            "warning",
            FAILURES,
            "Ask the resolver for these names with `dig +trace`, and check its forwarders and DNSSEC.",
        ),
        ("info", {NO_NAME}, "Write names with a final dot, or shorten the search list of the clients."),
    ):
        failed = [row for row in rows if row["code"] in codes]
        if failed:
            counts = Counter(filter(None, (row["code"] for row in failed))).most_common()
            waits = waits_for(failed)
            yield query_match(
                transfers,
                failed,
                severity,
                RESPONSE,
                cost=seconds(waits.added_ns),
                waited_ns=waits.union_ns,
                failed=len(failed) if codes is FAILURES else None,
                codes=", ".join(f"{code} ({count:,})" if len(counts) > 1 else code for code, count in counts),
                what=what,
            )


def handshake_frames(row: HandshakeRow) -> list[int]:
    """Returns the frames of the ClientHello, the ServerHello and the end of a handshake, as far as they were captured."""
    frames = (row["client_hello_frame"], row["server_hello_frame"], row["finished_frame"])
    return [frame for frame in frames if frame is not None]


def handshake_packets(transfers: Transfers, row: HandshakeRow) -> list[Cited]:
    """Returns the ClientHello and the end of a handshake."""
    flow, frames = row_at(transfers.trace.flows, row["flow"]), handshake_frames(row)
    if not frames:
        return []
    turns, began = transfers.turns.of_flow(row["flow"]), None
    if turns and frames[0] in turns.first_frames:
        began = transfers.base_ns + int(turns.started_ns[turns.first_frames.index(frames[0])])
    elif frames[0] == flow["first_frame"]:
        began = flow["first_ns"]
    ended = None if began is None or row["duration_ns"] is None else began + row["duration_ns"]
    ends = [(frames[0], began), (frames[-1], ended)][: len(frames)]
    return [packet for frame, time_ns in ends for packet in packet_at(transfers, flow, frame, time_ns)]


def handshake_fields(transfers: Transfers, row: HandshakeRow, flow: FlowRow) -> dict[str, Any]:
    """Returns filter and packets of a handshake; of several files, only that of its ends may be known."""
    cited, frames = handshake_packets(transfers, row), handshake_frames(row)
    if transfers.has_one_file:
        packets = [Cited(frame, None, flow["flow"], flow["first_capture"]) for frame in frames]
        return {"frames": packets, "packets": len(packets), "filter": frame_filter(frames), "cited": cited}
    return {"filter": flow_filter(flow), "cited": cited}


@finding(
    code="tls-alert",
    title="TLS handshakes ended by an alert",
    unit="connections",
    computed="Flows with an alert in the handshake (handshakes.alert), other than close_notify. The cost is the "
    "number of these connections, one finding for each alert. The first encrypted record of a TLS 1.3 client is an alert if it "
    "is too short for its Finished.",
    unknown="The description of an encrypted alert, and encrypted alerts of a TLS 1.3 server.",
    sentence="{count:TLS handshake was|TLS handshakes were} ended by {alert} of the {sender}[{names}].",
    advice="{what}",
)
def tls_alert(transfers: Transfers) -> Matches:
    by_alert: dict[tuple[str, int | None], list[HandshakeRow]] = {}
    for row in handshakes_of(transfers):
        if row["alert"] and row["protocol"] == "tls":
            by_alert.setdefault((row["alert"], row["alert_direction"]), []).append(row)
    for (alert, direction), rows in by_alert.items():
        flows = [row["flow"] for row in rows]
        names = list(dict.fromkeys(row["server_name"] for row in rows if row["server_name"]))
        yield Match(
            flows=flows,
            cost=float(len(rows)),
            failed=len(rows),
            packets=len(rows),
            filter="tls.alert_message",
            count=len(rows),
            alert="an encrypted alert" if alert == ENCRYPTED else f"the alert {alert}",
            sender="server" if direction else "client",
            names=f" ({', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''})" if names else "",
            cited=packet_at(
                transfers, row_at(transfers.trace.flows, flows[0]), rows[0]["alert_frame"], rows[0]["alert_ns"]
            )
            or transfers.span(flows[0]),
            what=ALERT_ADVICE.get(alert, "Compare the versions, cipher suites and certificates of both ends."),
        )


@finding(
    code="tls-handshake-slow",
    title="Slow TLS handshake",
    severity="warning if both ends took 1 s or longer, else info",
    unit="seconds",
    computed="Handshakes in which the server and the client together took 100 ms or more beyond the round trips "
    "(handshakes.server_ns + handshakes.client_ns, of those that are known). The cost is this time.",
    unknown="Handshakes that do not end within the first 16 kB of a direction; loss inside the handshake counts as the time "
    "of the end that retransmitted.",
    sentence="{name}: the TLS {version} handshake{server} took {duration} with {trips:round trip}[: {split}].",
    summary="had a slow TLS handshake",
    advice="{what}",
)
def tls_handshake_slow(transfers: Transfers) -> Matches:
    for row in handshakes_of(transfers):
        server_ns, client_ns = row["server_ns"] or 0, row["client_ns"] or 0
        if row["duration_ns"] is None or server_ns + client_ns < SLOW_NS:
            continue
        flow = transfers.trace.flows.rows(row["flow"], row["flow"] + 1)[0]
        parts = [(row["server_ns"], "the server"), (row["client_ns"], "the client")]
        yield Match(
            "warning" if server_ns + client_ns >= MUCH_NS else "info",
            flows=[row["flow"]],
            cost=seconds(server_ns + client_ns),
            **handshake_fields(transfers, row, flow),
            impact=flow["wire_bytes"] / transfers.wire_bytes,
            name=flow_str(flow),
            version=row["version"],
            server=f" with {row['server_name']}" if row["server_name"] else "",
            duration=show_duration(row["duration_ns"]),
            trips=row["round_trips"],
            split=" and ".join(f"{end} took {show_duration(ns)}" for ns, end in parts if ns),
            what=SERVER_ADVICE if server_ns >= client_ns else CLIENT_ADVICE,
        )
