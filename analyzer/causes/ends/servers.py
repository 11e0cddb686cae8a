# SPDX-License-Identifier: Apache-2.0
"""Servers that let their clients wait."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, Severity, cause
from wiretale.analyzer.causes.connections import times_str
from wiretale.analyzer.causes.ends.talk import is_equal, middle, parts_str, requests_of, server_str
from wiretale.analyzer.causes.path.lossy import lossy_transfers
from wiretale.analyzer.causes.path.pauses import held_up_servers
from wiretale.analyzer.findings.cost import NOTE_SHARE, Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of, waits_of
from wiretale.analyzer.findings.exchanges.turns import SLOW_NS, SlowServer, server_end, took
from wiretale.analyzer.findings.exchanges.unanswered import FIRST_ANSWERED, SYSTEM_PORTS
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import ExchangeRow

ALIKE_LEAST = 3  # waits
EVEN = 0.005  # of a timer: nothing computes that evenly
#: of a wait, in which answers come that were held up together; connections, moments, and answers of each
END_SHARE, TOGETHER_FLOWS, TOGETHER_MOMENTS, TOGETHER_EACH = 0.05, 3, 2, 3
HELD_NS = 5_000_000_000
#: of requests that are held until there is news: of their limit, what is clearly before it; such answers; at most at the limit
NEWS_SHARE, NEWS_MIN, LIMIT_SHARE = 0.9, 5, 0.75
CONFIRMING_BYTES, CONFIRMED_NS = (
    64,
    20_000_000,
)  # a message that says no more than that another came; how soon it follows
SAME_BYTES, AGAIN_NS, FAILED = 16, 100_000_000, "500"  # between requests; from an answer to the next; of HTTP
QUEUE_SPREAD = 1.25  # of the longest round trip of a transfer in a queue
REPEATED_NS, REPEATED_MIN = 900_000_000, 2  # until a client asks again (RFC 1035 section 4.2.1); such questions
FAR_ANSWERS, FAR_WITHIN = (
    5,
    0.1,
)  # that take as long: the path's time, to which a server that works would add what varies
NAME_NS, NEAR_SHARE = 100_000_000, 0.2  # an answer of DNS that is late; of the median, one that is quick
FEW_ANSWERS = 2  # that may each have lost their first flight


class Slow(NamedTuple):
    """A finding of slow-server and the turns behind it."""

    numbered: Numbered
    server: SlowServer

    @property
    def name(self) -> str:
        """The server's name and port."""
        return server_str(self.server.flows[0])

    @property
    def end(self) -> tuple[str, int | None]:
        """Its address and port."""
        return server_end(self.server.flows[0], self.server.turns[0].direction)

    @property
    def host(self) -> str:
        """Its address."""
        return self.end[0]

    @property
    def numbers(self) -> list[int]:
        """Its flows."""
        return [flow["flow"] for flow in self.server.flows]

    @property
    def waited_ns(self) -> float:
        """The time in which a client waited for it."""
        return union_ns(self.server.waited) or 0.0

    @property
    def is_held(self) -> bool:
        """Whether its waits are so long and so equal that it may hold requests on purpose, each in a connection."""
        times = self.server.slow
        return len(times) >= ALIKE_LEAST and times[0] >= HELD_NS and is_equal(times, EVEN)

    @property
    def has_limit(self) -> bool:
        """Whether its waits have any length up to one that several have, as of requests that are held until there is news, or
        until a timer of at least 5 s ends."""
        times = self.server.slow
        at_limit = [ns for ns in times if ns >= (1 - EVEN) * times[-1]]
        before = [ns for ns in times if ns < NEWS_SHARE * times[-1]]
        return bool(
            ALIKE_LEAST <= len(at_limit) <= LIMIT_SHARE * len(times)
            and times[-1] >= HELD_NS
            and len(before) >= NEWS_MIN
            and not is_equal(before, EVEN)
        )


def slow_of(case: Case) -> list[Slow]:
    """Returns the slow servers that no cause has explained, the slowest first."""
    findings = case.findings("slow-server")
    if not findings:
        return []
    by_flow = {flow["flow"]: server for server in case.transfers.turns.slow_servers for flow in server.flows}
    servers = [Slow(each, by_flow[each.finding.flows[0][0]]) for each in findings]
    return sorted(servers, key=lambda slow: -slow.waited_ns)


def known_of(case: Case, slow: Slow, *names: str) -> list[list[float]]:
    """Returns the known values of columns of the requests to a server."""
    every = [requests_of(case, flow) for flow in slow.server.flows]
    return [[value for requests in every for value in requests.times(name)] for name in names]


