# SPDX-License-Identifier: Apache-2.0
"""Resets of connections on which something was open: by the host itself, or by a device in between."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import ending_cited, largest_groups, of_connections, server_str, times_str
from wiretale.analyzer.causes.ended.timer import short_answers
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection, End
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import EndingRow

INITIAL_TTLS = (64, 128, 255)
TTL_SURE = 2  # hops; one may be the load of a router that changed
SOONER = 0.6  # of the least round trip to the host: it cannot have answered
RTT_MIN_NS = 1_000_000  # shorter ones prove nothing
ID_STEP_MAX = 2000  # of a counter that all connections of a host share
AT_ONCE_NS = 5_000_000  # resets of a process that died
ANSWER_NS = 5_000_000_000  # beyond the round trip: later, a RST answers no packet
ACCEPTED_NS, ACCEPTED_MIN, ACCEPTED_MAX = 500_000_000, 3, 2_000  # since the SYN-ACK; connections
CONTROL_NS, WAITED_SHARE = 2_000_000_000, 0.8  # around a stream; of its time
EFFECTS = ("reset", "idle-reset", "retransmission-unlocated", "request-unanswered", "lost-downstream", "slow-server")


class Reset(NamedTuple):
    """A reset, and what shows that its sender did not send it."""

    connection: Connection
    row: EndingRow
    signs: tuple[str, ...]
    is_sure: bool
    host_ttl: int | None  # of the host that did not send it

    @property
    def is_forged(self) -> bool:
        """Whether a sign shows that a device sent it."""
        return bool(self.signs)

    @property
    def signs_str(self) -> str:
        """`TTL 61 against 52, 0.4 ms after the request on a path of 23 ms`."""
        return ", ".join(self.signs)

    @property
    def hops(self) -> int:
        """How many routers away the device is from the capture point; 0 if its TTL does not tell, because it would be behind the
        host."""
        hops = hops_of(self.row["ttl"])
        return hops if self.host_ttl is None or hops < hops_of(self.host_ttl) else 0

    @property
    def has_no_socket(self) -> bool:
        """Whether a host answered a packet of a connection that it does not know (RFC 9293 section 3.10.7.1)."""
        row = self.row
        is_answer = (row["reply_ns"] or 0) <= (self.connection.rtt_to(row["direction"]) or 0) + ANSWER_NS
        return is_answer and not row["with_ack"] and not row["window"] and not row["timestamps"]


def hops_of(ttl: int) -> int:
    """Returns how many routers a packet passed that began with a usual TTL."""
    return next((first for first in INITIAL_TTLS if first >= ttl), ttl) - ttl


def ttl_sign(row: EndingRow) -> tuple[str, bool] | None:
    """Returns what the TTL of a reset shows beside that of the packets before, and whether that is sure."""
    least, most = row["ttl_before_min"], row["ttl_before_max"]
    if least is None or most is None or least <= row["ttl"] <= most:
        return None
    distance = min(abs(row["ttl"] - least), abs(row["ttl"] - most))
    return f"TTL {row['ttl']} against {most if least == most else f'{least} to {most}'}", distance >= TTL_SURE


def time_sign(connection: Connection, row: EndingRow) -> str | None:
    """Returns that a reset answers sooner than its sender can. One of a live socket, with ACK and timestamps, answers nothing:
    its program closed it."""
    rtt_ns, reply_ns = connection.rtt_to(row["direction"]), row["reply_ns"]
    if (
        rtt_ns is None
        or reply_ns is None
        or rtt_ns < RTT_MIN_NS
        or reply_ns >= SOONER * rtt_ns
        or not row["unacked_bytes"]
        or (row["with_ack"] and row["timestamps"])
    ):
        return None
    return f"{show_duration(reply_ns)} after the packet that it answers, on a path of {show_duration(rtt_ns)}"


def id_sign(row: EndingRow) -> str | None:
    """Returns that the IP ID of a reset is out of the run of its sender."""
    step = row["ip_id_step"]
    return None if step is None or 0 < step <= ID_STEP_MAX else "an IP ID out of the run of its host"


def reset_of(connection: Connection, row: EndingRow) -> Reset:
    """Returns what a reset shows about its sender."""
    ttl = ttl_sign(row)
    after = row["packets_after"] or 0
    signs = [
        ttl and ttl[0],
        time_sign(connection, row),
        id_sign(row),
        f"the host went on with {plural(after, 'packet')}" if after else None,
    ]
    present = tuple(sign for sign in signs if sign)
    return Reset(connection, row, present, len(present) > 1 or bool(ttl and ttl[1]), row["ttl_before_max"])


def contradicted(connection: Connection, row: EndingRow, accepted: Connection) -> Reset:
    """Returns a reset of an attempt whose SYN the server accepted after it."""
    ttls = {ttl for name in ("ttl_min", "ttl_max") if (ttl := accepted.directions[1][name]) is not None}
    after_ns = (accepted.flow["first_ns"] or 0) - (row["time_ns"] or 0)
    signs = [f"the server accepted the same SYN {show_duration(after_ns)} later"]
    if len(ttls) == 1 and row["ttl"] not in ttls:
        signs.append(f"with TTL {min(ttls)} against {row['ttl']} of the RST")
    return Reset(connection, row, tuple(signs), True, min(ttls, default=None))


def device_cuts(case: Case) -> dict[int, Reset]:
    """Returns the resets by which devices surely ended connections in the middle of an answer, by flow."""
    halves = {row["flow"] for row in short_answers(case)}
    rows = {row["flow"]: row for row in reversed(case.connections.resets) if row["flow"] in halves}
    resets = {flow: reset_of(case.connections[flow], row) for flow, row in rows.items()}
    return {flow: reset for flow, reset in resets.items() if reset.is_sure}


def resets_with_open(case: Case) -> list[Reset]:
    """Returns the first reset of each connection on which something was open, unless an earlier cause explains it."""
    connections, explained = case.connections, case.flows_of()
    resets = []
    for flow, endings in connections.endings_with_reset.items():
        rows = sorted(
            (row for row in endings if row["kind"] == "reset"), key=lambda row: (row["time_ns"] or 0, row["frame"])
        )
        if flow in explained:
            continue
        if flow in connections.contradicted:
            resets.append(contradicted(connections[flow], rows[0], connections.contradicted[flow]))
        if case.flow(flow)["state"] == "refused":
            continue
        closed = any(row["fins"] for row in connections[flow].directions)
        by_server = rows[0]["direction"] == connections[flow].server_side
        is_open = flow in connections.open_requests or (by_server and rows[0]["unacked_bytes"])
        reset = reset_of(connections[flow], rows[0])
        if not closed and (is_open or (reset.is_sure and rows[0]["packets_after"])):  # the answer came after the RST
            resets.append(reset)
    return resets


def open_resets(case: Case) -> list[Reset]:
    """The same, and the resets by which devices cut an answer short that was acknowledged so far."""
    resets = resets_with_open(case)
    flows = case.flows_of() | {reset.connection.number for reset in resets}
    return resets + [reset for flow, reset in device_cuts(case).items() if flow not in flows]


def reset_filter(group: Sequence[Reset]) -> str:
    """Returns a display filter of the resets of the first of these connections."""
    return f"tcp.flags.reset == 1 && ({' || '.join(flow_filter(reset.connection.flow) for reset in group[:SHOWN])})"


@cause(
    code="reset-by-device",
    title="Connections reset by a device in between",
    sentence="A device{where}, not {end}, {probably}reset {count:connection}{server}: {signs}.",
    advice="Look at the log of the firewall, IPS, content filter or load balancer on the way (`traceroute -T -p {port} {host}` "
    "shows the hops); a capture at {host} shows that it sent no RST.",
    shows="The RST has another TTL than its host's earlier packets (by at least 2, or with a second sign). Or it comes sooner "
    "than 60% of the round trip to that host, or its IP ID doesn't fit. Or the host goes on sending (Weaver, Sommer, Paxson "
    "2009).",
    rivals={
        "reset-by-peer": "TTL and IP ID are in the host's own run, and the time suffices for a round trip",
        "idle-timeout": "no pause before separates the connections that were reset",
    },
    unknown="Which device. One right beside the server has nearly its TTL and its time.",
    explains=EFFECTS,
)
def reset_by_device(case: Case) -> Matches:
    forged = [reset for reset in open_resets(case) if reset.is_forged]
    for server, group in largest_groups(forged, lambda reset: reset.connection.server):
        first = max(group, key=lambda reset: (reset.is_sure, len(reset.signs)))
        is_server = first.row["direction"] == first.connection.server_side
        yield Match(
            certainty="proven" if first.is_sure else "likely",
            place="device",
            flows=[reset.connection.number for reset in group],
            failed=len(group),
            attempts=max(len(case.connections.to_server(server)), len(group)),
            frames=[ending_cited(reset.row) for reset in group[:SHOWN]],
            filter=reset_filter(group),
            proof=first.signs_str,
            excluded={"reset-by-peer": first.signs_str} if first.is_sure else {},
            undecided={} if first.is_sure else {"reset-by-peer": f"Capture at {server[0]}: does it send the RST?"},
            where=f" {plural(first.hops, 'hop')} from here" if first.hops else "",
            end="the server" if is_server else "the client",
            count=len(group),
            server=f" to {server_str([reset.connection for reset in group])}",
            signs=first.signs_str,
            host=server[0],
            port=server[1] or 443,
        )


def are_at_once(group: Sequence[Reset]) -> bool:
    """Returns whether several connections were reset in one moment."""
    times = sorted(reset.row["time_ns"] or 0 for reset in group)
    return len(times) > 1 and times[-1] - times[0] <= AT_ONCE_NS


def are_first(case: Case, group: Sequence[Reset]) -> bool:
    """Returns whether several connections were reset at the first message of their clients."""
    requests = [case.connections.open_request(reset.connection.number) for reset in group]
    return len(requests) > 1 and all(row is not None and not row["turn"] for row in requests)


def what_happened(case: Case, group: Sequence[Reset], is_server: bool) -> str:
    """Returns what the resets show about their sender."""
    if all(reset.has_no_socket for reset in group):
        them = "it" if len(group) == 1 else "them"
        return f"the host no longer knew {them}, as after a restart of the host or program"
    if is_server and are_first(case, group) and not are_at_once(group):
        return "each at its client's first message, which the process refuses or dies of"
    return (
        "all in one moment: its process died"
        if are_at_once(group)
        else "its process closed it, or died"
        if len(group) == 1
        else "its process closed them, or died"
    )


@cause(
    code="reset-by-peer",
    title="Connections reset by an end itself",
    sentence="{end} itself {probably}reset {count:connection}{of} with a request open, {after} after the last packet: {what}.",
    advice="Look at the log of {host} at that second (a crash, a full disk, `dmesg | grep -i oom`), and at "
    "`nstat -az TcpExtTCPAbortOnData TcpExtTCPAbortOnClose`.",
    shows="A RST ends a connection without a FIN while a request is unanswered or unacknowledged. Its TTL, IP ID and time all "
    "fit the host. A RST without ACK, window and timestamps comes from a host without the socket.",
    rivals={
        "reset-by-device": "TTL, IP ID and time are the host's own",
        "client-gave-up": "no FIN of the client comes first",
        "idle-timeout": "no pause separates the connections that were reset",
    },
    unknown="Why, and whether a client did so on purpose, which is why its resets are a note: the host's log has that. A device "
    "right beside the host looks the same.",
    explains=EFFECTS,
)
def reset_by_peer(case: Case) -> Matches:
    def sender(reset: Reset) -> tuple[tuple[str, int | None], bool]:
        return reset.connection.server, reset.row["direction"] == reset.connection.server_side

    resets = [reset for reset in open_resets(case) if not reset.is_forged and not is_end_of_test(case, reset)]
    for (server, is_server), group in largest_groups(resets, sender):
        yield own_match(case, group, is_server, max(len(case.connections.to_server(server)), len(group)))


def is_end_of_test(case: Case, reset: Reset) -> bool:
    """Returns whether a reset ends a stream that another connection to the same port controls, which was opened just before,
    waited meanwhile and closes after it (a test of iperf3)."""
    stream = reset.connection.flow
    began, ended = stream["first_ns"], reset.row["time_ns"]
    if stream["exchange"] != "streaming" or began is None or ended is None:
        return False
    for flow in map(case.flow, case.connections.to_server(reset.connection.server)):
        first, last, waited = flow["first_ns"], flow["last_ns"], flow["pause_ns"]
        if (
            flow["state"] != "closed"
            or flow["source"] != stream["source"]
            or first is None
            or last is None
            or waited is None
        ):
            continue
        if (
            0 <= began - first <= CONTROL_NS
            and 0 <= last - ended <= CONTROL_NS
            and waited >= WAITED_SHARE * (ended - began)
        ):
            return True
    return False


def own_match(case: Case, group: Sequence[Reset], is_server: bool, total: int) -> Match:
    """Returns the match of connections that an end reset itself, of so many to one server."""
    is_sure = all(reset.row["ttl_before_min"] is not None for reset in group)
    host = group[0].connection.end(group[0].row["direction"])[0]
    excluded = {"client-gave-up": "no FIN came first"}
    if is_sure:
        excluded["reset-by-device"] = "TTL and IP ID are in the host's own run"
    return Match(
        certainty="proven" if is_sure else "likely",
        place="server" if is_server else "client",
        flows=[reset.connection.number for reset in group],
        failed=len(group),
        attempts=total,
        severity=None if is_server else "info",
        frames=[ending_cited(reset.row) for reset in group[:SHOWN]],
        filter=reset_filter(group),
        proof="the RST has the TTL of its host's other packets, and came no sooner than a round trip",
        excluded=excluded,
        undecided={} if is_sure else {"reset-by-device": f"Capture at {host}: does it send the RST?"},
        end=f"The server {server_str([reset.connection for reset in group])}" if is_server else f"The client {host}",
        count=len(group),
        of=f" of {total:,}" if total > len(group) else "",
        after=times_str([max(reset.row["idle_ns"] or 1, 1) for reset in group]),
        what=what_happened(case, group, is_server),
        host=host,
    )


def is_dropped(connection: Connection) -> bool:
    """Returns whether a server accepted a connection and reset it at once, before either end sent a byte."""
    flow, client, server = (
        connection.flow,
        *(connection.directions[s] for s in (connection.client_side, connection.server_side)),
    )
    return (
        flow["handshake_rtt_ns"] is not None
        and not flow["payload_bytes"]
        and not (client["fins"] or client["resets"] or server["fins"])
        and server["resets"] == 1
        and server["ttl_min"] == server["ttl_max"]
        and (server["idle_ns_max"] or 0) <= ACCEPTED_NS + flow["handshake_rtt_ns"]
    )


def without_bytes(case: Case) -> list[int]:
    """Returns the connections that were opened and reset, on which no end sent a byte."""
    resets = case.transfers.flows_where("state", "reset")
    fields = [("payload_bytes", "d", 0, 1), ("handshake_rtt_ns", "d", 0, 1)]
    columns = case.trace.flows._packed_columns(fields, resets) if resets else (b"", b"")
    sizes, trips = (array("d", column) for column in columns)
    return [flow for flow, size, trip in zip(resets, sizes, trips, strict=True) if not size > 0 and trip == trip]


@cause(
    code="reset-at-once",
    title="The server resets connections that it accepted",
    sentence="The server {server} accepted {count:connection} of {client} and reset {them} within {waited}, before a byte was "
    "sent{beside}. It {probably}{why}.",
    advice="Look at the log of {host}, at how many connections it admits (a PLC or printer: often 1 to 8) and from which "
    "clients, and of a proxy, whether its servers are up.",
    shows="The server resets at least three connections of a client within 0.5 s of the handshake, with the TTL of its "
    "SYN-ACK, before either end sent a byte.",
    rivals={
        "refused": "the handshake was complete",
        "not-greeted": "a RST, no FIN",
        "reset-by-device": "the RST has the TTL of the SYN-ACK",
    },
    unknown="Why: the log of the server has that. A device that answers for the server has its own TTL in both.",
    explains=("reset",),
)
def reset_at_once(case: Case) -> Matches:
    explained = case.flows_of()
    flows = [flow for flow in without_bytes(case) if flow not in explained][:ACCEPTED_MAX]
    dropped = [connection for connection in map(case.connections.__getitem__, flows) if is_dropped(connection)]
    for (server, client), group in largest_groups(dropped, lambda each: (each.server, each.end(each.client_side)[0])):
        if len(group) < ACCEPTED_MIN:
            continue
        served = [each for each in served_by(case, server) if each.number not in explained]
        of_client = sum(each.end(each.client_side)[0] == client for each in served)
        yield Match(
            certainty="likely",
            place="server",
            failed=len(group),
            attempts=len(group) + of_client,
            proof=f"{plural(len(group), 'RST')} of the server after its SYN-ACK, and not one byte before",
            excluded={"refused": "the handshake was complete", "reset-by-device": "the RST has the TTL of the SYN-ACK"},
            undecided={"not-greeted": f"Read the log of {server[0]}: did it refuse the client, or fail?"},
            count=len(group),
            client=client,
            them="it" if len(group) == 1 else "them",
            waited=show_duration(max(each.directions[each.server_side]["idle_ns_max"] or 0 for each in group)),
            host=server[0],
            **reset_words(group, served, of_client),
            **of_connections(group),
        )


def reset_words(group: Sequence[Connection], served: Sequence[Connection], of_client: int) -> Words:
    """Returns what connections that the server served, of all clients or of this one, say about the reason."""
    if not served:
        return {"beside": "", "why": "refuses this client, or cannot start its work"}
    first, last = (group[0].flow["first_ns"] or 0), group[-1].last_ns
    are_open = sum((each.flow["first_ns"] or 0) < last and each.last_ns > first for each in served)
    if not are_open:
        beside = f", though it served {plural(len(served), 'other connection')} before or after"
        return {"beside": beside, "why": "had reached a limit, or was not ready"}
    beside = f", while it served {plural(are_open, 'other connection')}"
    return {"beside": beside, "why": f"has reached a limit{'' if of_client else ', or does not admit this client'}"}


def served_by(case: Case, server: End) -> list[Connection]:
    """Returns the first connections to a server on which it sent data."""
    every = map(case.connections.__getitem__, case.connections.to_server(server)[:ACCEPTED_MAX])
    return [each for each in every if each.directions[each.server_side]["payload_bytes"]]
