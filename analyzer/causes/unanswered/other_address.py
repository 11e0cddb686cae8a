# SPDX-License-Identifier: Apache-2.0
"""Answers that the client rejects: those that come from another address than the one that was asked, and those of
DNS with another
client's cookie; and requests that a NAT sends back to their own host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import HOSTS_MAX, about, any_filter, refusals, spans_of
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import named, packets_of
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import family, first_packets
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import ExchangeRow, FlowRow

FLOWS_MAX = 1_000
SOON_NS, HAIRPIN_NS = 1_000_000_000, 10_000_000  # an answer follows its question within, a SYN comes back within
SEQUENCES = 1 << 32
NO_PORT = "port_unreachable"
WRONG_COOKIE, DISCARDED_MIN, AGAIN_NS = (
    "WRONGCOOKIE",
    2,
    30_000_000_000,
)  # answers after which the client asked again soon
CASES_MIN = 2  # without a proof of a single one
BROADCAST = ".255"
EFFECTS = ("retransmission-unlocated", "spurious", "timeout-stalls", "suspected-timeout", "one-way")


class Strayed(NamedTuple):
    """A question without an answer, and the flow of the answer that came from elsewhere."""

    question: FlowRow
    answer: FlowRow
    is_certain: bool  # the answer acknowledges the question, or the client rejects it


def is_rejected(case: Case, flow: int) -> bool:
    """Returns whether a flow is a SYN-ACK, repeats of it, and nothing of the client but SYNs and RSTs."""
    client, server = case.direction(flow, 0), case.direction(flow, 1)
    sent = (client["syns"] or 0) + (client["resets"] or 0)
    return bool(server["syns"]) and not server["payload_bytes"] and client["packets"] <= sent


def acknowledges(case: Case, question: int, answer: int) -> bool:
    """Returns whether the client's sequence numbers in both flows follow from the same SYN."""
    first, second = (case.direction(flow, 0)["initial_sequence"] for flow in (question, answer))
    return first is not None and second is not None and (second - first) % SEQUENCES <= 1


def silent_attempts(case: Case) -> dict[tuple[str, int | None], list[FlowRow]]:
    """Returns the attempts without an answer by the end that made them."""
    by_client: dict[tuple[str, int | None], list[FlowRow]] = defaultdict(list)
    for flow in case.transfers.attempts.unanswered()[:FLOWS_MAX] if case.findings("syn-unanswered") else ():
        row = case.flow(flow)
        by_client[row["source"], row["source_port"]].append(row)
    return by_client


def pair_of(case: Case, question: FlowRow, answer: FlowRow) -> Strayed | None:
    """Returns an attempt and a SYN-ACK of another address that came to its port meanwhile; None if it is none of its."""
    since_ns = (answer["first_ns"] or 0) - (question["first_ns"] or 0)
    lasted_ns = (question["last_ns"] or 0) - (question["first_ns"] or 0)
    if not 0 <= since_ns <= lasted_ns + SOON_NS or question["destination"] == answer["destination"]:
        return None
    is_certain = acknowledges(case, question["flow"], answer["flow"])
    is_same_port = question["destination_port"] == answer["destination_port"]
    return Strayed(question, answer, is_certain) if is_certain or is_same_port else None


def strayed_handshakes(case: Case) -> Iterator[Strayed]:
    """Yields the attempts without an answer to whose port another address sent a SYN-ACK meanwhile."""
    attempts, by_client = case.transfers.attempts, silent_attempts(case)
    answers = [flow for state in ("reset", "syn_received") for flow in attempts.flows_in(state)] if by_client else []
    for answer in map(case.flow, sorted(answers)[:FLOWS_MAX]):
        attempted = by_client.get((answer["source"], answer["source_port"]), ())
        pairs = (pair_of(case, row, answer) for row in attempted if is_rejected(case, answer["flow"]))
        pair = next((pair for pair in pairs if pair), None)
        if pair:
            yield pair


def is_single(address: str) -> bool:
    """Returns whether an address is of one host."""
    return not (ip_address(address).is_multicast or address.endswith(BROADCAST))


