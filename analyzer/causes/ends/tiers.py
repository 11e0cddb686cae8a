# SPDX-License-Identifier: Apache-2.0
"""Servers that wait for another one behind them: a proxy for its back end, a program for its database.

A server that asks from the address at which it answers is known by it. One that asks from another address, as a proxy between
two networks does, is known by times: each slow request has one behind it that begins later and is answered sooner. Requests
that only happen at the same time have not, once they are shifted by a part of the wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import CERTAINTIES, PROBABLY, Certainty, Match, Matches, cause
from wiretale.analyzer.causes.ends.inquiries import (
    DNS,
    NESTED_REQUESTS,
    NESTED_TIME,
    Inquiry,
    inquiries_of,
    is_nested,
    pairs_of,
    pools_of,
    shared_ns,
    together,
)
from wiretale.analyzer.causes.ends.servers import Slow, slow_of
from wiretale.analyzer.causes.ends.talk import middle, parts_str
from wiretale.analyzer.findings.model import Words, endpoint_str
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.cost import Span

SERVERS_MAX = 10
PAIRS_MIN, PAIRS_SURE = 3, 8
SHIFTS = (-2.3, -1.6, -0.7, -0.37, 0.37, 0.7, 1.6, 2.3)  # of the usual wait
CHANCE_MOST, CHANCE_SURE = 0.5, 0.1  # of the pairs, after the best of these shifts
SPANS_MAX = 2000
PROXY_OWN = 0.1  # of the wait: a program that only passes on needs no more itself


class Behind(NamedTuple):
    """What a slow server waits for."""

    inquiry: Inquiry
    certainty: Certainty
    is_proxy: bool = False


def chances(waits: Sequence[Span], inner: Sequence[Span], pairs: int) -> list[float]:
    """Returns the shares of some pairs that are left if the others are shifted; both must ascend."""
    usual = middle([wait.ns for wait in waits])
    return [len(pairs_of(waits, inner, share * usual)) / pairs for share in SHIFTS]


def follows(slow: Slow, inquiry: Inquiry) -> Certainty | None:
    """Returns how certain it is that requests are those that slow ones wait for, by their times; None if they are not. Those of
    the same host need less: it asks for somebody."""
    least = max(PAIRS_MIN, NESTED_REQUESTS * min(len(slow.server.waited), SPANS_MAX))
    if len(inquiry.spans) < least:
        return None
    waits, inner = sorted(slow.server.waited)[:SPANS_MAX], sorted(inquiry.spans)[:SPANS_MAX]
    pairs = len(pairs_of(waits, inner))
    if pairs < least:
        return None
    shares = chances(waits, inner, pairs)
    if inquiry.client == slow.host:
        return "proven" if math.fsum(shares) <= CHANCE_MOST * len(shares) else None
    if max(shares) > CHANCE_MOST:
        return None
    return "proven" if pairs >= PAIRS_SURE and max(shares) <= CHANCE_SURE else "likely"


def best_of(slow: Slow, candidates: Sequence[Inquiry]) -> Inquiry:
    """Returns the requests that explain most of the slow ones one by one, else most of their time; of the fewest servers."""
    waits = sorted(slow.server.waited)[:SPANS_MAX]

    def cover(inquiry: Inquiry) -> tuple[int, float, int]:
        pairs = pairs_of(waits, sorted(inquiry.spans)[:SPANS_MAX])
        return len(pairs), 0.0 if pairs else math.fsum(shared_ns(waits, inquiry.spans)), -len(inquiry.servers)

    return max(candidates, key=cover)


def inner_ns(waits: Sequence[Span], inquiry: Inquiry) -> float:
    """Returns the time of some waits that requests took: that of one in each, or of all within them."""
    waits, inner = sorted(waits)[:SPANS_MAX], sorted(inquiry.spans)[:SPANS_MAX]
    pairs = pairs_of(waits, inner)
    if len(pairs) >= NESTED_REQUESTS * len(waits):
        return math.fsum(inner[place].ns for _, place in pairs)
    return math.fsum(shared_ns(waits, inquiry.spans))


def passes_on(case: Case, slow: Slow, every: Sequence[Inquiry], inquiry: Inquiry) -> bool:
    """Returns whether a slow server only passes on what it is inquiry: one request for each, of the same size or HTTP too, and
    hardly any time of its own."""
    fronts = [each for each in every if each.servers == (slow.host,) and each.port(case) == slow.end[1]]
    outer = together(fronts) if fronts else None
    if outer is None or inquiry.kind == DNS or not inquiry.flows:
        return False
    order = sorted(range(len(inquiry.spans)), key=lambda row: inquiry.spans[row])[:SPANS_MAX]
    inner = [inquiry.spans[row] for row in order]
    pairs = pairs_of(outer.spans[:SPANS_MAX], inner)
    own_ns = math.fsum(outer.spans[number].ns - inner[place].ns for number, place in pairs)
    if len(pairs) < NESTED_REQUESTS * len(outer.spans) or own_ns > PROXY_OWN * math.fsum(
        outer.spans[number].ns for number, _ in pairs
    ):
        return False
    equal = sum(outer.sizes[number] == inquiry.sizes[order[place]] for number, place in pairs)
    both = {case.flow(inquiry.flows[0])["application"], slow.server.flows[0]["application"]}
    return equal >= NESTED_REQUESTS * len(pairs) or both == {"http"}


def elsewhere(case: Case, slow: Slow, every: Sequence[Inquiry], slow_hosts: AbstractSet[str]) -> list[Inquiry]:
    """Returns what other hosts than a slow server and its clients asked slow servers."""
    clients = {slow.host, *(inquiry.client for inquiry in every if slow.host in inquiry.servers)}
    servers = slow_hosts - {slow.host}
    inquiries = [
        each for each in every if each.client not in clients and each.kind != DNS and servers & set(each.servers)
    ]
    return [*inquiries, *pools_of(case, inquiries)]


def behind_of(case: Case, slow: Slow, every: Sequence[Inquiry], slow_hosts: AbstractSet[str]) -> Behind | None:
    """Returns what a slow server waits for; None if the file does not show it."""
    direct = [inquiry for inquiry in every if inquiry.client == slow.host and slow.host not in inquiry.servers]
    direct += pools_of(case, direct)
    if nested := [inquiry for inquiry in direct if is_nested(slow.server.waited, inquiry.spans)]:
        inquiry, certainty = best_of(slow, nested), CERTAINTIES[0]
    elif timed := [inquiry for inquiry in direct + elsewhere(case, slow, every, slow_hosts) if follows(slow, inquiry)]:
        inquiry = best_of(slow, timed)
        certainty = follows(slow, inquiry) or CERTAINTIES[1]
    else:
        return None
    return Behind(inquiry, certainty, passes_on(case, slow, every, inquiry))


def backs_of(case: Case, slow: Slow, behind: Behind | None, slows: Sequence[Slow]) -> list[Slow]:
    """Returns the slow servers among those that a slow server asks, if hardly anybody else waited for them."""
    if behind is None:
        return []
    names = {endpoint_str(server, behind.inquiry.port(case)) for server in behind.inquiry.servers}
    return [
        back
        for back in slows
        if back is not slow
        and endpoint_str(*back.end) in names
        and math.fsum(shared_ns(slow.server.waited, back.server.waited))
        >= NESTED_REQUESTS * math.fsum(back.server.slow)
    ]


class Tier(NamedTuple):
    """A slow server that clients wait for, what it waits for in the end, and the slow servers on the way."""

    front: Slow
    behind: Behind
    backs: list[Slow]


def tiers_of(case: Case) -> Iterator[Tier]:
    """Yields the slow servers that wait for others, without those that only a server in front of them waits for."""
    slows = slow_of(case)[:SERVERS_MAX]
    hosts = {slow.host for slow in slows}
    every = inquiries_of(case, hosts) if slows else []
    behind = {slow.numbered.number: behind_of(case, slow, every, hosts) for slow in slows}
    backs = {slow.numbered.number: backs_of(case, slow, behind[slow.numbered.number], slows) for slow in slows}
    hidden = {back.numbered.number for group in backs.values() for back in group}
    for slow in slows:
        last = behind[slow.numbered.number]
        if last is None or slow.numbered.number in hidden:
            continue
        step = passed = backs[slow.numbered.number]
        while len(step) == 1 and (deeper := behind[step[0].numbered.number]) is not None:
            last = deeper._replace(is_proxy=last.is_proxy and deeper.is_proxy)
            step = [back for back in backs[step[0].numbered.number] if back not in passed]
            passed = [*passed, *step]
        yield Tier(slow, last, passed)


def subject_of(case: Case, tier: Tier, is_most: bool, is_proxy: bool) -> str:
    """Returns which servers took the time."""
    inquiry, count = tier.behind.inquiry, len(tier.behind.inquiry.servers)
    front, name, probably = tier.front.name, inquiry.name(case), PROBABLY[tier.behind.certainty]
    if is_proxy and count == 1:
        return f"The server behind the proxy {front}, {name}, {probably}took the time"
    if is_proxy:
        return f"The {count:,} servers behind the proxy {front} ({name}, …) {probably}took the time"
    servers = name if count == 1 else f"{count:,} servers behind it ({name}, …)"
    return f"{front} is {probably}slow {'' if is_most else 'in part '}because of {servers}"


def words_of(case: Case, tier: Tier) -> Words:
    """Returns the words of the sentence."""
    front, inquiry = tier.front, tier.behind.inquiry
    whole_ns, behind_ns = math.fsum(front.server.slow), inner_ns(front.server.waited, inquiry)
    is_most = behind_ns >= NESTED_TIME * whole_ns
    is_own, is_proxy = inquiry.client == front.host, tier.behind.is_proxy and is_most
    return {
        "subject": subject_of(case, tier, is_most, is_proxy),
        "whose": "the proxy's" if is_proxy else "its",
        "nested": parts_str(behind_ns, whole_ns),
        "questions": ("its own " if is_own else "") + ("DNS questions" if inquiry.kind == DNS else "requests"),
        "asker": "" if is_own else f"of {inquiry.client} ",
        "other": "it" if len(inquiry.servers) == 1 else "them",
        "each": show_duration(middle([span.ns for span in inquiry.spans])),
        "unanswered": f", of which {len(inquiry.unanswered):,} got no answer" if inquiry.unanswered else "",
        "itself": "" if is_most else f"; it took the other {show_duration(whole_ns - behind_ns)} itself",
        "repair": repair_of(case, inquiry),
    }


def repair_of(case: Case, inquiry: Inquiry) -> str:
    """Returns what to do about a server behind another one."""
    name = inquiry.name(case)
    if inquiry.kind == DNS:
        return f"Repair or avoid the lookups at {name} (sshd `UseDNS no`; hosts, a cache)."
    return f"Tune {name}: its slow query log, its load, its own dependencies."


@cause(
    code="slow-dependency",
    title="A server waits for another one",
    sentence="{subject}: {nested} of {whose} answers lie inside {questions} {asker}to {other}, {each} each{unanswered}{itself}.",
    advice="{repair}",
    shows="While the server lets its clients wait, it waits for another server itself, or for several at one port. In at "
    "least 80% of the slow requests, such requests take at least 70% of the wait. Or each of 80%, three at least, encloses a "
    "request of its own that takes at least 30% of the time, from the same host or from one that asks a slow server. That is "
    "no coincidence if fewer than half enclose one once the times are shifted by 0.4 to 2.3 waits. The server is a proxy if "
    "it needs a tenth of the time itself at most, and both sides have equal sizes or HTTP. The time counts once, for both "
    "servers.",
    rivals={
        "slow-server": "the server's own part of the wait is small, or told beside",
        "nagle-delack": "the server waits for an answer, not for an ACK",
    },
    unknown="Needs a capture at that server, or one that has both its sides. A proxy that asks from another address and has "
    "many requests open at once.",
    explains=("dns-slow",),
)
def slow_dependency(case: Case) -> Matches:
    for tier in tiers_of(case):
        front, inquiry = tier.front, tier.behind.inquiry
        waits, words = front.server.waited, words_of(case, tier)
        within, whole_ns = [ns for ns in shared_ns(waits, inquiry.spans) if ns], math.fsum(front.server.slow)
        name = inquiry.name(case)
        decides = f"a capture at {front.host}: which request makes it ask {name}"
        yield Match(
            certainty=tier.behind.certainty,
            place="server",
            findings=[front.numbered, *(back.numbered for back in tier.backs)],
            flows=list(
                dict.fromkeys([*front.numbers, *(n for back in tier.backs for n in back.numbers), *inquiry.flows])
            ),
            waited_ns=front.waited_ns,
            members=len(waits),
            proof=f"{len(within):,} of {plural(len(waits), 'slow answer')} came when {name} had answered, or was given up",
            excluded={
                "slow-server": f"{show_duration(inner_ns(waits, inquiry))} of {show_duration(whole_ns)} are not its own",
            },
            undecided={} if tier.behind.certainty == "proven" else {"slow-server": decides},
            **words,
        )