def holds_requests(case: Case, slow: Slow) -> bool:
    """Returns whether a server probably holds requests until it has news (long polling): its waits have a limit, and each client
    asks the same again at once, whatever the answer."""
    answers = (row["code"] or "" for row in case.exchanges("kind", "http", "turn") if row["flow"] in slow.numbers)
    if not slow.has_limit or any(code >= FAILED for code in answers):
        return False
    sizes, pauses = known_of(case, slow, "request_bytes", "pause_ns")
    return bool(sizes and pauses) and max(sizes) - min(sizes) <= SAME_BYTES and middle(pauses) <= AGAIN_NS


def may_confirm(case: Case, slow: Slow) -> bool:
    """Returns whether the client's messages, of an unknown protocol, may only confirm what the server sends by itself: each is
    small and follows at once."""
    applications = {flow["application"] for flow in slow.server.flows}
    is_http = any(row["flow"] in slow.numbers for row in case.exchanges("kind", "http"))
    answers = (slow.end[1] or 0) < SYSTEM_PORTS or slow.end[1] in FIRST_ANSWERED
    if (
        is_http or answers or applications - {None, "http", "tls"}
    ):  # the first word of another protocol may be one of HTTP
        return False
    sizes, responses, pauses = known_of(case, slow, "request_bytes", "response_bytes", "pause_ns")
    is_small = middle(sizes) <= min(CONFIRMING_BYTES, middle(responses))
    return is_small and len(pauses) >= NEWS_MIN and middle(pauses) <= CONFIRMED_NS


@cause(
    code="long-polls",
    title="Requests that are held until there is news",
    sentence="The server {server} probably holds requests until it has news (long polling): {limited} of {requests} were "
    "answered after the same {limit}, the others after {least} to {most}.",
    advice="Nothing is slow if the client means to wait. Else see in the documentation of {host} which requests wait for events.",
    shows="At least three answers come after the same time of 5 s or more, to 0.5%, and five or more at any time before. All "
    "requests of the clients have the same size, follow the answer within 100 ms, and none failed (HTTP status 500 or above).",
    rivals={
        "slow-server": "several waits end at one limit, and the others anywhere before; the same request follows at once",
        "slow-dependency": "the limit ends without an error",
    },
    unknown="Whether the program waits for events, or computes until a timer ends it.",
    explains=("tls-handshake-slow",),
)
def long_polls(case: Case) -> Matches:
    for slow in slow_of(case):
        if holds_requests(case, slow):
            times = slow.server.slow
            limited = [ns for ns in times if ns >= (1 - EVEN) * times[-1]]
            yield Match(
                certainty="likely",
                place="server",
                findings=[slow.numbered],
                flows=slow.numbers,
                waited_ns=slow.waited_ns,
                members=len(times),
                filter=slow.numbered.finding.filter,
                proof=f"{plural(len(limited), 'answer')} after {show_duration(times[-1])}, and the same request again at once",
                excluded={"slow-dependency": "no answer at the limit is an error"},
                undecided={"slow-server": f"the log of {slow.host}: does it wait for events meanwhile?"},
                server=slow.name,
                host=slow.host,
                limited=f"{len(limited):,}",
                requests=plural(len(times), "request"),
                limit=show_duration(times[-1]),
                least=show_duration(times[0]),
                most=show_duration(times[-len(limited) - 1]),
            )


@cause(
    code="slow-server",
    title="Slow server",
    sentence="{servers} {probably}took {took}{median} to answer {requests}{together}: {spent}{network}.",
    advice="Look at the program on {host} for these requests: its log of slow requests, its load, its garbage collection, "
    "`strace -f -T -p PID`.",
    shows="The server answers at least 200 ms, beyond the minimum round trip, after the request (exchanges.server_ns), for "
    "10% of the time in which somebody waited. Several servers are one entry. If the answers of at least three connections "
    "come together, to 5% of the wait, three or more each time, the whole program stopped.",
    rivals={
        "slow-dependency": "no request of its own lies within the waits, as far as the file has them",
        "tail-loss": "a lost answer is repeated after an RTO, and its IP ID is missing",
        "nagle-delack": "the waits are not 40 or 200 ms before an ACK",
        "stall": "other packets of the server came meanwhile: 80% of its waits are not within stalls of the path",
    },
    unknown="What the server did; a proxy hides the server behind it. Waits of seconds that are equal to 0.5% may be requests "
    "that are held on purpose.",
    explains=("tls-handshake-slow",),
)
def slow_server(case: Case) -> Matches:
    slows = slow_of(case)
    slows = [slow for slow in slows if slow.numbered.number not in case.once(held_up_servers)]
    heavy = [slow for slow in slows if slow.numbered.finding.severity != "info"]
    for group in (heavy, [slow for slow in slows if slow.numbered.finding.severity == "info"]):
        if group:
            yield slow_match(case, group, "info" if group is not heavy else None)


