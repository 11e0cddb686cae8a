# SPDX-License-Identifier: Apache-2.0
"""What came of each request: table exchanges beside captures whose truth is known packet by packet."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wiretale
from application_wire import Talk
from capture_files import block, section
from exchange_rows import of_kind, turns_of
from plain_wire import ACK, FIN, MSS, PSH, RST, SYN, Connection, Wire, syn_options

MS = 1_000_000
RTT = 20.0
PUSH, CLOSE = PSH | ACK, FIN | ACK


class Case(NamedTuple):
    """A connection from 0 s on, and what came of its last request; None if it has none."""

    make: Callable[[Connection], object]
    outcome: str | None
    waited_ms: float | None = None
    end_ms: float = 20_000.0  # last packets of the capture, of another flow


def send_request(link: Connection, size: int = 200, ms: float = 30.0) -> Connection:
    """The client's only request, acknowledged by the server's kernel."""
    return link.open().send(ms, 0, 0, size, PUSH).ack(ms + RTT, size)


def answered(link: Connection) -> Connection:
    """A request and its response."""
    return send_request(link).send(60.0, 1, 0, 500, PUSH, ack=200).send(60.0 + RTT, 0, 200, ack=500)


def upload(link: Connection) -> None:
    link.open()
    for i in range(28):
        link.data(30.0 + i, i * MSS).ack(30.0 + i + RTT, (i + 1) * MSS)


def heartbeats(link: Connection) -> None:
    link.open()
    for i in range(6):
        link.send(30.0 + 2000 * i, 0, 40 * i, 40, PUSH).ack(30.0 + RTT + 2000 * i, 40 * i + 40)


REQUESTS = {
    "hangs": Case(send_request, "unanswered"),
    "cut off": Case(send_request, "cut_off", end_ms=4_000),
    "client gives up": Case(lambda link: send_request(link).send(2_030, 0, 200, 0, CLOSE, ack=0), "abandoned", 2_000),
    "client resets": Case(lambda link: send_request(link).send(3_030, 0, 200, 0, RST | ACK, ack=0), "abandoned", 3_000),
    "server closes": Case(lambda link: send_request(link).send(1_030, 1, 0, 0, CLOSE, ack=200), "closed", 1_000),
    "server resets": Case(lambda link: send_request(link).send(530, 1, 0, 0, RST | ACK, ack=200), "reset", 500),
    "server resets, and the client that never hears of it closes": Case(
        lambda link: send_request(link).send(530, 1, 0, 0, RST | ACK, ack=200).send(2_030, 0, 200, 0, CLOSE, ack=0),
        "reset",
    ),
    "client gives up, and the server resets": Case(
        lambda link: send_request(link).send(2_030, 0, 200, 0, CLOSE, ack=0).send(2_050, 1, 0, 0, RST | ACK, ack=201),
        "abandoned",
        2_000,
    ),
    "answered": Case(answered, "answered", 30),
    "second link hangs": Case(
        lambda link: answered(link).send(1_030, 0, 200, 100, PUSH, ack=500).ack(1_050, 300), "unanswered"
    ),
    "answered after the client closed": Case(
        lambda link: send_request(link).send(2_030, 0, 200, 0, CLOSE, ack=0).send(3_430, 1, 0, 500, PUSH, ack=201),
        "answered",
        3_400,
    ),
    "last words": Case(
        lambda link: answered(link).send(100, 0, 200, 31, PUSH, ack=500).send(100.1, 0, 231, 0, CLOSE, ack=500),
        "farewell",
    ),
    "words to a server that closed": Case(
        lambda link: (
            answered(link)
            .send(5_000, 1, 500, 0, CLOSE, ack=200)
            .send(5_020, 0, 200, ack=501)
            .send(9_000, 0, 200, 31, PUSH, ack=501)
            .send(9_020, 1, 501, 0, RST, ack=0)
        ),
        "farewell",
    ),
    "upload": Case(upload, None),
    "message without an answer": Case(lambda link: send_request(link).send(30.1, 0, 200, 0, CLOSE, ack=0), None),
    "heartbeats": Case(heartbeats, None),
}


def traced(tmp_path: Path, case: Case) -> wiretale.Trace:
    link = Connection(Wire())
    case.make(link)
    for _ in range(2):  # the clock follows two packets that agree
        link.wire.udp(case.end_ms, b"end of the capture", source="10.9.9.9", target="10.9.9.8")
    return wiretale.analyze(link.wire.write(tmp_path / "talk.pcap"))


@pytest.mark.parametrize("name", REQUESTS)
def test_each_request_has_its_outcome(name: str, tmp_path: Path) -> None:
    case = REQUESTS[name]
    rows = turns_of(traced(tmp_path, case))
    assert [row["outcome"] for row in rows[-1:]] == [case.outcome] * (case.outcome is not None)
    assert all(row["outcome"] == "answered" for row in rows[:-1])
    assert not rows or (rows[-1]["waited_ns"] is None) == (case.outcome in ("unanswered", "cut_off"))
    if case.waited_ms is not None:
        assert rows[-1]["waited_ns"] == pytest.approx(case.waited_ms * MS, abs=1000)
        assert (rows[-1]["client"], rows[-1]["server"]) == ("10.0.0.1", "10.0.0.2")


def syns(*times: float) -> Callable[[Connection], object]:
    def make(link: Connection) -> None:
        for ms in times:
            link.send(ms, 0, -1, flags=SYN, options=syn_options())

    return make


CONNECTS: dict[str, tuple[Case, int]] = {
    "at once": (Case(lambda link: link.open(), "answered", RTT), 1),
    "second SYN": (
        Case(lambda link: link.send(0, 0, -1, flags=SYN, options=syn_options()).open(1_000), "answered", 1_000 + RTT),
        2,
    ),
    "nobody": (Case(syns(0, 1_000, 3_000), "unanswered", 3_000), 3),
    "nobody for long": (Case(syns(0), "unanswered", 0), 1),
    "cut off": (Case(syns(0), "cut_off", 0, end_ms=2_000), 1),
    "refused": (
        Case(lambda link: link.send(0, 0, -1, flags=SYN).send(RTT, 1, -1, 0, RST | ACK, ack=0), "refused", RTT),
        1,
    ),
    "client resets": (
        Case(
            lambda link: (
                link.send(0, 0, -1, flags=SYN).send(RTT, 1, -1, flags=SYN | ACK, ack=0).send(2 * RTT, 0, 0, flags=RST)
            ),
            "abandoned",
            2 * RTT,
        ),
        1,
    ),
}


@pytest.mark.parametrize("name", CONNECTS)
def test_each_handshake_has_its_outcome(name: str, tmp_path: Path) -> None:
    case, attempts = CONNECTS[name]
    trace = traced(tmp_path, case)
    (row,) = of_kind(trace, "connect")
    assert (row["outcome"], row["attempts"], row["asked_frame"]) == (case.outcome, attempts, 1)
    assert row["waited_ns"] == pytest.approx((case.waited_ms or 0) * MS, abs=1000)
    assert (row["answered_ns"] is not None) == (case.outcome == "answered")


@pytest.mark.parametrize(("status", "outcome"), [("200", "answered"), ("404", "answered"), ("503", "error")])
def test_the_first_request_of_http_is_named(status: str, outcome: str, tmp_path: Path) -> None:
    talk = Talk(80).send(0.02, b"GET /a HTTP/1.1\r\nHost: www.example.org\r\n\r\n")
    trace = talk.send(0.05, f"HTTP/1.1 {status} X\r\n\r\n".encode(), back=True).analyze(tmp_path)
    (row,) = of_kind(trace, "http")
    assert (row["type"], row["name"], row["code"], row["outcome"]) == ("GET", "www.example.org", status, outcome)
    assert row["turn"] == 0 and row["waited_ns"] == pytest.approx(30 * MS, abs=2000)
    assert [row["kind"] for row in trace.exchanges.rows()] == ["connect", "http"]


@pytest.mark.parametrize("apart", [True, False])
def test_an_interim_response_of_a_later_request_has_the_final_status(apart: bool, tmp_path: Path) -> None:
    """100 Continue before 503, in one segment or two."""
    link, request = Connection(Wire()).open(rtt=20.0), b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"
    interim, final = b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    link.send(30, 0, 0, flags=PUSH, ack=0, payload=request)
    link.send(60, 1, 0, flags=PUSH, ack=len(request), payload=final)
    sent, received = len(request), len(final)
    link.send(90, 0, sent, flags=PUSH, ack=received, payload=request)
    for number, part in enumerate((interim, final) if apart else (interim + interim + final,)):
        link.send(120 + 30 * number, 1, received, flags=PUSH, ack=sent + len(request), payload=part)
        received += len(part)
    (row,) = of_kind(wiretale.analyze(link.wire.write(tmp_path / "interim.pcap")), "turn")
    assert (row["code"], row["outcome"]) == ("503", "error")


def test_rows_are_in_the_order_of_flows_and_times(tmp_path: Path) -> None:
    wire = Wire()
    for port in (40_001, 40_002, 40_003):
        answered(Connection(wire, port))
    rows: list[Any] = wiretale.analyze(wire.write(tmp_path / "three.pcap")).exchanges.rows()
    assert [(row["flow"], row["kind"]) for row in rows] == [(i, kind) for i in range(3) for kind in ("connect", "turn")]
    assert all(row["asked_ns"] + row["waited_ns"] == row["answered_ns"] for row in rows)


@pytest.mark.parametrize(
    ("ports", "client"),
    [
        ((1102, 44818), 0),  # EtherNet/IP: the greater port is the server's
        ((44818, 1102), 1),
        ((1086, 20000), 0),  # DNP3
        ((80, 8080), None),  # both are of services
        ((1102, 1103), None),
        ((40000, 50001), None),
    ],
)
def test_without_a_handshake_a_service_port_shows_the_client(
    ports: tuple[int, int], client: int | None, tmp_path: Path
) -> None:
    link = Connection(Wire(), ports[0], server_port=ports[1])
    for i in range(5):
        link.send(1000 * i, 0, 100 * i, 100, PUSH, ack=200 * i).ack(1000 * i + RTT, 100 * i + 100)
        link.send(1000 * i + 600, 1, 200 * i, 200, PUSH, ack=100 * i + 100)
    trace = wiretale.analyze(link.wire.write(tmp_path / "talk.pcap"))
    assert trace.flows.rows()[0]["client"] == client
    assert ("slow-server" in trace.findings.column("code")) == (client == 0)


def test_the_messages_of_http_show_the_client(tmp_path: Path) -> None:
    talk = Talk(49_999, handshake=False).send(0.02, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n")
    trace = talk.send(0.05, b"HTTP/1.1 200 OK\r\n\r\n", back=True).analyze(tmp_path)
    assert trace.flows.rows()[0]["client"] == 0


@pytest.mark.parametrize(("side", "outcomes"), [(0, []), (1, ["closed"])])
def test_without_times_nothing_is_said_of_waits(side: int, outcomes: list[str], tmp_path: Path) -> None:
    """Whether the client waited before it closed is unknown, so that its data may be an upload."""
    link = send_request(Connection(Wire()))
    for place, end in enumerate((side, 1 - side)):
        link.send(5_000 + place, end, (200, 0)[end], 0, CLOSE, ack=(0, 200)[end])
    path = tmp_path / "untimed.pcapng"
    interface = struct.pack("<HHI", 1, 0, 0)
    body = section() + block(1, interface)
    for _, frame in sorted(link.wire.packets, key=lambda packet: packet[0]):
        body += block(3, struct.pack("<I", len(frame)) + frame + bytes(-len(frame) % 4))
    path.write_bytes(body)
    rows = turns_of(wiretale.analyze(path))
    assert [row["outcome"] for row in rows] == outcomes
    assert all(row[name] is None for row in rows for name in ("asked_ns", "answered_ns", "waited_ns", "server_ns"))
