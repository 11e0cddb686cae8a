# SPDX-License-Identifier: Apache-2.0
"""Servers that close a connection in place of an answer, and ends that close and fall silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    ending_cited,
    filter_of,
    largest_groups,
    of_connections,
    server_str,
    times_str,
)
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of, waits_of
from wiretale.analyzer.units import plural, show_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection, End
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import EndingRow, ExchangeRow

WANTS_ANSWER = ("http", "tls")  # of others, the last message may be a farewell
UPLOAD_MIN, UPLOADING_NS = 10_000, 20_000_000  # bytes of a request that a server cuts short, and their time
TIMEOUTS_MIN = 3  # of data after a FIN
PHRASES = {"http": "HTTP request", "tls": "ClientHello"}


@cause(
    code="closed-unanswered",
    title="The server closed in place of an answer",
    sentence="The server {server} closed {count:connection} without an answer to the {request}, {waited} after it: its process "
    "{probably}ended, or refuses such requests.",
    advice="Look at the log of {host} at that second: a crash, a restart, a connection limit, or a protocol that the port "
    "does not speak.",
    shows="The server sends FIN after a first HTTP request or a ClientHello that it acknowledged, and not one byte before "
    "(exchanges.outcome: closed).",
    rivals={
        "hung-server": "the server closes",
        "reset-by-peer": "a FIN, no RST",
        "client-gave-up": "the server closes first",
    },
    unknown="Why: the log of the server has that.",
    explains=("request-unanswered",),
)
def closed_unanswered(case: Case) -> Matches:
    explained = case.flows_of()
    rows = [
        row for row in case.exchanges("outcome", "closed") if row["kind"] in WANTS_ANSWER and row["flow"] is not None
    ]
    pairs = [(row, case.connections[row["flow"] or 0]) for row in rows if row["flow"] not in explained]
    for (_, kind), group in largest_groups(pairs, lambda pair: (pair[1].server, pair[0]["kind"])):
        yield closed_match(case, PHRASES[kind], [row for row, _ in group], [connection for _, connection in group])


def closed_match(case: Case, request: str, rows: Sequence[ExchangeRow], connections: Sequence[Connection]) -> Match:
    """Returns the match of the requests that one server closed on."""
    server, waits = connections[0].server, [row["waited_ns"] for row in rows if row["waited_ns"] is not None]
    return Match(
        certainty="likely",
        place="server",
        failed=len(rows),
        attempts=max(case.connections.requests_to(server), len(rows)),
        waited_ns=union_ns(waits_of(rows)),
        frames=packets_of(rows),
        proof="FIN of the server, and not one byte before",
        excluded={"hung-server": "it closed", "client-gave-up": "its FIN came first"},
        undecided={"reset-by-peer": f"Read the log of {server[0]}: did its process end, or refuse the request?"},
        count=len(rows),
        request=request,
        waited=times_str(waits) if waits else "at once",
        host=server[0],
        **of_connections(connections),
    )


@cause(
    code="silent-after-close",
    title="Closed, then silent",
    sentence="{end} closed {count:connection}{early} and went silent: {late} sent {after} after its FIN were "
    "repeated {repeats} in {silent}, without an ACK or a RST. A firewall probably forgot the connection at the FIN, or a device "
    "without state sent it.",
    advice="Capture at {host}: does it send that FIN, and does what comes after it arrive? A firewall must keep a connection of "
    "which one end has closed its half.",
    shows="One end sends a FIN and nothing after it, while the other sends new data and repeats it in at least three "
    "timeouts. Nothing failed if the first had taken data before and the other closed as well. A host that has closed its "
    "half acknowledges data; one without the socket resets it (RFC 9293 section 3.10.7).",
    rivals={
        "peer-gone": "it closed before it fell silent",
        "close-race": "data that crosses a FIN is acknowledged, or reset",
        "closed-unanswered": "what it left unanswered came after its FIN",
    },
    unknown="Whether the host was switched off after its FIN, or a device dropped what came then.",
    explains=(
        "retransmission-unlocated",
        "timeout-stalls",
        "retransmission-cost",
        "half-open",
        "reset",
        "lost-downstream",
    ),
)
def silent_after_close(case: Case) -> Matches:
    explained = case.flows_of()
    rows = [row for row in case.connections.endings if row["flow"] not in explained and fell_silent(case, row)]

    def kind(row: EndingRow) -> tuple[End, bool]:
        return case.connections[row["flow"]].end(row["direction"]), is_unheard(case, row)

    for (_, unheard), group in largest_groups(rows, kind):
        yield silent_match(case, group, unheard)


def is_unheard(case: Case, row: EndingRow) -> bool:
    """Returns whether an end took none of the data of its peer: the peer said nothing before, or wants more after it."""
    peer = case.direction(row["flow"], 1 - row["direction"])
    return row["late_bytes"] == peer["unique_bytes"] or not peer["fins"]


def fell_silent(case: Case, row: EndingRow) -> bool:
    """Returns whether an end sent nothing after its FIN, while its peer repeated what it sent after that."""
    if row["kind"] != "fin" or not row["late_bytes"]:
        return False
    sender, peer = (case.direction(row["flow"], side) for side in (row["direction"], 1 - row["direction"]))
    is_repeated = (peer["timeouts"] or 0) >= TIMEOUTS_MIN and (peer["unacked_bytes"] or 0) >= row["late_bytes"]
    return is_repeated and sender["last_ns"] == row["time_ns"]


def late_words(case: Case, rows: Sequence[EndingRow], is_server: bool) -> Words:
    """Returns what an end sent after the FIN of its peer, and how long it repeated that."""
    peers = [case.direction(row["flow"], 1 - row["direction"]) for row in rows]
    late, waits = sum(row["late_bytes"] for row in rows), [row["late_ns"] or 0 for row in rows]
    is_early = is_server and late == sum(peer["unique_bytes"] or 0 for peer in peers)
    return {
        "early": " before a request came" if is_early else "",
        "late": show_bytes(late),
        "after": times_str(waits),
        "repeats": plural(sum(peer["retransmissions"] or 0 for peer in peers), "time"),
        "silent": times_str([span.ns for span in late_spans(case, rows)]),
    }


def late_spans(case: Case, rows: Sequence[EndingRow]) -> list[Span]:
    """Returns the times from the first data after each FIN to the last repeat of it."""
    ends = ((row, case.direction(row["flow"], 1 - row["direction"])["last_ns"]) for row in rows)
    return [Span((row["time_ns"] or 0) + (row["late_ns"] or 0), last_ns or 0) for row, last_ns in ends]


def silent_match(case: Case, rows: Sequence[EndingRow], unheard: bool) -> Match:
    """Returns the match of connections that one end closed before it fell silent. Nobody waited if its peer was done, too."""
    connections = [case.connections[row["flow"]] for row in rows]
    is_server, host = rows[0]["direction"] == connections[0].server_side, connections[0].end(rows[0]["direction"])[0]
    return Match(
        certainty="likely",
        place="device",
        flows=[connection.number for connection in connections],
        failed=len(rows) if unheard else None,
        waited_ns=union_ns(late_spans(case, rows)) if unheard else None,
        severity=None if unheard else "warning",
        frames=[ending_cited(row) for row in rows[:SHOWN]],
        filter=filter_of(connections),
        proof="a host that has closed its half acknowledges data, one without the socket resets it",
        excluded={
            "close-race": "what came after the FIN got neither ACK nor RST",
            "closed-unanswered": "it closed first",
        },
        undecided={"peer-gone": f"Capture at {host}: does the data arrive there?"},
        end=server_str(connections) if is_server else f"The client {host}",
        count=len(rows),
        host=host,
        **late_words(case, rows, is_server),
    )


def upload_of(case: Case, flow: int, endings: Sequence[EndingRow]) -> EndingRow | None:
    """Returns the FIN by which a server closed while its client was in the middle of a long request, before it reset what still
    came; None if it did not."""
    connection, request = case.connections[flow], case.connections.open_request(flow)
    first = min(endings, key=lambda row: row["time_ns"] or 0)
    client = connection.directions[connection.client_side]
    if request is None or first["kind"] != "fin" or client["fins"] or client["resets"]:
        return None
    are_of_server = all(row["direction"] == connection.server_side for row in endings)
    is_long = (request["request_bytes"] or 0) >= UPLOAD_MIN
    is_begun = (first["time_ns"] or 0) - (request["asked_ns"] or 0) >= UPLOADING_NS
    is_open = bool(first["unacked_bytes"] or first["late_bytes"])
    return first if are_of_server and is_long and is_begun and is_open else None


def acknowledged(connection: Connection, fin: EndingRow) -> int:
    """Returns the bytes of a client that its server had acknowledged when it closed."""
    return (connection.directions[connection.client_side]["unique_bytes"] or 0) - (fin["unacked_bytes"] or 0)


@cause(
    code="upload-cut",
    title="The server closed during an upload",
    sentence="The server {server} closed {count:connection} of {client} during an upload, after {sent}, "
    "and reset what was still under way: it {probably}refuses the upload (too large, not permitted, or too slow).",
    advice="Read the last message of {host} before its FIN (Follow TCP Stream) and its log: a limit of the size (Postfix "
    "`message_size_limit`, nginx `client_max_body_size`) or of the time, a missing login, a filter, a full disk.",
    shows="At least 10 kB of a request have come for 20 ms or longer, and more is under way, when the server sends a FIN. It "
    "resets what comes then; the client has closed nothing.",
    rivals={
        "close-race": "the request had begun long before the FIN",
        "reset-by-peer": "a FIN came before the RST",
        "client-gave-up": "the server closes first",
    },
    unknown="Why: the message or log of the server has that.",
    explains=("reset", "spurious", "request-unanswered"),
)
def upload_cut(case: Case) -> Matches:
    explained, endings = case.flows_of(), case.connections.endings_with_reset
    uploads = {flow: upload_of(case, flow, rows) for flow, rows in endings.items() if flow not in explained}
    cuts = [(case.connections[flow], fin) for flow, fin in uploads.items() if fin]
    for (_, client), group in largest_groups(cuts, lambda cut: (cut[0].server, cut[0].end(cut[0].client_side)[0])):
        connections = [connection for connection, _ in group]
        sizes = sorted(acknowledged(connection, fin) for connection, fin in group)
        yield Match(
            certainty="likely",
            place="server",
            failed=len(group),
            attempts=max(case.connections.requests_to(connections[0].server), len(group)),
            frames=[ending_cited(fin) for _, fin in group[:SHOWN]],
            proof="FIN of the server while data of the client was under way, then its RST",
            excluded={"client-gave-up": "the server's FIN came first"},
            undecided={"reset-by-peer": f"Read the log of {connections[0].server[0]}: did it refuse, or fail?"},
            count=len(group),
            client=client,
            sent=show_bytes(sizes[len(sizes) // 2]),
            host=connections[0].server[0],
            **of_connections(connections),
        )