def is_strayed(question: FlowRow, answer: FlowRow) -> bool:
    """Returns whether another address sent no more than was asked, and soon."""
    return (
        question["destination"] != answer["source"]
        and is_single(question["destination"])
        and answer["packets"] <= question["packets"]
        and 0 <= (answer["first_ns"] or 0) - (question["first_ns"] or 0) <= SOON_NS
    )


def strayed_datagrams(case: Case) -> list[Strayed]:
    """Returns the datagrams without an answer to whose port the same service of another address sent some, or another one of it
    that the client rejects. The port of the client has no other flow, as those of peers that send to each other have."""
    questions: dict[tuple[str, int | None], list[FlowRow]] = defaultdict(list)
    answers: dict[tuple[str, int | None], list[FlowRow]] = defaultdict(list)
    for row in (case.flow(flow) for flow, _ in case.transfers.flow_counts["one_way"][:FLOWS_MAX]):
        if row["protocol"] == "udp" and row["source_port"] != row["destination_port"]:
            questions[row["source"], row["source_port"]].append(row)
            answers[row["destination"], row["destination_port"]].append(row)
    pairs = [
        (of[0], answers[client][0]) for client, of in questions.items() if len(of) == len(answers.get(client, ())) == 1
    ]
    strayed = [pair for pair in pairs if is_strayed(*pair)]
    errors = refusals(case, [answer["flow"] for _, answer in strayed])
    told = [Strayed(row, answer, rejects(errors.get(answer["flow"]), row)) for row, answer in strayed]
    return [each for each in told if each.is_certain or is_same_service(each)]


def is_same_service(each: Strayed) -> bool:
    """Returns whether an answer came from the port that was asked."""
    return each.question["destination_port"] == each.answer["source_port"]


def rejects(error: tuple[str, str | None] | None, question: FlowRow) -> bool:
    """Returns whether the client says by ICMP that nothing waits for an answer."""
    return error is not None and tuple(error) == (NO_PORT, question["source"])


