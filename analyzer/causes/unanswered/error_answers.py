# SPDX-License-Identifier: Apache-2.0
"""Servers that answer, but with errors: DNS and HTTP."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.behind import behind
from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import EXCHANGE_KINDS, times_str
from wiretale.analyzer.causes.ends.talk import LIMITED, backoffs_of
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.application import FAILURES, NO_NAME, flows_of, queries_of
from wiretale.analyzer.findings.exchanges.exchange_rows import named, numbers_where, packets_of, rows_numbered, waits_of
from wiretale.analyzer.findings.shared.servers import family
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.cause import Severity
    from wiretale.analyzer.rows import ExchangeRow

FEW = 0.1  # of the requests to a server: fewer errors are a note,
FELT_NS = 1_000_000_000  # unless somebody waited so long for them
LOGINS_MIN, LOGINS_SHARE = 3, 0.3  # requests that are refused first, of those to a server
MISSING_SHARE = 0.5  # of the requests to a server: fewer are what browsers try by themselves
HANDSHAKES_MAX = 2_000  # that are searched for the port of TLS
NAMED_MAX = 100  # errors whose names are looked up
LATE_NS, UNLIKE = 1_000_000_000, 2.0  # waits for errors of which the range is told
DNS_ADVICE = "Ask {server} with `dig +trace {name}`, and look in its log: its forwarders, its zones, DNSSEC."
HTTP_ADVICE = {
    "500": "Look in the log of {server} for these requests: its application failed.",
    "502": "Look at the server behind {server}: it refuses, or its answer is broken.",
    "503": "Look at the load and the limits of {server}: it is overloaded, or its backend is out of service.",
    "504": "Look at the server behind {server}: it does not answer in time.",
    "429": "Ask less often, or for more at once (larger pages), or have the limit of {server} raised: its Retry-After and "
    "X-RateLimit headers say what it allows.",
    "413": "Raise the limit of {server} (nginx `client_max_body_size`, Apache `LimitRequestBody`), or send less at once; a "
    "client that sends `Expect: 100-continue` hears of it before it sends the body.",
}
PLAIN_ADVICE = (
    "Let the client ask for https:// there; in a proxy, set that scheme for {server} (nginx `proxy_pass https://`)."
)
UPGRADE_ADVICE = (
    "Let the proxy before {server} pass the handshake on (nginx `proxy_http_version 1.1`, `proxy_set_header Upgrade "
    "$http_upgrade` and `Connection upgrade`), and see in its log whether that path is a WebSocket's."
)
REFUSED_ADVICE = (
    "Look at the request, and in the log of {server} for why it was refused: status {code} means {meaning}."
)
#: statuses below 500 with which no client goes on (RFC 9110, 6585): what they mean
REFUSALS = {
    "400": "a malformed request",
    "401": "no valid login",
    "403": "no permission",
    "404": "nothing of that name",
    "407": "no valid login at the proxy",
    "408": "that the request came too slowly",
    "411": "that the length is missing",
    "413": "too large a body",
    "414": "too long an address",
    "421": "a request for another server",
    "426": "an upgrade of the protocol is missing",
    "429": "too many requests",
    "431": "too large a header",
}
MALFORMED, UPGRADE_REQUIRED, HTTPS = "400", "426", 443
LOGIN, MISSING = ("401", "407"), ("403", "404")
#: redirects one after another: more than 60 are no browser's (20) or curl's (50); the longest time between two, and the most
#: requests until the first comes again
REDIRECTS, CHAIN = frozenset(("301", "302", "303", "307", "308")), range(10, 61)
AT_ONCE_NS, ROUND_MOST = 500_000_000, 4
ELSEWHERE = 0.5  # of the redirects: so many requests to other servers are where they lead


def requests_by_ends(case: Case) -> dict[tuple[str | None, str | None], list[ExchangeRow]]:
    """Returns the requests of HTTP that have a status, by client and server; none without many redirects."""
    codes = case.transfers.codes
    if sum(code in REDIRECTS for code in codes) < CHAIN.start:
        return {}
    numbers = (number for number, code in enumerate(codes) if code)
    groups: dict[tuple[str | None, str | None], list[ExchangeRow]] = defaultdict(list)
    for row in case.transfers.without_legs(rows_numbered(case.transfers, numbers)):
        if row["kind"] in ("http", "turn"):
            groups[row["client"], row["server"]].append(row)
    return groups


def chains_of(rows: list[ExchangeRow]) -> Iterable[list[ExchangeRow]]:
    """Yields the chains of redirects that were followed at once, and that nothing but a redirect ended."""
    chain: list[ExchangeRow] = []
    for row, then in zip_longest(rows, rows[1:]):
        is_redirect = row["code"] in REDIRECTS
        chain = [*chain, row] if is_redirect else []
        pause_ns = None if then is None else (then["asked_ns"] or 0) - (row["answered_ns"] or 0)
        if is_redirect and (pause_ns is None or not 0 <= pause_ns <= AT_ONCE_NS):
            yield chain
            chain = []


def is_circle(case: Case, chain: list[ExchangeRow]) -> bool:
    """Returns whether the same requests and answers come again and again, and lead the client to no other server."""
    sizes = [(row["request_bytes"], row["response_bytes"]) for row in chain[1:]]  # cookies come with the first answer
    if len(chain) not in CHAIN or not any(sizes[length:] == sizes[:-length] for length in range(1, ROUND_MOST + 1)):
        return False
    begin_ns, end_ns = chain[0]["asked_ns"] or 0, chain[-1]["asked_ns"] or 0
    elsewhere = sum(
        row["client"] == chain[0]["client"]
        and row["server"] != chain[0]["server"]
        and begin_ns < (row["asked_ns"] or 0) < end_ns
        for row in case.exchanges("kind", *EXCHANGE_KINDS)
    )
    return elsewhere < ELSEWHERE * len(chain)


@cause(
    code="redirect-loop",
    title="Redirects in a circle",
    sentence="{server} probably redirects {client} in a circle{again}: it answers {count:HTTP request} one after another with "
    "{codes}{names}, and never with a page.",
    advice="`curl -vL` shows the Location headers. Often a proxy ends TLS and the server redirects to HTTPS again "
    "(X-Forwarded-Proto), or a login cookie is not accepted.",
    shows="10 to 60 requests of a client to a server, one after another, are answered with 301, 302, 303, 307 or 308. The next "
    "one follows within 0.5 s, their sizes repeat after at most four requests, no other answer ends them, and the client asks "
    "no other server between. Browsers give up after 20, curl after 50.",
    rivals={"error-answers": "a redirect is no error by itself", "serial-requests": "the Location headers decide"},
    unknown="The addresses in the redirects: a test that asks for one redirected page again and again looks the same.",
)
def redirect_loop(case: Case) -> Matches:
    for (client, server), asked in requests_by_ends(case).items():
        asked.sort(key=lambda row: row["asked_ns"] or 0)
        chains = [chain for chain in chains_of(asked) if is_circle(case, chain)]
        if not chains:
            continue
        rows = [row for chain in chains for row in chain]
        hosts = list(dict.fromkeys(name for row in rows[:NAMED_MAX] if (name := name_of(case, row))))
        yield Match(
            certainty="likely",
            place="server",
            flows=list(dict.fromkeys(flows_of(rows))),
            failed=len(chains),
            attempts=len(chains),
            waited_ns=union_ns(waits_of(rows)),
            frames=packets_of(rows),
            packets=len(rows),
            filter="http.response.code >= 300 && http.response.code < 400",
            proof="the same sizes of requests and answers come again and again",
            undecided={"serial-requests": "`curl -vL` of the same address: does it come back to where it began?"},
            server=server,
            client=client,
            again="" if len(chains) == 1 else f" ({plural(len(chains), 'time')})",
            count=max(map(len, chains)),
            codes=f"status {codes_str(rows)}",
            names=f" ({named(hosts)})" if hosts else "",
        )


@cause(
    code="error-answers",
    title="Answers that are errors",
    sentence="{server} answers, but with errors: {count} of {total:{noun}} got {codes}{after}{names}{ending}.",
    advice="{what}",
    shows="DNS answers with SERVFAIL, REFUSED, FORMERR, NOTIMP or NOTAUTH; HTTP answers with a status of 500 or above, or one "
    "that refuses the request itself, such as 400 and 413. A 401 or 407 counts if no request with a login follows, 403 and "
    "404 if half of a server's answers are such. Below a tenth of the requests to a server, and 1 s, it is a note. Pauses of "
    "0.4 s or more after 429 and 503 are part of the wait. A WebSocket handshake that a server calls malformed (400, 426) has "
    "met a proxy that removes its Upgrade header; behind that proxy the header is missing (exchanges.upgrade_header).",
    rivals={"dns-tcp-blocked": "no question of the server itself stayed without an answer"},
    unknown="What failed behind the server, and all that TLS hides.",
)
def error_answers(case: Case) -> Matches:
    findings = case.findings("dns-failed")
    explained = case.flows_of("proxy-header", "short-request")
    if not findings:
        explained |= {flow for each in case.all_findings("dns-failed") for flow, _ in each.finding.flows}
    for kind, rows in (("DNS", queries_of(case.transfers)), ("HTTP", case.once(http_rows))):
        for server, exchanges in by_server(rows).items():
            errors = [row for row in errors_of(exchanges, kind) if row["flow"] not in explained]
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
            severity=severity_beside(case, rows),
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
            names=f" ({named(names)})" if names else "",
            what=f"Check the name and the search list of the client: `dig @{server} {names[0] if names else 'NAME'}`.",
        )


def severity_beside(case: Case, rows: Sequence[ExchangeRow]) -> Severity | None:
    """Returns the severity of answers that a name does not exist: a note if clients waited for them by repeating the query."""
    is_late = any(row["attempts"] > 1 and row["answered_ns"] is not None for row in rows)  # dns-repeated
    return "info" if is_late and case.findings("dns-slow") else None


def http_rows(case: Case) -> list[ExchangeRow]:
    """Returns the first requests of HTTP: those that open a connection, and those that a status answered; none without an error
    or a refusal."""
    transfers = case.transfers
    if not numbers_where(transfers, "kind", "http", 1):
        return []
    codes = transfers.codes
    if set(codes).isdisjoint(REFUSALS) and not numbers_where(transfers, "outcome", "error", 1):
        return []
    http, turn = transfers.words["http"], transfers.words["turn"]
    pairs = enumerate(zip(transfers.bytes_of("exchanges", "kind"), codes, strict=True))
    return transfers.without_legs(
        rows_numbered(transfers, (number for number, (kind, code) in pairs if kind == http or (kind == turn and code)))
    )


def errors_of(rows: list[ExchangeRow], kind: str) -> list[ExchangeRow]:
    """Returns the answers of a server that are errors of it, or refuse what a client asked in the end."""
    if kind == "DNS":
        return [row for row in rows if row["code"] in FAILURES]
    missing = sum(row["code"] in MISSING for row in rows) >= MISSING_SHARE * len(rows)
    refused = {id(row) for row in refused_first(rows)}
    return [
        row
        for row in rows
        if row["outcome"] == "error"
        or (row["code"] in REFUSALS and id(row) not in refused and (missing or row["code"] not in MISSING))
    ]


def refused_first(rows: list[ExchangeRow]) -> list[ExchangeRow]:
    """Returns the requests without a login to which the same client got another answer later."""
    passed: dict[str | None, int] = {}
    for row in rows:
        if row["code"] not in LOGIN and row["asked_ns"] is not None:
            passed[row["client"]] = max(passed.get(row["client"], 0), row["asked_ns"])
    return [row for row in rows if row["code"] in LOGIN and (row["asked_ns"] or 0) < passed.get(row["client"], 0)]


@cause(
    code="login-each-request",
    title="Each request is refused first, and repeated with a login",
    sentence="{server} refuses {count} of {total:HTTP request} with status {code} first, and the client repeats each with its "
    "login, which takes {waited} more.",
    advice="Let the client send its login at once (`Authorization` in the first request, a token, a session cookie), and keep "
    "connections open: NTLM and Negotiate log in once for each connection.",
    shows="At least three answers of a server, and 30% of them, have status 401 or 407, and another answer to the same client "
    "follows.",
    rivals={"error-answers": "a request is answered in the end"},
    unknown="All that TLS hides.",
)
def login_each_request(case: Case) -> Matches:
    for server, rows in by_server(case.once(http_rows)).items():
        first = refused_first(rows)
        if len(first) < max(LOGINS_MIN, LOGINS_SHARE * len(rows)):
            continue
        waited_ns = union_ns(waits_of(first))
        yield Match(
            certainty="proven",
            place="client",
            flows=list(dict.fromkeys(flows_of(first))),
            waited_ns=waited_ns,
            frames=packets_of(first),
            packets=len(first),
            filter=f"http.response.code == {first[0]['code']}",
            proof=f"{plural(len(first), 'request')} with status {codes_str(first)}, and each was answered in the end",
            excluded={"error-answers": "a request is answered in the end"},
            server=server,
            count=len(first),
            total=len(rows),
            code=codes_str(first),
            waited=f"{plural(len(first), 'round trip')} and {show_duration(waited_ns or 0)}",
        )


def by_server(rows: list[ExchangeRow]) -> dict[str, list[ExchangeRow]]:
    """Returns exchanges by the server."""
    servers: dict[str, list[ExchangeRow]] = defaultdict(list)
    for row in rows:
        servers[str(row["server"])].append(row)
    return servers


def of_server(case: Case, kind: str, server: str, errors: list[ExchangeRow], total: int) -> Match:
    """Returns the match of the errors of one server."""
    waited_ns = union_ns([*waits_of(errors), *backoffs_after(case, errors)])
    return Match(
        certainty="proven",
        place="server",
        flows=list(dict.fromkeys(flows_of(errors))),
        failed=len(errors),
        attempts=total,
        waited_ns=waited_ns,
        frames=packets_of(errors),
        packets=len(errors),
        severity="info" if len(errors) < FEW * total and (waited_ns or 0) < FELT_NS else None,
        proof=f"{show_share(len(errors), total)} of its answers are errors",
        server=server,
        count=len(errors),
        total=total,
        after=after_str(errors),
        **(dns_words if kind == "DNS" else http_words)(case, server, errors),
    )


def after_str(errors: list[ExchangeRow]) -> str:
    """` within 4 ms`: the median; ` after 5 to 30 s`, if that is long."""
    waits = sorted(row["waited_ns"] for row in errors if row["waited_ns"] is not None)
    if waits and waits[-1] >= max(LATE_NS, UNLIKE * waits[0]):
        return f" after {times_str(waits)}"
    word = "within" if waits and waits[-1] < LATE_NS else "after"
    return f" {word} {show_duration(waits[len(waits) // 2])}" if waits else ""


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
        "names": f" ({named(names)})" if names else "",
        "what": DNS_ADVICE.format(server=server, name=names[0] if names else "NAME"),
    }


def meaning_of(case: Case, errors: Sequence[ExchangeRow], is_single: bool) -> tuple[str, str]:
    """Returns what the first status of HTTP errors, or their single one, says of the request, or "", and the advice."""
    code, upgrades = str(errors[0]["code"]), {row["upgrade_header"] for row in errors}
    if code == MALFORMED and is_single and (port := tls_port(case, errors)):
        return f"probably because port {port} wants TLS and got plain HTTP", PLAIN_ADVICE
    if upgrades == {False}:
        return "a proxy removed the Upgrade header", UPGRADE_ADVICE
    if upgrades == {True} and code in (MALFORMED, UPGRADE_REQUIRED):
        return "probably because a proxy on the way removed the Upgrade header", UPGRADE_ADVICE
    meaning = REFUSALS.get(code, "")
    return meaning, HTTP_ADVICE.get(code, REFUSED_ADVICE if meaning else HTTP_ADVICE["500"])


def http_words(case: Case, server: str, errors: list[ExchangeRow]) -> dict[str, Any]:
    """Returns what is said of errors of HTTP alone."""
    code, names = str(errors[0]["code"]), [name for row in errors[:NAMED_MAX] if (name := name_of(case, row))]
    is_single = all(row["code"] == code for row in errors)
    meaning, advice = meaning_of(case, errors, is_single)
    met, is_websocket = behind(case, server, errors), all(row["upgrade_header"] is not None for row in errors)
    return {
        "findings": met.findings,
        "filter": f"http.response.code == {code}" if is_single else "http.response.code >= 400",
        "noun": "WebSocket handshake" if is_websocket else "HTTP request",
        "codes": f"status {codes_str(errors)}{f' ({meaning})' if meaning and is_single else ''}",
        "ending": ", and it closed while the client still sent"
        if is_closed_early(case, errors)
        else met.text or backoff_str(backoffs_after(case, errors)),
        "names": f" ({named(names)})" if names else "",
        "what": met.advice or advice.format(server=server, code=code, meaning=meaning),
    }


def tls_port(case: Case, errors: Sequence[ExchangeRow]) -> int | None:
    """Returns the port to which these requests of plain HTTP went, if it is that of HTTPS, or others speak TLS there."""
    ends = {case.connections[flow].server for flow in flows_of(errors)}
    if len(ends) != 1:
        return None
    (end,) = ends
    spoken = (
        row["flow"] for row in case.trace.handshakes.rows(0, HANDSHAKES_MAX) if row["server_hello_frame"] is not None
    )
    return end[1] if end[1] == HTTPS or any(case.connections[flow].server == end for flow in spoken) else None


def backoffs_after(case: Case, errors: Iterable[ExchangeRow]) -> list[Span]:
    """Returns the pauses of clients that were told to come later by one of these errors."""
    flows = dict.fromkeys(flow for row in errors if row["code"] in LIMITED and (flow := row["flow"]) is not None)
    return [span for flow in flows for span in case.once(backoffs_of).get(flow, ())]


def backoff_str(spans: Sequence[Span]) -> str:
    """`, and the client then paused for 2 s each time, 16 s in all`: what clients did; empty if none paused."""
    if not spans:
        return ""
    all_ns, times = math.fsum(span.ns for span in spans), times_str(sorted(round(span.ns) for span in spans))
    each = f" each time, {show_duration(all_ns)} in all" if len(spans) > 1 else ""
    return f", and the client then paused for {times}{each}"


def name_of(case: Case, row: ExchangeRow) -> str | None:
    """Returns the host that a request names, or the first of its connection."""
    return row["name"] or (None if row["flow"] is None else case.flow(row["flow"])["server_name"])


def is_closed_early(case: Case, errors: list[ExchangeRow]) -> bool:
    """Returns whether the server closed a connection while its client still sent."""
    connections = case.connections
    return any(
        ending["kind"] == "fin" and ending["late_bytes"] and ending["direction"] == connections[flow].server_side
        for flow in flows_of(errors)
        for ending in connections.endings_of.get(flow, ())
    )
