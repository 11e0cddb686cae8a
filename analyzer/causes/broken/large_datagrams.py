# SPDX-License-Identifier: Apache-2.0
"""UDP ends that answer small datagrams, and none of the large ones: in flows of their own, or in one flow, as of a tunnel."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import grouped
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural, show_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import DirectionRow

FLOWS_MAX = 20_000
LOST_MOST = (
    0.1  # of the smaller datagrams of one flow: what has no answer may be lost, or several are under way at once
)
NUMBERED = ("quic", "rtp", "blocks", "iperf2", "iperf3")  # they probe the path, or want no answer
LARGE_MIN, CASES_MIN, CASES_PROVEN = 1_200, 3, 6  # bytes of a datagram; flows on each side, without an exception


class Sent(NamedTuple):
    """A flow of datagrams from a client."""

    flow: int
    server: tuple[str, int | None]
    size: int  # of the largest datagram
    is_answered: bool


def flows_of(case: Case) -> Iterator[Sent]:
    """Yields the first UDP flows that no earlier cause explains, without those that got ICMP errors."""
    explained, flows = case.flows_of(), case.trace.flows
    numbers = [flow for flow in case.transfers.flows_where("protocol", "udp")[:FLOWS_MAX] if flow not in explained]
    sizes, packets = (
        array("d", case.trace.directions._packed(name, "d", flows=numbers)) for name in ("segment_max", "packets")
    )
    targets, ports, errors = (flows.column(name) for name in ("destination", "destination_port", "icmp_errors"))
    for place, flow in enumerate(numbers):
        if not errors[flow] and sizes[2 * place] > 0:
            yield Sent(flow, (targets[flow], ports[flow]), int(sizes[2 * place]), packets[2 * place + 1] > 0)


def by_size(flows: Sequence[Sent]) -> tuple[list[Sent], list[Sent]] | None:
    """Returns the flows of large datagrams, none of which is answered, and the others, which all are; None if the size does not
    separate them."""
    silent, answered = [each for each in flows if not each.is_answered], [each for each in flows if each.is_answered]
    if min(len(silent), len(answered)) < CASES_MIN:
        return None
    least, most = min(each.size for each in silent), max(each.size for each in answered)
    return (silent, answered) if least >= LARGE_MIN and least > most else None


@cause(
    code="large-datagrams",
    title="Large datagrams get no answer",
    sentence="{server} {probably}gets no large datagrams: {silent}, while {answered}. A device on the way probably drops them, "
    "or their fragments{or_wanted}.",
    advice="`ping -M do -s {ping} {host}` finds the size that passes; let fragments and ICMP 'fragmentation needed' pass, or "
    "send smaller datagrams (EDNS of 1,232 bytes, IKE fragmentation, an MTU of the tunnel).",
    shows="At least three UDP flows to a port whose largest datagram has 1,200 bytes or more get no answer, and all others, at "
    "least three, have smaller ones and are answered; six of each prove it. Or within one flow, in which requests and answers "
    "take turns, no datagram above a size of 1,200 bytes or more is answered, at least three times with answered ones in "
    "between, and 90% of the smaller ones are. That is likely at most: the program may want no answer to large ones.",
    rivals={
        "fragments-dropped": "the datagrams leave whole, or their fragments are not in the capture",
        "udp-silent": "the size separates the two without an exception",
        "random-loss": "the size separates the two without an exception",
    },
    unknown="Whether the server gets them and ignores their size; a capture there shows that.",
    explains=("one-way", "dns-unanswered"),
)
def large_datagrams(case: Case) -> Matches:
    for server, flows in grouped(list(flows_of(case)), lambda each: each.server).items():
        separated = by_size(flows)
        if separated:
            yield size_match(case, server, *separated)
    for server, rows in grouped(one_flow_rows(case), lambda row: (row["destination"], row["destination_port"])).items():
        yield flow_match(case, server, rows)


def one_flow_rows(case: Case) -> Iterator[DirectionRow]:
    """Yields the directions of UDP flows of which the small datagrams are answered, and no large one is."""
    explained = case.flows_of()
    for number, count in case.transfers.counts["unanswered_large"]:
        if count < CASES_MIN or number // 2 in explained:
            continue
        row, flow = case.direction(number // 2, number % 2), case.flow(number // 2)
        answered = row["answered_datagrams"] or 0
        is_taken = answered >= CASES_MIN and (row["unanswered_datagrams"] or 0) <= LOST_MOST * answered
        is_large = (row["unanswered_large_min"] or 0) >= LARGE_MIN
        if is_large and is_taken and flow["application"] not in NUMBERED and not flow["icmp_errors"]:
            yield row


def flow_match(case: Case, server: tuple[str, int | None], rows: Sequence[DirectionRow]) -> Match:
    """Returns the match of an end that answers no large datagrams in the flows to it."""
    size = min(row["unanswered_large_min"] or 0 for row in rows)
    small = max(row["answered_max"] or 0 for row in rows)
    count, answered, lost = (
        sum(row[name] or 0 for row in rows)
        for name in ("unanswered_large", "answered_datagrams", "unanswered_datagrams")
    )
    flows = [case.flow(row["flow"]) for row in rows]
    fields = size_fields(server, size, count >= CASES_PROVEN and not lost and small < size)
    del fields["excluded"]["udp-silent"]
    fields["undecided"]["udp-silent"] = f"the program on {server[0]}: does it answer large datagrams at all?"
    within = "one flow" if len(rows) == 1 else plural(len(rows), "flow")
    answers = f"{answered:,} of {answered + lost:,}" if lost else f"all {answered:,}"
    return Match(
        flows=[(row["flow"], row["direction"]) for row in rows],
        failed=count,
        attempts=count + answered + lost,
        filter=" or ".join(flow_filter(row) for row in flows[:SHOWN]),
        proof=f"{plural(count, 'time')} no answer to {show_bytes(size)} or more, and {answered:,} answers to "
        f"{show_bytes(small)} or less, by turns within {within}",
        silent=f"within {within}, those of {show_bytes(size)} or more got no answer ({plural(count, 'time')})",
        answered=f"{answers} of up to {show_bytes(small)} did",
        or_wanted=", or the program wants no answer to them",
        **fields | {"certainty": "likely"},
    )


def size_fields(server: tuple[str, int | None], size: int, certain: bool) -> Words:
    """Returns certainty, rivals and words of a size that separates what is answered."""
    by_chance = "the size separates them without an exception"
    return {
        "certainty": "proven" if certain else "likely",
        "place": "path",
        "excluded": {"udp-silent": by_chance} | ({"random-loss": by_chance} if certain else {}),
        "undecided": {"fragments-dropped": f"a capture at {server[0]}: do the large datagrams arrive, whole?"}
        | ({} if certain else {"random-loss": "more datagrams: whether the size separates all of them"}),
        "server": endpoint_str(*server),
        "host": server[0],
        "ping": str(max(size, LARGE_MIN)),
    }


def size_match(case: Case, server: tuple[str, int | None], silent: list[Sent], answered: list[Sent]) -> Match:
    """Returns the match of a server."""
    certain = min(len(silent), len(answered)) >= CASES_PROVEN
    size, small = min(each.size for each in silent), max(each.size for each in answered)
    rows = [case.flow(each.flow) for each in silent]
    return Match(
        flows=[each.flow for each in silent],
        failed=len(silent),
        attempts=len(silent) + len(answered),
        waited_ns=union_ns(Span(row["first_ns"] or 0, row["last_ns"] or 0) for row in rows) or None,
        filter=" or ".join(flow_filter(row) for row in rows[:SHOWN]),
        proof=f"{plural(len(silent), 'flow')} of {show_bytes(size)} or more without a datagram back, {len(answered):,} of "
        f"{show_bytes(small)} or less with one",
        silent=f"none of {plural(len(silent), 'flow')} with datagrams of {show_bytes(size)} or more was answered",
        answered=f"all {len(answered):,} with up to {show_bytes(small)} were",
        or_wanted="",
        **size_fields(server, size, certain),
    )