@cause(
    code="answer-elsewhere",
    title="Answers come from another address",
    sentence="{server} {probably}answers from another address: {answers} came from {elsewhere}, so that {client} {does}.",
    advice="{advice}",
    shows="While a SYN stays unanswered, another address sends a SYN-ACK to the client's port, and the client resets or "
    "ignores it. Proven if it acknowledges that SYN. Or the same UDP service on another address sends to a port from which "
    "nothing else was asked. That is proven if the client rejects it by ICMP 'port unreachable', from whatever port it "
    "comes; otherwise it must happen twice.",
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
        question, answer = each.question, each.answer
        elsewhere = answer["destination"] if question["protocol"] == "tcp" else answer["source"]
        by_ends[question["destination"], question["destination_port"], elsewhere, question["protocol"]].append(each)
    for (host, port, elsewhere, protocol), strayed in list(by_ends.items())[:HOSTS_MAX]:
        if len(strayed) >= CASES_MIN or any(each.is_certain for each in strayed):
            yield match_of(case, endpoint_str(host, port), elsewhere, strayed, protocol == "tcp")


def match_of(case: Case, server: str, elsewhere: str, strayed: Sequence[Strayed], is_tcp: bool) -> Match:
    """Returns the match of an address whose answers come from another one."""
    certain, questions = any(each.is_certain for each in strayed), [each.question for each in strayed]
    flows = [row["flow"] for each in strayed for row in (each.question, each.answer)]
    case.claimed.update(flows)
    excluded = {"host-down": f"{elsewhere} answered to the port that asked"}
    rejected = {"refused": "the client itself rejects the answers"}
    return Match(
        certainty="proven" if certain else "likely",
        place="device" if is_tcp else "server",
        findings=about(case, [row["flow"] for row in questions], "syn-unanswered", "dns-unanswered", "one-way"),
        flows=flows,
        failed=len(strayed),
        attempts=len(strayed),
        waited_ns=union_ns(spans_of(questions)),
        frames=first_packets(case.transfers, flows),
        filter=any_filter([row for each in strayed[:2] for row in (each.question, each.answer)]),
        proof=f"{plural(len(strayed), 'flow')} to {server} without an answer, each with one from {elsewhere} to the same port",
        excluded=excluded | rejected if certain else excluded,
        undecided={} if certain else {"refused": f"a capture on {elsewhere}: which question it answers"},
        server=server,
        elsewhere=elsewhere,
        **(handshake_words if is_tcp else datagram_words)(strayed, elsewhere, certain),
    )


def handshake_words(strayed: Sequence[Strayed], elsewhere: str, certain: bool) -> Words:
    """Returns how SYN-ACKs of another address are told."""
    clients = {each.question["source"] for each in strayed}
    reset = "reset them" if len(clients) > 1 else "resets them"
    return {
        "answers": f"the SYN-ACKs of {plural(len(strayed), 'connection')}",
        "client": "the clients" if len(clients) > 1 else "the client",
        "does": reset if certain else "cannot use them",
        "advice": f"Find out why the address is not translated back: the way from {elsewhere} to {named(sorted(clients), 1)} "
        "probably leaves out the device that translates it (on Kubernetes see `net.bridge.bridge-nf-call-iptables`). Else let "
        "the server answer from the address that was asked.",
    }


def datagram_words(strayed: Sequence[Strayed], elsewhere: str, certain: bool) -> Words:
    """Returns how datagrams of another address are told."""
    clients = {each.question["source"] for each in strayed}
    reject = "reject them" if len(clients) > 1 else "rejects them"
    return {
        "answers": plural(sum(each.answer["packets"] for each in strayed), "answer"),
        "client": "the clients" if len(clients) > 1 else "the client",
        "does": reject if certain else "cannot use them",
        "advice": f"Ask {elsewhere} itself, or let the server answer from the address that was asked; else let the client use a "
        "socket that is not connected.",
    }


def returned(case: Case) -> dict[tuple[str, str, int], list[tuple[FlowRow, FlowRow]]]:
    """Returns attempts without an answer whose SYNs pass a second time, with their source as the destination, too: by host,
    address asked and port."""
    pairs: dict[tuple[str, str, int], list[tuple[FlowRow, FlowRow]]] = defaultdict(list)
    sources, targets = case.trace.flows.column("source"), case.trace.flows.column("destination")
    alone = [*case.transfers.legs, *case.transfers.attempts.unanswered()[:FLOWS_MAX]]
    back = {flow for flow in alone if sources[flow] == targets[flow]}
    rows = [row for row in map(case.flow, sorted(back)[:FLOWS_MAX]) if row["state"] == "syn_sent"]
    attempts = silent_attempts(case) if rows else {}
    for row in rows:
        for attempt in attempts.get((row["source"], row["source_port"]), ()):
            since_ns = (row["first_ns"] or 0) - (attempt["first_ns"] or 0)
            if attempt["destination"] != row["destination"] and 0 <= since_ns <= HAIRPIN_NS:
                pairs[row["source"], attempt["destination"], attempt["destination_port"] or 0].append((attempt, row))
    return pairs


@cause(
    code="hairpin-nat",
    title="A NAT sends a host's packets back to it",
    sentence="{host} cannot reach itself by {outer}: the NAT sends its {syns} back with its own address as the source, and "
    "a host drops such packets ({count:connection} got no answer{time}).",
    advice="Let the NAT translate the source as well when it sends packets back into their own network (hairpin NAT: "
    "`iptables -t nat -A POSTROUTING -s {host} -d {host} -j MASQUERADE`, and on a bridge `hairpin on` at the port), or let the "
    "host use its inner address (split DNS, /etc/hosts).",
    shows="Unanswered SYNs pass the capture point a second time within 10 ms, with their own source as the destination (a leg "
    "of the same connection).",
    rivals={
        "host-down": "the address was translated: the SYNs came back",
        "answer-elsewhere": "nothing answers, because the host takes its own address for a forgery",
    },
    unknown="Nothing, if both places are in the capture.",
    explains=("syn-unanswered", "network-duplicates", "one-way"),
)
def hairpin_nat(case: Case) -> Matches:
    pairs = returned(case) if case.findings("syn-unanswered") else {}
    for (host, address, port), of in list(pairs.items())[:HOSTS_MAX]:
        attempts = [attempt for attempt, _ in of]
        flows, waited = [row["flow"] for pair in of for row in pair], union_ns(spans_of(attempts))
        case.claimed.update(flows)
        yield Match(
            certainty="proven",
            place="device",
            findings=about(case, flows, "syn-unanswered"),
            flows=flows,
            failed=len(of),
            attempts=len(of),
            waited_ns=waited,
            frames=first_packets(case.transfers, flows),
            packets=sum(row["packets"] for row in attempts),
            filter=any_filter(attempts),
            proof=f"each SYN to {address} passes again with {host} as source and destination",
            excluded={
                "host-down": "the SYNs to that address came back, translated",
                "answer-elsewhere": "no SYN-ACK came from anywhere",
            },
            host=host,
            outer=endpoint_str(address, port),
            syns=plural(sum(row["packets"] for row in attempts), "SYN"),
            count=len(of),
            time=f" in {show_duration(waited)}" if waited else "",
        )


class Discarded(NamedTuple):
    """A DNS question whose answer has another client's cookie, and which the client soon asked again."""

    row: ExchangeRow
    is_same: bool  # with the same transaction id: a repeat, and no new question


def discarded_answers(case: Case) -> dict[tuple[str, str], list[Discarded]]:
    """Returns the DNS questions whose answer has another client's cookie, and which the client soon asked again, by client and
    server."""
    last: dict[tuple[str | None, ...], ExchangeRow] = {}
    groups: dict[tuple[str, str], list[Discarded]] = defaultdict(list)
    for row in sorted(case.exchanges("kind", "dns"), key=lambda row: row["asked_ns"] or 0):
        key = row["client"], row["server"], row["name"], row["type"]
        before = last.get(key)
        if before and (row["asked_ns"] or 0) - (before["answered_ns"] or 0) <= AGAIN_NS:
            groups[row["client"] or "?", row["server"] or "?"].append(Discarded(before, before["id"] == row["id"]))
        last.pop(key, None)
        if row["code"] == WRONG_COOKIE and row["answered_frame"]:
            last[key] = row
    return groups


@cause(
    code="wrong-cookie",
    title="DNS answers with another client's cookie",
    sentence="{client} {probably}discards the DNS answers of {server}: they have another cookie than its queries, so it asked "
    "{count} "
    "again "
    "({names}{time}).",
    advice="{server} probably passes on an answer from its cache with the EDNS options of the query for which it was made: "
    "update it, or "
    "change how it handles EDNS. Until then turn DNS cookies or EDNS off at {client}, or let it use another server.",
    shows="A query has a DNS cookie, the answer one whose client part differs, and the client asks the same again within 30 "
    "s, at least twice; proven if it repeats the transaction id. A client must discard such answers (RFC 7873 section 5.3); one "
    "that sends no cookie takes them.",
    rivals={
        "dns-silent": "each query gets an answer",
        "dns-repeated": "the client asks again because of the cookie",
    },
    unknown="Which forwarder on the way to the server keeps the cookie.",
)
def wrong_cookie(case: Case) -> Matches:
    for (client, server), discarded in list(discarded_answers(case).items())[:HOSTS_MAX]:
        rows, is_certain = [each.row for each in discarded], all(each.is_same for each in discarded)
        if len(rows) < DISCARDED_MIN:
            continue
        flows = list(dict.fromkeys(row["flow"] for row in rows if row["flow"] is not None))
        waited = union_ns(spans_of([case.flow(flow) for flow in flows]))
        yield Match(
            certainty="proven" if is_certain else "likely",
            place="server",
            flows=flows,
            failed=len(rows),
            attempts=len(rows),
            waited_ns=waited,
            frames=packets_of(rows),
            packets=len(rows),
            filter=f"dns.opt.code == 10 && {family(server)}.addr == {server}",
            proof=f"{plural(len(rows), 'answer')} with another client cookie, and the same query again",
            excluded={"dns-silent": "each query gets an answer"},
            undecided={} if is_certain else {"dns-repeated": f"the log of {client}: whether it takes these answers"},
            client=client,
            server=server,
            count=plural(len(rows), "question"),
            names=named([str(row["name"]) for row in rows], 1),
            time=f"; {show_duration(waited)} in all" if waited else "",
        )
