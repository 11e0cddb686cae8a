# SPDX-License-Identifier: Apache-2.0
"""What a proxy met at the server behind it while a client waited for its error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import ExchangeRow

GATEWAY = ("502", "503", "504")  # a proxy speaks of the server behind it
BEHIND_NS, BEHIND_SHARE = 5_000_000, 0.1  # by which a request behind a proxy begins later, and ends sooner: of the wait
NO_CONNECTION = {"unanswered": "answers no SYN", "refused": "refuses connections"}
ERRORS_MAX, ROWS_MAX = 200, 2_000  # that are compared with requests behind a proxy
SYNS_SHARE = 0.5  # of the time in which a proxy tries to connect, until its last SYN
MET_CLOSE = ("reset", "closed", "farewell")  # how a request ends that meets the close of its connection
IDLE_MIN_NS, REQUEST_MIN = 1_000_000_000, 32  # bytes: an alert of TLS or a QUIT is less


class Behind(NamedTuple):
    """What a proxy met at the server behind it."""

    text: str  # `, because …`
    findings: list[Numbered]  # about the requests there
    advice: str = ""  # in place of that of the error


def fits_within(error: ExchangeRow, inner: ExchangeRow, least: float = 1.0) -> bool:
    """Returns whether a request of another host takes the time until an error, or that share of it at least: it begins shortly
    after the begin, and ends shortly before the end."""
    begin_ns, wait_ns = error["asked_ns"] or 0, error["waited_ns"] or 0
    later_ns, lasts_ns = (inner["asked_ns"] or 0) - begin_ns, inner["waited_ns"] or 0
    near_ns = BEHIND_NS + BEHIND_SHARE * wait_ns
    return 0 <= later_ns <= near_ns and least * wait_ns - near_ns <= later_ns + lasts_ns <= wait_ns + near_ns


def others_than(rows: Iterable[ExchangeRow], server: str, errors: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Returns the requests that neither the clients of a server made nor went to it."""
    clients = {row["client"] for row in errors}
    return [row for row in rows if row["client"] not in clients and row["server"] not in (None, server, *clients)]


def each_within(errors: Sequence[ExchangeRow], rows: Sequence[ExchangeRow], least: float = 1.0) -> list[int]:
    """Returns the flows of requests of which another one lies within each of some errors; none if one error has none."""
    inner = [next((each for each in rows[:ROWS_MAX] if fits_within(error, each, least)), None) for error in errors]
    flows = list(dict.fromkeys(flow for each in inner if each and (flow := each["flow"]) is not None))
    return flows if len(flows) == len(errors) else []


def silent_behind(case: Case, server: str, errors: Sequence[ExchangeRow]) -> Behind | None:
    """Returns the server behind a proxy that left a request open within each of these errors; None if the file shows none."""
    for end, silences in case.transfers.silences.items():
        if flows := each_within(errors, others_than((silence.row for silence in silences), server, errors)):
            open_ones = plural(len(errors), "request") if len(errors) > 1 else "its request"
            findings = case.effects(("request-unanswered",), flows)
            return Behind(f", because {endpoint_str(*end)} behind it left {open_ones} unanswered", findings)
    return None


def tries_behind(case: Case, server: str, errors: Sequence[ExchangeRow]) -> Behind | None:
    """Returns the server behind a proxy to which no connection came about within each of these errors; None if none shows."""
    tried: dict[tuple[str, str], list[ExchangeRow]] = defaultdict(list)
    for row in others_than(case.exchanges("outcome", *NO_CONNECTION), server, errors):
        if row["kind"] == "connect":
            tried[str(row["server"]), row["outcome"]].append(row)
    for (host, outcome), rows in tried.items():
        if flows := each_within(errors, rows, SYNS_SHARE if outcome == "unanswered" else 1.0):
            end = endpoint_str(host, case.flow(flows[0])["destination_port"])
            return Behind(f", because {end} behind it {NO_CONNECTION[outcome]}", [])
    return None


def closed_behind(case: Case, server: str, errors: Sequence[ExchangeRow]) -> Behind | None:
    """Returns the server behind a proxy that closed a connection within each of these errors, as the proxy sent its next request
    on it after a pause; None if none shows."""
    rows = [row for row in others_than(case.exchanges("outcome", *MET_CLOSE), server, errors) if is_met(case, row)]
    met = [next((row["flow"] or 0 for row in rows if begins_within(error, row)), None) for error in errors]
    flows = {flow for flow in met if flow is not None}
    if None in met or len(flows) != len(errors):
        return None
    ends = {case.connections[flow].server for flow in flows}
    if len(ends) != 1:
        return None
    ((host, port),) = ends
    end = endpoint_str(host, port)
    advice = f"Let {end} keep idle connections longer than {server} does (nginx `keepalive_timeout` there and of `upstream`), so "
    return Behind(
        f", because {end} behind it closed an idle connection as the request came",
        [],
        f"{advice}that {server} is the one that closes them.",
    )


def begins_within(error: ExchangeRow, inner: ExchangeRow) -> bool:
    """Returns whether a request begins in the time until an error: a proxy may see the FIN and give up before the RST comes."""
    return 0 <= (inner["asked_ns"] or 0) - (error["asked_ns"] or 0) <= (error["waited_ns"] or 0)


def is_met(case: Case, row: ExchangeRow) -> bool:
    """Returns whether a request followed others after a pause, and the server closed and answered none of it."""
    if row["flow"] is None or not row["turn"] or (row["pause_ns"] or 0) < IDLE_MIN_NS:
        return False
    connection = case.connections[row["flow"]]
    server = connection.directions[connection.server_side]
    return bool(server["fins"] or server["resets"]) and (row["request_bytes"] or 0) >= REQUEST_MIN


def behind(case: Case, server: str, errors: Sequence[ExchangeRow]) -> Behind:
    """Returns what these errors of a proxy follow from, as far as the file has the server behind it."""
    if len(errors) > ERRORS_MAX or not {row["code"] for row in errors} <= set(GATEWAY):
        return Behind("", [])
    return (
        silent_behind(case, server, errors)
        or tries_behind(case, server, errors)
        or closed_behind(case, server, errors)
        or Behind("", [])
    )
