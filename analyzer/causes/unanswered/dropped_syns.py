# SPDX-License-Identifier: Apache-2.0
"""Ports that answer some SYNs and not others: by an option, by a timestamp, or by load."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    SilentHost,
    about,
    any_filter,
    attempt_fields,
    silent_hosts,
)
from wiretale.analyzer.findings.cost import union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import named, packets_of, waits_of
from wiretale.analyzer.findings.handshake import are_signed, met_by_old_connections, outcome_of
from wiretale.analyzer.findings.model import endpoint_str, row_at
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import DirectionRow, ExchangeRow

CASES_PROVEN, CASES_MIN = 4, 2  # on each side, without an exception
OPTION_NAMES = {
    "fast_open": "a Fast Open cookie",
    "mptcp": "the multipath TCP option",
    "ecn": "an offer of ECN",
    "signature": "a TCP signature",
}
OPTION_ADVICE = {
    "fast_open": "Turn Fast Open off at the client (`net.ipv4.tcp_fastopen=0`) until the device that drops it is found.",
    "mptcp": "Turn multipath TCP off at the client (`net.mptcp.enabled=0`) until the device that drops it is found.",
    "ecn": "Turn ECN off at the client (`net.ipv4.tcp_ecn=0`) until the device that drops it is found.",
    "signature": "Compare the TCP keys of both ends; the host counts what it drops (`nstat TcpExtTCPMD5NotFound "
    "TcpExtTCPMD5Failure`).",
}
EFFECTS_OF_SYNS = ("lost-upstream", "lost-downstream", "timeout-stalls", "retransmission-unlocated")
HALF = 1 << 31
FORGOTTEN_NS = 60_000_000_000  # tcp_tw_recycle compares TSvals for a minute
HELD_NS = 240_000_000_000  # of TIME_WAIT at most
STUBBORN_SYNS = (
    4  # of one attempt, while another port connects: no queue is full for so long, and no chance loses them all
)


def offers_of(case: Case) -> dict[tuple[str, str], list[ExchangeRow]]:
    """Returns by option and server the handshakes that were completed after a repeat without the option, if none with it was."""
    exchanges = case.trace.exchanges
    offering = exchanges._rows_where("syn_options")
    first, last = (exchanges.column(name) if offering else [] for name in ("syn_options", "last_syn_options"))
    numbers = [number for number in offering if first[number] != last[number]]
    passed = passed_options(case, last) if numbers else set()
    dropped: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    rows = [
        row for row in (row_at(exchanges, number) for number in numbers[:ATTEMPTS_MAX]) if row["outcome"] == "answered"
    ]
    for row in rows:
        server, repeated = str(row["server"]), (row["last_syn_options"] or "").split()
        for option in (row["syn_options"] or "").split():
            if option not in repeated and (option, server) not in passed:
                dropped[option, server].append(row)
    return dropped


def passed_options(case: Case, last: Sequence[str | None]) -> set[tuple[str, str | None]]:
    """Returns the options of SYNs that were answered, each with the server."""
    exchanges = case.trace.exchanges
    rows = zip(exchanges.column("server"), last, exchanges.column("outcome"), strict=True)
    return {
        (option, server)
        for server, words, outcome in rows
        if words and outcome == "answered"
        for option in words.split()
    }


@cause(
    code="option-dropped",
    title="SYNs with an option are dropped",
    sentence="{what}{price}.",
    advice="{advice}",
    shows="SYNs with Fast Open, ECN, multipath TCP or a signature get no answer, while their repeats without it do, and no "
    "SYN with it does. At least two such connections; four prove it. Or all SYNs to a port are signed and none is answered.",
    rivals={
        "accept-queue": "the option separates the SYNs that are answered from the others",
        "random-loss": "the option separates them",
    },
    unknown="At the client, whether the server or a device on the way drops them.",
    explains=("syn-lost",),
)
def option_dropped(case: Case) -> Matches:
    for (option, server), dropped in offers_of(case).items():
        if len(dropped) >= CASES_MIN:
            flows = [row["flow"] for row in dropped if row["flow"] is not None]
            certain = len(dropped) >= CASES_PROVEN
            case.claimed.update(flows)
            waits = sorted(row["waited_ns"] or 0 for row in dropped)
            yield Match(
                certainty="proven" if certain else "likely",
                place="path",
                findings=[*about(case, flows, "syn-lost"), *effects_of_syns(case, flows)],
                flows=flows,
                attempts=len(dropped),
                waited_ns=union_ns(waits_of(dropped)),
                frames=packets_of(dropped),
                packets=len(dropped),
                filter=any_filter([case.flow(flow) for flow in flows]),
                proof=f"{len(dropped)} of {plural(len(dropped), 'SYN')} with it stayed unanswered, all repeats without it were "
                "answered",
                excluded={"accept-queue": "the repeats without the option were answered at once"}
                | ({"random-loss": "the option separates them without an exception"} if certain else {}),
                undecided={}
                if certain
                else {"random-loss": "more connections: whether each SYN with the option is dropped"},
                what=f"SYNs to {server} with {OPTION_NAMES[option]} are {'' if certain else 'probably '}dropped: "
                f"{len(dropped)} of {len(dropped)} stayed unanswered, and their repeats without it connected",
                price=f", {show_duration(waits[len(waits) // 2])} late each",
                advice=OPTION_ADVICE[option],
            )
    for host in silent_hosts(case):
        match = keys_differ(case, host)
        if match:
            case.claimed.update(host.flows)
            yield match


def effects_of_syns(case: Case, flows: Sequence[int]) -> list[Numbered]:
    """Returns the findings about losses of these flows, if their SYNs alone were lost."""
    among = set(flows)
    return [
        each
        for each in case.findings(*EFFECTS_OF_SYNS)
        if each.finding.flows
        and all(flow in among and only_syns_lost(case.direction(flow, 0)) for flow, _ in each.finding.flows)
    ]


def only_syns_lost(row: DirectionRow) -> bool:
    """Returns whether a direction lost nothing but SYNs and FINs."""
    sides = ("upstream", "downstream")
    lost, of_syns = (sum(integer_in(row, f"{kind}_{side}") or 0 for side in sides) for kind in ("lost", "syn_fin_lost"))
    return lost == of_syns


def keys_differ(case: Case, host: SilentHost) -> Match | None:
    """Returns the match of a host that ignores signed SYNs."""
    if not host.is_heard or host.errors or not are_signed(case.transfers, host.flows):
        return None
    return Match(
        certainty="likely",
        place="server",
        proof=f"all {plural(host.syns, 'SYN')} are signed (TCP-MD5 or TCP-AO), and the host is up",
        excluded={"host-down": f"{host.address} answers otherwise"},
        undecided={"filtered": f"`nstat TcpExtTCPMD5Failure` on {host.address}: whether it counts these SYNs"},
        what=f"The TCP keys of {host.client} and {host.address} probably differ: none of "
        f"{plural(host.syns, 'signed SYN')} was answered{host.time}, and a host drops a wrong signature without a word",
        price="",
        advice=OPTION_ADVICE["signature"],
        **attempt_fields(case, host, "syn-unanswered"),
    )


class Port(NamedTuple):
    """The attempts and connections of one client at a port, in the order of their first packets."""

    silent: list[int]
    opened: list[int]


def is_older(tsval: int, other: int) -> bool:
    """Returns whether a TSval precedes another one, which wraps (RFC 7323 section 5.2)."""
    return 0 < (other - tsval) % (2 * HALF) < HALF


def lower_timestamps(case: Case, host: SilentHost, port: int) -> Port | None:
    """Returns the attempts and connections of a port if a lower TSval of the same client separates the ones from the others."""
    silent, facts = set(host.at_ports([port]).flows), host.facts
    flows = of_clients(case, host, port)
    tsvals = array("d", case.trace.directions._packed("first_tsval", "d", flows=flows))[::2]
    newest: dict[str, tuple[float, float]] = {}  # TSval and time of the last connection of a client
    older: list[int] = []
    opened: list[int] = []
    for flow, tsval in zip(flows, tsvals, strict=True):
        source, began, is_silent = facts.sources[flow], facts.first_ns[flow], flow in silent
        if tsval != tsval or began != began:
            return None
        value, then = newest.get(source, (tsval, began))
        if is_silent != (is_older(int(tsval), int(value)) and began - then < FORGOTTEN_NS):
            return None
        (older if is_silent else opened).append(flow)
        if not is_silent:
            newest[source] = tsval, began
    return Port(older, opened)


def of_clients(case: Case, host: SilentHost, port: int) -> list[int]:
    """Returns the attempts at a port and the connections to it of the clients of these attempts, in their order."""
    facts, targets, attempts = host.facts, case.trace.flows.column("destination"), case.transfers.attempts
    clients, silent = {facts.sources[flow] for flow in host.flows}, set(host.flows)
    return [
        flow
        for flow, source in enumerate(facts.sources)
        if source in clients
        and targets[flow] == host.address
        and facts.ports[flow] == port
        and (flow in silent or attempts.is_connection(flow))
    ]


@cause(
    code="paws-refused",
    title="SYNs with an older timestamp are ignored",
    sentence="{host} {probably}ignores clients behind one address: all {count:unanswered attempt} of {client} have a lower "
    "timestamp than its last accepted one, and all {opened} that connected have a higher one.",
    advice="Set `net.ipv4.tcp_tw_recycle=0` on {machine} (gone since Linux 4.12; `nstat TcpExtPAWSPassive` counts the drops); "
    "until then `net.ipv4.tcp_timestamps=0` at the clients.",
    shows="All unanswered attempts have a lower TSval than the last connection from the same address, and all that connected "
    "have a higher one. At least two of each; four of each prove it.",
    rivals={
        "accept-queue": "the timestamp separates them, whatever the load",
        "option-dropped": "both have timestamps",
    },
    unknown="On the clients' side of the NAT: there each client's timestamps only rise, and nothing shows.",
    explains=("syn-unanswered",),
)
def paws_refused(case: Case) -> Matches:
    for host in silent_hosts(case):
        for port in host.ports:
            separated = lower_timestamps(case, host, port) if host.open_ports[port] else None
            if not separated or min(len(separated.silent), len(separated.opened)) < CASES_MIN:
                continue
            silent = host.at_ports([port])
            certain = min(len(separated.silent), len(separated.opened)) >= CASES_PROVEN
            case.claimed.update(silent.flows)
            yield Match(
                certainty="proven" if certain else "likely",
                place="server",
                proof="a lower TSval separates the SYNs without an exception",
                excluded={"option-dropped": "both have timestamps"}
                | ({"accept-queue": "the timestamp separates them, whatever the load"} if certain else {}),
                undecided={}
                if certain
                else {"accept-queue": "more connections: whether the timestamp separates all of them"},
                host=endpoint_str(host.address, port),
                machine=host.address,
                client=silent.client,
                count=silent.failed,
                opened=len(separated.opened),
                **attempt_fields(case, silent, "syn-unanswered") | {"attempts": silent.failed + len(separated.opened)},
            )


@cause(
    code="port-reuse",
    title="Ports used again too soon",
    sentence="{client} reused {count:port} while {host} still held the old connection: an ACK of that one answered the SYN, "
    "and {outcome}.",
    advice="Wait longer before the client reuses a port: widen `net.ipv4.ip_local_port_range`, keep connections open, or enable "
    "`net.ipv4.tcp_tw_reuse` with timestamps.",
    shows="A segment other than a SYN-ACK answers a SYN, and the SYN's sender resets that. Then a SYN from the same port "
    "opens the connection, or meets the old one again.",
    rivals={"accept-queue": "the SYN was answered at once, by an old connection of the same ports"},
    unknown="Why the server still had the old connection; a firewall that kept its entry answers nothing.",
)
def port_reuse(case: Case) -> Matches:
    for each in case.findings("port-reuse"):
        met = met_by_old_connections(case.transfers)
        rows, flows = [of.last for of in met], [flow for of in met for flow in of.flows]
        case.claimed.update(flows)
        yield Match(
            certainty="proven",
            place="client",
            findings=[each, *about(case, flows, "reset")],
            flows=flows,
            failed=sum(not of.is_open for of in met),
            attempts=len(met),
            waited_ns=each.finding.waited_ns,
            frames=list(each.finding.frames),
            packets=each.finding.packets,
            filter=each.finding.filter,
            excluded={"accept-queue": "the SYN was answered at once, by an old connection of the same ports"},
            client=named([row["source"] for row in rows], 1),
            host=named([row["destination"] for row in rows], 1),
            count=len(met),
            outcome=outcome_of(met),
            proof="an ACK of an old connection answered the SYN",
        )


def ports_reused(case: Case, host: SilentHost, port: int) -> dict[int, float]:
    """Returns the attempts at a port from source ports whose connection to it had closed, with the time since its last packet;
    none if such a port connected as often."""
    since = {
        row["flow"]: float(row["delay_ns"])
        for row in case.trace.relations
        if row["kind"] == "reuse" and row["delay_ns"] is not None and case.flow(row["other"])["state"] == "closed"
    }
    of = {flow: since[flow] for flow in of_clients(case, host, port) if 0 <= since.get(flow, -1) <= HELD_NS}
    silent = {flow: ns for flow, ns in of.items() if flow in set(host.flows)}
    return silent if 2 * len(silent) > len(of) else {}


def is_ignored(case: Case, at_port: SilentHost, port: int, opened: int) -> bool:
    """Returns whether so many attempts show that their ports matter: two of them beside two connections, or one that
    repeated its SYN often while a connection came about."""
    if min(at_port.failed, opened) >= CASES_MIN:
        return True
    if at_port.failed != 1 or at_port.syns < STUBBORN_SYNS or not at_port.spans:
        return False
    span, first_ns = at_port.spans[0], at_port.facts.first_ns
    return any(span.start_ns < first_ns[flow] < span.end_ns for flow in of_clients(case, at_port, port))


def ignored_str(at_port: SilentHost) -> str:
    """Returns which attempts were ignored."""
    if at_port.failed == 1:
        return f"{at_port.syns:,} SYNs of {at_port.client} from a port that had closed"
    count = "both" if at_port.failed == 2 else f"all {at_port.failed:,}"
    return f"{count} attempts of {at_port.client} from ports that had closed"


@cause(
    code="time-wait",
    title="SYNs from ports used again too soon are ignored",
    sentence="{host} ignored {what} {since} before, but accepted {opened:connection} from other ports: {holder}. The client, or "
    "a NAT before it, reuses ports too soon.",
    advice="Keep a port unused for a minute (four for Windows) where the ports are chosen: a NAT with more ports or addresses, a "
    "wider `net.ipv4.ip_local_port_range`, timestamps at both ends. Connections that the client closes first leave nothing at "
    "{machine}. A firewall before it may hold an entry, too.",
    shows="Two attempts or more without an answer, all from source ports whose connection to the same port had closed within "
    "four minutes; two connections or more from other ports are established. Of one such attempt, at least four SYNs stay "
    "unanswered, while another port connects.",
    rivals={
        "accept-queue": "the port separates them: those from other ports connect at once",
        "paws-refused": "without the port there is no difference between those that connect and the others",
        "bad-member": "the port was used before in each case",
        "stale-entry": "a capture at the server shows whether the SYNs arrive there",
    },
    unknown="Whether the server or a firewall on the way holds the old connection.",
    explains=("syn-unanswered",),
)
def time_wait(case: Case) -> Matches:
    for host in silent_hosts(case):
        for port in host.ports:
            at_port = host.at_ports([port])
            reused = ports_reused(case, host, port) if host.open_ports[port] >= CASES_MIN else {}
            opened = host.open_ports[port] - len(reused)
            if len(reused) < len(at_port.flows) or not reused or not is_ignored(case, at_port, port, opened):
                continue
            case.claimed.update(reused)
            shortest, longest = (show_duration(ns) for ns in (min(reused.values()), max(reused.values())))
            yield Match(
                certainty="likely",
                place="server",
                proof=f"{'all ' if len(reused) > 1 else ''}{plural(len(reused), 'attempt')} came from ports that had closed",
                excluded={
                    "accept-queue": f"{plural(opened, 'connection')} from other ports came about",
                    "bad-member": "the port was used before in each case",
                },
                undecided={"stale-entry": f"Capture at {host.address}: do these SYNs arrive?"},
                machine=host.address,
                host=endpoint_str(host.address, port),
                what=ignored_str(at_port),
                holder="it probably still held the old ones (TIME_WAIT)"
                if len(reused) > 1
                else "it or a firewall probably still held the old one",
                since=shortest if shortest == longest else f"{shortest} to {longest}",
                opened=opened,
                **attempt_fields(case, at_port, "syn-unanswered") | {"attempts": len(reused) + opened},
            )
