# SPDX-License-Identifier: Apache-2.0
"""SIP over UDP: answers whose ACK never comes, requests without an answer, and calls or registrations that are refused."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import times_str
from wiretale.analyzer.causes.services.dialogs import facts_of
from wiretale.analyzer.causes.unanswered.host_down import answering_hosts
from wiretale.analyzer.findings.exchanges.exchange_rows import named
from wiretale.analyzer.findings.hosts.neighbors import senders_of
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

PORTS = range(5060, 5081)
REPEATS_MIN = 4  # after 0.5, 1.5 and 3.5 s (RFC 3261 section 17.1.1.2)
HUNG_UP_NS = 5_000_000_000  # a BYE so soon after the last repeat gives the call up
CHALLENGES, CHALLENGES_MIN = ("401", "407"), 2
METHODS, IN_CALLS = ("INVITE", "REGISTER"), ("INVITE", "UPDATE", "BYE")
#: final responses that refuse, and no state of the called party (busy, does not answer, declines)
MEANINGS = {
    "400": "bad request",
    "401": "wrong user or password",
    "403": "forbidden",
    "404": "not found",
    "405": "method not allowed",
    "407": "wrong user or password",
    "408": "timeout",
    "415": "unsupported media type",
    "420": "bad extension",
    "423": "expiry too short",
    "481": "no such call",
    "482": "loop",
    "483": "too many hops",
    "484": "incomplete number",
    "488": "no common codec or media",
    "500": "server error",
    "501": "not implemented",
    "502": "bad gateway",
    "503": "service unavailable",
    "504": "timeout of another server",
    "513": "message too large",
    "606": "no acceptable media",
}
NOUNS = {"INVITE": "call", "REGISTER": "registration"}


def by_ends(rows: Iterable[ExchangeRow]) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns exchanges by client and server."""
    ends: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in rows:
        ends[row["client"] or "?", row["server"] or "?"].append(row)
    return ends


def hung_up(requests: Sequence[ExchangeRow], waiting: ExchangeRow) -> bool:
    """Returns whether the end that waits for the ACK sends BYE to the other end soon after its last repeat."""
    end_ns = (waiting["asked_ns"] or 0) + (waiting["waited_ns"] or 0)
    return any(
        row["type"] == "BYE"
        and (row["client"], row["server"]) == (waiting["client"], waiting["server"])
        and abs((row["asked_ns"] or 0) - end_ns) <= HUNG_UP_NS
        for row in requests
    )


@cause(
    code="sip-no-ack",
    title="The ACK of a call never comes",
    sentence="{server} answered {calls} of {caller} and never got the ACK: it repeated its 200 OK {count} times in {time}"
    "{end}.",
    advice="Compare the Contact and Record-Route of the 200 OK with what {caller} can reach, and look where it sends the ACK: a "
    "private address in Contact, a SIP ALG or a NAT entry that is gone sends it astray.",
    shows="A final 2xx response to an INVITE is sent at least four times without an ACK from the caller. RFC 3261 section "
    "13.3.1.4: it is repeated for 32 s, then the call ends.",
    rivals={
        "sip-silent": "the INVITE was answered, and the caller's packets come",
        "one-direction": "the INVITE of the caller is in the capture",
    },
    unknown="Whether the caller sends no ACK, or sends it to an address where it is lost.",
    explains=("one-way",),
)
def sip_no_ack(case: Case) -> Matches:
    rows = [
        row
        for row in case.exchanges("kind", "sip_ack")
        if row["outcome"] == "unanswered" and row["type"] == "2xx" and row["attempts"] >= REPEATS_MIN
    ]
    requests = case.exchanges("kind", "sip") if rows else []
    for (server, caller), waiting in by_ends(rows).items():
        repeats = sum(row["attempts"] for row in waiting)
        longest = max(row["waited_ns"] or 0 for row in waiting)
        yield Match(
            certainty="proven",
            place="client",
            failed=len(waiting),
            attempts=len(waiting),
            filter=f'sip && ip.addr == {caller} && sip.CSeq.method == "INVITE"' if ":" not in caller else "sip",
            proof=f"{plural(repeats, 'copy', 'copies')} of 200 OK, and no ACK in the capture",
            excluded={
                "sip-silent": "the INVITE was answered",
                "one-direction": "the INVITE of the caller is in the capture",
            },
            server=server,
            caller=caller,
            calls="a call" if len(waiting) == 1 else plural(len(waiting), "call"),
            count=f"{repeats - len(waiting):,}",
            time=show_duration(longest),
            end=" and then hung up" if any(hung_up(requests, row) for row in waiting) else "",
            **facts_of(case, waiting, PORTS),
        )


