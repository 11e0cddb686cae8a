# SPDX-License-Identifier: Apache-2.0
"""Servers that let their clients wait: they greet late or never, or stop in the middle of a login; and clients that do not wait
for the greeting."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import GREETING_PORTS, filter_of, largest_groups, times_str
from wiretale.analyzer.causes.ends.inquiries import DNS, Inquiry, inquiries_of, is_nested
from wiretale.analyzer.causes.ends.talk import requests_of, server_str
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import RESPONSE, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import named, packets_of
from wiretale.analyzer.findings.exchanges.turns import server_end
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

LATE_NS = 1_000_000_000
AT_ONCE_NS = 100_000_000  # between the handshake and the silence
FLOWS_MAX = 500
SOON, IDENT_PORT = 0.2, 113  # of a wait: when a server calls back; RFC 1413
SMTP, HELLOS, GREETING = "SMTP command", ("EHLO", "HELO"), "220"
MUTE_NS = 5_000_000_000  # without a word: monitors hang up sooner
#: ports of mail and FTP on which a server waits for a ClientHello, and those on which it greets before TLS
TLS_PORTS = {465: 587, 990: 21, 993: 143, 995: 110}
TIMERS_NS, TIMER_SPREAD = (1_000_000_000, 3_000_000_000), 1.1  # of the first retransmission (RFC 6298, 1122)
RESOLVER_NS = 5_000_000_000  # that resolvers wait for an answer (resolv.conf(5): timeout)


class Greeting(NamedTuple):
    """A connection on which the client waited for the first words of the server."""

    flow: FlowRow
    waited: Span


def greeting_of(case: Case, flow: FlowRow) -> Greeting | None:
    """Returns the wait of a client for the first words of the server; None if it had not to wait for them."""
    rtt_ns, until_ns = flow["handshake_rtt_ns"], flow["pause_until_ns"]
    if rtt_ns is None or until_ns is None or flow["client"] is None or flow["pause_direction"] != 1 - flow["client"]:
        return None
    opened_ns = (flow["first_ns"] or 0) + rtt_ns
    if until_ns - (flow["pause_ns"] or 0) - opened_ns > AT_ONCE_NS:
        return None
    begun = requests_of(case, flow).times("asked_ns")  # the client spoke later, and it did speak
    is_first = bool(begun) and case.transfers.base_ns + min(begun) >= until_ns
    return Greeting(flow, Span(opened_ns, until_ns)) if is_first else None


def may_be_lost(group: list[Greeting]) -> bool:
    """Returns whether the only wait is as long as a retransmission timer, so that a lost greeting was repeated."""
    rtt_ns, waited_ns = group[0].flow["handshake_rtt_ns"] or 0, group[0].waited.ns
    return len(group) == 1 and any(ns <= waited_ns <= TIMER_SPREAD * ns + 2 * rtt_ns for ns in TIMERS_NS)


class Callback(NamedTuple):
    """The connections that a server opened to its clients while they waited, which nobody answered."""

    port: int | None
    flows: list[int]


def is_call(row: ExchangeRow, greeting: Greeting) -> bool:
    """Returns whether the server opened this connection to its client soon after the handshake, and gave up before it greeted."""
    flow, waited = greeting
    ends, began_ns = (flow["source"], flow["destination"])[:: -1 if flow["client"] else 1], row["asked_ns"] or 0
    is_soon = waited.start_ns <= began_ns <= waited.start_ns + SOON * waited.ns
    return (row["server"], row["client"]) == ends and is_soon and began_ns + (row["waited_ns"] or 0) <= waited.end_ns


def callback_of(case: Case, group: list[Greeting]) -> Callback | None:
    """Returns the connections that a server opened to one port of each client soon after the handshake, and that were still
    open when it greeted; None if there is not one for each wait."""
    rows = [row for row in case.exchanges("kind", "connect") if row["answered_ns"] is None and row["flow"] is not None]
    called: dict[int | None, list[int]] = {}
    for greeting in group:
        row = next((row for row in rows if is_call(row, greeting)), None)
        if row is not None:
            port = server_end(case.flow(row["flow"] or 0), row["direction"])[1]
            called.setdefault(port, []).append(row["flow"] or 0)
    calls = (Callback(port, flows) for port, flows in called.items() if len(flows) == len(group))
    return next(calls, None)


def late_greetings(case: Case) -> dict[tuple[str, int | None], list[Greeting]]:
    """Returns the connections that were greeted late, by server."""
    explained, servers = case.flows_of() | case.transfers.legs, dict[tuple[str, int | None], list[Greeting]]()
    late = case.trace.flows._rows_where("pause_ns", LATE_NS)
    for flow in (case.flow(number) for number in late[:FLOWS_MAX] if number not in explained):
        greeting = greeting_of(case, flow)
        if greeting:
            servers.setdefault(server_end(flow, flow["client"]), []).append(greeting)
    return servers


@cause(
    code="late-greeting",
    title="The server greets late",
    sentence="The server {server} {probably}kept {count:connection} waiting {waited} for its greeting after the handshake{why}.",
    advice="{repair}",
    shows="After the handshake nobody sends anything for at least 1 s. Then the server speaks first (FTP, SSH, mail, "
    "databases) and the client goes on. If 70% of the waits lie within the server's own questions to another host, those are "
    "the reason. So are its own SYNs to one port of each client, soon after each handshake, that nobody answered. On other "
    "ports, a reason must show: who connects may wait for work.",
    rivals={
        "slow-server": "no request was open: the server speaks first",
        "client-pause": "the client had nothing to say before the greeting",
        "not-greeted": "the greeting came",
        "tail-loss": "the wait is not that of a retransmission timer (1 or 3 s), or there are several",
    },
    unknown="Away from the server, what it asked meanwhile: as a rule the name of the client (reverse lookup, ident).",
    explains=("dns-unanswered", "dns-slow", "syn-unanswered"),
)
def late_greeting(case: Case) -> Matches:
    servers = late_greetings(case)
    lookups = inquiries_of(case, {host for host, _ in servers}) if servers else []
    for (host, port), group in servers.items():
        waits = [each.waited for each in group]
        behind = [other for other in lookups if other.client == host and is_nested(waits, given_up(other))]
        other = max(behind, key=lambda other: len(other.unanswered), default=None)
        called = None if other else callback_of(case, group)
        if other or called or port in GREETING_PORTS:
            yield greeting_match(case, host, group, other, called)


def given_up(other: Inquiry) -> list[Span]:
    """Returns the times of questions, those without an answer until a resolver gives them up."""
    late_ns = RESOLVER_NS if other.kind == DNS else 0
    return [
        Span(span.start_ns, span.end_ns + (late_ns if number in other.unanswered else 0))
        for number, span in enumerate(other.spans)
    ]


def names_str(case: Case, other: Inquiry) -> str:
    """` for 4.3.2.10.in-addr.arpa (PTR)`, the first name that got no answer; empty without one."""
    if not other.unanswered:
        return ""
    rows = (
        row for row in case.exchanges("kind", "dns") if row["client"] == other.client and row["answered_ns"] is None
    )
    row = next(rows, None)
    return f" for {row['name']} ({row['type']})" if row and row["name"] else ""


def why_str(case: Case, other: Inquiry) -> str:
    """Returns what the server itself waited for."""
    name = other.name(case)
    if other.unanswered:
        about = names_str(case, other) or f" to {name}"
        what = f"DNS questions{about}" if other.kind == DNS else f"requests to {name}"
        return f": meanwhile its {what} got no answer"
    what = "a name" if other.kind == DNS else "an answer"
    return f": it waited for {what} from {name}"


def repair_str(case: Case, host: str, other: Inquiry | None) -> str:
    """Returns the advice to a server that greets late."""
    if other and other.kind != DNS:
        return f"Look at {other.name(case)}, which {host} asks before it greets."
    resolver = f" at {other.servers[0]}" if other else ""
    return (
        f"Let {host} resolve its clients' addresses{resolver} (a reverse zone, hosts), or turn the lookup off (sshd "
        "`UseDNS no`, ProFTPD `UseReverseDNS off`, MySQL `skip-name-resolve`)."
    )


def greeted_packet(flow: FlowRow) -> Cited:
    """Returns the first packet of the greeting."""
    return Cited(
        flow["pause_frame"] or 0, flow["pause_until_ns"] or 0, flow["flow"], flow["pause_capture"] or 0, RESPONSE
    )


def callback_words(called: Callback, host: str) -> tuple[str, str]:
    """Returns why a server that calls its clients back greets late, and the advice."""
    what = f"TCP {called.port} of the client{' (ident)' if called.port == IDENT_PORT else ''}"
    return (
        f": meanwhile its own SYNs to {what} got no answer",
        f"Let the firewall refuse TCP {called.port} with a RST instead of dropping it (`-j REJECT --reject-with tcp-reset`), or "
        f"turn the query off at {host} (ident: tcpserver `-R`, sendmail `Timeout.ident=0`).",
    )


def doubt_of(host: str, group: list[Greeting]) -> Words:
    """Returns certainty and rivals of a late greeting of which no reason shows."""
    rivals = {"slow-dependency": f"a capture at {host}: what it asks other hosts meanwhile"}
    if may_be_lost(group):
        lost = {"tail-loss": f"a capture at {host}: whether it repeats its greeting"}
        return {"certainty": "likely", "undecided": lost | rivals}
    return {"certainty": "proven", "undecided": rivals}


def reason_of(case: Case, host: str, other: Inquiry | None, called: Callback | None) -> Words:
    """Returns why a server greets late, and the advice."""
    if called:
        why, repair = callback_words(called, host)
        return {"why": why, "repair": repair}
    return {"why": why_str(case, other) if other else "", "repair": repair_str(case, host, other)}


def greeting_match(
    case: Case, host: str, group: list[Greeting], other: Inquiry | None, called: Callback | None
) -> Match:
    """Returns the match of connections that one server greeted late."""
    flows, times = [each.flow for each in group], sorted(each.waited.ns for each in group)
    waited, reason = times_str([round(ns) for ns in times]), other or called
    return Match(
        place="server",
        flows=[*(flow["flow"] for flow in flows), *(reason.flows if reason else ())],
        waited_ns=union_ns(each.waited for each in group),
        members=len(group),
        frames=[greeted_packet(flow) for flow in flows[:SHOWN]],
        packets=len(group),
        filter=" or ".join(flow_filter(flow) for flow in flows[:SHOWN]),
        proof=f"no packet between the handshake and the greeting, {show_duration(math.fsum(times))} over all",
        excluded={"slow-server": "the server spoke first", "client-pause": "the client answered the greeting"},
        server=server_str(flows[0]),
        count=len(group),
        waited=f"{waited} each" if len(group) > 1 else waited,
        **({"certainty": "proven"} if reason else doubt_of(host, group)),
        **reason_of(case, host, other, called),
    )


def is_early(row: ExchangeRow) -> bool:
    """Returns whether a greeting, much later, is the reply to the first command of a mail connection."""
    is_greeted = row["name"] in HELLOS and (row["code"] or "").startswith(GREETING)
    return row["type"] == SMTP and is_greeted and (row["waited_ns"] or 0) >= AT_ONCE_NS


def is_whole(case: Case, flow: FlowRow) -> bool:
    """Returns whether the capture has a connection from its begin and without holes: else a greeting may answer a STARTTLS."""
    sides = (case.direction(flow["flow"], side) for side in (0, 1))
    return flow["handshake_rtt_ns"] is not None and not any(row["unseen_bytes"] or row["gap_bytes"] for row in sides)


def early_hellos(case: Case) -> dict[tuple[str, str], list[tuple[FlowRow, ExchangeRow]]]:
    """Returns by client and server the mail connections whose first command a greeting answered."""
    hellos = [row for row in case.exchanges("kind", "service") if is_early(row)]
    turns = case.exchanges("kind", "turn") if hellos else ()
    first = {(row["capture"], row["asked_frame"]): row["flow"] for row in turns if not row["turn"]}
    early: dict[tuple[str, str], list[tuple[FlowRow, ExchangeRow]]] = {}
    for row in hellos:
        number = first.get((row["capture"], row["asked_frame"]))
        flow = case.flow(number) if number is not None else None
        if flow and is_whole(case, flow) and row["client"] and row["server"]:
            early.setdefault((row["client"], row["server"]), []).append((flow, row))
    return early


@cause(
    code="early-command",
    title="A client does not wait for the greeting",
    sentence="{client} did not wait for the greeting of the mail server {server}, which came {late} after the handshake: in "
    "{count:connection} it sent {hello} {early} earlier. Since then it takes each reply for that to another command.",
    advice="Let {client} wait for the greeting (RFC 5321 section 4.5.3.2: up to 5 minutes; a timeout of its program is shorter), "
    "and look why {host} greets so late: a delay against spam (sendmail `greet_pause`, postscreen), or a reverse lookup or "
    "blocklist that does not answer.",
    shows="The first reply to the first EHLO or HELO of a mail connection is a greeting (220), at least 100 ms later.",
    rivals={
        "late-greeting": "the client spoke before the greeting came",
        "slow-server": "the first reply is the greeting, and answers no command",
    },
    unknown="Away from the server, why it greets late.",
    explains=("reset", "request-unanswered", "slow-server"),
)
def early_command(case: Case) -> Matches:
    for (client, host), pairs in early_hellos(case).items():
        flows, rows = [flow for flow, _ in pairs], [row for _, row in pairs]
        opened = [(flow["first_ns"] or 0) + (flow["handshake_rtt_ns"] or 0) for flow in flows]
        waits = [Span(at, row["answered_ns"] or at) for at, row in zip(opened, rows, strict=True)]
        yield Match(
            certainty="proven",
            place="client",
            flows=[flow["flow"] for flow in flows],
            failed=len(rows),
            attempts=len(rows),
            waited_ns=union_ns(waits),
            frames=packets_of(rows),
            packets=len(rows),
            filter=" or ".join(flow_filter(flow) for flow in flows[:SHOWN]),
            proof=f"the reply to {rows[0]['name']} is a greeting: {plural(len(rows), 'time')}",
            excluded={"late-greeting": "the client spoke before", "slow-server": "a greeting answers no command"},
            client=client,
            server=server_str(flows[0]),
            host=host,
            count=len(rows),
            hello=named(sorted({str(row["name"]) for row in rows}), 1),
            late=times_str(sorted(round(wait.ns) for wait in waits)),
            early=times_str(sorted(row["waited_ns"] or 0 for row in rows)),
        )


def own_questions(case: Case) -> dict[str, Inquiry]:
    """Returns the questions of DNS of each host that has some without an answer, to the resolver that gave fewest."""
    askers = {str(row["client"]) for row in case.exchanges("kind", "dns") if row["answered_ns"] is None}
    inquiries = [
        each for each in inquiries_of(case, askers) if each.kind == DNS and each.client in askers and each.unanswered
    ]
    return {each.client: each for each in sorted(inquiries, key=lambda each: len(each.unanswered))}


def late_turns(case: Case, hosts: Collection[str]) -> dict[tuple[str, int | None], list[tuple[FlowRow, Span]]]:
    """Returns the waits of clients for late answers of these hosts, by server. A last request that was left open says nothing
    about those before it."""
    explained = (case.flows_of() - case.flows_of("hung-server")) | case.transfers.legs
    servers: dict[tuple[str, int | None], list[tuple[FlowRow, Span]]] = {}
    for row in case.exchanges("kind", "turn", "http"):
        flow, asked_ns, server_ns = row["flow"], row["asked_ns"], row["server_ns"] or 0
        if row["server"] in hosts and server_ns >= LATE_NS and flow is not None and asked_ns is not None:
            talk = case.flow(flow)
            if flow not in explained and talk["client"] is not None:
                wait = Span(asked_ns, asked_ns + server_ns)
                servers.setdefault(server_end(talk, talk["client"]), []).append((talk, wait))
    return servers


@cause(
    code="name-lookup",
    title="A server waits for a name",
    sentence="The server {server} kept its clients waiting {waited} in the middle of {count:connection}: meanwhile its own DNS "
    "questions{names} got no answer.",
    advice="{repair}",
    shows="A server answers at least 1 s late. In 80% of these waits, 70% of the time lies within its own unanswered DNS "
    "questions, until a resolver gives up (5 s after the last).",
    rivals={
        "slow-server": "its own questions begin and end with the waits",
        "late-greeting": "the server had spoken before",
        "dns-silent": "each question that got no answer is one of the server, while its client waits",
    },
    unknown="Away from the server, what it asked meanwhile.",
    explains=("dns-unanswered", "dns-slow", "slow-server"),
)
def name_lookup(case: Case) -> Matches:
    if not case.all_findings("dns-unanswered", "dns-slow"):  # a silent resolver may explain them
        return
    lookups = own_questions(case)
    for (host, _), turns in late_turns(case, lookups.keys()).items() if lookups else ():
        other, waits = lookups[host], [wait for _, wait in turns]
        if not is_nested(waits, [given_up(other)[number] for number in other.unanswered]):
            continue
        answered = len(other.spans) - len(other.unanswered)
        flows = list({talk["flow"]: talk for talk, _ in turns}.values())
        waited = times_str([round(wait.ns) for wait in sorted(waits, key=lambda wait: wait.ns)])
        yield Match(
            certainty="proven",
            place="server",
            flows=[*(talk["flow"] for talk in flows), *other.flows],
            waited_ns=union_ns(waits),
            members=len(flows),
            filter=" or ".join(flow_filter(talk) for talk in flows[:SHOWN]),
            proof=f"{plural(len(other.unanswered), 'question')} to {other.servers[0]} without an answer, from the request on",
            excluded={"slow-server": "its questions begin and end with the waits"}
            | ({"dns-silent": f"{plural(answered, 'other question')} got an answer"} if answered else {}),
            undecided={}
            if answered
            else {"dns-silent": f"`dig @{other.servers[0]} localhost`: whether it answers anything"},
            server=server_str(flows[0]),
            waited=f"{waited} each" if len(waits) > 1 else waited,
            count=len(flows),
            names=names_str(case, other) + ("" if answered else f" to {other.servers[0]}"),
            repair=repair_str(case, host, other),
        )


def mute_connections(case: Case) -> list[Connection]:
    """Returns the connections to ports of implicit TLS on which no end said a word before one closed."""
    flows = [flow for flow, port in enumerate(case.transfers.ports) if port in TLS_PORTS]
    explained, attempts = case.flows_of(), case.transfers.attempts
    rows = [case.flow(flow) for flow in flows if flow not in explained and attempts.is_connection(flow)][:FLOWS_MAX]
    mute = [case.connections[row["flow"]] for row in rows if is_mute(row)]
    return [each for each in mute if not any(row["unseen_bytes"] for row in each.directions)]


def is_mute(row: FlowRow) -> bool:
    """Returns whether a connection was opened, and closed or reset after some seconds without a byte."""
    lasted_ns = (row["last_ns"] or 0) - (row["first_ns"] or 0)
    is_ended = row["handshake_rtt_ns"] is not None and row["state"] in ("closed", "reset")
    return is_ended and not row["payload_bytes"] and lasted_ns >= MUTE_NS


@cause(
    code="both-wait",
    title="Both ends wait for the first word",
    sentence="The client {client} and the server {server} both wait: neither said a word on {count:connection} before one "
    "closed, after {waited}. Port {port} wants TLS from the first byte, and the client {probably}waits for a greeting in plain "
    "text.",
    advice="Turn on TLS from the start in the client (SMTPS, IMAPS, `SSL/TLS`, nodemailer `secure: true`), or let it use port "
    "{plain}, where STARTTLS follows the greeting.",
    shows="On a port of implicit TLS (465, 990, 993, 995), nobody sends a byte for 5 s or more after the handshake, and then an "
    "end closes. A client of TLS sends its ClientHello at once; a server there waits for it.",
    rivals={
        "hung-server": "the client asked for nothing",
        "late-greeting": "on this port the client speaks first",
    },
    unknown="Whether the client hangs: one that knows TLS says nothing then, too.",
)
def both_wait(case: Case) -> Matches:
    for (server, client), group in largest_groups(
        mute_connections(case), lambda each: (each.server, each.end(each.client_side)[0])
    ):
        waits = [Span(each.flow["first_ns"] or 0, each.last_ns) for each in group]
        port = server[1] or 0
        yield Match(
            certainty="likely",
            place="client",
            flows=[each.number for each in group],
            failed=len(group),
            attempts=max(len(case.connections.to_server(server)), len(group)),
            waited_ns=union_ns(waits),
            filter=filter_of(group),
            proof=f"{plural(len(group), 'handshake')} of TCP, and not one byte of either end behind",
            excluded={"hung-server": "the client sent nothing"},
            undecided={
                "late-greeting": f"`openssl s_client -connect {server[0]}:{port}`: whether it greets behind TLS at once"
            },
            client=client,
            server=server_str(group[0].flow),
            count=len(group),
            waited=times_str([wait.ns for wait in waits]),
            port=str(port),
            plain=str(TLS_PORTS[port]),
        )
