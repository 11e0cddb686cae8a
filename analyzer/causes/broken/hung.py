# SPDX-License-Identifier: Apache-2.0
"""A server whose kernel accepts and acknowledges, and whose program never answers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.broken.split_hello import size_rival
from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import EXCHANGE_KINDS, GROUPS_MAX, is_alike, times_str
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import numbers_where
from wiretale.analyzer.findings.exchanges.unanswered import (
    DUE_NS,
    TIMES_SLOWEST,
    are_open,
    span_of,
    what_str,
)
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.causes.connections import End
    from wiretale.analyzer.findings.exchanges.unanswered import Silence
    from wiretale.analyzer.findings.model import Words

LATER_NS = 1_000_000_000  # after the request; a pure ACK then carries the sequence number of all data sent
#: a finding about these flows that follows from a server that does not answer
EFFECTS = ("reset", "half-open", "idle-reset", "slow-server", "syn-unanswered")


def acknowledged_ns(case: Case, group: Sequence[Silence]) -> int | None:
    """Returns the longest time from data of these clients to its ACK, ns."""
    rows = (case.direction(each.flow, each.row["direction"] or 0) for each in group)
    return max((ns for row in rows if (ns := row["rtt_ns_max"]) is not None), default=None)


def without_data(case: Case, silences: Sequence[Silence]) -> list[Silence]:
    """Returns those of which no data of the server is missing, so that it did not answer, and the client's window was open."""
    flows = sorted({each.flow for each in silences})
    fields = [(name, "d", 0, 1) for name in ("missing_bytes", "gap_bytes", "zero_windows")]
    packed = case.trace.directions._packed_columns(fields, flows)
    missing, gaps, zero_windows = (array("d", column) for column in packed)
    places = {flow: 2 * place for place, flow in enumerate(flows)}

    def lacks_data(silence: Silence) -> bool:
        request = places[silence.flow] + (silence.row["direction"] or 0)
        return missing[request ^ 1] > 0 or gaps[request ^ 1] > 0 or zero_windows[request] > 0

    return [each for each in silences if not lacks_data(each)]


@cause(
    code="hung-server",
    title="The server accepts and never answers",
    sentence="{server} {how}: {unanswered}{what} got {a} reply {waited}. It acknowledged {each}{within}, so "
    "host and network work; the program behind the port {probably}{hangs}{or_size}{full}.",
    advice="Look at the program on {server}: stuck threads, a full pool, a lock (`ss -ltn`: Recv-Q of the listener; a stack dump "
    "with `py-spy dump`, `jstack` or `gdb -p`).",
    shows="The server's kernel acknowledged requests, but not one byte of an answer came for 5 s and for three times its "
    "slowest answer. Or clients gave up after the same time of 1 s or more (finding request-unanswered).",
    rivals={
        "peer-gone": "the requests are acknowledged",
        "mtu-black-hole": "no gap in the server's data, by SACK or sequence number",
        "client-gave-up": "the answer never comes, however late",
        "slow-server": "no answer comes within 5 s and three times its slowest one",
        "zero-window": "the window of the client is open",
        "split-hello": "a ClientHello of one segment gets no answer either, or one of two segments does",
    },
    unknown="Whether the program hangs, or holds the request on purpose (long polling). A proxy that acknowledges is the server.",
    explains=EFFECTS,
)
def hung_server(case: Case) -> Matches:
    findings = case.findings("request-unanswered")
    if not findings:
        return
    flows_of = [(each, {flow for flow, _ in each.finding.flows}) for each in findings]
    groups = sorted(case.transfers.silences.items(), key=lambda group: -len(group[1]))[:GROUPS_MAX]
    for server, silences in groups:
        longest = case.transfers.slowest_answers.get(server[0], 0.0)
        group = without_data(case, silences)
        flows = {each.flow for each in group}
        named = [each for each, of_finding in flows_of if of_finding & flows]
        if named and is_hung(longest, group):
            yield hung_match(case, server, group, named, longest)


def is_hung(longest: float, group: Sequence[Silence]) -> bool:
    """Returns whether the waits are too long for a server that works: 5 s, or clients that give up after the same second or
    more, three times longer than its slowest answer."""
    waits = [each.waited_ns for each in group]
    if not waits:
        return False
    is_timer = len(waits) > 1 and is_alike(waits) and min(waits) >= LATER_NS
    return (max(waits) >= DUE_NS or is_timer) and max(waits) >= TIMES_SLOWEST * longest