def silent_requests(case: Case) -> list[ExchangeRow]:
    """Returns the requests that were repeated without a response."""
    return [
        row
        for row in case.exchanges("kind", "sip")
        if row["outcome"] == "unanswered" and row["attempts"] >= REPEATS_MIN and row["type"] in (*METHODS, "OPTIONS")
    ]


@cause(
    code="sip-silent",
    title="SIP requests get no response",
    sentence="{server} answers no SIP {method} of {client}: {sent} in {time} got no response{beside}.",
    advice="Capture at {server}: whether the requests arrive. If they do, it ignores them (an unknown peer, a stopped service); "
    "else a firewall drops UDP 5060, or requests above the MTU are lost in fragments.",
    shows="An INVITE, REGISTER or OPTIONS, sent at least four times, gets no response, not even a provisional one. Meanwhile "
    "the server or others send packets to the client.",
    rivals={
        "one-direction": "other packets come to the client, or from the server",
        "sip-no-ack": "no response came at all",
        "fragments-dropped": "the requests arrive whole",
    },
    unknown="Whether the server ignores the requests, or they or the responses are dropped on the way.",
    explains=("one-way",),
)
def sip_silent(case: Case) -> Matches:
    for (client, server), rows in by_ends(silent_requests(case)).items():
        is_up = server in senders_of(case.transfers)
        if not is_up and not answering_hosts(case, client):
            continue
        facts, sent = facts_of(case, rows, PORTS), sum(row["attempts"] for row in rows)
        if case.flows_of("fragments-dropped").intersection(facts["flows"]):
            continue
        case.claimed.update(facts["flows"])
        yield Match(
            certainty="proven",
            place="server",
            failed=len(rows),
            attempts=len(rows),
            filter="sip",
            proof=f"{plural(sent, 'request')} without a response or an ICMP error",
            excluded={"one-direction": f"packets {'of ' + server if is_up else 'to the client'} are in the capture"},
            server=server,
            client=client,
            method=named([str(row["type"]) for row in rows]),
            sent=plural(sent, "datagram"),
            time=show_duration(facts["waited_ns"] or 0),
            beside=", although it sends other packets" if is_up else "",
            **facts,
        )


def refusals(case: Case) -> Iterator[tuple[str, list[ExchangeRow]]]:
    """Yields the final code of each call or registration that is refused in the end, and its requests."""
    groups: dict[tuple[str | None, ...], list[ExchangeRow]] = defaultdict(list)
    for row in case.exchanges("kind", "sip"):
        if row["type"] in METHODS and row["code"]:
            groups[row["client"], row["server"], row["type"], row["name"]].append(row)
    for rows in groups.values():
        last = rows[-1]["code"] or ""
        challenged = sum(row["code"] in CHALLENGES for row in rows)
        if any(row["outcome"] == "answered" for row in rows) or last not in MEANINGS:
            continue
        if last not in CHALLENGES or challenged >= CHALLENGES_MIN:
            yield last, rows


@cause(
    code="sip-refused",
    title="Calls or registrations are refused",
    sentence="{server} refuses {count} of {client} with {code} ({meaning}){tries}.",
    advice="{advice}",
    shows="The last response to an INVITE or REGISTER of a target is a client or server error, and none of its requests "
    "succeeded. 401 and 407 count from the second on, because the first asks for the password. Busy, declined, cancelled and "
    "unanswered calls do not count.",
    rivals={"sip-silent": "the server answers"},
    unknown="The reason in the server: its log, or the Reason and Warning headers of the response.",
)
def sip_refused(case: Case) -> Matches:
    groups: dict[tuple[str, str, str, str], list[list[ExchangeRow]]] = defaultdict(list)
    for code, rows in refusals(case):
        groups[rows[0]["client"] or "?", rows[0]["server"] or "?", rows[0]["type"] or "", code].append(rows)
    for (client, server, method, code), targets in groups.items():
        rows = [row for target in targets for row in target]
        yield Match(
            certainty="proven",
            place="server",
            failed=len(targets),
            attempts=len(targets),
            filter=f"sip.Status-Code == {code}",
            proof=f"{plural(len(rows), 'request')}, the last response to each target {code}",
            excluded={"sip-silent": "the server answers"},
            server=server,
            client=client,
            code=code,
            meaning=MEANINGS[code],
            count=f"the {NOUNS[method]} to {named([str(rows[0]['name'])], 1)}"
            if len(targets) == 1
            else plural(len(targets), NOUNS[method]),
            tries=f" in {plural(len(rows), 'try', 'tries')}" if len(rows) > len(targets) else "",
            advice=advice_of(code, server),
            **facts_of(case, rows, PORTS),
        )


