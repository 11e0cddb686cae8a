# SPDX-License-Identifier: Apache-2.0
"""Answers that come from another address than the one that was asked, so that the client rejects them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import HOSTS_MAX, about, any_filter, refusals, spans_of
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

FLOWS_MAX = 1_000
SOON_NS = 1_000_000_000  # an answer follows its question within
SEQUENCES = 1 << 32
NO_PORT = "port_unreachable"
CASES_MIN = 2  # without a proof of a single one
BROADCAST = ".255"
EFFECTS = ("retransmission-unlocated", "spurious", "timeout-stalls", "suspected-timeout", "one-way")


class Strayed(NamedTuple):
    """A question without an answer, and the flow of the answer that came from elsewhere."""

    asked: FlowRow
    answer: FlowRow
    is_certain: bool  # the answer acknowledges the question, or the client rejects it


def is_rejected(case: Case, flow: int) -> bool:
    """Returns whether a flow is a SYN-ACK, repeats of it, and nothing of the client but SYNs and RSTs."""
    client, server = case.direction(flow, 0), case.direction(flow, 1)
    sent = (client["syns"] or 0) + (client["resets"] or 0)
    return bool(server["syns"]) and not server["payload_bytes"] and client["packets"] <= sent


def acknowledges(case: Case, asked: int, answer: int) -> bool:
    """Returns whether the client's sequence numbers in both flows follow from the same SYN."""
    first, second = (case.direction(flow, 0)["initial_sequence"] for flow in (asked, answer))
    return first is not None and second is not None and (second - first) % SEQUENCES <= 1


def strayed_handshakes(case: Case) -> Iterator[Strayed]:
    """Yields the attempts without an answer to whose port another address sent a SYN-ACK meanwhile."""
    attempts = case.transfers.attempts
    by_client: dict[tuple[str, int | None], list[FlowRow]] = defaultdict(list)
    if case.findings("syn-unanswered"):
        for flow in attempts.unanswered()[:FLOWS_MAX]:
            row = case.flow(flow)
            by_client[row["source"], row["source_port"]].append(row)
    answers = [flow for state in ("reset", "syn_received") for flow in attempts.flows_in(state)] if by_client else []
    for flow in sorted(answers)[:FLOWS_MAX]:
        answer = case.flow(flow)
        for asked in by_client.get((answer["source"], answer["source_port"]), ()):
            is_meanwhile = (asked["first_ns"] or 0) <= (answer["first_ns"] or 0) <= (asked["last_ns"] or 0) + SOON_NS
            if not is_meanwhile or asked["destination"] == answer["destination"] or not is_rejected(case, flow):
                continue
            is_certain = acknowledges(case, asked["flow"], flow)
            if is_certain or asked["destination_port"] == answer["destination_port"]:
                yield Strayed(asked, answer, is_certain)
                break


def is_single(address: str) -> bool:
    """Returns whether an address is of one host."""
    return not (ip_address(address).is_multicast or address.endswith(BROADCAST))


def strayed_datagrams(case: Case) -> list[Strayed]:
    """Returns the datagrams without an answer to whose port the same service of another address sent some. The port of the client
    has no other flow, as those of peers that send to each other have."""
    rows = [case.flow(flow) for flow, _ in case.transfers.flow_counts["one_way"][:FLOWS_MAX]]
    asked: dict[tuple[str, int | None], list[FlowRow]] = defaultdict(list)
    told: dict[tuple[str, int | None], list[FlowRow]] = defaultdict(list)
    for row in rows:
        if row["protocol"] == "udp" and row["source_port"] != row["destination_port"]:
            asked[row["source"], row["source_port"]].append(row)
            told[row["destination"], row["destination_port"]].append(row)
    pairs = [(of[0], told[client][0]) for client, of in asked.items() if len(of) == len(told.get(client, ())) == 1]
    strayed = [
        pair
        for pair in pairs
        if pair[0]["destination_port"] == pair[1]["source_port"]
        and pair[0]["destination"] != pair[1]["source"]
        and is_single(pair[0]["destination"])
        and pair[1]["packets"] <= pair[0]["packets"]
        and 0 <= (pair[1]["first_ns"] or 0) - (pair[0]["first_ns"] or 0) <= SOON_NS
    ]
    errors = refusals(case, [answer["flow"] for _, answer in strayed])
    return [Strayed(asked, answer, rejects(errors.get(answer["flow"]), asked)) for asked, answer in strayed]


