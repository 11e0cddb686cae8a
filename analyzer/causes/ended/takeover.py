# SPDX-License-Identifier: Apache-2.0
"""Two clients that end each other's session, because a server takes them for one, and a client whose next connection ends the
one before."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.evidence import Cited
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.findings.shared.servers import family
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

CONNECTIONS_MAX = 20_000  # of a server
LIFE_MIN_NS, AFTER_NS = 1_000_000_000, 200_000_000
TURNS_MIN, SHARE = 4, 0.8
RIVALS_MAX = 5  # that connected at the moment of an end
MQTT_PORTS = (1883, 8883)
ENDED = ("closed", "reset")


class Session(NamedTuple):
    """A connection to a server."""

    first_ns: float  # since Transfers.base_ns
    last_ns: float
    client: str
    flow: int


def lasting_flows(case: Case, first: array[float], last: array[float]) -> list[int]:
    """Returns the connections that ended after LIFE_MIN_NS, before the last connection of the capture began."""
    states, ended = case.transfers.bytes_of("flows", "state"), {case.transfers.words[state] for state in ENDED}
    until_ns = max(first, default=0.0) + AFTER_NS
    return [
        flow
        for flow, (begin_ns, end_ns) in enumerate(zip(first, last, strict=True))
        if begin_ns + LIFE_MIN_NS <= end_ns <= until_ns and states[flow] in ended
    ]


def sessions_of(case: Case) -> dict[tuple[str, int], list[Session]]:
    """Returns the connections in the order of their beginning, by server, of servers on which a client had two that lasted: on
    others no two clients end four."""
    flows, ports = case.trace.flows, case.transfers.ports
    fields = [(name, "d", case.transfers.base_ns, 1) for name in ("first_ns", "last_ns")]
    first, last = (array("d", packed) for packed in flows._packed_columns(fields))
    lasting = lasting_flows(case, first, last)
    if len(lasting) < TURNS_MIN:
        return {}
    servers, clients = flows.column("destination"), flows.column("source")
    counts = Counter((servers[flow], clients[flow]) for flow in lasting)
    contested = {server for (server, _), count in counts.items() if count > 1}
    sessions: dict[tuple[str, int], list[Session]] = defaultdict(list)
    for state in (*ENDED, "established"):
        for flow in case.transfers.flows_where("state", state) if contested else ():
            if servers[flow] in contested and first[flow] == first[flow]:
                end_ns = last[flow] if state in ENDED else first[flow]  # an open one ends nowhere
                sessions[servers[flow], ports[flow]].append(Session(first[flow], end_ns, clients[flow], flow))
    return {end: sorted(each) for end, each in sessions.items() if TURNS_MIN < len(each) <= CONNECTIONS_MAX}


def pairs_of(sessions: list[Session]) -> dict[tuple[str, str], list[Session]]:
    """Returns by two clients the sessions of either that ended when one of the other began."""
    starts = [session.first_ns for session in sessions]
    pairs: dict[tuple[str, str], list[Session]] = defaultdict(list)
    for session in sessions:
        if session.last_ns - session.first_ns < LIFE_MIN_NS:
            continue
        begin, end = bisect_left(starts, session.last_ns - AFTER_NS), bisect_right(starts, session.last_ns)
        for rival in sessions[begin : min(end, begin + RIVALS_MAX)]:
            if rival.client != session.client:
                first, second = sorted((session.client, rival.client))
                pairs[first, second].append(session)
    return pairs


@cause(
    code="session-takeover",
    title="Two clients end each other's session",
    sentence="{first} and another client end each other's session at {server}: {count} in {time} were closed when the other one "
    "connected, {probably}because both use one {identity}.",
    advice="Give {first} and {second} each their own {identity}: the server ends the older session when the same one "
    "connects again, so they keep ending each other's.",
    shows="Two clients have at least four connections to one server, each at least 1 s old, that end within 200 ms after the "
    "other client connected. So do four of five of their connections.",
    rivals={
        "idle-timeout": "each connection ends when the other client connects, after whatever time",
        "closed-by-timer": "the ends follow the connections of the other client",
    },
    unknown="What the server takes for one: encrypted or not, the names of the clients are not read.",
    explains=("idle-reset", "reset", "request-unanswered"),
)
def session_takeover(case: Case) -> Matches:
    for (server, port), sessions in case.once(sessions_of).items():
        count = Counter(session.client for session in sessions)
        for (first, second), ended in pairs_of(sessions).items():
            both = Counter(session.client for session in ended)
            if len(both) < 2 or len(ended) < max(TURNS_MIN, SHARE * (count[first] + count[second] - 1)):
                continue
            lasted = max(session.last_ns for session in ended) - min(session.first_ns for session in ended)
            yield Match(
                certainty="likely",
                place="client",
                flows=[session.flow for session in ended],
                failed=len(ended),
                attempts=count[first] + count[second],
                frames=[
                    Cited(row["first_frame"], row["first_ns"], row["flow"], row["first_capture"])
                    for row in (case.flow(session.flow) for session in ended[:8])
                ],
                filter=f"tcp.port == {port} && {family(server)}.addr == {server} && tcp.flags & 7",
                proof=f"{plural(len(ended), 'connection')} of {first} and {second} ended within {show_duration(AFTER_NS)} after "
                "one of the other client began",
                undecided={"idle-timeout": f"The log of {server}: which session it closed, and why."},
                server=endpoint_str(server, port),
                first=first,
                second=second,
                count=plural(len(ended), "connection"),
                time=show_duration(lasted),
                identity="client ID (MQTT)"
                if port in MQTT_PORTS
                else "name (a client ID, an account or a certificate)",
            )


def replaced(case: Case, sessions: list[Session]) -> list[Session]:
    """Returns the sessions of one client that the server reset right after the client's next one began."""
    resets = {row["flow"]: row["direction"] for row in reversed(case.connections.resets)}

    def is_reset(session: Session) -> bool:
        side, connection = resets.get(session.flow), case.connections[session.flow]
        return side == connection.server_side and not any(row["fins"] for row in connection.directions)

    pairs = pairwise(sessions)
    at_once = [session for session, later in pairs if 0 <= session.last_ns - later.first_ns <= AFTER_NS]
    return [session for session in at_once if is_reset(session)]