def sent_nothing(case: Case, silence: Silence) -> bool:
    """Returns whether a later packet of the server, such as the ACK of the client's FIN, shows that it sent no data."""
    flow, side, asked_ns = silence.flow, silence.row["direction"] or 0, silence.row["asked_ns"]
    last_ns = case.direction(flow, 1 - side)["last_ns"]
    return last_ns is not None and asked_ns is not None and last_ns - asked_ns >= LATER_NS


def not_connected(case: Case, server: End) -> int:
    """Returns how many connections to a server got no SYN-ACK, or not at once: its accept queue is full."""
    states = case.connections.states_of(server)
    return states["syn_sent"] + states["syn_received"]


def answers_others(case: Case, server: End, group: Sequence[Silence]) -> bool:
    """Returns whether the server answered a request that was sent after the first one that it left open."""
    transfers, first_ns = case.transfers, min(each.row["asked_ns"] or 0 for each in group)
    flows, of_flow = set(case.connections.to_server(server)), transfers.flow_of
    packed = transfers.trace.exchanges._packed_columns([("asked_ns", "d", transfers.base_ns, 1)])[0]
    times, since_ns = array("d", packed), first_ns - transfers.base_ns
    kinds = {transfers.words[kind] for kind in EXCHANGE_KINDS}  # a handshake is none
    of_kind, answered = transfers.bytes_of("exchanges", "kind"), numbers_where(transfers, "outcome", "answered")
    return any(times[each] > since_ns and of_flow[each] in flows and of_kind[each] in kinds for each in answered)


def requests_str(unanswered: int, total: int) -> str:
    """Returns `none of 6 requests`, `3 of 8 requests`, or `its only request`."""
    if total == 1:
        return "its only request"
    return f"{'none' if unanswered == total else f'{unanswered:,}'} of {plural(total, 'request')}"


def words_of(case: Case, server: End, group: Sequence[Silence], total: int) -> Words:
    """Returns the words of the sentence."""
    within, full = acknowledged_ns(case, group), not_connected(case, server)
    are_all, is_open = len(group) == total, are_open(case.transfers, group)
    how, hangs = "accepts connections and never answers", "hangs"
    if not are_all:
        is_partial = answers_others(case, server, group)
        how, hangs = ("answers only some requests", "hung on these") if is_partial else ("stopped answering", "hung")
    return {
        "server": endpoint_str(*server),
        "how": how,
        "unanswered": requests_str(len(group), total),
        "what": what_str(group),
        "a": "a" if are_all and total > 1 else "no",
        "waited": f"{'before the capture ended, after' if is_open else 'in'} {times_str([each.waited_ns for each in group])}",
        "each": "it" if len(group) == 1 else "each",
        "within": f" within {show_duration(within)}" if within else "",
        "hangs": hangs,
        "full": f", and {plural(full, 'more connection')} met a full accept queue" if full else "",
    }


def note_size(case: Case, flows: Sequence[int], excluded: dict[str, str], decide: dict[str, str]) -> str:
    """Notes whether the size of ClientHellos may be the reason, and returns the words for it; "" if it is none."""
    rival = size_rival(case, flows)
    if rival is None:
        return ""
    is_excluded, fact = rival
    (excluded if is_excluded else decide)["split-hello"] = fact
    return "" if is_excluded else ", or it or a device before it takes no ClientHello in two segments"


def hung_match(case: Case, server: End, group: Sequence[Silence], named: list[Numbered], longest: float) -> Match:
    """Returns the match of the requests that one server left open."""
    total, flows = (
        max(case.connections.requests_to(server), len(group)),
        list(dict.fromkeys(each.flow for each in group)),
    )
    is_open = are_open(case.transfers, group)
    is_note = all(each.finding.severity == "info" for each in named)
    excluded = {"peer-gone": "its kernel acknowledged every request"}
    decide = {"client-gave-up": "Capture longer: does the answer come?"} if is_note or is_open else {}
    if any(sent_nothing(case, each) for each in group):
        excluded["mtu-black-hole"] = "its later ACKs show by their sequence number that it sent nothing"
    else:
        decide["mtu-black-hole"] = "Capture at the server: does an answer leave it in large packets?"
    or_size = note_size(case, flows, excluded, decide)
    if not longest and not decide:
        excluded["client-gave-up"] = "no answer came later"
    return Match(
        certainty="likely" if decide else "proven",
        place="server",
        findings=named,
        flows=flows,
        failed=len(group),
        attempts=total,
        waited_ns=union_ns(map(span_of, group)),
        filter=named[0].finding.filter,
        severity="info" if is_note else None,
        proof=f"each request acknowledged, then not one byte until {'the capture ended' if is_open else 'the client closed'}",
        excluded=excluded,
        undecided=decide,
        or_size=or_size,
        **words_of(case, server, group, total),
    )