class Change(NamedTuple):
    """A request that would have changed a running call or kept it alive, and that the other end refused."""

    row: ExchangeRow
    since_ns: int  # the call was answered


def calls_of(rows: Iterable[ExchangeRow]) -> dict[frozenset[str | None], list[ExchangeRow]]:
    """Returns the SIP requests of calls by their two ends, in order of time."""
    ends: dict[frozenset[str | None], list[ExchangeRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["asked_ns"] or 0):
        if row["type"] in IN_CALLS:
            ends[frozenset((row["client"], row["server"]))].append(row)
    return ends


def is_hung_up(rows: Sequence[ExchangeRow], refused: ExchangeRow) -> bool:
    """Returns whether a BYE with the target of a refused request follows at once: then both are of one call."""
    asked_ns = refused["answered_ns"] or 0
    return any(
        row["type"] == "BYE"
        and (row["client"], row["name"]) == (refused["client"], refused["name"])
        and 0 <= (row["asked_ns"] or 0) - asked_ns <= HUNG_UP_NS
        for row in rows
    )


def refused_changes(case: Case) -> Iterator[Change]:
    """Yields the refused requests within calls that end by a BYE of the same end right after the refusal."""
    for rows in calls_of(case.exchanges("kind", "sip")).values():
        answered_ns: int | None = None
        for row in rows:
            if row["type"] == "INVITE" and row["outcome"] == "answered":
                answered_ns = row["asked_ns"]
            elif row["type"] != "BYE" and answered_ns and row["code"] in MEANINGS and is_hung_up(rows, row):
                yield Change(row, (row["asked_ns"] or 0) - answered_ns)


@cause(
    code="sip-change-refused",
    title="A running call ends because a change of it is refused",
    sentence="{server} refuses the {method} of {client} in {calls} with {code} ({meaning}), {after} after the call began, and "
    "{client} then hangs up.",
    advice="{advice} The request came at a fixed time if a session timer sent it (RFC 4028; Session-Expires), else because of a "
    "hold, a transfer, T.38 or another codec; a refused change should leave the call as it was (RFC 3261 section 14.1).",
    shows="An INVITE or UPDATE is refused by a client or server error after an INVITE between the same ends succeeded, and its "
    "sender sends BYE to the same target within 5 s of the refusal.",
    rivals={
        "sip-refused": "the call was answered before, and runs",
        "sip-no-ack": "the response to the refused request was acknowledged, or the call lasted for longer",
    },
    unknown="Why it is refused: the Reason and Warning headers of the response, and the SDP of both offers.",
)
def sip_change_refused(case: Case) -> Matches:
    groups: dict[tuple[str, str, str, str], list[Change]] = defaultdict(list)
    for change in refused_changes(case):
        row = change.row
        groups[row["client"] or "?", row["server"] or "?", row["type"] or "", row["code"] or ""].append(change)
    for (client, server, method, code), changes in groups.items():
        yield Match(
            certainty="proven",
            place="server",
            failed=len(changes),
            attempts=len(changes),
            filter=f"sip.Status-Code == {code}",
            proof=f"{plural(len(changes), 'refusal')} {code} within a call, and a BYE right after each",
            excluded={"sip-refused": "the call was answered before"},
            server=server,
            client=client,
            method="second INVITE" if method == "INVITE" else method,
            calls="a running call" if len(changes) == 1 else f"{len(changes):,} running calls",
            code=code,
            meaning=MEANINGS[code],
            after=times_str([change.since_ns for change in changes]),
            advice=advice_of(code, server),
            **facts_of(case, [change.row for change in changes], PORTS),
        )


def advice_of(code: str, server: str) -> str:
    """Returns what to do about a code."""
    if code in (*CHALLENGES, "403"):
        return f"Compare user, password and realm with those of {server}, and whether it allows this address."
    if code in ("415", "488", "606"):
        return f"Compare the codecs (and SRTP) in the SDP of the INVITE with those that {server} allows."
    return f"Look for this request in the log of {server}; the Reason and Warning headers of the response may tell why."
