# SPDX-License-Identifier: Apache-2.0
"""Answers that come later than their client waits: it asks again meanwhile, and each answer belongs to an earlier request."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import Requests, Talk, is_equal, middle, talks
from wiretale.analyzer.findings.exchanges.turns import server_end
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.evidence import Cited

TURNS_LEAST = 10  # of a connection, of which most have a request of the usual size
USUAL_SHARE = 0.5
WAITING_LEAST = 3  # requests at once, the first of which is late
TIMER_NS = 100_000_000  # the shortest that counts
LATE_TIMES = 5.0  # of the usual answer


class Late(NamedTuple):
    """A request that was not answered before the client asked again, and how many were waiting in the end."""

    requests: Requests
    number: int  # of the turn
    waiting: int
    timer_ns: float  # between the requests
    waited_ns: float  # of the first of them

    def cited(self, base_ns: int) -> list[Cited]:
        """Returns its packets."""
        return self.requests.cited(base_ns, self.number)


def usual(sizes: list[float]) -> float | None:
    """Returns the most frequent size, if half of them or more have it."""
    likely, count = Counter(sizes).most_common(1)[0] if sizes else (0.0, 0)
    return likely if likely and count >= USUAL_SHARE * len(sizes) else None


def late_of(requests: Requests) -> list[Late]:
    """Returns the late answers of a connection whose requests all have one size: a turn of three requests or more, spread over
    pauses of the client, all of which are answered afterwards."""
    columns = requests.columns
    request = usual(requests.times("request_bytes")) if len(requests) >= TURNS_LEAST else None
    if request is None:
        return []
    late = []
    for number, (size, paused, server_ns) in enumerate(
        zip(columns["request_bytes"], columns["request_pause_ns"], columns["server_ns"], strict=True)
    ):
        waiting = size / request
        if waiting < WAITING_LEAST or waiting != int(waiting) or not paused > 0:
            continue
        timer_ns, waited_ns = paused / (waiting - 1), paused + (server_ns if server_ns == server_ns else 0.0)
        if timer_ns >= TIMER_NS:
            late.append(Late(requests, number, int(waiting), timer_ns, waited_ns))
    return late


@cause(
    code="late-answers",
    title="Answers later than the client waits",
    sentence="{server} answers too late{times}: it took {took}, but the client asks again after {timer}, so {waiting} requests "
    "wait at once and answers belong to earlier ones. Its usual answer takes {usual}.",
    advice="Find out what {host} does at these moments (its cycle, its serial line, other clients), and let the client wait "
    "longer than {longest}, or match answers by their transaction number.",
    shows="On a connection with requests of one size, the client sends at least three, 100 ms or more apart, before the first "
    "is answered. The answer takes five times as long as usual.",
    rivals={
        "client-pause": "the server owes an answer in these pauses",
        "slow-server": "the client did not wait for the answer: it asked again",
    },
    unknown="What the server did; whether the client gives answers to the wrong requests.",
    explains=("slow-server",),
)
def late_answers(case: Case) -> Matches:
    for talk in talks(case):
        late = [each for requests in talk.requests for each in late_of(requests)]
        usual_ns = middle(talk.times("server_ns"))
        waits = sorted(each.waited_ns for each in late)
        if late and waits[0] >= LATE_TIMES * usual_ns and not talk.is_parallel:
            yield late_match(case, talk, late, usual_ns)


def late_match(case: Case, talk: Talk, late: list[Late], usual_ns: float) -> Match:
    """Returns the match of the late answers of a server."""
    waits, base_ns = sorted(each.waited_ns for each in late), case.transfers.base_ns
    longest = show_duration(waits[-1])
    took = longest if is_equal(waits, 0.05) else f"{show_duration(waits[0])} to {longest}"
    return Match(
        certainty="proven",
        place="server",
        flows=talk.numbers,
        failed=sum(each.waiting for each in late),
        attempts=talk.count + sum(each.waiting - 1 for each in late),
        waited_ns=math.fsum(waits),
        members=len(late),
        frames=[packet for each in late[:3] for packet in each.cited(base_ns)],
        proof=f"{plural(sum(each.waiting for each in late), 'request')} in {plural(len(late), 'wait')}, answered together",
        excluded={
            "client-pause": "the first request had no answer in these pauses",
            "slow-server": f"the client asked again after {show_duration(middle([each.timer_ns for each in late]))}",
        },
        server=talk.server,
        host=server_end(talk.flows[0], talk.flows[0]["client"])[0],
        times=f" {len(late):,} times" if len(late) > 1 else "",
        took=took,
        timer=show_duration(middle([each.timer_ns for each in late])),
        waiting=max(each.waiting for each in late),
        usual=show_duration(usual_ns),
        longest=longest,
    )
