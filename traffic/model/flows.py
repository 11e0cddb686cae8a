# SPDX-License-Identifier: Apache-2.0
"""The sessions that send what the flows of an analysis sent: UDP by sizes and gaps, TCP by turns or its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.query import connect, dicts
from wiretale.analyzer.units import plural
from wiretale.traffic.experiment.plan import SESSIONS_MOST
from wiretale.traffic.experiment.plan_value import DAY_NS
from wiretale.traffic.model.datagrams import Datagrams
from wiretale.traffic.model.plan_file import ModelSession, Value
from wiretale.traffic.model.turns import Turns
from wiretale.traffic.pattern import SIZE_LEAST

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

LINES_MOST = 10_000  # of a pattern: more datagrams are drawn from as many
FLOWS_MOST = 32  # modeled if no flow is chosen, the largest
TCP_BLOCK = 8192
DIRECTIONS = ("forward", "reverse")  # of the sessions: from the initiator of the flow, to it
FLOWS = """
SELECT flow, protocol, source, source_port, destination, destination_port, first_ns, exchange, payload_bytes,
    (SELECT list(unique_bytes ORDER BY direction) FROM directions WHERE directions.flow = flows.flow) AS unique_bytes
FROM flows ORDER BY payload_bytes DESC, flow
"""
Row = dict[str, Any]


@dataclass
class Model:
    """The sessions, and remarks about flows that are not in them."""

    sessions: list[ModelSession]
    remarks: list[str]


def place(flow: Row) -> str:
    """Returns the endpoints of a flow as text."""
    ends = ((flow["source"], flow["source_port"]), (flow["destination"], flow["destination_port"]))
    return " to ".join(str(address) if port is None else f"{address} port {port}" for address, port in ends)


def why_not(flow: Row) -> str | None:
    """Returns the reason why a flow cannot be modeled; None if it can."""
    if flow["first_ns"] is None:
        return "its packets have no times"
    if not flow["payload_bytes"]:
        return "it has no payload"
    if flow["protocol"] == "udp":
        return None
    if flow["protocol"] != "tcp":
        return f"its protocol is {flow['protocol']}"
    return None if flow["exchange"] in ("streaming", "turns") else "it has neither turns nor a single direction"


def chosen_flows(trace: Trace, numbers: Sequence[int]) -> tuple[list[Row], list[str]]:
    """Returns the flows to model, and remarks about the others. UsageError if a chosen one is missing or cannot be modeled."""
    with connect(trace) as connection:
        by_number = {flow["flow"]: flow for flow in dicts(connection, FLOWS)}
    for number in numbers:
        if number not in by_number:
            raise UsageError(f"--flow {number}: the capture has {plural(len(by_number), 'flow')}, numbered from 0")
        if reason := why_not(by_number[number]):
            raise UsageError(f"--flow {number}: cannot be modeled, because {reason}")
    if numbers:
        return [by_number[number] for number in dict.fromkeys(numbers)], []
    refused = [(flow, reason) for flow in by_number.values() if (reason := why_not(flow))]
    modeled = [flow for flow in by_number.values() if not why_not(flow)]
    remarks = [f"Not modeled: flow {flow['flow']}, {place(flow)}: {reason}." for flow, reason in refused[:FLOWS_MOST]]
    left_out = len(refused[FLOWS_MOST:]) + len(modeled[FLOWS_MOST:])
    if left_out:
        remarks.append(f"Not modeled: {plural(left_out, 'other flow')}.")
    return modeled[:FLOWS_MOST], remarks


def udp_session(flow: Row, direction: int, datagrams: Datagrams) -> ModelSession | None:
    """Returns the session of one direction of a UDP flow; None if it has no datagrams."""
    number, place_of = flow["flow"], (0, flow["flow"], direction)
    if not (count := datagrams.count(place_of)):
        return None
    draws = count > LINES_MOST
    order = f"drawn from {LINES_MOST} of them" if draws else "all in their order"
    label = f"flow {number} {DIRECTIONS[direction]}"
    keys: dict[str, Value] = {"label": label, "protocol": "udp", "count": count}
    keys |= {name: True for name, is_set in (("draw", draws), ("reverse", direction)) if is_set}
    remark = f"{label}, {place(flow)}: sizes and gaps of {plural(count, 'datagram')}, {order}."
    return ModelSession(datagrams.first_ns(place_of), keys, remark, datagrams.lines(place_of, LINES_MOST))


def tcp_session(flow: Row) -> ModelSession:
    """Returns the session of a TCP stream, which sends its bytes as fast as the path permits."""
    sent = [count or 0 for count in flow["unique_bytes"]]
    direction = sent.index(max(sent))
    count = max(1, -(-max(sent) // TCP_BLOCK))
    size = max(SIZE_LEAST, -(-max(sent) // count))
    label = f"flow {flow['flow']} {DIRECTIONS[direction]}"
    keys: dict[str, Value] = {"label": label, "protocol": "tcp", "size": size, "count": count}
    if direction:
        keys["reverse"] = True
    return ModelSession(flow["first_ns"], keys, f"{label}, {place(flow)}: {max(sent)} bytes at once.")


def turns_session(flow: Row, turns: Turns) -> ModelSession | None:
    """Returns the session of a TCP flow with requests and responses; None if no request has a response."""
    place_of = (0, flow["flow"], turns.direction(flow["flow"]))
    if not (count := turns.count(place_of)):
        return None
    draws = count > LINES_MOST
    label = f"flow {flow['flow']} turns"
    keys: dict[str, Value] = {"label": label, "protocol": "tcp", "count": count, **({"draw": True} if draws else {})}
    order = f"drawn from {LINES_MOST} of them" if draws else "all in their order"
    remark = f"{label}, {place(flow)}: {plural(count, 'turn')}, {order}."
    return ModelSession(turns.first_ns(place_of), keys, remark, turns.lines(place_of, LINES_MOST), "turns")


def sessions_of(flow: Row, datagrams: Datagrams | None, turns: Turns) -> list[ModelSession]:
    """Returns the sessions of a flow."""
    if flow["exchange"] == "turns":
        candidates = [turns_session(flow, turns)]
    elif flow["protocol"] == "tcp" or datagrams is None:
        candidates = [tcp_session(flow)]
    else:
        candidates = [udp_session(flow, direction, datagrams) for direction in range(len(DIRECTIONS))]
    return [session for session in candidates if session]


def add_in_time(pairs: list[tuple[Row, ModelSession]], model: Model, is_chosen: bool) -> None:
    """Adds the sessions that a plan can start. UsageError if another one is of a chosen flow."""
    first_ns = min((session.start_ns for _, session in pairs), default=0)
    why = "it begins more than a day after the first"
    for flow, session in pairs:
        if session.start_ns - first_ns <= DAY_NS:
            model.sessions.append(session)
        elif is_chosen:
            raise UsageError(f"--flow {flow['flow']}: cannot be modeled, because {why}")
        else:
            model.remarks.append(f"Not modeled: {session.label}, {place(flow)}: {why}.")


def model_of(trace: Trace, numbers: Sequence[int] = ()) -> Model:
    """Returns the model of chosen flows, or of the largest. UsageError if none can be modeled."""
    flows, remarks = chosen_flows(trace, numbers)
    udp = [flow["flow"] for flow in flows if flow["protocol"] == "udp"]
    datagrams = Datagrams().add(trace, udp) if udp else None
    turns = Turns().add(trace)
    model = Model([], remarks)
    pairs = [(flow, session) for flow in flows for session in sessions_of(flow, datagrams, turns)]
    add_in_time(pairs, model, bool(numbers))
    if not model.sessions:
        why = f" ({remarks[0]})" if remarks else ""
        raise UsageError(
            f"no flow can be modeled: expected UDP flows, TCP streams or turns, with payload and times{why}"
        )
    if datagrams and datagrams.dropped:
        remarks.append(f"Not modeled: {plural(datagrams.dropped, 'packet')} after the first 2,000,000.")
    if (count := len(model.sessions)) > SESSIONS_MOST:
        raise UsageError(f"--flow: expected flows of at most {SESSIONS_MOST} directions, found {count}")
    model.sessions.sort(key=lambda session: session.start_ns)
    return model