def rejects(error: tuple[str, str | None] | None, asked: FlowRow) -> bool:
    """Returns whether the client says by ICMP that nothing waits for an answer."""
    return error is not None and tuple(error) == (NO_PORT, asked["source"])


@cause(
    code="answer-elsewhere",
    title="Answers come from another address",
    sentence="{asked} {probably}answers from another address: {answers} came from {elsewhere}, so that {client} {does} them.",
    advice="{advice}",
    shows="While a SYN stays without an answer, another address sends a SYN-ACK to the same port of the client, which resets it "
    "or ignores it: proven if it acknowledges that SYN. Or the same UDP service of another address sends to a port from which "
    "nothing else was asked: proven if the client rejects it by ICMP 'port unreachable', else twice or more.",
    rivals={
        "host-down": "the answers are in the capture, from another address",
        "refused": "the client itself rejects the answers, and no RST or ICMP error of the server came",
    },
    unknown="Whether a device no longer translates the address, or the server answers from another one of its own.",
    explains=("syn-unanswered", "reset", "half-open", "icmp-errors", *EFFECTS),
)
def answer_elsewhere(case: Case) -> Matches:
    by_ends: dict[tuple[str, int | None, str, str], list[Strayed]] = defaultdict(list)
    for each in (*strayed_handshakes(case), *strayed_datagrams(case)):
        asked, answer = each.asked, each.answer
        elsewhere = answer["destination"] if asked["protocol"] == "tcp" else answer["source"]
        by_ends[asked["destination"], asked["destination_port"], elsewhere, asked["protocol"]].append(each)
    for (host, port, elsewhere, protocol), strayed in list(by_ends.items())[:HOSTS_MAX]:
        if len(strayed) >= CASES_MIN or any(each.is_certain for each in strayed):
            yield match_of(case, endpoint_str(host, port), elsewhere, strayed, protocol == "tcp")


def match_of(case: Case, server: str, elsewhere: str, strayed: Sequence[Strayed], is_tcp: bool) -> Match:
    """Returns the match of an address whose answers come from another one."""
    certain, asked = any(each.is_certain for each in strayed), [each.asked for each in strayed]
    flows = [row["flow"] for each in strayed for row in (each.asked, each.answer)]
    (client, _), *others = Counter(row["source"] for row in asked).most_common()
    datagrams = sum(each.answer["packets"] for each in strayed)
    case.claimed.update(flows)
    return Match(
        certainty="proven" if certain else "likely",
        place="device" if is_tcp else "server",
        findings=about(case, [row["flow"] for row in asked], "syn-unanswered", "dns-unanswered", "one-way"),
        flows=flows,
        failed=len(strayed),
        attempts=len(strayed),
        waited_ns=union_ns(spans_of(asked)),
        frames=first_packets(case.transfers, flows),
        filter=any_filter([row for each in strayed[:2] for row in (each.asked, each.answer)]),
        proof=f"{plural(len(strayed), 'flow')} to {server} without an answer, each with one from {elsewhere} to the same port",
        excluded={"host-down": f"{elsewhere} answered to the port that asked"}
        | ({"refused": "the client itself rejects the answers"} if certain else {}),
        undecided={} if certain else {"refused": f"a capture on {elsewhere}: which question it answers"},
        asked=server,
        answers=f"the SYN-ACKs of {plural(len(strayed), 'connection')}" if is_tcp else plural(datagrams, "answer"),
        elsewhere=elsewhere,
        client="the clients" if others else "the client",
        does=f"{'reset' if is_tcp else 'reject'}{'' if others else 's'}" if certain else "cannot use",
        advice=f"Find out why the address is not translated back: the way from {elsewhere} to {client} probably leaves out the "
        "device that translates it (on Kubernetes see `net.bridge.bridge-nf-call-iptables`). Else let the server answer from "
        "the address that was asked."
        if is_tcp
        else f"Ask {elsewhere} itself, or let the server answer from the address that was asked; else let the client use a "
        "socket that is not connected.",
    )