@cause(
    code="one-at-a-time",
    title="The server serves one connection at a time",
    sentence="{server} {probably}serves {client} one connection at a time: it reset {count} within {after} after "
    "the next one began.",
    advice="Let the programs on {client} share one connection (a gateway or proxy of the protocol), let each close before the "
    "next one connects, or raise the limit of {host} (a PLC, printer or converter often admits 1 to 4).",
    shows="A client has at least four connections, each at least 1 s old, that the server resets within 200 ms after the "
    "client's next one began, without a FIN of either end. So do four of five of their connections.",
    rivals={
        "session-takeover": "all connections are of one client",
        "close-race": "nobody had closed before the RST",
        "reset-by-peer": "each reset follows the next connection, after whatever time",
    },
    unknown="Whether one program connects again or several take turns.",
    explains=("reset", "idle-reset", "request-unanswered"),
)
def one_at_a_time(case: Case) -> Matches:
    explained = case.flows_of()
    for (server, port), sessions in case.once(sessions_of).items():
        by_client: dict[str, list[Session]] = defaultdict(list)
        for session in sessions:
            by_client[session.client].append(session)
        for client, turns in by_client.items():
            ended = replaced(case, turns) if len(turns) > TURNS_MIN else []
            if len(ended) < max(TURNS_MIN, SHARE * (len(turns) - 1)) or explained.intersection(
                each.flow for each in ended
            ):
                continue
            starts = {session.flow: later.first_ns for session, later in pairwise(turns)}
            yield Match(
                certainty="likely",
                place="server",
                flows=[session.flow for session in ended],
                failed=len(ended),
                attempts=len(turns),
                filter=f"tcp.port == {port} && {family(server)}.addr == {server} && tcp.flags & 7",
                proof=f"{plural(len(ended), 'connection')} reset within {show_duration(AFTER_NS)} after the next one began",
                undecided={"reset-by-peer": f"The log of {server}: how many connections it admits."},
                server=endpoint_str(server, port),
                host=server,
                client=client,
                count=f"{len(ended):,} of {plural(len(turns), 'connection')}",
                after=show_duration(max(max(session.last_ns - starts[session.flow] for session in ended), 1)),
            )
