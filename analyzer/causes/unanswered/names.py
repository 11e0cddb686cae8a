# SPDX-License-Identifier: Apache-2.0
"""Names that do not resolve: a DNS server that answers nothing, not one type, or not over TCP."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import PROBABLY, Certainty, Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import ATTEMPTS_MAX, about, cut_off, spans_of, syns_of
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import REQUEST, SHOWN
from wiretale.analyzer.findings.exchanges.application import (
    FAILURES,
    NO_NAME,
    flows_of,
    queries_of,
    query_packet,
    unanswered,
)
from wiretale.analyzer.findings.exchanges.exchange_rows import named, waits_of
from wiretale.analyzer.findings.judged import listed
from wiretale.analyzer.findings.shared.servers import family, first_packets
from wiretale.analyzer.units import agreeing, plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.evidence import Cited
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

DNS_PORT = 53
ASKED_AGAIN_NS = 900_000_000  # a client asks again after 1 s or more (RFC 1035 section 4.2.1)
FALLBACK_NS = 30_000_000_000  # after which a client asks for a name anew
SAME_TIME_NS = 50_000_000  # between the questions of one lookup
QUESTIONS_PROVEN, QUESTIONS_MIN = 4, 2
EXCEPTIONS_MOST = 0.03
SUFFIXES_MIN, LOOKUPS_MIN, LOOKUP_NS = 2, 3, 2_000_000_000  # of a search list


def packets_of_questions(case: Case, rows: Sequence[ExchangeRow]) -> list[Cited]:
    """Returns the packets of the first of these questions."""
    return [packet for row in rows[:SHOWN] for packet in query_packet(case.transfers, row, REQUEST)]


def tries_of(rows: Sequence[ExchangeRow]) -> str:
    """Returns ` (7 queries in 8 s)`, from the first query to the last; empty if none was repeated."""
    sent, spans = sum(row["attempts"] for row in rows), waits_of(rows)
    ns = max((span.end_ns for span in spans), default=0) - min((span.start_ns for span in spans), default=0)
    return f" ({plural(sent, 'query', 'queries')} in {show_duration(ns)})" if sent > len(rows) and ns > 0 else ""


def fallbacks_of(case: Case, rows: Sequence[ExchangeRow]) -> list[Span]:
    """Returns the times from questions without an answer to the same ones of the same client to a server that answers."""
    names = {(row["client"], row["name"], row["type"]) for row in rows}
    later: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
    for row in queries_of(case.transfers):
        key = (row["client"], row["name"], row["type"])
        if key in names and row["answered_ns"] is not None and row["asked_ns"] is not None:
            later[key].append(row["asked_ns"])
    spans = []
    for row in rows:
        asked_ns, times = row["asked_ns"] or 0, later[row["client"], row["name"], row["type"]]
        next_ns = min((ns for ns in times if ns > asked_ns), default=None)
        if next_ns is not None and ASKED_AGAIN_NS <= next_ns - asked_ns <= FALLBACK_NS:
            spans.append(Span(asked_ns, next_ns))
    return spans


def fallback_str(spans: Sequence[Span], count: int) -> str:
    """`; after 2 s each another one was asked, which answers`; empty if most of so many questions were not asked again."""
    if 2 * len(spans) <= count:
        return ""
    times = sorted(span.ns for span in spans)
    each = " each" if len(spans) > 1 else ""
    return f"; after {show_duration(times[len(times) // 2])}{each} another one was asked, which answers"


@cause(
    code="dns-silent",
    title="DNS server does not answer",
    sentence="The DNS {servers} {answered} nothing: {count:question}{tries} got no answer{names}{fallback}{alive}.",
    advice="Ask it from another place: `dig @{server} {name} +tries=1`; meanwhile add a second nameserver with `options "
    "timeout:1 rotate`.",
    shows="Every question to a server stays open, although it was repeated or 5 s have passed. The capture does see packets "
    "to the client: another flow has both directions, or other packets or ARP replies came.",
    rivals={
        "one-direction": "an ARP reply or any other packet to the client is in the capture",
        "refused": "no ICMP error 'port unreachable' came",
        "dns-one-type": "no question of any type was answered",
        "filtered": "a capture at the server shows whether the questions arrive",
        "slow-dns": "no question is answered, however late",
    },
    unknown="At the client, whether the questions or their answers were lost, or the server ignores them.",
    explains=("dns-unanswered",),
)
def dns_silent(case: Case) -> Matches:
    findings = case.findings("dns-unanswered")
    if not findings:
        return
    answering = {row["server"] for row in queries_of(case.transfers) if row["answered_frame"]}
    rows = [row for row in unanswered(case.transfers) if row["server"] not in answering and not is_reported(case, row)]
    if not rows:
        return
    servers, sent = list(dict.fromkeys(str(row["server"]) for row in rows)), sum(row["attempts"] for row in rows)
    fallbacks = fallbacks_of(case, rows)
    is_alive = all(is_heard(case, server) for server in servers)
    yield Match(
        certainty="proven" if is_alive else "likely",
        place="server",
        findings=findings,
        flows=list(dict.fromkeys(flows_of(rows))),
        failed=len(rows),
        attempts=len(rows),
        waited_ns=union_ns([*waits_of(rows), *fallbacks]),
        frames=packets_of_questions(case, rows),
        packets=sent,
        filter="dns",
        excluded={
            "one-direction": "packets to the client are in the capture",
            "dns-one-type": "no question of any type was answered",
            "refused": "no ICMP error came back",
        },
        undecided={} if is_alive else {"filtered": "a capture at the server: whether the questions arrive there"},
        proof=f"{plural(sent, 'query', 'queries')} without an answer",
        count=len(rows),
        tries=tries_of(rows),
        names="" if answering else ", so no name resolves",
        fallback=fallback_str(fallbacks, len(rows)),
        server=servers[0],
        name=str(rows[0]["name"]),
        **server_words(servers, is_alive),
    )


def server_words(servers: list[str], is_alive: bool) -> dict[str, Any]:
    """Returns how servers that answer nothing are told."""
    alone = len(servers) == 1
    names = f"{agreeing(len(servers), 'server', 'servers')} {listed(servers, 'and')}"
    down = f"; {'it is' if alone else 'they are'} probably down, or a firewall drops DNS"
    return {
        "servers": names if len(servers) <= 2 else f"servers ({len(servers):,} of them)",
        "answered": "answers" if alone else "answer",
        "alive": f", although {'it is' if alone else 'they are'} up" if is_alive else down,
    }


def is_heard(case: Case, host: str) -> bool:
    """Returns whether the capture has ARP replies or packets of a host."""
    if any(row["address"] == host for row in case.trace.neighbors.rows(0, 1_000)):
        return True
    directions = case.trace.directions
    packets = zip(directions.column("source"), directions.column("packets"), strict=True)
    return any(count for source, count in packets if source == host)


def is_reported(case: Case, row: ExchangeRow) -> bool:
    """Returns whether ICMP errors were sent about the flow of a question."""
    return row["flow"] is not None and bool(case.flow(row["flow"])["icmp_errors"])


class Lookup(NamedTuple):
    """Two questions of one name that were sent together from one port, and only one was answered at first."""

    late: ExchangeRow
    other: ExchangeRow


def pairs_of(case: Case) -> Iterator[tuple[ExchangeRow, ExchangeRow]]:
    """Yields the questions of two types that were sent together."""
    lookups: dict[tuple[str | None, str | None, str | None], list[ExchangeRow]] = defaultdict(list)
    for row in queries_of(case.transfers):
        lookups[row["client"], row["server"], row["name"]].append(row)
    for rows in lookups.values():
        for first, second in pairwise(sorted(rows, key=lambda row: row["asked_ns"] or 0)):
            began, then = first["asked_ns"], second["asked_ns"]
            if (
                first["type"] != second["type"]
                and began is not None
                and then is not None
                and then - began <= SAME_TIME_NS
            ):
                yield first, second


def is_late(row: ExchangeRow) -> bool:
    """Returns whether a question was not answered at first."""
    if row["outcome"] == "unanswered":
        return True
    return row["attempts"] > 1 and row["answered_ns"] is not None and (row["waited_ns"] or 0) >= ASKED_AGAIN_NS


def lookups_of(case: Case) -> tuple[list[Lookup], int]:
    """Returns the lookups of which one question was answered at once and the other was not, and the number of all."""
    late, count = [], 0
    for pair in pairs_of(case):
        count += 1
        tardy = [row for row in pair if is_late(row)]
        if len(tardy) == 1:
            other = pair[1] if tardy[0] is pair[0] else pair[0]
            if other["answered_ns"] is not None and (other["waited_ns"] or 0) < ASKED_AGAIN_NS:
                late.append(Lookup(tardy[0], other))
    return late, count


@cause(
    code="dns-one-type",
    title="DNS answers one of two questions",
    sentence="{type} questions to {server} stay {probably}unanswered {beside}: {count} of {lookups:lookup} {price}.",
    advice="{what}",
    shows="Two questions for one name leave a client within 50 ms. One is answered at once; the other, always of the same "
    "type, only after the client asked again, or never. At least two such lookups; four prove it.",
    rivals={
        "dns-silent": "the other question of the same name was answered in milliseconds",
        "random-loss": "it is always the same type, never the other",
    },
    unknown="Which device: the server ignores the type (RFC 4074), or a firewall on the way loses the second of two packets "
    "that open one connection entry at once. If the repeat is answered, it is the latter.",
)
def dns_one_type(case: Case) -> Matches:
    if not case.findings("dns-slow", "dns-unanswered"):
        return
    late, count = lookups_of(case)
    by_type: dict[tuple[str | None, str | None], list[Lookup]] = defaultdict(list)
    for lookup in late:
        by_type[lookup.late["type"], lookup.late["server"]].append(lookup)
    for (kind, server), lookups in by_type.items():
        exceptions = sum(lookup.late["type"] != kind and lookup.late["server"] == server for lookup in late)
        if len(lookups) >= QUESTIONS_MIN and exceptions <= EXCEPTIONS_MOST * len(lookups):
            yield of_type(case, str(kind), str(server), lookups, count)


def of_type(case: Case, kind: str, server: str, lookups: list[Lookup], lookup_count: int) -> Match:
    """Returns the match of the lookups of which a server did not answer this type at first."""
    rows, other = [lookup.late for lookup in lookups], str(lookups[0].other["type"])
    flows, is_certain = list(dict.fromkeys(flows_of(rows))), len(rows) >= QUESTIONS_PROVEN
    failed = sum(row["answered_ns"] is None for row in rows)
    together = all(lookup.late["flow"] == lookup.other["flow"] for lookup in lookups)
    excluded = {"dns-silent": f"{other} of the same name was answered in milliseconds"}
    if is_certain:
        excluded["random-loss"] = f"it is always {kind}, never {other}"
    return Match(
        certainty="proven" if is_certain else "likely",
        place="path" if together and not failed else "server",
        findings=about(case, flows, "dns-slow", "dns-unanswered"),
        flows=flows,
        failed=failed,
        attempts=lookup_count,
        waited_ns=union_ns(waits_of(rows)),
        frames=packets_of_questions(case, rows),
        packets=len(rows),
        filter=f"dns && {family(server)}.addr == {server}",
        proof=f"the {other} question of the same name was answered at once each time",
        excluded=excluded,
        undecided={} if is_certain else {"random-loss": "more lookups: whether it is always the same type"},
        type=kind,
        server=server,
        count=len(rows),
        lookups=lookup_count,
        **type_words(kind, other, rows, failed, together),
    )


def type_words(kind: str, other: str, rows: list[ExchangeRow], failed: int, together: bool) -> dict[str, Any]:
    """Returns what is said of a server that ignores a type, or of a device that loses the second of two packets."""
    waits = sorted(row["waited_ns"] or 0 for row in rows)
    wait, is_race = show_duration(waits[len(waits) // 2]), together and not failed
    return {
        "beside": f"if they leave from the same port as the {other} question"
        if is_race
        else f"although {other} of the same name is answered at once",
        "price": f"got no answer for it and waited {wait}" if failed else f"waited {wait} for the retry",
        "what": "Set `options single-request-reopen` in resolv.conf, and look for a firewall that loses one of two packets that "
        "open an entry at once (`conntrack -S`, insert_failed)."
        if is_race
        else f"Repair the server, which ignores {kind} questions (RFC 4074); with glibc 2.36 `options no-aaaa` avoids them.",
    }


@cause(
    code="dns-tcp-blocked",
    title="DNS over TCP does not pass",
    sentence="{what}.",
    advice="Open TCP 53 to {server} (RFC 7766); `dig +tcp @{server} {name}` tests it. EDNS size 1232 avoids some truncation.",
    shows="A DNS server truncates its answer (TC), and the TCP connection to port 53 that follows gets no answer or a RST. Or "
    "a DNS server that answers SERVFAIL opens such a connection to another server and gets no answer.",
    rivals={
        "filtered": "only DNS over TCP fails: UDP 53 of the server answers, or its other ports",
        "fragments-dropped": "the answer came whole, with the TC bit",
        "host-down": "UDP 53 of that server answers",
    },
    unknown="Where the SYN is dropped. Of a server that asks another one, whether the transfer or the question failed.",
)
def dns_tcp_blocked(case: Case) -> Matches:
    attempts = tcp_attempts(case)
    if not attempts:
        return
    rows = queries_of(case.transfers)
    cut: dict[tuple[str | None, str | None], list[ExchangeRow]] = defaultdict(list)
    failing: dict[str | None, list[ExchangeRow]] = defaultdict(list)
    for row in rows:
        if row["truncated"]:
            cut[row["client"], row["server"]].append(row)
        if row["code"] in FAILURES:
            failing[row["server"]].append(row)
    for (client, server), flows in attempts.items():
        if cut[client, server]:
            yield after_truncation(case, server, cut[client, server], flows)
        elif failing[client]:
            yield of_resolver(case, client, server, failing[client], flows)


def tcp_attempts(case: Case) -> dict[tuple[str, str], list[FlowRow]]:
    """Returns the attempts to TCP 53 without an answer, or with a RST, by client and server."""
    if not case.findings("syn-unanswered", "connection-refused"):
        return {}
    attempts = case.transfers.attempts
    by_ends: dict[tuple[str, str], list[FlowRow]] = defaultdict(list)
    for flow in [*attempts.unanswered(), *attempts.flows_in("refused")][:ATTEMPTS_MAX]:
        row = case.flow(flow)
        if row["destination_port"] == DNS_PORT:
            by_ends[row["source"], row["destination"]].append(row)
    return by_ends


def after_truncation(case: Case, server: str, answers: list[ExchangeRow], attempts: list[FlowRow]) -> Match:
    """Returns the match of clients that could not ask again over TCP."""
    flows = [row["flow"] for row in attempts]
    syns, is_refused = sum(syns_of(case, sorted(flows)).values()), any(row["state"] == "refused" for row in attempts)
    is_certain = is_refused or syns >= 2
    outcome = (
        f"was refused ({plural(len(attempts), 'RST')})" if is_refused else f"stayed silent ({plural(syns, 'SYN')})"
    )
    case.claimed.update(flows)
    return Match(
        certainty="proven" if is_certain else "likely",
        place="path",
        findings=about(case, flows, "syn-unanswered", "connection-refused", "icmp-errors"),
        flows=[*flows_of(answers), *flows],
        failed=len(attempts),
        attempts=len(answers),
        waited_ns=union_ns(spans_of(attempts)),
        frames=[*packets_of_questions(case, answers[:1]), *first_packets(case.transfers, flows)],
        packets=len(answers) + syns,
        filter="dns.flags.truncated == 1 || tcp.dstport == 53",
        proof=f"{plural(len(answers), 'answer')} with the TC bit, then TCP 53 {outcome}",
        excluded={
            "filtered": "UDP 53 of the same server answers",
            "fragments-dropped": "the answers came whole, with the TC bit",
            "host-down": "UDP 53 of the same server answers",
        },
        undecided={} if is_certain else {"random-loss": "a second SYN: whether it stays unanswered as well"},
        what=f"Large DNS answers {'' if is_certain else 'probably '}fail: {server} truncated {plural(len(answers), 'answer')}, "
        f"and TCP 53, which the client tried next, {outcome}",
        server=server,
        name=str(answers[0]["name"] or "NAME"),
    )


def of_resolver(case: Case, resolver: str, server: str, errors: list[ExchangeRow], attempts: list[FlowRow]) -> Match:
    """Returns the match of a server that answers with errors while its own connection to another one gets no answer."""
    flows = [row["flow"] for row in attempts]
    syns, cut = sum(syns_of(case, sorted(flows)).values()), cut_off(case).issuperset(flows)
    certainty: Certainty = "possible" if cut and syns < 2 else "likely"
    case.claimed.update(flows)
    codes = named([str(row["code"]) for row in errors])
    names = named([str(row["name"]) for row in errors], 1)
    return Match(
        certainty=certainty,
        place="path",
        findings=[*about(case, flows, "syn-unanswered", "icmp-errors"), *about(case, flows_of(errors), "dns-failed")],
        flows=[*flows_of(errors), *flows],
        failed=len(errors),
        attempts=len(errors),
        waited_ns=union_ns(waits_of(errors)),
        frames=[*packets_of_questions(case, errors[:1]), *first_packets(case.transfers, flows)],
        packets=len(errors) + syns,
        filter=f"dns.flags.rcode > 0 || tcp.dstport == {DNS_PORT}",
        proof=f"{plural(syns, 'SYN')} of {resolver} to TCP 53 without an answer",
        excluded={"fragments-dropped": "no answer was cut to a fragment"},
        undecided={"filtered": f"a longer capture at {resolver}: whether TCP 53 of {server} answers, and UDP 53"},
        what=f"{resolver} answers {codes} for {names}, {PROBABLY[certainty]}because its own connection to TCP 53 of {server}, "
        f"as for a zone transfer, gets no answer ({plural(syns, 'SYN')})",
        server=server,
        name=str(errors[0]["name"] or "NAME"),
    )


class Searched(NamedTuple):
    """A name that was answered, and the questions of the same client with a suffix behind it that came before."""

    name: str
    failed: list[ExchangeRow]


def searched(case: Case) -> dict[str, list[Searched]]:
    """Returns by client the lookups before which it asked for the same name with several suffixes, which do not exist."""
    absent: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    lookups: dict[str, list[Searched]] = defaultdict(list)
    for row in queries_of(case.transfers):
        client, name = str(row["client"]), str(row["name"] or "")
        if row["code"] == NO_NAME:
            labels = name.split(".")
            for count in range(1, len(labels)):
                absent[client, ".".join(labels[:count])].append(row)
        elif row["code"] == "NOERROR":
            near = [each for each in absent.pop((client, name), []) if is_just_before(each, row)]
            if len({each["name"] for each in near}) >= SUFFIXES_MIN:
                lookups[client].append(Searched(name, near))
    return lookups


def is_just_before(row: ExchangeRow, later: ExchangeRow) -> bool:
    """Returns whether a question was asked before another one, as those of one lookup are."""
    return 0 <= (later["asked_ns"] or 0) - (row["asked_ns"] or 0) <= LOOKUP_NS


@cause(
    code="search-list",
    title="Names are looked up with a search list first",
    sentence="{client} tries its search list first: {absent} of {total:DNS question} asked for names that do not exist, such as "
    "{example}, before {name} itself; that took {each} of each lookup.",
    advice="End the name with a dot (`{name}.`), or lower `ndots` (`options ndots:1` in resolv.conf, `dnsConfig` of a Kubernetes "
    "pod, whose default is 5), or cache names near the client.",
    shows="At least three lookups succeed only after the same name was asked for with two or more suffixes, all answered "
    "NXDOMAIN within the 2 s before. These make up half or more of the client's questions.",
    rivals={
        "error-answers": "the name itself exists",
        "dns-silent": "each question is answered",
    },
    unknown="Why the client has this list.",
)
def search_list(case: Case) -> Matches:
    by_client = searched(case)
    totals = Counter(row["client"] for row in queries_of(case.transfers)) if by_client else Counter[str | None]()
    for client, lookups in by_client.items():
        failed = [row for lookup in lookups for row in lookup.failed]
        total = totals[client]
        if len(lookups) < LOOKUPS_MIN or 2 * len(failed) < total:
            continue
        waited = union_ns(waits_of(failed))
        yield Match(
            certainty="proven",
            place="client",
            flows=list(dict.fromkeys(flows_of(failed))),
            members=len(lookups),
            waited_ns=waited,
            saving_ns=waited,
            frames=packets_of_questions(case, failed),
            packets=len(failed),
            filter="dns.flags.rcode == 3",
            excluded={"error-answers": "the names themselves exist", "dns-silent": "each question was answered"},
            proof=f"{plural(len(failed), 'answer')} NXDOMAIN before {plural(len(lookups), 'name')} that exist",
            client=client,
            absent=len(failed),
            total=total,
            example=str(failed[-1]["name"]),
            name=lookups[0].name,
            each=show_duration((waited or 0) / len(lookups)),
        )