def is_behind_queue(case: Case, row: ExchangeRow) -> bool:
    """Returns whether a question was asked while a transfer of its client filled a queue that delays about as much."""
    asked_ns, waited_ns = row["asked_ns"] or 0, row["waited_ns"] or 0
    sides = {side for each in case.all_findings("bufferbloat") for side in each.finding.flows}
    for transfer in case.transfers.largest:
        trips = transfer.round_trips
        ends = (transfer.row["source"], transfer.row["destination"])
        if transfer.side in sides and trips is not None and row["client"] in ends:
            first_ns, last_ns = transfer.row["first_ns"] or 0, transfer.row["last_ns"] or 0
            if first_ns <= asked_ns <= last_ns and waited_ns <= QUEUE_SPREAD * trips.high:
                return True
    return False


def slow_names(case: Case, flows: Collection[int]) -> dict[str, list[ExchangeRow]]:
    """Returns the questions of these flows that were asked once and answered late, not behind a queue, by server."""
    rows: dict[str, list[ExchangeRow]] = {}
    for row in case.exchanges("kind", "dns"):
        late = row["answered_ns"] is not None and (row["waited_ns"] or 0) >= NAME_NS and row["attempts"] == 1
        if late and row["flow"] in flows and row["server"] and not is_behind_queue(case, row):
            rows.setdefault(row["server"], []).append(row)
    return rows


def since_repeat_ns(case: Case, row: ExchangeRow, fast_ns: int) -> int:
    """Returns the time from the last query for a question to its answer, ns: by its flow, if that has no other queries; else that
    of the fastest answer of the server."""
    queries = case.direction(row["flow"] or 0, 0)
    is_alone = row["flow"] is not None and queries["packets"] == row["attempts"]
    return max((row["answered_ns"] or 0) - (queries["last_ns"] or 0), 0) if is_alone else fast_ns


class Repeated(NamedTuple):
    """The questions to a server that were answered right after a repeat of the query, not after the first one."""

    late: list[ExchangeRow]
    since_ns: list[int]  # from the last query to the answer
    total: int  # answers of that server


def repeated_queries(case: Case) -> dict[str, Repeated]:
    """Returns by server the questions of which a repeat was answered, not the first query."""
    by_server: dict[str, list[ExchangeRow]] = {}
    for row in case.exchanges("kind", "dns"):
        if row["answered_ns"] is not None and row["server"]:
            by_server.setdefault(row["server"], []).append(row)
    found = {server: repeated_of(case, rows) for server, rows in by_server.items()}
    return {server: again for server, again in found.items() if len(again.late) >= REPEATED_MIN}


def repeated_of(case: Case, rows: Sequence[ExchangeRow]) -> Repeated:
    """Returns those of the answered questions to one server."""
    fast_ns = min(row["waited_ns"] or 0 for row in rows)
    again = [row for row in rows if row["attempts"] > 1 and (row["waited_ns"] or 0) >= REPEATED_NS]
    pairs = [(row, since_repeat_ns(case, row, fast_ns)) for row in again]
    late = [(row, ns) for row, ns in pairs if ns <= NEAR_SHARE * (row["waited_ns"] or 0)]
    return Repeated([row for row, _ in late], sorted(ns for _, ns in late), len(rows))


@cause(
    code="dns-repeated",
    title="DNS answers come only to a repeated query",
    sentence="{count} of {total:DNS question} to {server} {probably}lost the first query or its answer: clients waited {waits} "
    "each until they asked again, and then had the answer {fast} later. That delayed lookups by {waited}.",
    advice="Look for what drops UDP 53 on the way to {server}: a full connection table (`conntrack -S`: insert_failed, drop), a "
    "rate limit, a resolver of which a forwarder is down. `options timeout:1 attempts:3` shortens the waits.",
    shows="At least two questions to a server get their answer at a repeat of the query, 0.9 s or more after the first, and "
    "within a fifth of that wait. They cost clients more than questions that were asked once (finding dns-slow).",
    rivals={
        "slow-dns": "the answer follows the repeat, not the first query",
        "dns-one-type": "not always one of two types",
        "dns-silent": "the server answers in the end",
    },
    unknown="Whether the query or its answer was lost, or the server or its forwarder drops some.",
    explains=("dns-slow",),
)
def dns_repeated(case: Case) -> Matches:
    for each in case.findings("dns-slow"):
        flows = {flow for flow, _ in each.finding.flows}
        slow_ns = union_ns(waits_of(list(chain.from_iterable(slow_names(case, flows).values())))) or 0.0
        for server, again in repeated_queries(case).items():
            waited_ns = union_ns(waits_of(again.late)) or 0.0
            if waited_ns >= max(slow_ns, REPEATED_NS) and not flows.isdisjoint(row["flow"] for row in again.late):
                yield repeated_match(each, server, again)
                break


