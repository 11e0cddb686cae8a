# SPDX-License-Identifier: Apache-2.0
"""Servers that answer, but with errors: DNS and HTTP."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.application import FAILURES, NO_NAME, flows_of, queries_of
from wiretale.analyzer.findings.exchanges.exchange_rows import exchanges_of, named, packets_of, waits_of
from wiretale.analyzer.findings.shared.servers import family
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

FEW = 0.1  # of the requests to a server: fewer errors are a note
DNS_ADVICE = "Ask {server} with `dig +trace {name}`, and look in its log: its forwarders, its zones, DNSSEC."
HTTP_ADVICE = {
    "500": "Look in the log of {server} for these requests: its application failed.",
    "502": "Look at the server behind {server}: it refuses, or its answer is broken.",
    "503": "Look at the load and the limits of {server}: it is overloaded, or its backend is out of service.",
    "504": "Look at the server behind {server}: it does not answer in time.",
    "413": "Raise the limit of {server} (nginx `client_max_body_size`, Apache `LimitRequestBody`), or send less at once; a "
    "client that sends `Expect: 100-continue` hears of it before it sends the body.",
}
REFUSED_ADVICE = (
    "Look at the request, and in the log of {server} for why it was refused: status {code} means {meaning}."
)
#: statuses below 500 with which no client goes on (RFC 9110, 6585): what they mean
REFUSALS = {
    "400": "a malformed request",
    "408": "that the request came too slowly",
    "411": "that the length is missing",
    "413": "too large a body",
    "414": "too long an address",
    "421": "a request for another server",
    "429": "too many requests",
    "431": "too large a header",
}


@cause(
    code="error-answers",
    title="Answers that are errors",
    sentence="{server} answers, but with errors: {count} of {total:{noun}} got {codes}{after}[ ({names})]{ending}.",
    advice="{what}",
    shows="Answers of DNS with SERVFAIL, REFUSED, FORMERR, NOTIMP or NOTAUTH, and of HTTP with a status from 500 on, or one that "
    "refuses the request itself, such as 400 and 413 (the first request of each connection). Below a tenth of the requests to a "
    "server it is a note.",
    rivals={"dns-tcp-blocked": "no question of the server itself stayed without an answer"},
    unknown="What failed behind the server, and all that TLS hides.",
)
def error_answers(case: Case) -> Matches:
    findings = case.findings("dns-failed")
    explained = (
        {flow for each in case.all_findings("dns-failed") for flow, _ in each.finding.flows} if not findings else set()
    )
    for kind, rows in (("DNS", queries_of(case.transfers)), ("HTTP", http_rows(case))):
        by_server: dict[str, list[ExchangeRow]] = defaultdict(list)
        for row in rows:
            by_server[str(row["server"])].append(row)
        for server, exchanges in by_server.items():
            errors = [row for row in exchanges if is_error(row, kind) and row["flow"] not in explained]
            if errors:
                yield of_server(case, kind, server, errors, len(exchanges))
    yield from unknown_names(case)


def unknown_names(case: Case) -> Matches:
    """Yields the names that do not exist, if the capture has no other answer to a question and no connection."""
    rows = [row for row in queries_of(case.transfers) if row["code"] == NO_NAME]
    findings = case.findings("dns-failed")
    is_all = rows and all(row["code"] in (NO_NAME, None) for row in queries_of(case.transfers))
    if is_all and findings and "tcp" not in case.trace.flows.column("protocol"):
        server = str(rows[0]["server"])
        names = [str(row["name"]) for row in rows if row["name"]]
        yield Match(
            certainty="proven",
            place="server",
            findings=findings,
            flows=list(dict.fromkeys(flows_of(rows))),
            failed=len(rows),
            attempts=len(rows),
            waited_ns=union_ns(waits_of(rows)),
            frames=packets_of(rows),
            packets=len(rows),
            filter="dns.flags.rcode == 3",
            proof=f"each of {plural(len(rows), 'question')} was answered with NXDOMAIN",
            server=server,
            count=len(rows),
            total=len(rows),
            noun="DNS question",
            codes=f"{NO_NAME}, so the names do not exist there",
            after="",
            ending="",
            names=named(names),
            what=f"Check the name and the search list of the client: `dig @{server} {names[0] if names else 'NAME'}`.",
        )


def http_rows(case: Case) -> list[ExchangeRow]:
    """Returns the first requests of HTTP."""
    return case.transfers.without_legs(exchanges_of(case.transfers, "http"))


def is_error(row: ExchangeRow, kind: str) -> bool:
    """Returns whether the answer is an error of the server."""
    return row["code"] in FAILURES if kind == "DNS" else row["outcome"] == "error" or row["code"] in REFUSALS


def of_server(case: Case, kind: str, server: str, errors: list[ExchangeRow], total: int) -> Match:
    """Returns the match of the errors of one server."""
    return Match(
        certainty="proven",
        place="server",
        flows=list(dict.fromkeys(flows_of(errors))),
        failed=len(errors),
        attempts=total,
        waited_ns=union_ns(waits_of(errors)),
        frames=packets_of(errors),
        packets=len(errors),
        severity="info" if len(errors) < FEW * total else None,
        proof=f"{show_share(len(errors), total)} of its answers are errors",
        server=server,
        count=len(errors),
        total=total,
        after=after_str(errors),
        **(dns_words if kind == "DNS" else http_words)(case, server, errors),
    )


def after_str(errors: list[ExchangeRow]) -> str:
    """` within 4 ms`: the median."""
    waits = sorted(row["waited_ns"] for row in errors if row["waited_ns"] is not None)
    return f" within {show_duration(waits[len(waits) // 2])}" if waits else ""


def codes_str(errors: list[ExchangeRow]) -> str:
    """`SERVFAIL (3), REFUSED (1)`."""
    codes = Counter(str(row["code"]) for row in errors).most_common(2)
    return ", ".join(f"{code} ({count:,})" if len(codes) > 1 else code for code, count in codes)


def dns_words(case: Case, server: str, errors: list[ExchangeRow]) -> dict[str, Any]:
    """Returns what is said of errors of DNS alone."""
    names = [str(row["name"]) for row in errors if row["name"]]
    return {
        "findings": [each for each in case.findings("dns-failed") if each.finding.severity != "info"],
        "filter": f"dns.flags.rcode > 0 && {family(server)}.src == {server}",
        "excluded": {"dns-tcp-blocked": "no question of the server itself stayed without an answer"},
        "noun": "DNS question",
        "codes": codes_str(errors),
        "ending": "",
        "names": named(names),
        "what": DNS_ADVICE.format(server=server, name=names[0] if names else "NAME"),
    }


def http_words(case: Case, server: str, errors: list[ExchangeRow]) -> dict[str, Any]:
    """Returns what is said of errors of HTTP alone."""
    code = str(errors[0]["code"])
    meaning = REFUSALS.get(code, "")
    is_single = all(row["code"] == code for row in errors)
    advice = HTTP_ADVICE.get(code, REFUSED_ADVICE if meaning else HTTP_ADVICE["500"])
    return {
        "filter": f"http.response.code == {code}" if is_single else "http.response.code >= 400",
        "noun": "HTTP request",
        "codes": f"status {codes_str(errors)}{f' ({meaning})' if meaning and is_single else ''}",
        "ending": ", and it closed while the client still sent" if is_closed_early(case, errors) else "",
        "names": named([str(row["name"]) for row in errors if row["name"]]),
        "what": advice.format(server=server, code=code, meaning=meaning),
    }


def is_closed_early(case: Case, errors: list[ExchangeRow]) -> bool:
    """Returns whether the server closed a connection while its client still sent."""
    connections = case.connections
    return any(
        ending["kind"] == "fin" and ending["late_bytes"] and ending["direction"] == connections[flow].server_side
        for flow in flows_of(errors)
        for ending in connections.endings_of.get(flow, ())
    )
