# SPDX-License-Identifier: Apache-2.0
"""Ports that answer some SYNs and not others without a difference in the SYN: by load, or by the link that its ports choose."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import times_str
from wiretale.analyzer.causes.unanswered.dropped_syns import effects_of_syns
from wiretale.analyzer.causes.unanswered.silent_hosts import (
    ATTEMPTS_MAX,
    HOSTS_MAX,
    SilentHost,
    about,
    attempt_fields,
    first_syns,
    silent_hosts,
)
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.turns import took
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import ends_of, family
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.findings.attempts import Retried
    from wiretale.analyzer.rows import FlowRow

SLOW_MIN, SLOW_SHARE = 3, 0.2  # connections after repeated SYNs, and their share of those to the server
LOSS_RATIO = 0.2  # of the repeated data to the attempts that fail: above, the path loses packets of all kinds
LOADED, UNLOADED = 0.8, 0.2  # of the attempts without an answer, or with a late one, began while a connection was open
APART_NS = 1_000_000_000  # from one attempt to the next: a limit of new connections is seldom below one in a second
SEGMENTS_MIN = 10  # of data: fewer don't show that only SYNs are lost
MEMBERS_MIN = 4  # attempts without an answer, and connections
UNLESS = " (unless a device limits connections to it)"
ATTEMPTS_SHARE = 0.5  # of the time that answers took, in attempts: a server with so many is rather full than slow
STUCK_SYNS = 4  # of an attempt without an answer, and connections meanwhile, whose first SYN was answered


@cause(
    code="stale-entry",
    title="The ports of one connection are dropped",
    sentence="{count} of {total:connection} to {host} {hangs}: none of {syns:SYN} of {client}{time} was answered, while {open} "
    "others meanwhile connected at the first SYN. A NAT, load balancer or firewall probably holds a stale entry for {ports}, or "
    "one of several paths fails.",
    advice="Look for these ports on the way and at both ends (`conntrack -L -p tcp --orig-port-src {port}`), delete the entry "
    "(`conntrack -D`), or connect again from another port. In Kubernetes such an entry is made while a service has no endpoint.",
    shows="One to three attempts of a client at a port, each of at least four SYNs, get no answer. Meanwhile at least four "
    "other connections of that client are established, each at its first SYN.",
    rivals={
        "accept-queue": "all other SYNs of that time were answered at once",
        "random-loss": "all SYNs of one attempt are lost, and none of the others",
        "bad-member": "four attempts or more show several links or servers",
        "filtered": "other connections to that port are established at once",
    },
    unknown="Where: one entry of a table for these ports, or the link or server that is chosen by them.",
    explains=("syn-unanswered",),
)
def stale_entry(case: Case) -> Matches:
    for queue in queues_of(case):
        silent = queue.silent
        if silent is None or queue.slow or silent.failed >= MEMBERS_MIN or repeated_share(case, queue.rows) > 0:
            continue
        meanwhile = [at_first_syn(case, queue, flow) for flow in silent.flows]
        if min(meanwhile) >= STUCK_SYNS and min(silent.facts.syn_counts[flow] for flow in silent.flows) >= STUCK_SYNS:
            case.claimed.update(silent.flows)
            ports = [case.flow(flow)["source_port"] or 0 for flow in silent.flows]
            yield Match(
                certainty="likely",
                place="path",
                proof=f"{plural(silent.syns, 'SYN')} unanswered, and none of {min(meanwhile):,} other connections meanwhile",
                excluded={
                    "accept-queue": "all other SYNs of that time were answered at once",
                    "random-loss": "all SYNs of one attempt are lost, and none of the others",
                },
                undecided={"filtered": f"a capture at {queue.server[0]}: whether these SYNs arrive there"},
                host=endpoint_str(*queue.server),
                client=silent.client,
                count=silent.failed,
                total=queue.total,
                hangs="hangs" if silent.failed == 1 else "hang",
                syns=silent.syns,
                time=silent.time,
                open=min(meanwhile),
                ports=f"source port {ports[0]}" if len(ports) == 1 else "these source ports",
                port=str(ports[0]),
                **attempt_fields(case, silent, "syn-unanswered") | {"attempts": queue.total},
            )


def at_first_syn(case: Case, queue: Queue, attempt: int) -> int:
    """Returns how many connections of the same client began while an attempt lasted, all at their first SYN; 0 if one did not."""
    facts = queue.silent.facts if queue.silent else None
    if facts is None:
        return 0
    start, end = facts.first_ns[attempt], facts.last_ns[attempt]
    flows = [
        flow
        for flow in queue.connections
        if facts.sources[flow] == facts.sources[attempt] and start <= facts.first_ns[flow] <= end
    ]
    counts = array("I", case.trace.directions._packed("syns", "I", flows=flows))[::2] if flows else ()
    return len(flows) if all(count == 1 for count in counts) else 0


def are_apart(case: Case, queue: Queue) -> bool:
    """Returns whether the connections that came late began apart from all others: no limit of a rate dropped their SYNs."""
    firsts = array("d", case.trace.flows._packed("first_ns", "d", flows=queue.connections))
    began = dict(zip(queue.connections, firsts, strict=True))
    order = sorted(firsts)
    near = sum(
        bisect_left(order, began[each.flow]) - bisect_left(order, began[each.flow] - APART_NS) > 0
        for each in queue.slow
    )
    return near <= UNLOADED * len(queue.slow)


@cause(
    code="setup-lost",
    title="The first SYNs of connections are lost",
    sentence="The first SYNs of {count} of {total:connection} to {server} are lost: {they} connected only at a repeat, after "
    "{waits}{beside}, and no data was lost. No open connection could fill a queue, so a device that first has to learn each flow "
    "(NAT, load balancer, policy, ARP) probably drops its first packets.",
    advice="Capture on both sides of the devices before {host} and see where the first SYN ends: the table or log of a NAT or "
    "firewall (`conntrack -S`: insert_failed, drop), the policy agent of the node, ARP. Connections that are kept open avoid it.",
    shows="At least three connections, and a fifth of those to a port, get their SYN-ACK only at a repeated SYN, though each "
    "connects in the end. At most a fifth of them began while another connection was open, or within 1 s of another, and no data "
    "is repeated.",
    rivals={
        "accept-queue": "no other connection was open, or began just before, when most of them began",
        "random-loss": "only first SYNs are lost, and no data of the same connections",
        "option-dropped": "no option separates them",
        "stale-entry": "each attempt connects in the end",
    },
    unknown="Which device, or whether the server itself ignores them.",
    explains=("syn-lost",),
)
def setup_lost(case: Case) -> Matches:
    for queue in queues_of(case):
        segments = segments_of(case, queue)
        if segments >= SEGMENTS_MIN and is_setup(case, queue) and not repeated_share(case, queue.rows):
            case.claimed.update(queue.flows)
            yield setup_match(case, queue, segments)


def segments_of(case: Case, queue: Queue) -> int:
    """Returns the data segments of the first connections to a server."""
    return sum(case.direction(row["flow"], side)["data_packets"] or 0 for row in queue.rows for side in (0, 1))


def is_setup(case: Case, queue: Queue) -> bool:
    """Returns whether connections came late, though each in the end, and no load explains it."""
    return queue.is_busy and not queue.quiet and queue.load <= UNLOADED and are_apart(case, queue)


def setup_match(case: Case, queue: Queue, segments: int) -> Match:
    """Returns the match of connections whose first SYNs are lost."""
    (host, port), at_once = queue.server, queue.total - queue.hindered
    return Match(
        certainty="likely",
        place="path",
        findings=[*about(case, queue.flows, "syn-lost"), *effects_of_syns(case, queue.flows)],
        flows=queue.flows,
        attempts=queue.total,
        waited_ns=union_ns([handshake.waited for handshake in queue.slow]),
        frames=[event.packet for handshake in queue.slow for event in handshake.lost[:1]],
        packets=queue.hindered,
        filter=f"{family(host)}.addr == {host} && tcp.port == {port} && tcp.flags.syn == 1",
        proof=f"{queue.hindered:,} only at a repeated SYN, and none of {segments:,} data segments repeated",
        excluded={
            "accept-queue": "no other connection was open when most of them began",
            "random-loss": f"none of {segments:,} data segments was lost",
            "option-dropped": "no option separates them",
            "stale-entry": "each connected in the end",
        },
        undecided={"filtered": f"a capture at {host}: whether the first SYNs arrive there"},
        server=endpoint_str(host, port),
        host=host,
        count=queue.hindered,
        total=queue.total,
        they="they" if at_once else "all",
        beside=f", the other {at_once:,} at once" if at_once else "",
        waits=times_str([each.waited.ns for each in queue.slow]),
    )


@cause(
    code="accept-queue",
    title="Accept queue full",
    sentence="{what} {outcome}, while {open:other|others} connected[{unserved}]; its accept queue {is_full}[{slow}].",
    advice="Look on {host} at `ss -lnt` (is Recv-Q at its limit, Send-Q?) and `nstat -az TcpExtListenOverflows`; find what "
    "keeps the program from accepting, or raise its listen() backlog and `net.core.somaxconn`.",
    shows="A port leaves attempts unanswered, or answers them only after repeated SYNs, while it answers others at the same "
    "time. Or it repeats SYN-ACKs after the handshake and the client repeats its first data. It is likely if connections to "
    "the port were open when those attempts began. Slow answers of the server are told with it, unless its clients waited more "
    "than twice as long for them as for SYN-ACKs.",
    rivals={
        "filtered": "the port answers others in the same time",
        "random-loss": "data of these hosts is not lost in the same measure",
        "paws-refused": "no lower timestamp separates them",
        "option-dropped": "no option separates them",
        "syn-flood": "the handshakes of the others were completed",
        "host-down": "the port answers others in the same time",
        "slow-server": "clients wait before the server has accepted them, too",
    },
    unknown="At the client, whether a rate limit or a full connection table of a firewall drops the SYNs.",
    explains=("syn-unanswered", "accept-deferred", "request-unanswered"),
)
def accept_queue(case: Case) -> Matches:
    for queue in queues_of(case):
        if (
            queue.is_busy
            and queue.has_others
            and repeated_share(case, queue.rows) <= LOSS_RATIO * queue.hindered / queue.total
        ):
            case.claimed.update(queue.flows)
            yield of_queue(case, queue)


def queues_of(case: Case) -> Iterator[Queue]:
    """Yields the servers with attempts without an answer or with a late one beside connections."""
    slow = slow_handshakes(case)
    silent: dict[tuple[str, int], SilentHost] = {}
    for host in silent_hosts(case):
        if not host.errors:
            silent.update({(host.address, port): host.at_ports([port]) for port in host.ports if host.open_ports[port]})
    for server in dict.fromkeys([*silent, *slow]):
        connections = connections_of(case, server)
        rows, quiet = [case.flow(flow) for flow in connections[:ATTEMPTS_MAX]], silent.get(server)
        late = slow.get(server, [])
        load = load_of(case, connections, late, quiet.flows if quiet else [each.flow for each in late])
        yield Queue(server, quiet, late, connections, rows, load)


def load_of(case: Case, connections: list[int], late: list[Retried], attempts: list[int]) -> float:
    """Returns the share of attempts that began while a connection to the same port was open."""
    states, is_open = case.transfers.attempts.states, case.transfers.attempts.numbers["established"]
    fields = [(name, "d", case.transfers.base_ns, 1) for name in ("first_ns", "last_ns")]
    firsts, lasts = (array("d", column) for column in case.trace.flows._packed_columns(fields))
    waits = {each.flow: each.waited.ns for each in late}
    began = sorted(firsts[flow] + waits.get(flow, 0.0) for flow in connections)
    ended = sorted(lasts[flow] if states[flow] != is_open else math.inf for flow in connections)
    return sum(bisect_right(began, firsts[flow]) > bisect_left(ended, firsts[flow]) for flow in attempts) / len(
        attempts
    )


class Queue(NamedTuple):
    """A server with attempts without an answer or with a late one, and the connections to it that came about."""

    server: tuple[str, int]
    silent: SilentHost | None
    slow: list[Retried]
    connections: list[int]
    rows: list[FlowRow]  # of the first connections
    load: float  # share of the attempts without an answer, or else with a late one, that began while a connection was open

    @property
    def quiet(self) -> list[int]:
        """The attempts without an answer."""
        return self.silent.flows if self.silent else []

    @property
    def silent_spans(self) -> list[Span]:
        """The times of these."""
        return self.silent.spans if self.silent else []

    @property
    def flows(self) -> list[int]:
        """The attempts without an answer or with a late one."""
        return [*self.quiet, *(handshake.flow for handshake in self.slow)]

    @property
    def hindered(self) -> int:
        """The number of these."""
        return len(self.quiet) + len(self.slow)

    @property
    def total(self) -> int:
        """The number of all attempts."""
        return len(self.quiet) + len(self.connections)

    @property
    def is_busy(self) -> bool:
        """Whether enough attempts failed while the server had other connections."""
        if self.silent and self.silent.syns > self.silent.failed:
            return self.load >= LOADED
        return len(self.slow) >= SLOW_MIN and self.hindered >= SLOW_SHARE * self.total

    @property
    def has_others(self) -> bool:
        """Whether the port accepted others at once, or had connections open: else nothing shows that it was busy."""
        return self.load >= LOADED or self.total > self.hindered

    @property
    def outcome(self) -> str:
        """`got no SYN-ACK, or only after 3 s`."""
        late = f"only after {show_duration(max(each.waited.ns for each in self.slow))}" if self.slow else ""
        if not self.quiet:
            return f"got the SYN-ACK {late}"
        return "got no SYN-ACK" + (f", or {late}" if late else "")


def slow_handshakes(case: Case) -> dict[tuple[str, int], list[Retried]]:
    """Returns the connections by server that came about only after a lost SYN."""
    if not case.findings("syn-lost"):
        return {}
    retried = [
        handshake
        for handshake in case.transfers.attempts.retried
        if handshake.lost
        and handshake.flow not in case.claimed
        and not any(event.direction for event in handshake.lost)
    ]
    slow: dict[tuple[str, int], list[Retried]] = defaultdict(list)
    for handshake, (_, server) in zip(retried, ends_of(case.transfers, [each.flow for each in retried]), strict=True):
        slow[server].append(handshake)
    frequent = sorted(slow.items(), key=lambda group: -len(group[1]))[:HOSTS_MAX]
    return {server: group for server, group in frequent if len(group) >= SLOW_MIN}


def connections_of(case: Case, server: tuple[str, int]) -> list[int]:
    """Returns the connections to a server that came about."""
    flows, attempts = case.trace.flows, case.transfers.attempts
    ports = array("I", flows._packed("destination_port", "I"))
    return [
        flow
        for flow, host in enumerate(flows.column("destination"))
        if host == server[0] and ports[flow] == server[1] and attempts.is_connection(flow)
    ]


def repeated_share(case: Case, rows: Sequence[FlowRow]) -> float:
    """Returns the share of the data segments of these flows that were retransmitted, without flows whose final ACK the server
    dropped: its SYN-ACK is repeated, and so is the first data."""
    pairs = [(case.direction(row["flow"], 0), case.direction(row["flow"], 1)) for row in rows]
    sides = [side for pair in pairs if (pair[1]["syns"] or 0) < 2 for side in pair]
    names = (
        ("retransmissions", 1),
        ("syn_fin_retransmissions", -1),
        ("spurious_retransmissions", -1),
        ("syn_fin_spurious", 1),
    )
    repeated = sum(sign * (integer_in(side, name) or 0) for side in sides for name, sign in names)
    return max(repeated, 0) / max(sum(side["data_packets"] or 0 for side in sides), 1)


class Slowness(NamedTuple):
    """The slow answers of a server whose clients wait for its SYN-ACKs as well."""

    findings: list[Numbered]
    waited: list[Span]
    text: str


def slowness_of(case: Case, queue: Queue) -> Slowness:
    """Returns the slow answers of a server, unless its clients waited for them much longer than for its SYN-ACKs."""
    flows = set(queue.connections)
    findings = [each for each in case.findings("slow-server") if all(flow in flows for flow, _ in each.finding.flows)]
    by_flow = {flow["flow"]: server for server in case.transfers.turns.slow_servers for flow in server.flows}
    server = by_flow[findings[0].finding.flows[0][0]] if findings else None
    tried_ns = math.fsum([*(each.waited.ns for each in queue.slow), *(span.ns for span in queue.silent_spans)])
    if server is None or tried_ns < ATTEMPTS_SHARE * math.fsum(server.slow):
        return Slowness([], [], "")
    words = took(server.slow)
    return Slowness(
        findings, server.waited, f", and it took {words['took']}{words['median']} to answer {words['requests']}"
    )


def of_queue(case: Case, queue: Queue) -> Match:
    """Returns the match of a server whose connections fail as those of a full accept queue do."""
    (host, port), flows = queue.server, queue.flows
    unserved = about(case, queue.connections, "request-unanswered")
    requests = sum(each.finding.failed or 0 for each in unserved)
    server, is_loaded = endpoint_str(host, port), queue.load >= LOADED
    hindered, slow = f"{queue.hindered:,} of {plural(queue.total, 'connection')}", slowness_of(case, queue)
    return Match(
        certainty="likely" if is_loaded else "possible",
        place="server",
        findings=[
            *about(case, flows, "syn-unanswered", "syn-lost", "accept-deferred"),
            *effects_of_syns(case, flows),
            *unserved,
            *slow.findings,
        ],
        flows=flows,
        failed=len(queue.quiet),
        attempts=queue.total,
        waited_ns=union_ns([*queue.silent_spans, *(handshake.waited for handshake in queue.slow), *slow.waited]),
        frames=[
            *(first_syns(case, queue.silent) if queue.silent else []),
            *(event.packet for handshake in queue.slow for event in handshake.lost[:1]),
        ],
        packets=queue.hindered,
        filter=f"{family(host)}.addr == {host} && tcp.port == {port} && tcp.flags.syn == 1",
        proof=f"{plural(len(queue.connections), 'connection')} to the same port opened in the same time",
        excluded={
            "option-dropped": "no option separates them",
            "random-loss": "data of the same hosts is not lost in that measure",
            "paws-refused": "no lower timestamp separates them",
            "syn-flood": "the handshakes of the others were completed",
        },
        undecided={
            "filtered": f"`nstat TcpExtListenOverflows` on {host}: whether its queue drops them, or a device before it"
        },
        host=host,
        what=f"{server} accepts too slowly: {hindered}" if is_loaded else f"{hindered} to {server}",
        is_full=f"is probably full{'' if unserved else UNLESS}"
        if is_loaded
        else "may be full, or a device limits new connections",
        outcome=queue.outcome,
        open=len(queue.connections) - len(queue.slow),
        unserved=f", and {plural(requests, 'request')} there got no answer either" if unserved else "",
        slow=slow.text,
    )


def has_late(queue: Queue, case: Case) -> bool:
    """Returns whether a connection came about only after a repeated SYN."""
    among = set(queue.connections)
    return any(each.lost and each.flow in among for each in case.transfers.attempts.retried)


def switches(silent: list[int], connections: list[int]) -> int:
    """Returns how often attempts without an answer and connections followed one another."""
    order = sorted([*((flow, False) for flow in silent), *((flow, True) for flow in connections)])
    return sum(first[1] != second[1] for first, second in pairwise(order))


@cause(
    code="bad-member",
    title="One of several parallel links or servers fails",
    sentence="One of several parallel links or servers behind {server} probably fails: {count} of {total:connection} got no "
    "answer to any of their {syns:SYN}, the other {open} lost nothing, and no load explains it.",
    advice="Try several source ports (`mtr -T -P {port} {host}`), and look at the members of the load balancer or link bundle "
    "(`show etherchannel load-balance`); take the bad one out.",
    shows="A port answers no SYN of some attempts, at least four, while no other connection is open. At least four other "
    "attempts are established at once and lose nothing.",
    rivals={
        "accept-queue": "no other connection was open when the attempts began",
        "random-loss": "all SYNs of these attempts are lost, and nothing of the others, their first SYN included",
        "paws-refused": "no lower timestamp separates them",
        "filtered": "other connections to that port are established at once",
    },
    unknown="Which link or server, and by which ports it is chosen.",
    explains=("syn-unanswered",),
)
def bad_member(case: Case) -> Matches:
    for queue in queues_of(case):
        silent, working = queue.silent, len(queue.connections)
        if silent is None or min(silent.failed, working) < MEMBERS_MIN or queue.load >= LOADED:
            continue
        if switches(silent.flows, queue.connections) < MEMBERS_MIN:
            continue
        if silent.syns < 2 * silent.failed or repeated_share(case, queue.rows) > 0 or has_late(queue, case):
            continue
        host, port = queue.server
        case.claimed.update(silent.flows)
        yield Match(
            certainty="likely",
            place="path",
            proof=f"{plural(silent.syns, 'SYN')} of {plural(silent.failed, 'attempt')} unanswered, none of {working:,} others",
            excluded={
                "accept-queue": "no other connection was open when most of these attempts began",
                "random-loss": "all SYNs of these attempts are lost, and nothing of the others",
                "paws-refused": "no lower timestamp separates them",
            },
            undecided={
                "filtered": f"more attempts from the same source ports: whether the same ones fail again at {host}"
            },
            server=endpoint_str(host, port),
            host=host,
            port=port,
            count=silent.failed,
            total=queue.total,
            syns=silent.syns,
            open=working,
            **attempt_fields(case, silent, "syn-unanswered") | {"attempts": queue.total},
        )