def repeated_match(finding: Numbered, server: str, again: Repeated) -> Match:
    """Returns the match about questions to a server whose first queries are lost."""
    late, waited_ns = again.late, union_ns(waits_of(again.late)) or 0.0
    return Match(
        certainty="likely",
        place="path",
        findings=[finding],
        flows=list(dict.fromkeys(row["flow"] for row in late if row["flow"] is not None)),
        waited_ns=waited_ns,
        saving_ns=waited_ns,
        members=len(late),
        frames=packets_of(late),
        filter="dns.retransmission || dns.flags.response == 1",
        proof=f"{plural(sum(row['attempts'] for row in late), 'query', 'queries')} for {plural(len(late), 'answer')}, each right "
        "after the last query",
        excluded={"slow-dns": "each answer follows the repeat at once", "dns-silent": "each question was answered"},
        undecided={"random-loss": f"a capture at {server}: do the first queries arrive, and does it answer them?"},
        count=len(late),
        total=again.total,
        server=server,
        waits=times_str([row["waited_ns"] or 0 for row in late]),
        fast=show_duration(again.since_ns[len(late) // 2]),
        waited=show_duration(waited_ns),
    )


@cause(
    code="slow-dns",
    title="Slow DNS server",
    sentence="The DNS server {server} {what}: clients waited {waited} for names{fastest}.",
    advice="Use a resolver that caches near the clients, and look at the forwarders of {server}.",
    shows="Questions that were asked once are answered at least 100 ms later, for at least 1 s in all (finding dns-slow). "
    "Proven if the same server answered another question in a fifth of the median. Five or more answers that all take as long, "
    "to 10%, are of a server that is far away.",
    rivals={
        "bufferbloat": "no transfer of the client fills a queue at that time",
        "long-path": "another answer of that server came much sooner",
        "slow-server": "the server is one of names",
    },
    unknown="Whether the client waited for the name; which server behind the resolver was slow.",
    explains=("dns-slow",),
)
def slow_dns(case: Case) -> Matches:
    for each in case.findings("dns-slow"):
        servers = slow_names(case, {flow for flow, _ in each.finding.flows})
        if servers:
            yield dns_match(case, each, *max(servers.items(), key=lambda server: len(server[1])))


def waits_for(case: Case, server: str) -> list[int]:
    """Returns how long the answers of a DNS server took, ns."""
    rows = (row for row in case.exchanges("kind", "dns") if row["server"] == server)
    return [row["waited_ns"] for row in rows if row["waited_ns"]]


def dns_match(case: Case, finding: Numbered, server: str, rows: Sequence[ExchangeRow]) -> Match:
    """Returns the match about the late answers of a DNS server."""
    times = sorted(float(row["waited_ns"] or 0) for row in rows)
    answers = waits_for(case, server)
    quickest, waited_ns = show_duration(min(answers)), union_ns(waits_of(rows))
    is_near = min(answers) <= NEAR_SHARE * middle(times)
    is_far = len(times) >= FAR_ANSWERS and is_equal([*times, *map(float, answers)], FAR_WITHIN)
    return Match(
        certainty="proven" if is_near else "likely",
        place="path" if is_far else "server",
        severity="info" if finding.finding.severity == "info" else None,
        findings=[finding],
        flows=list(dict.fromkeys(row["flow"] for row in rows if row["flow"] is not None)),
        waited_ns=waited_ns,
        members=len(rows),
        frames=packets_of(rows),
        excluded={"long-path": f"it answered another question in {quickest}"} if is_near else {},
        undecided={} if is_near else {"long-path": f"`ping {server}`: the round trip"},
        server=server,
        waited=show_duration(waited_ns or 0.0),
        fastest=f"; its quickest answer took {quickest}" if is_near else "",
        what=late_str(times, is_near, is_far),
    )


def late_str(times: list[float], is_near: bool, is_far: bool) -> str:
    """Returns what a DNS server took for its late answers, and whether it or the way to it did."""
    words = took(times)
    questions = str(words["requests"]).replace("request", "question")
    if is_far:
        return f"is probably {words['took']} away, as {questions} took that long"
    return f"{'' if is_near else 'probably '}took {words['took']}{words['median']} to answer {questions}"


def slow_match(case: Case, slows: Sequence[Slow], severity: Severity | None) -> Match:
    """Returns the match about one or several slow servers."""
    numbers = list(dict.fromkeys(number for slow in slows for number in slow.numbers))
    times = sorted(chain.from_iterable(slow.server.slow for slow in slows))
    waited_ns = union_ns(chain.from_iterable(slow.server.waited for slow in slows)) or 0.0
    whole_ns = math.fsum(sum(case.transfers.turns.account(number).values()) for number in numbers)
    doubt = doubt_of(case, slows)
    is_open = bool(doubt) or any(slow.is_held for slow in slows)
    return Match(
        certainty="likely" if is_open else "proven",
        place="server",
        severity=severity_of(waited_ns, whole_ns, severity),
        findings=[slow.numbered for slow in slows],
        flows=numbers,
        waited_ns=waited_ns,
        saving_ns=waited_ns if all(slow.server.is_opened for slow in slows) else None,
        members=len(times),
        filter=slows[0].numbered.finding.filter,
        proof="each request was complete and its round trip over long before the answer came",
        excluded={"nagle-delack": f"waits from {show_duration(times[0])} to {show_duration(times[-1])}"},
        undecided={"slow-dependency": f"a capture at {slows[0].host}: does it ask another server meanwhile?"},
        servers=servers_str(slows),
        host=slows[0].host,
        spent=parts_str(math.fsum(times), whole_ns),
        network=network_str(slows),
        together=doubt or together_str(slows),
        **took(times),
    )


def severity_of(waited_ns: float, whole_ns: float, severity: Severity | None) -> Severity | None:
    """Returns the severity of waits, which are a note if they are little of the time."""
    return "info" if waited_ns < NOTE_SHARE * whole_ns else severity


def doubt_of(case: Case, slows: Sequence[Slow]) -> str:
    """Returns what else the waits may be; empty if nothing shows that."""
    if all(may_confirm(case, slow) for slow in slows):
        return ", unless those only confirm what it sends by itself"
    flows = {
        turns.flow
        for slow in slows
        for turns in slow.server.turns
        if max(turns.known_ns("server_ns"), default=0) >= SLOW_NS
    }
    losing = {each.transfer.row["flow"] for each in lossy_transfers(case) if each.place == "upstream"}
    is_few = sum(len(slow.server.slow) for slow in slows) <= FEW_ANSWERS
    return ", unless the beginning of its answer was lost, as later parts were" if is_few and flows <= losing else ""


def servers_str(slows: Sequence[Slow]) -> str:
    """`The server app.example:80`, or `3 servers (app.example:80, …)`."""
    name = slows[0].name
    return f"The server {name}" if len(slows) == 1 else f"{len(slows):,} servers ({name}, …)"


def ends_together(slow: Slow) -> list[list[Span]]:
    """Returns the waits for a server in groups that end at one moment, those of one connection once."""
    waits = sorted(slow.server.waited, key=lambda wait: wait.end_ns)
    groups: list[list[Span]] = []
    for wait in waits:
        if groups and wait.end_ns - groups[-1][0].end_ns <= END_SHARE * wait.ns:
            groups[-1].append(wait)
        else:
            groups.append([wait])
    return groups


def together_str(slows: Sequence[Slow]) -> str:
    """`, those of 6 connections together at 4 moments: …`: a program that stops; empty if it answers one by one, and of several
    servers."""
    slow, groups = slows[0], ends_together(slows[0]) if len(slows) == 1 else []
    count = sum(map(len, groups))
    if len(slow.server.flows) < TOGETHER_FLOWS or len(groups) < TOGETHER_MOMENTS or count < TOGETHER_EACH * len(groups):
        return ""
    members, moments = f"{len(slow.server.flows):,}", f"{len(groups):,}"
    return f", those of {members} connections together at {moments} moments, as if the whole program stopped"


def network_str(slows: Sequence[Slow]) -> str:
    """Returns `; the network took 20 ms`, of all requests of these connections; empty if it is unknown."""
    network = [ns for slow in slows for turns in slow.server.turns for ns in turns.known_ns("network_ns")]
    return f"; the network took {show_duration(math.fsum(network))}" if network else ""
